"""Law: what other libraries call an image or an array is answered by what makes an array of it, and that is taken."""

from __future__ import annotations

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm

WANT = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def cure(call):
    """What a refusal says to pass."""
    with pytest.raises(rm.RaymarchError) as told:
        call()
    return str(told.value).partition("pass ")[2]


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["gradient", "bfloat16"])
def test_tensors_that_numpy_does_not_take(kind):
    torch = require_extra("torch", "torch")
    it = torch.tensor(WANT, requires_grad=True) if kind == "gradient" else torch.tensor(WANT).to(torch.bfloat16)
    made = eval(cure(lambda: rm.ScalarVolume(it)), {"it": it})
    np.testing.assert_array_equal(rm.ScalarVolume(made).numbers(), WANT)


@pytest.mark.extra
def test_images_of_nibabel():
    nibabel = require_extra("nibabel", "formats")
    it = nibabel.Nifti1Image(WANT, np.diag([1.0, 2, 3, 1]))
    values, affine = cure(lambda: rm.ScalarVolume(it)).partition(", or")[0].split(" and ")
    volume = rm.ScalarVolume(eval(values, {"it": it, "np": np}), eval(affine, {"it": it}))
    np.testing.assert_array_equal(volume.numbers(), WANT)


class Image:
    """What NumPy takes for a list of its first axis, as it does SimpleITK's."""

    __module__ = "SimpleITK.SimpleITK"

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return float(range(3)[i])


def test_images_of_simpleitk():
    assert cure(lambda: rm.ScalarVolume(Image())).startswith("SimpleITK.GetArrayFromImage(it).T, or SimpleITK.Write")


PICTURES = {
    "channels first": (np.zeros((3, 20, 30)), lambda text, it: eval(text, {"it": it, "np": np})),
    "several": (np.zeros((2, 20, 30, 3)), lambda text, it: it[0]),
}


@pytest.mark.parametrize("how", PICTURES)
def test_pictures_in_another_order(how, tmp_path):
    it, follow = PICTURES[how]
    text = cure(lambda: rm.write_png(tmp_path / "a.png", it))
    rm.write_png(tmp_path / "a.png", follow(text, it))
    assert rm.write_png(tmp_path / "b.png", np.zeros((20, 30, 3))) is None


def test_paths_that_are_several_or_files_or_patterns(tmp_path):
    np.save(tmp_path / "head.npy", WANT)
    said = {
        "slices and images are read by the folder": [tmp_path / "head.npy", tmp_path / "other.npy"],
        r"is a pattern, want the name of a file; one of 1, such as .*head.npy": tmp_path / "*.npy",
        r"did you mean .*head.npy\?": tmp_path / "haed.npy",
        "is an address, want a file or folder of this machine": "https://example.org/head.nii.gz",
    }
    for words, path in said.items():
        with pytest.raises(rm.RaymarchError, match=words):
            rm.load(path)
    with (tmp_path / "head.npy").open("rb") as it, pytest.raises(rm.RaymarchError, match="give its name"):
        rm.load(it)
    assert rm.load(it.name).shape == (3, 4, 5)
