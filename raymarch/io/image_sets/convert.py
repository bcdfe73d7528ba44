"""Conversion of an image set of any layout that is read to one HDF5 file."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import require_writable
from raymarch.io.files.authorship import require_ours
from raymarch.io.image_sets.hdf5 import image_set
from raymarch.io.image_sets.load import load_views, splits_of
from raymarch.views.views import Views

HDF5_SUFFIXES = (".h5", ".hdf5")
log = logging.getLogger("raymarch")


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    background: str | Sequence[float] | None = None,
    follow_links: bool = False,
    downscale: float = 1.0,
    holdout: int | None = None,
    depth_unit: float | None = None,
    seen: Callable[[str, Views], object] = lambda split, views: None,
) -> dict[str, int]:
    """Image set written to one HDF5 file, with all its splits, lenses, masks, depths, points and box; how many views
    each has.

    Args:
        source: the set, of any layout that `load_views` reads.
        target: the file, whose name ends in .h5 or .hdf5.
        overwrite: whether a file may be replaced that is no such image set.
        background, follow_links, downscale, holdout, depth_unit: as of `load_views`; what they do is in the file for
            good.
        seen: called with each split that is read.

    Raises RaymarchError for another suffix, for what `load_views` raises, and where nothing can be written or what is
    there would be lost.

    Example:
        >>> convert("fox", "fox.h5")  # doctest: +SKIP
        {'train': 43, 'test': 7, 'val': 7}
    """
    if not str(target).lower().endswith(HDF5_SUFFIXES):
        raise RaymarchError(f"{str(target) or repr('')}: image sets are written as HDF5; end the name in .h5 or .hdf5")
    require_writable(target)
    require_ours([target], "image set", image_set.detect, overwrite)
    from raymarch.io.image_sets.hdf5.reading import sources_of
    from raymarch.io.image_sets.hdf5.writing import write_views

    def found() -> Iterator[tuple[str, Views]]:
        names, told = splits_of(source)
        sources = sources_of(Path(source)) if image_set.detect(Path(source)) else {}
        for i, name in enumerate(names):
            try:
                views = load_views(
                    source,
                    name,
                    background=background,
                    follow_links=follow_links,
                    for_fit=False,
                    downscale=downscale,
                    holdout=holdout,
                    depth_unit=depth_unit,
                )
            except RaymarchError as error:
                if told or i == 0:
                    raise
                log.warning("%s: goes without the split %s (%s)", Path(source), name, error)
                continue
            seen(name, views)
            yield name, replace(views, source=sources.get(name, views.source))

    with _log_once():
        return write_views(found(), target)


@contextmanager
def _log_once() -> Iterator[None]:
    """Context in which the log says each line once, though each split is read by itself."""
    said: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        new = text not in said
        said.add(text)
        return new

    log.addFilter(is_new)
    try:
        yield
    finally:
        log.removeFilter(is_new)
