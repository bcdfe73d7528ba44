"""instant-ngp and nerfstudio image sets: one `transforms.json` beside its images.

What holds for every layout that lists its frames in such a file is public here, and asked for by `nerf_synthetic`.
"""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, first_names, short_value
from raymarch.io.files.folders import natural_key
from raymarch.io.files.strict import read_json
from raymarch.io.image_sets.camera_keys import (
    CROP_KEY,
    camera_by_keys,
    crop_radius,
    is_fisheye,
    pose_by_keys,
    size_by_keys,
)
from raymarch.io.image_sets.channel_frames import (
    CHANNELS_KEY,
    channels_of,
    header_of,
    is_array,
    own_channels,
    views_of_channel_frames,
)
from raymarch.io.image_sets.frame_file import frame_file
from raymarch.io.image_sets.frames import Frame, alpha_file, existing_images, require_few, views_of_frames
from raymarch.io.image_sets.holdout import select_split
from raymarch.io.image_sets.image_folder import MASK_FOLDERS
from raymarch.io.image_sets.json_values import read_flag, read_number
from raymarch.io.image_sets.ply import read_ply_points
from raymarch.io.image_sets.read_options import ReadOptions, by_options
from raymarch.io.image_sets.reader import Reader
from raymarch.io.images.header import read_header
from raymarch.views.views import Views
from raymarch.views.world_origin import moved_box, moved_points, new_origin, places_of

log = logging.getLogger("raymarch")
TRANSFORMS_FILE = "transforms.json"
SPLIT_ELSEWHERE = "transforms_train.json"
SPLITS = ("train", "val", "test")
STAND_IN_SPLIT = {"val": "test", "test": "val"}
TRANSPARENT_COLOURS = {"white_transparent": 255, "black_transparent": 0}
SHARPNESS_NEIGHBOURS = 3  # frames either way, whose mean sharpness a frame is held against
POSE_KEYS = ("transform_matrix", "transform_matrix_start")
UNREAD_KEYS = {  # keys of other programs that bear on values or places, and what is so
    "time": "all images are taken as of one moment",
    "rolling_shutter": "a camera stands in the middle of its way",
    "applied_transform": "poses are taken as they are written",
    "applied_scale": "poses are taken as they are written",
    "orientation_override": "poses are taken as they are written",
    "normal_file_path": "",
    "render_aabb": "",
    "up": "",
    "near": "",
    "far": "",
    "exposure": "",
    "iso": "",
    "shutter": "",
    "n_extra_learnable_dims": "",
}
DEFAULT_SCALE, DEFAULT_OFFSET = 0.33, 0.5  # of the world in the cube, where the file tells none
DEPTH_KEYS = ("depth_file_path", "depth_path")  # nerfstudio's, instant-ngp's
MAX_DEPTH_UNIT = 1e9
DEPTH_UNIT_KEYS = ("depth_unit_scale_factor", "integer_depth_scale")
DEFAULT_DEPTH_UNIT = 1e-3  # nerfstudio's: a world of metres, and depths in millimetres
CUBE_KEYS = ("aabb_scale", "scale", "offset")


def detect(folder: Path) -> bool:
    """Detection: whether the folder's transforms.json lists frames, and no file of a split does in its place."""
    return lists_frames(folder / TRANSFORMS_FILE, comments=True) and not (folder / SPLIT_ELSEWHERE).exists()


def read(folder: Path, options: ReadOptions) -> Views:
    """Views of one split: as `train_filenames` and the like say, else every `holdout`-th by name is a test view.

    The json, which may have comments, has what `camera_keys.camera_by_keys` reads, for all frames or in one, and
    `frames` with `file_path`, `mask_path` (black where pixels are not to count), `depth_file_path` (depths along the
    axis in steps of `depth_unit_scale_factor`, 0.001 world units if not given) or instant-ngp's `depth_path` (in steps
    of `integer_depth_scale`). The set's box is that of instant-ngp's
    `aabb` or `aabb_scale`, its points those of `ply_file_path`.

    With `channels`, names of numbers, the images are of these: see `channel_frames`.

    Raises RaymarchError that names the file, what is wrong and the cure; for more than 20,000 frames too.

    Example:
        >>> len(TRANSFORMS.read("fox", "test", downscale=2))  # doctest: +SKIP
        7
    """
    path, root = folder / TRANSFORMS_FILE, folder.resolve()
    document, listed = read_frames(path, comments=True)
    say_what_is_not_read(document, listed, path)
    _say_masks_apart(document, listed, path)
    origin = new_origin(places_of_frames(document, listed), path)
    chosen = _choose_frames(document, listed, path)
    channels = () if options.cameras_alone else channels_of(document, path)
    frames = [frame_of_keys(keys, document, path, i, options, origin) for i, keys in chosen]
    owned = dict[Path, tuple[str, ...]]()
    if channels:
        for frame, (i, keys) in zip(frames, chosen, strict=True):
            owned[frame.file] = own_channels(keys, frame.file, channels, f"{path}, frame {i}")
    there = existing_images([frame.file for frame in frames], path, options)
    frames = sorted((frames[i] for i in there), key=lambda frame: frame.file.as_posix())  # as what is held out
    listed_files = {
        name: _files(document, name, path, options.follow_links) for name in SPLITS if _split_key(name) in document
    }
    frames = (
        _split_frames(frames, listed_files, options.split, path)
        if listed_files
        else select_split(frames, options, path)
    )
    points, box = _points(document, path, options.follow_links), box_of_cube(document, str(path))
    hints: dict[str, Any] = {
        "points": moved_points(points, origin),
        "box": moved_box(box, origin, path),
        "origin": origin,
    }
    if channels:
        own = [owned[frame.file] for frame in frames]
        return views_of_channel_frames(frames, own, channels, folder, path, options, **hints)
    frames = [frame._replace(alpha=alpha_file(frame.file, root, options.follow_links)) for frame in frames]
    colours = [value for key, value in TRANSPARENT_COLOURS.items() if read_flag(document.get(key), f"{path}: {key}")]
    return views_of_frames(frames, folder, path, options, transparent=colours, **hints)


def splits(folder: Path) -> list[str]:
    """Names of the splits of which the file lists an image that is there, and of those that they stand in for.

    None where it lists no files. The log says which are listed in vain: of some benchmarks nobody gets the test images.
    """
    path, root = folder / TRANSFORMS_FILE, folder.resolve()
    document, listed = read_frames(path, comments=True)
    told = [name for name in SPLITS if document.get(_split_key(name))]
    # links are followed, for this looks which files there are and reads none
    names = [(keys.get("file_path"), f"{path}, frame {i}") for i, keys in enumerate(listed)]
    framed = {frame_file(folder, root, name, where, True) for name, where in names}
    there = [name for name in told if any(file.is_file() for file in _files(document, name, path, True) & framed)]
    for name in told:
        if name not in there:
            log.warning("%s: no image of %s is there, going without the split %s", path, _split_key(name), name)
    return [name for name in SPLITS if name in there or (name not in told and STAND_IN_SPLIT.get(name) in there)]


def lists_frames(path: Path, *, comments: bool = False) -> bool:
    """Detection: whether a file is JSON whose first frame has an image and a pose."""
    try:
        first = read_json(path, comments=comments)["frames"][0]
        return isinstance(first, dict) and "file_path" in first and any(key in first for key in POSE_KEYS)
    except (RaymarchError, LookupError, TypeError):
        return False


def read_frames(path: Path, *, comments: bool = False) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Keys of a file, and those of each of its frames.

    Raises RaymarchError for what is no such file, and for no or more than 20,000 frames.
    """
    document = read_json(path, comments=comments)
    if not isinstance(document, dict):
        raise RaymarchError(f"{path}: is a {type(document).__name__}, want a mapping with frames; export it again")
    listed = document.get("frames")
    if not isinstance(listed, list) or not listed:
        is_mapping = isinstance(listed, dict) and listed
        cure = "write its mappings as a list, [{..}, {..}]" if is_mapping else "export it again"
        raise RaymarchError(f"{path}: frames is {short_value(listed)}, want a list of at least one; {cure}")
    require_few(len(listed), path)
    for i, frame in enumerate(listed):
        if not isinstance(frame, dict):
            raise RaymarchError(f"{path}, frame {i}: is {short_value(frame)}, want a mapping; export it again")
    return document, listed


def say_what_is_not_read(document: dict[str, Any], listed: list[dict[str, Any]], path: Path) -> None:
    """Note of the keys that bear on values or places and are not read: those of `UNREAD_KEYS` that say something."""

    def says(value: object) -> bool:
        return value not in (None, "", 0, False, []) and not (isinstance(value, list) and not any(value))

    found = list[str]()
    for key, what in UNREAD_KEYS.items():
        count = sum(says(keys.get(key)) for keys in listed)
        if not (count or says(document.get(key))):
            continue
        if key == "time" and len({repr(keys.get(key)) for keys in listed}) == 1:
            continue  # a scene that stands still
        told = ", ".join(filter(None, (f"of {count} frames" if count else "", what)))
        found.append(f"{key} ({told})" if told else key)
    if found:
        log.warning("%s: not read: %s", path, ", ".join(found))


def frame_of_keys(
    keys: dict[str, Any],
    document: dict[str, Any],
    path: Path,
    i: int,
    options: ReadOptions,
    origin: np.ndarray | None = None,
) -> Frame:
    """Frame of its own keys, which go before those of the file: `file_path`, `mask_path`, `camera_by_keys`,
    `crop_radius` if its lens is a fisheye, as in nerfstudio.

    `origin` as of `new_origin`. Raises RaymarchError, opened by the file and the frame's place in it, for a path as of
    `frame_file`.
    """
    folder, where = path.parent, f"{path}, frame {i}"
    root = folder.resolve()
    text = keys.get("file_path")
    if text is None and options.cameras_alone:
        text = f"{i:05d}"
    image = not (CHANNELS_KEY in document and isinstance(text, str) and is_array(Path(text)))
    file = frame_file(folder, root, text, where, options.follow_links, image=image)
    settings, of = ChainMap(keys, document), f"{where} ({file.stem})"
    crops = settings.get(CROP_KEY) is not None and is_fisheye(settings, of)
    radius = partial(crop_radius, settings, where=of) if crops else None
    frame = Frame(file, partial(camera_by_keys, settings, where=of, origin=origin), sensor=True, radius=radius)
    if options.cameras_alone:
        return frame._replace(size=size_by_keys(settings, of), header=read_header if image else header_of)
    if options.depths and (depth := next((settings[key] for key in DEPTH_KEYS if settings.get(key)), None)) is not None:
        key = next(key for key in DEPTH_KEYS if settings.get(key))
        unit = next((settings[key] for key in DEPTH_UNIT_KEYS if settings.get(key) is not None), DEFAULT_DEPTH_UNIT)
        frame = frame._replace(
            depth=frame_file(folder, root, depth, where, options.follow_links, key=key, image=False),
            depth_unit=_depth_unit(unit, where),
        )
    if (mask := settings.get("mask_path")) is not None:
        return frame._replace(mask=frame_file(folder, root, mask, where, options.follow_links, key="mask_path"))
    moving = file.with_name(f"dynamic_mask_{file.stem}.png")  # as instant-ngp has them, white where something moves
    if moving.is_file() and (options.follow_links or moving.resolve().is_relative_to(root)):
        return frame._replace(mask=moving, inverted=True)
    return frame


def _depth_unit(value: object, where: str) -> float:
    """World units of a step of depth; RaymarchError for what is no unit, by which no depth would be known."""
    unit = read_number(value, f"{where}: depth unit")
    if not 0 < unit <= MAX_DEPTH_UNIT:
        raise RaymarchError(
            f"{where}: depth unit is {unit:g}, want a number over 0 and at most {MAX_DEPTH_UNIT:g}; correct it, 0.001"
            " is of millimetres where the world is in metres"
        )
    return unit


def places_of_frames(document: dict[str, Any], listed: list[dict[str, Any]]) -> list[np.ndarray]:
    """Places (3,) of the cameras of all frames of a file, but of those that have no pose."""
    return places_of(listed, lambda keys: pose_by_keys(ChainMap(keys, document), "")[:3, 3])


def _say_masks_apart(document: Mapping[str, Any], listed: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Note of a folder of masks that no frame names."""
    masked = any(keys.get("mask_path") is not None for keys in (document, *listed))
    apart = next((name for name in MASK_FOLDERS if (path.parent / name).is_dir()), None)
    if apart is not None and not masked:
        message = "%s: the folder %s is not read, as no frame names a mask; add a mask_path to each frame"
        log.warning(message, path, apart)


def _choose_frames(
    document: Mapping[str, Any], listed: Sequence[dict[str, Any]], path: Path
) -> list[tuple[int, dict[str, Any]]]:
    """Frames by the names of their files, with their places in the list: the first `n_frames`, of them the sharp.

    First and next to each other are what instant-ngp has so: it takes the numbers in names by what they are.
    """
    frames = sorted(enumerate(listed), key=lambda one: (natural_key(_image_path(one[1])), one[0]))
    if "n_frames" in document:
        frames = frames[: max(1, round(min(read_number(document["n_frames"], f"{path}: n_frames"), len(frames))))]
    least = read_number(document.get("sharpness_discard_threshold", 0), f"{path}: sharpness_discard_threshold")
    if not least > 0 or any("sharpness" not in keys for _, keys in frames):
        return frames
    sharp = np.array([read_number(keys["sharpness"], f"{path}, frame {i}: sharpness") for i, keys in frames])
    sums = np.concatenate([[0], np.cumsum(sharp)])
    at = np.arange(len(sharp))
    first, last = np.maximum(at - SHARPNESS_NEIGHBOURS, 0), np.minimum(at + SHARPNESS_NEIGHBOURS + 1, len(sharp))
    keep = sharp > least * (sums[last] - sums[first]) / (last - first)
    blurred = [str(frames[i][1].get("file_path")) for i in np.flatnonzero(~keep)]
    if not keep.any():
        raise RaymarchError(f"{path}: no frame has sharpness over {least:g} of its neighbours'; lower the threshold")
    if blurred:
        message = "%s: %d of %d frames are less sharp than %g of their neighbours, going on without them (%s)"
        log.warning(message, path, len(blurred), len(frames), least, first_names(blurred))
    return [frame for frame, kept in zip(frames, keep, strict=True) if kept]


def _image_path(keys: Mapping[str, Any]) -> str:
    """Path of a frame's image, however it is written."""
    return str(PurePosixPath(str(keys.get("file_path")).replace("\\", "/")))


def _split_key(split: str) -> str:
    """Key of the list of a split's files."""
    return f"{split}_filenames"


def _files(document: Mapping[str, Any], split: str, path: Path, follow_links: bool) -> set[Path]:
    """Files that `<split>_filenames` lists."""
    key, folder = _split_key(split), path.parent
    listed = document[key]
    if not isinstance(listed, list):
        raise RaymarchError(f"{path}: {key} is {short_value(listed)}, want a list of file names; export it again")
    return {frame_file(folder, folder.resolve(), one, str(path), follow_links, key=key) for one in listed}


def _split_frames(frames: Sequence[Frame], listed: Mapping[str, set[Path]], split: str, path: Path) -> list[Frame]:
    """Frames of a split as the file lists them; test and val stand in for each other where one of them is not there."""
    if split == "all":
        return list(frames)
    taken = split if listed.get(split) else STAND_IN_SPLIT.get(split, split)
    if not any(listed.values()):
        keys = " and ".join(map(_split_key, listed))
        raise RaymarchError(f"{path}: {keys} list no files, want one or more; fill them, or take them out")
    if not listed.get(taken):
        have = ", ".join(name for name in listed if listed[name])
        raise RaymarchError(f"{path}: has no {split}_filenames, it has the splits {have}; choose or add one")
    if taken != split:
        log.warning("%s: has no %s_filenames, taking %s_filenames", path, split, taken)
    chosen = [frame for frame in frames if frame.file in listed[taken]]
    if not chosen:
        raise RaymarchError(f"{path}: no frame has a file of {taken}_filenames; correct the names")
    if len(chosen) < len(listed[taken]):
        some = first_names(sorted(file.name for file in listed[taken] - {frame.file for frame in chosen}))
        message = "%s: %d of %d %s_filenames are of no frame that is there, going on without them (%s)"
        log.warning(message, path, len(listed[taken]) - len(chosen), len(listed[taken]), taken, some)
    return chosen


def _points(document: Mapping[str, Any], path: Path, follow_links: bool) -> np.ndarray | None:
    """Points of the set's PLY file, where it names one that is there."""
    if document.get("ply_file_path") is None:
        return None
    folder = path.parent
    file = frame_file(
        folder, folder.resolve(), document["ply_file_path"], str(path), follow_links, key="ply_file_path", image=False
    )
    if not file.exists():
        log.warning("%s: ply_file_path %s is missing, going on without its points", path, file.name)
        return None
    return read_ply_points(file)


def box_of_cube(document: Mapping[str, Any], where: str) -> np.ndarray | None:
    """Box (2, 3) that instant-ngp traces, in the world; None where the file says nothing about it.

    Its cube of side 1 about 0.5 holds `scale` times the world plus `offset`; `aabb_scale` times as much is traced. What
    is given as `aabb` is taken as it is.

    Example:
        >>> box_of_cube({"aabb_scale": 4, "scale": 0.5}, "transforms.json").tolist()
        [[-4.0, -4.0, -4.0], [4.0, 4.0, 4.0]]
    """
    if document.get("aabb") is not None:
        corners = document["aabb"]
        if (
            not isinstance(corners, list)
            or len(corners) != 2
            or any(not isinstance(c, list) or len(c) != 3 for c in corners)
        ):
            raise RaymarchError(
                f"{where}: aabb is {short_value(corners)}, want two corners of three numbers; correct it"
            )
        box = np.array([[read_number(x, f"{where}: aabb") for x in corner] for corner in corners])
        if not (box[0] < box[1]).all():
            raise RaymarchError(f"{where}: aabb has no volume, want the lower corner, then the upper; correct it")
        return box
    if not any(key in document for key in CUBE_KEYS):
        return None
    scale, side = read_number(document.get("scale", DEFAULT_SCALE), f"{where}: scale"), document.get("aabb_scale", 1)
    side = read_number(side, f"{where}: aabb_scale")
    told = document.get("offset", DEFAULT_OFFSET)
    told = told if isinstance(told, list) and len(told) == 3 else [told] * 3
    offset = np.array([read_number(one, f"{where}: offset") for one in told])
    if not (1e-9 < scale < 1e9 and 0 < side < 1e9 and (abs(offset) < 1e9).all()):
        raise RaymarchError(f"{where}: scale {scale:g}, aabb_scale {side:g} or offset is out of bounds; correct it")
    return (np.array([[-side / 2], [side / 2]]) + DEFAULT_OFFSET - offset) / scale


TRANSFORMS = Reader(TRANSFORMS_FILE, detect, by_options(read), TRANSFORMS_FILE, specificity=4, splits=splits)
