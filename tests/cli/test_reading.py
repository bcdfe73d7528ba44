"""Law: a volume is compared with views that were read as those of its fit were, unless told otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.cli.options import reading_of
from raymarch.fitting.report import provenance

VIEWS = rm.Views([rm.Camera.look_at((1, -4, 2), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
VOLUME = rm.Volume.from_array(np.ones((4, 4, 4)))


def fitted(**views):
    """A volume with the provenance of a fit to such views."""
    seen = rm.Views(VIEWS.cameras, VIEWS.images, **views)
    made = provenance(rm.FitSettings(), seen, {"steps": 1})
    return replace(VOLUME, provenance=made)


@pytest.mark.parametrize(
    ("fit", "asked", "want"),
    [
        ({}, (None, None), (1.0, None)),
        ({"downscale": 2, "holdout": 5}, (None, None), (2.0, 5)),
        ({"downscale": 2, "holdout": 5}, (1.0, None), (1.0, 5)),
        ({"downscale": 2, "holdout": 5}, (None, 0), (2.0, 0)),
    ],
)
def test_what_is_not_asked_for_is_the_fit_s(fit, asked, want):
    assert reading_of(fitted(**fit), *asked) == dict(zip(("downscale", "holdout"), want, strict=True))


@pytest.mark.parametrize("views", [None, "lego", {}, {"source": "lego", "count": 3}])
def test_a_volume_that_does_not_say_is_compared_as_usual(views):
    volume = replace(VOLUME, provenance={"views": views})
    assert reading_of(volume, None, None) == {"downscale": 1.0, "holdout": None}
