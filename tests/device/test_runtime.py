"""Laws: Taichi is started once a process, by raymarch alone and where it can be; else one line says what to do."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from raymarch import engine, runtime
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.runtime import kernel_cache

posix = pytest.mark.skipif(os.name != "posix", reason="homes and working folders of POSIX")


def said(code: str, folder: Path) -> list[str]:
    """Lines that a process of its own prints, which ends well and without a word on stderr."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_program_that_called_ti_init_keeps_its_fields_and_is_told_to_call_start(tmp_path):
    code = """
import raymarch as rm
from raymarch.engine import ti
ti.init(ti.cpu, log_level=ti.ERROR)
own = ti.field(ti.i32, shape=())
own[None] = 7
for _ in range(2):
    try:
        rm.start("cpu")
    except rm.RaymarchError as error:
        print(error)
assert own[None] == 7
"""
    *_, first, second = said(code, tmp_path)
    assert first == second and "started before raymarch, by ti.init" in first and "call rm.start in place" in first


def test_after_a_ti_init_of_another_whatever_needs_the_device_says_so(tmp_path):
    """Fields of the ended program would be freed memory."""
    code = """
import raymarch as rm
from raymarch.engine import ti
from raymarch.device.ray_buffer import RayBuffer
buffer = RayBuffer(4)
RayBuffer(4).close()
ti.init(ti.cpu, log_level=ti.ERROR)
own = ti.field(ti.i32, shape=())
own[None] = 7
for use in (rm.start, rm.release, lambda: buffer.fields, lambda: RayBuffer(4), buffer.close):
    try:
        use()
    except rm.RaymarchError as error:
        print("told:", error)
assert own[None] == 7
"""
    told = [line for line in said(code, tmp_path) if line.startswith("told:")]
    assert len(told) == 5
    assert all("started anew, by ti.init" in line and "start another process" in line for line in told)


def test_what_is_closed_as_the_process_ends_is_no_mistake(tmp_path):
    """After Taichi's own end, which is registered last and comes first."""
    code = """
import atexit
from raymarch.device.ray_buffer import RayBuffer
atexit.register(lambda: (buffer.close(), print("closed")))
buffer = RayBuffer(4)
"""
    assert said(code, tmp_path) == ["closed"]


@posix
def test_a_working_folder_that_is_gone_is_said_and_another_will_do(tmp_path):
    code = """
import os
import raymarch as rm
start = rm.start
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
try:
    start("cpu")
except rm.RaymarchError as error:
    print(error)
os.chdir("/")
print(start("cpu").arch)
"""
    told = "the working folder is gone or may not be entered (No such file or directory); change to another"
    assert said(code, tmp_path) == [told, "cpu"]


@pytest.mark.parametrize(
    ("arch", "error", "told"),
    [
        ("cuda", RuntimeError("[driver]\n no device"), r"start on cuda \(\[driver\] no device\); use --arch cpu, or"),
        ("cpu", RuntimeError("mmap failed"), r"start on cpu \(mmap failed\); give the process more memory"),
        ("cpu", PermissionError(13, "Permission denied"), r"working folder .*\(Permission denied\); change to another"),
    ],
)
def test_what_taichi_says_as_it_starts_is_one_line_with_a_cure(arch, error, told, monkeypatch):
    def fail(**_):
        raise error

    monkeypatch.setattr(ti, "init", fail)
    with pytest.raises(RaymarchError, match=told):
        runtime._init(arch, "f32", 1)


def test_of_a_start_that_failed_nothing_stays(monkeypatch):
    """Else the next would take what was begun for another's program."""
    ended = []

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runtime.engine, "state", lambda: None)
    monkeypatch.setattr(runtime.engine, "program", lambda: None)
    monkeypatch.setattr(ti, "reset", lambda: ended.append(True))
    monkeypatch.setattr(runtime, "_init", fail)
    with pytest.raises(KeyboardInterrupt):
        runtime._begin("cpu", "f32", 1)
    assert ended == [True]


def test_two_first_calls_at_once_start_one(monkeypatch):
    """A second `ti.init` would free what the first thread is given."""
    begun, found, both = [], [], threading.Barrier(2)

    def begin(*_):
        begun.append(threading.current_thread())
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)  # for the other, if it comes here too
        return runtime.Runtime("cpu", "f64", 1)

    monkeypatch.setattr(runtime, "_running", None)
    monkeypatch.setattr(runtime, "_begin", begin)
    threads = [threading.Thread(target=lambda: found.append(runtime.start())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 1
    assert len(found) == 2 and found[0] is found[1]


def test_a_thread_that_has_ended_is_not_taken_for_its_successor(monkeypatch):
    """The system gives a new thread the number of one that ended."""
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    monkeypatch.setattr(ended, "_ident", threading.get_ident())
    monkeypatch.setattr(runtime, "_owner", (os.getpid(), ended))
    with pytest.raises(RaymarchError, match="another thread than the one .*, which has ended; start another process"):
        runtime.require_owner()


@pytest.fixture
def unset(monkeypatch):
    """Nothing is said of the cache."""
    for name in (kernel_cache.CACHE_VARIABLE, "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@posix
@pytest.mark.parametrize("empty", [False, True])
def test_kernels_are_kept_in_the_home_whether_the_caches_variable_is_empty_or_missing(empty, unset, tmp_path):
    """To Taichi an empty one is a folder at the root."""
    unset.setenv("HOME", str(tmp_path))
    if empty:
        unset.setenv("XDG_CACHE_HOME", "")
    kept = tmp_path / ".cache" / engine.NAME / kernel_cache.CACHE_NAME
    assert kernel_cache.cache_argument() == {"offline_cache_file_path": str(kept)}
    assert kept.is_dir()


@posix
def test_kernels_are_kept_where_taichi_itself_would_keep_them(unset, tmp_path):
    """So that those of before are found."""
    unset.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = "from raymarch import engine; print(engine.impl.default_cfg().offline_cache_file_path)"
    assert said(code, tmp_path) == [kernel_cache.cache_argument()["offline_cache_file_path"]]


def test_the_users_own_folder_of_kernels_is_left_to_taichi_to_read(unset, tmp_path):
    unset.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path / "own"))
    assert kernel_cache.cache_argument() == {}
    assert kernel_cache.cache_folder() == tmp_path / "own"


@pytest.mark.parametrize(
    ("local", "folder"), [("D:/eve/AppData", "D:/eve/AppData/raymarch"), ("D:/Jörg", f"C:/{engine.NAME}_cache")]
)
def test_on_windows_kernels_are_kept_among_the_users_data_where_taichi_can_read_the_name(local, folder, unset):
    unset.setattr(kernel_cache, "WINDOWS", True)
    unset.setenv("LOCALAPPDATA", local)
    assert kernel_cache.cache_folder() == Path(folder)


@pytest.mark.parametrize(("age", "stays"), [(60.0, True), (3600.0, False)])
def test_the_lock_of_a_process_that_was_killed_is_removed_and_that_of_one_at_work_is_not(age, stays, unset, tmp_path):
    unset.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path))
    lock = tmp_path / kernel_cache.LOCK_FILE
    lock.touch()
    then = time.time() - age
    os.utime(lock, (then, then))
    kernel_cache.cache_argument()
    assert lock.exists() == stays
