"""Law: of two that would write one output, the second is told so in one line before any work; the dead hold nothing."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints.saver import Checkpoints, CheckpointSaver
from raymarch.io.files import lock as module
from raymarch.io.files.lock import lock_file

HOLDER = """
import sys, time
from raymarch.io.files.lock import lock_file
with lock_file(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""
posix = pytest.mark.skipif(os.name == "nt", reason="killed processes and links of POSIX")


@pytest.fixture
def other(tmp_path):
    """Another process that writes `v.h5`."""
    words = [sys.executable, "-c", HOLDER, str(tmp_path / "v.h5")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def refusal(path, **how):
    with pytest.raises(RaymarchError) as refused, lock_file(path, **how):
        pass
    assert "\n" not in str(refused.value)
    return str(refused.value)


@posix
def test_a_second_process_is_told_who_writes_and_what_it_can_do(other, tmp_path):
    told = refusal(tmp_path / "v.h5", cure="choose another --out")
    assert f"another raymarch (process {other.pid}, since 2" in told
    assert told.endswith("wait until it ends, or choose another --out")
    with lock_file(tmp_path / "other.h5"):  # the one cure
        pass
    other.terminate()  # the other
    other.wait()
    with lock_file(tmp_path / "v.h5"):
        pass
    assert os.listdir(tmp_path) == []


@posix
def test_all_names_of_a_file_are_one(other, tmp_path, monkeypatch):
    (tmp_path / "v.h5").write_text("")
    (tmp_path / "link.h5").symlink_to("v.h5")
    monkeypatch.chdir(tmp_path)
    for name in ("v.h5", "./v.h5", "link.h5", tmp_path / "." / "v.h5"):
        assert f"process {other.pid}" in refusal(name)


@posix
def test_what_a_killed_process_leaves_keeps_nobody_out(other, tmp_path):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / "v.h5.lock").exists()
    with lock_file(tmp_path / "v.h5"):
        assert str(os.getpid()) in (tmp_path / "v.h5.lock").read_text()
    assert os.listdir(tmp_path) == []


@posix
@pytest.mark.parametrize(
    ("words", "free"),
    [
        ("", True),  # it died before it had signed
        ("raymarch 999999999 {host} 2026-01-01T00:00:00\n", True),
        ("raymarch {pid} {host} 2026-01-01T00:00:00\n", False),
        ("raymarch 1 elsewhere 2026-01-01T00:00:00\n", False),
        ("raymarch nonsense {host} 2026-01-01T00:00:00\n", True),
    ],
)
def test_on_a_disk_without_locks_the_file_says_who_lives(words, free, tmp_path, monkeypatch):
    def refuse(descriptor, how):
        raise OSError(module.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(module.fcntl, "flock", refuse)
    place = tmp_path / "v.h5.lock"
    place.write_text(words.format(pid=os.getpid(), host=platform.node()))
    if free:
        with lock_file(tmp_path / "v.h5"):
            pass
        return
    told = refusal(tmp_path / "v.h5")
    if "elsewhere" in words:  # where it cannot be known, the cure is a person's
        assert told.split("if that has died, remove ")[1].startswith(str(place))
        place.unlink()
        with lock_file(tmp_path / "v.h5"):
            pass


def test_a_file_of_somebody_s_is_not_taken_for_a_lock(tmp_path):
    place = tmp_path / "v.h5.lock"
    place.write_text("mine")
    assert "is there, and is no lock of raymarch's; move it, or choose another name" in refusal(tmp_path / "v.h5")
    assert place.read_text() == "mine"
    place.rename(tmp_path / "elsewhere")
    with lock_file(tmp_path / "v.h5"):
        pass


def test_threads_of_one_process_are_kept_apart_and_one_thread_enters_twice(tmp_path):
    told, path = [], tmp_path / "v.h5"
    with lock_file(path), lock_file(path):
        thread = threading.Thread(target=lambda: told.append(refusal(path)))
        thread.start()
        thread.join()
    assert "another thread of this process writes it" in told[0]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["v" * 250 + ".h5", "ü" * 120 + ".h5", "two words.h5"])
def test_every_name_that_a_file_may_have_can_be_locked(name, tmp_path):
    with lock_file(tmp_path / name):
        (only,) = os.listdir(tmp_path)
        assert only.endswith(".lock")


def test_a_folder_that_is_missing_is_said(tmp_path):
    assert "cannot be written" in refusal(tmp_path / "nowhere" / "v.h5")


@posix
def test_of_two_that_begin_at_once_one_is_refused(tmp_path):
    words = [sys.executable, "-c", HOLDER, str(tmp_path / "v.h5")]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        until = time.monotonic() + 60
        while all(each.poll() is None for each in both) and time.monotonic() < until:
            time.sleep(0.05)
        assert [each.poll() for each in both].count(None) == 1
        (second,) = (each for each in both if each.poll() is not None)
        assert "wait until it ends, or choose another name" in second.stderr.read()
    finally:
        for each in both:
            each.kill()
            each.communicate()


def test_two_fits_of_one_checkpoint_do_not_both_begin(tmp_path):
    """As two that resume it."""
    saving = CheckpointSaver(Checkpoints(tmp_path / "c"))
    told = []
    with saving.alone():
        thread = threading.Thread(target=lambda: told.append(refusal_of(CheckpointSaver(Checkpoints(tmp_path / "c")))))
        thread.start()
        thread.join()
    assert "c: another thread of this process writes it; wait until it ends, or choose another path" in told[0]
    with CheckpointSaver(Checkpoints(Path(tmp_path / "other"))).alone():
        pass


def refusal_of(saving):
    with pytest.raises(RaymarchError) as refused, saving.alone():
        pass
    return str(refused.value)


def test_a_full_disk_is_told_and_no_lock_is_left(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("raymarch.io.files.lock.os.write", full)
    with pytest.raises(RaymarchError, match="(?i)space"), lock_file(tmp_path / "v.h5"):
        pass
    assert not list(tmp_path.iterdir())
