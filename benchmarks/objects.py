"""Image sets of three objects that no choice of a fit was made by, path traced by Mitsuba 3: does a preset hold there?

python benchmarks/objects.py OUT [--only balls cloth plant] [--resolution 400] [--train 80] [--test 12] [--samples 64]

OUT/balls: glossy and checked balls on a shining plate, which mirror one another
OUT/cloth: a coloured cloth in waves, and a rough ball of copper above it
OUT/plant: stalks one to three pixels wide, and leaves without thickness

Straight-alpha PNG files in the NeRF-synthetic layout, for `raymarch fit OUT/balls` and `python benchmarks/quality.py
OUT/balls --split test`. Cameras of the two splits lie on spirals that never meet (`scenes/common.py`). The light is a
round lamp and an even sky, neither of which is seen. Needs `pip install mitsuba` and LLVM's library (Debian's
`libllvm19`, or DRJIT_LIBLLVM_PATH); some minutes a set on two cores.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from plainly import count, plainly

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenes"))
from common import RenderView, spiral_cameras, write_set
from tracer import srgb

ANGLE = 0.7  # horizontal field of view
BOUNCES = 5
Solid = dict[str, Any]
Object = Callable[[Any, np.random.Generator], Iterator[tuple[str, Solid]]]


def rgb(*value: float) -> Solid:
    """A colour."""
    return {"type": "rgb", "value": [float(x) for x in value]}


def plastic(colour: Solid, roughness: float = 0.1) -> Solid:
    """A coat that shines over a colour."""
    return {"type": "roughplastic", "alpha": roughness, "diffuse_reflectance": colour}


def metal(kind: str, roughness: float) -> Solid:
    """A rough conductor."""
    return {"type": "roughconductor", "material": kind, "alpha": roughness}


def matt(colour: Solid) -> Solid:
    """A diffuse surface, from both sides."""
    return {"type": "twosided", "bsdf": {"type": "diffuse", "reflectance": colour}}


def checks(transform: Any, dark: Solid, pale: Solid, times: int) -> Solid:
    """A chequered texture."""
    return {"type": "checkerboard", "color0": dark, "color1": pale, "to_uv": transform().scale([times, times, 1])}


def lights() -> Iterator[tuple[str, Solid]]:
    """A round lamp and an even sky."""
    lamp = {"type": "area", "radiance": rgb(38, 36, 32)}
    yield "lamp", {"type": "sphere", "center": [6, -5, 9], "radius": 1.2, "emitter": lamp}
    yield "sky", {"type": "constant", "radiance": rgb(0.45, 0.45, 0.45)}


def balls(transform: Any, rng: np.random.Generator) -> Iterator[tuple[str, Solid]]:
    """Nine balls of four materials on a plate."""
    chequered = checks(transform, rgb(0.2, 0.2, 0.22), rgb(0.7, 0.68, 0.6), 9)
    flat = transform().translate([0, 0, -0.45]).scale([0.95, 0.95, 0.05])
    yield "plate", {"type": "cube", "to_world": flat, "bsdf": plastic(chequered, 0.15)}
    for n, (x, y) in enumerate((x, y) for x in (-0.62, 0.0, 0.62) for y in (-0.62, 0.0, 0.62)):
        colour, radius = rng.uniform(0.1, 0.9, 3), 0.22 + 0.06 * rng.random()
        painted = {"type": "diffuse", "reflectance": checks(transform, rgb(*colour), rgb(*(1 - colour)), 16)}
        material = (metal("Au", 0.15), plastic(rgb(*colour), 0.08), painted, metal("Cr", 0.05))[n % 4]
        yield f"ball {n}", {"type": "sphere", "center": [x, y, radius - 0.4], "radius": radius, "bsdf": material}


def waves(rng: np.random.Generator, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Height of the cloth: a sum of waves, the shorter the lower."""
    height = np.zeros_like(x)
    for f in (2, 3, 5, 8, 13, 21, 34, 55):
        across, along = f * rng.uniform(0.6, 1.4, 2)
        phases = rng.uniform(0, 6, 2)
        height += rng.uniform(0.02, 0.5) / f * np.sin(across * x + phases[0]) * np.cos(along * y + phases[1])
    return height


def cloth(transform: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """A height field with a colour at each corner, and a ball of copper."""
    import mitsuba

    side = 260
    x, y = np.meshgrid(*[np.linspace(-0.9, 0.9, side)] * 2, indexing="ij")
    z = waves(rng, x, y)
    parts = np.sin(7 * z + 30 * x), 0.8 * np.sin(20 * y + 5 * z + 1), 0.8 * np.cos(51 * x * y) - 0.2
    colour = 0.5 + 0.5 * np.clip(np.stack(parts, -1), -0.96, 0.96)
    corner = np.arange(side * side).reshape(side, side)
    a, b, c, d = (part.ravel() for part in (corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    made = mitsuba.Properties()
    made["bsdf"] = mitsuba.load_dict(matt({"type": "mesh_attribute", "name": "vertex_colour"}))
    mesh = mitsuba.Mesh("cloth", side * side, len(faces), props=made)
    mesh.add_attribute("vertex_colour", 3, colour.ravel().astype(np.float32))
    held = mitsuba.traverse(mesh)
    held["vertex_positions"] = np.stack([x, y, z], -1).ravel().astype(np.float32)
    held["faces"] = faces.ravel().astype(np.uint32)
    held.update()
    yield "cloth", mesh
    yield "ball", {"type": "sphere", "center": [0, 0, 0.75], "radius": 0.35, "bsdf": metal("Cu", 0.2)}


def plant(transform: Any, rng: np.random.Generator) -> Iterator[tuple[str, Solid]]:
    """Forty stalks that wander, each with ten leaves, in a pot's earth."""
    yield "earth", {"type": "sphere", "center": [0, 0, -1.0], "radius": 0.4, "bsdf": plastic(rgb(0.4, 0.25, 0.15), 0.3)}
    yield "bark", {"id": "bark", **matt(rgb(0.25, 0.4, 0.12))}
    for n in range(4):
        green = rgb(0.1 + 0.2 * rng.random(), 0.35 + 0.4 * rng.random(), 0.08)
        yield f"green {n}", {"id": f"green {n}", "type": "twosided", "bsdf": plastic(green, 0.2)}
    for stalk in range(40):
        foot, way = np.append(rng.uniform(-0.2, 0.2, 2), -0.7), np.append(0.35 * rng.normal(size=2), 1.0)
        for part in range(7):
            way /= np.linalg.norm(way)
            end = foot + 0.23 * way
            piece: Solid = {"type": "cylinder", "p0": foot.tolist(), "p1": end.tolist()}
            piece |= {"radius": 0.012 * (1 - part / 9), "bsdf": {"type": "ref", "id": "bark"}}
            yield f"stalk {stalk} {part}", piece
            for leaf in range(2 * (part > 1)):
                normal, middle = rng.normal(size=3), end + 0.05 * rng.normal(size=3)
                lies = transform().look_at(origin=middle.tolist(), target=(middle + normal).tolist(), up=[0, 0.01, 1])
                shape = lies.scale([0.035 + 0.03 * rng.random(), 0.02, 1])
                green = {"type": "ref", "id": f"green {rng.integers(4)}"}
                yield f"leaf {stalk} {part} {leaf}", {"type": "disk", "to_world": shape, "bsdf": green}
            foot, way = end, way + 0.22 * rng.normal(size=3)


OBJECTS: dict[str, Object] = {"balls": balls, "cloth": cloth, "plant": plant}


def rendered_by_mitsuba(which: str, cameras: dict[str, list[np.ndarray]], resolution: int, samples: int) -> RenderView:
    """Function that renders a view of an object: straight alpha, (resolution, resolution, 4) in 0..1."""
    import mitsuba

    mitsuba.set_variant("llvm_ad_rgb")
    transform = mitsuba.ScalarTransform4f
    integrator = {"type": "path", "max_depth": BOUNCES, "hide_emitters": True}
    solids = OBJECTS[which](transform, np.random.default_rng(7))
    scene = mitsuba.load_dict({"type": "scene", "integrator": integrator, **dict(lights()), **dict(solids)})
    film = {"type": "hdrfilm", "width": resolution, "height": resolution, "pixel_format": "rgba"}
    film["rfilter"] = {"type": "box"}

    def render_view(split: str, index: int) -> np.ndarray:
        pose = cameras[split][index]
        place, backward = pose[:3, 3], pose[:3, 2]
        lies = transform().look_at(origin=place.tolist(), target=(place - backward).tolist(), up=[0, 0, 1])
        camera = {"type": "perspective", "fov": math.degrees(ANGLE), "fov_axis": "x", "to_world": lies, "film": film}
        seed = index + 10_000 * (split == "test")
        image = np.asarray(mitsuba.render(scene, sensor=mitsuba.load_dict(camera), spp=samples, seed=seed))
        alpha = np.clip(image[..., 3:], 0, 1)
        return np.concatenate([srgb(image[..., :3] / np.maximum(alpha, 1e-6)).clip(0, 1) * (alpha > 0), alpha], -1)

    return render_view


def main() -> None:
    """Render the sets that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", default=list(OBJECTS), choices=list(OBJECTS))
    parser.add_argument("--resolution", type=count, default=400)
    parser.add_argument("--train", type=count, default=80)
    parser.add_argument("--test", type=count, default=12)
    parser.add_argument("--samples", type=count, default=64, help="paths a pixel")
    chosen = parser.parse_args()
    if find_spec("mitsuba") is None:
        sys.exit("mitsuba renders these sets and is not installed; pip install mitsuba")
    for which in chosen.only:
        cameras = {
            split: spiral_cameras(many, split, (0.08, 0.95), 4.0, 0)
            for split, many in (("train", chosen.train), ("test", chosen.test))
        }
        render_view = rendered_by_mitsuba(which, cameras, chosen.resolution, chosen.samples)
        write_set(chosen.out / which, ANGLE, cameras, render_view)
        print(chosen.out / which)


if __name__ == "__main__":
    plainly(main)
