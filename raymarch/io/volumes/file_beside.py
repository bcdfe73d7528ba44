"""File beside a header that holds its values: in the same folder, never elsewhere."""

from __future__ import annotations

from pathlib import Path

from raymarch.errors import RaymarchError


def file_beside(path: Path, name: str, length: int, local: str = "") -> tuple[Path, int]:
    """The file with a header's values and where they begin in it.

    Args:
        path: of the header.
        name: of the file as the header says it.
        length: of the header [byte]: where values begin that are in the same file.
        local: the name, in letters of either case, that means the header's own file.

    Raises RaymarchError for several files, and one that is not beside the header.
    """
    name = name.removeprefix("./")
    if local and name.upper() == local:
        return path, length
    if name.upper().startswith("LIST") or "%" in name or "\n" in name:
        raise RaymarchError(f"{path}: its values are in several files; save it in one with the program that wrote it")
    if Path(name).name != name or "\\" in name or name in ("", ".", ".."):
        raise RaymarchError(f"{path}: its values are in {name[:80]!r}, want a file beside it; move it there")
    data = path.with_name(name)
    if data.is_symlink() or not data.is_file():
        raise RaymarchError(f"{path}: its values are in {name[:80]!r}, which is no file there; put it beside")
    return data, 0
