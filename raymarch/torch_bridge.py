"""The march as a function of PyTorch tensors, with their gradients: `pip install "raymarch[torch]"`.

Image and compositing are those of Lombardi et al. 2019, "Neural Volumes" (taichi-dev/taichi#2241): RGBA templates on
[-1, 1]^3, opacity added up to 1. `torch` is imported by the first `TorchMarch`, never by the import of this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.grid import Grid
from raymarch.kernels import bridge
from raymarch.kernels.geometry import geometry_adjoint
from raymarch.kernels.march import march, march_adjoint
from raymarch.kernels.transfer import clear_gradients
from raymarch.pose import affine_of_box
from raymarch.raybuffer import RayBuffer
from raymarch.raymotion import RayMotion
from raymarch.renderer import March
from raymarch.volume import Activation

if TYPE_CHECKING:
    from torch import Tensor

BOX = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
BLACK = (0.0, 0.0, 0.0)
LEAST_STEP = 1e-3  # voxels, as everywhere
INSTALL = 'pip install "raymarch[torch]"'


class TorchMarch:
    """Marches RGBA templates that are PyTorch tensors, differentiably; owns device memory until `close`.

    A call `march(template, campos, camrot, focal, princpt, pixelcoords, dt=...)` returns the image (N, 4, H, W), black
    behind: red, green, blue and alpha. View n sees template n alone. In it all tensors have the dtype of the process's
    precision (`rm.start(precision="f64")` for f64, as `gradcheck` wants it) and lie on the device it runs on.

    - `template` (N, 4, D, H, W): red, green, blue and density [1/world unit] of any sign, read as they are; sample
      centres at the box's faces, x along W, y along H, z along D, as `grid_sample(align_corners=True)` has them.
    - `campos` (N, 3): camera position [world unit], in or outside the box [-1, 1]^3.
    - `camrot` (N, 3, 3), `focal` (N, 2), `princpt` (N, 2), `pixelcoords` (N, H, W, 2) [pixel]: a ray's direction is
      a row0 + b row1 + row2 of camrot, with (a, b) = (pixelcoords - princpt) / focal, made a unit vector. camrot need
      not be a rotation; its gradient is by its nine entries.
    - `dt`: length of a step [world unit], a number.

    Samples lie in the middle of steps dt from where the ray enters the box (or starts in it), with one shorter last
    step; each takes `min(alpha + density dt, 1) - alpha` of its colour. A ray beside the box is 0.

    Gradients go to all six tensors, by rays that move with the cameras, entry and exit included; not twice
    (`create_graph`). They are one-sided at kinks: faces of cells, alpha reaching 1, edges of the box. The image of
    a sample's alpha at exactly 1 counts as not clamped.

    Copies: fields cannot wrap foreign memory, so each template is copied in once a march and once more for its
    gradient (the device holds one template, whatever N), and its gradient out once; rays in, image and rays' gradients
    out, likewise. Nothing else is converted or copied, but an image's gradient that comes strided, as `sum` gives it.

    Call and `backward` belong to the thread and process that started raymarch (no fork: DataLoader workers must not
    march). On CUDA a call that wants gradients therefore turns torch's backward threads off for this thread, as
    `torch.autograd.set_multithreading_enabled(False)` does.

    Args:
        shape: (D, H, W) of the templates, at least 2 each.
        slots: gradient buffers on the CPU, one a thread at most; each as large as the template. CUDA takes one.
        batch: rays a launch; no effect on image or gradient by rays.

    Raises RaymarchError where torch is missing, memory does not suffice, on use after `close`, and for tensors of
    another dtype, device, shape or layout, with the line that mends it.

    Example:
        >>> import torch  # doctest: +SKIP
        >>> template = torch.rand(2, 4, 16, 16, 16, requires_grad=True)  # doctest: +SKIP
        >>> pixels = torch.stack(torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="xy"), -1)  # doctest: +SKIP
        >>> with TorchMarch((16, 16, 16)) as march:  # doctest: +SKIP
        ...     image = march(template, torch.tensor([[0.0, 0, -3]] * 2), torch.eye(3).repeat(2, 1, 1),
        ...                   torch.full((2, 2), 8.0), torch.full((2, 2), 3.5), pixels.repeat(2, 1, 1, 1), dt=2 / 16)
        ...     image.square().sum().backward()
        >>> image.shape, template.grad.shape  # doctest: +SKIP
        (torch.Size([2, 4, 8, 8]), torch.Size([2, 4, 16, 16, 16]))
    """

    def __init__(self, shape, *, slots: int = 4, batch: int = 1 << 16):
        _torch()
        if not ti.lang.util.has_pytorch():
            raise RaymarchError("TI_ENABLE_TORCH=0 keeps Taichi from taking tensors; unset it")
        if not 1 <= slots <= 64:
            raise RaymarchError(f"slots is {slots}, want 1 to 64")
        self._how = March(mode="additive", stop=0.0, least=0.0, batch=batch)
        runtime.start()
        with ExitStack() as owners:
            self.grid = owners.enter_context(Grid(shape, 0, slots=slots if runtime.on_cpu() else 1))
            self.grid.name = "this torch march"
            self.buffer = owners.enter_context(RayBuffer(batch))
            self.motion = owners.enter_context(RayMotion(batch))
            self._owners = owners.pop_all()
        self.shape = self.grid.shape
        world_from_xyz = affine_of_box(BOX, self.shape[::-1])
        self.grid.set_level(self.shape, world_from_xyz[:, [2, 1, 0, 3]])
        self.grid.set_activation(Activation("identity", 0.0, 1.0, "identity"))

    def __enter__(self) -> TorchMarch:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Free the device memory; a later call, or a `backward` of an earlier one, is a RaymarchError."""
        self._owners.close()

    def __call__(
        self,
        template: Tensor,
        campos: Tensor,
        camrot: Tensor,
        focal: Tensor,
        princpt: Tensor,
        pixelcoords: Tensor,
        *,
        dt: float,
    ) -> Tensor:
        """Image (N, 4, H, W) of N templates, each seen by its camera."""
        torch = _torch()
        _ = self.grid.fields  # not closed, and the right thread
        tensors = {"template": template, "campos": campos, "camrot": camrot, "focal": focal, "princpt": princpt}
        tensors["pixelcoords"] = pixelcoords
        for name, value in tensors.items():
            _require_tensor(name, value)
        _require_shapes(self.shape, *tensors.values())
        if not template.is_contiguous():
            raise RaymarchError("template is not contiguous, so it cannot be read as it lies; pass template.contiguous()")
        if not isinstance(dt, (int, float, np.number)) or not LEAST_STEP * self.grid.voxel <= dt < math.inf:
            least = f"{LEAST_STEP * self.grid.voxel:.3g}"
            raise RaymarchError(f"dt is {dt!r}, want a number from {least} such as {self.grid.voxel / 2:.3g}")
        if template.is_cuda and torch.is_grad_enabled() and any(value.requires_grad for value in tensors.values()):
            torch.autograd.set_multithreading_enabled(False)
        plane = (pixelcoords - princpt[:, None, None]) / focal[:, None, None]
        rows = camrot[:, None, None]
        direction = plane[..., :1] * rows[..., 0, :] + plane[..., 1:] * rows[..., 1, :] + rows[..., 2, :]
        direction = direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
        if not (direction.isfinite().all() and campos.isfinite().all()):
            raise RaymarchError("some rays are not finite; campos, camrot, focal, princpt or pixelcoords has a NaN or 0")
        return _function().apply(template, campos, direction, self, float(dt))

    def _arguments(self, count: int, dt: float):
        """What every march wants last."""
        how = self._how
        return how.reading(self.grid), count, dt, how.stop, how.least, ti.Vector(list(BLACK))

    def _load(self, template: Tensor) -> None:
        """Put one template (4, D, H, W) on the grid."""
        bridge.template_in(template, self.grid.fields)
        if self.grid.fields.broken[None]:
            self.grid.fields.broken[None] = 0
            raise RaymarchError("template has a number that is not finite; find it with template.isfinite()")

    def _batches(self, origin: Tensor, direction: Tensor) -> Iterator[tuple[int, int]]:
        """First ray and count of each batch, its rays in the buffer: one origin (3,), directions (ray, 3)."""
        for first in range(0, len(direction), self.buffer.capacity):
            count = min(self.buffer.capacity, len(direction) - first)
            bridge.rays_in(origin, direction, self.buffer.fields, first, count)
            yield first, count

    def _image(self, template: Tensor, campos: Tensor, direction: Tensor, dt: float) -> Tensor:
        """Image (N, 4, ray) of directions (N, ray, 3)."""
        grid, rays = self.grid.fields, self.buffer.fields
        image = template.new_empty((len(template), 4, direction.shape[1]))
        _wait(template)
        for n in range(len(template)):
            self._load(template[n])
            for first, count in self._batches(campos[n], direction[n]):
                march(grid, rays, *self._arguments(count, dt))
                bridge.image_out(rays, image[n], first, count)
        ti.sync()
        return image

    def _gradients(self, template: Tensor, campos: Tensor, direction: Tensor, d_image: Tensor, dt: float, wanted):
        """d_ of template, of campos and of direction, where wanted, else None; each ray is replayed."""
        grid, rays, moved = self.grid.fields, self.buffer.fields, self.motion.fields
        d_template = template.new_empty(template.shape) if wanted[0] else None
        d_origin, d_direction = (direction.new_empty(direction.shape) for _ in range(2))
        _wait(template)
        self.grid.fold()  # what an interrupted call left
        clear_gradients(grid)
        for n in range(len(template)):
            self._load(template[n])
            for first, count in self._batches(campos[n], direction[n]):
                bridge.image_gradient_in(d_image[n], rays, first, count)
                if d_template is not None:
                    march_adjoint(grid, rays, *self._arguments(count, dt))
                if wanted[1] or wanted[2]:
                    geometry_adjoint(grid, rays, moved, *self._arguments(count, dt))
                    bridge.rays_gradient_out(moved, grid, d_origin[n], d_direction[n], first, count)
            if d_template is not None:
                self.grid.fold()
                bridge.template_gradient_out(grid, d_template[n])
        ti.sync()
        grid.broken[None] = 0  # torch's users look at their gradients themselves
        return d_template, d_origin.sum(1) if wanted[1] else None, d_direction if wanted[2] else None


def _torch():
    """The module; a RaymarchError where it is missing."""
    try:
        import torch
    except ImportError as error:
        raise RaymarchError(f"PyTorch is not installed ({error}); {INSTALL}") from error
    return torch


@cache
def _function():
    """The autograd function of (template, campos, direction, march, dt): the image's seam to torch."""
    torch = _torch()

    class MarchFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, template, campos, direction, march, dt):
            ctx.save_for_backward(template, campos, direction)
            ctx.march, ctx.dt = march, dt
            n, height, width, _ = direction.shape
            image = march._image(*_bare(template, campos, direction), dt)
            return image.view(n, 4, height, width)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, d_image):
            template, campos, direction = ctx.saved_tensors
            try:
                runtime.require_owner()
            except RaymarchError as error:
                cure = "torch.autograd.set_multithreading_enabled(False) keeps torch's own threads out"
                raise RaymarchError(f"backward was {error}; {cure}") from None
            n, _, height, width = d_image.shape
            d_image = d_image.contiguous().view(n, 4, height * width)
            bare = _bare(template, campos, direction)
            gradients = ctx.march._gradients(*bare, d_image, ctx.dt, ctx.needs_input_grad)
            d_template, d_campos, d_direction = gradients
            return d_template, d_campos, None if d_direction is None else d_direction.view(direction.shape), None, None

    return MarchFunction


def _bare(template: Tensor, campos: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As kernels take them: without autograd (Taichi would give leaves a gradient), rays in a row, small ones dense."""
    n, height, width, _ = direction.shape
    direction = direction.detach().contiguous().view(n, height * width, 3)
    return template.detach(), campos.detach().contiguous(), direction


def _wait(tensor: Tensor) -> None:
    """Let torch finish what it has queued: Taichi has a queue of its own."""
    if tensor.is_cuda:
        _torch().cuda.current_stream(tensor.device).synchronize()


def _require_tensor(name: str, value) -> None:
    """RaymarchError unless a plain tensor of the process's precision on its device."""
    torch, precision = _torch(), "f32" if runtime.single_precision() else "f64"
    wanted, other = (torch.float32, "f64") if precision == "f32" else (torch.float64, "f32")
    mend = f"{name}.float()" if precision == "f32" else f"{name}.double()"
    device = "cpu" if runtime.on_cpu() else "cuda"
    if not isinstance(value, torch.Tensor):
        raise RaymarchError(f"{name} is a {type(value).__name__}, want a tensor; pass torch.as_tensor({name})")
    if value.layout != torch.strided or value.is_neg():
        raise RaymarchError(f"{name} is no plain strided tensor; pass {name}.to_dense().resolve_neg()")
    if value.dtype != wanted:
        start = f'rm.start(precision="{other}")' if value.dtype in (torch.float32, torch.float64) else ""
        cure = f"pass {mend}" + (f", or call {start} first in a new process" if start else "")
        raise RaymarchError(f"{name} is {value.dtype} but this process runs {precision}; {cure}")
    if value.device.type != device or value.device.index not in (None, 0):
        to = f"{name}.cpu()" if device == "cpu" else f'{name}.to("cuda:0")'
        start = f", or call rm.start({value.device.type!r}) first in a new process"
        cure = f"pass {to}" + (start if value.device.type in ("cpu", "cuda") and value.device.type != device else "")
        raise RaymarchError(f"{name} is on {value.device} but this process runs on {device}; {cure}")


def _require_shapes(shape, template, campos, camrot, focal, princpt, pixelcoords) -> None:
    """RaymarchError unless the shapes are those of N views of templates of `shape`."""
    got = tuple(template.shape)
    if len(got) == 5 and got[4] == 4 and got[1] != 4:
        raise RaymarchError(
            f"template has shape {got}, channels last; pass template.permute(0, 4, 1, 2, 3).contiguous()"
        )
    if len(got) != 5 or got[1] != 4:
        raise RaymarchError(f"template has shape {got}, want (N, 4, D, H, W); a single one is template[None]")
    if got[2:] != tuple(shape):
        raise RaymarchError(f"template is {got[2:]} but this march was made for {tuple(shape)}; make TorchMarch({got[2:]})")
    n = got[0]
    pixels = tuple(pixelcoords.shape)
    if len(pixels) != 4 or pixels[0] != n or pixels[3] != 2:
        raise RaymarchError(f"pixelcoords has shape {pixels}, want ({n}, H, W, 2); torch.stack((x, y), -1) makes it")
    for name, value, want in (
        ("campos", campos, (n, 3)),
        ("camrot", camrot, (n, 3, 3)),
        ("focal", focal, (n, 2)),
        ("princpt", princpt, (n, 2)),
    ):
        if tuple(value.shape) != want:
            raise RaymarchError(f"{name} has shape {tuple(value.shape)}, want {want}: one a template; see {name}.expand")
