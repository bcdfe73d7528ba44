"""Seconds to start: import, `raymarch --help`, the first image of a 64^3 volume: python benchmarks/start.py [--json].

Each is a process of its own, the fastest of a few. Cold means an empty compile cache, warm the one that cold left.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

IMAGE = """
import numpy as np, raymarch as rm
ball = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(64, 64, 64))
rm.render(ball, rm.Camera.look_at((0, -4, 0), width=256, height=256))
"""


def seconds(command: list[str], repeats: int, cache: str) -> float:
    """Of the fastest run."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        environment = {**os.environ, "TI_OFFLINE_CACHE_FILE_PATH": cache}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    python = sys.executable
    with tempfile.TemporaryDirectory() as cache:
        report = {
            "python": seconds([python, "-c", ""], 5, cache),
            "import": seconds([python, "-c", "import raymarch"], 5, cache),
            "help": seconds([python, "-m", "raymarch", "--help"], 5, cache),
            "first_image_cold": seconds([python, "-c", IMAGE], 1, cache),
            "first_image_warm": seconds([python, "-c", IMAGE], 3, cache),
        }
    if a.json:
        print(json.dumps(report))
    else:
        for name, value in report.items():
            print(f"{name:17} {value:6.2f} s")


if __name__ == "__main__":
    main()
