"""Device fields of a grid: samples, gradients, moments, marks, and where the grid lies."""

from __future__ import annotations

from dataclasses import dataclass

import taichi as ti

COLOURLESS = -1  # degree of a grid of density alone, as X-rays see


@dataclass(frozen=True, eq=False)
class Fields:
    """Device fields of a grid, as kernels see them; gradients and their slots lie on dense branches of their own.

    At degree 0 `packed` and `d_packed` are features and density as one vector, which is how they lie in memory; else
    they are None. A grid of degree `COLOURLESS` has density alone, and all that is of features is None. `block` is the
    edge of the blocks that the three fields `block_...` are about.

    A sparse grid has its samples, and its marks of blocks, in a pool of bricks (`kernels/field/bricks`): `table` has
    the place of each brick in it, 0 where none is, `old_table` that before the last change of level, `brick` which
    brick is at a place. They are None of a dense grid.

    `g_density` and `g_features` are the gradient: `density.grad` and `features.grad` of a dense grid, which `lazy_grad`
    makes; of a sparse one the first slot of `d_density` and `d_features`, which saves a copy.

    `feature_cells` and `feature_samples` are the bit masks of `kernels/field/touched`: the cells at whose corners each
    slot added features since they were last added up, and the samples whose features have a gradient; None at degree 0.
    """

    density: ti.Field
    features: ti.Field | None
    packed: ti.Field | None
    degree: int
    block: int
    slots: int
    boxes: int
    d_density: ti.Field | None
    d_features: ti.Field | None
    d_packed: ti.Field | None
    g_density: ti.Field | None
    g_features: ti.Field | None
    m_density: ti.Field | None
    m_features: ti.Field | None
    v_density: ti.Field | None
    v_features: ti.Field | None
    m_cube: ti.Field | None
    v_cube: ti.Field | None
    feature_cells: ti.Field | None
    feature_samples: ti.Field | None
    block_written: ti.Field
    block_has_gradient: ti.Field
    block_occupied: ti.Field
    empty_distance: ti.Field
    occupied_distance: ti.Field
    seen: ti.Field
    hull_mask: ti.Field
    index_from_world: ti.Field
    ndc_from_world: ti.Field | None
    max_index: ti.Field
    cells: ti.Field
    cells_per_index: ti.Field
    shift: ti.Field
    inverse_scale: ti.Field
    nonfinite_step: ti.Field
    table: ti.Field | None
    old_table: ti.Field | None
    brick: ti.Field | None

    @property
    def ndc(self) -> bool:
        """Whether the boxes lie in normalised device coordinates, not in the world itself."""
        return self.ndc_from_world is not None

    @property
    def segments(self) -> int:
        """Segments of a ray through the nested boxes."""
        return 2 * self.boxes - 1
