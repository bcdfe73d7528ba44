"""Law: channels keep their names, units and gaps: what is not known is said by NaN, and colours are made by ranges."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.io.volumes.volume_file import describe, load, save
from raymarch.views.mask_alpha import masks_to_alpha
from raymarch.views.resize import downscale_views, shrink_channels
from raymarch.views.views import Views
from raymarch.volumes.activation import Activation
from raymarch.volumes.channels import unscaled_channels
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.samples import COLOUR_CHANNELS
from raymarch.volumes.storage import Dense
from raymarch.volumes.volume import Volume, ranges_of

CHANNELS = ("red", "thermal", "label", "nir")
CAMERAS = [Camera.look_at((0, -4, z), width=8, height=6) for z in (0.0, 1.0)]


def images(seed=0, count=2):
    return np.random.default_rng(seed).normal(size=(count, 6, 8, 4)) * [1, 30, 3, 0.1] + [0, 300, 0, 0]


def volume(channels=CHANNELS, degree=1, **changes):
    rng = np.random.default_rng(2)
    features = rng.normal(size=(9, 8, 10, len(channels) * (degree + 1) ** 2))
    how = {"activation": Activation("softplus", 0.0, 1.0, "identity"), "channels": channels, **changes}
    return Volume(rng.normal(size=(9, 8, 10)), features, np.eye(4), **how)


def test_views_of_channels_know_which_of_them_each_view_has():
    given = images()
    given[0, ..., 1] = np.nan
    given[1, :3, :, 0] = np.nan
    views = Views(CAMERAS, given, channels=CHANNELS)
    assert views.images.dtype == np.float32 and views.shown == CHANNELS and views.colours == 4
    assert views.has_channel.tolist() == [[True, False, True, True], [True] * 4]
    assert views[[1]].channels == CHANNELS
    rims = [np.concatenate([one[0], one[-1], one[:, 0], one[:, -1]]) for one in views.images]
    np.testing.assert_allclose(views.background, np.nanmedian(np.concatenate(rims), axis=0), rtol=1e-6)
    low, high = views.ranges.T
    assert (low < np.nanmedian(given, axis=(0, 1, 2))).all() and (high > np.nanmedian(given, axis=(0, 1, 2))).all()
    assert pickle.loads(pickle.dumps(views)).channels == CHANNELS


def test_a_last_channel_named_alpha_is_what_is_there():
    given = np.concatenate([images(), np.ones((2, 6, 8, 1))], axis=-1)
    given[0, 2, 3, 4] = 0.25
    views = Views(CAMERAS, given, channels=(*CHANNELS, "alpha"), background=(0, 100, 1, 2))
    assert views.has_alpha and views.shows_silhouettes and views.shown == CHANNELS
    wanted = 0.25 * given[0, 2, 3, :4] + 0.75 * np.array([0, 100, 1, 2])
    np.testing.assert_allclose(views.values(0)[2, 3], wanted, rtol=1e-6)
    masked = masks_to_alpha(replace(Views(CAMERAS, images(), channels=CHANNELS), masks=[np.eye(6, 8) > 0, None]))
    assert masked.channels[-1] == "alpha" and masked.image(0)[..., -1].sum() == 6


def test_smaller_images_are_the_mean_of_what_is_known():
    given = images(count=1)[0].astype(np.float32)
    given[0, 0, 0], given[2:4, 2:4, 1] = np.nan, np.nan
    small = shrink_channels(given, 4, 3, has_alpha=False)
    wanted = np.array([[given[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].reshape(4, 4) for j in range(4)] for i in range(3)])
    with np.errstate(invalid="ignore"):
        known = np.isfinite(wanted)
        mean = np.where(known, wanted, 0).sum(2) / known.sum(2)
    np.testing.assert_allclose(small, mean, rtol=1e-5)
    assert np.isnan(small[1, 1, 1])
    assert downscale_views(Views(CAMERAS, images(), channels=CHANNELS), 2).size_in_words() == "4 x 3"


def test_colours_of_views_are_three_channels_over_their_ranges():
    views = Views(CAMERAS, images(), channels=CHANNELS)
    shown = views.in_colour(["thermal", "nir", "red"])
    assert shown.channels == () and shown.images.dtype == np.uint8
    low, high = views.ranges[[1, 3, 0]].T
    wanted = np.clip((views.image(1)[..., [1, 3, 0]] - low) / (high - low), 0, 1)
    np.testing.assert_allclose(shown.image(1) / 255, wanted, atol=0.5001 / 255)
    grey = views.in_colour(["label"]).image(0)
    assert (grey == grey[..., :1]).all()


BAD_VIEWS = {
    r"view 001 has 3 channels, the set 4: .*put NaN where a view does not have one": lambda: Views(
        CAMERAS, [images()[0], images()[1][..., :3]], channels=CHANNELS
    ),
    r"view 000 has 4 channels, the set 2: a, b": lambda: Views(CAMERAS, images(), channels=["a", "b"]),
    r"channels have a twice": lambda: Views(CAMERAS, images(), channels=["a", "a", "b", "c"]),
    r"channels .* want a tuple of 1 to 64 names": lambda: Views(CAMERAS, images(), channels="abcd"),
    r"channels is {'[abcd]', .* want a tuple": lambda: Views(CAMERAS, images(), channels=set("abcd")),
    r"channels have the name 'x{60,120}\.\.\., want": lambda: Views(CAMERAS, images(), channels=["x" * 10000, *"bcd"]),
    r"images have shape \(6, 8, 4\), .* pass images\[None\]": lambda: Views(CAMERAS, images()[0], channels=CHANNELS),
    r"beyond 1e\+25; put NaN": lambda: Views(CAMERAS, images() * 1e26, channels=CHANNELS),
    r"alpha is not .* put 0 or 1 where it is NaN": lambda: Views(
        CAMERAS, images() * [1, 1, 1, np.nan], channels=["a", "b", "c", "alpha"]
    ),
    r"want 1 number, for": lambda: Views(CAMERAS, images()[..., :1], channels=["a"], background="white"),
    r"background is 'white', want 4 numbers": lambda: Views(CAMERAS, images(), channels=CHANNELS, background="white"),
    r"alpha the last": lambda: Views(CAMERAS, images(), channels=["alpha", "a", "b", "c"]),
    r"alpha is not within 0..1": lambda: Views(CAMERAS, images(), channels=["a", "b", "c", "alpha"]),
    r"not finite": lambda: Views(CAMERAS, images() / 0.0 * np.inf, channels=CHANNELS),
    r"background has shape \(2,\), want 4": lambda: Views(CAMERAS, images(), channels=CHANNELS, background=(1, 2)),
    r"have the channels .* pass views.in_colour": lambda: Views(CAMERAS, images(), channels=CHANNELS).rgb(0),
    r"no channel blue, want some of": lambda: Views(CAMERAS, images(), channels=CHANNELS).in_colour(["blue"]),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("message", BAD_VIEWS)
def test_views_that_are_wrong_are_said_with_the_cure(message):
    with pytest.raises(RaymarchError, match=message) as told:
        BAD_VIEWS[message]()
    assert "\n" not in str(told.value)


def test_a_volume_of_channels_is_picked_apart_and_shown_as_colours():
    whole = volume(background=(1, 2, 3, 4))
    assert whole.degree == 1 and whole.colours == 4 and whole.feature_count == 16 and not whole.is_colour
    some = whole.select(["nir", "red"])
    of_all = whole.features.reshape(9, 8, 10, 4, 4)
    np.testing.assert_array_equal(some.features.reshape(9, 8, 10, 4, 2), of_all[..., [3, 0]])
    assert some.background == (4.0, 1.0)
    told = replace(whole, provenance={"ranges": {"red": [0, 2], "thermal": [100, 300], "label": [0, 9]}})
    np.testing.assert_array_equal(ranges_of(told), [[0, 2], [100, 300], [0, 9], [0, 1]])
    shown = told.in_colour(["label", "thermal", "red"])
    assert shown.channels == COLOUR_CHANNELS
    mean = shown.features[..., :3] * Y00, whole.features[..., [2, 1, 0]] * Y00
    np.testing.assert_allclose(mean[0], (mean[1] - [0, 100, 0]) / [9, 200, 2], atol=1e-12)
    sparse = whole.sparse().in_colour(["label"])
    np.testing.assert_allclose(sparse.dense().features, whole.in_colour(["label"]).features)


def test_what_was_fitted_over_ranges_is_in_their_units_again():
    rng = np.random.default_rng(0)
    features, ranges = rng.normal(size=(3, 3, 3, 8)), np.array([[10.0, 30.0], [-1.0, 1.0]])
    out = unscaled_channels(Dense(np.zeros((3, 3, 3)), features), ranges).features()
    Y = rng.normal(size=4)
    Y[0] = Y00
    before, after = (np.einsum("k,xyzkc->xyzc", Y, one.reshape(3, 3, 3, 4, 2)) for one in (features, out))
    low, high = ranges.T
    np.testing.assert_allclose(after, low + (high - low) * (0.5 + 0.25 * before), rtol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_file_brings_names_units_and_background_back(tmp_path, kind):
    whole = getattr(volume(background=(1, -2, 3e3, 0.5), provenance={"ranges": {"red": [0, 1]}}), kind)()
    save(whole, tmp_path / "volume.h5")
    found = load(tmp_path / "volume.h5")
    assert (found.channels, found.background, found.degree) == (CHANNELS, (1.0, -2.0, 3000.0, 0.5), 1)
    np.testing.assert_array_equal(found.features, whole.features)
    assert describe(tmp_path / "volume.h5").record()["channels"] == list(CHANNELS)


BAD_VOLUMES = {
    r"features have 16 numbers a sample, want one of \[5, 20, 45, 80\] for the 5": lambda: replace(
        volume(), channels=list("abcde")
    ),
    r"and one of \[3, 12, 27, 48\] channels; name what other numbers are, as in rm\.Volume": lambda: Volume(
        volume().density, volume().features, np.eye(4)
    ),
    r"channels have alpha": lambda: replace(volume(), channels=("red", "thermal", "label", "alpha")),
    r"the volume has no channel x, want some of red": lambda: volume().select(["x"]),
    r"channels are 2, want three": lambda: volume().in_colour(["red", "nir"]),
    r"background is 'white', want 4 numbers": lambda: replace(volume(), background="white"),
}


@pytest.mark.parametrize("message", BAD_VOLUMES)
def test_volumes_that_are_wrong_are_said_with_the_cure(message):
    with pytest.raises(RaymarchError, match=message) as told:
        BAD_VOLUMES[message]()
    assert "\n" not in str(told.value)
