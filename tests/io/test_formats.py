"""Laws of volume formats: each keeps a volume, a user's own is one like any, no failure is silent."""

import json
import os
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import raymarch as rm
from raymarch.cli import cli
from raymarch.io.files import strict
from raymarch.io.files.temporary import remove_stale, temporary_path
from raymarch.io.volumes import volume_file
from raymarch.io.volumes.format_choice import format_of
from raymarch.io.volumes.hdf5.volume import HDF5

VOLUME = rm.Volume(
    np.random.default_rng(3).normal(size=(3, 4, 5)),
    np.random.default_rng(4).normal(size=(3, 4, 5, 3)),
    np.diag([0.5, 1, 2, 1]),
    rm.Activation("relu", 0.1, 0.3),
    (0.1, 0.2, 1.0),
    {"steps": 12},
)


def write(volume, path):
    how = [volume.activation.density, volume.activation.shift, volume.activation.scale, volume.activation.colour]
    more = json.dumps({"activation": how, "background": volume.background, "provenance": dict(volume.provenance)})
    with open(path, "wb") as file:  # to a name, NumPy would add a suffix
        np.savez(file, density=volume.density, features=volume.features, affine=volume.world_from_index, more=more)


def read(path):
    with np.load(path) as file:
        more = json.loads(str(file["more"]))
        activation = rm.Activation(*more["activation"])
        arrays = file["density"], file["features"], file["affine"]
        return rm.Volume(*arrays, activation, more["background"], more["provenance"])


def detect(path):
    return path.read_bytes()[:2] == b"PK"


def describe(path):
    return rm.VolumeSummary.of(read(path), 7)


OWN = rm.Format("own", (".own", ".vol.own"), detect, read, write)
KEEPING = [HDF5]  # formats that keep a volume as it is; tests/io/test_scalar_formats.py has those of scalar volumes
EACH = pytest.mark.parametrize(
    "format", [*KEEPING, OWN, replace(OWN, describe=describe)], ids=["HDF5", "own", "own, described"]
)


def file_of(format, folder, suffix=0):
    path = folder / f"a{format.suffixes[suffix]}"
    rm.save(VOLUME, path, format=format)
    return path


def require_equal(a, b):
    for name in ("density", "features", "world_from_index"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype
        assert x.tobytes() == y.tobytes()
    assert (a.activation, a.background, dict(a.provenance)) == (b.activation, b.background, dict(b.provenance))


def refused(call, *said):
    """The error of a call, which must hold all of the texts in one line."""
    with pytest.raises(rm.RaymarchError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and all(part in text for part in said), text
    return caught.value


# Every format.


@EACH
def test_what_is_written_is_recognised_and_comes_back(format, tmp_path):
    for k, suffix in enumerate(format.suffixes):
        path = file_of(format, tmp_path, k)
        assert path.name.endswith(suffix)
        assert format.detect(path)
        require_equal(rm.load(path, format=format), VOLUME)
        renamed = path.rename(tmp_path / "any.name")
        require_equal(rm.load(renamed, format=format), VOLUME)  # by its content
        assert [file.name for file in tmp_path.iterdir()] == ["any.name"]
        renamed.unlink()


@EACH
def test_the_description_is_that_of_the_volume(format, tmp_path):
    path = file_of(format, tmp_path)
    found = rm.describe(str(path), format=format)
    assert (found.shape, found.degree, found.activation) == (VOLUME.shape, 0, VOLUME.activation)
    assert found.bytes_in_memory == VOLUME.density.nbytes + VOLUME.features.nbytes
    assert found.bytes_on_disk == (7 if format.describe is describe else path.stat().st_size)
    np.testing.assert_allclose(found.box, VOLUME.box)
    assert json.dumps(found.record())
    assert found.record()["provenance"] == {"steps": 12}


@EACH
def test_no_format_claims_what_is_another_s(format, tmp_path):
    (tmp_path / "text").write_text("hello")
    h5py.File(tmp_path / "bare", "w").close()
    others = [one for one in [*KEEPING, OWN] if one.name != format.name]
    assert not any(format.detect(file_of(other, tmp_path)) for other in others)
    assert not any(format.detect(tmp_path / name) for name in ("text", "bare"))


@EACH
def test_a_format_writes_only_under_its_suffixes_and_only_over_volumes(format, tmp_path):
    refused(lambda: rm.save(VOLUME, tmp_path / "a.zip", format=format), f"saved as {format.name}; end the name in .")
    path = tmp_path / f"a{format.suffixes[0]}"
    path.write_text("mine")
    refused(lambda: rm.save(VOLUME, path, format=format), "is no volume of raymarch's and would be lost")
    assert path.read_text() == "mine"
    rm.save(VOLUME, path, overwrite=True, format=format)
    rm.save(replace(VOLUME, provenance={}), path, format=format)
    assert dict(rm.load(path, format=format).provenance) == {}


@EACH
@pytest.mark.parametrize("failure", [OSError(28, "No space left"), MemoryError(), KeyError("x"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(format, failure, tmp_path):
    def fail(volume, path):
        path.write_bytes(b"half")
        path.with_name(path.name + ".part").write_bytes(b"half")
        raise failure

    path = file_of(format, tmp_path)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt if isinstance(failure, KeyboardInterrupt) else rm.RaymarchError):
        rm.save(VOLUME, path, format=replace(format, write=fail))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_names_choose_in_letters_of_either_case(tmp_path):
    for format in KEEPING:
        path = tmp_path / f"A{format.suffixes[0].upper()}"
        rm.save(VOLUME, path, format=format.name.lower())
        require_equal(rm.load(path, format=format.name.upper()), VOLUME)


# The list.


def test_a_line_in_the_list_is_all_that_a_format_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("raymarch.io.volumes.volume_file.FORMATS", [*volume_file.FORMATS, OWN])
    path = tmp_path / "a.vol.own"
    rm.save(VOLUME, path)
    require_equal(rm.load(path), VOLUME)
    assert rm.describe(path).shape == VOLUME.shape
    cli.main(["info", str(path)], standalone_mode=False)
    assert "3  4  5" in capsys.readouterr().out
    refused(
        lambda: rm.save(VOLUME, tmp_path / "a.zip"),
        "a.zip: volumes are saved as HDF5, ",
        " or own; end the name in .h5, ",
    )


OTHER = replace(OWN, name="zip", suffixes=".zip")


def test_two_that_claim_a_file_are_told_by_name_unless_its_suffix_tells(tmp_path):
    path = file_of(OWN, tmp_path)
    assert format_of(path, [OWN, OTHER]) is OWN
    assert format_of(path, [OTHER, OWN]) is OWN
    unknown = path.rename(tmp_path / "a.bin")
    refused(
        lambda: format_of(unknown, [OWN, OTHER]),
        "a.bin: formats 'own' and 'zip' claim it alike; choose by format='own' or format='zip'",
    )


def test_a_file_that_none_recognises_is_told_by_its_suffix_or_with_all_that_are_known(tmp_path):
    for name, said in [
        ("a.h5", "a.h5: is not HDF5"),
        ("a.png", "a.png: is no volume file of a known format, which are"),
    ]:
        (tmp_path / name).write_text("hello")
        refused(lambda name=name: rm.load(tmp_path / name), said)
    refused(lambda: rm.load(tmp_path / "a.png"), "HDF5 (.h5, .hdf5)")
    for said, path in [("no such file", "none.own"), ("is a folder", ".")]:
        refused(lambda path=path: rm.load(tmp_path / path, format=OWN), said)


# A user's own, with faults.

CLASHES = {
    "detect": (lambda path: None, "detect gave None, want True or False"),
    "read": (lambda path: [1, 2], "read gave [1, 2], want an rm.Volume; return that from it"),
    "describe": (lambda path: {"shape": 3}, "describe gave {'shape': 3}, want an rm.VolumeSummary"),
}


@pytest.mark.parametrize("part", CLASHES)
def test_what_a_part_must_not_give_names_the_format_and_the_part(part, tmp_path):
    function, said = CLASHES[part]
    path = file_of(OWN, tmp_path)
    own = replace(OWN, **{part: function})
    refused(lambda: (rm.load(path, format=own), rm.describe(path, format=own)), f"format 'own': {said}")


@pytest.mark.parametrize("part", ["detect", "read", "write", "describe"])
@pytest.mark.parametrize(
    "error", [KeyError("density"), OSError(2, "No such file", "x.bin"), ValueError("two\nlines"), ZeroDivisionError()]
)
def test_an_exception_of_a_part_is_one_line_with_its_type_and_text(part, error, tmp_path):
    def fail(*_):
        raise error

    path = file_of(OWN, tmp_path)
    own = replace(OWN, **{part: fail})
    came = refused(
        lambda: (
            rm.save(VOLUME, path.with_name("b.own"), format=own)
            if part == "write"
            else (rm.load(path, format=own), rm.describe(path, format=own))
        ),
        f"format 'own': {part} of {path.with_name('b.own') if part == 'write' else path} raised {type(error).__name__}",
        " ".join(str(error).split()),
    )
    assert came.__cause__ is error


def test_an_error_of_ours_in_a_user_s_part_says_where_it_was(tmp_path):
    path = file_of(OWN, tmp_path)
    own = replace(OWN, read=lambda path: rm.Volume(np.zeros(3), np.zeros(3), np.eye(4)))
    refused(lambda: rm.load(path, format=own), f"format 'own': read of {path}: density")


def test_a_write_that_writes_elsewhere_is_told_and_leaves_nothing(tmp_path):
    own = replace(OWN, write=lambda volume, path: np.save(f"{path}.npy", volume.density))
    refused(lambda: rm.save(VOLUME, tmp_path / "a.own", format=own), f"write of {tmp_path / 'a.own'} wrote nothing")
    gone = replace(OWN, write=lambda volume, path: path.unlink())
    refused(lambda: rm.save(VOLUME, tmp_path / "a.own", format=gone), "wrote nothing; write to the path that it gets")
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_with_a_suffix_of_dead_processes_are_swept(tmp_path):
    with temporary_path(tmp_path, ".vol.own") as temporary:
        assert temporary.name.endswith(".tmp.vol.own")
        dead = temporary.with_name(temporary.name.replace(temporary.name[19:35], "0" * 16))
        dead.write_text("left")
        remove_stale(tmp_path)
        assert temporary.exists()
        assert os.name != "posix" or not dead.exists()


# The budget of one file.


def test_the_environment_raises_and_lowers_the_budget(tmp_path, monkeypatch):
    path = file_of(HDF5, tmp_path)
    monkeypatch.setattr(strict, "MEMORY_BUDGET", 100)
    wanted = "set the environment variable RAYMARCH_FILE_GB to 0.1 (gigabytes) or more"
    refused(lambda: rm.load(path), "over the budget of 100 bytes", wanted)
    monkeypatch.setenv("RAYMARCH_FILE_GB", "0.1")
    require_equal(rm.load(path), VOLUME)
    monkeypatch.setenv("RAYMARCH_FILE_GB", "1e-6")
    refused(lambda: rm.load(path), "over the budget of 1000 bytes")
    for text in ("", "much", "nan", "0", "-1", "inf"):
        monkeypatch.setenv("RAYMARCH_FILE_GB", text)
        refused(lambda: rm.load(path), f"RAYMARCH_FILE_GB is {text!r}, want a positive number of gigabytes; correct")


def test_the_cure_for_a_file_over_the_budget_is_enough(monkeypatch):
    for wanted in (17 << 30, 10**11 + 1, 123_456_789):
        monkeypatch.setattr(strict, "MEMORY_BUDGET", 100)
        monkeypatch.delenv("RAYMARCH_FILE_GB", raising=False)
        text = str(refused(lambda wanted=wanted: strict.require_file_budget(wanted, "x: its images"), "x: its images"))
        monkeypatch.setenv("RAYMARCH_FILE_GB", text.split("RAYMARCH_FILE_GB to ")[1].split()[0])
        strict.require_file_budget(wanted, "x: its images")


def test_no_verb_binds_a_format_by_name():
    verbs = {path.name: path.read_text().lower() for path in Path(rm.__file__).parent.joinpath("cli").glob("*.py")}
    assert [name for name, text in verbs.items() if "volume_file" in text]
    assert not [name for name, text in verbs.items() for one in volume_file.FORMATS if one.name.lower() in text]


def test_no_message_names_a_module_of_the_package_as_a_cure():
    texts = {path: path.read_text() for path in Path(rm.__file__).parent.rglob("*.py")}
    assert not [path.name for path, text in texts.items() if "raise raymarch." in text or "set raymarch." in text]
