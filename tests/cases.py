"""The volumes, cameras and rays that the laws are tried on; the same in every process, from seeds."""

from __future__ import annotations

import itertools

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import look_at
from raymarch.geometry.rays import Rays
from raymarch.volumes.activation import FIT_COLOURS, FIT_DENSITIES, Activation
from raymarch.volumes.volume import Volume

FINEST = (9, 7, 6)  # what every grid of the tests holds, so that kernels are compiled once for all volumes
BLOCKS = (1, 2, 4, 8)
FEW = 4096  # rays a launch of what renders: as many as buffers of few rays have room for, so that all stand on one
SOME_READINGS = [("softplus", "sigmoid"), ("relu", "clamped"), ("exponential", "sigmoid")]  # each of either once
OTHER_READINGS = [pair for pair in itertools.product(FIT_DENSITIES, FIT_COLOURS) if pair not in SOME_READINGS]
PLACES = ("upright", "rotated", "one cell")
BACKGROUND = (0.2, 0.5, 0.9)
SHIFT = {"softplus": 0.3, "relu": 0.2, "exponential": -0.4, "identity": 0.1}


def rotation(axis, angle):
    """(3, 3) rotation about `axis` by `angle` [radian] (Rodrigues)."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def motion(axis=(0, 0, 1), angle=0.0, shift=(0, 0, 0), scale=1.0):
    """(4, 4) similarity of the world."""
    world_from_world = np.eye(4)
    world_from_world[:3, :3] = scale * rotation(axis, angle)
    world_from_world[:3, 3] = shift
    return world_from_world


def placed(place):
    """(shape, world_from_index) of a place; the upright one is exact in binary, so rays can run along its faces."""
    if place == "upright":
        return FINEST, motion(shift=(-1, -1.5, -1.25)) @ np.diag([0.25, 0.5, 0.5, 1])
    if place == "rotated":
        return (8, 6, 5), motion((1, 2, 3), 0.7, (0.3, -0.2, 0.1)) @ np.diag([0.21, 0.33, 0.4, 1])
    return (2, 2, 2), np.eye(4)


def volume(place="upright", degree=1, density="softplus", colour="sigmoid", seed=0):
    """Random values everywhere."""
    shape, world_from_index = placed(place)
    rng = np.random.default_rng(seed)
    features = rng.normal(0, 0.7, (*shape, 3 * (degree + 1) ** 2))
    return Volume(rng.normal(size=shape), features, world_from_index, Activation(density, SHIFT[density], 0.8, colour))


def constant(raw, rgb=0.0, shape=(2, 2, 2), size=(1, 1, 1), activation=None, degree=1):
    """One raw density and one raw colour (the coefficient of the first harmonic) all over a box with a corner at 0."""
    features = np.zeros((*shape, 3 * (degree + 1) ** 2))
    features[..., :3] = rgb
    world_from_index = np.diag([*(np.asarray(size) / (np.asarray(shape) - 1.0)), 1])
    return Volume(np.full(shape, float(raw)), features, world_from_index, activation or Activation("relu"))


def cameras(v):
    """Outside and off-centre with two focals, and inside the volume."""
    centre = v.corners.mean(0)
    reach = np.linalg.norm(v.corners[-1] - v.corners[0])
    outside = look_at(centre + reach * np.array([0.9, -0.7, 0.5]), centre)
    inside = look_at(centre, centre + [0.3, 1, 0.2])
    return [
        Camera(outside, (7.0, 9.5), (2.4, 4.1), 6, 5),
        Camera.from_fov(inside, 1.2, 4, 3),
    ]


def rays(v, seed=0):
    """Rays in general position, axis-parallel, from inside, at samples, of the cameras, and that miss."""
    rng = np.random.default_rng(seed)
    top = np.array(v.shape) - 1.0
    middle = top * (0.41, 0.53, 0.37)
    pairs = []  # (start, a point ahead) in index space
    for _ in range(8):
        away = rng.normal(size=3)
        pairs.append((top / 2 + 2 * np.linalg.norm(top) * away / np.linalg.norm(away), rng.uniform(0, 1, 3) * top))
    for axis in np.concatenate([np.eye(3), -np.eye(3)]):
        pairs.append((middle - 2 * axis * top, middle))
        pairs.append((middle, middle + axis))  # starts inside
    for _ in range(4):
        pairs.append((rng.uniform(0, 1, 3) * top, rng.uniform(-2, 3, 3) * top))
    pairs.append((np.ones(3), np.ones(3) + (0.3, 0.4, -0.6)))  # starts at a sample
    pairs.append((np.array([-3.0, 1, 1]), np.ones(3)))  # along a line of samples
    pairs.append((-top - 1, -2 * top - 3))  # looks away
    pairs.append((top * (-1, 1.5, 0.5), top * (0, 1.5, 0.5)))  # passes beside, parallel
    pairs.append((top * (-1, 2, 0.5), top * (2, 1.4, 0.6)))  # passes beside
    if np.array_equal(v.world_from_index, placed("upright")[1]):
        pairs += grazing(top)
    start, ahead = (np.array(side) for side in zip(*pairs, strict=True))
    linear = v.world_from_index[:3, :3]
    own = Rays(start @ linear.T + v.world_from_index[:3, 3], (ahead - start) @ linear.T)
    every = [own] + [camera.rays() for camera in cameras(v)]
    return Rays(np.concatenate([r.origin for r in every]), np.concatenate([r.direction for r in every]))


def grazing(top):
    """Along faces and edges, through a corner, and touching an edge only."""
    x, y, z = top
    lines = [
        ((-2, 0, 1.3), (0, 0, 1.3)),
        ((-2, y, 1.3), (0, y, 1.3)),
        ((2.7, 3.1, -1), (2.7, 3.1, 0)),
        ((-2, 0, 0), (0, 0, 0)),
        ((x + 3, y, z), (x, y, z)),
        ((0, 0, 0), (0, 0, 1)),
        ((-1, -1, -1), (0, 0, 0)),
        ((x, y, z), (0, 0, 0)),
        ((-2, 4, 1.5), (0, 0, 1.5)),
    ]
    return [(np.array(a, float), np.array(b, float)) for a, b in lines]
