"""Faults in lit pictures through a table: the light on a sample, its normal, its occlusion, and their slopes."""

from mutants_cases.fault import Fault

LAWS = "tests/kernels/test_lit_transfer.py::"
TWIN = LAWS + "test_the_picture_and_its_normals_are_those_of_the_formula"
SLOPES = LAWS + "test_slopes_by_volume_and_table_are_differences_of_the_formula"
GRADIENT = "tests/kernels/test_mode_contract.py::test_every_gradient_passes_the_dot_test_and_the_difference"

FAULTS = [
    Fault(
        "what is level is lit as rounding has it",
        "normal_slope",
        "grid.density[sample_index(grid, I)] - grid.density[sample_index(grid, cell)]",
        "grid.density[sample_index(grid, I)]",
        (LAWS + "test_what_is_level_is_lit_by_ambient_light_alone",),
    ),
    Fault(
        "a smooth slope is that of the sample before",
        "smooth_slope",
        "(plane[3] - plane[1])",
        "(plane[2] - plane[0])",
        (TWIN,),
    ),
    Fault(
        "slopes that are held are of one side",
        "slopes_in",
        "low[a], high[a] = ti.max(I[a] - 1, first[a]),",
        "low[a], high[a] = ti.max(I[a], first[a]),",
        ("tests/kernels/test_long_group.py::test_slopes_that_were_made_before_light_as_those_found_on_the_way[1]",),
    ),
    Fault(
        "a normal counts for nothing where the table is lit",
        "lit:pull",
        "if ti.abs(d_N).max() > 0:",
        "if ti.abs(d_N).max() > 1e9:",
        (SLOPES,),
    ),
    Fault(
        "what light hides behind a sample is of unlit colours",
        "lit:look",
        "seen.y = shade(scene.rays, seen.painted, seen.n, -ray.heading)",
        "seen.y = seen.painted",
        (SLOPES,),
    ),
    Fault(
        "normals are added up by T",
        "composited:value",
        "state.sum += weight * scene",
        "state.sum += state.T * scene",
        (TWIN,),
    ),
    Fault(
        "moved samples turn no normal",
        "lit:push",
        "dot_n = along_sphere(seen.n, seen.scale, dot_N)",
        "dot_n = along_sphere(seen.n, 0.0 * seen.scale, dot_N)",
        (SLOPES,),
    ),
    Fault(
        "the headlight stays as the camera turns",
        "lit:pull",
        "d.view -= d_e",
        "d.view -= 0.0 * d_e",
        (GRADIENT + "[headlight]",),
    ),
    Fault(
        "a turned box turns no normal",
        "lit:push",
        "dot_N += scene.moved.dot_frame[e].transpose() @ seen.G",
        "dot_N += 0.0 * seen.G",
        (GRADIENT + "[lamp]",),
    ),
    Fault(
        "a sample that moves keeps its slope",
        "lit:pull",
        "d.p += seen.K.transpose() @ d_G",
        "d.p += 0.0 * d_G",
        (GRADIENT + "[lamp]",),
    ),
    Fault(
        "what is around a sample has no slope",
        "lit:pull",
        "d_open = seen.ambient * d_y.dot(seen.painted)",
        "d_open = 0.0 * seen.ambient",
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
