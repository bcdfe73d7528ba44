"""Faults in the modes of whole rays: extrema, exact integrals, isosurfaces, and the cells that a ray goes through."""

from mutants_cases.fault import Fault

LAWS = "tests/kernels/test_ray_modes.py::"
IMAGE, GRADIENT = (
    LAWS + "test_image_is_the_reference",
    "tests/kernels/test_mode_contract.py::test_every_gradient_passes_the_dot_test_and_the_difference",
)

FAULTS = [
    Fault(
        "a ray along a face begins far ahead in the cell to its other side",
        "first_hit",
        "begin = ti.min(enter_of(entry, way, cell), t)",
        "begin = enter_of(entry, way, cell)",
        (
            "tests/kernels/test_ray_modes.py::test_rays_along_rows_of_samples_see_what_those_beside_them_see[isosurface]",
        ),
    ),
    Fault(
        "a pre-integrated ray along a face begins far ahead in the cell to its other side",
        "leave_empty",
        "at_far = ti.min(at_far, behind)",
        "at_far = ti.max(at_far, 0.0)",
        (
            "tests/kernels/test_ray_modes.py::test_rays_along_rows_of_samples_see_what_those_beside_them_see"
            "[pre-integrated]",
        ),
    ),
    Fault(
        "T of an X-ray has no end",
        "composite",
        "ti.select(T < MAX_TRANSMITTANCE, clamp_high(T * e, MAX_TRANSMITTANCE), MAX_TRANSMITTANCE)",
        "T * e",
        (
            "tests/kernels/test_modes.py::test_values_under_0_that_let_any_light_through_make_numbers_with_their_gradients",
        ),
    ),
    Fault(
        "T that is held has a slope",
        "unclamped",
        "return ti.select(T < MAX_TRANSMITTANCE, T, 0.0)",
        "return T",
        (
            "tests/kernels/test_modes.py::test_values_under_0_that_let_any_light_through_make_numbers_with_their_gradients",
        ),
    ),
    Fault(
        "an orbit is about z whatever is up",
        "_sphere_points",
        "if tuple(up) == DEFAULT_UP else places @ _rotation_from_z",
        "if True else places @ _rotation_from_z",
        ("tests/geometry/test_camera_paths.py::test_an_orbit_about_another_up_is_that_about_z_turned",),
    ),
    Fault(
        "of equal samples the last wins",
        "winner_along",
        "if width > 0 and (at_s < 0 or high > most):",
        "if width > 0 and (at_s < 0 or high >= most):",
        (LAWS + "test_of_equal_samples_the_first_wins",),
    ),
    Fault(
        "the minimum is the maximum",
        "MINIMUM",
        'Extremum("minimum", **FOUND, **HOW, sign=-1.0)',
        'Extremum("minimum", **FOUND, **HOW, sign=1.0)',
        (IMAGE + "[minimum]",),
    ),
    Fault(
        "points of a cell are not Gauss and Legendre's",
        "GAUSS_OFFSET",
        "GAUSS_OFFSET = 0.28867513459481287",
        "GAUSS_OFFSET = 0.28867413459481287",
        (IMAGE + "[x-ray-exact]",),
    ),
    Fault(
        "the mean forgets that its length moves",
        "line_integral:start_pull",
        "d_length = -d_total * image[0]",
        "d_length = 0.0 * image[0]",
        (GRADIENT + "[average]",),
    ),
    Fault(
        "a level is crossed from below alone",
        "first_hit",
        "if low * side < 0:",
        "if low > side:",
        (IMAGE + "[isosurface]", LAWS + "test_a_plane_is_hit_where_it_is_and_the_value_moves_it_by_one_over_its_slope"),
    ),
    Fault(
        "between its extrema a cubic is not looked at",
        "first_root",
        "low, high = e1, e2",
        "low, high = e1, e1",
        (IMAGE + "[isosurface]",),
    ),
    Fault(
        "a hit that moves turns no normal",
        "lit:push",
        "world_slope(scene.grid, seen.K @ move.p)",
        "world_slope(scene.grid, 0.0 * move.p)",
        (GRADIENT + "[isosurface]",),
    ),
    Fault(
        "central differences look to one side",
        "plane_weights",
        "low = ti.Vector([-0.5, 0.0, 0.5, 0.0], float)",
        "low = ti.Vector([-0.5, 0.5, 0.0, 0.0], float)",
        (IMAGE + "[isosurface]",),
    ),
    Fault(
        "a hit that a ray only touches flies off",
        "slope_at_hit",
        "if ti.abs(along) > ti.static(1e-6",
        "if ti.abs(along) >= 0.0 * ti.static(1e-6",
        (LAWS + "test_where_a_ray_only_touches_the_surface_its_hit_stays",),
    ),
    Fault(
        "the box's turn does not move what is seen of normals",
        "lit:pull",
        "d.frame += seen.G.outer_product(d_N)",
        "d.frame += 0.0 * seen.G.outer_product(d_N)",
        (GRADIENT + "[isosurface]",),
    ),
    Fault(
        "the highlight lies where the light does, not halfway to the eye",
        "shade",
        "gloss = m[SPECULAR] * ti.pow(ti.max(n.dot(half), 0.0), m[SHININESS])",
        "gloss = m[SPECULAR] * ti.pow(ti.max(n.dot(light), 0.0), m[SHININESS])",
        (IMAGE + "[isosurface]",),
    ),
    Fault(
        "cells on the level's rim count as empty",
        "mark_straddling",
        "grid.empty_distance[I] = ti.u8(0) if below and above else ti.u8(MAX_DISTANCE)",
        "grid.empty_distance[I] = ti.u8(MAX_DISTANCE) if below and above else ti.u8(0)",
        (LAWS + "test_leaps_over_cells_without_the_surface_change_nothing",),
    ),
]
