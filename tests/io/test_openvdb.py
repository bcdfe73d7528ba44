"""Laws of OpenVDB's files: numbers, colours and places come back, every way to store them is read, damage is one line.

Files are put together and taken apart by `vdb_files.py`; `test_volumes_of_openvdb.py` asks OpenVDB itself.
"""

from __future__ import annotations

import itertools
import json
import logging
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from skips import require_extra
from test_scalar_formats import PLACES, one_line_or_a_volume, refused, run
from vdb_files import BLOSC, MASK, ZIP, Made, Taken, file_of, matrix_of
from whole import whole

import raymarch as rm

RNG = np.random.default_rng(5)
SHAPE = (21, 9, 10)
UNIFORM, SHIFTED = np.diag([0.5, 0.5, 0.5, 1.0]), np.diag([0.5, 0.5, 0.5, 1.0])
SHIFTED[:3, 3] = (4, 5, 6)
MAPS = {
    "UniformScaleMap": UNIFORM,
    "UniformScaleTranslateMap": SHIFTED,
    "ScaleMap": np.diag([0.5, 1, 2, 1.0]),
    "ScaleTranslateMap": PLACES["upright"],
    "AffineMap": PLACES["sheared"],
}
MIRRORED = np.diag([-1, 2, 3, 1.0])
WAYS = [{"half": half, "compression": how} for half in (False, True) for how in ("zip", "none")]
ROUNDING = 2.0**-11  # of half precision


def fog(shape=SHAPE, **more):
    """Scalar volume that holds something in some leaves alone."""
    values = (np.random.default_rng(6).random(shape) * 9 + 0.5).astype(np.float32)
    values[8:16] = 0
    values[2, 3, 4] = 0
    return rm.ScalarVolume(values, **{"world_from_index": SHIFTED, **more})


def fit(degree=0, shape=(40, 33, 20)):
    """Fitted volume that is empty but for a ball, whose colours depend on the direction."""
    activation, rng = rm.Activation("softplus", -2.0, 0.1, "sigmoid"), np.random.default_rng(degree)
    density = rng.normal(0, 3, shape).astype(np.float32)
    x, y, z = np.ogrid[tuple(slice(n) for n in shape)]
    density[(x - 9) ** 2 + (y - 12) ** 2 + (z - 8) ** 2 > 36] = activation.empty
    features = rng.normal(0, 1, (*shape, 3 * (degree + 1) ** 2)).astype(np.float32)
    features[density == density.dtype.type(activation.empty)] = 0
    return rm.Volume(density, features, SHIFTED, activation, (0.25, 0.5, 0.75))


def saved(folder, volume, name="a.vdb", **how):
    rm.save(volume, folder / name, True, **how)
    return folder / name


def made(folder, *grids, **how):
    (folder / "a.vdb").write_bytes(file_of(grids, **how))
    return folder / "a.vdb"


def leaf(kind="float", inactive=(), seed=0):
    """Values and mask (8, 8, 8) of a leaf whose inactive values are some of `inactive`."""
    rng = np.random.default_rng(seed)
    width = 3 if kind.startswith("vec3") else 1
    values = rng.integers(1, 99, (8, 8, 8, width)) + (0.25 if kind[0] in "fdhv" else 0)
    active = rng.random((8, 8, 8)) < 0.6
    active[0, 0, 0] = active[7, 7, 7] = True
    values[~active] = rng.choice(inactive or (0,), (int((~active).sum()), 1))
    return (values if width == 3 else values[..., 0]), active


def dense(grid, low, shape):
    """Values (x, y, z) of a grid that was put together, voxel by voxel; larger tiles first."""
    out = np.empty((*shape, *np.shape(grid.background)))
    out[:] = grid.background
    cubes = [(o, s, value) for (o, s), (value, _) in sorted(grid.tiles.items(), key=lambda one: -one[0][1])]
    cubes += [(o, 8, values) for o, (values, _) in grid.leaves.items()]
    for origin, side, values in cubes:
        ends = [(max(o, a), min(o + side, a + n)) for o, a, n in zip(origin, low, shape, strict=True)]
        if all(a < b for a, b in ends):
            there = tuple(slice(a - n, b - n) for (a, b), n in zip(ends, low, strict=True))
            here = tuple(slice(a - n, b - n) for (a, b), n in zip(ends, origin, strict=True))
            out[there] = values[here] if np.shape(values)[:3] == (8, 8, 8) else values
    return out


# What raymarch writes.


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_what_is_written_is_taken_apart_to_the_same_numbers(how, tmp_path):
    volume = fog()
    taken = Taken(saved(tmp_path, volume, **how).read_bytes())
    grid, values = taken.grids["density"], volume.values
    there = {tuple(at.tolist()): values[tuple(at)] for at in np.argwhere(values)}
    assert taken.version == 224 and list(taken.grids) == ["density"]
    assert grid["voxels"].keys() == there.keys()  # nothing that is 0 is active, nor beyond the shape
    np.testing.assert_allclose(
        [grid["voxels"][at][0] for at in there], list(there.values()), rtol=ROUNDING if how["half"] else 0
    )
    assert grid["leaves"] == list(itertools.product((0, 16), (0, 8), (0, 8)))  # none where nothing is
    notes = grid["metadata"]
    assert (notes["class"], notes["file_voxel_count"]) == ("fog volume", (len(there),))
    assert (notes["file_bbox_min"], notes["file_bbox_max"]) == ((0, 0, 0), tuple(n - 1 for n in SHAPE))
    assert ("is_saved_as_half_float" in notes) == how["half"] == grid["type"].endswith("_HalfFloat")
    assert grid["flags"] == (3 if how["compression"] == "zip" else 2)


@pytest.mark.parametrize("name", MAPS)
def test_a_place_is_written_as_the_simplest_map_that_holds_it(name, tmp_path):
    taken = Taken(saved(tmp_path, fog(world_from_index=MAPS[name])).read_bytes())
    stored = taken.grids["density"]["map"]
    assert stored[0] == name
    np.testing.assert_allclose(matrix_of(*stored), MAPS[name], rtol=1e-15)
    np.testing.assert_allclose(rm.load(tmp_path / "a.vdb").world_from_index, MAPS[name], rtol=1e-15)


def test_a_mirrored_volume_comes_back(tmp_path):
    found = rm.load(saved(tmp_path, fog(world_from_index=MIRRORED)))
    np.testing.assert_array_equal(found.world_from_index, MIRRORED)


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_scalars_come_back(how, tmp_path):
    volume = fog(unit="1/cm", length_unit="cm", world="RAS", name="smoke", background=(0.1, 0.2, 0.3))
    found = rm.load(saved(tmp_path, volume, **how))
    np.testing.assert_allclose(found.values, volume.values, rtol=ROUNDING if how["half"] else 0)
    for name in ("shape", "unit", "length_unit", "world", "name", "background"):
        assert getattr(found, name) == getattr(volume, name)


def test_a_volume_wider_than_a_node_comes_back_and_its_bytes_are_the_same_twice(tmp_path):
    values = np.zeros((140, 3, 4150), np.float32)
    values[::7, :, ::50] = RNG.random((20, 3, 83))
    path = saved(tmp_path, rm.ScalarVolume(values))
    np.testing.assert_array_equal(rm.load(path).values, values)
    leaves = Taken(path.read_bytes()).grids["density"]["leaves"]
    tops = [tuple(n // 4096 for n in at) for at in leaves]
    assert tops == sorted(tops) and len(set(tops)) == 2
    before = path.read_bytes()
    assert saved(tmp_path, rm.ScalarVolume(values)).read_bytes() == before
    assert saved(tmp_path, rm.ScalarVolume(values + 1)).read_bytes()[21:57] != before[21:57]  # told apart


def test_nothing_at_all_is_kept_with_its_shape(tmp_path):
    found = rm.load(saved(tmp_path, rm.ScalarVolume(np.zeros((5, 6, 7), np.int16))))
    assert (found.shape, found.values.dtype, found.range) == ((5, 6, 7), np.int16, (0, 0))


def test_what_single_and_half_precision_cannot_hold_is_told(tmp_path, caplog):
    wide = rm.ScalarVolume(RNG.random((4, 5, 6)))
    assert rm.load(saved(tmp_path, wide)).values.dtype == np.float32
    assert "OpenVDB has no float64: float32 rounds values by up to" in caplog.text
    large = rm.ScalarVolume(np.full((4, 5, 6), 7e4, np.float32))
    refused(lambda: saved(tmp_path, large, half=True), "has values up to 70000, want at most 65504", "without half")
    np.testing.assert_array_equal(rm.load(saved(tmp_path, large)).values, large.values)


def test_options_of_writing_are_told_where_a_format_has_none(tmp_path):
    for options in ({"half": True}, {"compression": "none"}):
        name = next(iter(options))
        said = f"a.npz: {name} is given, which NPZ does not take, but OpenVDB (.vdb); leave it out"
        refused(lambda options=options: rm.save(fog(), tmp_path / "a.npz", **options), said)
    refused(
        lambda: rm.save(fog(), tmp_path / "a.vdb", compression="gzip"), "compression is 'gzip', want one of zip, none"
    )
    assert not list(tmp_path.iterdir())


# Fits.


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_a_fit_comes_back_as_extinction_and_mean_colours(degree, sparse, tmp_path):
    volume = fit(degree)
    found = rm.load(saved(tmp_path, volume.sparse() if sparse else volume))
    assert (found.shape, found.degree, found.background) == (volume.shape, 0, volume.background)
    np.testing.assert_allclose(found.world_from_index, volume.world_from_index, atol=1e-12)
    there = volume.density > volume.activation.empty
    assert not found.density[~there].any()
    np.testing.assert_allclose(found.density[there], volume.sigma()[there], rtol=1e-6)
    shown = np.clip(0.28209479177 * found.features.astype(float) + 0.5, 0, None)
    directions = RNG.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    directions = np.concatenate([directions, -directions])
    basis = rm.volumes.harmonics.basis(degree, directions)
    raw = np.einsum("nkc,dk->ndc", volume.features[there][:50].reshape(50, -1, 3).astype(float), basis)
    mean = (1 / (1 + np.exp(-raw))).mean(1)
    np.testing.assert_allclose(shown[there][:50], mean, atol=1e-6 if degree == 0 else 0.05)


def test_a_fit_s_grids_are_its_bricks_with_the_colour_of_nothing_around(tmp_path):
    volume = fit().sparse()
    taken = Taken(saved(tmp_path, volume).read_bytes())
    bricks = [tuple((8 * at).tolist()) for at in np.argwhere(volume.bricks.table >= 0)]
    assert sorted(taken.grids["Cd"]["leaves"]) == sorted(bricks)
    assert set(taken.grids["density"]["leaves"]) <= set(bricks)
    np.testing.assert_allclose(taken.grids["Cd"]["background"], [0.21404114] * 3, rtol=1e-6)  # linear light of 0.5
    found = rm.load(tmp_path / "a.vdb")
    np.testing.assert_array_equal(found.bricks.table >= 0, volume.bricks.table >= 0)
    said = rm.describe(tmp_path / "a.vdb")
    assert (said.shape, said.bricks, said.bytes_in_memory) == (found.shape, found.bricks.count, found.nbytes)
    np.testing.assert_allclose(said.box, found.box)


def test_a_fit_in_half_precision_is_within_a_thousandth(tmp_path):
    volume = fit()
    found = rm.load(saved(tmp_path, volume, half=True))
    there = volume.density > volume.activation.empty
    np.testing.assert_allclose(found.density[there], volume.sigma()[there], rtol=1e-3, atol=1e-6)
    wanted = rm.load(saved(tmp_path, volume, "b.vdb"))
    np.testing.assert_allclose(0.2821 * found.features, 0.2821 * wanted.features, atol=1e-3)


def test_a_part_of_a_fit_is_that_of_the_fit_and_a_channel_is_a_scalar(tmp_path):
    path = saved(tmp_path, fit())
    whole = rm.load(path)
    part = rm.load(path, crop=((2, 30), (3, 33), (0, 20)), stride=(2, 3, 1))
    np.testing.assert_array_equal(part.density, whole.density[2:30:2, 3:33:3])
    np.testing.assert_allclose(part.features, whole.features[2:30:2, 3:33:3], atol=1e-6)
    np.testing.assert_allclose(part.world_from_index @ [1, 1, 1, 1], whole.world_from_index @ [4, 6, 1, 1])
    green = rm.load(path, channel=2)
    assert (green.name, rm.load(path, channel=0).name) == ("Cd", "density")
    np.testing.assert_array_equal(rm.load(path, channel=0).values, whole.density)
    refused(lambda: rm.load(path, channel=4), "channel is 4, but it has 4 (0 density, 1 Cd[0], 2 Cd[1], 3 Cd[2])")


def test_nested_boxes_and_ndc_are_refused_with_the_cure(tmp_path):
    boxes = rm.Volume(np.zeros((8, 4, 4)), np.zeros((8, 4, 4, 3)), np.eye(4), boxes=2)
    refused(lambda: saved(tmp_path, boxes), "is of 2 nested boxes, want one grid in the world", "volume.nested(0)")
    assert rm.load(saved(tmp_path, boxes.nested(0))).shape == (4, 4, 4)


def test_a_fit_is_converted_there_and_back_on_the_command_line(tmp_path, capsys):
    volume = fit()
    rm.save(volume, tmp_path / "v.h5")
    said = run(capsys, "convert", tmp_path / "v.h5", tmp_path / "v.vdb")
    assert "v.vdb: Volume(40 x 33 x 20 samples" in said
    run(capsys, "convert", tmp_path / "v.vdb", tmp_path / "back.h5")
    back = rm.load(tmp_path / "back.h5")
    there = volume.density > volume.activation.empty
    np.testing.assert_allclose(back.sigma()[there], volume.sigma()[there], rtol=1e-6)
    assert "of 75" in run(capsys, "info", tmp_path / "v.vdb")
    record = json.loads(run(capsys, "info", tmp_path / "v.vdb", "--channel", "0", "--json"))
    assert (record["name"], record["shape"]) == ("density", [40, 33, 20])
    small = run(capsys, "convert", tmp_path / "v.h5", tmp_path / "h.vdb", "--half", "--compression", "none", "--json")
    assert json.loads(small)["bytes"] == (tmp_path / "h.vdb").stat().st_size
    taken = Taken((tmp_path / "h.vdb").read_bytes())
    assert {grid["flags"] for grid in taken.grids.values()} == {2}
    refused(lambda: run(capsys, "convert", tmp_path / "v.h5", tmp_path / "v.npz", "--half"), "which NPZ does not take")


# What raymarch reads.

INACTIVE = {
    "background": (2.0,), "negative": (-2.0,), "one": (7.0,), "signs": (2.0, -2.0), "one or background": (2.0, 7.0),
    "two": (7.0, 9.0), "many": (7.0, 8.0, 9.0),
}  # fmt: skip


@pytest.mark.parametrize("inactive", INACTIVE)
@pytest.mark.parametrize("flags", [0, ZIP, MASK, MASK | ZIP])
def test_inactive_values_are_read_however_they_are_stored(flags, inactive, tmp_path):
    for half in (False, True):
        grid = Made(flags=flags, half=half, background=2.0)
        grid.leaves = {(0, 0, 0): leaf(inactive=INACTIVE[inactive]), (8, 0, 0): leaf(seed=1, inactive=INACTIVE["two"])}
        found = rm.load(made(tmp_path, grid))
        np.testing.assert_array_equal(found.values, dense(grid, (0, 0, 0), (16, 8, 8)))


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("kind", ["float", "double", "half", "int32", "int64", "vec3s", "vec3d"])
def test_every_type_of_values_is_read(kind, half, tmp_path):
    back = (2, 3, 4) if kind.startswith("vec3") else 2
    grid = Made(kind=kind, half=half and kind != "half", background=back, flags=ZIP | MASK)
    grid.leaves = {(-8, 128, 4096): leaf(kind)}
    path, wanted = made(tmp_path, grid), dense(grid, (-8, 128, 4096), (8, 8, 8))
    for channel in range(3) if kind.startswith("vec3") else [None]:
        found = rm.load(path, channel=channel)
        np.testing.assert_array_equal(found.values, wanted if channel is None else wanted[..., channel])
        np.testing.assert_array_equal(found.origin, (-8, 128, 4096))


@pytest.mark.parametrize("name", sorted({"TranslationMap": 0, "UnitaryMap": 0, **MAPS}))
def test_every_map_is_read(name, tmp_path):
    scale, shift = ((2.0, 2.0, 2.0) if "Uniform" in name else (2.0, 3.0, 4.0)), (5.0, 6.0, 7.0)
    numbers = (*scale, *scale, *(1 / x for x in scale), *(x**-2 for x in scale), *(0.5 / x for x in scale))
    if "Translate" in name or name == "TranslationMap":
        numbers = shift + (() if name == "TranslationMap" else numbers)
    if name in ("AffineMap", "UnitaryMap"):
        numbers = tuple(PLACES["turned"].T.ravel())
    found = rm.load(made(tmp_path, Made(map=(name, numbers), leaves={(0, 0, 0): leaf()})))
    np.testing.assert_allclose(found.world_from_index, matrix_of(name, numbers))


def test_tiles_of_every_size_are_read_and_a_part_of_them(tmp_path):
    grid = Made(flags=ZIP | MASK, leaves={(0, 0, 120): leaf()})
    grid.tiles = {((8, 0, 120), 8): (3.5, True), ((0, 0, 128), 128): (4.5, True), ((8, 8, 120), 8): (6.5, False)}
    found = rm.load(made(tmp_path, grid))
    np.testing.assert_array_equal(found.values, dense(grid, (0, 0, 120), (128, 128, 136)))
    part = rm.load(tmp_path / "a.vdb", crop=((3, 20), (2, 18), (1, 30)), stride=(2, 3, 4))
    np.testing.assert_array_equal(part.values, found.values[3:20:2, 2:18:3, 1:30:4])


def test_a_tile_beyond_the_budget_is_refused_and_a_part_of_it_is_read(tmp_path):
    path = made(tmp_path, Made(tiles={((-4096, 0, 0), 4096): (2.5, True)}))
    assert rm.describe(path).shape == (4096, 4096, 4096)
    refused(lambda: rm.load(path), "over the budget of", "of which crop or stride read a part")
    part = rm.load(path, crop=((4000, 4096), (5, 9), (8, 11)))
    assert part.shape == (96, 4, 3) and part.range == (2.5, 2.5) and part.origin.tolist() == [-96, 5, 8]


def test_colours_beside_fog_of_others_make_a_volume_and_sparse_ones_bricks(tmp_path):
    density, colours = Made(), Made("Cd", "vec3s", background=(0.2, 0.4, 0.6), metadata={})
    density.leaves = {(8, -16, 0): leaf(), (64, 40, 0): leaf(seed=1)}
    density.tiles = {((16, -16, 0), 8): (3.0, True)}
    colours.leaves = {(8, -16, 0): (np.full((8, 8, 8, 3), 0.21404114), np.ones((8, 8, 8), bool))}
    path = made(tmp_path, colours, density)
    found = rm.load(path)
    assert found.bricks.count == 3
    np.testing.assert_array_equal(found.density, dense(density, (8, -16, 0), found.shape))
    np.testing.assert_allclose(found.features[:8, :8, :8], 0, atol=1e-6)
    display = 1.055 * np.power((0.2, 0.4, 0.6), 1 / 2.4) - 0.055
    np.testing.assert_allclose(0.28209479177 * found.features[60, 60, 5] + 0.5, display, atol=1e-6)
    np.testing.assert_array_equal(rm.load(path, stride=2).density, found.density[::2, ::2, ::2])
    assert rm.describe(path).bytes_in_memory == found.nbytes


def test_the_density_is_taken_of_several_grids_and_the_others_are_named(tmp_path, caplog):
    names = ("heat", "density", "v")
    grids = [
        Made(name, "vec3s" if name == "v" else "float", background=(0, 0, 0) if name == "v" else 0) for name in names
    ]
    for seed, grid in enumerate(grids):
        grid.leaves = {(0, 0, 0): leaf(grid.kind, seed=seed)}
    path = made(tmp_path, *grids)
    assert rm.load(path).name == "density"
    assert "has grids heat, density, v, of which density is taken; for heat choose one by channel=0" in caplog.text
    np.testing.assert_array_equal(rm.load(path, channel=0).values, dense(grids[0], (0, 0, 0), (8, 8, 8)))
    assert rm.describe(path, channel=0).name == "heat"
    refused(lambda: rm.load(path, time=1), "time is 1, but there is only one")
    path = made(tmp_path, grids[2])
    refused(lambda: rm.load(path), "has 3 channels (0 v[0], 1 v[1], 2 v[2]), none of a scalar; choose one by channel=0")


def test_channels_that_a_file_of_colours_does_not_keep_are_named(tmp_path, caplog):
    affine = np.diag([0.1, 0.1, 0.1, 1])
    bands = rm.Volume(np.ones((9, 9, 9)), np.ones((9, 9, 9, 2)), affine, channels=("nir", "thermal"))
    with caplog.at_level(logging.WARNING, "raymarch"):
        rm.save(bands, tmp_path / "bands.vdb")
    assert "the file gets colours alone" in caplog.text and "of nir, thermal; volume.in_colour(names)" in caplog.text


def test_colours_on_another_grid_stay_unread(tmp_path, caplog):
    colours = Made("Cd", "vec3s", background=(0, 0, 0), map=("TranslationMap", (0.5, 0, 0)))
    found = rm.load(
        made(tmp_path, Made(leaves={(0, 0, 0): leaf()}), replace(colours, leaves={(0, 0, 0): leaf("vec3s")}))
    )
    assert isinstance(found, rm.ScalarVolume)
    assert "has colours (Cd) on another grid than density, which stay unread" in caplog.text


def test_copies_share_a_tree_and_bear_its_name_with_a_number(tmp_path):
    first = Made("a\x1e0", leaves={(0, 0, 0): leaf()}, map=("TranslationMap", (1, 2, 3)))
    path = made(tmp_path, first, Made("a\x1e1", parent="a\x1e0", map=("TranslationMap", (4, 5, 6))))
    found = [rm.load(path, channel=k) for k in (0, 1)]
    np.testing.assert_array_equal(found[0].values, found[1].values)
    assert [(one.name, one.origin.tolist()) for one in found] == [("a[0]", [1, 2, 3]), ("a[1]", [4, 5, 6])]
    refused(lambda: rm.load(made(tmp_path, first, Made("b", parent="c"))), "has the tree of 'c', which there is not")


@pytest.mark.extra
def test_values_packed_by_blosc_are_read_with_its_library_and_told_without(tmp_path, monkeypatch):
    require_extra("imagecodecs", "formats")
    grid = Made(flags=BLOSC | MASK, leaves={(0, 0, 0): leaf(), (8, 0, 0): leaf(seed=1)})
    grid.leaves[0, 8, 0] = (np.full((8, 8, 8), 2.5), np.arange(512).reshape(8, 8, 8) < 20)
    path = made(tmp_path, grid)
    np.testing.assert_array_equal(rm.load(path).values, dense(grid, (0, 0, 0), (16, 11, 8)))
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    said = 'is packed by Blosc, which takes imagecodecs; pip install "raymarch[formats]", or pack it by zip: vdb_tool'
    refused(lambda: rm.load(path), said)


# What is refused.

LEAF = {(0, 0, 0): leaf()}
REFUSED = {
    "level set": (Made("ls", leaves=LEAF, metadata={"class": "level set"}), "'ls' is a level set", "-ls2fog"),
    "points": (Made(type="Tree_ptdataidx32_5_4_3", leaves=LEAF), "holds points", "-vdb2points -points2ls -ls2fog"),
    "booleans": (Made(type="Tree_bool_5_4_3", leaves=LEAF), "is a Tree_bool_5_4_3, want one of", "copyToArray"),
    "index": (Made(type="Tree_ptidx32_5_4_3", leaves=LEAF), "holds points"),
    "other nodes": (Made(type="Tree_float_4_4_4", leaves=LEAF), "is a Tree_float_4_4_4, want one of"),
    "frustum": (Made(map=("NonlinearFrustumMap", (0.0,) * 20), leaves=LEAF), "'NonlinearFrustumMap'", "VDB Resample"),
    "nothing": (Made(), "has no active voxel, want some"),
    "two buffers": (Made(buffers=2, leaves=LEAF), "has 2 values for each voxel"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_grid_of_another_kind_is_refused_with_the_cure(name, tmp_path):
    grid, *said = REFUSED[name]
    path = made(tmp_path, grid)
    for verb in (rm.load, rm.describe):
        refused(lambda verb=verb: verb(path), "a.vdb: ", "; ", *said)
    if name not in ("nothing", "two buffers"):  # which are of the tree, that only who chooses the grid reads
        assert rm.load(made(tmp_path, grid, Made("fog", leaves=LEAF))).name == "fog"


def test_files_of_other_versions_and_streams_are_refused(tmp_path):
    grid = Made(leaves=LEAF)
    refused(
        lambda: rm.load(made(tmp_path, grid, version=218)), "is of version 218, want 222 to 224; save it again: vdb"
    )
    refused(lambda: rm.load(made(tmp_path, grid, version=300)), "is of version 300, want 222 to 224; save it by")
    refused(lambda: rm.load(made(tmp_path, grid, seekable=False)), "is a stream that does not say where its grids are")
    refused(lambda: rm.load(made(tmp_path, count=0)), "has 0 grids, want one or more")
    assert rm.load(made(tmp_path, grid, version=222)).shape == (8, 8, 8)


def test_absurd_counts_are_refused_before_memory_is_taken(tmp_path):
    whole = file_of([Made(leaves=LEAF, metadata={})])
    refused(lambda: rm.load(made(tmp_path, Made(leaves=LEAF), count=2**31 - 1)), "ends too early")
    for at, what in ((57, "entries of metadata"), (65, "has a name of")):
        (tmp_path / "a.vdb").write_bytes(whole[:at] + b"\xff\xff\xff\x7f" + whole[at + 4 :])
        refused(lambda: rm.load(tmp_path / "a.vdb"), what, "restore it from a copy")


def test_a_shape_that_was_altered_is_told(tmp_path):
    data = saved(tmp_path, fog()).read_bytes()
    at = data.index(b"raymarch_shape\5") + len(b"raymarch_shape\5\0\0\0vec3i\0\0\0") + 4
    (tmp_path / "a.vdb").write_bytes(data[:at] + b"\1" + data[at + 1 :])
    refused(lambda: rm.load(tmp_path / "a.vdb"), "has a shape noted that was altered; restore it from a copy")


def damaged(data, rng):
    """A copy with one to three faults: bits that changed, absurd numbers, bytes that are gone, twice there or cut."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(out)) if rng.random() < 0.4 else rng.integers(min(len(out), 1200)))
        kind = rng.integers(5)
        if kind == 0:
            out[at] ^= 1 << rng.integers(8)
        elif kind == 1:
            out[at : at + 4] = bytes([int(rng.choice([0, 127, 128, 255]))]) * 4
        elif kind == 2:
            del out[at : at + int(rng.integers(1, 9))]
        elif kind == 3:
            out[at:at] = out[at : at + 16]
        else:
            del out[max(at, 1) :]
    return bytes(out)


def damaged_kinds(folder):
    """Files of ours and of others, of all that there is to get wrong."""
    density, colours = Made(flags=ZIP | MASK), Made("Cd", "vec3s", background=(0, 0, 0), flags=MASK)
    density.leaves, colours.leaves = {(0, 0, 0): leaf(inactive=(7, 9)), (8, 0, 0): leaf()}, {(0, 0, 0): leaf("vec3s")}
    density.tiles = {((16, 0, 0), 8): (2.0, True)}
    yield saved(folder, fog()).read_bytes()
    yield saved(folder, fit(shape=(18, 17, 16)), half=True).read_bytes()
    yield file_of([density, colours])
    yield file_of([replace(density, flags=0, half=True), Made("b", leaves=LEAF), Made("c", parent="b")])


@pytest.mark.parametrize("kind", [0, whole(1), whole(2), whole(3)])
def test_five_hundred_damaged_files_of_a_kind_are_a_volume_or_one_line(kind, tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.CRITICAL)
    budget = 2_000_000
    monkeypatch.setenv("RAYMARCH_FILE_GB", str(budget / 1e9))
    whole, rng = list(damaged_kinds(tmp_path))[kind], np.random.default_rng(kind)
    path, read = tmp_path / "b.vdb", 0
    path.write_bytes(whole)
    rm.load(path)
    tracemalloc.start()
    try:
        for _ in range(500):
            path.write_bytes(damaged(whole, rng))
            read += one_line_or_a_volume(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < read < 250
    assert peak < 8 * budget + len(whole)  # a node's values, colours in doubles, and what waits for collection


@pytest.mark.parametrize("kind", range(4))
def test_a_file_that_is_cut_is_told(kind, tmp_path):
    whole, path = list(damaged_kinds(tmp_path))[kind], tmp_path / "b.vdb"
    for size in np.unique(np.linspace(1, len(whole) - 1, 40).astype(int)):
        path.write_bytes(whole[:size])
        assert not one_line_or_a_volume(path), size


def test_a_volume_of_other_channels_is_written_as_it_is_shown_and_that_is_said(tmp_path, caplog):
    values = np.random.default_rng(0).normal(size=(9, 9, 9, 4))
    names = ("red", "green", "blue", "heat")
    plain = rm.Activation("relu", 0.0, 1.0, "identity")
    volume = rm.Volume(np.ones((9, 9, 9)), values, np.eye(4), plain, background=(0, 0, 0, 0), channels=names)
    rm.save(volume, tmp_path / "heat.vdb")
    assert "the file gets colours alone" in caplog.text
    rm.save(volume.in_colour(), tmp_path / "shown.vdb")
    assert (tmp_path / "heat.vdb").read_bytes() == (tmp_path / "shown.vdb").read_bytes()
