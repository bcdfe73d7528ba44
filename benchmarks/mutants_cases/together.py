"""Faults in multi-volume rendering: cuts between volumes, what they add up to, its adjoint and tangent."""

from mutants_cases.fault import Fault

LAWS = "tests/kernels/test_together.py::"
IMAGE = LAWS + "test_the_picture_is_that_of_the_formula"
TRANSPOSE = LAWS + "test_every_gradient_is_the_transpose_of_its_tangent"

FAULTS = [
    Fault(
        "colours of several volumes add up unweighted",
        "march_stretch",
        "mixed += taus[i] * colour_at(members[i].grid, members[i].variant, cell, f, Y, shade)",
        "mixed += tau * colour_at(members[i].grid, members[i].variant, cell, f, Y, shade)",
        (IMAGE,),
    ),
    Fault(
        "rays are not cut where a volume ends within another",
        "next_cut",
        "if far[i] > t:",
        "if far[i] > t and near[i] > t:",
        (IMAGE,),
    ),
    Fault(
        "the empty steps of the farthest volume are leapt",
        "look_ahead",
        "ahead = ti.min(ahead, until[i] - k)",
        "ahead = until[i] - k",
        (LAWS + "test_space_that_is_clear_in_all_is_leapt_over_and_changes_nothing",),
    ),
    Fault(
        "an extinction of zero is divided by",
        "phi",
        "if ti.abs(tau) < SMALL:\n        for n in ti.static(range(TERMS, 1, -1)):",
        "if tau < -SMALL:\n        for n in ti.static(range(TERMS, 1, -1)):",
        (LAWS + "test_signed_extinctions_that_cancel_are_a_limit_not_a_division",),
    ),
    Fault(
        "a volume that shows nothing cuts rays",
        "spans_of",
        "if members[i].own.shown[None] == 0:",
        "if members[i].own.shown[None] < 0:",
        (LAWS + "test_a_volume_and_an_empty_one_are_the_volume_alone",),
    ),
    Fault(
        "the adjoint forgets that optical depth changes the mean colour",
        "adjoint_of_stretch",
        "d_tau = by_mixed * colour.dot(d_colour) + by_tau * gain - remaining",
        "d_tau = by_mixed * colour.dot(d_colour) - remaining",
        (TRANSPOSE + "[0-density]",),
    ),
    Fault(
        "a table's colour gives no gradient by density",
        "scatter_sample",
        "d_x += d_colour[c] * shade_by_x[c]",
        "d_x += 0.0 * shade_by_x[c]",
        (TRANSPOSE + "[1-density]",),
    ),
    Fault(
        "the tangent forgets the light that is gone",
        "tangent_of_stretch",
        "dot_T = e * (dot_T - T * dot_tau)",
        "dot_T = e * dot_T",
        (LAWS + "test_the_tangent_is_what_differences_give",),
    ),
]
