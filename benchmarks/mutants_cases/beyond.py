"""Faults of what goes beyond one machine's memory, device and engine: volumes in parts, devices, engines."""

from __future__ import annotations

from mutants_cases.fault import Fault

PARTS = "tests/rendering/test_out_of_core.py::"
BY_WORKERS = "tests/rendering/test_parts_by_workers.py::"
FILES = "tests/io/test_parts_of_files.py::"
DEVICES = "tests/device/test_devices.py::"
ENGINES = "tests/device/test_engines.py::"
WHOLE = PARTS + "test_image_depth_and_normals_are_those_of_the_whole"

FAULTS = [
    Fault(
        "a part ends one cell too soon",
        "cells_of_part",
        "high[a] = ti.min(begin + scene.part.side[None][a], ti.cast(top[a], ti.i32))",
        "high[a] = ti.min(begin + scene.part.side[None][a] - 1, ti.cast(top[a], ti.i32))",
        (WHOLE,),
    ),
    Fault(
        "rays wait for the part before the one that their next sample lies in",
        "part_of",
        "along = (cell[a] + scene.part.offset[None][a]) // scene.part.side[None][a]",
        "along = ti.max(cell[a] + scene.part.offset[None][a] - 1, 0) // scene.part.side[None][a]",
        (WHOLE,),
    ),
    Fault(
        "rays that have seen enough go on in the next part",
        "go_by_steps",
        "k = n + 1",
        "k += 1",
        (PARTS + "test_what_is_hidden_or_beside_the_image_is_not_read",),
    ),
    Fault(
        "parts of which nothing is seen are put on the device",
        "PartMarch.load",
        "if self._is_clear(*ends): return False",
        "if self._is_clear(*ends): pass",
        (PARTS + "test_no_part_goes_to_the_device_in_which_the_table_shows_nothing",),
    ),
    Fault(
        "a part is gone through while rays that come to it are still under way",
        "PartPlan.open_parts",
        "return np.flatnonzero((waiting > 0) & (before.ravel() == 1))",
        "return np.flatnonzero(waiting > 0)",
        (BY_WORKERS + "test_open_parts_are_those_before_which_no_ray_waits",),
    ),
    Fault(
        "rays go on behind a part of another process without their jitter",
        "waiting_in",
        "rays.jitter[r][a], part.spot[r][a] = numbers[i, 6 + a], numbers[i, 8 + a]",
        "rays.jitter[r][a], part.spot[r][a] = 0.0, numbers[i, 8 + a]",
        (BY_WORKERS + "test_image_depth_and_normals_have_the_bytes_of_one_process",),
    ),
    Fault(
        "a maximum takes the last of what it meets",
        "compare",
        "if at.width > 0 and (state.found == 0 or more):",
        "if at.width > 0:",
        (PARTS + "test_so_they_are_in_other_modes",),
    ),
    Fault(
        "sums in double precision lie beside numbers of 4 bytes",
        "RayBuffer._build",
        "sums.place(f.loss)",
        "tree.place(f.loss)",
        (DEVICES + "test_numbers_of_8_bytes_have_trees_of_their_own",),
    ),
    Fault(
        "a device that computes something else passes its test",
        "run_test",
        "if not error < TOLERANCE:",
        "if not error < 1e9:",
        (DEVICES + "test_a_device_that_is_right_passes_and_one_that_is_not_fails",),
    ),
    Fault(
        "f64 is let through to a device that has none",
        "require_precision",
        'if precision == "f64" and arch in SINGLE_ONLY:',
        'if precision == "f64" and arch == "cuda":',
        (DEVICES + "test_vulkan_is_refused_in_one_line_and_the_cpu_is_there_after_it",),
    ),
    Fault(
        "a record is still a dataclass to an engine",
        "record",
        "for each in (made, *bases):",
        "for each in bases:",
        (ENGINES + "test_a_record_is_no_dataclass_and_behaves_as_one",),
    ),
    Fault(
        "the engine that is asked for is not the one that is taken",
        "_choose",
        "for name in (wanted,) if wanted else ENGINES:",
        "for name in ENGINES:",
        (ENGINES + "test_the_engine_is_the_one_asked_for_or_the_first_installed",),
    ),
]
