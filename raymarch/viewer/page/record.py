"""What a page's ray marcher reads of a volume, its look and cameras: plain numbers, lists and texts for JSON."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Generator
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.rendering.march_settings import March
from raymarch.rendering.shading import Shading
from raymarch.viewer.page.atlas import MAX_LOSS, Atlas, bricks_along, differences, finish
from raymarch.volumes.activation import COLOURS, DENSITIES, Activation
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

# What the page draws of each mode: those without steps by the ones with steps.
DRAWN_MODES = {
    "emission-absorption": "emission-absorption", "additive": "additive", "transfer": "transfer", "maximum": "maximum",
    "minimum": "minimum", "x-ray": "x-ray", "x-ray-exact": "x-ray", "x-ray-joseph": "x-ray", "average": "average",
    "isosurface": "isosurface",
}  # fmt: skip
VALUE_MODES = ("maximum", "minimum", "x-ray", "average")  # whose pictures are values, shown over a window
COMPRESSION = 6
BRICKS_A_SLICE = 512  # of a channel, packed at a time


def unknown_activation(activation: Activation) -> tuple[str, tuple[str, ...]] | None:
    """Name of an activation's rule that the shader does not have, and those that it has; None where it has both."""
    for rule, known in ((activation.density_rule, DENSITIES), (activation.colour_rule, COLOURS)):
        if known.get(rule.name) != rule:
            return rule.name, tuple(known)
    return None


def require_drawn(volume: Volume, march: March) -> None:
    """RaymarchError for a volume or a march that the page's shader does not know."""
    if (unknown := unknown_activation(volume.activation)) is not None:
        raise RaymarchError(
            f"activation {unknown[0]!r} is your own, which a page's shader does not have; want one of"
            f" {', '.join(unknown[1])}; rm.Volume.from_array(volume.sigma(), colours, box=volume.box) makes one"
        )
    if not isinstance(march.mode, str):
        raise RaymarchError(
            f"mode {march.rule.name!r} is your own, which a page's shader does not have; give one of"
            f" {', '.join(DRAWN_MODES)}"
        )
    if march.shading is not None and march.shading.matcap is not None:
        raise RaymarchError("shading has a matcap, which a page's shader does not have; leave matcap out")


def volume_record(volume: Volume, atlas: Atlas) -> dict[str, Any]:
    """Record of a volume in an atlas."""
    ndc = volume.ndc_from_world
    activation = volume.activation
    return {
        "shape": list(volume.box_shape),
        "boxes": volume.boxes,
        "bricks": list(bricks_along(volume.box_shape)),
        "count": atlas.count,
        "entries": len(atlas.ranges),
        "channels": len(atlas.planes),
        "degree": atlas.degree,
        "indexFromWorld": np.linalg.inv(volume.world_from_index).ravel().tolist(),
        "ndc": None if ndc is None else ndc.ravel().tolist(),
        "worldFromNdc": None if ndc is None else np.linalg.inv(ndc).ravel().tolist(),
        "voxel": volume.voxel,
        "activation": {
            "density": activation.density_rule.name,
            "shift": activation.shift,
            "scale": activation.scale,
            "colour": activation.colour_rule.name,
        },
        "empty": activation.empty,
        "least": _least(volume),
    }


def _least(volume: Volume) -> float:
    """Value at or under which a cell is leapt over in modes that add up: what is left out of the atlas, too."""
    if volume.activation.density_rule.signed:
        return 0.0
    across = float(np.linalg.norm(np.ptp(volume.world_from_index[:3, :3] @ _corners(volume.box_shape), axis=1)))
    return MAX_LOSS / (across * (2 * volume.boxes - 1))


def _corners(shape: tuple[int, int, int]) -> np.ndarray:
    return np.stack(np.meshgrid(*[(0, n - 1) for n in shape], indexing="ij")).reshape(3, -1)


def look_record(march: March, background: Any, window: tuple[float, float] | None) -> dict[str, Any]:
    """Record of a look: mode, step, table, value of the surface, light, ground, what cuts rays."""
    lit = march.shading or (Shading() if march.iso is not None else None)
    return {
        "mode": DRAWN_MODES[str(march.mode)],
        "step": march.step,
        "minTransmittance": march.min_transmittance,
        "minWeight": march.min_weight,
        "table": None if march.transfer is None else table_record(march.transfer),
        "iso": march.iso,
        "window": None if window is None else list(window),
        "shading": None if lit is None else shading_record(lit),
        "background": [float(one) for one in background],
        "planes": [] if march.clip is None else march.clip.half_spaces.tolist(),
    }


def table_record(table: TransferFunction) -> dict[str, Any]:
    """Record of a transfer function."""
    return {"values": table.values.tolist(), "rgba": table.rgba.tolist(), "unitLength": table.unit_length}


def shading_record(shading: Shading) -> dict[str, Any]:
    """Record of a light; without occlusion, which the page does not draw."""
    lamp = None if shading.lamp is None else (np.array(shading.lamp) / np.linalg.norm(shading.lamp)).tolist()
    own = None if shading.colour is None else [float(one) for one in np.array(shading.colour)]
    numbers = {name: getattr(shading, name) for name in ("ambient", "diffuse", "specular", "shininess", "smooth")}
    return {**numbers, "lamp": lamp, "colour": own}


def camera_record(camera: Camera) -> dict[str, Any]:
    """Record of a camera, as a pinhole or with parallel rays: the page's rays are straight through its pixels."""
    return {
        "pose": camera.world_from_camera.ravel().tolist(),
        "focal": list(camera.focal),
        "principal": list(camera.principal),
        "width": camera.width,
        "height": camera.height,
        "parallel": camera.lens.parallel,
    }


def packed_text(atlas: Atlas) -> str:
    """An atlas as text: table, ranges and bytes, packed by deflate, in base64."""
    return base64.b64encode(finish(packed_bytes(atlas, COMPRESSION))).decode("ascii")


def packed_bytes(atlas: Atlas, level: int) -> Generator[float, None, bytes]:
    """Table, ranges and bytes of an atlas, packed by deflate, in slices of some milliseconds; yields the share done."""
    pack, done = zlib.compressobj(level), [b""]
    for part in (atlas.table.astype("<u4"), atlas.ranges.astype("<f4")):
        done.append(pack.compress(part.tobytes()))
    for channel in range(len(atlas.planes)):
        for first in range(0, atlas.count, BRICKS_A_SLICE):
            bricks = atlas.planes[channel : channel + 1, first : first + BRICKS_A_SLICE]
            done.append(pack.compress(differences(bricks).tobytes()))
            yield (channel + first / atlas.count) / len(atlas.planes)
    return b"".join([*done, pack.flush()])
