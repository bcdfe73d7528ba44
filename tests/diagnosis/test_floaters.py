"""Law: matter that hangs loose, stands before cameras or where no view looks is found, and only that."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.diagnosis.diagnose_fit import volume_findings
from raymarch.diagnosis.floaters import label_pieces
from raymarch.volumes.activation import Activation

RING = rm.orbit((0, 0, 0), 4.0, 8, like=rm.Camera.look_at((4, 0, 0), fov=0.7, width=32, height=32))
NARROW = rm.orbit((0, 0, 0), 4.0, 8, like=rm.Camera.look_at((4, 0, 0), fov=0.12, width=32, height=32))


def ball(centre, radius, box=2.0):
    return rm.Volume.from_function(
        lambda p: 60.0 * (np.linalg.norm(p - np.array(centre), axis=-1) < radius),
        shape=(48,) * 3,
        box=[(-box,) * 3, (box,) * 3],
    )


def both(*volumes):
    density = np.sum([each.density for each in volumes], axis=0)
    return rm.Volume.from_array(density, box=volumes[0].box)


BODY = ball((0, 0, 0), 0.8)
SPECKS = [ball(1.6 * np.array(at) / np.linalg.norm(at), 0.13) for at in np.random.default_rng(0).normal(size=(40, 3))]
BEFORE = both(*[ball(0.92 * camera.position, 0.25, box=4.0) for camera in RING], ball((0, 0, 0), 1.0, box=4.0))


@pytest.mark.parametrize("kept", [lambda v: v, rm.Volume.sparse], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("volume", "cameras", "codes"),
    [
        (BODY, RING, []),
        (both(BODY, *SPECKS), RING, ["floaters"]),
        (BEFORE, RING, ["near-cameras", "unseen"]),
        (BODY, NARROW, ["unseen"]),
    ],
    ids=["a ball", "specks about it", "clots before cameras", "seen in part"],
)
def test_what_is_loose_near_or_hidden_is_found(volume, cameras, codes, kept):
    views = rm.Views(cameras, np.zeros((8, 32, 32, 3), np.uint8))
    assert [each.code for each in volume_findings(kept(volume), views)] == codes


@pytest.mark.parametrize("near", [None, 0.0, 0.05, 0.2, 0.65, 0.85, 0.95])
def test_the_cure_of_matter_before_cameras_is_another_setting_than_the_fit_had(near):
    fitted = replace(BEFORE, provenance={"settings": {"near": near}})
    (cure,) = [
        each.cure
        for each in volume_findings(fitted, rm.Views(RING, np.zeros((8, 32, 32, 3), np.uint8)))
        if each.code == "near-cameras"
    ]
    assert ("--preset photos" in cure) == ((near or 0.0) < 0.15)
    assert all((near or 0.0) < float(text) < 1 for text in re.findall(r"near=([0-9.]+)", cure))
    assert ("near=" in cure) == ((near or 0.0) < 0.7)


@pytest.mark.parametrize("had", [None, 0.0, 1.5e-3, 2e-2])
def test_the_cure_of_floaters_is_more_than_the_fit_had(had):
    fitted = replace(both(BODY, *SPECKS), provenance={"settings": {"tv_density": had, "sparsity": had}})
    (found,) = volume_findings(fitted, rm.Views(RING, np.zeros((8, 32, 32, 3), np.uint8)))
    weights = [float(text) for text in re.findall(r"=([0-9.e-]+)", found.cure)]
    assert len(weights) == 2
    assert min(weights) > (had or 0.0)


def test_pieces_are_told_apart_as_a_flood_would():
    full = np.random.default_rng(1).uniform(size=(9, 8, 7)) < 0.12
    label, seen = label_pieces(full), np.zeros(full.shape, int)
    for start in np.argwhere(full):
        flood = [tuple(start)]
        while flood:
            here = flood.pop()
            if not all(0 <= k < n for k, n in zip(here, full.shape, strict=True)) or not full[here] or seen[here]:
                continue
            seen[here] = label[tuple(start)]
            flood += [tuple(np.add(here, step)) for step in np.ndindex(3, 3, 3) for step in [np.subtract(step, 1)]]
    np.testing.assert_array_equal(label, seen)
    assert label.max() > 3


def test_values_are_not_read_as_opacity():
    """Of a fit through a table, or a scan: whatever the numbers are, no matter hangs loose by them."""
    loose = both(BODY, *SPECKS)
    values = rm.Volume(loose.density, np.zeros_like(loose.features), loose.world_from_index, Activation("identity"))
    views = rm.Views(RING, np.zeros((8, 32, 32, 3), np.uint8))
    assert volume_findings(values, views) == []
    coloured = rm.Volume(loose.density, loose.features, loose.world_from_index, Activation("identity"))
    assert [each.code for each in volume_findings(coloured, views)] == ["floaters"]
