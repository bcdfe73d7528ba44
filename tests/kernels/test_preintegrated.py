"""Law: a pre-integrated picture is the integral between the knots that a ray meets, whatever the step, with slopes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import cases
import numpy as np
import pytest
import reference

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.rays import Rays
from raymarch.gradients import check_process
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import Renderer, render
from raymarch.rendering.shading import Shading
from raymarch.volumes.transfer_function import MAX_OPACITY, TransferFunction
from raymarch.volumes.volume import Volume

VOLUME = cases.volume("rotated", 0, "identity")
VOLUME = replace(VOLUME, activation=replace(VOLUME.activation, scale=1.0))
CAMERA = cases.cameras(VOLUME)[0]
PEAKS = TransferFunction(
    [-1, -0.1, 0, 0.1, 0.9, 1.0, 1.1], np.eye(8)[:7, :3], [0.3, 0, 0.9, 0, 0, 0.9, 0.1], unit_length=0.2
)
MARCH = March(min_transmittance=0, min_weight=0, mode="transfer", transfer=PEAKS, preintegrated=True)
MARCH = replace(MARCH, batch=cases.FEW)


def cuts_of(volume, origin, way):
    """Where a ray in index space enters the box, goes from cell to cell, and leaves the box."""
    top = np.array(volume.shape) - 1.0
    low, high = -origin / way, (top - origin) / way
    near, far = max(0.0, np.minimum(low, high).max()), np.maximum(low, high).min()
    planes = np.concatenate([(np.arange(n) - origin[a]) / way[a] for a, n in enumerate(volume.shape)])
    return np.array([near, *np.sort(planes[(planes > near) & (planes < far)]), far]) if far > near else np.zeros(0)


def between_knots(cubic, values):
    """0, 1 and the places between them where a cubic is one of some values: roots of a polynomial."""
    met = []
    for value in values:
        roots = np.roots(cubic - np.array([0, 0, 0, value]))
        met += [x.real for x in roots if abs(x.imag) < 1e-9 and 0 < x.real < 1]
    return np.array([0.0, *sorted(met), 1.0])


def integrated(volume, table, rays, background, points=4, parts=1):
    """Colour and T (ray, 4): the field in a cell as a polynomial through four of its values, Gauss-Legendre between its
    crossings, each in as many parts."""
    place, share = np.polynomial.legendre.leggauss(points)
    place, share = (place + 1) / 2 / parts, share / 2 / parts
    place = np.concatenate([place + k / parts for k in range(parts)])
    share, m, image = np.tile(share, parts), np.linalg.inv(volume.world_from_index), []
    for origin, direction in zip(rays.origin, rays.direction, strict=True):
        o, d = m[:3, :3] @ origin + m[:3, 3], m[:3, :3] @ direction
        cuts, colour, T = cuts_of(volume, o, d), np.zeros(3), 1.0
        for t0, t1 in pairwise(cuts):
            at = np.linspace(t0, t1, 6)[1:-1]  # within the cell, whatever rounding makes of its faces
            v = [reference.gather(volume.density, o + t * d) + volume.activation.shift for t in at]
            cubic = np.polyfit(np.linspace(0, 1, 6)[1:-1], v, 3)
            ends = between_knots(cubic, table.values)
            for u0, u1 in pairwise(ends):
                shades = table(np.polyval(cubic, u0 + place * (u1 - u0)))
                sigma = -np.log1p(-np.minimum(shades[:, 3], MAX_OPACITY)) / table.unit_length
                for shade, tau in zip(shades, sigma * share * (u1 - u0) * (t1 - t0), strict=True):
                    colour, T = colour + T * (1 - np.exp(-tau)) * shade[:3], T * np.exp(-tau)
        image.append([*(colour + T * np.array(background)), T])
    return np.array(image)


def linearised() -> Linearised:
    return Linearised(VOLUME, CAMERA, background=cases.BACKGROUND, march=MARCH, columns=2)


@pytest.fixture
def seen():
    with linearised() as seen:
        yield seen


def test_the_picture_is_that_of_gauss_legendre_points_between_the_knots(seen):
    wanted = integrated(VOLUME, PEAKS, CAMERA.rays(), cases.BACKGROUND)
    assert 0.1 < wanted[:, 3].mean() < 0.9
    np.testing.assert_allclose(seen.image(), wanted, rtol=0, atol=1e-9)  # roots of a polynomial are good to that


def test_the_worst_pixel_through_peaks_in_noise_is_good_where_plain_steps_miss_them():
    """Against many points between the knots; and the step is none of it, nor what is skipped."""
    true = integrated(VOLUME, PEAKS, CAMERA.rays(), cases.BACKGROUND, parts=16)[:, :3]
    with linearised() as seen:
        image = seen.image()[:, :3]
    error = np.abs(image - true)
    assert error.max() < 3e-3 and error.mean() < 2e-4
    soft = replace(PEAKS, opacities=np.array([0, 0.1, 0.6, 0.2, 0.1, 0.5, 0.3]))
    picture = render(VOLUME, CAMERA, march=replace(MARCH, transfer=soft), background=cases.BACKGROUND)
    wanted = integrated(VOLUME, soft, CAMERA.rays(), cases.BACKGROUND, parts=16)[:, :3]
    assert np.abs(picture.reshape(-1, 3) - wanted).max() < 1e-3
    pictures = [
        render(VOLUME, CAMERA, march=replace(MARCH, step=step), background=cases.BACKGROUND) for step in (0.25, 2)
    ]
    np.testing.assert_array_equal(*pictures)
    np.testing.assert_allclose(pictures[0].reshape(-1, 3), image, atol=1e-6)
    plain = render(VOLUME, CAMERA, march=replace(MARCH, preintegrated=False, step=0.25), background=cases.BACKGROUND)
    assert np.abs(plain.reshape(-1, 3) - true).max() > 0.02


@pytest.mark.parametrize("n", [24, 26, 27, 29])
def test_what_no_ray_passes_through_costs_and_changes_nothing(n):
    """A ball of peaks in a fog of values that are clear: cells are leapt over, and nothing is lost or met twice.

    Of 29 samples a cell of occupancy is four cells long, of the others a little less: a cell lies in two of them.
    """
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, n)] * 3, indexing="ij"), -1)
    activation = replace(VOLUME.activation, shift=0.0)
    values = 1 - np.linalg.norm(x, axis=-1)
    table = TransferFunction([0.5, 0.6, 0.62], [(1, 0, 0), (0, 1, 0), (0, 0, 1)], [0, 0.8, 0], 0.2)
    volume = Volume(values, np.zeros((n, n, n, 3)), VOLUME.world_from_index, activation)
    rays = cases.rays(volume)
    with Renderer(volume, replace(MARCH, transfer=table)) as renderer:
        occupied = renderer.grid.occupied_cells()
        skipped, _ = renderer.trace(rays, cases.BACKGROUND)
        renderer.grid.occupy(np.ones_like(occupied))
        renderer.grid.measure_occupancy()
        whole, _ = renderer.trace(rays, cases.BACKGROUND)
    assert 0.01 < occupied.mean() < 0.7 and skipped[:, 3].min() < 0.9
    np.testing.assert_allclose(skipped, whole, atol=1e-7)


def test_a_peak_as_thin_as_can_be_is_met():
    """Of a value that rises from -2 to 2 over one world unit, a triangle 0.01 wide is 0.0025 long, tau is known."""
    x = np.linspace(-2, 2, 2)[:, None, None] * np.ones((1, 2, 2))
    volume = Volume(x, np.zeros((2, 2, 2, 3)), np.eye(4), replace(VOLUME.activation, shift=0.0))
    table = TransferFunction([-0.005, 0, 0.005], np.ones((3, 3)), [0, 0.5, 0], unit_length=0.01)
    a = np.linspace(0, 0.5, 20001)
    tau = np.trapezoid(-np.log1p(-a), a) / 0.5 * 0.0025 / 0.01
    with Renderer(volume, replace(MARCH, transfer=table)) as renderer:
        for origin, way in (([-1, 0.5, 0.5], [1, 0, 0]), ([2, 0.5, 0.5], [-1, 0, 0])):
            image, _ = renderer.trace(Rays([origin], [way]), "black")
            np.testing.assert_allclose(image[0], [*[1 - np.exp(-tau)] * 3, np.exp(-tau)], atol=1e-6)


def test_a_knot_that_a_cell_meets_three_times_is_met_three_times():
    """Along the diagonal of one cell the field is the cubic by Bernstein's polynomials of -1, 3, -3, 1."""
    x = np.array([-1.0, 3, -3, 1])[np.indices((2, 2, 2)).sum(0)]
    volume = Volume(x, np.zeros((2, 2, 2, 3)), np.eye(4), replace(VOLUME.activation, shift=0.0))
    rays = Rays([[-0.3, -0.2, -0.1], [1.2, 1.2, 1.2]], [[1, 0.9, 0.8], [-1, -1, -1]])
    with Renderer(volume, replace(MARCH, transfer=replace(PEAKS, unit_length=3.0))) as renderer:
        image, _ = renderer.trace(rays, cases.BACKGROUND)
    wanted = integrated(volume, replace(PEAKS, unit_length=3.0), rays, cases.BACKGROUND)
    np.testing.assert_allclose(image, wanted, rtol=0, atol=1e-6)


def test_where_a_ray_only_touches_a_knots_level_the_slope_is_as_if_the_knot_stayed():
    """Along the diagonal t (1 - t) has its largest value on the knot; by raw density, below which nothing is there."""
    x, y, _ = np.indices((2, 2, 2), float)
    volume = Volume(x * (1 - y), np.zeros((2, 2, 2, 3)), np.eye(4), replace(VOLUME.activation, shift=0.0))
    camera = Camera.orthographic((-2, -2, 0.1), (1, 1, 0.7), size=1e-9, width=1, height=1)
    table = TransferFunction([-1, 0.25, 1], np.eye(3), [0.1, 0.6, 0], unit_length=1.0)
    with Linearised(volume, camera, background="black", march=replace(MARCH, transfer=table), columns=2) as seen:
        tangent, w = seen.tangent(Parameters(density=np.ones((2, 2, 2)))), np.array([[0.3, -1.0, 0.7, 0.4]])
        assert seen.adjoint(w).density.sum() == pytest.approx(np.vdot(w, tangent), rel=1e-10)
        here, below = (
            integrated(replace(volume, density=raw), table, seen.rays, (0, 0, 0), parts=99)
            for raw in (volume.density, volume.density - 1e-4)
        )
    np.testing.assert_allclose(tangent, (here - below) / 1e-4, rtol=0.01, atol=1e-12)
    assert np.abs(tangent[0, [0, 1, 3]]).min() > 0.3


@pytest.mark.parametrize("preintegrated", [False, True])
def test_a_value_beyond_all_numbers_of_the_device_has_the_shade_of_the_last_knot(preintegrated):
    """Raw numbers that are in bounds, over a scale that is: what is behind the table is not looked into."""
    activation, place = replace(VOLUME.activation, shift=0.0, scale=1e-10), np.diag([1.1e-9, 1.1e-9, 1.1e-9, 1])
    volume = Volume(np.full((2, 2, 2), 2e28), np.zeros((2, 2, 2, 3)), place, activation)
    table = replace(PEAKS, unit_length=1e-9)
    with Renderer(volume, replace(MARCH, transfer=table, preintegrated=preintegrated)) as renderer:
        image, _ = renderer.trace(Rays([[-1e-9, 5e-10, 5e-10]], [[1, 0, 0]]), "black")
    left = (1 - PEAKS.opacities[-1]) ** 1.1
    np.testing.assert_allclose(image[0], [*(1 - left) * PEAKS.colours[-1], left], atol=1e-6)


def test_depth_and_normals_are_those_of_the_plain_march():
    pictures = [render(VOLUME, CAMERA, march=replace(MARCH, preintegrated=pre), extras=True) for pre in (False, True)]
    for name in ("depth", "normals"):
        np.testing.assert_array_equal(*(getattr(picture, name) for picture in pictures))
    assert np.isfinite(pictures[0].depth).any() and pictures[0].normals.any()


@pytest.mark.parametrize(
    "march",
    [MARCH, March(mode="isosurface", iso=0.3, shading=Shading(lamp=(1, 2, 3)), clip=Clip(planes=[((0, 1, 0), 0.0)]))],
)
def test_a_check_in_a_process_of_its_own_is_told_how_rays_are_sampled(march, monkeypatch):
    """Its work, done here: the march that arrives is the one that was given."""
    arrived = []
    monkeypatch.setattr(check_process.CheckTask, "rows", lambda task: arrived.extend(task.marches) or [])
    monkeypatch.setattr(check_process, "_run", check_process._main)
    check_process.check_gradients(VOLUME, CAMERA, ["background"], march=march)
    (came,) = arrived
    single = {"transfer": None, "supersample": march.supersample or 1}  # gradients are of single rays
    assert vars(came) | {"transfer": None} == vars(march) | single
    assert (came.transfer and came.transfer.record()) == (march.transfer and march.transfer.record())


def test_what_it_does_not_see_is_refused(seen):
    with pytest.raises(RaymarchError, match="mode transfer has no gradient by step"):
        seen.tangent(Parameters(step=np.array(1.0)))
    with pytest.raises(RaymarchError, match="preintegrated is True in mode x-ray"):
        March(mode="x-ray", preintegrated=True)
