"""Silhouettes held against each other: how much of what masks show lies where all agree, in each reading of poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.data.agreement import dissenters
from raymarch.data.focus import focus, looking_away, names_where
from raymarch.data.views import Views
from raymarch.diagnosis.conventions import READINGS, reading_in_words, turned, turns
from raymarch.diagnosis.epipolar import poses_of
from raymarch.diagnosis.finding import Finding
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera

ASKED = 24  # views
PLACES = 20  # a side of the box, that may be full
BLOCKS = 24  # a side, into which an image is divided
WELL, BADLY = 0.85, 0.6  # of what masks show, that all agree on: where poses are right; where they are not
FAINT = 8  # of 255: alpha up to that counts as empty


def silhouettes(views: Views) -> list[Finding]:
    """Findings about poses, by masks alone."""
    if not views.has_alpha or len(views) < 4:
        return []
    few = views[np.linspace(0, len(views) - 1, min(len(views), ASKED)).astype(int)]
    shown = np.stack([_shown(few.image(i)[..., 3]) for i in range(len(few))])
    poses = poses_of(few.cameras)
    given = agreed(few.cameras, poses, shown)
    if given > WELL:
        return _dissent(views)
    best, words = given, None
    for name, read in READINGS.items():
        for turn in turns():
            share = agreed(few.cameras, turned(read(poses), turn), shown)
            if share > best:
                best, words = share, reading_in_words(name, turn)
    if words is not None and best > max(WELL, given + 0.25):
        code, what, cure = words
        message = f"the poses {what}: so read the masks agree on {best:.0%} of what they show, as given on {given:.0%}"
        return [Finding(code, "error", message, cure)]
    if given < BADLY:
        message = f"the masks agree on {given:.0%} of what they show, in no reading of the poses on much more"
        cure = "check that each image is that of its camera: order, names, sorting; then poses and focal length"
        return [Finding("images-shuffled", "error", message, cure)]
    return _dissent(views)


def _dissent(views: Views) -> list[Finding]:
    """Views that dissent from the rest."""
    try:
        centre, half = focus(views.cameras)
        dissent = dissenters(views, np.stack([centre - half, centre + half]))
    except RaymarchError:
        return []
    if not dissent.any():
        return []
    message = (
        f"view {names_where(views, dissent)} shows something where the others show nothing, or the other way round"
    )
    return [Finding("camera-off", "warning", message, "check its pose, and that the image is that camera's")]


def _shown(alpha: np.ndarray) -> np.ndarray:
    """Which blocks of an image show something."""
    height, width = alpha.shape
    rows, columns = np.arange(BLOCKS) * height // BLOCKS, np.arange(BLOCKS) * width // BLOCKS
    return np.maximum.reduceat(np.maximum.reduceat(alpha, rows, axis=0), columns, axis=1) > FAINT


def agreed(cameras: Sequence[Camera], poses: np.ndarray, shown: np.ndarray) -> float:
    """Share of the blocks that masks show which a body that no mask denies would cover; 0 where axes meet nowhere."""
    moved = [replace(camera, world_from_camera=pose) for camera, pose in zip(cameras, poses, strict=True)]
    try:
        centre, half = focus(moved)
    except RaymarchError:
        return 0.0
    if looking_away(moved, centre).mean() > 0.25:
        return 0.0
    share = (np.arange(PLACES) + 0.5) / PLACES * 2 - 1
    places = centre + 0.6 * half * np.stack(np.meshgrid(share, share, share, indexing="ij"), -1).reshape(-1, 3)
    denied, sees = np.zeros(len(places), int), np.zeros(len(places), int)
    blocks = []
    for camera, mask in zip(moved, shown, strict=True):
        pixels, depth = camera.project(places)
        u, v = pixels[:, 0] / camera.width, pixels[:, 1] / camera.height
        inside = (depth > 0) & (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
        block = np.full(len(places), -1)
        block[inside] = (v[inside] * BLOCKS).astype(int) * BLOCKS + (u[inside] * BLOCKS).astype(int)
        denied += inside & ~mask.ravel()[block]
        sees += inside
        blocks.append(block)
    full = (denied <= len(moved) // 12) & (sees > 0.5 * len(moved))
    covered = []
    for block, mask in zip(blocks, shown, strict=True):
        hit = np.zeros(BLOCKS * BLOCKS, bool)
        hit[block[full & (block >= 0)]] = True
        wide = np.pad(hit.reshape(BLOCKS, BLOCKS), 1)
        near = np.any([wide[r : r + BLOCKS, c : c + BLOCKS] for r in range(3) for c in range(3)], axis=0)
        covered.append((mask & near).sum() / max(mask.sum(), 1))
    return float(np.mean(covered))
