"""What a loop along rays is compiled for, and the structs that it hands to an integrand: ray, segment, ends, sample.

A `Scene` says, at compile time, what is marched (`grid`, `rays`, `variant`), what is made of it (`integrand`) and what
is asked (`task`): the integral, its adjoint (pull) or its tangent (push), by the volume, by the rays or by both.

Structs are made within kernels, `ti.Struct(name=value)`, so that their numbers have the process's precision. Letters:
d the ray's way in index space by unit of length, t the distance along it in the unit of the segment's box, own what is
counted from the first sample of that box. Gradients are d_ + name, tangents dot_ + name, by column.
"""

from functools import cached_property
from typing import Any

from raymarch.engine import ti
from raymarch.engine.record import record, replace
from raymarch.kernels.field.harmonics import basis
from raymarch.kernels.rays.rays import box_of, first_of, jitter_of, origin_in_box, place_ray, scale_of, within_box
from raymarch.kernels.rays.segment_ends import clipped_segment

VALUE, PULL, PUSH = "value", "pull", "push"
LEVEL = 1 << 20  # number of no face: an end where the raw density meets a level


@record()
class Scene:
    """Scene: all that a loop along rays is compiled for.

    Attributes:
        grid, rays: fields of the volume and of the rays.
        variant: activations, mode, jitter and clipping.
        integrand: what is made of the samples.
        task: `VALUE`, `PULL` (the adjoint) or `PUSH` (the tangent).
        moved: of a pull by rays where their gradients go, of a push by rays their tangents; else None.
        dots: of a push by the volume its tangents (x, y, z, column); else None.
        out: of a push where it goes, (ray, column).
        by_volume: whether a pull adds to the gradients of samples and table.
        go, traverse: what goes along one ray, `loops.go_along`, and the traversal that visits its samples.
    """

    grid: Any
    rays: Any
    variant: Any
    integrand: Any
    task: str = VALUE
    moved: Any = None
    dots: Any = None
    out: Any = None
    by_volume: bool = False
    go: Any = None
    traverse: Any = None

    @property
    def by_rays(self) -> bool:
        """Whether a pull or a push is by the rays' geometry."""
        return self.moved is not None

    @property
    def by_dots(self) -> bool:
        """Whether a push is by samples, or by the table."""
        return self.dots is not None

    @property
    def columns(self) -> int:
        """Count of tangents that a push carries."""
        return (self.moved if self.dots is None else self.dots).columns

    @property
    def dot_columns(self) -> int:
        """Count of a push's tangents by the volume; 1 where it is none."""
        return self.dots.columns if self.by_dots else 1

    @property
    def dots_move(self) -> bool:
        """Whether a push moves samples, and not the table alone."""
        return self.dots is not None and not self.dots.still

    @property
    def sloped(self) -> bool:
        """Whether the slope of the raw density is read with it."""
        return self.by_rays or self.integrand.sloped or self.variant.mode.level_ends

    @cached_property
    def ahead(self) -> "Scene":
        """Scene of the march on from a sample, that finds what the image gains by light behind it."""
        return replace(self, task=VALUE, integrand=self.integrand.ahead, moved=None, by_volume=False)


@ti.func
def ray_of(scene: ti.template(), r, dt, min_transmittance, min_weight, background):
    """Ray r: its numbers in index space, its steps, and the run-time settings of the march."""
    o, d = place_ray(scene.grid, scene.rays.origin[r], scene.rays.direction[r])
    phase, stretch = jitter_of(scene.rays, scene.variant, r)
    return ti.Struct(
        r=r,
        o=o,
        d=d,
        heading=scene.rays.direction[r],
        Y=basis(ti.static(max(scene.grid.degree, 0)), scene.rays.direction[r]),  # of a grid without colour too
        phase=phase,
        stretch=stretch,
        step=stretch * dt,
        dt=dt,
        min_transmittance=min_transmittance,
        min_weight=min_weight,
        background=background,
        per_index=scene.grid.cells_per_index[None],
        top=scene.grid.max_index[None],
        shift=scene.grid.shift[None],
        inverse_scale=scene.grid.inverse_scale[None],
    )


@ti.func
def segment_of(scene: ti.template(), ray: ti.template(), s):
    """Segment s of a ray: near and far with the numbers of their faces, where it enters its box, its way and length."""
    box = box_of(scene.grid, s)
    own = origin_in_box(scene.grid, ray.o, box)
    near, far, enters, leaves = clipped_segment(scene.grid, scene.rays, scene.variant, ray.r, own, ray.d, s)
    entry, way, length = within_box(own, ray.d, near, far, ray.top)
    return ti.Struct(
        s=s,
        box=box,
        scale=scale_of(box),
        first=ti.cast(first_of(scene.grid, box), ti.i32),
        near=near,
        far=far,
        enters=enters,
        leaves=leaves,
        entry=entry,
        way=way,
        length=length,
    )


@ti.func
def carried(scene: ti.template()):
    """What a task adds up along a ray: its gradients, or the tangents of the ends between which a sample lies."""
    if ti.static(scene.task == PULL):
        return ti.Struct(
            slot=0,
            first=ti.cast(0.0, float),
            last=ti.cast(0.0, float),
            dt=ti.cast(0.0, float),
            own=ti.Vector.zero(float, 3),
            o=ti.Vector.zero(float, 3),
            d=ti.Vector.zero(float, 3),
            view=ti.Vector.zero(float, 3),
            place=ti.Vector.zero(float, 3),
            way=ti.Vector.zero(float, 3),
            iso=ti.cast(0.0, float),
            frame=ti.Matrix.zero(float, 3, 3),
            corners=ti.Vector.zero(float, 8),
        )
    elif ti.static(scene.task == PUSH):
        return ti.Struct(first=ti.Vector.zero(float, scene.columns), last=ti.Vector.zero(float, scene.columns))
    else:
        return ti.Struct(slot=0)
