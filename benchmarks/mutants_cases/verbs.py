"""Faults in the command line: what it takes, what it says, how it ends."""

from mutants_cases.fault import Fault

KEEPING = "tests/cli/test_keeping.py::"

FAULTS = [
    Fault(
        "wrong usage ends as a failure does",
        "cli/__init__.py",
        "say.usage(error)\n        sys.exit(2)",
        "say.usage(error)\n        sys.exit(1)",
        (KEEPING + "test_a_verb_told_two_places_to_look_from_is_wrong_usage",),
    ),
    Fault(
        "an orbit and an image set may both be given",
        "cli/paths.py",
        "+ (self.path is not None) != 1:",
        "+ (self.path is not None) < 1:",
        (KEEPING + "test_a_verb_told_two_places_to_look_from_is_wrong_usage",),
    ),
    Fault(
        "an interrupted clip takes the place of the whole one",
        "io/videos/write_video.py",
        "interrupted(path) if cut() else Path(path)",
        "Path(path)",
        ("tests/io/test_write_video.py::test_what_is_cut_short_goes_beside_and_plays",),
    ),
    Fault(
        "names of files steer the terminal",
        "cli/say.py",
        "return escaped(text)",
        "return text",
        (KEEPING + "test_names_of_files_steer_no_terminal",),
    ),
    Fault(
        "false is true in the shell",
        "cli/options.py",
        '"false": "False"',
        '"false": "True"',
        ("tests/fitting/test_settings.py::test_the_shell_says_what_python_says",),
    ),
    Fault(
        "a box's six numbers are pairs of an axis",
        "cli/option_kinds.py",
        "return [numbers[:3], numbers[3:]]",
        "return [numbers[::2], numbers[1::2]]",
        (KEEPING + "test_a_box_of_the_shell_is_its_lower_corner_then_its_upper",),
    ),
    Fault(
        "infinity is printed as JSON",
        "cli/options.py",
        "and not math.isfinite(value):",
        "and math.isnan(value):",
        (KEEPING + "test_what_is_printed_as_json_is_json",),
    ),
    Fault(
        "a wrong gradient ends as a right one does",
        "cli/check_gradients.py",
        "return 0 if report.good else 1",
        "return 0 if report.good else 0",
        ("tests/gradients/test_check.py::test_the_command_ends_with_1_where_a_gradient_is_wrong",),
    ),
    Fault(
        "a fit that went elsewhere ends as one that did not",
        "cli/fit.py",
        "return 1 if kept.why or result",
        "return 1 if result",
        (KEEPING + "test_a_fit_says_where_it_is",),
    ),
    Fault(
        "Ctrl-C ends with the status of success",
        "cli/__init__.py",
        'except (click.exceptions.Abort, KeyboardInterrupt):\n        say.note("interrupted")\n        sys.exit(1)',
        'except (click.exceptions.Abort, KeyboardInterrupt):\n        say.note("interrupted")\n        sys.exit(0)',
        (KEEPING + "test_a_signal_ends_a_verb_in_one_line_and_tidies_up",),
    ),
    Fault(
        "not a number is a number of frames a second",
        "cli/option_kinds.py",
        "if self.low <= (number := float(value)) <= self.high:",
        "if not ((number := float(value)) < self.low or number > self.high):",
        ("tests/cli/test_cli.py::test_misuse_exits_2",),
    ),
    Fault(
        "the shell's march has steps as of Python",
        "cli/modes.py",
        'given = {"step": self.step, "supersample"',
        'given = {"step": None, "supersample"',
        ("tests/cli/test_cli.py::test_options_of_a_march_are_those_of_python",),
    ),
    Fault(
        "slices go through the middle, wherever they are asked for",
        "cli/slices.py",
        "at=at, colormap",
        "at=None, colormap",
        ("tests/cli/test_cli.py::test_slices_are_a_picture_of_the_volume_s_values",),
    ),
    Fault(
        "a body's front is below",
        "data/world_axes.py",
        'DOWN, LEFTWARDS = "PI", "RA"',
        'DOWN, LEFTWARDS = "AI", "RA"',
        ("tests/plot/test_plot.py::test_a_body_is_shown_as_radiologists_look_at_it",),
    ),
    Fault(
        "rays a pixel are asked for of the first of several volumes alone",
        "cli/together.py",
        "supersample=shown.supersample",
        "supersample=None",
        ("tests/cli/test_cli.py::test_steps_and_rays_a_pixel_are_those_asked_for_in_all_volumes_together",),
    ),
    Fault(
        "an interrupt that a library lost is lost",
        "io/files/atomic.py",
        '"lost", lambda: False)()',
        '"none", lambda: False)()',
        (KEEPING + "test_a_signal_that_a_library_loses_keeps_what_is_written_from_its_name",),
    ),
]
