"""What VTK was asked to picture: three unlike blobs in a turned box of unlike edges, through a table of five knots.

`PYTHONPATH=tests python tests/vtk_scene.py FOLDER` writes the pictures by VTK that tests/rendering keeps.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction

TESTS = Path(__file__).resolve().parent
BLOBS = [
    (100, 12, (0.35, 0.45, 0.6)),
    (70, 40, (0.7, 0.8, 0.3)),
    (60, 60, (0.8, 0.2, 0.75)),
]  # value, narrowness, place
SHAPE = (20, 26, 17)
BACKGROUND = (0.2, 0.4, 0.6)  # of 255 whole numbers
TABLE = TransferFunction(
    [0, 20, 45, 70, 100],
    [(0, 0, 0), (0.2, 0.3, 0.9), (0.9, 0.2, 0.2), (0.2, 0.8, 0.3), (1, 1, 0.9)],
    [0, 0, 0.1, 0.15, 0.6],
    unit_length=2.0,
)


def _volume() -> ScalarVolume:
    p = np.stack(np.meshgrid(*[np.linspace(0, 1, n) for n in SHAPE], indexing="ij"), axis=-1)
    values = sum(value * np.exp(-narrow * ((p - where) ** 2).sum(-1)) for value, narrow, where in BLOBS)
    turn = np.linalg.qr([(1, 0.3, -0.2), (0.1, 1, 0.4), (0.5, -0.2, 1)])[0]
    place = np.eye(4)
    place[:3, :3] = turn * np.sign(np.linalg.det(turn)) * (1.0, 0.8, 1.5)
    place[:3, 3] = 3, -2, 5
    return ScalarVolume(np.round(values).astype(np.uint8), place)


VOLUME = _volume()
MIDDLE = VOLUME.world_from_index[:3, :3] @ (9.5, 12.5, 8) + VOLUME.world_from_index[:3, 3]
SEEN = MIDDLE + (30, -40, 25), MIDDLE + (1, -0.5, 0.7), (0.2, 0.1, 1)  # from, towards, up
CAMERAS = {
    "perspective": Camera.look_at(*SEEN, fov=0.6, width=96, height=72),
    "orthographic": Camera.orthographic(*SEEN, size=30.0, width=96, height=72),
}


def write_pictures(folder: Path) -> None:
    """Run the example and have its function picture the scene."""
    from PIL import Image

    names = runpy.run_path(str(TESTS.parent / "examples" / "same_picture_by_vtk.py"))
    for name, camera in CAMERAS.items():
        image = names["picture_of_vtk"](VOLUME, TABLE, camera, BACKGROUND)
        Image.fromarray(np.round(255 * image).astype(np.uint8)).save(folder / f"vtk_{name}.png")


if __name__ == "__main__":
    write_pictures(Path(sys.argv[1]))
