"""Intrinsics by matches: a focal length of another resolution, a principal point, a lens that was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from raymarch.diagnosis.epipolar import NEAR, Sight, agreeing, crossing, poses_of, sight
from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import Matches
from raymarch.geometry.camera import Camera

SCALES = (1.0, 0.25, 1 / 3, 0.5, 2 / 3, 0.8, 1.25, 1.5, 2.0, 3.0, 4.0)
MOST = 6000  # matches that are asked
STEP = np.array([1e-4, 1e-4, 1e-4, 1e-3, 1e-3])  # of differences: log focal, principal point, k1, k2
STEPS = 12  # of Gauss-Newton
FEWEST = 300  # matches by which a lens can be told
GAIN = 0.02  # of the matches' distances, that a lens must take away to be there
BENT = 5e-4  # of the image's side


class Change(NamedTuple):
    """Change of all cameras' intrinsics: log of the focal's factor, principal point moved [focal length], k1, k2."""

    values: np.ndarray

    def applied(self, seen: Sight) -> Sight:
        """Directions of matches by the changed lens: as those of a pinhole, and the pixels per radian."""
        factor = np.exp(self.values[0])
        first, second = (self._directions(local) for local in seen[:2])
        return Sight(first, second, seen.pixels * factor)

    def _directions(self, local: np.ndarray) -> np.ndarray:
        log_f, u, v, k1, k2 = self.values
        depth = np.minimum(local[:, 2:], -1e-3)
        plane = (local[:, :2] / -depth - [u, -v]) * np.exp(-log_f)
        straight = plane
        for _ in range(4):
            square = (straight**2).sum(1, keepdims=True)
            straight = plane / np.maximum(1 + k1 * square + k2 * square**2, 0.2)
        out = np.concatenate([straight, -np.ones_like(depth)], axis=1)
        return out / np.linalg.norm(out, axis=1, keepdims=True)


def focal(cameras: Sequence[Camera], matches: Matches) -> tuple[Finding | None, list[Camera]]:
    """Focal length of another resolution, where clearly more matches agree with it; and the cameras with it."""
    some = matches.take(np.linspace(0, len(matches) - 1, min(len(matches), MOST)).astype(int))
    poses = poses_of(cameras)
    side = np.sqrt(np.mean([camera.width * camera.height for camera in cameras]))
    best, chosen, both = 0.0, list(cameras), False
    given = 0.0
    for scale in SCALES:
        for principal in (False, True)[: 1 if scale == 1 else 2]:
            changed = [_scaled(camera, scale, principal) for camera in cameras]
            share = float(agreeing(poses, some, sight(changed, some), np.full(len(some), NEAR * side / 2)).mean())
            given = share if scale == 1 else given
            if share > best + 0.01:
                best, chosen, both = share, changed, principal
    base = sight(chosen, some)
    change = fitted(poses, some, base, 3, NEAR * side)
    close = np.full(len(some), NEAR * side / 2)
    after = float(agreeing(poses, some, change.applied(base), close).mean())
    factor = chosen[0].focal[0] / cameras[0].focal[0] * float(np.exp(change.values[0]))
    if not both and (abs(np.log(factor)) < 0.08 or after < given + 0.02):
        return None, list(cameras)
    if both and after < given + 0.1:
        return None, list(cameras)
    what = "focal length and principal point are" if both else "the focal length is"
    size = f"{cameras[0].width / factor:.0f} pixels wide"
    return Finding(
        "focal-length", "error",
        f"{what} off by a factor: times {factor:.3g} (to {cameras[0].focal[0] * factor:.4g} pixels) {after:.0%} of the"
        f" matches agree, as given {given:.0%}",
        f"scale fl_x, fl_y{', cx, cy' if both else ''} by {factor:.3g}; they look like those of images {size}",
    ), [_scaled(camera, factor, both) for camera in cameras]  # fmt: skip


def lens(cameras: Sequence[Camera], matches: Matches) -> Finding | None:
    """Lens that was left out, or that is another: where numbers found by half of the matches help the other half."""
    poses, side = poses_of(cameras), float(np.sqrt(np.mean([camera.width * camera.height for camera in cameras])))
    halves = [matches.take(np.flatnonzero((matches.first + matches.second) % 2 == k)) for k in (0, 1)]
    if min(len(half) for half in halves) < FEWEST:
        return None
    halves = [half.take(np.linspace(0, len(half) - 1, min(len(half), MOST)).astype(int)) for half in halves]
    seen = [sight(cameras, half) for half in halves]
    found, gains = [], []
    for k in (0, 1):
        straight = fitted(poses, halves[k], seen[k], 3, NEAR * side)
        bent = fitted(poses, halves[k], seen[k], 5, NEAR * side, straight.values)
        before, after = (
            float(np.median(np.abs(crossing(poses, halves[1 - k], change.applied(seen[1 - k])).distance)))
            for change in (straight, bent)
        )
        gains.append(1 - after / max(before, 1e-9))
        found.append(bent.values)
    _, u, v, k1, k2 = np.mean(found, axis=0)
    radius = float(np.quantile(np.linalg.norm(seen[0].first[:, :2] / -seen[0].first[:, 2:], axis=1), 0.95))
    moved = _bend(k1, k2, radius) * cameras[0].focal[0]
    if min(gains) < GAIN or moved < BENT * side:
        return None
    return Finding(
        "lens-left-out", "warning",
        f"the images are bent by a lens that the cameras lack, by {moved:.1f} pixels: k1 {k1:.3g}, k2 {k2:.3g} bring the"
        f" matches nearer by {min(gains):.0%}",
        "give the lens's k1, k2, p1, p2 with the cameras, or undistort the images; raymarch cameras finds them",
    )  # fmt: skip


def _bend(k1: float, k2: float, radius: float) -> float:
    """How far a lens bends [focal length], at most, within a radius, beyond what a focal length would do."""
    r = np.linspace(0, radius, 32)[1:]
    bend = k1 * r**3 + k2 * r**5
    return float(np.abs(bend - r * (bend @ r) / (r @ r)).max())


def _scaled(camera: Camera, factor: float, principal: bool) -> Camera:
    """Camera with another focal length, and with the principal point scaled alike."""
    moved = (camera.principal[0] * factor, camera.principal[1] * factor) if principal else camera.principal
    return replace(camera, focal=(camera.focal[0] * factor, camera.focal[1] * factor), principal=moved)


def fitted(
    poses: np.ndarray, matches: Matches, seen: Sight, count: int, reach: float, start: np.ndarray | None = None
) -> Change:
    """Change of the first `count` numbers that brings matches nearest to their epipolar lines, in Cauchy's loss.

    Gauss-Newton with weights; `reach` [pixel] is where a match begins to count less, and shrinks.
    """
    values = np.zeros(5) if start is None else start.copy()

    def distance(at: np.ndarray) -> np.ndarray:
        return crossing(poses, matches, Change(at).applied(seen)).distance

    for step in range(STEPS):
        here = distance(values)
        scale = max(reach * 0.6**step, 1.5 * float(np.median(np.abs(here))), 0.05)
        weight = 1 / (1 + (here / scale) ** 2)
        columns = []
        for k in range(count):
            moved = values.copy()
            moved[k] += STEP[k]
            columns.append((distance(moved) - here) / STEP[k])
        slope = np.stack(columns, 1)
        normal = slope.T @ (weight[:, None] ** 2 * slope)
        normal += 1e-9 * np.diag(np.diag(normal)) + 1e-12 * np.eye(count)
        change = -np.linalg.solve(normal, slope.T @ (weight**2 * here))
        values[:count] += np.clip(change, -0.2, 0.2)
    return Change(values)
