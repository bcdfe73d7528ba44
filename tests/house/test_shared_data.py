"""Law: a test of data beside the repository asks for its own file, so that another folder of that name fails none."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import skips
from groups import TESTS

USES = [
    (path, name)
    for path in sorted(Path(TESTS).rglob("*.py"))
    for name in re.findall(r"require_shared\(\"([^\"]+)\"\)", path.read_text(encoding="utf-8"))
]
FOREIGN = {"an empty folder": [], "somebody else's": ["notes.txt", "data/fox/readme"], "none": None}


def laid_out(folder, names):
    for name in names or ():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    if names is not None:
        folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("use", [name for _, name in USES])
def test_every_lookup_is_skipped_where_its_file_is_not_there(use, what, tmp_path, monkeypatch):
    monkeypatch.setattr(skips, "SHARED", laid_out(tmp_path / "shared", FOREIGN[what]))
    with pytest.raises(pytest.skip.Exception, match="real data is not beside the repository"):
        skips.require_shared(use)


def test_a_file_that_is_there_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(skips, "SHARED", laid_out(tmp_path / "shared", ["data/fox/transforms.json"]))
    assert skips.require_shared("data/fox/transforms.json").is_file()


def test_nothing_else_looks_beside_the_repository():
    """All lookups go through `require_shared`, and there are some."""
    own = {Path(skips.__file__).resolve(), Path(sys.modules[__name__].__file__).resolve()}
    beside = re.compile(r"/ [\"']shared[\"']|\.\./shared|parents\[3\]")
    found = [
        str(path)
        for path in Path(TESTS).rglob("*.py")
        if path.resolve() not in own and beside.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
    assert len(USES) >= 3
