"""Law: a verb whose output another is writing is refused in one line, before any work, and leaves all as it was."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import raymarch as rm
from raymarch import cli
from raymarch.io.files.lock import lock_file
from raymarch.io.image_sets import load


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with a volume."""
    monkeypatch.chdir(tmp_path)
    rm.save(rm.Volume.from_array(np.ones((4, 4, 4), np.float32)), "ball.h5")
    (tmp_path / "link.h5").symlink_to("new.h5")
    return tmp_path


@pytest.fixture
def held():
    """Function that has another thread write an output until the test ends."""
    ends, threads = threading.Event(), []

    def hold(out):
        begun = threading.Event()

        def write():
            with lock_file(out):
                begun.set()
                ends.wait(60)

        threads.append(threading.Thread(target=write))
        threads[-1].start()
        assert begun.wait(60)

    yield hold
    ends.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("fit missing --out new.h5", "new.h5"),
        ("fit missing --out new.h5 --overwrite --steps 3", "new.h5"),
        ("fit missing --out ./new.h5 --checkpoint-every 5", "new.h5"),
        ("fit missing --out link.h5 --refine", "new.h5"),
        ("render ball.h5 --orbit 2 --size 8 --out pictures", "pictures"),
        ("render ball.h5 --orbit 2 --size 8 --out clip.gif", "clip.gif"),
        ("demo --out demo --no-view", "demo"),
    ],
)
def test_the_second_is_refused_before_any_work(words, out, here, held, monkeypatch, capsys):
    held(out)
    before = sorted(os.listdir(here))
    monkeypatch.setattr(load, "load_views", lambda *_, **__: pytest.fail("the set was read"))
    monkeypatch.setattr("raymarch.demo.demonstration.demonstrate", lambda *_, **__: pytest.fail("a demo was begun"))
    with pytest.raises(SystemExit) as ended:
        cli.main(words.split())
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (1, "")
    (told,) = [line for line in said.err.splitlines() if line.startswith("raymarch: ")]
    assert told.endswith("writes it; wait until it ends, or choose another --out")
    assert sorted(os.listdir(here)) == before


def test_a_dry_run_writes_nothing_and_is_not_refused(here, held, capsys):
    held("new.h5")
    with pytest.raises(SystemExit):
        cli.main(["fit", "missing", "--out", "new.h5", "--dry-run"])
    assert "no such folder" in capsys.readouterr().err
