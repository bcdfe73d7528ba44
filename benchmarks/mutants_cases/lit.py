"""Faults in lit pictures through a table: the light on a sample, its normal, its occlusion, and their slopes."""

from mutants_cases.fault import Fault

LAWS = "tests/kernels/test_lit_transfer.py::"
TWIN = LAWS + "test_the_picture_and_its_normals_are_those_of_the_formula"
SLOPES = LAWS + "test_slopes_by_volume_and_table_are_differences_of_the_formula"
GRADIENT = LAWS + "test_every_gradient_passes_the_dot_test_and_the_difference"

FAULTS = [
    Fault(
        "what is level is lit as rounding has it",
        "normal_slope",
        "grid.density[at(grid, I)] - grid.density[at(grid, cell)]",
        "grid.density[at(grid, I)]",
        (LAWS + "test_what_is_level_is_lit_by_ambient_light_alone",),
    ),
    Fault(
        "a normal counts for nothing where the table is lit",
        "adjoint_of_ray",
        "if ti.abs(d_N).max() > 0:",
        "if ti.abs(d_N).max() > 1e9:",
        (SLOPES,),
    ),
    Fault(
        "what light hides behind a sample is of unlit colours",
        "adjoint_of_lit",
        "d_weight = d_colour.dot(shade(rays, colour, n, -rays.direction[r]))",
        "d_weight = d_colour.dot(colour)",
        (SLOPES,),
    ),
    Fault(
        "normals are added up by T",
        "normals_of_lit",
        "total += weight * n",
        "total += T * n",
        (TWIN,),
    ),
    Fault(
        "moved samples turn no normal",
        "lit_tangent",
        "dot_n = along_sphere(normal, scale, dot_N)",
        "dot_n = along_sphere(normal, 0.0 * scale, dot_N)",
        (SLOPES,),
    ),
    Fault(
        "the headlight stays as the camera turns",
        "lit_geometry_adjoint",
        "d_view -= d_e",
        "d_view -= 0.0 * d_e",
        (GRADIENT + "[headlight]",),
    ),
    Fault(
        "a turned box turns no normal",
        "lit_geometry_adjoint",
        "d_frame += G.outer_product(d_N)",
        "d_frame += 0.0 * G.outer_product(d_N)",
        (GRADIENT + "[lamp]",),
    ),
    Fault(
        "a sample that moves keeps its slope",
        "lit_geometry_adjoint",
        "+ K.transpose() @ index_slope(grid, d_N)",
        "+ 0.0 * index_slope(grid, d_N)",
        (GRADIENT + "[lamp]",),
    ),
    Fault(
        "what is around a sample has no slope",
        "adjoint_of_lit",
        "d_open = ambient * weight * d_colour.dot(colour)",
        "d_open = 0.0 * ambient",
        (GRADIENT + "[occlusion]",),
    ),
    Fault(
        "the table that occludes has no slope",
        "add_openness",
        "add_gradient_of_sigma(rays, variant, slot, x, inverse_scale, d_sigma)",
        "add_gradient_of_sigma(rays, variant, slot, x, inverse_scale, 0.0 * d_sigma)",
        (GRADIENT + "[occlusion]",),
    ),
    Fault(
        "a turned box turns no way that is looked along",
        "openness_slopes",
        "by_A -= passes * tau_by_way.outer_product(side)",
        "by_A -= 0.0 * tau_by_way.outer_product(side)",
        (GRADIENT + "[occlusion]",),
    ),
]
