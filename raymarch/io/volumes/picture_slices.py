"""Folder of slices, one picture a file (TIFF, PNG, BMP, JPEG, WebP), in the order of the numbers in their names.

What most of the files are is the volume: a preview, a log or what a system lays beside them is left out, and said; a
picture of another size among the slices is refused by name.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, first_names, one_line
from raymarch.io.files.folders import DIGITS, natural_key
from raymarch.io.images.header import DEEP_MODES, MAX_PIXELS, has_alpha, open_image, open_unmapped
from raymarch.io.volumes.format import require_one_place
from raymarch.io.volumes.scalar_format import require_library, scalar_format
from raymarch.io.volumes.source import Slices, Source, library_errors
from raymarch.io.volumes.tiff import pages_of, read_placement
from raymarch.volumes.scalar_volume import TYPE_SIZES, ScalarVolume
from raymarch.volumes.selection import Selection

SLICE_WORD = re.compile(r"(?:^|[^a-z])(?:z|slice|plane)[^a-z0-9]*$")  # before a number in a name of small letters
OTHER_AXIS_WORD = re.compile(r"(?:^|[^a-z])(?:c|ch|channel|w|t|time|tp)[^a-z0-9]*$")
TIFF_ENDINGS = (".tif", ".tiff")
PICTURE_KINDS = {
    **dict.fromkeys(TIFF_ENDINGS, "TIFF"), ".png": "PNG", ".bmp": "BMP", ".webp": "WebP",
    **dict.fromkeys((".jpg", ".jpeg"), "JPEG"),
}  # fmt: skip
MAX_SLICES = 1 << 16
# of image sets
IMAGE_SET_NAMES = ("cameras", "images", "points3d", "poses", "poses_bounds", "intrinsics", "rigs", "frames")
SET_FOLDERS = ("images", "sparse", "colmap", "dense")
SET_TEXTS = {".json": (b'"frames"', b'"transform_matrix"', b'"extrinsic'), ".xml": (b"<camera", b"<chunk")}
SET_ENDINGS = (".nvm", ".out", ".psx")
MAX_SEARCHED_BYTES = 1 << 16  # bytes of a text
EMPTY_PICTURE = np.zeros((0, 0), np.uint8)
GREY_MODES = ("1", "L", *DEEP_MODES)
MAX_LOSSY_LEVELS = 3  # levels by which JPEG and WebP change a grey that was saved as colours
SIZE_OF_LOG = re.compile(
    r"^[ \t]*(?P<what>Image Pixel Size|Pixel Size|Voxel Size|Voxel size)[ \t]*\((?P<unit>um|µm|mm|nm)\)[ \t]*=[ \t]*"
    r"(?P<size>[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?)",
    re.M,
)  # as SkyScan's and NRecon's logs say it
STEP_OF_LOG = re.compile(r"^[ \t]*Section to Section Step[ \t]*=[ \t]*([0-9]+)", re.M)
LOG_SUFFIXES = (".log", ".txt", ".ini")


def _pictures(folder: Path) -> list[Path]:
    """Pictures of a folder, slice 9 before slice 10, without hidden ones: macOS lays `._1.tif` beside `1.tif`."""
    seen = (one for one in folder.iterdir() if not one.name.startswith("."))
    pictures = (one for one in seen if one.suffix.lower() in PICTURE_KINDS and one.is_file())
    return sorted(pictures, key=lambda one: natural_key(one.name.lower()))


def _is_image_set(path: Path) -> bool:
    """Whether what lies beside pictures makes them an image set: cameras in one of their layouts."""
    name, suffix = path.name.lower(), path.suffix.lower()
    if path.is_dir():
        return name in SET_FOLDERS
    if name.split(".")[0] in IMAGE_SET_NAMES or name.startswith("transforms") or suffix in SET_ENDINGS:
        return suffix not in PICTURE_KINDS
    marks = SET_TEXTS.get(suffix)
    if marks is None or not path.is_file():
        return False
    with path.open("rb") as file:
        text = file.read(MAX_SEARCHED_BYTES)
    return any(mark in text for mark in marks)


def detect(path: Path) -> bool:
    """Whether a folder holds slices: pictures that are TIFF or grey, and nothing that would make it an image set."""
    if not path.is_dir():
        return False
    pictures = _pictures(path)
    if len(pictures) < 2 or any(map(_is_image_set, path.iterdir())):
        return False
    stack = max(_stacks(pictures), key=len)
    if stack[0].suffix.lower() in TIFF_ENDINGS:
        return True
    try:
        return not _colours(stack[len(stack) // 2])
    except RaymarchError:
        return True  # which reading it says


def _stacks(files: Sequence[Path]) -> list[list[Path]]:
    """Files that belong together: alike but for the number that counts them, that of z or else the last that varies."""
    groups: dict[tuple[str, ...], list[tuple[tuple[int, ...], Path]]] = {}
    for file in files:
        parts = DIGITS.split(file.stem)
        key = (PICTURE_KINDS[file.suffix.lower()], *(part.lower() for part in parts[::2]))
        groups.setdefault(key, []).append((tuple(int(part) for part in parts[1::2]), file))
    if all(len(group) == 1 for group in groups.values()):
        return [list(files)] if len({key[0] for key in groups}) == 1 else [[file] for file in files]
    found = []
    for (_, *texts), group in groups.items():
        values = [sorted(set(column)) for column in zip(*(numbers for numbers, _ in group), strict=True)]
        varying = [k for k, several in enumerate(values) if len(several) > 1]
        heights = [k for k in varying if SLICE_WORD.search(texts[k])]
        others = [k for k in varying if OTHER_AXIS_WORD.search(texts[k])]
        whole = int(np.prod([len(values[k]) for k in varying])) == len(group)
        if len(varying) > 1 and (whole or len(heights) == 1 or others):
            plain = heights or [k for k in varying if k not in others] or varying
            parts_of: dict[tuple[int, ...], list[Path]] = {}
            for numbers, file in group:
                parts_of.setdefault(tuple(numbers[k] for k in varying if k != plain[-1]), []).append(file)
            found += [one for _, one in sorted(parts_of.items())]
        else:
            found.append([file for _, file in group])
    return found


def _choose_stack(
    path: Path, files: Sequence[Path], selection: Selection
) -> tuple[list[Path], int | None, tuple[str, ...]]:
    """The folder's stack, which colour of its pictures is asked for, and what is left out."""
    stacks = _stacks(files)
    several = [one for one in stacks if len(one) > 1]
    channel = selection.channel
    if len(several) > 1:
        words = "; ".join(
            f"{k}: {one[0].name} to {one[-1].name}, {len(one)} slices" for k, one in enumerate(several[:4])
        )
        if channel is None or channel >= len(several):
            rest = "; ..." if len(several) > 4 else ""
            raise RaymarchError(
                f"{path}: holds {len(several)} stacks ({words}{rest}), want one; choose one by channel=0"
                f" to channel={len(several) - 1}, or move it into a folder of its own"
            )
        stack, channel = several[channel], None
    else:
        stack = several[0] if several else []
    left = [one.name for single in stacks if single is not stack and len(single) == 1 for one in single]
    remark = f"{first_names(left, 3)} {'is' if len(left) == 1 else 'are'} named as none of the slices, and left out"
    return stack, channel, (remark,) if left and stack else ()


def _kind(file: Path) -> tuple[Any, ...]:
    """What is alike in all slices: size, bits, and for TIFF what else its tags say of the numbers."""
    if file.suffix.lower() in TIFF_ENDINGS:
        pages = [page for page in pages_of(file) if not page.is_aside]
        return (len(pages), *(pages[0].kind if pages else ()))
    with open_image(file) as image:
        if image.width * image.height > MAX_PIXELS:
            raise RaymarchError(f"{file}: is {image.width} x {image.height}, want at most {MAX_PIXELS} pixels; crop it")
        return (1, image.width, image.height, 16 if image.mode in DEEP_MODES else 1 if image.mode == "1" else 8)


def _kind_text(kind: tuple[Any, ...]) -> str:
    """A kind for a message."""
    if len(kind) < 4:
        return "a file without a picture"
    pages = f"{kind[0]} pages of " if kind[0] != 1 else ""
    colours = f" of {kind[4]} colours" if len(kind) > 4 and kind[4] > 1 else ""
    return f"{pages}{kind[1]} x {kind[2]}{colours}, {kind[3]} bits"


def _require_alike(stack: Sequence[Path]) -> tuple[Any, ...]:
    """Kind that all slices have; RaymarchError that names those that are not as most are."""
    kinds = {file: _kind(file) for file in stack}
    counts = Counter(kinds.values())
    (usual, many), *_ = counts.most_common()
    odd = [file for file, kind in kinds.items() if kind != usual]
    if odd:
        more = f" (and {first_names([file.name for file in odd[1:]], 3)})" if len(odd) > 1 else ""
        said = f"is {_kind_text(kinds[odd[0]])}{more}, while {many} of {len(stack)} slices are {_kind_text(usual)}"
        raise RaymarchError(f"{odd[0]}: {said}; take it out of the folder, or save it anew as those are")
    return usual


def source(path: Path, selection: Selection) -> Source:
    """Source of a folder of slices; RaymarchError where their sizes or types differ, and for colours."""
    require_one_place(Selection(time=selection.time, level=selection.level), path)
    files = _pictures(path)
    if not 2 <= len(files) <= MAX_SLICES:
        raise RaymarchError(
            f"{path}: has {len(files)} pictures ({', '.join(dict.fromkeys(PICTURE_KINDS.values()))}), want 2 to "
            f"{MAX_SLICES:,}"
            " slices; check the path"
        )
    stack, channel, remarks = _choose_stack(path, files, selection)
    if len(stack) < 2:
        names = first_names([one.name for one in files], 4)
        raise RaymarchError(f"{path}: has {names}, want slices of one kind that are numbered; rename them")
    kind = _require_alike(stack)
    count, columns, rows = kind[:3]
    if count != 1:
        raise RaymarchError(f"{stack[0]}: holds {count} pictures, want one a file; name it by itself, or split it")
    reader = _tiff_stack if stack[0].suffix.lower() in TIFF_ENDINGS else _pillow_stack
    colours, dtype, affine, unit, told = reader(path, stack)
    require_one_place(Selection(channel=channel if colours == 1 else None), path)
    if colours > 1 and (channel is None or channel >= colours):
        raise RaymarchError(
            f"{path}: has {colours} colours, want one volume; choose one by channel=0 (--channel 0); photographs of an"
            f" object are an image set, raymarch cameras {path} --out set"
        )
    affine, unit, log = _read_log(path, affine, unit)
    remarks += (*log, *(one for one in told if "spacing" not in one or not log), *_gaps(stack))

    def read(slices: Slices) -> np.ndarray:
        x, y, z = slices
        return np.stack([_decode_slice(one, channel, (rows, columns), dtype)[y, x] for one in stack[z]]).T

    return Source((columns, rows, len(stack)), dtype, affine, read, False, length_unit=unit, remarks=remarks)


def _tiff_stack(path: Path, stack: Sequence[Path]) -> tuple[int, np.dtype, np.ndarray, str, tuple[str, ...]]:
    """Colours, type, affine, unit of length and remarks of TIFF slices, whose place most of a few say alike."""
    with require_library("tifffile", "TIFF"):
        import tifffile
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    some = dict.fromkeys([stack[len(stack) // 2], stack[0], stack[-1]])
    places, page = [], None
    for one in some:
        with library_errors("tifffile", one), tifffile.TiffFile(one) as file:
            series = file.series[0]
            places.append(read_placement(file, series))
            page = page or series.keyframe
            dtype = np.dtype(page.dtype)
            shape = tuple(page.shape)
    usual = max(places, key=lambda one: sum(np.allclose(one.affine, other.affine) for other in places))
    affine, unit, remarks = (
        usual.affine.copy(),
        usual.length_unit,
        [said for said in usual.remarks if "spacing" not in said],
    )
    if any(not np.allclose(usual.affine, other.affine) for other in places):
        remarks.append("has slices that say different spacings; that of most is taken")
    if np.allclose(affine, np.eye(4)) and not unit:
        remarks.append("slices say no spacing; 1 is assumed (rm.load takes spacing=)")
    else:
        remarks.append("slices say no distance between them; that along x is assumed (rm.load takes spacing=)")
    affine[2, 2] = affine[0, 0]
    affine[:3, 3] = 0
    if dtype.kind != "b" and dtype.itemsize not in TYPE_SIZES.get(dtype.kind, ()):
        raise RaymarchError(f"{path}: holds {dtype}, want whole numbers or floats; save its slices as one of them")
    colours = min(shape) if len(shape) == 3 else 1
    if colours > 1:
        with library_errors("tifffile", stack[len(stack) // 2]), tifffile.TiffFile(stack[len(stack) // 2]) as file:
            values = file.series[0].keyframe.asarray()
        colours = 1 if _is_one_grey(values) else colours
    return colours, np.dtype("u1") if dtype.kind == "b" else dtype, affine, unit, tuple(remarks)


def _pillow_stack(path: Path, stack: Sequence[Path]) -> tuple[int, np.dtype, np.ndarray, str, tuple[str, ...]]:
    """Colours, type, affine, unit of length and remarks of slices that Pillow reads, which say no spacing."""
    middle = stack[len(stack) // 2]
    with open_image(middle) as image:
        deep, alpha, said = image.mode in DEEP_MODES, has_alpha(image), image.info.get("dpi")
        turned = image.getexif().get(0x0112, 1) if "exif" in image.info else 1
    remarks = ["slices say no spacing; 1 is assumed (rm.load takes spacing=)"]
    if isinstance(said, tuple) and len(said) == 2:
        remarks.append(f"says {float(said[0]):.4g} pixels an inch, as pictures do, which is not read as a spacing")
    if alpha:
        remarks.append("has alpha, which is left out")
    if turned != 1:
        remarks.append(f"says EXIF orientation {turned}, which is not applied; rows and columns are as stored")
    return (3 if _colours(middle) else 1), np.dtype(np.uint16 if deep else np.uint8), np.eye(4), "", tuple(remarks)


def _colours(file: Path) -> bool:
    """Whether a picture is one of colours, and not of a grey."""
    if file.suffix.lower() in TIFF_ENDINGS:
        return pages_of(file)[0].samples > 1
    with open_image(file) as image:
        if image.mode in GREY_MODES or image.mode == "LA":
            return False
    return not _is_grey(_rgb(file), file)


def _is_grey(rgb: np.ndarray, file: Path) -> bool:
    lossy = PICTURE_KINDS[file.suffix.lower()] in ("JPEG", "WebP")
    return int(np.ptp(rgb.astype(np.int16), axis=2).max()) <= (MAX_LOSSY_LEVELS if lossy else 0)


def _is_one_grey(values: np.ndarray) -> bool:
    """Whether the colours of a TIFF page, rows and columns of them or one behind the other, are all alike."""
    colours = np.moveaxis(values, int(np.argmin(values.shape)), 0)[:3]
    return bool((colours == colours[0]).all())


def _rgb(file: Path) -> np.ndarray:
    """Red, green and blue (rows, columns, 3) of a picture of 8 bits, as they are stored."""
    with open_unmapped(open_image(file)) as image:
        try:
            return np.asarray(image.convert("RGB"))
        except Exception as error:  # Pillow raises anything for damaged files
            raise RaymarchError(f"{file}: is damaged ({one_line(error)}); export it again") from error


def _decode_slice(file: Path, channel: int | None, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Rows and columns of a slice, of one of its colours if that is chosen."""
    if file.suffix.lower() in TIFF_ENDINGS:
        import tifffile

        with library_errors("tifffile", file), tifffile.TiffFile(file) as tiff:
            values = tiff.series[0].keyframe.asarray()
        if values.ndim == 3 and channel is None and not _is_one_grey(values):
            raise RaymarchError(
                f"{file}: has colours, which the other slices have not; save it in grey, or take it out"
            )
        if values.ndim == 3:
            values = values[..., channel or 0] if values.shape[:2] == shape else values[channel or 0]
    else:
        with open_unmapped(open_image(file)) as image:
            mode = image.mode
            try:
                values = (
                    np.asarray(image.convert("L") if mode == "LA" else image)
                    if mode in (*GREY_MODES, "LA")
                    else EMPTY_PICTURE
                )
            except Exception as error:  # as in _rgb
                raise RaymarchError(f"{file}: is damaged ({one_line(error)}); export it again") from error
        if mode not in (*GREY_MODES, "LA"):
            rgb = _rgb(file)
            if channel is None and not _is_grey(rgb, file):
                raise RaymarchError(
                    f"{file}: has colours, which the other slices have not; save it in grey, or take it out"
                )
            values = rgb[..., channel or 0]
    if values.shape != shape:
        raise RaymarchError(f"{file}: is {values.shape}, want {shape} rows and columns; export it again")
    if values.dtype.kind in "iu" and values.dtype != dtype:
        ends = np.iinfo(dtype)
        if values.min() < ends.min or values.max() > ends.max:
            raise RaymarchError(f"{file}: has values beyond {dtype}; save the slices as TIFF")
    return values.astype(dtype, copy=False)


def _read_log(path: Path, affine: np.ndarray, unit: str) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Affine and unit by a scanner's log beside the slices, that of the reconstruction before that of the scan."""
    for log in sorted(one for one in path.iterdir() if one.suffix.lower() in LOG_SUFFIXES and one.is_file()):
        with log.open("rb") as file:
            text = file.read(MAX_SEARCHED_BYTES).decode("utf-8", "replace").replace("\ufffd", "µ")
        told = sorted(SIZE_OF_LOG.finditer(text), key=lambda one: one["what"] != "Pixel Size")
        size = float(told[0]["size"].replace(",", ".")) if told else 0.0
        if size > 0:
            step = STEP_OF_LOG.search(text)
            many = max(1, int(step[1])) if step else 1
            said = f"spacing {size:g} {told[0]['unit']} is by {log.name} ({told[0]['what']})"
            if many > 1:
                said += f", {many} times that along z (Section to Section Step)"
            if unit:
                said += f"; that of the pictures, {affine[0, 0]:.4g} {unit}, is not taken"
            return np.diag([size, size, many * size, 1.0]), told[0]["unit"].replace("µm", "um"), (said,)
    return affine, unit, ()


def _gaps(stack: Sequence[Path]) -> tuple[str, ...]:
    """Remark on numbers that are missing between those of the slices."""
    numbers = [tuple(map(int, DIGITS.findall(one.stem))) for one in stack]
    if len({len(one) for one in numbers}) != 1:
        return ()
    varying = [column for column in zip(*numbers, strict=True) if len(set(column)) > 1]
    if len(varying) != 1:
        return ()
    steps = np.diff(varying[0])
    usual = int(np.median(steps))
    at = int((steps != usual).argmax())
    if usual < 1 or steps[at] == usual:
        return ()
    where = f"between {stack[at].name} and {stack[at + 1].name}"
    return (f"has a gap in its numbers {where}; slices are taken as evenly spaced, as if none were missing",)


def write(volume: ScalarVolume, path: Path) -> None:
    """Refusal: slices are read, not written."""
    raise RaymarchError(f"{path}: folders of slices are not written; save it as .tif")


SLICES = scalar_format("picture-slices", (), detect, source, write, folder=True)
