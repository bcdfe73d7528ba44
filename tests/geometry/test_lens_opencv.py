"""Law: OpenCV sees what we see through its lenses, to a millionth of a pixel over the whole image."""

import numpy as np
import pytest
from lenses import CAMERAS
from skips import require_extra

cv2 = require_extra("cv2", "all")
pytestmark = pytest.mark.extra
TO_OPENCV = np.array([1.0, -1.0, -1.0])  # y down, z ahead
SLOTS = {"k1": 0, "k2": 1, "p1": 2, "p2": 3, "k3": 4, "k4": 5, "k5": 6, "k6": 7}  # of OpenCV's own vector
THEIRS = [camera for camera in CAMERAS if camera.lens.model not in ("radial8", "fov", "equirectangular")]


@pytest.mark.parametrize("camera", THEIRS, ids=lambda camera: camera.lens.model)
def test_opencv_projects_every_ray_to_its_pixel(camera):
    lens, rays = camera.lens, camera.rays()
    points = rays.direction @ camera.world_from_camera[:3, :3] * TO_OPENCV
    points *= np.random.default_rng(0).uniform(0.5, 5, (len(points), 1))
    K = np.array([[camera.focal[0], 0, camera.principal[0]], [0, camera.focal[1], camera.principal[1]], [0, 0, 1.0]])
    zero = np.zeros(3)
    if lens.model == "fisheye":
        seen = cv2.fisheye.projectPoints(points[:, None], zero, zero, K, np.array(lens.coefficients))[0]
    else:
        numbers = np.zeros(8)
        for name, value in zip(lens.names, lens.coefficients, strict=True):
            numbers[SLOTS[name]] = value
        seen = cv2.projectPoints(points[:, None], zero, zero, K, numbers)[0]
    v, u = np.divmod(np.arange(len(rays)), camera.width)
    np.testing.assert_allclose(seen[:, 0], np.stack([u, v], 1) + 0.5, rtol=0, atol=1e-6)
