"""Reading of an image set from one HDF5 file: the views of a split, while the digest of all is taken."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from raymarch.device.memory import require_images
from raymarch.errors import RaymarchError, first_names, short_value
from raymarch.geometry.camera import Camera
from raymarch.io.files.hdf5 import RESTORE_CURE, digest_of, open_hdf5
from raymarch.io.image_sets.hdf5.layout import (
    DATASETS,
    DEPTH_DATASET,
    FORMAT,
    OPTIONAL_DATASETS,
    PIXEL_DATASETS,
    VERSION,
    camera_of,
    channels_in,
    check_record,
    check_tables,
    colours_of,
    notes_of,
)
from raymarch.io.image_sets.read_options import ReadOptions
from raymarch.views.image_arrays import gather_images
from raymarch.views.resize import shrink, shrink_channels, shrink_mask
from raymarch.views.views import Views, require_colour
from raymarch.views.world_origin import moved_box, moved_points, new_origin
from raymarch.volumes.samples import ALPHA

BLOCK_BYTES = 1 << 24  # bytes that are read, and digested, at a time


def splits_of(path: Path) -> tuple[str, ...]:
    """Names of the splits of a file."""
    with open_hdf5(path, FORMAT, VERSION, DATASETS, optional=OPTIONAL_DATASETS) as file:
        return tuple(_opened_record(file, path)[1]["splits"])


def sources_of(path: Path) -> dict[str, str]:
    """Where the views of each split of a file came from when it was written."""
    with open_hdf5(path, FORMAT, VERSION, DATASETS, optional=OPTIONAL_DATASETS) as file:
        return {name: split["source"] for name, split in _opened_record(file, path)[1]["splits"].items()}


def views_of(path: Path, options: ReadOptions) -> Views:
    """Views of a split, "all" for every view once; RaymarchError as of `image_set.read`."""
    with open_hdf5(path, FORMAT, VERSION, DATASETS, optional=OPTIONAL_DATASETS) as file:
        tables, record = _opened_record(file, path)
        chosen = _split_views(record["splits"], options.split, len(tables["sizes"]), path)
        origin = new_origin(tables["world_from_camera"][:, :3, 3], path)
        cameras = {i: _camera(tables, record, i, path, origin) for i in set(chosen["views"])}
        less = options.downscale
        small = {i: camera if less == 1 else camera.scaled(1 / less) for i, camera in cameras.items()}
        _require_room([small[i] for i in chosen["views"]], tables["sizes"][chosen["views"]], path, options.for_fit)
        names = channels_in(file, path)
        images, masks, depths = _pixels(file, tables, small, path, names)
        views, points, box = chosen["views"], chosen.get("points"), chosen.get("box")
        return Views(
            [small[i] for i in views],
            gather_images([images[i] for i in views]),
            _names(record, views),
            chosen["background"] if names else require_colour(chosen["background"]),
            str(path),
            masks=[masks.get(i) for i in views],
            points=moved_points(tables["points"][slice(*points)], origin) if points else None,
            box=moved_box(np.array(box, float).reshape(2, 3), origin, path) if box else None,
            origin=_origin(chosen.get("origin"), origin),
            bounds=_bounds(chosen),
            depths=_scaled([depths.get(i) for i in views], options.depth_unit) if options.depths else None,
            sightings=_sightings(tables, views, points) if options.depths else None,
            channels=names,
        )


def _opened_record(file: h5py.File, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    tables = check_tables(file, path)
    text = file["record"][()]
    colours = colours_of(channels_in(file, path))
    return tables, check_record(bytes(text), len(tables["sizes"]), len(tables["points"]), path, colours)


def _split_views(splits: dict[str, dict], split: str, count: int, path: Path) -> dict[str, Any]:
    if split in splits:
        return splits[split]
    if split == "all":
        first: dict[str, Any] = next(iter(splits.values()))
        bounds: dict[int, np.ndarray] = {}
        for one in splits.values():
            bounds |= dict(zip(one["views"], np.reshape(one.get("bounds") or [], (-1, 2)), strict=False))
        every = [bounds[i] for i in range(count)] if len(bounds) == count else None
        return {**first, "views": list(range(count)), "bounds": every}
    have = first_names(list(splits))
    raise RaymarchError(f"{path}: there is no split {short_value(split)}, it has {have} and all; choose one")


def _bounds(split: dict[str, Any]) -> np.ndarray | None:
    """Near and far planes (view, 2) of a split's views, where it has them."""
    return None if split.get("bounds") is None else np.reshape(split["bounds"], (-1, 2)).astype(float)


def _scaled(depths: Sequence[np.ndarray | None], unit: float | None) -> Sequence[np.ndarray | None]:
    """Depth images in steps of a unit, of world units if not given."""
    return depths if unit is None else [None if depth is None else depth * np.float32(unit) for depth in depths]


def _sightings(tables: dict[str, np.ndarray], views: Sequence[int], points: Sequence[int] | None) -> np.ndarray | None:
    """Sightings (sighting, 2) of views, by their rows in the file, and of the points from a row to another."""
    if points is None or "sightings" not in tables:
        return None
    first, end = points
    of_view, row = tables["sightings"].T
    there = (row >= first) & (row < end)
    several = [row[there & (of_view == i)] - first for i in views]
    return np.stack([np.repeat(np.arange(len(views)), [len(one) for one in several]), np.concatenate(several)], axis=1)


def _names(record: dict[str, Any], views: Sequence[int]) -> list[str]:
    """Names of views, after those of their splits where two views of several splits have one name."""
    names = [record["names"][i] for i in views]
    if len(set(names)) == len(names):
        return names
    split_of = {i: name for name, split in reversed(record["splits"].items()) for i in split["views"]}
    whole = [f"{split_of[i]}_{name}" if i in split_of else name for i, name in zip(views, names, strict=True)]
    return whole if len(set(whole)) > len(set(names)) else names


def _camera(
    tables: dict[str, np.ndarray], record: dict[str, Any], i: int, path: Path, origin: np.ndarray | None
) -> Camera:
    try:
        return camera_of(tables, record["lenses"][i], i, origin)
    except RaymarchError as error:
        raise RaymarchError(f"{path}, view {i}: {error}; {RESTORE_CURE}") from None


def _origin(told: list[float] | None, moved: np.ndarray | None) -> tuple[float, float, float] | None:
    """Origin of the views' world in the coordinates of the set that the file was made from."""
    if told is None and moved is None:
        return None
    x, y, z = ((np.zeros(3) if told is None else np.array(told)) + (0 if moved is None else moved)).tolist()
    return x, y, z


def _require_room(cameras: Sequence[Camera], full: np.ndarray, path: Path, for_fit: bool) -> None:
    channels = set(full[:, 2].tolist())
    if len(channels) > 1:
        raise RaymarchError(f"{path}: some images have alpha and some none; choose a split where all are alike")
    pixels = sum(camera.width * camera.height for camera in cameras)
    numbers = channels.pop()
    held = pixels * (numbers + 1) if numbers in (3, 4) else 4 * pixels * (numbers + 1)
    needed = held + 30 * int(full[:, :2].prod(axis=1).max())
    cure = "take fewer or smaller ones" + (", or for_fit=False where they are not to be fitted" if for_fit else "")
    require_images(f"{path}: its {len(cameras)} images", pixels, cure, held=needed, stored=4 * pixels * for_fit)


def _pixels(
    file: h5py.File,
    tables: dict[str, np.ndarray],
    cameras: dict[int, Camera],
    path: Path,
    names: tuple[str, ...] = (),
) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray], dict[int, np.ndarray]]:
    """Images and masks of views, each as large as its camera, and depth images as they are, once all of the file is
    what its digest says."""
    notes = notes_of(file)
    told = notes.pop(("/", "digest"), np.array(b"")).tolist()
    parts = {name: _part(array, hashlib.sha256(array.tobytes()).hexdigest()) for name, array in tables.items()}
    record = np.asarray(file["record"][()], file["record"].dtype)
    parts["record"] = _part(record, hashlib.sha256(record.tobytes()).hexdigest())
    found: dict[str, dict[int, np.ndarray]] = {"images": {}, "masks": {}}
    for name in PIXEL_DATASETS:
        seen, at = hashlib.sha256(), 0
        for i, (width, height, channels, masked) in enumerate(tables["sizes"].tolist()):
            depth = channels if name == "images" else masked
            floats = bool(names) and name == "images"
            size = width * height * depth * (4 if floats else 1)
            wanted = i in cameras and size > 0
            kept = np.empty(size if wanted else 0, np.uint8)
            for first in range(0, size, BLOCK_BYTES):
                block = file[name][at + first : at + min(first + BLOCK_BYTES, size)]
                seen.update(block.tobytes())
                if wanted:
                    kept[first : first + len(block)] = block
            at += size
            if wanted:
                if floats:
                    image, (wide, high) = (
                        kept.view("<f4").reshape(height, width, depth),
                        (cameras[i].width, cameras[i].height),
                    )
                    found[name][i] = shrink_channels(image.astype(np.float32), wide, high, names[-1] == ALPHA)
                else:
                    found[name][i] = _shape_pixels(kept.reshape(height, width, depth), cameras[i])
        parts[name] = _part(file[name], seen.hexdigest())
    depths = {}
    if DEPTH_DATASET in file:
        numbers = np.asarray(file[DEPTH_DATASET][()], "<f4")
        parts[DEPTH_DATASET] = _part(file[DEPTH_DATASET], hashlib.sha256(numbers.tobytes()).hexdigest())
        ends = np.cumsum(tables["depth_sizes"].prod(axis=1))
        for i, (width, height) in enumerate(tables["depth_sizes"].tolist()):
            if i in cameras and width * height:
                depths[i] = numbers[ends[i] - width * height : ends[i]].reshape(height, width)
    if told != digest_of(parts, notes):
        raise RaymarchError(f"{path}: its content is not what its digest says, so it was altered; {RESTORE_CURE}")
    return found["images"], found["masks"], depths


def _shape_pixels(pixels: np.ndarray, camera: Camera) -> np.ndarray:
    """Image, or mask where there is one channel, as large as its camera."""
    if pixels.shape[2] > 1:
        return shrink(pixels, camera.width, camera.height)
    mask = pixels[..., 0] > 0
    return mask if mask.shape == (camera.height, camera.width) else shrink_mask(mask, camera.width, camera.height)


def _part(array: np.ndarray | h5py.Dataset, digest: str) -> tuple[str, list[int], str]:
    return array.dtype.str, list(array.shape), digest
