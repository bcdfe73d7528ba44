"""Law: COLMAP sees what we see through the lenses of its models 0 to 9, to a millionth of a pixel everywhere."""

import json
import subprocess
import sys

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm

require_extra("pycolmap", "sfm", load=False)
pytestmark = pytest.mark.extra
K = 40.0, 44.0, 33.0, 22.0  # focal lengths and principal point of COLMAP's models with two focal lengths
F = 40.0, 33.0, 22.0  # and of those with one
MODELS = [  # COLMAP's model, its numbers, our lens
    ("SIMPLE_PINHOLE", F, rm.Lens()),
    ("PINHOLE", K, rm.Lens()),
    ("SIMPLE_RADIAL", (*F, -0.12), rm.Lens("simple_radial", (-0.12,))),
    ("RADIAL", (*F, 0.1, -0.02), rm.Lens("radial", (0.1, -0.02))),
    ("OPENCV", (*K, -0.1, 0.05, 0.002, -0.003), rm.Lens("opencv", (-0.1, 0.05, 0, 0.002, -0.003))),
    ("OPENCV_FISHEYE", (*K, 0.05, -0.01, 0.003, -0.0005), rm.Lens("fisheye", (0.05, -0.01, 0.003, -0.0005))),
    (
        "FULL_OPENCV",
        (*K, 0.3, 0.1, 0.001, -0.002, 0.02, 0.2, 0.05, 0.01),
        rm.Lens("full_opencv", (0.3, 0.1, 0.02, 0.001, -0.002, 0.2, 0.05, 0.01)),
    ),
    ("FOV", (*K, 0.9), rm.Lens("fov", (0.9,))),
    ("SIMPLE_RADIAL_FISHEYE", (*F, 0.05), rm.Lens("fisheye", (0.05, 0, 0, 0))),
    ("RADIAL_FISHEYE", (*F, 0.05, -0.01), rm.Lens("fisheye", (0.05, -0.01, 0, 0))),
]


ORACLE = """
import json, sys
import numpy as np
import pycolmap

folder, models = sys.argv[1], json.loads(sys.argv[2])
for i, (model, numbers) in enumerate(models):
    camera = pycolmap.Camera(model=model, width=64, height=48, params=numbers)
    np.save(f"{folder}/pixels_{i}.npy", camera.img_from_cam(np.load(f"{folder}/points_{i}.npy")))
"""


def camera_of(numbers, lens):
    focal, principal = ((numbers[0],) * 2, numbers[1:3]) if numbers[:3] == F else (numbers[:2], numbers[2:4])
    return rm.Camera(np.eye(4), focal, principal, 64, 48, lens)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Pixels of a point on each of our rays, by model; COLMAP's library and Pillow crash each other in one process."""
    folder = tmp_path_factory.mktemp("colmap")
    for i, (_, numbers, lens) in enumerate(MODELS):
        np.save(folder / f"points_{i}.npy", 2.5 * camera_of(numbers, lens).rays().direction * [1, -1, -1])
    asked = json.dumps([(model, numbers) for model, numbers, _ in MODELS])
    command = [sys.executable, "-c", ORACLE, str(folder), asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    return {model: np.load(folder / f"pixels_{i}.npy") for i, (model, _, _) in enumerate(MODELS)}


@pytest.mark.parametrize("model", [row[0] for row in MODELS])
def test_colmap_projects_every_ray_to_its_pixel(model, theirs):
    v, u = np.divmod(np.arange(64 * 48), 64)
    np.testing.assert_allclose(theirs[model], np.stack([u, v], 1) + 0.5, rtol=0, atol=1e-6)
