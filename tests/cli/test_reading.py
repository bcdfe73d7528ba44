"""Law: a volume is compared with views that were read as those of its fit were, unless told otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sets import write_set

import raymarch as rm
from raymarch.cli import cli
from raymarch.cli.fit import forecast_text, print_forecast
from raymarch.cli.options import clip_of
from raymarch.cli.set_options import SetReading, refined_views
from raymarch.device.memory import Memory
from raymarch.evaluation.held_out import Evaluation, ViewScore
from raymarch.evaluation.metrics import psnr
from raymarch.fitting.forecast import Forecast
from raymarch.fitting.report import provenance
from raymarch.geometry.pose import exp_rigid
from raymarch.io.image_sets.convert import convert
from raymarch.io.image_sets.hdf5.writing import write_views
from raymarch.registration import refined_fit
from raymarch.views import identity
from raymarch.views.identity import record_of, recorded_indices

VIEWS = rm.Views([rm.Camera.look_at((1, -4, 2), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
BOX = [[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]
VOLUME = rm.Volume.from_array(np.ones((4, 4, 4)))


def fitted(**views):
    """A volume with the provenance of a fit to such views."""
    seen = rm.Views(VIEWS.cameras, VIEWS.images, **views)
    made = provenance(rm.FitSettings(), seen, {"steps": 1})
    return replace(VOLUME, provenance=made)


@pytest.mark.parametrize(
    ("fit", "asked", "want"),
    [
        ({}, (None, None), (1.0, None)),
        ({"downscale": 2, "holdout": 5}, (None, None), (2.0, 5)),
        ({"downscale": 2, "holdout": 5}, (1.0, None), (1.0, 5)),
        ({"downscale": 2, "holdout": 5}, (None, 0), (2.0, 0)),
    ],
)
def test_what_is_not_asked_for_is_the_fit_s(fit, asked, want):
    found = SetReading(*asked).options(fitted(**fit))
    assert found == {"downscale": want[0], "holdout": want[1], "follow_links": False, "depths": False}


@pytest.mark.parametrize(
    ("line", "want"),
    [
        (["fit", "set", "--dry-run"], {"depths": False}),
        (["fit", "set", "--dry-run", "--set", "depth_weight=0.1"], {"depths": True}),
        (["fit", "set", "--dry-run", "--depth-unit", "1"], {"depths": False, "depth_unit": 1.0}),
        (["evaluate", "v.h5", "set", "--depth-unit", "0.01"], {"depths": True, "depth_unit": 0.01}),
    ],
)
def test_depths_are_read_where_they_are_wanted(line, want, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rm.save(VOLUME, "v.h5")
    asked = []

    def load_views(*_, **how):
        asked.append(how)
        raise rm.RaymarchError("read")

    monkeypatch.setattr("raymarch.io.image_sets.load.load_views", load_views)
    with pytest.raises(rm.RaymarchError, match="read"):
        cli(line, standalone_mode=False)
    assert {name: value for name, value in asked[0].items() if name.startswith("depth")} == want


def test_depth_errors_are_printed_beside_the_other_scores(tmp_path, monkeypatch, capsys):
    rm.save(VOLUME, tmp_path / "v.h5")
    one = ViewScore("a", 20.0, None, depth_error=0.125, depth_error_relative=0.03125)
    scores = Evaluation(20.0, None, (one, ViewScore("b", 20.0, None)), 0.1, depth_error=0.125)
    monkeypatch.setattr("raymarch.evaluation.held_out.evaluate", lambda *_, **__: scores)
    cli(
        ["evaluate", str(tmp_path / "v.h5"), str(write_set(tmp_path / "set")), "--split", "train"],
        standalone_mode=False,
    )
    first, second, mean = capsys.readouterr().out.splitlines()
    assert "depth error 0.125  relative 3.1%" in first
    assert "depth" not in second
    assert "depth error 0.125" in mean


@pytest.mark.parametrize(
    ("refined", "focal", "said"),
    [
        (None, 1, ""),
        ({"degrees": 0.1}, 1, ""),
        ({"shared": {"focal": [np.log(1.1)] * 2}}, 1.1, "focal of the cameras as the fit refined them\n"),
    ],
)
def test_views_of_a_refined_fit_have_its_lens(refined, focal, said, capsys):
    seen = refined_views(replace(VOLUME, provenance={"refined": refined}), VIEWS)
    np.testing.assert_allclose(seen.cameras[0].focal, focal * np.array(VIEWS.cameras[0].focal))
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("views", [None, "lego", {}, {"source": "lego", "count": 3}])
def test_a_volume_that_does_not_say_is_compared_as_usual(views):
    volume = replace(VOLUME, provenance={"views": views})
    assert SetReading().options(volume) == SetReading().options()
    assert SetReading().options() == {"downscale": 1.0, "holdout": None, "follow_links": False, "depths": False}


def noise(count, seed=0, names=(), **how):
    """Views of noise."""
    images = np.random.default_rng(seed).integers(0, 256, (count, 6, 8, 3), dtype=np.uint8)
    return rm.Views([rm.Camera.look_at((1, -4, 2), width=8, height=6)] * count, images, names, **how)


FITTED = noise(3, names=tuple("abc"), source="set")


@pytest.mark.parametrize(
    ("views", "want"),
    [
        (FITTED, [0, 1, 2]),
        (FITTED[[2, 0]], [0, 1]),
        (replace(FITTED, source="elsewhere"), [0, 1, 2]),
        (replace(FITTED, downscale=2.0), [0, 1, 2]),
        (noise(3, seed=1, names=tuple("abc"), source="./set", downscale=2.0), [0, 1, 2]),
        (
            noise(3, seed=1, names=tuple("abc"), source="set"),
            [],
        ),  # as of train and test in the layout of NeRF-synthetic
        (noise(3, seed=1, names=tuple("abc"), source="other", downscale=2.0), []),
        (replace(FITTED, names=tuple("axy")), [0]),
    ],
)
def test_views_that_were_fitted_are_known(views, want):
    made = provenance(rm.FitSettings(), FITTED, {"steps": 1})
    assert made["views"]["names"] == list("abc")
    assert list(recorded_indices(views, made["views"])) == want


@pytest.mark.parametrize("downscale", [1.0, 2.0])
def test_only_views_of_known_names_are_looked_at(downscale, monkeypatch):
    """For a set may have thousands of images, of which a volume was fitted to few."""
    record = provenance(rm.FitSettings(), FITTED, {})["views"]
    seen, image, pose = [], identity._image_sum, identity._pose_sum
    monkeypatch.setattr(identity, "_image_sum", lambda views, i: seen.append(i) or image(views, i))
    monkeypatch.setattr(identity, "_pose_sum", lambda views, i: seen.append(i) or pose(views, i))
    assert recorded_indices(replace(FITTED, names=tuple("xby"), downscale=downscale), record) == {1: "b"}
    assert seen == [1]


@pytest.mark.parametrize("downscale", [1.0, 2.0])
def test_views_are_known_by_whatever_folders_are_before_their_names(downscale):
    """As where splits that lie in folders are read one by one, and together."""
    cameras = [rm.Camera.look_at((1 + i, -4, 2), width=8, height=6) for i in range(4)]
    short = replace(noise(4, names=("r_0", "r_1", "b", "r_0_2"), source="set"), cameras=cameras)
    long = replace(short, names=("train_r_0", "train_r_1", "cam_a_b", "train_r_0_2"))
    for fitted, seen in ((short, long), (long, short)):
        record = provenance(rm.FitSettings(), fitted, {})["views"]
        assert recorded_indices(replace(seen, downscale=downscale), record) == dict(enumerate(fitted.names))
        others = replace(seen, images=255 - seen.images, cameras=cameras[::-1], downscale=downscale)
        assert recorded_indices(others, record) == {}


def test_views_of_another_split_are_not_known_by_the_names_that_both_splits_have(tmp_path):
    """Also at another size than the fit's, where images cannot tell: a file of all splits is one source."""
    folder = write_set(tmp_path / "lego")
    document = json.loads((folder / "transforms_train.json").read_text())
    for frame in document["frames"]:
        frame["transform_matrix"][0][3] += 0.25
    (folder / "transforms_test.json").write_text(json.dumps(document))
    convert(folder, tmp_path / "lego.h5")
    train, test = (rm.load_views(tmp_path / "lego.h5", split) for split in ("train", "test"))
    assert test.names == train.names and test.source == train.source
    record = provenance(rm.FitSettings(), rm.load_views(tmp_path / "lego.h5", downscale=2), {})["views"]
    assert list(recorded_indices(train, record)) == [0, 1, 2]
    assert recorded_indices(test, record) == {}


@pytest.mark.parametrize(
    "record", [None, "a", {}, {"names": 3, "checksums": []}, {"names": [[], None], "checksums": [{}, 1]}]
)
def test_a_record_that_is_none_knows_no_view(record):
    assert recorded_indices(FITTED, record) == {}


def test_names_of_a_large_set_are_not_kept():
    assert set(record_of(noise(2000))) == {"names", "checksums", "poses"}
    assert record_of(noise(2001)) == {}
    assert record_of(noise(2, names=["a" * 100_000, "b" * 100_001])) == {}


def test_nested_boxes_are_no_stretched_volume(tmp_path, capsys):
    rm.save(replace(rm.Volume.from_array(np.ones((12, 4, 5))), boxes=3), tmp_path / "v.h5")
    cli(["info", str(tmp_path / "v.h5")], standalone_mode=False)
    assert "3 boxes of 4 x 4 x 5" in capsys.readouterr().out
    memory = Memory((12, 4, 5), 0, 1, {"grid": 1})
    assert "grid    3 boxes of 4 x 4 x 5 samples, SH degree 0" in forecast_text(Forecast(memory, 10, boxes=3))


@pytest.mark.parametrize(
    ("asked", "first", "fit", "said"),
    [
        ({"steps": 1000}, (400, None), (1000, None), "400 steps before the fit, whose time, of the moves too,"),
        ({"seconds": 50.0}, (None, 20.0), (None, 30.0), "the first 20 s; below is the fit in what is left"),
        ({"steps": 1000, "seconds": 50.0}, (400, 20.0), (1000, 30.0), "the first 20 s, or 400 steps; below is the fit"),
    ],
)
def test_a_dry_run_of_a_fit_with_refinement_tells_of_both(asked, first, fit, said, monkeypatch, capsys):
    """And of what the moves take, a gigabyte here for five samples a side."""
    forecasts = []

    def forecast(views, settings, *, box, clock=True):
        forecasts.append(((settings.steps, settings.seconds), clock, settings.hull))
        return Forecast(Memory((4, 4, 5), 0, 1, {"grid": 10**9 * len(forecasts)}), 10)

    def moves(views, samples, shared):
        return {"moves": 10**8 * samples * (1 + len(shared))}

    monkeypatch.setattr(refined_fit, "forecast", forecast)
    monkeypatch.setattr(refined_fit, "memory_of_moves", moves)
    for as_json in (False, True):
        settings = replace(rm.FitSettings(hull=True), **{"steps": None, **asked})
        print_forecast(VIEWS, settings, BOX, as_json, refines=True, also=("focal",))
    assert forecasts == 2 * [(first, False, False), (fit, True, True)]
    *words, record = capsys.readouterr().out.splitlines()
    assert words[0].startswith(f"refine  2.00 GB at its peak; {said}") and "memory  2.00 GB at its peak" in words[2]
    assert json.loads(record)["refine"] == {"bytes": 4 * 10**9, "steps": first[0], "seconds": first[1]}
    assert json.loads(record)["bytes"] == 4 * 10**9


def test_a_dry_run_says_that_steps_would_be_few(monkeypatch, capsys):
    def forecast(views, settings, *, box, clock=True):
        return Forecast(Memory((4, 4, 5), 0, 1, {"grid": 1}), 10, settings.seconds, int(settings.seconds / 0.1))

    monkeypatch.setattr(refined_fit, "forecast", forecast)
    settings = replace(rm.FitSettings(), steps=None, seconds=10.0)
    assert print_forecast(VIEWS, settings, BOX, False, refines=True) == 0
    said = capsys.readouterr()
    assert "time    about 6 s for 60 steps" in said.out
    assert "the fit would be done after only 60 steps; give more seconds" in said.err


STEP = exp_rigid([0.0, 0.0, 0.1, 0.2, 0.0, 0.0])


def refined(views, names, **shared):
    """Provenance of a fit to these views that found some of them a step away from where the set has them."""
    at = dict(zip(views.names, views.cameras, strict=True))
    poses = [[name, *(at[name].world_from_camera @ STEP)[:3].ravel().tolist()] for name in names]
    made = provenance(rm.FitSettings(), views, {"steps": 1})
    return {**made, "refined": {"poses": poses, **({"shared": shared} if shared else {})}}


def require_moved(views, given, moved):
    """The cameras of views are those that were given, the first so many a step away."""
    for i, (camera, before) in enumerate(zip(views.cameras, given.cameras, strict=True)):
        wanted = before.world_from_camera @ (STEP if i < moved else np.eye(4))
        np.testing.assert_allclose(camera.world_from_camera, wanted, atol=1e-9)


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        ({}, "poses of 2 of 3 views as the fit refined them\n"),
        ({"focal": [0.1, 0.1]}, "focal of the cameras and poses of 2 of 3 views as the fit refined them\n"),
    ],
)
def test_views_that_were_fitted_stand_where_the_fit_refined_them(shared, said, capsys):
    """And others of the set where it has them."""
    volume = replace(VOLUME, provenance=refined(FITTED[[0, 1]], "ab", **shared))
    require_moved(refined_views(volume, FITTED), FITTED, 2)
    assert capsys.readouterr().err == said


@pytest.fixture
def of_refined_fit(tmp_path):
    """An image set, and a volume over a colour of its own that was fitted to it at half the size and moved poses."""
    folder = write_set(tmp_path / "set")
    small = rm.load_views(folder, downscale=2)
    told = refined(small, small.names)
    rm.save(replace(VOLUME, background=(0.25, 0.5, 0.75), provenance=told), tmp_path / "v.h5")
    return str(tmp_path / "v.h5"), str(folder)


def test_that_views_were_fitted_is_said_of_scores_though_they_were_moved(of_refined_fit, monkeypatch, capsys):
    """At another size than the fit's too, where views are known by the poses of the set."""
    seen = []
    scores = Evaluation(20.0, None, (), 0.1)
    monkeypatch.setattr("raymarch.evaluation.held_out.evaluate", lambda _, views, **__: seen.append(views) or scores)
    cli(["evaluate", *of_refined_fit, "--split", "train", "--downscale", "1", "--json"], standalone_mode=False)
    require_moved(seen[0], rm.load_views(of_refined_fit[1]), 3)
    assert "3 of 3 views were fitted, so their scores say nothing of new ones" in capsys.readouterr().err


def test_a_viewer_s_photographs_are_those_that_a_volume_is_compared_with(of_refined_fit, monkeypatch):
    """Over the volume's background, and seen from where the fit's refinement found them."""
    seen, volume, folder = [], *of_refined_fit
    server = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr("raymarch.viewer.server.server_process.ServerProcess", lambda port: server)
    monkeypatch.setattr("raymarch.viewer.server.open_browser.announce", lambda *_, **__: None)
    monkeypatch.setattr("raymarch.viewer.view.view_file", lambda *given: seen.append(given[2]))
    cli(["view", volume, "--views", folder], standalone_mode=False)
    (views,) = seen
    np.testing.assert_allclose(views.background, (0.25, 0.5, 0.75))
    require_moved(views, rm.load_views(folder), 3)


NESTED = replace(rm.Volume.from_array(np.ones((12, 4, 4))), boxes=3, world_from_index=VOLUME.world_from_index)
NDC = replace(VOLUME, ndc_from_world=rm.ndc_of_frustum(np.eye(4), near=1.0))


@pytest.mark.parametrize(
    ("volume", "x", "said"),
    [(VOLUME, 0.9, ""), (VOLUME, 3.0, "to 1 1 1"), (NESTED, 3.0, ""), (NESTED, 4.5, "to 4 4 4"), (NDC, 1e3, "")],
)
def test_that_a_clip_leaves_nothing_is_said_where_that_is_so(volume, x, said, capsys):
    """Nested boxes end with the outermost, and NDC nowhere."""
    clip_of(None, [[1.0, 0.0, 0.0, x]], volume)
    err = capsys.readouterr().err
    assert said in err and ("the clip leaves nothing of the volume" in err) == bool(said)


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize(("asked", "behind"), [((), (0.25, 0.5, 0.75)), (("--background", "black"), (0, 0, 0))])
def test_a_volume_is_scored_over_its_own_background_or_the_one_asked_for(tmp_path, capsys, alpha, asked, behind):
    """Whether images have alpha or not; and how many they are is said before."""
    views = noise(2, names=("a", "b"), source="set")
    images = np.concatenate([views.images, np.full_like(views.images[..., :1], 99)], -1) if alpha else views.images
    write_views([("test", replace(views, images=images))], tmp_path / "set.h5")
    volume = replace(VOLUME, background=(0.25, 0.5, 0.75))
    rm.save(volume, tmp_path / "v.h5")
    cli(["evaluate", str(tmp_path / "v.h5"), str(tmp_path / "set.h5"), "--json", *asked], standalone_mode=False)
    told = capsys.readouterr()
    loaded = rm.load_views(tmp_path / "set.h5", "test", background=behind)
    wanted = [
        psnr(rm.render(volume, camera, background=behind), loaded.rgb(i)) for i, camera in enumerate(views.cameras)
    ]
    assert [view["psnr"] for view in json.loads(told.out)["views"]] == pytest.approx(wanted, rel=1e-5)
    assert "2 views of 8 x 6 from" in told.err
