"""Faults in the kernels of rays: the box, leaps over empty space, jitter, pixels and tiles."""

from mutants_cases.fault import Fault
from mutants_cases.field import REFERENCE, SKIPPING
from mutants_cases.march import EACH_MODE, IMAGE_FLAT

TILES = "tests/rendering/test_renderer.py::"
NDC = "tests/kernels/test_ndc.py::"

FAULTS = [
    Fault(
        "a ray that runs backwards along an axis enters by its exit",
        "clip_faces",
        "if ti.min(t0, t1) > near:",
        "if t0 > near:",
        (IMAGE_FLAT,),
    ),
    Fault(
        "a ray beside the box and along it is no miss",
        "clip_faces",
        "elif o[a] < low[a] - slack[a] or o[a] > high[a]",
        "elif o[a] < low[a] - slack[a] and o[a] > high[a]",
        (REFERENCE + "test_image_is_the_reference[upright-1-softplus-sigmoid]",),
    ),
    Fault(
        "jittered steps are moved the other way",
        "step_at",
        "ti.min(k + 1.0 - phase, 1.0) * dt",
        "ti.min(k + 1.0 + phase, 1.0) * dt",
        (EACH_MODE + "[emission-absorption-variant1-True-0]",),
    ),
    Fault(
        "a leap backwards along an axis goes a cell too far",
        "steps_within",
        "(cell[a] - distance + 1 - q[a]) / speed",
        "(cell[a] - distance - q[a]) / speed",
        (SKIPPING + "test_skipping_empty_space_changes_nothing[0.5]",),
    ),
    Fault(
        "steps are longer by jitter and never shorter",
        "jitter_of_pixel",
        "1.0 + stretch * (2.0 * v - 1.0)",
        "1.0 + stretch * (2.0 * v)",
        ("tests/kernels/test_modes.py::test_steps_are_as_much_longer_as_shorter_and_phases_fill_their_share",),
    ),
    Fault(
        "images are upside down",
        "unproject_pinhole",
        "(lens[3] - v) / lens[1], -1.0",
        "(v - lens[3]) / lens[1], -1.0",
        (SKIPPING + "test_device_rays_are_the_cameras",),
    ),
    Fault(
        "all steps of a fit have the same jitter",
        "jitter_of_ray",
        "hash_u32(seed, step, r // parts)",
        "hash_u32(seed, 0, r // parts)",
        ("tests/kernels/test_jitter_of_fits.py::test_phases_are_uniform_and_of_the_step_the_seed_and_the_pixel_alone",),
    ),
    Fault(
        "rays go through the corners of a pixel's parts",
        "place_in_pixel",
        "return (part % side + 0.5) / side,",
        "return part % side / side,",
        (SKIPPING + "test_device_rays_are_the_cameras",),
    ),
    Fault(
        "rays go through the upper edge of their pixels",
        "rays_of_pixels",
        "pixel // width + v, special)",
        "pixel // width + v - 0.5, special)",
        (SKIPPING + "test_device_rays_are_the_cameras",),
    ),
    Fault(
        "the last row of tiles sticks out",
        "corner_of",
        "store.tile, height - store.tile)",
        "store.tile, height - 1)",
        (TILES + "test_rays_and_colours_are_those_of_the_cameras_and_images",),
    ),
    Fault(
        "tiles get their exposure twice",
        "draw_tiles",
        "(target[c] - store.exposure[view][3 + c]) / store.exposure[view][c]",
        "(target[c] - store.exposure[view][3 + c]) * store.exposure[view][c]",
        (TILES + "test_colours_come_without_their_exposure",),
    ),
    Fault(
        "every round draws tiles in the same order",
        "tile_at",
        "hash_u32(seed, epoch, 0)",
        "hash_u32(seed, 0, 0)",
        (TILES + "test_each_tile_comes_once_a_round[18]",),
    ),
    Fault(
        "of a tile that is drawn twice the first error counts",
        "follow_errors",
        "store.error[chosen[tile]] = store.chosen_error[tile]",
        "store.error[chosen[tiles - 1 - tile]] = store.chosen_error[tiles - 1 - tile]",
        ("tests/kernels/test_choice.py::test_of_a_tile_that_is_drawn_twice_in_a_step_the_last_error_counts",),
    ),
    Fault(
        "places that are looked at together are one off",
        "choose_tiles",
        "store.at_place[ti.cast(place - first, ti.i32)]",
        "store.at_place[ti.max(ti.cast(place - first, ti.i32) - 1, 0)]",
        ("tests/kernels/test_choice.py::test_the_choice_is_the_same_however_many_places_are_looked_at_together",),
    ),
    Fault(
        "a run's tiles are listed behind their own",
        "list_tiles",
        "for before in range(run):",
        "for before in range(run + 1):",
        ("tests/rendering/test_tile_list.py::test_list_is_of_the_tiles_with_a_ray_that_meets_something[1.0-0.03]",),
    ),
    Fault(
        "a tile's rays are taken to be its middle one",
        "is_clear",
        "ti.static(SAFETY_MARGIN[0]) * between + ti.static(SAFETY_MARGIN[1]), ti.i32) + 1",
        "0.0 * between, ti.i32)",
        ("tests/rendering/test_tile_list.py::test_list_is_of_the_tiles_with_a_ray_that_meets_something[1.0-0.003]",),
    ),
    Fault(
        "a tile whose middle and corners miss the box is taken to miss it",
        "is_clear",
        "wider = ti.static(SAFETY_MARGIN[0]) * (apart + farthest * parting).max()",
        "wider = 0.0 * (apart + farthest * parting).max()",
        ("tests/rendering/test_tile_list.py::test_list_is_of_the_tiles_with_a_ray_that_meets_something[1.0-0.5]",),
    ),
    Fault(
        "of a tile's rays it is asked only where the one through its middle is in the box",
        "is_clear",
        "begin, end = clip(o + wider, d, top + 2.0 * wider)",
        "begin, end = clip(o, d, top)",
        (
            "tests/rendering/test_tile_list.py::"
            "test_a_tile_is_listed_whose_pixel_meets_the_box_where_its_middle_and_corners_do_not",
        ),
    ),
    Fault(
        "the last step does not list a tile",
        "meets_occupied",
        "while k <= n and far > near and not found:",
        "while k < n and far > near and not found:",
        (TILES + "test_tiles_whose_samples_meet_something_are_listed_and_others_are_not",),
    ),
    Fault(
        "the way in NDC is that of a parallel projection",
        "through_ndc",
        "- place * b[3]) / a[3]",
        "- 0.0 * place * b[3]) / a[3]",
        (NDC + "test_image_and_gradient_are_the_reference",),
    ),
    Fault(
        "a ray that never comes to the near plane is seen from behind",
        "through_ndc",
        "ti.Vector([0.0, 0.0, -1.0, 0.0])",
        "ti.Vector([0.0, 0.0, 1.0, 0.0])",
        (NDC + "test_image_and_gradient_are_the_reference",),
    ),
    Fault(
        "depth in NDC counts from where the ray begins there",
        "distance_of",
        "distance = by[0] + (",
        "distance = 0.0 * by[0] + (",
        (NDC + "test_depth_is_the_distance_in_the_world",),
    ),
    Fault(
        "a ray along a face is beside it by rounding",
        "slacks_of",
        "slacks[a] = ti.select(ti.abs(d[a]) <= along, slack, 0.0)",
        "slacks[a] = ti.select(ti.abs(d[a]) <= along, 0.0, 0.0)",
        ("tests/gradients/test_projector.py::test_rows_of_a_detector_in_the_outer_slices_are_in_the_grid",),
    ),
]
