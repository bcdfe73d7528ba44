"""Viewpoint of an image, and its projection to first order: from pose, lens, step and box to rays in index space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from raymarch.geometry.camera import Camera, border_points
from raymarch.geometry.lens import PLANE_SIGNS, unproject
from raymarch.geometry.ndc import ray_slopes, rays_in_ndc
from raymarch.geometry.pose import exp_rigid
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
    if camera.lens.parallel:
        (u, v), size = camera.project(points)[0].T, (camera.width, camera.height)
        return any(bool(side.all()) for side in (z >= 0, u <= 0, u >= size[0], v <= 0, v >= size[1]))
    edge = unproject(border_points(camera.width, camera.height), camera.focal, camera.principal, camera.lens)
    if not (edge[:, 2] < 0).all():
        return False  # of so wide a lens no planes go through the edges
    tangents = edge[:, :2] / -edge[:, 2:]
    (left, low), (right, high) = tangents.min(0), tangents.max(0)
    beyond = (z >= 0, x <= -left * z, x >= -right * z, y <= -low * z, y >= -high * z)  # behind the camera too
    return any(bool(side.all()) for side in beyond)


def start_at_near(near: float, rays: Rays, moves: list[list[np.ndarray]]) -> tuple[Rays, list[list[np.ndarray]]]:
    """Rays from a near plane on, `near` world units along each, and their tangents by `Projection.tangent` so too.

    Example:
        >>> moves = [[np.zeros((1, 3)), np.ones((1, 3))]]
        >>> rays, moves = start_at_near(2.0, Rays(np.zeros((1, 3)), np.eye(3)[:1]), moves)
        >>> rays.origin.tolist(), moves[0][0].tolist()
        ([[2.0, 0.0, 0.0]], [[2.0, 2.0, 2.0]])
    """
    begun = [[origin + near * way, way, *rest] for origin, way, *rest in moves]
    return Rays(rays.origin + near * rays.direction, rays.direction), begun


class Projection:
    """Tangent and adjoint of (pose, focal, principal point, lens, step, box) -> (index-space rays, headings, step).

    A ray's pixel (u, v) is the plane point ((u - cu) / fu, (v - cv) / fv), which the lens takes to a unit vector
    `local` in camera axes, turned into the world; index space is the inverse of `world_from_index`. A pose moves by exp
    of its six numbers in camera axes (Sola et al. 2018, "A micro Lie theory", right-plus). Parallel rays have one
    `local`, and the plane point [world unit] is where they begin.
    """

    def __init__(
        self, camera: Camera, world_from_index: np.ndarray, voxel: float, ndc_from_world: np.ndarray | None = None
    ):
        self.camera, self.voxel, self.ndc_from_world = camera, voxel, ndc_from_world
        self.turn = camera.world_from_camera[:3, :3]
        self.world_from_index = np.asarray(world_from_index, float)
        self.index_from_world = np.linalg.inv(self.world_from_index)

    def place_tangent(self, rays: Rays, dot: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tangent: dot_ of origin and way where `world_from_index` leads to, and of the view direction (ray, 3)."""
        local, start = rays.direction @ self.turn, self._starts(rays)
        dot_local, dot_start = self._by_lens(local, start, dot)
        if dot.pose is not None:
            dot_start = dot_start + dot.pose[:3] + np.cross(dot.pose[3:], start)
            dot_local = dot_local + np.cross(dot.pose[3:], local)
        dot_origin = dot_start @ self.turn.T
        view_direction = dot_local @ self.turn.T
        _, by_world = self._in_ndc(rays)
        if by_world is None:
            return dot_origin, view_direction, view_direction
        moved = np.einsum("rij,rj->ri", by_world, np.concatenate([dot_origin, view_direction], axis=1))
        return moved[:, :3], moved[:, 3:], view_direction

    def tangent(self, rays: Rays, dot: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Tangent: dot_ of index-space origin and direction, of the view direction (ray, 3), and of dt."""
        dot_origin, way, view_direction = self.place_tangent(rays, dot)
        linear, (seen, _) = self.index_from_world[:3, :3], self._in_ndc(rays)
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
        cut: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Parameters:
        """Adjoint: Parameters' d_ from d_ of index-space origin, direction, view direction (ray, 3), dt (ray,).

        `frame` (3, 3) is what the turn and stretch into index space bring beside their rays, where normals are seen;
        `cut` are those of origin and way as `place_tangent` has them, of a clipped march: no box moves what clips.
        """
        local, start = rays.direction @ self.turn, self._starts(rays)
        linear, (seen, by_world) = self.index_from_world[:3, :3], self._in_ndc(rays)
        by_origin, by_way = origin @ linear, index_direction @ linear
        if cut is not None:
            by_origin, by_way = by_origin + cut[0], by_way + cut[1]
        if by_world is not None:
            moved = np.einsum("rij,ri->rj", by_world, np.concatenate([by_origin, by_way], axis=1))
            by_origin, by_way = moved[:, :3], moved[:, 3:]
        d_origin = by_origin @ self.turn
        d_local = (by_way + view_direction) @ self.turn
        turned = (np.cross(local, d_local) + np.cross(start, d_origin)).sum(0)
        pose = np.concatenate([d_origin.sum(0), turned])
        lens = None
        if self.camera.lens.parallel:
            plane, d_plane = PLANE_SIGNS * start[:, :2], PLANE_SIGNS * d_origin[:, :2]
        else:
            by_plane, by_number = self.camera.lens.inverse_slopes(local)
            plane, d_plane = self.camera.lens.plane(local), np.einsum("rip,ri->rp", by_plane, d_local)
            lens = np.einsum("rin,ri->n", by_number, d_local) if self.camera.lens.names else None
        focal, principal_point = -(plane * d_plane).sum(0) / self.camera.focal, -d_plane.sum(0) / self.camera.focal
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

    def _starts(self, rays: Rays) -> np.ndarray:
        """Origins (ray, 3) in camera axes: 0, but for parallel rays."""
        if not self.camera.lens.parallel:
            return np.zeros_like(rays.origin)
        return (rays.origin - self.camera.position) @ self.turn

    def _by_lens(self, local: np.ndarray, start: np.ndarray, dot: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """dot_ of unit directions and origins (ray, 3) in camera axes, by focal, principal point, the lens's numbers.

        The plane point of a pixel moves by either; the lens takes it to a direction, parallel rays to an origin.
        """
        none = np.zeros_like(local)
        if dot.focal is None and dot.principal_point is None and dot.lens is None:
            return none, none
        lens, focal = self.camera.lens, np.asarray(self.camera.focal)
        plane = PLANE_SIGNS * start[:, :2] if lens.parallel else lens.plane(local)
        dot_plane = np.zeros((len(local), 2))
        if dot.focal is not None:
            dot_plane -= plane / focal * dot.focal
        if dot.principal_point is not None:
            dot_plane -= dot.principal_point / focal
        if lens.parallel:
            return none, np.concatenate([PLANE_SIGNS * dot_plane, none[:, :1]], axis=1)
        by_plane, by_number = lens.inverse_slopes(local)
        dot_local = np.einsum("rip,rp->ri", by_plane, dot_plane)
        return (dot_local if dot.lens is None else dot_local + by_number @ dot.lens), none


@dataclass(frozen=True, eq=False)
class Viewpoint:
    """Viewpoint, a camera before a placed volume: a pose moves by exp of its six numbers, all else by adding.

    Attributes:
        camera: which sees the volume.
        background: colour (3,) behind the volume, or a number a channel.
        exposure: (6,) three gains, then three offsets, or as many as channels.
        step: length of a step [voxel]. voxel: a voxel's [world unit], whatever the box does.
        world_from_index: (4, 4) affine of the volume.
        pixels: indices of the pixels looked at, all if None.
        ndc_from_world: (4, 4) of a volume in NDC, or None.
        iso: value of the surface that is seen, None of a mode without.
    """

    camera: Camera
    background: np.ndarray
    exposure: np.ndarray
    step: float
    voxel: float
    world_from_index: np.ndarray
    pixels: np.ndarray | None = None
    ndc_from_world: np.ndarray | None = None
    iso: float | None = None

    def moved(self, by: Parameters, h: float = 1.0) -> Viewpoint:
        """Viewpoint moved by h times `by`; a step keeps its length in the world when a box moves."""
        camera, place = self.camera, self.world_from_index
        if by.pose is not None:
            camera = replace(camera, world_from_camera=camera.world_from_camera @ exp_rigid(h * by.pose))
        if by.focal is not None:
            camera = replace(camera, focal=tuple(camera.focal + h * by.focal))
        if by.principal_point is not None:
            camera = replace(camera, principal=tuple(camera.principal + h * by.principal_point))
        if by.lens is not None:
            coefficients = tuple(camera.lens.coefficients + h * by.lens)
            camera = replace(camera, lens=replace(camera.lens, coefficients=coefficients))
        if by.box is not None:
            place = place.copy()
            place[:3] += h * by.box
        background = self.background if by.background is None else self.background + h * by.background
        exposure = self.exposure if by.exposure is None else self.exposure + h * by.exposure
        step = self.step if by.step is None else self.step + h * float(by.step)
        iso = self.iso if by.iso is None or self.iso is None else self.iso + h * float(by.iso)
        moved = replace(self, camera=camera, background=background, exposure=exposure, step=step, iso=iso)
        return replace(moved, world_from_index=place)

    @property
    def dt(self) -> float:
        """Length of a step [world unit]."""
        return self.step * self.voxel

    @cached_property
    def projection(self) -> Projection:
        """Projection of camera and box to rays in index space, to first order."""
        return Projection(self.camera, self.world_from_index, self.voxel, self.ndc_from_world)

    @cached_property
    def rays(self) -> Rays:
        """Rays of the pixels, in the world."""
        return self.camera.rays(self.pixels)

    @property
    def pixel_numbers(self) -> np.ndarray:
        """Indices of the pixels looked at, row by row."""
        return np.arange(len(self.rays)) if self.pixels is None else np.asarray(self.pixels)

    def exposed(self, image: np.ndarray) -> np.ndarray:
        """Colour after exposure, and transmittance (ray, 4), of colour before it."""
        out = image.copy()
        gain, offset = np.split(self.exposure, 2)
        out[:, :-1] = out[:, :-1] * gain + offset
        return out
