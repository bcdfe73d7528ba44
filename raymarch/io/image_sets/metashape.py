"""Metashape (PhotoScan) cameras: an XML export beside the photographs, or beside their folder."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from raymarch.errors import RaymarchError, first_names, short_value
from raymarch.geometry.lens import Lens
from raymarch.io.files.strict import EXPORT_CURE, finite_number, finite_numbers, read_xml
from raymarch.io.image_sets.calibration import CAMERA_FROM_OPENCV, Calibration, name_errors
from raymarch.io.image_sets.camera_models import brown_lens
from raymarch.io.image_sets.frames import Frame, require_few, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.image_folder import ImageIndex, only_export
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_pose, new_origin

FRAME_MODELS, FISHEYE_MODELS = ("frame",), ("fisheye", "equidistant_fisheye")
MAX_HEAD = 1 << 16  # bytes of an XML file's beginning in which the words are looked for
log = logging.getLogger("raymarch")


class AlignedCamera(NamedTuple):
    """Aligned camera: what its image is called, `world_from_camera` with axes of ours, and its calibration."""

    label: str
    pose: np.ndarray
    calibration: Calibration


def detect(folder: Path) -> bool:
    """Detection: whether the folder has one XML file with sensors and cameras of Metashape."""
    return len(_exports(folder)) == 1


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of a split, sorted by name; every `holdout`-th is "test". Cameras that were not aligned are left out.

    A camera's `transform` is `world_from_camera` with OpenCV's axes; its component, or chunk, says where that lies, and
    its scale divides places, so that lengths stay the project's own. Calibrations are those of a frame or a fisheye,
    `cx` and `cy` from the image's middle; p1 and p2 are OpenCV's p2 and p1. Labels are names of images, with or without
    suffix.

    Raises RaymarchError that names the file, what is wrong and the cure; for spherical and other sensors too, by name.
    """
    source = only_export(folder, _exports(folder), ".xml")
    chunk = _chunk(read_xml(source), source)
    aligned = _aligned_cameras(chunk, source)
    every = [str(each.get("label")) for each in _cameras(chunk)]
    index = ImageIndex(folder, every, source, options.follow_links, [camera.label for camera in aligned])
    poses = [camera.pose for camera in aligned]
    origin = new_origin([pose[:3, 3] for pose in poses], source)
    frames = []
    for camera, pose in zip(aligned, poses, strict=True):
        where = f"{source}, camera {short_value(camera.label)}"
        if (file := index.file(camera.label, where)) is None:
            continue
        frames.append(
            Frame(
                file,
                partial(camera.calibration.camera, moved_pose(pose, origin), where=where),
                size=camera.calibration.size,
            )
        )
    chosen = select_split(frames, options, source)
    return views_of_frames(chosen, folder, source, options, origin=origin)


def _exports(folder: Path) -> list[Path]:
    def is_one(path: Path) -> bool:
        try:
            if not path.is_file():  # a pipe would wait for who writes it
                return False
            with path.open("rb") as file:
                start = file.read(MAX_HEAD)
            return b"<chunk" in start and b"<sensor" in start
        except OSError:
            return False

    return [path for path in sorted(folder.glob("*.xml")) if is_one(path)]


def _chunk(root: Element, source: Path) -> Element:
    chunks = [root] if root.tag == "chunk" else root.findall("chunk")
    if not chunks:
        raise RaymarchError(f"{source}: has no chunk; export cameras as Agisoft XML")

    def aligned(chunk: Element) -> int:
        return sum(each.find("transform") is not None for each in _cameras(chunk))

    best = max(chunks, key=aligned)  # the first of equals
    if len(chunks) > 1:
        others = first_names([f"{each.get('label')} {aligned(each)}" for each in chunks if each is not best])
        message = "%s: of %d chunks that with most aligned cameras is taken, %s with %d (others: %s)"
        log.warning(message, source, len(chunks), best.get("label"), aligned(best), others)
    return best


def _cameras(chunk: Element) -> list[Element]:
    return [each for each in chunk.iter("camera") if each.get("label") is not None]


def _aligned_cameras(chunk: Element, source: Path) -> list[AlignedCamera]:
    sensors = {each.get("id"): each for each in chunk.iter("sensor")}
    cameras = _cameras(chunk)
    require_few(len(cameras), source)
    there = [each for each in cameras if each.find("transform") is not None]
    aligned = len(there)
    off = [each for each in there if (each.get("enabled") or "true").lower() in ("false", "0")]
    if off and len(off) < len(there):
        there = [each for each in there if each not in off]
        disabled = first_names([str(each.get("label")) for each in off])
        log.warning("%s: %d cameras are disabled there and left out (%s)", source, len(off), disabled)
    if any(each.find("rolling_shutter") is not None for each in there):
        log.warning("%s: not read: rolling_shutter (a camera stands where it is written)", source)
    if not there:
        raise RaymarchError(
            f"{source}: none of {len(cameras)} cameras is aligned (has a transform); align them, {EXPORT_CURE}"
        )
    component = Counter(each.get("component_id") for each in there).most_common(1)[0][0]
    chosen = [each for each in there if each.get("component_id") == component]
    for some, why in ((len(cameras) - aligned, "not aligned"), (len(there) - len(chosen), "of smaller components")):
        if some:
            log.warning("%s: %d of %d cameras are %s and left out", source, some, len(cameras), why)
    world = _placement(chunk, component, source)
    calibrations = {
        name: _calibration(sensors.get(name), name, source) for name in {c.get("sensor_id") for c in chosen}
    }
    found = []
    for each in chosen:
        where = f"{source}, camera {short_value(each.get('label'))}: transform"
        pose = (
            world
            @ np.array(finite_numbers(each.findtext("transform") or "", 16, where)).reshape(4, 4)
            @ CAMERA_FROM_OPENCV
        )
        found.append(AlignedCamera(str(each.get("label")), pose, calibrations[each.get("sensor_id")]))
    return found


def _placement(chunk: Element, component: str | None, source: Path) -> np.ndarray:
    """Rigid transform (4, 4) of a component's, or the chunk's, place in the world, in the project's own unit."""
    holders = [each for each in chunk.iterfind("components/component") if each.get("id") == component]
    transforms = [found for each in (*holders, chunk) if (found := each.find("transform")) is not None]
    placed = np.eye(4)
    if transforms:
        where = f"{source}, transform of the chunk"
        if rotation := transforms[0].findtext("rotation"):
            placed[:3, :3] = np.array(finite_numbers(rotation, 9, f"{where}: rotation")).reshape(3, 3)
        if translation := transforms[0].findtext("translation"):
            scale = finite_number((transforms[0].findtext("scale") or "1").strip(), f"{where}: scale")
            if not scale > 0:
                raise RaymarchError(f"{where}: scale is {scale:g}, want a positive number; {EXPORT_CURE}")
            placed[:3, 3] = np.array(finite_numbers(translation, 3, f"{where}: translation")) / scale
    return placed


def _calibration(sensor: Element | None, name: str | None, source: Path) -> Calibration:
    where = f"{source}, sensor {short_value(name)}"
    if sensor is None:
        raise RaymarchError(f"{where}: is not there, but cameras are of it; {EXPORT_CURE}")
    several = sensor.findall("calibration")
    found = next((each for each in several if each.get("class") == "adjusted"), several[0] if several else None)
    kind = (found.get("type") if found is not None else None) or sensor.get("type") or "frame"
    if kind not in FRAME_MODELS + FISHEYE_MODELS:
        known = ", ".join(FRAME_MODELS + FISHEYE_MODELS)
        raise RaymarchError(
            f"{where}: is of type {short_value(kind)}, want {known}; export undistorted photos as a frame"
        )
    if found is None:
        raise RaymarchError(f"{where}: has no calibration; align the photos, then {EXPORT_CURE}")

    def value(key: str) -> float:
        return finite_number((found.findtext(key) or "0").strip(), f"{where}: {key}")

    resolution = found.find("resolution") if found.find("resolution") is not None else sensor.find("resolution")
    sides = {} if resolution is None else dict(resolution.attrib)
    width, height = (finite_number(sides.get(side), f"{where}: {side}") for side in ("width", "height"))
    f = value("f") or value("fx")
    if any(value(key) for key in ("b2", "skew", "p3", "p4")):
        raise RaymarchError(f"{where}: has b2, p3 or p4, which no lens of ours has; optimise without, or undistort")
    focal = f + value("b1"), value("fy") or f
    of_corner = not value("f")  # as PhotoScan before 1.2 wrote them, with fx and fy
    centre = (0.0, 0.0) if of_corner else (width / 2, height / 2)
    principal = centre[0] + value("cx"), centre[1] + value("cy")
    return Calibration(focal, principal, (width, height), _lens(kind, value, where))


def _lens(kind: str, value: Callable[[str], float], where: str) -> Lens:
    *radial, p2, p1 = (value(key) for key in ("k1", "k2", "k3", "k4", "p1", "p2"))
    if kind in FISHEYE_MODELS:
        if p1 or p2:
            raise RaymarchError(f"{where}: a fisheye with p1 or p2, which no lens of ours has; optimise without them")
        with name_errors(where):
            return Lens("fisheye", tuple(radial))
    with name_errors(where):
        return brown_lens(radial, (p1, p2))


METASHAPE = Reader(
    "Metashape", detect, by_options(read), specificity=2
)  # by contents alone: files of this suffix mean many things
