"""Law: images and scores by workers have the bytes of those of one process, and what a worker does not see is told."""

from __future__ import annotations

import os

import jobs
import numpy as np
import pytest

import raymarch as rm
from raymarch.rendering.render_many import Frame, SceneFiles, VolumeFile, draw_frame


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A volume's file."""
    path = tmp_path_factory.mktemp("many") / "ball.h5"
    rm.save(jobs.ball(), path)
    return path


def test_images_have_the_bytes_of_one_process(file, single):
    cameras = jobs.cameras()
    wanted = single(jobs.images_here, str(file), cameras)
    seen = list(rm.render_many(file, cameras, executor=2, extras=True))
    for got, images in zip(([one.image for one in seen], [one.opacity for one in seen]), wanted[:2], strict=True):
        np.testing.assert_array_equal(got, images)
    np.testing.assert_array_equal([one.depth for one in seen], wanted[2])
    assert np.ptp(wanted[0]) > 0.1


def test_this_process_renders_alike_and_keeps_nothing(file):
    camera = jobs.cameras(1)
    (seen,) = rm.render_many([file, file], camera, background="black")
    np.testing.assert_array_equal(seen.image, rm.render([jobs.ball(), jobs.ball()], camera[0], background="black"))
    assert np.isinf(seen.depth).all()


def test_scores_are_those_of_one_process(file, single):
    cameras = jobs.cameras(3, 24)
    images = np.random.default_rng(3).integers(0, 255, (3, 24, 24, 3)).astype(np.uint8)
    views = rm.Views(cameras, images)
    told = []
    found = rm.evaluate(file, views, executor=2, seen=lambda i, image: told.append((i, image.shape)))
    assert [(view.name, view.psnr, view.ssim) for view in found.views] == single(jobs.scores_here, str(file), views)
    assert told == [(i, (24, 24, 3)) for i in range(3)]


def test_a_volume_without_a_file_is_refused(file):
    views = rm.Views(jobs.cameras(1), np.zeros((1, 20, 20, 3), np.uint8))
    with pytest.raises(rm.RaymarchError, match=r"workers read files; rm\.save it, and give the path"):
        rm.evaluate(jobs.ball(), views, executor=2)
    assert rm.evaluate(file, views).psnr == rm.evaluate(rm.load(file), views).psnr


def test_a_file_that_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(rm.RaymarchError, match="nothing.h5: is not there; give the path of a volume's file"):
        rm.render_many(tmp_path / "nothing.h5", jobs.cameras(1), executor=2)


def test_a_file_that_a_worker_does_not_see_is_told(tmp_path):
    path = tmp_path / "ball.h5"
    rm.save(jobs.ball(), path)
    frame = Frame(SceneFiles((VolumeFile.of(path),)), jobs.cameras(1)[0])
    told = os.stat(path)
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns + 10**9))
    with pytest.raises(rm.RaymarchError, match="sees another file there, of another size or time"):
        draw_frame(frame)
    path.unlink()
    with pytest.raises(rm.RaymarchError, match="does not see it; put it where all workers see it by that path"):
        draw_frame(frame)
