"""Faults in checkpoints: what of a fit they hold, what is compared, and what becomes of the file."""

from mutants_cases.fault import Fault

LAWS = "tests/fitting/test_checkpoint.py::"
CUT = (LAWS + "test_a_fit_that_was_cut_ends_as_one_that_was_not",)

FAULTS = [
    Fault(
        "a note is written that no reader takes",
        "fitting/checkpoint.py",
        "if len(text) > LONGEST_NOTE:",
        "if len(text) < 0:",
        ("tests/fitting/test_checkpoint.py::test_a_note_that_no_reader_takes_is_not_written",),
    ),
    Fault(
        "second moments are put back as first ones",
        "kernels/field/snapshot.py",
        "grid.v_density[I] = values[i, j, k, width + 4]",
        "grid.v_density[I] = values[i, j, k, width]",
        CUT,
    ),
    Fault(
        "the age of the moments is that of the fit",
        "fitting/fitter.py",
        "return Position(self.steps_done, self._moments_age,",
        "return Position(self.steps_done, self.steps_done,",
        CUT,
    ),
    Fault(
        "cells are marked anew by the density as it stands",
        "fitting/fitter.py",
        "self._refresh(None)",
        "self._refresh(self.plan.least_sigma(self.steps_done))",
        (LAWS + "test_saving_changes_nothing_and_every_number_comes_back",),
    ),
    Fault(
        "gradients that Adam passes over are forgotten",
        "fitting/checkpoint.py",
        '(("touched", bits[:, :values]), ("left", bits[:, values:]))',
        '(("touched", bits[:, :values]), ("left", bits[:, :0]))',
        (LAWS + "test_saving_changes_nothing_and_every_number_comes_back",),
    ),
    Fault(
        "exposures go on from neutral ones",
        "fitting/photometry.py",
        "self._images.set_exposures(self.exposures)\n        if self._sums is not None:",
        "self._images.set_exposures(0 * self.exposures + NEUTRAL_EXPOSURE)\n        if self._sums is not None:",
        CUT,
    ),
    Fault(
        "the seconds used begin anew",
        "fitting/clock.py",
        "time.perf_counter() - seconds, ready",
        "time.perf_counter(), ready",
        (LAWS + "test_seconds_that_were_used_count_on",),
    ),
    Fault(
        "a fit that goes on counts its compiling once more",
        "fitting/clock.py",
        "self.ready + self.seconds - self._compiles_from",
        "self.ready or self.seconds",
        ("tests/fitting/test_clock.py::test_compiling_again_is_no_time_of_a_fit_that_goes_on",),
    ),
    Fault(
        "moments are as old as they were though their memory was taken anew",
        "fitting/seen.py",
        "return grid.moments_begun > begun",
        "return grid.moments_begun > begun + 1",
        (
            "tests/kernels/test_brick_pool.py::"
            "test_moments_begin_anew_where_a_grid_was_refused_the_memory_that_was_found_for_it",
        ),
    ),
    Fault(
        "a camera may differ by a hundredth",
        "data/views_digest.py",
        "CLOSE = 1e-10",
        "CLOSE = 1e-2",
        (LAWS + "test_other_views_are_refused_by_name",),
    ),
    Fault(
        "the digest is not looked at",
        "io/checkpoints/streamed.py",
        "!= digest_of(parts, notes):",
        "== b'':",
        (LAWS + "test_no_flipped_bit_goes_unseen",),
    ),
    Fault(
        "a checkpoint is lost unasked",
        "fitting/checkpoints.py",
        "elif is_checkpoint(self.path) and not self.overwrite:",
        "elif is_checkpoint(self.path) and self.overwrite:",
        (LAWS + "test_there_must_be_one_to_resume_and_none_to_begin_anew",),
    ),
    Fault(
        "a checkpoint goes though the volume is not done",
        "cli/fit.py",
        "if not (kept.why or cut_short(result.ended)) and",
        "if not kept.why and",
        ("tests/cli/test_resume.py::test_an_interrupted_fit_says_how_to_go_on",),
    ),
]
