"""Faults in gradients, rendering and registration: what directs the kernels from NumPy."""

from mutants_cases.fault import Fault
from mutants_cases.march import DOT_FLAT

CHECK = "tests/gradients/test_check.py::"
REGISTER = "tests/registration/test_registration.py::"
RENDER = "tests/kernels/test_invariances.py::"
SUPERSAMPLING = "tests/rendering/test_supersampling.py::"
PROJECTION, LINEARISED = "gradients/projection.py", "gradients/linearised.py"

FAULTS = [
    Fault(
        "a turned camera turns its rays the other way",
        PROJECTION,
        "dot_local = dot_local + np.cross(dot.pose[3:], local)",
        "dot_local = dot_local + np.cross(local, dot.pose[3:])",
        (DOT_FLAT,),
    ),
    Fault(
        "the gradient by a turn has its factors swapped",
        PROJECTION,
        "(np.cross(local, d_local) +",
        "(np.cross(d_local, local) +",
        (DOT_FLAT,),
    ),
    Fault(
        "a moved box moves rays along with it",
        PROJECTION,
        "return -self.index_from_world @ np.vstack",
        "return self.index_from_world @ np.vstack",
        (DOT_FLAT,),
    ),
    Fault(
        "what is along a direction is not taken out of its tangent",
        "geometry/lens.py",
        "return inverse, -inverse @ by_number",
        "return inverse + 0.1 * directions[:, :, None], -inverse @ by_number",
        ("tests/geometry/test_lens.py::test_the_tangent_of_a_ray_is_the_difference",),
    ),
    Fault(
        "tangents come without exposure",
        LINEARISED,
        "out[:, :3, column] *= v.exposure[:3]",
        "out[:, :3, column] *= 1.0",
        (DOT_FLAT,),
    ),
    Fault(
        "the offset's gradient is multiplied by the gain",
        LINEARISED,
        "(seen[:, :3] * d_image[:, :3]).sum(0), d_image[:, :3].sum(0)]",
        "(seen[:, :3] * d_image[:, :3]).sum(0), d[:, :3].sum(0)]",
        (DOT_FLAT,),
    ),
    Fault(
        "gradients are divided by the gain",
        LINEARISED,
        "d[:, :3] *= v.exposure[:3]",
        "d[:, :3] /= v.exposure[:3]",
        (DOT_FLAT,),
    ),
    Fault(
        "the step moves by all of its direction",
        "gradients/viewpoint.py",
        "self.step + h * float(by.step)",
        "self.step + float(by.step)",
        (DOT_FLAT,),
    ),
    Fault(
        "harmonics are not checked one by one where the focal turns rays",
        "gradients/checks.py",
        'TURNING = ("pose", "focal", "principal_point", "lens")',
        'TURNING = ("pose", "principal_point", "lens")',
        (CHECK + "test_a_mistyped_constant_of_one_harmonic_is_found_in_a_mixture_of_all",),
    ),
    Fault(
        "a difference of a thousandth is good enough",
        "gradients/checks.py",
        "DIFFERENCE = 1e-7",
        "DIFFERENCE = 1e-3",
        (CHECK + "test_a_mistyped_constant_of_one_harmonic_is_found_in_a_mixture_of_all",),
    ),
    Fault(
        "directions after the first that a pass carries are left out",
        "gradients/tangent_passes.py",
        "there = there[done.shape[1] :]",
        "there = there[most:]",
        ("tests/gradients/test_tangent_passes.py::test_every_direction_that_moves_something_is_carried_once",),
    ),
    Fault(
        "the part that is checked lies where the whole began",
        "gradients/part.py",
        "place[:3, 3] += place[:3, :3] @ lower",
        "place[:3, 3] += 0 * lower",
        ("tests/gradients/test_check.py::test_the_part_that_is_checked_lies_where_it_was_in_the_whole",),
    ),
    Fault(
        "steps are as long in the world as in voxels",
        "rendering/march.py",
        "dt = self.step * grid.voxel if dt is None else dt",
        "dt = self.step if dt is None else dt",
        (RENDER + "test_a_renderers_step_is_in_voxels",),
    ),
    Fault(
        "pixels come in the order of their marching",
        "rendering/renderer.py",
        "image[pixels] = buffer.image(count)\n",
        "image[run[1] : run[1] + count] = buffer.image(count)\n",
        (RENDER + "test_camera_and_its_rays_render_alike",),
    ),
    Fault(
        "depth is that of a pixel's first ray",
        "rendering/renderer.py",
        "_march_rays(grid, buffer, run, background, replace(s, supersample=1))",
        "_march_rays(grid, buffer, run, background, s)",
        (SUPERSAMPLING + "test_a_pixel_is_the_mean_of_a_finer_picture",),
    ),
    Fault(
        "what a fit had for rays a pixel is forgotten",
        "rendering/march.py",
        "supersample_of(volume) if march.supersample is None else None",
        "None",
        (SUPERSAMPLING + "test_a_fitted_volume_is_rendered_as_it_was_fitted",),
    ),
    Fault(
        "opacity is transmittance",
        "rendering/renderer.py",
        "1 - image[:, 3].reshape(size)",
        "image[:, 3].reshape(size)",
        (RENDER + "test_camera_and_its_rays_render_alike",),
    ),
    Fault(
        "what is skipped may hide something bright",
        "rendering/visibility.py",
        "INVISIBLE / (longest * brightest(volume, most))",
        "INVISIBLE / longest",
        (RENDER + "test_what_is_skipped_hides_no_more_where_colours_are_brighter",),
    ),
    Fault(
        "haze is skipped that a line integral sees",
        "rendering/visibility.py",
        "density_rule.signed and mode.ends:",
        "density_rule.signed:",
        (RENDER + "test_the_line_integral_of_the_thinnest_haze_is_not_skipped",),
    ),
    Fault(
        "a mode of one's own may be wrong by all of its slope",
        "rendering/mode_check.py",
        "GOOD = 1e-2",
        "GOOD = 1e0",
        ("tests/kernels/test_own_modes.py::test_a_wrong_part_is_named_in_one_line",),
    ),
    Fault(
        "alpha is compared with transmittance",
        "registration/register.py",
        "(1 - alpha) * require_colour(background), 1 - alpha]",
        "(1 - alpha) * require_colour(background), alpha]",
        (REGISTER + "test_what_an_image_with_alpha_is_held_to",),
    ),
    Fault(
        "a step of a search may be as long as it likes",
        "registration/register.py",
        "min(1.0, LONGEST / max(float(np.linalg.norm(move)), LONGEST))",
        "max(1.0, LONGEST / max(float(np.linalg.norm(move)), LONGEST))",
        (REGISTER + "test_a_step_out_of_sight_is_none_and_none_is_endless",),
    ),
    Fault(
        "a camera is out of sight only if it is far away too",
        "registration/register.py",
        "away > FARTHEST * self.reach or out_of_sight(",
        "away > FARTHEST * self.reach and out_of_sight(",
        (REGISTER + "test_a_step_out_of_sight_is_none_and_none_is_endless",),
    ),
    Fault(
        "a blur brightens and darkens",
        "registration/register.py",
        "return weights / weights.sum(1, keepdims=True)",
        "return weights / weights.sum(0, keepdims=True)",
        (REGISTER + "test_a_blur_leaves_what_is_even_as_it_is",),
    ),
    Fault(
        "bright images are refused by the measures that they are shown to",
        "evaluation/held_out.py",
        "np.clip(image, 0, 1)  # an x-ray",
        "image  # an x-ray",
        ("tests/evaluation/test_metrics.py::test_a_volume_brighter_than_any_display_is_evaluated",),
    ),
    Fault(
        "what an interrupted adjoint left is in the next",
        "device/grid.py",
        "self.reduce_slots()\n        transfer.clear",
        "self.slots\n        transfer.clear",
        ("tests/gradients/test_projector.py::test_what_an_interrupted_adjoint_left_is_in_no_other",),
    ),
    Fault(
        "parts of an image are back-projected by its first",
        "gradients/projector.py",
        "d_image[:, 0] = flat[np.ix_(run, pixels)].ravel()",
        "d_image[:, 0] = flat[run, : len(pixels)].ravel()",
        ("tests/gradients/test_projector.py::test_back_projection_is_the_transpose",),
    ),
    Fault(
        "some views are the first ones",
        "gradients/projector.py",
        "rays_of_camera(self.buffer, self.cameras[views[one]], i * few)",
        "rays_of_camera(self.buffer, self.cameras[one], i * few)",
        ("tests/gradients/test_projector.py::test_some_views_are_those_of_all",),
    ),
]
