"""Choice of a format: which one a file has or is to get, and what is said of a file or folder that has none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from raymarch.arguments.extensions import call_detect, is_of_raymarch, require_one
from raymarch.arguments.similar_names import did_you_mean
from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import require_new_folder, require_writable
from raymarch.io.files.authorship import require_ours
from raymarch.io.files.strict import require_file
from raymarch.io.volumes.foreign import describe_bare_dicom, describe_foreign
from raymarch.io.volumes.format import Format, summary_of

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
PACKED_SUFFIXES = (
    (b"\x1f\x8b", "gzip", "gunzip, or tar -xzf where it holds a folder"), (b"PK\x03\x04", "zip", "unzip"),
    (b"BZh", "bzip2", "bunzip2"), (b"\xfd7zXZ", "xz", "unxz"), (b"7z\xbc\xaf", "7-Zip", "7z x"),
    (b"Rar!", "RAR", "unrar x"), (b"\x28\xb5\x2f\xfd", "Zstandard", "unzstd"),
)  # fmt: skip
MAX_FOLDERS = 64  # that are looked into for a message
FOREIGN_STORES = {  # of chunks in other layouts, by a file in their folder
    "attributes.json": "is N5, want OME-Zarr; open it in Fiji (File > Import > N5) and save it as TIFF",
    "info": "is Neuroglancer's precomputed volume; in Python, with cloud-volume:"
    " np.save('a.npy', np.asarray(cloudvolume.CloudVolume('file://{0}')[:])[..., 0])",
}
OPEN_PICTURE = "np.asarray(PIL.Image.open(f))"
STACKED_SLICES = {  # slices that are not read, by suffix: what gives rows and columns of one
    **dict.fromkeys((".pgm", ".pnm", ".tga", ".jp2", ".j2k"), OPEN_PICTURE),
    ".gif": "np.asarray(PIL.Image.open(f).convert('L'))",
    ".npy": "np.load(f)",
    ".raw": "np.fromfile(f, DTYPE).reshape(ROWS, COLUMNS)",
    ".exr": "",
}


def format_of(path: Path, formats: Sequence[Format]) -> Format:
    """Format of a file by its content, by its suffix too where several claim it.

    A file that none recognises is left to the format of its suffix, or to the only one that may be meant, which says
    what is wrong with it.

    Raises RaymarchError for a missing file, one that no format or more than one claims.
    """
    is_folder = path.is_dir() and any(one.folder for one in formats)
    if not is_folder:
        require_file(path, "a volume file")
    claiming = [one for one in formats if (one.folder or not is_folder) and call_detect(one, path)]
    by_suffix = [one for one in formats if one.folder == is_folder and one.suffix_of(path)]
    found = require_one([one for one in claiming if one in by_suffix] or claiming, path, "format") or next(
        iter(by_suffix), None
    )
    if found is None and len(formats) == 1 and path.is_dir() == is_folder == formats[0].folder and not formats[0].ours:
        return formats[0]
    if not is_folder and not claiming and (found is None or is_of_raymarch(found.read)):
        told = describe_foreign(path, text=found is None)
        if told is not None:
            raise RaymarchError(f"{path}: {told}")
    if found is None:
        if path.is_dir() and (told := _words_of_contents(path, formats)):
            raise RaymarchError(f"{path}: {told}")
        if is_folder and not any(one.suffix_of(path) for one in formats if one.folder):
            require_file(path, "a volume file, or a folder of slices")
        if path.is_file() and (packing := _words_of_packing(path)):
            raise RaymarchError(f"{path}: {packing}")
        raise RaymarchError(
            f"{path}: is no volume file of a known format, which are {known_formats(formats)}; check the"
            " path, or give shape and dtype of raw values (raymarch convert --shape X,Y,Z --dtype TYPE)"
        )
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
            f"{str(path) or repr('')}: volumes are saved as {_join_words(names)}; end the name in "
            f"{_join_words(suffixes)}" + (f"; {meant}" if meant else "")
        )
    if found.folder:
        require_new_folder(path, overwrite)
        return found
    require_writable(path, size)
    own = [one for one in formats if one.ours]
    require_ours([path], "volume", lambda file: is_volume(file, own), overwrite)
    return found


def known_formats(formats: Sequence[Format]) -> str:
    """Known formats and their suffixes, for a message.

    Example:
        >>> from raymarch.io.volumes.volume_file import FORMATS
        >>> known_formats(FORMATS)  # doctest: +ELLIPSIS
        'HDF5 (.h5, .hdf5), NRRD (.nrrd, .nhdr)...'
    """
    return ", ".join(f"{one.name} ({', '.join(one.suffixes) or 'a folder'})" for one in formats)


def _join_words(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _words_of_packing(path: Path) -> str:
    """What a packed file is by its first bytes, and how to unpack it; "" for others."""
    with path.open("rb") as file:
        head = file.read(8)
    found = next(((name, tool) for mark, name, tool in PACKED_SUFFIXES if head.startswith(mark)), None)
    if found is None:
        return ""
    name, tool = found
    return (
        f"is packed by {name}, want a volume file, or a folder of slices; unpack it ({tool}), and name what was in it"
    )


def _words_of_contents(folder: Path, formats: Sequence[Format]) -> str:
    """What is in a folder that is no volume, and what to name or do in its place; "" where nothing can be said."""
    inside = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    folders = [one for one in inside if one.is_dir()]
    kinds = Counter(one.suffix.lower() for one in inside if one.is_file())
    store = next((told for name, told in FOREIGN_STORES.items() if (folder / name).is_file()), None)
    if store is not None:
        return store.format(folder.resolve(), folder.name)
    first = next((one for one in inside if one.is_file()), None)
    if first is not None and (told := describe_bare_dicom(first)):
        return told
    pictures = sum(kinds[suffix] for suffix in PICTURE_SUFFIXES)
    readers = [one for one in formats if one.folder]
    if pictures >= 2:
        what = f"is a folder of {pictures} pictures that are no slices in grey"
        return (
            f"{what}; photographs of an object are an image set: raymarch cameras {folder} --out set, then raymarch fit"
            " set; one colour of slices is read by format='picture-slices' and channel=0 (raymarch convert --format"
            " picture-slices --channel 0)"
        )
    if (told := _words_of_slices(folder, inside)) is not None:
        return told
    if not inside:
        return "is an empty folder, want a volume file, or a folder of slices; check the path"
    found = [one for one in folders[:MAX_FOLDERS] if any(call_detect(reader, one) for reader in readers)]
    if found:
        more = f", or {found[1].name}" if len(found) == 2 else f", or one of {len(found) - 1} more" if found[1:] else ""
        return f"is a folder of folders, want one volume; name {found[0]}{more}"
    files = [one for one in inside if one.is_file() and any(each.suffix_of(one) for each in formats if each.suffixes)]
    if files:
        more = f", or one of {len(files) - 1} more" if files[1:] else ""
        return (
            f"is a folder of volumes, want a volume file, or a folder of slices; name the file in it, {files[0]}{more}"
        )
    deeper = next((one for one in folders[:MAX_FOLDERS] if any(each.is_dir() for each in one.iterdir())), None)
    if deeper is not None and not kinds:
        return f"is a folder of folders, want a volume file, or a folder of slices; name one within, below {deeper}"
    return ""


def _words_of_slices(folder: Path, inside: Sequence[Path]) -> str | None:
    """Of a folder whose files are slices of a kind that is not read, the call that stacks them."""
    counts = Counter(one.suffix.lower() for one in inside if one.suffix.lower() in STACKED_SLICES)
    suffix, count = counts.most_common(1)[0] if counts else ("", 0)
    first = next((one for one in inside if one.suffix.lower() == suffix), None)
    if count < 2 or first is None or (suffix == ".npy" and not _is_plane(first)):
        return None
    if not STACKED_SLICES[suffix]:
        return f"is a folder of {count} {suffix} files, want slices as TIFF, PNG, BMP or JPEG; save them as TIFF"
    files = f"sorted(glob.glob('{folder}/*{first.suffix}'), key=lambda f: [int(n) for n in re.findall('[0-9]+', f)])"
    return (
        f"is a folder of {count} {suffix} files, want slices as TIFF, PNG, BMP or JPEG; stack them in Python:"
        f" np.save('a.npy', np.stack([{STACKED_SLICES[suffix]}.T for f in {files}], -1))"
    )


def _is_plane(file: Path) -> bool:
    """Whether an array in a file has two axes."""
    with suppress(Exception):  # as NumPy raises for a file that is none
        return np.load(file, mmap_mode="r", allow_pickle=False).ndim == 2
    return False
