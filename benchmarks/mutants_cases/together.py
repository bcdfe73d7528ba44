"""Faults in multi-volume rendering: cuts between volumes, what they add up to, its adjoint and tangent."""

from mutants_cases.fault import Fault

LAWS = "tests/kernels/test_together.py::"
IMAGE = LAWS + "test_the_picture_is_that_of_the_formula"
TRANSPOSE = LAWS + "test_every_gradient_is_the_transpose_of_its_tangent"

FAULTS = [
    Fault(
        "colours of several volumes add up unweighted",
        "together:value",
        "mixed += taus[i] * at_hand",
        "mixed += tau * at_hand",
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
        ("if ti.abs(tau) < MAX_SERIES_DEPTH:\n        for n in ti.static(range(SERIES_TERMS, 1, -1)):"),
        ("if tau < -MAX_SERIES_DEPTH:\n        for n in ti.static(range(SERIES_TERMS, 1, -1)):"),
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
        "together:pull",
        "d_tau = by_mixed * colour.dot(state.d_colour) + by_tau * gain - state.remaining",
        "d_tau = by_mixed * colour.dot(state.d_colour) - state.remaining",
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
        "together:push",
        "state.dot_T = e * (state.dot_T - state.T * dot_tau)",
        "state.dot_T = e * state.dot_T",
        (LAWS + "test_the_tangent_is_what_differences_give",),
    ),
]
