"""Single views that disagree with their neighbours, and the turn that would make them agree."""

from __future__ import annotations

import numpy as np

from raymarch.data.views import Views
from raymarch.diagnosis.epipolar import Sight, agreeing, crossing
from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import Matches
from raymarch.errors import named
from raymarch.geometry.pose import exp_rigid

FEWEST = 24  # matches by which a view is judged
DOUBTFUL = 0.65  # of what views usually have in agreement, under which one is looked at
FEW = 0.25  # of the views may be single ones
STEPS = 16
LEAST = np.deg2rad(0.3)
STARTS = np.deg2rad(5) * np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])  # turns from which one is sought


def single_views(views: Views, poses: np.ndarray, matches: Matches, seen: Sight, near: np.ndarray) -> list[Finding]:
    """Views whose pose is off: a finding each where a turn mends them, one for all others.

    Only matches with views that agree otherwise are asked, and only where most views agree.
    """
    agree = agreeing(poses, matches, seen, near)
    count, share = shares(len(views), matches, agree)
    judged = count >= FEWEST
    if judged.sum() < 3:
        return []
    usual = float(np.median(share[judged]))
    doubtful = judged & (share < DOUBTFUL * usual)
    if not doubtful.any() or doubtful.sum() > max(FEW * judged.sum(), 1):
        return []
    findings, others = [], []
    for i in np.flatnonzero(doubtful)[np.argsort(share[doubtful])]:
        mine = (matches.first == i) | (matches.second == i)
        mine &= ~(doubtful[matches.first] & doubtful[matches.second])
        if mine.sum() < FEWEST:
            continue
        found = _turn(poses, int(i), matches.take(mine), Sight(*(part[mine] for part in seen)), near[mine])
        angle, before, after = found
        if after > max(0.75 * usual, before + 0.2) and angle > LEAST:
            findings.append(
                Finding(
                    "camera-off", "warning",
                    f"view {views.names[i]} is turned by about {np.rad2deg(angle):.1f} degrees: so turned back"
                    f" {after:.0%} of its matches agree with its neighbours, as given {before:.0%}",
                    "correct its pose or take it out; rm.refine moves cameras that are a little off",
                )
            )  # fmt: skip
        elif before < 0.5 * DOUBTFUL * usual:
            others.append(views.names[i])
    if others:
        findings.append(
            Finding(
                "camera-off", "warning",
                f"view {named(others)} disagrees with its neighbours; of other views {usual:.0%} of the matches agree",
                "check its pose, and that the image is that camera's, or take it out",
            )
        )  # fmt: skip
    return findings


def shares(views: int, matches: Matches, agree: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count of matches (view,), and the share of them that agrees, in the better half of a view's pairs."""
    count = np.bincount(matches.first, minlength=views) + np.bincount(matches.second, minlength=views)
    good = np.bincount(matches.first, agree, views) + np.bincount(matches.second, agree, views)
    return count, good / np.maximum(count, 1)


def _turn(poses: np.ndarray, view: int, matches: Matches, seen: Sight, near: np.ndarray) -> tuple[float, float, float]:
    """Angle [radian] of the turn of one camera that its matches want, and their shares in agreement before and after.

    Gauss-Newton in Cauchy's loss, whose reach shrinks from a tenth of a radian, from several starts.
    """
    before = float(agreeing(poses, matches, seen, near).mean())
    best = (0.0, before, before)
    for start in STARTS:
        found = _turned_from(start, poses, view, matches, seen, near)
        if found[1] > best[2]:
            best = (found[0], before, found[1])
    return best


def _turned_from(
    start: np.ndarray, poses: np.ndarray, view: int, matches: Matches, seen: Sight, near: np.ndarray
) -> tuple[float, float]:
    """Angle [radian] and share in agreement, best of a descent from one turn of the camera."""
    best = (0.0, 0.0)
    moved = poses.copy()
    moved[view] = moved[view] @ exp_rigid(np.concatenate([np.zeros(3), start]))
    for step in range(STEPS):
        here = crossing(moved, matches, seen).distance
        scale = max(0.1 * float(seen.pixels.mean()) * 0.65**step, float(near.mean()) / 2)
        weight = 1 / (1 + (here / scale) ** 2) ** 2
        slope = np.zeros((len(here), 3))
        for k in range(3):
            tried = moved.copy()
            tried[view] = moved[view] @ exp_rigid(1e-5 * np.eye(6)[3 + k])
            slope[:, k] = (crossing(tried, matches, seen).distance - here) / 1e-5
        normal = slope.T @ (weight[:, None] * slope)
        ridge = (1e-9 * np.trace(normal) + 1e-12) * np.eye(3)
        turn = -np.linalg.solve(normal + ridge, slope.T @ (weight * here))
        moved[view] = moved[view] @ exp_rigid(np.concatenate([np.zeros(3), np.clip(turn, -0.2, 0.2)]))
        after = float(agreeing(moved, matches, seen, near).mean())
        trace = np.trace(poses[view, :3, :3].T @ moved[view, :3, :3])
        if after > best[1]:
            best = (float(np.arccos(np.clip((trace - 1) / 2, -1, 1))), after)
    return best
