"""Law: the odd one among many is read with the others or named; marks for no value are no numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from sets import write_transforms
from skips import require_extra

import raymarch as rm

MASK = np.zeros((6, 8), bool)
MASK[1:4, 2:6] = True
FILLS = {"netCDF": 9.96921e36, "a raster": -3.4028235e38, "infinite": np.inf, "NaN": np.nan}


def masked(folder, masks):
    """A set of seven frames, of which the i-th has the mask `masks[i]`, where that is not None."""
    write_transforms(folder, names=[f"r_{i}.png" for i in range(len(masks))])
    document = json.loads((folder / "transforms.json").read_text())
    for i, mask in enumerate(masks):
        if mask is not None:
            Image.fromarray(mask.astype(np.uint8)).save(folder / f"m_{i}.png")
            document["frames"][i]["mask_path"] = f"m_{i}.png"
    (folder / "transforms.json").write_text(json.dumps(document))
    return folder


def test_the_few_images_without_a_mask_are_named(tmp_path, caplog):
    rm.load_views(masked(tmp_path / "set", [255 * MASK] * 3 + [None] + [255 * MASK] * 4), "all")
    assert "1 of 8 images have no mask, as the others do, so that all their pixels count (r_3.png)" in caplog.text


@pytest.mark.parametrize("masked_ones", [[0], [0, 1, 2, 3], list(range(8))])
def test_nothing_is_said_of_a_few_masks_or_of_masks_for_all(masked_ones, tmp_path, caplog):
    rm.load_views(masked(tmp_path / "set", [255 * MASK if i in masked_ones else None for i in range(8)]), "all")
    assert "have no mask" not in caplog.text


def test_images_that_are_listed_again_are_counted_whatever_lies_between(tmp_path, caplog):
    folder = write_transforms(tmp_path / "set", names=["a.png", "b.png", "c.png"])
    document = json.loads((folder / "transforms.json").read_text())
    document["frames"] += [document["frames"][0], document["frames"][0]]
    (folder / "transforms.json").write_text(json.dumps(document))
    rm.load_views(folder, "all")
    assert "some frames list the same image (a.png 3 times)" in caplog.text


GREYS = {
    "labels about half": (np.where(MASK, 200, 100), "100, 200"),
    "labels and ground": (np.where(MASK, 200, 100) * (np.arange(8) > 0), "0, 100, 200"),
    "many labels": ((np.arange(48).reshape(6, 8) % 9) * 20, "0, 20, 40, 60, 80, 100, .."),
    "the classes of a panoptic file": (np.where(MASK, 254, 3) * (np.arange(8) > 0), "0, 3, 254"),
}


@pytest.mark.parametrize("how", GREYS)
def test_greys_on_both_sides_of_half_without_white_are_told_and_the_cure_works(how, tmp_path):
    values, found = GREYS[how]
    folder = masked(tmp_path / "set", [values])
    with pytest.raises(rm.RaymarchError, match=f"m_0.png: mask has the values {found}: labels or greys.*write 0 where"):
        rm.load_views(folder, "all")
    Image.fromarray((255 * MASK).astype(np.uint8)).save(folder / "m_0.png")
    np.testing.assert_array_equal(rm.load_views(folder, "all").mask(0), MASK)


@pytest.mark.parametrize(("dark", "bright"), [(0, 1), (0, 128), (3, 254), (16, 235)])
def test_black_and_white_need_not_be_0_and_255(dark, bright, tmp_path):
    views = rm.load_views(masked(tmp_path / "set", [np.where(MASK, bright, dark)]), "all")
    np.testing.assert_array_equal(views.mask(0), MASK)


def test_a_dim_mask_with_soft_edges_is_a_mask(tmp_path):
    """Whatever its white is: one grey and the edge's few pixels are no labels."""
    views = rm.load_views(masked(tmp_path / "set", [240 * MASK]), "all")
    np.testing.assert_array_equal(views.mask(0), MASK)


@pytest.mark.parametrize("fill", FILLS)
def test_marks_for_no_value_are_told_and_the_cure_works(fill, tmp_path):
    values = np.arange(60, dtype=np.float32).reshape(3, 4, 5) + 7
    values[0, 1, :2] = FILLS[fill]
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(rm.RaymarchError, match=r"2 of its 60 values are .*nan='empty'.*--nan empty"):
        rm.load(tmp_path / "a.npy")
    assert rm.load(tmp_path / "a.npy", nan="empty").range == (7.0, 66.0)
    assert rm.load(tmp_path / "a.npy", nan=3).range == (3.0, 66.0)


@pytest.mark.parametrize("fill", FILLS)
def test_a_file_without_a_number_is_not_told_to_take_the_least(fill, tmp_path):
    np.save(tmp_path / "a.npy", np.full((3, 4, 5), FILLS[fill], np.float32))
    for how in ({}, {"nan": "empty"}):
        with pytest.raises(rm.RaymarchError, match="all its values are .*; see to how it was written"):
            rm.load(tmp_path / "a.npy", **how)


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["<u2", "<i2", "u1"])
@pytest.mark.parametrize("odd", [0, 2, 4])
def test_a_slice_of_another_whole_type_lies_among_the_others(kind, odd, tmp_path):
    pydicom = require_extra("pydicom", "formats")
    from test_corpus_of_slices import SLICES, series_in

    series_in(tmp_path / "a")
    file = sorted((tmp_path / "a").iterdir())[odd]
    data, pixels = pydicom.dcmread(file), np.full(SLICES[odd].shape, 200).astype(kind)
    data.PixelRepresentation = int(kind == "<i2")
    data.BitsAllocated = data.BitsStored = 8 * pixels.itemsize
    data.HighBit, data.PixelData = data.BitsStored - 1, pixels.tobytes()
    data.save_as(file)
    values = rm.load(tmp_path / "a").numbers()
    np.testing.assert_array_equal(values[..., odd], 200)
    for k in set(range(5)) - {odd}:
        np.testing.assert_array_equal(values[..., k], SLICES[k].T)
