"""What lens, nested boxes and exposure are worth on photographs: fits of equal time with and without them.

python benchmarks/photographs.py DATA [--downscale 2] [--seconds 600] [--preset photos] [--only NAME ...] [--json FILE]

All fits are of DATA's training views by the same preset and seconds from their first step on, and are scored on
its held-out views:

whole       the preset as it is
bare        no lens, no exposure, and the innermost box alone
own box     no lens, no exposure, and the one box that the set tells of itself, if it does
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from plainly import plainly

import raymarch as rm
from raymarch.fitting.plan.bounds import box_of_scene
from raymarch.fitting.plan.survey import Survey

BARE = {"boxes": 1, "near": 0.0, "exposure": False}


def without_lens(views: rm.Views) -> rm.Views:
    """Views whose cameras have no lens."""
    return replace(views, cameras=[replace(camera, lens=rm.Lens()) for camera in views.cameras])


def fits(train: rm.Views, test: rm.Views, preset: str, seconds: float, only: list[str]) -> list[dict]:
    """Scores of each fit, by name."""
    plain = without_lens(train), without_lens(test)
    runs = {
        "whole": ((train, test), {}, None),
        "bare": (plain, BARE, box_of_scene(Survey(train))),
        "own box": (plain, BARE, train.box),
    }
    rows = []
    for name, ((fitted, held_out), changes, box) in runs.items():
        if (only and name not in only) or (name == "own box" and box is None):
            continue
        fit = rm.fit(fitted, preset, box=box, seconds=seconds, **changes)
        score = rm.evaluate(fit.volume, held_out)
        row = {"fit": name, "steps": len(fit.history) and fit.history[-1].step, "shape": list(fit.volume.shape)}
        row |= {key: getattr(score, key) for key in ("psnr", "psnr_halves", "psnr_masked", "ssim")}
        rows.append(row | {"seconds_per_image": score.seconds_per_image})
        said = ", ".join(f"{key} {value:.4g}" for key, value in rows[-1].items() if isinstance(value, float))
        print(f"{name:8} {rows[-1]['steps']:6} steps of {'x'.join(map(str, row['shape']))}: {said}", flush=True)
    return rows


def main() -> None:
    """Fit, score, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--downscale", type=float, default=2)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--preset", default="photos")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--json", metavar="FILE")
    chosen = parser.parse_args()
    train, test = (rm.load_views(chosen.data, split, downscale=chosen.downscale) for split in ("train", "test"))
    rows = fits(train, test, chosen.preset, chosen.seconds, chosen.only)
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    plainly(main)
