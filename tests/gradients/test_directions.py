"""Law: a direction is its numbers as they are now, and moves what the volume has: nothing where no brick is."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
from whole import whole

from raymarch.geometry.camera import Camera
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.rendering.march_settings import March
from raymarch.volumes.activation import Activation
from raymarch.volumes.storage import Dense
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

PLACE = cases.motion(shift=(-1, -1, -1)) @ np.diag([2 / 23, 2 / 15, 2 / 15, 1])
CAMERA = Camera.look_at((0.4, -4, 0.6), fov=0.6, width=12, height=10)
EXACT = March(step=0.47, min_transmittance=0, min_weight=0)
BEAM = replace(EXACT, mode="x-ray-exact")
TABLE = TransferFunction(
    [-1.5, -0.3, 0.4, 1.2], np.random.default_rng(4).uniform(0, 1, (4, 3)), [0.1, 0.6, 0.3, 0.8], 0.4
)
CLASSIFY = replace(EXACT, mode="transfer", transfer=TABLE)


@pytest.fixture
def rng():
    """Random numbers of one test, the same whichever ran before it."""
    return np.random.default_rng(6)


def with_holes():
    """Two bricks of twelve with values in them, empty where a table shows something."""
    density = np.full((24, 16, 16), Activation("identity").empty)
    density[2:7, 2:7, 2:7], density[17:22, 9:14, 2:7] = np.random.default_rng(5).uniform(0.1, 1, (2, 5, 5, 5))
    made = Volume(density, np.zeros((24, 16, 16, 3)), PLACE, Activation("identity")).sparse()
    assert 0 < made.bricks.count < made.bricks.table.size / 2
    return made


def unit(shape, at):
    numbers = np.zeros(shape)
    numbers[at] = 1
    return numbers


def everywhere(volume, rng):
    return Parameters(density=rng.normal(size=volume.shape))


@pytest.mark.parametrize("march", [pytest.param(BEAM, id="x-ray-exact"), whole(CLASSIFY, id="transfer")])
def test_missing_bricks_do_not_move(march, rng):
    """Their gradient is 0, and so is what a direction does there: by the dot test and by differences."""
    volume = with_holes()
    dot, d_image = everywhere(volume, rng), rng.normal(size=(120, 4))
    with Linearised(volume, CAMERA, march=march) as seen:
        forward, back = seen.tangent(dot), seen.adjoint(d_image)
        differences = (seen.shifted(dot, 1e-5) - seen.shifted(dot, -1e-5)) / 2e-5
    scale = np.linalg.norm(forward) * np.linalg.norm(d_image)
    assert scale > 1e-3 and abs((forward * d_image).sum() - dot.dot(back)) < 1e-12 * scale
    assert np.abs(differences - forward).max() < 1e-6 * np.abs(forward).max()


def test_a_direction_that_is_changed_in_place_is_another():
    """Also where its sum stays what it was, as from one column of a Jacobian to the next."""
    volume = cases.volume("rotated", 0)
    numbers, columns = np.zeros(volume.shape), []
    dot = Parameters(density=numbers)
    with Linearised(volume, cases.cameras(volume)[0], march=EXACT) as seen:
        for at in ((3, 2, 2), (4, 3, 2)):
            numbers[...] = 0
            numbers[at] = 1
            columns.append(seen.tangent(dot))
        anew = [seen.tangent(Parameters(density=unit(volume.shape, at))) for at in ((3, 2, 2), (4, 3, 2))]
    np.testing.assert_array_equal(columns, anew)
    assert np.abs(columns[0] - columns[1]).max() > 1e-4


def test_dense_samples_all_move():
    volume = with_holes()
    dense = replace(volume, samples=Dense(volume.density, volume.features))
    dot = Parameters(density=np.ones(volume.shape))
    moved = []
    for each in (dense, volume):
        with Linearised(each, CAMERA, march=BEAM) as seen:
            moved.append(np.abs(seen.tangent(dot)).sum())
    assert moved[0] > moved[1] > 0
