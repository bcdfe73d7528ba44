"""Faults of poses: another convention, images in another order, single views that are off, and an up that is not z.

They are told by matches of the images: the reading of the poses is sought under which most matches agree with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from raymarch.diagnosis.extent import silhouettes
from raymarch.diagnosis.finding import Finding
from raymarch.errors import first_names
from raymarch.geometry.alignment import GUESSED_UP, up_of_cameras
from raymarch.geometry.pose import exp_rigid
from raymarch.geometry.pose_readings import OPENGL_AXES, READINGS, axis_rotations, read_as, reading_text
from raymarch.io.files.folders import natural_key
from raymarch.matching.epipolar import (
    MatchDirections,
    distances,
    epipolar_tolerance,
    match_directions,
    matches_agree,
    poses_of,
    robust_step,
)
from raymarch.matching.matches import Features, Matches, match
from raymarch.views.views import Views

MAX_MATCHES = 6000  # matches that are asked
MIN_CLEAR_GAIN = 0.25  # more of the matches that have to agree with another reading than with the poses as they are
MAX_COMPARED_VIEWS = 22  # views, of which each is compared with each
MIN_UNORDERED_FRACTION = 0.5
MIN_MATCH_RATIO = 2.5  # times as many matches as two views usually have, by which two are said to show the same
MIN_PAIR_MATCHES = 20  # matches of such two
MIN_VIEW_MATCHES = 24  # matches by which a view is judged
MAX_DOUBTFUL_AGREEMENT = 0.8  # of what views usually have in agreement, under which one is looked at
MAX_WRONG_AGREEMENT = 0.33  # of that, under which one is named though no turn mends it
MIN_MENDED_AGREEMENT = 0.75  # of that, which a turn has to reach
MAX_SINGLE_FRACTION, EXTRA_CANDIDATES = 0.25, 4  # of the views may be single ones; more of them are looked at
MAX_STEPS, DIFFERENCE_STEP = 16, 1e-5  # of a descent; of differences [radian]
MIN_TURN = np.deg2rad(0.3)
# turns from which one is sought
START_TURNS = np.deg2rad(5) * np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])
MIN_TILT = np.deg2rad(30.0)  # from z, from which on it is worth a note


def pose_convention(
    poses: np.ndarray, matches: Matches, seen: MatchDirections, near: np.ndarray
) -> tuple[Finding | None, np.ndarray]:
    """Reading of the poses with which clearly more matches agree than as they are, or None; and the poses so read."""
    some = _match_sample(len(matches))
    asked, directions, close = matches.take(some), MatchDirections(*(part[some] for part in seen)), near[some]
    share = {}
    for name, turn in product(READINGS, axis_rotations()):
        key = name, tuple(turn.astype(int).ravel().tolist())
        share[key] = float(matches_agree(read_as(poses, name, turn), asked, directions, close).mean())
    before = share["given", OPENGL_AXES]
    name, axes = max(share, key=share.__getitem__)
    after, turn = share[name, axes], np.reshape(axes, (3, 3))
    if after < before + MIN_CLEAR_GAIN:
        return None, poses
    code, what, cure = reading_text(name, turn)
    message = f"the poses {what}: so read {after:.0%} of the matches between images agree, as given {before:.0%}"
    return Finding(code, "error", message, cure), read_as(poses, name, turn)


def _match_sample(count: int) -> np.ndarray:
    return np.linspace(0, count - 1, min(count, MAX_MATCHES)).astype(int)


def image_order(views: Views, points: list[Features]) -> Finding:
    """Finding about images that match each other, but not where their cameras are."""
    asked = np.linspace(0, len(views) - 1, min(len(views), MAX_COMPARED_VIEWS)).astype(int)
    pairs = [(int(i), int(j)) for i, j in combinations(asked, 2)]
    found = match(points, pairs)
    strong = _strong_pairs(found, len(views))
    poses = poses_of(views.cameras)
    for name, camera_of in _orders(views.names):
        moved = replace(strong, first=camera_of[strong.first], second=camera_of[strong.second])
        if not len(moved):
            break
        seen, near = match_directions(views.cameras, moved), epipolar_tolerance(views.cameras, moved)
        share = float(matches_agree(poses, moved, seen, near).mean())
        if share > MIN_UNORDERED_FRACTION:
            message = f"the images stand in another order than the cameras, {name}: so {share:.0%} of the matches agree"
            return Finding(
                "images-shuffled", "error", message, "sort images and cameras alike, by number or by letters"
            )
    if len(strong):
        message = (
            f"the images match each other, but in no reading of the poses: {len(strong)} matches of views"
            " that show the same do not lie where the cameras have them"
        )
        cure = (
            "check that each image is that of its camera: order, names, sorting; raymarch cameras finds poses anew;"
            " a pattern that repeats gives such matches too"
        )
        outlined = views.shows_silhouettes and not silhouettes(views)  # which speak for the poses
        return Finding("images-shuffled", "warning" if outlined else "error", message, cure)
    message = "the images agree with no reading of the poses, and hardly match each other"
    cure = "check that the poses are of these images; what looks alike from all around, as a ball, gives such matches"
    return Finding("poses-disagree", "warning", message, cure)


def _strong_pairs(found: Matches, count: int) -> Matches:
    """The matches of pairs of views that have many more than others have."""
    pair = found.first * count + found.second
    ids, inverse, size = np.unique(pair, return_inverse=True, return_counts=True)
    if not len(ids):
        return found
    many = size > max(MIN_MATCH_RATIO * float(np.median(size)), MIN_PAIR_MATCHES)
    if float(np.median(size)) > 4 * MIN_PAIR_MATCHES:  # all views show the same
        many = size >= np.median(size)
    return found.take(many[inverse])


def _orders(names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Likely orders: the camera (view,) of each image."""
    count = len(names)
    index = np.arange(count)
    yield "backwards", index[::-1]
    yield "moved by one", (index + 1) % count
    yield "moved by one", (index - 1) % count
    by_number = np.array(sorted(range(count), key=lambda i: natural_key(names[i])))
    by_letters = np.array(sorted(range(count), key=lambda i: names[i]))
    if (by_number != by_letters).any():
        place_number, place_letters = np.argsort(by_number), np.argsort(by_letters)
        yield "by number where the cameras are by letters", by_letters[place_number]
        yield "by letters where the cameras are by number", by_number[place_letters]


def single_views(
    views: Views, poses: np.ndarray, matches: Matches, seen: MatchDirections, near: np.ndarray
) -> list[Finding]:
    """Views whose pose is off: a finding each where a turn mends them, one for all others; none where they are many.

    They are looked at from the worst on; one that is mended, or given up, no longer speaks against its neighbours.
    """
    agree = matches_agree(poses, matches, seen, near)
    count, share = shares(len(views), matches, agree)
    judged = count >= MIN_VIEW_MATCHES
    if judged.sum() < 3:
        return []
    usual, most = float(np.median(share[judged])), max(int(MAX_SINGLE_FRACTION * judged.sum()), 1)
    turned, others = [], []
    poses, counted, asked = poses.copy(), np.ones(len(matches), bool), ~judged
    for _ in range(most + EXTRA_CANDIDATES):
        share = shares(len(views), matches, agree & counted, counted)[1]
        share[asked] = np.inf
        i = int(share.argmin())
        if not share[i] < MAX_DOUBTFUL_AGREEMENT * usual:
            break
        asked[i] = True
        mine = counted & ((matches.first == i) | (matches.second == i))
        sure = MatchDirections(*(part[mine] for part in seen))
        pose, before, after = _mend_turn(poses, i, matches.take(mine), sure, near[mine])
        angle = np.arccos(np.clip((np.trace(poses[i, :3, :3].T @ pose[:3, :3]) - 1) / 2, -1, 1))
        if after > max(MIN_MENDED_AGREEMENT * usual, before + 0.2) and angle > MIN_TURN:
            turned.append((i, float(np.rad2deg(angle)), before, after))
            poses[i] = pose
            agree = matches_agree(poses, matches, seen, near)
        elif before < MAX_WRONG_AGREEMENT * usual:
            others.append(i)
            counted &= (matches.first != i) & (matches.second != i)
    return [] if len(turned) + len(others) > most else _findings(views, turned, others, usual)


def _findings(views: Views, turned: list[tuple[int, float, float, float]], others: list[int], usual: float) -> list:
    """Findings about views that a turn mends, and about others."""
    findings = [
        Finding(
            "camera-off",
            "warning",
            f"view {views.names[i]} is turned by about {degrees:.1f} degrees: so turned back {after:.0%} of its matches"
            f" agree with its neighbours, as given {before:.0%}",
            "correct its pose or take it out; rm.refine moves cameras that are a little off",
        )
        for i, degrees, before, after in turned
    ]
    if others:
        names = first_names([views.names[i] for i in others])
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


def _mend_turn(
    poses: np.ndarray, view: int, matches: Matches, seen: MatchDirections, near: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Pose of a camera that is turned as its matches want it, and their shares in agreement before and after.

    Gauss-Newton in Geman and McClure's loss, whose reach shrinks from a tenth of a radian, from several starts.
    """
    before = float(matches_agree(poses, matches, seen, near).mean())
    best = poses[view], before
    for start in START_TURNS:
        found = _turned_from(start, poses, view, matches, seen, near)
        if found[1] > best[1]:
            best = found
    return best[0], before, best[1]


def _turned_from(
    start: np.ndarray, poses: np.ndarray, view: int, matches: Matches, seen: MatchDirections, near: np.ndarray
) -> tuple[np.ndarray, float]:
    """Pose and share in agreement, best of a descent from one turn of the camera."""
    best, moved = (poses[view], 0.0), _turn_camera(poses, view, start)
    for step in range(MAX_STEPS):
        here = distances(moved, matches, seen)
        scale = max(0.1 * float(seen.pixels.mean()) * 0.65**step, float(near.mean()) / 2)

        def residual(turn: np.ndarray, at: np.ndarray = moved) -> np.ndarray:
            return distances(_turn_camera(at, view, turn), matches, seen)

        moved = _turn_camera(moved, view, robust_step(residual, here, np.full(3, DIFFERENCE_STEP), scale))
        after = float(matches_agree(moved, matches, seen, near).mean())
        if after > best[1]:
            best = moved[view].copy(), after
    return best


def _turn_camera(poses: np.ndarray, view: int, turn: np.ndarray) -> np.ndarray:
    """Poses of which one camera is turned about its own axes [radian]."""
    out = poses.copy()
    out[view] = poses[view] @ exp_rigid(np.concatenate([np.zeros(3), turn]))
    return out


def upright_finding(views: Views) -> Finding | None:
    """Note where the cameras' up is another than z."""
    poses = poses_of(views.cameras)
    up, how = up_of_cameras(poses[:, :3, 3], poses[:, :3, :3])
    if len(views) < 2 or how == GUESSED_UP or up[2] > np.cos(MIN_TILT):
        return None
    told = ",".join(f"{number + 0.0:.2g}" for number in np.where(np.abs(up) < 0.05, 0, up))
    message = f"the cameras say that up is {told} in this world, about which no orbit goes by itself"
    return Finding("up", "note", message, f"--up {told} with raymarch render --orbit, up=({told}) with rm.orbit")
