"""Disturbed camera poses of scenes/tower, refined together with the volume, and what a fit of them is worth.

python benchmarks/refine.py [--preset quick] [--degrees 1] [--share 0.01] [--parameters pose] [--seed 0]

Fits the scene with its true cameras, with disturbed ones and with refined ones, each scored on the true test cameras;
before that each set is aligned to the true training cameras by one similarity, the one by which points of the box are
seen alike: of cameras alone, no image is looked at.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from register import apart, disturbed

import raymarch as rm
from raymarch.device.image_store import ImageStore
from raymarch.fitting.plan.bounds import find_box
from raymarch.fitting.plan.survey import Survey
from raymarch.geometry.alignment import similarity, transform_camera

SCENE = Path(__file__).resolve().parent.parent / "scenes" / "tower"


def score(views: rm.Views, truth, test: rm.Views, preset: str, box: np.ndarray) -> float:
    """Test PSNR of a fit to views whose cameras are those of `truth` but for errors and one similarity."""
    back = np.linalg.inv(similarity(views.cameras, truth, box))
    seen = replace(test, cameras=[transform_camera(camera, back) for camera in test.cameras])
    return rm.fit(views, preset).evaluate(seen).psnr


def main() -> None:
    """Print errors of the poses and PSNRs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--degrees", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--parameters", default="pose")
    parser.add_argument("--seed", type=int, default=0, help="Of the disturbance.")
    parser.add_argument("--only", action="store_true", help="Refine, and fit nothing.")
    asked = parser.parse_args()
    train, test = rm.load_views(SCENE, split="train"), rm.load_views(SCENE, split="test")
    with ImageStore(train) as store:
        box = np.array(find_box(Survey(train), store))
    rng, centre = np.random.default_rng(asked.seed), np.zeros(3)
    wrong = replace(train, cameras=[disturbed(c, centre, asked.degrees, asked.share, rng) for c in train.cameras])
    began = time.perf_counter()
    better = rm.refine(wrong, asked.parameters.split(","))
    print(
        f"refined in {time.perf_counter() - began:.0f} s, errors {better.errors[0]:.4f} to {better.errors[-1]:.4f}",
        flush=True,
    )
    for name, views in (("disturbed", wrong), ("refined", better.views)):
        back = similarity(views.cameras, train.cameras, box)
        off = [
            apart(true, transform_camera(c, back), centre) for true, c in zip(train.cameras, views.cameras, strict=True)
        ]
        angle, share = np.transpose(off)
        print(
            f"{name:9} off by {np.median(angle):.4f} degrees (worst {angle.max():.4f}),"
            f" {np.median(share):.4%} of the distance (worst {share.max():.4%})"
        )
    if asked.only:
        return
    for name, views in (("true", train), ("disturbed", wrong), ("refined", better.views)):
        print(f"{name:9} {score(views, train.cameras, test, asked.preset, box):.2f} dB", flush=True)


if __name__ == "__main__":
    main()
