"""Thinning: samples of a coarser spacing over the same box, each the mean of those about it, of what they show."""

from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import sample_index
from raymarch.kernels.field.copies import is_read


@ti.kernel
def thin_out(
    grid: ti.template(),
    variant: ti.template(),
    start: ti.math.ivec3,  # first sample of the box, and of the thinned samples along x
    top: ti.math.vec3,
    spacing: ti.math.vec3,
    ends: ti.math.vec2,
    number: ti.math.vec3,
    sigma: ti.types.ndarray(ndim=3),
    features: ti.types.ndarray(ndim=4),
):
    """sigma = mean extinction over a tent as wide as `spacing`, features = mean by extinction, 0 if there are none, of
    one box of a level.

    Tents are narrower near faces, so that they lie evenly about their place. `start` is the box's first sample along x,
    the first thinned sample, and whether samples that no occupied cell reads are brought between `ends`, raw. `number`
    is shift, 1 / scale, and what an extinction has added as a weight; under 0 all weights are 1.
    """
    for i, j, k in ti.ndrange(sigma.shape[0], sigma.shape[1], sigma.shape[2]):
        p = ti.cast(ti.Vector([i + start[1], j, k]), float) * spacing
        half = ti.min(ti.max(ti.min(p, top - p), 1.0), ti.max(spacing, 1.0))
        first = ti.cast(ti.max(ti.ceil(p - half), 0.0), ti.i32)
        last = ti.cast(ti.min(ti.floor(p + half), top), ti.i32)
        total, value, weight = ti.cast(0.0, float), ti.cast(0.0, float), ti.cast(0.0, float)
        for c in range(features.shape[3]):
            features[i, j, k, c] = 0.0
        for a, b, d in ti.ndrange((first[0], last[0] + 1), (first[1], last[1] + 1), (first[2], last[2] + 1)):
            away = 1.0 - ti.abs(ti.cast(ti.Vector([a, b, d]), float) - p) / half
            w = away[0] * away[1] * away[2]
            if w > 0.0:
                I = ti.Vector([a + start[0], b, d])
                n = sample_index(grid, I)
                raw = grid.density[n]
                if start[2] > 0 and not is_read(grid, I):
                    raw = ti.max(ti.min(raw, ends[1]), ends[0])
                s = activation.density(variant, raw + number[0]) * number[1]
                count = w
                if number[2] >= 0.0:
                    count *= s + number[2]
                total += w
                value += w * s
                weight += count
                if ti.static(grid.packs or grid.parted):
                    for c in ti.static(range(grid.features.n)):
                        features[i, j, k, c] += count * grid.features[n][c]
        sigma[i, j, k] = value / total
        for c in range(features.shape[3]):
            features[i, j, k, c] /= weight
