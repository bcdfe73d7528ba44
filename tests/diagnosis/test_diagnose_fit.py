"""Law: what a volume shows is held against its set's images, masks and exposures, by numbers that there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.diagnosis.diagnose_fit import _exposure, _gap, _of_other_views

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
    found = _gap(fitted, held_out)
    assert (found and found.severity) == severity
    assert found is None or ("nan" not in found.message and "inf" not in found.message)


@pytest.mark.parametrize(
    ("shown", "code"), [(NEAR, None), (EXPOSED, None), (TRUTH[::-1], "other-set"), (np.ones_like(TRUTH), "other-set")]
)
def test_a_volume_of_another_set_is_found(shown, code):
    found = _of_other_views(volume(views={"source": "/sets/tower"}), rendered(shown))
    assert (found and found.code) == code
    assert found is None or "/sets/tower" in found.message


@pytest.mark.parametrize("counts", [ALL, NONE])
@pytest.mark.parametrize("provenance", [{}, {"views": 3}, {"views": {"source": ["x"]}}])
def test_a_volume_of_no_known_set_is_looked_at_too(provenance, counts):
    found = _of_other_views(volume(**provenance), rendered(1 - TRUTH, counts=counts))
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
