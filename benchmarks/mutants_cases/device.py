"""Faults on the device's side: pool, owners, grid, layout, memory, buffers."""

from mutants_cases.fault import Fault

VALUES = "tests/house/test_values.py::"
BRICKS = "tests/kernels/test_brick_pool.py::"
PYRAMID = "tests/device/test_image_pyramid.py::"
POOL = "tests/device/test_pool.py::"
TRACING = "tests/kernels/test_tracing.py::"
FORECAST = "tests/fitting/test_forecast.py::"

FAULTS = [
    Fault(
        "slots that are asked as one lie apart",
        "device/grid_layout.py",
        "whole = of if block == 1 else array",
        "whole = array",
        (
            "tests/fitting/test_fitter.py::test_any_layout_same_bytes",
            "tests/kernels/test_touched.py::test_what_slots_hold_of_features_is_added_up_and_nothing_left",
        ),
    ),
    Fault(
        "a tree of just the room that is wanted does not serve",
        "device/pool.py",
        "all(n >= m for n, m in zip(room, wanted",
        "all(n > m for n, m in zip(room, wanted",
        (POOL + "test_images_of_volumes_of_many_shapes_compile_no_kernel_again",),
    ),
    Fault(
        "a larger tree serves no small volume",
        "device/pool.py",
        "most = max(LOOSE * size_of(room), SMALL)",
        "most = min(LOOSE * size_of(room), SMALL)",
        (POOL + "test_images_of_volumes_of_many_shapes_compile_no_kernel_again",),
    ),
    Fault(
        "what was used last is freed first",
        "device/pool.py",
        "_free(_kept.pop(0))",
        "_free(_kept.pop())",
        (POOL + "test_what_was_unused_the_longest_is_freed_first",),
    ),
    Fault(
        "a tree that was closed is taken in twice",
        "device/owner.py",
        "self._watching.detach()\n            pool.give",
        "self._watching.peek()\n            pool.give",
        (
            POOL + "test_what_was_closed_is_kept_once",
            POOL + "test_what_was_never_closed_is_taken_back",
        ),
    ),
    Fault(
        "what is left of a tree serves the next of its kind",
        "device/pool.py",
        "size=0, whole=False)",
        "size=0)",
        (BRICKS + "test_a_fit_that_ended_has_its_values_and_gives_the_rest_back",),
    ),
    Fault(
        "a fit that ended keeps its moments",
        "device/pool.py",
        "for root in tree.roots[1:]:",
        "for root in tree.roots[2:]:",
        (BRICKS + "test_a_fit_that_ended_has_its_values_and_gives_the_rest_back",),
    ),
    Fault(
        "images in use are forgotten as those that were not",
        "device/image_pyramid.py",
        "if halvings != self._halvings:",
        "if halvings or self._halvings:",
        (PYRAMID + "test_the_pyramid_goes_between_its_sizes_and_exposures_go_along",),
    ),
    Fault(
        "smaller images keep the exposures of none",
        "device/image_pyramid.py",
        "if self._exposures is not None:",
        "if self._exposures is None:",
        (PYRAMID + "test_the_pyramid_goes_between_its_sizes_and_exposures_go_along",),
    ),
    Fault(
        "a closed owner still gives its fields",
        "device/owner.py",
        "runtime.require_owner()\n            self._fields = None",
        "runtime.require_owner()\n            self._fields = self._fields",
        (VALUES + "test_use_after_close_is_an_error",),
    ),
    Fault(
        "the sum of the slots takes no memory",
        "device/memory.py",
        "(slots + (0 if merged else 1) if slots else 0)",
        "(slots if slots else 0)",
        (VALUES + "test_the_bytes_counted_are_those_of_the_arrays",),
    ),
    Fault(
        "blocks that are cut off are not counted",
        "device/memory.py",
        "x, *rows = (-(-n // edge) * edge for n in shape)",
        "x, *rows = (n // edge * edge for n in shape)",
        (FORECAST + "test_a_thin_grid_counts_whole_blocks",),
    ),
    Fault(
        "what Taichi can index is asked of samples, not of their numbers",
        "device/memory.py",
        "if math.prod(shape) * channels > MAX_CELLS:",
        "if math.prod(shape) > MAX_CELLS:",
        (VALUES + "test_too_large_a_grid_is_refused_with_the_bytes",),
    ),
    Fault(
        "cells are spread over one sample more",
        "device/grid_layout.py",
        "np.array(cells) / (np.array(shape) - 1.0),",
        "np.array(cells) / np.array(shape),",
        ("tests/kernels/test_invariances.py::test_occupied_cells_are_those_that_read_something",),
    ),
    Fault(
        "a finer level spans a smaller box",
        "device/grid.py",
        "extent[:3, :3] *= old_top / grid.max_index",
        "extent[:3, :3] *= (old_top + 1) / (grid.max_index + 1)",
        (VALUES + "test_refining_keeps_trilinear_fields_and_the_box",),
    ),
    Fault(
        "a voxel is as long as its longest edge",
        "geometry/pose.py",
        "np.linalg.norm(world_from_index[:3, :3], axis=0).min())",
        "np.linalg.norm(world_from_index[:3, :3], axis=0).max())",
        ("tests/kernels/test_invariances.py::test_a_renderers_step_is_in_voxels",),
    ),
    Fault(
        "the last cell of an axis is missing",
        "device/grid_layout.py",
        "tuple(-(-(n - 1) // CELL_SIZE) for n in shape)",
        "tuple(max((n - 1) // CELL_SIZE, 1) for n in shape)",
        ("tests/kernels/test_invariances.py::test_occupied_cells_are_those_that_read_something",),
        accepted="cells are then a little larger than four voxels: `cells_per_index` follows their number",
    ),
    Fault(
        "what a mask takes out looks empty to the hull",
        "device/image_store.py",
        "image[~mask, 3] = 255",
        "image[~mask, 3] = 0",
        ("tests/rendering/test_renderer.py::test_what_a_mask_takes_out_is_opaque_and_the_rest_is_as_it_was",),
    ),
    Fault(
        "a second image lies over the first",
        "device/image_store.py",
        "np.cumsum(pixels) - pixels",
        "0 * pixels",
        ("tests/rendering/test_renderer.py::test_rays_and_colours_are_those_of_the_cameras_and_images",),
    ),
    Fault(
        "images without alpha are transparent",
        "device/image_store.py",
        "np.full_like(image[..., :1], 255)",
        "np.full_like(image[..., :1], 0)",
        ("tests/rendering/test_renderer.py::test_images_without_alpha_are_opaque",),
    ),
    Fault(
        "a full buffer is refused",
        "device/ray_buffer.py",
        "if count > self.capacity:",
        "if count >= self.capacity:",
        ("tests/kernels/test_invariances.py::test_images_are_the_same_bytes_for_any_batch",),
    ),
    Fault(
        "what is kept is not freed for who needs its memory",
        "device/memory.py",
        "if needed > 0.9 * (free - pool.held()):",
        "if needed > 9.0 * (free - pool.held()):",
        (POOL + "test_what_is_kept_is_freed_before_anything_is_refused",),
    ),
    Fault(
        "any thread may use the device",
        "runtime.py",
        "if _owner is not None and threading.get_ident() != _owner[1]:",
        "if _owner is None and threading.get_ident() != _owner[1]:",
        (POOL + "test_release_belongs_to_the_thread_that_started",),
    ),
    Fault(
        "a process does not end what Taichi started",
        "runtime.py",
        "if _owner == (os.getpid(), threading.get_ident()):",
        "if _owner == (os.getpid(), 0):",
        ("tests/cli/test_cli.py::test_a_process_that_ends_leaves_its_kernels_on_disk",),
    ),
    Fault(
        "another precision is taken for the one that runs",
        "runtime.py",
        "if want is not None and want != getattr(_running, name):",
        "if want is not None and want is getattr(_running, name, None):",
        (VALUES + "test_bad_values",),
    ),
    Fault(
        "functions of one text are one place",
        "runtime.py",
        "return context.func.func, (type(node), *at)",
        "return type(node), (type(node), *at)",
        (TRACING + "test_functions_of_one_text_are_two_places",),
    ),
    Fault(
        "a line of a function is one place",
        "runtime.py",
        "at = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset",
        "at = node.lineno, node.end_lineno",
        (TRACING + "test_every_place_is_worded_as_by_taichi",),
    ),
    Fault(
        "what was read is not remembered",
        "runtime.py",
        "results[key] = work(*arguments)",
        "return work(*arguments)",
        (TRACING + "test_a_source_is_read_once",),
    ),
]
