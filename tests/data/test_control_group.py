"""Law: memory and processors are those that the control groups around a process leave it, of either kind of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import raymarch as rm
from raymarch.device import pool
from raymarch.io.files import strict
from raymarch.system import resources
from raymarch.system.resources import free_bytes, memory_left, memory_limit, processors, require_free

MI = 1 << 20
OF_V1 = str((1 << 63) - 4096)  # what has no limit has this
CONTAINER = {
    "memory.max": f"{512 * MI}",
    "memory.current": f"{200 * MI}",
    "memory.stat": f"anon 5\ninactive_file {50 * MI}",
}

SYSTEMS = {
    "no control groups": ({}, None, None),
    "no limit": (
        {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000", "sys/fs/cgroup/memory.max": "max",
         "sys/fs/cgroup/memory.current": "77"},
        None, None,
    ),
    "a container": (
        {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "150000 100000",
         **{f"sys/fs/cgroup/{name}": text for name, text in CONTAINER.items()}},
        362 * MI, 1.5,
    ),
    "a batch job in a service, each with limits": (
        {"proc/self/cgroup": "0::/slurm/job 7/step:0", "sys/fs/cgroup/slurm/cpu.max": "800000 100000",
         "sys/fs/cgroup/slurm/job 7/step:0/cpu.max": "max 100000", "sys/fs/cgroup/slurm/job 7/cpu.max": "200000 50000",
         "sys/fs/cgroup/slurm/job 7/step:0/memory.max": "max", "sys/fs/cgroup/slurm/job 7/step:0/memory.current": "9",
         **{f"sys/fs/cgroup/slurm/job 7/{name}": text for name, text in CONTAINER.items()},
         "sys/fs/cgroup/slurm/memory.max": f"{300 * MI}", "sys/fs/cgroup/slurm/memory.current": f"{250 * MI}"},
        50 * MI, 4.0,
    ),
    "a container of the older kind, whose groups have the host's names": (
        {"proc/self/cgroup": "5:cpu,cpuacct:/docker/c0ffee\n4:memory:/docker/c0ffee\n1:name=systemd:/docker/c0ffee",
         "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
         "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{64 * MI}",
         "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{60 * MI}",
         "sys/fs/cgroup/memory/memory.stat": f"inactive_file 3\ntotal_inactive_file {8 * MI}"},
        12 * MI, 0.5,
    ),
    "the older kind without limits": (
        {"proc/self/cgroup": "3:cpu:/\n4:memory:/a", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
         "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000", "sys/fs/cgroup/memory/memory.limit_in_bytes": OF_V1,
         "sys/fs/cgroup/memory/memory.usage_in_bytes": "5", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": OF_V1,
         "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "5"},
        None, None,
    ),
    "both kinds beside one another": (
        {"proc/self/cgroup": "4:memory:/\n0::/", "sys/fs/cgroup/unified/cpu.max": "300000 100000",
         "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{9 * MI}",
         "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{MI}"},
        8 * MI, 3.0,
    ),
    "more taken than there is, by a little": (
        {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "100", "sys/fs/cgroup/memory.current": "120"}, 0, None,
    ),
    "a group out of sight": (
        {"proc/self/cgroup": "0::/../../other", "sys/fs/cgroup/cpu.max": "200000 100000"}, None, 2.0,
    ),
    "files of nonsense": (
        {"proc/self/cgroup": "\n::\nwords\n0::/x", "sys/fs/cgroup/cpu.max": "much", "sys/fs/cgroup/memory.max": "1e9",
         "sys/fs/cgroup/memory.current": "", "sys/fs/cgroup/x/cpu.max": "0 0"},
        None, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_tightest_limit_around_a_process_counts(name, tmp_path):
    files, memory, share = SYSTEMS[name]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
    assert (memory_left(tmp_path), processors(tmp_path)) == (memory, share)


def test_memory_that_a_container_does_not_leave_is_not_free(monkeypatch):
    here, total = resources._machine_memory()
    assert here < total
    monkeypatch.setattr(resources, "memory_left", lambda: 1000)
    assert free_bytes() == 1000 < here
    require_free(900, "numbers", "take fewer")
    with pytest.raises(rm.RaymarchError, match="numbers take 901 bytes but 1,000 are free; take fewer"):
        require_free(901, "numbers", "take fewer")
    monkeypatch.setattr(resources, "memory_left", lambda: 1 << 60)
    assert 0 < free_bytes() < 1 << 60


def test_what_may_be_kept_and_what_a_file_may_ask_for_are_by_the_limit_of_a_container(monkeypatch):
    total = resources.total_bytes()
    monkeypatch.setattr(resources, "memory_limit", lambda: 4000)
    assert resources.total_bytes() == strict.memory_budget() == 4000 < total and pool._max_kept_bytes() == 1000
    monkeypatch.setattr(resources, "memory_limit", lambda: 1 << 60)
    assert resources.total_bytes() == resources._machine_memory()[1]


def test_the_limit_is_all_that_a_container_may_take(tmp_path):
    files, left, _ = SYSTEMS["a container"]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
    assert memory_limit(tmp_path) == 512 * MI > memory_left(tmp_path) == left
    assert memory_limit(tmp_path / "nothing") is None


@pytest.mark.parametrize("text", [None, "", "MemTotal: 8 kB\n", "MemTotal: 8 kB\nMemAvailable: much\n", "words\n"])
def test_a_system_that_does_not_tell_what_is_free_breaks_nothing(text, tmp_path):
    if text is not None:
        (tmp_path / "meminfo").write_text(text)
    free, total = resources._machine_memory(tmp_path / "meminfo")
    assert 0 < free < total


@pytest.mark.parametrize(("share", "found"), [(None, 6), (0.2, 1), (1.0, 1), (1.5, 2), (4.0, 4), (64.0, 6)])
def test_a_share_of_processors_is_rounded_up(share, found, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(resources, "processors", lambda: share)
    assert resources.cores() == found


THREADS = """
import os, sys
if sys.argv[1] == "bound":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import raymarch as rm, taichi as ti
from raymarch import runtime
before = runtime.threads()
rm.start("cpu", threads=None if sys.argv[1] == "bound" else 3)
print(before, runtime.threads(), ti.lang.impl.current_cfg().cpu_max_num_threads)
"""


@pytest.mark.parametrize("asked", ["bound", "three"])
def test_kernels_run_on_as_many_threads_as_a_process_may_use_or_as_are_asked_for(asked, tmp_path):
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("binding to processors is Linux's; not on another operating system")
    command = [sys.executable, "-c", THREADS, asked]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    before, after, taichis = map(int, done.stdout.split())
    assert (before, after, taichis) == ((1, 1, 1) if asked == "bound" else (resources.cores(), 3, 3))


def test_nothing_else_counts_processors():
    """A machine's processors are not a process's: only the processor's own name in the cache counts those."""
    package = Path(rm.__file__).parent
    counts = {str(path.relative_to(package)) for path in package.rglob("*.py") if "cpu_count" in path.read_text()}
    assert counts == {str(Path("system/resources.py")), str(Path("device/layout_choice.py"))}


def test_no_benchmark_counts_them_either(root):
    files = list((root / "benchmarks").glob("*.py"))
    assert files and [path.name for path in files if "cpu_count" in path.read_text()] == []


def test_nothing_else_asks_how_much_memory_a_machine_has():
    package = Path(rm.__file__).parent
    assert [path.name for path in package.rglob("*.py") if "PHYS_PAGES" in path.read_text()] == ["resources.py"]
