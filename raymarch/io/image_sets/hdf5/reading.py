"""Image sets in one HDF5 file, as `raymarch convert` writes them; docs/image-sets.md describes the layout."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from raymarch.device.memory import require_images
from raymarch.errors import RaymarchError, named, short
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import MODELS, Lens
from raymarch.io.files.hdf5 import CURE, attributes, digest_of, opened
from raymarch.io.files.strict import parse_record
from raymarch.io.image_sets.frames import number, require_few
from raymarch.io.image_sets.reader import Reader
from raymarch.views.image_arrays import gathered
from raymarch.views.resize import shrink, shrink_mask
from raymarch.views.views import Views, require_colour
from raymarch.views.world_origin import moved_box, moved_points, moved_pose, new_origin

SIGNATURE = b"\x89HDF\r\n\x1a\n"


def detect(path: Path) -> bool:
    """Detection: whether the file is HDF5 and says that it is an image set of raymarch's, of whatever version."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            if file.read(len(SIGNATURE)) != SIGNATURE:
                return False
    except OSError:
        return False
    import h5py  # here, as it takes a third of a second that folders need not wait for

    from raymarch.io.files.hdf5 import DAMAGE

    try:
        with h5py.File(path, "r") as file:
            return file.attrs.get("format") in (FORMAT, FORMAT.encode())
    except DAMAGE:
        return False


def read(
    path: Path,
    split: str = "train",
    *,
    for_fit: bool = True,
    downscale: float = 1.0,
    follow_links: bool = False,
    holdout: int = 8,
) -> Views:
    """Views of a split as they were when the file was written, or of "all"; checked against the digest of the file.

    Nothing more is held out, and no links are in it that could be followed.

    Raises RaymarchError that names the file, what is wrong and the cure: a damaged, altered or too large file, one that
    would read other files, and a split that it has not.
    """

    return views_of(path, split, for_fit=for_fit, downscale=downscale)


def splits(path: Path) -> tuple[str, ...]:
    """Names of the splits of a file."""

    return splits_of(path)


HDF5_SET = Reader("HDF5", detect, read, splits=splits)


# HDF5 layout of an image set in one file: its datasets, their digest, and the checks of both; docs/image-sets.md.

FORMAT = "raymarch-images"
VERSION = 1
MOST_COEFFICIENTS = 8
TABLES = {  # a row a view, but for points; and the shape and type of a row
    "sizes": ((4,), "<i8"),
    "world_from_camera": ((4, 4), "<f8"),
    "focal": ((2,), "<f8"),
    "principal": ((2,), "<f8"),
    "lens": ((MOST_COEFFICIENTS,), "<f8"),
    "points": ((3,), "<f8"),
}
BYTES = ("images", "masks")  # of all views, one behind the other
NAMES = (*TABLES, *BYTES, "record")
LONGEST_NAME = 1000  # letters of a view's name
LARGEST_RECORD = 16 << 20  # bytes of its text
MOST_SPLITS = 1000
MOST_PIXELS = 1 << 26  # of an image, as of one that is decoded


def notes_of(file: h5py.File) -> dict[tuple[str, str], np.ndarray]:
    """All attributes by owner and name."""
    return {(owner, name): value for owner in ("/", *NAMES) for name, value in attributes(file[owner]).items()}


def checked_tables(file: h5py.File, path: object) -> dict[str, np.ndarray]:
    """Tables of a file once their shapes, types and sizes of images are those of the layout; else RaymarchError."""
    count = file["sizes"].shape[0] if file["sizes"].shape else 0
    require_few(count, path)  # type: ignore[arg-type]
    for name, (row, kind) in TABLES.items():
        dataset = file[name]
        rows = dataset.shape[:1] if name == "points" else (count,)
        if dataset.dtype.str != kind or dataset.shape != rows + row or not count:
            want = f"{np.dtype(kind)} {('view', *row)}"
            raise RaymarchError(f"{path}: {name} is {dataset.dtype} {dataset.shape}, want {want}; {CURE}")
    tables = {name: np.asarray(file[name][()]) for name in TABLES}
    width, height, channels, masked = tables["sizes"].T
    plain = (width >= 1) & (height >= 1) & (width <= MOST_PIXELS) & (height <= MOST_PIXELS)
    plain &= (width * np.where(plain, height, 0) <= MOST_PIXELS) & np.isin(channels, (3, 4)) & np.isin(masked, (0, 1))
    if not plain.all():
        row = tables["sizes"][np.argmin(plain)].tolist()
        raise RaymarchError(f"{path}: sizes have {row}, want width, height, 3 or 4, 0 or 1; {CURE}")
    for name, sizes in (("images", width * height * channels), ("masks", width * height * masked)):
        dataset = file[name]
        if dataset.dtype.str != "|u1" or dataset.shape != (sizes.sum(),):
            raise RaymarchError(f"{path}: {name} is {dataset.dtype} {dataset.shape}, want {sizes.sum()} bytes; {CURE}")
    if file["record"].shape != () or file["record"].dtype.kind != "S":
        raise RaymarchError(f"{path}: record is {file['record'].dtype}, want one text; {CURE}")
    if file["record"].dtype.itemsize > LARGEST_RECORD:
        raise RaymarchError(f"{path}: record is over {LARGEST_RECORD:,} bytes long; split the set")
    return tables


def checked_record(text: bytes, count: int, points: int, path: object) -> dict[str, Any]:
    """Record of names, lenses and splits of `count` views; RaymarchError where it is not one."""
    where = f"{path}: record"
    record = parse_record(text, where, 8 * MOST_SPLITS, CURE)
    for name in ("names", "lenses"):
        listed = record.get(name)
        if not isinstance(listed, list) or len(listed) != count or not all(isinstance(one, str) for one in listed):
            raise RaymarchError(f"{where}: {name} is {short(listed)}, want {count} texts; {CURE}")
    for one in record["names"]:
        if not 0 < len(one) <= LONGEST_NAME:
            raise RaymarchError(f"{where}: a view is named {short(one)}, want up to {LONGEST_NAME} letters; {CURE}")
    splits = record.get("splits")
    if not isinstance(splits, dict) or not 0 < len(splits) <= MOST_SPLITS:
        raise RaymarchError(f"{where}: splits is {short(splits)}, want one or more by name; {CURE}")
    for name, split in splits.items():
        _require_split(split, count, points, f"{where}: split {short(name)}")
    return record


def _require_split(split: object, count: int, points: int, where: str) -> None:
    split = split if isinstance(split, dict) else {}
    views = split.get("views")
    if not isinstance(views, list) or not views or not all(type(i) is int and 0 <= i < count for i in views):
        raise RaymarchError(f"{where}: views is {short(views)}, want numbers of 0 to {count - 1}; {CURE}")
    for name, wanted, most in (("background", 3, None), ("box", 6, None), ("origin", 3, None), ("points", 2, points)):
        value = split.get(name)
        if value is None and name != "background":
            continue
        if not isinstance(value, list) or len(value) != wanted:
            raise RaymarchError(f"{where}: {name} is {short(value)}, want {wanted} numbers; {CURE}")
        numbers = [number(one, f"{where}: {name}") for one in value]
        if most is not None and not (all(type(one) is int for one in value) and 0 <= numbers[0] < numbers[1] <= most):
            raise RaymarchError(f"{where}: {name} is {value}, want a first and a last of {most} rows; {CURE}")
    if (bounds := split.get("bounds")) is not None:
        if not isinstance(bounds, list) or len(bounds) != 2 * len(views):
            raise RaymarchError(f"{where}: bounds is {short(bounds)}, want two numbers a view; {CURE}")
        for near, far in zip(bounds[::2], bounds[1::2], strict=True):
            if not 0 < number(near, f"{where}: bounds") < number(far, f"{where}: bounds"):
                raise RaymarchError(f"{where}: bounds has {near}, {far}, want 0 < near < far; {CURE}")
    if not isinstance(split.get("source"), str):
        raise RaymarchError(f"{where}: source is {short(split.get('source'))}, want a text; {CURE}")


def row_of(camera: Camera) -> dict[str, np.ndarray]:
    """Rows of a camera in the tables."""
    lens = np.zeros(MOST_COEFFICIENTS)
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


# HDF5 reader of an image set: the views of a split, while the digest of all is taken.

BLOCK = 1 << 24  # bytes


def splits_of(path: Path) -> tuple[str, ...]:
    """Names of the splits of a file."""
    with opened(path, FORMAT, VERSION, NAMES) as file:
        return tuple(_opened_record(file, path)[1]["splits"])


def sources_of(path: Path) -> dict[str, str]:
    """Where the views of each split of a file came from when it was written."""
    with opened(path, FORMAT, VERSION, NAMES) as file:
        return {name: split["source"] for name, split in _opened_record(file, path)[1]["splits"].items()}


def views_of(path: Path, split: str, *, for_fit: bool, downscale: float) -> Views:
    """Views of a split, "all" for every view once; RaymarchError as of `hdf5_set.read`."""
    with opened(path, FORMAT, VERSION, NAMES) as file:
        tables, record = _opened_record(file, path)
        chosen = _of_split(record["splits"], split, len(tables["sizes"]), path)
        origin = new_origin(tables["world_from_camera"][:, :3, 3], path)
        cameras = {i: _camera(tables, record, i, path, origin) for i in set(chosen["views"])}
        small = {i: camera if downscale == 1 else camera.scaled(1 / downscale) for i, camera in cameras.items()}
        _require_room([small[i] for i in chosen["views"]], tables["sizes"][chosen["views"]], path, for_fit)
        images, masks = _pixels(file, tables, small, path)
        views, points, box = chosen["views"], chosen.get("points"), chosen.get("box")
        return Views(
            [small[i] for i in views],
            gathered([images[i] for i in views]),
            _names(record, views),
            require_colour(chosen["background"]),
            str(path),
            masks=[masks.get(i) for i in views],
            points=moved_points(tables["points"][slice(*points)], origin) if points else None,
            box=moved_box(np.array(box, float).reshape(2, 3), origin, path) if box else None,
            origin=_origin(chosen.get("origin"), origin),
            bounds=_bounds(chosen),
        )


def _opened_record(file: h5py.File, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    tables = checked_tables(file, path)
    text = file["record"][()]
    return tables, checked_record(bytes(text), len(tables["sizes"]), len(tables["points"]), path)


def _of_split(splits: dict[str, dict], split: str, count: int, path: Path) -> dict[str, Any]:
    if split in splits:
        return splits[split]
    if split == "all":
        first: dict[str, Any] = next(iter(splits.values()))
        bounds: dict[int, np.ndarray] = {}
        for one in splits.values():
            bounds |= dict(zip(one["views"], np.reshape(one.get("bounds") or [], (-1, 2)), strict=False))
        every = [bounds[i] for i in range(count)] if len(bounds) == count else None
        return {**first, "views": list(range(count)), "bounds": every}
    have = named(list(splits))
    raise RaymarchError(f"{path}: there is no split {short(split)}, it has {have} and all; choose one")


def _bounds(split: dict[str, Any]) -> np.ndarray | None:
    """Near and far planes (view, 2) of a split's views, where it has them."""
    return None if split.get("bounds") is None else np.reshape(split["bounds"], (-1, 2)).astype(float)


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
        raise RaymarchError(f"{path}, view {i}: {error}; {CURE}") from None


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
    held = pixels * (channels.pop() + 1)
    needed = held + 30 * int(full[:, :2].prod(axis=1).max())
    cure = "take fewer or smaller ones" + (", or for_fit=False where they are not to be fitted" if for_fit else "")
    require_images(f"{path}: its {len(cameras)} images", pixels, cure, held=needed, stored=4 * pixels * for_fit)


def _pixels(
    file: h5py.File, tables: dict[str, np.ndarray], cameras: dict[int, Camera], path: Path
) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """Images and masks of views, each as large as its camera, once all of the file is what its digest says."""
    notes = notes_of(file)
    told = notes.pop(("/", "digest"), np.array(b"")).tolist()
    parts = {name: _part(array, hashlib.sha256(array.tobytes()).hexdigest()) for name, array in tables.items()}
    record = np.asarray(file["record"][()], file["record"].dtype)
    parts["record"] = _part(record, hashlib.sha256(record.tobytes()).hexdigest())
    found: dict[str, dict[int, np.ndarray]] = {"images": {}, "masks": {}}
    for name in BYTES:
        seen, at = hashlib.sha256(), 0
        for i, (width, height, channels, masked) in enumerate(tables["sizes"].tolist()):
            depth = channels if name == "images" else masked
            size = width * height * depth
            wanted = i in cameras and size > 0
            kept = np.empty(size if wanted else 0, np.uint8)
            for first in range(0, size, BLOCK):
                block = file[name][at + first : at + min(first + BLOCK, size)]
                seen.update(block.tobytes())
                if wanted:
                    kept[first : first + len(block)] = block
            at += size
            if wanted:
                found[name][i] = _as_large(kept.reshape(height, width, depth), cameras[i])
        parts[name] = _part(file[name], seen.hexdigest())
    if told != digest_of(parts, notes):
        raise RaymarchError(f"{path}: its content is not what its digest says, so it was altered; {CURE}")
    return found["images"], found["masks"]


def _as_large(pixels: np.ndarray, camera: Camera) -> np.ndarray:
    """Image, or mask where there is one channel, as large as its camera."""
    if pixels.shape[2] > 1:
        return shrink(pixels, camera.width, camera.height)
    mask = pixels[..., 0] > 0
    return mask if mask.shape == (camera.height, camera.width) else shrink_mask(mask, camera.width, camera.height)


def _part(array: np.ndarray | h5py.Dataset, digest: str) -> tuple[str, list[int], str]:
    return array.dtype.str, list(array.shape), digest
