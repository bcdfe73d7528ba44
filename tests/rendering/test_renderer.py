"""Law: what is drawn are the views' own rays and pixels, each listed tile once a round, and no tile that matters is
left off the list."""

from __future__ import annotations

from dataclasses import replace

import cases
import drive
import numpy as np
import pytest
import reference
import single as worker

from raymarch.cli.modes import ModeOptions
from raymarch.device import brick_grid
from raymarch.device.image_store import ImageStore
from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import evaluate
from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import look_at
from raymarch.kernels.fit.choice import choose_tiles
from raymarch.kernels.fit.targets import draw_tiles
from raymarch.kernels.rays.tile_list import list_tiles
from raymarch.rendering.march_settings import March, march_for, require_seen
from raymarch.rendering.medium import VOLUMES, marches_for
from raymarch.rendering.renderer import Renderer, render
from raymarch.rendering.shading import Shading
from raymarch.views.views import Views
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import Bricks
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

TILE = 4
LARGE = [(11, 6), (9, 7), (4, 21)]  # no multiples of a tile; six tiles each
SIZES = [1, 2, 3, 4, 5, 16, 17, 64, 100, 1000]


def make_views(channels=4, sizes=tuple(LARGE)):
    """Random images, a third of the second's pixels masked; every camera differs in size, place, focal and centre."""
    rng = np.random.default_rng(0)
    cameras, images, masks = [], [], []
    for i, (width, height) in enumerate(sizes):
        eye = rng.normal(size=3)
        pose = look_at(3 * eye / np.linalg.norm(eye), rng.normal(0, 0.2, 3))
        centre = (width / 2, height / 2) + rng.normal(size=2)
        cameras.append(Camera(pose, rng.uniform(8, 14, 2), centre, width, height))
        images.append(rng.integers(0, 256, (height, width, channels), np.uint8))
        masks.append(rng.random((height, width)) > 0.3 if i == 1 else None)
    return Views(cameras, images, masks=masks)


VIEWS = make_views()


@pytest.fixture(scope="module")
def store():
    with ImageStore(VIEWS) as store:
        yield store


def tiles():
    """(view, row, column) of the first pixel of each tile, in order; the last of a row and column moved inside."""
    return [
        (v, min(r, height - TILE), min(c, width - TILE))
        for v, (width, height) in enumerate(LARGE)
        for r in range(0, height, TILE)
        for c in range(0, width, TILE)
    ]


def pixels_of(tile):
    """The tile's pixels as numbers over all views, row by row."""
    view, row, column = tile
    inside = (row + np.arange(TILE))[:, None] * LARGE[view][0] + column + np.arange(TILE)
    return (sum(width * height for width, height in LARGE[:view]) + inside).reshape(-1)


ORIGIN = np.concatenate([camera.rays().origin for camera in VIEWS.cameras])
DIRECTION = np.concatenate([camera.rays().direction for camera in VIEWS.cameras])
COLOUR = np.concatenate([image.reshape(-1, 4) for image in VIEWS.images]) / 255
COUNTS = np.concatenate([np.ones(w * h, bool) if v != 1 else VIEWS.mask(v).ravel() for v, (w, h) in enumerate(LARGE)])
COLOUR[~COUNTS, 3] = -1  # as `draw_tiles` marks what a mask takes out
VIEW_OF = np.repeat(range(len(LARGE)), [width * height for width, height in LARGE])


def drawn(store, count, step, seed=0, listed=None):
    """Numbers of the tiles drawn in a step, by their colours."""
    buffer = drive.ray_buffer()
    choose_tiles(store.fields, listed or store.listed, count, count, step * count, seed, 1.0)
    draw_tiles(buffer.fields, store.fields, count, 1, 0.0, seed, step, 0.0)
    target = buffer.fields.target.to_numpy()[: count * TILE**2].reshape(count, -1)
    every = np.array([COLOUR[pixels_of(tile)].reshape(-1) for tile in tiles()])
    return np.abs(target[:, None] - every).max(-1).argmin(1)


def put_on_list(store, which):
    """Set the front of the store's list, which has room for more."""
    numbers = np.zeros(store.fields.list.shape, np.int32)
    numbers[: len(which)] = which
    store.fields.list.from_numpy(numbers)


def test_the_tiles_cover_every_pixel_and_stay_inside(store):
    assert store.tiles == len(tiles()) == 18
    assert set(np.concatenate([pixels_of(tile) for tile in tiles()])) == set(range(len(COLOUR)))


def test_rays_and_colours_are_those_of_the_cameras_and_images(store):
    count = 24  # more than a round
    which = drawn(store, count, 5)
    pixel = np.concatenate([pixels_of(tiles()[tile]) for tile in which])
    fields = drive.ray_buffer().fields
    np.testing.assert_allclose(fields.origin.to_numpy()[: len(pixel)], ORIGIN[pixel], rtol=0, atol=1e-15)
    np.testing.assert_allclose(fields.direction.to_numpy()[: len(pixel)], DIRECTION[pixel], rtol=0, atol=1e-14)
    np.testing.assert_allclose(fields.target.to_numpy()[: len(pixel)], COLOUR[pixel], rtol=0, atol=1e-15)


def test_colours_come_without_their_exposure(store):
    """Each view has three gains and three offsets of its own; alpha has none."""
    exposures = np.random.default_rng(1).uniform([0.6] * 3 + [-0.1] * 3, [1.4] * 3 + [0.1] * 3, (len(VIEWS), 6))
    pixel = np.concatenate([pixels_of(tiles()[tile]) for tile in drawn(store, 18, 2)])
    view = VIEW_OF[pixel]
    store.set_exposures(exposures)
    buffer = drive.ray_buffer()
    draw_tiles(buffer.fields, store.fields, 18, 1, 0.0, 0, 0, 0.0)
    target = buffer.fields.target.to_numpy()[: len(pixel)]
    store.set_exposures(np.tile([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], (len(VIEWS), 1)))
    np.testing.assert_allclose(
        exposures[view, :3] * target[:, :3] + exposures[view, 3:], COLOUR[pixel, :3], rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(target[:, 3], COLOUR[pixel, 3], rtol=0, atol=1e-15)


@pytest.mark.parametrize("count", [1, 5, 18, 25])
def test_each_tile_comes_once_a_round(store, count):
    """Whatever is drawn in a step: three rounds are cut out of the steps laid end to end."""
    order = np.concatenate([drawn(store, count, step) for step in range(-(-54 // count))])
    rounds = [order[18 * i : 18 * (i + 1)] for i in range(3)]
    for one in rounds:
        assert sorted(one) == list(range(18))
    assert not np.array_equal(rounds[0], rounds[1])


def test_only_listed_tiles_are_drawn(store):
    put_on_list(store, [3, 7, 8, 11, 16])
    assert sorted(drawn(store, 5, 2, listed=5)) == [3, 7, 8, 11, 16]
    put_on_list(store, range(18))


def test_the_draw_follows_from_seed_and_step(store):
    first = [drawn(store, 18, 0, seed) for seed in range(8)]
    assert np.array_equal(first[3], drawn(store, 18, 0, 3))
    assert len({tuple(order) for order in first}) == 8


def test_images_without_alpha_are_opaque():
    views = make_views(3, LARGE[:1])
    with ImageStore(views) as opaque:
        pixels = opaque.fields.pixels.to_numpy()[: views.pixels]
    np.testing.assert_array_equal(pixels[:, :3], views.images.reshape(-1, 3))
    assert (pixels[:, 3] == 255).all()


def test_what_a_mask_takes_out_is_opaque_and_the_rest_is_as_it_was(store):
    """So that the visual hull takes it for anything."""
    pixels = store.fields.pixels.to_numpy()[: VIEWS.pixels]
    np.testing.assert_allclose(pixels[COUNTS] / 255, COLOUR[COUNTS], rtol=0, atol=1e-15)
    assert (pixels[~COUNTS, 3] == 255).all()


def test_a_tile_that_is_masked_all_over_is_not_listed():
    views = make_views(3, LARGE[:1])
    mask = np.ones((6, 11), bool)
    mask[:4, :8] = False
    with ImageStore(replace(views, masks=[mask])) as store:
        assert store.listed == 4
        assert store.fields.list.to_numpy()[:4].tolist() == [2, 3, 4, 5]
        assert store.fields.counting.to_numpy()[:6].tolist() == [0, 0, 0xFFFF & ~0x1111, 0xFF00, 0xFF00, 0xFFFF & ~0x11]


def test_a_store_of_other_sizes_takes_the_place_of_one(store):
    """All that was compiled for it is there again: sizes and counts are run-time numbers."""
    with ImageStore(make_views(3, LARGE[:1])) as first:
        fields = first.fields
    with ImageStore(make_views(4, [(30, 20), (7, 9), (8, 8), (5, 40)])) as second:
        assert second.fields is fields
        assert second.tiles == 8 * 5 + 2 * 3 + 2 * 2 + 2 * 10


def test_a_closed_store_says_so():
    closed = ImageStore(make_views(4, LARGE[:1]))
    closed.close()
    closed.close()
    with pytest.raises(RaymarchError, match="store is closed"):
        _ = closed.fields


def test_shuffling_is_a_permutation():
    for n in SIZES:
        orders = []
        for key in range(5):
            out = np.empty(n, np.int32)
            worker.order_of(n, key, out)
            assert sorted(out) == list(range(n))
            orders.append(tuple(out))
        assert n < 5 or len(set(orders)) == 5


def test_a_scan_without_a_march_is_seen_through_a_table_and_all_else_by_the_default():
    """A scan's values may be negative, of which no light comes."""
    scan = ScalarVolume(np.linspace(-1000, 3000, 4 * 5 * 6).reshape(4, 5, 6)).as_volume()
    assert march_for(scan, None).mode == "transfer"
    for march in (March(), March(mode="x-ray")):
        assert march_for(scan, march) is march
    assert march_for(cases.volume(), None) == March()


@pytest.mark.parametrize("mode", ["emission-absorption", "additive", "x-ray", "maximum"])
def test_values_under_zero_are_no_extinction(mode):
    """Which would make light that grows without end; an integral of them is one."""
    scan = ScalarVolume(np.linspace(-1000, 3000, 4 * 5 * 6).reshape(4, 5, 6)).as_volume()
    if mode in ("x-ray", "maximum"):
        require_seen(scan, March(mode=mode))
        return
    with pytest.raises(RaymarchError, match=f"values go from -1000 to 3000, which mode {mode} takes for extinction"):
        require_seen(scan, March(mode=mode))
    require_seen(replace(scan, density=scan.density + 1000), March(mode=mode))


def test_volumes_together_are_marched_as_each_would_be_alone():
    scan = ScalarVolume(np.linspace(-1000, 3000, 4 * 5 * 6).reshape(4, 5, 6)).as_volume()
    assert [march.mode for march in marches_for([scan, cases.volume()], None)] == ["transfer", "emission-absorption"]
    with pytest.raises(RaymarchError, match="values go from -1000 to 3000"):
        marches_for([scan, scan], March())
    made = replace(march_for(scan, None), preintegrated=True)
    with pytest.raises(RaymarchError, match="has preintegrated, which several volumes together have not"):
        marches_for([scan, scan], made)
    assert marches_for([scan], made) == [made]  # one is alone, in whichever mode


def test_a_sparse_volume_of_values_is_rendered_without_dense_arrays(monkeypatch):
    """Neither made to choose its mode, nor to see that a mode goes, nor on the way to the device."""
    values = np.zeros((17, 12, 9))
    values[2:7, 3:6, 1:8] = np.random.default_rng(0).random((5, 3, 7))
    scan = Volume(values, np.zeros((*values.shape, 3)), np.diag([0.1, 0.1, 0.1, 1.0]), Activation("identity")).sparse()
    monkeypatch.setattr("raymarch.volumes.storage.spread_bricks", lambda *_: pytest.fail("dense arrays were made"))
    with Renderer(scan) as renderer:
        assert (renderer.march.mode, renderer.grid.bricks) == ("transfer", 1)
        assert renderer.grid.occupied_cells().any()
    assert ModeOptions().march(scan).mode == "transfer"
    require_seen(scan, March())


def test_a_sparse_volume_without_a_brick_has_the_value_of_empty_space():
    bricks = Bricks(np.full((2, 2, 2), -1, np.int32), np.zeros((0, 8, 8, 8)), np.zeros((0, 8, 8, 8, 3)))
    nothing = Volume.of_bricks(bricks, (9, 10, 11), np.eye(4), Activation("identity"))
    require_seen(nothing, March())
    with pytest.raises(RaymarchError, match="iso is 1 but values go from 0 to 0, so there is no surface"):
        Renderer(nothing, March(mode="isosurface", iso=1.0))


def test_values_too_fine_for_single_precision_have_no_table_by_default():
    with pytest.raises(RaymarchError, match="from 10000000 to 10000001, which single precision hardly tells apart"):
        march_for(ScalarVolume(1e7 + np.linspace(0, 1, 27).reshape(3, 3, 3)).as_volume(), None)
    assert march_for(ScalarVolume(np.full((3, 3, 3), 7)).as_volume(), None).mode == "transfer"


@pytest.mark.parametrize(("said", "one", "other"), [("world", "LPS", "RAS"), ("length_unit", "mm", "um")])
def test_scans_of_several_worlds_or_units_are_not_shown_together(said, one, other):
    """They would lie beside each other, and nothing would say so."""
    scans = [ScalarVolume(np.arange(27).reshape(3, 3, 3), **{said: name}) for name in (one, other, "")]
    with pytest.raises(RaymarchError, match=f"volume has the {said} {one} and {other}"):
        VOLUMES("volume", scans)
    assert len(VOLUMES("volume", [scans[0], scans[2], cases.volume()])) == 3


def test_a_volume_fitted_through_a_table_is_seen_through_it():
    """Its values, read as extinction, would be another picture."""
    table = TransferFunction([0.0, 1.0], [(1.0, 0.2, 0.1)] * 2, [0.0, 0.8], unit_length=0.5)
    values, told = np.random.default_rng(0).random((6, 6, 6)), {"settings": {"transfer": table.record()}}
    volume = Volume(values, np.zeros((*values.shape, 3)), np.diag([0.2, 0.2, 0.2, 1.0]), Activation("identity"))
    camera = Camera.look_at((3, 2, 1), (0.5, 0.5, 0.5), width=8, height=8)
    fitted = replace(volume, provenance=told)
    np.testing.assert_array_equal(march_for(fitted, None).transfer.rgba, table.rgba)
    wanted = render(volume, camera, march=March(mode="transfer", transfer=table))
    np.testing.assert_array_equal(render(fitted, camera), wanted)
    views = Views([camera], np.round(255 * wanted[None]).astype(np.uint8))
    assert evaluate(fitted, views).psnr > 45 > 30 > evaluate(volume, views).psnr
    for spoilt in ({"settings": None}, {"settings": {}}, {"settings": {"transfer": {"values": 3}}}, {}):
        assert march_for(replace(volume, provenance=spoilt), None).transfer is not None


# Which tiles are listed; last, as a grid is kept for it that renderings before it take


def fitted(seed=0):
    """A grid over a box that only part of the pixels see, some cells of it occupied."""
    grid = drive.listing_grid()
    rng = np.random.default_rng(seed)
    world_from_index = cases.motion((1, 2, -1), 0.5, (-0.5, -0.4, -0.3)) @ np.diag([0.06, 0.07, 0.08, 1])
    grid.upload(Volume(rng.normal(size=grid.finest), np.zeros((*grid.finest, 3)), world_from_index))
    occupied = rng.uniform(size=grid.cells) < [0.02, 0.1, 0.3, 1.0][seed % 4]
    drive.set_occupied(grid, occupied)
    grid.measure_occupancy()
    return grid, occupied


def cells_met(grid, occupied, at):
    """Whether any of the points (n, 3) of the world lies in an occupied cell."""
    index = at @ np.linalg.inv(grid.world_from_index)[:3, :3].T + np.linalg.inv(grid.world_from_index)[:3, 3]
    cell = np.floor(index * np.array(grid.cells) / (np.array(grid.shape) - 1)).astype(int)
    return occupied[tuple(cell.clip(0, np.array(grid.cells) - 1).T)].any()


def samples_meet(grid, occupied, ray, dt):
    """Whether the march takes a sample of the ray in an occupied cell."""
    near, far = reference.clip(ORIGIN[ray], DIRECTION[ray], grid_box(grid))
    n = int((far - near) / dt) if far > near else -1
    if n < 0:
        return False
    t = np.append(near + (np.arange(n) + 0.5) * dt, near + n * dt + (far - near - n * dt) / 2)
    return cells_met(grid, occupied, ORIGIN[ray] + t[:, None] * DIRECTION[ray])


def line_meets(grid, occupied, ray):
    """Whether the ray meets an occupied cell at all, by walking it finely."""
    near, far = reference.clip(ORIGIN[ray], DIRECTION[ray], grid_box(grid))
    t = np.linspace(near, far, 4000)[:, None] if far > near else np.empty((0, 1))
    return cells_met(grid, occupied, ORIGIN[ray] + t * DIRECTION[ray])


def grid_box(grid):
    """What `reference.clip` asks of a volume."""
    return replace(cases.constant(0.0, shape=grid.shape, degree=0), world_from_index=grid.world_from_index)


@pytest.mark.parametrize(
    ("seed", "step"),
    [(seed, step) for seed in range(4) for step in (0.5, 1.0)] + [(0, 3.3), (1, 3.3), (2, 3.3), (3, 3.3)],
)
def test_tiles_whose_samples_meet_something_are_listed_and_others_are_not(store, seed, step):
    grid, occupied = fitted(seed)
    dt = step * grid.voxel
    found = list_tiles(store.fields, grid.fields, dt, store.tiles)
    listed = store.fields.list.to_numpy()[:found]
    assert list(listed) == sorted(set(listed))
    assert 0 < found
    for number, tile in enumerate(tiles()):
        rays = pixels_of(tile)
        if any(samples_meet(grid, occupied, ray, dt) for ray in rays if COUNTS[ray]):
            assert number in listed
        elif not any(line_meets(grid, occupied, ray) for ray in rays if COUNTS[ray]):
            assert number not in listed
    put_on_list(store, range(18))


def test_a_single_coloured_sample_is_seen():
    """A grid that is only seen has room for colours if any of them is not that of zeros."""
    features = np.zeros((5, 5, 5, 3))
    wall, camera = np.full((5, 5, 5), 1e4), Camera.look_at((2, -9, 2), (2, 2, 2), fov=0.3, width=3, height=3)
    grey = render(Volume(wall, features, np.eye(4)), camera)
    np.testing.assert_allclose(grey, 0.5, atol=1e-6)
    features[2, 0, 2] = (9, 0, -9)
    seen = render(Volume(wall, features, np.eye(4)), camera)[1, 1]
    assert seen[0] > 0.8 and seen[2] < 0.2


@pytest.mark.parametrize("room", [True, False])
def test_a_lit_scan_whose_slopes_do_not_fit_is_rendered_without_them(room, monkeypatch, caplog):
    made = brick_grid.Grid

    def small(*where, slopes=False, **how):
        if slopes and not room:
            raise RaymarchError("too little memory")
        return made(*where, slopes=slopes, **how)

    monkeypatch.setattr(brick_grid, "Grid", small)
    ball = ScalarVolume(1 - np.linalg.norm(np.indices((9, 9, 9)).T / 4 - 1, axis=-1), np.eye(4))
    table = TransferFunction([0, 0.5], [(1, 0.5, 0)] * 2, [0, 0.9])
    march = March(mode="transfer", transfer=table, shading=Shading())
    with caplog.at_level("INFO", "raymarch"), Renderer(ball, march) as renderer:
        assert (renderer.grid.fields.features is not None) == room
        image = renderer.render(Camera.look_at((30, 9, 4), (4, 4, 4), fov=0.3, width=9, height=9)).image
    assert image.max() > 0.5 and ("slopes are found anew" in caplog.text) == (not room)
