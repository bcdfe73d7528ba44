"""Parameters of an image, number by number: a record for directions (tangents) and for gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np

from raymarch.arguments.checks import MAX_NUMBER, Check, Wrong, array, describe_value, numeric, one_of, vector
from raymarch.errors import RaymarchError
from raymarch.geometry.lens import PINHOLE_LENS, Lens
from raymarch.kernels.integrator.mode import Mode
from raymarch.views.exposure import NEUTRAL_EXPOSURE as NEUTRAL_EXPOSURE
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

SHAPES = {
    "background": (3,),
    "pose": (6,),
    "focal": (2,),
    "principal_point": (2,),
    "exposure": (6,),
    "step": (),
    "box": (3, 4),
}
MODE_PARAMETERS: dict[str, tuple[int, ...]] = {"iso": ()}  # which modes have that say so
SMALL_GROUPS = tuple(SHAPES)
GROUPS = ("density", "colour", *SMALL_GROUPS)
# shaped as the lens and the transfer function are, where there are any
CHOICES = (*GROUPS, "lens", *MODE_PARAMETERS, "table")
OF_VOLUMES = ("density", "colour", "table")  # numbers that each of several volumes has
OF_CAMERA = ("background", "pose", "focal", "principal_point", "exposure", "lens")  # what moves without the volumes
GEOMETRY = ("pose", "focal", "principal_point", "lens", "step", "box", "iso")
EXPOSURE = replace(vector(6), wanted=f"three gains and three offsets, up to {MAX_NUMBER:g}")
NO_LENS_CURE = "the camera is a pinhole, whose lens has no numbers; leave lens out, or give the camera an rm.Lens"
GROUP = one_of(
    *SMALL_GROUPS, "lens", *MODE_PARAMETERS, cure="give directions by density, colour or table as rm.Parameters"
)


def groups_of(modes: Sequence[Mode], lens: Lens = PINHOLE_LENS) -> tuple[str, ...]:
    """Parameter groups by which the image of volumes in these modes, through this lens, has a gradient."""
    if len(modes) > 1:
        seen = {name for mode in modes for name in groups_of([mode])}
        return tuple(name for name in (*OF_VOLUMES, "background", "exposure") if name in seen)
    (mode,) = modes
    unseen = {
        "colour": not mode.colour or mode.classifies,
        "background": not mode.background,
        "step": not mode.step,
        "lens": not lens.names,
        "table": not mode.classifies,
    }
    unseen |= {name: name not in mode.parameters for name in MODE_PARAMETERS}
    return tuple(name for name in CHOICES if not unseen.get(name))


def require_groups(names: Iterable[str], modes: Sequence[Mode], lens: Lens) -> None:
    """Group check: RaymarchError for a group that the modes do not see, or that the lens has not, and where a mode
    has no gradient at all."""
    if len(modes) > 1:
        known = groups_of(modes)
        for name in names:
            if name not in known:
                wanted = f"want some of {', '.join(known)}; leave it out"
                raise RaymarchError(f"several volumes together have no gradient by {name}, {wanted}")
        return
    (mode,) = modes
    if mode.no_gradient:
        raise RaymarchError(mode.no_gradient)
    names = set(names)
    if "lens" in names and not lens.names:
        raise RaymarchError(NO_LENS_CURE)
    for name in sorted(names & {*GROUPS, *MODE_PARAMETERS, "table"} - set(groups_of(modes))):
        raise RaymarchError(f"mode {mode.name} has no gradient by {name}, which it does not see; leave it out")


def require_groups_of_volume(names: Iterable[str], i: int, mode: Mode) -> None:
    """Group check of one of several volumes: RaymarchError for what it does not have; background and exposure are with
    the first."""
    known = {*groups_of([mode])} & {*OF_VOLUMES, *(() if i else ("background", "exposure"))}
    for name in names:
        if name not in known:
            raise RaymarchError(f"directions[{i}] has {name}, want some of {', '.join(sorted(known))}")


def _direction(axes: str, shape: tuple[int, ...] | None) -> Check:
    """Numbers of a shape, or of as many axes; a gradient may be anything, so whether they are finite is asked later."""

    def read(value: object) -> np.ndarray:
        values = numeric(value)
        if values.shape != shape if shape is not None else values.ndim != axes.count(",") + 1:
            raise Wrong(f"has shape {values.shape}")
        return values if values.dtype.kind == "f" else values.astype(float)

    return Check(f"{axes} numbers", read)


DIRECTIONS = {name: _direction(str(shape), shape) for name, shape in (SHAPES | MODE_PARAMETERS).items()}
for _name in ("background", "exposure"):  # how many there are is asked beside a volume
    DIRECTIONS[_name] = replace(DIRECTIONS[_name], read=_direction("(number)", None).read)
DIRECTIONS["lens"] = _direction("(number)", None)
DIRECTIONS["density"] = _direction("(x, y, z)", None)
DIRECTIONS["colour"] = _direction("(x, y, z, channel)", None)
DIRECTIONS["table"] = _direction("(knot, 4)", None)


@dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters that shape an image, as a direction (a tangent) or as a gradient; None is zero.

    Attributes:
        density: (x, y, z) raw. colour: (x, y, z, channel) raw features.
        background: (3,), or a number a channel, as exposure has gains and offsets.
        pose: (6,) translation [world unit] and rotation [radian] in camera axes: world_from_camera times exp of it.
        focal, principal_point: (2,) [pixel].
        exposure: (6,) three gains, then three offsets: the image is gain * colour + offset.
        step: () length of a step [voxel].
        iso: () value of the surface, of a mode that shows one.
        box: (3, 4) upper rows of world_from_index; a step keeps its length in the world.
        lens: the coefficients of the camera's lens, as many as its model has; a pinhole has none.
        table: (knot, 4) red, green, blue and opacity of the transfer function's knots.
    """

    density: np.ndarray | None = None
    colour: np.ndarray | None = None
    background: np.ndarray | None = None
    pose: np.ndarray | None = None
    focal: np.ndarray | None = None
    principal_point: np.ndarray | None = None
    exposure: np.ndarray | None = None
    step: np.ndarray | None = None
    box: np.ndarray | None = None
    iso: np.ndarray | None = None
    lens: np.ndarray | None = None
    table: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if value is not None:
                object.__setattr__(self, name, DIRECTIONS[name](name, value))

    def dot(self, other: Parameters) -> float:
        """Dot product over all that both have."""
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return float(sum(np.vdot(a, b) for a, b in pairs if a is not None and b is not None))


Direction: TypeAlias = "Parameters | Sequence[Parameters]"  # of several volumes one for each
Columns: TypeAlias = "str | Parameters | Sequence[str | Direction]"  # as `columns_of` reads them


def shapes_of(colours: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the small groups but the lens, of images of so many colours.

    Example:
        >>> shapes_of(5)["exposure"]
        (10,)
    """
    return {**SHAPES, **MODE_PARAMETERS, "background": (colours,), "exposure": (2 * colours,)}


def group_shape(group: str, lens: Lens = PINHOLE_LENS, colours: int = 3) -> tuple[int, ...]:
    """Shape of a small group, of images of so many colours; RaymarchError for what is none, and a pinhole's lens."""
    GROUP("parameter", group)
    if group == "lens" and not lens.names:
        raise RaymarchError(NO_LENS_CURE)
    return (len(lens.names),) if group == "lens" else shapes_of(colours)[group]


def units(group: str, lens: Lens = PINHOLE_LENS, colours: int = 3) -> list[Parameters]:
    """Unit directions, one for each number of a group; RaymarchError as `group_shape` raises it."""
    shape = group_shape(group, lens, colours)
    return [Parameters(**{group: unit.reshape(shape)}) for unit in np.eye(int(np.prod(shape)))]


def columns_of(parameters: Columns, lens: Lens = PINHOLE_LENS, colours: int = 3) -> list[Direction]:
    """Columns of a Jacobian: a direction for each number of the groups named, and each direction given."""
    several = [parameters] if isinstance(parameters, (str, Parameters)) else parameters
    if not isinstance(several, (list, tuple)) or not several:
        names = ", ".join((*SMALL_GROUPS, "lens", *MODE_PARAMETERS))
        raise RaymarchError(f"parameters are {describe_value(parameters)}, want some of {names}, or rm.Parameters(...)")
    given = (Parameters, list, tuple)
    return [one for each in several for one in ([each] if isinstance(each, given) else units(each, lens, colours))]


def require_directions(
    dots: Parameters | Sequence[Parameters], volume: Volume, lens: Lens, table: TransferFunction | None
) -> list[Parameters]:
    """Directions of finite numbers in the shapes of the volume, the lens and the table; else RaymarchError."""
    given = [dots] if isinstance(dots, Parameters) else dots
    if not isinstance(given, (list, tuple)) or not all(isinstance(dot, Parameters) for dot in given):
        raise RaymarchError(f"directions are {describe_value(dots)}, want rm.Parameters(...), one or a list")
    shapes = {**shapes_of(volume.colours), "density": volume.shape}
    shapes["colour"] = (*volume.shape, volume.feature_count)
    shapes |= {"lens": (len(lens.names),), "table": (0 if table is None else len(table.values), 4)}
    for dot in given:
        for name, value in vars(dot).items():
            if name == "lens" and value is not None and not lens.names:
                raise RaymarchError(NO_LENS_CURE)
            if name == "table" and value is not None and table is None:
                raise RaymarchError("table: the march has no transfer function; leave it out, or say mode='transfer'")
            if value is not None:
                array(*shapes[name])(name, value)
    return list(given)
