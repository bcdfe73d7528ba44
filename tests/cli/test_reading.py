"""Law: a volume is compared with views that were read as those of its fit were, unless told otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.cli import cli
from raymarch.cli.dry_run import in_words
from raymarch.cli.options import as_refined, reading_of
from raymarch.data.known_views import known_of, record_of
from raymarch.device.memory import Memory
from raymarch.fitting.forecast import Forecast
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


@pytest.mark.parametrize(
    ("refined", "focal", "said"),
    [
        (None, 1, ""),
        ({"degrees": 0.1}, 1, ""),
        ({"shared": {"focal": [np.log(1.1)] * 2}}, 1.1, "focal of the cameras as the fit refined them\n"),
    ],
)
def test_views_of_a_refined_fit_have_its_lens(refined, focal, said, capsys):
    seen = as_refined(replace(VOLUME, provenance={"refined": refined}), VIEWS)
    np.testing.assert_allclose(seen.cameras[0].focal, focal * np.array(VIEWS.cameras[0].focal))
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("views", [None, "lego", {}, {"source": "lego", "count": 3}])
def test_a_volume_that_does_not_say_is_compared_as_usual(views):
    volume = replace(VOLUME, provenance={"views": views})
    assert reading_of(volume, None, None) == {"downscale": 1.0, "holdout": None}


def noise(count, seed=0, names=(), **how):
    """Views of noise."""
    images = np.random.default_rng(seed).integers(0, 256, (count, 6, 8, 3), dtype=np.uint8)
    return rm.Views([rm.Camera.look_at((1, -4, 2), width=8, height=6)] * count, images, names, **how)


FITTED = noise(3, names=tuple("abc"), source="set")


@pytest.mark.parametrize(
    ("views", "want"),
    [
        (FITTED, [0, 1, 2]),
        (FITTED[[2, 0]], [0, 1]),
        (replace(FITTED, source="elsewhere"), [0, 1, 2]),
        (replace(FITTED, downscale=2.0), [0, 1, 2]),
        (noise(3, seed=1, names=tuple("abc"), source="./set", downscale=2.0), [0, 1, 2]),
        (
            noise(3, seed=1, names=tuple("abc"), source="set"),
            [],
        ),  # as of train and test in the layout of NeRF-synthetic
        (noise(3, seed=1, names=tuple("abc"), source="other", downscale=2.0), []),
        (replace(FITTED, names=tuple("axy")), [0]),
    ],
)
def test_views_that_were_fitted_are_known(views, want):
    made = provenance(rm.FitSettings(), FITTED, {"steps": 1})
    assert made["views"]["names"] == list("abc")
    assert known_of(views, made["views"]) == want


@pytest.mark.parametrize(
    "record", [None, "a", {}, {"names": 3, "checksums": []}, {"names": [[], None], "checksums": [{}, 1]}]
)
def test_a_record_that_is_none_knows_no_view(record):
    assert known_of(FITTED, record) == []


def test_names_of_a_large_set_are_not_kept():
    assert set(record_of(noise(2000))) == {"names", "checksums"}
    assert record_of(noise(2001)) == {}
    assert record_of(noise(2, names=["a" * 100_000, "b" * 100_001])) == {}


def test_nested_boxes_are_no_stretched_volume(tmp_path, capsys):
    rm.save(replace(rm.Volume.from_array(np.ones((12, 4, 5))), boxes=3), tmp_path / "v.h5")
    cli(["info", str(tmp_path / "v.h5")], standalone_mode=False)
    assert "3 boxes of 4 x 4 x 5" in capsys.readouterr().out
    memory = Memory((12, 4, 5), 0, 1, {"grid": 1})
    assert "grid    3 boxes of 4 x 4 x 5 samples, SH degree 0" in in_words(Forecast(memory, 10, boxes=3))
