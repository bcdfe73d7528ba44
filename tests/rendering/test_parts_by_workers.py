"""Law of parts by workers: the image has the bytes of one process, whoever goes through which part, and in what order.

Most have an executor that runs in this process what it is given.
"""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future
from itertools import product

import numpy as np
import pytest
from test_out_of_core import BY_TABLE, CAMERAS, EYE, scan

import raymarch as rm
from raymarch.rendering import out_of_core, parts_by_workers
from raymarch.tasks.worker import run_task
from raymarch.volumes import part_plan
from raymarch.volumes.part_plan import PartPlan, plan_of

LIT = rm.March(**BY_TABLE, shading=rm.Shading(), jitter=1.0, step_jitter=0.3)
PLAIN = rm.March(**BY_TABLE)
FOUR_RAYS = rm.March(mode="average", supersample=2)
SURFACE = rm.March(mode="isosurface", iso=4.0)
CASES = {
    "lit, with jitter": (LIT, ("before it", "inside"), {"depth": True, "normals": True}),
    "of an isosurface": (SURFACE, ("on a cut", "all around"), {"depth": True}),
    "of a maximum": (rm.March(mode="maximum"), ("parallel",), {"depth": True}),
    "of an exact X-ray": (rm.March(mode="x-ray-exact"), ("before it",), {"depth": False}),
    "of four rays a pixel": (FOUR_RAYS, ("before it",), {"depth": True}),
}
BEHIND = (0.1, 0.2, 0.5)


class Here:
    """An executor that runs what it is given at once, in this process."""

    def __init__(self):
        self.items = []

    def submit(self, function, task):
        self.items.append(task.item)
        done = Future()
        done.set_result(function(task))
        return done


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "scan.h5"
    rm.save(scan(), path)
    return path


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of up to 13 samples a side, room for all rays of the images here, and for few of a worker's."""
    monkeypatch.setattr(part_plan, "MIN_SIDE", 4)
    monkeypatch.setattr(out_of_core, "_rooms", lambda volume, memory, features: (13**3, 2000))
    monkeypatch.setattr(parts_by_workers, "RAYS_AT_ONCE", 100)
    yield
    parts_by_workers._last_march.close()


def numbers_of(seen):
    """All that a rendering has."""
    return [one for one in (seen.image, seen.opacity, seen.depth, seen.normals) if one is not None]


def renderings(file, march, cameras, how, executor=None):
    with rm.OutOfCoreRenderer(file, march, executor=executor) as renderer:
        return [numbers_of(renderer.render(camera, BEHIND, **how)) for camera in cameras]


@pytest.mark.parametrize(("march", "cameras", "how"), CASES.values(), ids=CASES)
def test_image_depth_and_normals_have_the_bytes_of_one_process(march, cameras, how, file, small_parts):
    cameras, here = [CAMERAS[name] for name in cameras], Here()
    wanted = renderings(file, march, cameras, how)
    assert np.ptp(wanted[0][0]) > 0.1
    for seen, alone in zip(renderings(file, march, cameras, how, here), wanted, strict=True):
        for one, other in zip(seen, alone, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(here.items) > 8


def test_each_part_is_read_once_an_image_and_those_known_to_be_clear_no_more(file, small_parts):
    high = rm.TransferFunction([6.0, 7.0], [[1.0, 1.0, 1.0]] * 2, [0.0, 0.5], 0.1)
    here, told = Here(), []
    with rm.OutOfCoreRenderer(file, rm.March(mode="transfer", transfer=high), executor=here) as renderer:
        renderer.watch = lambda: told.append(1)
        ahead = renderer.forecast(EYE)
        assert not here.items
        images = []
        for _ in range(2):
            here.items.clear(), told.clear()
            images.append(renderer.render(EYE, "black", depth=False).image)
            numbers = [item.number for item in here.items]
            assert len(numbers) == len(set(numbers)) == len(told) <= ahead.parts_met
            assert 1 <= ahead.parts_at_once <= ahead.parts_met
    assert len(numbers) < ahead.parts_met, "it is known by then of which nothing is seen"
    np.testing.assert_array_equal(*images)


def test_only_rays_that_wait_travel_and_no_values(file, small_parts):
    here = Here()
    with rm.OutOfCoreRenderer(file, PLAIN, executor=here) as renderer:
        renderer.render(EYE, depth=False)
        assert np.prod(renderer._parts._grid.shape) == 8
    most = EYE.width * EYE.height
    assert all(0 < len(item.cells) == len(item.numbers) <= most for item in here.items)
    assert sum(len(item.cells) for item in here.items) < 8 * most
    assert {item.names for item in here.items} == {("image",)}


def test_a_worker_that_is_lost_costs_its_parts_alone_and_ctrl_c_leaves_none(file, small_parts):
    wanted = renderings(file, PLAIN, [EYE, EYE], {"depth": False})
    told = []
    with rm.OutOfCoreRenderer(file, PLAIN, executor=2) as renderer:

        def lose_one():
            if len(told) == 2:
                os.kill(next(iter(renderer._workers.crew.executor._processes)), signal.SIGKILL)
            told.append(1)

        renderer.watch = lose_one
        seen = [numbers_of(renderer.render(EYE, BEHIND, depth=False)) for _ in range(2)]
        ahead = renderer.forecast(EYE)
        assert renderer.workers == 2

        def stop():
            raise KeyboardInterrupt

        renderer.watch, processes = stop, list(renderer._workers.crew.executor._processes)
        with pytest.raises(KeyboardInterrupt):
            renderer.render(EYE, depth=False)
        assert processes and not any(map(is_alive, processes)), "before it is closed"
        with pytest.raises(rm.RaymarchError, match="the workers were dismissed"):
            renderer.render(EYE, depth=False)
    assert 4 < len(told) <= 2 * ahead.parts_met
    for one, other in zip(seen, wanted, strict=True):
        np.testing.assert_array_equal(one[0], other[0])


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


# Which parts are independent.


def comes_after(plan, one, other, eye):
    """Whether a ray from an eye may come to part `other` after part `one`: by each axis, not nearer to the eye's."""
    own = np.floor((eye + plan.offset) / plan.side).clip(0, np.array(plan.counts) - 1)
    a, b = np.array(plan.index(one)) - own, np.array(plan.index(other)) - own
    return bool((a * b >= 0).all() and ((np.abs(b) >= np.abs(a)) & ((a == 0) | (np.sign(a) == np.sign(b)))).all())


def test_open_parts_are_those_before_which_no_ray_waits():
    rng, plan = np.random.default_rng(5), plan_of((65, 65, 49), 20**3, 0)
    for eye in (np.array([-40.0, 30, 90]), np.array([20.0, 33, 20])):
        for share in (0.1, 0.3, 1.0):
            waiting = rng.poisson(2, plan.parts) * (rng.random(plan.parts) < share)
            there = np.flatnonzero(waiting)
            assert there.size
            wanted = [p for p in there if not any(q != p and comes_after(plan, q, p, eye) for q in there)]
            first = plan.first_place(eye, np.zeros(3))
            np.testing.assert_array_equal(plan.open_parts(waiting, first), wanted)
            ranks = plan.order(eye, np.zeros(3))[there]
            assert set(there[ranks == ranks.min()]) <= set(wanted)


def test_parallel_rays_do_not_cross_from_one_column_to_the_next():
    plan = PartPlan((33, 33, 33), (8, 8, 8), (0, 0, 0), 0)
    waiting = np.ones(plan.parts, int)
    for ahead, parts in (((0, 0, -1.0), 16), ((1.0, 0, 1.0), 4), ((1.0, -1.0, 1.0), 1)):
        first = plan.first_place(None, np.array(ahead))
        found = plan.open_parts(waiting, first)
        assert len(found) == parts
        for number, (own, place) in product(found, enumerate(first)):
            assert place is None or plan.index(int(number))[own] == place


# What stops it.


def test_what_a_worker_finds_wrong_is_one_line(tmp_path, small_parts):
    before = rm.Camera.look_at((11, -60, 15), (11, 11, 15), width=8, height=8)
    for bad, march, said in ((np.nan, PLAIN, "NaN or infinite"), (-1.0, rm.March(), "want 0 or more")):
        values = scan().values.copy()
        values[20, 11, 20] = bad
        np.save(tmp_path / "bad.npy", values)
        with (
            rm.OutOfCoreRenderer(tmp_path / "bad.npy", march, executor=Here()) as renderer,
            pytest.raises(rm.RaymarchError, match=said),
        ):
            renderer.render(before)


def test_a_file_that_a_worker_does_not_see_is_told(tmp_path, small_parts):
    path = tmp_path / "scan.npy"
    np.save(path, scan().values)
    with rm.OutOfCoreRenderer(path, PLAIN, executor=Here()) as renderer:
        told = os.stat(path)
        os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns + 10**9))
        with pytest.raises(rm.RaymarchError, match="sees another file there, of another size or time"):
            renderer.render(EYE)
        path.unlink()
        with pytest.raises(rm.RaymarchError, match="does not see it; put it where all workers see it by that path"):
            renderer.render(EYE)


def test_a_folder_that_holds_another_volume_at_a_worker_is_told(file, small_parts):
    here = Here()
    with rm.OutOfCoreRenderer(file, PLAIN, executor=here) as renderer:
        renderer.render(EYE, depth=False)
    recipe = here.items[0].recipe
    other = out_of_core.replace(recipe, samples=(9, 9, 9))
    with pytest.raises(rm.RaymarchError, match=r"sees another volume there, of 26 x 22 x 31 samples"):
        other.march_of_parts()


def test_a_worker_of_another_version_is_told(file, small_parts, monkeypatch):
    class Older(Here):
        def submit(self, function, task):
            return super().submit(run_task, out_of_core.replace(task, version="0.0.7"))

    with (
        rm.OutOfCoreRenderer(file, PLAIN, executor=Older()) as renderer,
        pytest.raises(rm.RaymarchError, match=r"and 0\.0\.7 asks; install the same there"),
    ):
        renderer.render(EYE)


def test_too_little_memory_is_refused_before_workers_are_taken_on(file):
    with pytest.raises(rm.RaymarchError, match=r"give 0\.35 or more"):
        rm.OutOfCoreRenderer(file, PLAIN, memory=0.2, executor=2)


def test_more_memory_than_there_is_for_all_workers_is_warned_of(file, small_parts, monkeypatch, caplog):
    monkeypatch.setattr(out_of_core, "available_bytes", lambda: 3e9)
    for memory, said in ((1.0, ""), (2.0, "2 workers of up to 2 GB each, and 3 GB are free here")):
        caplog.clear()
        with rm.OutOfCoreRenderer(file, PLAIN, memory=memory, executor=2):
            assert said in caplog.text and bool(said) == bool(caplog.text)
