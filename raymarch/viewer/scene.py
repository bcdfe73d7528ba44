"""Scene as pages are told of it: the volume's box, units, histogram and modes, the image set's cameras."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from raymarch.data.value_contents import apart, histogram_of
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit_of_points, orbit_of_volume
from raymarch.kernels.march.modes import MODES
from raymarch.rendering.default_look import ELEVATION, seen_points
from raymarch.viewer.pictures.source import FitSource, Source, VolumeSource
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

BINS = 128
FEW = 1 << 21  # values that a histogram looks at
FOV = 40.0  # degrees
MOST_CAMERAS = 2000


def scene_of(source: Source, name: str) -> dict[str, Any]:
    """Message that describes what a source shows."""
    fit = isinstance(source, FitSource)
    box = np.asarray(source.fitter.box if isinstance(source, FitSource) else source.seen.box)  # type: ignore[attr-defined]
    volume = source.volume
    edges, counts = ([0.0, 1.0], [0]) if fit else histogram(source.seen)  # type: ignore[attr-defined]
    return {
        "type": "scene",
        "name": name or getattr(volume, "name", ""),
        "shape": list(map(int, source.grid.shape if fit else source.seen.box_shape)),  # type: ignore[attr-defined]
        "box": box.tolist(),
        "unit": getattr(volume, "length_unit", ""),
        "value_unit": getattr(volume, "unit", ""),
        "values": source.values,  # type: ignore[attr-defined]
        "modes": [_mode(each) for each in source.modes],  # type: ignore[attr-defined]
        "histogram": None if fit else {"edges": edges, "counts": counts},
        "range": [edges[0], edges[-1]],
        "look": source.look.record(),  # type: ignore[attr-defined]
        "camera": start(box, source.views) if fit else start_of(source),  # type: ignore[arg-type]
        "cameras": cameras_of(source.views),
        "slices": isinstance(source, VolumeSource) and source.slices,
        "fit": fit,
        "video": has_video(),
    }


def has_video() -> bool:
    """Whether clips can be written."""
    import importlib.util

    return importlib.util.find_spec("av") is not None


def _mode(name: str) -> dict[str, Any]:
    """Mode as a page needs to know it."""
    from raymarch.kernels.march.passes import passes_of

    rule = MODES.get(name)
    if rule is None:  # one of the user's own
        return {"name": name, "table": False, "iso": False, "values": False, "shading": False, "normals": False}
    return {
        "name": name,
        "table": rule.classifies,
        "iso": "iso" in rule.parameters,
        "values": not rule.background,
        "shading": rule.classifies or "iso" in rule.parameters,
        "normals": bool(passes_of(rule).normals),
    }


def histogram(volume: Volume) -> tuple[list[float], list[int]]:
    """Edges and counts of the values of a volume, of every so many of them where they are many.

    Example:
        >>> edges, counts = histogram(Volume(np.arange(64.0).reshape(4, 4, 4), np.zeros((4, 4, 4, 3)), np.eye(4)))
        >>> len(edges), edges[-1], sum(counts)
        (129, 63.0, 64)
    """
    stride = max(math.ceil((math.prod(volume.shape) / FEW) ** (1 / 3)), 1)
    raw = volume.at(np.ix_(*(np.arange(0, n, stride) for n in volume.shape)))[0]
    values = volume.activation.sigma(raw)
    counts, edges = histogram_of(values, BINS, *apart(float(values.min()), float(values.max())))
    return edges.tolist(), counts.tolist()


def start_of(source: VolumeSource) -> dict[str, Any]:
    """Camera to begin with: what is seen of a volume of values in sight, from its front."""
    begin, box = source.begin, np.asarray(source.seen.box)
    if source.views is not None or begin.front is None:
        return {**start(box, source.views), **({} if source.views is not None else {"up": list(begin.up)})}
    points = seen_points(source.seen, begin.march, begin.march.clip)
    how: dict[str, Any] = {"fov": math.radians(FOV), "up": begin.up, "front": begin.front}
    camera = orbit_of_points(points, 1, ELEVATION, **how)[0]
    return {
        "position": camera.position.tolist(),
        "target": ((points.min(0) + points.max(0)) / 2).tolist(),
        "up": list(begin.up),
        "fov": FOV,
        "orthographic": False,
    }


def start(box: np.ndarray, views: Views | None) -> dict[str, Any]:
    """Camera to begin with: all of a box in sight; with views, from where the first of them is."""
    if views is not None:
        return _seen_by(views.cameras[0], box)
    camera = orbit_of_volume(box, 8, elevation=25.0, fov=math.radians(FOV))[5]
    return {
        "position": camera.position.tolist(),
        "target": box.mean(0).tolist(),
        "up": [0.0, 0.0, 1.0],
        "fov": FOV,
        "orthographic": False,
    }


def _seen_by(camera: Camera, box: np.ndarray) -> dict[str, Any]:
    """Start at a view's place, turning about what it looks at: where its axis passes the middle of the box."""
    forward, up = -camera.world_from_camera[:3, 2], camera.world_from_camera[:3, 1]
    away = float((box.mean(0) - camera.position) @ forward)
    away = away if away > 0 else float(np.linalg.norm(np.ptp(box, axis=0)))
    target = camera.position + away * forward
    return {
        "position": camera.position.tolist(),
        "target": target.tolist(),
        "up": up.tolist(),
        "fov": _fov(camera, away),
        "orthographic": camera.lens.parallel,
    }


def _fov(camera: Camera, away: float) -> float:
    """Horizontal field of view [degree]; of parallel rays that of a camera which sees as much so far ahead."""
    half = 0.5 * camera.width / camera.focal[0]
    return math.degrees(2 * math.atan(half / away if camera.lens.parallel else half))


def cameras_of(views: Views | None) -> list[dict[str, Any]]:
    """Cameras of an image set, the first of very many; of parallel rays they see as much as `fov` one unit ahead."""
    if views is None:
        return []
    found = []
    for name, camera in list(zip(views.names, views.cameras, strict=True))[:MOST_CAMERAS]:
        turn = camera.world_from_camera[:3, :3]
        found.append(
            {
                "name": name,
                "position": camera.position.tolist(),
                "forward": (-turn[:, 2]).tolist(),
                "up": turn[:, 1].tolist(),
                "right": turn[:, 0].tolist(),
                "fov": _fov(camera, 1.0),
                "orthographic": camera.lens.parallel,
                "aspect": camera.width / camera.height,
                "width": camera.width,
                "height": camera.height,
                "split": "",
            }
        )
    return found
