"""Faults in fitting: where the object is, schedule, settings, weights, budget, and where a volume is kept."""

from mutants_cases.fault import Fault

ADAM = "tests/kernels/test_optimiser.py::"
SETTINGS = "tests/fitting/test_settings.py::"
RESOLUTION = "tests/fitting/test_resolution.py::"
PLAN = "tests/fitting/test_plan.py::"
TAPE = "tests/autodiff/test_tape.py::"
KEEPING = "tests/cli/test_keeping.py::"

FAULTS = [
    Fault(
        "all of the box counts as surface, however little is in it",
        "fitting/resolution.py",
        "4 * silhouette_of(",
        "1e9 * silhouette_of(",
        (RESOLUTION + "test_what_shows_a_quarter_of_the_surface_has_voxels_half_as_wide_of_as_many_rays",),
    ),
    Fault(
        "the finest voxels want no more rays than others",
        "fitting/resolution.py",
        "found / np.sqrt(RAYS_FINE)",
        "found",
        (RESOLUTION + "test_finer_than_what_most_pictures_show_wants_twice_the_rays",),
    ),
    Fault(
        "voxels under 1.2 pixels in the largest grids too",
        "fitting/resolution.py",
        "fine, DENSE))",
        "fine))",
        (RESOLUTION + "test_finer_than_what_most_pictures_show_wants_twice_the_rays",),
    ),
    Fault(
        "a silhouette is of pixels as wide as they are far",
        "fitting/footprint.py",
        "np.square(_pixels(views, box))",
        "np.array(_pixels(views, box))",
        (RESOLUTION + "test_what_shows_a_quarter_of_the_surface_has_voxels_half_as_wide_of_as_many_rays",),
    ),
    Fault(
        "the box ends at the last cell's lower face",
        "fitting/bounds.py",
        "np.minimum(index.max(0) + 2, SEARCH_CELLS)",
        "np.minimum(index.max(0), SEARCH_CELLS)",
        ("tests/fitting/test_bounds.py::test_box_of_a_ball_holds_it_and_is_little_larger",),
    ),
    Fault(
        "a report is of whatever picture is in the buffer",
        "fitting/fitter.py",
        "_error_of_rays(self)  # before",
        "pass  # before",
        ("tests/fitting/test_fitter.py::test_a_report_after_a_picture_is_of_the_rays_that_were_drawn",),
    ),
    Fault(
        "a checkpoint forgets that the rates were changed",
        "fitting/checkpoint.py",
        '"rates_multiplied": fitter.rates.changes,',
        '"rates_multiplied": [],',
        ("tests/fitting/test_checkpoint.py::test_learning_rates_that_were_changed_go_on_too",),
    ),
    Fault(
        "pixels of several rays cost what one does in a forecast",
        "fitting/schedule.py",
        "several = max(start, ",
        "several = max(1.0, ",
        ("tests/fitting/test_forecast.py::test_the_parts_of_a_schedule_are_what_its_steps_are[0.0-4.0]",),
    ),
    Fault(
        "a forecast takes no step of several rays a pixel",
        "fitting/cost.py",
        "supersample_seen=0.0",
        "supersample_seen=9.0",
        ("tests/fitting/test_forecast.py::test_all_kinds_of_steps_are_measured",),
    ),
    Fault(
        "a forecast takes no step of one ray a pixel where several are asked from the first step on",
        "fitting/cost.py",
        "begin = max(plan.settings.supersample_from, ONE_RAY)",
        "begin = plan.settings.supersample_from",
        ("tests/fitting/test_forecast.py::test_all_kinds_of_steps_are_measured",),
    ),
    Fault(
        "a forecast takes steps of one ray a pixel for those of several",
        "fitting/cost.py",
        "np.mean(some or alike or every or",
        "np.mean(some or every or",
        (
            "tests/fitting/test_forecast.py"
            "::test_a_kind_of_steps_that_was_not_measured_takes_what_as_many_rays_a_pixel_take",
        ),
    ),
    Fault(
        "a table's Newton steps see what masks take out",
        "fitting/table_newton.py",
        "if mask is None else np.flatnonzero(mask)",
        "if mask is None else np.arange(mask.size)",
        ("tests/fitting/test_fit_table.py::test_paint_behind_a_mask_changes_no_table",),
    ),
    Fault(
        "a fisheye's focal length scales tangents",
        "diagnosis/intrinsics.py",
        "return all(camera.lens.kind == ANGLES for camera in cameras)",
        "return all(camera.lens.kind == None for camera in cameras)",
        ("tests/diagnosis/test_diagnose.py::test_the_focal_length_of_fisheyes_comes_out",),
    ),
    Fault(
        "clipped pixels tell an exposure of a volume that is refined",
        "registration/normal_equations.py",
        "moments(x, y, (taken > DARK) & (taken < BRIGHT))",
        "moments(x, y)",
        ("tests/registration/test_registration.py::test_what_is_clipped_tells_no_exposure",),
    ),
    Fault(
        "a learned background starts from what masks take out",
        "fitting/photometry.py",
        "colours.reshape(-1, 3) if mask is None else colours[mask[::4, ::4]]",
        "colours.reshape(-1, 3)",
        ("tests/fitting/test_photometry.py::test_the_start_of_a_learned_background_is_the_images_mean",),
    ),
    Fault(
        "any match agrees with cameras in one place",
        "diagnosis/epipolar.py",
        "apart = length > ONE_PLACE * np.abs(poses[:, :3, 3]).max()",
        "apart = length > -1.0",
        ("tests/diagnosis/test_diagnose.py::test_a_thing_alike_from_all_around_is_no_other_convention",),
    ),
    Fault(
        "a forecast counts the looks of a level from its own parts' beginnings",
        "fitting/cost.py",
        "self.schedule.looks_by(age + steps) - self.schedule.looks_by(age)",
        "self.schedule.looks_by(steps)",
        ("tests/fitting/test_forecast.py::test_a_level_has_as_many_looks_with_several_rays_a_pixel_in_it_as_without",),
    ),
    Fault(
        "what goes by before a fit's first step is forecast to be its steps' time",
        "fitting/cost.py",
        "max(seconds - self.ready, 0.0)",
        "max(seconds, 0.0)",
        ("tests/fitting/test_forecast.py::test_a_fit_s_time_may_be_over_before_its_first_step",),
    ),
    Fault(
        "rates fall along a line",
        "fitting/optimiser.py",
        "decay = self.final**progress",
        "decay = 1 - (1 - self.final) * progress",
        (ADAM + "test_rates_decay_from_first_to_final",),
    ),
    Fault(
        "relu's rates are in units of the start itself",
        "fitting/optimiser.py",
        "lr_density *= 2 * grid.activation.shift",
        "lr_density *= grid.activation.shift",
        (ADAM + "test_rates_of_relu_are_in_units_of_twice_its_start",),
    ),
    Fault(
        "variation is not weighted by the share of blocks",
        "fitting/tape.py",
        "regulariser.weight / (fraction * (kernels.EDGE - 1)",
        "regulariser.weight / ((kernels.EDGE - 1)",
        (TAPE + "test_a_share_of_the_blocks_is_the_full_sum_on_average[0.4]",),
    ),
    Fault(
        "sparsity is not weighted by the share of blocks",
        "fitting/tape.py",
        "return regulariser.weight / (fraction * voxels)",
        "return regulariser.weight / voxels",
        (TAPE + "test_a_share_of_the_blocks_is_the_full_sum_on_average[0.4]",),
    ),
    Fault(
        "blocks are never shifted along z",
        "fitting/tape.py",
        "% kernels.EDGE for a in range(3)]",
        "% kernels.EDGE * (a < 2) for a in range(3)]",
        (TAPE + "test_a_share_of_the_blocks_is_the_full_sum_on_average[1.0]",),
    ),
    Fault(
        "seconds lift the limit of steps that were asked for",
        "fitting/presets.py",
        'if changes.get("seconds") is not None and changes.get("steps") is None:',
        'if changes.get("seconds") is not None:',
        (SETTINGS + "test_seconds_alone_lift_the_limit_of_steps",),
    ),
    Fault(
        "levels may end before the finest",
        "fitting/settings.py",
        "or pairs[-1][1] != 1:",
        "or pairs[-1][1] > 1:",
        (SETTINGS + "test_bad_settings_are_refused",),
    ),
    Fault(
        "compiling takes of the time that a fit has",
        "fitting/schedule.py",
        "by_seconds = (seconds - ready) / budget",
        "by_seconds = seconds / budget",
        (PLAN + "test_progress_is_by_steps_or_seconds_whichever_is_further",),
    ),
    Fault(
        "what is empty is looked at as often at any age",
        "fitting/schedule.py",
        "count.bit_length() - 3",
        "count.bit_length() - 64",
        (PLAN + "test_what_is_empty_is_looked_at_after_an_eighth_to_a_quarter_more_steps",),
    ),
    Fault(
        "what is empty is looked at by the steps of the whole fit",
        "fitting/fitter.py",
        "self.schedule.looks(self._moments_age)",
        "self.schedule.looks(self.steps_done)",
        (PLAN + "test_what_is_empty_is_looked_at_by_the_steps_since_a_level_began",),
    ),
    Fault(
        "a level begins a step late",
        "fitting/schedule.py",
        "if progress >= start)",
        "if progress > start or not i)",
        (PLAN + "test_levels_begin_where_they_are_said_to",),
    ),
    Fault(
        "the images' place on the device is forgotten",
        "fitting/budget.py",
        '{"images": pixels * (channels + 4), ',
        '{"images": pixels * channels, ',
        ("tests/fitting/test_forecast.py::test_a_budget_that_images_alone_exceed_is_said",),
    ),
    Fault(
        "a fit that was cut short goes beside another such",
        "fitting/keep.py",
        'if cut_short(volume.provenance.get("ended")) and _is_finished(wanted):',
        'if cut_short(volume.provenance.get("ended")) or _is_finished(wanted):',
        (KEEPING + "test_what_was_cut_short_never_replaces_what_was_not",),
    ),
]
