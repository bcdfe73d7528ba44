"""Structure from motion by COLMAP: features, matches, the largest reconstruction, its gauge. Runs in the worker only.

pycolmap and Pillow must not meet in one process: both bring a zlib, and what calls the other's corrupts memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raymarch.geometry.alignment import nearest_to_lines, up_of_cameras
from raymarch.sfm.messages import Messages

SEQUENCE_NEIGHBOURS = 10  # of a photograph in a sequence, before and after; further ones at powers of two


@dataclass(frozen=True)
class Attempt:
    """Attempt at a reconstruction: what differs from the first.

    Attributes:
        name: what is said of it.
        easier: half as many inliers and smaller angles are enough to begin and to go on.
        weaker: features of less contrast, twice as many, and matches sought along epipolar lines.
        shaped: features of an affine shape, pooled over sizes; many times slower.
        every_pair: all pairs are compared, whatever was asked.
    """

    name: str
    easier: bool = False
    weaker: bool = False
    shaped: bool = False
    every_pair: bool = False

    @property
    def same_features(self) -> bool:
        """Whether this attempt can use the features and matches of the one before."""
        return not (self.weaker or self.shaped or self.every_pair)


PLAIN_ATTEMPT = Attempt("")
FEWER_MATCHES_ATTEMPT = Attempt("fewer matches being enough", easier=True)
WEAKER_FEATURES_ATTEMPT = Attempt("more and weaker features", easier=True, weaker=True)
AFFINE_FEATURES_ATTEMPT = Attempt("features of an affine shape", easier=True, weaker=True, shaped=True)
ALL_PAIRS_ATTEMPT = Attempt("all pairs compared", easier=True, every_pair=True)


def extract(pc: Any, job: dict, database: Path, attempt: Attempt, messages: Messages) -> None:
    """Features of all photographs, those with one camera together, in a new database."""
    options = pc.FeatureExtractionOptions()
    options.num_threads, options.max_image_size = job["threads"], job["max_size"]
    options.sift.max_num_features = job["features"] * (2 if attempt.weaker else 1)
    if attempt.weaker:
        options.sift.peak_threshold /= 3
    options.sift.estimate_affine_shape = options.sift.domain_size_pooling = attempt.shaped
    reading = pc.ImageReaderOptions()
    reading.camera_model = job["start_model"]
    alone = [name for group in job["groups"] if len(group) == 1 for name in group]
    calls = [(alone, pc.CameraMode.PER_IMAGE)] if alone else []
    calls += [(group, pc.CameraMode.SINGLE) for group in job["groups"] if len(group) > 1]
    with messages.watched(database, "keypoints", "features", sum(map(len, job["groups"]))):
        for names, mode in calls:
            pc.extract_features(
                database,
                job["images"],
                image_names=names,
                camera_mode=mode,
                reader_options=reading,
                extraction_options=options,
                device=pc.Device.cpu,
            )


def match(pc: Any, job: dict, database: Path, attempt: Attempt, messages: Messages) -> None:
    """Matches between pairs of photographs, those kept that one geometry explains."""
    options, geometry = pc.FeatureMatchingOptions(), pc.TwoViewGeometryOptions()
    options.num_threads, options.guided_matching = job["threads"], attempt.weaker
    geometry.ransac.random_seed = job["seed"]
    more: dict = {"matching_options": options, "verification_options": geometry, "device": pc.Device.cpu}
    count = sum(map(len, job["groups"]))
    if job["matching"] == "exhaustive" or attempt.every_pair:
        with messages.watched(database, "two_view_geometries", "matching", count * (count - 1) // 2):
            pc.match_exhaustive(database, **more)
        return
    pairing = pc.SequentialPairingOptions()
    pairing.overlap, pairing.quadratic_overlap, pairing.loop_detection = SEQUENCE_NEIGHBOURS, True, False
    apart = {*range(1, SEQUENCE_NEIGHBOURS + 1), *(1 << power for power in range(SEQUENCE_NEIGHBOURS))}
    with messages.watched(database, "two_view_geometries", "matching", sum(max(count - n, 0) for n in apart)):
        pc.match_sequential(database, pairing_options=pairing, **more)


def map_cameras(pc: Any, job: dict, database: Path, folder: Path, attempt: Attempt, messages: Messages) -> list:
    """Connected reconstructions, the largest first."""
    options = pc.IncrementalPipelineOptions()
    options.min_model_size, options.random_seed, options.num_threads = 3, job["seed"], job["threads"]
    options.ba_refine_principal_point = False
    if attempt.easier:
        options.mapper.init_min_num_inliers, options.mapper.init_min_tri_angle = 50, 6.0
        options.mapper.abs_pose_min_num_inliers, options.mapper.abs_pose_min_inlier_ratio = 15, 0.15
        options.min_num_matches = 10
    count = sum(map(len, job["groups"]))
    registered = [0]

    def begun() -> None:
        registered[0] = 2
        messages.show("registered", 2, count)

    def another() -> None:
        registered[0] += 1
        messages.show("registered", min(registered[0], count), count)

    folder.mkdir()
    models = pc.incremental_mapping(
        database, job["images"], folder, options=options, initial_image_pair_callback=begun, next_image_callback=another
    )
    return sorted(models.values(), key=lambda model: (-model.num_reg_images(), -model.num_points3D()))


def refine_lenses(pc: Any, job: dict, model: Any) -> None:
    """Refine the requested lens, starting from the simple radial one. A lens of few numbers is easier to start with."""
    final = pc.CameraModelId.__members__[job["model"]]
    counts: dict[int, int] = {}
    for image in model.images.values():
        counts[image.camera_id] = counts.get(image.camera_id, 0) + image.has_pose
    moved = False
    for number, camera in model.cameras.items():
        if camera.model_name == "SIMPLE_RADIAL" != job["model"] and counts.get(number, 0) >= job["lens_from"]:
            f, cx, cy, k = camera.params
            camera.model = final
            camera.params = [f, cx, cy, k, 0] if job["model"] == "RADIAL" else [f, f, cx, cy, k, 0, 0, 0]
            moved = True
    if moved:
        options = pc.BundleAdjustmentOptions()
        options.refine_principal_point = options.print_summary = False
        options.ceres.solver_options.num_threads = job["threads"]
        pc.bundle_adjustment(model, options)
        model.update_point_3d_errors()


# The gauge makes the world upright, centres it on what the cameras look at, and fixes its scale.

MAX_ROUNDS = 20


class Gauge(NamedTuple):
    """Similarity (4, 4) from the world of structure from motion to an upright one, and how it was chosen."""

    world_from_sfm: np.ndarray
    up: str
    centre: str


def upright_gauge(eyes: np.ndarray, turns: np.ndarray, points: np.ndarray) -> Gauge:
    """Gauge in which z is up, what the cameras look at is the origin, and half of them are within 1 of it.

    Args:
        eyes: positions (view, 3).
        turns: rotations (view, 3, 3) world from camera, camera axes x right, y up, looking along -z.
        points: sparse points (point, 3); may be none.

    The first camera looks along +y, or as near as its height allows. Cameras that look outward have their own middle as
    origin, and half of the points within 1.

    Example:
        >>> eyes = 4 * np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0]])
        >>> turns = np.array([np.stack([np.cross(e / 4, [0, 0, -1.0]), [0, 0, 1], e / 4], -1) for e in eyes])
        >>> gauge = upright_gauge(eyes, turns, np.zeros((0, 3)))
        >>> gauge.centre, (gauge.world_from_sfm @ [*eyes[0], 1]).round(9).tolist()
        ('where the cameras look', [0.0, -1.0, 0.0, 1.0])
    """
    up, how = up_of_cameras(eyes, turns)
    centre, where = _centre(eyes, -turns[:, :, 2])
    inward = centre is not None
    middle = centre if centre is not None else np.median(eyes, axis=0)
    away = np.linalg.norm((eyes if inward or not len(points) else points) - middle, axis=1)
    size = float(np.median(away))
    if not size > 1e-12:
        size = float(away.max(initial=0.0)) or 1.0
    towards = -turns[0, :, 2] if not inward else middle - eyes[0]
    towards = towards - (towards @ up) * up
    if np.linalg.norm(towards) < 1e-6 * size:
        towards = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
    y = towards / np.linalg.norm(towards)
    turn = np.stack([np.cross(y, up), y, up])
    out = np.eye(4)
    out[:3, :3] = turn / size
    out[:3, 3] = -turn @ middle / size
    return Gauge(out, how, where)


def _centre(eyes: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray | None, str]:
    """Point nearest to the optical axes, those that miss it counting less; None where they do not look at one."""
    weights, centre = np.ones(len(eyes)), None
    for _ in range(MAX_ROUNDS):
        centre = nearest_to_lines(eyes, axes, weights)
        if centre is None:
            return None, "middle of the cameras"
        misses = np.linalg.norm(np.cross(axes, centre - eyes), axis=1)
        weights = 1 / (misses + 0.01 * np.median(np.linalg.norm(centre - eyes, axis=1)) + 1e-12)
    ahead = ((centre - eyes) * axes).sum(1) > 0
    return (centre, "where the cameras look") if ahead.mean() > 0.7 else (None, "middle of the cameras")
