"""Law: what must not matter does not: where the world's origin is, its unit, batches, layouts, slots, skipping."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import cases
import drive
import numpy as np
import pytest
import reference
import single as worker
from whole import whole

from raymarch.device.grid import Grid
from raymarch.device.image_store import lens_vector
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.geometry.boxes import affine_of_box
from raymarch.geometry.camera import Camera
from raymarch.geometry.rays import Rays
from raymarch.kernels.field.copies import clear_gradients
from raymarch.kernels.field.occupancy import occupy, spread
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.kernels.rays.camera import rays_of_pixels
from raymarch.rendering.march_settings import MAX_SKIPPING_ERROR, March
from raymarch.rendering.renderer import Renderer
from raymarch.volumes.activation import Activation
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.volume import Volume

LARGE = (32, 29, 26)  # many occupancy cells, the last ones of two axes cut; no more than a small grid has room for


def general_rays(v):
    """The rays that do not graze; those begin or end to meet the box where rounding says so."""
    return cases.rays(replace(v, world_from_index=v.world_from_index @ cases.motion(shift=(1e-3, 2e-3, 3e-3))))


def moved_rays(rays, m):
    return Rays(rays.origin @ m[:3, :3].T + m[:3, 3], rays.direction @ m[:3, :3].T)


@pytest.mark.parametrize("place", cases.PLACES)
def test_moving_camera_and_volume_together_changes_nothing(place):
    """A rotation too, where colours do not depend on the direction (harmonics are of world directions)."""
    rotation, shift = cases.motion((1, -2, 0.5), 1.1, (5, -3, 2)), cases.motion(shift=(5, -3, 2))
    for degree, m in ((0, rotation), (1, shift)):
        v = cases.volume(place, degree)
        rays, step = general_rays(v), 0.5 * v.voxel
        wanted = drive.image(v, rays, step)
        np.testing.assert_allclose(drive.image(v.moved(m), moved_rays(rays, m), step), wanted, rtol=0, atol=1e-12)
    camera = cases.cameras(v)[0]
    np.testing.assert_allclose(
        camera.moved(m).rays().direction, moved_rays(camera.rays(), m).direction, rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("scale", [1e-3, 0.37, 1e4])
def test_the_unit_of_the_world_does_not_matter(scale):
    """A world `scale` times as large with sigma `1/scale` times as large gives the same image."""
    v = cases.volume("rotated")
    rays, m = general_rays(v), cases.motion(scale=scale)
    larger = replace(v.moved(m), activation=replace(v.activation, scale=v.activation.scale * scale))
    wanted = drive.image(v, rays, 0.5 * v.voxel)
    got = drive.image(larger, Rays(rays.origin * scale, rays.direction), 0.5 * larger.voxel)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-11)


def jitter_of(rays):
    """A jitter (ray, 2) of chance."""
    return np.random.default_rng(1).uniform((0.0, 0.6), (1.0, 1.5), (len(rays), 2))


# Flat, in the blocks that marks have, in smaller and in larger ones; jittered samples go one by one, which compiles in
# half the time.
@pytest.mark.parametrize(
    ("degree", "blocks", "jittered"), [(0, (4, 2, 8), True), whole(0, cases.BLOCKS, False), (1, (4, 1), False)]
)
def test_images_of_the_block_layouts_are_equal(degree, blocks, jittered):
    v = cases.volume(degree=degree)
    rays = cases.rays(v)
    d_image = np.random.default_rng(0).normal(size=(len(rays), 4))
    jitter = jitter_of(rays) if jittered else None
    images = [drive.image(v, rays, 0.1, block=block, jitter=jitter) for block in blocks]
    gradients = [drive.gradient(v, rays, d_image, 0.1, block=block, jitter=jitter) for block in blocks]
    for image, (d_density, d_features) in zip(images, gradients, strict=True):
        drive.same_sums(image, images[0])
        drive.same_sums(d_density, gradients[0][0])
        drive.same_sums(d_features, gradients[0][1])


@pytest.mark.parametrize("degree", [whole(degree) for degree in (0, 1, 2)])
def test_in_single_precision_gradients_of_the_block_layouts_are_equal(single, degree):
    """Each layout is rounded as the compiler finds it quickest."""
    first, *others = single(worker.gradients_of_layouts, degree, cases.BLOCKS)
    for other in others:
        for got, want in zip(other, first, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("slots", [5, whole(1)])
def test_the_number_of_slots_does_not_change_the_gradient(slots):
    v = cases.volume(degree=0)
    rays = cases.rays(v)
    d_image = np.random.default_rng(0).normal(size=(len(rays), 4))
    wanted = drive.gradient(v, rays, d_image, 0.1, slots=2, jitter=jitter_of(rays))
    gradients = drive.gradient(v, rays, d_image, 0.1, slots=slots, jitter=jitter_of(rays))
    for got, want in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_gradients_accumulate_and_repeat():
    """Two adjoints without clearing give twice the gradient, and one gives the same bytes every time."""
    v = cases.volume()
    rays = cases.rays(v)
    d_image = np.random.default_rng(0).normal(size=(len(rays), 4))
    once, again, twice = (drive.gradient(v, rays, d_image, 0.1, times=n) for n in (1, 1, 2))
    for one, same, two in zip(once, again, twice, strict=True):
        drive.same_sums(same, one)
        most = len(rays) * np.finfo(float).eps * np.abs(two).max()  # every ray adds once to a sum of that size
        np.testing.assert_allclose(two, 2 * one, rtol=0, atol=most)


@pytest.mark.parametrize("index", range(2))
def test_device_rays_are_the_cameras(index):
    camera, buffer = cases.cameras(cases.volume())[index], drive.ray_buffer()
    count = camera.width * camera.height
    pose, lens = ti.Matrix(camera.world_from_camera.tolist()), ti.Vector(lens_vector(camera))
    for first in (0, 7):  # a batch may begin in the middle of a row
        rays_of_pixels(buffer.fields, pose, lens, camera.width, np.arange(first, count, dtype=np.int32), 1, False, 0)
        for name in ("origin", "direction"):
            got, wanted = getattr(buffer.fields, name).to_numpy(), getattr(camera.rays(), name)
            np.testing.assert_allclose(got[: count - first], wanted[first:], rtol=0, atol=1e-15)


def test_image_is_continuous_in_step_and_box():
    """Where a step more fits into the ray, and where the far face passes a multiple of the step."""
    v = cases.volume()
    along = Rays([[-4, 0.2, 0.1]], [[1, 0, 0]])  # 2 units inside

    def longer(e):
        return replace(v, world_from_index=affine_of_box(v.box + [[0, 0, 0], [2 * e, 0, 0]], v.shape))

    for step in (0.125, 0.25, 0.5, 2.0):
        at = drive.image(v, along, step)
        for e in (-1e-9, 1e-9):
            np.testing.assert_allclose(drive.image(v, along, step * (1 + e)), at, rtol=0, atol=1e-7)
            np.testing.assert_allclose(drive.image(longer(e), along, step), at, rtol=0, atol=1e-7)


@pytest.mark.parametrize("min_transmittance", [0.01, 0.3])
def test_early_stop_hides_at_most_its_transmittance(min_transmittance):
    """The samples not seen have weights that add up to at most `min_transmittance`, and colours are in 0..1."""
    v = cases.volume(density="exponential")
    v = replace(v, activation=replace(v.activation, scale=0.2))
    rays = cases.rays(v)
    hidden = np.abs(drive.image(v, rays, 0.1, min_transmittance=min_transmittance) - drive.image(v, rays, 0.1))
    assert 0 < hidden.max() <= min_transmittance


SEES_ALL = March(batch=256, min_transmittance=0.0, min_weight=0.0)


@pytest.fixture
def renderer():
    """A renderer with many occupancy cells, loaded with `sparse`."""
    with Renderer(sparse(), SEES_ALL) as renderer:
        yield renderer


@cache
def sparse(seed=0, shape=LARGE):
    """Blobs of random density among exact emptiness."""
    rng = np.random.default_rng(seed)
    density = rng.uniform(0, 4, shape)
    centres = rng.uniform(0, 1, (3, 3)) * shape
    index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    near = min_distance(index, centres) < 3.5
    world_from_index = cases.motion((1, 2, 3), 0.4, (-0.5, -0.5, -0.5)) @ np.diag([0.04, 0.05, 0.03, 1])
    features = rng.uniform(-0.5, 0.5, (*shape, 3)) / Y00  # colours of 0..1
    return Volume(density * near, features, world_from_index, Activation("relu", 0.0, 0.1, "clamped"))


def min_distance(index, centres):
    return np.min([np.linalg.norm(index - c, axis=-1) for c in centres], axis=0)


def around(v, count=300, seed=0):
    """Rays from all about towards all of the box, some along its axes."""
    rng = np.random.default_rng(seed)
    low, high = v.box
    target = rng.uniform(low, high, (count, 3))
    direction = rng.normal(size=(count, 3))
    direction[:30] = np.repeat(
        [v.world_from_index[:3, 0], -v.world_from_index[:3, 1], v.world_from_index[:3, 2]], 10, 0
    )
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return Rays(target - 3 * direction * rng.integers(0, 2, (count, 1)), direction)


@pytest.mark.parametrize("step", [0.07, 0.5, 1.3, 4.0])
def test_skipping_empty_space_changes_nothing(renderer, step):
    """No step jumps over an occupied cell: with exact emptiness elsewhere the image is that without skipping."""
    for seed, shape in enumerate([LARGE, (20, 29, 13), LARGE]):
        v = sparse(seed, shape)
        rays = around(v)
        renderer.grid.upload(v)
        wanted = drive_large(renderer, rays, step)
        share = renderer.grid.refresh_occupancy(0.0)
        assert 0 < share < 0.5
        np.testing.assert_allclose(drive_large(renderer, rays, step), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("step", [0.3, 1.3])
def test_skipping_empty_space_changes_no_gradient(step):
    v = sparse()
    rays = around(v)
    d_image = np.random.default_rng(2).normal(size=(len(rays), 4))
    with Grid(LARGE, 0, slots=2) as grid, RayBuffer(len(rays)) as buffer:
        grid.upload(v)

        def gradient():
            drive.image_on(grid, buffer, rays, step * grid.voxel)
            buffer.set_image_gradient(d_image)
            clear_gradients(grid.fields)
            black = ti.Vector(list(cases.BACKGROUND))
            march_adjoint(grid.fields, buffer.fields, grid.variant, len(rays), step * grid.voxel, 0.0, 0.0, black)
            grid.reduce_slots()
            return grid.download_gradient()

        wanted = gradient()
        assert 0 < grid.refresh_occupancy(0.0) < 0.5
        for got, want in zip(gradient(), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())


def drive_large(renderer, rays, step):
    """Image in f64 of the renderer's grid."""
    parts = [Rays(rays.origin[i : i + 256], rays.direction[i : i + 256]) for i in range(0, len(rays), 256)]
    step = step * renderer.grid.voxel
    return np.concatenate([drive.image_on(renderer.grid, renderer.buffer, part, step) for part in parts])


@pytest.mark.parametrize("density", cases.FIT_DENSITIES)
def test_skipping_what_is_invisible_changes_little(renderer, density):
    """The renderer's own threshold hides under 1e-5 of the image, thin haze everywhere included."""
    inverse = {"softplus": lambda x: np.log(np.expm1(x)), "relu": lambda x: x, "exponential": np.log}[density]
    for scale in (1.0, 1e-3):
        v = sparse(1)
        min_weight = MAX_SKIPPING_ERROR / np.linalg.norm(v.box[1] - v.box[0])
        haze = np.random.default_rng(0).uniform(0, 2, v.shape) * min_weight
        activation = Activation(density, 0.0, scale, "clamped" if density == "relu" else "sigmoid")
        v = replace(v, density=inverse((v.sigma() + haze) * scale), activation=activation)
        rays = around(v)
        renderer.grid.upload(v)
        wanted = drive_large(renderer, rays, 0.5)
        renderer.grid.refresh_occupancy(min_weight)
        np.testing.assert_allclose(drive_large(renderer, rays, 0.5), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("colour", "value"), [("identity", 0.8), ("identity", 50.0), ("clamped", 4.0)])
def test_skipping_haze_before_something_bright_changes_little(colour, value):
    """Whatever the colours' size, skipping hides under 1e-5 of the brightest: haze just under the threshold, a wall."""
    n = 17
    longest = 2 * np.sqrt(3)
    min_weight = MAX_SKIPPING_ERROR / (longest * max(value + (colour == "clamped"), 1.0))
    density = np.full((n, n, n), 0.999 * min_weight, np.float32)
    density[:3] = 30
    features = np.full((n, n, n, 3), (value - 0.5 * (colour == "clamped")) / Y00, np.float32)
    place = affine_of_box([(-1, -1, -1), (1, 1, 1)], (n, n, n))
    camera = Camera.look_at((3, 3, 3), width=24, height=24, fov=0.5)
    volume = Volume(density, features, place, Activation("relu", 0, 1, colour))
    with Renderer(volume, March(batch=cases.FEW)) as sees:
        skipped = sees.render(camera, "black").image
        assert drive.distances(sees.grid)[0].any()
        occupy(sees.grid.fields)
        np.testing.assert_allclose(skipped, sees.render(camera, "black").image, rtol=0, atol=1e-5 * max(value, 1))


def test_what_is_skipped_hides_no_more_where_colours_are_brighter():
    """A haze too thin to count at colours up to 1 counts at 50."""
    n, value = 17, 50.0
    haze = 0.999 * MAX_SKIPPING_ERROR / (2 * np.sqrt(3))
    place = affine_of_box([(-1, -1, -1), (1, 1, 1)], (n, n, n))
    features = np.full((n, n, n, 3), value / Y00, np.float32)
    volume = Volume(np.full((n, n, n), haze, np.float32), features, place, Activation("relu", 0, 1, "identity"))
    camera = Camera.look_at((3, 3, 3), width=24, height=24, fov=0.5)
    with Renderer(volume, SEES_ALL) as sees:
        image = sees.render(camera, "black").image
    along = -np.log1p(-image.max() / value) / haze  # the length of the longest ray in the box
    assert 0.9 * 2 * np.sqrt(3) < along <= 2 * np.sqrt(3) * (1 + 1e-4)


@pytest.mark.parametrize("axis", range(3))
def test_distances_along_a_line_beyond_the_farthest(axis):
    shape = np.roll([600, 3, 2], axis)
    marks = np.full(shape, 255, np.uint8)
    marks[tuple(np.roll([slice(3, 5), 0, 1], axis))] = marks[tuple(np.roll([310, 2, 0], axis))] = 0
    occupied = marks == 0
    to_empty = spread(marks)
    np.testing.assert_array_equal(marks, reference.chessboard(occupied))
    np.testing.assert_array_equal(to_empty, reference.chessboard(~occupied))


@pytest.mark.parametrize("share", [0.0, 0.002, 0.05, 1.0])
def test_leap_is_the_chessboard_distance(renderer, share):
    grid = renderer.grid
    occupied = np.random.default_rng(0).uniform(size=grid.cells) < share
    drive.set_occupied(grid, occupied)
    assert grid.measure_occupancy() == pytest.approx(occupied.mean())
    empty_distance, occupied_distance = drive.distances(grid)
    np.testing.assert_array_equal(empty_distance, reference.chessboard(occupied))
    np.testing.assert_array_equal(occupied_distance, reference.chessboard(~occupied))


def test_occupied_cells_are_those_that_read_something(renderer):
    """By brute force over the samples of each cell; every cell with a sample over the threshold is marked."""
    for shape in (LARGE, (20, 29, 13)):
        v = sparse(2, shape)
        renderer.grid.upload(v)
        renderer.grid.refresh_occupancy(5.0)
        empty_distance, _ = drive.distances(renderer.grid)
        edges = [np.linspace(0, n - 1, c + 1) for n, c in zip(shape, empty_distance.shape, strict=True)]
        for cell in np.ndindex(empty_distance.shape):
            reads = tuple(
                slice(int(np.floor(e[i] + 1e-9)), int(np.ceil(e[i + 1] - 1e-9)) + 1)
                for e, i in zip(edges, cell, strict=True)
            )
            assert (empty_distance[cell] == 0) == (v.sigma()[reads] > 5.0).any()


def test_images_are_the_same_bytes_for_any_batch():
    camera = Camera.look_at((0.3, -3, 1), width=13, height=11)
    images = []
    for batch in (256, 143, 64, 17, 1):
        with Renderer(sparse(), replace(SEES_ALL, batch=batch)) as batched:
            seen = batched.render(camera)
        images.append([seen.image.tobytes(), seen.opacity.tobytes(), seen.depth.tobytes()])
    assert all(image == images[0] for image in images)
    assert 0 < seen.opacity.max()
    assert np.isfinite(seen.depth).any()
    assert np.isinf(seen.depth).any()


def test_camera_and_its_rays_render_alike(renderer):
    """Of an image of several squares, in whose order its pixels are marched."""
    camera = Camera.look_at((0.3, -3, 1), width=45, height=37)
    seen, (image, depth) = renderer.render(camera), renderer.trace(camera.rays(), depth=True)
    np.testing.assert_allclose(seen.image.reshape(-1, 3), image[:, :3], rtol=0, atol=1e-6)
    np.testing.assert_allclose(seen.opacity.reshape(-1), 1 - image[:, 3], rtol=0, atol=1e-6)
    np.testing.assert_allclose(seen.depth.reshape(-1), depth, rtol=1e-6)


@pytest.mark.parametrize("margin", [1, 3])
def test_a_margin_marks_the_cells_that_read_so_many_samples_more(renderer, margin):
    """On either side of the one sample that holds something."""
    density = np.zeros(LARGE)
    density[9, 18, 13] = 9.0
    renderer.grid.upload(replace(sparse(), density=density))
    renderer.grid.refresh_occupancy(0.5, margin)
    empty_distance, _ = drive.distances(renderer.grid)
    edges = [np.linspace(0, n - 1, c + 1) for n, c in zip(LARGE, empty_distance.shape, strict=True)]
    for cell in np.ndindex(empty_distance.shape):
        reads = [(np.floor(e[i] + 1e-9), np.ceil(e[i + 1] - 1e-9)) for e, i in zip(edges, cell, strict=True)]
        wanted = all(a - margin <= x <= b + margin for (a, b), x in zip(reads, (9, 18, 13), strict=True))
        assert (empty_distance[cell] == 0) == wanted


def reading_cells(renderer, sample):
    """The cells of LARGE that a place less than a sample away from a sample lies in."""
    per_index = np.array(renderer.grid.cells) / (np.array(LARGE) - 1)
    low, high = (np.array(sample) - 1) * per_index, (np.array(sample) + 1) * per_index
    last = np.array(renderer.grid.cells) - 1
    first, end = np.maximum(np.floor(low + 1e-9), 0).astype(int), np.minimum(np.ceil(high - 1e-9) - 1, last).astype(int)
    return tuple(slice(a, b + 1) for a, b in zip(first, end, strict=True))


@pytest.fixture
def scattered(renderer):
    """A few occupied cells, and which samples they read."""
    renderer.grid.upload(sparse())
    occupied = np.random.default_rng(3).uniform(size=renderer.grid.cells) < 0.03
    drive.set_occupied(renderer.grid, occupied)
    renderer.grid.measure_occupancy()
    return np.array([occupied[reading_cells(renderer, at)].any() for at in np.ndindex(LARGE)]).reshape(LARGE)


def test_blocks_are_alive_that_hold_a_sample_of_an_occupied_cell(renderer, scattered):
    alive, edge = renderer.grid.fields.block_occupied.to_numpy(), renderer.grid.mark
    needed = np.zeros(alive.shape, bool)
    for at in np.argwhere(scattered):
        needed[tuple(at // edge)] = True
    assert 0 < needed.sum() < 0.5 * needed.size
    assert (alive[needed] == 1).all()
    assert alive[tuple(map(slice, renderer.grid.blocks))].mean() < 0.9


def test_carving_empties_the_samples_that_no_occupied_cell_reads(renderer, scattered):
    full = sparse().density + 1.0
    renderer.grid.upload(replace(sparse(), density=full))
    drive.set_occupied(renderer.grid, np.zeros(renderer.grid.cells, bool))
    nothing, _ = renderer.grid.download_carved()
    assert (nothing == renderer.grid.activation.empty).all()
    occupied = np.random.default_rng(3).uniform(size=renderer.grid.cells) < 0.03
    drive.set_occupied(renderer.grid, occupied)
    carved, _ = renderer.grid.download_carved()
    np.testing.assert_array_equal(carved[scattered], full[scattered])
    emptied = carved == renderer.grid.activation.empty
    assert emptied.sum() > 0.5 * (~scattered).sum()  # on a cell's face both cells count


def test_a_renderers_step_is_in_voxels():
    """Of the shortest edge."""
    v = replace(cases.volume("rotated", 0), background=cases.BACKGROUND)
    rays = cases.rays(v)
    with Renderer(v, replace(SEES_ALL, step=0.7)) as renderer:
        image, _ = renderer.trace(rays)
    edge = np.linalg.norm(v.world_from_index[:3, :3], axis=0).min()
    np.testing.assert_allclose(image, drive.image(v, rays, 0.7 * edge), rtol=0, atol=2e-5)


def test_the_line_integral_of_the_thinnest_haze_is_not_skipped():
    """Nothing is too thin to count where nothing is to be shown: it may be scaled later."""
    haze = Volume.from_array(np.full((9, 9, 9), 1e-9))
    along = Rays([[0.1, 0.2, -3.0]], [[0.0, 0.0, 1.0]])
    with Renderer(haze, March(mode="x-ray", batch=cases.FEW)) as renderer:
        image, _ = renderer.trace(along)
    np.testing.assert_allclose(image[0, :3], 2e-9, rtol=1e-5)
