"""Law: scatter is the transpose of gather, and march_adjoint of the march linearised where it stands."""

from __future__ import annotations

from dataclasses import replace

import cases
import drive
import numpy as np
import pytest
import single as worker
from whole import whole

from raymarch.engine import ti


@pytest.mark.parametrize("block", [whole(block) if block in (2, 8) else block for block in cases.BLOCKS])
def test_scatter_is_the_transpose_of_gather(block):
    """`abs(<Jv, w> - <v, J'w>) / (norm(Jv) norm(w))`, worst of 20 pairs."""
    rng = np.random.default_rng(0)
    grid = drive.grid_of(1, block)
    top = np.array(cases.FINEST) - 1.0
    points = np.concatenate(
        [rng.uniform(0, 1, (40, 3)) * top, np.floor(rng.uniform(0, 1, (9, 3)) * top), [0 * top, top]]
    )
    for seed in range(20):
        v = cases.volume(seed=seed)
        grid.upload(v)
        w = rng.normal(size=len(points))
        gathered = np.empty(len(points))
        worker.gather_of(grid.fields, points, gathered)
        grid.fields.d_density.fill(0)
        worker.scatter_of(grid.fields, points, w)
        scattered = grid.fields.d_density.to_numpy()[0][tuple(slice(n) for n in cases.FINEST)]
        difference = gathered @ w - np.sum(v.density * scattered)
        assert abs(difference) < 1e-12 * np.linalg.norm(gathered) * np.linalg.norm(w)
    grid.fields.d_density.fill(0)


@pytest.mark.parametrize("before", [(0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
def test_both_samples_of_a_pair_mark_their_blocks_whichever_was_marked_before(before):
    grid = drive.grid_of(1)
    marks, edge = grid.fields.block_written, grid.mark
    marks.fill(0)
    marks[0, 0, 0], marks[1, 0, 0] = before
    worker.mark_of(grid.fields, ti.Vector([edge - 1, 0, 0]), ti.Vector([edge, 0, 0]))
    assert marks.to_numpy()[:2, 0, 0].tolist() == [1, 1]
    assert marks.to_numpy().sum() == 2
    marks.fill(0)


@pytest.mark.parametrize("cuts", [(0.0, 0.0), (0.3, 0.02)], ids=["no cuts", "early stop and weight floor"])
@pytest.mark.parametrize("variant", [*cases.SOME_READINGS, *map(whole, cases.OTHER_READINGS)], ids="-".join)
def test_adjoint_is_the_transpose_of_the_linearised_march(variant, cuts):
    """Along random directions of density and of features, for a random cotangent."""
    v = cases.volume("upright", 1, *variant)
    rays = cases.rays(v)
    rng = np.random.default_rng(2)
    w = rng.normal(size=(len(rays), 4))
    gradients = drive.gradient(v, rays, w, 0.17, min_transmittance=cuts[0], min_weight=cuts[1])
    for name, d in zip(("density", "features"), gradients, strict=True):
        direction = rng.normal(size=d.shape)

        def along(h, name=name, direction=direction):
            moved = replace(v, **{name: getattr(v, name) + h * direction})
            return np.sum(w * drive.image(moved, rays, 0.17, min_transmittance=cuts[0], min_weight=cuts[1]))

        assert drive.best_agreement(along, np.sum(d * direction)) < 1e-7
