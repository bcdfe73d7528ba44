"""The march and its adjoint as others would do them: PyTorch, Dr.Jit, a file of C. What `peers.py` times."""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import subprocess
import tempfile
from dataclasses import dataclass

import numpy as np

from raymarch.rendering.ray_batches import pixels_in_tiles
from raymarch.system.resources import cores
from raymarch.volumes.harmonics import Y00

THREADS = cores()


@dataclass(frozen=True, eq=False)
class Task:
    """The workload as arrays: values (n, n, n, 4), colour and sigma, on [-1, 1]^3, and whole steps of rays that hit."""

    values: np.ndarray
    origin: np.ndarray
    direction: np.ndarray
    near: np.ndarray
    steps: np.ndarray
    dt: float
    d_colour: np.ndarray


def task_of(work, tiles: bool) -> Task:
    """The rays that hit the box, as all peers want them; row by row, or in raymarch's own order."""
    volume, rays = work.volume, work.rays
    side = math.isqrt(len(rays))
    order = np.arange(len(rays)) if tiles else np.argsort(pixels_in_tiles(0, len(rays), side, side))
    values = np.concatenate([volume.features * np.float32(Y00), volume.density[..., None]], -1).astype(np.float32)
    origin, direction = (np.asarray(a, np.float32)[order] for a in (rays.origin, rays.direction))
    with np.errstate(divide="ignore"):
        one, other = (-1 - origin) / direction, (1 - origin) / direction
    near = np.minimum(one, other).max(1).clip(0)
    far = np.maximum(one, other).min(1)
    dt = 1 / (len(values) - 1)
    steps = ((far - near) / dt).astype(np.int32).clip(0)
    hit = np.flatnonzero(steps)
    some = (
        np.ascontiguousarray(a[hit], dtype)
        for a, dtype in _columns(origin, direction, near, steps, work.d_image[order])
    )
    o, d, t, count, d_image = some
    return Task(values, o, d, t, count, dt, np.ascontiguousarray(d_image[:, :3]))


def _columns(origin, direction, near, steps, d_image):
    return ((origin, "f4"), (direction, "f4"), (near, "f4"), (steps, "i4"), (d_image, "f4"))


class Torch:
    """`grid_sample` at all samples at once, sums along rays, autograd."""

    def __init__(self, task: Task, arch: str):
        import torch

        self.torch, self.dt, self.device = torch, task.dt, torch.device(arch)
        torch.set_num_threads(THREADS)
        torch.set_default_device(self.device)
        values = torch.from_numpy(task.values.transpose(3, 0, 1, 2)[None].copy())
        self.values = values.to(self.device).requires_grad_()
        ray = np.repeat(np.arange(len(task.steps)), task.steps)
        begin = np.cumsum(task.steps) - task.steps
        t = (task.near[ray] + (np.arange(len(ray)) - begin[ray] + 0.5) * task.dt).astype(np.float32)
        where = (task.origin[ray] + t[:, None] * task.direction[ray])[:, ::-1].reshape(1, 1, 1, -1, 3)
        self.ray, self.begin, self.where, self.d_colour = (
            torch.from_numpy(np.ascontiguousarray(a)).to(self.device) for a in (ray, begin, where, task.d_colour)
        )

    def light(self):
        torch = self.torch
        seen = torch.nn.functional.grid_sample(self.values, self.where, align_corners=True).reshape(4, -1)
        tau = seen[3].clamp(min=0) * self.dt
        passed = torch.cumsum(tau, 0, dtype=torch.float64)
        entered = (passed - tau)[self.begin]
        T = torch.exp(entered[self.ray] - passed + tau).to(tau.dtype)
        weight = -torch.expm1(-tau) * T
        return torch.zeros_like(self.d_colour).index_add(0, self.ray, (weight * seen[:3]).T)

    def done(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def march(self) -> None:
        with self.torch.no_grad():
            self.light()
        self.done()

    def ready(self) -> None:
        self.values.grad = None
        self.image = self.light()
        self.done()

    def adjoint(self) -> None:
        self.image.backward(self.d_colour)
        self.done()

    def gradient(self) -> np.ndarray:
        return self.values.grad[0].cpu().numpy().transpose(1, 2, 3, 0)


class DrJit:
    """Recorded loops, eight gathers of four lanes a sample; the adjoint replays the ray and scatters."""

    def __init__(self, task: Task, arch: str):
        import drjit as dr

        if arch == "cpu" and not os.path.exists(os.environ.get("DRJIT_LIBLLVM_PATH", "")):
            raise ImportError("say by DRJIT_LIBLLVM_PATH which libLLVM it takes; an old or absent one ends the process")
        types = importlib.import_module("drjit.cuda" if arch == "cuda" else "drjit.llvm")
        Array3f, Array4f, Float, Int = types.Array3f, types.Array4f, types.Float, types.Int
        dr.set_thread_count(THREADS)
        self.dr, self.task = dr, task
        self.values = Float(task.values.ravel())
        self.d_values = dr.zeros(Float, task.values.size)
        half = (len(task.values) - 1) / 2
        self.o, self.d = ((Array3f(np.ascontiguousarray(a.T)) * half) for a in (task.origin, task.direction))
        self.o += half
        self.near, self.steps = Float(task.near), Int(task.steps)
        self.d_colour = Array3f(np.ascontiguousarray(task.d_colour.T))
        self.types = Array3f, Array4f, Float, Int

    def corners(self, k):
        """Index and weight of the eight samples around step k."""
        dr, n, (Array3f, _, Float, Int) = self.dr, len(self.task.values), self.types
        p = dr.fma(self.d, self.near + (Float(k) + 0.5) * self.task.dt, self.o)
        cell = [dr.clip(Int(p[a]), 0, n - 2) for a in range(3)]
        f = Array3f(*[p[a] - Float(cell[a]) for a in range(3)])
        for corner in range(8):
            at = [(corner >> a) & 1 for a in (2, 1, 0)]
            weight = Float(1)
            for a in range(3):
                weight *= f[a] if at[a] else 1 - f[a]
            yield ((cell[0] + at[0]) * n + cell[1] + at[1]) * n + cell[2] + at[2], weight

    def sample(self, corners):
        dr, Array4f = self.dr, self.types[1]
        value = Array4f(0)
        for index, weight in corners:
            value = dr.fma(dr.gather(Array4f, self.values, index), weight, value)
        return value

    def light(self):
        dr, (Array3f, _, Float, Int) = self.dr, self.types

        def body(k, T, light):
            value = self.sample(self.corners(k))
            left = dr.exp(-dr.maximum(value[3], 0) * self.task.dt)
            return k + 1, T * left, light + T * (1 - left) * Array3f(value[0], value[1], value[2])

        state = (dr.zeros(Int, len(self.task.steps)), Float(1), Array3f(0))
        return dr.while_loop(state, lambda k, T, light: k < self.steps, body)[2]

    def march(self) -> None:
        self.image = self.light()
        self.dr.eval(self.image)
        self.dr.sync_thread()

    def ready(self) -> None:
        self.march()

    def adjoint(self) -> None:
        dr, (Array3f, Array4f, Float, Int) = self.dr, self.types
        self.d_values = dr.zeros(Float, self.task.values.size)

        def body(k, T, later):
            corners = list(self.corners(k))
            value = self.sample(corners)
            left = dr.exp(-dr.maximum(value[3], 0) * self.task.dt)
            weight, after = T * (1 - left), T * left
            owed = dr.dot(self.d_colour, Array3f(value[0], value[1], value[2]))
            later = later - weight * owed
            d_sigma = dr.select(value[3] > 0, self.task.dt * (after * owed - later), 0)
            d_light = weight * self.d_colour
            for index, share in corners:
                lanes = Array4f(d_light[0], d_light[1], d_light[2], d_sigma) * share
                dr.scatter_add(self.d_values, lanes, index)
            return k + 1, after, later

        state = (dr.zeros(Int, len(self.task.steps)), Float(1), dr.dot(self.image, self.d_colour))
        dr.while_loop(state, lambda k, T, later: k < self.steps, body)
        dr.eval(self.d_values)
        dr.sync_thread()

    def gradient(self) -> np.ndarray:
        return np.array(self.d_values).reshape(self.task.values.shape)


class Limit:
    """Hand-written C with OpenMP, as a file that defines two functions.

    march(values, n, origin, direction, near, steps, rays, dt, image)
    march_adjoint(values, n, origin, direction, near, steps, rays, dt, image, d_colour, d_values)

    of float and int arrays; `image` (rays, 4) is written by the first, `d_values` is one array a thread, which the
    second clears and adds up in the first of them.
    """

    def __init__(self, task: Task, source: str):
        with tempfile.TemporaryDirectory() as folder:
            built = os.path.join(folder, "limit.so")
            flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC"]
            subprocess.run(["gcc", *flags, source, "-o", built], check=True)
            self.library = ctypes.CDLL(built)
        self.parts = [np.zeros_like(task.values) for _ in range(THREADS)]
        self.buffers = (ctypes.c_void_p * THREADS)(*[part.ctypes.data for part in self.parts])
        self.render_camera(task)

    def render_camera(self, task: Task) -> None:
        """Take the rays of another task, on a grid of the same size."""
        self.task, self.image = task, np.zeros((len(task.steps), 4), np.float32)
        rays = (self._at(a) for a in (task.origin, task.direction, task.near, task.steps))
        n, dt = len(task.values), ctypes.c_float(task.dt)
        self.common = (self._at(task.values), n, *rays, len(task.steps), dt, self._at(self.image))

    @staticmethod
    def _at(array: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def march(self) -> None:
        self.library.march(*self.common)

    def adjoint(self) -> None:
        self.library.march_adjoint(*self.common, self._at(self.task.d_colour), self.buffers)

    def gradient(self) -> np.ndarray:
        return self.parts[0]
