"""Law of masks by other programs: labels of objects are masks, what is none is told, and each cure is done."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from sets import POSES, random_image, write_set, write_transforms

import raymarch as rm
from raymarch.diagnosis.read_set import read_set

MASK = np.zeros((6, 8), bool)
MASK[1:4, 2:6] = True
SEVERAL = MASK * (1 + np.arange(8, dtype=np.uint8) % 3)


def with_mask(folder, save, name="m.png", which=(1,)):
    """A set of which these frames have a mask, `save` makes it."""
    write_transforms(folder)
    document = json.loads((folder / "transforms.json").read_text())
    for i in which:
        document["frames"][i]["mask_path"] = name
    (folder / "transforms.json").write_text(json.dumps(document))
    if save is not None:
        save(folder / name)
    return folder


def palette(labels, *colours):
    image = Image.fromarray(labels.astype(np.uint8)).convert("P")
    image = Image.frombytes("P", (8, 6), labels.astype(np.uint8).tobytes())
    image.putpalette([*sum(colours, ()), *[0] * (768 - 3 * len(colours))])
    return image


LABELS = {
    "one class of 15": Image.fromarray(MASK.astype(np.uint8) * 15),
    "objects 1 to 3": Image.fromarray(SEVERAL.astype(np.uint8)),
    "objects 1 to 3, 16 bit": Image.fromarray(SEVERAL.astype(np.uint16)),
    "dark colours": Image.fromarray(MASK[..., None] * np.array([0, 64, 0], np.uint8)),
    "colours, dark and bright": Image.fromarray(
        np.where(SEVERAL[..., None] == 1, [64, 0, 0], MASK[..., None] * np.array([0, 200, 30])).astype(np.uint8)
    ),
    "palette": palette(SEVERAL, (0, 0, 0), (128, 0, 0), (0, 64, 0), (0, 0, 32)),
}


@pytest.mark.parametrize("how", LABELS)
def test_labels_of_objects_are_what_counts(how, tmp_path):
    views = rm.load_views(with_mask(tmp_path / "set", LABELS[how].save), "all")
    np.testing.assert_array_equal(views.mask(views.names.index("r_1")), MASK)


def test_what_is_darker_than_half_is_black_in_masks_of_greys(tmp_path):
    """A soft edge, and the noise of a JPEG about black."""
    soft = np.where(MASK, 255, 100).astype(np.uint8)
    for name in ("m.png", "m.jpg"):
        folder = with_mask(tmp_path / name, lambda path: Image.fromarray(soft).save(path, quality=100), name)
        views = rm.load_views(folder, "all")
        np.testing.assert_array_equal(views.mask(views.names.index("r_1")), MASK)


def test_labels_beside_255_are_told_and_the_cure_works(tmp_path):
    labels = np.where(MASK, 2, 0).astype(np.uint8)
    labels[0, :] = 255  # what VOC calls void
    folder = with_mask(tmp_path / "set", Image.fromarray(labels).save)
    with pytest.raises(rm.RaymarchError, match=r"m.png: mask has the values 0, 2, 255: labels.*write 0 where"):
        rm.load_views(folder, "all")
    Image.fromarray(MASK.astype(np.uint8) * 255).save(folder / "m.png")
    assert rm.load_views(folder, "all").masks is not None


def test_an_array_as_a_mask_is_told_and_the_cure_works(tmp_path):
    folder = with_mask(tmp_path / "set", lambda path: np.save(path, MASK), "m.npy")
    with pytest.raises(rm.RaymarchError, match=r"a NumPy array; write its values as a PNG of its name beside") as told:
        rm.load_views(folder, "all")
    assert "mogrify" not in str(told.value), "which reads no arrays"
    Image.fromarray(np.load(folder / "m.npy").astype("uint8")).save(folder / "m.png")
    views = rm.load_views(folder, "all")
    np.testing.assert_array_equal(views.mask(views.names.index("r_1")), MASK)


def test_masks_that_are_missing_are_a_warning_of_the_doctor(tmp_path):
    _, findings = read_set(with_mask(tmp_path / "set", None), None)
    (one,) = [each for each in findings if "masks are missing" in each.message]
    assert one.severity == "warning" and one.cure == "put them there, or take them out"


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_the_image_whose_background_was_left_in_is_named(odd, tmp_path, caplog):
    folder = write_set(tmp_path / "set", 4)
    for i in range(3):
        image = random_image(4, seed=i)
        image[..., 3] = 255 if i == odd else MASK * 255
        Image.fromarray(image).save(folder / f"train/r_{i}.png")
    rm.load_views(folder)
    assert f"1 of 3 images (r_{odd}) is opaque all over, where the others are transparent in part" in caplog.text


# Numbers as other programs write them.


def document_of(folder):
    return json.loads((folder / "transforms.json").read_text())


def test_a_pose_of_three_rows_is_read(tmp_path):
    folder = write_transforms(tmp_path / "set")
    before, document = rm.load_views(folder, "all"), document_of(folder)
    for frame in document["frames"]:
        frame["transform_matrix"] = frame["transform_matrix"][:3]
    (folder / "transforms.json").write_text(json.dumps(document))
    for one, other in zip(before.cameras, rm.load_views(folder, "all").cameras, strict=True):
        np.testing.assert_array_equal(one.world_from_camera, other.world_from_camera)


WRITTEN = {
    "a pose without rows": (
        lambda d: {
            **d,
            "frames": [{**f, "transform_matrix": np.ravel(f["transform_matrix"]).tolist()} for f in d["frames"]],
        },
        "write it in rows",
    ),
    "a number as a text": (lambda d: {**d, "w": "8"}, "write 8 without quotation marks"),
    "frames by name": (lambda d: {**d, "frames": {f["file_path"]: f for f in d["frames"]}}, "as a list"),
    "a pose that is NaN": (
        lambda d: {**d, "frames": [*d["frames"], {**d["frames"][0], "transform_matrix": [[float("nan")] * 4] * 4}]},
        "take out the entry that has it",
    ),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_what_is_written_otherwise_is_told_with_what_to_write(how, tmp_path):
    spoil, cure = WRITTEN[how]
    folder = write_transforms(tmp_path / "set")
    right = document_of(folder)
    (folder / "transforms.json").write_text(json.dumps(spoil(right)))
    _, (found,) = read_set(folder, None)
    assert found.severity == "error" and cure in found.cure
    (folder / "transforms.json").write_text(json.dumps(right))  # rows, numbers, a list, and no such entry
    assert len(rm.load_views(folder, "all")) == len(POSES)
