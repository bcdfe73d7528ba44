"""Loader of image sets of any known layout."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from raymarch.arguments import arrays, checks
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.arguments.extensions import called, owner_of
from raymarch.errors import RaymarchError, one_line
from raymarch.geometry.camera import Camera
from raymarch.io.files.limits import require_folder
from raymarch.io.image_sets.frame_file import without_images
from raymarch.io.image_sets.holdout import HOLDOUT as EVERY
from raymarch.io.image_sets.layouts import LAYOUTS, WANTED
from raymarch.io.image_sets.reader import Reader, read_views, reader_of
from raymarch.io.image_sets.readers import READER, READERS
from raymarch.views.contents import doubts
from raymarch.views.mask_alpha import with_masks_as_alpha
from raymarch.views.views import DOWNSCALE, HOLDOUT, MASKS_AS, Views, require_colour

MAY_HAVE = ("train", "val", "test")


@checked(
    path=checks.path,
    split=checks.text,
    background=optional(arrays.colour),
    follow_links=checks.flag,
    for_fit=checks.flag,
    reader=READER,
    downscale=DOWNSCALE,
    holdout=optional(HOLDOUT),
    masks=checks.one_of(*MASKS_AS),
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
    masks: str = MASKS_AS[0],
) -> Views:
    """Views of one split of an image set, whose layout is found out from its files.

    Args:
        path: the set's folder, itself a link or not, or the file of `raymarch convert`.
        split: which of its views, such as train, val or test; a set without splits has train, test and all.
        background: colour that images with alpha are composited on; the reader's if not given, white of ours.
        follow_links: read images that links in the folder lead to outside of it; only where you trust the set.
        for_fit: refuse, before anything is decoded, more images than a fit has memory for.
        reader: an `rm.Reader` of your own, or one of raymarch's by name; found out from the files if not given.
        downscale: how many times smaller images are made as they are read, 1 or more, whole or not: by their area,
            alpha premultiplied; sizes are rounded, and cameras scaled by what comes of that.
        holdout: of a set without splits every so many-th view by name, from the first on, is in the split test and no
            other in train; 8 if not given, 0 to hold none out.
        masks: what pixels are that masks take out: "ignored", so that nobody knows what they show, as of passers-by;
            or "alpha", so that nothing is there, as around an object that is masked in all images.

    What speaks against the images, such as some that are transparent all over, is said in the log.

    Raises RaymarchError where the folder is missing, of no known layout, of one that is not read yet, which it names,
    or of two at once, and what the layout's reader raises.

    Example:
        >>> len(load_views("lego", "train"))  # doctest: +SKIP
        100
    """
    folder = Path(path)
    chosen = _chosen(folder, reader)  # type: ignore[arg-type]  # the rule looked it up
    asked = {"downscale": downscale, "holdout": EVERY if holdout is None else holdout}
    if chosen not in READERS:  # a user's own gets what it has to know of, and refuses what it does not know
        asked = {name: value for name, value in asked.items() if value != {"downscale": 1.0, "holdout": EVERY}[name]}
    views = read_views(chosen, folder, split, follow_links=follow_links, for_fit=for_fit, **asked)
    if holdout is not None and chosen in READERS and _own_splits(chosen, folder):
        logging.getLogger("raymarch").warning(
            "%s: has splits of its own, so no view is held out by %d", folder, holdout
        )
        holdout = None
    views = replace(views, downscale=downscale, holdout=holdout)
    if masks == "alpha":
        views = with_masks_as_alpha(views)
    if background is not None:
        views = replace(views, background=require_colour(background))
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
    chosen = _chosen(folder, None)
    options = {"downscale": downscale, "holdout": EVERY if holdout is None else holdout}
    with without_images():
        views = read_views(chosen, folder, split, follow_links=follow_links, for_fit=False, **options)
    return list(zip(views.names, views.cameras, strict=True))


def splits_of(path: str | os.PathLike[str]) -> tuple[Sequence[str], bool]:
    """Names of the splits of an image set, and whether they are its own; else they are those that a set may have.

    Raises RaymarchError as `load_views` does for a folder that is no set.
    """
    folder = Path(path)
    own = _own_splits(_chosen(folder, None), folder)
    return own or MAY_HAVE, bool(own)


def _own_splits(reader: Reader, folder: Path) -> Sequence[str]:
    """Names of the splits that a set has of its own, none where its views are split by being held out."""
    if reader.splits is None:
        return ()
    return called(reader, "splits", folder, folder, kind=(list, tuple), wanted="a list of texts")


def _chosen(folder: Path, reader: Reader | None) -> Reader:
    """Reader of a folder, among ours or the one that is given; RaymarchError where it is of none."""
    with _looking_at(folder):
        there = folder.exists()
    found = reader_of(folder, READERS if reader is None else [reader]) if there else None
    if found is None:
        raise RaymarchError(_why_not(folder, reader))
    return found


def _why_not(folder: Path, reader: Reader | None) -> str:
    """What is said of a folder that no reader reads, or not the one that was asked for."""
    if reader is not None and folder.exists():
        return f"{folder}: {owner_of(reader)} does not recognise it; check the path or choose another reader"
    with _looking_at(folder):
        layout = next((layout for layout in LAYOUTS if layout.detect(folder)), None)
    if layout is None:
        require_folder(folder)
        return f"{folder}: is no known image set, looked for {WANTED}; check the path or convert the set"
    return f"{folder}: looks like {layout.name}, which {layout.lack}; {layout.cure}"


@contextmanager
def _looking_at(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, RaymarchError):
            raise
        raise RaymarchError(f"{folder}: cannot be looked at ({one_line(error)}); check path and permissions") from error
