"""What sparse points are worth to a fit of photographs: `depth_weight` with points that views see, and without.

A set that has none, as the fox, gets those where matches between its photographs cross. Held-out PSNR, and the doctor's
two measures of floaters: the share of loose matter, and of the light that is lost right before the cameras.
"""

from __future__ import annotations

import argparse
import json

import raymarch as rm
from raymarch.diagnosis import floaters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--downscale", type=float, default=8)
    parser.add_argument("--weights", default="0,0.02")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--resolution", type=int, default=64)
    parser.add_argument("--rays", type=int, default=2048)
    options = parser.parse_args()
    train, test = (rm.load_views(options.data, split, downscale=options.downscale) for split in ("train", "test"))
    of = "matches" if train.sightings is None else "points"
    floaters.MIN_LOOSE_FRACTION, floaters.MIN_LIGHT_LOSS = 0.0, -1.0  # the measures themselves
    for weight in map(float, options.weights.split(",")):
        settings = {"steps": options.steps, "resolution": options.resolution, "rays": options.rays}
        result = rm.fit(train, "photos", depth_weight=weight, depth_from=of, **settings)
        scores, inner = rm.evaluate(result.volume, test), result.volume.nested(0)
        found = floaters.loose_matter(inner), floaters.matter_before_cameras(result.volume, train.cameras)
        shown = {"weight": weight, "psnr_halves": scores.psnr_halves, "psnr": scores.psnr, "ssim": scores.ssim}
        shown |= {"seconds": round(result.seconds, 1), "floaters": [one.message if one else "none" for one in found]}
        print(json.dumps(shown), flush=True)


if __name__ == "__main__":
    main()
