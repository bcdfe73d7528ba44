"""Law: whichever threads tasks come in, one touches the device; stopped, it begins anew with the same pictures."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import jobs


def test_tasks_of_many_threads_run_in_one():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        names, alike = pool.submit(jobs.threads_of_tasks, 3).result()
    assert len(names) == 3
    assert len(set(names)) == 1
    assert alike
