"""Law: Adam moves what was touched as Kingma and Ba say, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import drive
import numpy as np
import pytest
from whole import whole

from raymarch.device.grid import Grid
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.fitting import differentiable_passes
from raymarch.fitting.settings.objective import Regulariser
from raymarch.fitting.settings.optimiser import MAX_BETA, Adam
from raymarch.kernels import gpu_switches
from raymarch.kernels.fit.regularise import QUANTITIES, regularise
from raymarch.kernels.gpu_switches import GpuSwitches
from raymarch.volumes.activation import Activation
from raymarch.volumes.volume import Volume

ADAM = Adam(
    lr_density=0.4, lr_colour=0.05, final=0.2, cooldown=0.5, coarse=0.0, thinning=0.3, beta1=0.8, beta2=0.95, eps=1e-6
)
SHAPE = (8, 6, 5)
STEPS = 5


def start(grid, seed=0):
    """Random values, no moments, no gradient."""
    rng = np.random.default_rng(seed)
    channels = grid.fields.features.n
    grid.upload(Volume(rng.normal(size=SHAPE), rng.normal(size=(*SHAPE, channels)), np.eye(4)))
    fields = grid.fields
    for field in (fields.m_density, fields.m_features, fields.v_density, fields.v_features):
        field.fill(0)
    drive.set_gradient(grid, np.zeros(SHAPE), np.zeros((*SHAPE, channels)))
    fields.nonfinite_step[None] = 0


def gradients(step, channels=3):
    """(d_density, d_features) of a step, each zero on its own half of the voxels, the sizes over four decades."""
    rng = np.random.default_rng(100 + step)
    size = 10.0 ** rng.uniform(-4, 0, SHAPE)
    d_density = size * rng.normal(size=SHAPE) * (rng.uniform(size=SHAPE) < 0.5)
    d_features = size[..., None] * rng.normal(size=(*SHAPE, channels)) * (rng.uniform(size=SHAPE) < 0.5)[..., None]
    return d_density, d_features


def state(grid):
    """Values and moments as arrays."""
    fields = grid.fields
    moments = (fields.m_density, fields.v_density, fields.m_features, fields.v_features)
    cut = tuple(slice(n) for n in SHAPE)
    return [*grid.download(), *(m.to_numpy()[cut] for m in moments)]


def kingma_and_ba(x, m, v, g, lr, t):
    """One step of Adam where `g` is not zero; a colour moves as a whole."""
    touched = g != 0 if g.ndim == 3 else (g != 0).any(-1, keepdims=True)
    m_new, v_new = ADAM.beta1 * m + (1 - ADAM.beta1) * g, ADAM.beta2 * v + (1 - ADAM.beta2) * g**2
    m_hat, v_hat = m_new / (1 - ADAM.beta1**t), v_new / (1 - ADAM.beta2**t)
    x_new = x - lr * m_hat / (np.sqrt(v_hat) + ADAM.eps)
    return np.where(touched, x_new, x), np.where(touched, m_new, m), np.where(touched, v_new, v)


def test_several_steps_are_those_of_kingma_and_ba():
    grid = drive.adam_grid()
    start(grid)
    density, features, *moments = state(grid)
    (m, v), (n, w) = moments[:2], moments[2:]
    for step in range(STEPS):
        progress = step / STEPS
        d_density, d_features = gradients(step)
        drive.set_gradient(grid, d_density, d_features)
        ADAM.step(grid, step, progress, step)
        decay = 0.2**progress * np.interp(progress, [0.5, 1.0], [1.0, 0.0])
        before = density
        density, m, v = kingma_and_ba(density, m, v, d_density, 0.4 * decay, step + 1)
        density = thinned(density, before, d_density, 0.4 * decay, grid.activation.shift)
        features, n, w = kingma_and_ba(features, n, w, d_features, 0.05 * decay, step + 1)
        for got, wanted in zip(state(grid), (density, features, m, v, n, w), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
        assert not any(d.any() for d in grid.download_gradient())  # taken, and cleared
        assert not grid.fields.block_has_gradient.to_numpy()[tuple(slice(int(n)) for n in grid.blocks)].any()


def thinned(x, before, g, lr, shift):
    """Density after Adam's step, less what it falls by: a part of the rate, times what a voxel of it let through."""
    return np.where(g != 0, x - lr * ADAM.thinning * np.exp(-np.logaddexp(0, before + shift)), x)


def shared_by_harmonics(x, m, v, g, lr, lr_harmonics, t):
    """One step of features (.., 3 harmonics): a second moment for each colour, momentum for degree 0 alone."""
    touched, above = (g != 0).any(-1, keepdims=True), slice(3, None)
    v_new = ADAM.beta2 * v + (1 - ADAM.beta2) * (g**2).reshape(*SHAPE, -1, 3).mean(-2)
    m_new = ADAM.beta1 * m + (1 - ADAM.beta1) * g[..., :3]
    size = np.sqrt(v_new / (1 - ADAM.beta2**t)) + ADAM.eps
    x_new = x - 0.0
    x_new[..., :3] -= lr * m_new / (1 - ADAM.beta1**t) / size
    harmonics = x.shape[-1] // 3 - 1
    x_new[..., above] -= lr_harmonics * g[..., above] / np.tile(size, harmonics) + lr * ADAM.decay * x[..., above]
    return np.where(touched, x_new, x), np.where(touched, m_new, m), np.where(touched, v_new, v)


def test_fog_that_no_gradient_holds_thins_out_and_what_is_opaque_stays():
    """By gradients too small to count beside eps: what is empty falls by the whole part, what is dense by none."""
    grid = drive.adam_grid()
    start(grid)
    density = np.linspace(-20, 20, int(np.prod(SHAPE))).reshape(SHAPE) - grid.activation.shift
    grid.upload(Volume(density, np.zeros((*SHAPE, 3)), np.eye(4)))
    drive.set_gradient(grid, np.full(SHAPE, 1e-30), np.zeros((*SHAPE, 3)))
    ADAM.step(grid, 0, 0.0, 0)
    fallen = (density - grid.download()[0]).ravel()
    assert fallen[0] == pytest.approx(0.4 * ADAM.thinning, rel=1e-6) and abs(fallen[-1]) < 1e-8
    assert (np.diff(fallen) <= 1e-12).all()


@pytest.mark.parametrize("steps", [10, 1500, 6000, 30_000])
def test_all_steps_of_a_long_fit_thin_as_much_as_those_of_a_short_one(steps):
    total = sum(ADAM.thinning_at(step / steps, step) for step in range(steps))
    assert total == pytest.approx(ADAM.thinning * min(steps, 1500), rel=1e-3 + 1 / steps)


def test_a_step_of_a_long_fit_thins_less():
    grid = drive.adam_grid()
    start(grid)
    grid.upload(Volume(np.full(SHAPE, -20.0), np.zeros((*SHAPE, 3)), np.eye(4)))
    drive.set_gradient(grid, np.full(SHAPE, 1e-30), np.zeros((*SHAPE, 3)))
    ADAM.step(grid, 0, 0.5, 15_000)
    fallen = -20.0 - grid.download()[0]
    np.testing.assert_allclose(fallen, ADAM.rates(0.5)[0] * ADAM.thinning / 20, rtol=1e-6)


def test_values_seen_through_a_table_do_not_thin_out():
    """Less of a value is not less opacity: by gradients too small to count none of them moves."""
    grid = drive.adam_grid()
    start(grid)
    grid.set_activation(Activation("identity"))
    before, _ = grid.download()
    drive.set_gradient(grid, np.full(SHAPE, 1e-30), np.zeros((*SHAPE, 3)))
    ADAM.step(grid, 0, 0.0, 0)
    np.testing.assert_allclose(grid.download()[0], before, atol=1e-12)
    grid.set_activation(Activation())


@pytest.mark.parametrize("degree", [1, whole(2)])
def test_harmonics_share_their_colours_second_moment_and_have_no_momentum(degree):
    """Their rate is less by the root of how many there are, of the three of degree 1."""
    grid = drive.adam_grid(degree)
    start(grid)
    channels = grid.fields.features.n
    density, features, m, v, n, w = state(grid)
    for step in range(STEPS):
        d_density, d_features = gradients(step, channels)
        drive.set_gradient(grid, d_density, d_features)
        ADAM.step(grid, step, 0.0, 0)
        before = density
        density, m, v = kingma_and_ba(density, m, v, d_density, 0.4, step + 1)
        density = thinned(density, before, d_density, 0.4, grid.activation.shift)
        above = ADAM.harmonics * 0.05 * np.sqrt(3 / (channels / 3 - 1))
        features, n, w = shared_by_harmonics(features, n, w, d_features, 0.05, above, step + 1)
        for got, wanted in zip(state(grid), (density, features, m, v, n, w), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
        assert not any(d.any() for d in grid.download_gradient())


def cubes_moved(m, v, g, lr, t):
    """A step of Adam of cubes of 4^3, by the sum of the gradients (x, y, z, ...) in each; what each sample moves by."""
    whole = np.pad(g, [(0, -n % 4) for n in g.shape[:3]] + [(0, 0)] * (g.ndim - 3))
    x, y, z = (n // 4 for n in whole.shape[:3])
    total = whole.reshape(x, 4, y, 4, z, 4, *g.shape[3:]).sum((1, 3, 5))
    m, v = ADAM.beta1 * m + (1 - ADAM.beta1) * total, ADAM.beta2 * v + (1 - ADAM.beta2) * total**2
    step = lr * (m / (1 - ADAM.beta1**t)) / (np.sqrt(v / (1 - ADAM.beta2**t)) + ADAM.eps)
    return step.repeat(4, 0).repeat(4, 1).repeat(4, 2)[tuple(slice(n) for n in g.shape[:3])], m, v


def test_cubes_of_samples_move_as_one_beside_them():
    """Untouched samples too; the samples' own moments are as without."""
    grid = drive.adam_grid()
    start(grid)
    for field in (grid.fields.m_cube, grid.fields.v_cube):
        field.fill(0)
    density, features, *moments = state(grid)
    (m, v), (n, w) = moments[:2], moments[2:]
    cube, colour = (np.zeros(()), np.zeros(())), (np.zeros(()), np.zeros(()))
    together = replace(ADAM, coarse=0.25)
    for step in range(STEPS):
        d_density, d_features = gradients(step)
        drive.set_gradient(grid, d_density, d_features)
        together.step(grid, step, 0.0, 0)
        by, *cube = cubes_moved(*cube, d_density, 0.25 * 0.4, step + 1)
        by_colour, *colour = cubes_moved(*colour, d_features, 0.25 * 0.05, step + 1)
        before, features = density - by, features - by_colour
        density, m, v = kingma_and_ba(before, m, v, d_density, 0.4, step + 1)
        density = thinned(density, before, d_density, 0.4, grid.activation.shift)
        features, n, w = kingma_and_ba(features, n, w, d_features, 0.05, step + 1)
        for got, wanted in zip(state(grid), (density, features, m, v, n, w), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1])
def test_a_thread_a_sample_makes_the_same_step_as_one_a_block(degree, monkeypatch):
    """Bit by bit, with cubes, and with words of features of which only some are touched."""
    grid, found = drive.adam_grid(degree), []
    for switches in (GpuSwitches(), GpuSwitches(adam_by_sample=True)):
        monkeypatch.setattr(gpu_switches, "_chosen", switches)
        start(grid)
        for field in (grid.fields.m_cube, grid.fields.v_cube):
            field.fill(0)
        rng = np.random.default_rng(5)
        for step in range(STEPS):
            drive.set_gradient(grid, *gradients(step, grid.fields.features.n))
            marks = grid.fields.block_has_gradient
            marks.from_numpy((rng.random(marks.shape) < 0.7).astype(np.uint8))
            if degree:
                words = grid.fields.feature_samples
                words.from_numpy(rng.integers(-(2**31), 2**31, words.shape, np.int32))
            replace(ADAM, coarse=0.25).step(grid, step, 0.0, step)
            found.append([*state(grid), *grid.download_gradient(), marks.to_numpy()])
            if degree:
                found[-1].append(words.to_numpy())
    for wanted, got in zip(found[:STEPS], found[STEPS:], strict=True):
        for a, b in zip(wanted, got, strict=True):
            np.testing.assert_array_equal(a, b)
    assert not np.array_equal(found[0][0], found[STEPS - 1][0])


def test_first_step_is_the_rate_against_the_sign():
    """m / sqrt(v) is the gradient's sign at first, whatever its size."""
    grid = drive.adam_grid()
    start(grid)
    before, _ = grid.download()
    d_density = np.where(np.arange(5) % 2, 3.0, -0.01) * np.ones(SHAPE)
    drive.set_gradient(grid, d_density, np.zeros((*SHAPE, 3)))
    Adam(lr_density=0.4, coarse=0.0, thinning=0.0).step(grid, 0, 0.0, 0)
    np.testing.assert_allclose(grid.download()[0] - before, -0.4 * np.sign(d_density), rtol=1e-5)


def test_untouched_voxels_stay_as_they_are():
    """To the bit, values and moments, in a dirty block too."""
    grid = drive.adam_grid()
    start(grid)
    drive.set_gradient(grid, *gradients(0))
    ADAM.step(grid, 0, 0.0, 0)
    before = state(grid)
    d_density, d_features = np.zeros(SHAPE), np.zeros((*SHAPE, 3))
    d_density[2, 3, 1], d_features[7, 5, 4] = 0.3, (0, 0, 0.2)
    drive.set_gradient(grid, d_density, d_features)
    ADAM.step(grid, 1, 0.5, 1)
    for i, (got, was) in enumerate(zip(state(grid), before, strict=True)):
        moved = np.argwhere((got != was).reshape(*SHAPE, -1).any(-1)).tolist()
        assert moved == [[2, 3, 1] if i in (0, 2, 3) else [7, 5, 4]]


def test_clean_blocks_are_not_looked_at():
    grid = drive.adam_grid()
    start(grid)
    before = state(grid)
    drive.set_gradient(grid, *gradients(0))
    grid.fields.block_has_gradient.fill(0)
    ADAM.step(grid, 0, 0.0, 0)
    for got, was in zip(state(grid), before, strict=True):
        np.testing.assert_array_equal(got, was)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["density", "features"])
def test_a_gradient_that_is_not_finite_freezes_all(where, bad):
    """The fold notices it in any slot; no later step moves values or moments; which step it was is kept."""
    grid = drive.adam_grid()
    start(grid)
    drive.set_gradient(grid, *gradients(0))
    ADAM.step(grid, 0, 0.0, 0)
    before = state(grid)
    if where == "density":
        grid.fields.d_density[0, 1, 2, 3] = bad
    else:
        grid.fields.d_features[0, 1, 2, 3] = [0.0, bad, 0.0]
    grid.fields.block_written.fill(1)
    for step in (6, 7):
        grid.reduce_slots()
        ADAM.step(grid, step, 0.0, step)
        drive.set_gradient(grid, *gradients(1))
    assert grid.fields.nonfinite_step[None] == 6 + 2
    for got, was in zip(state(grid), before, strict=True):
        np.testing.assert_array_equal(got, was)
    assert np.isfinite(grid.fields.d_density.to_numpy()).all()
    grid.fields.nonfinite_step[None] = 0


@ti.func
def reciprocal(x):
    """Slope of a logarithm: where neighbours are alike it is infinite, and so it is where nothing is."""
    return 1.0 / x


@pytest.mark.parametrize("of", QUANTITIES)
def test_a_regulariser_that_is_not_finite_freezes_all(of):
    """Also in blocks that no ray of the step met."""
    grid, buffer = drive.adam_grid(), drive.ray_buffer()
    start(grid)
    grid.set_activation(Activation("relu"))
    grid.fill(0.0, 0.0)
    before = state(grid)
    call = differentiable_passes._call(grid, Regulariser("bad", of, reciprocal, reciprocal), 0, 0, 1.0)
    regularise(grid.fields, buffer.fields, grid.variant, of, reciprocal, reciprocal, *call)
    for step in (4, 5):
        grid.reduce_slots()
        ADAM.step(grid, step, 0.0, step)
    assert grid.fields.nonfinite_step[None] == 4 + 2
    for got, was in zip(state(grid), before, strict=True):
        np.testing.assert_array_equal(got, was)
    grid.fields.nonfinite_step[None] = 0
    grid.set_activation(Activation())


@pytest.mark.parametrize("beta", ["beta1", "beta2"])
def test_decays_of_the_moments_are_far_enough_from_one_for_single_precision(beta):
    """At the first step 1 - beta is what all is divided by."""
    most = replace(Adam(), **{beta: MAX_BETA})
    assert 1 - np.float32(getattr(most, beta)) == pytest.approx(1 - MAX_BETA, rel=0.01)
    with pytest.raises(RaymarchError, match=beta):
        replace(Adam(), **{beta: 1 - 1e-9})  # 1 in single precision


def test_rates_decay_from_first_to_final():
    adam = replace(ADAM, cooldown=0.0)
    first, half, last = (np.array(adam.rates(progress)) for progress in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(first, [0.4, 0.05], rtol=1e-15)
    np.testing.assert_allclose(last, first * 0.2, rtol=1e-15)
    np.testing.assert_allclose(half, np.sqrt(first * last), rtol=1e-14)


@pytest.mark.parametrize("cooldown", [0.2, 0.5, 1.0])
def test_rates_cool_down_along_a_line_to_zero(cooldown):
    """The last part of a fit alone, beside what they decay by."""
    adam = replace(ADAM, cooldown=cooldown)
    for progress in np.linspace(0, 1, 21):
        wanted = np.array(replace(ADAM, cooldown=0.0).rates(progress))
        wanted *= np.interp(progress, [1 - cooldown, 1.0], [1.0, 0.0])
        np.testing.assert_allclose(adam.rates(progress), wanted, rtol=1e-12, atol=1e-17)


def test_rates_of_the_preset_fall_along_a_line_from_the_first_step_to_the_last():
    falling = np.array([Adam().rates(progress)[0] for progress in np.linspace(0, 1, 11)])
    np.testing.assert_allclose(falling, np.linspace(Adam().lr_density, 0, 11), atol=1e-15)


def test_a_grid_without_a_gradient_cannot_refine():
    with Grid((4, 4, 4), 0) as grid, pytest.raises(RaymarchError, match="slots=1"):
        grid.refine((4, 4, 4))


def test_rates_of_relu_are_in_units_of_twice_its_start():
    grid, start_of_relu = drive.adam_grid(), 0.07
    start(grid)
    grid.set_activation(Activation("relu", start_of_relu))
    before, _ = grid.download()
    drive.set_gradient(grid, np.ones(SHAPE), np.zeros((*SHAPE, 3)))
    Adam(lr_density=0.4, coarse=0.0, thinning=0.0).step(grid, 0, 0.0, 0)
    np.testing.assert_allclose(before - grid.download()[0], 0.4 * 2 * start_of_relu, rtol=1e-5)
    grid.set_activation(Activation())


def test_what_one_sample_gives_is_summed_in_every_block_that_it_reaches():
    """A cell at the end of a block has corners in the next, which nobody marked as touched."""
    grid = drive.adam_grid()
    start(grid)
    fields, edge = grid.fields, grid.mark
    fields.block_written.fill(0)
    fields.block_has_gradient.fill(0)
    fields.block_written[0, 0, 0] = 1
    for corner in np.ndindex(2, 2, 2):
        x, y, z = edge - 1 + np.array(corner)
        fields.d_density[0, x, y, z] = 1.0 + sum(corner)
    grid.reduce_slots()
    d_density, _ = grid.download_gradient()
    for corner in np.ndindex(2, 2, 2):
        assert d_density[tuple(edge - 1 + np.array(corner))] == 1.0 + sum(corner)
    assert d_density.sum() == 8 + 3 * 4
    drive.set_gradient(grid, np.zeros(SHAPE), np.zeros((*SHAPE, 3)))


@pytest.mark.parametrize(("steps", "part"), [(900, 0.3), (2000, 0.4), (2500, 0.5), (30_000, 0.5)])
def test_a_long_fit_moves_cubes_further(steps, part):
    """By what it has done so far, whenever it is asked; at its first step as a short one."""
    assert Adam().coarse_at(0.0, 0) == 0.3
    assert [Adam().coarse_at(n / 8, n * steps // 8) for n in range(1, 9)] == pytest.approx([part] * 8, rel=1e-2)
