"""Lenses for tests: one of each model, strong enough that each of its numbers moves pixels, and cameras of them."""

import numpy as np

import raymarch as rm

LENSES = (
    rm.Lens(),
    rm.Lens("simple_radial", (-0.12,)),
    rm.Lens("radial", (0.1, -0.02)),
    rm.Lens("opencv", (-0.2, 0.1, -0.01, 0.002, -0.003)),
    rm.Lens("full_opencv", (0.3, 0.1, 0.02, 0.001, -0.002, 0.2, 0.05, 0.01)),
    rm.Lens("radial8", (-0.1, 0.05, -0.01, 0.001, 0.001, 0.002)),
    rm.Lens("fisheye", (0.05, -0.01, 0.003, -0.0005)),
    rm.Lens("equirectangular"),
    rm.Lens("fov", (0.9,)),
)


def camera_of(lens: rm.Lens) -> rm.Camera:
    """A camera of 64 x 48 pixels, 50 degrees to its corners, of a fisheye 90; of parallel rays 3.2 world units wide."""
    focal = {"fisheye": 25.0, "orthographic": 20.0}.get(lens.model, 40.0)
    pose = rm.Camera.look_at((1, -4, 2)).world_from_camera
    return rm.Camera(np.array(pose), (focal, 1.1 * focal), (33, 22), 64, 48, lens)


CAMERAS = tuple(camera_of(lens) for lens in LENSES)
ORTHOGRAPHIC = camera_of(rm.Lens("orthographic"))  # whose lens takes no direction anywhere
