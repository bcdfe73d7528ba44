"""Suggestions for a name that is not known: *did you mean*, by spelling and by what other programs call it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

ALIKE = 0.7  # of two spellings, by difflib's ratio
CALLED = {  # by our names: what other programs, papers and habits call them
    "maximum": "mip max maximum-intensity maxip",
    "minimum": "minip min",
    "average": "mean avg aip",
    "x-ray": "sum drr radiograph projection attenuation absorption",
    "isosurface": "iso surface levelset contour",
    "transfer": "dvr composite composition volume vr transfer-function table tf lut",
    "emission-absorption": "nerf alpha ea emission",
    "additive": "add",
    "quick": "fast draft low small preview",
    "default": "normal standard",
    "high": "best quality fine full slow",
    "photos": "photo unbounded outdoor",
    "squared": "mse l2 square",
    "charbonnier": "l1 mae",
    "huber": "smooth-l1",
    "f32": "single float32 fp32 float",
    "f64": "double float64 fp64",
    "cuda": "gpu nvidia",
    "colour": "color rgb colors",
    "sigma": "density extinction",
    "pinhole": "perspective simple-pinhole",
    "fisheye": "opencv-fisheye equidistant",
    "opencv": "brown",
    "orthographic": "parallel ortho orthogonal",
    "exponential": "exp truncexp",
    "identity": "linear none",
    "sequential": "sequence video",
    "exhaustive": "all",
    "one": "single-camera shared",
    "optimiser": "lr learning-rate",
    "lamp": "light light-direction headlight",
    "lr_density": "lr learning-rate rate",
    "lr_colour": "lr learning-rate rate",
    "steps": "iterations iters iter epochs num-steps n-steps max-steps max-iter num-iterations",
    "step": "steps step-size dt stepsize sample-distance",
    "seconds": "time timeout duration minutes",
    "rays": "batch-size num-rays n-rays rays-per-batch",
    "batch": "batch-size",
    "sh_degree": "degree sh sh-deg lmax",
    "resolution": "grid-size voxels grid-resolution size",
    "size": "size resolution image-size",
    "width": "size w resolution image-size shape",
    "height": "size h resolution image-size shape",
    "tv_density": "tv total-variation lambda-tv",
    "tv_colour": "tv total-variation lambda-tv",
    "min_transmittance": "early-stop early-ray-termination t-min",
    "colormap": "cmap colourmap",
    "name": "cmap colourmap",
    "iso": "isovalue level threshold isolevel",
    "world_from_index": "affine matrix transform spacing voxel-size origin",
    "spacing": "spacing voxel-size",
    "box": "origin aabb bounds bbox extent bounding-box",
    "values": "data array",
    "density": "data array sigma sigmas",
    "images": "img",
    "slope": "scale",
    "intercept": "offset",
    "unit": "units",
    "world": "orientation space",
    "world_from_camera": "c2w pose extrinsics camtoworld",
    "focal": "fl focal-length intrinsics k fx",
    "principal": "intrinsics k center centre principal-point cx",
    "target": "center centre at look-at lookat focal-point",
    "eye": "position from",
    "up": "view-up",
    "fov": "vfov hfov angle view-angle",
    "background": "bg background-color bg-color backgroundcolor",
    "cameras": "poses colmap sfm",
    "fit": "train reconstruct optimize optimise",
    "view": "show viewer gui",
    "export": "mesh",
    "info": "describe header stat",
    "doctor": "check diagnose validate",
    "evaluate": "eval test metrics",
    "slices": "slice",
    "bench": "benchmark",
    "demo": "example",
    "check-gradients": "gradcheck",
    ".nii.gz": "nifti",
    ".h5": "hdf he5",
    ".vti": "vtk",
    ".dicom": "dcm",
    "test": "val validation",
    "gray": "grey",
    "viridis": "parula",
}  # fmt: skip


def guesses(given: object, names: Iterable[object]) -> list[str]:
    """Names that may be meant by one that is none of them, the likeliest first; none where nothing is near.

    Example:
        >>> guesses("MIP", ["additive", "maximum"]), guesses("X-Ray", ["x-ray"]), guesses("lr", ["lr_colour", "steps"])
        (['maximum'], ['x-ray'], ['lr_colour'])
        >>> guesses("quikc", ["quick", "default"]), guesses("quick", ["gold"])
        (['quick'], [])
    """
    if not isinstance(given, str) or not given:
        return []
    there = {_key(str(name)): str(name) for name in names}
    asked = _key(given)
    if asked in there:
        return [there[asked]]
    known = [there[_key(ours)] for ours, called in CALLED.items() if asked in called.split() and _key(ours) in there]
    if known:
        return [name for name in known if name != "optimiser"] or known  # which has rates, where none is a setting
    near = difflib.get_close_matches(asked, list(there), 1, ALIKE)
    if not near and len(asked) >= 3:
        near = [key for key in there if key.startswith(asked) or (len(key) >= 4 and asked.startswith(key))][:1]
    return [there[key] for key in near]


def did_you_mean(given: object, names: Iterable[object]) -> str:
    """Question after a name that is not known, or "" where no name is near.

    Example:
        >>> did_you_mean("Maximum", ["additive", "maximum"])
        "did you mean 'maximum'?"
    """
    found = guesses(given, names)
    return f"did you mean {' or '.join(map(repr, found))}?" if found else ""


def unknown_names(unknown: Sequence[str], names: Iterable[str], what: str = "setting") -> str:
    """Message about names that are none of those there are: all there are, and what may be meant.

    Example:
        >>> unknown_names(["lr"], ["lr_density", "lr_colour"])
        "unknown setting lr; want some of lr_density, lr_colour; did you mean 'lr_density' or 'lr_colour'?"
        >>> unknown_names(["wings"], ["steps", "seconds"])
        'unknown setting wings; want some of steps, seconds'
    """
    names = list(names)
    near = [did_you_mean(one, names) for one in unknown]
    return "; ".join([f"unknown {what} {', '.join(unknown)}", f"want some of {', '.join(names)}", *filter(None, near)])


def _key(name: str) -> str:
    return name.strip().casefold().replace("_", "-").replace(" ", "-").removeprefix("--").removeprefix(".")
