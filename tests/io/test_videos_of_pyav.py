"""Laws of clips by PyAV: what is read back has the frames' count, size, rate and colours; browsers know the format."""

from __future__ import annotations

import numpy as np
import pytest
from skips import require_extra
from test_write_video import waves

av = require_extra("av", "video")

from raymarch.io.videos.write_video import is_video, write_video  # noqa: E402

pytestmark = pytest.mark.extra


def read(path):
    """Frames (frame, height, width, 3) in 0..1 of a video, and its stream as it was."""
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        frames = np.stack([frame.to_ndarray(format="rgb24") for frame in file.decode(stream)]) / 255
        about = stream.codec_context
        return frames, (about.name, about.pix_fmt, float(stream.average_rate), about.colorspace, about.color_range)


@pytest.mark.parametrize("size", [(64, 48), (65, 47), (1, 1)], ids=str)
@pytest.mark.parametrize("suffix", [".mp4", ".webm"])
def test_a_clip_is_its_frames(suffix, size, tmp_path):
    frames, place = waves(9, *size), tmp_path / f"clip{suffix}"
    if size == (1, 1):
        frames = [np.full((1, 1, 3), share) for share in np.linspace(0, 1, 9)]
    write_video(place, iter(frames), fps=12.5)
    shown, (codec, layout, rate, colours, full) = read(place)
    assert (codec.removeprefix("lib"), layout, rate, colours, full) == (
        {".mp4": "h264", ".webm": "vp9"}[suffix],
        "yuv420p",
        12.5,
        1,
        1,
    )
    width, height = size
    even = (height + height % 2, width + width % 2) if suffix == ".mp4" else (height, width)
    assert shown.shape == (9, *even, 3)
    error = np.abs(shown[:, :height, :width] - frames).mean(axis=(1, 2, 3))
    assert error.max() < 0.015, error
    assert is_video(place)


@pytest.mark.parametrize("suffix", [".mp4", ".webm"])
def test_colours_are_those_of_the_frames(suffix, tmp_path):
    """Not those of another matrix, by which red and green are told apart by 0.05."""
    colours = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.9, 0.6, 0.1), (0.5, 0.5, 0.5), (1, 1, 1), (0, 0, 0)]
    write_video(tmp_path / f"a{suffix}", [np.broadcast_to(np.float32(c), (32, 32, 3)) for c in colours], quality=95)
    shown, _ = read(tmp_path / f"a{suffix}")
    np.testing.assert_allclose(shown.mean(axis=(1, 2)), colours, atol=0.015)


def test_less_quality_is_fewer_bytes_and_more_error(tmp_path):
    frames, sizes, errors = waves(6, 96, 64), [], []
    rng = np.random.default_rng(0)
    frames = [np.clip(frame + rng.normal(0, 0.05, frame.shape), 0, 1) for frame in frames]
    for quality in (20, 60, 95):
        write_video(tmp_path / "a.mp4", frames, quality=quality)
        sizes.append((tmp_path / "a.mp4").stat().st_size)
        errors.append(float(np.abs(read(tmp_path / "a.mp4")[0] - frames).mean()))
    assert sizes == sorted(sizes) and errors == sorted(errors)[::-1]


def test_a_player_knows_all_before_the_first_frame(tmp_path):
    write_video(tmp_path / "a.mp4", waves(3))
    content = (tmp_path / "a.mp4").read_bytes()
    assert 0 < content.index(b"moov") < content.index(b"mdat")


def test_an_interrupted_clip_leaves_nothing(tmp_path):
    def frames():
        yield from waves(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_video(tmp_path / "a.mp4", frames())
    assert list(tmp_path.iterdir()) == []
