"""Faults in stored values, meshes far from the origin, and what messages say instead."""

from mutants_cases.fault import Fault

STORED = "tests/data/test_stored_values.py::"
FAR = "tests/meshing/test_far_meshes.py::"
PRECISION = "tests/io/test_precision_of_writers.py::"
CURES = "tests/house/test_cures_of_arguments.py::"

FAULTS = [
    Fault(
        "histograms are of the stored type",
        "histogram_of",
        "np.histogram(np.asarray(slab, np.float64), bins, ends)",
        "np.histogram(np.asarray(slab), bins, ends)",
        (STORED + "test_range_mean_and_histogram_are_those_of_the_values",),
    ),
    Fault(
        "bins of values that are alike are as narrow as these",
        "bin_range",
        "if high > low and high - low >= least:",
        "if high > low:",
        (STORED + "test_bins_are_apart_in_doubles",),
    ),
    Fault(
        "slope and intercept are applied in the stored type",
        "ScalarVolume.numbers",
        "made[...] = plane.astype(np.float64) * self.slope + self.intercept",
        "made[...] = plane * stored.dtype.type(self.slope) + stored.dtype.type(self.intercept)",
        (STORED + "test_slope_and_intercept_are_applied_in_doubles",),
    ),
    Fault(
        "ply is in single precision far from the origin",
        "_bytes",
        'return _ply(mesh, colours, "f8" if offset.any() else "f4")',
        'return _ply(mesh, colours, "f4")',
        (FAR + "test_a_mesh_keeps_its_shape_and_place", FAR + "test_points_stay_apart"),
    ),
    Fault(
        "a glb's node leaves the offset out",
        "_bytes.placed",
        'node["translation"] = offset.tolist()',
        'node["translation"] = [0.0, 0.0, 0.0]',
        (FAR + "test_a_mesh_keeps_its_shape_and_place",),
    ),
    Fault(
        "slope and intercept of nifti are rounded",
        "_stored_values",
        "return volume.numbers(), 1.0, 0.0",
        "return volume.values, slope, intercept",
        (PRECISION + "test_slope_and_intercept_keep_steps_apart",),
    ),
    Fault(
        "an array of channels first is moved the wrong way",
        "channels_cure",
        "pass np.moveaxis(it, 0, -1)",
        "pass np.moveaxis(it, -1, 0)",
        (CURES + "test_what_the_message_says_is_done_and_works",),
    ),
    Fault(
        "colours of a plane are spread over a volume",
        "_colours_of.read",
        "(*shape, 3), (*shape, 1)):",
        "(*shape, 3), (*shape, 1)) or True:",
        (CURES + "test_what_the_message_says_is_done_and_works",),
    ),
]
