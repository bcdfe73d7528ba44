"""f64 in this process, f32 in one worker: a process has one precision."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

# Before NumPy is there: workers share the processor, and threads of linear algebra that wait keep it busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Kernels are compiled with fewer passes, in two thirds of the time; `pytest --whole` compiles them as users do.
if "--whole" not in sys.argv and "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ.setdefault("RAYMARCH_QUICK_COMPILE", "1")
with warnings.catch_warnings():  # Taichi 1.7.4 calls locale.getdefaultlocale as it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    import drive
    import single as worker

    from raymarch import runtime

pytest_plugins = ["cost", "groups", "skips", "whole"]
ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--arch", choices=[a for a in runtime.ARCHES if a != "auto"], default="cpu", help="of the kernels")


def pytest_configure(config):
    config.addinivalue_line("markers", "ordered: steps by the bits of sums, which a GPU adds up in any order")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell has it for what runs in its background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    """On a GPU without what needs the CPU's order of sums; on one without f64 the laws alone that have the `single`
    worker, which runs on it, while this process runs on the CPU."""
    arch = config.getoption("--arch")
    for item in items:
        if arch in runtime.SINGLE_ONLY and "single" not in item.fixturenames:
            item.add_marker(pytest.mark.skip("no f64 on that device"))
        elif arch != "cpu" and item.get_closest_marker("ordered"):
            item.add_marker(pytest.mark.skip("a GPU adds up in any order"))


def pytest_collection_finish():
    """Thousands of tests and all modules are kept to the end: Python need not look through them for garbage."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def double(request):
    """Taichi in f64."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAYMARCH_LAYOUT", "default")  # whatever was measured on this machine
        arch = request.config.getoption("--arch")
        yield runtime.start("cpu" if arch in runtime.SINGLE_ONLY else arch, "f64")


@pytest.fixture(scope="module", autouse=True)
def trees():
    """What a file's tests kept of the device goes back to the pool when they are through."""
    yield
    drive.hand_back()


@pytest.fixture(scope="session")
def single(request):
    """`single(function, *arguments)` runs a function of tests/single.py in f32 and returns its arrays."""
    context = multiprocessing.get_context("spawn")
    task = {"initializer": worker.start, "initargs": (request.config.getoption("--arch"),)}
    with ProcessPoolExecutor(max_workers=1, mp_context=context, **task) as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result()


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT
