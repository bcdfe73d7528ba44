"""Law: whoever does independent work, its results are there once each, in their order; what stops it is one line."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from importlib import metadata

import jobs
import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.system.interrupt import hold_interrupts
from raymarch.tasks import executors
from raymarch.tasks.executors import EXECUTOR, DaskWorkers, open_crew, run_tasks
from raymarch.tasks.worker import SLURM_SHARE, Device, Task, own_share, run_task


@pytest.fixture(scope="module")
def pool():
    """An executor as a user makes it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(processes):
    end = time.monotonic() + 20
    while any(map(is_alive, processes)) and time.monotonic() < end:
        time.sleep(0.05)
    return [process for process in processes if is_alive(process)]


def test_results_come_in_their_order(pool):
    items = list(range(7))
    for where in (None, pool):
        assert list(run_tasks(jobs.square, items, where)) == [x * x for x in items]


def test_processes_are_as_many_as_asked_for_and_gone_afterwards():
    processes = set(run_tasks(jobs.wait, [0.3] * 4, 2))
    assert len(processes) == 2
    assert os.getpid() not in processes
    assert wait_until_gone(processes) == []


def test_who_asks_no_more_leaves_no_process():
    results = run_tasks(jobs.wait, [0.0, 600.0, 600.0], 1)
    process = next(results)
    results.close()
    assert wait_until_gone([process]) == []


@pytest.mark.parametrize("lost", [False, True], ids=["at work", "beside one that is lost"])
def test_a_process_that_does_not_end_is_ended(tmp_path, lost):
    with open_crew(2) as crew:
        for _ in range(4):
            crew.executor.submit(jobs.refuse_to_end, str(tmp_path))
        end = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        if lost:
            os.kill(int(next(tmp_path.iterdir()).name), signal.SIGKILL)
            while not crew.executor._broken and time.monotonic() < end:
                time.sleep(0.05)
    processes = [int(file.name) for file in tmp_path.iterdir()]
    assert len(processes) == 2
    assert wait_until_gone(processes) == []


@pytest.mark.skipif(os.name == "nt", reason="masks of signals of POSIX")
def test_a_process_that_has_just_begun_leaves_ctrl_c_to_the_one_that_asks():
    """A terminal sends it to both, and a process that does not ignore it yet would end with a traceback."""
    ask = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with hold_interrupts():
        process = subprocess.Popen([sys.executable, "-c", ask], stdout=subprocess.PIPE, text=True)
    assert process.communicate()[0] == "True\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert list(run_tasks(jobs.heeds_interrupts, [0], 1)) == [(True, False)]


def test_processes_end_with_one_that_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import jobs\nfrom raymarch.tasks.executors import run_tasks\n"
        f"if __name__ == '__main__':\n    list(run_tasks(jobs.refuse_to_end, [{str(tmp_path / 'at_work')!r}] * 2, 2))\n"
    )
    (tmp_path / "at_work").mkdir()
    path = os.pathsep.join(sys.path)
    asking = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path})
    end = time.monotonic() + 60
    while len(processes := list((tmp_path / "at_work").iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    asking.kill()
    asking.wait()
    assert len(processes) == 2
    assert wait_until_gone([int(file.name) for file in processes]) == []


def test_a_lost_worker_costs_its_item_alone(tmp_path):
    items = [(number, str(tmp_path / "marker")) for number in range(5)]
    found = list(run_tasks(jobs.die_once, items, 2))
    assert [number for number, _ in found] == [0, 1, 2, 3, 4]
    assert (tmp_path / "marker").exists()


def test_workers_that_are_lost_again_and_again_are_told():
    with pytest.raises(RaymarchError, match=r"3 times a worker process ended .*give fewer workers"):
        list(run_tasks(jobs.die, [0], 1))


def test_a_users_executor_that_broke_is_told():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as broken:
        with pytest.raises(RaymarchError, match="the executor lost a worker and takes no more; make a new one"):
            list(run_tasks(jobs.die, [0], broken))
        with pytest.raises(RaymarchError, match="takes no more"):
            list(run_tasks(jobs.square, [1], broken))


def test_errors_of_the_work_are_those_of_this_process(pool):
    for where in (None, pool):
        with pytest.raises(RaymarchError, match=r"^x is 3, want another$"):
            list(run_tasks(jobs.refuse, [3], where))
        with pytest.raises(ZeroDivisionError, match="x is 3"):
            list(run_tasks(jobs.fail, [3], where))


def test_a_worker_of_another_version_is_told():
    outcome = run_task(replace(Task(jobs.square, 2, Device(), ""), version="0.0.7"))
    assert "has raymarch" in str(outcome.error)
    assert "and 0.0.7 asks; install the same there" in str(outcome.error)


class Without:
    """An executor whose workers lack a package, or are lost."""

    def __init__(self, error):
        self.error = error

    def submit(self, function, task):
        done = Future()
        done.set_exception(self.error)
        return done


class KilledWorker(Exception):
    """As Dask calls it."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            ModuleNotFoundError("No module named 'raymarch'", name="raymarch"),
            "a worker cannot import raymarch; install",
        ),
        (KilledWorker("run_task-1"), "workers of the cluster were lost one after another"),
    ],
)
def test_what_workers_lack_is_told(error, told):
    with pytest.raises(RaymarchError, match=told):
        list(run_tasks(jobs.square, [1], Without(error)))


class Bare:
    """A Dask client whose worker has Python, and not raymarch."""

    def run(self, function, package, on_error):
        assert (function, package, on_error) == (metadata.version, "raymarch", "return")  # all that it can name
        return {"tcp://there:1": metadata.PackageNotFoundError(package)}


def test_a_cluster_whose_worker_lacks_raymarch_is_told(monkeypatch):
    """Before any task: Dask would end the worker with the first, and wait for another."""
    monkeypatch.setattr(executors, "version_of", lambda package: "1.2.3")
    with pytest.raises(RaymarchError, match=r"worker at tcp://there:1 has no raymarch; install raymarch 1\.2\.3"):
        DaskWorkers(Bare(), Device())


class Odd:
    """An executor whose `submit` does what is given."""

    _max_workers = "many"

    def __init__(self, submit):
        self._submit = submit

    def submit(self, function, task):
        return self._submit(function, task)


def give_42(function, task):
    done = Future()
    done.set_result(42)
    return done


def lose_the_queue(function, task):
    raise OSError("the queue is\ngone")


@pytest.mark.parametrize(
    ("submit", "told"),
    [
        (lose_the_queue, r"^the executor takes no work \(OSError: the queue is gone\); make another, or give a number"),
        (
            lambda function, task: None,
            "^the executor's submit gives None, want a Future as concurrent.futures has",
        ),
        (lambda function, task: function(task), "^the executor's submit gives an? Outcome, want a Future"),
        (give_42, "^a Future of the executor gives 42, want what the function that it was given returns; "),
    ],
)
def test_an_executor_that_does_not_do_as_executors_do_is_told(submit, told):
    with pytest.raises(RaymarchError, match=told):
        list(run_tasks(jobs.square, [1], Odd(submit)))


def test_a_number_of_processes_may_be_numpys():
    assert EXECUTOR("executor", np.int64(2)) == 2
    with pytest.raises(RaymarchError, match="executor is 0"):
        EXECUTOR("executor", np.int64(0))


@pytest.mark.parametrize("where", [0, True, -1, 5000, "", 2.0, ThreadPoolExecutor(1), ProcessPoolExecutor])
def test_what_is_no_executor_is_refused(where):
    with pytest.raises(RaymarchError, match=r"executor is .*want None for this process, a number of processes"):
        EXECUTOR("executor", where)


def test_a_share_that_a_batch_system_gave_is_taken(monkeypatch):
    monkeypatch.setenv(SLURM_SHARE, "1")
    assert own_share() == 1
    monkeypatch.setenv(SLURM_SHARE, "many")
    assert own_share() is None
