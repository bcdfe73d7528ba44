"""Law: in a fit's step each pixel's rays begin at equal distances within a step, by chance, another one each time."""

from __future__ import annotations

import drive
import numpy as np
import pytest

from raymarch.device.image_store import ImageStore
from raymarch.kernels.fit.targets import draw_tiles

TILES, PIXELS, SEED = 4, 64, 3


@pytest.fixture(scope="module")
def store():
    with ImageStore(drive.ball_views()[:1]) as store:
        store.choose(TILES, SEED)
        yield store


def phases(store, step, parts, phase=1.0, seed=SEED):
    """Phases (pixel, part) and stretches of the rays of a step."""
    buffer, count = drive.ray_buffer(), PIXELS * parts
    draw_tiles(buffer.fields, store.fields, TILES, round(parts**0.5), 0.0, seed, step, phase)
    jitter = buffer.fields.jitter.to_numpy()[:count]
    assert (jitter[:, 1] == 1).all()
    return jitter[:, 0].reshape(PIXELS, parts)


@pytest.mark.parametrize("parts", [1, 4, 9])
def test_a_pixels_rays_are_at_equal_distances(store, parts):
    found = np.sort(phases(store, 5, parts), axis=1)
    np.testing.assert_allclose(np.diff(found, axis=1), 1 / parts, rtol=0, atol=2e-6)
    assert found.min() >= 0 and found.max() < 1


def test_phases_are_uniform_and_of_the_step_the_seed_and_the_pixel_alone(store):
    one, other = phases(store, 0, 4), phases(store, 1, 4)
    np.testing.assert_array_equal(one, phases(store, 0, 4))
    assert min(np.abs(one - two).min(1).max() for two in (other, phases(store, 0, 4, seed=4))) > 0.1
    many = np.concatenate([phases(store, step, 1)[:, 0] for step in range(30)])
    below = [(many < level).mean() for level in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(below, (0.25, 0.5, 0.75), rtol=0, atol=4 * np.sqrt(0.25 / len(many)))


@pytest.mark.parametrize("phase", [0.05, 0.3])
def test_no_ray_begins_earlier_than_it_may(store, phase):
    np.testing.assert_allclose(phases(store, 2, 4, phase), phase * phases(store, 2, 4), rtol=0, atol=2e-6)


@pytest.mark.parametrize(("seed", "step"), [(0, 0), (3, 17), (2**31 - 1, 123_456)])
def test_a_step_begins_with_a_number_of_its_own_and_without_a_gradient(store, seed, step):
    """What the roulette of the adjoint draws by; and no ray's image has a gradient yet, whatever the last step left."""
    buffer, count = drive.ray_buffer(), PIXELS * 4
    buffer.fields.image.grad.fill(1)
    phases(store, step, 4, seed=seed)
    assert buffer.fields.draw[None] == (seed * 2654435761 + step) % 2**31
    assert not buffer.fields.image.grad.to_numpy()[:count].any()
    buffer.fields.image.grad.fill(0)
