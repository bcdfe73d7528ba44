"""Seconds an image of each mode: python benchmarks/modes.py [VOLUME] [--size 512] [--iso X] [--repeats 5] [--json].

VOLUME is any that `rm.load` reads, else a ball with bumps on 64 x 64 x 93 samples. Emission and absorption at SH degree
0 is measured twice: of the numbers as they are (identity, which skips nothing) and of what is over the iso value (relu,
which leaps over the rest). All modes are rendered in turn, so that what else the machine does is in all; best of
several.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import ExitStack

import numpy as np
from plainly import count, plainly

import raymarch as rm


def phantom() -> tuple[np.ndarray, np.ndarray]:
    """Values (64, 64, 93) from 0 to about 3000, and their affine (4, 4)."""
    axes = np.meshgrid(*(np.linspace(-1, 1, n) for n in (64, 64, 93)), indexing="ij")
    p = np.stack(axes, -1)
    values = 3000 * np.clip(1 - np.linalg.norm(p, axis=-1) + 0.1 * np.cos(12 * p).prod(-1), 0, 1)
    return values, np.diag([3.2, 3.2, 2.2, 1.0])


def values_of(path: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (x, y, z) of a volume and its affine (4, 4)."""
    if path is None:
        return phantom()
    volume = rm.load(path)
    volume = volume.as_volume() if isinstance(volume, rm.ScalarVolume) else volume
    return volume.activation.sigma(volume.density), volume.world_from_index


def main() -> None:
    """Render all modes in turn, print."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("volume", nargs="?")
    ask.add_argument("--size", type=count, default=512)
    ask.add_argument("--iso", type=float, help="Value of the surface; halfway up to the 98th percentile if not given.")
    ask.add_argument("--repeats", type=count, default=5)
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    values, place = values_of(a.volume)
    low, high = np.percentile(values, [2, 98])
    iso = (low + high) / 2 if a.iso is None else a.iso
    length = np.linalg.norm(place[:3, :3] @ np.array(values.shape))

    def volume(density: str, shift: float) -> rm.Volume:
        scale = float(high - low) * length / 20  # opaque within a few of its 20 parts
        return rm.Volume(values, np.zeros((*values.shape, 3)), place, rm.Activation(density, shift, scale))

    plain = rm.Volume(values, np.zeros((*values.shape, 3)), place, rm.Activation("identity"))
    seen = {
        "emission-absorption, identity": (volume("identity", float(-low)), rm.March()),
        "emission-absorption, relu": (volume("relu", float(-iso)), rm.March()),
        "isosurface": (plain, rm.March(mode="isosurface", iso=float(iso))),
        **{mode: (plain, rm.March(mode=mode)) for mode in ("maximum", "average", "x-ray-exact")},
    }
    centre = plain.corners.mean(0)
    camera = rm.Camera.look_at(
        centre + length * np.array([0.5, -1.6, 0.4]), centre, fov=0.55, width=a.size, height=a.size
    )
    taken: dict[str, float] = dict.fromkeys(seen, np.inf)
    with ExitStack() as open_ones:
        renderers = {name: open_ones.enter_context(rm.Renderer(*how)) for name, how in seen.items()}
        for turn in range(a.repeats + 1):  # the first compiles
            for name, renderer in renderers.items():
                began = time.perf_counter()
                renderer.render(camera, depth=False)
                if turn:
                    taken[name] = min(taken[name], time.perf_counter() - began)
    if a.json:
        print(json.dumps({"size": a.size, "iso": float(iso), "seconds": taken}))
    else:
        print(f"{' x '.join(map(str, values.shape))} at {a.size} x {a.size}, iso {iso:.4g}, seconds an image:")
        print("\n".join(f"{name:32} {seconds:.3f}" for name, seconds in taken.items()))


if __name__ == "__main__":
    plainly(main)
