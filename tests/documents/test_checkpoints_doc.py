"""Law: what docs/checkpoints.md shows runs, its options are there, and it lists what a file has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raymarch.cli.fit import fit
from raymarch.fitting.checkpoints.checkpoint_file import (
    DATASETS,
    FORMAT,
    OPTIONAL_DATASETS,
    VERSION,
    read_record,
)

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "checkpoints.md").read_text()
FILE = TEXT.partition("## The file")[2]
SMALLER = {'"rays": 2048': '"rays": 512, "slots": 1'}  # a kind that other tests have compiled


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder that the blocks ran in, one after the other."""
    folder = tmp_path_factory.mktemp("checkpoints")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        names: dict = {}
        assert all(large in TEXT for large in SMALLER)
        for code in re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT):
            for large, small in SMALLER.items():
                code = code.replace(large, small)
            exec(compile(code, "docs/checkpoints.md", "exec"), names)
    return folder


def test_the_blocks_run(ran):
    assert sorted(path.name for path in ran.iterdir()) == ["ball.h5", "half.checkpoint"]


def test_the_options_are_there():
    options = {option for each in fit.params for option in each.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT)) <= options


def test_every_dataset_and_every_part_of_the_record_is_listed(ran):
    rows = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in FILE.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in row} == {*DATASETS, *OPTIONAL_DATASETS}
    assert f"`format` = `{FORMAT}` and `format_version` = `{VERSION}`" in FILE
    told = set(re.findall(r"`(\w+)`", FILE.partition("The record has")[2]))
    assert told == set(read_record(ran / "half.checkpoint"))
