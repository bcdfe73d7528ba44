"""Intrinsics by matches: a focal length of another resolution, a principal point, a lens that was left out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens_distortion import ANGLES
from raymarch.matching.epipolar import (
    MAX_EPIPOLAR_DISTANCE,
    MatchDirections,
    distances,
    matches_agree,
    ray_crossings,
    robust_step,
)
from raymarch.matching.matches import Matches

FOCAL_SCALES = (0.25, 1 / 3, 0.5, 2 / 3, 0.8, 1.25, 1.5, 2.0, 3.0, 4.0)
MAX_MATCHES = 6000  # matches that are asked
DIFFERENCE_STEPS = np.array([1e-4, 1e-4, 1e-4, 1e-3, 1e-3])  # of differences: log focal, principal point, k1, k2
MAX_STEPS = 10  # of Gauss-Newton
MIN_LENS_MATCHES = 300  # matches by which a lens can be told
MIN_AGREEMENT = 0.5  # of the matches have to agree with another focal length
GOOD_AGREEMENT = 0.85  # of the matches: where so many agree as given, no other focal length is wanted
# pairs of views, and half of their rays' angles, by which intrinsics are told
MIN_PAIRS, MIN_CROSSING_ANGLE = 8, np.deg2rad(1.5)
MIN_CLEAR_GAIN = 0.25  # more of the matches that have to agree with another focal length where there is less than that
MAX_FOCAL_RATIO = 6.0  # as long as the focal length given, or as short
MIN_LENS_GAIN = 0.02  # of the matches' distances, that a lens must take away to be there
MIN_LENS_SHIFT = 5e-4  # of the image's side


class Change(NamedTuple):
    """Change of all cameras' intrinsics: log of the focal's factor, principal point moved [focal length], k1, k2.

    Of a fisheye's angles where `angles` says so, else of a pinhole's tangents.
    """

    values: np.ndarray
    angles: bool = False

    def applied(self, seen: MatchDirections) -> MatchDirections:
        """Directions of matches by the changed intrinsics, and the pixels per radian."""
        factor = np.exp(self.values[0])
        first, second = (self._directions(local) for local in seen[:2])
        return MatchDirections(first, second, seen.pixels * factor)

    def _directions(self, local: np.ndarray) -> np.ndarray:
        log_f, u, v, k1, k2 = self.values
        straight = moved = (plane_of(local, self.angles) - [u, -v]) * np.exp(-log_f)
        for _ in range(4):
            square = (straight**2).sum(1, keepdims=True)
            straight = moved / np.maximum(1 + k1 * square + k2 * square**2, 0.2)
        if self.angles:
            angle = np.linalg.norm(straight, axis=1, keepdims=True)
            return np.concatenate([straight * np.sinc(angle / np.pi), -np.cos(angle)], axis=1)
        out = np.concatenate([straight, -np.ones_like(straight[:, :1])], axis=1)
        return out / np.linalg.norm(out, axis=1, keepdims=True)


def plane_of(local: np.ndarray, angles: bool) -> np.ndarray:
    """Plane points (match, 2) [focal length] of directions of length 1: by their tangents, or by their angles."""
    if not angles:
        return local[:, :2] / np.maximum(-local[:, 2:], 1e-3)
    across = np.linalg.norm(local[:, :2], axis=1, keepdims=True)
    return local[:, :2] * np.arctan2(across, -local[:, 2:]) / np.maximum(across, 1e-12)


def are_fisheyes(cameras: Sequence[Camera]) -> bool:
    """Whether all cameras are fisheyes, whose focal length scales angles."""
    return all(camera.lens.kind == ANGLES for camera in cameras)


def focal(
    cameras: Sequence[Camera], matches: Matches, seen: MatchDirections, poses: np.ndarray
) -> tuple[Finding | None, MatchDirections]:
    """Focal length of another resolution, where more matches agree with it; and the directions with it."""
    index = np.linspace(0, len(matches) - 1, min(len(matches), MAX_MATCHES)).astype(int)
    some, sparse = matches.take(index), MatchDirections(*(part[index] for part in seen))
    side = float(np.sqrt(np.mean([camera.width * camera.height for camera in cameras])))
    near = np.full(len(some), MAX_EPIPOLAR_DISTANCE * side / 2)

    angles = are_fisheyes(cameras)

    def share(values: np.ndarray) -> float:
        return float(matches_agree(poses, some, Change(values, angles).applied(sparse), near).mean())

    given = best = share(np.zeros(5))
    if given > GOOD_AGREEMENT:
        return None, seen
    chosen, both = np.zeros(5), False
    for scale, principal in product(FOCAL_SCALES, (False, True)):
        tried = _scaled_change(cameras[0], scale, principal)
        if (found := share(tried)) > best + 0.01:
            best, chosen, both = found, tried, principal
    change = fit_change(poses, some, sparse, 3, MAX_EPIPOLAR_DISTANCE * side, Change(chosen, angles))
    after = share(change.values)
    factor = float(np.exp(change.values[0]))
    gain = MIN_CLEAR_GAIN if not determine_intrinsics(poses, matches, change.applied(seen)) else 0.1 if both else 0.02
    little = after < given + gain or (not both and abs(np.log(factor)) < 0.08)
    if little or after < MIN_AGREEMENT or not 1 / MAX_FOCAL_RATIO < factor < MAX_FOCAL_RATIO:
        return None, seen
    what = "focal length and principal point are" if both else "the focal length is"
    finding = Finding(
        "focal-length",
        "error",
        f"{what} off by a factor: times {factor:.3g} (to {cameras[0].focal[0] * factor:.4g} pixels) {after:.0%} of the"
        f" matches agree, as given {given:.0%}",
        f"scale fl_x, fl_y{', cx, cy' if both else ''} by {factor:.3g}; they look like those of images"
        f" {cameras[0].width / factor:.0f} pixels wide, where these have {cameras[0].width}",
    )
    return finding, change.applied(seen)


def determine_intrinsics(poses: np.ndarray, matches: Matches, seen: MatchDirections) -> bool:
    """Whether views are many enough, and stand far enough apart, for their matches to tell intrinsics from noise."""
    pairs = len(np.unique(np.stack([matches.first, matches.second]), axis=1).T)
    return pairs >= MIN_PAIRS and float(np.median(ray_crossings(poses, matches, seen).angle)) > MIN_CROSSING_ANGLE


def _scaled_change(camera: Camera, factor: float, principal: bool) -> np.ndarray:
    """Change to another focal length, and to a principal point that is scaled alike."""
    out = np.zeros(5)
    out[0] = np.log(factor)
    if principal:
        out[1:3] = (factor - 1) * np.array(camera.principal) / camera.focal
    return out


def lens(cameras: Sequence[Camera], matches: Matches, seen: MatchDirections, poses: np.ndarray) -> Finding | None:
    """Lens that was left out, or that is another: where numbers found by half of the matches help the other half."""
    side = float(np.sqrt(np.mean([camera.width * camera.height for camera in cameras])))
    index = [np.flatnonzero((matches.first + matches.second) % 2 == k) for k in (0, 1)]
    if min(len(half) for half in index) < MIN_LENS_MATCHES or not determine_intrinsics(poses, matches, seen):
        return None
    index = [half[np.linspace(0, len(half) - 1, min(len(half), MAX_MATCHES)).astype(int)] for half in index]
    halves, sights = (
        [matches.take(half) for half in index],
        [MatchDirections(*(part[half] for part in seen)) for half in index],
    )
    found, gains, unbent = [], [], Change(np.zeros(5), are_fisheyes(cameras))
    for k in (0, 1):
        straight = fit_change(poses, halves[k], sights[k], 3, MAX_EPIPOLAR_DISTANCE * side, unbent)
        bent = fit_change(poses, halves[k], sights[k], 5, MAX_EPIPOLAR_DISTANCE * side, straight)
        before, after = (
            float(np.median(np.abs(distances(poses, halves[1 - k], change.applied(sights[1 - k])))))
            for change in (straight, bent)
        )
        gains.append(1 - after / max(before, 1e-9))
        found.append(bent.values)
    k1, k2 = np.mean(found, axis=0)[3:]
    radius = float(np.quantile(np.linalg.norm(plane_of(seen.first, unbent.angles), axis=1), 0.95))
    moved = _lens_bend(k1, k2, radius) * cameras[0].focal[0]
    if min(gains) < MIN_LENS_GAIN or moved < MIN_LENS_SHIFT * side:
        return None
    return Finding(
        "lens-left-out",
        "warning",
        f"a lens that the cameras lack bends the images by {moved:.1f} pixels: k1 {k1:.3g}, k2 {k2:.3g} bring the"
        f" matches nearer by {min(gains):.0%}",
        "give the lens's k1, k2, p1, p2 with the cameras, or undistort the images; raymarch cameras finds them",
    )


def _lens_bend(k1: float, k2: float, radius: float) -> float:
    """How far a lens bends [focal length], at most, within a radius, beyond what a focal length would do."""
    r = np.linspace(0, radius, 32)[1:]
    bend = k1 * r**3 + k2 * r**5
    return float(np.abs(bend - r * (bend @ r) / (r @ r)).max())


def fit_change(
    poses: np.ndarray, matches: Matches, seen: MatchDirections, count: int, reach: float, start: Change
) -> Change:
    """Change of the first `count` numbers that brings matches nearest to epipolar lines, in Geman and McClure's loss.

    Gauss-Newton with weights; `reach` [pixel] is where a match begins to count less, and shrinks.
    """
    values = start.values.copy()

    def distance(at: np.ndarray) -> np.ndarray:
        return distances(poses, matches, start._replace(values=at).applied(seen))

    for step in range(MAX_STEPS):
        here = distance(values)
        scale = max(reach * 0.6**step, 1.5 * float(np.median(np.abs(here))), 0.05)
        move = robust_step(
            lambda by: distance(values + np.pad(by, (0, 5 - count))), here, DIFFERENCE_STEPS[:count], scale
        )
        values[:count] += move
    return start._replace(values=values)
