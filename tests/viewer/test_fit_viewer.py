"""Law: a fit that is looked at ends with the bytes of one that nobody saw; pages pause, slow and stop it."""

from __future__ import annotations

import io
import json
import signal
from types import SimpleNamespace

import drive
import pytest
import sets
from PIL import Image
from wires import FakeWire, around

from raymarch.cli import main
from raymarch.cli.fit import view_on
from raymarch.errors import RaymarchError
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.settings.settings import preset
from raymarch.io.volumes.volume_file import is_volume
from raymarch.viewer.fit_viewer import FitViewer

QUICK = {"resolution": 16, "steps": 40, "rays": 512, "sh_degree": 0, "slots": 1}
SETTINGS = preset("quick", **QUICK)


def bytes_of(volume):
    return volume.density.tobytes() + volume.features.tobytes()


@pytest.fixture(scope="module")
def unseen():
    return fit(drive.ball_views(), SETTINGS, box=drive.BALL_BOX)


@pytest.fixture
def viewer(monkeypatch):
    """A viewer whose pictures are always due: as many as can be."""
    monkeypatch.setattr("raymarch.viewer.fit_viewer.TimeShare.due", True)
    with FitViewer(FakeWire()) as made:
        made.server.say(1, type="open")
        yield made


def looked_at(viewer, each):
    """The fit, `each` done by pages before a step."""

    def between(fitter):
        each(fitter.steps_done)
        return viewer.between(fitter)

    return fit(drive.ball_views(), SETTINGS, box=drive.BALL_BOX, ready=viewer.attach, between=between)


def test_a_viewed_fit_ends_with_the_same_bytes(viewer, unseen):
    wire = viewer.server

    def turn(n):
        if n == 10:
            wire.say(2, type="open")
        wire.say(1, **around(n, moving=n % 3 > 0))
        wire.say(2, **around(n))
        if n == 20:
            wire.say(1, type="fit", action="pause")
            wire.say(1, type="fit", action="go")
            wire.say(2, type="look", exposure=float("nan"))
        if n == 30:
            wire.say(2, type="close")

    seen = looked_at(viewer, turn)
    assert bytes_of(seen.volume) == bytes_of(unseen.volume) and seen.ended == unseen.ended == "done"
    assert len(wire.told("frame", 1)) > 10 and wire.told("frame", 2)
    assert [header["text"] for header, _ in wire.told("error")] == ["exposure is nan, want a number from -10 to 10"]
    assert [vars(report) | {"seconds": 0, "seconds_left": 0, "rays_per_second": 0} for report in seen.history] == [
        vars(report) | {"seconds": 0, "seconds_left": 0, "rays_per_second": 0} for report in unseen.history
    ]


def test_a_page_pauses_changes_rates_and_stops(viewer, unseen):
    wire, waited = viewer.server, []

    def act(n):
        if n == 5:
            wire.say(1, type="fit", action="rate", value=0.5)
        for wrong in ({"action": "rate", "value": float("nan")}, {"action": "rate"}, {"action": "jump"}):
            if n == 6:
                wire.say(1, type="fit", **wrong)
        if n == 12:
            wire.say(1, **around(1))
            wire.say(1, type="fit", action="pause")
        if n == 15:
            wire.say(1, type="fit", action="stop")

    def take(seconds=0.0, own=wire.inbox.take):
        if viewer.control.paused:
            waited.append(seconds)
            if len(waited) == 5:
                wire.say(1, type="fit", action="go")
        return own()

    wire.inbox.take = take
    seen = looked_at(viewer, act)
    assert seen.ended == "interrupted at step 15" and viewer.control.stopped_by_page and len(waited) >= 5
    assert viewer.control.fitter.rates.optimiser.lr_density == SETTINGS.optimiser.lr_density / 2
    assert seen.volume.provenance["rates_multiplied"] == [[5, 0.5]]
    assert len(wire.told("error")) == 3 and bytes_of(seen.volume) != bytes_of(unseen.volume)
    assert "paused" in [header["state"] for header, _ in wire.told("fit", 1)]
    viewer.finish(seen.volume, seen.ended)
    (last, _) = wire.told("fit", 1)[-1]
    assert (last["state"], last["ended"]) == ("done", seen.ended) and not wire.told("scene")[-1][0]["fit"]
    while viewer.viewer.busy:
        viewer.viewer.work()
    assert wire.told("frame", 1)[-1][0]["final"]


def test_every_report_comes_to_every_page_once(viewer):
    wire = viewer.server
    with Fitter(drive.ball_views(), SETTINGS, box=drive.BALL_BOX) as fitter:
        viewer.attach(fitter)
        wire.say(1, **around(1))
        volume = viewer.run()
    assert viewer.done and volume.provenance["ended"] == "done"
    steps = [step for header, _ in wire.told("fit", 1) for step, _ in header["loss"]]
    assert steps == [25, 40]


def test_a_server_that_dies_leaves_the_fit_alone(viewer, unseen):
    seen = looked_at(viewer, lambda n: viewer.server.close() if n == 3 else None)
    assert bytes_of(seen.volume) == bytes_of(unseen.volume)


@pytest.mark.parametrize("as_json", [False, True])
def test_the_verb_saves_first_and_then_shows_what_came_of_it(as_json, tmp_path, monkeypatch, capsys):
    """`raymarch fit --view`, whose pages the test plays; Ctrl-C ends it once the volume is seen."""
    wire = FakeWire()
    wire.url = "http://127.0.0.1:1/?token=t"
    wire.say(1, type="open")
    wire.say(1, **around(1))
    send, out = wire.send, tmp_path / "ball.h5"

    def until_seen(header, *rest, **how):
        send(header, *rest, **how)
        if header["type"] == "frame" and header["final"]:
            assert is_volume(out)
            signal.raise_signal(signal.SIGINT)

    wire.send = until_seen
    monkeypatch.setattr("raymarch.viewer.server.server_process.ServerProcess", lambda port: wire)
    arguments = ["--preset", "quick", "--resolution", "16", "--steps", "8", "--sh-degree", "0", "--box=-1,-1,-1,1,1,1"]
    arguments += ["--set", "rays=512", "--set", "slots=1", "--view", "--no-browser", "--out", str(out)]
    arguments += ["--json"] if as_json else []
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(sets.write_set(tmp_path / "set")), *arguments])
    said = capsys.readouterr()
    assert ended.value.code == 0 and not wire.running
    assert "Traceback" not in said.err
    if as_json:
        assert wire.url in said.err.splitlines() and json.loads(said.out)["steps"] == 8
    else:
        first, second = said.out.splitlines()
        assert first == wire.url and second.startswith(f"{out}: ")
    assert [header["state"] for header, _ in wire.told("fit")][-1] == "done"


def test_a_closed_fitter_is_told_before_anything_is_shown():
    with Fitter(drive.ball_views(), SETTINGS, box=drive.BALL_BOX) as fitter:
        pass
    wire = FakeWire()
    with FitViewer(wire) as made, pytest.raises(RaymarchError, match="is closed; make a new one"):
        made.attach(fitter)
    assert not (wire.sent or wire.running or made.attached)


@pytest.mark.parametrize("slices", [0, 3])
def test_a_server_that_dies_once_the_fit_is_saved_is_a_note(slices, capsys):
    server, ran = FakeWire(), []

    def run(stop):
        while not stop():
            ran.append(1)
            server.running = len(ran) < slices

    server.running = slices > 0
    view_on(SimpleNamespace(done=True, server=server, viewer=SimpleNamespace(run=run)))
    said = capsys.readouterr().err.splitlines()
    assert len(ran) == slices and said[-1].startswith("the page's server has ended; what was fitted is saved")
    assert len(said) == 1 + (slices > 0)


def test_a_picture_is_saved_while_the_fit_goes_on(viewer):
    """The whole one, though those of a running fit are coarse."""
    wire = viewer.server

    def act(n):
        if n == 5:
            wire.say(1, **around(1))
            wire.say(1, type="save", what="picture", width=70, height=50)

    looked_at(viewer, act)
    ((header, data),) = wire.told("file", 1)
    assert header["name"] == "raymarch.png"
    with Image.open(io.BytesIO(data)) as image:
        assert image.size == (70, 50)


def test_a_fit_in_the_viewer_is_stopped_by_a_function(viewer):
    with Fitter(drive.ball_views(), SETTINGS, box=drive.BALL_BOX) as fitter:
        viewer.attach(fitter)
        volume = viewer.run(lambda: fitter.steps_done == 7)
        assert fitter.steps_done == 7 and volume.provenance["ended"] == "interrupted at step 7"


def test_a_paused_fit_in_the_viewer_is_stopped_by_a_function(viewer):
    asked = []
    with Fitter(drive.ball_views(), SETTINGS, box=drive.BALL_BOX) as fitter:
        viewer.attach(fitter)
        viewer.server.say(1, type="fit", action="pause")
        volume = viewer.run(lambda: len(asked) > 5 or asked.append(viewer.control.paused))
    assert viewer.control.paused and sum(asked) > 3 and volume.provenance["ended"].startswith("interrupted at step")


def test_a_fit_that_a_page_paused_goes_on_once_no_page_is_left(viewer, unseen, monkeypatch, caplog):
    """And the shell says both; a page that comes back in time keeps it paused until it lets it go on."""
    monkeypatch.setattr("raymarch.viewer.fit_viewer.MAX_ABSENCE", 0.3)
    wire, looks = viewer.server, []

    def take(seconds=0.0, own=wire.inbox.take):
        if viewer.control.paused:
            looks.append(sorted(viewer.viewer.pages))
            if looks.count([2]) == 3:
                wire.say(2, type="close")
        return own()

    wire.inbox.take = take

    def act(n):
        if n == 5:
            wire.say(1, type="fit", action="pause")
            wire.say(1, type="close")
            wire.say(2, type="open")  # the page was loaded again

    seen = looked_at(viewer, act)
    assert seen.ended == "done" and bytes_of(seen.volume) == bytes_of(unseen.volume)
    assert looks.count([2]) >= 3 and [] in looks
    assert "a page has paused the fit at step 5" in caplog.text
    assert caplog.text.count("the last page has gone, so the fit goes on") == 1
