"""Law of long work: once a few parts of it are done, stderr says how long the rest takes; short work says nothing."""

from __future__ import annotations

import pytest

from raymarch.cli import progress
from raymarch.cli.progress import CountProgress, StageProgress, time_text


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_count_says_what_is_left(clock, capsys):
    with CountProgress("render", 100) as count:
        clock[0] += 60  # of compiling, which is once
        count.advance()
        for _ in range(10):
            clock[0] += 2
            count.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "render 2 of 100, about 3 min left"
    assert lines[1:] == ["render 8 of 100, about 3 min left"]  # not for each image, but every ten seconds


def test_a_short_count_says_nothing(clock, capsys):
    with CountProgress("render", 20) as count:
        for _ in range(20):
            clock[0] += 0.1
            count.advance()
    assert capsys.readouterr().err == ""


def test_stages_say_what_is_left_of_each(clock, capsys):
    with StageProgress() as stages:
        for done in range(1, 41):
            clock[0] += 0.5
            stages("features", done, 40)
        for done in (100, 200, 780):
            clock[0] += 5
            stages("matching", done, 780)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["features 1 of 40", "features 2 of 40, about 19 s left"]
    assert "matching 200 of 780, about 29 s left" in lines and lines[-1] == "matching 780 of 780"


@pytest.mark.parametrize(
    ("seconds", "words"), [(7, "7 s"), (99, "99 s"), (119, "2 min"), (5940, "99 min"), (6000, "1 h 40 min")]
)
def test_time_in_words(seconds, words):
    assert time_text(seconds) == words
