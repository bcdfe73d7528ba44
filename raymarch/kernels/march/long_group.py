"""Samples of a march in long groups: of a flat grid that is only read, sixteen whole steps of a run at a time.

Each stage is a loop of its own over the group, from array to array, and as many samples are worked on at once as a
vector has lanes: LLVM makes vectors of loops that it has not unrolled before, of sixteen turns but not of eight. What
is stored is read one sample at a time, all lanes of each at once, by a loop that may end early: of one that is known
to go all the way LLVM makes gathers of single numbers instead, which are slower. The bits are those of pairs.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import is_sparse
from raymarch.kernels.field.gather import is_flat, place_of_cell
from raymarch.kernels.integrator.sample import fetch, weighted_colour
from raymarch.kernels.march.compositing import is_alive

LONG = 16  # samples
END = -1  # in place of a cell where a group has no more


def goes_long(grid, variant) -> bool:
    """Whether whole steps go in long groups: on a CPU in single precision, whose vectors have the lanes for it. In
    blocks, as a fit's grid lies, addresses take longer than that gains."""
    on_lanes = runtime.on_cpu() and runtime.single_precision() and not variant.mode.classifies
    return on_lanes and grid.slots == 0 and is_flat(grid.packed) and not is_sparse(grid.table)


@ti.func
def find_samples(grid: ti.template(), entry, d, step, first, last, places: ti.template(), f: ti.template()):
    """Places of the cells of a group's samples, up to sample `last` of the ray, and the positions (axis, sample) within
    the cells."""
    for j in range(LONG):
        p = entry + ((first + j + 0.5) * step) * d
        cell = ti.cast(p, ti.i32)
        for a in ti.static(range(3)):
            f[a, j] = p[a] - cell[a]
        places[j] = ti.select(first + j < last, place_of_cell(grid.packed, cell), END)


@ti.func
def read_samples(
    grid: ti.template(), places: ti.template(), f: ti.template(), raws: ti.template(), densities: ti.template()
):  # fmt: skip
    """What is stored, (sample, lane) as `fetch` has it, and the raw densities alone."""
    j = 0
    while places[j] != END:
        raw = fetch(grid, ti.Vector([places[j]]), ti.Vector([f[0, j], f[1, j], f[2, j]]))
        for c in ti.static(range(4)):
            raws[j, c] = raw[c]
        densities[j] = raw[3]
        j += 1


@ti.func
def pass_samples(
    variant: ti.template(), densities: ti.template(), shift, inverse_scale, step, taus: ti.template(),
    passing: ti.template(),
):  # fmt: skip
    """Optical depths, and what passes each sample."""
    for j in range(LONG):
        taus[j] = activation.density(variant, densities[j] + shift) * inverse_scale * step
        passing[j] = variant.mode.step_transmittance(taus[j])


@ti.func
def march_long_groups(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), entry, d, step, end, Y,
    shift, inverse_scale, min_transmittance, min_weight,
    k: ti.template(), T: ti.template(), sum_even: ti.template(), sum_odd: ti.template(),
):  # fmt: skip
    """Compositing of a run's whole steps in long groups: as `march.march_pairs`, which sums the first of each pair and
    the second apart, and leaves the last to another where their number is odd."""
    stop = k + ((end - k) & -2)
    while k < stop and is_alive(variant, T, min_transmittance):
        first, last = k, ti.min(k + LONG, stop)  # copies, which stay
        places, f = ti.Vector([END] * (LONG + 1)), ti.Matrix.zero(float, 3, LONG)
        find_samples(grid, entry, d, step, first, last, places, f)
        raws, densities = ti.Matrix.zero(float, LONG, 4), ti.Vector.zero(float, LONG)
        read_samples(grid, places, f, raws, densities)
        taus, passing = ti.Vector.zero(float, LONG), ti.Vector.zero(float, LONG)
        pass_samples(variant, densities, shift, inverse_scale, step, taus, passing)
        while k < last and is_alive(variant, T, min_transmittance):
            j = k - first
            raw = ti.Vector([raws[j, 0], raws[j, 1], raws[j, 2], raws[j, 3]])
            weight, T_after = variant.mode.composite(T, taus[j], passing[j])
            cell, within = ti.Vector([places[j]]), ti.Vector.zero(float, 3)  # which degree 0 does not ask
            more = weighted_colour(grid, variant, cell, within, Y, raw, weight, min_weight)
            if j & 1:
                sum_odd += more
            else:
                sum_even += more
            T = T_after
            k += 1
