"""What each choice of a fit is worth: PSNR of held-out and of training views with it and without, one change a run.

python benchmarks/quality.py DATA [--split val] [--views 20] [--preset default] [--steps 900 | --seconds 60]
    [--only ROW ...] [--set NAME=VALUE ...] [--json FILE]

By steps the runs are the same on any machine, and the seconds beside them say what a step costs; by seconds, which
count from the first step, the machine decides. The seconds in the table are of the whole call, loading and compiling
included. The rows, each the preset with one thing undone:

now            the preset as it is
no pyramid     coarse levels see the images as they are
no coarse      samples move each by its own gradient alone
no decay       harmonics above degree 0 keep what they have
no thinning    density falls by gradients alone
no reopening   a level begins as opaque as the one before left it
no cooldown    rates fall to a tenth exponentially, in place of along a line to 0
no errors      tiles are drawn all alike
small weights  colours are looked up from a weight of 1e-4 on
small batches  8,192 rays a step, and twice as many steps
single rays    a pixel is one ray through its centre
no jitter      samples of a ray lie at whole steps from where it enters
as before      all of these undone
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from plainly import count, plainly

import raymarch as rm

ROWS: dict[str, dict[str, Any]] = {
    "now": {},
    "no pyramid": {"pyramid": 0.0},
    "no coarse": {"coarse": 0.0},
    "no decay": {"decay": 0.0},
    "no thinning": {"thinning": 0.0},
    "no reopening": {"reopen": 1.0},
    "no cooldown": {"cooldown": 0.0, "final": 0.1},
    "no errors": {"least_chance": 1.0},
    "small weights": {"min_weight": 1e-4},
    "small batches": {"rays": 8192},
    "single rays": {"supersample": 1},
    "no jitter": {"jitter": 0.0},
}
ROWS["as before"] = {name: value for row in ROWS.values() for name, value in row.items()}


def some(views: rm.Views, most: int) -> rm.Views:
    """Views of a set at equal distances from one another."""
    return views[np.unique(np.linspace(0, len(views) - 1, min(most, len(views))).astype(int))]


def row_of(name: str, sets: list[rm.Views], preset: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Scores of one fit."""
    train, test, seen = sets
    began = time.perf_counter()
    if "rays" in ROWS[name] and changes.get("steps"):
        changes = {**changes, "steps": 2 * changes["steps"]}
    fit = rm.fit(train, rm.preset(preset, **{**changes, **ROWS[name]}), started=began)
    taken = time.perf_counter() - began
    held_out, training = fit.evaluate(test), fit.evaluate(seen)
    steps, side = fit.volume.provenance["steps"], max(fit.volume.shape)
    row = {"row": name, "psnr": held_out.psnr, "training": training.psnr, "ssim": held_out.ssim}
    row |= {"gap": training.psnr - held_out.psnr, "steps": steps, "seconds": round(taken, 1), "side": side}
    print(
        f"{name:14} {row['psnr']:6.2f} dB held out, {row['training']:6.2f} training, gap {row['gap']:5.2f},"
        f" SSIM {row['ssim']:.4f}, {steps:6} steps, {taken:6.1f} s, {side} samples",
        flush=True,
    )
    return row


def main() -> None:
    """Fit each row, score it, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--split", default="val")
    parser.add_argument("--views", type=count, default=20)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--steps", type=count)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--only", nargs="*", default=[], metavar="ROW", choices=list(ROWS))
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--json", metavar="FILE")
    chosen = parser.parse_args()
    train, test = rm.load_views(chosen.data, "train"), rm.load_views(chosen.data, chosen.split)
    sets = [train, some(test, chosen.views), some(train, chosen.views)]
    asked: dict[str, Any] = {"steps": chosen.steps} if chosen.steps else {"seconds": chosen.seconds or 60.0}
    asked |= {name: json.loads(value) for name, value in (pair.split("=", 1) for pair in chosen.set)}
    rows = [row_of(name, sets, chosen.preset, asked) for name in chosen.only or ROWS]
    if chosen.json:
        Path(chosen.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    plainly(main)
