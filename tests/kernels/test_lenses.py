"""Laws of the lenses of kernels: one kernel for all models, and it agrees with the host's equations."""

from dataclasses import replace

import numpy as np
import pytest
from lenses import CAMERAS as WITH_CENTRE
from lenses import ORTHOGRAPHIC

import raymarch as rm
from raymarch.device.image_store import ImageStore, lens_vector
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.kernels.fit.hull import visual_hull
from raymarch.kernels.fit.targets import draw_tiles
from raymarch.kernels.rays.camera import pixel_ray
from raymarch.kernels.rays.lens import LENS_VECTOR, project

CAMERAS = [*WITH_CENTRE, ORTHOGRAPHIC]
FISHEYE = rm.Lens("fisheye", (0.01, -0.002, 0, 0))
WIDE = rm.Camera(np.eye(4), (30, 30), (40, 40), 80, 80, FISHEYE)  # to 105 degrees off the axis
EACH = pytest.mark.parametrize("camera", [*CAMERAS, WIDE], ids=lambda camera: camera.lens.model)


@ti.kernel
def there_and_back(
    lens: LENS_VECTOR,
    pixels: ti.types.ndarray(dtype=ti.f64, ndim=2),
    origins: ti.types.ndarray(dtype=ti.f64, ndim=2),
    directions: ti.types.ndarray(dtype=ti.f64, ndim=2),
    again: ti.types.ndarray(dtype=ti.f64, ndim=2),
):
    for i in range(pixels.shape[0]):
        o, d = pixel_ray(ti.Matrix.identity(float, 4), lens, pixels[i, 0], pixels[i, 1], True)
        u, v, depth = project(lens, o + 2.5 * d)
        for a in ti.static(range(3)):
            origins[i, a] = o[a]
            directions[i, a] = d[a]
            again[i, a] = ti.Vector([u, v, depth])[a]


@EACH
def test_kernels_agree_with_the_host_to_a_millionth_of_a_pixel(camera):
    rays = camera.rays()
    v, u = np.divmod(np.arange(len(rays)), camera.width)
    pixels = np.stack([u, v], 1) + 0.5
    origins, directions, again = np.zeros((3, len(rays), 3))
    there_and_back(ti.Vector(lens_vector(camera)), pixels, origins, directions, again)
    turn = camera.world_from_camera[:3, :3]
    seen, depth = camera.project(camera.position + (origins + 2.5 * directions) @ turn.T)
    np.testing.assert_allclose(origins, (rays.origin - camera.position) @ turn, rtol=0, atol=1e-12)
    np.testing.assert_allclose(directions, rays.direction @ turn, rtol=0, atol=1e-12)
    np.testing.assert_allclose(seen, pixels, rtol=0, atol=1e-6)
    np.testing.assert_allclose(again, np.concatenate([seen, depth[:, None]], 1), rtol=0, atol=1e-6)


def require_drawn_where_cameras_look(store, cameras):
    """Rays of the tiles of a set that mixes lenses go through the middles of the parts of their cameras' pixels."""
    for side in (1, 2):
        require_drawn_in_parts(store, cameras, side)


def require_drawn_in_parts(store, cameras, side):
    area, middles = store.fields.tile**2 * side**2, (np.arange(side) + 0.5) / side
    put_first = np.arange(store.fields.chosen.shape[0], dtype=np.int32) % store.tiles
    store.fields.chosen.from_numpy(put_first)
    views = np.repeat(store.fields.view.to_numpy()[: store.tiles], area)
    with RayBuffer(len(views)) as buffer:
        draw_tiles(buffer.fields, store.fields, store.tiles, side, 0.25, 0, 0, 0.0)
        origin, direction = (f.to_numpy()[: len(views)] for f in (buffer.fields.origin, buffer.fields.direction))
    for view, camera in enumerate(cameras):
        mine = views == view
        begin = camera.project(origin[mine])[1]
        np.testing.assert_allclose(begin, camera.project(origin[mine] + direction[mine])[1] / 5, rtol=1e-9)
        pixels = camera.project(origin[mine])[0]
        np.testing.assert_allclose(np.abs((pixels % 1)[..., None] - middles).min(-1), 0, rtol=0, atol=1e-6)
        assert len(np.unique(pixels.round(3), axis=0)) == camera.width * camera.height * side**2


def test_no_lens_carves_the_ball_that_it_sees_out_of_the_hull():
    centre, radius = np.zeros(3), 0.35
    around = rm.orbit(centre, 2, len(CAMERAS), like=CAMERAS[0])
    cameras = [replace(c, world_from_camera=at.world_from_camera) for c, at in zip(CAMERAS, around, strict=True)]
    images = np.zeros((len(cameras), 48, 64, 4), np.uint8)
    for image, camera in zip(images, cameras, strict=True):
        rays = camera.rays()
        near = np.linalg.norm(np.cross(rays.direction, centre - rays.origin), axis=1) < radius
        image[..., 3] = 255 * near.reshape(48, 64)
    seen = np.zeros((24, 24, 24), np.int32)
    with ImageStore(rm.Views(cameras, images)) as store:
        visual_hull(store.fields, store.views, ti.Vector([-1.0] * 3), ti.Vector([2 / 24] * 3), seen)
        require_drawn_where_cameras_look(store, cameras)
    at = (np.stack(np.meshgrid(*[np.arange(24)] * 3, indexing="ij"), -1) + 0.5) / 12 - 1
    inside = np.linalg.norm(at, axis=-1) < radius
    assert inside.sum() > 100 and (seen[inside] == len(cameras)).all()
    assert (seen[np.linalg.norm(at, axis=-1) > 2.2 * radius] >= 0).mean() < 0.2
