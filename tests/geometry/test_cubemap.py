"""Laws of cube maps: faces are OpenGL's, edges that two faces share have the same rays, a panorama has them too."""

import numpy as np
import pytest

import raymarch as rm

PLACES = {"level": {"eye": (1.0, 2.0, 3.0)}, "tilted": {"eye": (0.2, -1, 0.4), "target": (2, 1, 3), "up": (0.1, 1, 0)}}
each_place = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


def directions(camera, pixels):
    """Unit directions in the world of pixels (n, 2)."""
    seen = camera.lens.directions((np.asarray(pixels, float) - camera.principal) / camera.focal)
    return seen / np.linalg.norm(seen, axis=1, keepdims=True) @ camera.world_from_camera[:3, :3].T


def opengl(r):
    """Face, and (s, t) in 0..1 from the first texel of the first row, of a direction: OpenGL 4.6, table 8.19."""
    x, y, z = r
    face = 2 * int(np.abs(r).argmax()) + int(r[np.abs(r).argmax()] < 0)
    s, t = [(-z, -y), (z, -y), (x, z), (x, -z), (x, -y), (-x, -y)][face]
    return face, np.array([s, t]) / np.abs(r).max() / 2 + 0.5


@each_place
def test_faces_are_opengls(place):
    """Its x is right, y up, z ahead, which is a left-handed system."""
    faces, ahead = rm.Camera.cubemap(size=8, **place), rm.Camera.panorama(width=16, **place).world_from_camera[:3, :3]
    for r in np.random.default_rng(0).normal(size=(200, 3)):
        face, at = opengl(r)
        pixel, depth = faces[face].project([faces[face].position + ahead @ (r * (1, 1, -1))])
        np.testing.assert_allclose(pixel[0], 8 * at, rtol=0, atol=1e-12)
        assert depth[0] > 0


@each_place
def test_edges_that_two_faces_share_have_the_same_rays(place):
    faces, along = rm.Camera.cubemap(size=6, **place), np.linspace(0, 6, 25)[1:-1]
    none, full = 0 * along, 6 + 0 * along
    edges = [np.stack(e, 1) for e in ((along, none), (along, full), (none, along), (full, along))]
    rays = np.stack([directions(camera, edge) for camera in faces for edge in edges])  # (24, 23, 3)
    apart = np.minimum(*(np.abs(rays[:, None] - back[None]).max((-2, -1)) for back in (rays, rays[:, ::-1])))
    partners = apart + 9 * np.eye(24) < 1e-12
    assert (partners.sum(1) == 1).all() and (partners == partners.T).all()


@each_place
def test_a_panorama_from_there_has_the_same_rays_and_every_one_is_in_one_face(place):
    around, faces = rm.Camera.panorama(width=32, **place), rm.Camera.cubemap(size=8, **place)
    rays, seen = around.rays(), 0
    for camera in faces:
        pixels, depth = camera.project(rays.origin + rays.direction)
        inside = (depth > 0) & ((pixels > 0) & (pixels < 8)).all(1)
        np.testing.assert_allclose(directions(camera, pixels[inside]), rays.direction[inside], rtol=0, atol=1e-12)
        seen = seen + inside
    assert (seen == 1).all()


@pytest.mark.parametrize("wrong", [{"up": "z"}, {"eye": (0, 0)}, {"target": (0, 0, 0)}, {"up": (0, 0, 0)}, {"size": 0}])
def test_a_wrong_place_of_a_cube_map_is_one_line(wrong):
    with pytest.raises(rm.RaymarchError) as caught:
        rm.Camera.cubemap(**{"eye": (0, 0, 0), **wrong})
    assert "\n" not in str(caught.value)
