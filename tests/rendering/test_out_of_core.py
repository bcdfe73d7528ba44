"""Law of parts: the image of a volume that is read part by part is that of the whole in memory, whatever the parts.

The twin is `rm.Renderer` of the same file; a part has a few thousand samples here, so that there are many.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.engine import record
from raymarch.kernels.integrator.colour import IMAGE
from raymarch.kernels.integrator.loops import by_steps
from raymarch.kernels.modes.registry import MODES
from raymarch.rendering import out_of_core, part_march
from raymarch.volumes import part_plan
from raymarch.volumes.part_plan import plan_of

BOUND = 1e-6
TABLE = rm.TransferFunction.of_colormap("viridis", 1.0, 8.0, (0.0, 0.6), unit_length=0.2)
SOLID = rm.TransferFunction([0.0, 1.0, 8.0], [[1.0, 0.5, 0.2]] * 3, [0.0, 0.0, 0.999], 0.05)
BY_TABLE = {"mode": "transfer", "transfer": TABLE}
MARCHES = {
    "table": rm.March(**BY_TABLE),
    "lit": rm.March(**BY_TABLE, shading=rm.Shading()),
    "pre-integrated": rm.March(**BY_TABLE, preintegrated=True),
    "clipped, with jitter": rm.March(
        **BY_TABLE, jitter=1.0, step_jitter=0.3, clip=rm.Clip(((-0.5, -0.6, -0.4), (0.5, 0.4, 0.9)))
    ),
    "emission-absorption": rm.March(),
    "maximum": rm.March(mode="maximum"),
    "average": rm.March(mode="average"),
    "isosurface": rm.March(mode="isosurface", iso=4.0),
}
OTHERS = {
    "lit by slopes of cells": rm.March(**BY_TABLE, shading=rm.Shading(smooth=False)),
    "additive": rm.March(mode="additive"),
    "x-ray": rm.March(mode="x-ray"),
    "minimum": rm.March(mode="minimum"),
    "x-ray-exact": rm.March(mode="x-ray-exact"),
}
EYE = rm.Camera.look_at((1.5, -3, 0.7), width=20, height=16)
CAMERAS = {
    "before it": EYE,
    "on a cut": rm.Camera.look_at((0, -4, 0), width=21, height=15),
    "inside": rm.Camera.look_at((-0.2, -0.1, -0.3), (0.3, 0.2, 0), width=16, height=16),
    "parallel": rm.Camera.orthographic((1.5, -3, 0.7), size=3.0, width=16, height=16),
    "all around": rm.Camera.panorama((0.1, 0.2, 0.1), width=24),
}


def scan(shape=(26, 22, 31)) -> rm.ScalarVolume:
    x, y, z = (np.linspace(-1, 1, n) for n in shape)
    r2 = x[:, None, None] ** 2 + 1.5 * y[:, None] ** 2 + z**2
    values = np.maximum(9 * np.exp(-3 * r2) + 0.4 * np.sin(9 * x)[:, None, None] - 0.6, 0).astype(np.float32)
    affine = np.diag([*(2 / (n - 1) for n in shape), 1.0])
    affine[:3, 3] = -1
    return rm.ScalarVolume(values, affine)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "scan.h5"
    rm.save(scan(), path)
    return path


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of up to 13 samples a side, and room for all rays of the images here."""
    monkeypatch.setattr(part_plan, "MIN_SIDE", 4)
    monkeypatch.setattr(out_of_core, "_rooms", lambda volume, memory, features: (13**3, 2000))


def apart(seen: rm.Rendering, whole: rm.Rendering) -> float:
    """Largest difference of two renderings, infinite depths being alike."""
    pairs = [(seen.image, whole.image), (seen.opacity, whole.opacity)]
    pairs += [(np.nan_to_num(one.depth, posinf=-1.0) for one in (seen, whole))]
    if whole.normals is not None:
        pairs.append((seen.normals, whole.normals))
    return max(float(np.abs(a - b).max()) for a, b in pairs)


def both(file, march, cameras, **how):
    """Renderings of a file in parts and of it in memory, by each camera."""
    with rm.Renderer(rm.load(file), march) as whole, rm.OutOfCoreRenderer(file, march) as parts:
        for camera in cameras:
            yield parts.render(camera, "black", **how), whole.render(camera, "black", **how)


@pytest.mark.parametrize("march", MARCHES.values(), ids=MARCHES)
def test_image_depth_and_normals_are_those_of_the_whole(march, file, small_parts):
    lit = march.shading is not None or march.iso is not None
    for seen, whole in both(file, march, CAMERAS.values(), depth=True, normals=lit):
        assert whole.opacity.max() > 0.5
        assert apart(seen, whole) < BOUND


@pytest.mark.parametrize("change", ["written anew", "gone"])
def test_a_file_that_is_another_meanwhile_is_told(change, tmp_path, small_parts):
    path = tmp_path / "scan.h5"
    rm.save(scan(), path)
    with rm.OutOfCoreRenderer(path, MARCHES["table"]) as renderer:
        renderer.render(EYE)
        path.unlink()
        if change == "written anew":
            rm.save(scan((24, 22, 31)), path)
        with pytest.raises(rm.RaymarchError, match="scan.h5: was changed while it was read; leave it as it is"):
            renderer.render(EYE)


@pytest.mark.whole
@pytest.mark.parametrize("march", OTHERS.values(), ids=OTHERS)
def test_so_they_are_in_other_modes(march, file, small_parts):
    for seen, whole in both(file, march, [EYE, CAMERAS["inside"]], depth=True, normals=True):
        assert apart(seen, whole) < BOUND


def test_so_is_the_default_look_and_a_pixel_of_several_rays(file, small_parts):
    for march in (None, rm.March(**BY_TABLE, supersample=2)):
        for seen, whole in both(file, march, [EYE], depth=True):
            assert apart(seen, whole) < BOUND


FITTED = {
    "dense, degree 0": ("softplus", 0, False, rm.March()),
    "bricks, degree 1": ("relu", 1, True, rm.March()),
    "maximum": ("exponential", 0, True, rm.March(mode="maximum")),
    "through a table": ("softplus", 1, False, rm.March(**BY_TABLE)),
    "surface": ("softplus", 1, True, rm.March(mode="isosurface", iso=2.0)),
    "additive, of any sign": ("identity", 0, False, rm.March(mode="additive")),
}


def fitted(activation, degree, sparse) -> rm.Volume:
    values, rng = scan().values, np.random.default_rng(3)
    density = values if activation == "identity" else values - 7
    features = rng.normal(size=(*values.shape, 3 * (degree + 1) ** 2)).astype(np.float32)
    place = scan().world_from_index
    volume = rm.Volume(density, features, place, rm.Activation(activation, 0.0, 0.2, "sigmoid"), (0.2, 0.4, 0.1))
    return volume.sparse() if sparse else volume


@pytest.mark.parametrize(("activation", "degree", "sparse", "march"), FITTED.values(), ids=FITTED)
def test_fitted_volumes_have_their_colours(activation, degree, sparse, march, small_parts, tmp_path):
    rm.save(fitted(activation, degree, sparse), tmp_path / "fit.h5")
    for seen, whole in both(tmp_path / "fit.h5", march, [EYE, CAMERAS["inside"]], depth=True):
        assert whole.opacity.max() > 0.3
        assert apart(seen, whole) < BOUND


def loads_of(renderer) -> list[int]:
    """Numbers of the parts that a renderer reads from now on, in their order."""
    numbers, load = [], renderer._load
    renderer._load = lambda here: (numbers.append(here), load(here))[1]
    return numbers


@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
def test_each_part_is_read_once_and_none_that_no_ray_comes_to(camera, file, small_parts):
    with rm.OutOfCoreRenderer(file, MARCHES["table"]) as renderer:
        numbers, ahead = loads_of(renderer), renderer.forecast(camera)
        assert not numbers
        renderer.render(camera)
    assert len(numbers) == len(set(numbers)) <= ahead.parts_met <= ahead.parts
    assert ahead.parts > 8 and ahead.bytes_read > 0 and ahead.passes == 1
    assert ahead.volume_bytes == 4 * np.prod(scan().shape)


def test_what_is_hidden_or_beside_the_image_is_not_read(file, small_parts):
    near = rm.Camera.look_at((0, 0.2, -4), (0, 0.2, 0), up=(0, 1, 0), width=16, height=16, fov=0.05)
    with rm.OutOfCoreRenderer(file, rm.March(mode="transfer", transfer=SOLID)) as renderer:
        numbers, ahead = loads_of(renderer), renderer.forecast(near)
        renderer.render(near)
    assert ahead.parts_met < ahead.parts / 2, "beside the image"
    assert len(numbers) < ahead.parts_met, "behind what is opaque"


def test_no_part_goes_to_the_device_in_which_the_table_shows_nothing(file, small_parts, monkeypatch):
    sent, put = [], part_march.copies.density_in
    monkeypatch.setattr(part_march.copies, "density_in", lambda *told: (sent.append(1), put(*told)))
    high = rm.TransferFunction([6.0, 7.0], [[1.0, 1.0, 1.0]] * 2, [0.0, 0.5], 0.1)
    with rm.OutOfCoreRenderer(file, rm.March(mode="transfer", transfer=high)) as renderer:
        numbers = loads_of(renderer)
        renderer.render(EYE)
        assert 0 < len(sent) < len(numbers)
        sent.clear(), numbers.clear()
        renderer.render(EYE)
        assert len(sent) == len(numbers), "it is known then"


def test_image_does_not_depend_on_the_order_of_parts(file, small_parts, monkeypatch):
    with rm.OutOfCoreRenderer(file, MARCHES["table"]) as renderer:
        once = renderer.render(EYE).image
        order = part_plan.PartPlan.order
        monkeypatch.setattr(part_plan.PartPlan, "order", lambda *told: -order(*told))
        numbers = loads_of(renderer)
        again = renderer.render(EYE).image
    assert (once == again).all() and len(numbers) > len(set(numbers))


def test_image_does_not_depend_on_how_many_rays_there_is_room_for(file, small_parts, monkeypatch):
    with rm.OutOfCoreRenderer(file, MARCHES["table"]) as renderer:
        once = renderer.render(EYE).image
    monkeypatch.setattr(out_of_core, "_rooms", lambda volume, memory, features: (13**3, 150))
    with rm.OutOfCoreRenderer(file, MARCHES["table"]) as renderer:
        assert renderer.forecast(EYE).passes == 3
        assert (once == renderer.render(EYE).image).all()


def test_single_precision_is_as_near(single, file):
    from single import out_of_core_apart

    assert single(out_of_core_apart, str(file)) < BOUND


# Plans.


SHAPES = [(26, 22, 31), (100, 9, 2), (65, 65, 65), (17, 300, 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("beside", [0, 1])
def test_each_cell_is_of_one_part_whose_samples_are_there(shape, beside, monkeypatch):
    monkeypatch.setattr(part_plan, "MIN_SIDE", 2)
    rng = np.random.default_rng(3)
    for room in (6**3, 4000, 10**9):
        eye = rng.uniform(-1, 2, 3) * shape
        plan, count = plan_of(shape, room, beside, eye), np.zeros([n - 1 for n in shape], int)
        for number in range(plan.parts):
            (low, high), (first, last) = plan.cells(number), plan.samples(number)
            count[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] += 1
            size = np.subtract(last, first)
            assert (size <= plan.largest).all() and np.prod(size) <= max(room, 8) and (size >= 2).all()
            assert (np.array(first) <= np.maximum(np.array(low) - beside, 0)).all()
            assert (np.array(last) >= np.minimum(np.array(high) + 1 + beside, shape)).all()
        assert (count == 1).all()


def test_no_cut_goes_through_the_eye():
    plan = plan_of((65, 65, 65), 40**3, 0)
    cut = plan.cells(0)[1][0]
    moved = plan_of((65, 65, 65), 40**3, 0, np.array([cut, cut + 1e-9, cut + 0.5]))
    assert moved.offset == (1, 1, 0) and moved.side == plan.side


def test_rays_come_to_parts_of_a_lower_rank_first():
    plan = plan_of((65, 65, 65), 20**3, 0)
    rng = np.random.default_rng(4)
    for _ in range(50):
        eye, ahead = rng.uniform(-40, 100, 3), rng.normal(size=3)
        for origin, rank in ((eye, plan.order(eye, ahead)), (rng.uniform(0, 64, 3), plan.order(None, ahead))):
            points = origin + np.linspace(0, 200, 3000)[:, None] * ahead / np.linalg.norm(ahead)
            cells = np.floor(points[((points >= 0) & (points < 64)).all(1)]).astype(int)
            numbers = np.ravel_multi_index((cells // plan.side).T, plan.counts)
            assert (np.diff(rank[numbers]) >= 0).all()


# What is refused.

REFUSED_MARCHES = {
    "x-ray-joseph": (rm.March(mode="x-ray-joseph"), "does not go through parts of a volume; take mode x-ray-exact"),
    "an image that does not wait": (
        rm.March(mode=replace(MODES["x-ray"], name="mine", image=record.replace(IMAGE, pause=None))),
        "mode mine does not go through parts",
    ),
    "samples of its own": (rm.March(mode=replace(MODES["x-ray"], traverse=by_steps)), "take mode x-ray-exact"),
    "occlusion": (rm.March(**BY_TABLE, shading=rm.Shading(occlusion=0.5)), "shading has occlusion"),
    "matcap": (
        rm.March(mode="isosurface", iso=4.0, shading=rm.Shading(matcap=np.zeros((16, 16, 3)))),
        "shading has a matcap",
    ),
}


@pytest.mark.parametrize(("march", "said"), REFUSED_MARCHES.values(), ids=REFUSED_MARCHES)
def test_marches_that_do_not_go_through_parts_are_refused(march, said, file):
    with pytest.raises(rm.RaymarchError, match=said):
        rm.OutOfCoreRenderer(file, march)


def test_too_little_memory_is_refused_with_how_much_is_wanted(file):
    for memory, said in ((0.2, "give 0.35 or more"), (0.2501, "give it more memory")):
        with pytest.raises(rm.RaymarchError, match=said):
            rm.OutOfCoreRenderer(file, MARCHES["table"], memory=memory)


def test_values_that_are_no_numbers_or_no_extinctions_are_refused_as_they_are_read(tmp_path, small_parts):
    for bad, march, said in ((np.nan, MARCHES["table"], "NaN or infinite"), (-1.0, rm.March(), "want 0 or more")):
        values = scan().values.copy()
        values[20, 11, 20] = bad
        np.save(tmp_path / "bad.npy", values)
        with (
            rm.OutOfCoreRenderer(tmp_path / "bad.npy", march) as renderer,
            pytest.raises(rm.RaymarchError, match=said),
        ):
            renderer.render(rm.Camera.look_at((11, -60, 15), (11, 11, 15), width=8, height=8))
