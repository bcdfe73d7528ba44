"""Gradient check as a table: dot tests and directional differences on a user's own volumes and camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import CHOICES, OF_VOLUMES, Direction, Parameters, group_shape, groups_of

DOT_TOLERANCE = {"f64": 1e-12, "f32": 1e-5}
DIFFERENCE_TOLERANCE = 1e-7
SINGLE_TOLERANCE = 1e-6  # of single numbers, whose slopes can be small beside the image's rounding
IMAGE_ROUNDING = {"f64": 1e-11, "f32": 1e-5}  # of the image, where next to nothing moves
DIFFERENCE_WIDTHS = (1e-5, 1e-4, 1e-6, 1e-3, 1e-7)  # the likeliest first
GOOD_AGREEMENT = 1e-8  # an agreement that ends the search for a better width
DOT_PAIRS = 3
CHECKED_ELEMENTS = 8
# What the direction of rays depends on, in which harmonics are read.
TURNING_PARAMETERS = ("pose", "focal", "principal_point", "lens")
MAX_BEND = 1e-5  # of the largest slope: a difference of the slopes to both sides that is more than curvature
MIN_CHANGE = 1e-10  # of the image: a difference under this is mostly rounding
KINK_TOLERANCE = 1e-6  # rays whose differences at two widths disagree by more, of the largest, cross a kink


@dataclass(frozen=True)
class GradientRow:
    """Gradient check of one group of parameters.

    Attributes:
        parameter, mode, precision: what was checked, how rays are composited, "f64" or "f32". Numbers of one of several
            volumes are named "volumes[0].density" and so on.
        dot: worst |<Jv, w> - <v, J'w>| / (|Jv| |w|) over random pairs.
        difference: |<difference - tangent, w>| / (|difference| |w|) along a random direction, the larger for w the
            difference itself and a random one, the best over step widths, and the worst over the harmonics, each alone;
            None in f32, where differences mean nothing. The adjoint is held by `dot`.
        worst: the same along single numbers of the group, the worst of them; None in f32.
        kinks: share of the rays that crossed a kink within the difference and were left out.
        verdict: "good"; "at a kink" where dot is good and every difference crosses one, so that there is nothing to
            compare with; "flat" where next to nothing moves, behind an opaque fog say; or "wrong".
    """

    parameter: str
    mode: str
    precision: str
    dot: float
    difference: float | None
    worst: float | None
    kinks: float
    verdict: str


def check_rows(
    seen: Linearised, parameters: Sequence[str] | None = None, seed: int = 0, pairs: int = DOT_PAIRS
) -> list[GradientRow]:
    """Gradient check, a row for each group of each volume, all that are seen if none are named, in the precision that
    runs. Background and what else volumes share is with the first.

    Raises RaymarchError for a group that does not exist and for one that the mode does not see.
    """
    parameters = seen.groups if parameters is None else parameters
    unknown = [name for name in parameters if name not in CHOICES]
    if unknown:
        raise RaymarchError(f"parameter {unknown[0]!r}: want some of {', '.join(CHOICES)}")
    rng = np.random.default_rng(seed)
    tried = []
    for _ in range(pairs):
        w = rng.normal(size=(len(seen.rays), 1 + seen.volume.colours))
        gradient = seen.adjoint(w)
        found = [gradient] if isinstance(gradient, Parameters) else list(gradient)
        tried.append((w, found))
    rows = []
    for i in range(len(seen.volumes)):
        known = parameters if len(seen.volumes) == 1 else _groups_of_volume(seen, i)
        pairs_of = [(w, gradients[i]) for w, gradients in tried]
        rows += [_gradient_row(seen, i, name, pairs_of, rng) for name in parameters if name in known]
    return rows


def _groups_of_volume(seen: Linearised, i: int) -> set[str]:
    """Groups of one of several volumes, what all share with the first."""
    own = {*groups_of([seen.medium.marches[i].rule])} & {*OF_VOLUMES}
    return own | ({*seen.groups} - {*OF_VOLUMES} if i == 0 else set())


def _gradient_row(
    seen: Linearised, i: int, name: str, pairs: list[tuple[np.ndarray, Parameters]], rng: np.random.Generator
) -> GradientRow:
    """Gradient check of one group of volume `i`."""
    precision = "f32" if runtime.single_precision() else "f64"
    volume, march = seen.volumes[i], seen.medium.marches[i]
    label = name if seen.alone or name not in OF_VOLUMES else f"volumes[{i}].{name}"
    large = {"density": volume.shape, "colour": (*volume.shape, volume.feature_count)}
    if march.transfer is not None:
        large["table"] = march.transfer.rgba.shape
    shape = large[name] if name in large else group_shape(name, seen.camera.lens, volume.colours)
    unit = _parameter_unit(seen, i, name)

    def along_numbers(values: np.ndarray) -> Direction:
        return seen.of_volume(i, Parameters(**{name: values}))

    dot, even, seen_to_move = 0.0, True, True
    light = np.linalg.norm(seen.image())
    for w, gradient in pairs:
        numbers = unit * rng.normal(size=shape)
        along = seen.tangent(along_numbers(numbers))
        scale = np.linalg.norm(along) * np.linalg.norm(w)
        gap = abs(float((along * w).sum()) - gradient.dot(Parameters(**{name: numbers})))
        dot = max(dot, float(gap / scale) if scale > 0 else float(gap))
        # Where next to nothing moves, behind an opaque fog say, what remains is the rounding of the image itself.
        exact = bool(gap <= DOT_TOLERANCE[precision] * scale)
        seen_to_move = seen_to_move and exact and bool(scale > 0)
        even = even and (exact or bool(gap <= IMAGE_ROUNDING[precision] * light * np.linalg.norm(w)))
    if precision == "f32":
        verdict = "wrong" if not even else "good" if seen_to_move else "flat"
        return GradientRow(label, march.rule.name, precision, dot, None, None, 0.0, verdict)
    difference, kinks = _difference(seen, along_numbers(unit * rng.normal(size=shape)))
    apart = [one for one in (difference, *_harmonics(seen, i, name, rng)) if one is not None]
    difference = max(apart, default=None)
    singles = [_difference(seen, along_numbers(one))[0] for one in _single_numbers(pairs[0][1], name, shape, unit, rng)]
    worst = max((one for one in singles if one is not None), default=None)
    verdict = "flat"
    if not even or (difference or 0) > DIFFERENCE_TOLERANCE or (worst or 0) > SINGLE_TOLERANCE:
        verdict = "wrong"
    elif difference is None and kinks == 1:
        verdict = "at a kink"
    elif difference is not None and seen_to_move:
        verdict = "good"
    return GradientRow(label, march.rule.name, precision, dot, difference, worst, kinks, verdict)


def _harmonics(seen: Linearised, i: int, name: str, rng: np.random.Generator) -> list[float | None]:
    """Relative errors of the tangent by each harmonic alone, where they enter: in a mixture one hides behind the rest.

    Those by colour are along a direction of this harmonic's numbers. Those by what turns rays are in a volume without
    any other, which is turned together with the camera: its samples stay where they are, and only headings move.
    """
    volume, rule = seen.volumes[i], seen.medium.marches[i].rule
    count, shape = (volume.degree + 1) ** 2, (*volume.shape, volume.feature_count)
    found: list[float | None] = []
    if not rule.colour or rule.classifies or count == 1:
        return found
    if name == "colour":
        for k in range(count):
            part = np.zeros(shape)
            part[..., 3 * k : 3 * k + 3] = rng.normal(size=(*shape[:3], 3))
            found.append(_difference(seen, seen.of_volume(i, Parameters(colour=part)))[0])
    elif name in TURNING_PARAMETERS:
        turn = _turn_about_camera(seen, rng.normal(size=3))
        for k in range(1, count):
            seen.show_harmonic(k)
            found.append(_difference(seen, seen.of_volume(i, turn))[0])
        seen.show_harmonic(None)
    return found


def _turn_about_camera(seen: Linearised, about: np.ndarray) -> Parameters:
    """Camera and box turned alike about the camera's position, by a rotation vector in camera axes."""
    x, y, z = seen.camera.world_from_camera[:3, :3] @ about
    place = seen.viewpoint.world_from_index[:3].copy()
    place[:, 3] -= seen.camera.position
    return Parameters(pose=np.concatenate([np.zeros(3), about]), box=[[0, -z, y], [z, 0, -x], [-y, x, 0]] @ place)


def _slope_distance(found: np.ndarray, wanted: np.ndarray, w: np.ndarray) -> float:
    """How far two slopes are apart, weighted by the first and by w; of the first's size, or their own if it is zero."""
    gap, size = found - wanted, float(np.linalg.norm(found))
    if size == 0:
        return float(np.linalg.norm(wanted))
    by_w = abs(float((gap * w).sum())) / (size * float(np.linalg.norm(w)))
    return max(abs(float((gap * found).sum())) / size**2, by_w)


def _parameter_unit(seen: Linearised, i: int, name: str) -> float:
    """A length on which a group's numbers act alike: pixels for lenses, voxels over the distance for the rest."""
    if name in ("focal", "principal_point"):
        return 1.0
    if name == "lens":
        return 1.0 / max(seen.camera.focal)  # about a pixel at a focal length off the centre
    if name == "pose":
        return seen.volumes[i].voxel
    return 0.01 * seen.volumes[i].voxel if name == "box" else 1.0


def _single_numbers(
    gradient: Parameters, name: str, shape: tuple[int, ...], unit: float, rng: np.random.Generator
) -> list[np.ndarray]:
    """Directions of single numbers: all of a small group, some with a gradient of a large one."""
    flat = np.abs(np.asarray(getattr(gradient, name))).reshape(-1)
    there = np.flatnonzero(flat > 1e-3 * flat.max()) if flat.max() > 0 else np.arange(flat.size)
    chosen = there if there.size <= CHECKED_ELEMENTS else rng.choice(there, CHECKED_ELEMENTS, replace=False)
    out = []
    for i in chosen:
        one = np.zeros(flat.size)
        one[i] = unit
        out.append(one.reshape(shape))
    return out


def _difference(
    seen: Linearised, direction: Direction, widths: Sequence[float] = DIFFERENCE_WIDTHS
) -> tuple[float | None, float]:
    """Relative error of the tangent against central differences, and the share of rays at kinks.

    No error where no width leaves half of what moves free of kinks, all rays then being at them, nor where next to
    nothing moves, none being.
    """
    here, along = seen.image(), seen.tangent(direction)
    best, kinks = None, 1.0
    w = np.random.default_rng(0).normal(size=along.shape)
    for h in widths:
        ahead, behind = seen.shifted(direction, h), seen.shifted(direction, -h)
        nearer, nearly = seen.shifted(direction, h / 2), seen.shifted(direction, -h / 2)
        full, half = (ahead - behind) / (2 * h), (nearer - nearly) / h
        moves = np.linalg.norm(half) * h
        if moves < MIN_CHANGE * np.linalg.norm(here) and np.linalg.norm(along) * h < MIN_CHANGE * np.linalg.norm(here):
            kinks = 0.0 if best is None else kinks
            continue
        scale = max(float(np.abs(half).max()), 1e-300)
        smooth = np.abs(full - half).max(1) <= KINK_TOLERANCE * scale
        # On a kink itself both agree, but the slopes to its two sides differ, and by no less at half the width.
        bend = np.abs(ahead + behind - 2 * here).max(1) / h, np.abs(nearer + nearly - 2 * here).max(1) / (h / 2)
        smooth &= ~((bend[1] > 0.7 * bend[0]) & (bend[1] > MAX_BEND * scale))
        error = _slope_distance(half[smooth], along[smooth], w[smooth])
        enough = (half[smooth] ** 2).sum() >= 0.5 * (half**2).sum()
        if (best is None or error < best) and smooth.any() and enough:
            best, kinks = error, 1.0 - float(smooth.mean())
        if best is not None and best <= GOOD_AGREEMENT:
            break
    return best, kinks
