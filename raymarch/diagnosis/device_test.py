"""Self-test of a device, in a process of its own, which a driver may crash: a march and its gradient beside NumPy's.

`python -m raymarch.diagnosis.device_test list ARCH` prints the devices of an architecture, `... test ARCH` tries the
one that is taken: a JSON record a line. It ends when its stdin does, so that it does not outlive who asked.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time

import numpy as np

from raymarch import runtime
from raymarch.device.grid import Grid
from raymarch.device.layout_choice import processor
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError, one_line
from raymarch.geometry.rays import Rays
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.runtime.gpu_memory import gpu_bytes, gpu_name
from raymarch.runtime.vulkan import SOFTWARE, VulkanDevice, chosen_device, vulkan_devices
from raymarch.system.resources import cores, total_bytes
from raymarch.volumes.activation import Activation
from raymarch.volumes.volume import Volume

SIDE, RAYS = 8, 64  # samples a side, one world unit apart, and rays through them
STEP = 0.5  # of a voxel: then midpoints of steps add up to the very integral of what is linear between samples
BACKGROUND, COLOUR = np.array([0.2, 0.5, 0.9]), np.array([0.3, -0.4, 0.8])  # COLOUR is raw
TOLERANCE = 1e-4  # of the largest number; devices that were tried are at 1e-6
HARMONIC = 1 / math.sqrt(4 * math.pi)  # of degree 0


def device_rows(arch: str) -> list[dict]:
    """Devices of an architecture, as far as their drivers tell: name, bytes, what else is told of each, its number, and
    whether it is the one that kernels would run on."""
    if arch == "cpu":
        name = processor().partition(" (cpu family")[0]
        return [_row(name, total_bytes(), f"{cores()} threads")]
    if arch == "cuda":
        named = gpu_name()
        return [] if named is None else [_row(named[0], (gpu_bytes() or (0, 0))[1], named[1])]
    if arch == "vulkan":
        devices = vulkan_devices()
        taken = chosen_device(devices)
        sizes = [total_bytes() if each.kind == SOFTWARE else each.total for each in devices]
        return [
            _row(each.name, size, about_vulkan(each), each.number, each is taken)
            for each, size in zip(devices, sizes, strict=True)
        ]
    return [_row("the GPU of this Mac", total_bytes())]


def about_vulkan(device: VulkanDevice) -> str:
    """What is told of a Vulkan device beside its name: its driver, and whether it is the processor after all."""
    return ", ".join(filter(None, ("run by the processor" if device.kind == SOFTWARE else "", device.driver)))


def _row(name: str, size: int, about: str = "", number: int = 0, taken: bool = True) -> dict:
    return {"name": name, "bytes": size, "about": about, "number": number, "taken": taken}


def run_test(arch: str) -> dict[str, float]:
    """Largest difference from NumPy's numbers, of the largest, and the seconds of the march without compiling.

    Raises RaymarchError where the device cannot be had, or computes something else.
    """
    runtime.start(arch)
    rng = np.random.default_rng(0)
    density = rng.uniform(0, 0.4, (SIDE, SIDE, SIDE))
    across, d_image = rng.uniform(0.5, SIDE - 1.5, (RAYS, 2)), rng.normal(size=(RAYS, 4))
    got = _numbers_of_device(density, across, d_image)
    began = time.perf_counter()
    again = _numbers_of_device(density, across, d_image)
    seconds, worst = time.perf_counter() - began, 0.0
    names = ("image", "gradient by density", "gradient by colour")
    for name, want, *found in zip(names, numbers_of_numpy(density, across, d_image), got, again, strict=True):
        error = max(float(np.abs(one - want).max() / np.abs(want).max()) for one in found)
        if not error < TOLERANCE:  # nor NaN
            raise RaymarchError(f"it computes the {name} wrongly, by {error:.1e} of the largest number")
        worst = max(worst, error)
    return {"worst": worst, "seconds": seconds}


def _numbers_of_device(density: np.ndarray, across: np.ndarray, d_image: np.ndarray) -> list[np.ndarray]:
    """Image (ray, 4), its gradient by density (x, y, z), and by colour, summed over all samples (3,)."""
    features = np.broadcast_to(COLOUR / HARMONIC, (*density.shape, 3))
    volume = Volume(density, features, np.eye(4), Activation("identity", 0.0, 1.0, "sigmoid"))
    origin = np.stack([across[:, 0], np.full(RAYS, -1.0), across[:, 1]], 1)
    rays = Rays(origin, np.broadcast_to([0.0, 1.0, 0.0], origin.shape))
    with Grid(density.shape, 0, slots=1) as grid, RayBuffer(RAYS) as buffer:
        grid.upload(volume)
        grid.begin_gradient()
        buffer.upload(rays)
        call = grid.fields, buffer.fields, grid.variant, RAYS, STEP, 0.0, 0.0, ti.Vector(list(BACKGROUND))
        march(*call)
        image = buffer.image(RAYS)
        buffer.set_image_gradient(d_image)
        march_adjoint(*call)
        grid.reduce_slots()
        d_density, d_features = grid.download_gradient()
    return [image, d_density, d_features.sum((0, 1, 2)) / HARMONIC]


def numbers_of_numpy(density: np.ndarray, across: np.ndarray, d_image: np.ndarray) -> list[np.ndarray]:
    """The same in closed form: rays along y through a medium of one colour, whose density is linear between samples."""
    near = np.minimum(across.astype(int), SIDE - 2)
    far_share = across - near
    along = np.ones(SIDE)
    along[[0, -1]] = 0.5  # the trapezoidal rule
    weight = np.zeros((RAYS, *density.shape))
    for i in (0, 1):
        for k in (0, 1):
            share = [one if corner else 1 - one for corner, one in zip((i, k), far_share.T, strict=True)]
            weight[np.arange(RAYS), near[:, 0] + i, :, near[:, 1] + k] += np.multiply(*share)[:, None] * along
    transmittance = np.exp(-np.einsum("rxyz,xyz->r", weight, density))
    colour = 1 / (1 + np.exp(-COLOUR))
    image = np.c_[colour + transmittance[:, None] * (BACKGROUND - colour), transmittance]
    d_transmittance = d_image[:, :3] @ (BACKGROUND - colour) + d_image[:, 3]
    d_density = -np.einsum("r,r,rxyz->xyz", d_transmittance, transmittance, weight)
    return [image, d_density, colour * (1 - colour) * ((1 - transmittance) @ d_image[:, :3])]


def _end_with_parent() -> None:
    while os.read(0, 1):  # not by sys.stdin, whose lock Python wants at its end
        pass
    os._exit(1)


def _main(task: str, arch: str) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        told = device_rows(arch) if task == "list" else [run_test(arch)]
    except RaymarchError as error:
        told = [{"error": str(error)}]
    except Exception as error:  # of Taichi or a driver: of any kind, and nobody but this process to tell of it
        told = [{"error": f"{type(error).__name__}: {one_line(error)[-200:]}"}]
    for record in told:
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:3])
