"""Image sets in one HDF5 file, as `raymarch convert` writes them; docs/image-sets.md describes the layout."""

from __future__ import annotations

from pathlib import Path

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
    import h5py  # here, as it takes a third of a second that folders need not wait for

    from raymarch.io.files.hdf5 import DAMAGE
    from raymarch.io.image_sets.hdf5_layout import FORMAT

    try:
        with h5py.File(path, "r") as file:
            return file.attrs.get("format") in (FORMAT, FORMAT.encode())
    except DAMAGE:
        return False


def read(
    path: Path,
    split: str = "train",
    *,
    for_fit: bool = True,
    downscale: float = 1.0,
    follow_links: bool = False,
    holdout: int = 8,
) -> Views:
    """Views of a split as they were when the file was written, or of "all"; checked against the digest of the file.

    Nothing more is held out, and no links are in it that could be followed.

    Raises RaymarchError that names the file, what is wrong and the cure: a damaged, altered or too large file, one that
    would read other files, and a split that it has not.
    """
    from raymarch.io.image_sets.hdf5_reading import views_of

    return views_of(path, split, for_fit=for_fit, downscale=downscale)


def splits(path: Path) -> tuple[str, ...]:
    """Names of the splits of a file."""
    from raymarch.io.image_sets.hdf5_reading import splits_of

    return splits_of(path)


HDF5_SET = Reader("HDF5", detect, read, splits=splits)
