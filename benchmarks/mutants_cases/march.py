"""Faults in the march: compositing, adjoint, tangent, remaining radiance, geometry, depth."""

from mutants_cases.fault import Fault
from mutants_cases.field import CLOSED, DOT_TEST, GRADIENT, REFERENCE

MODES = "tests/kernels/test_modes.py::"
OURS = "tests/kernels/test_own_modes.py::test_ours_pass_the_check_of_modes"
EACH_MODE = MODES + "test_image_and_gradient_are_the_reference"
DOT_FLAT = DOT_TEST + "[rotated-0-softplus-sigmoid-0-{}]"
DEPTH = "tests/kernels/test_depth_gradients.py::"
IMAGE_FLAT = REFERENCE + "test_image_is_the_reference[rotated-0-softplus-sigmoid]"
TRANSPOSES = "tests/kernels/test_transposes.py::"
MARCH, GEOMETRY = "kernels/march/march.py", "kernels/march/geometry.py"
ADJOINT, TANGENT = "kernels/march/sample_adjoint.py", "kernels/march/march_tangent.py"

KEPT_COLOURS = "tests/kernels/test_kept_colours.py::"

FAULTS = [
    Fault(
        "a kept colour is any sample's",
        "kernels/march/kept_colour.py",
        "found = colour[3] == k",
        "found = True",
        (KEPT_COLOURS + "test_what_was_kept_of_another_sample_is_looked_up",),
    ),
    Fault(
        "kept colours are not found again",
        "kernels/march/sample_adjoint.py",
        "kept += 1",
        "kept += 0",
        (KEPT_COLOURS + "test_what_was_kept_is_not_looked_up_again",),
    ),
    Fault(
        "weights under zero count as too small to be looked at",
        "kernels/march/compositing.py",
        "on = ti.abs(weight) >= min_weight",
        "on = weight >= min_weight",
        (EACH_MODE + "[emission-absorption-variant7-False-1]",),
    ),
    Fault(
        "the background is seen by modes that do not see it",
        "kernels/march/compositing.py",
        "if ti.static(not variant.mode.background):",
        "if ti.static(variant.mode.background):",
        (CLOSED + "test_one_voxel_one_ray", CLOSED + "test_slab_is_exact_at_any_step[0.25]"),
    ),
    Fault(
        "emission is not dimmed by what is before it",
        "kernels/march/emission_absorption.py",
        "return T * (1.0 - e), T * e",
        "return 1.0 - e, T * e",
        (CLOSED + "test_one_voxel_one_ray",),
    ),
    Fault(
        "T grows with the optical depth in the tangent",
        "kernels/march/emission_absorption.py",
        "dot_T * e - T * e * dot_tau",
        "dot_T * e + T * e * dot_tau",
        (OURS + "[emission-absorption]",),
    ),
    Fault(
        "the radiance to come is dimmed in the adjoint",
        "kernels/march/emission_absorption.py",
        "return T_after * d_weight - remaining",
        "return T_after * (d_weight - remaining)",
        (OURS + "[emission-absorption]",),
    ),
    Fault(
        "at the clamp the tangent is that from above",
        "kernels/march/additive.py",
        "dot_weight = ti.select(tau <= T, dot_tau, dot_T)",
        "dot_weight = ti.select(tau < T, dot_tau, dot_T)",
        ("tests/kernels/test_kinks.py::test_where_opacity_just_fills_up_it_is_the_slope_from_below",),
    ),
    Fault(
        "what an opaque sample hides is not missed in the adjoint",
        "kernels/march/additive.py",
        "ti.select(tau <= T, d_weight - remaining, 0.0)",
        "ti.select(tau <= T, d_weight, 0.0)",
        (OURS + "[additive]",),
    ),
    Fault(
        "the adjoint of the line integral has a sign wrong",
        "kernels/march/x_ray.py",
        "return d_weight - remaining",
        "return d_weight + remaining",
        (OURS + "[x-ray]",),
    ),
    Fault(
        "the line integral ends with the light",
        "kernels/march/x_ray.py",
        "background=False, ends=False,",
        "background=False,",
        (MODES + "test_the_line_integral_of_two_volumes_is_the_sum_of_theirs",),
    ),
    Fault(
        "a ray that ends within a pair keeps the second sample's light",
        MARCH,
        "T, sum_odd = T_between, before",
        "T = T_between",
        (REFERENCE + "test_image_is_the_reference_with_early_stop_and_weight_floor[0]",),
    ),
    Fault(
        "the shorter last step is taken as a whole one of a pair",
        MARCH,
        "T_between, before, last = T, sum_odd, ti.min(end, n)",
        "T_between, before, last = T, sum_odd, ti.min(end, n + 1)",
        (IMAGE_FLAT,),
    ),
    Fault(
        "the background shines through what is opaque",
        MARCH,
        "rays.image[r][c] = light[c] + T * seen[c]",
        "rays.image[r][c] = light[c] + seen[c]",
        (CLOSED + "test_opaque_colour_hides_the_background",),
    ),
    Fault(
        "both samples of a pair have the first one's density",
        MARCH,
        "tau2, raw2 = classified(rays, variant, raw2, shift",
        "tau2, raw2 = classified(rays, variant, raw, shift",
        (IMAGE_FLAT,),
    ),
    Fault(
        "the second sample of a pair counts after the ray's end",
        ADJOINT,
        "d_raw[3] = on * slope *",
        "d_raw[3] = slope *",
        (REFERENCE + "test_gradient_is_the_reference_with_early_stop_and_weight_floor[0]",),
    ),
    Fault(
        "the colour's slope is missing above degree 0",
        ADJOINT,
        "d_sum = weight * d_colour * activation.colour_slope(variant, colour)",
        "d_sum = weight * d_colour",
        (GRADIENT,),
    ),
    Fault(
        "a block is not marked where its neighbour is",
        ADJOINT,
        "+ grid.block_written[block2] < 2:",
        "+ grid.block_written[block2] < 1:",
        (TRANSPOSES + "test_both_samples_of_a_pair_mark_their_blocks_whichever_was_marked_before",),
    ),
    Fault(
        "the last rays are left out of the adjoint",
        MARCH,
        "for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):",
        "for run in range(count // (RAYS_PER_CHUNK * grid.slots)):",
        (REFERENCE + "test_gradient_is_the_reference[rotated-0-softplus-sigmoid]",),
    ),
    Fault(
        "the tangent by density lacks the step's width",
        TANGENT,
        "by_x *= width",
        "by_x *= 1.0",
        (DOT_FLAT,),
    ),
    Fault(
        "the tangent of T does not reach the background",
        TANGENT,
        "dot_image[r, e] = image + dot_T[e] * ti.Vector([seen[0], seen[1], seen[2], 1.0])",
        "dot_image[r, e] = image + dot_T[e] * ti.Vector([0.0, 0.0, 0.0, 1.0])",
        (DOT_FLAT,),
    ),
    Fault(
        "the radiance to come grows sample by sample",
        "kernels/march/remaining.py",
        "remaining -= weight * d_weight",
        "remaining += weight * d_weight",
        (GRADIENT,),
    ),
    Fault(
        "T behind the box counts for the background alone",
        "kernels/march/remaining.py",
        "return d_image[3] + (d_image[0]",
        "return (d_image[0]",
        (EACH_MODE + "[x-ray-variant5-False-0]",),
    ),
    Fault(
        "looking ahead, what a sample gave is not taken off",
        "kernels/march/remaining.py",
        "remaining -= dot_weight * d_weight",
        "remaining -= 0.0 * d_weight",
        ("tests/kernels/test_own_modes.py::test_looking_ahead_gives_the_gradients_that_are_read_off_the_image",),
    ),
    Fault(
        "depth is that of a step's begin",
        "kernels/march/depth.py",
        "total += weight * distance_of(grid, rays.origin[r], rays.direction[r], t / scale",
        "total += weight * distance_of(grid, rays.origin[r], rays.direction[r], begin / scale",
        (REFERENCE + "test_depth_is_the_reference[softplus]",),
    ),
    Fault(
        "depth is told where nothing is met",
        "kernels/march/depth.py",
        "rays.depth[r] = ti.select(1.0 - T >= MET,",
        "rays.depth[r] = ti.select(T >= MET,",
        (REFERENCE + "test_depth_is_the_reference[softplus]",),
    ),
    Fault(
        "the gradient of depth forgets what it is the mean of",
        "kernels/march/depth.py",
        "d_weight = slope * (distance - depth)",
        "d_weight = slope * distance",
        (DEPTH + "test_depth_and_its_gradient_by_density_are_the_references",),
    ),
    Fault(
        "depth moves with the weights alone",
        "kernels/march/depth_geometry.py",
        "d_t = d_p.dot(d) + slope * weight / scale",
        "d_t = d_p.dot(d) + 0 * weight / scale",
        (DEPTH + "test_the_slope_by_rays_is_that_of_differences",),
    ),
    Fault(
        "the last step's width grows with its near end",
        GEOMETRY,
        "d_near += 0.5 * d_t - d_width",
        "d_near += 0.5 * d_t + d_width",
        (DOT_FLAT,),
    ),
    Fault(
        "the last step's middle moves as far as its far end",
        GEOMETRY,
        "d_far += 0.5 * d_t + d_width",
        "d_far += d_t + d_width",
        (DOT_FLAT,),
    ),
    Fault(
        "the last step's width does not move with those before",
        GEOMETRY,
        "dot_width = dot_far[c] - dot_near[c] - begins * dot_step",
        "dot_width = dot_far[c] - dot_near[c]",
        (DOT_FLAT,),
    ),
    Fault(
        "the slope by the heading is not transposed",
        GEOMETRY,
        "d_view_direction += weight * (by_heading.transpose() @ d_colour)",
        "d_view_direction += weight * (by_heading @ d_colour)",
        (DOT_TEST + "[rotated-1-softplus-sigmoid-0-{'mode': 'additive'}]",),
    ),
    Fault(
        "a moved origin moves the far face the other way",
        GEOMETRY,
        "d_own[a] -= d_far / d[a]",
        "d_own[a] += d_far / d[a]",
        (DOT_FLAT,),
    ),
    Fault(
        "rays are turned into the volume but not shifted",
        "kernels/rays/placed.py",
        "* from_place[2] + m[a, 3]",
        "* from_place[2]",
        (IMAGE_FLAT,),
    ),
    Fault(
        "harmonics of one colour are taken to lie side by side",
        "kernels/march/sample.py",
        "total[c] += Y[k] * features[3 * k + c]",
        "total[c] += Y[k] * features[(grid.degree + 1) ** 2 * c + k]",
        (REFERENCE + "test_image_is_the_reference[upright-1-softplus-sigmoid]",),
    ),
]
