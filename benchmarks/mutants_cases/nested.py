"""Faults in nested boxes: where a ray is in which, what lies behind the other along x, what a box means alone."""

from mutants_cases.fault import Fault

NESTED = "tests/kernels/test_nested.py::"
IMAGE = NESTED + "test_image_and_gradient_are_the_reference[0-emission-absorption]"
SLOPES = NESTED + "test_every_parameter_passes_the_dot_test_and_the_difference[1]"
ALONE = NESTED + "test_the_nth_box_is_twice_as_large_as_the_one_within"

FAULTS = [
    Fault(
        "each box is four times as large as the last",
        "scale_of",
        "return 1.0 / ti.cast(1 << box, float)",
        "return 1.0 / ti.cast(1 << 2 * box, float)",
        (IMAGE,),
    ),
    Fault(
        "the hole in a shell is a third of it wide",
        "shell_segment",
        "clip_faces(o, d, 0.25 * top, 0.75 * top)",
        "clip_faces(o, d, top / 3.0, top / 1.5)",
        (IMAGE,),
    ),
    Fault(
        "what is inward counts as outward",
        "shell_segment",
        "inward, outward = s < ti.static(grid.boxes - 1), s > ti.static(grid.boxes - 1)",
        "inward, outward = s > ti.static(grid.boxes - 1), s < ti.static(grid.boxes - 1)",
        (IMAGE,),
    ),
    Fault(
        "a ray that misses the box within has its shell twice",
        "shell_segment",
        "            elif outward:\n                far = ti.cast(-1.0, float)",
        "            elif outward:\n                far = far",
        (IMAGE,),
    ),
    Fault(
        "a box begins with the last sample of the one before",
        "first_of",
        "box * (grid.max_index[None][0] + 1.0)",
        "box * grid.max_index[None][0]",
        (IMAGE,),
    ),
    Fault(
        "boxes are larger about their corner",
        "origin_in_box",
        "own = middle + (o - middle) * scale_of(box)",
        "own = o * scale_of(box)",
        (IMAGE,),
    ),
    Fault(
        "an origin that moves moves as far in every box, in the adjoint",
        "leave_segment",
        "total.o += seg.scale * total.own",
        "total.o += total.own",
        (SLOPES,),
    ),
    Fault(
        "an origin that moves moves as far in every box, in the tangent",
        "move_of",
        "p = seg.scale * scene.moved.dot_origin[ray.r, e]",
        "p = 1.0 * scene.moved.dot_origin[ray.r, e]",
        (SLOPES,),
    ),
    Fault(
        "neighbours across the faces of boxes are evened out",
        "has_neighbour",
        "(I[a] + 1) % (shape[a] // grid.boxes) != 0",
        "(I[a] + 1) % (shape[a] // grid.boxes) >= 0",
        (NESTED + "test_no_variation_counts_from_one_box_to_the_next",),
    ),
    Fault(
        "a finer level reads the box before at a box's first samples",
        "resample",
        "I[0] % n, I[0] // n * ti.cast(old_top[0] + 1.0, ti.i32)",
        "I[0] % n, I[0] // n * ti.cast(old_top[0], ti.i32)",
        (NESTED + "test_a_finer_level_has_the_values_of_the_coarser_in_each_box",),
    ),
    Fault(
        "the nth box alone is as thick as the innermost",
        "Volume.nested",
        "replace(self.activation, scale=self.activation.scale * 2**n)",
        "replace(self.activation, scale=self.activation.scale)",
        (ALONE,),
    ),
    Fault(
        "the nth box alone has the samples behind its own",
        "Volume.nested",
        "along_x(n * count, (n + 1) * count,",
        "along_x(n * count + 1, (n + 1) * count + 1,",
        (ALONE,),
    ),
    Fault(
        "a larger box is about the middle of its samples and not of its box",
        "larger_box",
        "world_from_index.copy(), (np.array(shape) - 1) / 2",
        "world_from_index.copy(), np.array(shape) / 2",
        (ALONE,),
    ),
]
