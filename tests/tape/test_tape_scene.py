"""Law: inside a Tape, with Taichi kernels before and after, the image hands its gradient to all that shapes it."""

from dataclasses import replace

import cases
import numpy as np
import pytest
from drive import best_agreement
from lenses import LENSES
from whole import whole

from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.geometry.pose import exp_rigid, right_jacobian
from raymarch.gradients.linearised import Linearised
from raymarch.kernels.modes.registry import COMPOSITING_MODES as MODES
from raymarch.rendering.march_settings import March
from raymarch.tape.scene import PARAMETER_SHAPES, Scene

MOVED = {
    "background": 0.02,
    "pose": 0.05,
    "focal": 0.3,
    "principal_point": 0.2,
    "exposure": 0.05,
    "step": 0.05,
    "box": 0.01,
    "lens": 0.02,
}


@ti.kernel
def loss_of(image: ti.template(), weights: ti.types.ndarray(), loss: ti.template(), count: int):
    for r in range(count):
        for c in ti.static(range(4)):
            loss[None] += weights[r, c] * image[r][c] ** 2


def test_the_exponential_moves_as_its_jacobian_says():
    rng = np.random.default_rng(0)
    for size in (1e-6, 0.1, 1.0, 2.0):
        twist, d = size * rng.normal(size=6), rng.normal(size=6)
        h = 1e-6
        moved = np.linalg.inv(exp_rigid(twist - h * d)) @ exp_rigid(twist + h * d)
        wanted = exp_rigid(2 * h * right_jacobian(twist) @ d)
        np.testing.assert_allclose(moved, wanted, atol=1e-14)


@pytest.mark.parametrize("mode", [mode if mode == "emission-absorption" else whole(mode) for mode in MODES])
def test_the_tape_carries_gradients_to_all_that_shapes_the_image(mode):
    """At a place away from the start, where a pose's exponential is not the identity."""
    v = cases.volume("rotated", 1)
    camera = replace(cases.cameras(v)[0], lens=LENSES[3])
    rng = np.random.default_rng(3)
    loss = ti.field(float, (), needs_grad=True)
    march = March(step=0.47, min_transmittance=0.0, min_weight=0.0, mode=mode)
    with Linearised(v, camera, background=cases.BACKGROUND, march=march) as seen, Scene(seen) as scene:
        here = {
            name: MOVED[name] * rng.normal(size=shape)
            for name, shape in PARAMETER_SHAPES.items()
            if name in MOVED and name != "lens"
        }
        here["lens"] = MOVED["lens"] * np.linspace(-1, 1, *PARAMETER_SHAPES["lens"])
        weights = rng.normal(size=(len(seen.rays), 4))

        def tape(values, volume=None):
            for name, value in values.items():
                getattr(scene, name).from_numpy(np.asarray(value))
            with ti.ad.Tape(loss):
                scene.render()
                loss_of(scene.image, weights, loss, len(weights))
            return loss[None]

        tape(here)
        gradients = {name: getattr(scene, name).grad.to_numpy() for name in PARAMETER_SHAPES}
        density, colour = scene.gradient_of_volume()
        for name in PARAMETER_SHAPES:
            if name not in seen.groups:
                assert (gradients[name] == 0).all()
                assert name == "iso" or colour is None
                continue
            direction = MOVED[name] * rng.normal(size=PARAMETER_SHAPES[name])

            def along(h, name=name, direction=direction):
                return tape({**here, name: here[name] + h * direction})

            assert best_agreement(along, np.sum(gradients[name] * direction)) < 1e-7, name
    direction = rng.normal(size=v.shape)

    def of_volume(h):
        moved = replace(v, density=v.density + h * direction)
        with Linearised(moved, camera, background=cases.BACKGROUND, march=march) as seen, Scene(seen) as scene:
            for name, value in here.items():
                getattr(scene, name).from_numpy(np.asarray(value))
            scene.render()
            image = np.array([scene.image[r].to_numpy() for r in range(len(weights))])
        return (weights * image**2).sum()

    wanted = np.sum(density * direction)
    found = (of_volume(1e-5) - of_volume(-1e-5)) / 2e-5
    assert abs(found - wanted) < 1e-6 * abs(wanted)


def test_a_tape_has_one_render_of_a_scene_and_tapes_one_after_another_their_own():
    """Two images in one field: what would be taken back twice is the last one's."""
    v, camera, loss = (
        cases.volume("rotated", 1),
        cases.cameras(cases.volume("rotated", 1))[0],
        ti.field(float, (), needs_grad=True),
    )
    with Linearised(v, camera, background=cases.BACKGROUND) as seen, Scene(seen) as scene:
        weights = np.ones((len(seen.rays), 4))
        with pytest.raises(RaymarchError, match="this Tape has a render of the scene already"), ti.ad.Tape(loss):
            scene.render()
            scene.render()
        scene.render()
        found = []
        for _ in range(2):
            with ti.ad.Tape(loss):
                scene.render()
                loss_of(scene.image, weights, loss, len(weights))
            found.append(scene.gradient_of_volume()[0])
        assert np.abs(found[0]).max() > 0
        np.testing.assert_array_equal(*found)
