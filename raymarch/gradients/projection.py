"""Projection to first order: from pose, lens, step and box to rays in index space, tangent and adjoint."""

from __future__ import annotations

import numpy as np

from raymarch.geometry.camera import Camera, border
from raymarch.geometry.lens import unproject
from raymarch.geometry.ndc import ray_slopes, rays_in_ndc
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
    x, y, z = ((points - camera.position) @ camera.world_from_camera[:3, :3]).T
    edge = unproject(border(camera.width, camera.height), camera.focal, camera.principal, camera.lens)
    if not (edge[:, 2] < 0).all():
        return False  # of so wide a lens no planes go through the edges
    tangents = edge[:, :2] / -edge[:, 2:]
    (left, low), (right, high) = tangents.min(0), tangents.max(0)
    beyond = (z >= 0, x <= -left * z, x >= -right * z, y <= -low * z, y >= -high * z)  # behind the camera too
    return any(bool(side.all()) for side in beyond)


class Projection:
    """Tangent and adjoint of (pose, focal, principal point, lens, step, box) -> (index-space rays, headings, step).

    A ray's pixel (u, v) is the plane point ((u - cu) / fu, (v - cv) / fv), which the lens takes to a unit vector
    `local` in camera axes, turned into the world; index space is the inverse of `world_from_index`. A pose moves by exp
    of its six numbers in camera axes (Sola et al. 2018, "A micro Lie theory", right-plus).
    """

    def __init__(
        self, camera: Camera, world_from_index: np.ndarray, voxel: float, ndc_from_world: np.ndarray | None = None
    ):
        self.camera, self.voxel, self.ndc_from_world = camera, voxel, ndc_from_world
        self.turn = camera.world_from_camera[:3, :3]
        self.world_from_index = np.asarray(world_from_index, float)
        self.index_from_world = np.linalg.inv(self.world_from_index)

    def tangent(self, rays: Rays, dot: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Tangent: dot_ of index-space origin and direction, of the view direction (ray, 3), and of dt."""
        local = rays.direction @ self.turn
        dot_local, dot_origin = self._by_lens(local, dot), np.zeros_like(local)
        if dot.pose is not None:
            dot_origin += self.turn @ dot.pose[:3]
            dot_local += np.cross(dot.pose[3:], local)
        view_direction = dot_local @ self.turn.T
        linear, (seen, by_world) = self.index_from_world[:3, :3], self._in_ndc(rays)
        way = view_direction
        if by_world is not None:
            moved = np.einsum("rij,rj->ri", by_world, np.concatenate([dot_origin, way], axis=1))
            dot_origin, way = moved[:, :3], moved[:, 3:]
        origin, index_direction = dot_origin @ linear.T, way @ linear.T
        dot_dt = 0.0 if dot.step is None else float(dot.step) * self.voxel
        if dot.box is not None:
            moved = self.frame(dot.box)
            origin = origin + seen.origin @ moved[:3, :3].T + moved[:3, 3]
            index_direction = index_direction + seen.direction @ moved[:3, :3].T
        return origin, index_direction, view_direction, dot_dt

    def frame(self, dot_box: np.ndarray) -> np.ndarray:
        """Tangent of `index_from_world` (4, 4) by that of the box (3, 4)."""
        return -self.index_from_world @ np.vstack([dot_box, np.zeros(4)]) @ self.index_from_world

    def adjoint(
        self,
        rays: Rays,
        origin: np.ndarray,
        index_direction: np.ndarray,
        view_direction: np.ndarray,
        dt: np.ndarray,
        frame: np.ndarray | None = None,
    ) -> Parameters:
        """Adjoint: Parameters' d_ from d_ of index-space origin, direction, view direction (ray, 3), dt (ray,).

        `frame` (3, 3) is what the turn and stretch into index space bring beside their rays, where normals are seen.
        """
        local = rays.direction @ self.turn
        linear, (seen, by_world) = self.index_from_world[:3, :3], self._in_ndc(rays)
        by_origin, by_way = origin @ linear, index_direction @ linear
        if by_world is not None:
            moved = np.einsum("rij,ri->rj", by_world, np.concatenate([by_origin, by_way], axis=1))
            by_origin, by_way = moved[:, :3], moved[:, 3:]
        d_origin = by_origin @ self.turn
        d_local = (by_way + view_direction) @ self.turn
        pose = np.concatenate([d_origin.sum(0), np.cross(local, d_local).sum(0)])
        by_plane, by_number = self.camera.lens.inverse_slopes(local)
        d_plane = np.einsum("rip,ri->rp", by_plane, d_local)
        focal = -(self.camera.lens.plane(local) * d_plane).sum(0) / self.camera.focal
        principal_point = -d_plane.sum(0) / self.camera.focal
        lens = None if self.camera.lens.plain else np.einsum("rin,ri->n", by_number, d_local)
        moved = np.zeros((4, 4))
        moved[:3, :3] = origin.T @ seen.origin + index_direction.T @ seen.direction
        moved[:3, 3] = origin.sum(0)
        if frame is not None:
            moved[:3, :3] += frame
        box = -(self.index_from_world.T @ moved @ self.index_from_world.T)[:3]
        step = np.asarray(dt.sum() * self.voxel)
        return Parameters(
            pose=pose,
            focal=focal,
            principal_point=principal_point,
            lens=lens,
            step=step,
            box=box,
        )

    def _in_ndc(self, rays: Rays) -> tuple[Rays, np.ndarray | None]:
        """Rays where `world_from_index` leads to, and in NDC their Jacobian (ray, 6, 6) by those of the world."""
        if self.ndc_from_world is None:
            return rays, None
        return rays_in_ndc(self.ndc_from_world, rays), ray_slopes(self.ndc_from_world, rays)

    def _by_lens(self, local: np.ndarray, dot: Parameters) -> np.ndarray:
        """dot_ of unit directions (ray, 3) in camera axes, by focal, principal point and the lens's numbers."""
        if dot.focal is None and dot.principal_point is None and dot.lens is None:
            return np.zeros_like(local)
        lens, focal = self.camera.lens, np.asarray(self.camera.focal)
        by_plane, by_number = lens.inverse_slopes(local)
        dot_plane = np.zeros((len(local), 2))
        if dot.focal is not None:
            dot_plane -= lens.plane(local) / focal * dot.focal
        if dot.principal_point is not None:
            dot_plane -= dot.principal_point / focal
        dot_local = np.einsum("rip,rp->ri", by_plane, dot_plane)
        return dot_local if dot.lens is None else dot_local + by_number @ dot.lens
