"""Law: on a GPU what is free is the GPU's, and where its driver does not tell, the machine's."""

from __future__ import annotations

import ctypes

import pytest

from raymarch import runtime
from raymarch.device import gpu_memory, memory, pool

FREE = 3 << 30
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
                arguments[0]._obj.value = FREE
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
    assert gpu_memory.gpu_free_bytes() == FREE
    assert made.called == list(CALLS)


@pytest.mark.parametrize("fails", CALLS[:5])
def test_a_call_that_fails_tells_nothing_and_leaves_nothing(driver, fails):
    made = driver(fails)
    assert gpu_memory.gpu_free_bytes() is None
    for begun, ended in ((CALLS[2], CALLS[6]), (CALLS[3], CALLS[5])):
        assert (ended in made.called) == (begun in made.called and begun != fails)


def test_without_a_driver_there_is_none_to_ask(monkeypatch):
    monkeypatch.setattr(gpu_memory, "DRIVER", "no-such-driver.so")
    assert gpu_memory.gpu_free_bytes() is None


@pytest.mark.parametrize(("on_cpu", "told", "wanted"), [(True, FREE, 50), (False, FREE, FREE), (False, None, 50)])
def test_what_is_free_is_the_devices(monkeypatch, on_cpu, told, wanted):
    monkeypatch.setattr(runtime, "on_cpu", lambda: on_cpu)
    monkeypatch.setattr(memory, "gpu_free_bytes", lambda: told)
    monkeypatch.setattr(memory, "_free_bytes", lambda: 50)
    kept = 0 if told is None and not on_cpu else pool.held()
    assert memory.available_bytes() == wanted + kept
