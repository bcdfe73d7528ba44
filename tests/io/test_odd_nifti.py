"""Laws of NIfTI files with every optional part that nibabel writes: read as nibabel reads them, or told with a cure."""

from __future__ import annotations

import bz2
import gzip
import struct

import numpy as np
import pytest
from skips import require_extra
from test_scalar_formats import PLACES, refused

import raymarch as rm

nibabel = require_extra("nibabel", "formats")
pytestmark = pytest.mark.extra
VALUES = np.arange(9 * 7 * 5, dtype=np.int16).reshape(9, 7, 5)
AFFINE = np.diag([1.0, 2, 3, 1])
FAULT = "is likely a fault of raymarch"


def require_as_nibabel(path, **how):
    """The same numbers at the same places as nibabel's."""
    found, image = rm.load(path, **how), nibabel.load(path)
    wanted = image.get_fdata().squeeze()
    np.testing.assert_allclose(found.numbers(), wanted, rtol=1e-6)
    np.testing.assert_allclose(found.world_from_index, image.affine, atol=1e-5)
    assert rm.describe(path, **how).shape == found.shape
    return found


def edited(path, into=None, **fields):
    """The file with other numbers in its header, as (byte, format, numbers)."""
    data = bytearray(path.read_bytes())
    for at, form, *numbers in fields.values():
        struct.pack_into(form, data, at, *numbers)
    (into or path).write_bytes(data)
    return into or path


# Extensions, as AFNI, FreeSurfer 8 and others write them behind the header.


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz", ".hdr"])
@pytest.mark.parametrize("of", [1, 2])
@pytest.mark.parametrize(
    "extensions",
    [
        [("comment", 200)],
        [("comment", 144)],
        [("afni", 5000)],
        [(14, 64), ("comment", 8)],
        [("dicom", 70000)],
        [(40, 16)] * 30,
    ],
    ids=["AFNI", "FreeSurfer", "long", "two", "DICOM", "many"],
)
def test_extensions_of_any_size_are_passed_over(extensions, of, suffix, tmp_path):
    kind = {1: nibabel.Nifti1Image, 2: nibabel.Nifti2Image}[of]
    if suffix == ".hdr":
        kind = {1: nibabel.Nifti1Pair, 2: nibabel.Nifti2Pair}[of]
    image = kind(VALUES, AFFINE)
    for code, size in extensions:
        content = b"x" * size
        if code == "dicom":
            code, content = 6, b"x" * size
        image.header.extensions.append(nibabel.nifti1.Nifti1Extension(code, content))
    nibabel.save(image, tmp_path / f"a{suffix}")
    found = require_as_nibabel(tmp_path / f"a{suffix}")
    assert found.spacing.tolist() == [1, 2, 3] and found.values.dtype == np.int16


@pytest.mark.parametrize("esize", [0, 1, 7, 2**31 - 1, -16])
def test_an_extension_that_lies_of_its_size_costs_the_values_nothing(esize, tmp_path):
    image = nibabel.Nifti1Image(VALUES, AFFINE)
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"x" * 100))
    nibabel.save(image, tmp_path / "a.nii")
    edited(tmp_path / "a.nii", esize=(352, "<i", esize))
    np.testing.assert_array_equal(rm.load(tmp_path / "a.nii").values, VALUES)


# Pairs, Analyze, packings.


@pytest.mark.parametrize("named", [".hdr", ".img"])
@pytest.mark.parametrize("kind", ["Nifti1Pair", "Nifti2Pair", "AnalyzeImage", "Spm99AnalyzeImage", "Spm2AnalyzeImage"])
@pytest.mark.parametrize("order", "<>")
def test_a_pair_is_read_by_either_name(kind, named, order, tmp_path, caplog):
    kind = getattr(nibabel, kind, None) or getattr(nibabel.nifti2, kind)
    image = kind(VALUES, AFFINE, kind.header_class(endianness=order))
    nibabel.save(image, tmp_path / "a.img")
    for extra in tmp_path.glob("*.mat"):
        extra.unlink()
    found = require_as_nibabel(tmp_path / f"a{named}")
    assert found.world == "RAS" and ("is Analyze 7.5, which says no sides" in caplog.text) == ("Analyze" in str(kind))


def test_a_packed_pair_and_half_a_pair(tmp_path):
    nibabel.save(nibabel.Nifti1Pair(VALUES, AFFINE), tmp_path / "a.img.gz")
    np.testing.assert_array_equal(rm.load(tmp_path / "a.hdr.gz").values, VALUES)
    np.testing.assert_array_equal(rm.load(tmp_path / "a.img.gz").values, VALUES)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a.img.gz").rename(tmp_path / "elsewhere" / "a.img.gz")
    refused(lambda: rm.load(tmp_path / "a.hdr.gz"), "has its values in a.img, which is no file there; put it beside")
    (tmp_path / "elsewhere" / "a.img.gz").rename(tmp_path / "a.img.gz")
    np.testing.assert_array_equal(rm.load(tmp_path / "a.hdr.gz").values, VALUES)


def test_packed_by_bzip2_or_in_several_members_or_not_at_all_under_a_packed_name(tmp_path):
    nibabel.save(nibabel.Nifti1Image(VALUES, AFFINE), tmp_path / "a.nii")
    data = (tmp_path / "a.nii").read_bytes()
    (tmp_path / "a.nii.bz2").write_bytes(bz2.compress(data))
    (tmp_path / "b.nii.gz").write_bytes(
        gzip.compress(data[:300]) + gzip.compress(data[300:500]) + gzip.compress(data[500:])
    )
    (tmp_path / "c.nii.gz").write_bytes(data)
    (tmp_path / "d.nii").write_bytes(gzip.compress(data))
    for name in ("a.nii.bz2", "b.nii.gz", "c.nii.gz", "d.nii"):
        np.testing.assert_array_equal(rm.load(tmp_path / name).values, VALUES)


# Values.


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("of", [1, 2])
def test_every_type_of_number_in_either_order_is_read(code, order, of, tmp_path):
    kind = {1: nibabel.Nifti1Image, 2: nibabel.Nifti2Image}[of]
    image = kind((VALUES % 120).astype(code), AFFINE, kind.header_class(endianness=order), dtype=code)
    nibabel.save(image, tmp_path / "a.nii.gz")
    assert require_as_nibabel(tmp_path / "a.nii.gz").values.dtype == code


@pytest.mark.parametrize("names", ["RGB", "RGBA"])
def test_colours_are_channels(names, tmp_path):
    colours = np.zeros(VALUES.shape, [(name, "u1") for name in names])
    for k, name in enumerate(names):
        colours[name] = VALUES % 50 + k
    image = nibabel.Nifti1Image(colours, AFFINE)
    image.header["scl_slope"] = 5  # which NIfTI does not apply to colours
    nibabel.save(image, tmp_path / "a.nii.gz")
    refused(lambda: rm.load(tmp_path / "a.nii.gz"), f"has {len(names)} channels", "choose one by channel=0")
    found = rm.load(tmp_path / "a.nii.gz", channel=len(names) - 1)
    np.testing.assert_array_equal(found.numbers(), VALUES % 50 + len(names) - 1)


@pytest.mark.parametrize("code", ["c8", "c16"])
def test_complex_numbers_are_two_channels(code, tmp_path):
    nibabel.save(nibabel.Nifti1Image((VALUES + 2j * VALUES).astype(code), AFFINE), tmp_path / "a.nii")
    for channel in range(2):
        np.testing.assert_array_equal(rm.load(tmp_path / "a.nii", channel=channel).values, VALUES * (1 + channel))


@pytest.mark.parametrize(("told", "slope"), [(0, 1), (np.nan, 1), (np.inf, 1), (-2, -2), (0.5, 0.5)])
def test_a_slope_of_nothing_is_none(told, slope, tmp_path):
    nibabel.save(nibabel.Nifti1Image(VALUES, AFFINE), tmp_path / "a.nii")
    edited(tmp_path / "a.nii", slope=(112, "<2f", told, 10 if np.isfinite(told) else np.nan))
    found = rm.load(tmp_path / "a.nii")
    np.testing.assert_allclose(found.numbers(), VALUES * slope + (10 if slope != 1 else 0))


@pytest.mark.parametrize("shape", [(9, 7, 5, 1), (9, 7, 5, 1, 1), (9, 7, 5, 1, 1, 1, 1)])
def test_axes_of_one_place_behind_those_of_space_are_none(shape, tmp_path):
    nibabel.save(nibabel.Nifti1Image(VALUES.reshape(shape), AFFINE), tmp_path / "a.nii.gz")
    require_as_nibabel(tmp_path / "a.nii.gz")


@pytest.mark.parametrize(
    "intent", ["vector", "displacement vector", "dispvec", "pointset", "label", "rgb vector", "estimate"]
)
def test_an_intent_costs_nothing_and_vectors_are_channels(intent, tmp_path):
    several = np.stack([VALUES, 2 * VALUES, 3 * VALUES], -1)[:, :, :, None]
    image = nibabel.Nifti1Image(several, AFFINE)
    try:
        image.header.set_intent(intent, name="warp")
    except KeyError:
        image.header["intent_code"] = 2003
    nibabel.save(image, tmp_path / "a.nii.gz")
    np.testing.assert_array_equal(rm.load(tmp_path / "a.nii.gz", channel=2).values, 3 * VALUES)


# Places.


@pytest.mark.parametrize("codes", [(1, 0), (0, 1), (4, 1), (0, 0), (2, 2), (3, 0), (5, 3)])
@pytest.mark.parametrize("flip", [1, -1])
def test_the_sform_or_the_qform_or_neither_is_taken_as_by_nibabel(codes, flip, tmp_path, caplog):
    affine = PLACES["turned"].copy()
    affine[:3, 0] *= flip
    image = nibabel.Nifti1Image(VALUES, affine)
    image.header.set_qform(affine, max(codes[1], 1))
    nibabel.save(image, tmp_path / "a.nii")
    edited(tmp_path / "a.nii", qcode=(252, "<2h", codes[1], codes[0]))
    require_as_nibabel(tmp_path / "a.nii")
    assert ("says no orientation" in caplog.text) == (codes == (0, 0))


@pytest.mark.parametrize("step", [-2.0, 0.0])
def test_a_spacing_that_is_negative_or_none_is_mended_as_by_nibabel(step, tmp_path, caplog):
    image = nibabel.Nifti1Image(VALUES, AFFINE)
    image.set_sform(None, 0)
    image.set_qform(AFFINE, 1)
    nibabel.save(image, tmp_path / "a.nii")
    edited(tmp_path / "a.nii", step=(84, "<f", step))
    np.testing.assert_allclose(rm.load(tmp_path / "a.nii").spacing, (1, abs(step) or 1, 3))
    assert ("says no spacing along y; 1 is assumed" in caplog.text) == (step == 0)


def test_an_sform_and_a_qform_that_disagree_are_told(tmp_path, caplog):
    image = nibabel.Nifti1Image(VALUES, AFFINE)
    image.set_qform(np.diag([1.0, 2, 4, 1]), 1)
    image.set_sform(AFFINE, 1)
    nibabel.save(image, tmp_path / "a.nii")
    require_as_nibabel(tmp_path / "a.nii")
    assert "has an sform and a qform that are up to 4 apart; the sform is taken" in caplog.text
    caplog.clear()
    edited(tmp_path / "a.nii", tmp_path / "b.nii", qcode=(252, "<h", 0))
    rm.load(tmp_path / "b.nii")
    assert "says a spacing of 1 x 2 x 4 (pixdim), and another by its sform, which is taken" in caplog.text
    caplog.clear()
    edited(tmp_path / "a.nii", tmp_path / "c.nii", quatern=(256, "<3f", 3, 3, 3))
    rm.load(tmp_path / "c.nii")
    assert "has a qform that is none; its sform is taken" in caplog.text
    caplog.clear()
    image.set_qform(AFFINE, 1)
    nibabel.save(image, tmp_path / "d.nii")
    rm.load(tmp_path / "d.nii")
    assert "sform is taken" not in caplog.text


@pytest.mark.parametrize("row", [(0, 0, 0, 0), (np.nan, 0, 0, 0)])
def test_an_sform_that_is_none_is_passed_over_and_told(row, tmp_path, caplog):
    nibabel.save(nibabel.Nifti1Image(VALUES, AFFINE), tmp_path / "a.nii")
    edited(tmp_path / "a.nii", sform=(280, "<4f", *row), codes=(252, "<2h", 1, 1))
    np.testing.assert_allclose(rm.load(tmp_path / "a.nii").spacing, (1, 2, 3))
    assert "has an sform that is no place of a grid; its qform is taken" in caplog.text


@pytest.mark.parametrize(
    ("code", "unit"), [(0, ""), (2, "mm"), (10, "mm"), (19, "um"), (1, "m"), (5, ""), (7, ""), (0x42, "mm")]
)
def test_any_code_of_units_is_read_or_told(code, unit, tmp_path, caplog):
    nibabel.save(nibabel.Nifti1Image(VALUES, AFFINE), tmp_path / "a.nii")
    edited(tmp_path / "a.nii", units=(123, "<B", code))
    assert rm.load(tmp_path / "a.nii").length_unit == unit
    assert ("says no unit of length" in caplog.text) == (unit == "")


# Texts, and what is refused.


@pytest.mark.parametrize(("text", "letters"), [("Schädel", "latin-1"), ("Schädel", "utf-8"), ("頭部 CT", "utf-8")])
def test_a_description_in_other_letters_is_read_and_written(text, letters, tmp_path):
    image = nibabel.Nifti1Image(VALUES, AFFINE)
    image.header["descrip"] = text.encode(letters)
    nibabel.save(image, tmp_path / "a.nii.gz")
    found = rm.load(tmp_path / "a.nii.gz")
    assert found.name == text
    rm.save(found, tmp_path / "b.nii")
    assert rm.load(tmp_path / "b.nii").name == text


def test_a_unit_of_values_that_nifti_cannot_hold_is_said_to_stay_behind(tmp_path, caplog):
    rm.save(rm.ScalarVolume(VALUES, unit="Gy"), tmp_path / "a.nii")
    assert "NIfTI holds no unit of values (Gy), which stays behind" in caplog.text


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, "holds single bits (datatype 1)"),
        (77, "holds values of datatype 77"),
        (-3, "datatype -3"),
        (0, "datatype 0"),
    ],
)
def test_a_type_that_is_none_is_told_and_no_damage(code, said, tmp_path):
    nibabel.save(nibabel.Nifti1Image(VALUES, AFFINE), tmp_path / "a.nii")
    edited(tmp_path / "a.nii", code=(70, "<h", code))
    assert FAULT not in str(refused(lambda: rm.load(tmp_path / "a.nii"), said, "save it as uint8 or float32"))


def test_a_header_that_is_cut_is_damage(tmp_path):
    for of in (nibabel.Nifti1Image, nibabel.Nifti2Image):
        nibabel.save(of(VALUES, AFFINE), tmp_path / "a.nii")
        data = (tmp_path / "a.nii").read_bytes()
        for size in (300, 347, 350, 400, 539):
            (tmp_path / "b.nii").write_bytes(data[:size])
            assert FAULT not in str(refused(lambda: rm.load(tmp_path / "b.nii"), "b.nii: "))
