"""Law: a flat grid that is only read, marched in long groups, shows the bits of one that is not; so does a scan."""

from __future__ import annotations

import cases
import flat
import numpy as np
import pytest
import reference

STEPS = {
    "runs of many groups": 0.03,
    "a group and a part": 0.2,
    "less than a group": 0.9,
    "less than a pair": 100.0,
}  # voxels
ENDS = {"goes through": (0.0, 0.0), "ends early": (0.3, 0.02)}  # least transmittance and weight


def images(single, step, ends, mode="emission-absorption"):
    """The image of a grid that is only read, and of one that has gradients."""
    (in_groups, on_cpu, groups), (not_in_groups, _, pairs) = (
        single(flat.image, slots, step, *ends, mode) for slots in (0, 2)
    )
    assert in_groups == on_cpu  # elsewhere both go in pairs
    assert not not_in_groups
    return groups, pairs


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_images_are_the_same_bits(step, ends, single):
    groups, pairs = images(single, step, ends)
    assert np.ptp(groups[:, 0]) > 0.1
    np.testing.assert_array_equal(groups, pairs)


@pytest.mark.parametrize("mode", ["x-ray", "additive"])
def test_images_of_other_modes_are_the_same_bits(mode, single):
    groups, pairs = images(single, 0.2, (0.0, 0.0), mode)
    assert np.ptp(groups[:, 0]) > 0.01
    np.testing.assert_array_equal(groups, pairs)


def test_images_are_the_reference(single):
    v = cases.volume("rotated", 0)
    wanted = reference.march(v, cases.rays(v), 0.03 * v.voxel, cases.BACKGROUND)
    groups, _ = images(single, 0.03, (0.0, 0.0))
    np.testing.assert_allclose(groups, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", flat.MARCHES)
def test_a_scan_has_no_room_for_colours_and_the_same_image(name, single):
    grouped, coloured, image, depth = single(flat.scan, name, 1, True)
    assert grouped and not coloured
    assert np.ptp(image) > 0.1
    for block, seen in ((4, True), (1, False)):
        other_grouped, other_coloured, other_image, other_depth = single(flat.scan, name, block, seen)
        assert (other_grouped, other_coloured) == (block == 1, not seen)
        np.testing.assert_array_equal(other_image, image)
        np.testing.assert_allclose(other_depth, depth, rtol=2e-5)


@pytest.mark.parametrize("block", [1, 4])
def test_slopes_that_were_made_before_light_as_those_found_on_the_way(block, single):
    _, _, image, depth = single(flat.scan, "lit", block, True)
    _, held, other_image, other_depth = single(flat.scan, "lit", block, True, True)
    assert held
    np.testing.assert_allclose(other_image, image, atol=2e-5)
    np.testing.assert_allclose(other_depth, depth, rtol=2e-5)
