"""Laws of the gauge: upright whatever the world was before, about what is looked at, a similarity and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import raymarch as rm
from raymarch.geometry.pose import exp_rigid
from raymarch.sfm.mapping import upright_gauge

RNG = np.random.default_rng(1)
TARGET = np.array([3.0, -1.0, 0.5])


def inward(angles, height, radius=4.0, noise=0.0):
    """Cameras on a part of a circle that look at the target, held level."""
    out = []
    for angle in angles:
        eye = TARGET + [radius * np.cos(angle), radius * np.sin(angle), height]
        out.append(rm.Camera.look_at(eye, TARGET + noise * RNG.normal(size=3)))
    return out


def outward():
    around = np.linspace(0, 6, 20)
    eyes = TARGET + 0.3 * RNG.normal(size=(20, 3)) * [1, 1, 0.1]
    return [rm.Camera.look_at(eye, eye + [np.cos(a), np.sin(a), 0.1]) for eye, a in zip(eyes, around, strict=True)]


def rolled(cameras):
    """One of them was held on its side and another upside down."""
    turns = [exp_rigid([0, 0, 0, 0, 0, angle]) for angle in (np.pi / 2, np.pi)]
    first = [replace(c, world_from_camera=c.world_from_camera @ t) for c, t in zip(cameras[:2], turns, strict=True)]
    return [*first, *cameras[2:]]


ANY_WAY = np.array([exp_rigid([0, 0, 0, *(3 * RNG.normal(size=3))])[:3, :3] for _ in range(6)])
SETS = {
    "ring": (inward(np.linspace(0, 6, 16), 0.0), True),
    "ring from above": (inward(np.linspace(0, 6, 16), 3.0), True),
    "arc from above": (inward(np.linspace(0, 1.5, 12), 2.0, noise=0.1), True),
    "forward": (inward(np.linspace(0, 0.2, 9), 0.1), True),
    "two held otherwise": (rolled(inward(np.linspace(0, 4, 16), 1.0)), True),
    "outward": (outward(), False),
    "one place twice": (inward([0, 0, 1.0, 2.0], 1.0), True),
}


@pytest.mark.parametrize("name", SETS)
def test_the_world_is_upright_wherever_it_was(name):
    cameras, looks_in = SETS[name]
    pose = np.diag([7.0, 7, 7, 1]) @ exp_rigid([1, 2, 3, *RNG.normal(size=3)])
    turn = pose[:3, :3] / 7
    turns = np.array([turn @ c.world_from_camera[:3, :3] for c in cameras])
    eyes = np.array([pose[:3, :3] @ c.position + pose[:3, 3] for c in cameras])
    points = (pose[:3, :3] @ (TARGET + RNG.normal(size=(50, 3)))[:, :, None])[:, :, 0] + pose[:3, 3]
    gauge = upright_gauge(eyes, turns, points)

    moved = gauge.world_from_sfm[:3, :3]
    scale = np.cbrt(np.linalg.det(moved))
    assert scale > 0
    np.testing.assert_allclose(moved.T @ moved, scale**2 * np.eye(3), atol=1e-9 * scale**2)
    up = moved @ turn @ [0, 0, 1] / scale
    assert up[2] > np.cos(np.deg2rad(3)), np.rad2deg(np.arccos(up[2]))
    there = eyes @ moved.T + gauge.world_from_sfm[:3, 3]
    if looks_in:
        assert np.median(np.linalg.norm(there, axis=1)) == pytest.approx(1)
        target = moved @ (pose[:3, :3] @ TARGET + pose[:3, 3]) + gauge.world_from_sfm[:3, 3]
        assert np.linalg.norm(target) < (0.02 if name != "arc from above" else 0.1)
        assert there[0, 1] < 0 and abs(there[0, 0]) < 1e-9  # the first camera looks along +y
    else:
        assert gauge.centre == "middle of the cameras" and np.linalg.norm(np.median(there, axis=0)) < 0.1


@pytest.mark.parametrize(
    ("eyes", "turns"),
    [
        (np.zeros((3, 3)), np.broadcast_to(np.eye(3), (3, 3, 3))),
        (np.arange(9.0).reshape(3, 3), np.broadcast_to(np.eye(3), (3, 3, 3))),
        (
            RNG.normal(size=(6, 3)),
            np.array([exp_rigid([0, 0, 0, *(3 * RNG.normal(size=3))])[:3, :3] for _ in range(6)]),
        ),
    ],
    ids=["one place", "parallel", "any way"],
)
def test_what_has_no_gauge_of_its_own_gets_one_all_the_same(eyes, turns):
    gauge = upright_gauge(eyes, turns, np.zeros((0, 3)))
    assert np.isfinite(gauge.world_from_sfm).all() and np.linalg.det(gauge.world_from_sfm) > 0
