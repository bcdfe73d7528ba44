"""Law: colours of a file with a colour profile of its own are those that the profile means, in sRGB; alpha stays."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from PIL import Image, ImageCms

from raymarch.io.images.decode import decode, decode_alpha, decode_mask
from raymarch.io.images.header import read_header

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
# primaries as ICC profiles hold them, columns of XYZ under D50
OF_SRGB = np.array([[0.43607, 0.38515, 0.14307], [0.22249, 0.71687, 0.06061], [0.01392, 0.09708, 0.71410]])
PRIMARIES = {
    "Display P3": np.array([[0.51512, 0.29198, 0.15710], [0.24120, 0.69225, 0.06657], [-0.00105, 0.04189, 0.78407]]),
    "Adobe RGB": np.array([[0.60974, 0.20528, 0.14919], [0.31111, 0.62567, 0.06322], [0.01947, 0.06087, 0.74457]]),
    "red in green's place": OF_SRGB[:, [1, 0, 2]],
}
MODES = ["RGB", "RGBA", "P"]


def profile_of(primaries):
    """sRGB's profile with other primaries: its curve, and tags of XYZ in fixed point."""
    made = bytearray(SRGB)
    count = struct.unpack(">I", made[128:132])[0]
    for i in range(count):
        name, offset = made[132 + 12 * i : 136 + 12 * i], struct.unpack(">I", made[136 + 12 * i : 140 + 12 * i])[0]
        if name[1:] == b"XYZ":
            column = primaries[:, b"rgb".index(name[0])]
            made[offset + 8 : offset + 20] = struct.pack(">3i", *(round(x * 65536) for x in column))
    return bytes(made)


def as_srgb(colours, primaries):
    """Colours uint8 of these primaries and sRGB's curve, in sRGB: light, matrices, and clipped."""
    shown = colours / 255
    light = np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)
    there = np.clip(light @ (np.linalg.inv(OF_SRGB) @ primaries).T, 0, 1)
    return 255 * np.where(there <= 0.0031308, 12.92 * there, 1.055 * there ** (1 / 2.4) - 0.055)


def image_of(mode):
    pixels = np.random.default_rng(7).integers(0, 256, (40, 30, 4), dtype=np.uint8)
    image = Image.fromarray(pixels).convert("RGB") if mode == "P" else Image.fromarray(pixels).convert(mode)
    return image.quantize(64) if mode == "P" else image


@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("primaries", PRIMARIES)
def test_colours_are_those_that_the_profile_means(tmp_path, caplog, primaries, mode, suffix):
    image, path = image_of(mode), tmp_path / f"a.{suffix}"
    image.save(path, icc_profile=profile_of(PRIMARIES[primaries]))
    found = decode([path])[0]
    stored = np.asarray(image.convert("RGB" if mode == "P" else mode))
    wanted = as_srgb(stored[..., :3], PRIMARIES[primaries])
    assert np.abs(found[..., :3] - wanted).max() < 2.5  # levels: littlecms counts in fixed point
    assert np.abs(found[..., :3] - wanted).mean() < 0.5
    np.testing.assert_array_equal(found[..., 3:], stored[..., 3:])
    assert "brought to sRGB" in caplog.text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("profile", [SRGB, profile_of(OF_SRGB), b"", b"no profile", SRGB[:200]])
def test_pixels_of_srgb_or_of_a_profile_that_is_not_read_stay_bit_for_bit(tmp_path, caplog, profile, mode):
    image = image_of(mode)
    image.save(tmp_path / "a.png", icc_profile=profile)
    stored = np.asarray(image.convert("RGB" if mode == "P" else mode))
    np.testing.assert_array_equal(decode([tmp_path / "a.png"])[0], stored)
    assert not caplog.records


def test_a_profile_of_ink_is_passed_over(tmp_path, caplog):
    image = image_of("RGB").convert("CMYK")
    image.save(tmp_path / "a.tif", icc_profile=profile_of(PRIMARIES["Adobe RGB"]).replace(b"RGB XYZ ", b"CMYKXYZ "))
    assert decode([tmp_path / "a.tif"])[0].shape == (40, 30, 3)
    assert "brought to sRGB" not in caplog.text


def test_a_mask_and_alpha_are_the_numbers_that_are_stored(tmp_path):
    """Whatever profile an editor saves with them."""
    stored = np.zeros((6, 8, 3), np.uint8)
    stored[:, :4], stored[3:, 4:] = 255, (120, 0, 0)  # in sRGB over a half
    for name, how in (("plain", {}), ("p3", {"icc_profile": profile_of(PRIMARIES["Display P3"])})):
        Image.fromarray(stored).save(tmp_path / f"{name}.png", **how)
    plain, p3 = ((path, read_header(path)) for path in (tmp_path / "plain.png", tmp_path / "p3.png"))
    for inverted in (False, True):
        masks = [decode_mask(path, of, (8, 6), inverted=inverted) for path, of in (plain, p3)]
        np.testing.assert_array_equal(*masks)
        assert 0 < masks[0].mean() < 1
    np.testing.assert_array_equal(decode_alpha(*p3), stored[..., 0])
