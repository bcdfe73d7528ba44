"""Laws of the shipped scenes: the sets are whole, the scripts make them again, and the cloud's integral is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from whole import whole

SCENES = Path(__file__).resolve().parents[2] / "scenes"
sys.path.insert(0, str(SCENES))

import make_cloud  # noqa: E402
import make_tower  # noqa: E402
from common import camera_directions, look_at, to_bytes  # noqa: E402
from primitives import Box, Capsule, Frustum, Sphere  # noqa: E402

SHIPPED = {
    "tower": {"size": 256, "train": 64, "test": 20},
    "cloud": {"size": 160, "train": 48, "test": 12},
}


def frames(folder: Path, split: str) -> tuple[float, list[Path], np.ndarray]:
    """Horizontal angle, image paths and world_from_camera (N, 4, 4) of one split."""
    text = json.loads((folder / f"transforms_{split}.json").read_text())
    paths = [folder / f"{frame['file_path']}.png" for frame in text["frames"]]
    return text["camera_angle_x"], paths, np.array([frame["transform_matrix"] for frame in text["frames"]])


def load(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.mode == "RGBA"
        return np.asarray(image)


def run_script(name: str, *options: object) -> None:
    subprocess.run([sys.executable, str(SCENES / name), *map(str, options)], check=True, capture_output=True)


def check_set(folder: Path, size: int, counts: dict[str, int]) -> None:
    for split, count in counts.items():
        angle, paths, poses = frames(folder, split)
        assert 0.1 < angle < 2.0
        assert len(paths) == count == len(list((folder / split).iterdir()))
        assert all(load(path).shape == (size, size, 4) for path in paths)
        rotations = poses[:, :3, :3]
        np.testing.assert_allclose(
            rotations @ rotations.transpose(0, 2, 1), np.broadcast_to(np.eye(3), rotations.shape), atol=1e-12
        )
        np.testing.assert_allclose(np.linalg.det(rotations), 1.0)
        assert (poses[:, 3] == [0, 0, 0, 1]).all()


@pytest.mark.parametrize("name", [whole("tower"), "cloud"])
def test_a_tiny_run_makes_a_valid_set_and_the_same_one_twice(name: str, tmp_path: Path) -> None:
    options = ["--resolution", 24, "--train", 2, "--test", 1] + (["--samples", 2] if name == "tower" else [])
    run_script(f"make_{name}.py", "--out", tmp_path, *options)
    check_set(tmp_path, 24, {"train": 2, "test": 1})
    alpha = load(tmp_path / "test" / "r_000.png")[..., 3]
    assert alpha.max() > 100
    assert alpha[0].max() < 10
    pose = frames(tmp_path, "test")[2][0]
    again = (
        make_tower.render_view(pose, "test", 0, 24, 2)
        if name == "tower"
        else make_cloud.render(make_cloud.default_cloud(), pose, 24)[0]
    )
    assert (to_bytes(again) == load(tmp_path / "test" / "r_000.png")).all()


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_set_is_whole(name: str) -> None:
    check_set(SCENES / name, SHIPPED[name]["size"], {split: SHIPPED[name][split] for split in ("train", "test")})


@pytest.mark.parametrize("name", SHIPPED)
def test_no_test_camera_meets_a_train_camera(name: str) -> None:
    train, test = (frames(SCENES / name, split)[2][:, :3, 3] for split in ("train", "test"))
    assert np.linalg.norm(train[:, None] - test, axis=-1).min() > 0.1


def test_the_tower_covers_a_quarter_of_the_pixels_and_never_the_border() -> None:
    alpha = np.stack([load(path)[..., 3] for split in ("train", "test") for path in frames(SCENES / "tower", split)[1]])
    assert alpha.mean() / 255 >= 0.25
    assert max(alpha[:, [0, -1]].max(), alpha[:, :, [0, -1]].max()) == 0


def test_the_cloud_is_seen_in_a_quarter_of_the_pixels_and_is_nowhere_opaque() -> None:
    alpha = np.stack([load(path)[..., 3] for path in frames(SCENES / "cloud", "train")[1]]) / 255.0
    assert (alpha > 0.02).mean() >= 0.25
    assert 2.3 < -np.log(1.0 - alpha.max()) < 2.7


def test_all_shipped_images_take_less_than_six_megabytes() -> None:
    assert sum(path.stat().st_size for name in SHIPPED for path in (SCENES / name).rglob("*.png")) < 6_000_000


@pytest.mark.whole
def test_a_shipped_tower_view_is_rendered_again() -> None:
    _, paths, poses = frames(SCENES / "tower", "train")
    again = to_bytes(make_tower.render_view(poses[2], "train", 2))
    assert np.abs(again.astype(int) - load(paths[2])).max() <= 1


@pytest.mark.parametrize("view", [0, 5])
def test_a_shipped_cloud_view_is_rendered_again(view) -> None:
    """The middle of each five by five pixels, which is that of a pixel of a picture so much smaller."""
    _, paths, poses = frames(SCENES / "cloud", "test")
    again = to_bytes(make_cloud.render(make_cloud.default_cloud(), poses[view], 32)[0])
    assert np.abs(again.astype(int) - load(paths[view])[2::5, 2::5]).max() <= 1


def test_pixel_rays_look_along_minus_z_with_x_right_and_y_up() -> None:
    pose = look_at(np.array([0.0, -4.0, 0.0]), np.zeros(3))
    centre, right, top = camera_directions(pose, np.pi / 2, 8, np.array([4.0, 8.0, 4.0]), np.array([4.0, 4.0, 0.0]))
    np.testing.assert_allclose(centre, [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(right, np.array([1, 1, 0]) / np.sqrt(2), atol=1e-12)
    np.testing.assert_allclose(top, np.array([0, 1, 1]) / np.sqrt(2), atol=1e-12)


@pytest.mark.parametrize("kind", [Sphere, Box, Frustum, Capsule])
def test_a_hit_is_the_first_point_on_the_surface(kind: type) -> None:
    shape = {
        Sphere: {"radius": 0.7},
        Box: {"half": np.array([0.3, 0.5, 0.8])},
        Frustum: {"bottom": 0.8, "top": 0.1, "half": 0.4},
        Capsule: {"radius": 0.3, "half": 0.5},
    }[kind]
    solid = kind(make_tower.STONE, np.zeros(3), **shape)
    rng = np.random.default_rng(3)
    origins = rng.normal(size=(400, 3))
    origins *= 3.0 / np.linalg.norm(origins, axis=1, keepdims=True)
    directions = rng.uniform(-0.9, 0.9, (400, 3)) - origins
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    t = solid.hit(origins, directions)
    met = np.isfinite(t)
    assert 40 < met.sum() < 400
    points = origins + np.where(met, t, 6.0)[:, None] * directions
    assert np.abs(solid.distance(points[met])).max() < 1e-9
    before = origins + np.linspace(0.0, 0.999, 500)[:, None, None] * (points - origins)
    assert solid.distance(before).min() > 0.0
    assert ((solid.normal(points[met]) * directions[met]).sum(1) < 1e-9).all()


def some_rays(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    origins = rng.normal(size=(count, 3))
    origins *= 4.0 / np.linalg.norm(origins, axis=1, keepdims=True)
    directions = rng.uniform(-0.4, 0.4, (count, 3)) - origins
    return origins, directions / np.linalg.norm(directions, axis=1, keepdims=True)


def test_the_cloud_integral_is_the_limit_of_a_fine_midpoint_sum() -> None:
    origins, directions = some_rays(6)
    radiance, tau = make_cloud.integrate(make_cloud.default_cloud(), origins, directions)
    steps = 8000
    step = 4.0 / steps
    for k, (origin, direction) in enumerate(zip(origins, directions, strict=True)):
        points = origin + (2.0 + step * (np.arange(steps) + 0.5))[:, None] * direction
        depth = make_cloud.density(points) * step
        seen = np.exp(-(np.cumsum(depth) - 0.5 * depth))
        brute = ((depth * seen)[:, None] * make_cloud.colour(points)).sum(0)
        assert abs(depth.sum() - tau[k]) < 1e-5
        assert np.abs(brute - radiance[k]).max() < 1e-5
    assert tau.max() > 0.5


def test_one_puff_has_the_optical_depth_of_a_gaussian_and_one_colour_the_radiance_of_its_alpha(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = make_cloud.Cloud(0)
    deviation, peak = np.array([0.06, 0.08, 0.07]), 3.0
    cloud.centres, cloud.deviations, cloud.peaks = np.zeros((1, 3)), deviation[None], np.array([peak])
    constant = np.array([0.2, 0.5, 0.9])
    monkeypatch.setattr(cloud, "colour", lambda points: np.broadcast_to(constant, points.shape))
    radiance, tau = make_cloud.integrate(cloud, -4.0 * np.eye(3), np.eye(3), panels=40)
    np.testing.assert_allclose(tau, peak * deviation * np.sqrt(2.0 * np.pi), rtol=2e-6)
    np.testing.assert_allclose(radiance, -np.expm1(-tau)[:, None] * constant, rtol=1e-9)


def test_the_density_fades_out_at_the_faces_of_the_box_and_the_colour_stays_in_range() -> None:
    rng = np.random.default_rng(2)
    points = rng.uniform(-1.0, 1.0, (20000, 3))
    sigma, rgb = make_cloud.density(points), make_cloud.colour(points)
    faces = points.copy()
    faces[np.arange(len(faces)), rng.integers(3, size=len(faces))] = rng.choice([-1.0, 1.0], len(faces))
    assert make_cloud.density(faces).max() < 1e-6 * sigma.max()
    assert sigma.min() >= 0.0
    assert rgb.min() > 0.15
    assert rgb.max() <= 0.9


def test_the_density_file_holds_the_density_at_its_grid_points(tmp_path: Path) -> None:
    target = tmp_path / "grid.npz"
    make_cloud.main(["--density", "9", "--with-colour", "--out", str(target)])
    assert [path.name for path in tmp_path.iterdir()] == ["grid.npz"]
    grid = np.load(target)
    axis = np.linspace(-1.0, 1.0, 9)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    assert grid["sigma"].dtype == np.float32
    assert grid["sigma"].shape == (9, 9, 9)
    assert grid["colour"].dtype == np.float16
    assert (grid["box"] == make_cloud.BOX).all()
    np.testing.assert_allclose(grid["sigma"], make_cloud.density(points), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(grid["colour"], make_cloud.colour(points), atol=1e-3)
