"""The march in plain torch, in double precision, differentiated by torch: all modes, everything that shapes an image.

Nothing of the package's kernels is in it; harmonics are from recurrences, poses from the matrix exponential. Needs
torch, so it is imported by tests that have it.
"""

from __future__ import annotations

import torch
from reference import solid_harmonic

DENSITIES = {
    "softplus": torch.nn.functional.softplus,
    "relu": torch.relu,
    "exponential": lambda x: torch.exp(x.clamp(max=15)),
    "identity": lambda x: x,
}
COLOURS = {"sigmoid": torch.sigmoid, "clamped": lambda x: torch.relu(x + 0.5), "identity": lambda x: x}


def variables(volume, camera, background, exposure, step) -> dict[str, torch.Tensor]:
    """What an image depends on, by group, each with a gradient; a pose is a twist from where the camera stands."""
    values = {
        "density": volume.density,
        "colour": volume.features,
        "background": background,
        "pose": [0.0] * 6,
        "focal": camera.focal,
        "principal_point": camera.principal,
        "exposure": exposure,
        "step": step,
        "box": volume.world_from_index[:3],
    }
    return {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in values.items()}


def twist_matrix(twist):
    """(4, 4) whose exponential is the rigid motion: translation, then rotation."""
    out = torch.zeros(4, 4, dtype=torch.float64)
    for (i, j), k in {(2, 1): 3, (0, 2): 4, (1, 0): 5}.items():
        out[i, j], out[j, i] = twist[k], -twist[k]
    for i in range(3):
        out[i, 3] = twist[i]
    return out


def interpolated(values, p):
    """Trilinear values (ray, channel) at p (ray, 3) in index space."""
    top = torch.tensor(values.shape[:3]) - 2
    cell = torch.minimum(p.detach().floor().long().clamp(min=0), top)
    f, total = p - cell, 0
    for corner in range(8):
        at = [corner >> a & 1 for a in range(3)]
        weight = torch.stack([f[:, a] if at[a] else 1 - f[:, a] for a in range(3)]).prod(0)
        index = [cell[:, a] + at[a] for a in range(3)]
        total = total + weight[:, None] * values[index[0], index[1], index[2]]
    return total


def image(v, camera, activation, voxel: float, mode: str):
    """(ray, 4): colour after exposure, and T; `voxel` is the unit of the step, which the box does not move."""
    pose = torch.tensor(camera.world_from_camera) @ torch.linalg.matrix_exp(twist_matrix(v["pose"]))
    sides = (torch.arange(n, dtype=torch.float64) for n in (camera.height, camera.width))
    row, column = torch.meshgrid(*sides, indexing="ij")
    x = (column.reshape(-1) + 0.5 - v["principal_point"][0]) / v["focal"][0]
    y = (v["principal_point"][1] - row.reshape(-1) - 0.5) / v["focal"][1]
    local = torch.stack([x, y, -torch.ones_like(x)], -1)
    heading = local @ pose[:3, :3].T
    heading = heading / heading.square().sum(-1, keepdim=True).sqrt()
    inverse = torch.linalg.inv(v["box"][:, :3])
    o, d = inverse @ (pose[:3, 3] - v["box"][:, 3]), heading @ inverse.T
    top = torch.tensor(v["density"].shape) - 1
    low, high = -o / d, (top - o) / d
    near, far = torch.minimum(low, high).amax(-1).clamp(min=0), torch.maximum(low, high).amin(-1)
    inside = near < far
    near, far = torch.where(inside, near, 0.0), torch.where(inside, far, 0.0)
    dt, degree = v["step"] * voxel, round((v["colour"].shape[3] / 3) ** 0.5) - 1
    count = ((far - near) / dt).detach().floor()
    Y = [solid_harmonic(l, m, *heading.T) for l in range(degree + 1) for m in range(-l, l + 1)]
    T, colour = torch.ones_like(near), torch.zeros_like(heading)
    for k in range(int(count.max()) + 1):
        width = torch.where(k < count, dt, torch.where(k == count, far - near - count * dt, 0.0))
        p = o + (near + k * dt + width / 2)[:, None] * d
        p = torch.minimum(p.clamp(min=0), top)
        raw = interpolated(v["density"][..., None], p)[:, 0] + activation.shift
        tau = DENSITIES[activation.density](raw) / activation.scale * width
        features = interpolated(v["colour"], p).reshape(len(p), -1, 3)
        seen = COLOURS[activation.colour](sum(Y[b][:, None] * features[:, b] for b in range(len(Y))))
        passed = torch.exp(-tau)
        weight, after = T * (1 - passed), T * passed
        if mode == "additive":
            weight = torch.minimum(tau, T)
            after = T - weight
        elif mode == "x-ray":
            weight, seen = tau, torch.ones_like(seen)
        colour, T = colour + weight[:, None] * seen, after
    if mode != "x-ray":
        colour = colour + T[:, None] * v["background"]
    return torch.cat([colour * v["exposure"][:3] + v["exposure"][3:], T[:, None]], -1)
