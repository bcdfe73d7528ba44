"""Law: values are what they say, round trips come back, and bad input gets a RaymarchError that names the fault."""

from __future__ import annotations

import copy
import math
import pickle
import tracemalloc
from dataclasses import FrozenInstanceError, replace

import cases
import drive
import numpy as np
import pytest

from raymarch import runtime
from raymarch.arguments.checks import ReadOnly
from raymarch.device import grid as grid_module
from raymarch.device import memory, pool
from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import BLOCK_FIELDS, CELL_FIELDS, require_layout
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import affine_of_box, require_box
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit, orbit_of_volume
from raymarch.geometry.pose import look_at, require_rigid
from raymarch.geometry.rays import Rays
from raymarch.rendering.march_settings import March
from raymarch.views.contents import background_doubt
from raymarch.views.image_arrays import is_opaque
from raymarch.views.views import Views, require_colour
from raymarch.volumes.activation import Activation
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.mesh import Mesh
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.storage import Sparse
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

EPS = float(np.finfo(float).eps)
CAMERA = Camera.look_at((1, -4, 2), (0.5, 0, 0), fov=0.8, width=6, height=4)


# Poses and boxes


def test_look_at_looks_at():
    pose = look_at((1, -4, 2), (0.5, 0, 0))
    np.testing.assert_allclose(pose[:3, :3].T @ pose[:3, :3], np.eye(3), rtol=0, atol=16 * EPS)
    assert np.linalg.det(pose[:3, :3]) == pytest.approx(1)
    ahead = np.array([0.5, 0, 0]) - (1, -4, 2)
    np.testing.assert_allclose(-pose[:3, 2], ahead / np.linalg.norm(ahead), rtol=0, atol=8 * EPS)
    assert pose[2, 1] > 0
    assert pose[2, 0] == pytest.approx(0)


def test_nearly_rigid_is_made_rigid():
    pose = look_at((1, -4, 2))
    off = pose.copy()
    off[:3, :3] += 1e-5 * np.random.default_rng(0).normal(size=(3, 3))
    rigid = require_rigid(off)
    np.testing.assert_allclose(rigid[:3, :3].T @ rigid[:3, :3], np.eye(3), rtol=0, atol=16 * EPS)
    np.testing.assert_allclose(rigid, pose, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_rigid_stays_as_it_is_to_the_last_bit(seed):
    pose = np.eye(4)
    pose[:3, :3] = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    pose[:3, 0] *= np.linalg.det(pose[:3, :3])
    pose = require_rigid(pose.astype(np.float32))
    assert require_rigid(pose).tobytes() == pose.tobytes()


def changed(row, column, value):
    pose = np.eye(4)
    pose[row, column] = value
    return pose


@pytest.mark.parametrize(
    ("pose", "said"),
    [
        (np.eye(3), r"shape \(3, 3\), want \(4, 4\)"),
        (changed(1, 3, np.nan), r"nan at \(1, 3\)"),
        (changed(0, 0, np.inf), r"inf at \(0, 0\)"),
        (changed(0, 0, -1), "mirrored"),
        (changed(0, 0, 1.1), "not rigid"),
        (changed(0, 1, 0.1), "not rigid"),
        (np.zeros((4, 4)), "last row"),
        (changed(3, 0, 0.5), "last row"),
    ],
)
def test_bad_poses(pose, said):
    with pytest.raises(RaymarchError, match=said):
        Camera.from_fov(pose, 0.7, 8, 8)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: look_at((1, 2, 3), (1, 2, 3)), "both"),
        (lambda: look_at((0, 0, 3)), "line of sight"),
        (lambda: require_box([(0, 0, 0)]), r"want \(2, 3\)"),
        (lambda: require_box([(0, 0, 0), (1, 0, 1)]), "empty"),
        (lambda: require_box([(0, 0, 0), (1, np.inf, 1)]), "inf at"),
        (lambda: Camera(np.eye(4), (0, 5), (1, 1), 2, 2), "focal is"),
        (lambda: Camera(np.eye(4), (5, np.nan), (1, 1), 2, 2), "focal is"),
        (lambda: Camera(np.eye(4), (5, -5), (1, 1), 2, 2), "focal is"),
        (lambda: Camera(np.eye(4), (5, 5), (1, np.inf), 2, 2), "principal"),
        (lambda: Camera(np.eye(4), (5, 5), (1, 1), 0, 2), "width is 0"),
        (lambda: Camera.from_fov(np.eye(4), 0.0, 8, 8), "fov is"),
        (lambda: Camera.from_fov(np.eye(4), 3.2, 8, 8), "fov is"),
        (lambda: CAMERA.scaled(0.01), "larger factor"),
        (lambda: Rays([[0, 0, 0]], [[0, 0]]), r"direction has shape \(1, 2\), want \(ray, 3\)"),
        (lambda: Rays([[0, 0, 0]] * 2, [[0, 0, 1]]), r"\(ray, 3\) twice"),
        (lambda: Rays([[0, 0, 0]] * 2, [[0, 0, 1], [0, 0, 0]]), "ray 1 "),
        (lambda: Rays([[0, np.nan, 0]], [[0, 0, 1]]), r"origin is nan at \(0, 1\)"),
        (lambda: March(step=0), "step is 0"),
        (lambda: March(min_transmittance=1), "min_transmittance is 1"),
        (lambda: March(batch=0), "batch is 0"),
        (lambda: require_colour("green"), "want white, black"),
        (lambda: require_colour((0, 0, 2)), "0..1"),
        (lambda: require_colour((0, np.nan, 1)), "0..1"),
        (lambda: Activation("tanh"), "want one of softplus"),
        (lambda: Activation(colour="tanh"), "want one of sigmoid"),
        (lambda: Activation(scale=0.0), "scale is 0.0"),
        (lambda: Activation(shift=np.nan), "shift is nan"),
        (lambda: Activation.of_initial_alpha(1.0, 0.1), "alpha is 1.0"),
        (lambda: runtime.start("gpu"), "want one of"),
        (lambda: runtime.start("cpu", "f32"), "start another"),
        (lambda: runtime.start(threads=0), "threads is 0"),
    ],
)
def test_bad_values(make, said):
    with pytest.raises(RaymarchError, match=said):
        make()


def test_affine_of_box_takes_corners_to_corners():
    affine = affine_of_box([(-1, 0, 2), (1, 3, 7)], (3, 4, 11))
    np.testing.assert_allclose(affine @ [0, 0, 0, 1], [-1, 0, 2, 1])
    np.testing.assert_allclose(affine @ [2, 3, 10, 1], [1, 3, 7, 1])


# Cameras


def test_rays_meet_their_pixels():
    """Projecting a point along each ray gives the pixel's centre, row by row."""
    camera = Camera(look_at((1, -4, 2)), (7.0, 9.5), (2.4, 4.1), 6, 5)
    rays = camera.rays()
    local = np.linalg.inv(camera.world_from_camera) @ np.c_[rays.origin + 3 * rays.direction, np.ones(30)].T
    u = 2.4 + 7.0 * local[0] / -local[2]
    v = 4.1 - 9.5 * local[1] / -local[2]
    np.testing.assert_allclose(u.reshape(5, 6), np.tile(np.arange(6) + 0.5, (5, 1)), atol=1e-12)
    np.testing.assert_allclose(v.reshape(5, 6), np.tile(np.arange(5) + 0.5, (6, 1)).T, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rays.direction, axis=1), 1, rtol=0, atol=16 * EPS)


def test_field_of_view_reaches_from_edge_to_edge():
    camera = Camera.from_fov(np.eye(4), 0.8, 20, 10)
    assert 2 * np.arctan(10 / camera.focal[0]) == pytest.approx(0.8)


def test_scaled_camera_sees_the_same():
    """Corners of the image stay where they are: twice the pixels, the same frustum."""
    twice = CAMERA.scaled(2)
    assert (twice.width, twice.height) == (12, 8)
    for axis in range(2):
        assert twice.principal[axis] / twice.focal[axis] == pytest.approx(CAMERA.principal[axis] / CAMERA.focal[axis])
        assert twice.focal[axis] == pytest.approx(2 * CAMERA.focal[axis])


def test_a_camera_scaled_to_whole_pixels_keeps_its_edges():
    """Width and height are rounded, each by its own share."""
    camera = Camera(np.eye(4), (9.0, 8.0), (3.0, 2.0), 7, 5)
    half = camera.scaled(0.5)
    assert (half.width, half.height) == (4, 2)
    for small, whole, n, m in ((0, 0, 4, 7), (1, 1, 2, 5)):
        for share in (0.0, 1.0):
            assert (share * n - half.principal[small]) / half.focal[small] == pytest.approx(
                (share * m - camera.principal[whole]) / camera.focal[whole]
            )


def test_orbit_keeps_its_distance_and_looks_inwards():
    cameras = orbit((1, 2, 3), 4.0, 7, like=CAMERA)
    assert len(cameras) == 7
    for camera in cameras:
        away = camera.position - (1, 2, 3)
        assert np.linalg.norm(away) == pytest.approx(4)
        np.testing.assert_allclose(camera.world_from_camera[:3, 2], away / 4, atol=1e-12)


def test_values_are_frozen():
    with pytest.raises(FrozenInstanceError):
        CAMERA.width = 3
    for array in (CAMERA.world_from_camera, CAMERA.rays().direction, cases.volume().world_from_index):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# Views


def test_views_agree_or_say_what_does_not():
    images = np.zeros((2, 4, 6, 3), np.uint8)
    views = Views([CAMERA] * 2, images)
    assert len(views) == 2
    assert len(views[1]) == 1
    assert views[1].names == ("001",)
    for cameras, pictures, said in [
        ([CAMERA], images, "2 images, 1 cameras"),
        ([CAMERA] * 2, images.astype(float), "uint8"),
        ([CAMERA] * 2, images[..., 0], "uint8"),
        ([CAMERA] * 2, images.transpose(0, 2, 1, 3), "resize"),
        ([], images[:0], "no views"),
    ]:
        with pytest.raises(RaymarchError, match=said):
            Views(cameras, pictures)


def test_straight_alpha_is_composited_on_the_background():
    image = np.zeros((1, 4, 6, 4), np.uint8)
    image[..., :] = (255, 0, 0, 51)  # a fifth of red
    views = Views([CAMERA], image, background=(0, 0.5, 1))
    np.testing.assert_allclose(views.rgb(0)[2, 3], [0.2, 0.4, 0.8], atol=1e-7)


# Volumes


def test_volume_of_a_function_holds_its_values():
    box = [(-1, 0, 2), (1, 3, 3)]
    ramp = Volume.from_function(lambda p: p[..., 0], lambda p: p / 4, shape=(5, 4, 3), box=box)
    np.testing.assert_allclose(ramp.sigma()[:, 0, 0], [0, 0, 0, 0.5, 1], atol=1e-7)
    np.testing.assert_allclose(ramp.box, box, atol=1e-12)
    assert (ramp.shape, ramp.degree) == ((5, 4, 3), 0)
    assert ramp.voxel == pytest.approx(0.5)
    inside = Rays([[0.9, 1.0, 2.5]], [[1, 0, 0]])
    seen = drive.image(replace(ramp, density=ramp.density * 1e5), inside, 0.001)
    np.testing.assert_allclose(seen[0], [0.9 / 4, 1 / 4, 2.5 / 4, 0], atol=1e-3)


@pytest.mark.parametrize("density", cases.FIT_DENSITIES)
def test_raw_is_the_inverse_of_sigma(density):
    activation = Activation(density, 0.7, 0.3)
    sigma = np.geomspace(1e-6, 1e4, 50)
    np.testing.assert_allclose(activation.sigma(activation.raw(sigma)), sigma, rtol=1e-9)
    assert activation.sigma(activation.raw(0.0)) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("density", cases.FIT_DENSITIES)
def test_sigma_of_zero_is_the_initial_alpha(density):
    sigma = Activation.of_initial_alpha(0.01, 0.2, density).sigma(0.0)
    assert 1 - np.exp(-sigma * 0.2) == pytest.approx(0.01, rel=1e-12)


def test_volume_moves_with_the_world():
    v, m = cases.volume("rotated"), cases.motion((1, 0, 2), 0.6, (1, 2, 3))
    np.testing.assert_allclose(v.moved(m).corners, v.corners @ m[:3, :3].T + m[:3, 3], atol=1e-12)


def with_one(values, index, value):
    values = values.copy()
    values[index] = value
    return values


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (lambda v: {"density": v.density[0]}, "at least 2 samples"),
        (lambda v: {"density": v.density[:1]}, "at least 2 samples"),
        (lambda v: {"features": v.features[:-1]}, "features have shape"),
        (lambda v: {"features": v.features[..., :5]}, "channels"),
        (lambda v: {"density": v.density.astype(int)}, "want float32 or float64"),
        (lambda v: {"density": with_one(v.density, (3, 2, 1), np.nan)}, r"density is nan at \(3, 2, 1\)"),
        (lambda v: {"features": with_one(v.features, (0, 1, 2, 3), -np.inf)}, r"features are -inf at \(0, 1, 2, 3\)"),
        (lambda v: {"world_from_index": np.zeros((4, 4))}, "invertible"),
        (lambda v: {"world_from_index": np.full((4, 4), np.nan)}, "world_from_index is nan"),
        (lambda v: {"world_from_index": np.eye(3)}, "world_from_index has shape"),
    ],
)
def test_bad_volumes(changes, said):
    v = cases.volume()
    with pytest.raises(RaymarchError, match=said):
        replace(v, **changes(v))


@pytest.mark.parametrize("kind", ["softplus", "relu", "exponential", "identity"])
@pytest.mark.parametrize("value", [1e300, -1e300, 3e38, -3e38])
def test_what_leaves_single_precision_is_refused_with_its_index(kind, value):
    """A sum along a ray leaves it earlier than a number does."""
    v, at = replace(cases.volume(), activation=Activation(kind)), (3, 2, 1)
    with pytest.raises(RaymarchError, match=rf"density is {value}.* at \(3, 2, 1\)".replace("+", r"\+")):
        replace(v, density=with_one(v.density.astype(float), at, value))
    with pytest.raises(RaymarchError, match=r"features are .* at \(3, 2, 1, 0\)"):
        replace(v, features=with_one(v.features.astype(float), (*at, 0), value))


def test_an_optical_depth_that_leaves_single_precision_is_refused():
    v = cases.volume()
    for activation in (Activation("relu", scale=1e-10), Activation("identity", scale=1e-10)):
        with pytest.raises(RaymarchError, match=r"density is 1e\+25 at \(3, 2, 1\), an optical depth of .* want up to"):
            replace(v, density=with_one(v.density.astype(float), (3, 2, 1), 1e25), activation=activation)
    with pytest.raises(RaymarchError, match=r"density is -1e\+25 at \(3, 2, 1\), an optical depth of .* want up to"):
        replace(v, density=with_one(v.density.astype(float), (3, 2, 1), -1e25), activation=activation)


# Volumes of plain arrays


def test_an_array_of_densities_is_a_volume_of_them():
    """Sigma and colour are what was given, whatever type of number; negative densities are empty."""
    sigma = np.random.default_rng(0).uniform(-1, 5, (4, 5, 6))
    colour = np.random.default_rng(1).uniform(0, 1, (4, 5, 6, 3))
    for given in (sigma, sigma.astype(np.float32), np.round(sigma).astype(int)):
        v = Volume.from_array(given, colour)
        np.testing.assert_allclose(v.sigma(), np.maximum(given, 0), rtol=1e-6)
        np.testing.assert_allclose(0.5 + Y00 * v.features, colour, atol=1e-6)
    np.testing.assert_allclose(
        0.5 + Y00 * Volume.from_array(sigma, (1, 0.5, 0)).features[2, 3, 4], (1, 0.5, 0), atol=1e-6
    )
    np.testing.assert_allclose(0.5 + Y00 * Volume.from_array(sigma).features, 0.7, atol=1e-6)
    bytes_ = np.round(colour * 255).astype(np.uint8)
    np.testing.assert_allclose(0.5 + Y00 * Volume.from_array(sigma, bytes_).features, bytes_ / 255, atol=1e-6)


def test_an_array_of_densities_lies_where_it_is_said_to():
    sigma = np.ones((3, 5, 2))
    np.testing.assert_allclose(Volume.from_array(sigma).box, [(-0.5, -1, -0.25), (0.5, 1, 0.25)])
    np.testing.assert_allclose(Volume.from_array(sigma, spacing=2).box, [(-2, -4, -1), (2, 4, 1)])
    np.testing.assert_allclose(Volume.from_array(sigma, spacing=(1, 0.5, 4)).box, [(-1, -1, -2), (1, 1, 2)])
    box = [(0, 1, 2), (3, 4, 5)]
    assert Volume.from_array(sigma, box=box, background="black").background == (0, 0, 0)
    np.testing.assert_allclose(Volume.from_array(sigma, box=box).box, box)


# Copies

COPIES = [copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))]
BALL = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(20, 16, 16))
RECORDS = [
    BALL,
    BALL.sparse(),
    ScalarVolume(np.arange(24, dtype=np.int16).reshape(2, 3, 4), np.diag([1, 1, 3, 1])),
    TransferFunction([0, 5, 9], np.eye(3), [0, 0.1, 0.8]),
    Mesh(np.eye(3), [(0, 1, 2)], np.ones((3, 3)), np.ones((3, 3))),
    CAMERA,
    CAMERA.rays(),
]


def arrays_of(record):
    """Arrays of a record and of those within it, by name."""
    found = {}
    for name, value in vars(record).items():
        if isinstance(value, np.ndarray):
            found[name] = value
        elif isinstance(value, ReadOnly | Sparse):
            found |= {f"{name}.{inner}": array for inner, array in arrays_of(value).items()}
    return found


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_what_may_not_be_written_may_not_be_in_a_copy(record, copied):
    before, after = arrays_of(record), arrays_of(copied(record))
    assert list(before) == list(after) and not all(array.flags.writeable for array in before.values())
    for name, array in before.items():
        assert after[name].dtype == array.dtype and after[name].flags.writeable == array.flags.writeable, name
        np.testing.assert_array_equal(after[name], array)


@pytest.mark.parametrize("copied", COPIES, ids=["copy", "deepcopy", "pickle"])
def test_colours_that_take_no_memory_take_none_in_a_copy(copied):
    volume = ScalarVolume(np.ones((16, 16, 16), np.float32)).as_volume()
    again = copied(volume)
    assert again.features.strides == (0, 0, 0, 0) and again.features.shape == volume.features.shape
    assert len(pickle.dumps(again)) < 2 * volume.density.nbytes


# The device


def test_what_was_uploaded_comes_back():
    for place in cases.PLACES:
        v = cases.volume(place)
        grid = drive.grid_of(v.degree)
        grid.upload(v)
        for got, wanted in zip(grid.download(), (v.density, v.features), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.fixture(scope="module")
def refined():
    """A grid that can refine."""
    with Grid((13, 9, 9), 0, slots=1, moments=True) as grid:
        yield grid


def affine_field(shape):
    """Values that are linear in the position within the box, one each for density and the colours."""
    u = np.stack(np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij"), -1)
    return u @ [1.0, -2.0, 0.5] + 0.3, u @ np.array([[3.0, 1, 0], [0, -1, 2], [1, 1, 1]])


@pytest.mark.parametrize("finer", [(5, 4, 3), (6, 9, 5), (13, 9, 9)])
def test_refining_keeps_trilinear_fields_and_the_box(refined, finer):
    density, features = affine_field((5, 4, 3))
    v = Volume(density, features, affine_of_box([(-1, -1, -1), (1, 2, 3)], (5, 4, 3)))
    refined.upload(v)
    refined.refine(finer)
    for got, wanted in zip(refined.download(), affine_field(finer), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)
    np.testing.assert_allclose(refined.world_from_index, affine_of_box([(-1, -1, -1), (1, 2, 3)], finer), atol=1e-14)


def test_refining_to_the_same_shape_is_the_identity(refined):
    v = cases.volume("rotated", 0)
    refined.upload(v)
    refined.refine(v.shape)
    for got, wanted in zip(refined.download(), (v.density, v.features), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)


def test_too_large_a_grid_is_refused_with_the_bytes(monkeypatch):
    pool.release()  # what is kept would serve
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**6)
    monkeypatch.setattr(grid_module, "build", lambda *_: pytest.fail("allocated"))
    needed = 64 * 68**2 * 4 * 8  # rows of flat grids are no power of two apart
    with pytest.raises(RaymarchError, match=f"{needed:,} bytes but 1,000,000 are free"):
        Grid((64, 64, 64), 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**18)
    many = [((1300, 1300, 1300), 0, 0), ((400, 400, 400), 3, 0), ((500, 500, 500), 0, 6)]
    for shape, degree, slots in [*many, ((894, 894, 894), 0, 0)]:  # which is a few rows longer in memory
        with pytest.raises(RaymarchError, match="index 2147483647 in all"):
            Grid(shape, degree, slots=slots)


def test_a_sparse_grid_without_room_for_its_cells_is_refused_with_the_bytes(monkeypatch):
    pool.release()
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**8)
    monkeypatch.setattr(grid_module, "build", lambda *_: pytest.fail("allocated"))
    samples, bricks = 2 * 8**3 * 4 * np.dtype(runtime.dtype()).itemsize, 2 * (3 * 8 + 3 * 4)
    needed = samples + bricks + 256**3 * (4 + 3 + 1) + 128**3 * (2 * 4 + 4 + 1)
    with pytest.raises(RaymarchError, match=f"1024 x 1024 x 1024 needs {needed:,} bytes but 100,000,000 are free"):
        BrickGrid((1024, 1024, 1024), 0, bricks=1)


@pytest.mark.parametrize("shape", [(5200, 5200, 5200), (65536, 65536, 40)])
def test_more_cells_than_taichi_can_index_are_refused(shape, monkeypatch):
    monkeypatch.setattr(grid_module, "build", lambda *_: pytest.fail("allocated"))
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**18)
    with pytest.raises(RaymarchError, match="occupancy cells where Taichi can index 2,147,483,647; lower the res"):
        BrickGrid(shape, 0, bricks=1)
    require_layout((5161, 5161, 5161), 0, 1)


def test_the_bytes_of_a_sparse_grid_are_those_of_its_fields():
    with BrickGrid((33, 40, 65), 0, bricks=9, slots=2) as grid:
        fields, room = grid.fields, grid._tree.room
        marks = sum(math.prod(getattr(fields, name).shape) for name in (*BLOCK_FIELDS, *CELL_FIELDS))  # a byte each
        table, brick = math.prod(fields.table.shape), math.prod(fields.brick.shape)
        assert fields.old_table.shape == fields.table.shape
        width, samples = np.dtype(runtime.dtype()).itemsize, math.prod(fields.density.shape)
        gradient = math.prod(fields.d_density.shape)
        counted = 4 * width * (samples + gradient) + marks + 4 * (2 * table + 3 * brick)
        assert grid._tree.size == grid_module.size_of(grid, room) == counted


def test_cells_are_marked_in_the_memory_that_is_counted():
    with BrickGrid((257, 257, 257), 0, bricks=1) as grid:
        grid.measure_occupancy()  # which is compiled
        tracemalloc.start()
        grid.measure_occupancy()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 0.9 < peak / (memory.BYTES_A_CELL[1] * 64**3) < 1.2


@pytest.mark.parametrize("slots", [0, 1, 4])
def test_the_bytes_counted_are_those_of_the_arrays(slots):
    """Values, and with slots their gradient and its parts; each is density and the features."""
    copies = 1 + (1 + slots if slots else 0)
    assert memory.grid_bytes((3, 4, 5), 1, slots=slots, width=8) == 60 * 13 * copies * 8
    assert memory.grid_bytes((3, 4, 5), 1, slots=slots, moments=True, width=8) == 60 * (13 * copies + 2 * 4) * 8


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Grid((1, 8, 8), 0), "at least 2"),
        (lambda: Grid((8, 8), 0), "three counts"),
        (lambda: Grid((8, 8, 8), 0, block=3), "block is 3"),
        (lambda: drive.grid_of().upload(cases.volume(degree=0)), "SH degree 0"),
        (lambda: drive.grid_of().set_level((99, 2, 2), np.eye(4)), "does not fit"),
        (lambda: drive.ray_buffer().upload(Rays(np.zeros((999, 3)), np.ones((999, 3)))), "999 rays do not fit"),
    ],
)
def test_bad_use_of_the_device(make, said):
    with pytest.raises(RaymarchError, match=said):
        make()


def test_use_after_close_is_an_error():
    grid, buffer = Grid((4, 4, 4), 0, slots=1), RayBuffer(4)
    for thing in (grid, buffer):
        thing.close()
        thing.close()  # twice is no harm
    rays = Rays([[0, 0, 0]], [[0, 0, 1]])
    for use in (
        lambda: grid.fields,
        lambda: grid.upload(cases.constant(1.0, degree=0)),
        grid.download,
        grid.download_gradient,
        grid.reduce_slots,
        lambda: grid.refresh_occupancy(0.1),
        lambda: grid.set_level((2, 2, 2), np.eye(4)),
    ):
        with pytest.raises(RaymarchError, match="grid is closed"):
            use()
    for use in (lambda: buffer.fields, lambda: buffer.upload(rays), lambda: buffer.image(1), lambda: buffer.depth(1)):
        with pytest.raises(RaymarchError, match="buffer is closed"):
            use()


@pytest.mark.parametrize(
    ("border", "background", "doubted"),
    [(0, "white", True), (255, "white", False), (0, "black", False), (128, "white", True)],
)
def test_a_background_that_the_borders_belie_is_doubted(border, background, doubted):
    """Images without alpha whose borders have one colour, and not the background's."""
    images = np.full((2, 16, 16, 3), border, np.uint8)
    images[:, 4:12, 4:12] = 77
    views = Views([Camera.look_at((0, -4, 0), width=16, height=16)] * 2, images, background=background)
    assert bool(background_doubt(views)) == doubted
    alpha = np.concatenate([images, np.full_like(images[..., :1], 255)], -1)
    assert bool(background_doubt(Views(views.cameras, alpha, background=background))) == doubted  # it masks nothing
    alpha[1, 0, 0, 3] = 0
    assert not background_doubt(Views(views.cameras, alpha, background=background))


def test_alpha_shows_silhouettes_from_the_first_pixel_on_that_is_not_opaque(monkeypatch):
    """Which no image after it is looked at for; and is asked once."""
    asked = []
    monkeypatch.setattr("raymarch.views.views.is_opaque", lambda image: asked.append(1) or is_opaque(image))
    images = np.full((4, 8, 8, 4), 255, np.uint8)
    cameras = [Camera.look_at((0, -4, 0), width=8, height=8)] * 4
    assert not Views(cameras, images[..., :3]).shows_silhouettes
    assert not Views(cameras, images).shows_silhouettes
    assert len(asked) == 4
    images[1, 7, 7, 3] = 254
    views = Views(cameras, images)
    assert views.shows_silhouettes and views.shows_silhouettes
    assert len(asked) == 4 + 2


def test_busy_borders_raise_no_doubt():
    images = np.random.default_rng(0).integers(0, 255, (2, 16, 16, 3), np.uint8)
    assert not background_doubt(Views([Camera.look_at((0, -4, 0), width=16, height=16)] * 2, images))


def test_values_print_in_one_line():
    ball = Volume.from_function(lambda p: np.linalg.norm(p, axis=-1), shape=(8, 9, 10))
    views = Views([Camera.look_at((0, -4, 0), width=16, height=16)], np.zeros((1, 16, 16, 3), np.uint8))
    assert repr(ball) == "Volume(8 x 9 x 10 samples, SH degree 0, box -1 -1 -1 to 1 1 1)"
    assert repr(views) == "Views(1 RGB images of 16 x 16, source='')"


@pytest.mark.parametrize("elevation", [90, -95, np.nan])
def test_an_orbit_over_the_pole_is_refused(elevation):
    with pytest.raises(RaymarchError, match="want a number from -89 to 89"):
        orbit((0, 0, 0), 4.0, 3, elevation=elevation, like=Camera.look_at((4, 0, 0)))


def test_an_orbit_rises_by_degrees():
    cameras = orbit((0, 0, 1), 2.0, 5, elevation=30, like=Camera.look_at((4, 0, 0)))
    np.testing.assert_allclose([c.position[2] for c in cameras], 1 + 2 * 0.5)


@pytest.mark.parametrize("size", [(2, 2, 2), (4, 1, 1), (1, 1, 4), (3, 3, 0.5)])
def test_an_orbit_of_a_box_sees_all_of_it_and_not_much_else(size):
    half = np.array(size) / 2
    corners = np.stack(np.meshgrid(*zip(-half, half, strict=True), indexing="ij"), -1).reshape(-1, 3) + 5
    reach = []
    for camera in orbit_of_volume([5 - half, 5 + half], 12, size=100):
        local = (corners - camera.position) @ camera.world_from_camera[:3, :3]
        reach.append(np.abs(camera.focal[0] * local[:, :2] / local[:, 2:]).max())
    assert max(reach) < 50
    assert max(reach) > 46


def test_a_volume_far_from_the_origin_is_warned_of(caplog, monkeypatch):
    monkeypatch.setattr(runtime, "single_precision", lambda: True)
    with Grid((4, 4, 4), 0) as grid:
        grid.set_level((4, 4, 4), affine_of_box([(5000, 0, 0), (5003, 3, 3)], (4, 4, 4)))
        assert not caplog.records
        grid.set_level((4, 4, 4), affine_of_box([(5e5, 0, 0), (5e5 + 3, 3, 3)], (4, 4, 4)))
    assert "5e+05 voxels from the world's origin" in caplog.text


def test_a_buffer_closed_before_any_kernel_leaves_nothing_to_check_later():
    """Else Taichi looks at its freed fields before the next kernel: at another field's shape, or worse."""
    from raymarch import engine

    RayBuffer(4).close()
    assert engine.state().matrix_fields == []
