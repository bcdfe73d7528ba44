"""Laws of sparse volumes: bricks and dense arrays are one volume, and a table that is wrong is refused by name."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from raymarch.diagnosis.floaters import opacity_in_parts
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.gradients.check_sample import crop_met
from raymarch.gradients.parameters import Parameters, require_directions
from raymarch.rendering.march_settings import max_colour
from raymarch.system import resources
from raymarch.volumes import storage
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import Bricks
from raymarch.volumes.default_table import has_values_alone, range_of
from raymarch.volumes.volume import Volume

SHAPES = [(16, 16, 16), (24, 9, 17), (8, 8, 8), (2, 3, 30)]


def holed(shape=(24, 9, 17), degree=0, dtype=np.float32, **more) -> Volume:
    """Volume that is empty but for a few random samples, with features where they can be seen."""
    rng = np.random.default_rng(3)
    activation = more.pop("activation", Activation("softplus", 0.3, 0.5))
    density = np.full(shape, activation.empty, dtype)
    density.flat[rng.choice(density.size, 3, replace=False)] = rng.normal(size=3)
    features = rng.normal(size=(*shape, 3 * (degree + 1) ** 2)).astype(dtype)
    features[density == dtype(activation.empty)] = 0
    return Volume(density, features, np.diag([0.1, 0.2, 0.3, 1]), activation, **more)


def require_same(a: Volume, b: Volume):
    assert a.density.dtype == b.density.dtype
    assert a.density.tobytes() == b.density.tobytes()
    assert a.features.tobytes() == b.features.tobytes()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bricks_come_back_as_the_dense_arrays(shape, dtype):
    dense = holed(shape, 1, dtype)
    sparse = dense.sparse()
    assert dense.bricks is None
    assert 0 < sparse.bricks.count <= 3
    assert sparse.sparse().bricks is sparse.bricks
    require_same(sparse, dense)
    require_same(sparse.dense(), dense)
    assert sparse.dense().bricks is None
    assert (sparse.shape, sparse.degree, sparse.voxel) == (dense.shape, dense.degree, dense.voxel)
    np.testing.assert_array_equal(sparse.box, dense.box)


def test_a_brick_lies_where_the_table_says():
    """Written by hand, brick 1 before brick 0."""
    table = np.full((2, 1, 1), -1, np.int32)
    table[0], table[1] = 1, 0
    density = np.arange(1024, dtype=np.float32).reshape(2, 8, 8, 8)
    features = np.zeros((2, 8, 8, 8, 3), np.float32)
    features[1, 2, 3, 4] = (1, 2, 3)
    volume = Volume.of_bricks(Bricks(table, density, features), (13, 8, 7), np.eye(4))
    assert volume.density.shape == (13, 8, 7)
    assert volume.density[2, 3, 4] == density[1, 2, 3, 4]
    assert volume.density[12, 7, 6] == density[0, 4, 7, 6]
    np.testing.assert_array_equal(volume.features[2, 3, 4], (1, 2, 3))
    assert not volume.density.flags.writeable


def test_colours_that_nobody_sees_are_left_out():
    """Those of an empty brick that no cell shares with what is not empty; beside that they stay."""
    shape = (40, 8, 8)
    density, features = np.full(shape, -25, np.float32), np.ones((*shape, 3), np.float32)
    density[15, 4, 4] = 1
    bricks = Volume(density, features, np.eye(4)).sparse().bricks
    np.testing.assert_array_equal(bricks.table.ravel(), [-1, 0, 1, -1, -1])


def test_all_empty_is_no_brick():
    nothing = Volume(np.zeros((9, 9, 9)), np.zeros((9, 9, 9, 3)), np.eye(4), Activation("relu")).sparse()
    assert nothing.bricks.count == 0
    assert not nothing.density.any()


@pytest.mark.parametrize("dense", [holed(), holed((27, 9, 12), boxes=3), holed((48, 8, 8), boxes=3)])
def test_a_sparse_volume_is_asked_as_a_dense_one(dense):
    sparse = dense.sparse()
    for n in range(dense.boxes):
        require_same(sparse.nested(n), dense.nested(n))
        assert sparse.nested(n).bricks is not None
        np.testing.assert_array_equal(sparse.nested(n).box, dense.nested(n).box)
    index = np.random.default_rng(0).integers(0, dense.shape, (50, 3)).T
    for mine, its in zip(sparse.at(index), dense.at(index), strict=True):
        np.testing.assert_array_equal(mine, its)
    np.testing.assert_array_equal(sparse.sigma(), dense.sigma())
    assert sparse.nbytes < dense.nbytes or dense.shape[0] < 48


@pytest.mark.parametrize("dense", [holed((70, 66, 9)), holed((204, 9, 40), boxes=3)])
def test_the_part_that_a_camera_meets_most_is_that_of_the_dense_volume(dense):
    camera = Camera.look_at((3, -9, 1), tuple(dense.box.mean(0)), width=16, height=16)
    mine, its = crop_met(dense.sparse(), camera, 0), crop_met(dense, camera, 0)
    assert mine.bricks is None
    require_same(mine, its)
    np.testing.assert_array_equal(mine.world_from_index, its.world_from_index)


@pytest.mark.parametrize("degree", [0, 2])
def test_the_brightest_colour_is_that_of_the_dense_volume(degree):
    dense = holed(degree=degree, activation=Activation("relu", colour="clamped"))
    assert max_colour(dense.sparse()) == max_colour(dense) > 1


def test_opacities_add_up_in_the_same_parts():
    dense = Volume.from_array(np.random.default_rng(0).uniform(0, 40, (40, 21, 9)) * (np.arange(9) > 7))
    starts = [np.array([0, 3, 17, 33]), np.array([0]), np.array([0, 8])]
    for least in (0.0, 0.5):
        mine, its = (opacity_in_parts(v, starts, least) for v in (dense.sparse(), dense))
        np.testing.assert_allclose(mine, its, rtol=1e-6)
        assert its.max() > 1


def test_samples_beyond_the_shape_count_nowhere():
    cubes = np.full((1, 8, 8, 8), 1e9, np.float32)
    bricks = Bricks(np.zeros((1, 1, 1), np.int32), cubes, np.zeros((*cubes.shape, 3), np.float32))
    fog = Volume.of_bricks(bricks, (5, 8, 7), np.eye(4), Activation("relu"))
    assert opacity_in_parts(fog, [np.array([0, 4]), np.array([0]), np.array([0])]).ravel().tolist() == [4 * 56, 56]


def of_values(count, beyond=0.0, shape=(20, 9, 17)) -> Volume:
    """Sparse volume of values from 2 to 3 in `count` of its 18 bricks; `beyond` the shape those bricks hold another."""
    rng = np.random.default_rng(5)
    table = np.full((3, 2, 3), -1, np.int32)
    table.flat[rng.permutation(table.size)[:count]] = rng.permutation(count)
    density = rng.uniform(2, 3, (count, 8, 8, 8)).astype(np.float32)
    features = np.zeros((*density.shape, 3), np.float32)
    for place in np.argwhere(table >= 0):
        out = (np.moveaxis(np.indices((8, 8, 8)), 0, -1) + 8 * place >= shape).any(-1)
        density[table[tuple(place)]][out] = features[table[tuple(place)]][out] = beyond
    return Volume.of_bricks(Bricks(table, density, features), shape, np.eye(4), Activation("identity", 0.5))


@pytest.mark.parametrize("count", [0, 7, 18])
@pytest.mark.parametrize("beyond", [-9.0, 9.0])
def test_values_of_bricks_are_those_of_the_dense_arrays_from_the_least_to_the_greatest(count, beyond):
    """Where no brick is they are those of empty space; what lies beyond the shape is none of them."""
    sparse = of_values(count, beyond)
    values = sparse.dense().sigma()
    assert range_of(sparse) == range_of(sparse.dense()) == (values.min(), values.max())
    assert range_of(sparse)[0] == 0 or count == 18
    for end, at in sparse.samples.ends(sparse.activation.empty):
        assert sparse.density[at] == end


@pytest.mark.parametrize("count", [0, 7, 18])
def test_values_are_told_from_colours_without_dense_arrays(count, monkeypatch):
    monkeypatch.setattr(storage, "spread_bricks", lambda *_: pytest.fail("dense arrays were made"))
    sparse = of_values(count, beyond=9.0)
    assert has_values_alone(sparse)
    if count:
        features = np.zeros_like(sparse.bricks.features)
        features[sparse.bricks.table.max(), 0, 0, 0, 2] = -1e-3
        coloured = replace(sparse.samples, bricks=replace(sparse.bricks, features=features))
        assert not has_values_alone(replace(sparse, samples=coloured))


@pytest.mark.parametrize("count", [0, 7, 18])
def test_a_part_of_bricks_is_that_of_the_dense_arrays(count):
    sparse = of_values(count, beyond=9.0)
    index = [np.arange(1, 20, 3), np.arange(9), np.arange(2, 17, 2)]
    for part in (sparse.samples.part(index, sparse.activation.empty), sparse.dense().samples.part(index, 0.0)):
        np.testing.assert_array_equal(part.values, sparse.density[np.ix_(*index)])
        np.testing.assert_array_equal(part.colours, sparse.features[np.ix_(*index)])


def test_a_part_of_bricks_takes_little_memory_beside_its_own():
    """No index of each of its samples."""
    shape, density = (96, 96, 96), np.ones((12**3, 8, 8, 8), np.float32)
    table = np.arange(12**3, dtype=np.int32).reshape(12, 12, 12)
    bricks = Bricks(table, density, density[..., None] * np.ones(3, np.float32))
    samples = Volume.of_bricks(bricks, shape, np.eye(4)).samples
    tracemalloc.start()
    part = samples.part([np.arange(n) for n in shape], 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert part.nbytes == 96**3 * 16 < peak < 1.5 * part.nbytes


def test_samples_of_a_whole_grid_are_asked_without_an_index_of_each():
    """Three indices of each are more than the samples."""
    bricks = Bricks(np.pad([[[0]]], (0, 11), constant_values=-1), CUBES[:1], COLOURS[:1])
    volume = Volume.of_bricks(bricks, (96, 96, 96), np.eye(4))
    tracemalloc.start()
    density, features = volume.at(np.ix_(*map(np.arange, volume.shape)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert density.nbytes + features.nbytes == 96**3 * 16 < peak < 1.5 * 96**3 * 16


def test_directions_are_asked_for_in_the_dense_shape(monkeypatch):
    monkeypatch.setattr(resources, "free_bytes", lambda: 0)
    sparse = holed().sparse()
    require_directions([Parameters(density=np.zeros(sparse.shape))], sparse, Lens(), None)
    with pytest.raises(RaymarchError, match=r"colour has shape"):
        require_directions([Parameters(colour=np.zeros(sparse.shape))], sparse, Lens(), None)


def test_what_is_replaced_leaves_the_bricks_where_they_are():
    sparse = holed().sparse()
    assert replace(sparse, background="black").bricks is sparse.bricks
    assert sparse.moved(np.diag([2, 2, 2, 1])).bricks is sparse.bricks
    denser = replace(sparse, density=sparse.density + 1)
    assert denser.bricks is None
    np.testing.assert_array_equal(denser.features, sparse.features)


def test_dense_arrays_beyond_the_memory_are_refused_with_their_bytes(monkeypatch):
    table = np.full((128, 128, 128), -1, np.int32)
    table[64, 64, 64] = 0
    bricks = Bricks(table, np.ones((1, 8, 8, 8), np.float32), np.zeros((1, 8, 8, 8, 3), np.float32))
    volume = Volume.of_bricks(bricks, (1024,) * 3, np.eye(4) * [0.01, 0.01, 0.01, 1])
    assert volume.at((np.array([511, 512, 519]), 512, 512))[0].tolist() == [-25, 1, 1]
    monkeypatch.setattr(resources, "free_bytes", lambda: 10**9)
    for ask in (lambda: volume.density, lambda: volume.dense(), lambda: volume.sigma()):
        with pytest.raises(
            RaymarchError, match="1024 x 1024 x 1024 samples take 4,294,967,296 bytes but 1,000,000,000"
        ):
            ask()


CUBES, COLOURS = np.zeros((2, 8, 8, 8), np.float32), np.zeros((2, 8, 8, 8, 3), np.float32)


def table(*numbers):
    return np.array(numbers, np.int32)[:, None, None]


WRONG = {
    "no number": (
        table(0, 1).astype(float),
        CUBES,
        COLOURS,
        "bricks: table is float64 (2, 1, 1), want int32 (x, y, z)",
    ),
    "flat": (np.zeros((2, 1), int), CUBES, COLOURS, "bricks: table is int64 (2, 1)"),
    "below -1": (table(0, -2), CUBES, COLOURS, "bricks: table is -2 at (1, 0, 0), want int32"),
    "beyond int32": (
        table(0, 1).astype(int) << 40,
        CUBES,
        COLOURS,
        "bricks: table is 1099511627776 at (1, 0, 0), want",
    ),
    "beyond the last": (table(0, 2), CUBES, COLOURS, "bricks: table is 2 at (1, 0, 0), want numbers under 2"),
    "twice": (
        table(0, 1, 1),
        CUBES,
        COLOURS,
        "bricks: table has number 1 twice, at (1, 0, 0) and (2, 0, 0), want each",
    ),
    "a hole": (table(1, -1), CUBES, COLOURS, "bricks: table lacks number 0 and places 1 of 2 bricks, want all"),
    "integers": (table(0, 1), CUBES.astype(int), COLOURS, "bricks: density is int64, want float32 or float64"),
    "other cubes": (
        table(0, 1),
        CUBES[:, :4],
        COLOURS,
        "bricks: density has shape (2, 4, 8, 8), want (brick, 8, 8, 8)",
    ),
    "channels": (table(0, 1), CUBES, COLOURS[..., :0], "bricks: features have shape (2, 8, 8, 8, 0), want"),
    "fewer features": (table(0, 1), CUBES, COLOURS[:1], "bricks: features have shape (1, 8, 8, 8, 3), want (2, 8"),
    "NaN": (table(0, 1), CUBES + np.float32(np.nan), COLOURS, "bricks: density is nan at (0, 0, 0, 0), want"),
    "endless": (table(0, 1), CUBES, COLOURS + np.float32(np.inf), "bricks: features are inf at (0, 0, 0, 0, 0), want"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_bricks_are_refused_by_name(what):
    *arrays, said = WRONG[what]
    with pytest.raises(RaymarchError) as caught:
        Bricks(*arrays)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((8, 8, 8), "has bricks beyond 8 x 8 x 8 samples, want shape (1, 1, 1)"),
        ((17, 8, 8), "does not cover 17 x 8 x 8 samples, want shape (3, 1, 1)"),
        ((16, 8, 1), "shape is (16, 8, 1), want three whole numbers from 2"),
    ],
)
def test_bricks_of_another_shape_are_refused(shape, said):
    with pytest.raises(RaymarchError) as caught:
        Volume.of_bricks(Bricks(table(0, 1), CUBES, COLOURS), shape, np.eye(4))
    assert said in str(caught.value)


def test_an_optical_depth_out_of_range_is_named_with_its_sample():
    cubes = CUBES.copy()
    cubes[0, 1, 2, 3] = 1e25
    with pytest.raises(RaymarchError, match=r"density is .*e\+2\d at \(9, 2, 3\), an optical depth of"):
        Volume.of_bricks(Bricks(table(1, 0), cubes, COLOURS), (16, 8, 8), np.eye(4), Activation("relu", scale=1e-10))
