"""Law: what is of a wrong type or out of range is refused at the call, in one line that names it, the device untouched.

Every public name has its rows, and every argument of every public function a rule.
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import fields, is_dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
import taichi as ti

import raymarch as rm
from raymarch import plot
from raymarch.device.pool import Owner
from raymarch.evaluation.held_out import Evaluation, ViewScore
from raymarch.fitting.report import Report
from raymarch.kernels.fit.losses import squared as SQUARED

NAN, INF = math.nan, math.inf
CAMERA = rm.Camera.look_at((1, -4, 2), width=8, height=6)
VOLUME = rm.Volume.from_function(lambda p: p[..., 0], shape=(4, 5, 6))
FOG, NDC = rm.Volume.from_array(np.ones((8, 4, 4))), rm.ndc_of_frustum(np.eye(4), 1.0)
NESTED, IN_NDC = replace(FOG, boxes=2), replace(VOLUME, ndc_from_world=NDC)
IMAGES = np.full((2, 6, 8, 3), 255, np.uint8)
VIEWS = rm.Views([CAMERA] * 2, IMAGES)
RAYS = rm.Rays([[0, 0, 0]], [[0, 0, 1]])
ACTIVATION = rm.Activation()
BOX = [(-1, -1, -1), (1, 1, 1)]
LINE = np.array([[1.0, 0.0], [1.0, 1.0]])
TWO = ti.func(lambda x, y: x)
OPERATOR = rm.Operator(lambda v: v, lambda w: w)
SQUARE = np.zeros((16, 16, 3))
TABLE, CUBES, COLOURS = np.zeros((1,) * 3, np.int32), np.zeros((1, 8, 8, 8)), np.zeros((1, 8, 8, 8, 3))
CUBE = rm.Bricks(TABLE, CUBES, COLOURS)
RAGGED = [[1, 2], [3]]
SCORED = Evaluation(20.0, 0.9, (ViewScore("first", 20.0, 0.9),), 0.1)
MESH = rm.Mesh(np.eye(3), [(0, 1, 2)], np.eye(3), np.eye(3))
TABLE_OF = {"values": [0, 1, 2], "colours": [[0, 0.5, 1]] * 3, "opacities": [0, 0.5, 1]}
SHADES = rm.TransferFunction(**TABLE_OF)


def bare(kind, **own):
    """An object that holds nothing on the device: what is refused asks for none of it."""
    made = object.__new__(kind)
    vars(made).update(own)
    return made


SEEN, BOTH = (
    bare(
        rm.Linearised,
        alone=count == 1,
        volumes=[VOLUME] * count,
        medium=SimpleNamespace(marches=[rm.March()] * count),
        viewpoint=SimpleNamespace(camera=CAMERA, rays=CAMERA.rays()),
    )
    for count in (1, 2)
)
PROJECTOR = bare(rm.Projector, shape=(2, 3, 4), images=(1, 5, 6), cameras=(CAMERA,))
RENDERER, FITTER, SPLAT = bare(rm.Renderer), bare(rm.Fitter), bare(rm.Splat, count=3, shape=(4, 4), channels=1)


def around(**given):
    return rm.orbit(**{"target": (0, 0, 0), "radius": 4, "count": 3, "like": CAMERA, **given})


MARCH_ROWS = [
    ("step", 0), ("step", "half"), ("step", True), ("step", NAN), ("min_transmittance", 1), ("min_transmittance", None),
    ("min_weight", -0.1), ("min_weight", INF), ("batch", 0), ("batch", 2.5), ("batch", 1 << 30), ("mode", "mip"),
    ("mode", None),
    ("mode", ["x-ray"]), ("jitter", 1.5), ("jitter", NAN), ("step_jitter", 1.0), ("seed", 1.5), ("seed", -1),
    ("seed", True), ("seed", 10**400), ("seed", "1"), ("transfer", "bone"), ("iso", NAN),
    ("shading", "metal"), ("clip", BOX), ("clip", "box"), ("preintegrated", 1), ("supersample", 0),
    ("supersample", 9), ("supersample", 1.5), ("supersample", "2"),
]  # fmt: skip


def of_record(kind, rows):
    return [(lambda name=name, value=value: kind(**{name: value}), f"{name} is") for name, value in rows]


ROWS = {
    "Activation": [
        *of_record(
            rm.Activation,
            [("density", None), ("density", 3), ("colour", None), ("colour", "tanh"), ("shift", NAN), ("shift", 1e300)]
            + [("shift", True), ("scale", 0), ("scale", -1), ("scale", INF), ("scale", "1"), ("scale", 1e300)],
        ),
        (lambda: rm.Activation.of_initial_alpha(NAN, 1.0), "alpha is nan"),
        (lambda: rm.Activation.of_initial_alpha(0.1, "far"), "scale is 'far'"),
        (lambda: rm.Activation.of_initial_alpha(0.1, 1.0, None), "density is None"),
        (lambda: ACTIVATION.sigma("thick"), "raw is 'thick'"),
        (lambda: ACTIVATION.sigma([NAN]), "raw is nan at 0"),
        (lambda: ACTIVATION.raw([1.0, INF]), "sigma is inf at 1"),
    ],
    "Adam": of_record(
        rm.Adam,
        [("lr_density", 0), ("lr_density", "fast"), ("lr_colour", NAN), ("final", 0), ("final", True), ("beta1", 1)]
        + [("beta2", None), ("eps", 0), ("eps", 1e-300)],
    )
    + [(lambda: rm.Adam().rates("half"), "progress is 'half'")],
    "Bricks": [
        (lambda: rm.Bricks(), "bricks: table is None"),
        (lambda: rm.Bricks("here", CUBES, COLOURS), "bricks: table is 'here'"),
        (lambda: rm.Bricks(TABLE + 0.5, CUBES, COLOURS), "bricks: table is float64 (1, 1, 1)"),
        (lambda: rm.Bricks(TABLE - 2, CUBES, COLOURS), "bricks: table is -2 at (0, 0, 0)"),
        (lambda: rm.Bricks(TABLE + 1, CUBES, COLOURS), "bricks: table is 1 at (0, 0, 0)"),
        (lambda: rm.Bricks(TABLE - 1, CUBES, COLOURS), "bricks: table lacks number 0"),
        (lambda: rm.Bricks(TABLE, None, COLOURS), "bricks: density is None"),
        (lambda: rm.Bricks(TABLE, CUBES * NAN, COLOURS), "bricks: density is nan at (0, 0, 0, 0)"),
        (lambda: rm.Bricks(TABLE, CUBES[0], COLOURS), "bricks: density has shape (8, 8, 8)"),
        (lambda: rm.Bricks(TABLE, CUBES, CUBES), "bricks: features have shape (1, 8, 8, 8)"),
        (lambda: rm.Bricks.of_dense(CUBES, COLOURS, 0), "density has shape (1, 8, 8, 8)"),
        (lambda: rm.Bricks.of_dense(CUBES[0], COLOURS, 0), "features have shape (1, 8, 8, 8, 3)"),
        (lambda: rm.Bricks.of_dense(CUBES[0], COLOURS[0], NAN), "empty is nan"),
        (lambda: CUBE.dense((8, 8, 9), 0), "bricks: table of shape (1, 1, 1) does not cover"),
        (lambda: CUBE.dense(8, 0), "shape is 8"),
    ],
    "Clip": [
        (lambda: rm.Clip(box=[(1, 1, 1), (0, 0, 0)]), "box [[1.0, 1.0, 1.0]"),
        (lambda: rm.Clip(box=3), "box is 3"),
        (lambda: rm.Clip(box=[(0, 0, 0), (1, NAN, 1)]), "box is nan at (1, 1)"),
        (lambda: rm.Clip(planes=3), "clip: planes is 3"),
        (lambda: rm.Clip(planes="xyz"), "clip: planes is 'xyz'"),
        (lambda: rm.Clip(planes=[((0, 0, 0), 1)]), "clip: planes is [((0, 0, 0), 1)]"),
        (lambda: rm.Clip(planes=[((0, 0, INF), 1)]), "clip: planes is"),
        (lambda: rm.Clip(planes=[(0, 0, 1)]), "clip: planes is"),
        (lambda: rm.Clip(planes=[((0, 0, 1), "far")]), "clip: planes is"),
        (lambda: rm.Clip(planes=[((0, 0, 1), 1)] * 7), "clip: planes"),
        (lambda: rm.Clip().keeps(np.zeros((3, 2))), "points have shape (3, 2)"),
        (lambda: rm.Clip().keeps("here"), "points are 'here'"),
        (lambda: rm.Clip().cut("here"), "rays is 'here'"),
    ],
    "Camera": [
        (lambda: rm.Camera(None, (5, 5), (1, 1), 2, 2), "world_from_camera is None"),
        (lambda: rm.Camera("here", (5, 5), (1, 1), 2, 2), "world_from_camera is 'here'"),
        (lambda: rm.Camera(np.eye(4) * 1j, (5, 5), (1, 1), 2, 2), "world_from_camera is a complex128 array (4, 4)"),
        (lambda: rm.Camera(np.diag([1e30, 1, 1, 1]), (5, 5), (1, 1), 2, 2), "world_from_camera is 1e+30 at (0, 0)"),
        (lambda: rm.Camera(np.eye(4), 5, (1, 1), 2, 2), "focal is 5"),
        (lambda: CAMERA.project(np.zeros((3, 2))), "points have shape (3, 2), want (point, 3) numbers"),
        (lambda: CAMERA.project("here"), "points are 'here'"),
        (lambda: rm.Camera(np.eye(4), (5, 5, 5), (1, 1), 2, 2), "focal is (5, 5, 5)"),
        (lambda: rm.Camera(np.eye(4), (5, 1e300), (1, 1), 2, 2), "focal is (5, 1e+300)"),
        (lambda: rm.Camera(np.eye(4), ("5", "5"), (1, 1), 2, 2), "focal is ('5', '5')"),
        (lambda: rm.Camera(np.eye(4), (5, 5), None, 2, 2), "principal is None"),
        (lambda: rm.Camera(np.eye(4), (5, 5), (1, NAN), 2, 2), "principal is (1, nan)"),
        (lambda: rm.Camera(np.eye(4), (5, 5), (1, 1), 2.5, 2), "width is 2.5"),
        (lambda: rm.Camera(np.eye(4), (5, 5), (1, 1), 2, True), "height is True"),
        (lambda: rm.Camera(np.eye(4), (5, 5), (1, 1), 2, 2, "opencv"), "lens is 'opencv', want an rm.Lens"),
        (
            lambda: rm.Camera(np.eye(4), (5, 5), (4, 4), 8, 8, rm.Lens("simple_radial", (-0.4,))),
            "lens simple_radial (k1 -0.4) cannot be inverted at pixel (0.0, 0.0)",
        ),
        (lambda: rm.Camera(np.eye(4), (5, 5), (1, 1), 1 << 20, 1 << 20), "image is 1048576 x 1048576"),
        (lambda: rm.Camera.from_fov(np.eye(4), "wide", 2, 2), "fov is 'wide'"),
        (lambda: rm.Camera.from_fov(np.eye(4), NAN, 2, 2), "fov is nan"),
        (lambda: rm.Camera.from_fov(np.eye(4), 0.7, None, 2), "width is None"),
        (lambda: rm.Camera.look_at((NAN, 0, 0)), "eye is (nan, 0, 0)"),
        (lambda: rm.Camera.look_at((1, 0)), "eye is (1, 0)"),
        (lambda: rm.Camera.look_at("there"), "eye is 'there'"),
        (lambda: rm.Camera.look_at((1e300, 0, 0)), "eye is (1e+300, 0, 0)"),
        (lambda: rm.Camera.look_at((1, 0, 0), target=[[0, 0, 0]]), "target is [[0, 0, 0]]"),
        (lambda: rm.Camera.look_at((1, 0, 0), up=(0, 0, INF)), "up is (0, 0, inf)"),
        (lambda: rm.Camera.look_at((1, 0, 0), fov=True), "fov is True"),
        (lambda: rm.Camera.look_at((1, 0, 0), width=2.5), "width is 2.5"),
        (lambda: rm.Camera.look_at((1, 0, 0), width=-1), "width is -1"),
        (lambda: rm.Camera.look_at((1, 0, 0), height=10**9), "height is 1000000000"),
        (lambda: rm.Camera.orthographic((1, 0, 0), size=0), "size is 0"),
        (lambda: rm.Camera.orthographic((1, 0, 0), size="wide"), "size is 'wide'"),
        (lambda: rm.Camera.orthographic((1, 0, 0), size=NAN), "size is nan"),
        (lambda: rm.Camera.orthographic((1, NAN, 0)), "eye is (1, nan, 0)"),
        (lambda: rm.Camera.orthographic((1, 0, 0), width=0), "width is 0"),
        (lambda: rm.Camera.orthographic((1, 0, 0), height=2.5), "height is 2.5"),
        (lambda: rm.Lens("orthographic").plane((0, 0, -1)), "lens: an orthographic one has one direction"),
        (lambda: CAMERA.scaled(NAN), "factor is nan"),
        (lambda: CAMERA.scaled("twice"), "factor is 'twice'"),
        (lambda: CAMERA.scaled(0), "factor is 0"),
        (lambda: CAMERA.scaled(1e20), "factor is 1e+20"),
        (lambda: CAMERA.moved(np.eye(3)), "world_from_world has shape (3, 3)"),
        (lambda: CAMERA.moved(None), "world_from_world is None"),
        (lambda: CAMERA.rays("all"), "pixels are 'all'"),
        (lambda: CAMERA.rays([0.5]), "pixels are [0.5]"),
        (lambda: CAMERA.rays([48]), "pixels are [48], want one or more whole numbers of 0 to 47"),
        (lambda: CAMERA.rays(RAGGED), "pixels are [[1, 2], [3]]"),
        (lambda: CAMERA.rays(3), "pixels are 3"),
    ],
    "FitSettings": of_record(
        rm.FitSettings,
        [("resolution", "many"), ("resolution", True), ("resolution", INF), ("sh_degree", 1.5), ("steps", "all")]
        + [("seconds", "60"), ("seconds", True), ("rays", None), ("levels", None), ("levels", "fine")]
        + [("levels", ((0, NAN),)), ("levels", ((0, 1), 3)), ("levels", ((0.0, 1.0),) * 65), ("step", None)]
        + [("density", None), ("density", ["relu"]), ("loss", lambda image, truth: 0.0), ("hull", 1), ("hull", "no")]
        + [("exposure", 1), ("learn_background", "white")]
        + [("optimiser", None), ("optimiser", rm.Adam), ("refresh", 2.5), ("slots", 2.5), ("slots", "four")]
        + [("block", 3), ("memory", "2"), ("memory", NAN), ("seed", 0.5), ("regularised_fraction", True)]
        + [("objective", "huber"), ("objective", rm.Objective), ("objective", rm.Loss.named("huber"))]
        + [("mode", "x-ray"), ("mode", "transfer"), ("transfer", "bone")],
    ),
    "SfmSettings": of_record(
        rm.SfmSettings,
        [("matching", "all"), ("matching", None), ("lens", "wide"), ("camera", 1), ("max_size", 0)]
        + [("features", "many"), ("frames", 2), ("seed", -1), ("threads", 0), ("threads", "all")]
        + [("seconds", NAN), ("seconds", 0)],
    ),
    "Fitter": [
        (lambda: rm.Fitter("scenes/tower"), "views is 'scenes/tower'"),
        (lambda: rm.Fitter(VIEWS, {}), "settings is {}"),
        (lambda: rm.Fitter(VIEWS, box=[(0, 0, 0), (1, 0, 1)]), "box"),
        (lambda: rm.Fitter(VIEWS, box="all"), "box is 'all'"),
        (lambda: rm.Fitter(VIEWS, started="now"), "started is 'now'"),
        (lambda: FITTER.render(VOLUME), "camera is a Volume"),
        (lambda: FITTER.render(CAMERA, march="fast"), "march is 'fast'"),
        (lambda: FITTER.run(3), "stop is 3"),
        (lambda: rm.Fitter(VIEWS, "quick", rays="all"), "rays is 'all'"),
    ],
    "Lens": [
        *of_record(rm.Lens, [("model", "brown"), ("model", 3), ("model", None), ("coefficients", 3)]),
        (lambda: rm.Lens("opencv", (0.1, 0.2)), "coefficients are (0.1, 0.2), opencv wants 5: k1, k2, k3, p1, p2"),
        (lambda: rm.Lens("pinhole", (0.1,)), "pinhole wants none"),
        (lambda: rm.Lens("simple_radial", NAN), "coefficients is nan"),
        (lambda: rm.Lens("simple_radial", "k1"), "coefficients are 'k1'"),
        (lambda: rm.Lens("simple_radial", (NAN,)), "coefficients is (nan,)"),
        (lambda: rm.Lens("fov", (4,)), "omega is 4"),
    ],
    "Linearised": [
        (lambda: rm.Linearised(CAMERA, VOLUME), "volume is a Camera"),
        (lambda: rm.Linearised(VOLUME, VIEWS), "camera is a Views"),
        (lambda: rm.Linearised(VOLUME, CAMERA, exposure=(1, 1, 1)), "exposure is (1, 1, 1)"),
        (lambda: rm.Linearised(VOLUME, CAMERA, exposure="bright"), "exposure is 'bright'"),
        (lambda: rm.Linearised(VOLUME, CAMERA, background=5), "background is 5"),
        (lambda: rm.Linearised(VOLUME, CAMERA, march=rm.March), "march is the class March"),
        (lambda: rm.Linearised(VOLUME, CAMERA, columns=0), "columns is 0"),
        (lambda: rm.Linearised(VOLUME, CAMERA, pixels=[0.5]), "pixels are [0.5]"),
        (lambda: SEEN.set_camera(VOLUME), "camera is a Volume"),
        (lambda: SEEN.set_camera(CAMERA, pixels=3), "pixels are 3"),
        (lambda: SEEN.tangent(None), "directions are [None]"),
        (lambda: SEEN.tangents(3), "directions are 3"),
        (lambda: SEEN.tangent(rm.Parameters(density=np.zeros((4, 4, 4)))), "density has shape (4, 4, 4), want"),
        (lambda: SEEN.tangent(rm.Parameters(colour=np.zeros((4, 5, 6, 12)))), "colour has shape (4, 5, 6, 12)"),
        (lambda: SEEN.tangent(rm.Parameters(pose=[0, 0, 0, 0, 0, NAN])), "pose is nan at 5"),
        (lambda: SEEN.shifted(rm.Parameters(), "a bit"), "h is 'a bit'"),
        (lambda: SEEN.move(3), "directions are [3]"),
        (lambda: SEEN.tangent(rm.Parameters(table=np.zeros((3, 4)))), "the march has no transfer function"),
        (lambda: SEEN.adjoint(np.zeros((3, 4))), "d_image has shape (3, 4), want (48, 4)"),
        (lambda: SEEN.adjoint(np.full((48, 4), NAN)), "d_image is nan at (0, 0)"),
        (lambda: SEEN.jacobian("tilt"), "parameter is 'tilt'"),
        (lambda: SEEN.jacobian([CAMERA]), "parameter is a Camera"),
        (lambda: SEEN.jacobian([]), "parameters are []"),
        (lambda: rm.Linearised([VOLUME] * 2, VOLUME), "camera is a Volume"),
        (lambda: rm.Linearised([VOLUME] * 2, CAMERA, march="x-ray"), "march is 'x-ray'"),
        (lambda: rm.Linearised([VOLUME] * 2, CAMERA, march=rm.March(mode="x-ray")), "marches[0]: mode x-ray does not"),
        (lambda: rm.Linearised([VOLUME] * 2, CAMERA, pixels=3), "pixels are 3"),
        (lambda: BOTH.adjoint(np.zeros((3, 4))), "d_image has shape (3, 4), want (48, 4)"),
        (lambda: BOTH.tangent(rm.Parameters()), "directions are 0, volumes 2; give one for each"),
        (lambda: BOTH.tangents(3), "directions are 3"),
        (lambda: BOTH.tangent([None, None]), "directions are [None]"),
        (lambda: BOTH.tangent([rm.Parameters(pose=np.zeros(6)), rm.Parameters()]), "directions[0] has pose, want some"),
        (
            lambda: BOTH.tangent([rm.Parameters(), rm.Parameters(background=np.zeros(3))]),
            "directions[1] has background, want some of colour, density",
        ),
        (
            lambda: BOTH.shifted([rm.Parameters(), rm.Parameters(table=np.zeros((2, 4)))], 1),
            "table: the march has no transfer function",
        ),
        (lambda: BOTH.shifted([rm.Parameters()] * 2, "a bit"), "h is 'a bit'"),
        (lambda: BOTH.jacobian(["pose"]), "directions[0] has pose, want some"),
        (lambda: BOTH.move(rm.Parameters(step=1.0)), "several volumes together do not move by step, want some of"),
    ],
    "Projector": [
        (lambda: rm.Projector((4, 4), np.eye(4), [CAMERA]), "shape is (4, 4)"),
        (lambda: rm.Projector((4, 4, 4), np.eye(3), [CAMERA]), "world_from_index"),
        (lambda: rm.Projector((4, 4, 4), np.eye(4), CAMERA), "cameras are a Camera, want a list of cameras"),
        (lambda: rm.Projector((4, 4, 4), np.eye(4), [CAMERA, VOLUME]), "cameras[1] is a Volume"),
        (lambda: PROJECTOR.project(np.zeros((2, 2))), "values have shape (2, 2), want (2, 3, 4)"),
        (lambda: PROJECTOR.back("sinogram"), "images are 'sinogram'"),
    ],
    "TransferFunction": [
        *[
            (lambda given=given: rm.TransferFunction(**{**TABLE_OF, **given}), said)
            for given, said in [
                ({"values": "low"}, "values are 'low'"),
                ({"values": [0, NAN, 2]}, "values are nan at 1"),
                ({"colours": [[0, 0, 2]] * 3}, "colours are 2 at (0, 2)"),
                ({"colours": [[0, 0]] * 3}, "colours have shape (3, 2)"),
                ({"opacities": [0, -0.1, 1]}, "opacities are -0.1 at 1"),
                ({"opacities": None}, "opacities are None"),
                ({"unit_length": 0}, "unit_length is 0"),
                ({"unit_length": "mm"}, "unit_length is 'mm'"),
            ]
        ],
        (lambda: rm.TransferFunction([0, 2, 1], [[0, 0, 0]] * 3, [0, 0, 0]), "values have 2 at 1 and 1 after it"),
        (lambda: rm.TransferFunction([0, 1, 1 + 1e-9], [[0, 0, 0]] * 3, [0, 0, 0]), "values have 1 at 1 and 1 after"),
        (lambda: rm.TransferFunction([-1e6, 0, 1e-3], [[0, 0, 0]] * 3, [0, 0, 0]), "values have 0 at 1 and 0.001"),
        (lambda: rm.TransferFunction([0], [[0, 0, 0]], [0]), "values have 1 knot"),
        (lambda: rm.TransferFunction([0, 1, 2], [[0, 0, 0]] * 2, [0, 0, 0]), "colours are of 2 knots, values of 3"),
        (lambda: rm.TransferFunction.of_colormap("veridis", 0, 1), "name is 'veridis', want a colour map"),
        (lambda: rm.TransferFunction.of_colormap("bone", 1, 1), "high is 1, want a number over low"),
        (lambda: rm.TransferFunction.of_colormap("bone", 0, 1, 0.5), "opacities is 0.5"),
        (lambda: rm.TransferFunction.of_colormap("bone", 0, 1, knots=1), "knots is 1"),
        (lambda: rm.TransferFunction.of_record([1, 2]), "table is a list"),
        (lambda: rm.TransferFunction.of_record({**TABLE_OF, "alpha": 1}), "table has 'alpha'"),
        (lambda: rm.TransferFunction.of_record({"values": [0, 1]}), "table has no colours"),
        (lambda: rm.TransferFunction(**TABLE_OF)("thick"), "values are 'thick'"),
        (lambda: rm.TransferFunction(**TABLE_OF).with_rgba(np.zeros((2, 4))), "rgba has shape (2, 4)"),
    ],
    "fit_table": [
        (lambda: rm.fit_table(VIEWS, VOLUME, None), "volume is a Views"),
        (lambda: rm.fit_table(VOLUME, CAMERA, None), "views is a Camera"),
        (lambda: rm.fit_table(VOLUME, VIEWS, "bone"), "start is 'bone'"),
        *[
            (lambda name=name, value=value: rm.fit_table(VOLUME, VIEWS, SHADES, **{name: value}), f"{name} is")
            for name, value in [
                ("steps", 0), ("newton", -1), ("rays", 1), ("rate", 0), ("step", NAN), ("seed", "1"), ("show", 3),
            ]
        ],
    ],
    "load_table": [
        (lambda: rm.load_table(3), "path is 3"),
        (lambda: rm.load_table("missing.json"), "missing.json: is no file"),
    ],
    "save_table": [
        (lambda: rm.save_table("bone", "bone.json"), "table is 'bone'"),
        (lambda: rm.save_table(rm.TransferFunction(**TABLE_OF), "bone.txt"), "end the name in .json"),
        (lambda: rm.save_table(rm.TransferFunction(**TABLE_OF), 3), "path is 3"),
        (lambda: rm.save_table(rm.TransferFunction(**TABLE_OF), "bone.json", "yes"), "overwrite is 'yes'"),
    ],
    "Loss": [
        (lambda: rm.Loss("mine"), "loss 'mine': value is None, want a @ti.func"),
        (lambda: rm.Loss("mine", SQUARED, abs), "loss 'mine': slope is a function, want a @ti.func"),
        (lambda: rm.Loss("mine", SQUARED, TWO), "loss 'mine': slope has 2 arguments, want a @ti.func of one"),
        (lambda: rm.Loss("mine", SQUARED, SQUARED, 0), "loss 'mine': scale is 0"),
        (lambda: rm.Loss(3, SQUARED, SQUARED), "loss 3: name is 3"),
        (lambda: rm.Loss.named("l1"), "loss is 'l1', want one of squared, huber"),
        (lambda: rm.Loss.named("huber", NAN), "scale is nan"),
    ],
    "DensityActivation": [
        (lambda: rm.DensityActivation(None, min, max), "name is None"),
        (lambda: rm.DensityActivation("mine", None, max), "density activation 'mine': forward is None"),
        (lambda: rm.DensityActivation("mine", min, 3), "density activation 'mine': inverse is 3, want a function"),
        (lambda: rm.DensityActivation("mine", min, max, "x"), "density activation 'mine': value is 'x'"),
        (lambda: rm.DensityActivation("mine", min, max, min, 0), "density activation 'mine': slope is 0"),
        (lambda: rm.DensityActivation("mine", min, max, empty="0"), "density activation 'mine': empty is '0', want a"),
        (lambda: rm.DensityActivation("mine", min, max, empty=NAN), "density activation 'mine': empty is nan, want a"),
    ],
    "ColourActivation": [
        (lambda: rm.ColourActivation("", min), "name is ''"),
        (lambda: rm.ColourActivation("mine", None), "colour activation 'mine': forward is None, want a function"),
        (lambda: rm.ColourActivation("mine", min, 1), "colour activation 'mine': value is 1, want a function"),
        (lambda: rm.ColourActivation("mine", min, min, 1), "colour activation 'mine': slope is 1, want a function"),
    ],
    "Mode": [
        (lambda: rm.Mode(None, min, min, min), "name is None"),
        (lambda: rm.Mode("mine", None, min, min), "mode 'mine': composite is None, want a ti.func"),
        (lambda: rm.Mode("mine", min, "e", min), "mode 'mine': tangent is 'e', want a ti.func"),
        (lambda: rm.Mode("mine", min, min, 3), "mode 'mine': adjoint is 3, want a ti.func"),
        (lambda: rm.Mode("mine", min, min, min, ends=1), "mode 'mine': ends is 1, want True or False"),
        (lambda: rm.Mode("mine", min, min, min, power=2), "mode 'mine': power is 2, want 0, 1 or None"),
    ],
    "March": of_record(rm.March, MARCH_ROWS) + [(lambda: rm.March(seed=1.5, jitter=1), "seed is 1.5")],
    "Objective": of_record(
        rm.Objective,
        [("robust", "huber"), ("robust", [rm.Loss.named("huber")]), ("regularisers", 3), ("regularisers", "sparsity")]
        + [("opacity_weight", -1), ("opacity_weight", None)],
    )
    + [(lambda: rm.Objective(regularisers=[rm.Loss.named("huber")]), "regularisers have a Loss")],
    "Operator": [
        (lambda: rm.Operator(LINE, LINE.T), "tangent is [1.0, 0.0, 1.0, 1.0]|tangent is [[1.0, 0.0], [1.0, 1.0]]"),
        (lambda: rm.Operator(lambda v: v, None), "adjoint is None"),
    ],
    "Parameters": [
        (lambda: rm.Parameters(pose=[1, 2, 3]), "pose has shape (3,), want (6,)"),
        (lambda: rm.Parameters(pose="up"), "pose is 'up'"),
        (lambda: rm.Parameters(density=np.zeros(3)), "density has shape (3,)"),
        (lambda: rm.Parameters(box=RAGGED), "box is [[1, 2], [3]]"),
        (lambda: rm.Parameters(step=[1.0]), "step has shape (1,)"),
    ],
    "Rays": [
        (lambda: rm.Rays(None, [[0, 0, 1]]), "origin is None"),
        (lambda: rm.Rays([[0, 0, "0"]], [[0, 0, 1]]), "origin is"),
        (lambda: rm.Rays([[0, 0, 1e300]], [[0, 0, 1]]), "origin is 1e+300 at (0, 2)"),
        (lambda: rm.Rays([[0, 0, 0]], [[0, 0, 1e300]]), "direction is 1e+300 at (0, 2)"),
        (lambda: rm.Rays(RAGGED, [[0, 0, 1]]), "origin is [[1, 2], [3]]"),
        (lambda: rm.Rays([], []), "origin has shape (0,)"),
    ],
    "Regulariser": [
        (lambda: rm.Regulariser("mine"), "regulariser 'mine': of is None, want one of density difference"),
        (lambda: rm.Regulariser("mine", "optical depth", SQUARED), "regulariser 'mine': slope is None"),
        (lambda: rm.Regulariser("mine", "optical depth", SQUARED, TWO), "regulariser 'mine': slope has 2 arguments"),
        (lambda: rm.Regulariser("mine", "voxels", SQUARED, SQUARED), "regulariser 'mine': of is 'voxels'"),
        (lambda: rm.Regulariser.named("tv", 1), "regulariser is 'tv', want one of tv_density"),
        (lambda: rm.Regulariser.named("sparsity", -1), "weight is -1"),
    ],
    "Renderer": [
        (lambda: rm.Renderer(CAMERA), "volume is a Camera"),
        (lambda: rm.Renderer("ball.h5"), "volume is 'ball.h5'"),
        (lambda: rm.Renderer(VOLUME, rm.March), "march is the class March"),
        (lambda: rm.Renderer(VOLUME, {}), "march is {}"),
        (lambda: rm.Renderer(VOLUME, [rm.March()]), "marches are 1, volume is one; give one rm.March"),
        (lambda: rm.Renderer([]), "volume is 0 of them"),
        (lambda: rm.Renderer([VOLUME] * 5), "volume is 5 of them"),
        (lambda: rm.Renderer([VOLUME, CAMERA]), "volumes[1] is a Camera"),
        (lambda: rm.Renderer([VOLUME], "transfer"), "march is 'transfer'"),
        (lambda: rm.Renderer([VOLUME], [rm.March]), "marches[0] is the class March"),
        (lambda: rm.Renderer([VOLUME] * 2, [rm.March()]), "marches are 1, volumes 2"),
        (lambda: rm.Renderer([VOLUME] * 2, rm.March(mode="x-ray")), "marches[0]: mode x-ray does not composite"),
        (
            lambda: rm.Renderer(
                [VOLUME] * 2, rm.March(mode="transfer", transfer=rm.TransferFunction(**TABLE_OF), preintegrated=True)
            ),
            "marches[0] has preintegrated, which several volumes together have not; leave it out",
        ),
        (lambda: rm.Renderer([VOLUME, NESTED]), "volumes[1] has nested boxes, want one box"),
        (lambda: rm.Renderer([IN_NDC, VOLUME]), "volumes[0] is in NDC, want a box in the world"),
        (
            lambda: rm.Renderer([VOLUME] * 2, [rm.March(jitter=1), rm.March()]),
            "marches have jitter 0 and 1, want one for all rays",
        ),
        (lambda: RENDERER.render([CAMERA]), "camera is a list of a Camera, want one Camera"),
        (lambda: RENDERER.render(CAMERA, 5), "background is 5"),
        (lambda: RENDERER.render(CAMERA, depth=1), "depth is 1"),
        (lambda: RENDERER.trace(CAMERA), "rays is a Camera"),
        (lambda: RENDERER.trace(RAYS, depth=2), "depth is 2"),
    ],
    "Scene": [(lambda: rm.Scene(VOLUME), "seen is a Volume"), (lambda: rm.Scene(None), "seen is None")],
    "Shading": of_record(
        rm.Shading,
        [("ambient", -1), ("diffuse", "much"), ("specular", NAN), ("shininess", 0), ("lamp", (0, 0, 0))]
        + [("lamp", "sun"), ("lamp", (1, NAN, 0)), ("colour", "shiny"), ("colour", (2, 0, 0))]
        + [("occlusion", -1), ("occlusion", NAN)],
    )
    + [
        (lambda: rm.Shading(matcap=np.ones((4, 4))), "matcap has shape (4, 4)"),
        (lambda: rm.Shading(matcap=np.full((4, 4, 3), 255)), "matcap is 255 at (0, 0, 0)"),
    ],
    "Splat": [
        (lambda: rm.Splat(2.5, (4, 4)), "count is 2.5"),
        (lambda: rm.Splat(True, (4, 4)), "count is True"),
        (lambda: rm.Splat(2, None), "shape is None"),
        (lambda: rm.Splat(2, (4, NAN)), "shape is (4, nan)"),
        (lambda: rm.Splat(2, (4, 4), "3"), "channels is '3'"),
        (lambda: SPLAT.upload("here", np.zeros((3, 1))), "positions are 'here'"),
        (lambda: SPLAT.upload(np.zeros((3, 2)), [[1], [2], [INF]]), "values are inf at (2, 0)"),
        (lambda: SPLAT.upload([[0, NAN]] * 3, np.zeros((3, 1))), "positions are nan at (0, 1)"),
        (lambda: SPLAT.tangent([[0, 1e300]] * 3, np.zeros((3, 1))), "dot_positions are 1e+300 at (0, 1)"),
    ],
    "TorchMarch": [],  # wants torch: tests/torch_bridge/test_torch_march.py
    **{name: [] for name in ("TorchCameras", "TorchRender", "TorchVolume")},  # tests/torch_bridge has them
    "Views": [
        (lambda: rm.Views([CAMERA], [[[0]]]), "images are int64 (1, 1, 1)|images are int32 (1, 1, 1)"),
        (lambda: rm.Views([CAMERA], None), "images are None"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES / 255), "images are float64 (2, 6, 8, 3), want uint8"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES[..., 0] / 255), "line integrals of density, are for rm.Projector"),
        (lambda: rm.Views([CAMERA] * 2, [IMAGES[0], IMAGES[0, 1:]]), "view 001: image is 8 x 5 but its camera 8 x 6"),
        (lambda: rm.Views([CAMERA] * 2, [IMAGES[0], IMAGES[0, ..., :2]]), "images have uint8 (6, 8, 2)"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, masks=IMAGES), "masks have a uint8 array"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, masks=3), "masks is 3"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, masks=[IMAGES[0, ..., 0] > 300]), "1 masks of 2 views"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, points=[(0, 0)]), "points have shape (1, 2)"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, box=[(0, 0, 0)] * 2), "box"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, downscale=0.5), "downscale is 0.5"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, holdout=-1), "holdout is -1"),
        (lambda: rm.Views(CAMERA, IMAGES), "cameras is a Camera"),
        (lambda: rm.Views([CAMERA, None], IMAGES), "cameras have None"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, "ab"), "names"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, [1, 2]), "names is [1, 2]"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, 3), "names is 3"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, background=5), "background is 5"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, background="green"), "background is 'green'"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, background=(True, 0, 2)), "background is (True, 0, 2)"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, source=3), "source is 3"),
        *[(lambda bad=bad: VIEWS[bad], "which is") for bad in (2, -3, 0.5, "a", None, [], [5], slice(2, 2), (0, 1))],
        (lambda: VIEWS.rgb(2), "view is 2"),
        (lambda: VIEWS.rgb(0.5), "view is 0.5"),
        (lambda: VIEWS.image(2), "view is 2"),
        (lambda: VIEWS.mask("first"), "view is 'first'"),
    ],
    "Selection": of_record(
        rm.Selection,
        [("crop", 3), ("crop", (0, 4, 0, 4)), ("crop", ((4, 0),) * 3), ("stride", 0), ("stride", None)]
        + [("stride", (1, 2)), ("channel", -1), ("time", 0.5), ("level", "fine"), ("nan", NAN), ("nan", "least")],
    )
    + [(lambda: rm.Selection(((0, 9),) * 3).shape((4,) * 3), "ends beyond the shape (4, 4, 4)")],
    "ScalarVolume": [
        (lambda: rm.ScalarVolume(), "values is None|values are None"),
        (lambda: rm.ScalarVolume(np.zeros((4, 4))), "values have shape (4, 4), want whole numbers or floats (x, y, z)"),
        (lambda: rm.ScalarVolume(np.zeros((4, 4, 1))), "values have shape (4, 4, 1)"),
        (lambda: rm.ScalarVolume(CUBES[0] * 1j), "values are a complex128 array (8, 8, 8)"),
        (lambda: rm.ScalarVolume(CUBES[0] * NAN), "values have 512 of 512 that are NaN or infinite"),
        (lambda: rm.ScalarVolume(CUBES[0] + 1e40), "values are 1e+40 at (0, 0, 0)"),
        (lambda: rm.ScalarVolume(CUBES[0] + 1e20, slope=1e20), "values are from 1e+40 to 1e+40"),
        (lambda: rm.ScalarVolume(CUBES[0], np.eye(3)), "world_from_index has shape (3, 3)"),
        (lambda: rm.ScalarVolume(CUBES[0], np.zeros((4, 4))), "world_from_index [[0.0"),
        (lambda: rm.ScalarVolume(CUBES[0], slope=0), "slope is 0, want another number"),
        (lambda: rm.ScalarVolume(CUBES[0], intercept=NAN), "intercept is nan"),
        (lambda: rm.ScalarVolume(CUBES[0], unit=3), "unit is 3"),
        (lambda: rm.ScalarVolume(CUBES[0], world="XYZ"), "world is 'XYZ', want one of RAS, LPS, LAS"),
        (lambda: rm.ScalarVolume(CUBES[0], name="two\nlines"), "name is 'two"),
        (lambda: rm.ScalarVolume(CUBES[0]).in_world("up"), "world is 'up'"),
    ],
    "ScalarSummary": [
        *of_record(rm.ScalarSummary, [("shape", (1, 2, 3))]),
        (lambda: rm.ScalarSummary((4, 5, 6), 3), "dtype is 3"),
        (lambda: rm.ScalarSummary((4, 5, 6), bytes_on_disk=-1), "bytes_on_disk is -1"),
        (lambda: rm.ScalarSummary.of(VOLUME, 3), "volume is a Volume"),
    ],
    "Volume": [
        (lambda: rm.Volume.of_bricks(TABLE, (8, 8, 8), np.eye(4)), "bricks is [[[0]]], want a Bricks"),
        (lambda: rm.Volume.of_bricks(CUBE, 8, np.eye(4)), "shape is 8"),
        (lambda: rm.Volume.of_bricks(CUBE, (9, 8, 8), np.eye(4)), "does not cover 9 x 8 x 8"),
        (lambda: rm.Volume.of_bricks(CUBE, (8, 8, 8), "here"), "world_from_index is 'here'"),
        (lambda: VOLUME.at((0, 0)), "index is (0, 0), want three arrays"),
        (lambda: VOLUME.at((0, 0.5, 0)), "index is (0, 0.5, 0), want three arrays"),
        (lambda: VOLUME.at(([0, 1], [0, 1, 2], 0)), "index is ([0, 1], [0, 1, 2], 0), want three arrays"),
        (lambda: VOLUME.at((0, 5, 0)), "index is 5 along y, want 0 to 4"),
        (lambda: VOLUME.at((-1, 0, 0)), "index is -1 along x, want 0 to 3"),
        (lambda: rm.Volume(np.zeros((4, 4, 4))), "features and world_from_index are missing"),
        (lambda: rm.Volume(np.zeros((4, 4, 4))), "rm.Volume.from_array(density)"),
        (lambda: replace(VOLUME, density=None), "density is None"),
        (lambda: replace(VOLUME, density="thick"), "density is 'thick'"),
        (lambda: replace(VOLUME, density=RAGGED), "density is [[1, 2], [3]]"),
        (lambda: replace(VOLUME, density=np.zeros((0, 4, 4))), "density has shape (0, 4, 4)"),
        (lambda: replace(VOLUME, density=np.zeros((4, 5, 6), object)), "density is an object array (4, 5, 6)"),
        (lambda: replace(VOLUME, density=np.zeros((4, 5, 6)) + 1j), "density is a complex128 array"),
        (lambda: replace(VOLUME, features=VOLUME.features + np.float64(1e40)), "features are 1e+40 at (0, 0, 0, 0)"),
        (lambda: replace(VOLUME, activation=None), "activation is None"),
        (lambda: replace(VOLUME, activation="relu"), "activation is 'relu'"),
        (lambda: replace(VOLUME, activation=rm.Activation), "activation is the class Activation"),
        (lambda: replace(VOLUME, background=5), "background is 5"),
        (lambda: replace(VOLUME, provenance=3), "provenance is 3"),
        (lambda: replace(VOLUME, world_from_index="here"), "world_from_index is 'here'"),
        (lambda: VOLUME.moved(np.eye(3)), "world_from_world has shape (3, 3)"),
        (lambda: rm.Volume.from_function(3), "sigma is 3"),
        (lambda: rm.Volume.from_function(lambda p: None), "sigma(points) is None"),
        (lambda: rm.Volume.from_function(lambda p: p), "sigma(points) has shape (64, 64, 64, 3), want (64, 64, 64)"),
        (lambda: rm.Volume.from_function(lambda p: 1e300), "sigma(points) is 1e+300"),
        (lambda: rm.Volume.from_function(lambda p: 1.0, "red"), "colour is 'red'"),
        (lambda: rm.Volume.from_function(lambda p: 1.0, lambda p: "red", shape=(2, 2, 2)), "colour(points) is 'red'"),
        (lambda: rm.Volume.from_function(lambda p: 1.0, shape=8), "shape is 8"),
        (lambda: rm.Volume.from_function(lambda p: 1.0, shape=(8, 8, 1)), "shape is (8, 8, 1)"),
        (lambda: rm.Volume.from_function(lambda p: 1.0, box=(0, 1)), "box has shape (2,)"),
        (lambda: rm.Volume.from_function(lambda p: 1.0, background="sky"), "background is 'sky'"),
        (lambda: rm.Volume.from_array(None), "density is None"),
        (lambda: rm.Volume.from_array(np.zeros((4, 4))), "density has shape (4, 4)"),
        (lambda: rm.Volume.from_array(np.full((4, 4, 4), NAN)), "density is nan at (0, 0, 0)"),
        (lambda: rm.Volume.from_array(np.zeros((4, 4, 4)), (255.0, 0, 0)), "colour has 255 at its brightest"),
        (lambda: rm.Volume.from_array(np.zeros((4, 4, 4)), (2.0, 0, 0)), "colour is 2.0 at 0"),
        (lambda: rm.Volume.from_array(np.zeros((4, 4, 4)), (1, 0)), "colour has shape (2,)"),
        (lambda: rm.Volume.from_array(np.zeros((4, 4, 4)), box=BOX, spacing=1.0), "box and spacing"),
        (lambda: rm.Volume.from_array(np.zeros((4, 4, 4)), spacing=(1, 0, 1)), "spacing is (1, 0, 1)"),
        (lambda: rm.Volume.from_array(np.zeros((4, 4, 4)), spacing=NAN), "spacing is nan"),
    ],
    "find_cameras": [
        (lambda: rm.find_cameras(3, "set"), "photos is 3"),
        (lambda: rm.find_cameras("a\0b", "set"), "photos have a null character"),
        (lambda: rm.find_cameras("photos", None), "out is None"),
        (lambda: rm.find_cameras("photos", "set", {"seed": 1}), "settings is {'seed': 1}"),
        (lambda: rm.find_cameras("photos", "set", overwrite=1), "overwrite is 1"),
        (lambda: rm.find_cameras("photos", "set", follow_links="yes"), "follow_links is 'yes'"),
        (lambda: rm.find_cameras("photos", "set", show=True), "show is True"),
        (lambda: rm.find_cameras("photos", "set", seed=0.5), "seed is 0.5"),
        (lambda: rm.find_cameras("photos", "set", speed=1), "unknown setting speed; want some of matching"),
    ],
    "cgls": [
        (lambda: rm.cgls(LINE, [1, 2]), "A is"),
        (lambda: rm.cgls(OPERATOR, "b"), "b is 'b'"),
        (lambda: rm.cgls(OPERATOR, [1, NAN]), "b is nan at 1"),
        (lambda: rm.cgls(OPERATOR, [1, 2], start="0"), "start is '0'"),
        (lambda: rm.cgls(OPERATOR, [1, 2], iterations=2.5), "iterations is 2.5"),
        (lambda: rm.cgls(OPERATOR, [1, 2], tolerance=NAN), "tolerance is nan"),
        (lambda: rm.cgls(OPERATOR, [1, 2], progress=True), "progress is True"),
    ],
    "check_gradients": [
        (lambda: rm.check_gradients(VIEWS, VOLUME), "volume is a Views"),
        (lambda: rm.check_gradients(VOLUME, 3), "where is 3"),
        (lambda: rm.check_gradients(VOLUME, []), "where is []"),
        (lambda: rm.check_gradients(VOLUME, CAMERA, 3), "parameters is 3"),
        (lambda: rm.check_gradients(VOLUME, CAMERA, precision=64), "precision is 64"),
        (lambda: rm.check_gradients(VOLUME, CAMERA, march=None), "march is None"),
        (lambda: rm.check_gradients(VOLUME, CAMERA, rays=2.5), "rays is 2.5"),
        (lambda: rm.check_gradients(VOLUME, CAMERA, seed=-1), "seed is -1"),
        (lambda: rm.check_gradients(VOLUME, CAMERA, arch=None), "arch is None"),
    ],
    "conjugate_gradients": [
        (lambda: rm.conjugate_gradients(LINE, [1, 2]), "apply is"),
        (lambda: rm.conjugate_gradients(lambda v: v, None), "b is None"),
        (lambda: rm.conjugate_gradients(lambda v: v, [1], iterations=-1), "iterations is -1"),
    ],
    "describe": [
        (lambda: rm.describe(None), "path is None"),
        (lambda: rm.describe(b"a.h5"), "path is b'a.h5'"),
        (lambda: rm.describe("a.h5", format="abc"), "format is 'abc', want HDF5, "),
        (lambda: rm.describe("a.h5", channel="red"), "channel is 'red'"),
    ],
    "evaluate": [
        (lambda: rm.evaluate(VIEWS, VOLUME), "volume is a Views"),
        (lambda: rm.evaluate(VOLUME, [CAMERA]), "views is a list of a Camera"),
        (lambda: rm.evaluate(VOLUME, VIEWS, march=rm.March), "march is the class March"),
        (lambda: rm.evaluate(VOLUME, VIEWS, seen=3), "seen is 3"),
    ],
    "Checkpoints": [
        *of_record(rm.Checkpoints, [("path", None), ("path", 3), ]),
        (lambda: rm.Checkpoints("a\0b"), "path has a null character"),
        (lambda: rm.Checkpoints("a\ud800b"), "path has a character that no file's name can have"),
        (lambda: rm.Checkpoints("c", every=0), "every is 0, want a number over 0"),
        (lambda: rm.Checkpoints("c", every="10"), "every is '10'"),
        (lambda: rm.Checkpoints("c", resume="yes"), "resume is 'yes'"),
        (lambda: rm.Checkpoints("c", overwrite=1), "overwrite is 1"),
        (lambda: rm.Checkpoints("c", note=None), "note is None"),
        (lambda: rm.Checkpoints("none.checkpoint", resume=True).require(), "there is no checkpoint to resume from"),
    ],
    "save_checkpoint": [
        (lambda: rm.save_checkpoint(VIEWS, "c"), "fitter is a Views"),
        (lambda: rm.save_checkpoint(FITTER, 3), "path is 3"),
        (lambda: rm.save_checkpoint(FITTER, "c", every=NAN), "every is nan"),
        (lambda: rm.save_checkpoint(FITTER, "c", note=b"x"), "note is b'x'"),
    ],
    "load_checkpoint": [
        (lambda: rm.load_checkpoint("c", "c"), "fitter is 'c'"),
        (lambda: rm.load_checkpoint(FITTER, None), "path is None"),
        (lambda: rm.load_checkpoint(FITTER, "none.checkpoint"), "none.checkpoint: no such file"),
    ],
    "fit": [
        (lambda: rm.fit(VIEWS, checkpoints="c"), "checkpoints is 'c', want an rm.Checkpoints"),
        (lambda: rm.fit("scenes/tower"), "views is 'scenes/tower'"),
        (lambda: rm.fit("scenes/tower"), "rm.load_views(path)"),
        (lambda: rm.fit(VIEWS, 3), "settings is 3"),
        (lambda: rm.fit(VIEWS, rm.FitSettings), "settings is the class FitSettings"),
        (lambda: rm.fit(VIEWS, "quick", seconds="60"), "seconds is '60'"),
        (lambda: rm.fit(VIEWS, "slow"), "preset is 'slow'"),
        (lambda: rm.fit(VIEWS, loss=lambda image, truth: 0.0), "loss is a function, want one of squared, huber"),
        (lambda: rm.fit(VIEWS, loss=lambda image, truth: 0.0), "docs/extending.md"),
        (lambda: rm.fit(VIEWS, box=(1, 2)), "box has shape (2,)"),
        (lambda: rm.fit(VIEWS, show=3), "show is 3"),
        (lambda: rm.fit(VIEWS, started="now"), "started is 'now'"),
    ],
    "Finding": [
        *of_record(rm.Finding, [("code", None), ("code", 3)]),
        (lambda: rm.Finding("box", "fatal", "", ""), "severity is 'fatal'"),
        (lambda: rm.Finding("box", "note", 3, ""), "message is 3"),
        (lambda: rm.Finding("box", "note", "", None), "cure is None"),
    ],
    "diagnose": [
        (lambda: rm.diagnose(VOLUME), "views is a Volume"),
        (lambda: rm.diagnose(VIEWS, box=3), "box is 3"),
    ],
    "diagnose_fit": [
        (lambda: rm.diagnose_fit(VIEWS, VIEWS), "volume is"),
        (lambda: rm.diagnose_fit(VOLUME, CAMERA), "train is a Camera"),
        (lambda: rm.diagnose_fit(VOLUME, VIEWS, "test"), "test is 'test'"),
    ],
    "forecast": [
        (lambda: rm.forecast(VOLUME), "views is a Volume"),
        (lambda: rm.forecast(VIEWS, None), "settings is None"),
        (lambda: rm.forecast(VIEWS, box=3), "box is 3"),
        (lambda: rm.forecast(VIEWS, clock="no"), "clock is 'no'"),
    ],
    "forecast_rendering": [
        (lambda: rm.forecast_rendering(CAMERA), "volume is a Camera"),
        (lambda: rm.forecast_rendering(VOLUME, 2.5), "width is 2.5"),
        (lambda: rm.forecast_rendering(VOLUME, 8, True), "height is True"),
    ],
    "gauss_newton": [
        (lambda: rm.gauss_newton(LINE, [1, 2]), "linearise is"),
        (lambda: rm.gauss_newton(lambda x: None, [1, 2]), "linearise gives None"),
        (lambda: rm.gauss_newton(lambda x: (x, LINE), "start"), "start is 'start'"),
        (lambda: rm.gauss_newton(lambda x: (x, LINE), [1, 2], steps="many"), "steps is 'many'"),
        (lambda: rm.gauss_newton(lambda x: (x, LINE), [1, 2], retract=3), "retract is 3"),
    ],
    "Format": [
        (lambda: rm.Format(), "format None: name is None, want a text of one line"),
        (lambda: rm.Format("two\nlines"), "name is 'two\\nlines'"),
        (lambda: rm.Format("npz", "npz", len, len, len), "format 'npz': suffixes is 'npz', want one or more suffixes"),
        (lambda: rm.Format("npz", ()), "suffixes is ()"),
        (lambda: rm.Format("npz", [".a/b"]), "suffixes is ['.a/b']"),
        (lambda: rm.Format("npz", ".npz"), "format 'npz': detect is None, want a function detect(path)"),
        (lambda: rm.Format("npz", ".npz", len, "read"), "format 'npz': read is 'read', want a function read(path)"),
        (lambda: rm.Format("npz", ".npz", len, len), "format 'npz': write is None, want a function write("),
        (lambda: rm.Format("npz", ".npz", len, len, len, 3), "format 'npz': describe is 3, want a function describe("),
        (lambda: rm.Format("npz", ".npz", len, len, len, folder=1), "format 'npz': folder is 1"),
        (lambda: rm.Format("npz", ".npz", len, len, len, ours="no"), "format 'npz': ours is 'no'"),
    ],
    "jacobian": [
        (lambda: rm.jacobian(VOLUME, [CAMERA]), "camera is a list of a Camera"),
        (lambda: rm.jacobian(CAMERA, VOLUME), "volume is a Camera"),
        (lambda: rm.jacobian(VOLUME, CAMERA, 3), "parameters are 3"),
        (lambda: rm.jacobian(VOLUME, CAMERA, ["tilt"]), "parameter is 'tilt'"),
        (lambda: rm.jacobian(VOLUME, CAMERA, march=None), "march is None"),
        (lambda: rm.jacobian(VOLUME, CAMERA, background=(1, 2)), "background is (1, 2)"),
        (lambda: rm.jacobian(VOLUME, CAMERA, exposure=(1, 1, 1, 0, 0, NAN)), "exposure is (1, 1, 1, 0, 0, nan)"),
        (lambda: rm.jacobian(VOLUME, CAMERA, pixels="all"), "pixels are 'all'"),
    ],
    "levenberg_marquardt": [
        (lambda: rm.levenberg_marquardt(3, [1, 2]), "linearise is 3"),
        (lambda: rm.levenberg_marquardt(lambda x: (x, LINE), [1, 2], damping=0), "damping is 0"),
        (lambda: rm.levenberg_marquardt(lambda x: (x, LINE), [1, 2], damping="much"), "damping is 'much'"),
        (lambda: rm.levenberg_marquardt(lambda x: (x, LINE), [1, NAN]), "start is nan at 1"),
    ],
    "load": [
        (lambda: rm.load(None), "path is None"),
        (lambda: rm.load(VOLUME), "path is a Volume"),
        (lambda: rm.load("a.h5", format="h5"), "format is 'h5', want HDF5, "),
        (lambda: rm.load("a.h5", format=rm.Format), "format is the class Format"),
        (lambda: rm.load("a.h5", crop=(1, 2)), "crop is (1, 2), want three pairs"),
        (lambda: rm.load("a.h5", crop=((0, 4), (0, 4), (4, 4))), "crop is ((0, 4)"),
        (lambda: rm.load("a.h5", stride=0), "stride is 0"),
        (lambda: rm.load("a.h5", stride=(1, 2)), "stride is (1, 2)"),
        (lambda: rm.load("a.h5", channel="red"), "channel is 'red'"),
        (lambda: rm.load("a.h5", time=-1), "time is -1"),
        (lambda: rm.load("a.h5", level=0.5), "level is 0.5"),
        (lambda: rm.load("a.h5", nan="none"), "nan is 'none'"),
        (lambda: rm.load("a.raw", shape=(4, 5), dtype="u1"), "shape is (4, 5), want three whole numbers"),
        (lambda: rm.load("a.raw", shape=(4, 5, 6), dtype="wide"), "dtype is 'wide', want a type of number"),
        (lambda: rm.load("a.raw", shape=(4, 5, 6), dtype="c8"), "dtype is 'c8'"),
        (lambda: rm.load("a.raw", shape=(4, 5, 6), dtype="u1", offset=-1), "offset is -1"),
        (lambda: rm.load("a.raw", shape=(4, 5, 6)), "a.raw: raw values need shape and dtype"),
        (lambda: rm.load("a.nii", spacing=(1, 0, 1)), "spacing is (1, 0, 1)"),
    ],
    "load_views": [
        (lambda: rm.load_views(None), "path is None"),
        (lambda: rm.load_views(3), "path is 3"),
        (lambda: rm.load_views(".", split=3), "split is 3"),
        (lambda: rm.load_views(".", background=3), "background is 3"),
        (lambda: rm.load_views(".", downscale=0), "downscale is 0"),
        (lambda: rm.load_views(".", downscale="half"), "downscale is 'half'"),
        (lambda: rm.load_views(".", holdout=2.5), "holdout is 2.5"),
        (lambda: rm.load_views(".", reader=len), "reader is a function, want NeRF-synthetic, "),
        (lambda: rm.load_views(".", reader="none"), "reader is 'none', want NeRF-synthetic"),
    ],
    "orbit": [
        (lambda: around(count=0), "count is 0"),
        (lambda: around(count=2.5), "count is 2.5"),
        (lambda: around(count="3"), "count is '3'"),
        (lambda: around(radius=-1), "radius is -1"),
        (lambda: around(radius=NAN), "radius is nan"),
        (lambda: around(radius=None), "radius is None"),
        (lambda: around(target=(0, 0)), "target is (0, 0)"),
        (lambda: around(elevation="up"), "elevation is 'up'"),
        (lambda: around(like=None), "like is None"),
    ],
    "ndc_of_frustum": [
        (lambda: rm.ndc_of_frustum(np.eye(3), 1), "world_from_camera has shape (3, 3)"),
        (lambda: rm.ndc_of_frustum(2 * np.eye(4), 1), "world_from_camera"),
        (lambda: rm.ndc_of_frustum(np.eye(4), 0), "near is 0"),
        (lambda: rm.ndc_of_frustum(np.eye(4), 1, NAN), "focal is nan"),
        (lambda: replace(VOLUME, ndc_from_world=np.eye(4)), "ndc_from_world has rows"),
        (lambda: replace(VOLUME, ndc_from_world=np.eye(3)), "ndc_from_world has shape (3, 3)"),
        (lambda: replace(VOLUME.moved(np.diag([1, 1, 2, 1])), ndc_from_world=NDC), "z from -2 to 2 in NDC, want -1"),
        (lambda: replace(FOG, boxes=2, ndc_from_world=NDC), "boxes are 2 beside ndc_from_world"),
    ],
    "orbit_of_volume": [
        (lambda: rm.orbit_of_volume(VOLUME, 3), "box is a Volume"),
        (lambda: rm.orbit_of_volume([(0, 0, 0)], 3), "box has shape (1, 3)"),
        (lambda: rm.orbit_of_volume([(1, 1, 1), (0, 0, 0)], 3), "box"),
        (lambda: rm.orbit_of_volume([(0, 0, 0), (1, NAN, 1)], 3), "box is nan at (1, 1)"),
        (lambda: rm.orbit_of_volume(BOX, 2.5), "count is 2.5"),
        (lambda: rm.orbit_of_volume(BOX, 3, size=0), "size is 0"),
        (lambda: rm.orbit_of_volume(BOX, 3, fov=4), "fov is 4"),
    ],
    "load_camera_path": [
        (lambda: rm.load_camera_path(3, 9), "path is 3"),
        (lambda: rm.load_camera_path("path.json", 0), "count is 0"),
        (lambda: rm.load_camera_path("path.json", 9, closed="yes"), "closed is 'yes'"),
        (lambda: rm.load_camera_path("no such.json", 9), "no such.json: is no file"),
    ],
    "path_through": [
        (lambda: rm.path_through(3, 9), "cameras is 3"),
        (lambda: rm.path_through([CAMERA], 9), "cameras have 1, want two or more"),
        (lambda: rm.path_through([CAMERA, 3], 9), "cameras have 3, want two or more"),
        (lambda: rm.path_through([CAMERA, CAMERA], 9), "cameras are 2 of one pose"),
        (lambda: rm.path_through(VIEWS, 2.5), "count is 2.5"),
        (lambda: rm.path_through(VIEWS, 9, closed=1), "closed is 1"),
        (lambda: rm.path_through(VIEWS, 9, about="middle"), "about is 'middle'"),
        (lambda: rm.path_through(VIEWS, 9, about=(0, NAN, 0)), "about has NaN"),
        (lambda: rm.path_through(VIEWS, 9, about=(0, 1)), "about has shape (2,)"),
    ],
    "spiral_of_volume": [
        (lambda: rm.spiral_of_volume(VOLUME, 3), "box is a Volume"),
        (lambda: rm.spiral_of_volume(BOX, 0), "count is 0"),
        (lambda: rm.spiral_of_volume(BOX, 3, turns=NAN), "turns is nan"),
        (lambda: rm.spiral_of_volume(BOX, 3, elevations=(0, 95)), "elevations is (0, 95)"),
        (lambda: rm.spiral_of_volume(BOX, 3, elevations=30), "elevations is 30"),
        (lambda: rm.spiral_of_volume(BOX, 3, size=0), "size is 0"),
        (lambda: rm.spiral_of_volume(BOX, 3, fov=4), "fov is 4"),
        (lambda: rm.spiral_of_volume(BOX, 3, orthographic="yes"), "orthographic is 'yes'"),
    ],
    "write_video": [
        (lambda: rm.write_video(3, [SQUARE]), "path is 3"),
        (lambda: rm.write_video("a.gif", 3), "frames is 3"),
        (lambda: rm.write_video("a.gif", "frames"), "frames is 'frames'"),
        (lambda: rm.write_video("a.gif", [SQUARE], fps=0), "fps is 0"),
        (lambda: rm.write_video("a.gif", [SQUARE], quality="best"), "quality is 'best'"),
        (lambda: rm.write_video("a.gif", [SQUARE], overwrite=3), "overwrite is 3"),
        (lambda: rm.write_video("a.avi", [SQUARE]), "a.avi: videos are .mp4"),
        (lambda: rm.write_video("a.gif", []), "a.gif: there are no frames"),
        (lambda: rm.write_video("a.gif", [SQUARE * NAN]), "a.gif: frame 0 has NaN"),
    ],
    "plot": [
        (lambda: plot.slices(CAMERA), "volume is a Camera"),
        (lambda: plot.slices(VOLUME, index="top"), "index is 'top'"),
        (lambda: plot.slices(VOLUME, index=RAGGED), "index is [[1, 2], [3]]"),
        (lambda: plot.slices(VOLUME, what=3), "what is 3"),
        (lambda: plot.slices(VOLUME, limit="much"), "limit is 'much'"),
        (lambda: plot.cameras(3), "views is 3"),
        (lambda: plot.cameras(VIEWS, box=3), "box is 3"),
        (lambda: plot.cameras(VIEWS, colour="no such"), "colour is 'no such'"),
        (lambda: plot.history(3), "fit is 3"),
        (lambda: plot.history([3]), "fit is [3]"),
        (lambda: plot.comparison("a", SQUARE), "image is 'a'"),
        (lambda: plot.comparison(SQUARE, None), "truth is None"),
        (lambda: plot.error_picture("a", SQUARE), "image is 'a'"),
        (lambda: plot.error_picture(SQUARE, SQUARE, limit=0), "limit is 0"),
        (lambda: plot.error_sheet([SQUARE], [SQUARE], limit="all"), "limit is 'all'"),
        (lambda: plot.error_sheet([SQUARE], ["a"]), "truth is 'a'"),
        (lambda: plot.error_sheet(3, [SQUARE]), "images is 3"),
        (lambda: plot.error_sheet([SQUARE], [SQUARE], names=3), "names is 3"),
        (lambda: plot.images(VOLUME), "views is a Volume"),
        (lambda: plot.image_set(VOLUME), "views is a Volume"),
        (lambda: plot.image_set(VIEWS, box=3), "box is 3"),
        (lambda: plot.image_set(VIEWS, points=[1, 2]), "points have shape (2,)"),
        (lambda: plot.images(VIEWS, "all"), "count is 'all'"),
        (lambda: plot.histogram(CAMERA), "volume is a Camera"),
        (lambda: plot.histogram(VOLUME, "bone"), "transfer is 'bone'"),
        (lambda: plot.histogram(VOLUME, bins=1), "bins is 1"),
        (lambda: plot.histogram(VOLUME, window=3), "window is 3"),
        (lambda: plot.histogram(VOLUME, window=(1, 0)), "window is (1.0, 0.0)"),
        (lambda: plot.iso_histogram(VIEWS), "volume is a Views"),
        (lambda: plot.iso_histogram(VOLUME, bins="many"), "bins is 'many'"),
        (lambda: plot.iso_histogram(VOLUME, window=(0, NAN)), "window is (0, nan)"),
        (lambda: plot.projections(VIEWS), "volume is a Views"),
        (lambda: plot.projections(VOLUME, limit="much"), "limit is 'much'"),
        (lambda: plot.projections(VOLUME, floor=NAN), "floor is nan"),
        (lambda: plot.profile(CAMERA, BOX), "volume is a Camera"),
        (lambda: plot.profile(VOLUME, CAMERA.rays()), "line is a Rays"),
        (lambda: plot.profile(VOLUME, [(0, 0, 0)]), "line has shape (1, 3)"),
        (lambda: plot.profile(VOLUME, [(0, 0, 0)] * 2), "line is from [0.0, 0.0, 0.0] to itself"),
        (lambda: plot.profile(VOLUME, BOX, transfer=3), "transfer is 3"),
        (lambda: plot.profile(VOLUME, rm.Rays([[9, 9, 9]], [[1, 0, 0]])), "misses the volume's box"),
        (lambda: plot.frusta(VOLUME), "views is a Volume"),
        (lambda: plot.frusta(VIEWS, box=3), "box is 3"),
        (lambda: plot.frusta(VIEWS, count=0), "count is 0"),
        (lambda: plot.frusta(VIEWS, length=0), "length is 0"),
        (lambda: plot.coverage(VOLUME), "views is a Volume"),
        (lambda: plot.coverage(VIEWS, box=3), "box is 3"),
        (lambda: plot.residuals(3), "evaluation is 3"),
        (lambda: plot.residuals(SCORED, score="mse"), "score is 'mse'"),
        (lambda: plot.residuals(SCORED, score="lpips"), "none of 1 views has"),
        (lambda: plot.residuals(SCORED, worst=-1), "worst is -1"),
    ],
    "preset": [
        (lambda: rm.preset(3), "preset is 3"),
        (lambda: rm.preset(["quick"]), "preset is ['quick']"),
        (lambda: rm.preset("quick", seconds="60"), "seconds is '60'"),
        (lambda: rm.preset("quick", optimiser=3, lr_density=0.1), "optimiser is 3"),
    ],
    "psnr": [
        (lambda: rm.psnr(None, SQUARE), "image is None"),
        (lambda: rm.psnr(SQUARE, "truth"), "truth is 'truth'"),
        (lambda: rm.psnr(RAGGED, SQUARE), "image is [[1, 2], [3]]"),
        (lambda: rm.psnr(SQUARE * 1j, SQUARE), "image is a complex128 array"),
        (lambda: rm.psnr(SQUARE + NAN, SQUARE), "image is nan at (0, 0, 0)"),
        (lambda: rm.psnr(SQUARE, SQUARE + INF), "truth is inf at (0, 0, 0)"),
        (lambda: rm.psnr(SQUARE + 1e300, SQUARE), "image is 1e+300"),
        (lambda: rm.psnr(SQUARE + 255.0, SQUARE), "image has 255 at its brightest"),
        (lambda: rm.psnr([], []), "image has shape (0,)"),
        (lambda: rm.psnr(SQUARE, SQUARE, "all"), "mask is 'all'"),
        (lambda: rm.psnr(SQUARE, SQUARE, RAGGED), "mask is [[1, 2], [3]]"),
    ],
    "psnr_halves": [
        (lambda: rm.psnr_halves(None, SQUARE), "image is None"),
        (lambda: rm.psnr_halves(SQUARE, SQUARE + INF), "truth is inf at (0, 0, 0)"),
        (lambda: rm.psnr_halves(SQUARE[..., 0], SQUARE[..., 0]), "image has shape (16, 16)"),
        (lambda: rm.psnr_halves(SQUARE, SQUARE, np.zeros((16, 16))), "mask is "),
    ],
    "Reader": [
        (lambda: rm.Reader(), "reader None: name is None, want a text of one line"),
        (lambda: rm.Reader(" "), "name is ' '"),
        (lambda: rm.Reader("my set"), "reader 'my set': detect is None, want a function detect(folder)"),
        (lambda: rm.Reader("my set", len, rm.Views), "reader 'my set': read is the class Views, want a function read("),
        (lambda: rm.Reader("my set", len, len, files=3), "reader 'my set': files is 3, want patterns of file names"),
        (lambda: rm.Reader("my set", len, len, files="../a.json"), "files is '../a.json'"),
        (lambda: rm.Reader("my set", len, len, files=["/a.json"]), "files is ['/a.json']"),
        (lambda: rm.Reader("my set", len, len, files="**/*.json"), "files is '**/*.json'"),
        (lambda: rm.Reader("my set", len, len, specificity=0.5), "specificity is 0.5"),
    ],
    "refine": [
        (lambda: rm.refine(VOLUME), "views is a Volume"),
        (lambda: rm.refine(VIEWS, 3), "parameters is 3"),
        (lambda: rm.refine(VIEWS, []), "parameters is []"),
        (lambda: rm.refine(VIEWS, settings={}), "settings is {}"),
        (lambda: rm.refine(VIEWS, box=3), "box is 3"),
        (lambda: rm.refine(VIEWS, show=3), "show is 3"),
    ],
    "register": [
        (lambda: rm.register(CAMERA, SQUARE, VOLUME), "volume is a Camera"),
        (lambda: rm.register(VOLUME, CAMERA, SQUARE), "start is a float64 array"),
        (lambda: rm.register(VOLUME, None, CAMERA), "image is None"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, 3), "parameters is 3"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, steps=2.5), "steps is 2.5"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, seed=None), "seed is None"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, march=None), "march is None"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, exposure=3), "exposure is 3"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, show=3), "show is 3"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, mask=3), "mask is 3"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, mask=np.ones((8, 6), bool)), "mask has shape (8, 6)"),
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, mask=np.zeros((6, 8), bool)), "mask takes all pixels"),
    ],
    "Mesh": [
        (lambda: rm.Mesh("ball", [], [], []), "mesh: vertices is 'ball'|mesh: vertices are 'ball'"),
        (lambda: rm.Mesh(LINE, [], LINE, LINE), "mesh: vertices has shape (2, 2)|mesh: vertices have shape (2, 2)"),
        (lambda: rm.Mesh(np.full((3, 3), NAN), [(0, 1, 2)], np.ones((3, 3)), np.ones((3, 3))), "nan at (0, 0)"),
        (lambda: rm.Mesh(np.eye(3), [(0, 1, 3)], np.eye(3), np.eye(3)), "mesh: a face has vertex 3"),
        (lambda: rm.Mesh(np.eye(3), [(0.0, 1.0, 2.0)], np.eye(3), np.eye(3)), "float64"),
        (lambda: rm.Mesh(np.eye(3), [(0, 1, 2)], np.eye(3)[:2], np.eye(3)), "mesh: colours have shape (2, 3)"),
        (lambda: rm.Mesh(np.eye(3), [(0, 1, 2)], 255 * np.eye(3), np.eye(3)), "255"),
    ],
    "isosurface_mesh": [
        (lambda: rm.isosurface_mesh(CAMERA), "volume is a Camera"),
        (lambda: rm.isosurface_mesh(VOLUME, "thick"), "iso is 'thick'"),
        (lambda: rm.isosurface_mesh(VOLUME, NAN), "iso is nan"),
        (lambda: rm.isosurface_mesh(VOLUME, 0.5, box=3), "box is 3"),
        (lambda: rm.isosurface_mesh(VOLUME, 0.5, largest=0), "largest is 0"),
        (lambda: rm.isosurface_mesh(VOLUME, 0.5, faces=2.5), "faces is 2.5|faces are 2.5"),
    ],
    "surface_points": [
        (lambda: rm.surface_points(CAMERA, 5), "volume is a Camera"),
        (lambda: rm.surface_points(VOLUME, 0), "count is 0"),
        (lambda: rm.surface_points(VOLUME, 5, NAN), "iso is nan"),
        (lambda: rm.surface_points(VOLUME, 5, box="all"), "box is 'all'"),
        (lambda: rm.surface_points(VOLUME, 5, largest=-1), "largest is -1"),
        (lambda: rm.surface_points(VOLUME, 5, seed=None), "seed is None"),
    ],
    "export_mesh": [
        (lambda: rm.export_mesh("ball.h5", "ball.ply"), "volume is 'ball.h5'"),
        (lambda: rm.export_mesh(VOLUME, 3), "path is 3"),
        (lambda: rm.export_mesh(VOLUME, "ball.xyz"), "ball.xyz: meshes are written as"),
        (lambda: rm.export_mesh(VOLUME, "ball.ply", "thick"), "iso is 'thick'"),
        (lambda: rm.export_mesh(VOLUME, "ball.ply", box=3), "box is 3"),
        (lambda: rm.export_mesh(VOLUME, "ball.ply", largest=0), "largest is 0"),
        (lambda: rm.export_mesh(VOLUME, "ball.ply", faces="few"), "faces is 'few'|faces are 'few'"),
        (lambda: rm.export_mesh(VOLUME, "ball.ply", points=0), "points is 0|points are 0"),
        (lambda: rm.export_mesh(VOLUME, "ball.ply", overwrite=1), "overwrite is 1"),
    ],
    "write_mesh": [
        (lambda: rm.write_mesh(VOLUME, "a.ply"), "mesh is a Volume"),
        (lambda: rm.write_mesh(None, "a.ply"), "mesh is None"),
        (lambda: rm.write_mesh(MESH, None), "path is None"),
        (lambda: rm.write_mesh(MESH, "a.png"), "a.png: meshes are written as"),
        (lambda: rm.write_mesh(MESH, "a.ply", "yes"), "overwrite is 'yes'"),
    ],
    "render": [
        (lambda: rm.render(CAMERA, VOLUME), "want a Volume, or a list of 1 to 4; call rm.render(volume, camera)"),
        (lambda: rm.render("ball.h5", CAMERA), "volume is 'ball.h5'"),
        (lambda: rm.render(VOLUME, [CAMERA, CAMERA]), "camera is a list of a Camera and 1 more, want one Camera"),
        (lambda: rm.render(VOLUME, CAMERA, background=5), "background is 5"),
        (lambda: rm.render(VOLUME, CAMERA, march=rm.March), "march is the class March"),
        (lambda: rm.render(VOLUME, CAMERA, march="x-ray"), "march is 'x-ray'"),
        (lambda: rm.render(VOLUME, CAMERA, extras="yes"), "extras is 'yes'"),
    ],
    "save": [
        (lambda: rm.save("x.h5", VOLUME), "volume is 'x.h5', want a Volume; call rm.save(volume, path)"),
        (lambda: rm.save(VOLUME, None), "path is None"),
        (lambda: rm.save(VOLUME, 3), "path is 3"),
        (lambda: rm.save(VOLUME, "a.h5", format=3), "format is 3, want HDF5, "),
    ],
    "splat": [
        (lambda: rm.splat(None, [1.0], (3, 3)), "positions are None"),
        (lambda: rm.splat([[1, 2]], "one", (3, 3)), "values are 'one'"),
        (lambda: rm.splat([[1, 2]], [1.0], "big"), "shape is 'big'"),
        (lambda: rm.splat([[1, INF]], [1.0], (3, 3)), "positions are inf at (0, 1)"),
        (lambda: rm.splat([[1, 1]], [1e300], (3, 3)), "values are 1e+300 at (0, 0)"),
    ],
    "ssim": [
        (lambda: rm.ssim(None, SQUARE), "image is None"),
        (lambda: rm.ssim(SQUARE[0, 0], SQUARE[0, 0]), "image has shape (3,)"),
        (lambda: rm.ssim(SQUARE, SQUARE + 255), "truth has 255 at its brightest"),
    ],
    "start": [
        (lambda: rm.start(None), "arch is None"),
        (lambda: rm.start(3), "arch is 3"),
        (lambda: rm.start("cpu", 64), "precision is 64"),
        (lambda: rm.start("cpu", threads="2"), "threads is '2'"),
        (lambda: rm.start("cpu", threads=2.5), "threads is 2.5"),
        (lambda: rm.start("cpu", threads=True), "threads is True"),
    ],
    "view": [
        (lambda: rm.view("ball.h5"), "seen is 'ball.h5', want a Volume, a ScalarVolume or a Fitter"),
        (lambda: rm.view(VOLUME, "scenes"), "views is 'scenes'"),
        (lambda: rm.view(VOLUME, port=70000), "port is 70000"),
        (lambda: rm.view(VOLUME, browser="firefox"), "browser is 'firefox'"),
        (lambda: rm.view(VOLUME, name=3), "name is 3"),
    ],
    "VolumeSummary": [
        *of_record(rm.VolumeSummary, [("shape", (1, 2, 3))]),
        (lambda: rm.VolumeSummary((4, 5, 6), 4), "degree is 4"),
        (lambda: rm.VolumeSummary((4, 5, 6), 0, 3), "box is 3"),
        (lambda: rm.VolumeSummary((4, 5, 6), 0, BOX, "softplus"), "activation is 'softplus'"),
        (lambda: rm.VolumeSummary((4, 5, 6), 0, BOX, ACTIVATION, -1), "bytes_on_disk is -1"),
        (lambda: rm.VolumeSummary((4, 5, 6), 0, BOX, ACTIVATION, 1, 1, 3), "provenance is 3"),
        (lambda: rm.VolumeSummary.of(BOX, 3), "volume is"),
    ],
    "write_png": [
        (lambda: rm.write_png(None, SQUARE), "path is None"),
        (lambda: rm.write_png(SQUARE, "a.png"), "path is a float64 array"),
        (lambda: rm.write_png("a.png", None), "image is None"),
        (lambda: rm.write_png("a.png", RAGGED), "image is [[1, 2], [3]]"),
    ],
}  # fmt: skip
RESULTS = {
    "Fit",
    "TableFit",
    "Forecast",
    "FoundCameras",
    "GradientReport",
    "RaymarchError",
    "Refinement",
    "Registration",
    "Rendering",
    "Report",
    "TorchRendering",
}
RESULTS |= {"Solution", "release"}  # made by the package, not by its users; without arguments
EACH = [pytest.param(*row, id=f"{name}-{k}") for name, rows in ROWS.items() for k, row in enumerate(rows)]


@pytest.fixture
def nothing_built(monkeypatch):
    monkeypatch.setattr(Owner, "_own", lambda *_: pytest.fail("something was made on the device"))


@pytest.mark.parametrize(("call", "said"), EACH)
def test_what_cannot_be_is_refused_in_one_line_that_names_it(call, said, nothing_built):
    with pytest.raises(rm.RaymarchError) as error:
        call()
    text = str(error.value)
    assert any(part in text for part in said.split("|")), text
    assert "\n" not in text and len(text) < 420
    came = re.match(r"\S+ (?:is|are) (.*?), want (.*?)(?:;|$)", text)
    assert came is None or came[1] != came[2]


def test_every_public_name_has_its_rows():
    assert set(ROWS) | RESULTS == set(rm.__all__) and not set(ROWS) & RESULTS


# Every argument has a rule. These are looked at inside, for a rule of theirs asks for another argument.
INSIDE = {
    "FitSettings": set(),
    "DensityActivation": {"name", "forward", "inverse", "value", "slope", "empty", "signed", "linear"},
    "ColourActivation": {"name", "forward", "value", "slope"},
    "TorchCameras": {"world_from_camera", "focal", "principal", "width", "height", "lens", "coefficients"},
    "TorchVolume": {"density", "features", "background", "like"},
    "Mode": {each.name for each in fields(rm.Mode)},
    "preset": {"name", "changes"},
    "fit": {"views", "settings", "changes"},
    "find_cameras": {"changes"},
    "forecast": {"views", "settings", "changes"},
    "Fitter": {"views", "settings", "changes"},
    "Linearised": {"pixels"},
    "jacobian": {"parameters", "pixels"},
    "register": {"image"},
    "psnr": {"image", "truth", "mask"},
    "psnr_halves": {"image", "truth", "mask"},
    "ssim": {"image", "truth", "mask"},
    "gauss_newton": {"start"},
    "levenberg_marquardt": {"start"},
    "splat": {"positions", "values"},
    "write_png": {"image"},
}


def rules_of(name):
    """The rules of a function's or a class's arguments by name, and the arguments."""
    thing = getattr(rm, name)
    if is_dataclass(thing):
        return {f.name: f.metadata["check"] for f in fields(thing) if "check" in f.metadata}, {
            f.name for f in fields(thing)
        }
    made = thing.__init__ if isinstance(thing, type) else thing
    return getattr(made, "rules", {}), set(inspect.signature(made).parameters) - {"self"}


@pytest.mark.parametrize(
    "name", sorted(set(ROWS) - {"plot", "Camera", "Rays", "Views", "Volume", "Operator", "Parameters"})
)
def test_every_argument_has_a_rule(name):
    rules, arguments = rules_of(name)
    assert arguments - set(rules) == INSIDE.get(name, set())


ODD = [
    None, True, np.True_, -1, 2.5, NAN, INF, 1e300, 10**400, 1j, "wide", "", b"x", "a\0b", [], (), {}, set(), RAGGED,
    [None], ["a", 1], [[]], object(), rm.March, len, np.zeros((0, 3)), np.array([None]), np.array("a"), np.float16(3),
    np.zeros((2, 2, 2, 2)), np.ma.masked, range(3), CAMERA, VOLUME, VIEWS, np.array(3 + 0j), float, iter([1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(name for name in ROWS if name != "plot" and rules_of(name)[0]))
def test_no_oddity_gets_another_exception_out_of_a_rule(name):
    refused = 0
    for argument, rule in rules_of(name)[0].items():
        for odd in ODD:
            try:
                rule(argument, odd)
            except rm.RaymarchError as error:
                refused += 1
                assert argument in str(error) and "\n" not in str(error) and len(str(error)) < 420
    assert refused > 10


def test_what_is_right_is_taken_as_it_came():
    """Numbers of NumPy, whole floats, arrays without axes, lists and tuples."""
    march = rm.March(step=np.float32(0.25), batch=np.int64(7), seed=3.0, jitter=np.array(0.5))
    assert (march.step, march.batch, march.seed, march.jitter) == (0.25, 7, 3, 0.5)
    assert {type(march.step), type(march.jitter)} == {float} and {type(march.batch), type(march.seed)} == {int}
    camera = rm.Camera(np.eye(4).tolist(), [5, 6], np.array([1, 2]), np.int32(4), 3.0)
    assert (camera.focal, camera.principal, camera.width, camera.height) == ((5.0, 6.0), (1.0, 2.0), 4, 3)
    assert rm.preset("quick", levels=[[0, 0.5], [0.4, 1]], hull=np.False_).levels == ((0.0, 0.5), (0.4, 1.0))
    assert [view.names for view in VIEWS] == [("000",), ("001",)] and len(VIEWS[np.array([False, True])]) == 1


def test_reports_may_be_drawn_without_their_fit():
    import matplotlib

    matplotlib.use("Agg")
    assert len(plot.history([Report(25, 0.1, 20.0, 1e6, (4, 4, 4), 1.0, 0.5, 0.5, 1)])) == 2
    matplotlib.pyplot.close("all")


def test_a_scale_that_is_no_number_is_not_wanted_to_be_none(tmp_path):
    """NaN is not itself, so that a file's NaN was answered with wanting NaN."""
    import h5py

    rm.save(VOLUME, tmp_path / "ramp.h5")
    with h5py.File(tmp_path / "ramp.h5", "r+") as file:
        file["density"].attrs["scale"] = NAN
    with pytest.raises(rm.RaymarchError, match=r"scale is nan, want a number from 1e-30 to 1e\+30"):
        rm.describe(tmp_path / "ramp.h5")
