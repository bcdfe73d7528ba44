"""The march of taichi-dev/taichi#2241 in plain torch, its rules as written down there and its gradients torch's own.

With ours where it leaves room: entry and exit carry their gradient, samples sit in the middle of their step, no jitter,
one shorter last step. Needs torch, so it is imported by tests that have it.
"""

from __future__ import annotations

import numpy as np
import torch

NAMES = ("template", "campos", "camrot", "focal", "princpt", "pixelcoords")
SHAPES = ((5, 4, 6), (2, 3, 2), (7, 7, 7))


def directions(camrot, focal, princpt, pixelcoords):
    """Unit directions (N, H, W, 3): the rows of camrot, weighted by the pixel's place on the plane at distance 1."""
    plane = (pixelcoords - princpt[:, None, None, :]) / focal[:, None, None, :]
    plane = torch.cat([plane, torch.ones_like(plane[..., :1])], dim=-1)
    direction = (camrot[:, None, None, :, :] * plane[..., None]).sum(dim=-2)
    return direction / direction.square().sum(dim=-1, keepdim=True).sqrt()


def march(template, campos, camrot, focal, princpt, pixelcoords, *, dt):
    """Image (N, 4, H, W) of templates (N, 4, D, H, W) on the box [-1, 1]^3."""
    direction = directions(camrot, focal, princpt, pixelcoords)
    origin = campos[:, None, None, :]
    low, high = (-1 - origin) / direction, (1 - origin) / direction
    near = torch.minimum(low, high).amax(dim=-1).clamp(min=0)
    far = torch.maximum(low, high).amin(dim=-1)
    near, far = (torch.where(near < far, t, torch.zeros_like(t)) for t in (near, far))
    rgb, alpha = torch.zeros_like(direction), torch.zeros_like(near)[..., None]
    for k in range(int(((far - near) / dt).max()) + 1):
        begin = near + k * dt
        width = (far - begin).clamp(0, dt)
        position = origin + (begin + width / 2)[..., None] * direction
        value = torch.nn.functional.grid_sample(
            template, position[:, None], mode="bilinear", padding_mode="border", align_corners=True
        )
        value = value[:, :, 0].permute(0, 2, 3, 1)
        weight = (alpha + value[..., 3:] * width[..., None]).clamp(max=1) - alpha
        rgb, alpha = rgb + value[..., :3] * weight, alpha + weight
    return torch.cat([rgb, alpha], dim=-1).permute(0, 3, 1, 2)


def looking(campos, target, up=(0.1, 1.0, 0.2)):
    """camrot (3, 3): rows right, down and ahead of a camera at `campos` that looks at `target`."""
    ahead = (target - campos) / np.linalg.norm(target - campos)
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(ahead, right), ahead])


def case(shape=(5, 4, 6), n=8, size=(5, 6), seed=0, density=2.0, dtype=torch.float64):
    """The six tensors: densities of both signs, cameras around the box and one within, some rays beside it."""
    rng = np.random.default_rng(seed)
    template = rng.normal(0, 1, (n, 4, *shape))
    template[:, 3] = density * (template[:, 3] + 0.4)
    away = rng.normal(size=(n, 3))
    campos = away / np.linalg.norm(away, axis=1, keepdims=True) * rng.uniform(2.5, 4, (n, 1))
    campos[-1] *= 0.1  # within
    camrot = np.stack([looking(c, rng.uniform(-0.3, 0.3, 3)) for c in campos])
    camrot += rng.normal(0, 0.03, camrot.shape)  # plain entries, no rotation
    height, width = size
    pixels = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1) + rng.uniform(-0.3, 0.3, (n, *size, 2))
    focal = rng.uniform(1.0, 1.5, (n, 2)) * max(size)
    princpt = (np.array([width, height]) - 1) / 2 + rng.uniform(-0.5, 0.5, (n, 2))
    arrays = (template, campos, camrot, focal, princpt, pixels)
    return [torch.tensor(array, dtype=dtype, requires_grad=True) for array in arrays]


def image_and_gradients(function, tensors, dt, seed=1):
    """The image, and the gradient of a random combination of it by each tensor, as arrays."""
    for tensor in tensors:
        tensor.grad = None
    image = function(*tensors, dt=dt)
    cotangent = torch.tensor(np.random.default_rng(seed).normal(size=image.shape), dtype=image.dtype)
    (image * cotangent).sum().backward()
    return [image.detach().numpy(), *(tensor.grad.numpy().copy() for tensor in tensors)]


def both(shape=(5, 4, 6), dt=0.11, dtype=torch.float64, **how):
    """Ours and the twin's `image_and_gradients` of a case."""
    from raymarch.torch.neural_volumes import TorchMarch

    tensors = case(shape, dtype=dtype, **how)
    with TorchMarch(shape, slots=2) as ours:
        got = image_and_gradients(ours, tensors, dt)
    return got, image_and_gradients(march, tensors, dt)


def both_in_single(shape, dt, how):
    """`both` in f32, for the f32 process."""
    return both(shape, dt, torch.float32, **how)


def run_example(name="TorchMarch"):
    """Failures of the example in the docstring of a public name, run in full."""
    import doctest

    import raymarch

    value = getattr(raymarch, name)
    text = value.__doc__.replace("# doctest: +SKIP", "")
    example = doctest.DocTestParser().get_doctest(text, {name: value, "torch": torch}, name, None, 0)
    report: list[str] = []
    failed, tried = doctest.DocTestRunner().run(example, out=report.append)
    return failed, tried, "".join(report)
