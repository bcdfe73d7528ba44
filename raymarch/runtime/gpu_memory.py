"""Memory and name of the GPU, and whether there is a GPU, according to its driver."""

from __future__ import annotations

import ctypes
import sys

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def has_gpu() -> bool:
    """Whether there is a CUDA device; the driver's library may be there without one, as in many containers."""
    return _first() is not None


def gpu_bytes() -> tuple[int, int] | None:
    """Free and total memory [byte] of the first CUDA device, which Taichi takes; None if no driver tells.

    Asked within the device's primary context, the one that a process keeps and all its libraries share.
    """
    if (found := _first()) is None:
        return None
    driver, device = found
    context, before = ctypes.c_void_p(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        return None
    try:
        if driver.cuCtxPushCurrent_v2(context):
            return None
        failed = driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        driver.cuCtxPopCurrent_v2(ctypes.byref(before))
        return None if failed else (int(free.value), int(total.value))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(device)


def gpu_name() -> tuple[str, str] | None:
    """Name of the first CUDA device, and the latest CUDA that its driver has; None where there is none.

    Example:
        >>> named = gpu_name()
        >>> named is None or len(named) == 2
        True
    """
    if (found := _first()) is None:
        return None
    driver, device = found
    name, version = ctypes.create_string_buffer(256), ctypes.c_int()
    if driver.cuDeviceGetName(name, len(name), device) or driver.cuDriverGetVersion(ctypes.byref(version)):
        return "a CUDA device", ""
    return name.value.decode("utf-8", "replace"), f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def _first() -> tuple[ctypes.CDLL, ctypes.c_int] | None:
    """Driver and its first device; None if either is missing."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return None
    device = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return None
    return driver, device
