"""PSNR of held-out views and of training views against seconds of a fit, as a table and a plot.

python benchmarks/curve.py DATA [--split val] [--views 20] [--preset default] [--seconds 300] [--marks 12] [--out FILE]

One fit of DATA's training views; seconds count from its first step, and what loading and compiling took before is
printed. Volumes are kept at marks that lie closer at first, and scored when the fit is over. The schedule is that of
the whole fit: one that is given only the seconds up to a mark does better there.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from plainly import plainly
from quality import some

import raymarch as rm

STARTED = time.perf_counter()


def curve(train: rm.Views, test: rm.Views, preset: str, seconds: float, marks: int) -> list[dict]:
    """Seconds, steps, PSNR and SSIM at each mark and at the end."""
    due = list(seconds * np.linspace(0.25, 1, marks + 1)[:-1] ** 2)
    kept: list[tuple[float, int, rm.Volume]] = []
    settings = rm.preset(preset, seconds=seconds)
    with rm.Fitter(train, settings, started=STARTED) as fitter:
        for report in fitter.run():
            if due and report.seconds >= due[0]:
                kept.append((report.seconds, report.step, fitter.volume()))
                due = [mark for mark in due if mark > report.seconds]
        kept.append((fitter.seconds, fitter.steps_done, fitter.volume()))
        print(f"{fitter.preparation:.1f} s of loading and compiling came before")
    rows = []
    for at, steps, volume in kept:
        score, training = rm.evaluate(volume, test), rm.evaluate(volume, some(train, len(test))).psnr
        row = {"seconds": round(at, 1), "steps": steps, "psnr": score.psnr, "ssim": score.ssim, "training": training}
        rows.append(row)
        print(
            f"{at:7.1f} s {steps:6} steps {score.psnr:6.2f} dB held out, gap {training - score.psnr:5.2f},"
            f" SSIM {score.ssim:.4f}",
            flush=True,
        )
    return rows


def draw(curves: dict[str, list[dict]], path: str) -> None:
    """A line a fit, and a dashed one of its training views."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name, rows in curves.items():
        seconds = [row["seconds"] for row in rows]
        (line,) = axes.plot(seconds, [row["psnr"] for row in rows], marker="o", label=f"{name}, held-out views")
        seen = [row.get("training", np.nan) for row in rows]
        axes.plot(seconds, seen, "--", color=line.get_color(), label=f"{name}, training views")
    axes.set(xlabel="seconds from the first step on", ylabel="PSNR [dB]")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Fit, score, draw; with `--before` files of earlier runs' `--json` as further lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--split", help='Of the views that are scored; "val", or "test" where there is none.')
    parser.add_argument("--views", type=int, default=20)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--marks", type=int, default=12)
    parser.add_argument("--name", default="now")
    parser.add_argument("--before", action="append", default=[], help="JSON of an earlier run, drawn beside this one.")
    parser.add_argument("--json", help="File to write this run to.")
    parser.add_argument("--out", default="curve.png")
    asked = parser.parse_args()
    train = rm.load_views(asked.data, split="train")
    split = asked.split or ("val" if (Path(asked.data) / "transforms_val.json").exists() else "test")
    test = rm.load_views(asked.data, split=split)
    rows = curve(train, some(test, asked.views), asked.preset, asked.seconds, asked.marks)
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump({asked.name: rows}, file)
    curves = {}
    for path in asked.before:
        with open(path) as file:
            curves.update(json.load(file))
    draw({**curves, asked.name: rows}, asked.out)
    print(asked.out)


if __name__ == "__main__":
    plainly(main)
