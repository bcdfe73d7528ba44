"""Samples of a march: rays in index space, interpolated density and features at a point, and its colour."""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import cell_index, is_sparse
from raymarch.kernels.field.gather import gather, is_flat, lower_corner, place_of_cell
from raymarch.kernels.field.gather import steps_of as steps_of_field
from raymarch.kernels.field.harmonics import basis
from raymarch.kernels.field.tables import extinction, knot_below, shade_of
from raymarch.kernels.integrator.mode import contributes, is_alive
from raymarch.kernels.rays.rays import jitter_of, place_of, place_ray, steps_of
from raymarch.kernels.rays.segment_ends import clip_ray


@ti.func
def index_ray(grid: ti.template(), rays: ti.template(), r):
    """Ray r in index space: origin and direction, and the harmonics of its view direction."""
    direction = rays.direction[r]
    o, d = place_ray(grid, rays.origin[r], direction)
    return o, d, basis(ti.static(max(grid.degree, 0)), direction)


@ti.func
def ray_segment(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, s, dt):
    """Segment s of ray r: its harmonics, its step and phase, and the index of its last, shorter step."""
    o, d, Y = index_ray(grid, rays, r)
    entry, index_direction, length = clip_ray(grid, rays, variant, r, o, d, s)
    phase, stretch = jitter_of(rays, variant, r)
    step = stretch * dt
    return entry, index_direction, length, Y, step, phase, steps_of(length, step, phase)


@ti.func
def locate(grid: ti.template(), p):
    """Cell of a point, by where it lies in the fields of the grid, and the position within it.

    p lies in the box, and on none of its upper faces: `clip_to_box` sees to it.
    """
    lowest = ti.cast(p, ti.i32)
    return cell_index(grid, lowest), p - lowest  # a floor would make 1 of what rounding put under 0


@ti.func
def optics_of(variant: ti.template(), raw, shift, inverse_scale, width):
    """Optical depth of a sample, its derivative by its raw density, and what passes the sample."""
    sigma, slope = activation.density_and_slope(variant, raw + shift)
    tau = sigma * inverse_scale * width
    return tau, slope * inverse_scale * width, variant.mode.step_transmittance(tau)


@ti.func
def fetch(grid: ti.template(), cell, f):
    """Interpolated sample: what is stored there in `grid.lanes` lanes, four of a colour, density the last.

    Where both are packed colour comes along, in one go; else the other lanes are 0 and `colour_at` looks it up.
    """
    raw = ti.Vector.zero(float, grid.lanes)
    if ti.static(grid.packs):
        raw = gather(grid.packed, cell, f)
    else:
        raw[ti.static(grid.lanes - 1)] = gather(grid.density, cell, f)
    return raw


@ti.func
def colour_at(grid: ti.template(), variant: ti.template(), cell, f, Y, raw):
    """Colour of `sum_k c_k Y_k`, interpolated before it is activated; 1 for a line integral, `raw` where a transfer
    function made that, that of features of 0 where the grid has none. The last lane is idle."""
    colour = ti.Vector.one(float, grid.lanes)
    if ti.static(variant.mode.classifies):
        colour = raw
    elif ti.static(variant.mode.colour):
        total = ti.Vector.zero(float, grid.lanes)
        if ti.static(grid.packs):
            total = raw * Y[0]
        if ti.static(grid.parted):
            features = gather(grid.features, cell, f)
            for k in ti.static(range((grid.degree + 1) ** 2)):
                for c in ti.static(range(grid.colours)):
                    total[c] += Y[k] * features[grid.colours * k + c]
        colour = activation.colour(variant, total)
    return colour


@ti.func
def weighted_colour(grid: ti.template(), variant: ti.template(), cell, f, Y, raw, weight, min_weight):
    """weight * colour of a sample whose colour came along, black under `min_weight`, without a branch."""
    shown = ti.select(contributes(variant, weight, min_weight), weight, 0.0)
    return shown * colour_at(grid, variant, cell, f, Y, raw)


# Samples of a march in groups, where colour is stored apart: what the next few samples of a run let pass, none waiting
# for another.
#
# A logarithm and two exponentials lie between a raw density and what passes its sample, one after the other, and
# whether a ray goes on is known only then. So a run of occupied cells is looked at `group_size()` samples at a time,
# which are composited one after the other as long as the ray goes on. Where a run ends within a group its last sample
# stands for those beyond it, which nobody asks for. A group's place is (entry, d, length, step, phase, number of its
# first sample, number behind the run's last). Loops over a group are no faster unrolled, and compile for three times
# as long then.

GROUP_SAMPLES = 8  # samples: with 4, 6 or 12 a step of a fit takes longer


def uses_groups(grid, variant) -> bool:
    """Whether samples go in groups: where densities are read alone."""
    return grid.parted and not variant.mode.classifies


def group_size() -> int:
    """Samples of a group: on a GPU one, whose other rays go on while one waits."""
    return GROUP_SAMPLES if runtime.runs_on_cpu() else 1


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
        cell, f = locate(grid, p)
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


# Samples of a march in long groups: of a flat grid that is only read, sixteen whole steps of a run at a time.
#
# Each stage is a loop of its own over the group, from array to array, and as many samples are worked on at once as a
# vector has lanes: LLVM makes vectors of loops that it has not unrolled before, of sixteen turns but not of eight.
# What is stored is read one sample at a time, all lanes of each at once, by a loop that may end early: of one that is
# known to go all the way LLVM makes gathers of single numbers instead, which are slower. The bits are those of pairs.

LONG_GROUP_SAMPLES = 16  # samples
NO_PLACE = -1  # in place of a cell where a group has no more


def has_lanes(grid, stored) -> bool:
    """Whether long groups of what is stored in a field are worth it: on a CPU in single precision, whose vectors have
    the lanes for it. In blocks, as a fit's grid lies, addresses take longer than that gains."""
    on_lanes = runtime.runs_on_cpu() and runtime.single_precision()
    return on_lanes and is_flat(stored) and not is_sparse(grid.table)


def uses_long_groups(grid, variant) -> bool:
    """Whether whole steps go in long groups: where all of a sample is read at once."""
    if reads_density_alone(grid, variant):
        return has_lanes(grid, grid.density)
    return bool(grid.packs) and has_lanes(grid, grid.packed)


def reads_density_alone(grid, variant) -> bool:
    """Whether nothing but the density of a sample is read: a table has the colour, or there is none."""
    return variant.mode.classifies or grid.features is None


@ti.func
def find_samples(stored: ti.template(), entry, d, step, first, last, places: ti.template(), f: ti.template()):
    """Places of the cells of a group's samples, up to sample `last` of the ray, and the positions (axis, sample) within
    the cells."""
    for j in range(LONG_GROUP_SAMPLES):
        p = entry + ((first + j + 0.5) * step) * d
        cell = ti.cast(p, ti.i32)
        for a in ti.static(range(3)):
            f[a, j] = p[a] - cell[a]
        places[j] = ti.select(first + j < last, place_of_cell(stored, cell), NO_PLACE)


@ti.func
def find_steps(
    stored: ti.template(),
    variant: ti.template(),
    entry,
    d,
    length,
    step,
    phase,
    first,
    last,
    places: ti.template(),
    f: ti.template(),
):
    """As `find_samples`, of steps as `place_of` has them: moved by a phase, the last of a ray shorter."""
    for j in range(LONG_GROUP_SAMPLES):
        p, _width = place_of(variant, entry, d, length, step, phase, first + j)
        cell = ti.cast(p, ti.i32)
        for a in ti.static(range(3)):
            f[a, j] = p[a] - cell[a]
        places[j] = ti.select(first + j < last, place_of_cell(stored, cell), NO_PLACE)


@ti.func
def read_samples(
    grid: ti.template(), places: ti.template(), f: ti.template(), raws: ti.template(), densities: ti.template()
):
    """What is stored, (sample, lane) as `fetch` has it, and the raw densities alone."""
    j = 0
    while places[j] != NO_PLACE:
        raw = fetch(grid, ti.Vector([places[j]]), ti.Vector([f[0, j], f[1, j], f[2, j]]))
        for c in ti.static(range(4)):
            raws[j, c] = raw[c]
        densities[j] = raw[3]
        j += 1


@ti.func
def read_densities(grid: ti.template(), places: ti.template(), f: ti.template(), densities: ti.template()):
    """Raw densities alone: their corners one sample after the other, which are then interpolated all at once."""
    v = ti.Matrix.zero(float, 8, LONG_GROUP_SAMPLES)
    x = ti.Vector(ti.static(steps_of_field(grid.density)[0]))
    y = ti.Vector(ti.static(steps_of_field(grid.density)[1]))
    z = ti.Vector(ti.static(steps_of_field(grid.density)[2]))
    j = 0
    while places[j] != NO_PLACE:
        at = lower_corner(grid.density, ti.Vector([places[j]]))
        for a, b, c in ti.static(ti.ndrange(2, 2, 2)):
            v[ti.static(4 * a + 2 * b + c), j] = grid.density[at + a * x + b * y + c * z]
        j += 1
    for i in range(LONG_GROUP_SAMPLES):
        v00, v01 = v[0, i] + (v[4, i] - v[0, i]) * f[0, i], v[1, i] + (v[5, i] - v[1, i]) * f[0, i]
        v10, v11 = v[2, i] + (v[6, i] - v[2, i]) * f[0, i], v[3, i] + (v[7, i] - v[3, i]) * f[0, i]
        v00 += (v10 - v00) * f[1, i]
        v01 += (v11 - v01) * f[1, i]
        densities[i] = v00 + (v01 - v00) * f[2, i]


@ti.func
def classify_samples(
    rays: ti.template(),
    variant: ti.template(),
    densities: ti.template(),
    shift,
    inverse_scale,
    step,
    raws: ti.template(),
    taus: ti.template(),
    passing: ti.template(),
):
    """Shades of a table (sample, lane), optical depths, and what passes each sample."""
    for j in range(LONG_GROUP_SAMPLES):
        i, beyond = knot_below(rays.table, activation.density(variant, densities[j] + shift) * inverse_scale)
        shade = shade_of(rays.table, i, beyond)
        for c in ti.static(range(4)):
            raws[j, c] = shade[c]
        densities[j] = shade[3]
    for j in range(LONG_GROUP_SAMPLES):
        sigma, _by_opacity = extinction(rays.table, densities[j])
        taus[j] = ti.select(densities[j] != 0.0, sigma * step, 0.0)
        passing[j] = variant.mode.step_transmittance(taus[j])


@ti.func
def pass_samples(
    variant: ti.template(),
    densities: ti.template(),
    shift,
    inverse_scale,
    step,
    taus: ti.template(),
    passing: ti.template(),
):
    """Optical depths, and what passes each sample."""
    for j in range(LONG_GROUP_SAMPLES):
        taus[j] = activation.density(variant, densities[j] + shift) * inverse_scale * step
        passing[j] = variant.mode.step_transmittance(taus[j])


@ti.func
def march_long_groups(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    entry,
    d,
    step,
    end,
    Y,
    shift,
    inverse_scale,
    min_transmittance,
    min_weight,
    k: ti.template(),
    T: ti.template(),
    sum_even: ti.template(),
    sum_odd: ti.template(),
):
    """Compositing of a run's whole steps in long groups: as `march.march_pairs`, which sums the first of each pair and
    the second apart, and leaves the last to another where their number is odd."""
    stop = k + ((end - k) & -2)
    while k < stop and is_alive(variant, T, min_transmittance):
        first, last = k, ti.min(k + LONG_GROUP_SAMPLES, stop)  # copies, which stay
        places, f = ti.Vector([NO_PLACE] * (LONG_GROUP_SAMPLES + 1)), ti.Matrix.zero(float, 3, LONG_GROUP_SAMPLES)
        raws, densities = ti.Matrix.zero(float, LONG_GROUP_SAMPLES, 4), ti.Vector.zero(float, LONG_GROUP_SAMPLES)
        taus, passing = ti.Vector.zero(float, LONG_GROUP_SAMPLES), ti.Vector.zero(float, LONG_GROUP_SAMPLES)
        if ti.static(reads_density_alone(grid, variant)):
            find_samples(grid.density, entry, d, step, first, last, places, f)
            read_densities(grid, places, f, densities)
        else:
            find_samples(grid.packed, entry, d, step, first, last, places, f)
            read_samples(grid, places, f, raws, densities)
        if ti.static(variant.mode.classifies):
            classify_samples(rays, variant, densities, shift, inverse_scale, step, raws, taus, passing)
        else:
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


# What a march keeps for its adjoint, where colour is stored apart: each ray's first samples, and the colours of those
# with weight.
#
# The adjoint then reads numbers that lie side by side where it would gather density, and all harmonics, from eight
# corners again. What is kept bears its sample's number: the adjoint looks up what it does not find, as beyond the last
# that is kept.

MAX_KEPT_DENSITIES, MAX_KEPT_COLOURS = 64, 32  # a ray


def keeps_samples(grid, rays, variant) -> bool:
    """Whether a march keeps its samples: where the buffer has room, and a colour is more than one read."""
    return rays.kept_colour is not None and uses_groups(grid, variant) and grid.boxes == 1 and variant.mode.colour


@ti.func
def keep_densities(rays: ti.template(), r, first, n, raws):
    """Keep the raw densities of a group, whose first sample has the number `first` and is ray r's n-th."""
    if n + ti.static(group_size()) <= MAX_KEPT_DENSITIES:
        for j in range(ti.static(group_size())):
            rays.kept_density[r * MAX_KEPT_DENSITIES + n + j] = ti.Vector([raws[j], first + j])


@ti.func
def keep_colour(rays: ti.template(), r, k, n, colour):
    """Keep the colour of sample k of ray r, the n-th with weight."""
    if n < MAX_KEPT_COLOURS:
        kept = colour
        kept[ti.static(colour.n - 1)] = k
        rays.kept_colour[r * MAX_KEPT_COLOURS + n] = kept


@ti.func
def densities_again(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, n, place: ti.template()):
    """Raw densities of a group, whose first sample is ray r's n-th: what was kept of them, or `densities_of_group`."""
    _entry, _d, _length, _step, _phase, first, end = place
    raws, found = ti.Vector.zero(float, ti.static(group_size())), False
    if ti.static(keeps_samples(grid, rays, variant)):
        if n + ti.static(group_size()) <= MAX_KEPT_DENSITIES:
            found = True
            for j in range(ti.static(group_size())):
                kept = rays.kept_density[r * MAX_KEPT_DENSITIES + n + j]
                raws[j] = kept[0]
                found = found and (kept[1] == first + j or first + j >= end)
    if not found:
        raws = densities_of_group(grid, variant, place)
    return raws


@ti.func
def colour_again(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, k, n, p, Y):
    """Colour of sample k of ray r, at p, the n-th with weight: what was kept of it, or what is there."""
    colour, found = ti.Vector.zero(float, grid.lanes), False
    if ti.static(keeps_samples(grid, rays, variant)):
        if n < MAX_KEPT_COLOURS:
            colour = rays.kept_colour[r * MAX_KEPT_COLOURS + n]
            found = colour[ti.static(grid.lanes - 1)] == k
            colour[ti.static(grid.lanes - 1)] = 0.0
    if not found:
        cell, f = locate(grid, p)
        colour = colour_at(grid, variant, cell, f, Y, ti.Vector.zero(float, grid.lanes))
    return colour
