"""Single views that disagree with their neighbours, and the turn that would make them agree."""

from __future__ import annotations

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import Matches
from raymarch.diagnosis.robust_step import robust_step
from raymarch.errors import named
from raymarch.geometry.pose import exp_rigid
from raymarch.matching.epipolar import Sight, agreeing, distances
from raymarch.views.views import Views

FEWEST = 24  # matches by which a view is judged
DOUBTFUL = 0.8  # of what views usually have in agreement, under which one is looked at
AT_ODDS = 0.33  # of that, under which one is named though no turn mends it
MENDED = 0.75  # of that, which a turn has to reach
FEW, LOOKED_AT = 0.25, 4  # of the views may be single ones; more of them are looked at
STEPS, WIDTH = 16, 1e-5  # of a descent; of differences [radian]
LEAST = np.deg2rad(0.3)
STARTS = np.deg2rad(5) * np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])  # turns from which one is sought


def single_views(views: Views, poses: np.ndarray, matches: Matches, seen: Sight, near: np.ndarray) -> list[Finding]:
    """Views whose pose is off: a finding each where a turn mends them, one for all others; none where they are many.

    They are looked at from the worst on; one that is mended, or given up, no longer speaks against its neighbours.
    """
    agree = agreeing(poses, matches, seen, near)
    count, share = shares(len(views), matches, agree)
    judged = count >= FEWEST
    if judged.sum() < 3:
        return []
    usual, most = float(np.median(share[judged])), max(int(FEW * judged.sum()), 1)
    turned, others = [], []
    poses, counted, asked = poses.copy(), np.ones(len(matches), bool), ~judged
    for _ in range(most + LOOKED_AT):
        share = shares(len(views), matches, agree & counted, counted)[1]
        share[asked] = np.inf
        i = int(share.argmin())
        if not share[i] < DOUBTFUL * usual:
            break
        asked[i] = True
        mine = counted & ((matches.first == i) | (matches.second == i))
        sure = Sight(*(part[mine] for part in seen))
        pose, before, after = _turn(poses, i, matches.take(mine), sure, near[mine])
        angle = np.arccos(np.clip((np.trace(poses[i, :3, :3].T @ pose[:3, :3]) - 1) / 2, -1, 1))
        if after > max(MENDED * usual, before + 0.2) and angle > LEAST:
            turned.append((i, float(np.rad2deg(angle)), before, after))
            poses[i] = pose
            agree = agreeing(poses, matches, seen, near)
        elif before < AT_ODDS * usual:
            others.append(i)
            counted &= (matches.first != i) & (matches.second != i)
    return [] if len(turned) + len(others) > most else _findings(views, turned, others, usual)


def _findings(views: Views, turned: list[tuple[int, float, float, float]], others: list[int], usual: float) -> list:
    """Findings about views that a turn mends, and about others."""
    findings = [
        Finding(
            "camera-off", "warning",
            f"view {views.names[i]} is turned by about {degrees:.1f} degrees: so turned back {after:.0%} of its matches"
            f" agree with its neighbours, as given {before:.0%}",
            "correct its pose or take it out; rm.refine moves cameras that are a little off",
        )
        for i, degrees, before, after in turned
    ]  # fmt: skip
    if others:
        names = named([views.names[i] for i in others])
        message = f"view {names} disagrees with its neighbours; of other views {usual:.0%} of the matches agree"
        cure = "check its pose, and that the image is that camera's, or take it out"
        findings.append(Finding("camera-off", "warning", message, cure))
    return findings


def shares(
    views: int, matches: Matches, agree: np.ndarray, counted: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Count of matches (view,), and the share of them that agrees."""
    weight = np.ones(len(matches)) if counted is None else counted
    count = np.bincount(matches.first, weight, views) + np.bincount(matches.second, weight, views)
    good = np.bincount(matches.first, agree, views) + np.bincount(matches.second, agree, views)
    return count, good / np.maximum(count, 1)


def _turn(
    poses: np.ndarray, view: int, matches: Matches, seen: Sight, near: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Pose of a camera that is turned as its matches want it, and their shares in agreement before and after.

    Gauss-Newton in Geman and McClure's loss, whose reach shrinks from a tenth of a radian, from several starts.
    """
    before = float(agreeing(poses, matches, seen, near).mean())
    best = poses[view], before
    for start in STARTS:
        found = _turned_from(start, poses, view, matches, seen, near)
        if found[1] > best[1]:
            best = found
    return best[0], before, best[1]


def _turned_from(
    start: np.ndarray, poses: np.ndarray, view: int, matches: Matches, seen: Sight, near: np.ndarray
) -> tuple[np.ndarray, float]:
    """Pose and share in agreement, best of a descent from one turn of the camera."""
    best, moved = (poses[view], 0.0), _turned(poses, view, start)
    for step in range(STEPS):
        here = distances(moved, matches, seen)
        scale = max(0.1 * float(seen.pixels.mean()) * 0.65**step, float(near.mean()) / 2)

        def residual(turn: np.ndarray, at: np.ndarray = moved) -> np.ndarray:
            return distances(_turned(at, view, turn), matches, seen)

        moved = _turned(moved, view, robust_step(residual, here, np.full(3, WIDTH), scale))
        after = float(agreeing(moved, matches, seen, near).mean())
        if after > best[1]:
            best = moved[view].copy(), after
    return best


def _turned(poses: np.ndarray, view: int, turn: np.ndarray) -> np.ndarray:
    """Poses of which one camera is turned about its own axes [radian]."""
    out = poses.copy()
    out[view] = poses[view] @ exp_rigid(np.concatenate([np.zeros(3), turn]))
    return out
