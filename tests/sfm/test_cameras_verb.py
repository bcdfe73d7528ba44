"""Laws of `raymarch cameras`: its result on stdout, who is left out and mistakes on stderr, each in one line."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from PIL import Image

from raymarch import cli
from raymarch.sfm import find_cameras

RESULT = {"up": "mean", "centre": "there", "points": 7, "error": 0.5, "attempts": []}
RESULT |= {name: np.eye(4).tolist() for name in ("world_from_sfm", "sfm_from_world")}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A command line in a folder with photographs, its worker a function: exit code, stdout and stderr."""

    def work(folder, job, show, until):
        (folder.parent / "set" / "sparse").mkdir()
        show("registered", 3, 4)
        left = [{"name": "3.png", "why": "no features (0)"}]
        return {**RESULT, "registered": ["0.png", "1.png", "2.png"], "left_out": left, "cameras": [{"model": "OPENCV"}]}

    def run(line):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            cli.main(shlex.split(line))
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    (tmp_path / "photos").mkdir()
    for i in range(4):
        Image.fromarray(np.full((6, 8, 3), i, np.uint8)).save(tmp_path / "photos" / f"{i}.png")
    monkeypatch.setattr(find_cameras, "require_pycolmap", lambda: None)
    monkeypatch.setattr(find_cameras, "run_worker", work)
    return run


def test_json_is_one_line_on_stdout(run):
    code, out, err = run("cameras photos --out set --json")
    told = json.loads(out)
    assert code == 0 and out.count("\n") == 1
    assert (told["registered"], told["photos"]) == (3, 4)
    assert told["left_out"] == [{"name": "3.png", "why": "no features (0)"}]
    assert {"seconds", "model", "error"} <= set(told) and "registered 3 of 4" in err


def test_text_tells_who_is_left_out_on_stderr(run):
    code, out, err = run("cameras photos --out set")
    assert code == 0 and out.startswith("set: 3 of 4 photographs, 7 points, 0.50 pixels off, ")
    assert "left out: 3.png: no features (0)\n" in err


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("cameras none --out set", 1, "raymarch: none: no such folder"),
        ("cameras photos --out photos/set", 1, "raymarch: photos/set: lies in the photographs' folder"),
        ("cameras photos --out set --max-size 3", 2, "Error: --max-size is 3, want a whole number from 64"),
        ("cameras photos --out set --seconds nan", 2, "Error: --seconds is nan"),
        ("cameras photos --out set --lens wide", 2, "Invalid value for '--lens'"),
        ("cameras photos", 2, "Missing option '--out'"),
        ("fit photos --out a.h5", 1, "has no cameras; find them first: raymarch cameras PHOTOS --out SET"),
    ],
)
def test_a_mistake_is_one_line(line, code, said, run, tmp_path):
    before = sorted(tmp_path.iterdir())
    got, out, err = run(line)
    assert (got, out) == (code, "") and said in err
    assert code == 2 or err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
