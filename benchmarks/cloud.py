"""How near the recovered cloud is to the true medium: python benchmarks/cloud.py [--steps N] [--json].

Fits scenes/cloud with the preset `medium` and prints the relative L2 error of sigma where the true sigma exceeds 1 % of
its maximum, and PSNR and SSIM of the test views.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import raymarch as rm

SCENES = Path(__file__).resolve().parent.parent / "scenes"


def relative_error(volume: rm.Volume, density) -> float:
    """Relative L2 error of sigma at the volume's samples, where `density(points)` is over 1 % of its maximum."""
    index = np.stack(np.meshgrid(*[np.arange(n) for n in volume.shape], indexing="ij"), axis=-1)
    points = index @ volume.world_from_index[:3, :3].T + volume.world_from_index[:3, 3]
    true = density(points)
    where = true > 0.01 * true.max()
    return float(np.linalg.norm((volume.sigma() - true)[where]) / np.linalg.norm(true[where]))


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--steps", type=int)
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    sys.path.insert(0, str(SCENES))
    from make_cloud import density

    changes = {} if a.steps is None else {"steps": a.steps}
    result = rm.fit(rm.load_views(SCENES / "cloud"), "medium", **changes)
    score = result.evaluate(rm.load_views(SCENES / "cloud", "test"))
    error = relative_error(result.volume, density)
    report = {"relative_error": error, "psnr": score.psnr, "ssim": score.ssim, "seconds": result.seconds}
    if a.json:
        print(json.dumps(report))
    else:
        print(f"relative L2 error {error:.4f}, {score.psnr:.2f} dB, SSIM {score.ssim:.4f}, {result.seconds:.0f} s")


if __name__ == "__main__":
    main()
