"""Faults in sparse volumes: their bricks, and the files of them."""

from mutants_cases.fault import Fault

BRICKS, FILES = "tests/data/test_bricks.py::", "tests/io/test_sparse_volumes.py::"

FAULTS = [
    Fault(
        "colours beside what is seen are left out",
        "Bricks.of_dense",
        "_blocked_any(full, margin=1) & ~kept",
        "_blocked_any(full, margin=0) & ~kept",
        (BRICKS + "test_colours_that_nobody_sees_are_left_out",),
    ),
    Fault(
        "a brick's samples lie turned in the dense array",
        "spread_bricks",
        "np.moveaxis(layer, 2, 0).swapaxes(2, 3)",
        "np.moveaxis(layer, 2, 0).swapaxes(2, 3).swapaxes(1, 3)",
        (BRICKS + "test_a_brick_lies_where_the_table_says", BRICKS + "test_bricks_come_back_as_the_dense_arrays"),
    ),
    Fault(
        "samples are looked up as if the first brick came last",
        "Bricks.at",
        "inside = (number[there], *(np.broadcast_to(n % BRICK_SIDE, number.shape)[there] for n in (i, j, k)))",
        "inside = (number[there] - 1, *(np.broadcast_to(n % BRICK_SIDE, number.shape)[there] for n in (i, j, k)))",
        (BRICKS + "test_a_sparse_volume_is_asked_as_a_dense_one",),
    ),
    Fault(
        "a brick may lie at two places",
        "require_each_once",
        "if (times > 1).any():",
        "if (times > 2).any():",
        (FILES + "test_wrong_bricks_are_refused_by_name",),
    ),
    Fault(
        "a brick may lie nowhere",
        "require_each_once",
        "if (times == 0).any():",
        "if (times < 0).any():",
        (FILES + "test_wrong_bricks_are_refused_by_name",),
    ),
    Fault(
        "a box's bricks begin where those of all boxes do",
        "Sparse.along_x",
        "values, colours = self.bricks.at((i[u], corner[0] + v, corner[1] + w), empty)",
        "values, colours = self.bricks.at((i[u] - start % BRICK_SIDE, corner[0] + v, corner[1] + w), empty)",
        (BRICKS + "test_a_sparse_volume_is_asked_as_a_dense_one",),
    ),
    Fault(
        "a file may hold more bricks than its table has places",
        "require_shapes",
        "if len(density) > table.size:",
        "if len(density) > table.size + 1:",
        (FILES + "test_wrong_layouts_are_refused_before_arrays_are_read",),
    ),
    Fault(
        "a sample beyond the shape counts as opaque",
        "opacity_in_parts",
        "alpha = np.where(index < length, alpha, 0)",
        "alpha = np.where(index <= length, alpha, 0)",
        (BRICKS + "test_samples_beyond_the_shape_count_nowhere",),
    ),
]
