"""Law: values of whatever type and size are reckoned in double precision, so that `info`, slices, histograms, surfaces
and files of them are right, whatever they are stored as; nothing warns, nothing ends in a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import raymarch as rm
from raymarch.cli import main
from raymarch.errors import distinct_figures
from raymarch.io.volumes.zarr import halve
from raymarch.volumes.default_table import default_table
from raymarch.volumes.value_kind import COARSE_BINS, bin_range, contents_of, histogram_of

SHAPE = (6, 5, 4)
COUNT = math.prod(SHAPE)
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
INFO = {kind: np.iinfo(kind) for kind in WHOLE}


def constant(value, kind):
    return np.full(SHAPE, value, kind)


def ramp(low, high, kind):
    if np.dtype(kind).kind in "iu":  # in Python's whole numbers, which have no end
        low, high = int(low), int(high)
        return np.array([low + (high - low) * k // (COUNT - 1) for k in range(COUNT)], kind).reshape(SHAPE)
    return (low + (high - low) * (np.arange(COUNT) / (COUNT - 1))).reshape(SHAPE).astype(kind)


def two(low, high, kind):
    values = constant(low, kind)
    values[::2] = high
    return values


def volumes():
    constants = (0.0, -0.0, 1e7, 1e17, -1e17, 1e27, 1e-40, 1000.0, 3.3)
    found = {f"{x:g} in {kind}": constant(x, kind) for x in constants for kind in ("float32", "float64")}
    found |= {f"{x:g} in float16": constant(x, np.float16) for x in (0.0, 2000.0, 65504.0, -65504.0, 6e-8)}
    found |= {f"all of {kind}": ramp(ends.min, ends.max, kind) for kind, ends in INFO.items()}
    found |= {f"the most of {kind}": constant(ends.max, kind) for kind, ends in INFO.items()}
    found |= {f"the least of {kind}": constant(ends.min, kind) for kind, ends in INFO.items()}
    found |= {
        "all of float16": ramp(-65504, 65504, np.float16),
        "half of float16": ramp(0, 65504, np.float16),
        "one ulp over 1e7": two(1e7, np.nextafter(np.float32(1e7), np.float32(2e7)), np.float32),
        "one ulp over 1": two(1, np.nextafter(1, 2), np.float64),
        "one ulp over 1e17": two(1e17, np.nextafter(1e17, 2e17), np.float64),
        "1000 and a ten thousandth": ramp(1000 - 1e-4, 1000 + 1e-4, np.float32),
        "1000 and a ten millionth": ramp(1000 - 1e-7, 1000 + 1e-7, np.float64),
        "numbers of specimens": ramp(2**53, 2**53 + 200, np.int64),
        "the last of uint64": ramp(2**64 - 200, 2**64 - 1, np.uint64),
        "the first of int64": ramp(-(2**63), -(2**63) + 200, np.int64),
        "tiny": ramp(-1e-300, 1e-300, np.float64),
        "denormal in float32": ramp(0, 1e-40, np.float32),
        "huge": ramp(-1e27, 1e27, np.float32),
        "a mask": two(0, 1, np.uint8),
        "one apart": two(7, -32768, np.int16),
    }
    return found


VOLUMES = volumes()


@pytest.fixture(autouse=True)
def _without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    plt.close("all")


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    return ended.value.code, out.getvalue(), err.getvalue()


def exact(values):
    """Values as Python's own numbers, which neither overflow nor round."""
    return [x.item() for x in values.ravel()]


@pytest.mark.parametrize("name", VOLUMES)
def test_range_mean_and_histogram_are_those_of_the_values(name):
    values = VOLUMES[name]
    numbers = exact(values)
    found = contents_of(rm.ScalarVolume(values))
    assert (found.low, found.high) == (min(numbers), max(numbers))
    mean = math.fsum(numbers) / COUNT
    assert found.mean == pytest.approx(mean, rel=1e-12, abs=1e-12 * max(map(abs, numbers)))
    assert found.low <= found.mean <= found.high or found.mean == pytest.approx(found.low, rel=1e-15)
    assert sum(found.counts) == COUNT and len(found.edges) == COARSE_BINS + 1
    assert all(a < b for a, b in zip(found.edges, found.edges[1:], strict=False))
    assert found.edges[0] <= found.low and found.high <= found.edges[-1]
    for low, high, count in zip(found.edges, found.edges[1:], found.counts, strict=False):
        inside = sum(low <= float(x) < high for x in numbers) + sum(
            float(x) == high == found.edges[-1] for x in numbers
        )
        assert abs(inside - count) <= 2, "but for what rounding puts beside an edge"


SCALES = [(0.5, 3.0), (-2.0, 1.0), (1e-3, 1e6), (-1.0, 0.0)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", [*WHOLE, "float16", "float32", "float64"])
def test_slope_and_intercept_are_applied_in_doubles(kind, scale):
    """In float16 they overflow, in float32 an intercept of a million takes a ramp's steps away."""
    slope, intercept = scale
    low, high = (INFO[kind].min, INFO[kind].max) if kind in INFO else (0, 1) if kind != "float16" else (-65504, 65504)
    values = ramp(low, high, kind)
    volume = rm.ScalarVolume(values, slope=slope, intercept=intercept)
    wanted = np.array([slope * float(x) + intercept for x in exact(values)]).reshape(SHAPE)
    got = volume.numbers()
    tight = 2.0**-23 if got.dtype == np.float32 else 2.0**-50
    np.testing.assert_allclose(got.astype(float), wanted, rtol=tight, atol=tight * np.abs(wanted).max())
    assert len(np.unique(got)) == len(np.unique(wanted.astype(got.dtype))) >= min(len(np.unique(values)), 100)
    found = contents_of(volume)
    assert (found.low, found.high) == (wanted.min(), wanted.max()) and sum(found.counts) == COUNT


@pytest.mark.parametrize("name", VOLUMES)
def test_the_shell_says_what_is_there(name, tmp_path):
    values = VOLUMES[name]
    rm.save(rm.ScalarVolume(values), tmp_path / "v.h5")
    code, out, err = run("info", tmp_path / "v.h5", "--json")
    record = json.loads(out)
    assert (code, err) == (0, "") and sum(record["histogram"]["counts"]) == COUNT
    assert (record["low"], record["high"]) == (min(exact(values)), max(exact(values)))
    code, out, err = run("info", tmp_path / "v.h5")
    line = next(line for line in out.splitlines() if line.startswith("range"))
    low, high = line.split("range")[1].split(",")[0].split(" to ")
    assert (code, err) == (0, "") and (low.strip() == high.strip()) == (float(values.min()) == float(values.max()))


DRAWN = [
    "1e+17 in float32", "-1e+17 in float64", "1e+07 in float32", "2000 in float16", "all of float16", "all of int8",
    "the most of uint64", "the first of int64", "one ulp over 1e17", "0 in float32", "1e-40 in float32", "huge",
]  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_are_drawn_of_them(name):
    volume = rm.ScalarVolume(VOLUMES[name])
    for axes in (rm.plot.slices(volume)[0], rm.plot.projections(volume)[0]):
        low, high = axes.images[0].get_clim()
        assert low < high
        if volume.range[0] == volume.range[1]:
            assert low <= volume.range[0] <= high
    for axes in (rm.plot.histogram(volume), rm.plot.iso_histogram(volume)):
        low, high = axes.get_xlim()
        assert low <= volume.range[0] and volume.range[1] <= high and low < high
    assert "<svg" in volume._repr_html_() or "<img" in volume._repr_html_()


def test_ends_of_a_scale_that_nobody_gave_are_not_blamed():
    flat = rm.ScalarVolume(constant(5, np.uint8))
    for given in ({"floor": 9.0}, {"limit": 2.0}, {"floor": 5.0}, {"limit": 5.0}, {}):
        for draw in (rm.plot.slices, rm.plot.projections):
            low, high = draw(flat, **given)[0].images[0].get_clim()
            assert low < high and low == given.get("floor", low) and high == given.get("limit", high)


CONSTANTS = [name for name, values in VOLUMES.items() if values.min() == values.max()]


@pytest.mark.parametrize("name", VOLUMES)
def test_a_table_is_made_or_the_reason_told(name):
    """A table for single precision, of values that it tells apart; of a constant it shows that value."""
    volume = rm.ScalarVolume(VOLUMES[name]).as_volume()
    try:
        table = default_table(volume)
    except rm.RaymarchError as error:
        assert name not in CONSTANTS or abs(volume.density.flat[0]) < 1e-30, name
        assert "subtract the least" in str(error) or "multiply them" in str(error)
        low, high = str(error).split("values are from ")[1].split(",")[0].split(" to ")
        assert low != high
        return
    assert (np.diff(table.values.astype(np.float32)) > 0).all()


@pytest.mark.parametrize("kind", WHOLE)
def test_a_pyramid_keeps_the_ends_of_a_type(kind):
    for end in (INFO[kind].min, INFO[kind].max):
        assert (halve(np.full((4, 4, 4), end, kind)) == end).all()


def test_bins_are_apart_in_doubles():
    for low, high in [
        (0, 0),
        (1e17, 1e17),
        (-1e300, -1e300),
        (1e-320, 1e-310),
        (1, 1 + 2**-52),
        (2**63, 2**63 + 2048),
        (-3, 3),
    ]:
        edges = np.linspace(*bin_range(float(low), float(high), 128), 129)
        assert (np.diff(edges) > 0).all() and edges[0] <= low and high <= edges[-1]
    counts, _ = histogram_of(np.array([0, 127, 255], np.uint8), 3, 0.0, 255.0)
    assert counts.tolist() == [1, 1, 1]


def test_texts_of_numbers_tell_them_apart():
    assert distinct_figures(1e7, 1e7 + 1) == ["10000000", "10000001"]
    assert distinct_figures(0.1, 0.1) == ["0.1", "0.1"]
    assert distinct_figures(2.0**53, 2.0**53 + 2) == ["9007199254740992", "9007199254740994"]
    assert distinct_figures(5400000.85, step=0.05, least=3) == ["5400000.85"]
