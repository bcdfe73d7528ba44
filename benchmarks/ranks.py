"""Where ranks pay: the parts of a step of this machine, and what a step would take by so many ranks over so many links.

    python benchmarks/ranks.py [DATA] [--preset NAME] [--resolution N] [--degree N] [--steps N] [--threads N]

What a step takes by one rank is measured: what is dealt (march, loss, adjoint, sums of slots), what each rank does
again (choice of tiles, looks at empty space, Adam) and what exchanging costs a rank besides the wire (packing,
unpacking, a sum). Bytes are those of the touched blocks. A link's time is taken from its bandwidth and latency, not
measured. Times are held against an ordinary fit, which has fewer slots to add up.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

import numpy as np

import raymarch as rm
from raymarch.engine import ti
from raymarch.fitting.ranked_fitter import RankedFitter
from raymarch.fitting.settings.settings import preset
from raymarch.kernels.fit import packing
from raymarch.ranks.comm import Alone

LINKS = {"10 GbE": (1.18e9, 30e-6), "100 Gb": (11.8e9, 3e-6), "NVLink": (450e9, 8e-6)}  # byte/s, s
COUNTS = (2, 4, 8)
COLLECTIVES = 4  # a step: marks, words, pieces to their owners, sums to all


class TimedFitter(RankedFitter):
    """Fit whose parts are timed, and whose gradient is packed and unpacked as if there were others."""

    def __init__(self, *arguments, **options):
        self.spent: dict[str, list[float]] = defaultdict(list)
        self.bytes: list[int] = []
        super().__init__(*arguments, **options)

    def timed(self, name, call, *arguments):
        ti.sync()
        began = time.perf_counter()
        value = call(*arguments)
        ti.sync()
        self.spent[name].append(time.perf_counter() - began)
        return value

    def _draw(self):
        return self.timed("dealt: rays", super()._draw)

    def _differentiate(self, counted):
        self.exchange.share = self._share
        self.timed("dealt: march, loss, adjoint, slots", super()._differentiate, counted)
        self.spent["dealt: march, loss, adjoint, slots"][-1] -= self.spent["exchange: pack, sum, unpack"][-1]

    def _share(self, grid, numbers):
        return self.timed("exchange: pack, sum, unpack", self._pack, grid, numbers)

    def _pack(self, grid, numbers):
        blocks, exchange = grid.blocks, self.exchange
        marks = np.zeros(int(np.prod([blocks[a] for a in range(3)])), np.uint8)
        packing.marks_out(grid.fields, blocks, marks)
        at = np.flatnonzero(marks).astype(np.int32)
        words = exchange._words(grid, at)
        flat, shapes = exchange._packed(grid, at, words)
        flat + flat
        exchange._unpack(grid, at, words, flat, shapes)
        self.bytes.append(flat.nbytes + len(marks) // 8 + (0 if words is None else words.nbytes))
        return [numbers]

    def step(self):
        self.timed("step", super().step)


def ordinary_step(views, settings, late):
    """Seconds of a step of a fit by one process without ranks."""
    times = []
    with rm.Fitter(views, settings) as fitter:
        while fitter.progress < 1:
            began = time.perf_counter()
            fitter.step()
            ti.sync()
            times.append(time.perf_counter() - began)
    return float(np.median(times[late]))


def table(parts, size, ordinary):
    """Milliseconds of a step, and how many times as fast as an ordinary one, by so many ranks over each link."""
    dealt = sum(seconds for name, seconds in parts.items() if name.startswith("dealt"))
    packed = parts["exchange: pack, sum, unpack"]
    again = parts["step"] - dealt - packed
    print(f"a step of an ordinary fit: {1e3 * ordinary:.1f} ms, of one rank {1e3 * (dealt + again):.1f}")
    print(f"of a rank's, {1e3 * dealt:.1f} ms are dealt and {1e3 * again:.1f} are done again by each;")
    print(f"beside the wire an exchange takes {1e3 * packed:.1f} ms; {size / 1e6:.1f} MB of gradient")
    print()
    print("| link | " + " | ".join(f"{count} ranks" for count in COUNTS) + " |")
    print("|---|" + "---|" * len(COUNTS))
    for link, (bandwidth, latency) in LINKS.items():
        cells = []
        for count in COUNTS:
            wire = 2 * (count - 1) / count * size / bandwidth + COLLECTIVES * latency * count
            step = dealt / count + again + packed + wire
            cells.append(f"{1e3 * step:.1f} ms, {ordinary / step:.2f} times")
        print(f"| {link} | " + " | ".join(cells) + " |")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", nargs="?", default="scenes/tower")
    options.add_argument("--preset", default="quick")
    options.add_argument("--resolution", type=int, default=160)
    options.add_argument("--degree", type=int, default=1)
    options.add_argument("--steps", type=int, default=120)
    options.add_argument("--threads", type=int)
    options.add_argument("--arch", default="auto")
    asked = options.parse_args()
    running = rm.start(asked.arch, threads=asked.threads)
    views = rm.load_views(asked.data, split="train")
    levels = {"resolution": asked.resolution, "sh_degree": asked.degree, "levels": ((0.0, 0.5), (0.3, 1.0))}
    settings = preset(asked.preset, steps=asked.steps, **levels)
    with TimedFitter(views, settings, Alone()) as fitter:
        while fitter.progress < 1:
            fitter.step()
        late = slice(asked.steps * 3 // 4, None)
        parts = {name: float(np.median(times[late])) for name, times in fitter.spent.items()}
        size = int(np.median(fitter.bytes[late]))
        shape, rays = fitter.grid.shape, fitter.rays_a_step
    where = f"{running.arch}, {running.threads} threads"
    print(f"{asked.data}, {shape} samples, degree {asked.degree}, {rays} rays a step, {where}")
    for name, seconds in parts.items():
        print(f"  {name:40} {1e3 * seconds:8.2f} ms")
    table(parts, size, ordinary_step(views, settings, late))


if __name__ == "__main__":
    main()
