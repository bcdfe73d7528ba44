"""Foreign layouts of image sets that no reader reads: how each is recognised, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from raymarch.io.image_sets.readers import READERS
from raymarch.io.images.header import OTHER_SUFFIXES, SUFFIXES


class Layout(NamedTuple):
    """Foreign layout of images and cameras.

    Attributes:
        name: what it is called and recognised by.
        detect: whether a folder, or a file, has it.
        cure: what to do.
        lack: why it is not read.
    """

    name: str
    detect: Callable[[Path], bool]
    cure: str
    lack: str = "is not read yet"


WANTED = f"images with cameras of a layout that is read ({', '.join(reader.name for reader in READERS)})"
PICTURES = tuple(suffix for suffix in OTHER_SUFFIXES if suffix not in (".mp4", ".mov", ".pdf"))
VIDEOS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v")
FILES = [file for reader in READERS for file in reader.files]
FEW = 100  # folders that are looked into
CONVERT = "convert it to a COLMAP model, or write a transforms.json with transform_matrix and fl_x of each image"
FIND = "find them first: raymarch cameras PHOTOS --out SET (rm.find_cameras), then fit SET"


def _has(*patterns: str) -> Callable[[Path], bool]:
    """Whether a folder has anything of one of these names."""
    return lambda path: path.is_dir() and any(next(path.glob(pattern), None) is not None for pattern in patterns)


def _ends(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.is_file() and path.name.lower().endswith(suffixes)


def _has_ending(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.is_dir() and any(other.name.lower().endswith(suffixes) for other in path.iterdir())


def _has_within(*suffixes: str) -> Callable[[Path], bool]:
    """Whether a folder, or a folder in it, has files of one of these suffixes."""

    def has(path: Path) -> bool:
        if not path.is_dir():
            return False
        inside = [other for other in path.iterdir() if other.is_dir()][:FEW]
        return any(_has_ending(*suffixes)(folder) for folder in (path, *inside))

    return has


_has_photographs = _has_within(*SUFFIXES)


def _is_inside(path: Path) -> bool:
    """Whether a folder is one of those in a set."""
    return path.is_dir() and _has(*FILES)(path.resolve().parent) and _has_photographs(path)


def _is_volume(path: Path) -> bool:
    if not path.is_file():
        return False
    from raymarch.io.volumes.formats import FORMATS  # which load HDF5, half a second

    return any(format.suffix_of(path) for format in FORMATS)


def _has_table(path: Path) -> bool:
    """Whether a folder has a table whose first line names RealityCapture's columns, however it is saved."""
    if not path.is_dir():
        return False
    for file in [one for one in path.iterdir() if one.name.lower().endswith(".csv") and one.is_file()][:FEW]:
        with file.open("rb") as opened:
            first = opened.read(1000).replace(b"\0", b"").lower()
        line = (first.splitlines() or [b""])[0]
        if all(name in line for name in (b"name", b"heading", b"pitch", b"roll")):
            return True
    return False


AGAIN = f"find the cameras of its photographs anew: {FIND.partition(': ')[2]}"
NO_SET, NO_FOLDER, NO_CAMERAS = "is no image set", "is a file, no image set", "has no cameras"

LAYOUTS = [  # the first that is recognised counts: what has cameras comes before images alone
    Layout("MVSNet or BlendedMVS (cams/*_cam.txt)", _has("cams/*_cam.txt"), cure=CONVERT),
    Layout("Bundler (bundle.out)", _has("bundle*.out", "*/bundle*.out"), cure=AGAIN),
    Layout("VisualSFM (*.nvm)", _has("*.nvm"), cure=AGAIN),
    Layout("Meshroom (*.sfm)", _has("*.sfm"), cure=AGAIN),
    Layout("OpenMVG (sfm_data.json)", _has("sfm_data.json"), cure="export it for COLMAP: openMVG_main_openMVG2Colmap"),
    Layout("OpenSfM or ODM (reconstruction.json)", _has("reconstruction.json", "*/reconstruction.json"), cure=AGAIN),
    Layout(
        "a table of RealityCapture that another program saved (*.csv)",
        _has_table,
        "export the registration anew as CSV (internal and external camera parameters), or save the table as UTF-8 with"
        " commas between columns, points in numbers and the names in small letters, and leave one such table there",
    ),
    Layout(
        "the output of Gaussian splatting (cameras.json, point_cloud)",
        lambda path: _has("point_cloud")(path) and _has("cameras.json")(path),
        "want the set that it was trained on, source_path in its cfg_args",
        NO_SET,
    ),
    Layout("a video", _ends(*VIDEOS), FIND, NO_CAMERAS),
    Layout("a single image", _ends(*SUFFIXES, *PICTURES), f"want a folder with {WANTED}", NO_FOLDER),
    Layout("a volume", _is_volume, "want an image set here, its folder or what raymarch convert wrote", NO_SET),
    Layout("an archive", _ends(".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".r3d"), "unpack it", NO_FOLDER),
    Layout("a folder of images inside a set", _is_inside, "want the folder above it", NO_SET),
    Layout("a folder of image sets", _has(*[f"*/{file}" for file in FILES]), "want one of the folders in it", NO_SET),
    Layout("a folder with a video", _has_ending(*VIDEOS), FIND, NO_CAMERAS),
    Layout("a folder with photographs", _has_photographs, FIND, NO_CAMERAS),
    Layout(
        "a folder with pictures of a format that is not read",
        _has_within(*PICTURES),
        f"convert them to PNG or JPEG (ImageMagick: magick mogrify -format png *), then {FIND.partition(': ')[2]}",
        NO_CAMERAS,
    ),
    Layout("a folder with an archive", _has_ending(".zip", ".tar", ".gz", ".tgz", ".r3d"), "unpack it", NO_SET),
]
