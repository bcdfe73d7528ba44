"""Laws of what is never lost or waited for: sources of conversions, others' files, pipes."""

from __future__ import annotations

import os
import zipfile
from io import BytesIO

import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints.checkpoint_file import is_checkpoint
from raymarch.io.files.strict import parse_json
from raymarch.io.image_sets.metashape import _exports
from raymarch.io.videos.camera_path_file import load_camera_path
from raymarch.io.volumes.volume_file import convert_volume, load, save
from raymarch.io.volumes.xdmf import write_beside
from raymarch.views.identity import is_same_source
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import Volume

BALL = Volume.from_function(lambda p: 2.0 + p[..., 0], shape=(6, 5, 4))


@pytest.fixture
def ball(tmp_path):
    save(BALL, tmp_path / "ball.h5")
    return tmp_path / "ball.h5"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_conversion_to_xdmf_keeps_the_volume_it_reads(ball, overwrite):
    before = ball.read_bytes()
    with pytest.raises(RaymarchError, match="ball.h5: is what is read, and would be lost"):
        convert_volume(ball, ball.with_suffix(".xdmf"), overwrite=overwrite)
    assert ball.read_bytes() == before and not ball.with_suffix(".xdmf").exists()


def test_values_of_an_xdmf_take_no_volume_s_place_unasked(ball):
    before = ball.read_bytes()
    with pytest.raises(
        RaymarchError, match=r"ball.h5: is there, and .*ball.xdmf would put its own values in its place"
    ):
        save(BALL, ball.with_suffix(".xdmf"))
    assert ball.read_bytes() == before
    other = ball.with_name("other.xdmf")
    save(BALL, other)
    save(BALL, other)  # its own
    save(BALL, ball.with_suffix(".xdmf"), True)
    assert load(other).shape == load(ball.with_suffix(".xdmf")).shape == BALL.shape


def test_values_of_an_xdmf_take_no_fit_s_place_because_another_s_page_is_there(ball):
    """A page that is about a file of another name says nothing of the one beside it that bears its own."""
    page = ball.with_suffix(".xdmf")
    save(ScalarVolume(np.ones((3, 4, 5))), ball.with_name("scan.h5"))
    write_beside(page, ball.with_name("scan.h5"))
    before = ball.read_bytes()
    with pytest.raises(RaymarchError, match=r"ball.h5: is there, and .*ball.xdmf would put .*; choose another name"):
        save(BALL, page)
    assert ball.read_bytes() == before and load(page).shape == (3, 4, 5)
    save(BALL, page, True)
    assert load(page).shape == BALL.shape
    save(BALL, page)  # its own by now


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_packed_by_what_unpacks_without_a_limit_is_refused(how, tmp_path):
    data = BytesIO()
    np.save(data, np.zeros((4, 4, 4), np.float32))
    with zipfile.ZipFile(tmp_path / "v.npz", "w", how) as archive:
        archive.writestr("values.npy", data.getvalue())
    with pytest.raises(RaymarchError, match="is packed as no NumPy packs it"):
        load(tmp_path / "v.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_waited_for_by_nobody(tmp_path):
    os.mkfifo(tmp_path / "a.xml")
    assert _exports(tmp_path) == []
    assert not is_checkpoint(tmp_path / "a.xml")


def test_a_key_that_comes_twice_among_very_many_is_found_at_once():
    keys = ",".join(f'"k{i}":0' for i in range(200_000))
    with pytest.raises(RaymarchError, match="key 'k7' comes twice"):
        parse_json("{" + keys + ',"k7":0}', "set")


@pytest.mark.parametrize("cameras", ["5", "true", '"ab"', "{}"])
def test_a_path_whose_cameras_are_no_list_is_refused(cameras, tmp_path):
    (tmp_path / "flight.json").write_text('{"cameras": ' + cameras + "}")
    with pytest.raises(RaymarchError, match="want a list of two or more keys"):
        load_camera_path(tmp_path / "flight.json", 5)


def test_a_source_that_can_be_no_path_is_no_other(tmp_path):
    assert not is_same_source("a\0b", str(tmp_path)) and is_same_source(str(tmp_path), str(tmp_path))
