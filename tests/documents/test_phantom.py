"""Laws of the shipped phantom: the script makes it again, its X-rays are right, and marches of it come to them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import raymarch as rm

SCENES = Path(__file__).resolve().parents[2] / "scenes"
sys.path.insert(0, str(SCENES))

import make_phantom as phantom  # noqa: E402

FOLDER = SCENES / "phantom"
MADE = phantom.solids()
SOFT = [solid for solid in MADE if solid.kind == "soft"]
EXACT = rm.March(mode="x-ray-exact")


def pictures():
    with np.load(FOLDER / "pictures.npz") as archive:
        return dict(archive)


def camera(name, size=phantom.SIZE):
    """The scene's camera, by the package."""
    own = json.loads((FOLDER / "cameras.json").read_text())[name]
    how = {"width": size, "height": size}
    if "size" in own:
        made = rm.Camera.orthographic(own["position"], own["target"], size=own["size"], **how)
    else:
        made = rm.Camera.look_at(own["position"], own["target"], fov=own["fov"], **how)
    np.testing.assert_allclose(made.world_from_camera, own["world_from_camera"], atol=1e-12)
    return made


@pytest.fixture(scope="module")
def volume():
    return rm.load(FOLDER / "phantom.npz")


def test_it_is_small_and_empty_at_its_border(volume):
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 400_000
    assert isinstance(volume, rm.ScalarVolume) and (volume.unit, volume.length_unit) == ("1/mm", "mm")
    inner = volume.values.astype(int).copy()
    inner[1:-1, 1:-1, 1:-1] = 0
    assert not inner.any() and volume.values.max() > 750
    linear = volume.world_from_index[:3, :3]
    assert np.abs(linear.T @ linear - np.diag(np.diag(linear.T @ linear))).max() > 0.1  # sheared
    assert np.ptp(volume.spacing) > 0.5


def test_the_script_makes_it_again(volume):
    affine = phantom.placed(phantom.SHAPE)
    np.testing.assert_array_equal(volume.world_from_index, affine)
    affine[:3, 3] += 30 * affine[:3, 0]
    some = phantom.sampled(MADE, (2, *phantom.SHAPE[1:]), affine, phantom.SUBSAMPLES)
    np.testing.assert_array_equal(volume.values[30:32], np.rint(some / phantom.PER_STORED))
    for name, own in phantom.CAMERAS.items():
        np.testing.assert_allclose(pictures()[f"xray_{name}"], phantom.xray(MADE, own, phantom.SIZE), rtol=1e-6)
    assert json.loads((FOLDER / "table.json").read_text()) == phantom.TABLE


def test_integrals_in_closed_form_are_sums_of_values():
    rng = np.random.default_rng(0)
    origin = 200 * rng.normal(size=(40, 3)) / 2
    origin *= 150 / np.linalg.norm(origin, axis=1, keepdims=True)
    direction = rng.uniform(-25, 25, (40, 3)) - origin
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    t = (np.arange(30000) + 0.5) / 100
    for solid in MADE:
        summed = [solid.value(o + t[:, None] * d).sum() / 100 for o, d in zip(origin, direction, strict=True)]
        tolerance = 1e-9 if solid.kind == "soft" else 0.02 * abs(solid.adds)  # [1 / mm] times two steps at its ends
        np.testing.assert_allclose(solid.integral(origin, direction), summed, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", phantom.CAMERAS)
def test_an_x_ray_of_the_grid_is_the_closed_form_within_its_voxels(name, volume):
    wanted = pictures()[f"xray_{name}"]
    gap = rm.render(volume, camera(name), march=EXACT)[..., 0] - wanted
    assert np.sqrt(np.mean(gap**2)) < 0.04 and abs(gap.mean()) < 2e-3 and wanted.max() > 1.9


@pytest.mark.parametrize(("some", "order"), [(MADE, 1.0), (SOFT, 1.9)], ids=["hard", "soft"])
def test_finer_grids_come_to_the_closed_form_at_the_documented_order(some, order):
    seen, errors = camera("pinhole", 48), []
    for finer in (0.9, 1.8):
        shape = tuple(int(n * finer) for n in phantom.SHAPE)
        affine = phantom.placed(shape, finer)
        values = phantom.sampled(some, shape, affine, 1).astype(np.float32)
        image = rm.render(rm.ScalarVolume(values, affine), seen, march=EXACT)[..., 0]
        errors.append(np.sqrt(np.mean((image - phantom.xray(some, phantom.CAMERAS["pinhole"], 48)) ** 2)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


def test_the_picture_through_a_table_is_the_sum_over_samples(volume):
    table = rm.TransferFunction.of_record(phantom.TABLE)
    march = rm.March(mode="transfer", transfer=table, step=0.1, min_transmittance=0, min_weight=0)
    with rm.Renderer(volume, march) as renderer:
        seen = renderer.render(camera("pinhole", phantom.TABLE_SIZE), "black", depth=False)
    wanted = pictures()["table"]
    assert np.abs(seen.image - wanted[..., :3]).max() < 1e-3 and np.abs(seen.opacity - wanted[..., 3]).max() < 1e-3
    assert wanted[..., 3].max() > 0.9 and wanted[..., :3].std() > 0.1
