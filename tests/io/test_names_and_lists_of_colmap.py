"""Law of COLMAP sets by other programs: names of another machine, of another suffix, no line of observations; the odd
image is told wherever it stands."""

from __future__ import annotations

import json

import pytest
from PIL import Image
from sets import COLMAP_IMAGES, random_image, write_colmap, write_set, write_transforms

import raymarch as rm
from raymarch.diagnosis.read_set import read_set

PREFIXES = {"Linux": "/data/someone/photos/", "Windows": "C:\\\\photos\\\\", "macOS": "/Volumes/x/a/images/"}


@pytest.mark.parametrize("system", PREFIXES)
def test_names_of_another_machine_are_those_of_the_files(system, tmp_path):
    prefix = PREFIXES[system]
    folder = write_colmap(tmp_path / "set", images=COLMAP_IMAGES.replace(" r_", f" {prefix}r_"))
    views = rm.load_views(folder, "all")
    assert len(views) == 3 and (views.image(1) == random_image(3, seed=1)).all()


@pytest.mark.parametrize("write", [write_colmap, write_transforms])
def test_files_of_another_suffix_are_told_and_the_cure_works(write, tmp_path):
    folder = write(tmp_path / "set")
    for i in range(3):
        file = folder / f"images/r_{i}.png"
        Image.open(file).save(file.with_suffix(".jpg"))
        file.unlink()
    with pytest.raises(rm.RaymarchError, match=r"r_0.jpg is there.*; rename the files to the names that are listed"):
        rm.load_views(folder, "all")
    _, (found,) = read_set(folder, None)
    assert found.severity == "error" and "put them there" not in found.cure
    for i in range(3):
        (folder / f"images/r_{i}.jpg").rename(folder / f"images/r_{i}.png")
    assert len(rm.load_views(folder, "all")) == 3


def test_images_without_a_line_of_observations_are_told_and_the_cure_works(tmp_path):
    lines = [line for line in COLMAP_IMAGES.splitlines() if line.endswith(".png")]
    folder = write_colmap(tmp_path / "set", images="\n".join(lines) + "\n")
    with pytest.raises(rm.RaymarchError, match="an image has two lines: put an empty one after each"):
        rm.load_views(folder, "all")
    (folder / "sparse/0/images.txt").write_text("".join(f"{line}\n\n" for line in lines))
    assert len(rm.load_views(folder, "all")) == 3


@pytest.mark.parametrize("write", [write_colmap, write_transforms])
@pytest.mark.parametrize("odd", [0, 1, 2])
def test_the_image_of_another_shape_is_an_error_wherever_it_stands(write, odd, tmp_path):
    """The first by name is held out, and is among what the doctor looks at."""
    folder = write(tmp_path / "set")
    Image.fromarray(random_image(3, 9, 9)).save(folder / f"images/r_{odd}.png")
    views, findings = read_set(folder, None)
    assert views is not None and len(views) == 2
    (one,) = [each for each in findings if each.severity == "error"]
    assert f"(r_{odd})" in one.message and "another shape" in one.message


def test_what_is_amiss_in_another_split_is_a_warning(tmp_path):
    """As where an exporter writes poses to test without their images; a set without a split "all" has none."""
    folder = write_transforms(tmp_path / "set", train_filenames=["images/r_0.png"], test_filenames=["images/r_9.png"])
    document = json.loads((folder / "transforms.json").read_text())
    document["frames"][1]["transform_matrix"] = "none"
    document["train_filenames"], document["test_filenames"] = ["images/r_0.png"], ["images/r_1.png"]
    (folder / "transforms.json").write_text(json.dumps(document))
    _, findings = read_set(folder, None)
    assert any("transform_matrix" in each.message for each in findings)
    views, findings = read_set(write_set(tmp_path / "splits"), None)
    assert views is not None and not [each for each in findings if each.severity != "note"]
