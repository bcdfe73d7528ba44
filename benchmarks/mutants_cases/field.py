"""Faults in the kernels of the field: interpolation, activations, harmonics, occupancy, transfer, arithmetic."""

from mutants_cases.fault import Fault

CLOSED = "tests/kernels/test_closed_forms.py::"
REFERENCE = "tests/kernels/test_march_reference.py::"
BRICKS = "tests/kernels/test_brick_pool.py::"
SKIPPING = "tests/kernels/test_invariances.py::"
HARMONICS = "tests/kernels/test_harmonics.py::test_each_harmonic_is_that_of_the_recurrences"
TRANSPOSE = "tests/kernels/test_transposes.py::test_scatter_is_the_transpose_of_gather[4]"
GRADIENT = REFERENCE + "test_gradient_is_the_reference[upright-1-softplus-sigmoid]"
DOT_TEST = "tests/kernels/test_geometry.py::test_every_parameter_passes_the_dot_test_and_the_difference"

FAULTS = [
    Fault(
        "interpolation along y where it is along x",
        "gather",
        "v10 += (values[at + x + y] - v10) * f[0]",
        "v10 += (values[at + x + y] - v10) * f[1]",
        (TRANSPOSE,),
    ),
    Fault(
        "a corner's weight is not taken from its neighbour",
        "scatter",
        "accumulate(part, lower, in_y - z1)",
        "accumulate(part, lower, in_y)",
        (TRANSPOSE,),
    ),
    Fault(
        "the upper corner is written one along y",
        "scatter",
        "upper = lower + z",
        "upper = lower + y",
        (TRANSPOSE,),
    ),
    Fault(
        "a point on the last face belongs to a cell beyond",
        "cell_of",
        "ti.cast(max_index, ti.i32) - 1)",
        "ti.cast(max_index, ti.i32))",
        (REFERENCE + "test_points_on_the_last_faces_belong_to_the_last_cell",),
    ),
    Fault(
        "the slope along x is interpolated by the place in x",
        "gather_slope",
        "x01 + (x11 - x01) * f[1]",
        "x01 + (x11 - x01) * f[0]",
        (DOT_TEST + "[rotated-0-softplus-sigmoid-0-{}]",),
    ),
    Fault(
        "softplus's slope by one exponential has its sides swapped",
        "softplus_and_slope",
        "ti.select(x > 0, 1.0, e) / (1.0 + e)",
        "ti.select(x > 0, e, 1.0) / (1.0 + e)",
        (GRADIENT,),
    ),
    Fault(
        "softplus's slope has the sign of x wrong",
        "softplus_slope",
        "def softplus_slope(x):\n    return 1.0 / (1.0 + exp(-x))",
        "def softplus_slope(x):\n    return 1.0 / (1.0 + exp(x))",
        (CLOSED + "test_slope_is_the_derivative_of_the_activation[softplus]",),
    ),
    Fault(
        "relu's slope at its kink is that from above",
        "relu_slope",
        "return ti.select(x > 0, 1.0, 0.0)",
        "return ti.select(x >= 0, 1.0, 0.0)",
        ("tests/kernels/test_kinks.py::test_at_relus_kink_it_is_the_slope_from_below",),
    ),
    Fault(
        "the exponential's slope at its bound is that from above",
        "exponential_slope",
        "return ti.select(x <= MAX_EXPONENT,",
        "return ti.select(x < MAX_EXPONENT,",
        ("tests/kernels/test_kinks.py::test_at_exponentials_bound_it_is_the_slope_from_below",),
    ),
    Fault(
        "the sigmoid's slope has a sign wrong",
        "sigmoid_slope",
        "return y * (1.0 - y)",
        "return y * (1.0 + y)",
        (GRADIENT,),
    ),
    Fault(
        "Y of degree 3, order 2 has twice its constant",
        "basis",
        "Y[14] = C32 * z * (xx - yy)",
        "Y[14] = 2.0 * C32 * z * (xx - yy)",
        (HARMONICS + "[3-2]",),
    ),
    Fault(
        "Y of degree 2, order -1 has the other sign",
        "basis",
        "Y[5] = -C21 * y * z",
        "Y[5] = C21 * y * z",
        (HARMONICS + "[2--1]",),
    ),
    Fault(
        "a slope of degree 3 lacks the factor of its derivative",
        "basis_slope",
        "s[13, 0] = -C31 * (4.0 * z * z - 3.0 * x * x - y * y)",
        "s[13, 0] = -C31 * (4.0 * z * z - x * x - y * y)",
        (HARMONICS + "[3-1]",),
    ),
    Fault(
        "the last sample that a cell reads is not looked at",
        "mark_occupied",
        "last = ti.min(ti.cast(ti.ceil(high), ti.i32) + margin,",
        "last = ti.min(ti.cast(high, ti.i32) - 1 + margin,",
        (SKIPPING + "test_occupied_cells_are_those_that_read_something",),
    ),
    Fault(
        "occupied cells have no margin below",
        "mark_occupied",
        "first = ti.max(ti.cast(low, ti.i32) - margin, 0)",
        "first = ti.max(ti.cast(low, ti.i32), 0)",
        (SKIPPING + "test_a_margin_marks_the_cells_that_read_so_many_samples_more",),
    ),
    Fault(
        "the visual hull rules out what it allows",
        "mark_occupied",
        "if grid.hull_mask[I]:",
        "if not grid.hull_mask[I]:",
        (SKIPPING + "test_occupied_cells_are_those_that_read_something",),
    ),
    Fault(
        "cells are as far as those on one side of them",
        "distance_along",
        "distance[cell] = ti.cast(ti.min(b, ti.cast(scratch[cell], ti.i32)), ti.u8)",
        "distance[cell] = ti.cast(b, ti.u8)",
        (SKIPPING + "test_leap_is_the_chessboard_distance",),
    ),
    Fault(
        "a distance stays though the cell it comes from is out of reach",
        "distance_so_far",
        "elif last[row, b] < stamp - b:",
        "elif last[row, b] < stamp - b - 1:",
        (SKIPPING + "test_leap_is_the_chessboard_distance",),
    ),
    Fault(
        "a line finds the cells of the line before it",
        "distance_along",
        "b = distance_so_far(b, ti.cast(distance[cell], ti.i32), last, row, stamp + n + MAX_DISTANCE + back)",
        "b = distance_so_far(b, ti.cast(distance[cell], ti.i32), last, row, stamp + back)",
        (SKIPPING + "test_leap_is_the_chessboard_distance",),
    ),
    Fault(
        "cells of present bricks are looked at once",
        "distinct_samples",
        "if not present:",
        "if present:",
        ("tests/kernels/test_brick_pool.py::test_image_gradient_and_step_are_a_dense_grids_bit_for_bit",),
    ),
    Fault(
        "a block is not alive by the cell before its first sample",
        "reach_blocks",
        "low, high = ti.cast(I * edge - 1, float) * cells_per_index",
        "low, high = ti.cast(I * edge, float) * cells_per_index",
        (SKIPPING + "test_blocks_are_alive_that_hold_a_sample_of_an_occupied_cell",),
    ),
    Fault(
        "refining counts samples where it should count edges",
        "resample",
        "I[1] / (ny - 1), I[2] / (nz - 1)]",
        "I[1] / ny, I[2] / (nz - 1)]",
        ("tests/house/test_values.py::test_refining_keeps_trilinear_fields_and_the_box",),
    ),
    Fault(
        "samples below an occupied cell are emptied",
        "is_read",
        "(I - 1) * per_index, (I + 1) * per_index",
        "(I - 1) * per_index, I * per_index",
        (SKIPPING + "test_carving_empties_the_samples_that_no_occupied_cell_reads",),
    ),
    Fault(
        "two digits of the exponential's polynomial are swapped",
        "exp",
        "f * 0.24022651)",
        "f * 0.24026251)",
        (CLOSED + "test_f32_exp_is_good_near_zero_and_over_the_range",),
    ),
    Fault(
        "two digits of the logarithm's polynomial are wrong",
        "log1p_unit",
        "0.13663245 * u",
        "0.13363245 * u",
        (CLOSED + "test_f32_log1p_is_good_over_the_unit_interval",),
    ),
    Fault(
        "infinity counts as finite",
        "is_finite",
        "& 0x7FF != 0x7FF",
        "& 0x7FF != 0x7FE",
        ("tests/kernels/test_optimiser.py::test_a_gradient_that_is_not_finite_freezes_all",),
    ),
    Fault(
        "the derivative of a point's share has its sign wrong",
        "slope_of",
        "slope[a] *= 1.0 if ti.static(upper) else -1.0",
        "slope[a] *= -1.0 if ti.static(upper) else 1.0",
        ("tests/tape/test_splatting.py::test_adjoint_is_the_derivative[(7, 5) x 1-positions]",),
    ),
    Fault(
        "a point reaches its own row only",
        "reaches_band",
        "% BANDS < 2",
        "% BANDS < 1",
        ("tests/tape/test_splatting.py::test_one_point_in_the_middle_of_eight_samples",),
    ),
    Fault(
        "gradients of missing bricks stay for the next step",
        "reduce_slots",
        "grid.d_density[s, 0, 0, n] = 0",
        "grid.d_density[s, 0, 0, n] += 0",
        (BRICKS + "test_what_is_dropped_stays_out_and_away",),
    ),
    Fault(
        "a brick begins one block late for blocks of marks",
        "first_block",
        "return ti.static(BRICK_BLOCKS if is_sparse(grid.table) else 0)",
        "return ti.static(BRICK_BLOCKS + 1 if is_sparse(grid.table) else 0)",
        (BRICKS + "test_image_gradient_and_step_are_a_dense_grids_bit_for_bit",),
    ),
    Fault(
        "a cell at a brick's end reads its own brick's first samples",
        "brick_corners",
        "low, high = cell >> BRICK_SHIFT, upper >> BRICK_SHIFT",
        "low, high = cell >> BRICK_SHIFT, cell >> BRICK_SHIFT",
        (BRICKS + "test_image_gradient_and_step_are_a_dense_grids_bit_for_bit",),
    ),
    Fault(
        "bricks that a cell's last corner reads are not taken",
        "_reach",
        ".clip(max=samples - 2) + 1",
        ".clip(max=samples - 2)",
        (BRICKS + "test_bricks_that_cells_read_hold_every_corner_of_every_point_in_them",),
    ),
]
