"""Faults in rules of arguments, measures and solvers, which know NumPy only."""

from mutants_cases.fault import Fault

SOLVERS = "tests/solvers/test_least_squares.py::"
METRICS = "tests/evaluation/test_metrics.py::"
MASKED = "tests/evaluation/test_masked.py::"

FAULTS = [
    Fault(
        "halves are scored where they were fitted",
        "psnr_halves",
        "counts[:, :half], counts[:, half:]",
        "counts[:, half:], counts[:, half:]",
        (MASKED + "test_a_half_of_few_pixels_tells_nothing",),
    ),
    Fault(
        "what a mask takes out has weight in its windows",
        "ssim.mean",
        "return blur(a * weight) / share",
        "return blur(a)",
        (MASKED + "test_masked_ssim_is_its_definition",),
    ),
    Fault(
        "the end of an open interval belongs to it",
        "in_interval",
        "((x > low) if above else (x >= low))",
        "((x >= low) if above else (x >= low))",
        ("tests/fitting/test_settings.py::test_bad_settings_are_refused",),
    ),
    Fault(
        "halves pass as whole numbers",
        "whole.read",
        "if not (x.is_integer() and low <= int(value) <= high):",
        "if not (low <= int(value) <= high):",
        ("tests/fitting/test_settings.py::test_settings_of_another_type_are_refused",),
    ),
    Fault(
        "bytes count to 256",
        "_display",
        "return given / 255.0",
        "return given / 256.0",
        (METRICS + "test_bytes_are_display_values",),
    ),
    Fault(
        "decibels of an amplitude",
        "decibels",
        "-10 * math.log10(error)",
        "-20 * math.log10(error)",
        (METRICS + "test_psnr_of_an_even_difference",),
    ),
    Fault(
        "images are compared beyond what can be shown",
        "_pair",
        "return np.clip(image, 0, 1), truth",
        "return image, truth",
        (METRICS + "test_the_image_is_clipped_to_what_can_be_shown",),
    ),
    Fault(
        "SSIM's constants are not squared",
        "ssim",
        "c1, c2 = 0.01**2, 0.03**2",
        "c1, c2 = 0.01, 0.03",
        (METRICS + "test_metric_is_its_definition[ssim]",),
    ),
    Fault(
        "SSIM's window is too narrow",
        "ssim",
        "(2 * 1.5**2)",
        "(1.5**2)",
        (METRICS + "test_metric_is_its_definition[ssim]",),
    ),
    Fault(
        "conjugate directions grow where they should shrink",
        "conjugate_gradients",
        "p = r + (square / before) * p",
        "p = r + (before / square) * p",
        (SOLVERS + "test_conjugate_gradients_need_no_more_steps_than_unknowns",),
    ),
    Fault(
        "a start's residual has the wrong sign",
        "least_squares",
        "else b - A.tangent(x)",
        "else b + A.tangent(x)",
        (SOLVERS + "test_cgls_never_goes_up_and_continues_from_a_start",),
    ),
    Fault(
        "damping is added to a singular value, not to its square",
        "DenseModel.step",
        "np.divide(s, s * s + damping,",
        "np.divide(s, s + damping,",
        (SOLVERS + "test_a_linear_problem_is_solved[gauss_newton-dense]",),
    ),
    Fault(
        "the damping's rows are subtracted in the adjoint",
        "MatrixFreeModel._solved",
        "J.adjoint(w[:rows]) + weight * w[rows:]",
        "J.adjoint(w[:rows]) - weight * w[rows:]",
        (SOLVERS + "test_a_damped_step_that_is_matrix_free_is_that_of_the_normal_equations",),
    ),
    Fault(
        "a model promises more than it has",
        "_step",
        "-float(model.r @ change) - 0.5 * float(change @ change)",
        "-float(model.r @ change) + 0.5 * float(change @ change)",
        (SOLVERS + "test_a_linear_problem_is_solved", SOLVERS + "test_what_is_solved_to_rounding_is_said_to_be"),
    ),
    Fault(
        "damping is relaxed after a step that went up",
        "_search",
        "damping, growth = damping * growth, growth * 2",
        "damping, growth = damping / growth, growth * 2",
        (SOLVERS + "test_a_wall_is_not_stepped_over",),
    ),
]
