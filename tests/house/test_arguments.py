"""Law: what is of a wrong type or out of range is refused at the call, in one line that names it, the device untouched.

Every public name has its values that are refused, and every argument of every public function a rule.
"""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import fields, is_dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import raymarch as rm
from raymarch import plot
from raymarch.device.pool import Owner
from raymarch.engine import ti
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
OUT_OF_CORE = bare(rm.OutOfCoreRenderer)
RENDERER, FITTER, SPLAT = bare(rm.Renderer), bare(rm.Fitter), bare(rm.Splat, count=3, shape=(4, 4), channels=1)


def around(**given):
    return rm.orbit(**{"target": (0, 0, 0), "radius": 4, "count": 3, "like": CAMERA, **given})


# What no argument takes, or few.
NUMBERS = [True, np.True_, -1, 2.5, NAN, INF, 1e300, 10**400, 1j, np.float16(3), np.array(3 + 0j), np.ma.masked]
TEXTS = ["wide", "", b"x", "a\0b", np.array("a")]
LISTS = [[], (), {}, set(), [None], ["a", 1], [[]], RAGGED, range(3), iter([1, 2])]
ARRAYS = [np.zeros((0, 3)), np.array([None]), np.zeros((2, 2, 2, 2))]
MOST = 24  # of the oddities below
ODD = [None, *NUMBERS, *TEXTS, *LISTS, *ARRAYS, object(), rm.March, float, len, CAMERA, VOLUME, VIEWS]


# What functions are called with whose arguments of these names are needed.
USUAL = {
    "b": [1, 2],
    "box": BOX,
    "bytes_on_disk": 3,
    "camera": CAMERA,
    "count": 3,
    "empty": 0,
    "eye": (1, 0, 0),
    "fitter": FITTER,
    "forward": min,
    "height": 2,
    "image": SQUARE,
    "linearise": lambda x: (x, LINE),
    "name": "mine",
    "path": "a.h5",
    "start": [1, 2],
    "truth": SQUARE,
    "views": VIEWS,
    "volume": VOLUME,
    "width": 2,
    "world_from_camera": np.eye(4),
    "world_from_index": np.eye(4),
}


def of(function, given=None, /, **refused):
    """A function, what it is called with beside the usual, and values that each of its arguments refuses by name."""
    needed = [n for n, p in inspect.signature(function).parameters.items() if p.default is p.empty]
    return function, {n: USUAL[n] for n in needed if n in USUAL} | (given or {}), refused


REFUSED = {
    "Activation": [
        of(rm.Activation, scale=[0, -1]),
        of(rm.Activation.of_initial_alpha, {"alpha": 0.1, "scale": 1.0}),
        of(ACTIVATION.sigma, raw=["thick", [NAN]]),
        of(ACTIVATION.raw, sigma=[[1.0, INF]]),
    ],
    "Adam": [
        of(rm.Adam, lr_density=[0], final=[0], beta1=[1], eps=[0, 1e-300]),
        of(rm.Adam().rates),
    ],
    "Bricks": [
        of(
            rm.Bricks,
            {"density": CUBES, "features": COLOURS, "table": TABLE},
            table=[TABLE + 0.5, TABLE - 2, TABLE + 1],
            density=[CUBES * NAN, CUBES[0]],
            features=[CUBES],
        ),
        of(rm.Bricks.of_dense, {"density": CUBES[0], "features": COLOURS[0]}, density=[CUBES], features=[COLOURS]),
        of(CUBE.dense, shape=[8]),
    ],
    "Clip": [
        of(
            rm.Clip,
            box=[[(0, 0, 0), (1, NAN, 1)]],
            planes=[[((0, 0, 0), 1)], [((0, 0, INF), 1)], [(0, 0, 1)], [((0, 0, 1), "far")], [((0, 0, 1), 1)] * 7],
        ),
        of(rm.Clip().keeps, points=[np.zeros((3, 2))]),
        of(rm.Clip().cut),
    ],
    "Camera": [
        of(
            rm.Camera,
            {"focal": (5, 5), "principal": (1, 1)},
            world_from_camera=[None, "here", np.eye(4) * 1j, np.diag([1e30, 1, 1, 1])],
            focal=[5, (5, 5, 5), (5, 1e300), ("5", "5")],
            principal=[None, (1, NAN)],
            width=[2.5],
            height=[True],
            lens=["opencv"],
        ),
        of(CAMERA.project, points=[np.zeros((3, 2))]),
        of(rm.Camera.from_fov, {"fov": 0.7}),
        of(
            rm.Camera.look_at,
            eye=[(NAN, 0, 0), (1, 0), "there", (1e300, 0, 0)],
            target=[[[0, 0, 0]]],
            up=[(0, 0, INF)],
            fov=[True],
            width=[2.5, -1],
            height=[10**9],
        ),
        of(rm.Camera.orthographic, size=[0], eye=[(1, NAN, 0)], width=[0]),
        of(CAMERA.scaled, factor=[0, 1e20]),
        of(CAMERA.moved, world_from_world=[np.eye(3)]),
        of(CAMERA.rays, pixels=["all", [0.5], [48], RAGGED, 3]),
    ],
    "FitSettings": [
        of(
            rm.FitSettings,
            sh_degree=[1.5],
            levels=[((0, NAN),), ((0, 1), 3), ((0.0, 1.0),) * 65],
            density=[["relu"]],
            hull=[1],
            exposure=[1],
            seed=[0.5],
            objective=[rm.Loss.named("huber")],
            mode=["transfer"],
        ),
    ],
    "SfmSettings": [
        of(rm.SfmSettings, camera=[1], max_size=[0], frames=[2], seed=[-1], threads=[0], seconds=[0]),
    ],
    "Fitter": [
        of(rm.Fitter, views=["scenes/tower"], settings=[{}], rays=["all"]),
        of(FITTER.render),
        of(FITTER.run),
    ],
    "Lens": [
        of(rm.Lens, coefficients=[(0.1, 0.2), (0.1,), (NAN,)]),
    ],
    "Linearised": [
        of(rm.Linearised, exposure=[(1, 1, 1)], background=[5], columns=[0], pixels=[[0.5]]),
        of(SEEN.set_camera, pixels=[3]),
        of(SEEN.shifted, {"direction": rm.Parameters()}, h=["a bit"]),
        of(SEEN.adjoint, d_image=[np.zeros((3, 4)), np.full((48, 4), NAN)]),
        of(SEEN.jacobian, parameters=[[]]),
        of(rm.Linearised, {"volume": [VOLUME] * 2}, pixels=[3]),
        of(BOTH.adjoint, d_image=[np.zeros((3, 4))]),
        of(BOTH.shifted, {"direction": [rm.Parameters()] * 2}, h=["a bit"]),
    ],
    "Projector": [
        of(rm.Projector, {"shape": (4, 4, 4), "cameras": [CAMERA]}, shape=[(4, 4)], world_from_index=[np.eye(3)]),
        of(PROJECTOR.project, values=[np.zeros((2, 2))]),
        of(PROJECTOR.back, images=["sinogram"]),
    ],
    "TransferFunction": [
        of(
            rm.TransferFunction,
            TABLE_OF,
            values=["low", [0, NAN, 2]],
            colours=[[[0, 0, 2]] * 3, [[0, 0]] * 3],
            opacities=[None, [0, -0.1, 1]],
            unit_length=[0],
        ),
        of(
            rm.TransferFunction,
            {"values": [0, 1, 2], "colours": [[0, 0, 0]] * 3, "opacities": [0, 0, 0]},
            values=[[0, 2, 1], [0, 1, 1 + 1e-9], [-1e6, 0, 1e-3], [0]],
            colours=[[[0, 0, 0]] * 2],
        ),
        of(rm.TransferFunction(**TABLE_OF), values=["thick"]),
        of(rm.TransferFunction(**TABLE_OF).with_rgba, rgba=[np.zeros((2, 4))]),
    ],
    "fit_table": [
        of(rm.fit_table, {"start": SHADES}, steps=[0], newton=[-1], rays=[1], rate=[0]),
    ],
    "load_table": [
        of(rm.load_table),
    ],
    "save_table": [
        of(rm.save_table, {"table": rm.TransferFunction(**TABLE_OF), "path": "bone.json"}),
    ],
    "Loss": [
        of(rm.Loss, {"name": "mine", "value": SQUARED, "slope": SQUARED}, scale=[0]),
        of(rm.Loss.named, {"name": "huber"}),
    ],
    "DensityActivation": [
        of(
            rm.DensityActivation,
            {"inverse": max},
            name=[None],
            forward=[None],
            inverse=[3],
            value=["x"],
            slope=[0],
            empty=["0", NAN],
        ),
    ],
    "ColourActivation": [
        of(rm.ColourActivation, name=[""], forward=[None], value=[1], slope=[1]),
    ],
    "Mode": [
        of(
            rm.Mode,
            {"composite": min, "tangent": min, "adjoint": min},
            name=[None],
            composite=[None],
            tangent=["e"],
            adjoint=[3],
            ends=[1],
            power=[2],
        ),
    ],
    "March": [
        of(
            rm.March,
            step=[0],
            min_transmittance=[1],
            min_weight=[-0.1],
            batch=[0, 1 << 30],
            mode=[["x-ray"]],
            jitter=[1.5],
            step_jitter=[1.0],
            seed=[1.5, -1],
            clip=[BOX],
            preintegrated=[1],
            supersample=[0, 9, 1.5],
        ),
    ],
    "Objective": [
        of(
            rm.Objective,
            robust=[[rm.Loss.named("huber")]],
            regularisers=[[rm.Loss.named("huber")]],
            opacity_weight=[-1],
        ),
    ],
    "Operator": [
        of(rm.Operator, {"tangent": lambda v: v, "adjoint": LINE.T}, tangent=[LINE], adjoint=[None]),
    ],
    "Parameters": [
        of(rm.Parameters, pose=[[1, 2, 3], "up"], density=[np.zeros(3)], box=[RAGGED], step=[[1.0]]),
    ],
    "Rays": [
        of(
            rm.Rays,
            {"origin": [[0, 0, 0]], "direction": [[0, 0, 1]]},
            origin=[None, [[0, 0, "0"]], [[0, 0, 1e300]], RAGGED, []],
            direction=[[[0, 0, 1e300]]],
        ),
    ],
    "Regulariser": [
        of(rm.Regulariser, {"name": "mine", "of": "optical depth", "value": SQUARED, "slope": SQUARED}),
        of(rm.Regulariser.named, {"name": "sparsity"}, weight=[-1]),
    ],
    "Renderer": [
        of(rm.Renderer, volume=[[], [VOLUME] * 5]),
        of(rm.Renderer, {"volume": [VOLUME] * 2}),
        of(RENDERER.render, camera=[[CAMERA]], background=[5], depth=[1]),
        of(RENDERER.trace, {"rays": RAYS}, depth=[2]),
    ],
    "OutOfCoreRenderer": [
        of(rm.OutOfCoreRenderer, {"path": "v.h5"}, memory=[0, -1.0, "2 GB"], level=[-1, 0.5], format=["nothing"]),
        of(rm.OutOfCoreRenderer, {"path": "v.h5"}, executor=[0, True, ""]),
        of(OUT_OF_CORE.render, camera=[[CAMERA]], background=[5], depth=[1], normals=["yes"]),
        of(OUT_OF_CORE.forecast, camera=[[CAMERA], 5]),
    ],
    "Scene": [
        of(rm.Scene),
    ],
    "Shading": [
        of(
            rm.Shading,
            ambient=[-1],
            shininess=[0],
            lamp=[(0, 0, 0), (1, NAN, 0)],
            colour=[(2, 0, 0)],
            occlusion=[-1],
            matcap=[np.ones((4, 4)), np.full((4, 4, 3), 255)],
        ),
    ],
    "Splat": [
        of(rm.Splat, {"count": 2, "shape": (4, 4)}, shape=[(4, NAN)]),
        of(
            SPLAT.upload,
            {"positions": np.zeros((3, 2)), "values": np.zeros((3, 1))},
            positions=["here", [[0, NAN]] * 3],
            values=[[[1], [2], [INF]]],
        ),
        of(SPLAT.tangent, {"dot_values": np.zeros((3, 1))}, dot_positions=[[[0, 1e300]] * 3]),
    ],
    "Views": [
        of(
            rm.Views,
            {"cameras": [CAMERA] * 2, "images": IMAGES},
            images=[[[[0]]], None, IMAGES / 255, [IMAGES[0], IMAGES[0, ..., :2]]],
            masks=[IMAGES, 3],
            points=[[(0, 0)]],
            downscale=[0.5],
            holdout=[-1],
            cameras=[CAMERA, [CAMERA, None]],
            names=["ab", [1, 2], 3],
            background=[5, "green", (True, 0, 2)],
            source=[3],
            depths=[IMAGES, 3, [np.zeros(4)] * 2],
            sightings=[[(0, 0.5)], [0, 1]],
        ),
        of(VIEWS.depth, view=["first"]),
        of(VIEWS.rgb, view=[2, 0.5]),
        of(VIEWS.image, view=[2]),
        of(VIEWS.mask, view=["first"]),
    ],
    "Selection": [
        of(rm.Selection, crop=[(0, 4, 0, 4), ((4, 0),) * 3], stride=[0, (1, 2)], channel=[-1], time=[0.5]),
    ],
    "ScalarVolume": [
        of(
            rm.ScalarVolume,
            {"slope": 1e20, "values": CUBES[0]},
            values=[
                np.zeros((4, 4)),
                np.zeros((4, 4, 1)),
                CUBES[0] * 1j,
                CUBES[0] * NAN,
                CUBES[0] + 1e40,
                CUBES[0] + 1e20,
            ],
            world_from_index=[np.eye(3)],
            slope=[0],
            name=["two\nlines"],
        ),
        of(rm.ScalarVolume(CUBES[0]).in_world, world=["up"]),
    ],
    "ScalarSummary": [
        of(rm.ScalarSummary, {"shape": (4, 5, 6)}, shape=[(1, 2, 3)], bytes_on_disk=[-1]),
        of(rm.ScalarSummary.of, {"volume": rm.ScalarVolume(CUBES[0])}),
    ],
    "Volume": [
        of(
            rm.Volume.of_bricks,
            {"bricks": CUBE, "shape": (8, 8, 8)},
            bricks=[TABLE],
            shape=[8],
            world_from_index=["here"],
        ),
        of(VOLUME.at, index=[(0, 0), (0, 0.5, 0), ([0, 1], [0, 1, 2], 0), (0, 5, 0), (-1, 0, 0)]),
        of(
            partial(replace, VOLUME),
            density=[None, "thick", RAGGED, np.zeros((0, 4, 4)), np.zeros((4, 5, 6), object), np.zeros((4, 5, 6)) + 1j],
            features=[VOLUME.features + np.float64(1e40)],
            activation=[None, "relu", rm.Activation],
            background=[5],
            provenance=[3],
            world_from_index=["here"],
        ),
        of(VOLUME.moved, world_from_world=[np.eye(3)]),
        of(rm.Volume.from_function, {"sigma": lambda p: 1.0}, shape=[8, (8, 8, 1)], box=[(0, 1)]),
        of(
            rm.Volume.from_array,
            {"density": np.zeros((4, 4, 4))},
            density=[None, np.zeros((4, 4)), np.full((4, 4, 4), NAN)],
            colour=[(255.0, 0, 0), (2.0, 0, 0), (1, 0)],
            spacing=[(1, 0, 1)],
        ),
    ],
    "find_cameras": [
        of(rm.find_cameras, {"photos": "photos", "out": "set"}, photos=["a\0b"], overwrite=[1], seed=[0.5]),
    ],
    "cgls": [
        of(rm.cgls, {"A": OPERATOR}, A=[LINE], b=[[1, NAN]]),
    ],
    "check_gradients": [
        of(rm.check_gradients, {"where": CAMERA}, where=[[]], precision=[64], march=[None], seed=[-1]),
    ],
    "conjugate_gradients": [
        of(rm.conjugate_gradients, {"apply": lambda v: v}, apply=[LINE], iterations=[-1]),
    ],
    "describe": [
        of(rm.describe),
    ],
    "evaluate": [
        of(rm.evaluate, views=[[CAMERA]]),
    ],
    "Checkpoints": [
        of(rm.Checkpoints, {"path": "c"}, path=["a\0b", "a\ud800b"], every=[0], overwrite=[1]),
    ],
    "save_checkpoint": [
        of(rm.save_checkpoint, {"path": "c"}),
    ],
    "load_checkpoint": [
        of(rm.load_checkpoint, {"path": "c"}),
    ],
    "fit": [
        of(
            rm.fit,
            views=["scenes/tower"],
            settings=[3, rm.FitSettings],
            seconds=["60"],
            loss=[lambda image, truth: 0.0],
            box=[(1, 2)],
            ranks=[2, "torchrun"],
        ),
    ],
    "Finding": [
        of(rm.Finding, {"code": "box", "message": "", "cure": "", "severity": "note"}),
    ],
    "diagnose": [
        of(rm.diagnose),
    ],
    "diagnose_fit": [
        of(rm.diagnose_fit, {"train": VIEWS}),
    ],
    "forecast": [
        of(rm.forecast, views=[VOLUME], settings=[None]),
    ],
    "forecast_rendering": [
        of(rm.forecast_rendering),
    ],
    "gauss_newton": [
        of(rm.gauss_newton, linearise=[LINE], start=["start"]),
    ],
    "Format": [
        of(
            rm.Format,
            {"name": "npz", "detect": len, "read": len, "write": len, "suffixes": ".npz"},
            name=["two\nlines"],
            suffixes=[(), [".a/b"]],
            folder=[1],
        ),
    ],
    "jacobian": [
        of(
            rm.jacobian,
            camera=[[CAMERA]],
            parameters=[3],
            background=[(1, 2)],
            exposure=[(1, 1, 1, 0, 0, NAN)],
            pixels=["all"],
        ),
    ],
    "levenberg_marquardt": [
        of(rm.levenberg_marquardt, damping=[0], start=[[1, NAN]]),
    ],
    "load": [
        of(
            rm.load,
            crop=[(1, 2), ((0, 4), (0, 4), (4, 4))],
            stride=[0, (1, 2)],
            time=[-1],
            level=[0.5],
            shape=[(4, 5)],
            offset=[-1],
            spacing=[(1, 0, 1)],
        ),
    ],
    "load_views": [
        of(rm.load_views, {"path": "."}, downscale=[0], depth_unit=[0, "mm"]),
    ],
    "distances_of_z": [
        of(rm.distances_of_z, {"camera": CAMERA, "z": SQUARE[..., 0]}, z=[SQUARE, 3.0], camera=[None]),
    ],
    "orbit": [
        of(around, count=[0, 2.5, "3"], radius=[-1, NAN, None], target=[(0, 0)], elevation=["up"], like=[None]),
    ],
    "ndc_of_frustum": [
        of(rm.ndc_of_frustum, {"near": 1}, world_from_camera=[np.eye(3), 2 * np.eye(4)], near=[0]),
        of(partial(replace, VOLUME), {"ndc_from_world": NDC}, ndc_from_world=[np.eye(4), np.eye(3)], boxes=[2]),
    ],
    "orbit_of_volume": [
        of(rm.orbit_of_volume, box=[[(0, 0, 0)], [(0, 0, 0), (1, NAN, 1)]], size=[0], fov=[4]),
    ],
    "load_camera_path": [
        of(rm.load_camera_path, {"path": "path.json"}, count=[0]),
    ],
    "path_through": [
        of(
            rm.path_through,
            {"cameras": VIEWS, "count": 9},
            cameras=[[CAMERA], [CAMERA, 3], [CAMERA, CAMERA]],
            closed=[1],
            about=[(0, NAN, 0), (0, 1)],
        ),
    ],
    "spiral_of_volume": [
        of(rm.spiral_of_volume, count=[0], elevations=[(0, 95), 30], size=[0], fov=[4]),
    ],
    "write_video": [
        of(rm.write_video, {"path": "a.gif", "frames": [SQUARE]}, fps=[0]),
    ],
    "plot": [
        of(plot.slices, index=["top", RAGGED]),
        of(plot.cameras),
        of(plot.history, fit=[3, [3]]),
        of(plot.comparison),
        of(plot.error_picture, limit=[0]),
        of(plot.error_sheet, {"images": [SQUARE], "truths": [SQUARE]}),
        of(plot.images),
        of(plot.image_set, points=[[1, 2]]),
        of(plot.histogram, bins=[1], window=[(1, 0)]),
        of(plot.iso_histogram, window=[(0, NAN)]),
        of(plot.projections),
        of(
            plot.profile,
            {"line": BOX},
            line=[CAMERA.rays(), [(0, 0, 0)], [(0, 0, 0)] * 2, rm.Rays([[9, 9, 9]], [[1, 0, 0]])],
        ),
        of(plot.frusta, count=[0], length=[0]),
        of(plot.coverage),
        of(plot.residuals, {"evaluation": SCORED}, score=["lpips"], worst=[-1]),
    ],
    "preset": [
        of(rm.preset, seconds=["60"], optimiser=[3]),
    ],
    "psnr": [
        of(
            rm.psnr,
            image=[None, RAGGED, SQUARE * 1j, SQUARE + NAN, SQUARE + 1e300, SQUARE + 255.0, []],
            truth=["truth", SQUARE + INF],
            mask=["all", RAGGED],
        ),
    ],
    "psnr_halves": [
        of(rm.psnr_halves, image=[None], truth=[SQUARE + INF], mask=[np.zeros((16, 16))]),
    ],
    "Reader": [
        of(
            rm.Reader,
            {"name": "my set", "detect": len, "read": len},
            name=[" "],
            files=["../a.json", ["/a.json"], "**/*.json"],
            specificity=[0.5],
        ),
    ],
    "refine": [
        of(rm.refine, parameters=[[]]),
    ],
    "register": [
        of(
            rm.register,
            {"image": SQUARE[:6, :8], "start": CAMERA},
            start=[SQUARE],
            image=[None],
            mask=[np.ones((8, 6), bool)],
        ),
    ],
    "Mesh": [
        of(
            rm.Mesh,
            {"faces": [(0, 1, 2)], "colours": np.eye(3), "normals": np.eye(3), "vertices": np.eye(3)},
            vertices=[LINE, np.full((3, 3), NAN)],
            faces=[[(0.0, 1.0, 2.0)]],
            colours=[np.eye(3)[:2], 255 * np.eye(3)],
        ),
    ],
    "isosurface_mesh": [
        of(rm.isosurface_mesh, largest=[0]),
    ],
    "surface_points": [
        of(rm.surface_points, {"count": 5}, count=[0], largest=[-1]),
    ],
    "export_mesh": [
        of(rm.export_mesh, {"path": "ball.ply"}, largest=[0], points=[0], overwrite=[1]),
    ],
    "export_page": [
        of(rm.export_page, {"path": "ball.html"}, max_mb=[0], pictures=[5], title=[3], overwrite=[1], camera=[5]),
    ],
    "make_page": [
        of(rm.make_page, max_mb=[0], pictures=[5], title=[3], camera=[5], views=[5]),
    ],
    "write_mesh": [
        of(rm.write_mesh, {"mesh": MESH, "path": "a.ply"}),
    ],
    "render_many": [
        of(rm.render_many, {"path": "v.h5", "cameras": [CAMERA]}, path=[[], ["v.h5"] * 5], executor=[0, "", 2.5]),
    ],
    "render": [
        of(rm.render, camera=[[CAMERA, CAMERA]], background=[5]),
    ],
    "save": [
        of(rm.save),
    ],
    "sweep": [
        of(
            rm.sweep,
            {"data": "set", "settings": {"rays": [64]}, "out": "sweep"},
            settings=[[], {}, [3]],
            preset=[5],
            reading=[[1]],
            executor=[0, ""],
        ),
    ],
    "splat": [
        of(
            rm.splat,
            {"positions": [[1, 2]], "values": [1.0], "shape": (3, 3)},
            positions=[None, [[1, INF]]],
            values=["one", [1e300]],
        ),
    ],
    "ssim": [
        of(rm.ssim, image=[None], truth=[SQUARE + 255]),
    ],
    "start": [
        of(rm.start, precision=[64]),
    ],
    "view": [
        of(rm.view, {"seen": VOLUME}, port=[70000]),
    ],
    "VolumeSummary": [
        of(
            rm.VolumeSummary,
            {
                "shape": (4, 5, 6),
                "degree": 0,
                "box": BOX,
                "activation": ACTIVATION,
                "bytes_on_disk": 1,
                "bytes_in_memory": 1,
            },
            shape=[(1, 2, 3)],
            degree=[4],
            bytes_on_disk=[-1],
        ),
        of(rm.VolumeSummary.of, volume=[BOX]),
    ],
    "write_png": [
        of(rm.write_png, {"path": "a.png"}, path=[SQUARE], image=[None, RAGGED]),
    ],
}

# What the message says besides, or what is refused by two arguments together: calls, with a part of what is said.
ROWS = {
    "Bricks": [
        (lambda: rm.Bricks(), "bricks: table is None"),
        (lambda: rm.Bricks(TABLE - 1, CUBES, COLOURS), "bricks: table lacks number 0"),
        (lambda: CUBE.dense((8, 8, 9), 0), "bricks: table of shape (1, 1, 1) does not cover"),
    ],
    "Clip": [
        (lambda: rm.Clip(box=[(1, 1, 1), (0, 0, 0)]), "box [[1.0, 1.0, 1.0]"),
    ],
    "Camera": [
        (
            lambda: rm.Camera(np.eye(4), (5, 5), (4, 4), 8, 8, rm.Lens("simple_radial", (-0.4,))),
            "lens simple_radial (k1 -0.4) cannot be inverted at pixel (0.0, 0.0)",
        ),
        (lambda: rm.Camera(np.eye(4), (5, 5), (1, 1), 1 << 20, 1 << 20), "image is 1048576 x 1048576"),
        (lambda: rm.Lens("orthographic").plane((0, 0, -1)), "lens: an orthographic one has one direction"),
    ],
    "Fitter": [
        (lambda: rm.Fitter(VIEWS, box=[(0, 0, 0), (1, 0, 1)]), "box"),
    ],
    "Lens": [
        (lambda: rm.Lens("fov", (4,)), "omega is 4"),
    ],
    "Linearised": [
        (lambda: SEEN.tangent(None), "directions are [None]"),
        (lambda: SEEN.tangents(3), "directions are 3"),
        (lambda: SEEN.tangent(rm.Parameters(density=np.zeros((4, 4, 4)))), "density has shape (4, 4, 4), want"),
        (lambda: SEEN.tangent(rm.Parameters(colour=np.zeros((4, 5, 6, 12)))), "colour has shape (4, 5, 6, 12)"),
        (lambda: SEEN.tangent(rm.Parameters(pose=[0, 0, 0, 0, 0, NAN])), "pose is nan at 5"),
        (lambda: SEEN.move(3), "directions are [3]"),
        (lambda: SEEN.tangent(rm.Parameters(table=np.zeros((3, 4)))), "the march has no transfer function"),
        (lambda: SEEN.jacobian("tilt"), "parameter is 'tilt'"),
        (lambda: SEEN.jacobian([CAMERA]), "parameter is a Camera"),
        (lambda: rm.Linearised([VOLUME] * 2, CAMERA, march=rm.March(mode="x-ray")), "marches[0]: mode x-ray does not"),
        (lambda: BOTH.tangents(3), "directions are 3"),
        (lambda: BOTH.tangent(rm.Parameters()), "directions are 0, volumes 2; give one for each"),
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
        (lambda: BOTH.jacobian(["pose"]), "directions[0] has pose, want some"),
        (lambda: BOTH.move(rm.Parameters(step=1.0)), "several volumes together do not move by step, want some of"),
    ],
    "Projector": [
        (lambda: rm.Projector((4, 4, 4), np.eye(4), [CAMERA, VOLUME]), "cameras[1] is a Volume"),
    ],
    "TransferFunction": [
        (lambda: rm.TransferFunction.of_record([1, 2]), "table is a list"),
        (lambda: rm.TransferFunction.of_record({**TABLE_OF, "alpha": 1}), "table has 'alpha'"),
        (lambda: rm.TransferFunction.of_record({"values": [0, 1]}), "table has no colours"),
        (lambda: rm.TransferFunction.of_colormap("veridis", 0, 1), "name is 'veridis', want a colour map"),
        (lambda: rm.TransferFunction.of_colormap("bone", 1, 1), "high is 1, want a number over low"),
        (lambda: rm.TransferFunction.of_colormap("bone", 0, 1, 0.5), "opacities is 0.5"),
        (lambda: rm.TransferFunction.of_colormap("bone", 0, 1, knots=1), "knots is 1"),
    ],
    "fit_table": [
        (lambda: rm.fit_table(VOLUME, VIEWS, "bone"), "start is 'bone'"),
    ],
    "load_table": [
        (lambda: rm.load_table("missing.json"), "missing.json: is no file"),
    ],
    "save_table": [
        (lambda: rm.save_table(rm.TransferFunction(**TABLE_OF), "bone.txt"), "end the name in .json"),
    ],
    "Loss": [
        (lambda: rm.Loss("mine"), "loss 'mine': value is None, want a @ti.func"),
        (lambda: rm.Loss.named("l1"), "loss is 'l1', want one of squared, huber"),
    ],
    "Regulariser": [
        (lambda: rm.Regulariser("mine"), "regulariser 'mine': of is None, want one of density difference"),
        (lambda: rm.Regulariser("mine", "optical depth", SQUARED), "regulariser 'mine': slope is None"),
        (lambda: rm.Regulariser.named("tv", 1), "regulariser is 'tv', want one of tv_density"),
    ],
    "Views": [
        (lambda: rm.Views([CAMERA] * 2, IMAGES[..., 0] / 255), "line integrals of density, are for rm.Projector"),
        (lambda: rm.Views([CAMERA] * 2, [IMAGES[0], IMAGES[0, 1:]]), "view 001: image is 8 x 5 but its camera 8 x 6"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, masks=[IMAGES[0, ..., 0] > 300]), "1 masks of 2 views"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, box=[(0, 0, 0)] * 2), "box"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, depths=[None]), "1 depth images of 2 views"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, depths=[np.ones((9, 3))] * 2), "3 x 9 but its image 8 x 6"),
        (lambda: rm.Views([CAMERA] * 2, IMAGES, sightings=[(0, 0)]), "there are 2 views and 0 points"),
        *[(lambda bad=bad: VIEWS[bad], "which is") for bad in (2, -3, 0.5, "a", None, [], [5], slice(2, 2), (0, 1))],
    ],
    "Selection": [
        (lambda: rm.Selection(((0, 9),) * 3).shape((4,) * 3), "ends beyond the shape (4, 4, 4)"),
    ],
    "ScalarVolume": [
        (lambda: rm.ScalarVolume(), "values is None|values are None"),
        (lambda: rm.ScalarVolume(CUBES[0], np.zeros((4, 4))), "world_from_index [[0.0"),
    ],
    "Volume": [
        (lambda: rm.Volume.of_bricks(CUBE, (9, 8, 8), np.eye(4)), "does not cover 9 x 8 x 8"),
        (lambda: rm.Volume(np.zeros((4, 4, 4))), "features and world_from_index are missing"),
        (lambda: rm.Volume(np.zeros((4, 4, 4))), "rm.Volume.from_array(density)"),
        (lambda: rm.Volume.from_function(lambda p: None), "sigma(points) is None"),
        (lambda: rm.Volume.from_function(lambda p: p), "sigma(points) has shape (64, 64, 64, 3), want (64, 64, 64)"),
        (lambda: rm.Volume.from_function(lambda p: 1e300), "sigma(points) is 1e+300"),
        (lambda: rm.Volume.from_function(lambda p: 1.0, lambda p: "red", shape=(2, 2, 2)), "colour(points) is 'red'"),
        (lambda: rm.Volume.from_array(np.zeros((4, 4, 4)), box=BOX, spacing=1.0), "box and spacing"),
    ],
    "find_cameras": [
        (lambda: rm.find_cameras("photos", "set", speed=1), "unknown setting speed; want some of matching"),
    ],
    "Checkpoints": [
        (lambda: rm.Checkpoints("none.checkpoint", resume=True).require(), "there is no checkpoint to resume from"),
    ],
    "load_checkpoint": [
        (lambda: rm.load_checkpoint(FITTER, "none.checkpoint"), "none.checkpoint: no such file"),
    ],
    "fit": [
        (lambda: rm.fit("scenes/tower"), "rm.load_views(path)"),
        (lambda: rm.fit(VIEWS, "slow"), "preset is 'slow'"),
        (lambda: rm.fit(VIEWS, loss=lambda image, truth: 0.0), "docs/extending.md"),
    ],
    "gauss_newton": [
        (lambda: rm.gauss_newton(lambda x: None, [1, 2]), "linearise gives None"),
    ],
    "Format": [
        (lambda: rm.Format(), "format None: name is None, want a text of one line"),
        (lambda: rm.Format("npz", ".npz"), "format 'npz': detect is None, want a function detect(path)"),
        (lambda: rm.Format("npz", ".npz", len, len), "format 'npz': write is None, want a function write("),
    ],
    "jacobian": [
        (lambda: rm.jacobian(VOLUME, CAMERA, ["tilt"]), "parameter is 'tilt'"),
    ],
    "load": [
        (lambda: rm.load("a.raw", shape=(4, 5, 6)), "a.raw: raw values need shape and dtype"),
    ],
    "ndc_of_frustum": [
        (lambda: replace(VOLUME.moved(np.diag([1, 1, 2, 1])), ndc_from_world=NDC), "z from -2 to 2 in NDC, want -1"),
    ],
    "orbit_of_volume": [
        (lambda: rm.orbit_of_volume([(1, 1, 1), (0, 0, 0)], 3), "box"),
    ],
    "load_camera_path": [
        (lambda: rm.load_camera_path("no such.json", 9), "no such.json: is no file"),
    ],
    "write_video": [
        (lambda: rm.write_video("a.avi", [SQUARE]), "a.avi: videos are .mp4"),
        (lambda: rm.write_video("a.gif", []), "a.gif: there are no frames"),
        (lambda: rm.write_video("a.gif", [SQUARE * NAN]), "a.gif: frame 0 has NaN"),
    ],
    "plot": [
        (lambda: plot.error_sheet([SQUARE], ["a"]), "truth is 'a'"),
    ],
    "preset": [
        (lambda: rm.preset(3), "preset is 3"),
        (lambda: rm.preset(["quick"]), "preset is ['quick']"),
    ],
    "psnr_halves": [
        (lambda: rm.psnr_halves(SQUARE[..., 0], SQUARE[..., 0]), "image has shape (16, 16)"),
    ],
    "Reader": [
        (lambda: rm.Reader(), "reader None: name is None, want a text of one line"),
        (lambda: rm.Reader("my set"), "reader 'my set': detect is None, want a function detect(folder)"),
    ],
    "register": [
        (lambda: rm.register(VOLUME, SQUARE[:6, :8], CAMERA, mask=np.zeros((6, 8), bool)), "mask takes all pixels"),
    ],
    "Mesh": [
        (lambda: rm.Mesh(np.eye(3), [(0, 1, 3)], np.eye(3), np.eye(3)), "mesh: a face has vertex 3"),
    ],
    "export_mesh": [
        (lambda: rm.export_mesh(VOLUME, "ball.xyz"), "ball.xyz: meshes are written as"),
    ],
    "export_page": [
        (lambda: rm.export_page(VOLUME, "ball.txt"), "ball.txt: pages are written as"),
    ],
    "make_page": [
        (lambda: rm.make_page(VOLUME, pictures=True), "pictures is True without views"),
    ],
    "write_mesh": [
        (lambda: rm.write_mesh(MESH, "a.png"), "a.png: meshes are written as"),
    ],
    "Renderer": [
        (lambda: rm.Renderer(VOLUME, [rm.March()]), "marches are 1, volume is one; give one rm.March"),
        (lambda: rm.Renderer([VOLUME, CAMERA]), "volumes[1] is a Camera"),
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
    ],
    "render": [
        (lambda: rm.render(CAMERA, VOLUME), "want a Volume, or a list of 1 to 4; call rm.render(volume, camera)"),
    ],
    "save": [
        (lambda: rm.save("x.h5", VOLUME), "volume is 'x.h5', want a Volume; call rm.save(volume, path)"),
    ],
    "ssim": [
        (lambda: rm.ssim(SQUARE[0, 0], SQUARE[0, 0]), "image has shape (3,)"),
    ],
}
RESULTS = {
    "Fit",
    "TableFit",
    "Forecast",
    "FoundCameras",
    "GradientReport",
    "OutOfCoreForecast",
    "Page",
    "RaymarchError",
    "Refinement",
    "Registration",
    "Rendering",
    "Report",
    "Sweep",
    "SweptFit",
    "TorchRendering",
}
RESULTS |= {"Solution", "release", "open_ranks"}  # made by the package, not by its users; without arguments
OF_TORCH = {"TorchMarch", "TorchCameras", "TorchRender", "TorchVolume"}  # tests/torch_bridge has them
NAMES = sorted({*REFUSED, *ROWS, *OF_TORCH})


@pytest.fixture
def nothing_built(monkeypatch):
    monkeypatch.setattr(Owner, "_own", lambda *_: pytest.fail("something was made on the device"))


def refusal(call) -> str:
    """What a call's error says in one line whose two halves differ; empty if it has none."""
    try:
        call()
    except rm.RaymarchError as error:
        text = str(error)
        came = re.match(r"\S+ (?:is|are) (.*?), want (.*?)(?:;|$)", text)
        one_line = "\n" not in text and len(text) < 420
        return text if one_line and (came is None or came[1] != came[2]) else ""
    return ""


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_an_argument_refuses_is_refused_in_one_line_that_names_it(name, nothing_built):
    taken = []
    for function, given, refused in REFUSED[name]:
        for argument, values in refused.items():
            for value in values:
                said = refusal(partial(function, **{**given, argument: value}))
                if not re.match(rf"(?:[^:]*: )?{argument} (is|are|has|have) ", said):
                    taken.append((function, argument, value, said))
    assert taken == []


def is_complete(function, given) -> bool:
    """Whether a call has all that it needs."""
    try:
        inspect.signature(function).bind(**given)
    except TypeError:
        return False
    return True


def rules_of_function(function):
    """The rules of a function's or a record's arguments by name."""
    if isinstance(function, type) and is_dataclass(function):
        return {f.name: f.metadata["check"] for f in fields(function) if "check" in f.metadata}
    return getattr(function.__init__ if isinstance(function, type) else function, "rules", {})


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_the_rule_of_an_argument_refuses_is_refused_by_the_call(name, nothing_built):
    """By the same words, whatever oddity it is."""
    taken = []
    for function, given, _ in REFUSED[name]:
        for argument, rule in rules_of_function(function).items():
            if not is_complete(function, {**given, argument: None}):
                continue
            for odd in ODD:
                wanted = refusal(partial(rule, argument, odd))
                if wanted and wanted not in refusal(partial(function, **{**given, argument: odd})):
                    taken.append((function, argument, odd))
    assert taken == []


@pytest.mark.parametrize("name", sorted(ROWS))
def test_what_cannot_be_is_refused_in_one_line_that_says_why(name, nothing_built):
    said = [(refusal(call), parts.split("|")) for call, parts in ROWS[name]]
    assert [(text, parts) for text, parts in said if not any(part in text for part in parts)] == []


def test_every_public_name_has_its_rows():
    assert set(NAMES) | RESULTS == set(rm.__all__) and not set(NAMES) & RESULTS


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
    """The rules of a public function's or class's arguments by name, and the arguments."""
    thing = getattr(rm, name)
    if is_dataclass(thing):
        return rules_of_function(thing), {f.name for f in fields(thing)}
    made = thing.__init__ if isinstance(thing, type) else thing
    return rules_of_function(thing), set(inspect.signature(made).parameters) - {"self"}


def test_every_argument_has_a_rule():
    without = {}
    for name in set(NAMES) - {"plot", "Camera", "Rays", "Views", "Volume", "Operator", "Parameters"}:
        rules, arguments = rules_of(name)
        if arguments - set(rules) != INSIDE.get(name, set()):
            without[name] = arguments - set(rules)
    assert without == {}


def test_every_rule_refuses_most_oddities_and_raises_nothing_else():
    refused = {
        (name, argument): sum(bool(refusal(partial(rule, argument, odd))) for odd in ODD)
        for name in set(NAMES) - {"plot"}
        for argument, rule in rules_of(name)[0].items()
    }
    assert {of_rule: count for of_rule, count in refused.items() if count < MOST} == {}


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
