"""Law: directions are carried pass by pass, each once, however few of them a pass takes; differences see the same."""

from __future__ import annotations

import numpy as np
import pytest

from raymarch.geometry.camera import Camera
from raymarch.gradients.linear_medium import _add_in_chunks
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.rendering.march_settings import March
from raymarch.volumes.volume import Volume


@pytest.mark.parametrize("takes", [1, 2, 3, 5])
@pytest.mark.parametrize("most", [3, 5])
def test_every_direction_that_moves_something_is_carried_once(takes, most):
    """A pass may take fewer than it is given: a volume's colour has many channels. Others are left at what they had."""
    dots = [Parameters(pose=np.full(6, i)) if i % 3 else Parameters(focal=np.ones(2)) for i in range(11)]
    passes = []

    def carry(some):
        passes.append(len(some))
        return np.stack([np.full((2, 4), dot.pose[0]) for dot in some[:takes]], axis=1)

    out = np.full((2, 4, len(dots)), 0.5)
    _add_in_chunks(out, dots, ("pose", "box"), most, carry)
    np.testing.assert_array_equal(out[0, 0], [0.5 + (i if i % 3 else 0) for i in range(11)])
    assert max(passes) <= most
    assert len(passes) == -(-7 // min(takes, most))


def test_an_image_shifted_by_nothing_is_the_image():
    """Bit for bit, where a march leaps over what is too faint to see: differences leap as it does."""
    faint = Volume.from_function(lambda p: 6.0 * np.exp(-30 * (p**2).sum(-1)), shape=(24, 24, 24))
    camera = Camera.look_at((0.3, -4, 1), fov=0.6, width=9, height=7)
    with Linearised(faint, camera, march=March(), columns=1) as seen:
        assert 0 < seen.grid.occupied_cells().mean() < 1
        still = Parameters(density=np.random.default_rng(0).normal(size=faint.shape))
        np.testing.assert_array_equal(seen.shifted(still, 0.0), seen.image())
        assert (seen.shifted(still, 0.1) != seen.image()).any()
