"""Law: what a format keeps in single precision is kept another way, or told with the number that it moves or rounds."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm

pytestmark = pytest.mark.extra
require_extra("nibabel", "formats")
require_extra("mrcfile", "formats")
require_extra("tifffile", "formats")
require_extra("nrrd", "formats")
require_extra("zarr", "formats")

SUFFIXES = (".nii", ".nii.gz", ".nrrd", ".mha", ".mrc", ".tif", ".ome.tif", ".vti", ".zarr", ".h5", ".xdmf", ".npz")
STEPS = np.array([0.05, 0.0501234567, 0.1])
PLACES = {
    "UTM": (500000.123456789, 5400000.98765, -300.5),
    "an ECEF": (-2694045.0123, -4293642.456, 3857878.789),
    "near": (-31.25, 12.125, 0.7),
}
NAMED = ("place", "slope", "values")


def scan(place, values=None, **scale):
    affine = np.diag([*STEPS, 1.0])
    affine[:3, 3] = PLACES[place]
    values = np.arange(120, dtype=np.int16).reshape(6, 5, 4) if values is None else values
    return rm.ScalarVolume(values, affine, length_unit="mm", **scale)


def ends(volume):
    """The corners, but for what is left and right, which formats have in their own worlds."""
    return np.sort(np.abs(volume.corners), axis=0)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_samples_stay_where_they_are_or_it_is_said_by_how_much_they_move(suffix, place, tmp_path, caplog):
    volume = scan(place)
    with caplog.at_level(logging.WARNING):
        rm.save(volume, tmp_path / f"v{suffix}")
    told = [text for text in caplog.messages if "samples move by up to" in text]
    again = rm.load(tmp_path / f"v{suffix}")
    if suffix == ".mrc":  # in angstrom, and mm are taken as one
        assert again.length_unit == "angstrom"
    off = np.abs(ends(again) - ends(volume)).max()
    if off > 0.01 * STEPS.min():
        assert len(told) == 1 and ".nrrd" in told[0]
        said = float(told[0].split("up to ")[1].split(",")[0])
        assert said == pytest.approx(off, rel=0.1)
    else:
        assert not told
    assert (suffix in (".nii", ".nii.gz", ".mrc") and place != "near") == bool(told)


@pytest.mark.parametrize("scale", [{"slope": 0.1, "intercept": 1e7 + 0.123}, {"slope": 1 / 3, "intercept": -1024.1}])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_slope_and_intercept_keep_steps_apart(suffix, scale, tmp_path, caplog):
    volume = scan("near", **scale)
    with caplog.at_level(logging.WARNING):
        rm.save(volume, tmp_path / f"v{suffix}")
    again = rm.load(tmp_path / f"v{suffix}")
    off = np.abs(again.numbers().astype(float) - volume.numbers().astype(float)).max()
    assert off <= 0.02 * scale["slope"] or (suffix == ".mrc" and f"by up to {off:.2g}" in " ".join(caplog.messages))


WIDE = {
    "float64": np.pi * np.arange(120).reshape(6, 5, 4),
    "int32": 2**31 - 1 - np.arange(120, dtype=np.int32).reshape(6, 5, 4),
    "int64": 2**53 + np.arange(120).reshape(6, 5, 4),
    "uint64": 2**64 - 1 - np.arange(120, dtype=np.uint64).reshape(6, 5, 4),
    "float16": np.arange(120, dtype=np.float16).reshape(6, 5, 4),
    "1000 and little": 1000 + 1e-6 * np.arange(120).reshape(6, 5, 4),
}


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_values_are_kept_or_rounding_is_said_or_refused(suffix, kind, tmp_path, caplog):
    values = WIDE[kind]
    volume = scan("near", values)
    try:
        with caplog.at_level(logging.WARNING):
            rm.save(volume, tmp_path / f"v{suffix}")
    except rm.RaymarchError as error:
        assert "save it as .nrrd" in str(error)
        rm.save(volume, tmp_path / "v.nrrd")  # as it says
        np.testing.assert_array_equal(rm.load(tmp_path / "v.nrrd").values, values)
        return
    kept = rm.load(tmp_path / f"v{suffix}").values
    off = max(abs(a.item() - b.item()) for a, b in zip(kept.ravel(), values.ravel(), strict=True))
    told = [text for text in caplog.messages if "rounds values by up to" in text]
    assert bool(told) == (off > 0)
    if told:
        assert float(told[0].split("up to ")[1].split(";")[0]) == pytest.approx(off, rel=0.1, abs=1e-300)


def test_a_fit_whose_sigma_is_nearly_one_number_is_kept_in_doubles(tmp_path):
    sigma = 1000 + 1e-4 * np.random.default_rng(3).random((4, 4, 4))
    volume = rm.Volume(sigma, np.zeros((4, 4, 4, 3)), np.eye(4), rm.Activation("identity"))
    rm.save(volume, tmp_path / "v.nrrd")
    np.testing.assert_allclose(rm.load(tmp_path / "v.nrrd").values, sigma, rtol=0, atol=1e-9)


def test_what_stands_for_nan_is_kept_though_half_precision_has_no_such_number(tmp_path):
    values = np.arange(24, dtype=np.float16).reshape(2, 3, 4)
    values[0, 0, 0] = np.nan
    np.savez(tmp_path / "v.npz", values=values)
    assert rm.load(tmp_path / "v.npz", nan=1e6).values[0, 0, 0] == 1e6
