"""Laws of the volume file: it comes back bit for bit, nothing alters it in silence, a failure costs nothing."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import affine_of_box
from raymarch.geometry.ndc import ndc_of_frustum
from raymarch.io.files import strict
from raymarch.io.volumes.hdf5 import schema
from raymarch.io.volumes.hdf5.schema import OTHER_VERSION, VERSION
from raymarch.io.volumes.volume_file import describe, load, save
from raymarch.io.volumes.xdmf import text_of
from raymarch.volumes.activation import FIT_COLOURS, FIT_DENSITIES, Activation, DensityActivation
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import Volume

NEWER = VERSION + 1


def random_volume(shape=(4, 5, 6), degree=0, dtype=np.float32, activation=None, **more):
    rng = np.random.default_rng(7)
    return Volume(
        rng.normal(size=shape).astype(dtype),
        rng.normal(size=(*shape, 3 * (degree + 1) ** 2)).astype(dtype),
        affine_of_box([(-1, -2, -3), (1, 2, 0.1)], shape),
        activation or Activation("softplus", 0.1, 0.3),
        (0.1, 0.2, 1.0),
        more.get("provenance", {"steps": 12, "views": ["a", "ü"], "loss": {"last": 0.25, "none": None}}),
    )


def require_equal(a: Volume, b: Volume):
    for x, y in ((a.density, b.density), (a.features, b.features), (a.world_from_index, b.world_from_index)):
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes()
    assert a.activation == b.activation
    assert a.background == b.background
    assert a.boxes == b.boxes
    np.testing.assert_equal(a.ndc_from_world, b.ndc_from_world)
    assert dict(a.provenance) == dict(b.provenance)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "ball.h5"
    save(random_volume((2, 3, 2)), path)
    return path


def rewritten(path, edit):
    """The file after `edit(file)`, through plain h5py."""
    with h5py.File(path, "r+") as file:
        edit(file)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("degree", "boxes"), [(0, 1), (1, 1), (2, 1), (3, 1), (0, 3), (1, 9)])
def test_round_trip_is_exact(tmp_path, dtype, degree, boxes):
    volume = replace(random_volume((18, 5, 6), degree, dtype), boxes=boxes)
    save(volume, tmp_path / "a.hdf5")
    require_equal(load(tmp_path / "a.hdf5"), volume)


def test_a_volume_in_ndc_comes_back(tmp_path):
    place, ndc_from_world = affine_of_box([(-1, -1, -1), (1, 1, 1)], (4, 5, 6)), ndc_of_frustum(np.eye(4), 0.3)
    volume = replace(random_volume((4, 5, 6)), world_from_index=place, ndc_from_world=ndc_from_world)
    save(volume, tmp_path / "a.h5")
    require_equal(load(tmp_path / "a.h5"), volume)
    told = describe(tmp_path / "a.h5")
    assert told.ndc
    np.testing.assert_allclose(told.box, volume.box)
    np.testing.assert_allclose(volume.box[:, 2], (-1.2, -0.3))  # from the near plane to four times as far
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.attrs["format_version"] == OTHER_VERSION


@pytest.mark.parametrize(
    ("version", "change"), [(2, {"boxes": 3}), (3, {"ndc_from_world": ndc_of_frustum(np.eye(4), 0.3)})]
)
def test_files_from_before_the_first_release_are_read(tmp_path, version, change):
    """Nested boxes and NDC had versions of their own then."""
    place = affine_of_box([(-1, -1, -1), (1, 1, 1)], (6, 5, 6))
    volume = replace(random_volume((6, 5, 6)), world_from_index=place, **change)
    save(volume, tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file.attrs.modify("format_version", version)
        arrays, notes = {name: file[name][()] for name in file}, schema.check_notes(file, "a.h5")
        notes.pop(("/", "digest"))
        arrays = {name: np.asarray(array, file[name].dtype) for name, array in arrays.items()}
        file.attrs.modify("digest", np.array(schema.digest_of(arrays, notes)))
    require_equal(load(tmp_path / "a.h5"), volume)
    assert describe(tmp_path / "a.h5").boxes == volume.boxes


@pytest.mark.parametrize("density", FIT_DENSITIES)
@pytest.mark.parametrize("colour", FIT_COLOURS)
def test_round_trip_keeps_the_activation(tmp_path, density, colour):
    volume = random_volume(activation=Activation(density, -1 / 3, 1e-7, colour))
    save(volume, tmp_path / "a.h5")
    require_equal(load(tmp_path / "a.h5"), volume)


@pytest.mark.parametrize("degree", [0, 3])
def test_zeros_are_no_bomb(tmp_path, degree):
    zeros = Volume(np.zeros((64,) * 3), np.zeros((64, 64, 64, 3 * (degree + 1) ** 2)), np.eye(4))
    save(zeros, tmp_path / "a.h5")
    require_equal(load(tmp_path / "a.h5"), zeros)


def test_strided_and_big_endian_arrays_keep_their_values(tmp_path):
    volume = random_volume()
    other = Volume(
        np.asfortranarray(volume.density).astype(">f4"), volume.features.astype(">f8"), volume.world_from_index
    )
    save(other, tmp_path / "a.h5")
    again = load(tmp_path / "a.h5")
    assert (again.density == volume.density).all()
    assert again.density.dtype == np.float32
    assert (again.features == volume.features).all()
    assert again.features.dtype == np.float64


def test_description_is_that_of_the_volume(tmp_path):
    volume = random_volume(degree=2)
    save(volume, tmp_path / "a.h5")
    found = describe(tmp_path / "a.h5")
    assert found.shape == volume.shape
    assert found.degree == 2
    assert found.activation == volume.activation
    np.testing.assert_array_equal(found.box, volume.box)
    assert found.bytes_in_memory == volume.density.nbytes + volume.features.nbytes
    assert found.bytes_on_disk == os.path.getsize(tmp_path / "a.h5")
    assert found.provenance == dict(volume.provenance)


def test_provenance_becomes_plain(tmp_path):
    came = {"a": np.float32(0.5), "b": np.arange(2), "nan": np.nan, "inf": [-np.inf], "t": (True, None)}
    save(random_volume(provenance=came), tmp_path / "a.h5")
    want = {"a": 0.5, "b": [0, 1], "nan": None, "inf": [None], "t": [True, None]}
    assert dict(load(tmp_path / "a.h5").provenance) == want


def test_the_documented_example_reads_the_file(saved):
    text = (Path(__file__).parents[2] / "docs" / "hdf5.md").read_text(encoding="utf-8")
    code = text.split("```python")[1].split("```")[0]
    found: dict = {}
    exec(code.replace('"ball.h5"', repr(str(saved))), found)
    volume = load(saved)
    np.testing.assert_allclose(found["sigma"], volume.sigma(), rtol=1e-6)
    assert found["provenance"] == dict(volume.provenance)
    assert found["digest"] == found["stored"]


def require_loud_or_equal(path, original: Volume) -> bool:
    """Whether loading raised; every other exception, and another volume, fails the test."""
    try:
        again = load(path)
    except RaymarchError as error:
        assert "\n" not in str(error)
        assert path.name in str(error)
        return True
    require_equal(again, original)
    return False


def test_no_flipped_bit_is_silent(saved, tmp_path):
    original, data = load(saved), saved.read_bytes()
    rng = np.random.default_rng(1)
    loud = 0
    for bit in rng.choice(8 * len(data), 250, replace=False):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << (bit % 8)
        (tmp_path / "flipped.h5").write_bytes(flipped)
        loud += require_loud_or_equal(tmp_path / "flipped.h5", original)
    assert loud > 200  # nearly every byte is under a checksum or the digest


def test_no_flipped_bit_of_the_data_is_silent(saved, tmp_path):
    data = saved.read_bytes()
    with h5py.File(saved) as file:
        spots = [file[name].id.get_chunk_info(0) for name in ("density", "features", "world_from_index", "background")]
        texts = [(file["provenance"].id.get_offset(), file["provenance"].id.get_storage_size())]
    spots = [(spot.byte_offset, spot.size) for spot in spots] + texts
    for start, size in spots:
        for byte in range(start, start + size, 7):
            flipped = bytearray(data)
            flipped[byte] ^= 1 << (byte % 8)
            (tmp_path / "flipped.h5").write_bytes(flipped)
            with pytest.raises(RaymarchError, match="flipped.h5"):
                load(tmp_path / "flipped.h5")


def test_no_truncation_is_silent(saved, tmp_path):
    data = saved.read_bytes()
    for length in np.linspace(0, len(data) - 1, 60).astype(int):
        (tmp_path / "short.h5").write_bytes(data[:length])
        for read in (load, describe):
            with pytest.raises(RaymarchError, match="short.h5"):
                read(tmp_path / "short.h5")


ALTERATIONS = {
    "a number": lambda f: f["density"].__setitem__((0, 0, 0), 3.0),
    "the affine": lambda f: f["world_from_index"].__setitem__((0, 3), 3.0),
    "the shift": lambda f: f["density"].attrs.modify("shift", np.float64(0.5)),
    "the background": lambda f: f["background"].__setitem__(0, 0.5),
    "the provenance": lambda f: f["provenance"].__setitem__((), b"{}"),
    "a new attribute": lambda f: f["features"].attrs.create("note", np.bytes_(b"mine")),
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_the_digest_covers(saved, what):
    with pytest.raises(RaymarchError, match="digest"):
        load(rewritten(saved, ALTERATIONS[what]))


def replaced(name, **how):
    def edit(file):
        kept = dict(file[name].attrs)
        del file[name]
        dataset = file.create_dataset(name, **how)
        for key, value in kept.items():
            dataset.attrs[key] = value

    return edit


def linked(link):
    def edit(file):
        del file["density"]
        file["density"] = link

    return edit


def virtual(file):
    layout = h5py.VirtualLayout((2, 3, 2), "<f4")
    layout[:] = h5py.VirtualSource("other.h5", "density", (2, 3, 2))
    del file["density"]
    file.create_virtual_dataset("density", layout)


def extra_group(file):
    file.create_group("more")


def group_instead(file):
    del file["density"]
    file.create_group("density")


def removed(name):
    def edit(file):
        del file[name]

    return edit


def packed_twice(file):
    """Gzip over gzip, which would multiply what a bomb of zeros declares."""
    kept = dict(file["density"].attrs)
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk((2, 3, 2))
    plan.set_deflate(1)
    plan.set_deflate(1)
    del file["density"]
    h5py.h5d.create(file.id, b"density", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((2, 3, 2)), plan)
    file["density"][:] = 0
    for key, value in kept.items():
        file["density"].attrs[key] = value


FILTERED = {"data": np.zeros((2, 3, 2), "f4"), "chunks": (2, 3, 2)}
HARMFUL = {
    "external link": (linked(h5py.ExternalLink("other.h5", "density")), "density is a ExternalLink"),
    "soft link": (linked(h5py.SoftLink("/features")), "density is a SoftLink"),
    "external storage": (
        replaced("density", shape=(2, 3, 2), dtype="f4", external=[("raw.bin", 0, 48)]),
        "lies in external files",
    ),
    "virtual": (virtual, "virtual dataset"),
    "256 TiB": (replaced("density", shape=(1 << 15,) * 3, dtype="f8", chunks=(64,) * 3), "declares 281474976710656 b"),
    "references": (replaced("density", shape=(2, 3, 2), dtype=h5py.ref_dtype), "density has type object"),
    "texts of variable length": (replaced("provenance", data="{}"), "provenance has type object"),
    "lzf": (replaced("density", compression="lzf", **FILTERED), "density has filters"),
    "scale-offset": (replaced("density", scaleoffset=2, **FILTERED), "density has filters"),
    "gzip twice": (packed_twice, "density has filters"),
    "growing": (
        replaced("density", data=np.zeros((2, 3, 2), "f4"), chunks=(9, 9, 9), maxshape=(None,) * 3),
        "larger than its shape",
    ),
    "missing": (removed("features"), "lacks features"),
    "extra": (extra_group, "also holds more"),
    "a group": (group_instead, "density is a group"),
    "integers": (replaced("density", data=np.zeros((2, 3, 2), int)), "density is int64"),
    "half": (replaced("density", data=np.zeros((2, 3, 2), "f2")), "density is float16"),
    "flat": (replaced("density", data=np.zeros((2, 3), "f4")), r"density is float32 \(2, 3\)"),
    "scalar": (replaced("density", data=np.float32(0)), r"density is float32 \(\)"),
    "thin": (replaced("density", data=np.zeros((2, 3, 1), "f4")), "2 or more"),
    "empty": (replaced("density", data=h5py.Empty("f4")), "density has type"),
    "channels": (replaced("features", data=np.zeros((2, 3, 2, 4), "f4")), "channels"),
    "other shape": (replaced("features", data=np.zeros((2, 3, 3, 3), "f4")), "channels"),
    "scalar features": (replaced("features", data=np.float32(0)), "features are"),
    "affine": (replaced("world_from_index", data=np.eye(3)), r"world_from_index is float64 \(3, 3\)"),
    "background": (replaced("background", data=np.zeros(4)), "background is"),
    "number as provenance": (replaced("provenance", data=3), "provenance is int64"),
    "newer": (lambda f: f.attrs.modify("format_version", NEWER), f"{NEWER}, this raymarch reads {VERSION}; update"),
    "version 0": (lambda f: f.attrs.modify("format_version", 0), "format_version 0"),
    "text version": (lambda f: f.attrs.create("format_version", np.bytes_(b"x")), "format_version b'x'"),
    "other format": (lambda f: f.attrs.create("format", "nexus"), "no raymarch-volume file"),
    "no format": (lambda f: f.attrs.__delitem__("format"), "no raymarch-volume file"),
    "degree": (lambda f: f["features"].attrs.modify("degree", 1), "degree of features is 1, want 0"),
    "basis": (lambda f: f["features"].attrs.create("basis", np.bytes_(b"cosines")), "want b'real spherical"),
    "no scale": (lambda f: f["density"].attrs.__delitem__("scale"), "density lacks the attribute scale"),
    "variable text": (lambda f: f["density"].attrs.create("note", "x"), "fixed length"),
    "large attribute": (lambda f: f["density"].attrs.create("note", np.zeros(999)), "7992 bytes"),
    "long provenance": (
        replaced("provenance", data=np.bytes_(b" " * (1 << 24) + b"{}")),
        "16,777,218 bytes long, want at",
    ),
    "no digest": (lambda f: f.attrs.__delitem__("digest"), "lacks the attribute digest"),
}


@pytest.mark.parametrize("what", HARMFUL)
def test_harmful_files_are_refused(saved, what):
    edit, message = HARMFUL[what]
    rewritten(saved, edit)
    for read in (load, describe):
        with pytest.raises(RaymarchError, match=message) as caught:
            read(saved)
        assert str(caught.value).startswith(str(saved))
        assert ";" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_values_that_no_volume_has_name_the_file(saved):
    rewritten(saved, lambda f: f["density"].attrs.create("activation", np.bytes_(b"cubic")))
    with pytest.raises(RaymarchError, match="ball.h5: density is 'cubic', want one of softplus"):
        describe(saved)


@pytest.mark.parametrize(
    ("name", "bad"), [("world_from_index", np.nan), ("world_from_index", 1e300), ("background", 2.0)]
)
def test_values_that_no_volume_has_are_not_described(saved, name, bad):
    rewritten(saved, lambda f: f[name].__setitem__((0,) * f[name].ndim, bad))
    with pytest.raises(RaymarchError, match=f"ball.h5: {name}"):
        describe(saved)


def test_a_file_over_the_budget_is_refused(saved, monkeypatch):
    monkeypatch.setattr(strict, "MEMORY_BUDGET", 100)
    with pytest.raises(RaymarchError, match="over the budget of 100 bytes"):
        load(saved)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "empty.h5").write_bytes(b"")
    (tmp_path / "text.h5").write_text("density")
    h5py.File(tmp_path / "bare.h5", "w").close()
    (tmp_path / "folder.h5").mkdir()
    for name, message in [
        ("none.h5", "no such file"),
        ("empty.h5", "is empty"),
        ("text.h5", "is not HDF5"),
        ("bare.h5", "no raymarch-volume file"),
        ("folder.h5", "is an empty folder"),
        ("null\0.h5", "null character"),
    ]:
        for read in (load, describe):
            with pytest.raises(RaymarchError, match=message):
                read(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.h5")
    for act in (load, describe, lambda path: save(random_volume(), path)):
        with pytest.raises(RaymarchError, match="device or pipe"):
            act(tmp_path / "pipe.h5")


def test_volumes_that_cannot_be_written_are_refused(tmp_path):
    volume = random_volume()
    half = Volume(volume.density.astype(np.float16), volume.features, volume.world_from_index)
    loop: dict = {}
    loop["loop"] = loop
    (tmp_path / "folder.h5").mkdir()
    for bad, name, message in [
        (volume, "a.zip", "end the name in .h5"),
        (volume, "none/a.h5", "there is no folder .*none; create it first"),
        (volume, "folder.h5", "is a folder"),
        (volume, "null\0.h5", "null character"),
        (volume, "x" * 300 + ".h5", "shorter name"),
        (half, "a.h5", "density is float16"),
        (random_volume(provenance={"a": [1, {2: 3}]}), "a.h5", r"a\.h5: provenance.a\[1\] has the key 2"),
        (random_volume(provenance={"a": {1, 2}}), "a.h5", "provenance.a is a set"),
        (random_volume(provenance={"a": "x" * (1 << 24)}), "a.h5", "a.h5: provenance is .* bytes long, want at most"),
        (random_volume(provenance=loop), "a.h5", "provenance cannot be written"),
    ]:
        with pytest.raises(RaymarchError, match=message):
            save(bad, tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.h5"]


def full_disk(*_args, **_more):
    raise OSError(28, "No space left on device")


def interrupted(*_args, **_more):
    raise KeyboardInterrupt


def failed_flush(*_args, **_more):
    raise RuntimeError("Can't decrement id ref count\n(unable to flush)")


FAILURES = [
    ("os.replace", full_disk, RaymarchError),
    ("os.fsync", full_disk, RaymarchError),
    ("pathlib.Path.write_bytes", full_disk, RaymarchError),
    ("pathlib.Path.write_bytes", interrupted, KeyboardInterrupt),
    ("h5py.File.create_dataset", full_disk, RaymarchError),
    ("h5py.File.create_dataset", failed_flush, RaymarchError),
    ("h5py.File.create_dataset", interrupted, KeyboardInterrupt),
]


@pytest.mark.parametrize(("where", "failure", "kind"), FAILURES)
def test_a_failed_save_costs_nothing(saved, monkeypatch, where, failure, kind):
    before = saved.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(where, failure)
        with pytest.raises(kind) as caught:
            save(random_volume(degree=1), saved)
    if kind is RaymarchError:
        assert "ball.h5: cannot be written (" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == ["ball.h5"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_disk_that_fills_up_costs_nothing(saved):
    """A limit on the size of files acts like a full disk; HDF5's own driver ends in a segmentation fault there."""
    code = """if True:
        import resource, signal, sys
        import numpy as np
        from raymarch.errors import RaymarchError
        from raymarch.io.volumes.volume_file import save
        from raymarch.volumes.volume import Volume
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        rng = np.random.default_rng(0)
        try:
            save(Volume(rng.normal(size=(40,) * 3), rng.normal(size=(40, 40, 40, 3)), np.eye(4)), sys.argv[1])
        except RaymarchError as error:
            print(error)
    """
    before = saved.read_bytes()
    done = subprocess.run([sys.executable, "-c", code, str(saved)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "cannot be written" in done.stdout and not done.stderr, done
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == ["ball.h5"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "a.h5").symlink_to(tmp_path / "real" / "b.h5")
    save(random_volume(), tmp_path / "a.h5")
    assert (tmp_path / "a.h5").is_symlink()
    require_equal(load(tmp_path / "real" / "b.h5"), random_volume())


def test_deep_provenance_is_refused(tmp_path, saved):
    deep = json.loads("[" * 300 + "]" * 300)
    save(random_volume(provenance={"deep": deep}), tmp_path / "a.h5")
    assert load(tmp_path / "a.h5").provenance["deep"] == deep
    bomb = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    rewritten(saved, replaced("provenance", data=np.bytes_(bomb)))
    with pytest.raises(RaymarchError, match="nested too deeply"):
        describe(saved)


def test_an_activation_of_ones_own_is_known_to_a_file_by_name(tmp_path):
    own = DensityActivation("doubled", lambda x: 2 * np.maximum(x, 0), lambda y: y / 2, abs, abs)
    volume = Volume.from_array(np.ones((3, 4, 5)))
    volume = replace(volume, activation=replace(volume.activation, density=own))
    save(volume, tmp_path / "v.h5")
    assert load(tmp_path / "v.h5", activations=[own]).activation == volume.activation
    with pytest.raises(
        RaymarchError,
        match=r"v.h5: density is 'doubled', want one of softplus.*; one of your own goes to rm.load\(path, act",
    ):
        load(tmp_path / "v.h5")


def scaled(path, values, slope, intercept):
    np.savez_compressed(path, values=values, slope=slope, intercept=intercept)
    return path


@pytest.mark.parametrize(("slope", "intercept"), [(2.0, 10.0), (-1.0, 0.0), (-0.5, 3.0)])
def test_what_stands_for_nan_is_a_value_and_no_stored_number(slope, intercept, tmp_path, caplog):
    values = np.arange(1, 28, dtype=np.float32).reshape(3, 3, 3)
    values[0, 0, 0] = np.nan
    path = scaled(tmp_path / "a.npz", values, slope, intercept)
    others = slope * values[np.isfinite(values)] + intercept
    for nan, wanted in ((0.0, 0.0), (5, 5.0), ("empty", others.min())):
        caplog.clear()
        found = load(path, nan=nan).numbers()
        assert found[0, 0, 0] == pytest.approx(wanted)
        np.testing.assert_allclose(found[np.isfinite(values)], others)
        assert f"taken as {wanted:g}" in caplog.text


def test_a_part_of_what_was_unpacked_keeps_no_more_than_itself(tmp_path):
    path = scaled(tmp_path / "a.npz", np.arange(64**3, dtype=np.int32).reshape((64,) * 3), 1.0, 0.0)
    part = load(path, crop=((0, 4), (0, 5), (0, 6)))
    root = part.values
    while isinstance(root.base, np.ndarray):
        root = root.base
    assert root.nbytes == 4 * 5 * 6 * 4
    np.testing.assert_array_equal(part.values[1, 2], 64**2 + 2 * 64 + np.arange(6))


@pytest.mark.parametrize(("kind", "slope", "intercept"), [("u2", 1e-3, 101325.0), ("u1", 0.5, 1e8), ("i2", -1e-4, 3e3)])
def test_whole_numbers_that_differ_are_values_that_differ(kind, slope, intercept, tmp_path):
    """Beside an intercept a step of theirs may be less than single precision tells apart."""
    stored = np.arange(120, dtype=kind).reshape(4, 5, 6)
    volume = ScalarVolume(stored, slope=slope, intercept=intercept)
    save(volume, tmp_path / "a.mha")
    for found in (volume.numbers(), load(tmp_path / "a.mha").numbers(), volume.as_volume().density):
        assert len(np.unique(found)) == 120
        np.testing.assert_allclose(found, stored * slope + intercept, rtol=1e-12)
    assert ScalarVolume(stored, slope=2.0, intercept=-1024.0).numbers().dtype == np.float32


@pytest.mark.parametrize("number", [1e-5, -1e-06, 1e20, 2.5e-5, 1.0, 3e-300])
def test_numbers_of_xdmf_s_formulas_have_a_point(number):
    """VTK reads no others."""
    text = text_of(ScalarVolume(np.zeros((2, 2, 2), np.uint8), slope=1e-7, intercept=number), "a.h5")
    (formula,) = re.findall('Function="([^"]*)"', text)
    slope, sign, intercept = re.fullmatch(r"\$0 \* (\S+) ([+-]) (\S+)", formula).groups()
    assert all(re.fullmatch(r"\d+\.\d+(e[+-]?\d+)?", word) for word in (slope, intercept))
    assert (float(slope), float(sign + intercept)) == (1e-7, number)


@pytest.mark.parametrize("suffix", [".h5", ".xdmf", ".mha", ".npz"])
@pytest.mark.parametrize(
    ("part", "cure"), [({"stride": (4, 1, 1)}, "lower it"), ({"crop": ((0, 9), (0, 2), (0, 2))}, "choose a part of it")]
)
def test_a_part_that_is_not_there_is_no_fault_of_the_file(suffix, part, cure, tmp_path):
    save(ScalarVolume(np.zeros((4, 5, 6), np.uint8)), tmp_path / f"a{suffix}")
    with pytest.raises(RaymarchError) as told:
        load(tmp_path / f"a{suffix}", **part)
    assert str(told.value).endswith(cure)
