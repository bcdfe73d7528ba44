"""Laws of TIFF, OME-Zarr, DICOM and folders of slices as their own libraries write them, with every optional part that
bears on values or places: what each is read as, and what is said of what is not read.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image
from skips import require_extra

import raymarch as rm

tifffile, zarr, pydicom, numcodecs = (
    require_extra(name, "formats") for name in ("tifffile", "zarr", "pydicom", "numcodecs")
)
require_extra("imagecodecs", "formats")
pytestmark = pytest.mark.extra
RNG = np.random.default_rng(0)
PAGES = RNG.integers(0, 3000, (5, 7, 9)).astype(np.uint16)  # z, y, x
GREY = "minisblack"


def load(path, caplog, **which):
    """A volume and what was said as it was read."""
    caplog.clear()
    found = rm.load(path, **which)
    return found, caplog.text


# TIFF by ImageJ.

IMAGEJ = [  # notes, dpi and its unit; spacing, unit of length, unit of values, value of 100, said
    ({"spacing": -0.5, "unit": "um"}, 1, (0.25, 0.25, 0.5), "um", "", 100, ""),
    ({"spacing": 500.0, "unit": "um", "zunit": "nm"}, 1, (0.25, 0.25, 0.5), "um", "", 100, ""),
    ({"spacing": 0.5, "unit": "um", "yunit": "nm"}, 1, (0.25, 0.00025, 0.5), "um", "", 100, ""),
    ({"spacing": 0.5, "unit": "um", "yunit": "furlong"}, 1, (0.25, 0.25, 0.5), "", "", 100, "axes in several units"),
    ({"spacing": 2.0, "unit": "\\u00B5m"}, 1, (0.25, 0.25, 2), "um", "", 100, ""),
    ({"spacing": 2.0}, 3, (0.25, 0.25, 2), "cm", "", 100, ""),
    ({"spacing": 2.0}, 2, (0.25, 0.25, 2), "inch", "", 100, ""),
    ({"spacing": 2.0, "unit": "inch"}, 1, (0.25, 0.25, 2), "inch", "", 100, ""),
    ({"spacing": 2.0, "unit": "pixel"}, 1, (0.25, 0.25, 2), "", "", 100, ""),
    ({"unit": "mm"}, 1, (0.25, 0.25, 1), "mm", "", 100, "says no spacing along z; 1 is assumed"),
    ({"spacing": 1, "cf": 0, "c0": -32768.0, "c1": 1.0, "vunit": "Gray Value"}, 1, None, "", "", -32668, ""),
    ({"spacing": 1, "cf": 0, "c0": -1024.0, "c1": 2.0, "vunit": "HU"}, 1, None, "", "HU", -824, ""),
    ({"spacing": 1, "cf": 20, "c0": 5.0, "c1": 2.0}, 1, None, "", "", 100, ""),
    ({"spacing": 1, "cf": 21}, 1, None, "", "", 100, ""),
    (
        {"spacing": 1, "cf": 3, "c0": 1.0, "c1": 2.0, "c2": 3.0},
        1,
        None,
        "",
        "",
        100,
        "ImageJ's function 3, which is not",
    ),
    ({"spacing": 1, "cf": 0, "vunit": "HU"}, 1, None, "", "", 100, "ImageJ's function 0, which is not"),
    (
        {"spacing": 1, "Info": "unit=km\nspacing=9\n", "min": 5.0, "max": 9.0, "finterval": 3.0},
        1,
        None,
        "",
        "",
        100,
        "",
    ),
]


@pytest.mark.parametrize(("notes", "of", "spacing", "length", "unit", "value", "said"), IMAGEJ)
def test_every_note_of_imagej_that_bears_on_values_or_places(
    notes, of, spacing, length, unit, value, said, tmp_path, caplog
):
    pages = PAGES.copy()
    pages[0, 0, 0] = 100
    metadata = {"axes": "ZYX", **notes}
    tifffile.imwrite(tmp_path / "a.tif", pages, imagej=True, resolution=(4, 4), resolutionunit=of, metadata=metadata)
    found, text = load(tmp_path / "a.tif", caplog)
    np.testing.assert_allclose(found.spacing, (0.25, 0.25, 1) if spacing is None else spacing)
    assert (found.length_unit, found.unit) == (length, unit)
    assert found.numbers()[0, 0, 0] == value
    np.testing.assert_array_equal(found.values, pages.T)
    assert said in text if said else not text


def test_resolutions_of_screens_are_none_to_imagej_nor_to_us(tmp_path, caplog):
    notes = {"axes": "ZYX", "spacing": 3.0}
    tifffile.imwrite(tmp_path / "a.tif", PAGES, imagej=True, resolution=(72, 72), resolutionunit=2, metadata=notes)
    found, _ = load(tmp_path / "a.tif", caplog)
    assert (found.spacing.tolist(), found.length_unit) == ([1, 1, 3], "")


def test_a_calibration_of_floats_is_applied_no_more_than_imagej_does(tmp_path, caplog):
    notes = {"axes": "ZYX", "spacing": 1, "cf": 0, "c0": 1.0, "c1": 2.0}
    tifffile.imwrite(tmp_path / "a.tif", PAGES.astype("f4"), imagej=True, metadata=notes)
    found, text = load(tmp_path / "a.tif", caplog)
    np.testing.assert_array_equal(found.numbers(), PAGES.T)
    assert "calibration of floats, which ImageJ does not apply" in text


# OME-TIFF.

UP = [10 + 0.4 * k for k in range(5)]
OME = [  # metadata, spacing, origin, said
    ({"PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5, "PhysicalSizeZ": 3}, (0.5, 0.5, 3), (0, 0, 0), ""),
    ({"PhysicalSizeX": 0.5, "PhysicalSizeY": 500, "PhysicalSizeYUnit": "nm", "PhysicalSizeZ": 3}, (0.5, 0.5, 3),
     (0, 0, 0), ""),
    ({"PhysicalSizeX": 1, "PhysicalSizeY": 1, "PhysicalSizeZ": 1e-4, "PhysicalSizeZUnit": "in"}, (1, 1, 2.54),
     (0, 0, 0), ""),
    ({"PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5, "Plane": {"PositionZ": UP, "PositionZUnit": ["µm"] * 5}},
     (0.5, 0.5, 0.4), (0, 0, 10), "says no PhysicalSizeZ; its planes are 0.4 apart by PositionZ, which is taken"),
    ({"PhysicalSizeX": 1, "PhysicalSizeY": 1, "PhysicalSizeZ": 3,
      "Plane": {"PositionZ": UP, "PositionZUnit": ["µm"] * 5}},
     (1, 1, 3), (0, 0, 10), "planes 3 by PhysicalSizeZ, which is taken, and 0.4 by PositionZ"),
    ({"PhysicalSizeX": 1, "PhysicalSizeY": 1, "PhysicalSizeZ": 0.4,
      "Plane": {"PositionZ": UP[::-1], "PositionZUnit": ["µm"] * 5}}, (1, 1, 0.4), (0, 0, 11.6),
     "whose PositionZ falls"),
    ({"PhysicalSizeX": 2, "PhysicalSizeZ": 3}, (2, 1, 3), (0, 0, 0), "says no spacing along y; 1 is assumed"),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "spacing", "origin", "said"), OME)
def test_sizes_and_positions_of_ome(metadata, spacing, origin, said, tmp_path, caplog):
    told = {"axes": "ZYX", "SignificantBits": 12, "TimeIncrement": 2.0, **metadata}
    tifffile.imwrite(tmp_path / "a.ome.tif", PAGES, metadata=told)
    found, text = load(tmp_path / "a.ome.tif", caplog)
    np.testing.assert_allclose(found.spacing, spacing)
    np.testing.assert_allclose(found.origin, origin)
    np.testing.assert_array_equal(found.values, PAGES.T)
    assert found.length_unit == "um" and (said in text if said else not text)


def test_a_position_is_that_of_the_channel_and_time_that_are_chosen(tmp_path):
    film = np.stack([PAGES, PAGES + 1, PAGES + 2])
    plane = {"PositionX": [5.0 + k // 5 for k in range(15)], "PositionXUnit": ["µm"] * 15}
    sizes = {f"PhysicalSize{axis}": 1.0 for axis in "XYZ"}
    tifffile.imwrite(tmp_path / "a.ome.tif", film, metadata={"axes": "TZYX", **sizes, "Plane": plane})
    for time in range(3):
        found = rm.load(tmp_path / "a.ome.tif", time=time)
        assert found.origin[0] == 5 + time and found.values[0, 0, 0] == film[time, 0, 0, 0]


def test_one_of_several_images_of_ome_is_chosen_and_a_label_left_out(tmp_path, caplog):
    with tifffile.TiffWriter(tmp_path / "a.ome.tif") as file:
        file.write(PAGES, photometric=GREY, metadata={"axes": "ZYX", "PhysicalSizeX": 1.0})
        file.write(PAGES[:4, :3, :6], photometric=GREY, metadata={"axes": "ZYX", "PhysicalSizeX": 2.0})
    found = rm.load(tmp_path / "a.ome.tif", channel=1)
    np.testing.assert_array_equal(found.values, PAGES[:4, :3, :6].T)
    assert found.spacing[0] == 2
    with tifffile.TiffWriter(tmp_path / "b.ome.tif") as file:
        file.write(PAGES, photometric=GREY, metadata={"axes": "ZYX"})
        file.write(np.zeros((20, 30, 3), "u1"), photometric="rgb", metadata={"axes": "YXS"})
    found, text = load(tmp_path / "b.ome.tif", caplog)
    np.testing.assert_array_equal(found.values, PAGES.T)
    assert "has pictures beside its stack (20 x 30 x 3), which are left out" in text


def test_levels_of_a_pyramid_in_a_tiff_are_chosen(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.ome.tif") as file:
        pages = np.arange(5 * 8 * 12, dtype="u2").reshape(5, 8, 12)
        sizes = {"PhysicalSizeX": 0.5, "PhysicalSizeY": 1.0, "PhysicalSizeZ": 2.0}
        file.write(pages, subifds=1, photometric=GREY, metadata={"axes": "ZYX", **sizes})
        file.write(pages[:, ::2, ::2], subfiletype=1, photometric=GREY)
    np.testing.assert_array_equal(rm.load(tmp_path / "a.ome.tif").values, pages.T)
    found = rm.load(tmp_path / "a.ome.tif", level=1)
    np.testing.assert_array_equal(found.values, pages[:, ::2, ::2].T)
    assert found.spacing.tolist() == [1, 2, 2]


# TIFF by tifffile and Pillow, with other pages beside the stack.


def stray(folder, kind):
    """A TIFF with a page that is none of its stack."""
    small, plain = np.zeros((20, 30), "u2"), {"photometric": GREY, "metadata": None}
    with tifffile.TiffWriter(folder / "a.tif") as file:
        if kind == "preview first":
            file.write(small, photometric=GREY, subfiletype=1)
        if kind == "first":
            file.write(small, **plain)
        if kind == "thumbnails between":
            for page in PAGES:
                file.write(page, **plain)
                file.write(page[::2, ::2], subfiletype=1, **plain)
            return
        if kind == "sub pages":
            file.write(PAGES, photometric=GREY, subifds=1)
            file.write(PAGES[:, ::2, ::2], photometric=GREY, subfiletype=1)
            return
        file.write(PAGES, photometric=GREY)
        if kind == "masks":
            file.write(PAGES > 9, photometric=GREY, subfiletype=4)
        if kind == "label":
            file.write(np.zeros((20, 30, 3), "u1"), photometric="rgb", metadata=None)
        if kind == "floats last":
            file.write(np.zeros((7, 9), "f4"), **plain)


@pytest.mark.parametrize(
    "kind", ["preview first", "first", "thumbnails between", "sub pages", "masks", "label", "floats last", "none"]
)
def test_a_page_that_is_none_of_a_stack_is_left_out_and_said(kind, tmp_path, caplog):
    stray(tmp_path, kind)
    found, text = load(tmp_path / "a.tif", caplog)
    np.testing.assert_array_equal(found.values, PAGES.T)
    assert ("left out" in text) == (kind not in ("none", "sub pages", "thumbnails between"))


SAID = [  # how tifffile writes it, what is said
    ({"photometric": "miniswhite"}, "says that 0 is white (MinIsWhite), which is not applied"),
    ({"extratags": [(274, "H", 1, 3, True)]}, "says orientation 3, which is not applied"),
    ({"extratags": [(42113, "s", 0, "-9999", True)]}, "says that -9999 stands for no data"),
    ({"extratags": [(33550, "d", 3, (0.5, 0.25, 2.0), True), (33922, "d", 6, (0, 0, 0, 1e5, 2e5, 0), True),
                    (34735, "H", 8, (1, 1, 0, 1, 1024, 0, 1, 1), True)]}, "a place on a map (GeoTIFF)"),
]  # fmt: skip


@pytest.mark.parametrize(("how", "said"), SAID)
def test_what_a_tiff_says_and_is_not_read_is_named(how, said, tmp_path, caplog):
    tifffile.imwrite(tmp_path / "a.tif", PAGES, **{"photometric": GREY, **how})
    found, text = load(tmp_path / "a.tif", caplog)
    np.testing.assert_array_equal(found.values, tifffile.imread(tmp_path / "a.tif").T)
    assert said in text
    assert found.spacing.tolist() == ([0.5, 0.25, 2] if "map" in said else [1, 1, 1])


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "u4", "i4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"byteorder": ">"},
        {"bigtiff": True},
        {"tile": (16, 16)},
        {"compression": "lzw"},
        {"compression": "zstd", "predictor": True},
        {"rowsperstrip": 2},
    ],
)
def test_numbers_of_every_type_and_packing(kind, how, tmp_path):
    if how.get("predictor") and kind in ("i8", "u8", "f2"):
        how = {"compression": "zstd"}
    pages = PAGES.astype(kind)
    tifffile.imwrite(tmp_path / "a.tif", pages, photometric=GREY, **how)
    found = rm.load(tmp_path / "a.tif")
    np.testing.assert_array_equal(found.values, pages.T)
    assert found.values.dtype == pages.dtype


@pytest.mark.parametrize("packing", [None, "group4", "packbits", "tiff_lzw"])
def test_masks_of_one_bit_are_0_and_1(packing, tmp_path):
    mask = PAGES > 1500
    first, *rest = (Image.fromarray(page) for page in mask)
    first.save(tmp_path / "a.tif", save_all=True, append_images=rest, compression=packing)
    found = rm.load(tmp_path / "a.tif")
    np.testing.assert_array_equal(found.values, mask.T)
    assert found.values.dtype == np.uint8
    tifffile.imwrite(tmp_path / "b.tif", mask)
    np.testing.assert_array_equal(rm.load(tmp_path / "b.tif").values, mask.T)


# Folders of pictures.


def slices_in(folder, ending=".png", pages=None, name="rec_{:04d}", **how):
    folder.mkdir(exist_ok=True)
    for k, page in enumerate(PAGES.astype("u1") if pages is None else pages):
        Image.fromarray(page).save(folder / (name.format(k + 8) + ending), **how)
    return folder


@pytest.mark.parametrize("ending", [".png", ".bmp", ".tif", ".PNG", ".webp", ".jpg", ".jpeg"])
@pytest.mark.parametrize("colours", [False, True])
def test_grey_pictures_of_any_kind_are_slices(ending, colours, tmp_path, caplog):
    how = {"lossless": True} if ending == ".webp" else {"quality": 95} if ending[1] == "j" else {}
    grey = np.repeat(np.repeat(PAGES.astype("u1")[:, :2, :2], 8, 1), 8, 2)  # flat blocks, which JPEG keeps nearly
    pages = np.repeat(grey[..., None], 3, 3) if colours else grey
    folder = slices_in(tmp_path / "a", ending, pages, name="s{}", **how)
    found, _ = load(folder, caplog)
    assert found.shape == (16, 16, 5) and found.values.dtype == np.uint8
    np.testing.assert_allclose(found.values, grey.T, atol=4 if ending[1] == "j" else 0)


@pytest.mark.parametrize("ending", [".png", ".tif"])
def test_pictures_of_16_bits_keep_them(ending, tmp_path):
    found = rm.load(slices_in(tmp_path / "a", ending, PAGES))
    np.testing.assert_array_equal(found.values, PAGES.T)
    assert found.values.dtype == np.uint16


def test_masks_of_one_bit_in_a_folder(tmp_path):
    found = rm.load(slices_in(tmp_path / "a", ".png", PAGES > 1500))
    np.testing.assert_array_equal(found.values, (PAGES > 1500).T)


STRAYS = ["rec_spr.bmp", "Thumbs.db", ".DS_Store", "._rec_0008.png", "desktop.ini", "rec.log", "rec.crv",
          "metadata.xml", "settings.json", "notes.pdf", "preview.jpg", "old"]  # fmt: skip


@pytest.mark.parametrize("stray", STRAYS)
def test_what_lies_beside_slices_is_none_of_them(stray, tmp_path, caplog):
    folder = slices_in(tmp_path / "a")
    if stray == "old":
        (folder / stray).mkdir()
    elif stray.endswith((".bmp", ".jpg")):
        Image.fromarray(np.zeros((30, 40), "u1")).save(folder / stray)
    else:
        (folder / stray).write_bytes(b"\0\5\x16\7 or whatever")
    found, text = load(folder, caplog)
    np.testing.assert_array_equal(found.values, PAGES.astype("u1").T)
    assert (f"{stray} is named as none of the slices, and left out" in text) == stray.endswith((".bmp", ".jpg"))


LOGS = [
    ("[Reconstruction]\nPixel Size (um)=17.5\n", (17.5, 17.5, 17.5)),
    ("[Acquisition]\nImage Pixel Size (um)=9\n[Reconstruction]\nPixel Size (um)=17,5\n", (17.5, 17.5, 17.5)),
    ("Camera Pixel Size (um)=   7.4\nImage Pixel Size (um)=   9.01\n", (9.01, 9.01, 9.01)),
    ("Pixel Size (um)=2.0\nSection to Section Step=4\n", (2, 2, 8)),
]


@pytest.mark.parametrize(("log", "spacing"), LOGS)
def test_the_pixel_size_of_a_scanner_s_log_is_read_and_said(log, spacing, tmp_path, caplog):
    folder = slices_in(tmp_path / "a")
    (folder / "rec.log").write_text(log)
    found, text = load(folder, caplog)
    np.testing.assert_allclose(found.spacing, spacing)
    assert found.length_unit == "um" and "um is by rec.log" in text and "assumed" not in text


@pytest.mark.parametrize(
    "beside", ["transforms.json", "cameras.txt", "images.bin", "sparse", "poses_bounds.npy", "a.nvm"]
)
def test_an_image_set_is_no_folder_of_slices(beside, tmp_path):
    folder = slices_in(tmp_path / "a")
    (folder / beside).mkdir() if "." not in beside else (folder / beside).write_text("{}")
    with pytest.raises(rm.RaymarchError):
        rm.load(folder)


def test_gaps_in_the_numbers_of_slices_are_named(tmp_path, caplog):
    folder = slices_in(tmp_path / "a")
    assert "a gap in its" not in load(folder, caplog)[1]
    (folder / "rec_0010.png").unlink()
    assert "has a gap in its numbers between rec_0009.png and rec_0011.png" in load(folder, caplog)[1]
    even = slices_in(tmp_path / "b", name="s{0}0")
    assert "a gap in its" not in load(even, caplog)[1]


# Zarr.

SPACE = [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "zyx"]
SCALED = [{"type": "scale", "scale": [2, 1, 0.5]}]


def image(path, axes=SPACE, level=SCALED, whole=None, data=PAGES, version=2, **how):
    """An image of one level; parts that are None are left out."""
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    group.create_array("0", shape=data.shape, dtype=data.dtype, **{"chunks": data.shape, **how})[...] = data
    told = {"datasets": [{"path": "0", **({} if level is None else {"coordinateTransformations": level})}]}
    told |= {} if axes is None else {"axes": axes}
    told |= {} if whole is None else {"coordinateTransformations": whole}
    group.attrs.update({"multiscales": [told]} if version == 2 else {"ome": {"version": "0.5", "multiscales": [told]}})
    return group


ZARRS = [  # how it is written, spacing, unit, said
    ({}, (0.5, 1, 2), "um", ""),
    ({"version": 3}, (0.5, 1, 2), "um", ""),
    ({"axes": ["z", "y", "x"], "level": None}, (1, 1, 1), "", "says no scale; 1 is assumed"),
    ({"axes": None, "level": None, "data": PAGES[None, None]}, (1, 1, 1), "", "says no scale"),
    ({"axes": None, "level": None}, (1, 1, 1), "", "says no scale"),
    ({"axes": [{"name": n, "type": "space"} for n in "ZYX"]}, (0.5, 1, 2), "", ""),
    ({"axes": [{"name": f"dim_{n}", "type": "space"} for n in range(3)]}, (0.5, 1, 2), "", "none called x, y or z"),
    ({"whole": [{"type": "scale", "scale": [10, 10, 10]}, {"type": "identity"}]}, (5, 10, 20), "um", ""),
    ({"level": [{"type": "affine", "affine": [[1]]}]}, (1, 1, 1), "um", "of type affine, which is not read"),
    ({"level": [{"type": "scale", "scale": [0, 1, 1]}]}, (1, 1, 1), "um", "has a scale of 0; 1 is assumed"),
    ({"axes": [*SPACE[:2], {"name": "x", "type": "space", "unit": "nanometer"}]}, (0.0005, 1, 2), None, ""),
    ({"order": "F"}, (0.5, 1, 2), "um", ""),
    ({"filters": [numcodecs.Delta("u2")]}, (0.5, 1, 2), "um", ""),
    ({"compressors": None}, (0.5, 1, 2), "um", ""),
    ({"version": 3, "shards": (6, 8, 9), "chunks": (3, 4, 3)}, (0.5, 1, 2), "um", ""),
    ({"chunks": (2, 3, 4), "chunk_key_encoding": {"name": "v2", "separator": "/"}}, (0.5, 1, 2), "um", ""),
]


@pytest.mark.parametrize(("how", "spacing", "unit", "said"), ZARRS)
def test_every_part_that_an_ome_zarr_may_have_or_lack(how, spacing, unit, said, tmp_path, caplog):
    image(tmp_path / "a.zarr", **how)
    found, text = load(tmp_path / "a.zarr", caplog)
    np.testing.assert_array_equal(found.values, PAGES.T)
    if unit is not None:
        np.testing.assert_allclose(found.spacing, spacing)
        assert found.length_unit == unit
    assert said in text if said else not text


@pytest.mark.parametrize("kind", ["bool", "u1", "i1", ">u2", "i4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("version", [2, 3])
def test_numbers_of_every_type_in_a_zarr(kind, version, tmp_path):
    data = (PAGES > 1500) if kind == "bool" else PAGES.astype(kind)
    image(tmp_path / "a.zarr", data=data, version=version)
    np.testing.assert_array_equal(rm.load(tmp_path / "a.zarr").values, data.T)


def test_numbers_of_a_place_may_be_in_an_array_of_their_own(tmp_path):
    group = image(tmp_path / "a.zarr", level=[{"type": "scale", "path": "steps"}])
    group.create_array("steps", shape=(3,), dtype="f8")[...] = (3, 2, 1)
    assert rm.load(tmp_path / "a.zarr").spacing.tolist() == [1, 2, 3]


def test_chunks_that_are_not_there_are_what_fills_them(tmp_path):
    image(tmp_path / "a.zarr", data=np.full((5, 7, 9), 7, "u2"), fill_value=7)
    assert (rm.load(tmp_path / "a.zarr").values == 7).all()


def test_an_array_of_zarr_by_itself_is_read_by_the_names_of_its_axes(tmp_path, caplog):
    plain = zarr.open_array(str(tmp_path / "a.zarr"), mode="w", shape=PAGES.shape, dtype="u2", chunks=PAGES.shape)
    plain[...] = PAGES
    found, text = load(tmp_path / "a.zarr", caplog)
    np.testing.assert_array_equal(found.values, PAGES.T)
    assert "names no axes, z, y, x are assumed; says no spacing, 1 is assumed" in text
    called = zarr.create_array(str(tmp_path / "b.zarr"), shape=PAGES.shape, dtype="u2", dimension_names=["x", "y", "z"])
    called[...] = PAGES
    np.testing.assert_array_equal(rm.load(tmp_path / "b.zarr").values, PAGES)


def test_a_library_of_before_3_1_says_its_codecs_as_objects(tmp_path, monkeypatch):
    image(tmp_path / "a.zarr", compressors=numcodecs.Zstd())
    metadata = type(zarr.open_group(str(tmp_path / "a.zarr"), mode="r")["0"].metadata)
    told = metadata.to_dict
    objects = lambda self: told(self) | {"compressor": numcodecs.Zstd(), "filters": None}  # noqa: E731
    monkeypatch.setattr(metadata, "to_dict", objects)
    np.testing.assert_array_equal(rm.load(tmp_path / "a.zarr").values, PAGES.T)


# DICOM.

CT = "1.2.840.10008.5.1.4.1.1.2"


def write_slice(file, series, position, along, pixels, number, **tags):
    """A slice as a scanner writes it."""
    meta = pydicom.dataset.FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID = CT, pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    data = pydicom.dataset.FileDataset(str(file), {}, file_meta=meta, preamble=bytes(128))
    data.SOPClassUID, data.SOPInstanceUID = CT, meta.MediaStorageSOPInstanceUID
    data.SeriesInstanceUID, data.Modality, data.InstanceNumber = series, "CT", number
    data.Rows, data.Columns = pixels.shape
    data.BitsAllocated = data.BitsStored = 16
    data.HighBit, data.PixelRepresentation, data.SamplesPerPixel = 15, 1, 1
    data.PhotometricInterpretation, data.ImageType = "MONOCHROME2", ["ORIGINAL", "PRIMARY", "AXIAL"]
    data.ImagePositionPatient, data.ImageOrientationPatient = list(position), list(along)
    data.PixelSpacing, data.PixelData = [0.7, 0.9], pixels.astype("<i2").tobytes()
    for tag, value in tags.items():
        if isinstance(value, tuple):
            data.add_new(*value)
        else:
            setattr(data, tag, value)
    data.save_as(file, enforce_file_format=True)


FLAT, SIDE = (1, 0, 0, 0, 1, 0), (1, 0, 0, 0, 0, -1)
SLICES = PAGES.astype("i2")  # slice, row, column


def series_in(folder, **tags):
    """Five slices of a series; its identity."""
    folder.mkdir(exist_ok=True)
    uid = pydicom.uid.generate_uid()
    for k, pixels in enumerate(SLICES):
        write_slice(folder / f"IM{k + 2:04d}", uid, (-5, -6, 10 + 2.5 * k), FLAT, pixels, k + 2, **tags)
    return uid


def beside(folder, uid, kind):
    """A file beside the slices of a series that is none of them."""
    other, file = pydicom.uid.generate_uid(), folder / ("IM0001" if "first" in kind else "IM0099")
    small = np.zeros((16, 12), "i2")
    if kind == "localizer first":
        write_slice(file, uid, (-5, -300, 40), SIDE, small, 1, ImageType=["ORIGINAL", "PRIMARY", "LOCALIZER"])
    elif kind in ("unmarked scout first", "unmarked scout last"):
        write_slice(file, uid, (-5, -300, 40), SIDE, SLICES[0], 1)
    elif kind in ("other size first", "other size last"):
        write_slice(file, uid, (-5, -6, 90), FLAT, small, 1)
    elif kind == "other spacing last":
        write_slice(file, uid, (-5, -6, 22.5), FLAT, SLICES[0], 1, PixelSpacing=[1, 1])
    elif kind == "scout of another series":
        write_slice(file, other, (-5, -300, 40), SIDE, small, 1)
    elif kind == "secondary capture":
        write_slice(file, other, (0, 0, 0), FLAT, small, 1)
        data = pydicom.dcmread(file)
        del data.ImagePositionPatient
        data.save_as(file)
    elif kind == "coloured report":
        write_slice(file, other, (0, 0, 0), FLAT, small, 1, SamplesPerPixel=3, PhotometricInterpretation="RGB")
    elif kind in ("structured report", "presentation state"):
        data = pydicom.dataset.Dataset()
        data.SOPClassUID = f"1.2.840.10008.5.1.4.1.1.{'88.22' if 'report' in kind else '11.1'}"
        data.SOPInstanceUID, data.SeriesInstanceUID, data.Modality = other, other, "SR" if "report" in kind else "PR"
        data.file_meta = pydicom.dataset.FileMetaDataset()
        data.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        data.save_as(file, enforce_file_format=True)
    elif kind in ("DICOMDIR", "DIRFILE", "IM0000"):
        meta = pydicom.dataset.FileMetaDataset()
        meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = "1.2.840.10008.1.3.10", other
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        data = pydicom.dataset.FileDataset(kind, {}, file_meta=meta, preamble=bytes(128))
        data.FileSetID = "X"
        data.save_as(folder / kind, enforce_file_format=True)
    elif kind == "copy":
        shutil.copy(folder / "IM0004", folder / "IM0004 (1)")
    elif kind == "hidden":
        (folder / "._IM0004").write_bytes((folder / "IM0004").read_bytes())


LEFT_OUT = [
    "localizer first", "unmarked scout first", "unmarked scout last", "other size first", "other size last",
    "other spacing last", "scout of another series", "secondary capture", "coloured report", "structured report",
    "presentation state", "copy",
]  # fmt: skip


@pytest.mark.parametrize("kind", [*LEFT_OUT, "DICOMDIR", "DIRFILE", "IM0000", "hidden"])
def test_most_slices_of_a_folder_are_the_volume_and_the_others_are_named(kind, tmp_path, caplog):
    beside(tmp_path / "a", series_in(tmp_path / "a"), kind)
    found, text = load(tmp_path / "a", caplog)
    np.testing.assert_array_equal(found.values, SLICES.transpose(2, 1, 0))
    np.testing.assert_allclose(found.spacing, (0.9, 0.7, 2.5))
    name = "IM0004 (1)" if kind == "copy" else "IM0001" if "first" in kind else "IM0099"
    assert (f"{name} is left out, being" in text) == (kind in LEFT_OUT)


TOLD = [  # tags; unit, value of the first, said
    ({}, "HU", 1, ""),
    ({"RescaleSlope": "2", "RescaleIntercept": "-1024"}, "HU", 2, ""),
    ({"RescaleType": "OD"}, "OD", 1, ""),
    ({"Modality": "PT", "Units": "BQML"}, "BQML", 1, ""),
    ({"Modality": "MR"}, "", 1, ""),
    ({"PhotometricInterpretation": "MONOCHROME1"}, "HU", 1, "low values are shown white (MONOCHROME1)"),
    ({"a": (0x00280120, "SS", -2000)}, "HU", 1, "-2000 stands for no measurement (PixelPaddingValue)"),
    ({"a": (0x20050010, "LO", "Philips MR Imaging DD 001"), "b": (0x2005100E, "FL", 0.5), "c": (0x2005100D, "FL", 0.0),
      "Modality": "MR"}, "", 1, "Philips' own scale, (stored - (0)) / 0.5, which is not applied"),
]  # fmt: skip


@pytest.mark.parametrize(("tags", "unit", "slope", "said"), TOLD)
def test_what_dicom_says_of_its_numbers_is_applied_or_named(tags, unit, slope, said, tmp_path, caplog):
    series_in(tmp_path / "a", **tags)
    found, text = load(tmp_path / "a", caplog)
    wanted = SLICES.transpose(2, 1, 0) * float(slope) + (-1024 if slope == 2 else 0)
    np.testing.assert_array_equal(found.numbers(), wanted)
    assert found.unit == unit and (said in text if said else not text)


@pytest.mark.parametrize(
    ("letters", "name"),
    [
        ("ISO_IR 192", "頭部 Tête"),
        (["", "ISO 2022 IR 149"], "김희중"),
        ("ISO_IR 100", "Schädel"),
        ("ISO_IR 144", "Голова"),
    ],
)
def test_names_in_any_script_are_kept_there_and_back(letters, name, tmp_path):
    folder = tmp_path / "a"
    series_in(folder, SpecificCharacterSet=letters, SeriesDescription=name)
    found = rm.load(folder)
    assert found.name == name
    rm.save(found, tmp_path / "b.dicom")
    assert rm.load(tmp_path / "b.dicom").name == name
    assert pydicom.dcmread(tmp_path / "b.dicom" / "00000.dcm").SeriesDescription == name


@pytest.mark.parametrize("units", [{"DoseUnits": "GY"}, {"DoseUnits": "RELATIVE"}])
def test_the_unit_of_a_dose_is_kept(units, tmp_path):
    write_slice(
        tmp_path / "dose.dcm",
        "1.2",
        (0, 0, 0),
        FLAT,
        SLICES[0],
        1,
        Modality="RTDOSE",
        NumberOfFrames=5,
        GridFrameOffsetVector=[0, 2, 4, 6, 8],
        DoseGridScaling="0.5",
        PixelData=SLICES.tobytes(),
        **units,
    )
    found = rm.load(tmp_path / "dose.dcm")
    np.testing.assert_array_equal(found.numbers(), 0.5 * SLICES.transpose(2, 1, 0))
    assert found.unit == {"GY": "Gy", "RELATIVE": "relative"}[units["DoseUnits"]] and found.spacing[2] == 2


def test_directions_that_are_written_with_two_figures_are_unit_vectors(tmp_path):
    series_in(tmp_path / "a", ImageOrientationPatient=[0.71, 0.71, 0, -0.71, 0.71, 0])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(
        rm.load(tmp_path / "a").directions, [[half, -half, 0], [half, half, 0], [0, 0, 1]], atol=1e-12
    )


@pytest.mark.parametrize("order", [b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08"])
def test_a_dicom_file_whose_preamble_is_the_head_of_a_tiff_is_dicom(order, tmp_path):
    base = pydicom.data.get_testdata_file("rtdose.dcm")
    with open(base, "rb") as file:
        data = bytearray(file.read())
    data[:8] = order
    for name in ("dose.dcm", "dose", "IM0001.ima"):
        (tmp_path / name).write_bytes(bytes(data))
        assert rm.load(tmp_path / name).shape == (10, 10, 15)
