"""Makes scenes/tower: a small stone watchtower, ray traced with NumPy and independent of the project's raymarcher.

Brick and tile textures, rails and rungs one to two pixels wide, a glazed ball whose highlight moves with the view, and
the soft shadow of a square light. RGBA with straight alpha; every pixel is the box-filtered mean of jittered rays.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import materials
import numpy as np
from common import set_arguments, spiral_cameras, write_set
from primitives import Box, Capsule, Frustum, Material, Primitive, Sphere
from tracer import AreaLight, Scene

CAMERA_ANGLE_X = np.deg2rad(41.5)
CAMERA_RADIUS = 4.0
# Below the middle, since perspective enlarges the near edge of the slab: so the whole tower stays in the frame.
TARGET = np.array([0.0, 0.0, -0.25])
SINES = (float(np.sin(np.deg2rad(5.0))), float(np.sin(np.deg2rad(65.0))))
GROUND = -0.95
LIGHT = AreaLight(np.array([2.6, -2.2, 3.4]), 1.1, np.array([2.05, 1.86, 1.58]))

STONE = materials.plain((0.62, 0.55, 0.45))
DARK_WOOD = materials.plain((0.20, 0.105, 0.05))
PALE_WOOD = materials.plain((0.56, 0.36, 0.17))
IRON = materials.plain((0.10, 0.10, 0.12), 0.08, 40.0, 0.6)
GOLD = materials.plain((0.75, 0.48, 0.12), 0.5, 50.0, 0.6)
BOARDS = ((0.24, 0.12, 0.05), (0.50, 0.29, 0.13))


def yawed(degrees: float) -> np.ndarray:
    """Local axes whose x points at that azimuth."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def polar(degrees: float, radius: float, z: float) -> np.ndarray:
    return np.array([radius * np.cos(np.deg2rad(degrees)), radius * np.sin(np.deg2rad(degrees)), z])


def upright(
    material: Material, low: float, high: float, bottom: float, top: float, at: np.ndarray | None = None
) -> Frustum:
    """A capped cone or cylinder from z = low to z = high, over the point `at`."""
    centre = np.array([0.0, 0.0, 0.5 * (low + high)]) + (0.0 if at is None else at * [1.0, 1.0, 0.0])
    return Frustum(material, centre, bottom=bottom, top=top, half=0.5 * (high - low))


def rod(material: Material, start: np.ndarray, end: np.ndarray, radius: float) -> Capsule:
    along = end - start
    length = float(np.linalg.norm(along))
    z = along / length
    x = np.cross(z, [1.0, 0.0, 0.0] if abs(z[0]) < 0.7 else [0.0, 1.0, 0.0])
    x /= np.linalg.norm(x)
    return Capsule(material, 0.5 * (start + end), np.stack([x, np.cross(z, x), z]), radius=radius, half=0.5 * length)


def tower() -> list[Primitive]:
    """Slab, body, gallery, upper storey, roof and flag."""
    brick = materials.masonry(0.47, 0.066, 0.123, (0.30, 0.115, 0.055), (0.62, 0.36, 0.20), 10)
    block = materials.masonry(0.55, 0.12, 0.16, (0.52, 0.46, 0.37), (0.72, 0.65, 0.54), 20)
    roof_slope = float(np.hypot(0.48, 0.42) / 0.48)
    parts: list[Primitive] = [
        upright(materials.paving(1.04), -1.07, GROUND, 1.04, 1.04),
        upright(block, GROUND, -0.87, 0.60, 0.57),
        upright(brick, -0.87, 0.12, 0.50, 0.43),
        upright(block, -0.34, -0.285, 0.485, 0.485),
        upright(block, 0.12, 0.215, 0.44, 0.58),
        upright(materials.planks(0, 0.1, *BOARDS), 0.215, 0.255, 0.655, 0.655),
        upright(materials.timbered(0.355, 0.16), 0.255, 0.575, 0.36, 0.35),
        upright(DARK_WOOD, 0.545, 0.565, 0.50, 0.51),
        upright(materials.tiles(0.50, roof_slope), 0.565, 0.925, 0.50, 0.02),
        rod(IRON, np.array([0.0, 0.0, 0.90]), np.array([0.0, 0.0, 1.075]), 0.011),
        Sphere(GOLD, np.array([0.0, 0.0, 0.925]), radius=0.030),
    ]
    edge = np.array([0.0, 0.0, 1.005])
    for yaw in (62.0, 28.0, 52.0, 20.0):
        step = polar(yaw, 0.085, 0.0)
        parts.append(Box(materials.stripes, edge + 0.5 * step, yawed(yaw), half=np.array([0.0435, 0.006, 0.062])))
        edge = edge + step
    return parts


def railing(posts: int = 18, radius: float = 0.625, floor: float = 0.255) -> list[Primitive]:
    parts: list[Primitive] = []
    for k in range(posts):
        here, there = 360.0 * k / posts, 360.0 * (k + 1) / posts
        parts.append(rod(PALE_WOOD, polar(here, radius, floor), polar(here, radius, floor + 0.17), 0.011))
        for height, thickness in ((0.17, 0.012), (0.09, 0.008)):
            ends = [polar(angle, radius, floor + height) for angle in (here, there)]
            parts.append(rod(PALE_WOOD, *ends, thickness))
    return parts


def openings() -> list[Primitive]:
    """The door with its stone arch, and the windows of the body."""
    lying = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    door = materials.planks(1, 0.055, (0.16, 0.08, 0.035), (0.36, 0.19, 0.08))
    parts: list[Primitive] = [
        Box(STONE, np.array([0.47, 0.0, -0.74]), half=np.array([0.050, 0.155, 0.16])),
        Frustum(STONE, np.array([0.47, 0.0, -0.58]), lying, bottom=0.155, top=0.155, half=0.050),
        Box(door, np.array([0.48, 0.0, -0.735]), half=np.array([0.052, 0.112, 0.155])),
        Frustum(door, np.array([0.48, 0.0, -0.58]), lying, bottom=0.112, top=0.112, half=0.052),
        Sphere(GOLD, np.array([0.540, 0.075, -0.71]), radius=0.018),
    ]
    for azimuth, z in ((0.0, -0.08), (95.0, -0.52), (180.0, -0.08), (215.0, -0.55), (275.0, -0.10), (300.0, -0.60)):
        wall = 0.50 - 0.07 * (z + 0.87) / 0.99
        parts += [
            Box(STONE, polar(azimuth, wall - 0.005, z), yawed(azimuth), half=np.array([0.032, 0.088, 0.122])),
            Box(
                materials.window(0.060, 0.092),
                polar(azimuth, wall, z),
                yawed(azimuth),
                half=np.array([0.034, 0.060, 0.092]),
            ),
            Box(STONE, polar(azimuth, wall + 0.01, z - 0.125), yawed(azimuth), half=np.array([0.048, 0.100, 0.014])),
        ]
    return parts


def ladder(azimuth: float = 140.0, rungs: int = 12) -> list[Primitive]:
    foot, head = polar(azimuth, 0.93, GROUND), polar(azimuth, 0.685, 0.40)
    sideways = 0.075 * yawed(azimuth)[1]
    parts: list[Primitive] = [rod(PALE_WOOD, foot + s * sideways, head + s * sideways, 0.014) for s in (-1.0, 1.0)]
    for k in range(rungs):
        middle = foot + (head - foot) * (k + 0.6) / rungs
        parts.append(rod(PALE_WOOD, middle - sideways, middle + sideways, 0.010))
    return parts


def garden() -> list[Primitive]:
    """What stands on the lawn: the glazed ball, cypresses, a barrel and crates."""
    ball, cask = polar(-52.0, 0.76, 0.0), polar(52.0, 0.74, 0.0)
    block = materials.planks(2, 0.058, *BOARDS)
    parts: list[Primitive] = [
        upright(STONE, GROUND, GROUND + 0.05, 0.15, 0.14, ball),
        upright(STONE, GROUND + 0.05, GROUND + 0.13, 0.075, 0.085, ball),
        Sphere(materials.glaze, ball + np.array([0.0, 0.0, GROUND + 0.30]), radius=0.19),
        upright(materials.barrel(0.11), GROUND, GROUND + 0.22, 0.095, 0.095, cask),
        Box(block, polar(78.0, 0.76, GROUND + 0.085), yawed(20.0), half=np.array([0.085, 0.085, 0.085])),
        Box(block, polar(77.0, 0.74, GROUND + 0.225), yawed(48.0), half=np.array([0.055, 0.055, 0.055])),
    ]
    for azimuth, size in ((195.0, 1.0), (222.0, 0.78), (255.0, 0.9)):
        at = polar(azimuth, 0.78, 0.0)
        parts.append(upright(DARK_WOOD, GROUND, GROUND + 0.12 * size, 0.03, 0.025, at))
        for low, high, wide in ((0.09, 0.36, 0.145), (0.23, 0.50, 0.118), (0.37, 0.66, 0.088)):
            foot, tip = GROUND + low * size, GROUND + high * size
            parts.append(upright(materials.foliage, foot, tip, wide * size, 0.006, at))
    return parts


@cache
def build() -> Scene:
    return Scene(tower() + railing() + openings() + ladder() + garden(), LIGHT)


def scene_cameras(train: int = 64, test: int = 20, seed: int = 0) -> dict[str, list[np.ndarray]]:
    counts = {"train": train, "test": test}
    return {split: spiral_cameras(count, split, SINES, CAMERA_RADIUS, seed, TARGET) for split, count in counts.items()}


def render_view(
    world_from_camera: np.ndarray, split: str, index: int, resolution: int = 256, samples: int = 4, seed: int = 0
) -> np.ndarray:
    """One view as straight-alpha display RGBA (H, W, 4)."""
    return build().render(world_from_camera, CAMERA_ANGLE_X, resolution, samples, [seed, split == "test", index])


def main(arguments: list[str] | None = None) -> None:
    parser = set_arguments(__doc__, 256, 64, 20)
    parser.add_argument("--samples", type=int, default=4, help="jittered rays per side of a pixel")
    options = parser.parse_args(arguments)
    cameras = scene_cameras(options.train, options.test, options.seed)

    def view(split: str, index: int) -> np.ndarray:
        pose = cameras[split][index]
        return render_view(pose, split, index, options.resolution, options.samples, options.seed)

    folder = options.out or Path(__file__).parent / "tower"
    print(f"mean alpha {write_set(folder, CAMERA_ANGLE_X, cameras, view):.3f}")


if __name__ == "__main__":
    main()
