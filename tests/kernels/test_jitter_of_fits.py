"""Law: in a fit's step each pixel's rays begin at equal distances within a step, by chance, another one each time."""

from __future__ import annotations

import drive
import numpy as np
import pytest

from raymarch.kernels.fit.targets import jitter_parts

PIXELS, SEED = 60, 3


def phases(step, parts, phase=1.0, seed=SEED):
    """Phases (pixel, part) and stretches of the rays of a step."""
    buffer, count = drive.ray_buffer(), PIXELS * parts
    jitter_parts(buffer.fields, seed, step, count, parts, phase)
    jitter = buffer.fields.jitter.to_numpy()[:count]
    assert (jitter[:, 1] == 1).all()
    return jitter[:, 0].reshape(PIXELS, parts)


@pytest.mark.parametrize("parts", [1, 4, 9])
def test_a_pixels_rays_are_at_equal_distances(parts):
    found = np.sort(phases(5, parts), axis=1)
    np.testing.assert_allclose(np.diff(found, axis=1), 1 / parts, rtol=0, atol=2e-6)
    assert found.min() >= 0 and found.max() < 1


def test_phases_are_uniform_and_of_the_step_the_seed_and_the_pixel_alone():
    one, other = phases(0, 4), phases(1, 4)
    np.testing.assert_array_equal(one, phases(0, 4))
    assert min(np.abs(one - two).min(1).max() for two in (other, phases(0, 4, seed=4))) > 0.1
    many = np.concatenate([phases(step, 1)[:, 0] for step in range(30)])
    below = [(many < level).mean() for level in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(below, (0.25, 0.5, 0.75), rtol=0, atol=4 * np.sqrt(0.25 / len(many)))


@pytest.mark.parametrize("phase", [0.0, 0.3])
def test_no_ray_begins_earlier_than_it_may(phase):
    np.testing.assert_allclose(phases(2, 4, phase), phase * phases(2, 4), rtol=0, atol=2e-6)
