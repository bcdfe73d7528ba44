"""Law: what a volume shows is held against its set's images, masks and exposures, by numbers that there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.diagnosis.diagnose_fit import _exposure, _other_views_finding, _psnr_gap, volume_findings
from raymarch.geometry.orbit import orbit

TRUTH = np.random.default_rng(0).uniform(0.1, 0.8, (4, 24, 32, 3))
ALL, NONE = np.ones((24, 32), bool), np.zeros((24, 32), bool)


def rendered(shown, truth=TRUTH, counts=ALL):
    return [(f"{i}", *pair, counts) for i, pair in enumerate(zip(shown, truth, strict=True))]


def volume(**provenance):
    return replace(rm.Volume.from_array(np.ones((4, 4, 4))), provenance=provenance)


NEAR = TRUTH + 0.01
GAINS = [0.5, 0.8, 1.0, 1.2]
EXPOSED = np.clip(TRUTH * np.array(GAINS)[:, None, None, None], 0, 1)
FOUND = [[f"{i}", gain, gain, gain, 0.0, 0.0, 0.0] for i, gain in enumerate(GAINS)]


@pytest.mark.parametrize(
    ("fitted", "held_out", "severity"),
    [
        (rendered(NEAR), rendered(NEAR), None),
        (rendered(TRUTH), rendered(TRUTH), None),
        (rendered(NEAR), rendered(TRUTH + 0.1), "warning"),
        (rendered(TRUTH), rendered(TRUTH + 0.1), "warning"),
        (rendered(NEAR), rendered(NEAR, counts=NONE), "note"),
        (rendered(NEAR, counts=NONE), rendered(NEAR), "note"),
    ],
)
def test_the_gap_is_of_numbers_or_said_not_to_be_known(fitted, held_out, severity):
    found = _psnr_gap(fitted, held_out)
    assert (found and found.severity) == severity
    assert found is None or ("nan" not in found.message and "inf" not in found.message)


@pytest.mark.parametrize(
    ("shown", "code"), [(NEAR, None), (EXPOSED, None), (TRUTH[::-1], "other-set"), (np.ones_like(TRUTH), "other-set")]
)
def test_a_volume_of_another_set_is_found(shown, code):
    found = _other_views_finding(volume(views={"source": "/sets/tower"}), rendered(shown))
    assert (found and found.code) == code
    assert found is None or "/sets/tower" in found.message


@pytest.mark.parametrize("counts", [ALL, NONE])
@pytest.mark.parametrize("provenance", [{}, {"views": 3}, {"views": {"source": ["x"]}}])
def test_a_volume_of_no_known_set_is_looked_at_too(provenance, counts):
    found = _other_views_finding(volume(**provenance), rendered(1 - TRUTH, counts=counts))
    assert (found is None) == (counts is NONE)


@pytest.mark.parametrize(
    ("provenance", "cure"),
    [
        ({}, "--preset photos"),
        ({"settings": {"exposure": True}, "exposures": FOUND}, None),
        ({"settings": {"exposure": True}, "exposures": FOUND[:0]}, "develop"),
        ({"settings": {"exposure": True}, "exposures": [3, ["1"], ["2", None, 0, 0, 0, 0, 0], "text"]}, "develop"),
        ({"settings": 1, "exposures": 7}, "--preset photos"),
    ],
)
def test_exposures_that_the_fit_found_are_no_fault(provenance, cure):
    found = _exposure(volume(**provenance), rendered(TRUTH, EXPOSED))
    assert (found is None) == (cure is None)
    assert found is None or cure in found.cure


@pytest.mark.parametrize("axes", ["flipped", "exchanged", "turned"])
def test_what_no_view_sees_is_told_of_the_world_however_the_samples_lie(axes):
    """One ball to one side of its box, stored along other axes than the world's."""
    upright = rm.Volume.from_function(
        lambda p: 20.0 * (np.linalg.norm(p - (0, 0.6, 0), axis=-1) < 0.3),
        box=[(-1, -1, -1), (1, 1, 1)],
        shape=(24,) * 3,
    )
    moved = {
        "flipped": (np.s_[:, ::-1], [(1, 0, 0, 0), (0, -1, 0, 23), (0, 0, 1, 0), (0, 0, 0, 1)]),
        "exchanged": (None, [(0, 1, 0, 0), (1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]),
        "turned": (np.s_[::-1, ::-1], [(-1, 0, 0, 23), (0, -1, 0, 23), (0, 0, 1, 0), (0, 0, 0, 1)]),
    }
    part, index = moved[axes]

    def stored(a):
        return a.swapaxes(0, 1) if part is None else a[part]

    other = replace(
        upright,
        density=stored(upright.density),
        features=stored(upright.features),
        world_from_index=upright.world_from_index @ np.array(index, float),
    )
    ring = orbit((0, 0.6, 0), 3.0, 8, like=rm.Camera.look_at((3, 0, 0), fov=0.25, width=16, height=16))
    views = rm.Views(ring, np.full((8, 16, 16, 3), 255, np.uint8))
    found = [[each for each in volume_findings(one, views) if each.code == "unseen"] for one in (upright, other)]
    assert found[0] == found[1]
    assert all("no view looks at" in each.message for each in found[0]) and found[0]


def test_images_without_alpha_are_looked_at_before_the_volumes_own_background():
    """Which may have been learned: a set's own, white, says nothing of images that are whole."""
    ball = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.3), shape=(16, 16, 16))
    ball = replace(ball, background=(0.1, 0.3, 0.2))
    ring = orbit((0, 0, 0), 4.0, 4, like=rm.Camera.look_at((4, 0, 0), width=16, height=16))
    images = np.stack([np.round(255 * np.clip(rm.render(ball, camera), 0, 1)).astype(np.uint8) for camera in ring])
    codes = {finding.code for finding in rm.diagnose_fit(ball, rm.Views(ring, images))}
    assert not codes & {"other-set", "exposure"}
    shown = rendered(images / 255, np.ones((4, 16, 16, 3)), np.ones((16, 16), bool))
    assert _other_views_finding(ball, shown).code == "other-set"
