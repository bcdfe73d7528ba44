"""Pictures of a folder, written together: once all are there they take the place of older ones of raymarch's."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import require_no_interrupt, system_refusals
from raymarch.io.files.authorship import is_of_a_set
from raymarch.io.files.temporary import temporary_folder
from raymarch.io.images.write import is_one_of_several


def older_pictures(folder: Path, names: Collection[str] = ()) -> list[Path]:
    """Pictures of a folder that raymarch wrote as several of one folder, other than those of some names.

    Single ones, such as those of `raymarch slices` and `rm.write_png`, are not among them, nor copies by other names,
    nor what an image set lists, nor anything of others.
    """
    found = []
    with system_refusals(folder):
        for path in sorted(folder.glob("*.png")):
            if path.name in names or path.is_symlink() or not path.is_file():
                continue
            if is_one_of_several(path):
                found.append(path)
    return [path for path in found if not is_of_a_set(path)]


@contextmanager
def replacing_pictures(folder: Path, names: Collection[str]) -> Iterator[Path]:
    """Folder to write pictures of these names to (with .png); if the block succeeds, `folder` has them and no others.

    Where it has older ones they are written beside those, and take their place at the end, all at once: if anything
    fails before, the older ones are as they were. Of others' files none is touched.

    Example:
        >>> with replacing_pictures(Path("."), ["0000.png"]) as place:
        ...     write_one_of_several(place / "0000.png", np.zeros((4, 4)))  # doctest: +SKIP
    """
    if not (older := older_pictures(folder)) and not any((folder / name).exists() for name in names):
        yield folder
        return
    with system_refusals(folder), temporary_folder(folder.resolve()) as temporary:
        made, aside = temporary / "new", temporary / "older"
        made.mkdir()
        aside.mkdir()
        try:
            yield made
        except RaymarchError as error:  # which is about the place that was asked for
            raise RaymarchError(str(error).replace(str(made), str(folder))) from error
        require_no_interrupt()
        moved: list[tuple[Path, Path]] = []  # from, to
        try:
            for path in [*older, *(folder / name for name in names if folder / name not in older)]:
                if path.exists():
                    moved.append((path, aside / path.name))
                    os.replace(path, aside / path.name)
            for path in sorted(made.iterdir()):
                moved.append((path, folder / path.name))
                os.replace(path, folder / path.name)
        except BaseException:  # Ctrl-C among them too
            for source, target in reversed(moved):
                if target.exists() and not source.exists():
                    os.replace(target, source)
            raise
