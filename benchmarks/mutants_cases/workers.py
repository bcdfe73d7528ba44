"""Faults of independent work: executors, the device's thread, frames, sweeps, projections by angle."""

from __future__ import annotations

from mutants_cases.fault import Fault

EXECUTORS = "tests/tasks/test_executors.py::"
SWEEP = "tests/tasks/test_sweep.py::"
ANGLES = "tests/tasks/test_projections.py::"

FAULTS = [
    Fault(
        "a lost worker's item is not made again",
        "Crew.results_while",
        "under_way = deque((task, future or self._submit(task)) for task, future in again)",
        "under_way = deque((task, future) for task, future in again if future)",
        (EXECUTORS + "test_a_lost_worker_costs_its_item_alone",),
    ),
    Fault(
        "workers that are lost again and again are replaced for ever",
        "Processes.replace",
        "if losses >= MAX_LOSSES:",
        "if losses >= 10 * MAX_LOSSES:",
        (EXECUTORS + "test_workers_that_are_lost_again_and_again_are_told",),
    ),
    Fault(
        "a process that does not end when it is told to goes on",
        "Processes.close",
        "if process.is_alive():",
        "if not process.is_alive():",
        (EXECUTORS + "test_a_process_that_does_not_end_is_ended",),
    ),
    Fault(
        "a worker of another version goes on",
        "_value_of",
        "!= task.version",
        '== ""',
        (EXECUTORS + "test_a_worker_of_another_version_is_told",),
    ),
    Fault(
        "each thread that asks touches the device",
        "DeviceThread.call",
        "self._thread is None and current is threading.main_thread()",
        "self._thread is None or current is threading.main_thread()",
        ("tests/tasks/test_device_thread.py::test_tasks_of_many_threads_run_in_one",),
    ),
    Fault(
        "a volume's file that was changed is rendered",
        "VolumeFile.require",
        "if stamp_of(self.path) != self.stamp:",
        "if stamp_of(self.path) is None:",
        ("tests/tasks/test_render_many.py::test_a_file_that_a_worker_does_not_see_is_told",),
    ),
    Fault(
        "a record of other settings counts as finished",
        "_finished",
        "record[0] == task.terms",
        "record[0] is not None",
        (SWEEP + "test_a_fit_is_replaced_by_one_on_other_terms_only_where_it_is_asked_for",),
    ),
    Fault(
        "a fit on other terms is replaced unasked",
        "_require_same_terms",
        "record is None or record[0] == task.terms",
        "record is None or record[0] is not None",
        (SWEEP + "test_a_fit_is_replaced_by_one_on_other_terms_only_where_it_is_asked_for",),
    ),
    Fault(
        "a sweep's folder with other things is taken",
        "_require_folder",
        "any(folder.iterdir())",
        "not any(folder.iterdir())",
        (SWEEP + "test_a_folder_of_other_things_is_left_alone",),
    ),
    Fault(
        "images by angle lie in the order of the groups",
        "Workers.project",
        "out[np.concatenate(places)] = np.concatenate(results)",
        "out[:] = np.concatenate(results)",
        (ANGLES + "test_projections_are_those_of_one_process",),
    ),
    Fault(
        "groups are added one after the other",
        "add_in_pairs",
        "zip(arrays[::2], arrays[1::2], strict=True)",
        "zip(arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :], strict=True)",
        (ANGLES + "test_a_reconstruction_has_the_same_bits_whoever_computes",),
    ),
]
