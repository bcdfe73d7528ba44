"""Law: where no value of a surface is given, meshes, pictures, pages and the viewer take the same, and it is one."""

from __future__ import annotations

import numpy as np
import pytest

import raymarch as rm
from raymarch.cli.modes import ModeOptions
from raymarch.rendering.default_look import default_look
from raymarch.viewer.page.looks import looks_of
from raymarch.volumes.surface_value import SURFACE_VOXELS, surface_value
from raymarch.volumes.value_kind import kind_of

RNG = np.random.default_rng(0)


def ball(low, high, core=1.0):
    def density(p):
        far = np.linalg.norm(p, axis=-1)
        return np.where(far < 0.1, core, 1.0) * np.where(far < 0.6, high, low)

    return rm.Volume.from_function(density, lambda p: 0 * p + 0.5, shape=(9, 9, 9))


def scan(values):
    return rm.ScalarVolume(np.asarray(values, np.float32))


VOLUMES = {
    "a fit": ball(0.0, 90.0),
    "a fit with one sample far denser": ball(0.0, 90.0, 40.0),
    "a thin fit": ball(0.0, 0.02),
    "an object": scan(np.where(RNG.random((9, 9, 9)) < 0.3, 900.0, 20.0)),
    "both signs": scan(RNG.normal(size=(12, 12, 12))),
    "labels": scan(RNG.integers(0, 4, (9, 9, 9))),
    "a level": scan(100 + RNG.normal(size=(12, 12, 12))),
}


@pytest.mark.parametrize("name", VOLUMES)
def test_one_value_of_a_surface_is_taken_everywhere_and_values_lie_on_both_sides(name):
    volume = VOLUMES[name]
    seen = volume if isinstance(volume, rm.Volume) else volume.as_volume()
    wanted = surface_value(seen)
    values = seen.sigma() if isinstance(volume, rm.Volume) else volume.numbers()
    assert values.min() < wanted < values.max()
    assert ModeOptions("isosurface").look(volume).march.iso == wanted
    assert looks_of(seen, default_look(volume), (0, 0, 0), None)["isosurface"]["iso"] == wanted


def test_a_surface_of_a_fit_is_where_it_is_seen_however_dense_its_densest_sample_is():
    half = np.log(2) / SURFACE_VOXELS
    for name in ("a fit", "a fit with one sample far denser"):
        assert np.isclose(surface_value(VOLUMES[name]), half / VOLUMES[name].voxel)
    assert 0 < surface_value(VOLUMES["a thin fit"]) < 0.02


@pytest.mark.parametrize("volume", [ball(0.0, 0.0), scan(np.full((4, 4, 4), 7.0)).as_volume()])
def test_one_value_has_no_surface(volume):
    assert surface_value(volume) is None
    assert "isosurface" not in looks_of(volume, default_look(volume), (0, 0, 0), None)
    with pytest.raises(rm.RaymarchError, match="no surface stands out; give"):
        ModeOptions("isosurface").look(volume)


def test_the_value_of_a_scan_is_that_of_its_kind():
    seen = VOLUMES["an object"].as_volume()
    assert surface_value(seen) == kind_of(seen).iso
