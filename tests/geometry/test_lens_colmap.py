"""Law: COLMAP sees what we see through the lenses of its models 0 to 9, to a millionth of a pixel everywhere."""

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm

pycolmap = require_extra("pycolmap", "sfm")
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


@pytest.mark.parametrize(("model", "numbers", "lens"), MODELS, ids=[row[0] for row in MODELS])
def test_colmap_projects_every_ray_to_its_pixel(model, numbers, lens):
    theirs = pycolmap.Camera(model=model, width=64, height=48, params=list(numbers))
    focal, principal = ((numbers[0],) * 2, numbers[1:3]) if numbers[:3] == F else (numbers[:2], numbers[2:4])
    camera = rm.Camera(np.eye(4), focal, principal, 64, 48, lens)
    points = 2.5 * camera.rays().direction * [1, -1, -1]
    v, u = np.divmod(np.arange(64 * 48), 64)
    np.testing.assert_allclose(theirs.img_from_cam(points), np.stack([u, v], 1) + 0.5, rtol=0, atol=1e-6)
