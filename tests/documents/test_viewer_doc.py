"""Law: what docs/viewer.md shows runs, its options are there, and its table of refusals is the guard's."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from skips import require_extra

from raymarch.cli.fit import fit
from raymarch.cli.render import render
from raymarch.cli.view import view
from raymarch.viewer.server import guard, request_head, server

CODE = r"Refusal\((\d+)"
TEXT = (Path(__file__).resolve().parents[2] / "docs" / "viewer.md").read_text()


@pytest.mark.extra
def test_its_block_runs():
    require_extra("websockets", "viewer")
    (block,) = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
    exec(compile(block, "docs/viewer.md", "exec"), {})


def test_the_options_are_there():
    options = {option for verb in (fit, view, render) for each in verb.params for option in each.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT)) <= options


def test_its_refusals_are_the_guards():
    listed = set(re.findall(r"\b4\d\d\b|\b503\b", TEXT.partition("## Who can see it")[2]))
    known = {each for room in (guard, request_head, server) for each in re.findall(CODE, inspect.getsource(room))}
    assert listed == known - {"426"} and f"{guard.MAX_MESSAGE_BYTES >> 10} KiB" in TEXT and guard.MAX_PAGES == 16
