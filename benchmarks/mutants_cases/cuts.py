"""Faults in parallel rays, clips and meshes."""

from mutants_cases.fault import Fault

LENS, CLIP, MESH = "tests/geometry/test_lens.py::", "tests/kernels/test_clip.py::", "tests/meshing/test_meshes.py::"
NESTED = CLIP + "test_image_and_gradients_are_those_of_what_is_kept[nested]"

FAULTS = [
    Fault(
        "parallel rays are upside down on the device",
        "start_parallel",
        "(lens[3] - v) / lens[1], 0.0",
        "(v - lens[3]) / lens[1], 0.0",
        ("tests/kernels/test_lenses.py::test_kernels_agree_with_the_host_to_a_millionth_of_a_pixel[orthographic]",),
    ),
    Fault(
        "the origins of parallel rays do not turn with the camera",
        "Projection.place_tangent",
        "dot_start + dot.pose[:3] + np.cross(dot.pose[3:], start)",
        "dot_start + dot.pose[:3]",
        (LENS + "test_the_adjoint_of_a_projection_is_its_tangents_transpose[orthographic]",),
    ),
    Fault(
        "a scaled world leaves parallel rays as close",
        "transform_camera",
        "tuple(f / scale for f in camera.focal)",
        "camera.focal",
        (LENS + "test_a_similarity_scales_parallel_rays_apart",),
    ),
    Fault(
        "the other side of a plane is kept",
        "Clip.keeps",
        "kept &= points @ row[:3] >= row[3]",
        "kept &= points @ row[:3] <= row[3]",
        (CLIP + "test_what_is_kept_of_a_ray_is_what_is_kept_of_its_points[planes]",),
    ),
    Fault(
        "planes do not follow into NDC",
        "Clip.planes_in",
        "rows = rows * (1, 1, 1, -1) @ np.linalg.inv(ndc_from_world)",
        "rows = rows * (1, 1, 1, -1) @ ndc_from_world",
        (CLIP + "test_planes_go_to_planes_in_ndc",),
    ),
    Fault(
        "a cut counts in the innermost box's unit in all nested boxes",
        "cut_by_planes",
        "t = -scale * ahead / toward",
        "t = -ahead / toward",
        (NESTED,),
    ),
    Fault(
        "the gradient of a cut forgets how far along the ray it is",
        "meet_adjoint",
        "d_way -= t * slope",
        "d_way -= slope",
        (NESTED,),
    ),
    Fault(
        "a mirrored volume's mesh is inside out",
        "surface_of",
        "if np.linalg.det(affine[:3, :3]) < 0:",
        "if np.linalg.det(affine[:3, :3]) < -np.inf:",
        (MESH + "test_a_ball_is_closed_outward_where_it_is_and_of_its_colours[mirrored]",),
    ),
    Fault(
        "a box ends at the sample beyond it",
        "_trim_ends",
        "place[0], place[-1] = low, high",
        "place[0], place[-1] = place[0], place[-1]",
        (MESH + "test_what_reaches_the_border_is_closed_there",),
    ),
    Fault(
        "colours are seen from within",
        "seen_colours",
        "harmonics = basis(volume.degree, directions[some])",
        "harmonics = basis(volume.degree, -directions[some])",
        (MESH + "test_colours_are_those_that_a_march_reads",),
    ),
    Fault(
        "samples on the level itself are left there",
        "surface_of",
        "padded[padded == 0] = LEVEL_OFFSET",
        "padded[padded == 0] = 0",
        (MESH + "test_a_lone_sample_on_the_level_is_a_piece_of_its_own",),
    ),
    Fault(
        "the smallest pieces stay",
        "largest_pieces",
        'kept = np.argsort(-areas, kind="stable")[:count]',
        'kept = np.argsort(areas, kind="stable")[:count]',
        (MESH + "test_the_largest_pieces_stay",),
    ),
]
