"""Faults in the kernels of a fit: losses, regularisers, Adam, sums over slots, visual hull."""

from mutants_cases.fault import Fault
from mutants_cases.field import GRADIENT

LOSSES = "tests/kernels/test_losses.py::"
ADAM = "tests/kernels/test_optimiser.py::"
TOUCHED = "tests/kernels/test_touched.py::"
TAPE = "tests/autodiff/test_tape.py::"
PHOTOMETRY = "tests/fitting/test_photometry.py::"
HULL = "tests/fitting/test_bounds.py::"

FAULTS = [
    Fault(
        "the background shows where pixels are opaque",
        "kernels/fit/losses.py",
        "+ background * (1.0 - t[3])",
        "+ background * t[3]",
        (LOSSES + "test_value_is_the_formula[squared-background2-0.0]",),
    ),
    Fault(
        "Huber's line has half its slope",
        "kernels/fit/losses.py",
        "x * x, 2.0 * ti.abs(x) - 1.0)",
        "x * x, ti.abs(x) - 1.0)",
        (LOSSES + "test_value_is_the_formula[huber-background2-0.0]",),
    ),
    Fault(
        "Charbonnier's slope is that of half of it",
        "kernels/fit/losses.py",
        "return 2.0 * x / ti.sqrt(1.0 + x * x)",
        "return x / ti.sqrt(1.0 + x * x)",
        (LOSSES + "test_derivative_is_the_formula[charbonnier-0.0]",),
    ),
    Fault(
        "clipped pixels tell the exposure",
        "kernels/fit/photometry.py",
        "alpha > OPAQUE and DARK < y < BRIGHT",
        "alpha > OPAQUE and DARK < y",
        (PHOTOMETRY + "test_sums_on_the_device_are_those_of_numpy",),
    ),
    Fault(
        "the background is told without the transmittance",
        "kernels/fit/photometry.py",
        "ti.cast(w * T * d, ti.f64)",
        "ti.cast(w * d, ti.f64)",
        (PHOTOMETRY + "test_sums_on_the_device_are_those_of_numpy",),
    ),
    Fault(
        "transmittance is held to alpha",
        "kernels/fit/losses.py",
        "total += opacity * (seen[3] - (1.0 - rays.target[p][3]))",
        "total += opacity * (seen[3] - rays.target[p][3])",
        (LOSSES + "test_value_is_the_formula[squared-background2-0.7]",),
    ),
    Fault(
        "the opacity's slope lacks its factor",
        "kernels/fit/losses.py",
        "each * opacity * (2.0 * (seen[3]",
        "each * opacity * (1.0 * (seen[3]",
        (LOSSES + "test_derivative_is_the_formula[squared-0.7]",),
    ),
    Fault(
        "the loss's slope is not in units of its scale",
        "kernels/fit/losses.py",
        "each / 3.0 * scale * slope(",
        "each / 3.0 * slope(",
        (LOSSES + "test_derivative_is_the_formula[huber-0.0]",),
    ),
    Fault(
        "a masked ray has a gradient",
        "kernels/fit/losses.py",
        """        if counts(rays, p):
            each =""",
        """        if p >= 0:
            each =""",
        (LOSSES + "test_a_ray_without_a_target_counts_nowhere",),
    ),
    Fault(
        "each ray of a pixel has the whole derivative",
        "kernels/fit/losses.py",
        "each = ti.cast(rays.loss.grad[None] / counted, float) / parts",
        "each = ti.cast(rays.loss.grad[None] / counted, float)",
        (LOSSES + "test_a_pixel_of_several_rays_is_their_mean",),
    ),
    Fault(
        "a pixel is the sum of its rays",
        "kernels/rays/supersampling.py",
        "return total / parts",
        "return total",
        (LOSSES + "test_a_pixel_of_several_rays_is_their_mean",),
    ),
    Fault(
        "the error is the sum of three colours",
        "kernels/fit/losses.py",
        "return total / (3.0 * ti.max(counted, 1))",
        "return total / ti.max(counted, 1)",
        (LOSSES + "test_colour_error_is_the_clipped_mean_square",),
    ),
    Fault(
        "the second moment is corrected for one step less",
        "kernels/fit/adam.py",
        "c2 = 1.0 / (1.0 - beta2 ** ti.cast(age + 1, float))",
        "c2 = 1.0 / (1.0 - beta2 ** ti.cast(ti.max(age, 1), float))",
        (ADAM + "test_several_steps_are_those_of_kingma_and_ba",),
    ),
    Fault(
        "eps stands within the root",
        "kernels/fit/adam.py",
        "grid.density[I] -= lr_density * m * c1 / (ti.sqrt(v * c2) + eps)",
        "grid.density[I] -= lr_density * m * c1 / ti.sqrt(v * c2 + eps)",
        (ADAM + "test_several_steps_are_those_of_kingma_and_ba",),
    ),
    Fault(
        "the features' second moment has the first one's rate",
        "kernels/fit/adam.py",
        "(1.0 - beta2) * mean_square(grid, h)",
        "(1.0 - beta1) * mean_square(grid, h)",
        (ADAM + "test_several_steps_are_those_of_kingma_and_ba",),
    ),
    Fault(
        "harmonics share the sum of their squares, not its mean",
        "kernels/fit/adam.py",
        "return total * ti.static(3.0 / grid.features.n)",
        "return total",
        (ADAM + "test_harmonics_share_their_colours_second_moment_and_have_no_momentum",),
    ),
    Fault(
        "a harmonic goes by the size of another colour",
        "kernels/fit/adam.py",
        "x[n] -= lr_harmonics * h[n] / size[n % 3]",
        "x[n] -= lr_harmonics * h[n] / size[0]",
        (ADAM + "test_harmonics_share_their_colours_second_moment_and_have_no_momentum",),
    ),
    Fault(
        "the step that was not finite is miscounted",
        "kernels/fit/adam.py",
        "grid.nonfinite_step[None] = step + 2",
        "grid.nonfinite_step[None] = step + 1",
        (ADAM + "test_a_gradient_that_is_not_finite_freezes_all",),
    ),
    Fault(
        "a block is dirty by its own samples alone",
        "kernels/fit/reduce.py",
        "lower = ti.max(B - ti.Vector([i, j, k]), 0)",
        "lower = ti.max(B, 0)",
        (
            GRADIENT,
            "tests/kernels/test_march_reference.py::test_gradient_is_the_reference[rotated-0-softplus-sigmoid]",
            "tests/kernels/test_optimiser.py::test_what_one_sample_gives_is_summed_in_every_block_that_it_reaches",
            "tests/kernels/test_brick_pool.py::"
            "test_a_cell_whose_lower_corner_is_in_a_missing_brick_gives_its_upper_ones_their_gradient[1]",
        ),
    ),
    Fault(
        "slots are not left clean",
        "kernels/fit/reduce.py",
        "part[at] = 0",
        "part[at] *= 1",
        ("tests/kernels/test_invariances.py::test_gradients_accumulate_and_repeat",),
    ),
    Fault(
        "what a slot holds of features counts where the first slot has some",
        "kernels/fit/reduce.py",
        "if (of_slot[s] >> n) & 1:",
        "if (of_slot[0] >> n) & 1:",
        (TOUCHED + "test_what_slots_hold_of_features_is_added_up_and_nothing_left",),
    ),
    Fault(
        "cells stay noted once they are added up",
        "kernels/fit/reduce.py",
        "grid.feature_cells[s, W[0], W[1], W[2]] = 0",
        "grid.feature_cells[s, W[0], W[1], W[2]] += 0",
        (TOUCHED + "test_what_slots_hold_of_features_is_added_up_and_nothing_left",),
    ),
    Fault(
        "a cell at the end of a word reaches the wrong sample of the next along z",
        "kernels/field/touched.py",
        "m = (m >> 3) & FIRST_Z",
        "m = (m >> 2) & FIRST_Z",
        (TOUCHED + "test_each_cell_reaches_its_eight_corners_in_any_word",),
    ),
    Fault(
        "a cell at the end of a word reaches the wrong row of the next along y",
        "kernels/field/touched.py",
        "m = (m >> 12) & FIRST_Y",
        "m = (m >> 8) & FIRST_Y",
        (TOUCHED + "test_each_cell_reaches_its_eight_corners_in_any_word",),
    ),
    Fault(
        "a cell does not reach the samples after it along x",
        "kernels/field/touched.py",
        "else m | (m << 16)",
        "else m",
        (TOUCHED + "test_each_cell_reaches_its_eight_corners_in_any_word",),
    ),
    Fault(
        "a word of the upper half of a block is that of its lower half",
        "kernels/field/touched.py",
        "P[0] & 1)",
        "0)",
        (TOUCHED + "test_each_cell_reaches_its_eight_corners_in_any_word",),
    ),
    Fault(
        "a cell is the only one that its word notes",
        "kernels/field/touched.py",
        "= word | (1 << bit_of(grid, I))",
        "= 1 << bit_of(grid, I)",
        (TOUCHED + "test_what_slots_hold_of_features_is_added_up_and_nothing_left",),
    ),
    Fault(
        "features that a step took are looked at by the next",
        "kernels/fit/adam.py",
        "grid.feature_samples[W] = 0",
        "grid.feature_samples[W] += 0",
        (TOUCHED + "test_a_step_moves_what_was_added_to_and_is_the_last_to_look",),
    ),
    Fault(
        "a cube moves by the features of its lower half alone",
        "kernels/fit/coarse.py",
        "for half in range(2):",
        "for half in range(1):",
        (TOUCHED + "test_a_cube_moves_by_all_that_was_added_in_it",),
    ),
    Fault(
        "a step passes over what a regulariser gave features",
        "kernels/fit/regularise.py",
        "grid.feature_samples[word_of(grid, at(grid, I))] = ALL",
        "grid.feature_samples[word_of(grid, at(grid, I))] += 0",
        (TOUCHED + "test_a_step_takes_what_a_regulariser_gave_features_that_no_ray_met",),
    ),
    Fault(
        "sparsity's penalty lacks its factor",
        "kernels/fit/regularise.py",
        "ti.log(1.0 + 2.0 * x * x)",
        "ti.log(1.0 + x * x)",
        (TAPE + "test_a_flat_volume_has_no_variation",),
    ),
    Fault(
        "the variation's adjoint has a sign wrong",
        "kernels/fit/regularise.py",
        "d -= owed * way * slope(-way * e)",
        "d += owed * way * slope(-way * e)",
        (TAPE + "test_gradient_of_the_tape_is_the_derivative_of_its_loss[softplus-sigmoid-regularisers]",),
    ),
    Fault(
        "edges between blocks count",
        "kernels/fit/regularise.py",
        "found = 0 <= at and at < EDGE and",
        "found = 0 <= at and at <= EDGE and",
        (TAPE + "test_all_blocks_are_all_edges_within_them",),
    ),
    Fault(
        "cells that nobody looks at count as hull",
        "kernels/fit/hull.py",
        "seen[i, j, k] = -1 if carved or not partly else count",
        "seen[i, j, k] = -1 if carved else count",
        (HULL + "test_a_cell_that_no_view_sees_is_no_hull",),
    ),
    Fault(
        "cells are looked at by their lower corner",
        "kernels/fit/hull.py",
        "(ti.Vector([i, j, k]) + 0.5) * cell",
        "ti.Vector([i, j, k]) * cell",
        (HULL + "test_the_hull_of_a_ball_is_as_symmetrical_as_its_cameras",),
    ),
    Fault(
        "the faintest alpha that counts as empty shows something",
        "kernels/fit/hull.py",
        "[3] > ALPHA",
        "[3] >= ALPHA",
        (HULL + "test_the_faintest_alpha_counts_as_empty",),
    ),
]
