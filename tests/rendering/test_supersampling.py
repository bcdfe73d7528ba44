"""Law: a pixel of several rays is the mean of those of a picture that is finer by so many, its depth its centre's."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest

import raymarch as rm
from raymarch.rendering.march_settings import supersample_of

BALL = cases.volume("rotated")
CAMERA = rm.Camera.look_at((2.0, -3.0, 1.5), BALL.corners.mean(0), width=13, height=9)
LENS = replace(CAMERA, lens=rm.Lens("opencv", (0.1, -0.02, 0.0, 0.001, 0.002)))
PARALLEL = rm.Camera.orthographic((2.0, -3.0, 1.5), BALL.corners.mean(0), size=2.5, width=13, height=9)
CAMERAS = {"pinhole": CAMERA, "lens": LENS, "orthographic": PARALLEL}
EPS = 64 * np.finfo(np.float32).eps


def meant(picture, side):
    """Means (height, width, ...) of blocks of a picture that is finer by `side`."""
    height, width = (n // side for n in picture.shape[:2])
    return picture.reshape(height, side, width, side, *picture.shape[2:]).mean((1, 3))


@pytest.mark.parametrize("side", [2, 3])
@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
def test_a_pixel_is_the_mean_of_a_finer_picture(camera, side):
    for mode in ("emission-absorption", "maximum"):
        finer = rm.render(BALL, camera.scaled(side), march=rm.March(mode=mode), extras=True)
        plain = rm.render(BALL, camera, march=rm.March(mode=mode), extras=True)
        seen = rm.render(BALL, camera, march=rm.March(mode=mode, supersample=side), extras=True)
        np.testing.assert_allclose(seen.image, meant(finer.image, side), rtol=0, atol=EPS * np.abs(finer.image).max())
        np.testing.assert_allclose(seen.opacity, meant(finer.opacity, side), rtol=0, atol=EPS)
        assert np.abs(seen.image - plain.image).max() > 1e-3
        np.testing.assert_array_equal(seen.depth, plain.depth)
        np.testing.assert_array_equal(seen.normals, plain.normals)


def test_each_ray_of_a_pixel_looks_its_own_colour_up():
    """Along the outline of a surface too, where some of a pixel's rays miss it."""
    matcap = np.random.default_rng(0).uniform(0, 1, (8, 8, 3))
    surface = {"mode": "isosurface", "iso": 1.0, "shading": rm.Shading(matcap=matcap)}
    finer = rm.render(BALL, CAMERA.scaled(2), march=rm.March(**surface), extras=True)
    plain = rm.render(BALL, CAMERA, march=rm.March(**surface), extras=True)
    seen = rm.render(BALL, CAMERA, march=rm.March(**surface, supersample=2), extras=True)
    np.testing.assert_allclose(seen.image, meant(finer.image, 2), rtol=0, atol=EPS)
    np.testing.assert_allclose(seen.opacity, meant(finer.opacity, 2), rtol=0, atol=EPS)
    assert ((0 < seen.opacity) & (seen.opacity < 1)).any()
    np.testing.assert_array_equal(seen.depth, plain.depth)
    np.testing.assert_array_equal(seen.normals, plain.normals)


@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_a_picture_does_not_depend_on_its_batches(jitter):
    march = rm.March(supersample=2, jitter=jitter)
    whole = rm.render(BALL, CAMERA, march=march)
    for batch in (1, 7, 100):
        np.testing.assert_array_equal(rm.render(BALL, CAMERA, march=replace(march, batch=batch)), whole)


def test_rays_that_are_given_are_single_ones():
    rays, traced = CAMERA.rays(), []
    for march in (rm.March(supersample=3), rm.March()):
        with rm.Renderer(BALL, march) as renderer:  # one after the other they take one tree
            traced.append(renderer.trace(rays, depth=True))
    for got, wanted in zip(*traced, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_fitted_volume_is_rendered_as_it_was_fitted():
    """Unless the march says otherwise; alone, and together with others."""
    told = replace(BALL, provenance={"supersample": 2})
    one, two = (rm.render(BALL, CAMERA, march=rm.March(supersample=side)) for side in (1, 2))
    np.testing.assert_array_equal(rm.render(told, CAMERA), two)
    np.testing.assert_array_equal(rm.render(told, CAMERA, march=rm.March(supersample=1)), one)
    np.testing.assert_array_equal(rm.render(BALL, CAMERA), one)
    np.testing.assert_array_equal(rm.render([told], CAMERA), two)
    clear = replace(BALL, density=np.full(BALL.shape, BALL.activation.empty))
    together, alone = (rm.render([each, clear], CAMERA, extras=True) for each in (told, BALL))
    np.testing.assert_allclose(together.image, two, rtol=0, atol=EPS)
    np.testing.assert_array_equal(together.depth, alone.depth)


@pytest.mark.parametrize("said", [0, 9, 2.5, "2", None, True, [2]])
def test_what_a_file_says_amiss_of_its_rays_is_left_aside(said):
    volume = replace(BALL, provenance={} if said is None else {"supersample": said})
    assert supersample_of(volume) is None
    np.testing.assert_array_equal(rm.render(volume, CAMERA), rm.render(BALL, CAMERA))


@pytest.mark.parametrize("said", [0, 9, 1.5, "2"])
def test_a_march_takes_whole_numbers_of_rays(said):
    with pytest.raises(rm.RaymarchError, match="supersample is .* want a whole number"):
        rm.March(supersample=said)


def test_gradients_of_several_rays_a_pixel_are_refused():
    march = rm.March(supersample=2)
    for ask in (
        lambda: rm.jacobian(BALL, CAMERA, march=march),
        lambda: rm.Linearised(BALL, CAMERA, march=march),
        lambda: rm.register(BALL, np.zeros((9, 13, 3)), CAMERA, march=march),
        lambda: rm.check_gradients(BALL, CAMERA, march=march),
        lambda: rm.Linearised([BALL, BALL], CAMERA, march=march),
        lambda: rm.check_gradients([BALL, BALL], CAMERA, march=[march, march]),
    ):
        with pytest.raises(rm.RaymarchError, match=r" ha(s|ve) 2 rays along a pixel's edge.*; gradients are of single"):
            ask()
