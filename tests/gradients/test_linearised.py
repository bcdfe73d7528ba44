"""Law: a volume that is set is seen as one that was there from the start; one that cannot be set changes nothing."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.volumes.volume import Volume


@pytest.fixture(scope="module")
def scene():
    volume = cases.volume("rotated", 0)
    return volume, cases.cameras(volume)[0]


def test_a_volume_that_is_set_is_seen_as_if_it_had_been_there(scene):
    volume, camera = scene
    other = replace(volume, density=volume.density + 0.3)
    by = Parameters(pose=np.array([0.02, -0.01, 0.03, 0.1, 0.2, -0.1]))
    with Linearised(volume, camera, columns=1) as seen, Linearised(other, camera, columns=1) as wanted:
        for one in (seen, wanted):
            one.move(by)
        assert not np.allclose(seen.image(), wanted.image())
        seen.set_volume(other)
        np.testing.assert_array_equal(seen.image(), wanted.image())
        d_image = np.random.default_rng(0).normal(size=seen.image().shape)
        np.testing.assert_array_equal(seen.adjoint(d_image).density, wanted.adjoint(d_image).density)


def test_a_volume_that_cannot_be_set_changes_nothing(scene):
    volume, camera = scene
    with Linearised(volume, camera, columns=1) as seen:
        before = seen.image()
        finer = Volume.from_function(lambda p: np.ones(p.shape[:-1]), shape=(3, 3, 3))
        of_degree_1 = Volume(volume.density, np.zeros((*volume.shape, 12)), volume.world_from_index)
        for wrong in (finer, of_degree_1):
            with pytest.raises(RaymarchError, match="make another|make it alike"):
                seen.set_volume(wrong)
            assert seen.volume is volume
            seen.set_camera(camera)  # which has it marched again
            np.testing.assert_array_equal(seen.image(), before)


def test_volumes_together_keep_their_numbers(scene):
    volume, camera = scene
    with Linearised([volume, volume], camera) as seen, pytest.raises(RaymarchError, match="make another Linearised"):
        seen.set_volume(volume)
