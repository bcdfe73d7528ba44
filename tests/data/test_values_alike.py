"""Law of values that are alike, or alike to some units in the last place: no library's error, and ends that differ."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from raymarch.cli.info import suggestions
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.value_kind import HISTOGRAM_BINS, bin_range, contents_of, distinct_range, kind_of
from raymarch.volumes.volume import VOLUME

SHAPE = (4, 5, 6)
MIDDLES = {
    "of a single": (np.float32, 1e7),
    "of a half": (np.float16, 2000.0),
    "one": (np.float64, 1.0),
    "far below zero": (np.float64, -1e17),
    "great": (np.float64, 1e29),
    "small": (np.float64, 1e-200),
    "whole": (np.int64, 2**53),
    "zero": (np.float64, 0.0),
}
STEPS = (0, 1, 2, 100, 1023, 1025, 10**6)  # units in the last place


def alike(dtype, middle, steps):
    """Two values, so many units in the last place apart."""
    values = np.full(SHAPE, middle, dtype)
    step = np.spacing(dtype(middle)) if np.issubdtype(dtype, np.floating) else 1
    values[0, 0, :2] = dtype(middle) + dtype(steps) * dtype(step)
    return values


@pytest.mark.parametrize("name", MIDDLES)
@pytest.mark.parametrize("steps", STEPS)
def test_values_that_are_alike_are_told(name, steps):
    dtype, middle = MIDDLES[name]
    volume = ScalarVolume(alike(dtype, middle, min(steps, 500) if dtype is np.float16 else steps))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = contents_of(volume)
        kind = kind_of(VOLUME("volume", volume))
        suggestions("v.npy", volume, {})
    assert sum(found.counts) == volume.values.size and found.low <= found.mean <= found.high
    assert np.isfinite([kind.low, kind.high, kind.ground, kind.top]).all() and kind.ground < kind.top


@pytest.mark.parametrize("middle", [0.0, 1.0, -3.0, 1e17, -1e17, 1e30, 5e-324])
def test_ends_of_a_range_differ_also_as_bins(middle):
    low, high = distinct_range(middle, middle)
    assert low < high and np.float32(low) < np.float32(high)
    edges = np.linspace(*bin_range(middle, middle, HISTOGRAM_BINS), HISTOGRAM_BINS + 1)
    assert (np.diff(edges) > 0).all()
