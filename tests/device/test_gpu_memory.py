"""Law: on a GPU what is free, and what is kept, is of the GPU's; where its driver does not tell, of the machine's."""

from __future__ import annotations

import ctypes

import pytest

from raymarch import runtime
from raymarch.device import memory, pool
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.runtime import gpu_memory

FREE, ALL = 3 << 30, 8 << 30
CALLS = (
    "cuInit",
    "cuDeviceGet",
    "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent_v2",
    "cuMemGetInfo_v2",
    "cuCtxPopCurrent_v2",
    "cuDevicePrimaryCtxRelease_v2",
)


class Driver:
    """A driver with `FREE` bytes, one of whose calls may fail; what was called, in order."""

    def __init__(self, fails=None):
        self.called = []
        for name in CALLS:
            setattr(self, name, self._call(name, name == fails))

    def _call(self, name, fails):
        def call(*arguments):
            self.called.append(name)
            if name == "cuMemGetInfo_v2":
                arguments[0]._obj.value, arguments[1]._obj.value = FREE, ALL
            return 999 if fails else 0

        return call


@pytest.fixture
def driver(monkeypatch):
    """Have the process find a driver."""

    def found(fails=None):
        made = Driver(fails)
        monkeypatch.setattr(ctypes, "CDLL", lambda name: made)
        return made

    return found


def test_the_driver_is_asked_and_its_context_given_back(driver):
    made = driver()
    assert gpu_memory.gpu_bytes() == (FREE, ALL)
    assert made.called == list(CALLS)


@pytest.mark.parametrize("fails", CALLS[:5])
def test_a_call_that_fails_tells_nothing_and_leaves_nothing(driver, fails):
    made = driver(fails)
    assert gpu_memory.gpu_bytes() is None
    for begun, ended in ((CALLS[2], CALLS[6]), (CALLS[3], CALLS[5])):
        assert (ended in made.called) == (begun in made.called and begun != fails)


@pytest.mark.parametrize(("fails", "taken"), [(None, "cuda"), ("cuInit", "cpu"), ("cuDeviceGet", "cpu")])
def test_cuda_is_taken_where_there_is_a_device_not_only_its_library(fails, taken, driver, monkeypatch):
    """Taichi looks for the library alone, and breaks as it starts."""
    monkeypatch.setattr(ti._lib.core, "with_cuda", lambda: True)
    made = driver(fails)
    assert runtime._choose("auto") == taken
    assert set(made.called) <= set(CALLS[:2])
    if fails:
        with pytest.raises(RaymarchError, match="no CUDA device was found; use --arch cpu, or mend the driver"):
            runtime._choose("cuda")


def test_without_a_driver_there_is_none_to_ask(monkeypatch):
    monkeypatch.setattr(gpu_memory, "DRIVER", "no-such-driver.so")
    assert gpu_memory.gpu_bytes() is None
    assert not gpu_memory.has_gpu()


@pytest.mark.parametrize(("on_cpu", "told", "wanted"), [(True, FREE, 50), (False, FREE, FREE), (False, None, 50)])
def test_what_is_free_is_the_devices(monkeypatch, on_cpu, told, wanted):
    monkeypatch.setattr(runtime, "runs_on_cpu", lambda: on_cpu)
    monkeypatch.setattr(runtime, "device_bytes", lambda: None if on_cpu or not told else (told, ALL))
    monkeypatch.setattr(memory, "_free_bytes", lambda: 50)
    monkeypatch.setattr(pool, "kept_bytes", lambda: 7)
    kept = 0 if told is None and not on_cpu else 7
    assert memory.available_bytes() == wanted + kept


@pytest.mark.parametrize(("held", "stored", "free"), [(60, 0, 50), (10, 4 * FREE, FREE)])
def test_images_are_held_by_the_machine_and_stored_on_the_gpu(monkeypatch, held, stored, free):
    monkeypatch.setattr(runtime, "runs_on_cpu", lambda: False)
    monkeypatch.setattr(runtime, "device_bytes", lambda: (FREE, ALL))
    monkeypatch.setattr(memory, "_free_bytes", lambda: 50)
    monkeypatch.setattr(pool, "kept_bytes", lambda: 0)
    memory.require_images("these", 1, "take fewer", held=10, stored=FREE // 2)
    with pytest.raises(RaymarchError, match=f"these take {max(held, stored):,} bytes but {free:,} are free; take"):
        memory.require_images("these", 1, "take fewer", held=held, stored=stored)


def test_a_quarter_of_the_gpus_memory_is_kept(monkeypatch):
    monkeypatch.setattr(runtime, "runs_on_cpu", lambda: False)
    monkeypatch.setattr(runtime, "device_bytes", lambda: (FREE, ALL))
    assert pool._max_kept_bytes() == ALL // 4
