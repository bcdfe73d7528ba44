"""Differentiable ray marching of PyTorch tensors: `pip install "raymarch[torch]"`.

Image and compositing are those of Lombardi et al. 2019, "Neural Volumes" (taichi-dev/taichi#2241): RGBA templates on
[-1, 1]^3, opacity added up to 1. `torch` is imported by the first `TorchMarch`, never by the import of this module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import whole
from raymarch.arguments.declared import checked
from raymarch.device.grid import Grid
from raymarch.device.memory import MAX_CELLS
from raymarch.device.pool import Holder
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import affine_of_box
from raymarch.kernels.field import torch_templates
from raymarch.rendering.march_settings import March
from raymarch.rendering.medium import OneVolume
from raymarch.torch.functions import keep_threads_out, require_backward_thread
from raymarch.torch.march_session import RayOutputs, TensorMarch, TensorRays
from raymarch.torch.tensors import import_torch, require_tensor, require_tensors, wait_for
from raymarch.volumes.activation import Activation
from raymarch.volumes.samples import SHAPE

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd import Function

BOX = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
MIN_STEP = 1e-3  # voxels, as everywhere


class TorchMarch(Holder):
    """Differentiable ray marcher of RGBA templates that are PyTorch tensors; owns device memory until `close`.

    A call `march(template, campos, camrot, focal, princpt, pixelcoords, dt=...)` returns the image (N, 4, H, W), black
    behind: red, green, blue and alpha. View n sees template n alone. All tensors have the dtype of the process's
    precision (`rm.start(precision="f64")` for f64, as `gradcheck` wants it) and lie on the device it runs on.

    - `template` (N, 4, D, H, W): red, green, blue and density [1/world unit] of any sign, read as they are; outer
      samples on the faces of the box, x along W, y along H, z along D, as `grid_sample(align_corners=True)` has them.
    - `campos` (N, 3): camera position [world unit], in or outside the box [-1, 1]^3.
    - `camrot` (N, 3, 3), `focal` (N, 2), `princpt` (N, 2), `pixelcoords` (N, H, W, 2) [pixel]: a ray's direction is
      a row0 + b row1 + row2 of camrot, with (a, b) = (pixelcoords - princpt) / focal, made a unit vector. camrot need
      not be a rotation; its gradient is by its nine entries.
    - `dt`: length of a step [world unit], a number.

    Samples lie in the middle of steps dt from where the ray enters the box (or starts in it), with one shorter last
    step; each takes `min(alpha + density dt, 1) - alpha` of its colour. A ray beside the box is 0.

    Gradients go to all six tensors, by rays that move with the cameras, entry and exit included; not twice
    (`create_graph`). At kinks they are one-sided: faces of cells, edges of the box, alpha reaching 1 (just 1 counts as
    not clamped). On the CPU they repeat to the bit.

    Copies: fields cannot wrap foreign memory, so each template is copied in once a march and once more for its
    gradient (the device holds one template, whatever N), and its gradient out once; rays in, image and rays' gradients
    out, likewise, the image and its gradient once more to put the channels first.

    Kernels are compiled by the first call and the first `backward` of a size, in seconds. Make a TorchMarch once. Both
    calls belong to the thread and process that started raymarch (no fork: workers of a DataLoader must not march). On
    CUDA a call that wants gradients therefore turns torch's backward threads off for this thread, as
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
        >>> row = torch.arange(8.0)  # doctest: +SKIP
        >>> pixels = torch.stack(torch.meshgrid(row, row, indexing="xy"), -1).repeat(2, 1, 1, 1)  # doctest: +SKIP
        >>> cameras = torch.tensor([[0.0, 0, -3], [0, 0, -4]]), torch.eye(3).repeat(2, 1, 1)  # doctest: +SKIP
        >>> with TorchMarch((16, 16, 16)) as march:  # doctest: +SKIP
        ...     image = march(template, *cameras, torch.full((2, 2), 8.0), torch.full((2, 2), 3.5), pixels, dt=1 / 15)
        ...     image.square().mean().backward()
        >>> image.shape, template.grad.shape  # doctest: +SKIP
        (torch.Size([2, 4, 8, 8]), torch.Size([2, 4, 16, 16, 16]))
    """

    @checked(shape=SHAPE, slots=whole(1, 64), batch=whole(1, 1 << 26))
    def __init__(self, shape: Sequence[int], *, slots: int = 4, batch: int = 1 << 16):
        import_torch()
        require_tensors()
        march = March(mode="additive", min_transmittance=0.0, min_weight=0.0, batch=batch)
        runtime.start()
        with ExitStack() as owners:
            self.grid = owners.enter_context(Grid(shape, 0, slots=slots if runtime.runs_on_cpu() else 1))
            self.grid.name = "this torch march"
            self.rays = owners.enter_context(TensorMarch(OneVolume(self.grid, march), batch))
            _require_index("templates", self.grid.shape)
            self._owners = owners.pop_all()
        self.shape = self.grid.shape
        world_from_xyz = affine_of_box(BOX, self.shape[::-1])
        self.grid.set_level(self.shape, world_from_xyz[:, [2, 1, 0, 3]])
        self.grid.set_activation(Activation("identity", 0.0, 1.0, "identity"))

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
        torch = import_torch()
        _ = self.grid.fields  # not closed, and the right thread
        tensors = {"template": template, "campos": campos, "camrot": camrot, "focal": focal, "princpt": princpt}
        tensors["pixelcoords"] = pixelcoords
        _require_tensors(self.shape, tensors)
        _require_step(dt, self.grid.voxel)
        keep_threads_out(*tensors.values())
        plane = (pixelcoords - princpt[:, None, None]) / focal[:, None, None]
        rows = camrot[:, None, None]
        direction = plane[..., :1] * rows[..., 0, :] + plane[..., 1:] * rows[..., 1, :] + rows[..., 2, :]
        direction = direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True)
        if not (direction.isfinite().all() and campos.isfinite().all()):
            raise RaymarchError(
                "some rays are not finite; campos, camrot, focal, princpt or pixelcoords has a NaN or 0"
            )
        return _march_function().apply(template, campos, direction, self, float(dt))

    def _rays(self, campos: Tensor, direction: Tensor, dt: float) -> TensorRays:
        return TensorRays(campos.expand(direction.shape), direction, dt=dt)

    def _image(self, template: Tensor, campos: Tensor, direction: Tensor, dt: float) -> Tensor:
        """Image (N, 4, ray) of directions (N, ray, 3)."""
        image = template.new_empty((len(template), 4, direction.shape[1]))
        wait_for(template)
        self.grid.fields.nonfinite_step[None] = 0
        for n in range(len(template)):
            torch_templates.template_in(template[n], self.grid.fields)
            if self.grid.fields.nonfinite_step[None]:
                raise RaymarchError("template has a number that is not finite; find it with template.isfinite()")
            seen = self.rays.see(self._rays(campos[n], direction[n], dt), depth=False).image
            image[n, :3], image[n, 3] = seen[:, :3].T, 1 - seen[:, 3]
        return image

    def _gradients(
        self, template: Tensor, campos: Tensor, direction: Tensor, d_image: Tensor, dt: float, wanted: Sequence[bool]
    ) -> tuple[Tensor | None, ...]:
        """d_ of template, of campos and of direction, where wanted, else None; each ray is replayed."""
        d_template = template.new_empty(template.shape) if wanted[0] else None
        d_origin, d_direction = campos.new_empty(campos.shape), direction.new_empty(direction.shape)
        wait_for(template)
        self.rays.begin_gradient()
        for n in range(len(template)):
            torch_templates.template_in(template[n], self.grid.fields)
            d_seen = import_torch().cat([d_image[n, :3], -d_image[n, 3:]]).T.contiguous()
            rays, unread = self._rays(campos[n], direction[n], dt), RayOutputs(d_seen, d_seen[:0, 0], d_seen[:0, 0])
            d_rays = self.rays.add_gradients(rays, unread, d_seen, None, wanted[0], wanted[1] or wanted[2])
            if d_rays is not None:
                d_origin[n], d_direction[n] = d_rays[0].sum(0), d_rays[1]
            if d_template is not None:
                self.grid.reduce_slots()
                torch_templates.template_gradient_out(self.grid.fields, d_template[n])
        ti.sync()
        return d_template, d_origin if wanted[1] else None, d_direction if wanted[2] else None


def _require_tensors(shape: tuple[int, ...], tensors: dict[str, Tensor]) -> None:
    """RaymarchError for tensors of another dtype, device, shape or layout than the march takes."""
    for name, value in tensors.items():
        require_tensor(name, value)
    _require_shapes(shape, *tensors.values())
    _require_index("images", tensors["pixelcoords"].shape[1:3])
    if not tensors["template"].is_contiguous():
        raise RaymarchError("template is not contiguous, so it cannot be read as it lies; pass template.contiguous()")


def _require_step(dt: object, voxel: float) -> None:
    """RaymarchError for a step that is no number, or so short that a march would not end in time."""
    if not isinstance(dt, (int, float, np.number)) or not MIN_STEP * voxel <= dt < math.inf:
        raise RaymarchError(f"dt is {dt!r}, want a number from {MIN_STEP * voxel:.3g} such as {voxel / 2:.3g}")


def _require_index(what: str, shape: Sequence[int]) -> None:
    """RaymarchError where four channels of `shape` are more numbers than Taichi can index."""
    if 4 * math.prod(shape) > MAX_CELLS:
        raise RaymarchError(
            f"{what} of {tuple(shape)} have over {MAX_CELLS} numbers, more than Taichi can index; lower it"
        )


def _require_shapes(
    shape: Sequence[int],
    template: Tensor,
    campos: Tensor,
    camrot: Tensor,
    focal: Tensor,
    princpt: Tensor,
    pixelcoords: Tensor,
) -> None:
    """Shape check: RaymarchError unless the shapes are those of N views of templates of `shape`."""
    got = tuple(template.shape)
    if len(got) == 5 and got[4] == 4 and got[1] != 4:
        raise RaymarchError(
            f"template has shape {got}, channels last; pass template.permute(0, 4, 1, 2, 3).contiguous()"
        )
    if len(got) != 5 or got[1] != 4:
        raise RaymarchError(f"template has shape {got}, want (N, 4, D, H, W); a single one is template[None]")
    if got[2:] != tuple(shape):
        raise RaymarchError(
            f"template is {got[2:]} but this march was made for {tuple(shape)}; make TorchMarch({got[2:]})"
        )
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
            raise RaymarchError(
                f"{name} has shape {tuple(value.shape)}, want {want}: one a template; see {name}.expand"
            )


@cache
def _march_function() -> type[Function]:
    """Image as a `torch.autograd.Function` of (template, campos, direction, march, dt)."""
    import torch

    class MarchFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, template: Tensor, campos: Tensor, direction: Tensor, march: Any, dt: float) -> Tensor:
            ctx.save_for_backward(template, campos, direction)
            ctx.march, ctx.dt = march, dt
            n, height, width, _ = direction.shape
            image = march._image(*_bare(template, campos, direction), dt)
            return image.view(n, 4, height, width)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, d_image: Tensor) -> tuple[Tensor | None, ...]:
            template, campos, direction = ctx.saved_tensors
            require_backward_thread()
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
