"""Samples of a march in groups, above degree 0: what the next few samples of a run let pass, none waiting for another.

A logarithm and two exponentials lie between a raw density and what passes its sample, one after the other, and whether
a ray goes on is known only then. So a run of occupied cells is looked at `group_size()` samples at a time, which are
composited one after the other as long as the ray goes on. Where a run ends within a group its last sample stands for
those beyond it, which nobody asks for. A group's place is (entry, d, length, step, phase, number of its first sample,
number behind the run's last). Loops over a group are no faster unrolled, and compile for three times as long then.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather
from raymarch.kernels.integrator.sample import located, optics_of
from raymarch.kernels.rays.rays import place_of

GROUP = 8  # samples: with 4, 6 or 12 a step of a fit takes longer


def grouped(grid, variant) -> bool:
    """Whether samples go in groups: where densities are read alone."""
    return grid.degree > 0 and not variant.mode.classifies


def group_size() -> int:
    """Samples of a group: on a GPU one, whose other rays go on while one waits."""
    return GROUP if runtime.on_cpu() else 1


@ti.func
def place_in_group(variant: ti.template(), place: ti.template(), j):
    """Position in index space, and width, of a group's sample j."""
    entry, d, length, step, phase, first, end = place
    return place_of(variant, entry, d, length, step, phase, ti.min(first + j, end - 1))


@ti.func
def densities_of_group(grid: ti.template(), variant: ti.template(), place: ti.template()):
    """Raw densities of a group."""
    raws = ti.Vector.zero(float, ti.static(group_size()))
    for j in range(ti.static(group_size())):
        p, _width = place_in_group(variant, place, j)
        cell, f = located(grid, p)
        raws[j] = gather(grid.density, cell, f)
    return raws


@ti.func
def depths_of_group(variant: ti.template(), place: ti.template(), raws, shift, inverse_scale):
    """Optical depths of a group, and what passes each sample."""
    taus, passing = ti.Vector.zero(float, ti.static(group_size())), ti.Vector.zero(float, ti.static(group_size()))
    for j in range(ti.static(group_size())):
        _p, width = place_in_group(variant, place, j)
        taus[j] = activation.density(variant, raws[j] + shift) * inverse_scale * width
        passing[j] = variant.mode.step_transmittance(taus[j])
    return taus, passing


@ti.func
def optics_of_group(variant: ti.template(), place: ti.template(), raws, shift, inverse_scale):
    """As `depths_of_group`, and between both the derivatives of the optical depths by the raw densities."""
    taus, slopes, passing = (
        ti.Vector.zero(float, ti.static(group_size())),
        ti.Vector.zero(float, ti.static(group_size())),
        ti.Vector.zero(float, ti.static(group_size())),
    )
    for j in range(ti.static(group_size())):
        _p, width = place_in_group(variant, place, j)
        taus[j], slopes[j], passing[j] = optics_of(variant, raws[j], shift, inverse_scale, width)
    return taus, slopes, passing
