"""Law: tiles come each once an epoch, those rendered badly always, those rendered well in proportion, none never."""

from __future__ import annotations

import drive
import numpy as np
import pytest

from raymarch.device.image_store import ImageStore
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.kernels.fit.choice import choose_tiles

TILES = 12
LEAST = 0.25


@pytest.fixture(scope="module")
def store():
    with ImageStore(drive.ball_views()) as store:
        yield store


def chosen(store, steps, least=LEAST, seed=0):
    """Numbers of the tiles of some steps, one after another, and the place in the epochs at the end."""
    store.go_to(0)
    return np.array([n for _ in range(steps) for n in next_tiles(store, seed, least)]), store.place


def next_tiles(store, seed=0, least=LEAST):
    """Numbers of the tiles of one more step."""
    store.choose(TILES, seed, least)
    return store.fields.chosen.to_numpy()[:TILES]


@pytest.mark.parametrize("least", [LEAST, 1.0])
def test_what_was_never_drawn_comes_once_before_any_comes_again(store, least):
    store.set_errors(np.full(store.tiles, 1e9), 1e9)
    found, place = chosen(store, store.tiles // TILES, least)
    assert place == len(found) == len(set(found))


@pytest.mark.parametrize("mean", [1.0, 1e-3])
def test_a_tile_comes_as_often_as_its_error_is_of_the_mean(store, mean):
    share = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 30.0])
    group = np.arange(store.tiles) % len(share)
    store.set_errors(mean * share[group], mean)
    epochs = 60
    times = np.zeros(store.tiles)
    store.go_to(0)
    while store.place < epochs * store.tiles:
        times[next_tiles(store, 3)] += 1
    often = np.array([times[group == k].mean() for k in range(len(share))]) / epochs
    np.testing.assert_allclose(often, np.clip(share, LEAST, 1), atol=0.03)


def test_more_tiles_than_there_are_come_once_an_epoch_and_no_more_than_there_is_room_for():
    views = drive.ball_views()[:1]
    with ImageStore(views, rays=16 * 20_000) as small:
        small.choose(20_000, 0)
        found = small.fields.chosen.to_numpy()[:20_000]
        assert small.place == 20_000
        times = np.bincount(found, minlength=small.tiles)
        assert len(times) == small.tiles and times.max() - times.min() <= 1
        room = small.fields.chosen.shape[0]
        with pytest.raises(RaymarchError, match=f"{room + 1} tiles do not fit a store for 20000 at once; make it"):
            small.choose(room + 1, 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_errors_that_are_not_finite_keep_nobody_waiting(store, bad):
    """A fit that diverged still draws, and so comes to say so."""
    store.set_errors(np.full(store.tiles, bad), bad)
    assert chosen(store, 3)[1] <= 3 * TILES / LEAST * 3
    store.set_errors(np.full(store.tiles, bad), 0.5)
    assert chosen(store, 3)[1] <= 3 * TILES / LEAST * 3


def test_the_choice_goes_on_from_its_place_and_depends_on_the_seed(store):
    store.set_errors(np.random.default_rng(0).random(store.tiles), 0.5)
    whole, _ = chosen(store, 6)
    _, place = chosen(store, 3)
    np.testing.assert_array_equal(whole[3 * TILES :], [n for _ in range(3) for n in next_tiles(store)])
    store.go_to(place)
    np.testing.assert_array_equal(whole[3 * TILES : 4 * TILES], next_tiles(store))
    assert (chosen(store, 6, seed=1)[0] != whole).any()


def test_a_choice_beside_the_others_leaves_their_place(store):
    store.set_errors(np.random.default_rng(0).random(store.tiles), 0.5)
    whole, place = chosen(store, 6)
    chosen(store, 3)
    store.choose(TILES, 0, LEAST, start=0)
    np.testing.assert_array_equal(whole[:TILES], store.fields.chosen.to_numpy()[:TILES])
    np.testing.assert_array_equal(whole[3 * TILES :], [n for _ in range(3) for n in next_tiles(store)])
    assert store.place == place


def test_places_are_numbers_of_64_bits(store):
    """The choice at a place depends on no more than what the place says, in both of its words."""
    store.set_errors(np.full(store.tiles, 1e9), 1e9)
    for place in (2**31 - 5, 2**32 - 5, 2**33 + 7):
        store.go_to(place)
        assert store.place == place
        following = next_tiles(store)
        assert store.place == place + TILES
        store.choose(TILES, 0, LEAST, start=place)
        np.testing.assert_array_equal(following, store.fields.chosen.to_numpy()[:TILES])


def test_the_choice_is_the_same_however_many_places_are_looked_at_together(store):
    store.set_errors(np.random.default_rng(0).random(store.tiles), 0.5)
    found = []
    for looked in (0, 1, TILES, 3 * TILES):
        store.go_to(5)
        choose_tiles(store.fields, store.listed, TILES, looked, -1, 0, LEAST)
        found.append([store.place, *store.fields.chosen.to_numpy()[:TILES]])
    assert found[0][0] > 5 + TILES  # some were passed over
    for other in found[1:]:
        assert other == found[0]


def test_of_a_tile_that_is_drawn_twice_in_a_step_the_last_error_counts(store):
    from raymarch.kernels.fit.choice import note_errors

    buffer, rng = drive.ray_buffer(), np.random.default_rng(2)
    numbers = np.array([7, 3, 7, 5, 3, 7])
    room = store.fields.chosen.to_numpy()
    room[: len(numbers)] = numbers
    store.fields.chosen.from_numpy(room)
    for each in (buffer.fields.image, buffer.fields.target):
        each.from_numpy(rng.random((*each.shape, 4)))
    note_errors(store.fields, buffer.fields, len(numbers), 1, ti.Vector([0.0, 0.0, 0.0]))
    errors = store.fields.chosen_error.to_numpy()[: len(numbers)]
    assert len(set(errors)) == len(numbers)
    np.testing.assert_array_equal(store.errors()[0][[7, 3, 5]], errors[[5, 4, 3]])


def test_errors_are_the_same_whichever_thread_is_first():
    from raymarch.kernels.fit.choice import note_errors

    tiles, last = 8192, 128  # last: a share of the tiles that threads take at once, however many there are
    with ImageStore(drive.ball_views(), rays=16 * tiles) as many, RayBuffer(16 * tiles) as buffer:
        room = many.fields.chosen.to_numpy()
        room[:tiles] = 3  # always one and the same
        many.fields.chosen.from_numpy(room)
        target = np.ones((*buffer.fields.target.shape, 4))
        target[16 * (tiles - last) :, 3] = -1  # masked: so the last draws take no time, and others would end later
        buffer.fields.target.from_numpy(target)
        buffer.fields.image.from_numpy(np.full((*buffer.fields.image.shape, 4), 0.5))
        for _ in range(1000):
            note_errors(many.fields, buffer.fields, tiles, 1, ti.Vector([0.0, 0.0, 0.0]))
            assert many.fields.error[3] == 0


@pytest.mark.parametrize("side", [1, 2])
def test_errors_are_those_of_the_colours_and_the_mean_follows(store, side):
    from raymarch.kernels.fit.choice import note_errors
    from raymarch.kernels.fit.targets import draw_tiles

    rng, behind = np.random.default_rng(5), np.array([0.2, 0.5, 0.9])
    store.set_errors(np.full(store.tiles, 1e9), 1e9)
    store.choose(TILES, 0)
    buffer, count, parts = drive.ray_buffer(), 16 * TILES, side**2
    draw_tiles(buffer.fields, store.fields, TILES, side, 0.0, 0, 0, 0.0)
    image = np.zeros((*buffer.fields.image.shape, 4))
    image[: count * parts] = rng.random((count * parts, 4))
    buffer.fields.image.from_numpy(image)
    target = buffer.fields.target.to_numpy()[:count]
    truth = target[:, :3] * target[:, 3:] + behind * (1 - target[:, 3:])
    seen = image[: count * parts].reshape(count, parts, 4).mean(1)
    errors = ((seen[:, :3] - truth) ** 2).mean(-1).reshape(TILES, 16).mean(-1)
    note_errors(store.fields, buffer.fields, TILES, parts, ti.Vector(behind.tolist()))
    numbers = store.fields.chosen.to_numpy()[:TILES]
    found, mean = store.errors()
    np.testing.assert_allclose(found[numbers], errors, rtol=1e-12)
    assert mean == pytest.approx(errors.mean())
    note_errors(store.fields, buffer.fields, TILES, parts, ti.Vector([0.0, 0.0, 0.0]))
    now = store.errors()[0][numbers].mean()
    assert store.errors()[1] == pytest.approx(0.95 * mean + 0.05 * now)
