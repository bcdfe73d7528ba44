"""Layout of an image set in one HDF5 file: its tables, and the checks of them; docs/image-sets.md describes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError, short_value
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import MODELS, Lens
from raymarch.io.files.hdf5 import DAMAGE_ERRORS, RESTORE_CURE, attributes
from raymarch.io.files.strict import parse_record
from raymarch.io.image_sets.frames import require_few
from raymarch.io.image_sets.json_values import read_number
from raymarch.views.world_origin import moved_pose
from raymarch.volumes.samples import ALPHA, CHANNEL_NAMES

FORMAT = "raymarch-images"
PLAIN_VERSION, VERSION = 1, 2  # of colours in 8 bits; of channels in 32-bit floats
CHANNELS_NOTE = ("images", "channels")  # their names with commas between; of colours there is none
MAX_COEFFICIENTS = 8
TABLES = {  # a row a view, but for points; and the shape and type of a row
    "sizes": ((4,), "<i8"),
    "world_from_camera": ((4, 4), "<f8"),
    "focal": ((2,), "<f8"),
    "principal": ((2,), "<f8"),
    "lens": ((MAX_COEFFICIENTS,), "<f8"),
    "points": ((3,), "<f8"),
}
PIXEL_DATASETS = ("images", "masks")  # of all views, one behind the other
DATASETS = (*TABLES, *PIXEL_DATASETS, "record")
# Of sets that have depth images, or say which view sees which point.
DEPTH_DATASET = "depths"  # distances along rays of all views, one behind the other
OPTIONAL_TABLES = {"depth_sizes": ((2,), "<i8"), "sightings": ((2,), "<i8")}  # width, height; view, row of points
OPTIONAL_DATASETS = (*OPTIONAL_TABLES, DEPTH_DATASET)
MAX_NAME = 1000  # letters of a view's name
MAX_RECORD = 16 << 20  # bytes of its text
MAX_SPLITS = 1000
MAX_PIXELS = 1 << 26  # of an image, as of one that is decoded


def is_image_set(path: Path) -> bool:
    """Whether an HDF5 file says that it is an image set of raymarch's, of whatever version."""
    try:
        with h5py.File(path, "r") as file:
            return file.attrs.get("format") in (FORMAT, FORMAT.encode())
    except DAMAGE_ERRORS:
        return False


def notes_of(file: h5py.File) -> dict[tuple[str, str], np.ndarray]:
    """All attributes by owner and name."""
    owners = ("/", *DATASETS, *(name for name in OPTIONAL_DATASETS if name in file))
    return {(owner, name): value for owner in owners for name, value in attributes(file[owner]).items()}


def channels_in(file: h5py.File, path: object) -> tuple[str, ...]:
    """Names of the channels of a file's images, none of colours; RaymarchError for what are none."""
    owner, name = CHANNELS_NOTE
    note = attributes(file[owner]).get(name)
    if note is None:
        return ()
    if note.shape != () or note.dtype.kind != "S":
        raise RaymarchError(f"{path}: attribute {name} of {owner} is {note.dtype}, want one text; {RESTORE_CURE}")
    return CHANNEL_NAMES(
        f"{path}: attribute {name} of {owner}", tuple(note.tolist().decode(errors="replace").split(","))
    )


def check_tables(file: h5py.File, path: object) -> dict[str, np.ndarray]:
    """Tables of a file once their shapes, types and sizes of images are those of the layout; else RaymarchError."""
    count = file["sizes"].shape[0] if file["sizes"].shape else 0
    require_few(count, path)  # type: ignore[arg-type]
    for name, (row, kind) in TABLES.items():
        dataset = file[name]
        rows = dataset.shape[:1] if name == "points" else (count,)
        if dataset.dtype.str != kind or dataset.shape != rows + row or not count:
            want = f"{np.dtype(kind)} {('view', *row)}"
            raise RaymarchError(f"{path}: {name} is {dataset.dtype} {dataset.shape}, want {want}; {RESTORE_CURE}")
    tables = {name: np.asarray(file[name][()]) for name in TABLES}
    width, height, channels, masked = tables["sizes"].T
    plain = (width >= 1) & (height >= 1) & (width <= MAX_PIXELS) & (height <= MAX_PIXELS)
    names = channels_in(file, path)
    depths, width_of_number = ((len(names),), 4) if names else ((3, 4), 1)
    plain &= (width * np.where(plain, height, 0) <= MAX_PIXELS) & np.isin(channels, depths) & np.isin(masked, (0, 1))
    if not plain.all():
        row = tables["sizes"][np.argmin(plain)].tolist()
        wanted = " or ".join(map(str, depths))
        raise RaymarchError(f"{path}: sizes have {row}, want width, height, {wanted}, 0 or 1; {RESTORE_CURE}")
    for name, sizes in (("images", width * height * channels * width_of_number), ("masks", width * height * masked)):
        dataset = file[name]
        if dataset.dtype.str != "|u1" or dataset.shape != (sizes.sum(),):
            raise RaymarchError(
                f"{path}: {name} is {dataset.dtype} {dataset.shape}, want {sizes.sum()} bytes; {RESTORE_CURE}"
            )
    tables |= _optional_tables(file, count, len(tables["points"]), path)
    if file["record"].shape != () or file["record"].dtype.kind != "S":
        raise RaymarchError(f"{path}: record is {file['record'].dtype}, want one text; {RESTORE_CURE}")
    if file["record"].dtype.itemsize > MAX_RECORD:
        raise RaymarchError(f"{path}: record is over {MAX_RECORD:,} bytes long; split the set")
    return tables


def _optional_tables(file: h5py.File, count: int, points: int, path: object) -> dict[str, np.ndarray]:
    """Tables that a file may have besides, once they and the depths are what the layout says; else RaymarchError."""
    tables = {}
    for name, (row, kind) in OPTIONAL_TABLES.items():
        if name in file:
            dataset = file[name]
            rows = (count,) if name == "depth_sizes" else dataset.shape[:1]
            if dataset.dtype.str != kind or dataset.shape != rows + row:
                want = f"{np.dtype(kind)} {('view', *row)}"
                raise RaymarchError(f"{path}: {name} is {dataset.dtype} {dataset.shape}, want {want}; {RESTORE_CURE}")
            tables[name] = np.asarray(dataset[()])
    sightings = tables.get("sightings", np.zeros((0, 2), int))
    if len(sightings) and (sightings.min() < 0 or (sightings.max(0) >= (count, points)).any()):
        raise RaymarchError(f"{path}: sightings have rows beyond {count} views and {points} points; {RESTORE_CURE}")
    width, height = tables.get("depth_sizes", np.zeros((0, 2), int)).T
    plain = (width >= 0) & (height >= 0) & (width <= MAX_PIXELS) & (height <= MAX_PIXELS)
    plain &= width * np.where(plain, height, 0) <= MAX_PIXELS
    if not plain.all() or (DEPTH_DATASET in file) != ("depth_sizes" in file):
        raise RaymarchError(f"{path}: depth_sizes are none of the depths; {RESTORE_CURE}")
    pixels = int((width * height).sum())
    if DEPTH_DATASET in file and (file[DEPTH_DATASET].dtype.str != "<f4" or file[DEPTH_DATASET].shape != (pixels,)):
        found = file[DEPTH_DATASET]
        raise RaymarchError(f"{path}: depths is {found.dtype} {found.shape}, want {pixels} floats; {RESTORE_CURE}")
    return tables


def check_record(text: bytes, count: int, points: int, path: object, colours: int = 3) -> dict[str, Any]:
    """Record of names, lenses and splits of `count` views of so many colours; RaymarchError where it is not one."""
    where = f"{path}: record"
    record = parse_record(text, where, 8 * MAX_SPLITS, RESTORE_CURE)
    for name in ("names", "lenses"):
        listed = record.get(name)
        if not isinstance(listed, list) or len(listed) != count or not all(isinstance(one, str) for one in listed):
            raise RaymarchError(f"{where}: {name} is {short_value(listed)}, want {count} texts; {RESTORE_CURE}")
    for one in record["names"]:
        if not 0 < len(one) <= MAX_NAME:
            raise RaymarchError(
                f"{where}: a view is named {short_value(one)}, want up to {MAX_NAME} letters; {RESTORE_CURE}"
            )
    splits = record.get("splits")
    if not isinstance(splits, dict) or not 0 < len(splits) <= MAX_SPLITS:
        raise RaymarchError(f"{where}: splits is {short_value(splits)}, want one or more by name; {RESTORE_CURE}")
    for name, split in splits.items():
        _require_split(split, count, points, f"{where}: split {short_value(name)}", colours)
    return record


def _require_split(split: object, count: int, points: int, where: str, colours: int) -> None:
    split = split if isinstance(split, dict) else {}
    views = split.get("views")
    if not isinstance(views, list) or not views or not all(type(i) is int and 0 <= i < count for i in views):
        raise RaymarchError(f"{where}: views is {short_value(views)}, want numbers of 0 to {count - 1}; {RESTORE_CURE}")
    for name, wanted, most in (
        ("background", colours, None),
        ("box", 6, None),
        ("origin", 3, None),
        ("points", 2, points),
    ):
        value = split.get(name)
        if value is None and name != "background":
            continue
        if not isinstance(value, list) or len(value) != wanted:
            raise RaymarchError(f"{where}: {name} is {short_value(value)}, want {wanted} numbers; {RESTORE_CURE}")
        numbers = [read_number(one, f"{where}: {name}") for one in value]
        if most is not None and not (all(type(one) is int for one in value) and 0 <= numbers[0] < numbers[1] <= most):
            raise RaymarchError(f"{where}: {name} is {value}, want a first and a last of {most} rows; {RESTORE_CURE}")
    if (bounds := split.get("bounds")) is not None:
        if not isinstance(bounds, list) or len(bounds) != 2 * len(views):
            raise RaymarchError(f"{where}: bounds is {short_value(bounds)}, want two numbers a view; {RESTORE_CURE}")
        for near, far in zip(bounds[::2], bounds[1::2], strict=True):
            if not 0 < read_number(near, f"{where}: bounds") < read_number(far, f"{where}: bounds"):
                raise RaymarchError(f"{where}: bounds has {near}, {far}, want 0 < near < far; {RESTORE_CURE}")
    if not isinstance(split.get("source"), str):
        raise RaymarchError(f"{where}: source is {short_value(split.get('source'))}, want a text; {RESTORE_CURE}")


def colours_of(channels: tuple[str, ...]) -> int:
    """Count of a background's numbers: 3 of colours, else one a channel but alpha."""
    return len([name for name in channels if name != ALPHA]) if channels else 3


def row_of(camera: Camera) -> dict[str, np.ndarray]:
    """Rows of a camera in the tables."""
    lens = np.zeros(MAX_COEFFICIENTS)
    lens[: len(camera.lens.coefficients)] = camera.lens.coefficients
    values = {"focal": camera.focal, "principal": camera.principal, "lens": lens}
    return {"world_from_camera": camera.world_from_camera, **{name: np.array(value) for name, value in values.items()}}


def camera_of(tables: Mapping[str, np.ndarray], model: str, i: int, origin: np.ndarray | None = None) -> Camera:
    """Camera of a view, its pose to the last bit; RaymarchError for what no camera has."""
    numbers = tables["lens"][i].tolist()
    width, height = tables["sizes"][i, :2].tolist()
    focal, principal = tables["focal"][i], tables["principal"][i]
    pose = moved_pose(tables["world_from_camera"][i], origin)
    count = len(MODELS[model].names) if model in MODELS else 0
    lens = Lens(model, tuple(numbers[:count]))
    camera = Camera(pose, tuple(focal.tolist()), tuple(principal.tolist()), width, height, lens)
    return camera.exactly(pose)
