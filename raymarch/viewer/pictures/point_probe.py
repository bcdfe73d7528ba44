"""Value under the pointer. The ray of one pixel is followed on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from raymarch.arguments.checks import number, whole
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.rays import Rays
from raymarch.kernels.modes.registry import MODES
from raymarch.viewer.pictures.picture_source import Source, VolumeSource
from raymarch.viewer.pictures.slice_picture import sample_volume, slice_point
from raymarch.viewer.pictures.viewer_camera import MAX_SIDE, Look, ViewerCamera
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

ProbeValue: TypeAlias = "tuple[str, float, float | None, np.ndarray | None] | None"  # name, value, distance, place
PIXEL, NUMBER = number(0, MAX_SIDE), whole(0, 2**53)
SAMPLES_A_CELL = 3  # samples of a ray in each cell that it crosses
MAX_SAMPLES = 6000
MIN_OPACITY = 0.01  # opacity under which a ray has met nothing, as of `Rendering.depth`


def probe(
    source: Source, eye: ViewerCamera | None, camera: Camera | None, look: Look, message: Mapping[str, Any]
) -> dict:
    """Message that answers a page's question what lies at a pixel: a value, or None where nothing is met.

    `what` names the value: "value" at a slice, or where half of what a ray sees of the volume lies before it;
    "extinction" there, of a volume that has colours; "surface"; "maximum", "minimum", "average" or "integral" along the
    ray. `point` is its place in the world and `depth` its distance from the camera, None where it has none.
    """
    if eye is None:
        raise RaymarchError("probe: no camera was said yet; look at something first")
    x, y = (PIXEL(f"probe: {name}", message.get(name)) for name in ("x", "y"))
    answer: dict[str, Any] = {"type": "probe", "id": NUMBER("probe: id", message.get("id", 0)), "value": None}
    answer |= {"what": "value", "unit": "", "point": None, "depth": None}
    if not isinstance(source, VolumeSource) or not source.slices or (camera is None and look.slice is None):
        return answer  # a running fit, nested boxes, NDC: nothing on the host is what is seen
    volume = source.seen
    if look.slice is not None:
        point = slice_point(source, look, eye.width, eye.height, x, y)
        values, inside = sample_volume(volume, point[None])
        found: ProbeValue = ("value", float(values[0]), None, point) if inside[0] else None
    else:
        assert camera is not None
        column, row = min(int(x), camera.width - 1), min(int(y), camera.height - 1)
        found = _meet(source, look, camera.rays([row * camera.width + column]))
    if found is None:
        return answer
    what, value, depth, where = found
    unit = getattr(source.volume, "unit", "") if source.values else ""
    if not np.isfinite(value):
        return answer
    place = None if where is None else [float(each) for each in where]
    return answer | {"what": what, "value": value, "unit": unit, "point": place, "depth": depth}


def _meet(source: VolumeSource, look: Look, ray: Rays) -> ProbeValue:
    """Name, value, distance and position of what a ray meets in a mode; None if it meets nothing."""
    volume, rule = source.seen, MODES[look.mode]
    ends = _segment(volume, look, ray)
    if ends is None:
        return None
    near, far, cells = ends
    count = min(max(int(SAMPLES_A_CELL * cells) + 2, 8), MAX_SAMPLES)
    along = np.linspace(near, far, count)
    points = ray.origin + along[:, None] * ray.direction
    values, inside = sample_volume(volume, points)
    if not inside.any():
        return None
    along, points, values = along[inside], points[inside], values[inside]
    step = (far - near) / (count - 1)
    if look.mode in ("maximum", "minimum"):
        i = int(values.argmax() if look.mode == "maximum" else values.argmin())
        return look.mode, float(values[i]), float(along[i]), points[i]
    if look.mode == "average":
        return "average", float(values.mean()), None, None
    if look.mode.startswith("x-ray"):
        return "integral", float(values.sum() * step), None, None
    if "iso" in rule.parameters:
        return _surface(source.iso if look.iso is None else look.iso, along, values, ray)
    half = _half_light_index(look.table or source.table if rule.classifies else None, values, step)
    if half is None:
        return None
    return "value" if source.values else "extinction", float(values[half]), float(along[half]), points[half]


def _segment(volume: Volume, look: Look, ray: Rays) -> tuple[float, float, float] | None:
    """Near and far end of a ray in the clipped volume, and the number of cells between; None if it misses."""
    index_from_world = np.linalg.inv(volume.world_from_index)
    start = (index_from_world[:3, :3] @ ray.origin[0]) + index_from_world[:3, 3]
    way = index_from_world[:3, :3] @ ray.direction[0]
    most = np.array(volume.shape) - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        crossed = np.sort(np.stack([-start / way, (most - start) / way]), axis=0)
    still = way == 0
    if (still & ((start < 0) | (start > most))).any():
        return None
    near = max(crossed[0][~still].max(), 0.0)
    far = crossed[1][~still].min()
    if look.clip is not None:
        first, last = look.clip.cut(ray)
        near, far = max(near, float(first[0])), min(far, float(last[0]))
    if not near < far:
        return None
    return float(near), float(far), float(np.abs(way).max() * (far - near))


def _surface(
    iso: float | None, along: np.ndarray, values: np.ndarray, ray: Rays
) -> tuple[str, float, float, np.ndarray] | None:
    """Distance at which a ray first crosses a value."""
    if iso is None:
        return None
    over = values >= iso
    crossings = np.flatnonzero(over[1:] != over[:-1])
    if over[0]:
        depth = float(along[0])
    elif crossings.size:
        i = int(crossings[0])
        depth = float(along[i] + (along[i + 1] - along[i]) * (iso - values[i]) / (values[i + 1] - values[i]))
    else:
        return None
    return "surface", float(iso), depth, ray.origin[0] + depth * ray.direction[0]


def _half_light_index(table: TransferFunction | None, values: np.ndarray, step: float) -> int | None:
    """Index of the sample by which a ray has collected half of its opacity; None if it has none."""
    sigma = np.maximum(values, 0.0) if table is None else table.sigma(values)
    seen = 1 - np.exp(-np.cumsum(sigma * step))
    return None if seen[-1] < MIN_OPACITY else int(np.argmax(seen >= 0.5 * seen[-1]))
