"""Law: what a message says to do instead is done, and works. Each row makes a mistake, finds the cure in the one line
that comes, does it, and looks at what it gives; none compiles a kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest

import raymarch as rm
from raymarch.arguments.names_elsewhere import SYNONYMS
from raymarch.arguments.similar_names import similar_names

rng = np.random.default_rng(5)
S, C = rng.random((8, 9, 10)).astype(np.float32), rng.random((8, 9, 10, 3)).astype(np.float32)
A = np.diag([1.0, 2.0, 3.0, 1.0])
A[:3, 3] = 10, 20, 30
IMAGES = rng.integers(0, 256, (2, 6, 8, 3)).astype(np.uint8)
CAMERA = rm.Camera.look_at((0, -4, 0), width=8, height=6)
PAIR = [CAMERA, CAMERA]
UNIT = [(-1, -1, -1), (1, 1, 1)]
from_array, Scalar, look_at, orbit = rm.Volume.from_array, rm.ScalarVolume, rm.Camera.look_at, rm.orbit_of_volume


def colours_are(volume, wanted):
    got = 0.28209479177387814 * volume.features + 0.5
    np.testing.assert_allclose(got, np.broadcast_to(wanted, got.shape), atol=1e-5)


def affine_is(volume, wanted):
    np.testing.assert_allclose(volume.world_from_index, wanted)


def images_are(views):
    np.testing.assert_array_equal(views.images, IMAGES)


def nothing(_):
    """Whatever it gives is right: it was not refused."""


ROWS = {  # mistake, words of the message, what they say to do, and a look at what that gives
    "colours, channels first": (
        lambda: from_array(S, np.moveaxis(C, -1, 0)),
        "pass np.moveaxis(it, 0, -1)",
        lambda: from_array(S, np.moveaxis(np.moveaxis(C, -1, 0), 0, -1)),
        lambda v: colours_are(v, C),
    ),
    "colours of z, y, x": (
        lambda: from_array(S, np.swapaxes(C, 0, 2)),
        "its axes are z, y, x: pass np.swapaxes(it, 0, 2)",
        lambda: from_array(S, np.swapaxes(np.swapaxes(C, 0, 2), 0, 2)),
        lambda v: colours_are(v, C),
    ),
    "colours of a plane": (
        lambda: from_array(np.ones((8, 8, 8)), np.ones((8, 8, 3))),
        "give one colour for all, or one a sample",
        lambda: from_array(np.ones((8, 8, 8)), (0.25, 0.5, 1)),
        lambda v: colours_are(v, (0.25, 0.5, 1)),
    ),
    "colours of a row": (
        lambda: from_array(S, np.ones((10, 3))),
        "want (3,) or (8, 9, 10, 3)",
        lambda: from_array(S, C),
        nothing,
    ),
    "colours with alpha": (
        lambda: from_array(S, np.ones((8, 9, 10, 4))),
        "pass it[..., :3]",
        lambda: from_array(S, np.ones((8, 9, 10, 4))[..., :3]),
        lambda v: colours_are(v, 1),
    ),
    "a colour with alpha": (
        lambda: from_array(S, (1, 0, 0, 1)),
        "leave the fourth, alpha, out",
        lambda: from_array(S, (1, 0, 0)),
        lambda v: colours_are(v, (1, 0, 0)),
    ),
    "greys": (
        lambda: from_array(S, S),
        "of greys pass it[..., None]",
        lambda: from_array(S, S[..., None]),
        lambda v: colours_are(v, S[..., None]),
    ),
    "a colour of 255": (
        lambda: from_array(S, (255, 128, 0)),
        "divide it by 255, or give it as uint8",
        lambda: from_array(S, np.array((255, 128, 0), np.uint8)),
        lambda v: colours_are(v, (1, 128 / 255, 0)),
    ),
    "a complex density": (
        lambda: from_array(S + 1j),
        "of magnitudes pass np.abs(it)",
        lambda: from_array(np.abs(S + 1j)),
        lambda v: np.testing.assert_allclose(v.density, np.hypot(S, 1), rtol=1e-6),
    ),
    "density, one channel last": (
        lambda: from_array(S[..., None]),
        "pass it[..., 0]",
        lambda: from_array(S[..., None][..., 0]),
        nothing,
    ),
    "density, one channel first": (
        lambda: from_array(S[None]),
        "pass it[0]",
        lambda: from_array(S[None][0]),
        nothing,
    ),
    "densities and colours in one": (
        lambda: from_array(np.ones((8, 9, 10, 4))),
        "it[..., 3] and it[..., :3]",
        lambda: from_array(np.ones((8, 9, 10, 4))[..., 3], np.ones((8, 9, 10, 4))[..., :3]),
        nothing,
    ),
    "a batch of one": (
        lambda: from_array(S[None, None]),
        "pass it[0, 0]",
        lambda: from_array(S[None, None][0, 0]),
        nothing,
    ),
    "values of several channels": (
        lambda: Scalar(C),
        "pass it[..., 0]",
        lambda: Scalar(C[..., 0]),
        lambda v: np.testing.assert_array_equal(v.values, C[..., 0]),
    ),
    "values with a channel first": (lambda: Scalar(S[None]), "pass it[0]", lambda: Scalar(S[None][0]), nothing),
    "a slice as a volume": (
        lambda: Scalar(S[0]),
        "np.stack several along a third axis",
        lambda: Scalar(np.stack([S[0], S[1]], 2)),
        nothing,
    ),
    "masked values": (
        lambda: Scalar(np.ma.masked_greater(S, 0.5)),
        "filled(number)",
        lambda: Scalar(np.ma.masked_greater(S, 0.5).filled(0)),
        nothing,
    ),
    "values of NaN": (
        lambda: Scalar(np.where(S > 0.5, np.nan, S)),
        "put a number in their place",
        lambda: Scalar(np.nan_to_num(np.where(S > 0.5, np.nan, S))),
        nothing,
    ),
    "values too large for the space they are in": (
        lambda: Scalar(1e29 * np.ones((9, 9, 9)), 100.0 * A @ np.diag([1, 1, 1, 0.01])).as_volume(),
        "put numbers within",
        lambda: Scalar(1e26 * np.ones((9, 9, 9)), 100.0 * A @ np.diag([1, 1, 1, 0.01])).as_volume(),
        nothing,
    ),
    "features, channels first": (
        lambda: rm.Volume(S, np.moveaxis(C, -1, 0), A),
        "pass np.moveaxis(it, 0, -1)",
        lambda: rm.Volume(S, np.moveaxis(np.moveaxis(C, -1, 0), 0, -1), A),
        nothing,
    ),
    "features with alpha": (
        lambda: rm.Volume(S, np.ones((8, 9, 10, 4)), A),
        "pass it[..., :3]",
        lambda: rm.Volume(S, np.ones((8, 9, 10, 4))[..., :3], A),
        nothing,
    ),
    "three spacings as an affine": (
        lambda: Scalar(S, (1, 2, 3)),
        "spacings make np.diag([1.0, 2.0, 3.0, 1.0])",
        lambda: Scalar(S, np.diag([1.0, 2.0, 3.0, 1.0])),
        lambda v: np.testing.assert_array_equal(v.spacing, (1, 2, 3)),
    ),
    "one spacing as an affine": (
        lambda: Scalar(S, 0.5),
        "np.diag([0.5, 0.5, 0.5, 1.0])",
        lambda: Scalar(S, np.diag([0.5, 0.5, 0.5, 1.0])),
        lambda v: np.testing.assert_array_equal(v.spacing, (0.5, 0.5, 0.5)),
    ),
    "an affine of 3 x 3": (
        lambda: Scalar(S, A[:3, :3]),
        "M = np.eye(4); M[:3, :3] = it",
        lambda: Scalar(S, corner(A[:3, :3])),
        lambda v: np.testing.assert_array_equal(v.spacing, (1, 2, 3)),
    ),
    "an affine of 3 x 4": (
        lambda: Scalar(S, A[:3]),
        "np.vstack([it, [0, 0, 0, 1]])",
        lambda: Scalar(S, np.vstack([A[:3], [0, 0, 0, 1]])),
        lambda v: affine_is(v, A),
    ),
    "an affine of 4 x 3": (
        lambda: Scalar(S, A.T[:, :3]),
        "np.vstack([np.transpose(it), [0, 0, 0, 1]])",
        lambda: Scalar(S, np.vstack([np.transpose(A.T[:, :3]), [0, 0, 0, 1]])),
        lambda v: affine_is(v, A),
    ),
    "an affine in a row": (
        lambda: Scalar(S, A.ravel()),
        "np.reshape(it, (4, 4))",
        lambda: Scalar(S, np.reshape(A.ravel(), (4, 4))),
        lambda v: affine_is(v, A),
    ),
    "twelve numbers of an affine": (
        lambda: Scalar(S, A[:3].ravel().tolist()),
        "np.vstack([np.reshape(it, (3, 4)), [0, 0, 0, 1]])",
        lambda: Scalar(S, np.vstack([np.reshape(A[:3].ravel(), (3, 4)), [0, 0, 0, 1]])),
        lambda v: affine_is(v, A),
    ),
    "an affine transposed": (
        lambda: Scalar(S, A.T),
        "looks transposed, pass its .T",
        lambda: Scalar(S, A.T.T),
        lambda v: affine_is(v, A),
    ),
    "spacing by its name": (
        lambda: Scalar(S, spacing=(1, 2, 3)),
        "did you mean 'world_from_index'?",
        lambda: Scalar(S, world_from_index=A),
        lambda v: affine_is(v, A),
    ),
    "a box in a row": (
        lambda: from_array(S, box=(-1, -2, -3, 1, 2, 3)),
        "did you mean [[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]?",
        lambda: from_array(S, box=[[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]),
        lambda v: np.testing.assert_allclose(v.box, [(-1, -2, -3), (1, 2, 3)]),
    ),
    "a box of intervals in a row": (
        lambda: from_array(S, box=(-1, 1, -2, 2, -3, 3)),
        "did you mean [[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]?",
        lambda: from_array(S, box=[[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]),
        nothing,
    ),
    "a box of three intervals": (
        lambda: from_array(S, box=[(-1, 1), (-2, 2), (-3, 3)]),
        "did you mean [[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]?",
        lambda: from_array(S, box=[[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]]),
        nothing,
    ),
    "a box of one interval": (
        lambda: from_array(S, box=(-1, 1)),
        "did you mean [[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]?",
        lambda: from_array(S, box=[[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]),
        nothing,
    ),
    "a box upside down": (
        lambda: from_array(S, box=UNIT[::-1]),
        "give the two the other way round",
        lambda: from_array(S, box=UNIT),
        nothing,
    ),
    "a volume for a box": (lambda: orbit(Scalar(S), 4), "pass its .box", lambda: orbit(Scalar(S).box, 4), nothing),
    "degrees": (
        lambda: look_at((0, -4, 0), fov=60),
        "60 degrees are math.radians(60)",
        lambda: look_at((0, -4, 0), fov=math.radians(60), width=100, height=50),
        lambda c: np.testing.assert_allclose(c.focal, 50 / math.tan(math.radians(30))),
    ),
    "degrees of an orbit": (
        lambda: orbit(UNIT, 4, fov=50),
        "math.radians(50)",
        lambda: orbit(UNIT, 4, fov=math.radians(50)),
        nothing,
    ),
    "a size for a width": (
        lambda: look_at((0, -4, 0), size=(640, 480)),
        "did you mean 'width' or 'height'?",
        lambda: look_at((0, -4, 0), width=640, height=480),
        lambda c: nothing((c.width, c.height) == (640, 480)),
    ),
    "height before width": (
        lambda: rm.Views(PAIR, np.zeros((2, 8, 6, 3), np.uint8)),
        "did you mean width=6, height=8?",
        lambda: rm.Views([look_at((0, -4, 0), width=6, height=8)] * 2, np.zeros((2, 8, 6, 3), np.uint8)),
        nothing,
    ),
    "images in 0..255 as floats": (
        lambda: rm.Views(PAIR, IMAGES.astype(float)),
        "pass images.astype(np.uint8)",
        lambda: rm.Views(PAIR, IMAGES.astype(float).astype(np.uint8)),
        images_are,
    ),
    "images in 0..1": (
        lambda: rm.Views(PAIR, IMAGES / 255),
        "pass np.rint(255 * images).astype(np.uint8)",
        lambda: rm.Views(PAIR, np.rint(255 * (IMAGES / 255)).astype(np.uint8)),
        images_are,
    ),
    "images of 16 bits": (
        lambda: rm.Views(PAIR, IMAGES.astype(np.uint16) * 257),
        "pass (images // 257).astype(np.uint8)",
        lambda: rm.Views(PAIR, (IMAGES.astype(np.uint16) * 257 // 257).astype(np.uint8)),
        images_are,
    ),
    "images, channels first": (
        lambda: rm.Views(PAIR, np.moveaxis(IMAGES, -1, 1)),
        "pass np.moveaxis(images, 1, -1)",
        lambda: rm.Views(PAIR, np.moveaxis(np.moveaxis(IMAGES, -1, 1), 1, -1)),
        images_are,
    ),
    "one image": (
        lambda: rm.Views([CAMERA], IMAGES[0]),
        "one image is images[None]",
        lambda: rm.Views([CAMERA], IMAGES[0][None]),
        nothing,
    ),
    "one camera": (
        lambda: rm.Views(CAMERA, IMAGES[:1]),
        "one is [camera]",
        lambda: rm.Views([CAMERA], IMAGES[:1]),
        nothing,
    ),
    "images before cameras": (
        lambda: rm.Views(IMAGES, PAIR),
        "cameras come before images",
        lambda: rm.Views(PAIR, IMAGES),
        images_are,
    ),
    "masks of numbers": (
        lambda: rm.Views(PAIR, IMAGES, masks=[IMAGES[0, ..., 0], None]),
        "pass mask > 0",
        lambda: rm.Views(PAIR, IMAGES, masks=[IMAGES[0, ..., 0] > 0, None]),
        nothing,
    ),
    "a background of 255": (
        lambda: rm.Views(PAIR, IMAGES, background=(255, 0, 51)),
        "of 0..255 it is 1,0,0.2",
        lambda: rm.Views(PAIR, IMAGES, background=(1, 0, 0.2)),
        nothing,
    ),
    "a background by a name": (
        lambda: rm.Views(PAIR, IMAGES, background="grey"),
        "say 0.502,0.502,0.502",
        lambda: rm.Views(PAIR, IMAGES, background="0.502,0.502,0.502"),
        nothing,
    ),
    "a background with alpha": (
        lambda: rm.Views(PAIR, IMAGES, background=(1, 1, 1, 1)),
        "leave the fourth, alpha, out",
        lambda: rm.Views(PAIR, IMAGES, background=(1, 1, 1)),
        nothing,
    ),
    "an activation by name": (
        lambda: rm.Volume(S, C, A, "softplus"),
        "rm.Activation('softplus') is one",
        lambda: rm.Volume(S, C, A, rm.Activation("softplus")),
        nothing,
    ),
    "a table by name": (
        lambda: rm.March(mode="transfer", transfer="bone"),
        "rm.TransferFunction.of_colormap('bone', low, high) makes one",
        lambda: rm.March(mode="transfer", transfer=rm.TransferFunction.of_colormap("bone", 0, 1)),
        nothing,
    ),
    "a table through no mode": (
        lambda: rm.March(transfer=rm.TransferFunction.of_colormap("bone", 0, 1)),
        "say mode='transfer' beside it",
        lambda: rm.March(mode="transfer", transfer=rm.TransferFunction.of_colormap("bone", 0, 1)),
        nothing,
    ),
    "an iso in no mode": (
        lambda: rm.March(iso=1.0),
        "say mode='isosurface'",
        lambda: rm.March(mode="isosurface", iso=1.0),
        nothing,
    ),
    "a mode for a march": (
        lambda: rm.render(Scalar(S), CAMERA, march="mip"),
        "rm.March(mode='maximum') is one",
        lambda: rm.March(mode="maximum"),
        nothing,
    ),
    "an array for a volume": (
        lambda: rm.render(S, CAMERA),
        "rm.ScalarVolume(it) makes one of a scan's values, rm.Volume.from_array(it)",
        lambda: (Scalar(S), from_array(S)),
        nothing,
    ),
    "a camera for a volume": (
        lambda: rm.render(CAMERA, Scalar(S)),
        "call rm.render(volume, camera)",
        lambda: None,
        nothing,
    ),
    "steps for a step": (lambda: rm.March(steps=0.5), "did you mean 'step'?", lambda: rm.March(step=0.5), nothing),
    "a learning rate": (
        lambda: rm.preset("quick", lr=0.1),
        "did you mean 'lr_density' or 'lr_colour'?",
        lambda: rm.preset("quick", lr_density=0.1, lr_colour=0.1),
        nothing,
    ),
    "a learning rate of settings": (
        lambda: rm.FitSettings(lr=0.1),
        "did you mean 'optimiser'?",
        lambda: rm.FitSettings(optimiser=rm.Adam(lr_density=0.1)),
        nothing,
    ),
    "iterations": (
        lambda: rm.preset("quick", iterations=9),
        "did you mean 'steps'?",
        lambda: rm.preset("quick", steps=9),
        nothing,
    ),
    "epochs": (lambda: rm.FitSettings(epochs=9), "did you mean 'steps'?", lambda: rm.FitSettings(steps=9), nothing),
    "a light": (
        lambda: rm.Shading(light=(0, 0, 1)),
        "did you mean 'lamp'?",
        lambda: rm.Shading(lamp=(0, 0, 1)),
        nothing,
    ),
    "a place that is missing": (
        lambda: rm.Camera(500, np.eye(4), 640, 480),
        "its arguments are world_from_camera, focal, principal, width",
        lambda: rm.Camera(np.eye(4), (500, 500), (320, 240), 640, 480),
        nothing,
    ),
    "what to plot": (
        lambda: rm.plot.slices(Scalar(S), what="density"),
        "did you mean 'sigma'?",
        lambda: rm.plot.slices(Scalar(S), what="sigma"),
        nothing,
    ),
    "a map's name": (
        lambda: rm.plot.slices(Scalar(S), colormap="Bone"),
        "did you mean 'bone'?",
        lambda: rm.plot.slices(Scalar(S), colormap="bone"),
        nothing,
    ),
    "a constant's surface": (
        lambda: rm.isosurface_mesh(Scalar(np.full((4, 4, 4), 1e7))),
        "check the file",
        lambda: None,
        nothing,
    ),
    "values that single precision hardly tells apart": (
        lambda: table_of(Scalar(1000 + 1e-6 * S.astype(float))),
        "subtract the least",
        lambda: table_of(Scalar(least_off(1000 + 1e-6 * S.astype(float)))),
        nothing,
    ),
    "values less than single precision holds": (
        lambda: table_of(Scalar(1e-40 * S.astype(float))),
        "multiply them, so that they are apart by 1e-30 or more",
        lambda: table_of(Scalar(1e40 * (1e-40 * S.astype(float)))),
        nothing,
    ),
    "a matrix for an operator": (
        lambda: rm.cgls(np.eye(3), np.ones(3)),
        "rm.Operator(lambda v: A @ v, lambda w: A.T @ w)",
        lambda: rm.cgls(rm.Operator(lambda v: np.eye(3) @ v, lambda w: np.eye(3).T @ w), np.ones(3)),
        lambda x: np.testing.assert_allclose(x, 1),
    ),
    "a name of a format": (
        lambda: rm.save(Scalar(S), "x.nifti"),
        "did you mean '.nii.gz'?",
        lambda: None,
        nothing,
    ),
    "one ray": (
        lambda: rm.Rays([0, 0, 0], [[0, 0, 1]]),
        "of one ray pass [it]",
        lambda: rm.Rays([[0, 0, 0]], [[0, 0, 1]]),
        nothing,
    ),
    "rays in columns": (
        lambda: rm.Rays(np.zeros((3, 5)), np.ones((5, 3))),
        "pass np.transpose(it)",
        lambda: rm.Rays(np.transpose(np.zeros((3, 5))), np.ones((5, 3))),
        nothing,
    ),
    "rays of an image": (
        lambda: rm.Rays(np.zeros((2, 2, 3)), np.ones((4, 3))),
        "pass np.reshape(it, (-1, 3))",
        lambda: rm.Rays(np.reshape(np.zeros((2, 2, 3)), (-1, 3)), np.ones((4, 3))),
        nothing,
    ),
    "a path for views": (
        lambda: rm.evaluate(Scalar(S), "scenes/tower"),
        "rm.load_views('scenes/tower') reads them",
        lambda: None,
        nothing,
    ),
    "colours of a table in 0..255": (
        lambda: rm.TransferFunction([0, 1], [(0, 0, 0), (255, 0, 0)], [0, 1]),
        "divide them by 255",
        lambda: rm.TransferFunction([0, 1], np.array([(0, 0, 0), (255, 0, 0)]) / 255, [0, 1]),
        nothing,
    ),
    "colours of a table with opacities": (
        lambda: rm.TransferFunction([0, 1], np.eye(4)[:2], [0, 1]),
        "pass it[:, :3], and it[:, 3] as opacities",
        lambda: rm.TransferFunction([0, 1], np.eye(4)[:2][:, :3], np.eye(4)[:2][:, 3]),
        nothing,
    ),
    "settings as a mapping": (
        lambda: rm.fit(rm.Views(PAIR, IMAGES), {"steps": 3}),
        "rm.preset('default', **it)",
        lambda: rm.preset("default", **{"steps": 3}),
        nothing,
    ),
    "an image, channels first": (
        lambda: rm.ssim(np.zeros((3, 16, 20)), np.zeros((3, 16, 20))),
        "pass np.moveaxis(image, 0, -1), of the truth too",
        lambda: rm.ssim(*[np.moveaxis(np.zeros((3, 16, 20)), 0, -1)] * 2),
        lambda x: np.testing.assert_allclose(x, 1),
    ),
    "a floor over a limit": (
        lambda: rm.plot.slices(Scalar(S), floor=2.0, limit=1.0),
        "leave one out to have it found",
        lambda: (rm.plot.slices(Scalar(S), floor=2.0), rm.plot.slices(Scalar(S), limit=-1.0)),
        nothing,
    ),
}


def corner(matrix):
    whole = np.eye(4)
    whole[:3, :3] = matrix
    return whole


def table_of(volume):
    from raymarch.volumes.default_table import default_table

    return default_table(volume.as_volume())


def least_off(values):
    return values - values.min()


@pytest.mark.parametrize("name", ROWS)
def test_what_the_message_says_is_done_and_works(name):
    mistake, words, cure, look = ROWS[name]
    with pytest.raises(rm.RaymarchError) as told:
        mistake()
    assert words in str(told.value) and "\n" not in str(told.value)
    assert len(str(told.value).split("; ")[-1]) < 200, "nobody reads on"
    look(cure())


NAMED = {  # a name that is wrong, and the one that is meant
    **{("March", each): "maximum" for each in ("mip", "MIP", "max", "Maximum", "maximun", "MaxIP")},
    **{("March", each): "average" for each in ("mean", "avg", "Average", "AVG")},
    **{("March", each): "isosurface" for each in ("iso", "surface", "Isosurface", "iso-surface", "isosurfaces")},
    **{("March", each): "x-ray" for each in ("xray", "X-Ray", "drr", "x_ray")},
    **{("March", each): "transfer" for each in ("dvr", "tf", "transfer-function", "composite")},
    **{("preset", each): "quick" for each in ("Quick", "fast", "quikc", "QUICK", "preview")},
    **{("preset", each): "high" for each in ("best", "quality", "hig")},
    **{("start", each): "f64" for each in ("float64", "double", "F64")},
    **{("start", each): "f32" for each in ("float32", "single", "fp32")},
    **{("Lens", each): "fisheye" for each in ("opencv_fisheye", "OPENCV_FISHEYE", "Fisheye", "fish-eye")},
    **{("Lens", each): "pinhole" for each in ("PINHOLE", "simple_pinhole", "perspective")},
    **{("Activation", each): "softplus" for each in ("Softplus", "soft_plus", "softplsu")},
    ("Activation", "exp"): "exponential",
    **{("loss", each): "squared" for each in ("mse", "L2", "Squared")},
}
CALLS = {
    "March": (lambda name: rm.March(mode=name, **WITH.get(name, {}))),
    "preset": rm.preset,
    "Lens": lambda name: rm.Lens(name, (0.0,) * COUNTS.get(name, 0)),
    "Activation": rm.Activation,
    "loss": lambda name: rm.FitSettings(loss=name),
}
WITH = {"isosurface": {"iso": 1.0}, "transfer": {"transfer": rm.TransferFunction.of_colormap("bone", 0, 1)}}
COUNTS = {"fisheye": 4}


def precision_named(name):
    from raymarch.arguments.checks import one_of

    return one_of("f32", "f64")("precision", name)  # the rule of rm.start, which would start the process


CALLS["start"] = precision_named


@pytest.mark.parametrize(("call", "name"), NAMED)
def test_the_name_that_is_suggested_is_taken(call, name):
    meant = NAMED[call, name]
    with pytest.raises(rm.RaymarchError) as told:
        CALLS[call](name)
    assert f"did you mean {meant!r}?" in str(told.value)
    CALLS[call](meant)


def test_a_name_like_none_is_answered_by_all_there_are():
    with pytest.raises(rm.RaymarchError, match="want one of quick, default, high, medium, photos$"):
        rm.preset("zzz")
    with pytest.raises(rm.RaymarchError, match="unknown setting wings; want some of resolution, "):
        rm.preset("quick", wings=2)
    assert similar_names("zzz", ["quick"]) == similar_names(None, ["quick"]) == similar_names("", ["quick"]) == []


def test_what_others_call_it_is_a_name_of_ours():
    """A suggestion that is nowhere to be taken would be a riddle."""
    names = {name.replace("_", "-") for name in SYNONYMS}
    for ours, called in SYNONYMS.items():
        assert called == called.casefold() and "_" not in called, ours
        assert not {ours.replace("_", "-")} & set(called.split()) - {"size", "spacing"}, ours
    assert "maximum" in names


def test_a_wrong_name_of_an_argument_is_a_type_error_too():
    with pytest.raises(TypeError):
        rm.March(steps=2)
    with pytest.raises(TypeError):
        rm.orbit((0, 0, 0), 4.0, 8)


SHELL = {
    ("render", "v.h5", "--mode", "mip", "--out", "x"): "did you mean 'maximum'?",
    ("render", "v.h5", "--mode", "X-Ray", "--out", "x"): "did you mean 'x-ray'?",
    ("fit", "views", "--preset", "fast"): "did you mean 'quick'?",
    ("train", "views"): "did you mean raymarch fit?",
    ("Info", "v.h5"): "did you mean raymarch info?",
    ("cameras", "photos", "--matching", "video", "--out", "x"): "did you mean 'sequential'?",
    ("check-gradients", "v.h5", "--precision", "double"): "did you mean 'f64'?",
}


@pytest.mark.parametrize("words", SHELL)
def test_the_shell_suggests_too(words, capsys):
    from raymarch.cli import main

    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 2
    assert SHELL[words] in capsys.readouterr().err.splitlines()[-1]
