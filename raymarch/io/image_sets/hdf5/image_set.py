"""Image sets in one HDF5 file, as `raymarch convert` writes them: the reader, which loads HDF5 only where it reads.

HDF5 takes a third of a second to load, that sets in folders need not wait for.
"""

from __future__ import annotations

from pathlib import Path

from raymarch.io.image_sets.read_options import ReadOptions
from raymarch.io.image_sets.reader import Reader
from raymarch.views.views import Views

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
    from raymarch.io.image_sets.hdf5.layout import is_image_set

    return is_image_set(path)


def read(path: Path, split: str = "train", **options: float) -> Views:
    """Views of a split as they were when the file was written, or of "all"; checked against the digest of the file.

    Nothing more is held out, and no links are in it that could be followed.

    Raises RaymarchError that names the file, what is wrong and the cure: a damaged, altered or too large file, one that
    would read other files, and a split that it has not.
    """
    from raymarch.io.image_sets.hdf5.reading import views_of

    return views_of(path, ReadOptions(split, **options))  # type: ignore[arg-type]


def splits(path: Path) -> tuple[str, ...]:
    """Names of the splits of a file."""
    from raymarch.io.image_sets.hdf5.reading import splits_of

    return splits_of(path)


HDF5_SET = Reader("HDF5", detect, read, splits=splits)
