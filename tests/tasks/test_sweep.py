"""Law: a sweep makes each fit once, whoever makes it and however often it is cut off."""

from __future__ import annotations

import csv
from pathlib import Path

import click
import jobs
import numpy as np
import pytest
import sets

import raymarch as rm
from raymarch.cli.sweep import values_of
from raymarch.fitting.sweep import RECORD, TABLE, Sweep, SweptFit, combine_settings, name_combinations
from raymarch.volumes.activation import DENSITIES

BASE = rm.preset("quick", steps=3, resolution=16, rays=64)
SETTINGS = {"lr_colour": [0.1, 0.3]}
NAMES = ["lr_colour-0.1", "lr_colour-0.3"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """An image set of noise, with no views held out."""
    return sets.write_set(tmp_path_factory.mktemp("sweep") / "set")


def how(data, out, **more):
    return {"out": out, "preset": BASE, "held_out": "train", **more}


def rows_of(folder):
    with (folder / TABLE).open() as table:
        return list(csv.DictReader(table))


def test_what_is_finished_is_not_done_again(data, tmp_path):
    told = []

    def stop_after_one(one):
        told.append(one)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rm.sweep(data, SETTINGS, **how(data, tmp_path / "out", show=stop_after_one))
    assert [row["psnr"] != "" for row in rows_of(tmp_path / "out")] == [True, False]
    found = rm.sweep(data, SETTINGS, **how(data, tmp_path / "out"))
    assert [(one.name, one.found, one.steps) for one in found.fits] == [(NAMES[0], True, 3), (NAMES[1], False, 3)]
    assert found.fits[0] == told[0]
    assert all(row["psnr"] and Path(row["volume"]).is_file() for row in rows_of(tmp_path / "out"))
    assert found.best in found.fits
    again = rm.sweep(data, SETTINGS, **how(data, tmp_path / "out"))
    assert again.fits == found.fits
    assert all(one.found for one in again.fits)
    (tmp_path / "out" / NAMES[1] / RECORD).write_text("{")
    Path(found.fits[0].volume).unlink()
    assert [one.found for one in rm.sweep(data, SETTINGS, **how(data, tmp_path / "out")).fits] == [False, False]


def test_a_sweep_within_its_set_is_gone_on_with(tmp_path):
    data = sets.write_set(tmp_path / "set")
    for found in (False, True):
        (one,) = rm.sweep(data, [{"seed": 1}], **how(data, data / "sweep")).fits
        assert one.found == found


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"preset": rm.preset("quick", steps=4, resolution=16, rays=64)}, "steps"),
        ({"box": [[-1, -1, -1], [1, 1, 1]]}, "box"),
        ({"reading": {"background": (1.0, 1.0, 1.0)}}, "reading background"),
        ({"held_out": "test"}, "held_out"),
    ],
)
def test_a_fit_is_replaced_by_one_on_other_terms_only_where_it_is_asked_for(data, tmp_path, changes, told):
    out = tmp_path / "out"
    (first,) = rm.sweep(data, [{"seed": 1}], **how(data, out)).fits
    before = Path(first.volume).read_bytes()
    with pytest.raises(rm.RaymarchError, match=f"would be lost, with another {told}; choose .*overwrite=True"):
        rm.sweep(data, [{"seed": 1}], **how(data, out) | changes)
    assert Path(first.volume).read_bytes() == before
    (one,) = rm.sweep(data, [{"seed": 1}], **how(data, out) | changes, overwrite=True).fits
    assert not one.found


def test_the_table_keeps_the_fits_of_earlier_sweeps_that_differ_in_their_changes(data, tmp_path):
    out = tmp_path / "out"
    rm.sweep(data, [{"seed": 1, "loss": "huber"}], **how(data, out))
    box = [[-1, -1, -1], [1, 1, 1]]
    rm.sweep(data, [{"seed": 2}], **how(data, out), box=box)
    assert [(row["seed"], row["psnr"] != "") for row in rows_of(out)] == [("2", True)]
    found = rm.sweep(data, [{"seed": 3}], **how(data, out))
    assert [(row["seed"], row["loss"]) for row in rows_of(out)] == [("3", ""), ("1", "huber")]
    assert [one.name for one in found.fits] == ["seed-3"]


def test_a_value_that_is_no_literal_is_finished_too(data, tmp_path):
    settings = [{"density": DENSITIES["relu"]}]
    out = tmp_path / "out"
    assert [rm.sweep(data, settings, **how(data, out)).fits[0].found for _ in range(2)] == [False, True]
    rm.sweep(data, [{"seed": 1}], **how(data, out))
    assert [row["seed"] for row in rows_of(out)] == ["1"]  # the words of its settings say no value


def test_a_fit_whose_record_has_no_terms_is_not_lost(data, tmp_path):
    (first,) = rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "out")).fits
    (Path(first.volume).parent / RECORD).write_text('{"key": "4f", "name": "seed-1", "changes": {}, "psnr": 30.0}')
    with pytest.raises(rm.RaymarchError, match="has a fit that would be lost"):
        rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "out"))


def test_a_set_that_cannot_be_read_is_told_before_any_fit(data, tmp_path):
    with pytest.raises(rm.RaymarchError, match="transforms_nosuch.json"):
        rm.sweep(data, SETTINGS, **how(data, tmp_path / "out") | {"split": "nosuch"})
    assert not (tmp_path / "out").exists()


def test_the_box_is_that_of_every_fit(data, tmp_path):
    box, out = [[-0.5, -0.4, -0.3], [0.5, 0.4, 0.3]], tmp_path / "out"
    found = rm.sweep(data, SETTINGS, **how(data, out), box=box)
    for one in found.fits:
        np.testing.assert_allclose(rm.load(one.volume).world_from_index[:3, 3], box[0], atol=1e-12)
    assert [one.found for one in rm.sweep(data, SETTINGS, **how(data, out), box=box).fits] == [True, True]


def test_workers_make_the_volumes_of_one_process(data, tmp_path, single):
    found = rm.sweep(data, SETTINGS, **how(data, tmp_path / "two"), executor=2)
    for one, lr in zip(found.fits, SETTINGS["lr_colour"], strict=True):
        here = single(jobs.fit_here, str(data), BASE, {"lr_colour": lr})
        volume = rm.load(one.volume)
        np.testing.assert_array_equal(volume.density, here[0])
        np.testing.assert_array_equal(volume.features, here[1])


def test_a_fit_that_cannot_be_made_is_a_row(data, tmp_path):
    found = rm.sweep(data, [{"seed": 1}, {"depth_weight": 1.0}], **how(data, tmp_path / "out"))
    assert found.fits[0].volume
    assert not found.fits[1].volume
    assert "depth" in found.fits[1].error
    assert rows_of(tmp_path / "out")[1]["error"] == found.fits[1].error


def test_a_set_without_held_out_views_has_no_scores(data, tmp_path, caplog):
    found = rm.sweep(data, [{}], **how(data, tmp_path / "out") | {"held_out": "test"})
    assert (found.best, found.fits[0].psnr, found.fits[0].error) == (None, None, "")
    assert "there is no transforms_test.json" in found.fits[0].unscored
    assert rows_of(tmp_path / "out")[0]["unscored"] == found.fits[0].unscored
    assert "no fit of the sweep will have a score" in caplog.text


def test_a_record_tells_of_no_later_volume(data, tmp_path, monkeypatch):
    (one,) = rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "out")).fits
    changed = rm.preset("quick", steps=4, resolution=16, rays=64)
    monkeypatch.setattr("raymarch.fitting.sweep.evaluate", lambda *_, **__: pytest.fail("cut off before its record"))
    with pytest.raises(pytest.fail.Exception):
        rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "out") | {"preset": changed}, overwrite=True)
    monkeypatch.undo()
    assert rm.load(one.volume).provenance["steps"] == 4
    (again,) = rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "out")).fits
    assert (again.found, rm.load(again.volume).provenance["steps"]) == (False, 3)


def test_a_sweep_that_was_moved_is_found(data, tmp_path):
    rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "out"))
    (tmp_path / "out").rename(tmp_path / "moved")
    (one,) = rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "moved")).fits
    assert one.found
    assert Path(one.volume).parent.parent == tmp_path / "moved"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "settings are 0 fits, want 1 to 1,000"),
        ({"rays": []}, "rays is \\[\\], want a list of one value or more"),
        ({"rays": "4096"}, "rays is '4096', want a list"),
        ({"seed": range(2000)}, "are 2,000 combinations, want at most 1,000"),
        ([{"seed": 1}, {"seed": 1}], "have two fits that are alike, of seed=1; leave one of them out"),
        ([3], "settings are \\[3\\], want a list of changes"),
    ],
)
def test_what_is_no_sweep_is_refused(settings, told):
    with pytest.raises(rm.RaymarchError, match=told):
        combine_settings(settings)


def test_nothing_is_written_where_a_setting_is_none(data, tmp_path):
    for settings, told in (({"rais": [1, 2]}, "rais"), ({"rays": [64, -5]}, "rays is -5")):
        with pytest.raises(rm.RaymarchError, match=told):
            rm.sweep(data, settings, **how(data, tmp_path / "out"))
    with pytest.raises(rm.RaymarchError, match="is not there; give the path of an image set"):
        rm.sweep(tmp_path / "no-set", SETTINGS, **how(data, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_things_is_left_alone(data, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(rm.RaymarchError, match="has files that no sweep wrote; choose another folder"):
        rm.sweep(data, SETTINGS, **how(data, tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_place_that_is_taken_is_one_line(data, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(rm.RaymarchError, match="file"):
        rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "file" / "out"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / TABLE).write_text("")
    (tmp_path / "out" / "seed-1").write_text("mine")
    (one,) = rm.sweep(data, [{"seed": 1}], **how(data, tmp_path / "out")).fits
    assert "seed-1" in one.error
    assert (tmp_path / "out" / "seed-1").read_text() == "mine"


def test_words_of_the_command_are_values():
    assert values_of(("rays=4096,8192", "levels=((0,0.5),(0.4,1)),((0,1),)", "loss=squared,huber")) == {
        "rays": [4096, 8192],
        "levels": [((0, 0.5), (0.4, 1)), ((0, 1),)],
        "loss": ["squared", "huber"],
    }


@pytest.mark.parametrize("pair", ["rays=,", "rays=1,,2", "rays="])
def test_an_empty_value_is_refused(pair):
    with pytest.raises(click.UsageError, match="has an empty value; want rays=VALUE,VALUE"):
        values_of((pair,))


def test_folders_have_names_that_differ():
    names = name_combinations([{"a": "x y"}, {"a": "x/y"}, {"a": "z" * 200}, {}])
    assert len(set(names)) == 4
    assert all(len(name) <= 80 and "/" not in name for name in names)


def test_a_notebook_shows_all_fits():
    html = Sweep((SweptFit("rays-1", {}, psnr=30.0), SweptFit("rays-2", {}, error="no memory")), "out")._repr_html_()
    assert "rays-1" in html
    assert "no memory" in html
