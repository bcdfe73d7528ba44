"""Faults in the pre-integrated march through a table: knots that a ray meets, its points, and what is leapt over."""

from mutants_cases.fault import Fault

LAWS = "tests/kernels/test_preintegrated.py::"
TWIN = LAWS + "test_the_picture_is_that_of_gauss_legendre_points_between_the_knots"
CONTRACT = "tests/kernels/test_mode_contract.py::"
GRADIENT = CONTRACT + "test_every_gradient_passes_the_dot_test_and_the_difference[pre-integrated]"

FAULTS = [
    Fault(
        "what is occupied is leapt over where a cell lies in two cells of occupancy",
        "leave_empty",
        "    if on and empty:",
        "    if on:",
        (LAWS + "test_what_no_ray_passes_through_costs_and_changes_nothing[24]",),
    ),
    Fault(
        "the inner points have the outer ones' share",
        "OUTER_GAUSS",
        "(0.33000947820757187, 0.3260725774312732)",
        "(0.33000947820757187, 0.1739274225687268)",
        (TWIN,),
    ),
    Fault(
        "a value that falls is looked for at the knot above",
        "next_knot",
        "rises, ti.max(i, then))",
        "rises, i + 1)",
        (TWIN,),
    ),
    Fault(
        "knots behind a cell's second extremum are not looked for",
        "PIECES",
        "PIECES = 3 ",
        "PIECES = 2 ",
        (LAWS + "test_a_knot_that_a_cell_meets_three_times_is_met_three_times",),
    ),
    Fault(
        "below the first knot the table goes on as above it",
        "interval_at",
        "    if above < 0:\n        i = -1\n",
        "    if above < 0:\n        i = 0\n",
        (TWIN, GRADIENT),
    ),
    Fault(
        "in the adjoint knots stay where they are",
        "interval_end_adjoint",
        "d_v -= q * weights(end.f)",
        "d_v -= 0.0 * weights(end.f)",
        (GRADIENT,),
    ),
    Fault(
        "in the tangent the width of an interval stays as it is",
        "move_of",
        "dot_width = by.first_width * total.first[e] + by.last_width * total.last[e]",
        "dot_width = 0.0 * total.first[e] + 0.0 * total.last[e]",
        (GRADIENT,),
    ),
    Fault(
        "a moved knot moves with its sign turned by the geometry",
        "interval_end_adjoint",
        "total.own -= q * S",
        "total.own += q * S",
        (GRADIENT,),
    ),
    Fault(
        "an interval is clear where one of its ends is",
        "is_clear",
        "table.rgba[ti.max(i, 0)][3] + table.rgba[i + 1][3] == 0",
        "table.rgba[ti.max(i, 0)][3] * table.rgba[i + 1][3] == 0",
        (TWIN,),
    ),
    Fault(
        "ambient light comes from four of the eight ways",
        "side_of",
        "return ti.Vector([2.0 * (k & 1) - 1.0, 1.0 * (k & 2) - 1.0, 0.5 * (k & 4) - 1.0])",
        "return ti.Vector([2.0 * (k & 1) - 1.0, 1.0 * (k & 2) - 1.0, 1.0 * (k & 2) - 1.0])",
        ("tests/kernels/test_transfer.py::test_samples_are_lit_by_the_slope_of_their_value",),
    ),
]
