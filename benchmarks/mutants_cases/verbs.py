"""Faults in the command line: what it takes, what it says, how it ends."""

from mutants_cases.fault import Fault

KEEPING = "tests/cli/test_keeping.py::"

FAULTS = [
    Fault(
        "wrong usage ends as a failure does",
        "main",
        "output.guess_of(error))\n        sys.exit(2)",
        "output.guess_of(error))\n        sys.exit(1)",
        (KEEPING + "test_a_verb_told_two_places_to_look_from_is_wrong_usage",),
    ),
    Fault(
        "an orbit and an image set may both be given",
        "Viewpoints.require",
        "+ (self.path is not None) + self.is_single != 1:",
        "+ (self.path is not None) + self.is_single < 1:",
        (KEEPING + "test_a_verb_told_two_places_to_look_from_is_wrong_usage",),
    ),
    Fault(
        "an interrupted clip takes the place of the whole one",
        "write_clip",
        "cut_short_name(path) if cut() else Path(path)",
        "Path(path)",
        ("tests/io/test_write_video.py::test_what_is_cut_short_goes_beside_and_plays",),
    ),
    Fault(
        "names of files steer the terminal",
        "printable",
        "return escape(text)",
        "return text",
        (KEEPING + "test_names_of_files_steer_no_terminal",),
    ),
    Fault(
        "false is true in the shell",
        "WORDS",
        '"false": "False"',
        '"false": "True"',
        ("tests/fitting/test_settings.py::test_the_shell_says_what_python_says",),
    ),
    Fault(
        "a box's six numbers are pairs of an axis",
        "Box.convert",
        "lower, upper = numbers[:3], numbers[3:]",
        "lower, upper = numbers[::2], numbers[1::2]",
        (KEEPING + "test_a_box_of_the_shell_is_its_lower_corner_then_its_upper",),
    ),
    Fault(
        "infinity is printed as JSON",
        "plain",
        "and not math.isfinite(value):",
        "and math.isnan(value):",
        (KEEPING + "test_what_is_printed_as_json_is_json",),
    ),
    Fault(
        "a wrong gradient ends as a right one does",
        "check_gradients",
        "return 0 if report.good else 1",
        "return 0 if report.good else 0",
        ("tests/gradients/test_check.py::test_the_command_ends_with_1_where_a_gradient_is_wrong",),
    ),
    Fault(
        "a fit that went elsewhere ends as one that did not",
        "fit",
        "return 1 if kept.why or result",
        "return 1 if result",
        (KEEPING + "test_a_fit_says_where_it_is",),
    ),
    Fault(
        "Ctrl-C ends with the status of success",
        "main",
        (
            "except (click.exceptions.Abort, KeyboardInterrupt):\n"
            '        output.print_note("interrupted")\n'
            "        sys.exit(1)"
        ),
        (
            "except (click.exceptions.Abort, KeyboardInterrupt):\n"
            '        output.print_note("interrupted")\n'
            "        sys.exit(0)"
        ),
        (KEEPING + "test_a_signal_ends_a_verb_in_one_line_and_tidies_up",),
    ),
    Fault(
        "not a number is a number of frames a second",
        "Real.convert",
        "            if self.low <= number <= self.high:\n                return number\n        ends",
        "            if not (number < self.low or number > self.high):\n                return number\n        ends",
        ("tests/cli/test_cli.py::test_misuse_exits_2",),
    ),
    Fault(
        "the shell's march has steps as of Python",
        "ModeOptions.look",
        'given = {"step": self.step, "supersample"',
        'given = {"step": None, "supersample"',
        ("tests/cli/test_cli.py::test_options_of_a_march_are_those_of_python",),
    ),
    Fault(
        "slices go through the middle, wherever they are asked for",
        "slices.drawn",
        "at=at, colormap",
        "at=None, colormap",
        ("tests/cli/test_cli.py::test_slices_are_a_picture_of_the_volume_s_values",),
    ),
    Fault(
        "a body's front is below",
        "DOWN_SIDES",
        'DOWN_SIDES, LEFT_SIDES = "PI", "RA"',
        'DOWN_SIDES, LEFT_SIDES = "AI", "RA"',
        ("tests/plot/test_plot.py::test_a_body_is_shown_as_radiologists_look_at_it",),
    ),
    Fault(
        "rays a pixel are asked for of the first of several volumes alone",
        "add_others",
        "supersample=shown.supersample",
        "supersample=None",
        ("tests/cli/test_cli.py::test_steps_and_rays_a_pixel_are_those_asked_for_in_all_volumes_together",),
    ),
    Fault(
        "an interrupt that a library lost is lost",
        "require_no_interrupt",
        '"lost", lambda: False)()',
        '"none", lambda: False)()',
        (KEEPING + "test_a_signal_that_a_library_loses_keeps_what_is_written_from_its_name",),
    ),
    Fault(
        "a fit begins after a refinement that was interrupted",
        "_refine",
        "if found.interrupted:",
        "if False:",
        ("tests/registration/test_refined_fit.py::test_no_fit_begins_after_a_refinement_that_was_interrupted",),
    ),
    Fault(
        "an offset is that beside a gain without bounds",
        "exposures_of",
        "offset = (y - gain * x) / n",
        "offset = (xx * y - x * xy) / determinant",
        ("tests/fitting/test_photometry.py::test_an_offset_is_the_least_beside_a_gain_that_is_bounded",),
    ),
    Fault(
        "a demonstration replaces a file of others in place of its own",
        "require_only",
        "ours.get(path, -1) not in (None, size)",
        "path not in ours",
        ("tests/cli/test_demo.py::test_the_verb_makes_a_folder_of_pictures_that_the_next_one_replaces",),
    ),
    Fault(
        "a volume that was fitted through a table is seen through another",
        "march_for",
        "transfer=table_of(volume) or default_table(volume)",
        "transfer=default_table(volume)",
        ("tests/rendering/test_renderer.py::test_a_volume_fitted_through_a_table_is_seen_through_it",),
    ),
    Fault(
        "a scan is framed on its box, not on what is seen of it",
        "farthest_seen_points",
        "seen = opacity > MIN_SEEN_OPACITY * table.opacities.max()",
        "seen = opacity >= 0",
        (
            "tests/rendering/test_default_look.py::test_a_small_thing_in_a_large_box_fills_the_frame_and_specks_do_not_count",
        ),
    ),
    Fault(
        "a body in LPS is seen from behind",
        "FRONT_DIRECTIONS",
        '"LPS": (0.0, -1.0, 0.0)',
        '"LPS": (0.0, 1.0, 0.0)',
        ("tests/rendering/test_default_look.py::test_a_body_is_seen_from_the_front",),
    ),
    Fault(
        "padding counts as values of a scan",
        "_kind_of",
        "kept = _drop_fill(values)",
        "kept = values",
        ("tests/rendering/test_default_look.py::test_the_kind_of_values_is_told_from_them",),
    ),
    Fault(
        "tables by name are without light",
        "ModeOptions._of_mode",
        "if self.shading is None and named and lit",
        "if self.shading is None and not named and lit",
        (
            "tests/cli/test_cures_of_pictures.py::"
            "test_the_default_look_is_said_as_an_option_that_gives_the_same_picture",
        ),
    ),
    Fault(
        "rendering a sparse volume is forecast as that of a dense one",
        "forecast_rendering",
        "None if volume.bricks is None else volume.bricks.count",
        "None",
        ("tests/io/test_sparse_volumes.py::test_rendering_a_sparse_volume_takes_what_its_bricks_do",),
    ),
    Fault(
        "a Tape takes two renders of a scene",
        "Scene.render",
        "if tape is not None and self._tape is not None and self._tape() is tape:",
        "if False:",
        ("tests/tape/test_tape_scene.py::test_a_tape_has_one_render_of_a_scene_and_tapes_one_after_another_their_own",),
    ),
    Fault(
        "parameters lose their shape by a move",
        "_add",
        "return x + np.reshape(move, np.shape(x))",
        "return x + move",
        ("tests/solvers/test_least_squares.py::test_parameters_keep_their_shape",),
    ),
]
