"""Format of volume files: the record of one, and what is asked of any."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments.checks import Check, flag, optional
from raymarch.arguments.declared import held
from raymarch.arguments.extensions import (
    NAME,
    called,
    hold_parts,
    is_of_raymarch,
    owner_of,
    part,
    recognises,
    require_one,
)
from raymarch.arguments.guess import did_you_mean
from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import replacing, replacing_folder, require_new_folder, require_writable
from raymarch.io.files.ours import require_ours
from raymarch.io.files.strict import require_file
from raymarch.io.volumes.foreign import told_bare_dicom, told_foreign
from raymarch.io.volumes.summary import ScalarSummary, VolumeSummary, bytes_of
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import ALL, Selection
from raymarch.volumes.volume import AnyVolume, Volume

# Part of a volume that is in memory, where its format reads files as a whole.


def part_of(volume: AnyVolume, selection: Selection, path: Path) -> AnyVolume:
    """Crop and stride of a volume, of bricks in dense arrays.

    RaymarchError for a channel, time or level, for nested boxes and NDC, and where there is no memory for the arrays.
    """
    require_one_place(selection, path)
    if selection.is_all:
        return volume
    if isinstance(volume, ScalarVolume):
        return volume.part(selection)
    require_one_grid(volume, path)
    index = [np.arange(n)[one] for n, one in zip(volume.shape, selection.slices(volume.shape), strict=True)]
    place = volume.world_from_index @ selection.index_from_part(volume.shape)
    return replace(volume, samples=volume.samples.part(index, volume.activation.empty), world_from_index=place)


def require_one_place(selection: Selection, path: Path) -> None:
    """RaymarchError where a selection chooses another channel, time or level than the first, of which there is one."""
    for name in ("channel", "time", "level"):
        if getattr(selection, name):
            raise RaymarchError(f"{path}: {name} is {getattr(selection, name)}, but there is only one; leave it out")


def require_one_grid(volume: AnyVolume, path: Path) -> None:
    """RaymarchError for a volume of nested boxes or in NDC, which are no grid of one spacing in the world."""
    if volume.boxes > 1 or volume.ndc_from_world is not None:
        kind, more = f"of {volume.boxes} nested boxes", ", or take the innermost, volume.nested(0)"
        if volume.ndc_from_world is not None:
            kind, more = "in NDC", ""
        raise RaymarchError(f"{path}: the volume is {kind}, want one grid in the world; leave it whole, as .h5{more}")


def spaced(
    volume: AnyVolume, spacing: float | Sequence[float] | None, selection: Selection, path: Path
) -> AnyVolume:  # fmt: skip
    """Volume with another spacing of its file's samples, of which a stride leaves out some; its origin stays."""
    if spacing is None:
        return volume
    require_one_grid(volume, path)
    steps = np.broadcast_to(np.asarray(spacing, float), 3) * np.asarray(selection.stride)
    affine = volume.world_from_index.copy()
    edges = np.linalg.norm(affine[:3, :3], axis=0)
    if selection.crop is not None:
        first = [start for start, _ in selection.crop] / np.asarray(selection.stride)
        affine[:3, 3] += affine[:3, :3] @ (first * (steps / edges - 1))
    affine[:3, :3] *= steps / edges
    return replace(volume, world_from_index=affine)


SUFFIX = re.compile(r"(\.[A-Za-z0-9_+-]{1,16}){1,3}")


PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
PACKED = (
    (b"\x1f\x8b", "gzip", "gunzip, or tar -xzf where it holds a folder"), (b"PK\x03\x04", "zip", "unzip"),
    (b"BZh", "bzip2", "bunzip2"), (b"\xfd7zXZ", "xz", "unxz"), (b"7z\xbc\xaf", "7-Zip", "7z x"),
    (b"Rar!", "RAR", "unrar x"), (b"\x28\xb5\x2f\xfd", "Zstandard", "unzstd"),
)  # fmt: skip
MOST_FOLDERS = 64  # that are looked into for a message

SUFFIXES = "one or more suffixes such as .h5"


def _suffixes(value: Any) -> tuple[str, ...]:
    several = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(one, str) and SUFFIX.fullmatch(one) for one in several):
        raise ValueError
    return tuple(one.lower() for one in several)


@dataclass(frozen=True)
class Format:
    """Format of volume files: pass one to `rm.save`, `rm.load` and `rm.describe` as `format=`.

    Attributes:
        name: what it is called in messages, and by `format=` where it is one of raymarch's own.
        suffixes: how names of its files end, such as (".h5", ".hdf5"), in letters of either case; none of a folder
            that is known by its content, and not saved.
        detect: `detect(path)`, whether a file has the format, found out from its content.
        read: `read(path)`, its volume, an `rm.Volume` or an `rm.ScalarVolume`; where it takes `selection=` besides, it
            gets the `rm.Selection` of a large file that is asked for, else that is cut out of what it gives.
        write: `write(volume, path)` writes one; the path is that of an empty file of the same suffix, which takes its
            place once all is written, so that a failure leaves the older file as it was.
        describe: `describe(path)`, an `rm.VolumeSummary` or `rm.ScalarSummary` without reading the arrays, of what
            `selection=` says if it takes that; if not given the volume is read.
        folder: whether a volume is a folder of files.
        ours: whether files of the format are raymarch's own, which `rm.save` replaces unasked.

    Paths come as pathlib.Path. Whatever a function raises becomes a RaymarchError that names the format and the
    function, and so does what is no volume.

    Raises RaymarchError for a part that is missing or no function.

    Example:
        >>> def write(volume, path):
        ...     np.savez(path, sigma=volume.sigma())
        >>> def read(path):
        ...     return Volume.from_array(np.load(path)["sigma"])
        >>> npz = Format("sigma", ".npz", lambda path: path.read_bytes()[:2] == b"PK", read, write)
        >>> save(Volume.from_array(np.ones((4, 5, 6))), "ones.npz", format=npz)
        >>> load("ones.npz", format=npz).shape
        (4, 5, 6)
    """

    name: str = held(NAME, None)
    suffixes: Sequence[str] = held(Check(SUFFIXES, _suffixes), None)
    detect: Callable[[Path], bool] = held(part("detect(path)", "True or False"), None)
    read: Callable[..., AnyVolume] = held(part("read(path)", "an rm.Volume"), None)
    write: Callable[[Any, Path], object] = held(part("write(volume, path)", "nothing"), None)
    describe: Callable[..., VolumeSummary | ScalarSummary] | None = held(
        optional(part("describe(path)", "an rm.VolumeSummary")), None
    )
    folder: bool = held(flag, False)
    ours: bool = held(flag, True)

    def __post_init__(self) -> None:
        if self.folder is False and isinstance(self.suffixes, (tuple, list)) and not self.suffixes:
            raise RaymarchError(f"{owner_of(self)}: suffixes is (), want {SUFFIXES}; give one, or say folder=True")
        hold_parts(self)

    def suffix_of(self, path: str | os.PathLike[str]) -> str:
        """Suffix of the format that the path ends in; "" if it is none of them."""
        name = Path(path).name.lower()
        return next((one for one in self.suffixes if name.endswith(one) and name != one), "")


def format_of(path: Path, formats: Sequence[Format]) -> Format:
    """Format of a file by its content, by its suffix too where several claim it.

    A file that none recognises is left to the format of its suffix, or to the only one that may be meant, which says
    what is wrong with it.

    Raises RaymarchError for a missing file, one that no format or more than one claims.
    """
    is_folder = path.is_dir() and any(one.folder for one in formats)
    if not is_folder:
        require_file(path, "a volume file")
    claiming = [one for one in formats if (one.folder or not is_folder) and recognises(one, path)]
    by_suffix = [one for one in formats if one.folder == is_folder and one.suffix_of(path)]
    found = require_one([one for one in claiming if one in by_suffix] or claiming, path, "format") or next(
        iter(by_suffix), None
    )
    if found is None and len(formats) == 1 and path.is_dir() == is_folder == formats[0].folder and not formats[0].ours:
        return formats[0]
    if not is_folder and not claiming and (found is None or is_of_raymarch(found.read)):
        told = told_foreign(path, text=found is None)
        if told is not None:
            raise RaymarchError(f"{path}: {told}")
    if found is None:
        if path.is_dir() and (told := _contents(path, formats)):
            raise RaymarchError(f"{path}: {told}")
        if is_folder and not any(one.suffix_of(path) for one in formats if one.folder):
            require_file(path, "a volume file, or a folder of slices")
        if path.is_file() and (packing := _packing(path)):
            raise RaymarchError(f"{path}: {packing}")
        raise RaymarchError(
            f"{path}: is no volume file of a known format, which are {known(formats)}; check the"
            " path, or give shape and dtype of raw values (raymarch convert --shape X,Y,Z --dtype TYPE)"
        )
    return found


STORES = {  # of chunks in other layouts, by a file in their folder
    "attributes.json": "is N5, want OME-Zarr; open it in Fiji (File > Import > N5) and save it as TIFF",
    "info": "is Neuroglancer's precomputed volume; in Python, with cloud-volume:"
    " np.save('a.npy', np.asarray(cloudvolume.CloudVolume('file://{0}')[:])[..., 0])",
}


OPENED = "np.asarray(PIL.Image.open(f))"
STACKED = {  # slices that are not read, by suffix: what gives rows and columns of one
    **dict.fromkeys((".pgm", ".pnm", ".tga", ".jp2", ".j2k"), OPENED),
    ".gif": "np.asarray(PIL.Image.open(f).convert('L'))",
    ".npy": "np.load(f)",
    ".raw": "np.fromfile(f, DTYPE).reshape(ROWS, COLUMNS)",
    ".exr": "",
}


def _packing(path: Path) -> str:
    """What a packed file is by its first bytes, and how to unpack it; "" for others."""
    with path.open("rb") as file:
        head = file.read(8)
    found = next(((name, tool) for mark, name, tool in PACKED if head.startswith(mark)), None)
    if found is None:
        return ""
    name, tool = found
    return (
        f"is packed by {name}, want a volume file, or a folder of slices; unpack it ({tool}), and name what was in it"
    )


def _slices_of_others(folder: Path, inside: Sequence[Path]) -> str | None:
    """Of a folder whose files are slices of a kind that is not read, the call that stacks them."""
    counts = Counter(one.suffix.lower() for one in inside if one.suffix.lower() in STACKED)
    suffix, count = counts.most_common(1)[0] if counts else ("", 0)
    first = next((one for one in inside if one.suffix.lower() == suffix), None)
    if count < 2 or first is None or (suffix == ".npy" and not _is_plane(first)):
        return None
    if not STACKED[suffix]:
        return f"is a folder of {count} {suffix} files, want slices as TIFF, PNG, BMP or JPEG; save them as TIFF"
    files = f"sorted(glob.glob('{folder}/*{first.suffix}'), key=lambda f: [int(n) for n in re.findall('[0-9]+', f)])"
    return (
        f"is a folder of {count} {suffix} files, want slices as TIFF, PNG, BMP or JPEG; stack them in Python:"
        f" np.save('a.npy', np.stack([{STACKED[suffix]}.T for f in {files}], -1))"
    )


def _is_plane(file: Path) -> bool:
    """Whether an array in a file has two axes."""
    with suppress(Exception):  # as NumPy raises for a file that is none
        return np.load(file, mmap_mode="r", allow_pickle=False).ndim == 2
    return False


def _contents(folder: Path, formats: Sequence[Format]) -> str:
    """What is in a folder that is no volume, and what to name or do in its place; "" where nothing can be said."""
    inside = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    folders = [one for one in inside if one.is_dir()]
    kinds = Counter(one.suffix.lower() for one in inside if one.is_file())
    store = next((told for name, told in STORES.items() if (folder / name).is_file()), None)
    if store is not None:
        return store.format(folder.resolve(), folder.name)
    first = next((one for one in inside if one.is_file()), None)
    if first is not None and (told := told_bare_dicom(first)):
        return told
    pictures = sum(kinds[suffix] for suffix in PICTURES)
    readers = [one for one in formats if one.folder]
    if pictures >= 2:
        what = f"is a folder of {pictures} pictures that are no slices in grey"
        return (
            f"{what}; photographs of an object are an image set: raymarch cameras {folder} --out set, then raymarch fit"
            " set; one colour of slices is read by format='picture-slices' and channel=0 (raymarch convert --format"
            " picture-slices --channel 0)"
        )
    if (told := _slices_of_others(folder, inside)) is not None:
        return told
    if not inside:
        return "is an empty folder, want a volume file, or a folder of slices; check the path"
    found = [one for one in folders[:MOST_FOLDERS] if any(recognises(reader, one) for reader in readers)]
    if found:
        more = f", or {found[1].name}" if len(found) == 2 else f", or one of {len(found) - 1} more" if found[1:] else ""
        return f"is a folder of folders, want one volume; name {found[0]}{more}"
    files = [one for one in inside if one.is_file() and any(each.suffix_of(one) for each in formats if each.suffixes)]
    if files:
        more = f", or one of {len(files) - 1} more" if files[1:] else ""
        return (
            f"is a folder of volumes, want a volume file, or a folder of slices; name the file in it, {files[0]}{more}"
        )
    deeper = next((one for one in folders[:MOST_FOLDERS] if any(each.is_dir() for each in one.iterdir())), None)
    if deeper is not None and not kinds:
        return f"is a folder of folders, want a volume file, or a folder of slices; name one within, below {deeper}"
    return ""


def known(formats: Sequence[Format]) -> str:
    """Known formats and their suffixes, for a message.

    Example:
        >>> from raymarch.io.volumes.volume_file import FORMATS
        >>> known(FORMATS)  # doctest: +ELLIPSIS
        'HDF5 (.h5, .hdf5), NRRD (.nrrd, .nhdr)...'
    """
    return ", ".join(f"{one.name} ({', '.join(one.suffixes) or 'a folder'})" for one in formats)


def read_volume(format: Format, path: Path, selection: Selection = ALL) -> AnyVolume:
    """Volume of a file, or what is selected of it; RaymarchError where it cannot be read."""
    asked = {"selection": selection} if selection != ALL and "selection" in signature(format.read).parameters else {}
    volume: Any = called(
        format, "read", path, path, kind=(Volume, ScalarVolume), wanted="an rm.Volume", **asked
    )  # fmt: skip
    return volume if asked else part_of(volume, selection, path)


def summary_of(format: Format, path: Path, selection: Selection = ALL) -> VolumeSummary | ScalarSummary:
    """Summary of a file, of a channel, time and level of it; RaymarchError where it cannot be read."""
    if format.describe is None:
        volume = read_volume(format, path, selection)
        kind: Any = ScalarSummary if isinstance(volume, ScalarVolume) else VolumeSummary
        return kind.of(volume, bytes_of(path))
    kinds = (VolumeSummary, ScalarSummary)
    takes = "selection" in signature(format.describe).parameters
    if not takes:
        require_one_place(selection, path)
    asked = {"selection": selection} if takes else {}
    found: Any = called(format, "describe", path, path, kind=kinds, wanted="an rm.VolumeSummary", **asked)
    return found


def is_volume(path: Path, formats: Sequence[Format]) -> bool:
    """Detection: whether the file is a volume that one of the formats reads."""
    try:
        summary_of(format_of(path, formats), path)
    except RaymarchError:
        return False
    return True


def require_target(
    path: str | os.PathLike[str], formats: Sequence[Format], overwrite: bool = False, *, size: int = 0
) -> Format:
    """Format whose suffix the path has, if `size` bytes could be written there: asked before long work.

    Raises RaymarchError for the suffix of no format or of more than one, and where nothing can be written or what is
    there would be lost.
    """
    found = require_one([one for one in formats if one.suffix_of(path)], path, "format")
    if found is None:
        names = [one.name for one in formats if one.suffixes]
        suffixes = [suffix for one in formats for suffix in one.suffixes]
        meant = did_you_mean(Path(path).suffix, suffixes)
        raise RaymarchError(
            f"{str(path) or repr('')}: volumes are saved as {_or(names)}; end the name in {_or(suffixes)}"
            + (f"; {meant}" if meant else "")
        )
    if found.folder:
        require_new_folder(path, overwrite)
        return found
    require_writable(path, size)
    own = [one for one in formats if one.ours]
    require_ours([path], "volume", lambda file: is_volume(file, own), overwrite)
    return found


def write_volume(format: Format, volume: AnyVolume, path: str | os.PathLike[str]) -> None:
    """Atomic write of a volume: if the format's `write` fails, an older file stays as it was, and nothing is left.

    Raises RaymarchError, in which the path has its own name, not that of the temporary file.
    """
    place = replacing_folder(path) if format.folder else replacing(path, format.suffix_of(path))
    with place as temporary, _alone(temporary), _by_name(temporary, path):
        called(format, "write", temporary, volume, temporary, kind=object, wanted="nothing")
        if not format.folder and (not temporary.is_file() or temporary.stat().st_size == 0):
            raise RaymarchError(f"{owner_of(format)}: write of {path} wrote nothing; write to the path that it gets")


@contextmanager
def _by_name(temporary: Path, path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors that name the temporary file name the path that it is to become."""
    try:
        yield
    except RaymarchError as error:
        raise RaymarchError(str(error).replace(str(temporary), str(path))) from (error.__cause__ or error)


@contextmanager
def _alone(temporary: Path) -> Iterator[None]:
    """Files that a writer made beside the temporary one, under its name with more behind it, are removed."""
    try:
        yield
    finally:
        for other in temporary.parent.glob(f"{temporary.name}?*"):
            with suppress(OSError):
                other.unlink()


def _or(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
