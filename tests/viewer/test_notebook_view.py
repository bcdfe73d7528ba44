"""Law: a view in a notebook shows the pictures of `rm.render`, a fit ends as unseen, and no message breaks a cell."""

from __future__ import annotations

import asyncio
import base64
import io
import sys
import threading
import time

import drive
import numpy as np
import pytest
from PIL import Image

import raymarch as rm
from raymarch.viewer.notebook import kernel_wire, notebook_view
from raymarch.viewer.notebook.kernel_wire import KernelWire
from raymarch.viewer.notebook.notebook_fit import NotebookFit
from raymarch.viewer.notebook.notebook_view import NotebookView
from raymarch.viewer.pictures import frame_maker

BALL = rm.Volume.from_function(
    lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.6), lambda p: (p + 1) / 2, shape=(12, 13, 14)
)
EYE = {"type": "camera", "id": 1, "position": [0, -4, 1], "width": 90, "height": 71, "moving": False}


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """A kernel without anywidget, whatever is installed; tiles of a few rays; what was opened is closed."""
    notebook_view._widget_class.cache_clear()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.setattr(frame_maker, "SLICE_TIME", 1e-9)
    monkeypatch.setattr(notebook_view, "_open", [])
    yield
    for view in list(notebook_view._open):
        view.close()
    notebook_view._widget_class.cache_clear()


class Output:
    """An output cell of a view: what it says, and what it was told."""

    def __init__(self, view, name="a", got=True):
        self.view, self.name, self.told, self.got = view, name, [], got
        before = view.wire.post
        view.wire.post = lambda content, data: (before(content, data), self.hear(content, data))
        self.say(type="open")

    def hear(self, content, data):
        if content["view"] == self.name:
            self.told.append((content["header"], data))
            if content["header"]["type"] == "frame" and self.got:
                self.say(type="got")

    def say(self, **message):
        self.view.wire.take({"view": self.name, "message": message})

    def headers(self, kind):
        return [header for header, _ in self.told if header["type"] == kind]

    @property
    def final(self):
        return [data for header, data in self.told if header["type"] == "frame" and header["final"]]

    async def rest(self, seconds=60.0):
        """Wait until a picture is at rest that was not."""
        count, until = len(self.final), asyncio.get_running_loop().time() + seconds
        while len(self.final) == count and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.001)
        assert len(self.final) > count


def in_a_kernel(test):
    """The test on a loop, as a cell runs in."""

    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    import inspect

    run.__signature__ = inspect.signature(test)
    return run


def shown(volume=BALL, views=None):
    return NotebookView(lambda: frame_maker.FrameMaker(volume, views, "ball"))


def written(tmp_path, image):
    rm.write_png(tmp_path / "image.png", image, overwrite=True)
    return (tmp_path / "image.png").read_bytes()


@in_a_kernel
async def test_the_picture_at_rest_is_the_file_of_render(tmp_path):
    output = Output(view := shown())
    await asyncio.sleep(0)
    output.say(**EYE)
    await output.rest()
    assert output.headers("scene")[0]["name"] == "ball"
    assert output.final[-1] == written(tmp_path, rm.render(BALL, view.camera, march=view.march)) == view.picture()
    output.say(type="look", step=2)
    await output.rest()
    assert view.march.step == 2
    assert output.final[-1] == written(tmp_path, rm.render(BALL, view.camera, march=rm.March(step=2)))


@in_a_kernel
async def test_a_move_cuts_a_picture_short(monkeypatch):
    monkeypatch.setattr(frame_maker, "TILE_INTERVAL", -1.0)  # parts of a picture come on the way
    output = Output(shown())
    output.say(**EYE)
    while not output.headers("frame"):
        await asyncio.sleep(0)
    output.say(**{**EYE, "id": 2, "position": [4, 0, 1]})
    await output.rest()
    assert [header["id"] for header in output.headers("frame") if header["final"]] == [2]


@in_a_kernel
async def test_messages_of_another_thread_are_drawn_on_the_one_that_owns_the_device():
    """As those of comms are that a kernel takes in subshells."""
    output, threads = Output(view := shown()), set()
    picture = view.viewer.work
    view.viewer.work = lambda *a: (threads.add(threading.get_ident()), picture(*a))
    other = threading.Thread(target=lambda: output.say(**EYE))
    other.start()
    await output.rest()
    other.join()
    assert threads == {threading.get_ident()}


@in_a_kernel
async def test_outputs_have_eyes_of_their_own():
    one, two = Output(view := shown()), None
    two = Output(view, "b")
    one.say(**EYE)
    two.say(**{**EYE, "id": 7, "width": 40, "height": 30})
    await two.rest()
    while not one.final:
        await asyncio.sleep(0.001)
    assert {header["id"] for header in one.headers("frame")} == {1}
    assert {header["id"] for header in two.headers("frame")} == {7}
    two.say(type="close")
    await asyncio.sleep(0.01)
    assert len(view.viewer.pages) == 1


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"type": "look", "step": "long"}, "step is 'long', want"),
        ({"type": "look", "table": {"values": [0, float("nan")]}}, "table"),
        (
            {"type": "camera", "id": 3, "position": [float("nan"), 0, 0], "width": 9, "height": 9},
            "position is [nan",
        ),
        ({"type": "camera", "id": 3, "position": [0, 0, 1], "width": 10**9, "height": 9}, "width is 1000000000"),
        ({"type": "nonsense"}, "type is 'nonsense'"),
        ({"type": ["a"]}, "type is ''"),
        ({"type": "fit", "action": "stop"}, "type is 'fit'"),
    ],
)
def test_what_is_wrong_is_one_line_in_the_page(message, said):
    @in_a_kernel
    async def refused():
        output = Output(shown())
        output.say(**message)
        await asyncio.sleep(0.01)
        texts = [header["text"] for header in output.headers("error")]
        assert len(texts) == 1 and said in texts[0] and "\n" not in texts[0]
        output.say(**EYE)
        await output.rest()

    refused()


@pytest.mark.parametrize("content", [None, 3, [], {}, {"view": 1}, {"view": "a"}, {"view": "a", "message": "open"}])
def test_what_is_no_message_is_left_aside(content):
    wire = KernelWire(lambda content, data: None, lambda: pytest.fail("woken"))
    wire.take(content)
    wire.take({"view": "unknown", "message": EYE})
    assert wire.inbox.take() == []


@in_a_kernel
async def test_a_fault_is_a_line_in_the_page_and_the_next_picture_comes(monkeypatch):
    output = Output(view := shown())
    with monkeypatch.context() as patch:
        patch.setattr(view.viewer.maker, "frames", lambda eye, look: iter([1 / 0 for _ in [0]]))
        output.say(**EYE)
        await asyncio.sleep(0.01)
    (said,) = output.headers("error")
    assert "division by zero" in said["text"] and "\n" not in said["text"]
    with monkeypatch.context() as patch:  # nor what fails as a volume is put on the device again
        patch.setattr(view, "_make", lambda: 1 / 0)
        view.rest()
        output.say(**EYE)
        await asyncio.sleep(0.01)
    assert output.headers("error")[-1]["text"] == "the picture could not be made: division by zero"
    output.say(**EYE)
    await output.rest()


def test_the_oldest_page_gives_way_where_there_are_too_many():
    """Outputs of a notebook that was reloaded never say that they went."""
    posted = []
    wire = KernelWire(lambda content, data: posted.append(content["view"]), lambda: None)
    for n in range(kernel_wire.MAX_PAGES + 1):
        wire.take({"view": f"output {n}", "message": {"type": "open"}})
    taken = wire.inbox.take()
    assert [(one["type"], one["page"]) for one in taken[-2:]] == [("close", 1), ("open", kernel_wire.MAX_PAGES + 1)]
    wire.send({"type": "note", "text": "hello"})
    assert posted == [f"output {n}" for n in range(1, kernel_wire.MAX_PAGES + 1)]


@in_a_kernel
async def test_a_slow_page_is_not_sent_more_than_it_takes(monkeypatch):
    monkeypatch.setattr(frame_maker, "TILE_INTERVAL", -1.0)
    output = Output(view := shown(), got=False)
    output.say(**{**EYE, "height": 200})
    while not view.wire.behind:
        await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    assert len(output.headers("frame")) == kernel_wire.MAX_FRAMES_AHEAD and not output.final
    output.got = True
    for _ in range(kernel_wire.MAX_FRAMES_AHEAD):
        output.say(type="got")
    await output.rest()
    assert not view.wire.behind


@in_a_kernel
async def test_a_view_that_is_left_frees_the_device_and_comes_back(monkeypatch):
    monkeypatch.setattr(notebook_view, "MAX_OPEN", 1)
    output = Output(first := shown())
    output.say(**EYE)
    output.say(type="look", step=2)
    await output.rest()
    before = output.final[-1]
    other = shown()
    with pytest.raises(rm.RaymarchError, match="closed"):
        _ = first.viewer.maker.source.buffer.fields
    output.say(type="look", step=2)
    output.say(**EYE)
    await output.rest()
    assert output.final[-1] == before and len(output.headers("scene")) == 2
    with pytest.raises(rm.RaymarchError, match="closed"):
        _ = other.viewer.maker.source.buffer.fields


@in_a_kernel
async def test_without_widgets_it_is_a_still_picture_that_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_maker, "SLICE_TIME", 0.03)
    monkeypatch.setattr(notebook_view, "STILL_SIZE", (40, 30))
    view = shown()
    bundle = view._repr_mimebundle_()
    still = base64.b64decode(bundle["image/png"])
    assert still == written(tmp_path, rm.render(BALL, view.camera, march=view.march))
    assert Image.open(io.BytesIO(still)).size == notebook_view.STILL_SIZE
    assert "raymarch[notebook]&quot;" in bundle["text/html"] and bundle["text/plain"] == "NotebookView('ball')"


def test_who_calls_from_a_script_or_another_thread_is_told():
    with pytest.raises(rm.RaymarchError, match="no notebook's kernel runs this; call rm.view in a cell"):
        shown()
    assert not notebook_view.runs_in_kernel()


QUICK = {"resolution": 16, "steps": 40, "rays": 512, "sh_degree": 0, "slots": 1}


def fitter():
    return rm.Fitter(drive.ball_views(), rm.preset("quick", **QUICK), box=drive.BALL_BOX)


def bytes_of(volume):
    return volume.density.tobytes() + volume.features.tobytes()


@pytest.fixture(scope="module")
def unseen():
    return rm.fit(drive.ball_views(), rm.preset("quick", **QUICK), box=drive.BALL_BOX)


@in_a_kernel
async def test_a_fit_that_is_looked_at_is_the_one_that_nobody_saw(unseen, monkeypatch):
    monkeypatch.setattr("raymarch.viewer.fit_viewer.TimeShare.due", True)
    monkeypatch.setattr(frame_maker, "SLICE_TIME", 0.03)
    with fitter() as own:
        output = Output(view := NotebookFit(own))
        steps = [-1]
        while not view.fitting.done:
            if own.steps_done != steps[-1]:
                steps.append(own.steps_done)
                output.say(**{**EYE, "id": len(steps), "moving": len(steps) % 3 > 0})
            await asyncio.sleep(0)
        fitted = await view.done()
        assert bytes_of(fitted.volume) == bytes_of(unseen.volume)
        assert (fitted.ended, fitted.settings, len(fitted.history)) == ("done", unseen.settings, len(unseen.history))
        assert [report.psnr for report in fitted.history] == [report.psnr for report in unseen.history]
        assert len(set(steps)) > 10 and len(output.headers("frame")) > 5
    output.say(**{**EYE, "id": 10**6})  # the volume of it is turned after the fitter is closed
    await output.rest()
    late = Output(view, "late")
    await asyncio.sleep(0.01)
    assert late.headers("fit")[-1]["state"] == "done" and len(late.headers("fit")[-1]["psnr"]) == len(fitted.history)


@in_a_kernel
async def test_a_page_pauses_a_fit_and_stops_it():
    with fitter() as own:
        output = Output(view := NotebookFit(own))
        while own.steps_done < 5:
            await asyncio.sleep(0)
        output.say(type="fit", action="pause")
        while not any(header["state"] == "paused" for header in output.headers("fit")):
            await asyncio.sleep(0)
        at, clock, wall = own.steps_done, own.seconds, time.perf_counter()
        await asyncio.sleep(0.2)
        output.say(**EYE)
        await output.rest()
        assert own.steps_done == at and output.headers("fit")[-1]["state"] == "paused"
        output.say(type="fit", action="rate", value="fast")
        output.say(type="fit", action="go")
        while own.steps_done < at + 3:
            await asyncio.sleep(0)
        assert "value is 'fast'" in output.headers("error")[0]["text"]
        output.say(type="fit", action="stop")
        fitted = await view.done()
        assert fitted.ended.startswith("interrupted at step") and at < own.steps_done < QUICK["steps"]
        assert fitted.seconds - clock < time.perf_counter() - wall - 0.2  # its clock stood still
        assert fitted.volume.provenance["steps"] == own.steps_done


@in_a_kernel
async def test_a_fit_whose_fitter_is_closed_says_so():
    with fitter() as own:
        output = Output(view := NotebookFit(own))
        await asyncio.sleep(0)
    with pytest.raises(rm.RaymarchError, match="closed"):
        await view.done()
    assert "the fit cannot go on" in output.headers("error")[0]["text"]
