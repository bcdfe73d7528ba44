"""A reader of image sets: a folder with images and a table of where each was taken from."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

import raymarch as rm


def detect(folder):
    """Whether a folder has a table of poses, with the columns that are needed."""
    table = folder / "poses.csv"
    return table.is_file() and table.read_text().startswith("image,split,fov,x,y,z,to_x,to_y,to_z")


def read(folder, split, **_):
    """The views of a split: one a row, the camera at x, y, z looking at to_x, to_y, to_z."""
    with open(folder / "poses.csv", newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["split"] == split]
    images = [np.asarray(Image.open(folder / row["image"]).convert("RGB")) for row in rows]
    cameras = []
    for row, image in zip(rows, images, strict=True):
        eye, target = ([float(row[to + axis]) for axis in "xyz"] for to in ("", "to_"))
        height, width = image.shape[:2]
        cameras.append(rm.Camera.look_at(eye, target, fov=float(row["fov"]), width=width, height=height))
    return rm.Views(cameras, np.stack(images), [row["image"] for row in rows], source=str(folder))


csv_set = rm.Reader("csv", detect, read, files="poses.csv")


folder = Path("ring")
folder.mkdir()
rows = ["image,split,fov,x,y,z,to_x,to_y,to_z"]
for i, (x, y) in enumerate([(4, 0), (0, 4), (-4, 0)]):
    Image.fromarray(np.full((48, 64, 3), 80 * i, np.uint8)).save(folder / f"{i}.png")
    rows.append(f"{i}.png,train,0.7,{x},{y},1,0,0,0.5")
(folder / "poses.csv").write_text("\n".join(rows))

views = rm.load_views(folder, reader=csv_set)
assert views.images.shape == (3, 48, 64, 3) and views.names == ("0.png", "1.png", "2.png")
np.testing.assert_allclose(views.cameras[1].position, (0, 4, 1))

try:
    rm.load_views(folder, "test", reader=csv_set)
except rm.RaymarchError as error:
    assert str(error).startswith("reader 'csv': read of ring raised ValueError: need at least one array to stack")
else:
    raise AssertionError("there is no split of that name")
