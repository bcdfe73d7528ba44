"""Law: pages that look at once have each their own; who vanishes or says what is wrong disturbs nobody."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from wires import CAMERA, FakeWire, around

from raymarch.errors import RaymarchError
from raymarch.viewer.pictures.viewer_camera import Look, Slice
from raymarch.viewer.viewer import Viewer


class Counter:
    """A frame maker whose pictures say by whom and how they were asked for, after a few slices."""

    name = "counter"
    closed = False
    atlas = SimpleNamespace(busy=False, max_bytes=0)

    def look(self):
        return Look()

    def scene(self):
        return {"type": "scene", "name": self.name}

    def changed(self, look, message):
        return look.changed(message)

    def camera(self, eye):
        return None

    def frames(self, eye, look):
        yield from [None] * 6
        yield Shot(eye, look, self.name)

    def close(self):
        self.closed = True


class Shot:
    def __init__(self, eye, look, name):
        self.data = b"picture"
        self.header = {"type": "frame", "id": eye.id, "exposure": look.exposure, "width": 1, "height": 1, "of": [1, 1]}
        self.header["name"] = name


@pytest.fixture
def viewer():
    made = Viewer(FakeWire(), Counter())
    for page in (1, 2, 3):
        made.server.say(page, type="open")
    return made


def worked(viewer):
    viewer.take()
    slices = 0
    while viewer.busy and slices < 1000:
        viewer.work()
        slices += 1
    return slices


def test_two_that_steer_at_once_see_each_their_own(viewer):
    wire = viewer.server
    for n in range(1, 30):
        wire.say(1, **around(n, moving=True))
        wire.say(2, **around(100 + n, moving=True))
        wire.say(2, type="look", exposure=n / 10)
        viewer.work()
    assert viewer.moving and worked(viewer) < 100
    ids = {page: [header["id"] for header, _ in wire.told("frame", page)] for page in (1, 2, 3)}
    assert ids[1][-1] == 29 and ids[2][-1] == 129 and not ids[3]
    assert all(found == sorted(found) for found in ids.values())
    assert wire.told("frame", 1)[-1][0]["exposure"] == 0 and wire.told("frame", 2)[-1][0]["exposure"] == 2.9


def test_one_that_vanishes_in_the_middle_of_a_picture_is_forgotten(viewer):
    wire = viewer.server
    for page in (1, 2):
        wire.say(page, **CAMERA)
    viewer.work()
    wire.say(1, type="close")
    wire.say(1, **CAMERA)  # what it said last comes after
    worked(viewer)
    assert not wire.told("frame", 1) and wire.told("frame", 2) and set(viewer.pages) == {2, 3}


def test_what_is_wrong_is_said_to_its_page_each_time_and_to_the_terminal_once(viewer, caplog):
    wire = viewer.server
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            wire.say(1, type="look", exposure=float("nan"))
            viewer.take()
    assert len(wire.told("error", 1)) == 5 and not wire.told("error", 2) and len(caplog.records) == 1


def test_another_volume_is_shown_to_all(viewer):
    wire, before, after = viewer.server, viewer.maker, Counter()
    for page in (1, 2):
        wire.say(page, **CAMERA)
    worked(viewer)
    after.name = "other"
    viewer.show(after)
    worked(viewer)
    assert before.closed and [header["name"] for header, _ in wire.told("scene")] == ["counter", "other"]
    assert all(wire.told("frame", page)[-1][0]["name"] == "other" for page in (1, 2))


def test_a_server_that_is_gone_ends_it_in_a_line(viewer):
    viewer.server.running = False
    with pytest.raises(RaymarchError, match="server process has ended; start the viewer again"):
        viewer.run()


def test_another_volume_brings_its_own_table_and_iso_unless_they_were_changed(viewer):
    """A look that names the old one's would show the new one's values by a range that they do not have."""

    class Valued(Counter):
        def __init__(self, iso):
            self.iso = iso

        def look(self):
            return Look(iso=self.iso)

    viewer.show(Valued(1.0))
    viewer.server.say(2, type="look", iso=5.0, exposure=2.0)
    worked(viewer)
    viewer.show(Valued(3.0))
    assert [viewer.pages[page].look.iso for page in (1, 2)] == [3.0, 5.0]
    assert viewer.pages[2].look.exposure == 2.0


def test_a_slice_is_kept_where_the_other_volume_has_slices_too(viewer):
    """Where it has none, as nested boxes, each picture would be refused for it."""

    class Whole(Counter):
        def changed(self, look, message):
            new = look.changed(message)
            if new.slice is not None:
                raise RaymarchError("slice: this volume has none to show")
            return new

    viewer.server.say(1, type="look", slice={"axis": 1, "position": 0.5}, exposure=2.0)
    worked(viewer)
    viewer.show(Counter())
    assert viewer.pages[1].look.slice == Slice(1, 0.5)
    viewer.show(Whole())
    assert (viewer.pages[1].look.slice, viewer.pages[1].look.exposure) == (None, 2.0)
