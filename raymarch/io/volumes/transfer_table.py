"""Transfer functions as JSON files of what `rm.TransferFunction` has: values, colours, opacities, unit_length."""

from __future__ import annotations

import json
import os
from pathlib import Path

from raymarch.arguments import checks
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import replace_file
from raymarch.io.files.authorship import require_ours
from raymarch.io.files.strict import read_json
from raymarch.volumes.transfer_function import TRANSFER, TransferFunction


@checked(table=TRANSFER, path=checks.path, overwrite=checks.flag)
def save_table(table: TransferFunction, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Transfer function written to a JSON file in one step.

    Raises RaymarchError for a name that does not end in .json, a folder that refuses, and a file that is no table,
    unless `overwrite`.

    Example:
        >>> save_table(TransferFunction.of_colormap("bone", 0, 4000), "bone.json")
    """
    if Path(path).suffix.lower() != ".json":
        raise RaymarchError(f"{path}: tables are JSON; end the name in .json")
    require_ours([path], "table", _is_table, overwrite)
    with replace_file(path, ".json") as temporary:
        temporary.write_text(json.dumps(table.record()) + "\n")


@checked(path=checks.path)
def load_table(path: str | os.PathLike[str]) -> TransferFunction:
    """Transfer function of a JSON file.

    Raises RaymarchError that names the file for one that cannot be read, is no JSON, or no table.

    Example:
        >>> load_table("bone.json").values[-1]  # doctest: +SKIP
        4000.0
    """
    record = read_json(path)
    try:
        return TransferFunction.of_record(record)
    except RaymarchError as error:
        raise RaymarchError(f"{path}: {error}") from None


def _is_table(path: Path) -> bool:
    try:
        load_table(path)
    except RaymarchError:
        return False
    return True
