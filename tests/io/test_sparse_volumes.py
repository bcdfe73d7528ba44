"""Laws of files of sparse volumes: they come back bit for bit, and a table that is wrong is refused by name."""

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from raymarch import cli, runtime
from raymarch.device.memory import memory_of_rendering
from raymarch.errors import RaymarchError
from raymarch.fitting.forecast import forecast_rendering
from raymarch.geometry.boxes import affine_of_box
from raymarch.geometry.ndc import ndc_of_frustum
from raymarch.io.files import strict
from raymarch.io.volumes.volume_file import describe, load, save
from raymarch.system import resources
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import Bricks
from raymarch.volumes.volume import Volume

SHAPE = (24, 9, 17)  # 3 x 2 x 3 bricks, of which the last stick out


def sparse(shape=SHAPE, degree=0, dtype=np.float32, count=5, **more) -> Volume:
    """Volume of random bricks at random places, in no order."""
    rng = np.random.default_rng(11)
    size = tuple(-(-n // 8) for n in shape)
    table = np.full(size, -1, np.int32)
    table.flat[rng.choice(table.size, count, replace=False)] = rng.permutation(count)
    density = rng.normal(size=(count, 8, 8, 8)).astype(dtype)
    features = rng.normal(size=(*density.shape, 3 * (degree + 1) ** 2)).astype(dtype)
    affine = affine_of_box([(-1, -2, -3), (1, 2, 0.1)], shape)
    given = {"activation": Activation("softplus", 0.1, 0.3), "provenance": {"steps": 12, "views": ["a", "ü"]}, **more}
    return Volume.of_bricks(Bricks(table, density, features), shape, affine, **given)


def require_equal(a: Volume, b: Volume):
    for name in ("table", "density", "features"):
        x, y = getattr(a.bricks, name), getattr(b.bricks, name)
        assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())
    assert a.world_from_index.tobytes() == b.world_from_index.tobytes()
    assert (a.shape, a.activation, a.background, a.boxes) == (b.shape, b.activation, b.background, b.boxes)
    np.testing.assert_equal(a.ndc_from_world, b.ndc_from_world)
    assert dict(a.provenance) == dict(b.provenance)


def digest_by_hand(file: h5py.File) -> bytes:
    """As docs/hdf5.md says."""
    sha = hashlib.sha256()
    for name in sorted(file):
        array = np.asarray(file[name][()], file[name].dtype)
        sha.update(f"dataset {name} {array.dtype.str} {list(array.shape)}\n".encode() + array.tobytes())
    for owner in ["/", *sorted(file)]:
        for name in sorted(set(file[owner].attrs) - {"digest"}):
            value = np.asarray(file[owner].attrs[name])
            sha.update(f"attribute {owner} {name} {value.dtype.str} {list(value.shape)}\n".encode() + value.tobytes())
    return sha.hexdigest().encode()


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "ball.h5"
    save(sparse(), path)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("degree", "boxes", "count"), [(0, 1, 5), (1, 1, 18), (2, 3, 1), (3, 1, 7), (0, 1, 0)])
def test_round_trip_is_exact(tmp_path, dtype, degree, boxes, count):
    volume = sparse(degree=degree, dtype=dtype, boxes=boxes, count=count, background=(0.1, 0.2, 1.0))
    save(volume, tmp_path / "a.h5")
    again = load(tmp_path / "a.h5")
    require_equal(again, volume)
    np.testing.assert_array_equal(again.density, volume.density)


def test_a_sparse_volume_in_ndc_comes_back(tmp_path):
    place = affine_of_box([(-1, -1, -1), (1, 1, 1)], SHAPE)
    volume = replace(sparse(), world_from_index=place, ndc_from_world=ndc_of_frustum(np.eye(4), 0.3))
    save(volume, tmp_path / "a.h5")
    require_equal(load(tmp_path / "a.h5"), volume)
    assert describe(tmp_path / "a.h5").ndc


def test_a_reader_without_raymarch_finds_the_samples(saved):
    """By h5py and the words of docs/hdf5.md alone."""
    volume = load(saved)
    with h5py.File(saved) as file:
        assert file.attrs["format_version"] == 4
        assert set(file) == {"table", "density", "features", "world_from_index", "background", "provenance"}
        shape, empty = file["table"].attrs["shape"], -25.0 - file["density"].attrs["shift"]
        assert file["table"].dtype == np.dtype("<i4")
        assert file["table"].attrs["edge"] == 8
        assert file["density"].attrs["axes"] == b"brick, x, y, z"
        assert file["features"].attrs["axes"] == b"brick, x, y, z, channel"
        assert file["density"].chunks[1:] == (8, 8, 8) and file["features"].chunks[1:] == (8, 8, 8, 3)
        table, values, colours = (file[name][()] for name in ("table", "density", "features"))
        stored, digest = file.attrs["digest"], digest_by_hand(file)
        assert json.loads(file["provenance"][()]) == dict(volume.provenance)
    density, features = volume.density, volume.features
    for i, j, k in np.ndindex(*shape):
        number = table[i // 8, j // 8, k // 8]
        inside = (number, i % 8, j % 8, k % 8)
        assert density[i, j, k] == (values[inside] if number >= 0 else np.float32(empty))
        assert features[i, j, k].tolist() == (colours[inside].tolist() if number >= 0 else [0, 0, 0])
    assert stored == digest


def test_the_documented_example_runs(tmp_path, monkeypatch, capsys):
    text = (Path(__file__).parents[2] / "docs" / "hdf5.md").read_text(encoding="utf-8")
    code = text.split("## Sparse volumes")[1].split("```python")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out == "Bricks(64 of 12 x 12 x 12, 3 channels) 531,200 bytes of 14,155,776\n"


def test_info_says_bricks_and_bytes(saved, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["info", str(saved)])
    out = " ".join(capsys.readouterr().out.split())
    assert not ended.value.code
    assert "shape 24 9 17 " in out and "bricks 5 of 18" in out and f"bytes_in_memory {sparse().nbytes:,}" in out


def test_chunks_are_of_whole_bricks_and_small(tmp_path):
    save(sparse((128, 64, 64), count=300), tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["density"].chunks == (64, 8, 8, 8)
        assert file["features"].chunks == (21, 8, 8, 8, 3)


@pytest.mark.parametrize("degree", [0, 3])
def test_bricks_of_zeros_are_no_bomb(tmp_path, degree):
    table = np.full((64, 64, 64), -1, np.int32)
    table.flat[:64] = np.arange(64)
    cubes = np.zeros((64, 8, 8, 8))
    bricks = Bricks(table, cubes, np.zeros((*cubes.shape, 3 * (degree + 1) ** 2)))
    volume = Volume.of_bricks(bricks, (512,) * 3, np.eye(4))
    save(volume, tmp_path / "a.h5")
    require_equal(load(tmp_path / "a.h5"), volume)


def test_description_says_bricks_and_their_bytes(saved):
    volume, found = sparse(), describe(saved)
    assert (found.shape, found.degree, found.bricks) == (SHAPE, 0, 5)
    assert found.bytes_in_memory == volume.nbytes == 18 * 4 + 5 * 512 * 4 * 4
    assert found.activation == volume.activation
    np.testing.assert_array_equal(found.box, volume.box)
    assert found.record()["bricks"] == 5


def test_a_thousand_samples_a_side_take_the_memory_of_their_bricks(tmp_path):
    volume = sparse((1024,) * 3, count=50)
    save(volume, tmp_path / "a.h5")
    assert (tmp_path / "a.h5").stat().st_size < 600_000
    assert describe(tmp_path / "a.h5").bytes_in_memory < 9_000_000
    require_equal(load(tmp_path / "a.h5"), volume)


def test_a_part_of_a_sparse_file_is_that_of_the_dense_one(tmp_path):
    how = {"crop": ((3, 24), (0, 9), (2, 17)), "stride": (2, 1, 3)}
    save(sparse(degree=1), tmp_path / "a.h5")
    save(sparse(degree=1).dense(), tmp_path / "b.h5")
    mine, its = load(tmp_path / "a.h5", **how), load(tmp_path / "b.h5", **how)
    assert (mine.bricks, mine.shape) == (None, (11, 9, 5))
    for name in ("density", "features", "world_from_index"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(its, name))


def test_a_part_of_a_sparse_file_beyond_the_memory_is_refused_with_its_bytes(tmp_path, monkeypatch):
    save(sparse((1024,) * 3, count=50), tmp_path / "a.h5")
    monkeypatch.setattr(resources, "free_bytes", lambda: 10**9)
    said = "512 x 512 x 512 samples take 2,147,483,648 bytes but 1,000,000,000 are free; take a smaller part"
    with pytest.raises(RaymarchError, match=said):
        load(tmp_path / "a.h5", stride=2)
    assert load(tmp_path / "a.h5", stride=64).shape == (16, 16, 16)


@pytest.mark.parametrize("count", [5, 0])
def test_arrays_are_packed_and_summed_as_the_document_says(tmp_path, count):
    """But for a text and datasets of no bricks, which lie there as they are."""
    save(sparse(count=count), tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        plain = {name for name in file if file[name].chunks is None}
        packed = {name for name in file if file[name].compression == "gzip" and file[name].shuffle}
        assert {name for name in file if file[name].fletcher32} == set(file) - plain
    assert plain == {"provenance"} | (set() if count else {"density", "features"})
    assert packed == {"density", "features", "table"} - plain


def test_a_dense_volume_is_written_byte_for_byte_as_ever(tmp_path):
    """Against a file of version 1 that is written here by h5py alone."""
    rng = np.random.default_rng(2)
    density, features = rng.normal(size=(5, 20, 6)), rng.normal(size=(5, 20, 6, 12)).astype("f4")
    affine = affine_of_box([(-1, -2, -3), (1, 2, 0.1)], (5, 20, 6))
    notes = [
        ("/", "format", b"raymarch-volume"), ("/", "format_version", 1), ("density", "axes", b"x, y, z"),
        ("density", "activation", b"softplus"), ("density", "shift", 0.1), ("density", "scale", 0.3),
        ("density", "unit", b"sigma in 1/world unit after the activation; scale in world unit"),
        ("features", "axes", b"x, y, z, channel"), ("features", "activation", b"sigmoid"),
        ("features", "basis", b"real spherical harmonics"), ("features", "degree", 1),
        ("features", "channels", b"3 k + c"), ("world_from_index", "unit", b"world unit"),
        ("provenance", "encoding", b"JSON"),
    ]  # fmt: skip
    activation = Activation("softplus", 0.1, 0.3)
    volume = Volume(density, features, affine, activation, (0.1, 0.2, 1.0), {"steps": 12})
    save(volume, tmp_path / "first.h5")  # what a first save loads takes longer than the second that files note
    with h5py.File(old := io.BytesIO(), "w", libver=("v110", "v110")) as file:
        packed = {"fletcher32": True, "compression": "gzip", "compression_opts": 1, "shuffle": True}
        file.create_dataset("density", data=density, chunks=(5, 16, 6), **packed)
        file.create_dataset("features", data=features, chunks=(5, 16, 6, 12), **packed)
        file.create_dataset("world_from_index", data=affine, chunks=(4, 4), fletcher32=True)
        file.create_dataset("background", data=np.array([0.1, 0.2, 1.0]), chunks=(3,), fletcher32=True)
        file.create_dataset("provenance", data=np.bytes_(b'{"steps": 12}'))
        for owner, name, value in notes:
            file[owner].attrs.create(name, np.array(value))
        file.attrs.create("digest", np.array(digest_by_hand(file)))
    save(volume, tmp_path / "new.h5")
    assert (tmp_path / "new.h5").read_bytes() == old.getvalue()
    again = load(tmp_path / "new.h5")
    assert again.bricks is None
    assert again.density.tobytes() == volume.density.tobytes()
    assert describe(tmp_path / "new.h5").bricks is None


# Bad files


def replaced(name, data, **how):
    def edit(file):
        kept = dict(file[name].attrs)
        del file[name]
        file.create_dataset(name, data=data, **how)
        for key, value in kept.items():
            file[name].attrs[key] = value

    return edit


def noted(owner, name, value):
    def edit(file):
        del file[owner].attrs[name]
        if value is not None:
            file[owner].attrs.create(name, value)

    return edit


def placed(change):
    """The table after `change(table)`."""

    def edit(file):
        table = file["table"][()]
        change(table)
        file["table"][...] = table

    return edit


def first(table, number):
    return tuple(np.argwhere(table == number)[0])


def twice(table):
    table[first(table, 3)] = 2


def hole(table):
    table[first(table, 3)] = -1


def out_of_range(table):
    table[first(table, 3)] = 5


def below(table):
    table[first(table, 3)] = -7


TABLE = np.full((3, 2, 3), -1, "<i4")
HURT = {
    "a number twice": (placed(twice), "bricks: table has number 2 twice, at ("),
    "a hole": (placed(hole), "bricks: table lacks number 3 and places 4 of 5 bricks, want all"),
    "a number out of range": (placed(out_of_range), "bricks: table is 5 at ("),
    "a number below -1": (placed(below), "bricks: table is "),
    "NaN": (lambda f: f["density"].__setitem__((1, 2, 3, 4), np.nan), "bricks: density is nan at (1, 2, 3, 4)"),
    "no finite colour": (
        lambda f: f["features"].__setitem__((1, 2, 3, 4, 0), -np.inf),
        "bricks: features are -inf at (1, 2, 3, 4, 0)",
    ),
    "too dense": (lambda f: f["density"].__setitem__((1, 2, 3, 4), 1e31), "bricks: density is 9.99"),
    "fewer densities": (
        replaced("density", np.zeros((4, 8, 8, 8), "f4")),
        "features are float32 (5, 8, 8, 8, 3), want",
    ),
    "fewer of both": (
        lambda f: (
            replaced("density", np.zeros((4, 8, 8, 8), "f4"))(f),
            replaced("features", np.zeros((4, 8, 8, 8, 3), "f4"))(f),
        ),
        "bricks: table is 4 at (",
    ),
}
HURT_AT_ONCE = {
    "more bricks than places": (
        lambda f: (
            replaced("density", np.zeros((19, 8, 8, 8), "f4"))(f),
            replaced("features", np.zeros((19, 8, 8, 8, 3), "f4"))(f),
        ),
        "density holds 19 bricks, but table has 18 places",
    ),
    "a wide table": (replaced("table", TABLE.astype("<i8")), "table is int64 (3, 2, 3), want int32 (x, y, z)"),
    "a table of other bytes": (replaced("table", TABLE.astype(">i4")), "table is >i4 (3, 2, 3), want int32"),
    "a table of fractions": (replaced("table", TABLE.astype("f4")), "table is float32 (3, 2, 3), want int32"),
    "a flat table": (replaced("table", TABLE[0]), "table is int32 (2, 3), want int32 (x, y, z)"),
    "an empty table": (replaced("table", TABLE[:0]), "table is int32 (0, 2, 3), want int32 (x, y, z)"),
    "bricks beyond the shape": (
        noted("table", "shape", np.array([16, 9, 17])),
        "table has shape (3, 2, 3), want (2, 2",
    ),
    "bricks short of the shape": (
        noted("table", "shape", np.array([25, 9, 17])),
        "table has shape (3, 2, 3), want (4,",
    ),
    "a shape of two": (noted("table", "shape", np.array([24, 9])), "attribute shape of table is [24, 9], want three"),
    "a thin shape": (noted("table", "shape", np.array([24, 1, 17])), "attribute shape of table is [24, 1, 17], want"),
    "a shape in words": (noted("table", "shape", np.bytes_(b"24")), "attribute shape of table is b'24', want three"),
    "no shape": (noted("table", "shape", None), "table lacks the attribute shape"),
    "another edge": (noted("table", "edge", 4), "attribute edge of table is 4, want 8"),
    "no edge": (noted("table", "edge", None), "table lacks the attribute edge"),
    "no table": (
        lambda f: f.__delitem__("table"),
        "density is float32 (5, 8, 8, 8), want float32 or float64 (x, y, z)",
    ),
    "small cubes": (replaced("density", np.zeros((5, 4, 8, 8), "f4")), "density is float32 (5, 4, 8, 8), want float32"),
    "dense arrays": (replaced("density", np.zeros(SHAPE, "f4")), "density is float32 (24, 9, 17), want float32 or"),
    "half precision": (replaced("density", np.zeros((5, 8, 8, 8), "f2")), "density is float16"),
    "channels": (replaced("features", np.zeros((5, 8, 8, 8, 4), "f4")), "features are float32 (5, 8, 8, 8, 4), want"),
    "no axes": (replaced("features", np.float32(0)), "features are float32 (), want"),
    "256 TB of bricks": (
        lambda f: (
            f.__delitem__("density"),
            f.create_dataset("density", (1 << 37, 8, 8, 8), "<f4", chunks=(1 << 6, 8, 8, 8)),
        ),
        "density declares 281474976710656 bytes but stores 0",
    ),
    "a vast table": (
        lambda f: (f.__delitem__("table"), f.create_dataset("table", (1 << 13,) * 3, "<i4", chunks=(64,) * 3)),
        "table declares 2199023255552 bytes but stores 0",
    ),
    "a packed bomb": (
        replaced("table", np.zeros((160,) * 3, "<i4"), chunks=(160,) * 3, compression=9),
        "table declares 16384000 bytes but stores",
    ),
    "a table elsewhere": (
        lambda f: (f.__delitem__("table"), f.__setitem__("table", h5py.ExternalLink("other.h5", "table"))),
        "table is a ExternalLink",
    ),
    "boxes and NDC": (
        lambda f: (
            f["density"].attrs.create("boxes", 2),
            f["world_from_index"].attrs.create("ndc_from_world", np.eye(4)),
        ),
        "density has the attribute boxes beside ndc_from_world",
    ),
}


def hurt(path, edit):
    """The file after `edit(file)`, with the digest that is right then where there is anything to digest."""
    with h5py.File(path, "r+") as file:
        edit(file)
        if all(isinstance(file.get(name, getlink=True), h5py.HardLink) and file[name].nbytes < 1e6 for name in file):
            file.attrs.modify("digest", np.array(digest_by_hand(file)))


def require_refused(read, path, said):
    with pytest.raises(RaymarchError) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: {said}"), text
    assert "\n" not in text
    assert ";" in text


@pytest.mark.parametrize("what", HURT)
def test_wrong_bricks_are_refused_by_name(saved, what):
    edit, said = HURT[what]
    hurt(saved, edit)
    require_refused(load, saved, said)


@pytest.mark.parametrize("what", HURT_AT_ONCE)
def test_wrong_layouts_are_refused_before_arrays_are_read(saved, what):
    edit, said = HURT_AT_ONCE[what]
    hurt(saved, edit)
    for read in (load, describe):
        require_refused(read, saved, said)


def test_the_digest_covers_the_table(saved):
    with h5py.File(saved, "r+") as file:
        placed(hole)(file)
    require_refused(load, saved, "its content is not what its digest says")


def test_bricks_over_the_budget_are_refused(saved, monkeypatch):
    monkeypatch.setattr(strict, "MEMORY_BUDGET", 1000)
    require_refused(load, saved, "its datasets declare 41")


def test_no_flipped_bit_or_cut_is_silent(saved, tmp_path):
    data, original = saved.read_bytes(), load(saved)
    rng, loud, bad = np.random.default_rng(1), 0, tmp_path / "bad.h5"
    for bit in rng.choice(8 * len(data), 80, replace=False):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        bad.write_bytes(flipped)
        try:
            again = load(bad)
        except RaymarchError as error:
            assert "\n" not in str(error) and "bad.h5" in str(error)
            loud += 1
        else:
            require_equal(again, original)
    assert loud > 65
    for length in np.linspace(0, len(data) - 1, 20).astype(int):
        bad.write_bytes(data[:length])
        with pytest.raises(RaymarchError, match=r"bad\.h5"):
            load(bad)


def test_rendering_a_sparse_volume_takes_what_its_bricks_do(tmp_path, capsys):
    """Of a box whose dense grid takes two gigabytes."""
    big = sparse((512, 512, 512))
    told = forecast_rendering(big, 32, 32)
    width, bricks = np.dtype(runtime.dtype()).itemsize, 5 + 1  # and that of the missing
    cells = 128**3 * (4 + 3 + 1)  # on the device, and where they are made
    marks = bricks * (3 * 8 + 3 * 4)  # of blocks, and where they lie
    table = 64**3 * (2 * 4 + 4 + 1)
    samples = bricks * 8**3 * 4 * width  # on their way to the device, and there
    rays = 32 * 32 * (31 * width + 24)
    counted = big.nbytes + cells + marks + table + 2 * samples + rays
    assert told.memory.total - told.memory.parts["libraries"] == counted < 3e7
    save(big, tmp_path / "big.h5")
    with pytest.raises(SystemExit) as ended:
        cli.main(["info", str(tmp_path / "big.h5"), "--json"])
    assert not ended.value.code
    needed = memory_of_rendering(big.shape, 0, 800**2, 5, big.nbytes)
    assert json.loads(capsys.readouterr().out)["bytes_to_render"] == needed.total
