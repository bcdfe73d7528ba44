"""Alignment of cameras: the similarity that maps one set onto another, their common up, where their axes meet.

No image can tell that similarity, the gauge of a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.arguments.checks import Numbers
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import project, project_slope
from raymarch.geometry.pose import exp_rigid

# points an axis of the box that are looked at, and Gauss-Newton steps over them
POINTS_AN_AXIS, GAUSS_NEWTON_STEPS = 4, 6
MIN_DISTANCE_FRACTION = 0.05  # of the box's diagonal: points nearer to a camera, or behind it, are not looked at
# mean square of the right axes along the up they agree on: photographs held level to some 20 degrees
MAX_LEVEL_RESIDUAL = 0.12
MIN_AXIS_SPREAD = 0.03  # and of their second direction: less, and all of them look one way
MIN_UP_AGREEMENT = 0.3  # length of the mean of the cameras' own up axes
MAX_ROUNDS = 20
GUESSED_UP = "across the plane of the cameras"
MAX_CONDITION = 1e4  # condition from which lines meet in no point


def similarity(cameras: Sequence[Camera], onto: Sequence[Camera], box: Numbers | None = None) -> np.ndarray:
    """Similarity (4, 4) of the world that brings cameras nearest to others: rotation, translation and one scale.

    Without a box: the rotation is the mean over the cameras' own; the scale makes their spreads alike, 1 where there is
    none (Horn 1987, symmetric); the shift is the mean. With one, lower and upper corner (2, 3) in the world of `onto`,
    the one by which its points are seen at nearly the same pixels, least squares: positions of cameras extrapolate
    badly to what all of them look at, where they err together by what images hardly show.

    Example:
        >>> cameras = [Camera.look_at((x, -4, 1)) for x in (-1.0, 0.0, 1.0)]
        >>> similarity(cameras, cameras).round(6).tolist()[0]
        [1.0, 0.0, 0.0, 0.0]
    """
    total = sum(b.world_from_camera[:3, :3] @ a.world_from_camera[:3, :3].T for a, b in zip(cameras, onto, strict=True))
    u, _, vt = np.linalg.svd(total)
    turn = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    here, there = (np.array([c.position for c in some]) for some in (cameras, onto))
    a, b = (here - here.mean(0)) @ turn.T, there - there.mean(0)
    spread = np.linalg.norm(a)
    scale = float(np.linalg.norm(b) / spread) if spread > 1e-9 * np.linalg.norm(here) + 1e-300 else 1.0
    scale = scale if scale > 0 else 1.0
    out = np.eye(4)
    out[:3, :3] = scale * turn
    out[:3, 3] = there.mean(0) - scale * turn @ here.mean(0)
    return out if box is None else _match_sight(out, cameras, onto, np.asarray(box, float))


def _match_sight(found: np.ndarray, cameras: Sequence[Camera], onto: Sequence[Camera], box: np.ndarray) -> np.ndarray:
    """The similarity near `found` by which the cameras see the box's points where the others do."""
    axes = np.linspace(box[0], box[1], POINTS_AN_AXIS).T
    corners = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    middle, reach = box.mean(0), float(np.linalg.norm(box[1] - box[0]))
    moves = np.zeros((len(corners), 3, 7))  # of a point: shifts in parts of the reach, turns and scale about the middle
    moves[:, :, :3] = reach * np.eye(3)
    for a in range(3):
        moves[:, :, 3 + a] = np.cross(np.eye(3)[a], corners - middle)
    moves[:, :, 6] = corners - middle
    for _ in range(GAUSS_NEWTON_STEPS):
        H, g = np.zeros((7, 7)), np.zeros(7)
        for camera, other in zip(cameras, onto, strict=True):
            (here, slope, near), (there, _, too) = (
                _pixels(transform_camera(camera, found), corners),
                _pixels(other, corners),
            )
            use = (near > MIN_DISTANCE_FRACTION * reach) & (too > MIN_DISTANCE_FRACTION * reach)
            gap, weight = here - there, np.ones_like(here)
            if other.lens.spherical:
                gap, weight = _on_the_sphere(other, gap, there)
            # slopes of the points; the cameras move the other way
            J = (weight[use, :, None] * (slope[use] @ moves[use])).reshape(-1, 7)
            H, g = H + J.T @ J, g + J.T @ (weight * gap)[use].ravel()
        if not np.linalg.cond(H) < 1e12:
            return found  # too few points in front of too few cameras
        step = np.linalg.solve(H, g)
        about = exp_rigid([0, 0, 0, *step[3:6]])
        about[:3, :3] *= np.exp(step[6])
        about[:3, 3] = reach * step[:3] + middle - about[:3, :3] @ middle
        found = about @ found
    return found


def _on_the_sphere(camera: Camera, gap: np.ndarray, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gaps (n, 2) [pixel] of a panorama the short way around, and their weights: columns are narrow near a pole."""
    around = 2 * np.pi * camera.focal[0]
    latitude = (pixels[:, 1] - camera.principal[1]) / camera.focal[1]
    gap = np.stack([(gap[:, 0] + around / 2) % around - around / 2, gap[:, 1]], axis=1)
    return gap, np.stack([np.cos(latitude), np.ones(len(gap))], axis=1)


def _pixels(camera: Camera, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where points (n, 3) are seen (n, 2) [pixel], its slope by the points (n, 2, 3), and their depths (n,)."""
    turn = camera.world_from_camera[:3, :3]
    local = (points - camera.position) @ turn
    local[:, 2] = np.where(np.abs(local[:, 2]) > 1e-12, local[:, 2], -1e-12)
    pixels, depth = project(local, camera.focal, camera.principal, camera.lens)
    return pixels, project_slope(local, camera.focal, camera.lens) @ turn.T, depth


def align_cameras(cameras: Sequence[Camera], onto: Sequence[Camera], box: Numbers | None = None) -> list[Camera]:
    """Gauge-aligned cameras: moved by the `similarity` that brings them nearest to the others; `box` as there."""
    moved = similarity(cameras, onto, box)
    return [transform_camera(camera, moved) for camera in cameras]


def transform_camera(camera: Camera, world_from_world: np.ndarray) -> Camera:
    """Camera moved by a similarity of the world (4, 4); it sees the moved world as it saw the other."""
    scale = np.cbrt(np.linalg.det(world_from_world[:3, :3]))
    pose = camera.world_from_camera.copy()
    pose[:3, :3] = world_from_world[:3, :3] / scale @ pose[:3, :3]
    pose[:3, 3] = world_from_world[:3, :3] @ pose[:3, 3] + world_from_world[:3, 3]
    focal = tuple(f / scale for f in camera.focal) if camera.lens.parallel else camera.focal
    return replace(camera, world_from_camera=pose, focal=focal)


def pose_differences(
    cameras: Sequence[Camera], onto: Sequence[Camera], box: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How far cameras are turned from others (camera,) [degree], and moved, in shares of these' distances to the middle
    of a box (2, 3), of a twentieth of its diagonal at least."""
    middle, least = box.mean(0), MIN_DISTANCE_FRACTION * float(np.linalg.norm(box[1] - box[0]))
    degrees, share = [], []
    for a, b in zip(cameras, onto, strict=True):
        turn = a.world_from_camera[:3, :3].T @ b.world_from_camera[:3, :3]
        angle = np.arctan2(np.linalg.norm(turn - turn.T) / np.sqrt(8), (np.trace(turn) - 1) / 2)
        degrees.append(np.rad2deg(angle))
        distance = max(float(np.linalg.norm(b.position - middle)), least)
        share.append(np.linalg.norm(a.position - b.position) / distance)
    return np.array(degrees), np.array(share)


def up_of_cameras(eyes: np.ndarray, turns: np.ndarray) -> tuple[np.ndarray, str]:
    """Up, of length 1, and how it was found.

    What the right axes of cameras held level are all across; else their mean up; else across their path.

    Args:
        eyes: positions (view, 3).
        turns: rotations (view, 3, 3) world from camera, camera axes x right, y up, looking along -z.

    Example:
        >>> up_of_cameras(np.eye(3), np.array([np.eye(3)] * 3))[0].tolist()
        [0.0, 1.0, 0.0]
    """
    rights, ups = turns[:, :, 0], turns[:, :, 1]
    mean = ups.mean(0)
    weights = np.ones(len(rights))
    for _ in range(MAX_ROUNDS):  # a camera on its side counts for little
        values, vectors = np.linalg.eigh((weights[:, None] * rights).T @ rights / weights.sum())
        weights = 1 / (0.1 + np.abs(rights @ vectors[:, 0]))
    if values[0] < MAX_LEVEL_RESIDUAL and values[1] > MIN_AXIS_SPREAD and abs(mean @ vectors[:, 0]) > 0.05:
        return vectors[:, 0] * np.sign(mean @ vectors[:, 0]), "across the right axes of all cameras"
    if np.linalg.norm(mean) > MIN_UP_AGREEMENT:
        for _ in range(MAX_ROUNDS):
            mean = mean / np.linalg.norm(mean)
            mean = (ups / (0.1 + np.linalg.norm(ups - mean, axis=1))[:, None]).sum(0)
        return mean / np.linalg.norm(mean), "mean up of the cameras"
    normal = np.linalg.svd(eyes - eyes.mean(0))[2][2]
    return normal * (np.sign(mean @ normal) or 1.0), GUESSED_UP


def meeting_of_axes(cameras: Sequence[Camera]) -> np.ndarray | None:
    """Point (3,) nearest to all optical axes, by least squares; None where they are as good as parallel.

    Example:
        >>> two = [Camera.look_at((4, 0, 1), (0, 0, 1)), Camera.look_at((0, 4, 1), (0, 0, 1))]
        >>> meeting_of_axes(two).round(9).tolist()
        [0.0, 0.0, 1.0]
    """
    poses = np.array([camera.world_from_camera for camera in cameras])
    return nearest_to_lines(poses[:, :3, 3], -poses[:, :3, 2])


def nearest_to_lines(
    places: np.ndarray, directions: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray | None:
    """Point (3,) nearest to lines through places (n, 3) along unit directions (n, 3), by weighted least squares.

    None where they are as good as parallel.

    Example:
        >>> nearest_to_lines(np.array([[4.0, 0, 1], [0, 4, 1]]), np.array([[1.0, 0, 0], [0, 1, 0]])).round(9).tolist()
        [0.0, 0.0, 1.0]
    """
    across = np.eye(3) - directions[:, :, None] * directions[:, None, :]
    if weights is not None:
        across = weights[:, None, None] * across
    normal = across.sum(0)
    if not np.linalg.cond(normal) <= MAX_CONDITION:
        return None
    return np.linalg.solve(normal, (across @ places[:, :, None]).sum(0)[:, 0])
