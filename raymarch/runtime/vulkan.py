"""Vulkan devices, according to the system's loader: name, memory, what they compute in, and which one is taken."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from struct import unpack_from

from raymarch import engine

LOADERS = {"win32": ("vulkan-1.dll",), "darwin": ("libvulkan.1.dylib", "libMoltenVK.dylib")}
DEVICE_VARIABLE = f"{engine.VARIABLE_PREFIX}VISIBLE_DEVICE"  # number of the one that the engine takes
SOFTWARE = "software"
KINDS = ("other", "integrated", "discrete", "virtual", SOFTWARE)  # VkPhysicalDeviceType
PREFERENCE = ("discrete", "integrated", "virtual", "other", SOFTWARE)  # the first is taken
MAX_TREE_BYTES = (1 << 31) - 1  # beyond it the places of numbers, in bytes, leave 32 bits
API_1_1 = 1 << 22 | 1 << 12
# Of VkPhysicalDeviceProperties, VkPhysicalDeviceFeatures and VkPhysicalDeviceMemoryProperties, in bytes:
TYPE, NAME, STORAGE_RANGE, PROPERTIES_BYTES = 16, 20, 324, 824
FLOAT_64, INT_64, FEATURES_BYTES = 4 * 39, 4 * 40, 4 * 55
HEAP_COUNT, HEAPS, HEAP_BYTES, MEMORY_BYTES = 260, 264, 16, 520
DEVICE_LOCAL = 1
# Kinds of the structures that tell what is free of each heap (VK_EXT_memory_budget), and the driver's name and version
MEMORY_PROPERTIES_2, MEMORY_BUDGET = 1000059006, 1000237000
PROPERTIES_2, DRIVER_PROPERTIES, DRIVER_INFO = 1000059001, 1000196000, 276


@dataclass(frozen=True)
class VulkanDevice:
    """A Vulkan device.

    Attributes:
        number: which one it is to the loader.
        name, kind, driver: as its driver says; `kind` one of `KINDS`, `driver` its version, "" where it does not tell.
        total, free: its own memory [byte], free where the driver tells it, else all.
        widest: the most bytes that one tree of fields may have.
        doubles: whether it has numbers of 64 bits, which sums are made in.
    """

    number: int
    name: str
    kind: str
    driver: str
    total: int
    free: int
    widest: int
    doubles: bool


def vulkan_devices() -> list[VulkanDevice]:
    """The devices; none without a loader, or without a driver."""
    with _instance() as found:
        if found is None:
            return []
        library, instance = found
        count = ctypes.c_uint32()
        if library.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None) < 0 or not count.value:
            return []
        handles = (ctypes.c_void_p * count.value)()
        if library.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles) < 0:
            return []
        return [_read_device(library, instance, i, ctypes.c_void_p(each)) for i, each in enumerate(handles)]


def chosen_device(devices: list[VulkanDevice]) -> VulkanDevice | None:
    """The one that kernels run on: that of `TI_VISIBLE_DEVICE`, else the fastest kind that has 64 bits."""
    if (number := os.environ.get(DEVICE_VARIABLE, "")).strip().isdigit():
        return next((each for each in devices if each.number == int(number)), None)
    return min(devices, key=lambda each: (not each.doubles, PREFERENCE.index(each.kind)), default=None)


@contextlib.contextmanager
def _instance() -> Iterator[tuple[ctypes.CDLL, ctypes.c_void_p] | None]:
    """The loader and an instance of it, or None."""
    library = _loader()
    if library is None:
        yield None
        return
    application = (ctypes.c_uint32 * 12)()  # VkApplicationInfo, all of it 0 but the version of Vulkan, its last number
    application[11] = API_1_1
    create = (ctypes.c_uint64 * 8)(1, 0, 0, ctypes.addressof(application))  # VkInstanceCreateInfo
    instance = ctypes.c_void_p()
    if library.vkCreateInstance(create, None, ctypes.byref(instance)):
        yield None
        return
    try:
        yield library, instance
    finally:
        library.vkDestroyInstance(instance, None)


def _loader() -> ctypes.CDLL | None:
    for name in LOADERS.get(sys.platform, ("libvulkan.so.1",)):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    return None


def _read_device(library: ctypes.CDLL, instance: ctypes.c_void_p, number: int, handle: ctypes.c_void_p) -> VulkanDevice:
    properties, features, memory = (
        ctypes.create_string_buffer(size) for size in (PROPERTIES_BYTES, FEATURES_BYTES, MEMORY_BYTES)
    )
    library.vkGetPhysicalDeviceProperties(handle, properties)
    library.vkGetPhysicalDeviceFeatures(handle, features)
    library.vkGetPhysicalDeviceMemoryProperties(handle, memory)
    kind = unpack_from("I", properties, TYPE)[0]
    sizes = [unpack_from("QI", memory, HEAPS + HEAP_BYTES * i) for i in range(unpack_from("I", memory, HEAP_COUNT)[0])]
    own = [i for i, (_, flags) in enumerate(sizes) if flags & DEVICE_LOCAL] or list(range(len(sizes)))
    largest = max(own, key=lambda i: sizes[i][0])
    total, name = sizes[largest][0], KINDS[kind] if kind < len(KINDS) else KINDS[0]
    # Mesa's software device names 128 MiB, and was right with all that it gives memory for.
    reach = total if name == SOFTWARE else unpack_from("I", properties, STORAGE_RANGE)[0]
    return VulkanDevice(
        number,
        _text(properties.raw, NAME),
        name,
        _driver(library, instance, handle),
        total,
        min(_budget(library, instance, handle, largest) or total, total),
        min(reach, MAX_TREE_BYTES),
        bool(unpack_from("I", features, FLOAT_64)[0] and unpack_from("I", features, INT_64)[0]),
    )


def _budget(library: ctypes.CDLL, instance: ctypes.c_void_p, handle: ctypes.c_void_p, heap: int) -> int:
    """What may still be taken of a heap [byte]; 0 where the driver does not tell."""
    budget = (ctypes.c_uint64 * 34)(MEMORY_BUDGET)  # type, next, 16 budgets, 16 numbers of what is in use
    asked = (ctypes.c_uint64 * (2 + MEMORY_BYTES // 8))(MEMORY_PROPERTIES_2, ctypes.addressof(budget))
    _ask(library, instance, b"vkGetPhysicalDeviceMemoryProperties2", handle, asked)
    return max(int(budget[2 + heap]) - int(budget[18 + heap]), 0)


def _driver(library: ctypes.CDLL, instance: ctypes.c_void_p, handle: ctypes.c_void_p) -> str:
    """Version of the driver, as it words it; "" where it does not tell."""
    told = (ctypes.c_uint64 * 68)(DRIVER_PROPERTIES)  # type, next, its number, name and version
    asked = (ctypes.c_uint64 * (2 + PROPERTIES_BYTES // 8))(PROPERTIES_2, ctypes.addressof(told))
    _ask(library, instance, b"vkGetPhysicalDeviceProperties2", handle, asked)
    return _text(bytes(told), DRIVER_INFO)


def _ask(
    library: ctypes.CDLL, instance: ctypes.c_void_p, name: bytes, handle: ctypes.c_void_p, answer: ctypes.Array
) -> None:
    """Have the driver fill a structure; one that has no such function leaves it as it is."""
    library.vkGetInstanceProcAddr.restype = ctypes.c_void_p
    if address := library.vkGetInstanceProcAddr(instance, name):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(handle, ctypes.addressof(answer))


def _text(structure: bytes, at: int) -> str:
    return structure[at : at + 256].split(b"\0")[0].decode("utf-8", "replace")
