"""Law: a volume that is scored on another set's views is doubted after the first of them, and no other volume is."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.evaluation import held_out
from raymarch.evaluation.held_out import doubt_of_set
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit

RING = orbit((0, 0, 0), 4.0, 3, like=Camera.look_at((4, 0, 0), width=16, height=12))
TRUTH = np.random.default_rng(0).uniform(0.1, 0.9, (12, 16, 3))
VIEWS = replace(rm.Views(RING, [(255 * TRUTH).round().astype(np.uint8)] * 3), source="/sets/tower")
NEAR, POOR = TRUTH + 0.01, TRUTH[::-1]  # 40 dB and under 10
MIDDLING = TRUTH + np.where(np.indices(TRUTH.shape).sum(0) % 2, 0.13, -0.13)  # 17.7 dB, better than one colour


def volume(**provenance):
    return replace(rm.Volume.from_array(np.ones((4, 4, 4))), provenance=provenance)


def fitted(source="/sets/tower", rays=38.0):
    return {"views": {"source": source}, "rays_psnr": rays}


@pytest.mark.parametrize(
    ("told", "image", "words"),
    [
        (fitted("/sets/lighthouse"), POOR, "fitted to '/sets/lighthouse'; give the set and the volume that belong"),
        (fitted("/sets/lighthouse"), MIDDLING, "where its fit had 38.0 dB on its rays; the volume was fitted to"),
        (fitted(None), MIDDLING, "dB, where its fit had 38.0 dB on its rays; give the set and the volume"),
        (fitted(), POOR, "fit anew if it is not the object"),
        ({}, POOR, "is shown worse than one colour all over would"),
        ({"views": 3, "rays_psnr": "high"}, POOR, "worse than one colour"),
        ({"views": {"source": ["x"]}, "rays_psnr": float("nan")}, POOR, "worse than one colour"),
    ],
)
def test_a_volume_of_another_set_is_doubted_after_one_view(told, image, words):
    doubt = doubt_of_set(volume(**told), VIEWS, image)
    assert doubt.startswith("after one view: ") and words in doubt
    assert "\n" not in doubt and "nan" not in doubt


@pytest.mark.parametrize(
    ("told", "image"),
    [
        (fitted(), NEAR),
        (fitted("/elsewhere/tower"), NEAR),  # the set was moved
        (fitted("/elsewhere/tower", rays=25.0), MIDDLING),  # as held-out views of a hard set come out
        (fitted(), MIDDLING),  # held-out views of its own set, which the fit learned by heart
        (fitted(None), NEAR),
        ({}, MIDDLING),
    ],
)
def test_no_other_volume_is_doubted(told, image):
    assert doubt_of_set(volume(**told), VIEWS, image) == ""


def test_what_a_mask_takes_out_raises_no_doubt():
    mask = np.zeros(TRUTH.shape[:2], bool)
    mask[:, :6] = True
    masked = replace(VIEWS, masks=[mask] * 3)
    assert doubt_of_set(volume(), masked, np.where(mask[..., None], NEAR, 0.0)) == ""


def test_it_is_said_once_and_before_the_second_view(monkeypatch, caplog):
    said = []
    monkeypatch.setattr(held_out, "doubt_of_set", lambda *_: "after one view: no")
    with caplog.at_level(logging.WARNING):
        held_out.evaluate(volume(), VIEWS, seen=lambda i, image: said.append((i, caplog.text.count("after one view"))))
    assert said == [(0, 1), (1, 1), (2, 1)]
