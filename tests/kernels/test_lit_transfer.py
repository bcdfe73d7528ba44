"""Law: pictures through a table are lit as the formula says, sample by sample, with slopes by what turns a normal."""

from __future__ import annotations

from dataclasses import replace

import cases
import numpy as np
import pytest
import reference

from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.integrator.passes import passes_of
from raymarch.rendering.march_settings import March
from raymarch.rendering.shading import Shading
from raymarch.volumes.transfer_function import TransferFunction

STEP = 0.47
VOLUME = cases.volume("rotated", 0, "softplus")
CAMERA = cases.cameras(VOLUME)[0]
RNG = np.random.default_rng(1)
TABLE = TransferFunction(  # over the values of the volume; what is clear in it is lit as soon as it is not
    np.sort(RNG.uniform(0.1, 3, 6)), RNG.uniform(0, 1, (6, 3)), [0, 0.6, 0.3, 0, 0.8, 0.5], unit_length=0.4
)
LAMP = Shading(lamp=(1, 2, 0.5), specular=0.7, shininess=3)
HEADLIGHT = Shading(ambient=0.2, specular=0.4, shininess=5)
JITTER = {"jitter": 1.0, "step_jitter": 0.4, "seed": 5}
MARCH = March(step=STEP, min_transmittance=0, min_weight=0, mode="transfer", transfer=TABLE, **JITTER)


def lit(colour, slope, d, s):
    """Light on a sample whose value rises along a slope, and the normal, written from the formula; e is -d."""
    n = slope / np.linalg.norm(slope) * (-1 if slope @ d > 0 else 1)
    lamp = np.array(s.lamp) / np.linalg.norm(s.lamp) if s.lamp else -d
    half = (lamp - d) / np.linalg.norm(lamp - d)
    colour = np.array(s.colour or colour)
    return colour * (s.ambient + s.diffuse * max(n @ lamp, 0)) + s.specular * max(n @ half, 0) ** s.shininess, n


def seen_by(seen, shading, density=0.0, rgba=0.0):
    """(image (ray, 4), mean normals (ray, 3)) of what is interpolated, classified, lit and composited."""
    volume, rgba = replace(VOLUME, density=VOLUME.density + density), TABLE.rgba + rgba
    inverse, slopes = np.linalg.inv(volume.world_from_index)[:3, :3], np.stack(np.gradient(volume.density), -1)
    image, normals, jitter = [], [], seen.buffer.fields.jitter.to_numpy()
    for o, d, own in zip(seen.rays.origin, seen.rays.direction, jitter, strict=False):
        colour, mean, T = np.zeros(3), np.zeros(3), 1.0
        for sample in reference.samples(volume, o, d, STEP * volume.voxel, 0, 0, jitter=own)[0]:
            x = reference.gather(volume.density, sample.p) + volume.activation.shift
            value = reference.density(volume.activation, x)[0]
            shade = np.array([np.interp(value, TABLE.values, channel) for channel in rgba.T])
            alpha = 1 - (1 - shade[3]) ** (sample.width / TABLE.unit_length)
            light, n = lit(shade[:3], reference.gather(slopes, sample.p) @ inverse, d, shading)
            colour, mean, T = colour + T * alpha * light, mean + T * alpha * n, T * (1 - alpha)
        image.append([*(colour + T * np.array(cases.BACKGROUND)), T])
        normals.append(mean / max(np.linalg.norm(mean), 1e-300) if 1 - T > 0.01 else 0 * mean)
    return np.array(image), np.array(normals)


def linearised(shading):
    march = replace(MARCH, shading=shading)
    return Linearised(VOLUME, CAMERA, background=cases.BACKGROUND, march=march, columns=1)


@pytest.fixture
def seen():
    with linearised(LAMP) as seen:
        yield seen


def test_the_picture_and_its_normals_are_those_of_the_formula(seen):
    wanted, normals = seen_by(seen, LAMP)
    assert 0.05 < wanted[:, 3].mean() < 0.9
    np.testing.assert_allclose(seen.image(), wanted, rtol=0, atol=1e-12)
    call = seen.march.call(seen.grid, len(seen.rays), cases.BACKGROUND)
    passes_of(seen.march.rule).normals(seen.grid.fields, seen.buffer.fields, *call[:4])
    assert 0.3 < (normals != 0).any(1).mean() < 1
    got = seen.buffer.fields.sum_even.to_numpy()[: len(normals), :3]
    np.testing.assert_allclose(got, normals, rtol=0, atol=1e-12)


def test_slopes_by_volume_and_table_are_differences_of_the_formula(seen):
    """Of the NumPy twin, which knows no kernel."""
    rng, h = np.random.default_rng(0), 1e-6
    by = Parameters(density=rng.normal(size=VOLUME.shape), table=rng.normal(size=TABLE.rgba.shape))
    by.table[TABLE.opacities == 0, 3] = 0  # there differences would be of negative opacities too

    ahead, behind = (seen_by(seen, LAMP, side * by.density, side * by.table)[0] for side in (h, -h))
    wanted, along = (ahead - behind) / (2 * h), seen.tangent(by)
    w = np.random.default_rng(2).normal(size=along.shape)
    np.testing.assert_allclose((seen.adjoint(w).dot(by), (along * w).sum()), (wanted * w).sum(), rtol=1e-7)
    np.testing.assert_allclose(along, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())


@pytest.mark.parametrize("level", [0.1, 0.7, 1.3])
def test_what_is_level_is_lit_by_ambient_light_alone(level):
    """It has no normal, nor one that rounding makes of equal values, and no slope by one."""
    rng, volume = np.random.default_rng(3), replace(VOLUME, density=np.full(VOLUME.shape, level))
    march = replace(MARCH, shading=LAMP)
    with Linearised(volume, CAMERA, background=(0, 0, 0), march=march, columns=1) as seen:
        w, moved = rng.normal(size=(len(seen.rays), 4)), rng.normal(size=VOLUME.shape)
        image, by, along = seen.image(), seen.adjoint(w).density, seen.tangent(Parameters(density=moved))
    value = reference.density(volume.activation, level + volume.activation.shift)[0]
    colour = [np.interp(value, TABLE.values, channel) for channel in TABLE.rgba.T[:3]]
    assert 0.05 < 1 - image[:, 3].mean() < 0.9
    np.testing.assert_allclose(image[:, :3], (1 - image[:, 3:]) * LAMP.ambient * np.array(colour), rtol=0, atol=1e-12)
    assert 0 < np.abs(by).max() < 10
    assert (along * w).sum() == pytest.approx((by * moved).sum(), rel=1e-9)
