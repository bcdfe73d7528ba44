"""Law of arguments that are cameras, images and masks: what a message says is done, and works."""

from __future__ import annotations

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm

POSE = rm.Camera.look_at((4, 0, 1)).world_from_camera
K = np.array([[5.0, 0, 4], [0, 6, 3], [0, 0, 1]])
CAMERAS = [rm.Camera.look_at((4, 0, i), width=8, height=6) for i in range(2)]
IMAGES = np.zeros((2, 6, 8, 3), np.uint8)
MASK = np.arange(48).reshape(6, 8) % 3 > 0


def camera(pose=POSE, focal=(5.0, 5.0), principal=(4.0, 3.0)):
    return rm.Camera(pose, focal, principal, 8, 6)


def views(images=IMAGES, masks=None):
    return rm.Views(CAMERAS, images, masks=masks)


ROWS = {  # the mistake, words of the message, what it says to do
    "pose of three rows": (
        lambda: camera(POSE[:3]), "np.vstack([it, [0, 0, 0, 1]])",
        lambda: camera(np.vstack([POSE[:3], [0, 0, 0, 1]])),
    ),
    "pose without rows": (
        lambda: camera(POSE.ravel()), "np.reshape(it, (4, 4))", lambda: camera(np.reshape(POSE.ravel(), (4, 4))),
    ),
    "pose of twelve": (
        lambda: camera(POSE[:3].ravel()), "np.vstack([np.reshape(it, (3, 4)), [0, 0, 0, 1]])",
        lambda: camera(np.vstack([np.reshape(POSE[:3].ravel(), (3, 4)), [0, 0, 0, 1]])),
    ),
    "pose by columns": (lambda: camera(POSE.T), "pass its transpose", lambda: camera(POSE.T.T)),
    "one focal length": (lambda: camera(focal=5.0), "pass (f, f)", lambda: camera(focal=(5.0, 5.0))),
    "a matrix as focal length": (
        lambda: camera(focal=K), "pass (K[0, 0], K[1, 1])",
        lambda: camera(focal=(K[0, 0], K[1, 1]), principal=(K[0, 2], K[1, 2])),
    ),
    "five channels": (
        lambda: views(np.zeros((2, 6, 8, 5), np.uint8)), "pass images[..., :3]",
        lambda: views(np.zeros((2, 6, 8, 5), np.uint8)[..., :3]),
    ),
    "masks of a channel": (
        lambda: views(masks=np.stack([MASK[..., None]] * 2)), "pass mask[..., 0] > 0",
        lambda: views(masks=[mask[..., 0] > 0 for mask in np.stack([MASK[..., None]] * 2)]),
    ),
    "one mask": (lambda: views(masks=MASK), "[mask] * len(cameras)", lambda: views(masks=[MASK] * len(CAMERAS))),
    "masks transposed": (
        lambda: views(masks=[MASK.T] * 2), "pass its transpose, mask.T", lambda: views(masks=[MASK.T.T] * 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_what_the_message_says_is_done_and_works(name):
    mistake, words, cure = ROWS[name]
    with pytest.raises(rm.RaymarchError) as told:
        mistake()
    assert words in str(told.value) and "\n" not in str(told.value)
    made = cure()
    if isinstance(made, rm.Camera):
        np.testing.assert_array_equal(made.world_from_camera, POSE)
    elif name.startswith(("one mask", "masks")):
        np.testing.assert_array_equal(made.mask(1), MASK)


def test_paths_of_images_are_read_as_the_message_says(tmp_path):
    import PIL.Image

    it = [tmp_path / f"{i}.png" for i in range(2)]
    for path in it:
        PIL.Image.fromarray(IMAGES[0]).save(path)
    with pytest.raises(rm.RaymarchError, match=r"np\.asarray\(PIL\.Image\.open\(path\)\.convert\('RGB'\)\)"):
        views(it)
    assert len(views([np.asarray(PIL.Image.open(path).convert("RGB")) for path in it])) == 2


@pytest.mark.parametrize("name", ["background", "downscale", "holdout", "masks"])
def test_what_belongs_to_the_reading_is_not_guessed_among_the_settings(name):
    with pytest.raises(rm.RaymarchError, match=f"unknown setting {name}.*in rm.load_views") as told:
        rm.preset("quick", **{name: 2})
    assert "did you mean" not in str(told.value)


@pytest.mark.extra
@pytest.mark.parametrize("record", ["TorchVolume", "TorchCameras"])
def test_tensors_made_of_the_thing_itself_are_told_how(record):
    require_extra("torch", "torch")
    thing = rm.Volume.from_array(np.ones((3, 4, 5))) if record == "TorchVolume" else CAMERAS[0]
    with pytest.raises(rm.RaymarchError, match=rf"rm\.{record}\.of\(\w+\) makes one"):
        getattr(rm, record)(thing)
    assert getattr(rm, record).of(thing) is not None
