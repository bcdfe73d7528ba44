"""Laws of frames of a video: so many, evenly, of each span the sharpest, upright; what is no video is one line."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from skips import require_extra

av = require_extra("av", "video")

from raymarch.errors import RaymarchError  # noqa: E402
from raymarch.sfm.video import write_frames  # noqa: E402

pytestmark = pytest.mark.extra


def write_video(path, frames):
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 64, 48, "yuv420p", 4_000_000
        for frame in frames:
            file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        file.mux(stream.encode())
    return path


def stripes(level):
    """Sharp stripes, brighter with the level."""
    out = np.zeros((48, 64, 3), np.uint8)
    out[:, ::16] = out[:, 1::16] = out[:, 2::16] = out[:, 3::16] = 60 + 10 * level
    return out


def test_of_each_span_the_sharpest_frame_is_kept(tmp_path):
    frames = [np.full((48, 64, 3), 60 + 3 * i, np.uint8) for i in range(12)]
    for i, level in ((1, 0), (6, 5), (10, 10)):
        frames[i] = stripes(level)
    told = []
    video = write_video(tmp_path / "walk.mp4", frames)
    written = write_frames(video, tmp_path / "out", 3, lambda *count: told.append(count))
    assert written == [(f"frame_{i:05d}.jpg", (64, 48)) for i in range(3)]
    for (name, _), level in zip(written, (0, 5, 10), strict=True):
        with Image.open(tmp_path / "out" / name) as image:
            np.testing.assert_allclose(np.asarray(image.convert("RGB"), float).mean(), stripes(level).mean(), atol=6)
    assert told == [("frames", 1, 3), ("frames", 2, 3), ("frames", 3, 3)]


def test_a_short_video_has_as_many_as_it_has(tmp_path):
    video = write_video(tmp_path / "walk.mp4", [stripes(i) for i in range(5)])
    assert len(write_frames(video, tmp_path / "out", 100)) == 5


@pytest.mark.parametrize("content", [b"", b"no video at all", b"\x00\x00\x00\x18ftypmp42" + bytes(500)])
def test_what_is_no_video_is_one_line(content, tmp_path):
    (tmp_path / "walk.mp4").write_bytes(content)
    with pytest.raises(RaymarchError, match="is no video that can be read") as caught:
        write_frames(tmp_path / "walk.mp4", tmp_path / "out", 10)
    assert "\n" not in str(caught.value)


def test_two_frames_are_too_few(tmp_path):
    video = write_video(tmp_path / "walk.mp4", [stripes(i) for i in range(2)])
    with pytest.raises(RaymarchError, match="has 2 frames, want 3 or more"):
        write_frames(video, tmp_path / "out", 10)


@pytest.mark.parametrize(
    ("frames", "kept"), [(0, 6), (3, 4), (1, None)], ids=["no length", "too few frames", "one frame"]
)
def test_a_video_that_says_no_length_or_a_wrong_one_gives_no_more_than_was_asked_for(
    frames, kept, tmp_path, monkeypatch
):
    """As what browsers record says none."""
    video = write_video(tmp_path / "walk.mp4", [stripes(i % 12) for i in range(60)])
    plain = av.open

    class Stream:
        def __init__(self, stream):
            self.stream, self.frames, self.duration = stream, frames, None

        def __getattr__(self, name):
            return getattr(self.stream, name)

    class File:
        def __init__(self, path):
            self.file, self.duration = plain(path), None
            self.streams = type("Streams", (), {"video": [Stream(self.file.streams.video[0])]})

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def decode(self, stream):
            return self.file.decode(stream.stream)

        def demux(self, stream):
            return self.file.demux(stream.stream)

    monkeypatch.setattr(av, "open", File)
    if kept is None:  # all frames but the first are the last span's
        with pytest.raises(RaymarchError, match="has 2 frames, want 3 or more"):
            write_frames(video, tmp_path / "out", 6)
    else:
        assert len(write_frames(video, tmp_path / "out", 6)) == kept
