"""What depth images of a quarter of the views are worth: the garden with noisy depth, with and without `depth_weight`.

Held-out PSNR by halves (photographs have exposures of their own) and depth error on held-out views, whose depth is
exact. `--weights 0,0.01,0.1` fits once with each.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import raymarch as rm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenes"))

import make_garden


def depth_of(camera: rm.Camera, pose: np.ndarray, smaller: int) -> np.ndarray:
    """Exact distances (height, width) of a photograph's depth image, as many times smaller; NaN of the sky."""
    width, height = camera.width // smaller, camera.height // smaller
    v, u = np.mgrid[0:height, 0:width] + 0.5
    ways = make_garden.directions_of(pose, u.ravel() * smaller, v.ravel() * smaller)
    depth, _ = make_garden._met(pose[:3, 3], ways)
    return np.where(np.isfinite(depth), depth, np.nan).reshape(height, width)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/garden_with_depth"))
    parser.add_argument("--count", type=int, default=36)
    parser.add_argument("--noise", type=float, default=0.02, help="of each depth, relative")
    parser.add_argument("--every", type=int, default=4, help="one view in so many has depth")
    parser.add_argument("--weights", default="0,0.1")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--resolution", type=int, default=96)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    if not (options.folder / "transforms.json").exists():
        make_garden.write(options.folder, options.count)
    train, test = (rm.load_views(options.folder, split) for split in ("train", "test"))
    rng = np.random.default_rng(5)
    poses = make_garden.poses(options.count)

    def depth(views: rm.Views, i: int, smaller: int) -> np.ndarray:
        return depth_of(views.cameras[i], poses[int(Path(views.names[i]).stem[-4:])], smaller)

    noisy = [depth(train, i, 4) if i % options.every == 0 else None for i in range(len(train))]
    noisy = [None if one is None else one * (1 + options.noise * rng.normal(size=one.shape)) for one in noisy]
    train = replace(train, depths=noisy)
    test = replace(test, depths=[depth(test, i, 1) for i in range(len(test))])
    more = dict(pair.split("=", 1) for pair in options.set)
    more = {name: json.loads(value) if value[:1] in "0123456789-" else value for name, value in more.items()}
    for weight in map(float, options.weights.split(",")):
        settings = {"steps": options.steps, "resolution": options.resolution, "depth_weight": weight, **more}
        result = rm.fit(train, "photos", **settings)
        scores = rm.evaluate(result.volume, test)
        loose = [f"{each.code}: {each.message}" for each in rm.diagnose_fit(result.volume, train, test)]
        shown = {"weight": weight, "psnr_halves": scores.psnr_halves, "psnr": scores.psnr, "ssim": scores.ssim}
        shown |= {name: getattr(scores, name, None) for name in ("depth_error", "depth_error_relative")}
        print(json.dumps({**shown, "seconds": round(result.seconds, 1), "findings": loose}), flush=True)


if __name__ == "__main__":
    main()
