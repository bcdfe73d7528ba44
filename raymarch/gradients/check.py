"""Gradient check as a table: dot tests and directional differences on a user's own volume and camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.gradients.linearised import EXACT, OF_VOLUMES, Linearised, LinearisedMember, LinearisedTogether
from raymarch.gradients.parameters import CHOICES, Parameters, shape_of
from raymarch.rendering.march_settings import March
from raymarch.views.views import require_colour
from raymarch.volumes.default_table import has_values_alone
from raymarch.volumes.volume import Volume

Seen: TypeAlias = "Linearised | LinearisedMember"
DOT = {"f64": 1e-12, "f32": 1e-5}
DIFFERENCE = 1e-7
SINGLE = 1e-6  # of single numbers, whose slopes can be small beside the image's rounding
ROUNDING = {"f64": 1e-11, "f32": 1e-5}  # of the image, where next to nothing moves
WIDTHS = (1e-5, 1e-4, 1e-6, 1e-3, 1e-7)  # the likeliest first
ENOUGH = 1e-8  # an agreement that ends the search for a better width
PAIRS = 3
ELEMENTS = 8
# What the direction of rays depends on, in which harmonics are read.
TURNING = ("pose", "focal", "principal_point", "lens")
BENT = 1e-5  # of the largest slope: a difference of the slopes to both sides that is more than curvature
FLAT = 1e-10  # of the image: a difference under this is mostly rounding
SMOOTH = 1e-6  # rays whose differences at two widths disagree by more, of the largest, cross a kink


@dataclass(frozen=True)
class GradientRow:
    """Gradient check of one group of parameters.

    Attributes:
        parameter, mode, precision: what was checked, how rays are composited, "f64" or "f32".
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
    seen: Seen, parameters: Sequence[str] | None = None, seed: int = 0, pairs: int = PAIRS
) -> list[GradientRow]:
    """Gradient check, a row for each group, all that the mode sees if none are named, in the precision that runs.

    Raises RaymarchError for a group that does not exist and for one that the mode does not see.
    """
    parameters = seen.groups if parameters is None else parameters
    unknown = [name for name in parameters if name not in CHOICES]
    if unknown:
        raise RaymarchError(f"parameter {unknown[0]!r}: want some of {', '.join(CHOICES)}")
    rng = np.random.default_rng(seed)
    tried = []
    for _ in range(pairs):
        w = rng.normal(size=(len(seen.rays), 4))
        tried.append((w, seen.adjoint(w)))
    return [_row(seen, name, tried, rng) for name in parameters]


def _row(seen: Seen, name: str, pairs: list[tuple[np.ndarray, Parameters]], rng: np.random.Generator) -> GradientRow:
    precision = "f32" if runtime.single_precision() else "f64"
    large = {"density": seen.volume.shape, "colour": (*seen.volume.shape, seen.volume.channels)}
    if seen.march.transfer is not None:
        large["table"] = seen.march.transfer.rgba.shape
    shape = large[name] if name in large else shape_of(name, seen.camera.lens)
    unit = _unit(seen, name)
    dot, even, seen_to_move = 0.0, True, True
    light = np.linalg.norm(seen.image())
    for w, gradient in pairs:
        direction = Parameters(**{name: unit * rng.normal(size=shape)})
        along = seen.tangent(direction)
        scale = np.linalg.norm(along) * np.linalg.norm(w)
        gap = abs(float((along * w).sum()) - gradient.dot(direction))
        dot = max(dot, float(gap / scale) if scale > 0 else float(gap))
        # Where next to nothing moves, behind an opaque fog say, what remains is the rounding of the image itself.
        exact = bool(gap <= DOT[precision] * scale)
        seen_to_move = seen_to_move and exact and bool(scale > 0)
        even = even and (exact or bool(gap <= ROUNDING[precision] * light * np.linalg.norm(w)))
    if precision == "f32":
        verdict = "wrong" if not even else "good" if seen_to_move else "flat"
        return GradientRow(name, seen.march.rule.name, precision, dot, None, None, 0.0, verdict)
    direction = Parameters(**{name: unit * rng.normal(size=shape)})
    difference, kinks = _difference(seen, direction)
    apart = [one for one in (difference, *_harmonics(seen, name, rng)) if one is not None]
    difference = max(apart, default=None)
    singles = [_difference(seen, Parameters(**{name: one}))[0] for one in _singles(pairs[0][1], name, shape, unit, rng)]
    worst = max((one for one in singles if one is not None), default=None)
    verdict = "flat"
    if not even or (difference or 0) > DIFFERENCE or (worst or 0) > SINGLE:
        verdict = "wrong"
    elif difference is None and kinks == 1:
        verdict = "at a kink"
    elif difference is not None and seen_to_move:
        verdict = "good"
    return GradientRow(name, seen.march.rule.name, precision, dot, difference, worst, kinks, verdict)


def _harmonics(seen: Seen, name: str, rng: np.random.Generator) -> list[float | None]:
    """Relative errors of the tangent by each harmonic alone, where they enter: in a mixture one hides behind the rest.

    Those by colour are along a direction of this harmonic's numbers. Those by what turns rays are in a volume without
    any other, which is turned together with the camera: its samples stay where they are, and only headings move.
    """
    count, shape = (seen.volume.degree + 1) ** 2, (*seen.volume.shape, seen.volume.channels)
    found: list[float | None] = []
    if not seen.march.rule.colour or seen.march.rule.classifies or count == 1:
        return found
    if name == "colour":
        for k in range(count):
            part = np.zeros(shape)
            part[..., 3 * k : 3 * k + 3] = rng.normal(size=(*shape[:3], 3))
            found.append(_difference(seen, Parameters(colour=part))[0])
    elif name in TURNING and isinstance(seen, Linearised):
        turn = _turn(seen, rng.normal(size=3))
        for k in range(1, count):
            seen.load(k)
            found.append(_difference(seen, turn)[0])
        seen.load()
    return found


def _turn(seen: Linearised, about: np.ndarray) -> Parameters:
    """Camera and box turned alike about the camera's position, by a rotation vector in camera axes."""
    x, y, z = seen.camera.world_from_camera[:3, :3] @ about
    place = seen.viewpoint.world_from_index[:3].copy()
    place[:, 3] -= seen.camera.position
    return Parameters(pose=np.concatenate([np.zeros(3), about]), box=[[0, -z, y], [z, 0, -x], [-y, x, 0]] @ place)


def _apart(found: np.ndarray, wanted: np.ndarray, w: np.ndarray) -> float:
    """How far two slopes are apart, weighted by the first and by w; of the first's size, or their own if it is zero."""
    gap, size = found - wanted, float(np.linalg.norm(found))
    if size == 0:
        return float(np.linalg.norm(wanted))
    by_w = abs(float((gap * w).sum())) / (size * float(np.linalg.norm(w)))
    return max(abs(float((gap * found).sum())) / size**2, by_w)


def _unit(seen: Seen, name: str) -> float:
    """A length on which a group's numbers act alike: pixels for lenses, voxels over the distance for the rest."""
    if name in ("focal", "principal_point"):
        return 1.0
    if name == "lens":
        return 1.0 / max(seen.camera.focal)  # about a pixel at a focal length off the centre
    if name == "pose":
        return seen.volume.voxel
    return 0.01 * seen.volume.voxel if name == "box" else 1.0


def _singles(
    gradient: Parameters, name: str, shape: tuple[int, ...], unit: float, rng: np.random.Generator
) -> list[np.ndarray]:
    """Directions of single numbers: all of a small group, some with a gradient of a large one."""
    flat = np.abs(np.asarray(getattr(gradient, name))).reshape(-1)
    there = np.flatnonzero(flat > 1e-3 * flat.max()) if flat.max() > 0 else np.arange(flat.size)
    chosen = there if there.size <= ELEMENTS else rng.choice(there, ELEMENTS, replace=False)
    out = []
    for i in chosen:
        one = np.zeros(flat.size)
        one[i] = unit
        out.append(one.reshape(shape))
    return out


def _difference(seen: Seen, direction: Parameters, widths: Sequence[float] = WIDTHS) -> tuple[float | None, float]:
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
        if moves < FLAT * np.linalg.norm(here) and np.linalg.norm(along) * h < FLAT * np.linalg.norm(here):
            kinks = 0.0 if best is None else kinks
            continue
        scale = max(float(np.abs(half).max()), 1e-300)
        smooth = np.abs(full - half).max(1) <= SMOOTH * scale
        # On a kink itself both agree, but the slopes to its two sides differ, and by no less at half the width.
        bend = np.abs(ahead + behind - 2 * here).max(1) / h, np.abs(nearer + nearly - 2 * here).max(1) / (h / 2)
        smooth &= ~((bend[1] > 0.7 * bend[0]) & (bend[1] > BENT * scale))
        error = _apart(half[smooth], along[smooth], w[smooth])
        enough = (half[smooth] ** 2).sum() >= 0.5 * (half**2).sum()
        if (best is None or error < best) and smooth.any() and enough:
            best, kinks = error, 1.0 - float(smooth.mean())
        if best is not None and best <= ENOUGH:
            break
    return best, kinks


# Gradient check of several volumes together: that of each by all that it has, with the others held.


def require_groups_together(names: Sequence[str] | None, marches: Sequence[March]) -> None:
    """Group check: RaymarchError for a group by which no volume of these marches has a gradient."""
    unseen = {"colour"} if all(march.transfer for march in marches) else set()
    unseen |= set() if any(march.transfer for march in marches) else {"table"}
    known = [name for name in (*OF_VOLUMES, "background") if name not in unseen]
    for name in names or ():
        if name not in known:
            raise RaymarchError(
                f"several volumes together have no gradient by {name}, want some of {', '.join(known)}; leave it out"
            )


def check_rows_together(
    seen: LinearisedTogether, parameters: Sequence[str] | None = None, seed: int = 0
) -> list[GradientRow]:
    """Gradient check, a row for each group of each volume, "volumes[0].density" say, and the background."""
    rows = []
    for i in range(len(seen.members.volumes)):
        member = LinearisedMember(seen, i)
        names = [name for name in member.groups if parameters is None or name in parameters]
        for row in check_rows(member, names, seed):
            own = row.parameter != "background"
            rows.append(replace(row, parameter=f"volumes[{i}].{row.parameter}") if own else row)
    return rows


# Rays that a gradient check looks along: random pixels of those that see the volumes, and the background.

CANDIDATES = 16  # rays that are looked at for each that is taken
MET = 0.01  # opacity from which a ray counts as having met something


def background_to_check(volume: Volume) -> tuple[float, ...]:
    """A background that no channel is lost on: the volume's own, unless it is black somewhere."""
    return tuple(c if c > 0 else 0.25 for c in require_colour(volume.background))


def pixels_to_check(
    volumes: Sequence[Volume], camera: Camera, marches: Sequence[March], rays: int, seed: int
) -> np.ndarray:
    """Random pixels that the volumes' boxes cover, those that meet something first."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(_covered(volumes, camera))[: CANDIDATES * rays]
    met = _transmittance(volumes, camera, marches, some) < 1 - MET
    return np.concatenate([some[met], some[~met]])[:rays]


def _transmittance(
    volumes: Sequence[Volume], camera: Camera, marches: Sequence[March], pixels: np.ndarray
) -> np.ndarray:
    if len(volumes) > 1:
        with LinearisedTogether(volumes, camera, marches=list(marches), pixels=pixels) as together:
            return together.image()[:, 3]
    volume, march = volumes[0], marches[0]
    as_it_is = march.rule.classifies or has_values_alone(volume)
    looking = march if as_it_is else replace(march, mode=EXACT.mode, iso=None, shading=None)
    with Linearised(volume, camera, march=looking, pixels=pixels) as seen:
        return seen.image()[:, 3]


def _covered(volumes: Sequence[Volume], camera: Camera) -> np.ndarray:
    """Pixels of the rectangles that hold the boxes' corners; all where some lie behind, or none of it is seen."""
    pixels = np.arange(camera.width * camera.height).reshape(camera.height, camera.width)
    covered = np.zeros(pixels.shape, bool)
    for volume in volumes:
        seen, depth = camera.project(volume.corners)
        if (depth <= 0).any():
            return pixels.ravel()
        columns, rows = (slice(max(int(a.min()), 0), max(int(np.ceil(a.max())), 0)) for a in seen.T)
        covered[rows, columns] = True
    return pixels[covered] if covered.any() else pixels.ravel()
