"""March and adjoint against the size of the grid, as a table and a plot.

python benchmarks/throughput.py [--sizes 32,64,96,128,192,256,384] [--repeats 5] [--arch auto] [--out throughput.png]

Each size runs `raymarch bench march` in a process of its own: 256 x 256 rays, half a voxel a step, nothing empty.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from plainly import plainly


def speed(n: int, repeats: int, arch: str) -> dict:
    """What `raymarch bench march` says of one size."""
    words = ["bench", "march", "--n", str(n), "--repeats", str(repeats), "--arch", arch, "--json"]
    return json.loads(
        subprocess.run([sys.executable, "-m", "raymarch", *words], capture_output=True, check=True).stdout
    )


def draw(rows: list[dict], path: str) -> None:
    """Million samples a second against samples an axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    sizes = [row["n"] for row in rows]
    for name, marker in (("march", "o"), ("adjoint", "s")):
        axes.plot(sizes, [row[f"{name}_msamples"] for row in rows], marker=marker, label=name)
    axes.set(xscale="log", xlabel="samples an axis", ylabel="million samples a second")
    axes.set_xticks(sizes, [str(n) for n in sizes], minor=False)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(title=f"{rows[0]['arch']}, {rows[0]['threads']} threads")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Print a row a size, then draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="32,64,96,128,192,256,384")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--arch", default="auto")
    parser.add_argument("--out", default="throughput.png")
    asked = parser.parse_args()
    rows, sizes = [], [int(n) for n in asked.sizes.split(",")]
    print(f"{'n':>5} {'block':>5} {'march':>8} {'adjoint':>8}  million samples a second")
    for n in sizes:
        row = speed(n, asked.repeats, asked.arch)
        rows.append(row)
        print(f"{n:5} {row['block']:5} {row['march_msamples']:8.1f} {row['adjoint_msamples']:8.1f}", flush=True)
    draw(rows, asked.out)
    print(asked.out)


if __name__ == "__main__":
    plainly(main)
