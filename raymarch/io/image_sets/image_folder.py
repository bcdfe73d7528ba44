"""Image folders of a set: their files in the order of their names, and the file of a name that lacks its folder."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path, PurePosixPath

from raymarch.errors import RaymarchError, one_line
from raymarch.io.image_sets.frame_file import frame_file
from raymarch.io.image_sets.frames import require_few
from raymarch.io.images.header import SUFFIXES

MOST_ENTRIES = 200_000  # of a folder that are looked at


def image_files(folder: Path, inner: str, follow_links: bool = False) -> list[Path]:
    """Image files of the folder `inner` of a set, sorted by name; hidden ones are none.

    Raises RaymarchError for more than 20,000, and for links that lead out of the set, unless they are followed.

    Example:
        >>> Path("images").mkdir(exist_ok=True)
        >>> Path("images/b.png").touch(), Path("images/a.JPG").touch(), Path("images/._b.png").touch()
        (None, None, None)
        >>> [file.name for file in image_files(Path("."), "images")]
        ['a.JPG', 'b.png']
    """
    names = _names(folder / inner)
    require_few(len(names), folder / inner)
    root = folder.resolve()
    return [frame_file(folder, root, f"{inner}/{name}", str(folder / inner), follow_links) for name in names]


def inside(path: Path, root: Path, follow_links: bool) -> Path:
    """File of a frame's numbers, if no link leads out of the set to it; else RaymarchError.

    Example:
        >>> Path("0.txt").touch()
        >>> inside(Path("0.txt"), Path(".").resolve(), False)
        PosixPath('0.txt')
    """
    try:
        if follow_links or path.resolve().is_relative_to(root):
            return path
    except (OSError, RuntimeError) as error:
        raise RaymarchError(f"{path}: cannot be looked at ({one_line(error)}); check the path") from error
    raise RaymarchError(
        f"{path}: leads out of {root} by a link; copy the file into it, or follow_links=True, --follow-links if you"
        " trust the set"
    )


def _names(folder: Path) -> list[str]:
    try:
        names = [other.name for other in islice(folder.iterdir(), MOST_ENTRIES)] if folder.is_dir() else []
    except OSError as error:
        raise RaymarchError(f"{folder}: cannot be looked at ({one_line(error)}); check its permissions") from error
    return sorted(name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith("."))


class ImageIndex:
    """Index of the image files in a set's folder and the folders right in it, by name with or without suffix.

    Of several files of a name that in the folder itself comes first, then that in `images`, then by folder.

    Example:
        >>> Path("images").mkdir(exist_ok=True)
        >>> Path("images/a.JPG").touch()
        >>> ImageIndex(Path(".")).file("A", "cameras.csv, line 2").name
        'a.JPG'
    """

    def __init__(self, folder: Path, follow_links: bool = False) -> None:
        self._folder, self._root, self._follow_links = folder, folder.resolve(), follow_links
        self._inner: dict[str, str] = {}
        for inner in ("", *_folders(folder)):
            for name in _names(folder / inner):
                path = f"{inner}/{name}" if inner else name
                for key in (name.casefold(), PurePosixPath(name).stem.casefold()):
                    self._inner.setdefault(key, path)

    def file(self, name: object, where: str) -> Path:
        """Image file of a name; where none is there the path that it would have in `images`.

        Raises RaymarchError, opened by `where`, for a path that leads out of the set, or no name.
        """
        known = self._inner.get(name.casefold()) if isinstance(name, str) else None
        return frame_file(self._folder, self._root, known or name, where, self._follow_links)


def _folders(folder: Path) -> list[str]:
    """Folders right in a folder, `images` first."""
    some: Iterable[Path] = islice(folder.iterdir(), MOST_ENTRIES)
    names = [other.name for other in some if not other.name.startswith(".") and other.is_dir()]
    return sorted(names, key=lambda name: (name != "images", name))[:100]
