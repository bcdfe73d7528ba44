"""Source of pictures: a volume on the device, or the grid of a running fit."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import Colour
from raymarch.device.brick_grid import grid_for
from raymarch.device.grid import Grid
from raymarch.device.memory import BATCH_RAYS
from raymarch.device.pool import Holder
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.orbit import orbit_of_points, orbit_of_volume
from raymarch.kernels.modes.registry import MODES
from raymarch.rendering.default_look import SCAN_ELEVATION, DefaultLook, default_look, farthest_seen_points
from raymarch.rendering.march_settings import March, require_seen, skip_unseen
from raymarch.viewer.pictures.viewer_camera import Look, Slice
from raymarch.views.views import Views
from raymarch.volumes.default_table import default_table, has_values_alone, range_of
from raymarch.volumes.surface_value import surface_value
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.value_kind import distinct_range, histogram_of
from raymarch.volumes.volume import SHOWN_VOLUME, AnyVolume, Volume

if TYPE_CHECKING:
    from raymarch.fitting.fitter import Fitter

CPU_BATCH_RAYS = 1 << 16  # rays a launch on the CPU, of which a slice of time has fewer


class Source(Holder):
    """Source of pictures; `close` it.

    Attributes:
        volume: as given; None of a fit.
        views: of the image set, or None.
        table, iso: what a look has that names none.
        grows: whether its values go on changing, as of a running fit.
    """

    volume: AnyVolume | None = None
    values = False
    slices = False
    grows = False
    look = Look()
    table: TransferFunction | None = None
    iso: float | None = None
    views: Views | None
    buffer: RayBuffer

    @property
    def grid(self) -> Grid:
        """Samples on the device."""
        raise NotImplementedError

    @property
    def background(self) -> Colour:
        """Colour behind it."""
        raise NotImplementedError

    @property
    def side(self) -> int:
        """Rays along each edge of a pixel of its finest pictures, as of `rm.render`."""
        raise NotImplementedError

    @property
    def modes(self) -> list[str]:
        """Modes that can show the source."""
        raise NotImplementedError

    def require(self, look: Look) -> None:
        """Raise RaymarchError for a look whose mode cannot be shown."""
        raise NotImplementedError

    def require_slice(self, slice: Slice | None) -> None:
        """Raise RaymarchError for a slice if the source has none."""
        if slice is not None and not self.slices:
            raise RaymarchError("slice: this volume has none to show, want one in a box of the world; look at it whole")

    def prepare(self, look: Look) -> March:
        """March of a look. Marks empty space for it; RaymarchError for a look that has no march."""
        raise NotImplementedError


def _rays() -> int:
    runtime.start()
    return CPU_BATCH_RAYS if runtime.runs_on_cpu() else BATCH_RAYS


class VolumeSource(Source):
    """Volume on the device. Its first look is `begin`, or else that of `default_look`.

    Attributes:
        begin: the look to begin with, and from where.
        planes: clipping planes that stay, whatever box a page clips to.
    """

    def __init__(
        self,
        volume: AnyVolume,
        views: Views | None = None,
        begin: DefaultLook | None = None,
        window: tuple[float, float] | None = None,
    ) -> None:
        self.seen: Volume = SHOWN_VOLUME("volume", volume)
        volume = volume if getattr(volume, "is_colour", True) else self.seen
        self.volume, self.views = volume, views
        self.begin = begin = begin or default_look(volume)
        march, kind = begin.march, begin.kind
        self._side = march.supersample or 1
        self.values = has_values_alone(self.seen)
        self.table = march.transfer or self._own_table()
        self.iso = surface_value(self.seen, kind) if march.iso is None else march.iso
        mode = march.mode if self.seen.boxes == 1 else self.modes[0]  # through nested boxes there is no table
        self.planes = () if march.clip is None else march.clip.planes
        box = None if march.clip is None or march.clip.box is None else Clip(march.clip.box)
        lit = march.shading is not None or march.iso is not None
        behind = begin.background if tuple(begin.background) != tuple(self.seen.background) else None
        about: dict[str, Any] = {"clip": box, "shading": lit, "window": window, "background": behind}
        self.look = Look(mode=mode, step=march.step, table=self.table, iso=self.iso, **about)  # type: ignore[arg-type]
        self.slices = self.seen.boxes == 1 and self.seen.ndc_from_world is None
        self._marked: Any = None
        self._fresh = True
        with ExitStack() as owners:
            self.buffer = owners.enter_context(RayBuffer(_rays()))
            self._grid = owners.enter_context(grid_for(self.seen, seen=True))
            self._grid.upload(self.seen)
            self._owners = owners.pop_all()

    def _own_table(self) -> TransferFunction | None:
        try:
            return default_table(self.seen, None if self.values else "viridis")
        except RaymarchError:  # one value, or hardly told apart
            return None

    @property
    def grid(self) -> Grid:
        return self._grid

    @property
    def background(self) -> Colour:
        return self.seen.background

    @property
    def side(self) -> int:
        return self._side

    @property
    def modes(self) -> list[str]:
        """Modes that show such a volume."""
        shown = []
        for name, rule in MODES.items():
            own = {"transfer": self.table} if rule.classifies else {"iso": self.iso} if rule.parameters else {}
            try:
                require_seen(self.seen, March(mode=name, **own))  # type: ignore[arg-type]
                shown.append(name)
            except RaymarchError:
                continue
        return shown

    @cached_property
    def range(self) -> tuple[float, float]:
        """Least and greatest value, one over the other."""
        return distinct_range(*range_of(self.seen))

    @property
    def window(self) -> tuple[float, float]:
        """Values shown as black and white in a slice: the window of the kind of values, else their range."""
        kind = self.begin.kind
        return self.range if kind is None or not kind.ground < kind.top else (kind.ground, kind.top)

    def require(self, look: Look) -> None:
        require_seen(self.seen, look.march(self.table, self.iso))

    def prepare(self, look: Look) -> March:
        march = look.march(self.table, self.iso)
        if self.planes:
            march = replace(march, clip=Clip(None if look.clip is None else look.clip.box, self.planes))
        key = march.rule, march.transfer, march.iso, march.preintegrated and march.step
        if key != self._marked:
            require_seen(self.seen, march)
            self._marked = None
            if march.rule.classifies or march.rule.parameters or (march.rule.ends and not self._signed):
                skip_unseen(self._grid, self.seen, march)
            elif not self._fresh:  # what another mode left out may be seen in this one
                self._grid.occupy(np.ones(self._grid.cells, bool))
                self._grid.measure_occupancy()
            self._marked, self._fresh = key, False
        return march

    @property
    def _signed(self) -> bool:
        return self.seen.activation.density_rule.signed


class FitSource(Source):
    """Grid of a running fit, in the fit's own mode. Drawing changes nothing that the fit reads or writes."""

    grows = True

    def __init__(self, fitter: Fitter) -> None:
        self.fitter, self.views = fitter, fitter.views
        self.table, self.iso = fitter.march.transfer, fitter.march.iso
        name = fitter.march.mode if isinstance(fitter.march.mode, str) else fitter.march.rule.name
        self.look = Look(step=fitter.march.step, table=self.table, iso=self.iso)
        self._name, self._rule = name, fitter.march
        if name in MODES:
            self.look = self.look.changed({"mode": name})
        with ExitStack() as owners:
            self.buffer = owners.enter_context(RayBuffer(_rays()))
            self._owners = owners.pop_all()

    @property
    def grid(self) -> Grid:
        return self.fitter.grid

    @property
    def background(self) -> Colour:
        return self.fitter.photometry.background

    @property
    def side(self) -> int:
        return self.fitter.side

    @property
    def modes(self) -> list[str]:
        """Modes that show such a fit: its own."""
        return [self._name]

    def require(self, look: Look) -> None:
        if look.mode != self.look.mode:
            raise RaymarchError(f"mode is {look.mode}, but a running fit shows itself in {self._name} alone; keep that")

    def prepare(self, look: Look) -> March:
        return replace(self._rule, step=look.step, clip=look.clip or self._rule.clip)


# The description of a scene for pages: the volume's box, units, histogram and modes, and the set's cameras.

HISTOGRAM_BINS = 128
MAX_HISTOGRAM_VALUES = 1 << 21  # values that a histogram looks at
DEFAULT_FOV = 40.0  # degrees
MAX_CAMERAS = 2000


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
        "camera": start_camera(box, source.views) if fit else start_of(source),  # type: ignore[arg-type]
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
    """Description of a mode for a page."""
    from raymarch.kernels.integrator.passes import passes_of

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
    stride = max(math.ceil((math.prod(volume.shape) / MAX_HISTOGRAM_VALUES) ** (1 / 3)), 1)
    raw = volume.at(np.ix_(*(np.arange(0, n, stride) for n in volume.shape)))[0]
    values = volume.activation.sigma(raw)
    counts, edges = histogram_of(values, HISTOGRAM_BINS, *distinct_range(float(values.min()), float(values.max())))
    return edges.tolist(), counts.tolist()


def start_of(source: VolumeSource) -> dict[str, Any]:
    """First camera of a volume of values: it shows the visible part from the front."""
    begin, box = source.begin, np.asarray(source.seen.box)
    if source.views is not None or begin.front is None:
        return {**start_camera(box, source.views), **({} if source.views is not None else {"up": list(begin.up)})}
    points = farthest_seen_points(source.seen, begin.march, begin.march.clip)
    how: dict[str, Any] = {"fov": math.radians(DEFAULT_FOV), "up": begin.up, "front": begin.front}
    camera = orbit_of_points(points, 1, SCAN_ELEVATION, **how)[0]
    return {
        "position": camera.position.tolist(),
        "target": ((points.min(0) + points.max(0)) / 2).tolist(),
        "up": list(begin.up),
        "fov": DEFAULT_FOV,
        "orthographic": False,
    }


def start_camera(box: np.ndarray, views: Views | None) -> dict[str, Any]:
    """First camera: it shows all of a box, from the position of the first view if there are views."""
    if views is not None:
        return _start_at_view(views.cameras[0], box)
    camera = orbit_of_volume(box, 8, elevation=25.0, fov=math.radians(DEFAULT_FOV))[5]
    return {
        "position": camera.position.tolist(),
        "target": box.mean(0).tolist(),
        "up": [0.0, 0.0, 1.0],
        "fov": DEFAULT_FOV,
        "orthographic": False,
    }


def _start_at_view(camera: Camera, box: np.ndarray) -> dict[str, Any]:
    """First camera at a view's position. It turns about the point of the view's axis nearest to the box's middle."""
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
    for name, camera in list(zip(views.names, views.cameras, strict=True))[:MAX_CAMERAS]:
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
