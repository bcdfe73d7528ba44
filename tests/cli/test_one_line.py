"""Law of wrong usage: what is wrong and what may be meant is one line, below the usage; a note is said once."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from raymarch import cli
from raymarch.cli import output


def ran(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    return ended.value.code, capsys.readouterr().err.splitlines()


WRONG = {
    "gpu": (["render", "v.npy", "--out", "x", "--arch", "gpu"], "; did you mean 'cuda'?"),
    "fast": (["fit", "v.npy", "--out", "x", "--preset", "fast"], "; did you mean 'quick'?"),
    "nothing near": (["fit", "v.npy", "--out", "x", "--preset", "wings"], ""),
    "a verb": (["train", "v.npy"], "; did you mean raymarch fit?"),
    "an option": (["fit", "v.npy", "--out", "x", "--iterations", "3"], "; did you mean --steps?"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_may_be_meant_stands_behind_what_is_wrong(name, tmp_path, monkeypatch, capsys):
    words, end = WRONG[name]
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.zeros((3, 3, 3), np.float32))
    code, lines = ran(words, capsys)
    errors = [line for line in lines if line and not line.startswith(("Usage: ", "Try "))]
    assert code == 2 and len(errors) == 1 and errors[0].endswith(end), lines


def test_a_note_about_a_file_is_said_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger(), "handlers", [output._Notes()])  # as in a process of its own
    np.save("v.npy", np.arange(27.0).reshape(3, 3, 3))
    for _ in range(2):  # and again by the next verb
        code, lines = ran(["info", "v.npy"], capsys)
        assert code == 0 and sum("says no spacing" in line for line in lines) == 1, lines


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("\x1b[31mred", "no such file"),
        ("a[1", "no such file"),
        ("a[12].npy", "is a pattern"),
        ("*.npy", "is a pattern"),
    ],
)
def test_a_bracket_alone_is_no_pattern(given, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, lines = ran(["info", given], capsys)
    assert code == 1 and len(lines) == 1 and says in lines[0] and "\x1b" not in lines[0]
