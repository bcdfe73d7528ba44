"""Law: a flat grid that is only read, marched in long groups, shows the bits of one that is marched in pairs."""

from __future__ import annotations

import cases
import numpy as np
import pytest
import reference
import single as worker

from raymarch.kernels.march.long_group import LONG

STEPS = {
    "runs of many groups": 0.03,
    "a group and a part": 0.2,
    "less than a group": 0.9,
    "less than a pair": 100.0,
}  # voxels
ENDS = {"goes through": (0.0, 0.0), "ends early": (0.3, 0.02)}  # least transmittance and weight


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_images_are_the_same_bits(step, ends, single):
    pairs, groups = (single(worker.image_of_grid, slots, step, *ends, "emission-absorption") for slots in (2, 0))
    assert np.ptp(groups[:, 0]) > 0.1
    np.testing.assert_array_equal(groups, pairs)


@pytest.mark.parametrize("mode", ["x-ray", "additive"])
def test_images_of_other_modes_are_the_same_bits(mode, single):
    pairs, groups = (single(worker.image_of_grid, slots, 0.2, 0.0, 0.0, mode) for slots in (2, 0))
    assert np.ptp(groups[:, 0]) > 0.01
    np.testing.assert_array_equal(groups, pairs)


def test_images_are_the_reference(single):
    v = cases.volume("rotated", 0)
    rays = cases.rays(v)
    wanted = reference.march(v, rays, 0.03 * v.voxel, cases.BACKGROUND)
    assert min(v.shape) > 2 * 0.03 * LONG  # rays have more than a group
    got = single(worker.image_of_grid, 0, 0.03, 0.0, 0.0, "emission-absorption")
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
