"""Profile along a ray or a line: values, and how much light is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers, array
from raymarch.arguments.checks import WORLD, Check, optional
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.rays import Rays
from raymarch.plot.panels import panels
from raymarch.plot.values import innermost, length_unit, values_label
from raymarch.volumes.scalar_volume import ANY_VOLUME
from raymarch.volumes.transfer_function import TRANSFER, TransferFunction
from raymarch.volumes.volume import AnyVolume, Volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEP = 0.25  # of a voxel, between points of the profile
POINTS = array(2, 3, low=-WORLD, high=WORLD)


def _line(value: object) -> object:
    if isinstance(value, Rays):
        if len(value) != 1:
            raise ValueError
        return value
    return POINTS.read(value)


LINE = Check("one ray, as camera.rays([pixel]) gives, or two points (2, 3) [world unit]", _line)


@checked(volume=ANY_VOLUME, line=LINE, transfer=optional(TRANSFER))
def profile(
    volume: AnyVolume, line: Rays | Numbers, transfer: TransferFunction | None = None, ax: Axes | None = None
) -> Axes:
    """Profile along a ray: values of a volume, trilinear between samples, and the share of light that comes so far.

    Args:
        volume: any; of nested boxes the innermost, NDC as if it were the world.
        line: one ray (`camera.rays([pixel])`), drawn through the volume's box; or two points (2, 3) [world unit].
        transfer: table by which values stop light; without one they are extinction (sigma) themselves.
        ax: Axes.

    Returns the Axes of the values over the distance from the ray's origin, or from the first point; the light that is
    left (transmittance) has an axis of its own on the right.

    Raises RaymarchError for a ray that misses the volume.

    Example:
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 0.5), shape=(8, 8, 8))
        >>> ax = profile(fog, Camera.look_at((0, -4, 0), width=9, height=9).rays([40]))
        >>> [round(float(x), 2) for x in ax.get_xlim()], round(float(ax.figure.axes[1].lines[0].get_ydata()[-1]), 3)
        ([3.0, 5.0], 0.368)
    """
    inner = innermost(volume)
    origin, direction, near, far = _span(inner, line)
    (ax,) = panels(ax, 1, (6.6, 3.2))
    count = int(np.clip((far - near) / (STEP * inner.voxel), 2, 100_000)) + 1
    s = np.linspace(near, far, count)
    values = trilinear(inner, origin + s[:, None] * direction)
    sigma = np.clip(np.nan_to_num(values), 0, None) if transfer is None else transfer.sigma(np.nan_to_num(values))
    sigma = np.where(np.isnan(values), 0.0, sigma)
    depth = np.append(0.0, np.cumsum(0.5 * (sigma[1:] + sigma[:-1]) * np.diff(s)))
    ax.plot(s, values, "C0", linewidth=1.5)
    ax.fill_between(s, values, color="C0", alpha=0.15, linewidth=0)
    ax.set(xlim=(near, far), xlabel=f"distance [{length_unit(volume)}]")
    ax.set_ylabel(values_label(volume), color="C0")
    ax.grid(alpha=0.25)
    right = ax.twinx()
    right.plot(s, np.exp(-depth), "C1--", linewidth=1.4)
    right.set_ylim(0, 1.03)
    right.set_ylabel("light that is left (transmittance)", color="C1")
    return ax


def _span(volume: Volume, line: Rays | np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Origin, unit direction, and the ends of what is drawn [world unit]."""
    if not isinstance(line, Rays):
        length = float(np.linalg.norm(line[1] - line[0]))
        if length == 0:
            raise RaymarchError(f"line is from {line[0].tolist()} to itself, want two points that differ; move one")
        return line[0], (line[1] - line[0]) / length, 0.0, length
    origin, direction = (np.asarray(each[0], float) for each in (line.origin, line.direction))
    direction = direction / np.linalg.norm(direction)
    lower, upper = volume.box
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = (np.stack([lower, upper]) - origin) / direction
    near = max(float(np.nanmax(ends.min(0))), 0.0)
    far = float(np.nanmin(ends.max(0)))
    if not near < far:
        raise RaymarchError("line is a ray that misses the volume's box; take a pixel that shows it")
    return origin, direction, near, far


def trilinear(volume: Volume, points: np.ndarray) -> np.ndarray:
    """Values (n,) at points (n, 3) of the world, trilinear in the raw samples; NaN outside of the box.

    Example:
        >>> ramp = Volume.from_function(lambda p: 2 + p[..., 0], shape=(3, 3, 3))
        >>> trilinear(ramp, np.array([[0.25, 0.1, 0.0], [0, 0, 9]])).tolist()
        [2.25, nan]
    """
    affine, most = volume.world_from_index, np.array(volume.shape) - 1
    place = (points - affine[:3, 3]) @ np.linalg.inv(affine[:3, :3]).T
    inside = ((place >= -1e-6) & (place <= most + 1e-6)).all(1)
    place = np.clip(place, 0, most)
    low = np.minimum(place.astype(int), most - 1)
    part, raw = place - low, np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        weight = np.where(corner, part, 1 - part).prod(1)
        raw += weight * volume.at(tuple((low + corner).T))[0]
    return np.where(inside, volume.activation.sigma(raw), np.nan)
