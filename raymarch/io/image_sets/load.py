"""Loader of image sets: the readers of all layouts in a list, and what is said of a layout that none of them reads."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from raymarch.arguments import checks
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.arguments.extensions import call_callback, choice_of_records, record_label
from raymarch.errors import RaymarchError, one_line
from raymarch.geometry.camera import Camera
from raymarch.io.files.strict import require_folder
from raymarch.io.image_sets.colmap.colmap import COLMAP
from raymarch.io.image_sets.dtu import DTU
from raymarch.io.image_sets.hdf5.image_set import HDF5_SET
from raymarch.io.image_sets.llff import LLFF
from raymarch.io.image_sets.metashape import METASHAPE
from raymarch.io.image_sets.middlebury import MIDDLEBURY
from raymarch.io.image_sets.nerf_synthetic import NERF_SYNTHETIC
from raymarch.io.image_sets.nsvf import NSVF
from raymarch.io.image_sets.polycam import POLYCAM
from raymarch.io.image_sets.read_options import DEFAULT_HOLDOUT
from raymarch.io.image_sets.reader import Reader, read_views, reader_of
from raymarch.io.image_sets.realitycapture import REALITYCAPTURE
from raymarch.io.image_sets.record3d import RECORD3D
from raymarch.io.image_sets.transforms import TRANSFORMS
from raymarch.io.images.header import OTHER_SUFFIXES, SUFFIXES
from raymarch.views.contents import doubts
from raymarch.views.mask_alpha import masks_to_alpha
from raymarch.views.views import DOWNSCALE, HOLDOUT, MASK_MEANINGS, Views, require_colour
from raymarch.volumes.channels import COLOUR_OR_CHANNELS, background_of_channels

READERS = [  # a new one is a module beside this one, and a line here
    NERF_SYNTHETIC,
    TRANSFORMS,
    COLMAP,
    LLFF,
    MIDDLEBURY,
    DTU,
    NSVF,
    POLYCAM,
    RECORD3D,
    METASHAPE,
    REALITYCAPTURE,
    HDF5_SET,
]
READER = optional(choice_of_records(Reader, READERS, "rm.Reader"))
USUAL_SPLITS = ("train", "val", "test")


@checked(
    path=checks.path,
    split=checks.text,
    background=optional(COLOUR_OR_CHANNELS),
    follow_links=checks.flag,
    for_fit=checks.flag,
    reader=READER,
    downscale=DOWNSCALE,
    holdout=optional(HOLDOUT),
    masks=checks.one_of(*MASK_MEANINGS),
    depths=checks.flag,
    depth_unit=optional(checks.number(0, 1e9, above=True, unit="world unit")),
)
def load_views(
    path: str | os.PathLike[str],
    split: str = "train",
    *,
    background: str | Sequence[float] | None = None,
    follow_links: bool = False,
    for_fit: bool = True,
    reader: Reader | str | None = None,
    downscale: float = 1.0,
    holdout: int | None = None,
    masks: str = MASK_MEANINGS[0],
    depths: bool = True,
    depth_unit: float | None = None,
) -> Views:
    """Views of one split of an image set, whose layout is found out from its files.

    Args:
        path: the set's folder, itself a link or not, or the file of `raymarch convert`.
        split: which of its views, such as train, val or test; a set without splits has train, test and all.
        background: colour that images with alpha are composited on; the reader's if not given, white of ours. Of
            channels one number each.
        follow_links: read images that links in the folder lead to outside of it; only where you trust the set.
        for_fit: refuse, before anything is decoded, more images than a fit has memory for.
        reader: an `rm.Reader` of your own, or one of raymarch's by name; found out from the files if not given.
        downscale: how many times smaller images are made as they are read, 1 or more, whole or not: by their area,
            alpha premultiplied; sizes are rounded, and cameras scaled by what comes of that.
        holdout: of a set without splits every so many-th view by name, from the first on, is in the split test and no
            other in train; 8 if not given, 0 to hold none out.
        masks: what pixels are that masks take out: "ignored", so that nobody knows what they show, as of passers-by;
            or "alpha", so that nothing is there, as around an object that is masked in all images.
        depths: read depth images too, and which view sees which sparse point, where the set has them.
        depth_unit: world units of one step of the depth images' values; if not given what the set says, else 0.001,
            for millimetres in a world of metres.

    What speaks against the images, such as some that are transparent all over, is said in the log.

    Raises RaymarchError where the folder is missing, of no known layout, of one that is not read yet, which it names,
    or of two at once, and what the layout's reader raises.

    Example:
        >>> len(load_views("lego", "train"))  # doctest: +SKIP
        100
    """
    folder = Path(path)
    chosen = _choose_reader(folder, reader)  # type: ignore[arg-type]  # the rule looked it up
    asked: dict[str, float] = {"follow_links": follow_links, "for_fit": for_fit}
    # a user's own gets what it has to know of, and refuses what it does not know
    if downscale != 1 or chosen in READERS:
        asked["downscale"] = downscale
    if holdout not in (None, DEFAULT_HOLDOUT) or chosen in READERS:
        asked["holdout"] = DEFAULT_HOLDOUT if holdout is None else holdout
    if not depths or depth_unit is not None or chosen in READERS:
        asked |= {"depths": depths, **({} if depth_unit is None else {"depth_unit": depth_unit})}
    views = read_views(chosen, folder, split, **asked)
    if holdout is not None and chosen in READERS and _own_splits(chosen, folder):
        logging.getLogger("raymarch").warning(
            "%s: has splits of its own, so no view is held out by %d", folder, holdout
        )
        holdout = None
    views = replace(views, downscale=downscale, holdout=holdout)
    if masks == "alpha":
        views = masks_to_alpha(views)
    if background is not None:
        numbers = background_of_channels(views.shown, background) if views.channels else require_colour(background)
        views = replace(views, background=numbers)
    for said in doubts(views):
        logging.getLogger("raymarch").warning("%s", said)
    return views


def cameras_of_set(
    path: str | os.PathLike[str],
    split: str = "train",
    *,
    follow_links: bool = False,
    downscale: float = 1.0,
    holdout: int | None = None,
) -> list[tuple[str, Camera]]:
    """Names and cameras of one split of an image set, whose images need not be there where it says their sizes.

    Arguments and errors are those of `load_views`; no image is decoded, but of those that are there the size counts.

    Example:
        >>> cameras_of_set("lego", "test")[0][0]  # doctest: +SKIP
        'r_0'
    """
    folder = Path(path)
    chosen = _choose_reader(folder, None)
    every = DEFAULT_HOLDOUT if holdout is None else holdout
    asked = {"follow_links": follow_links, "for_fit": False, "downscale": downscale, "holdout": every}
    views = read_views(chosen, folder, split, **asked, cameras_alone=True)
    return list(zip(views.names, views.cameras, strict=True))


def splits_of(path: str | os.PathLike[str]) -> tuple[Sequence[str], bool]:
    """Names of the splits of an image set, and whether they are its own; else they are those that a set may have.

    Raises RaymarchError as `load_views` does for a folder that is no set.
    """
    folder = Path(path)
    own = _own_splits(_choose_reader(folder, None), folder)
    return own or USUAL_SPLITS, bool(own)


def _own_splits(reader: Reader, folder: Path) -> Sequence[str]:
    """Names of the splits that a set has of its own, none where its views are split by being held out."""
    if reader.splits is None:
        return ()
    return call_callback(reader, "splits", folder, folder, kind=(list, tuple), wanted="a list of texts")


def _choose_reader(folder: Path, reader: Reader | None) -> Reader:
    """Reader of a folder, among ours or the one that is given; RaymarchError where it is of none."""
    with _read_errors(folder):
        there = folder.exists()
    found = reader_of(folder, READERS if reader is None else [reader]) if there else None
    if found is None:
        raise RaymarchError(_unread_reason(folder, reader))
    return found


def _unread_reason(folder: Path, reader: Reader | None) -> str:
    """What is said of a folder that no reader reads, or not the one that was asked for."""
    if reader is not None and folder.exists():
        return f"{folder}: {record_label(reader)} does not recognise it; check the path or choose another reader"
    with _read_errors(folder):
        layout = next((layout for layout in LAYOUTS if layout.detect(folder)), None)
    if layout is None:
        require_folder(folder)
        return f"{folder}: is no known image set, looked for {WANTED_LAYOUTS}; check the path or convert the set"
    return f"{folder}: looks like {layout.name}, which {layout.lack}; {layout.cure}"


@contextmanager
def _read_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, RaymarchError):
            raise
        raise RaymarchError(f"{folder}: cannot be looked at ({one_line(error)}); check path and permissions") from error


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


WANTED_LAYOUTS = f"images with cameras of a layout that is read ({', '.join(reader.name for reader in READERS)})"
PICTURE_SUFFIXES = tuple(suffix for suffix in OTHER_SUFFIXES if suffix not in (".mp4", ".mov", ".pdf"))
VIDEO_SUFFIXES = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v")
LAYOUT_FILES = [file for reader in READERS for file in reader.files]
MAX_ENTRIES = 100  # of a folder that are looked into: its folders, its tables
CONVERT_CURE = "convert it to a COLMAP model, or write a transforms.json with transform_matrix and fl_x of each image"
FIND_CURE = "find them first: raymarch cameras PHOTOS --out SET (rm.find_cameras), then fit SET"
FIND_ANEW_CURE = f"find the cameras of its photographs anew: {FIND_CURE.partition(': ')[2]}"
NO_SET, NO_FOLDER, NO_CAMERAS = "is no image set", "is a file, no image set", "has no cameras"


def _has_files(*patterns: str) -> Callable[[Path], bool]:
    """Whether a folder has anything of one of these names."""
    return lambda path: path.is_dir() and any(next(path.glob(pattern), None) is not None for pattern in patterns)


def _ends_with(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.is_file() and path.name.lower().endswith(suffixes)


def _has_ending(*suffixes: str) -> Callable[[Path], bool]:
    return lambda path: path.is_dir() and any(other.name.lower().endswith(suffixes) for other in path.iterdir())


def _has_within(*suffixes: str) -> Callable[[Path], bool]:
    """Whether a folder, or a folder in it, has files of one of these suffixes."""

    def has(path: Path) -> bool:
        if not path.is_dir():
            return False
        inside = [other for other in path.iterdir() if other.is_dir()][:MAX_ENTRIES]
        return any(_has_ending(*suffixes)(folder) for folder in (path, *inside))

    return has


_has_photographs = _has_within(*SUFFIXES)


def _is_inside(path: Path) -> bool:
    """Whether a folder is one of those in a set."""
    return path.is_dir() and _has_files(*LAYOUT_FILES)(path.resolve().parent) and _has_photographs(path)


def _is_volume(path: Path) -> bool:
    if not path.is_file():
        return False
    from raymarch.io.volumes.volume_file import FORMATS  # which load HDF5, half a second

    return any(format.suffix_of(path) for format in FORMATS)


def _has_table(path: Path) -> bool:
    """Whether a folder has a table with RealityCapture's columns that is saved as its reader does not read it."""
    if not path.is_dir() or REALITYCAPTURE.detect(path):
        return False
    for file in [one for one in path.iterdir() if one.name.lower().endswith(".csv") and one.is_file()][:MAX_ENTRIES]:
        with file.open("rb") as opened:
            first = opened.read(1000).replace(b"\0", b"").lower()
        line = (first.splitlines() or [b""])[0]
        if all(name in line for name in (b"name", b"heading", b"pitch", b"roll")):
            return True
    return False


LAYOUTS = [  # the first that is recognised counts: what has cameras comes before images alone
    Layout("MVSNet or BlendedMVS (cams/*_cam.txt)", _has_files("cams/*_cam.txt"), cure=CONVERT_CURE),
    Layout("Bundler (bundle.out)", _has_files("bundle*.out", "*/bundle*.out"), cure=FIND_ANEW_CURE),
    Layout("VisualSFM (*.nvm)", _has_files("*.nvm"), cure=FIND_ANEW_CURE),
    Layout("Meshroom (*.sfm)", _has_files("*.sfm"), cure=FIND_ANEW_CURE),
    Layout(
        "OpenMVG (sfm_data.json)", _has_files("sfm_data.json"), cure="export it for COLMAP: openMVG_main_openMVG2Colmap"
    ),
    Layout(
        "OpenSfM or ODM (reconstruction.json)",
        _has_files("reconstruction.json", "*/reconstruction.json"),
        cure=FIND_ANEW_CURE,
    ),
    Layout(
        "a table of RealityCapture that another program saved (*.csv)",
        _has_table,
        "export the registration anew as CSV (internal and external camera parameters), or save the table as UTF-8 with"
        " commas between columns, points in numbers and the names in small letters, and leave one such table there",
    ),
    Layout(
        "the output of Gaussian splatting (cameras.json, point_cloud)",
        lambda path: _has_files("point_cloud")(path) and _has_files("cameras.json")(path),
        "want the set that it was trained on, source_path in its cfg_args",
        NO_SET,
    ),
    Layout("a video", _ends_with(*VIDEO_SUFFIXES), FIND_CURE, NO_CAMERAS),
    Layout(
        "a single image", _ends_with(*SUFFIXES, *PICTURE_SUFFIXES), f"want a folder with {WANTED_LAYOUTS}", NO_FOLDER
    ),
    Layout("a volume", _is_volume, "want an image set here, its folder or what raymarch convert wrote", NO_SET),
    Layout("an archive", _ends_with(".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".r3d"), "unpack it", NO_FOLDER),
    Layout("a folder of images inside a set", _is_inside, "want the folder above it", NO_SET),
    Layout(
        "a folder of image sets",
        _has_files(*[f"*/{file}" for file in LAYOUT_FILES]),
        "want one of the folders in it",
        NO_SET,
    ),
    Layout("a folder with a video", _has_ending(*VIDEO_SUFFIXES), FIND_CURE, NO_CAMERAS),
    Layout("a folder with photographs", _has_photographs, FIND_CURE, NO_CAMERAS),
    Layout(
        "a folder with pictures of a format that is not read",
        _has_within(*PICTURE_SUFFIXES),
        f"convert them to PNG or JPEG (ImageMagick: magick mogrify -format png *), then {FIND_CURE.partition(': ')[2]}",
        NO_CAMERAS,
    ),
    Layout("a folder with an archive", _has_ending(".zip", ".tar", ".gz", ".tgz", ".r3d"), "unpack it", NO_SET),
]
