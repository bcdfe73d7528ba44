"""Image folders of a set: their files in the order of their names, and the file of a name that lacks its folder."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from itertools import islice
from pathlib import Path, PurePosixPath

from raymarch.errors import RaymarchError, first_names, one_line
from raymarch.io.files.strict import EXPORT_CURE
from raymarch.io.image_sets.frame_file import frame_file
from raymarch.io.image_sets.frames import require_few
from raymarch.io.images.header import OTHER_SUFFIXES, SUFFIXES

log = logging.getLogger("raymarch")

MAX_ENTRIES = 200_000  # of a folder that are looked at
IMAGE_FOLDER = "images"
MASK_FOLDERS = ("mask", "masks")
PAIRS = "put back what is missing, or take out what is too many"


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


def require_pairs(
    source: Path, count: int, what: str, files: Sequence[Path], folder: Path, kind: str = "images", cure: str = PAIRS
) -> None:
    """RaymarchError where there are not as many files of a `kind` in a folder as numbers of `what` in the source: their
    order alone pairs them.

    Example:
        >>> require_pairs(Path("poses.npy"), 1, "poses", [Path("images/a.png")], Path("images"))
    """
    if len(files) != count:
        raise RaymarchError(
            f"{source}: has {count} {what} but {folder} {len(files)} {kind}, and their order alone pairs them; {cure}"
        )


def only_export(folder: Path, exports: Sequence[Path], suffix: str) -> Path:
    """The one export of cameras in a folder, of those that are recognised, else of all with a suffix; RaymarchError
    where there is not one.

    Example:
        >>> only_export(Path("set"), [Path("set/cameras.xml")], ".xml").name
        'cameras.xml'
    """
    found = exports or sorted(folder.glob(f"*{suffix}"))
    if len(found) != 1:
        names, kind = first_names([path.name for path in found]), suffix[1:].upper()
        raise RaymarchError(
            f"{folder}: has {len(found)} {kind} files ({names}), want one with cameras; move the others"
        )
    return found[0]


def require_inside(path: Path, root: Path, follow_links: bool) -> Path:
    """File of a frame's numbers, if no link leads out of the set to it; else RaymarchError.

    Example:
        >>> Path("0.txt").touch()
        >>> require_inside(Path("0.txt"), Path(".").resolve(), False)
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
        names = [other.name for other in islice(folder.iterdir(), MAX_ENTRIES)] if folder.is_dir() else []
    except OSError as error:
        raise RaymarchError(f"{folder}: cannot be looked at ({one_line(error)}); check its permissions") from error
    seen = sorted(name for name in names if not name.startswith("."))
    read = [name for name in seen if name.lower().endswith(SUFFIXES)]
    return read or [name for name in seen if name.lower().endswith(OTHER_SUFFIXES)]  # which are refused by name


class ImageIndex:
    """Index of the image files in a set's folder and the folders right in it, by the names that the set has for them.

    A name may lack its suffix. Of several files of a name that in `images` comes first, then that in the folder with
    most of the names, of equal ones that in the set's own folder, then by folder; none is in a folder of masks. The log
    says which names have several files, and where several cameras have such a name too, whose files nobody can tell.

    Args:
        folder: of the set.
        names: those of all cameras, whether they are read or not.
        source: the file that has them, which opens messages.
        follow_links: as of `frame_file`.
        read: names of the cameras that are read, by which folders are told apart; all if not given.

    Raises RaymarchError where no name is left that is of one camera or of one file.

    Example:
        >>> Path("images").mkdir(exist_ok=True)
        >>> Path("images/a.JPG").touch()
        >>> ImageIndex(Path("."), ["A"], Path("cameras.csv")).file("A", "cameras.csv, line 2").name
        'a.JPG'
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        source: Path,
        follow_links: bool = False,
        read: Sequence[str] | None = None,
    ) -> None:
        self._folder, self._root, self._follow_links = folder, folder.resolve(), follow_links
        every, counted = ({name.casefold() for name in some} for some in (names, names if read is None else read))
        self._found = _files_of_names(folder, every, counted)
        several = [name for name in dict.fromkeys(names) if len(self._found.get(name.casefold(), ())) > 1]
        cameras = Counter(name.casefold() for name in names)
        lost = [name for name in several if cameras[name.casefold()] > 1]
        self._lost = {name.casefold() for name in lost}
        if lost and not self._found.keys() - self._lost:
            raise RaymarchError(
                f"{source}: each name is of several cameras and of several files ({self._told(lost)}); give each"
                f" photograph a name of its own, align them and {EXPORT_CURE}"
            )
        if lost:
            message = "%s: %d names are of several cameras and of several files, and left out (%s)"
            log.warning(message, source, len(lost), self._told(lost))
        if chosen := [name for name in several if name.casefold() not in self._lost]:
            message = "%s: %d names are of several files each, of which the first is taken (%s)"
            log.warning(message, source, len(chosen), self._told(chosen))

    def _told(self, names: Sequence[str]) -> str:
        return first_names(
            [f"{name}: {first_names(list(map(str, self._found[name.casefold()])), 3)}" for name in names], 3
        )

    def file(self, name: str, where: str) -> Path | None:
        """Image file of a name; None of one that is left out; where none is there the path that it would have.

        Raises RaymarchError, opened by `where`, for a path that leads out of the set, or no name.
        """
        if name.casefold() in self._lost:
            return None
        known = self._found.get(name.casefold())
        return frame_file(self._folder, self._root, str(known[0]) if known else name, where, self._follow_links)


def _files_of_names(folder: Path, names: Set[str], counted: Set[str]) -> dict[str, list[PurePosixPath]]:
    """Files of each casefolded name that has any, as paths in the folder, what comes first the first.

    Folders are in the order of how many of the names that are `counted` they have; but `images` is the first, for
    that of depth maps or of smaller copies has more as soon as one photograph is missing.
    """
    whole, bare = defaultdict[str, list[PurePosixPath]](list), defaultdict[str, list[PurePosixPath]](list)
    for inner in ("", *_folders(folder)):
        for name in _names(folder / inner):
            file = PurePosixPath(inner, name)
            whole[name.casefold()].append(file)
            bare[file.stem.casefold()].append(file)
    found = {name: files for name in names if (files := whole.get(name) or bare.get(name))}
    of_counted = (files for name, files in found.items() if name in counted)
    held = Counter(place for files in of_counted for place in {file.parent for file in files})

    def rank(file: PurePosixPath) -> tuple[bool, int]:
        return file.parent != PurePosixPath(IMAGE_FOLDER), -held[file.parent]

    return {name: sorted(files, key=rank) for name, files in found.items()}


def _folders(folder: Path) -> list[str]:
    """Folders right in a folder, `images` first, but those of masks, whose files are named as photographs are."""
    some: Iterable[Path] = islice(folder.iterdir(), MAX_ENTRIES)
    names = [other.name for other in some if not other.name.startswith(".") and other.is_dir()]
    names = [name for name in names if name.casefold() not in MASK_FOLDERS]
    return sorted(names, key=lambda name: (name != IMAGE_FOLDER, name))[:100]
