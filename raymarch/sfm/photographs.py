"""Photographs of a folder: finds the usable ones and makes upright copies of them."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from PIL import Image, ImageOps

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.strict import require_folder
from raymarch.io.images.header import (
    FORMATS,
    MAX_PIXELS,
    ORIENTATION_TAG,
    SUFFIXES,
    has_alpha,
    open_image,
    open_unmapped,
)
from raymarch.system.resources import workers

MAX_PHOTOGRAPHS = 20_000  # photographs
MAX_ENTRIES = 200_000  # files and folders that are looked at for them
UNREAD_SUFFIXES = (".heic", ".heif", ".avif", ".jp2", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".gif", ".exr")
COLMAP_FORMATS = ("JPEG", "PNG", "TIFF", "BMP")  # formats that COLMAP reads
JPEG_SETTINGS = {"quality": 97, "subsampling": 0}  # of a JPEG that is turned
EXIF_TAG, MAKER_TAG, MODEL_TAG, FOCAL_TAG = 0x8769, 0x010F, 0x0110, 0x920A  # tags
GREY_MODES = ("1", "L", "LA", "La")  # modes whose colour profile is one of greys
ShowProgress = Callable[[str, int, int], None]
T = TypeVar("T")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Photograph:
    """Photograph: its name in the set, a path with slashes; where it came from; and which camera it was taken with."""

    name: str
    source: str
    camera: tuple


@dataclass(frozen=True)
class LeftOutPhotograph:
    """Photograph without a camera: its name within the folder of photographs, and why."""

    name: str
    why: str


def copy_photographs(
    folder: Path, target: Path, follow_links: bool = False, show: ShowProgress = lambda *_: None
) -> tuple[list[Photograph], list[LeftOutPhotograph]]:
    """Upright copies of a folder's photographs in `target`, and which were left out: unreadable, twice there, with
    transparent pixels among photographs without alpha.

    A file is copied byte by byte; but one that EXIF says to turn, or of a format that COLMAP does not read, is written
    anew, turned and without that tag, so that whoever reads it sees what the camera found for it saw; and one whose
    alpha is opaque without it, where others have none. Folders in the folder are looked into; links that lead out of it
    are not followed, unless `follow_links`.

    Raises RaymarchError where there are none, or too many.
    """
    files = list_photographs(folder)
    root = folder.resolve()

    def one(path: Path) -> tuple[Photograph | LeftOutPhotograph, str]:
        name = path.relative_to(folder).as_posix()
        try:
            return _copy_photograph(path, name, root, target, follow_links)
        except RaymarchError as error:
            return LeftOutPhotograph(name, str(error)), ""

    found = _map_photographs(one, files, "photographs", show)
    single, left_out = _drop_doubles(found, target)
    mixed = _drop_minority_alpha(single, target, show)
    names = {one.name for one in mixed}
    return [one for one in single if one.name not in names], left_out + mixed


def _map_photographs(work: Callable[[T], Made], items: Sequence[T], what: str, show: ShowProgress) -> list[Made]:
    """Result of each item, several computed at once. `show` is told the progress and may end the work."""
    made = list[Made]()
    pool = ThreadPoolExecutor(workers())
    try:
        for one in pool.map(work, items):
            made.append(one)
            show(what, len(made), len(items))
    finally:
        pool.shutdown(cancel_futures=True)
    return made


def list_photographs(folder: Path) -> list[Path]:
    """Image files of a folder and of those in it, sorted by name; hidden ones and links to folders are not looked at.

    Raises RaymarchError where there are fewer than three, or too many.
    """
    require_folder(folder)
    files = sorted(path for path in _walk(folder) if path.suffix.lower() in (*SUFFIXES, *UNREAD_SUFFIXES))
    if not files:
        raise RaymarchError(f"{folder}: has no photographs, want some of {', '.join(SUFFIXES)}; check the path")
    if len(files) < 3:
        raise RaymarchError(f"{folder}: has {len(files)} photographs, want 3 or more that overlap; take more")
    if len(files) > MAX_PHOTOGRAPHS:
        raise RaymarchError(f"{folder}: has {len(files):,} photographs, want at most {MAX_PHOTOGRAPHS:,}; take fewer")
    return files


def _walk(folder: Path) -> Iterator[Path]:
    seen = 0

    def failed(error: OSError) -> None:
        raise RaymarchError(f"{error.filename}: cannot be looked at ({one_line(error)}); check its permissions")

    for place, folders, names in os.walk(folder, onerror=failed):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        seen += len(folders) + len(names)
        if seen > MAX_ENTRIES:
            raise RaymarchError(f"{folder}: has over {MAX_ENTRIES:,} files, want a folder of photographs; name one")
        yield from (Path(place) / name for name in names if not name.startswith("."))


def _copy_photograph(path: Path, name: str, root: Path, target: Path, follow_links: bool) -> tuple[Photograph, str]:
    """Copied photograph and a digest of its file; RaymarchError with the reason if it cannot be copied."""
    if not name.isprintable() or len(name) > 1000:
        raise RaymarchError("its name is not printable; rename it")
    try:
        inside = path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError) as error:
        raise RaymarchError(f"unreadable: {one_line(error)}") from None
    if not inside and not follow_links:
        raise RaymarchError("a link that leads out of the folder; --follow-links (follow_links=True) reads it")
    if not path.is_file():
        raise RaymarchError("no file")
    if path.suffix.lower() in UNREAD_SUFFIXES:
        raise RaymarchError(f"{path.suffix.lower()} is not read; export it as JPEG or PNG")
    try:
        return _write_photograph(path, name, target)
    except RaymarchError:
        raise
    except OSError as error:
        if error.filename and Path(error.filename).is_relative_to(target):
            raise RaymarchError(f"cannot be copied: {one_line(error)}") from None
        raise RaymarchError(f"unreadable: {one_line(error) if error.errno else 'no image, or damaged'}") from None
    except Exception as error:  # Pillow's readers raise anything for damaged files
        raise RaymarchError(f"unreadable: {one_line(error)[:100]}") from None


def _write_photograph(path: Path, name: str, target: Path) -> tuple[Photograph, str]:
    with open_unmapped(Image.open(path, formats=FORMATS)) as image:
        if image.width * image.height > MAX_PIXELS:
            raise RaymarchError(
                f"too large: {image.width} x {image.height}, want at most {MAX_PIXELS} pixels; shrink it"
            )
        exif, size = image.getexif(), image.size
        kind = "JPEG" if image.format == "MPO" else image.format  # one with a preview behind it
        turned = exif.get(ORIENTATION_TAG, 1) in range(2, 9)
        image.load()  # all of it: a photograph that is cut off is left out here, not in the middle of a fit
        digest = hashlib.sha256(image.mode.encode() + str(size).encode() + image.tobytes()).hexdigest()
        if turned or kind not in COLMAP_FORMATS:
            upright = ImageOps.exif_transpose(image)
            size, form = upright.size, "JPEG" if kind == "JPEG" else "PNG"
            if form != kind:
                if path.with_name(f"{path.name}.png").exists():
                    raise RaymarchError(f"beside it is {path.name}.png, as which it would be copied; rename one")
                name = f"{name}.png"
            copy = _place(target, name)
            kept = upright.getexif()
            kept.pop(ORIENTATION_TAG, None)
            profile = upright.info.get("icc_profile")  # which the writer of JPEG does not keep by itself
            how = JPEG_SETTINGS if form == "JPEG" else {}
            upright.save(copy, form, exif=kept, icc_profile=profile, **how)
        else:
            shutil.copyfile(path, _place(target, name))
        details = exif.get_ifd(EXIF_TAG)
    taken_with = (*size, str(exif.get(MAKER_TAG, "")), str(exif.get(MODEL_TAG, "")), str(details.get(FOCAL_TAG, "")))
    return Photograph(name, str(path), taken_with), digest


def _place(target: Path, name: str) -> Path:
    copy = target / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    return copy


def _drop_doubles(
    found: Sequence[tuple[Photograph | LeftOutPhotograph, str]], target: Path
) -> tuple[list[Photograph], list[LeftOutPhotograph]]:
    """Photographs without exact duplicates: two equal pictures have no baseline between them."""
    first: dict[str, str] = {}
    kept, out = [], []
    for one, digest in found:
        if isinstance(one, LeftOutPhotograph):
            out.append(one)
        elif digest in first:
            (target / one.name).unlink(missing_ok=True)
            out.append(LeftOutPhotograph(one.name, f"the same picture as {first[digest]}"))
        else:
            first[digest] = one.name
            kept.append(one)
    return kept, out


def _drop_minority_alpha(kept: Sequence[Photograph], target: Path, show: ShowProgress) -> list[LeftOutPhotograph]:
    """The fewer of the copies that have transparent pixels and of those that have no alpha, as no set has both; alpha
    that is opaque is taken out of the others, where some have none."""
    covered, bare = list[str](), list[str]()
    for one in kept:
        with open_image(target / one.name) as image:
            (covered if has_alpha(image) else bare).append(one.name)
    if not covered or not bare:
        return []
    opaque = _map_photographs(lambda name: _is_opaque(target / name), covered, "alphas", show)
    sheer = [name for name, whole in zip(covered, opaque, strict=True) if not whole]
    if len(bare) < len(sheer):
        out, why = bare, f"has no alpha, and {len(sheer)} photographs have transparent pixels"
    else:
        out, why = sheer, f"has transparent pixels, and {len(bare)} photographs have no alpha"
        flat = [name for name, whole in zip(covered, opaque, strict=True) if whole]
        _map_photographs(
            lambda name: _write_without_alpha(target / name), flat, "photographs without their alpha", show
        )
    for name in out:
        (target / name).unlink()
    return [LeftOutPhotograph(name, f"{why}; give alpha to all, or to none") for name in out]


def _is_opaque(path: Path) -> bool:
    with open_unmapped(open_image(path)) as image:
        return image.convert("RGBA").getchannel("A").getextrema()[0] == 255


def _write_without_alpha(path: Path) -> None:
    """Write an image with opaque alpha again, without the alpha."""
    with open_unmapped(open_image(path)) as image:
        form, profile = image.format, image.info.get("icc_profile")
        exif = {} if form == "TIFF" else {"exif": image.getexif()}  # a TIFF's say how the pixels are laid out
        flat = image.convert("RGBA").convert("L" if image.mode in GREY_MODES else "RGB")
    flat.save(path, form, icc_profile=profile, **exif)
