"""Law: a compositing mode of a user's own is marched and differentiated as ours are, and a wrong one is named."""

from contextlib import ExitStack
from dataclasses import replace

import cases
import drive
import numpy as np
import pytest
from depths import Depths

from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.gradients.check import check_rows
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.modes.registry import COMPOSITING_MODES as MODES
from raymarch.rendering.march_settings import March, require_mode
from raymarch.rendering.renderer import render

EXACT = March(step=0.47, min_transmittance=0.0, min_weight=0.0)
OURS = MODES["emission-absorption"]


@ti.func
def composite(T, tau, e):  # half of what a sample holds back is lost
    return 0.5 * T * (1.0 - e), T * e


@ti.func
def tangent(T, tau, dot_T, dot_tau):
    e = ti.exp(-tau)
    return 0.5 * (dot_T * (1.0 - e) + T * e * dot_tau), dot_T * e - T * e * dot_tau


@ti.func
def adjoint(T, tau, T_after, d_weight, remaining):
    return T * ti.exp(-tau) * (0.5 * d_weight - remaining)


@ti.func
def composite_most(T, tau, e):  # the most opaque sample so far is seen, whatever there was before it
    after = ti.min(T, e)
    return T - after, after


@ti.func
def tangent_most(T, tau, dot_T, dot_tau):
    e = ti.exp(-tau)
    dot_after = ti.select(e < T, -e * dot_tau, dot_T)
    return dot_T - dot_after, dot_after


@ti.func
def adjoint_most(T, tau, T_after, d_weight, remaining):
    e = ti.exp(-tau)
    return ti.select(e < T, e * (d_weight - remaining), 0.0)


HALF = replace(OURS, name="half", composite=composite, tangent=tangent, adjoint=adjoint, power=None)
MOST = replace(OURS, name="most", composite=composite_most, tangent=tangent_most, adjoint=adjoint_most, power=None)


@ti.func
def with_T_to_come(T, tau, T_after, d_weight, remaining):
    return T_after * (d_weight - remaining)


@ti.func
def one_number(T, tau, e):
    return T * (1.0 - e)


@ti.func
def endless(T, tau, e):
    return T * (1.0 - e) / (T - T), T * e


@ti.func
def half_as_steep(T, tau, dot_T, dot_tau):
    e = ti.exp(-tau)
    return dot_T * (1.0 - e) + 0.5 * T * e * dot_tau, dot_T * e - T * e * dot_tau


def both(volume, camera, march, d_image):
    with Linearised(volume, camera, background=cases.BACKGROUND, march=march, columns=1) as seen:
        return seen.image(), seen.adjoint(d_image)


def test_looking_ahead_gives_the_gradients_that_are_read_off_the_image():
    volume = cases.volume("rotated", 0)
    camera = cases.cameras(volume)[0]
    d_image = np.random.default_rng(0).normal(size=(camera.width * camera.height, 4))
    wanted, ahead = (
        both(volume, camera, replace(EXACT, mode=mode), d_image)
        for mode in (OURS, replace(OURS, name="ahead", power=None, adjoint=with_T_to_come))
    )
    np.testing.assert_allclose(ahead[0], wanted[0], rtol=0, atol=1e-14)  # samples go in pairs, or one by one
    for name in ("density", "colour", "pose", "focal", "step", "box"):
        want = getattr(wanted[1], name)
        np.testing.assert_allclose(getattr(ahead[1], name), want, rtol=0, atol=1e-11 * np.abs(want).max(), err_msg=name)


@pytest.mark.whole
def test_a_mode_of_ones_own_passes_the_dot_test_and_the_difference():
    """One that is seen behind what hides it, below, stands for it, and one that looks ahead."""
    volume, rng = cases.volume("upright", 0), np.random.default_rng(1)
    camera = cases.cameras(volume)[0]
    with Linearised(volume, camera, march=replace(EXACT, mode=HALF), columns=1) as seen:
        w = rng.normal(size=seen.image().shape)
        gradient = seen.adjoint(w)
        for name in ("density", "colour", "pose"):
            direction = Parameters(**{name: rng.normal(size=np.shape(getattr(gradient, name)))})
            along = seen.tangent(direction)
            assert abs((along * w).sum() / gradient.dot(direction) - 1) < 1e-12, name
            difference = (seen.shifted(direction, 1e-6) - seen.shifted(direction, -1e-6)) / 2e-6
            assert np.abs(difference - along).max() < 1e-6 * np.abs(along).max(), name


def test_where_what_passes_a_sample_is_not_by_what_came_to_it_the_next_ones_are_still_seen():
    """T after the most opaque sample so far has no slope by T before, so nothing that is carried through it tells."""
    volume = cases.volume("rotated", 0)
    with Linearised(volume, cases.cameras(volume)[0], march=replace(EXACT, mode=MOST), columns=1) as seen:
        rows = check_rows(seen, ["density", "colour", "pose"], pairs=2)
    for row in rows:
        assert row.dot < 1e-12 and row.difference < 1e-7 and row.verdict == "good", row


def test_so_are_those_of_a_group_above_degree_0():
    """The adjoint's own loop over samples that are looked at together, against differences of the march."""
    volume, rng = cases.volume("rotated", 1), np.random.default_rng(3)
    rays, how = cases.cameras(volume)[0].rays(), {"mode": MOST}
    w = rng.normal(size=(len(rays), 4))
    gradients = drive.gradient(volume, rays, w, 0.47 * volume.voxel, **how)
    for name, d in zip(("density", "features"), gradients, strict=True):
        direction = rng.normal(size=d.shape)

        def along(h, name=name, direction=direction):
            moved = replace(volume, **{name: getattr(volume, name) + h * direction})
            return np.sum(w * drive.image(moved, rays, 0.47 * volume.voxel, **how))

        assert drive.best_agreement(along, np.sum(d * direction)) < 1e-7


def test_so_has_the_depth_of_such_a_mode():
    volume, rng = cases.volume("rotated", 0), np.random.default_rng(2)
    camera, march = cases.cameras(volume)[0], replace(EXACT, mode=MOST)
    with Linearised(volume, camera, march=march, columns=1) as seen, ExitStack() as owners:
        depths, dot, (origin, way) = Depths(seen, owners), rng.normal(size=volume.shape), rng.normal(size=(2, 30, 3))
        ahead, back = (depths.of(volume.density + h * dot) for h in (1e-6, -1e-6))
        here, d_depth = depths.of(volume.density), rng.normal(size=len(seen.rays))
        along, met = depths.tangent(dot), np.isfinite(here)
        gap = np.vdot(along, d_depth) - np.vdot(dot, depths.adjoint(d_depth))
        by_rays = depths.geometry_tangent(origin, way)
        by_origin, by_way = depths.geometry_adjoint(d_depth)
    assert met.sum() > 10
    np.testing.assert_allclose(along[met], (ahead[met] - back[met]) / 2e-6, rtol=0, atol=1e-7 * np.abs(along).max())
    assert abs(gap) < 1e-12 * np.linalg.norm(along) * np.linalg.norm(d_depth)
    gap = np.vdot(by_rays, d_depth) - np.vdot(origin, by_origin) - np.vdot(way, by_way)
    assert abs(gap) < 1e-12 * np.linalg.norm(by_rays) * np.linalg.norm(d_depth)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"composite": one_number}, "mode 'half': composite does not compile"),
        ({"composite": endless}, "mode 'half': composite gives inf at T 0.93"),
        ({"tangent": half_as_steep}, "mode 'half': tangent gives .* differences of composite give"),
        ({"adjoint": OURS.adjoint}, "mode 'half': adjoint gives .* by weight at T .* differences of composite give"),
        ({"power": 0, "adjoint": with_T_to_come}, "mode 'half': adjoint gives"),
    ],
)
def test_a_wrong_part_is_named_in_one_line(change, said):
    with pytest.raises(RaymarchError, match=said) as caught:
        render(
            cases.volume("upright", 0),
            cases.cameras(cases.volume("upright", 0))[0],
            march=March(mode=replace(HALF, **change)),
        )
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_ours_pass_the_check_of_modes(mode):
    require_mode(replace(mode, name="a copy"))
