"""Law: a plan is made once, a fitter keeps to it and its schedule, and one that cannot begin leaves nothing behind."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import drive
import numpy as np
import pytest

from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.device.memory import Memory
from raymarch.device.pool import Owner
from raymarch.errors import RaymarchError
from raymarch.fitting import fitter, forecast, pruning
from raymarch.fitting.fit import fit
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.level_schedule import Schedule
from raymarch.fitting.plan import plan
from raymarch.fitting.plan.resolution import footprint_of
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import preset
from raymarch.geometry.camera import Camera
from raymarch.views.views import Views

QUICK = {"resolution": 16, "steps": 8, "rays": 512, "sh_degree": 0, "slots": 1}
LEVELS = ((0.0, 0.5), (0.25, 0.7), (0.5, 1.0))


class Planted(Exception):
    """A failure that a test puts somewhere."""


@pytest.fixture
def owners(monkeypatch):
    """All that takes device memory during a test."""
    taken, own = [], Owner._own

    def note(self, *arguments, **options):
        taken.append(self)
        return own(self, *arguments, **options)

    monkeypatch.setattr(Owner, "_own", note)
    return taken


def failing(*_, **__):
    raise Planted


PLACES = [
    (plan, "require_contents"),
    (plan, "check_slopes"),
    (plan, "find_box"),
    (plan, "require_budget"),
    (plan, "visual_hull"),
    (plan, "Grid"),
    (Grid, "set_activation"),
    (plan, "clear_moments"),
    (Grid, "allow"),
    (fitter, "RayBuffer"),
    (Grid, "refresh_occupancy"),
    (pruning, "list_tiles"),
]


@pytest.mark.parametrize(
    ("begin", "where", "name"),
    [(Fitter, *place) for place in PLACES] + [(fit, plan, "clear_moments"), (forecast.forecast, plan, "visual_hull")],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_fit_that_fails_to_begin_leaves_nothing_on_the_device(begin, where, name, owners, monkeypatch):
    monkeypatch.setattr(where, name, failing)
    with pytest.raises(Planted):
        begin(drive.ball_views(), "quick", **QUICK)
    assert owners
    assert all(owner._fields is None for owner in owners)


@pytest.mark.parametrize("box", [[(-0.8, -0.8, 30), (0.8, 0.8, 31.6)]])
def test_a_fit_that_is_refused_leaves_nothing_on_the_device(box, owners):
    with pytest.raises(RaymarchError, match="check"):
        Fitter(drive.ball_views(), "quick", box=box, **QUICK)
    assert owners
    assert all(owner._fields is None for owner in owners)


def test_what_a_plan_says_is_what_the_fitter_makes():
    views = drive.ball_views()
    settings = preset("quick", **QUICK, levels=LEVELS)
    with ImageStore(views) as store:
        made = plan.plan_fit(views, settings, None, store)
    ends = []
    for begin in (lambda: Fitter(views, settings), lambda: Fitter.of_plan(made)):
        with begin() as each:  # one after the other they take one tree
            assert each.grid.finest == made.shape
            assert each.grid.slots == made.slots == 1
            assert each.grid.shape == made.shape_of(0)
            assert made.shape_of(2) == made.shape
            assert each.settings == settings
            assert each.plan.bytes == made.bytes == made.memory.total
            np.testing.assert_array_equal(each.box, made.box)
            for _ in range(8):
                each.step()
            ends.append(each.grid.download())
    for a, b in zip(*ends, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("clock", [True, False])
def test_all_is_asked_once(clock, monkeypatch):
    """By a fit, and by a forecast that runs a fit in small."""
    asked = []
    for name in ("require_contents", "find_box", "require_budget", "grid_of_boxes", "visual_hull"):
        real = getattr(plan, name)
        monkeypatch.setattr(plan, name, lambda *a, real=real, name=name: asked.append(name) or real(*a))
    wanted = ["require_contents", "find_box", "require_budget", "grid_of_boxes", "visual_hull"]
    forecast.forecast(drive.ball_views(), "quick", clock=clock, **QUICK)
    assert asked == wanted
    asked.clear()
    fit(drive.ball_views(), "quick", **QUICK)
    assert asked == wanted


def test_a_plan_knows_no_hull_where_none_is_wanted_or_seen():
    views = drive.ball_views()
    opaque = replace(views, images=np.ascontiguousarray(views.images[..., :3]))
    for seen, hull in ((views, False), (opaque, True)):
        with ImageStore(seen) as store:
            settings = preset("quick", **QUICK, hull=hull)
            assert plan.plan_fit(seen, settings, drive.BALL_BOX, store).hull is None


def test_alpha_that_is_opaque_everywhere_plans_what_none_does():
    """Box, preset's boxes, resolution and hull."""
    colours = np.round([255 * drive.ball_views().rgb(i) for i in range(len(drive.ball_views()))]).astype(np.uint8)
    opaque = np.concatenate([colours, np.full_like(colours[..., :1], 255)], -1)
    made = []
    for images in (colours, opaque):
        views = replace(drive.ball_views(), images=images)
        with ImageStore(views) as store:
            made.append(plan.plan_fit(views, preset("photos", steps=100), None, store))
    assert made[0].settings == made[1].settings
    assert made[0].hull is made[1].hull is None
    np.testing.assert_array_equal(made[0].box, made[1].box)


@pytest.mark.parametrize(
    ("name", "changes", "first"),
    [("photos", {}, 5), ("photos", {"initial_alpha": 1e-4}, 32), ("default", {}, 0), ("quick", {"density": "relu"}, 0)],
)
def test_no_cell_is_looked_at_before_steps_can_have_raised_it(name, changes, first):
    """Of a start less opaque than what counts as empty; one that is more is looked at from the first."""
    with ImageStore(drive.ball_views()) as store:
        how = {"resolution": 16, "sh_degree": 0, "slots": 1, **changes}
        made = plan.plan_fit(drive.ball_views(), preset(name, **how), drive.BALL_BOX, store)
    looked = [made.least_sigma(steps) is not None for steps in range(40)]
    assert looked == [steps >= first for steps in range(40)]
    least = made.least_sigma(100)
    assert -np.expm1(-least * made.activation.scale) == pytest.approx(made.settings.prune_alpha)


@pytest.mark.parametrize("boxes", [1, 2])
@pytest.mark.parametrize("thin", [0, 1, 2])
def test_images_are_halved_by_the_shortest_edge_of_a_voxel_whichever_that_is(thin, boxes):
    """A coarse level of a slab has voxels three times as wide along it as across, where it keeps four samples."""
    camera, sides = Camera.look_at((0, -4, 0), width=256, height=256), np.full(3, 1.6)
    sides[thin] = 0.1
    views = Views([camera], np.zeros((1, 256, 256, 3), np.uint8))
    settings = preset("quick", resolution=65, levels=((0, 0.25), (0.5, 1)), boxes=boxes)
    placed, shape = plan.grid_of_boxes(np.stack([-sides / 2, sides / 2]), settings)
    survey = Survey(views)
    pixel = footprint_of(survey, placed)
    for wide, halved in ((0.03, 0), (0.014, 1)):
        how = replace(settings, pyramid=wide / pixel)
        made = plan.Plan(survey, how, placed, Memory(shape, 0, 1, {}), None)
        edges = np.linalg.norm(made.affine_of(0)[:3, :3], axis=0)
        assert np.argmin(edges) == thin and edges.max() == pytest.approx(3 * edges.min())
        assert made.halvings_of(0) == halved
        assert made.halvings_of(1) == 0


@pytest.mark.parametrize(("part", "looks", "near"), [(1, 1, 0.8), (0.5, 1, 0.8), (0.25, 1, 0.5), (0.25, -1, 0.8)])
def test_rays_begin_half_way_from_the_nearest_camera_to_the_middle_at_the_latest(part, looks, near):
    """A fifth of what half of the cameras are away, which is 4; one stands nearer, and looks at the middle or not."""
    first, *others = drive.ball_cameras()
    pose = first.world_from_camera @ np.diag([looks, 1.0, looks, 1.0])
    pose[:3, 3] *= part
    views = replace(drive.ball_views(), cameras=[replace(first, world_from_camera=pose), *others])
    with ImageStore(views) as store:
        made = plan.plan_fit(views, preset("quick", **QUICK, near=0.2, hull=False), drive.BALL_BOX, store)
    assert made.near == pytest.approx(near)


@pytest.mark.parametrize(("resolution", "words"), [(None, ""), (400, "in bricks takes about .*; lower the resolution")])
def test_bricks_that_do_not_fit_make_a_resolution_coarser_that_nobody_asked_for(resolution, words):
    views = drive.ball_views()
    settings = preset("default", seconds=1e6, sh_degree=3, bricks=True, memory=0.3, resolution=resolution)
    settings = replace(settings, supersample=1, rays=8192)  # which take a thirtieth of that
    with ImageStore(views) as store:
        if words:
            with pytest.raises(RaymarchError, match=words):
                plan.plan_fit(views, settings, drive.BALL_BOX, store)
        else:
            made = plan.plan_fit(views, settings, drive.BALL_BOX, store)
            assert made.bricks > 0
            assert made.bytes <= 0.3e9


@pytest.mark.parametrize("hull", [True, False])
def test_a_resolution_far_beyond_memory_is_refused_before_all_its_cells_are_looked_at(hull, monkeypatch):
    looked, look = [], plan.visual_hull
    monkeypatch.setattr(plan, "visual_hull", lambda store, box, cells: looked.append(cells) or look(store, box, cells))
    settings = preset("quick", steps=3, bricks=True, memory=1.5, resolution=1500, hull=hull)
    with ImageStore(drive.ball_views()) as store:
        with pytest.raises(RaymarchError, match="bytes or more for .* of its first level .*; lower the resolution"):
            plan.plan_fit(drive.ball_views(), settings, drive.BALL_BOX, store)
        assert max(map(max, looked), default=0) <= plan.COARSE_HULL_CELLS
        least = plan._least_share(store, np.array(drive.BALL_BOX))
        full = (look(store, np.array(drive.BALL_BOX), (96, 96, 96)) >= 0).mean()
        assert 0.2 * full < least < full
        cured = replace(settings, resolution=100)
        assert plan.plan_fit(drive.ball_views(), cured, drive.BALL_BOX, store).bricks > 0


# The schedule


@pytest.mark.parametrize(
    ("steps", "seconds", "done", "at", "wanted"),
    [
        (100, None, 40, 1e9, 0.4),
        (None, 10.0, 40, 5.0, 0.5),
        (100, 10.0, 40, 6.0, 0.5),
        (100, 10.0, 60, 6.0, 0.6),
        (100, 10.0, 1, 1.9, 0.01),  # a slow second step is no reason to leave the steps' pace
        (100, 12.0, 200, 99.0, 1.0),
        (None, 1.0, 1, 0.0, 0.0),  # however long the first step took, which compiles
        (None, 1.0, 2, 3.0, 1.0),
    ],
)
def test_progress_is_by_steps_or_seconds_whichever_is_further(steps, seconds, done, at, wanted):
    assert Schedule(steps, seconds, LEVELS).progress(done, at) == pytest.approx(wanted)


def test_levels_begin_where_they_are_said_to():
    schedule = Schedule(100, None, LEVELS)
    assert [schedule.level(p) for p in (0.0, 0.24, 0.25, 0.49, 0.5, 1.0)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("refresh", [1, 7, 100])
def test_what_is_empty_is_looked_at_after_an_eighth_to_a_quarter_more_steps(refresh):
    schedule = Schedule(None, 60.0, LEVELS, refresh=refresh)
    looks = [age for age in range(500 * refresh + 1) if schedule.looks(age)]
    assert looks[:8] == [n * refresh for n in range(1, 9)]
    later = [(after - before) / before for before, after in pairwise(looks[7:])]
    assert min(later) > 0.125
    assert max(later) == 0.25


def test_what_is_empty_is_looked_at_by_the_steps_since_a_level_began(monkeypatch):
    look, calls, levels = fitter.narrow, [], ((0.0, 0.5), (0.5, 1.0))
    with Fitter(drive.ball_views(), "quick", **QUICK | {"steps": 20, "refresh": 4, "levels": levels}) as one:
        monkeypatch.setattr(fitter, "narrow", lambda *what: calls.append(one.steps_done) or look(*what))
        for _ in range(20):
            one.step()
    assert calls == [4, 8, 10, 14, 18]


def test_what_is_left_is_told_by_what_it_took():
    assert Schedule(100, None, LEVELS).seconds_left(0.25, 10.0) == pytest.approx(30.0)
    assert Schedule(None, 20.0, LEVELS).seconds_left(0.25, 12.0) == pytest.approx(8.0)
    assert Schedule(None, 20.0, LEVELS).seconds_left(1.0, 23.0) == 0
    assert Schedule(100, 20.0, LEVELS).seconds_left(0.5, 6.0) == pytest.approx(6.0)
    assert Schedule(100, 20.0, LEVELS).seconds_left(0.5, 12.0) == pytest.approx(8.0)


@pytest.mark.parametrize("whole", [5.0, 20.0, 40.0, 60.0, 200.0, 2000.0])
def test_quick_is_through_in_its_time_and_the_same_in_each_run_where_it_comes_to_its_steps(whole):
    """Its steps come as the power 0.7 of the time; `whole` seconds are what all of them would take. Now and then one is
    slow, as on a machine that others use."""
    settings = preset("quick")
    schedule, runs = Schedule.of(settings), []
    for slow in (0.0, 0.5):
        seconds, steps, seen = 0.0, 1, []
        while (progress := schedule.progress(steps, seconds)) < 1:
            seen.append((progress, schedule.level(progress, steps)))
            steps += 1
            seconds = whole * (steps / settings.steps) ** (1 / 0.7) + slow * (steps // 100 + 1)
        assert seconds <= settings.seconds + whole * (1.5 / settings.steps) + 2 * slow
        assert schedule.level(progress, steps) == len(settings.levels) - 1
        finest = sum(level == len(settings.levels) - 1 for _, level in seen)
        assert whole > 300 or finest > 0.15 * steps
        runs.append(seen)
    assert (runs[0] == runs[1]) == (whole < 45)
