"""Faults in checkpoints: what of a fit they hold, what is compared, and what becomes of the file."""

from mutants_cases.fault import Fault

LAWS = "tests/fitting/test_checkpoint.py::"
CUT = (LAWS + "test_a_fit_that_was_cut_ends_as_one_that_was_not",)

FAULTS = [
    Fault(
        "a note is written that no reader takes",
        "_note",
        "if len(text) > MAX_NOTE_LENGTH:",
        "if len(text) < 0:",
        ("tests/fitting/test_checkpoint.py::test_a_note_that_no_reader_takes_is_not_written",),
    ),
    Fault(
        "second moments are put back as first ones",
        "samples_in",
        "grid.v_density[I] = values[i, j, k, width + 1 + C]",
        "grid.v_density[I] = values[i, j, k, width]",
        CUT,
    ),
    Fault(
        "the age of the moments is that of the fit",
        "Fitter.position",
        "at = self.steps_done, self._moments_age,",
        "at = self.steps_done, self.steps_done,",
        CUT,
    ),
    Fault(
        "cells are marked anew by the density as it stands",
        "Fitter.go_on",
        "self._refresh(None)",
        "self._refresh(self.plan.least_sigma(self.steps_done))",
        (LAWS + "test_saving_changes_nothing_and_every_number_comes_back",),
    ),
    Fault(
        "gradients that Adam passes over are forgotten",
        "_samples",
        '(("touched", bits[:, :values]), ("left", bits[:, values:]))',
        '(("touched", bits[:, :values]), ("left", bits[:, :0]))',
        (LAWS + "test_saving_changes_nothing_and_every_number_comes_back",),
    ),
    Fault(
        "exposures go on from neutral ones",
        "Photometry.put",
        "self._images.set_exposures(self.exposures)\n        if self._sums is not None:",
        "self._images.set_exposures(0 * self.exposures + NEUTRAL_EXPOSURE)\n        if self._sums is not None:",
        CUT,
    ),
    Fault(
        "the seconds used begin anew",
        "Clock.go_on",
        "self._shown, self._stands, self._earlier = seconds, True, preparation",
        "self._shown, self._stands, self._earlier = 0.0, True, preparation",
        (LAWS + "test_seconds_that_were_used_count_on",),
    ),
    Fault(
        "time until a notebook's next cell is a fit's time",
        "Clock.seconds",
        "return self._shown if self._stands else _seconds() - self._counts_from",
        "return time.perf_counter() - self._started if self._stands else _seconds() - self._counts_from",
        ("tests/fitting/test_fitter.py::test_time_until_somebody_takes_the_first_step_is_no_part_of_the_fit",),
    ),
    Fault(
        "a process that was stopped spends its fit's time",
        "Clock.stepped",
        "self.set_back(self.seconds - idle)",
        "self.set_back(self.seconds)",
        ("tests/fitting/test_clock.py::test_a_process_that_was_stopped_in_a_step_has_not_spent_its_time",),
    ),
    Fault(
        "a stop after the last step cuts a fit",
        "fit",
        "cut = fitter.progress < 1 and (stop() if ranks is not None else asked() or bool(halted))",
        "cut = asked() or bool(halted)",
        (LAWS + "test_a_stop_after_the_last_step_cuts_nothing",),
    ),
    Fault(
        "a fit without a step leaves a checkpoint",
        "CheckpointSaver.save",
        "fitter.steps_done not in (0, self._step)",
        "fitter.steps_done != self._step",
        (LAWS + "test_a_fit_that_was_stopped_before_its_first_step_leaves_no_checkpoint",),
    ),
    Fault(
        "a fit that comes to its steps first is as long as its time allows",
        "Schedule.even",
        "(self.steps is None or progress > steps / self.steps)",
        "self.steps is None",
        (
            "tests/fitting/test_forecast.py"
            "::test_of_a_fit_with_both_limits_the_one_that_it_comes_to_tells_how_long_it_is",
        ),
    ),
    Fault(
        "a fit that goes on counts its compiling once more",
        "Clock.stepped",
        "self._stands, self._counts_from, self._compiled = False, _seconds() - self._shown, seconds_compiling()",
        "self._stands, self._counts_from, self._compiled = False, self._began[0] - self._shown, seconds_compiling()",
        ("tests/fitting/test_clock.py::test_compiling_again_is_no_time_of_a_fit_that_goes_on",),
    ),
    Fault(
        "moments are as old as they were though their memory was taken anew",
        "Pruning.next_level",
        "return self.grid.moments_begun > begun",
        "return self.grid.moments_begun > begun + 1",
        (
            "tests/kernels/test_brick_pool.py::"
            "test_moments_begin_anew_where_a_grid_was_refused_the_memory_that_was_found_for_it",
        ),
    ),
    Fault(
        "a camera may differ by a hundredth",
        "CAMERA_TOLERANCE",
        "CAMERA_TOLERANCE = 1e-10",
        "CAMERA_TOLERANCE = 1e-2",
        (LAWS + "test_other_views_are_refused_by_name",),
    ),
    Fault(
        "the digest is not looked at",
        "StreamedReader.require_digest",
        "!= digest_of(parts, notes):",
        "== b'':",
        (LAWS + "test_no_flipped_bit_goes_unseen",),
    ),
    Fault(
        "a checkpoint is lost unasked",
        "Checkpoints.require",
        "elif is_checkpoint(self.path) and not self.overwrite:",
        "elif is_checkpoint(self.path) and self.overwrite:",
        (LAWS + "test_there_must_be_one_to_resume_and_none_to_begin_anew",),
    ),
    Fault(
        "a checkpoint goes though the volume is not done",
        "fit",
        "if not (kept.why or cut_short(result.ended)) and",
        "if not kept.why and",
        ("tests/cli/test_resume.py::test_an_interrupted_fit_says_how_to_go_on",),
    ),
    Fault(
        "two processes have one lock",
        "_is_free",
        "fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        ("tests/io/test_lock.py::test_a_second_process_is_told_who_writes_and_what_it_can_do",),
    ),
    Fault(
        "a lock that is removed is held",
        "_free",
        "        if _is_same(descriptor, place):\n            place.unlink()",
        "        if not _is_same(descriptor, place):\n            place.unlink()",
        ("tests/io/test_lock.py::test_a_second_process_is_told_who_writes_and_what_it_can_do",),
    ),
    Fault(
        "time leads a fit of both limits from its second step on",
        "Schedule.progress",
        "by_seconds = (by_seconds - FIRST_TIMED_PROGRESS) / (1 - FIRST_TIMED_PROGRESS)",
        "by_seconds = by_seconds / 1",
        (
            "tests/fitting/test_plan.py"
            "::test_quick_is_through_in_its_time_and_the_same_in_each_run_where_it_comes_to_its_steps",
        ),
    ),
    Fault(
        "steps alone leave a limit of time",
        "change_settings",
        'changes["seconds"] = None',
        "pass",
        ("tests/fitting/test_cures_of_fits.py::test_steps_alone_lift_the_limit_of_time_as_is_said",),
    ),
    Fault(
        "an early end of a fit is not said",
        "Fitter.ending",
        "if is_early(ended) and not self._told_early:",
        "if is_early(ended) and self._told_early:",
        ("tests/fitting/test_fitter.py::test_a_fit_makes_a_step_however_short_its_time_and_says_that_they_are_few",),
    ),
    Fault(
        "what compiling takes is not counted",
        "_watch_compiling.traced",
        "_compile_seconds[0] += time.perf_counter() - began",
        "_compile_seconds[0] += 0.0",
        ("tests/kernels/test_tracing.py::test_seconds_of_compiling_are_counted_once_a_kernel",),
    ),
    Fault(
        "a volume of another set is not doubted",
        "doubt_of_set",
        "same or found > reached - MAX_PSNR_GAP",
        "same or found > reached - 100 * MAX_PSNR_GAP",
        ("tests/evaluation/test_other_set.py::test_a_volume_of_another_set_is_doubted_after_one_view",),
    ),
    Fault(
        "a fit stays paused though its pages have gone",
        "FitControl.look_for_pages",
        "elif now - self._seen > MAX_ABSENCE:",
        "elif now - self._seen > 1e9:",
        (
            "tests/viewer/test_fit_control.py::test_a_fit_that_a_page_paused_goes_on_once_all_have_been_gone_for_a_while",
        ),
    ),
]
