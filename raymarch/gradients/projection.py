"""Projection to first order: from pose, lens, step and box to rays in index space, tangent and adjoint."""

from __future__ import annotations

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import project, unproject_adjoint, unproject_tangent
from raymarch.geometry.rays import Rays
from raymarch.gradients.parameters import Parameters


def out_of_sight(camera: Camera, points: np.ndarray) -> bool:
    """Visibility test: whether what `points` (point, 3) span is out of sight, all behind or beyond an image's edge.

    Example:
        >>> out_of_sight(Camera.look_at((0, -4, 0)), np.array([[0.0, 1, 0]]))
        False
        >>> out_of_sight(Camera.look_at((0, -4, 0)), np.array([[0.0, -5, 0]]))
        True
    """
    local = (points - camera.position) @ camera.world_from_camera[:3, :3]
    local[:, 2] = np.where(np.abs(local[:, 2]) > 1e-12, local[:, 2], 1e-12)
    pixels, depth = project(local, camera.focal, camera.principal)
    u, v = (pixels * depth[:, None]).T  # on which side of the planes through the edges, behind the camera too
    beyond = (depth <= 0, u <= 0, v <= 0, u >= camera.width * depth, v >= camera.height * depth)
    return any(bool(side.all()) for side in beyond)


class Projection:
    """Tangent and adjoint of (pose, focal, principal point, step, box) -> (index-space rays, headings, step length).

    A ray's pixel (u, v) is seen along `local = ((u - cu) / fu, (cv - v) / fv, -1)`, made a unit vector and turned into
    the world; index space is the inverse of `world_from_index`. A pose moves by exp of its six numbers in camera axes
    (Sola et al. 2018, "A micro Lie theory", right-plus).
    """

    def __init__(self, camera: Camera, world_from_index: np.ndarray, voxel: float):
        self.camera, self.voxel = camera, voxel
        self.turn = camera.world_from_camera[:3, :3]
        self.world_from_index = np.asarray(world_from_index, float)
        self.index_from_world = np.linalg.inv(self.world_from_index)

    def _local(self, rays: Rays) -> tuple[np.ndarray, np.ndarray]:
        """Unit directions in camera axes (ray, 3), and the length (ray, 1) they had with their z at -1."""
        local = rays.direction @ self.turn
        return local, -1 / local[:, 2:]

    def tangent(self, rays: Rays, dot: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Tangent: dot_ of index-space origin and direction, of the view direction (ray, 3), and of dt."""
        local, length = self._local(rays)
        dot_local, dot_origin = np.zeros_like(local), np.zeros_like(local)
        plane = (local * length)[:, :2]
        dot_local[:, :2] = unproject_tangent(plane, self.camera.focal, dot.focal, dot.principal_point)
        dot_local = (dot_local - local * (local * dot_local).sum(1, keepdims=True)) / length
        if dot.pose is not None:
            dot_origin += self.turn @ dot.pose[:3]
            dot_local += np.cross(dot.pose[3:], local)
        view_direction = dot_local @ self.turn.T
        linear = self.index_from_world[:3, :3]
        origin, index_direction = dot_origin @ linear.T, view_direction @ linear.T
        dot_dt = 0.0 if dot.step is None else float(dot.step) * self.voxel
        if dot.box is not None:
            moved = -self.index_from_world @ np.vstack([dot.box, np.zeros(4)]) @ self.index_from_world
            origin = origin + rays.origin @ moved[:3, :3].T + moved[:3, 3]
            index_direction = index_direction + rays.direction @ moved[:3, :3].T
        return origin, index_direction, view_direction, dot_dt

    def adjoint(
        self, rays: Rays, origin: np.ndarray, index_direction: np.ndarray, view_direction: np.ndarray, dt: np.ndarray
    ) -> Parameters:
        """Adjoint: Parameters' d_ from d_ of index-space origin, direction, view direction (ray, 3), dt (ray,)."""
        local, length = self._local(rays)
        linear = self.index_from_world[:3, :3]
        d_origin = origin @ linear @ self.turn
        d_local = (index_direction @ linear + view_direction) @ self.turn
        pose = np.concatenate([d_origin.sum(0), np.cross(local, d_local).sum(0)])
        d_local = (d_local - local * (local * d_local).sum(1, keepdims=True)) / length
        focal, principal_point = unproject_adjoint((local * length)[:, :2], self.camera.focal, d_local[:, :2])
        moved = np.zeros((4, 4))
        moved[:3, :3] = origin.T @ rays.origin + index_direction.T @ rays.direction
        moved[:3, 3] = origin.sum(0)
        box = -(self.index_from_world.T @ moved @ self.index_from_world.T)[:3]
        step = np.asarray(dt.sum() * self.voxel)
        return Parameters(pose=pose, focal=focal, principal_point=principal_point, step=step, box=box)
