"""Laws of forecasts: bytes within 15 % of the peak, nothing begun that is over the budget, and nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import drive
import numpy as np
import pytest
from PIL import Image
from whole import whole

from raymarch import cli, runtime
from raymarch.device import memory
from raymarch.device.image_store import ImageStore
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.forecast import (
    OCCUPANCY_COST,
    PROBE_STEPS,
    SETTLED_COST,
    Cost,
    Kind,
    forecast,
    forecast_rendering,
)
from raymarch.fitting.level_schedule import FIRST_TIMED_PROGRESS, Schedule
from raymarch.fitting.plan.budget import (
    images_of_fit,
    memory_of_fit,
    require_budget,
    room_for_bricks,
    room_to_grow,
)
from raymarch.fitting.plan.plan import plan_fit
from raymarch.fitting.plan.resolution import limit_resolution
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import FitSettings, preset
from raymarch.geometry.camera import Camera
from raymarch.system.resources import workers
from raymarch.views.resize import HALVING_BYTES_A_PIXEL, shrink
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

BOX = np.array([(-1.0, -1.0, -0.5), (1.0, 1.0, 0.5)])
IMAGES = (20, 32, 32, 4)
PEAK = """
import sys
def status(name):  # not getrusage: its peak may be that of the process that started this one
    rows = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(rows[name].split()[0]) * 1024
import raymarch as rm
before = status("VmRSS")
views = rm.load_views(sys.argv[1])
fit = rm.fit(views, "quick", steps=6, resolution=int(sys.argv[2]), sh_degree=int(sys.argv[3]))
rm.save(fit.volume, sys.argv[4])
peak = status("VmHWM") - before
told = rm.forecast(views, "quick", resolution=int(sys.argv[2]), sh_degree=int(sys.argv[3]), clock=False)
print(told.memory.total, peak)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize(("resolution", "degree"), [whole(100, 0), whole(160, 1)])
def test_the_peak_of_a_fit_is_within_15_percent_of_its_forecast(root, tmp_path, resolution, degree):
    words = [str(root / "scenes" / "tower"), str(resolution), str(degree), str(tmp_path / "volume.h5")]
    run = subprocess.run([sys.executable, "-c", PEAK, *words], capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    told, peak = map(int, run.stdout.split())
    assert abs(peak / told - 1) < 0.15


@pytest.mark.parametrize(("limit", "side"), [(0.3, 1), (0.5, 1), (0.5, 2), (2.0, 2)])
def test_a_fit_over_its_budget_names_the_largest_resolution_that_fits(limit, side):
    settings = FitSettings(resolution=400, memory=limit, supersample=side)
    with pytest.raises(RaymarchError, match=f"{int(limit * 1e9):,} is the budget; take a resolution of") as refused:
        require_budget(settings, BOX, IMAGES)
    largest = int(str(refused.value).split("resolution of ")[1].split()[0])
    assert require_budget(replace(settings, resolution=largest), BOX, IMAGES).total <= limit * 1e9
    with pytest.raises(RaymarchError, match="budget"):
        require_budget(replace(settings, resolution=largest + 1), BOX, IMAGES)


def test_every_resolution_up_to_the_named_one_fits_where_finer_grids_have_fewer_slots():
    settings, cube = FitSettings(resolution=500, memory=7.0), [(-1, -1, -1), (1, 1, 1)]
    with pytest.raises(RaymarchError, match="take a resolution of") as refused:
        require_budget(settings, cube, IMAGES)
    largest = int(str(refused.value).split("resolution of ")[1].split()[0])
    assert all(require_budget(replace(settings, resolution=r), cube, IMAGES) for r in range(200, largest + 1))


def test_a_thin_grid_counts_whole_blocks():
    thin = memory_of_fit(FitSettings(resolution=500), [(0, 0, 0), (499, 499, 4)], IMAGES)
    assert thin.shape == (500, 500, 5)
    assert thin.parts["grid"] == memory.grid_bytes((500, 500, 8), 1, slots=thin.slots, moments=True, width=8)


def test_a_budget_that_images_alone_exceed_is_said():
    many = (500, 400, 400, 4)
    with pytest.raises(RaymarchError, match=r"640,000,000 of them for the images, .* or take fewer or smaller images"):
        require_budget(FitSettings(memory=0.5), BOX, many)


@pytest.mark.parametrize("gigabytes", [1e-6, 1e-3, 0.1])
def test_a_budget_under_what_any_fit_takes_names_one_that_suffices(gigabytes):
    with pytest.raises(RaymarchError, match="the smallest fit of these images takes") as refused:
        require_budget(FitSettings(memory=gigabytes), BOX, IMAGES)
    assert "fewer" not in str(refused.value)
    enough = float(str(refused.value).split("raise memory to ")[1].split()[0])
    assert require_budget(FitSettings(memory=enough, resolution=4), BOX, IMAGES)


@pytest.mark.parametrize("count", [1, 100])
def test_images_on_their_way_to_smaller_ones_are_counted(count):
    """As many as there are workers, each as large as the largest; none where a fit makes none smaller."""
    at_once = min(workers(), count) * 3000 * 4000
    for name, wanted in (("default", count * 3000 * 4000 * 3 // 4 + at_once * HALVING_BYTES_A_PIXEL[3]), ("photos", 0)):
        told = memory_of_fit(preset(name, resolution=16), BOX, (count, 3000, 4000, 3))
        assert told.parts["smaller images"] == wanted


def test_of_images_of_several_sizes_the_largest_are_counted_as_they_are_made_smaller():
    sizes = [(64, 48), (320, 240), (64, 48)]
    cameras = [Camera.look_at((0, -4, 0), width=width, height=height) for width, height in sizes]
    views = Views(cameras, [np.full((height, width, 4), 9, np.uint8) for width, height in sizes])
    pixels = 320 * 240 + 2 * 64 * 48
    assert Survey(views).images == (pixels, min(workers(), 3) * 320 * 240, 4)
    masked = replace(views, masks=[np.zeros((48, 64), bool), None, None])
    assert Survey(masked).images == (pixels, 0, 4)  # which no fit makes smaller
    alike = images_of_fit(FitSettings(), Survey(views[[0, 2]]).images)
    assert alike == images_of_fit(FitSettings(), views[[0, 2]].images.shape)


@pytest.mark.parametrize("channels", [3, 4])
def test_an_image_takes_no_more_while_it_is_made_smaller_than_is_told(channels):
    image = np.zeros((600, 800, channels), np.uint8)
    tracemalloc.start()
    shrink(image, 400, 300)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.8 * HALVING_BYTES_A_PIXEL[channels] < peak / (600 * 800) < 1.1 * HALVING_BYTES_A_PIXEL[channels]


def test_without_a_budget_it_is_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**9)
    there = int(0.9e9) + memory.LIBRARY_BYTES + 20 * 32 * 32 * 8  # what is loaded already takes no more of it
    with pytest.raises(RaymarchError, match=f"bytes but {there:,} are free; take a resolution of"):
        require_budget(FitSettings(resolution=400), BOX, IMAGES)


@pytest.fixture
def small_host(monkeypatch):
    """A GPU of a terabyte in a machine that has a tenth of a gigabyte left."""
    monkeypatch.setattr(runtime, "runs_on_cpu", lambda: False)
    monkeypatch.setattr(runtime, "device_bytes", lambda: (10**12, 10**12))
    monkeypatch.setattr(memory, "host_bytes", lambda: 10**8)


def test_whatever_the_gpu_has_a_result_is_to_find_room_in_the_host_s_memory(small_host):
    settings = FitSettings(resolution=300)
    with pytest.raises(
        RaymarchError, match=r"bytes but 90,000,000 of the host's memory are free; take a reso"
    ) as refused:
        require_budget(settings, BOX, IMAGES)
    largest = replace(settings, resolution=int(str(refused.value).split("resolution of ")[1].split()[0]))
    found = require_budget(largest, BOX, IMAGES)
    numbers = np.prod(found.shape) * 13 * 8
    assert 0.95 * 0.9e8 < 1.25 * numbers + numbers / 2 <= 0.9e8  # checked, and half as much in the file
    with pytest.raises(RaymarchError, match="the host's memory"):
        require_budget(replace(settings, resolution=largest.resolution + 1), BOX, IMAGES)
    assert limit_resolution(settings, BOX, IMAGES).resolution <= largest.resolution


def test_no_more_bricks_are_taken_than_the_host_has_room_for_in_the_result(small_host):
    shape, most = (129, 129, 65), int(0.9e8 / (1.75 * 512 * 13 * 8))
    assert room_for_bricks(FitSettings(), shape, None, IMAGES)[0] == most < 17 * 17 * 9
    assert room_to_grow(FitSettings(), shape, IMAGES, most // 2) == most
    with pytest.raises(RaymarchError, match="90,000,000 of the host's memory are free; lower the resolution"):
        room_for_bricks(replace(FitSettings(), levels=((0.0, 1.0),)), shape, None, IMAGES)


def test_on_a_cpu_the_budget_alone_counts_the_result(monkeypatch):
    """For it is of the same memory."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**12)
    monkeypatch.setattr(memory, "host_bytes", lambda: 0)
    assert require_budget(FitSettings(resolution=100), BOX, IMAGES).parts["result"] > 0
    assert room_for_bricks(FitSettings(), (33, 33, 33), None, IMAGES)[0] == 5**3


def test_memory_that_others_give_back_as_it_is_asked_for_does_not_end_a_refusal(monkeypatch):
    free = iter([10**6])  # and plenty from then on
    monkeypatch.setattr(memory, "available_bytes", lambda: next(free, 10**12))
    with pytest.raises(RaymarchError, match="takes about .* are free"):
        require_budget(FitSettings(resolution=20), BOX, IMAGES)


def test_a_fitter_refuses_what_is_over_the_budget_before_it_allocates_a_grid():
    with pytest.raises(RaymarchError, match="is the budget"):
        Fitter(drive.ball_views(), preset("quick", resolution=2000, memory=0.3), box=BOX)


def test_counts_the_grid_that_the_fit_makes():
    settings = preset("quick", resolution=16, sh_degree=0, slots=1)
    with Fitter(drive.ball_views(), settings, box=BOX) as fitter:
        told = memory_of_fit(settings, BOX, fitter.views.images.shape)
        assert (told.shape, told.slots) == (fitter.grid.finest, fitter.grid.slots)


def test_forecasts_the_steps_that_seconds_leave():
    quick = {"resolution": 16, "sh_degree": 0, "slots": 1, "rays": 512, "box": BOX}
    by_steps = forecast(drive.ball_views(), "quick", steps=100, **quick)
    by_time = forecast(drive.ball_views(), "quick", seconds=0.01, **quick)
    assert by_steps.steps == 100
    assert by_steps.seconds > 0
    assert by_time.steps < 100
    assert by_time.seconds <= 0.01


def test_a_forecast_by_seconds_is_of_what_its_cost_says(monkeypatch):
    cost = Cost(Schedule(None, 600.0, LEVELS, (0.7, 3.0, 2)), KINDS, 9.0, 0.01)
    monkeypatch.setattr(Cost, "of", staticmethod(lambda plan: cost))
    quick = {"resolution": 16, "sh_degree": 0, "slots": 1, "rays": 512, "box": BOX}
    told = forecast(drive.ball_views(), "quick", seconds=600.0, **quick)
    assert 0 < int(cost.steps(599.0)) <= told.steps <= cost.steps(600.0)
    assert told.preparation > 9.0
    assert told.seconds == 600.0


@pytest.mark.parametrize("seen", [0.5, 3.0, 4.0, 50.0])
@pytest.mark.parametrize("start", [0.0, 0.55, 1.0])
def test_the_parts_of_a_schedule_are_what_its_steps_are(start, seen):
    schedule = Schedule(1000, None, ((0.0, 0.4), (0.25, 0.6), (0.6, 1.0)), (start, 3.0, 2))
    steps = [(schedule.level(n / 1000), schedule.side(n / 1000, seen * n / 1000)) for n in range(1000)]
    for share, level, side in schedule.parts(seen):
        assert share == pytest.approx(steps.count((level, side)) / 1000, abs=0.002)
    assert len(schedule.parts(seen)) == len(set(steps))


@pytest.mark.parametrize(("steps", "sooner"), [(900, 1.0), (2000, 4 / 3), (6000, 2.0)])
def test_levels_of_a_long_fit_begin_sooner_and_are_forecast_so(steps, sooner):
    """From 1,500 steps on, up to twice as soon; a schedule that says nothing of it keeps its shares."""
    schedule = Schedule(steps, None, ((0.0, 0.4), (0.3, 0.6), (0.6, 1.0)), (0.9, 0.0, 2), early=2.0)
    levels = [schedule.level(n / steps, n) for n in range(steps)]
    assert [levels.index(level) / steps for level in (1, 2)] == pytest.approx(
        [0.3 / sooner, 0.6 / sooner], abs=2 / steps
    )
    assert levels == sorted(levels)
    for share, level, side in schedule.parts(9.0, steps):
        alike = sum(each == level and (n / steps >= 0.9) == (side == 2) for n, each in enumerate(levels))
        assert share == pytest.approx(alike / steps, abs=2 / steps)
    plain = replace(schedule, early=1.0)
    assert [plain.level(n / steps, n) for n in range(steps)] == [plain.level(n / steps) for n in range(steps)]


@pytest.mark.parametrize(("steps", "long"), [(900, False), (1400, False), (1700, True), (20_000, True)])
def test_a_fit_by_seconds_is_not_taken_for_longer_for_its_quick_first_steps(steps, long):
    """Whose steps come as the power 0.7 of the time, as those of lego do: as long as it is at its end, all the way."""
    schedule = Schedule(None, 60.0, ((0.0, 0.4), (0.05, 0.6), (0.4, 1.0)), early=2.0)
    sooner = min(max(steps / 1500, 1.0), 2.0)
    for progress in np.linspace(0.02, 1.0, 50):
        done = round(steps * progress**0.7)
        assert schedule.is_long(progress, done) == long
        assert schedule.sooner(progress, done) == pytest.approx(sooner, rel=0.03)
        assert schedule.even(progress, done) == pytest.approx(steps * progress, abs=1)
    by_steps = replace(schedule, steps=steps, seconds=None)
    assert by_steps.even(0.1, 500) == 500


def test_of_a_fit_with_both_limits_the_one_that_it_comes_to_tells_how_long_it_is():
    """2,500 steps or a minute, which ends it after 1,050 of them: no long fit."""
    schedule = Schedule(2500, 60.0, ((0.0, 0.4), (0.05, 0.6), (0.4, 1.0)), early=2.0)
    by_time, by_steps = replace(schedule, steps=None), replace(schedule, seconds=None)
    for progress in np.linspace(0.1, 0.98, 23):  # before that its quick first steps are ahead of the time
        done = round(1050 * progress**0.7)
        assert schedule.progress(
            done, 60.0 * (FIRST_TIMED_PROGRESS + (1 - FIRST_TIMED_PROGRESS) * progress)
        ) == pytest.approx(progress)
        assert schedule.even(progress, done) == by_time.even(progress, done)
        assert not schedule.is_long(progress, done)
        done = round(2500 * progress)  # the time is enough for all of them
        assert schedule.even(done / 2500, done) == by_steps.even(done / 2500, done) == done


@pytest.mark.parametrize("start", [0.0, 0.7, 1.0])
def test_all_kinds_of_steps_are_measured(start):
    """Those of several rays a pixel too, which the fit itself comes to only when it has drawn all pixels often, and
    those of one, which it begins with though it is to draw several from its first step on."""
    settings = preset("quick", resolution=16, sh_degree=0, slots=1, rays=512, supersample=2, supersample_from=start)
    with ImageStore(drive.ball_views()) as store:
        plan = plan_fit(drive.ball_views(), settings, BOX, store)
    cost = Cost.of(plan)  # by a fit that takes the store's tree
    kinds = cost.kinds.values()
    last = len(settings.levels) - 1
    assert set(cost.kinds) == {(level, 1) for level in range(last + 1)} | ({(last, 2)} if start < 1 else set())
    assert sum(len(kind.steps) + len(kind.looks) + (kind.begin > 0) for kind in kinds) == PROBE_STEPS - 1
    assert any(kind.looks for kind in kinds)
    assert cost.ready > 0 < cost.seen


LEVELS = (0.0, 0.5), (0.4, 1.0)
KINDS = {(0, 1): Kind([0.1, 0.3], [], 4.0), (1, 1): Kind([0.4], [5.4, 5.4], 6.0), (1, 2): Kind([1.6], [], 7.0)}


def step_by_step(cost, progress):
    """Seconds and steps of a fit as its own loop would go, by what each step of it takes."""
    seconds, steps, age, known = 0.0, 0, 0, set()
    while (done := progress(steps, seconds)) < 1:
        level = cost.schedule.level(done)
        key = level, cost.schedule.side(done, steps * cost.seen)
        age = age + 1 if any(level == each for each, _ in known) else 0
        kind, each = cost.kinds[key], SETTLED_COST * np.mean(cost.kinds[key].steps)
        look = np.mean(kind.looks) - each if kind.looks else OCCUPANCY_COST * kind.begin
        seconds += each + kind.begin * (key not in known) + look * cost.schedule.looks(age)
        known.add(key)
        steps += 1
    return seconds, steps


@pytest.mark.parametrize("seen", [0.001, 0.004, 0.02])
def test_a_cost_is_what_the_fit_s_steps_sum_up_to(seen):
    for steps in (500, 3000):
        cost = Cost(Schedule(steps, None, LEVELS, (0.7, 3.0, 2)), KINDS, 9.0, seen)
        seconds, _ = step_by_step(cost, lambda done, _, steps=steps: done / steps)
        assert cost.seconds(steps) == pytest.approx(seconds, rel=0.01)
    for limit in (300.0, 1500.0):
        cost = Cost(Schedule(None, limit, LEVELS, (0.7, 3.0, 2)), KINDS, 9.0, seen)
        _, steps = step_by_step(cost, lambda _, taken, limit=limit: taken / limit)
        assert cost.steps(limit) == pytest.approx(steps, rel=0.05)


@pytest.mark.parametrize("limit", [15.0, 20.0, 30.0, 60.0])
def test_a_cost_is_right_where_a_look_takes_as_long_as_all_steps_between_two(limit):
    kinds = {(0, 1): Kind([0.005], [], 0.0), (1, 1): Kind([0.01], [], 3.0)}
    cost = Cost(Schedule(None, limit, LEVELS), kinds, 5.0, 0.01)
    _, steps = step_by_step(cost, lambda _, taken: taken / limit)
    assert cost.steps(limit) == pytest.approx(steps, rel=0.05)


def test_a_kind_of_steps_that_was_not_measured_takes_what_as_many_rays_a_pixel_take():
    kinds = {(0, 1): Kind([0.1]), (1, 1): Kind([0.3]), (1, 2): Kind([4.0])}
    cost = Cost(Schedule(1000, None, LEVELS, (0.0, 3.0, 2)), kinds, 0.0, 0.01)
    one_ray, several = 300 * 0.1, 700 * 4.0  # each pixel was drawn three times after 300 steps, of a level of 400
    assert cost.seconds(1000) == pytest.approx(SETTLED_COST * (one_ray + several), rel=0.01)


def test_a_fit_of_more_levels_than_the_small_one_has_steps_has_a_cost():
    levels = tuple((n / 50, 1.0) for n in range(50))
    cost = Cost(Schedule(None, 100.0, levels), {(n, 1): Kind(begin=0.5) for n in range(40)}, 5.0, 0.01)
    assert 0 < cost.steps(100.0) < np.inf
    assert 0 < cost.seconds(1000.0) < np.inf


def test_the_cost_of_a_fit_of_days_is_told_at_once():
    """By the count of its looks, which is that of the steps that look."""
    schedule = Schedule(None, 1e9, LEVELS)
    for age in (0, 1, 100, 101, 799, 801, 3200, 3201, 50_001):
        assert schedule.looks_by(age) == sum(map(schedule.looks, range(age)))
    assert 1e8 < Cost(schedule, KINDS, 9.0, 0.01).steps(1e9) < 1e10


def test_a_fit_makes_a_step_however_short_its_time():
    """The first, which compiles: time counts from its end."""
    cost = Cost(Schedule(None, 5.0, LEVELS), {(0, 1): Kind([0.1]), (1, 1): Kind([0.1])}, 9.0, 0.01)
    assert 1 <= cost.steps(1e-6) < 1.01 < cost.steps(5.0)


def test_a_level_has_as_many_looks_with_several_rays_a_pixel_in_it_as_without():
    schedule = Schedule(3000, None, ((0.0, 1.0),), (0.5, 3.0, 2))
    cost = Cost(schedule, {(0, side): Kind([0.0], [1.0]) for side in (1, 2)}, 0.0, 0.01)
    assert cost.seconds(3000) == schedule.looks_by(3000)


def test_levels_too_short_to_be_measured_do_not_take_the_time_of_others():
    quick = {"resolution": 16, "sh_degree": 0, "slots": 1, "rays": 512, "box": BOX, "steps": 100}
    for levels in (((0.0, 0.5), (0.001, 1.0)), ((0.0, 0.5), (0.5, 0.7), (0.501, 1.0)), ((0.0, 0.5), (1.0, 1.0))):
        told = forecast(drive.ball_views(), "quick", levels=levels, **quick)
        assert told.steps == 100
        assert 0 < told.seconds < np.inf


@pytest.mark.parametrize(("views", "settings"), [([1, 2], "quick"), (None, preset()), (drive.ball_views, 3)])
def test_what_is_no_views_or_no_settings_is_said(views, settings):
    with pytest.raises(RaymarchError, match="want Views, as|want FitSettings, as"):
        forecast(views() if callable(views) else views, settings)


def test_a_rendering_takes_time_in_proportion_to_its_pixels():
    volume = Volume.from_function(lambda p: 1 - p[..., 0] ** 2, shape=(8, 8, 8))
    told = forecast_rendering(volume, 400, 400)
    assert told.seconds > 0
    assert told.steps is None
    assert told.memory.slots == 0
    with pytest.raises(RaymarchError, match="width is 0, want a whole number from 1"):
        forecast_rendering(volume, 0, 400)


@pytest.mark.parametrize(("single", "width"), [(True, 4), (False, 8)])
def test_a_rendering_is_counted_in_the_numbers_of_its_session(single, width, monkeypatch):
    """Beside the volume itself, which has its own."""
    monkeypatch.setattr("raymarch.runtime.single_precision", lambda: single)
    parts = memory.memory_of_rendering((8, 8, 8), 1, 100, held=5000).parts
    grid = 8**3 * 13 * width
    assert (parts["grid"], parts["volume"], parts["rays"]) == (grid, 5000 + grid, 100 * (31 * width + 24))
    assert memory.memory_of_rendering((8, 8, 8), 1, 100).parts["volume"] == 2 * grid


@pytest.fixture(scope="module")
def ball_set(tmp_path_factory):
    """The ball as an image set."""
    folder, views, frames = tmp_path_factory.mktemp("ball"), drive.ball_views(), []
    (folder / "train").mkdir()
    for i, camera in enumerate(views.cameras):
        Image.fromarray(views.images[i]).save(folder / "train" / f"{i}.png")
        frames.append({"file_path": f"train/{i}", "transform_matrix": camera.world_from_camera.tolist()})
    document = {"fl_x": views.cameras[0].focal[0], "frames": frames}
    (folder / "transforms_train.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize(
    ("more", "few"),
    [([], False), (["--seconds", "0.001"], True), (["--refine"], False)],
    ids=["as it is", "no time", "with refinement"],
)
def test_a_dry_run_says_what_it_would_take_and_writes_nothing(more, few, ball_set, tmp_path, monkeypatch, capsys):
    """And that steps would be few, as the fit says at its end."""
    words = ["fit", str(ball_set), "--preset", "quick", "--dry-run", "--json"]
    words += ["--resolution", "16", "--sh-degree", "0", "--set", "slots=1", "--set", "rays=512"]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(words + more)
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    told = json.loads(said.out)
    assert (told.pop("refine", None) is not None) == ("--refine" in more)
    keys = {"shape", "sh_degree", "slots", "bytes", "parts", "free_bytes", "seconds", "steps", "boxes"}
    assert set(told) == {*keys, "preparation_seconds"}
    assert told["preparation_seconds"] > 0
    assert told["bytes"] == sum(told["parts"].values())
    assert told["steps"] == (1 if few else preset("quick").steps)
    assert ("the fit would be done after only 1 step; give more seconds" in said.err) == few
    assert list(tmp_path.iterdir()) == []
