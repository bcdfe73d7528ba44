"""One of every owner of device memory, and how wide the numbers of each of its trees are; for the worker process."""

from __future__ import annotations

import importlib
from pathlib import Path
from unittest import mock

import cases
import numpy as np

import raymarch
from raymarch.device import pool
from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.device.part_rays import PartRays
from raymarch.device.photometry_sums import PhotometricSums
from raymarch.device.ray_buffer import RayBuffer
from raymarch.device.table_fields import MemberSettings
from raymarch.geometry.camera import Camera
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.tangents import RayTangents, VolumeTangents
from raymarch.rendering.march_settings import March
from raymarch.tape.scene import Scene
from raymarch.tape.splatting import Splat
from raymarch.views.views import Views

CAMERA = Camera.look_at((0.4, -3, 0.7), width=4, height=3)
SHAPE = (6, 5, 4)
NAMES = ("red", "green", "blue", "thermal")


def makers():
    """What makes one of each owner, in the ways that lay its fields out differently."""
    colours = Views([CAMERA], np.zeros((1, 3, 4, 4), np.uint8))
    channels = Views([CAMERA], np.zeros((1, 3, 4, 4), np.float32), channels=NAMES)
    return [
        lambda: Grid(SHAPE, 0),
        lambda: Grid(SHAPE, 1, slots=2, moments=True, block=4, ndc_from_world=np.eye(4)),
        lambda: Grid(SHAPE, -1, slopes=True),
        lambda: BrickGrid((16, 16, 16), 1, bricks=3, slots=1, moments=True),
        lambda: RayBuffer(8),
        lambda: RayBuffer(8, keeps=True),
        lambda: RayBuffer(8, channels=4),
        MemberSettings,
        lambda: PhotometricSums(2, 3),
        lambda: ImageStore(colours),
        lambda: ImageStore(channels),
        lambda: PartRays(8, 3),
        lambda: RayTangents(8, 2),
        lambda: VolumeTangents(SHAPE, 3, 2),
        lambda: Splat(4, (5, 6)),
        lambda: Scene(Linearised(cases.volume(degree=0), CAMERA, march=March())),
    ]


def widths(snode):
    """Bytes of the numbers below a node of Taichi's."""
    if snode.is_place():
        return {8 if str(snode.data_type()).endswith("64") else 4}
    return set().union(*(widths(snode.get_ch(i)) for i in range(snode.get_num_ch())))


def kinds_of_owners():
    """Names of all owners of the package, of those too that nothing has imported yet."""
    package = Path(raymarch.__file__).parent
    for file in package.rglob("*.py"):
        if "(Owner[" in file.read_text(encoding="utf-8"):
            importlib.import_module(".".join(("raymarch", *file.relative_to(package).with_suffix("").parts)))
    found, new = set(), {pool.Owner}
    while new:
        new = {below for one in new for below in one.__subclasses__() if below.__module__.startswith("raymarch.")}
        found |= new
    return {one.__name__ for one in found}


def widths_of_owners():
    """Rows (owner, bytes of the numbers of each of its trees), of owners made anew; and the names of all there are."""
    rows, build = [], pool.build_tree
    pool.release()

    def note(builders, kind, *rest):
        rows.append((kind[0], [sorted(widths(builder.ptr)) for builder in builders]))
        return build(builders, kind, *rest)

    with mock.patch.object(pool, "build_tree", note):
        made = [make() for make in makers()]
    for one in made:
        if isinstance(one, Scene):
            one.seen.close()
        one.close()
    return rows, kinds_of_owners()
