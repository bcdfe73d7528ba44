"""Moves of a camera's focal length, principal point and lens, no farther than the lens can be inverted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from raymarch.arguments.checks import array
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.gradients.parameters import NO_LENS_CURE
from raymarch.views.views import Views

SHARED_PARAMETERS = ("focal", "principal_point", "lens")  # by one change of all cameras
MAX_HALVINGS = 6
MAX_CHANGE = 10.0  # of any number of a recorded change
MIN_FOCAL_FACTOR = 0.1  # of its own length, what a focal length is cut to at most in one move


def move_intrinsics(
    camera: Camera,
    focal: np.ndarray | None = None,
    principal_point: np.ndarray | None = None,
    lens: np.ndarray | None = None,
) -> Camera:
    """Camera with these added to its focal length and principal point [pixel] and the lens's numbers; None is zero.

    A move by which the lens would fold over within the image is halved, and left at last.

    Example:
        >>> camera = Camera.look_at((0, -4, 0), width=8, height=6)
        >>> move_intrinsics(camera, principal_point=np.ones(2)).principal
        (5.0, 4.0)
    """
    shortest = MIN_FOCAL_FACTOR * np.array(camera.focal)
    for share in 0.5 ** np.arange(MAX_HALVINGS):
        fu, fv = np.maximum(_plus(camera.focal, share, focal), shortest).tolist()
        cu, cv = _plus(camera.principal, share, principal_point)
        try:
            moved = Lens(camera.lens.model, tuple(_plus(camera.lens.coefficients, share, lens)))
            return replace(camera, focal=(fu, fv), principal=(cu, cv), lens=moved)
        except RaymarchError:
            continue
    return camera


def _plus(values: tuple[float, ...], share: float, move: np.ndarray | None) -> list[float]:
    return list(values) if move is None else (np.array(values) + share * move).tolist()


def move_shared(camera: Camera, names: Sequence[str], move: np.ndarray) -> Camera:
    """Camera moved by what all of a set share: `move` holds the numbers of each of `names` in turn, of the focal length
    and the principal point as parts of the focal length.

    Example:
        >>> camera = Camera.look_at((0, -4, 0), width=8, height=6)
        >>> move_shared(camera, ["focal"], np.zeros(2)).focal == camera.focal
        True
    """
    sizes = [len(camera.lens.names) if name == "lens" else 2 for name in names]
    parts = dict(zip(names, np.split(move, np.cumsum(sizes)[:-1]), strict=True)) if names else {}
    if "focal" in parts:
        parts["focal"] = np.array(camera.focal) * np.expm1(parts["focal"])
    if "principal_point" in parts:
        parts["principal_point"] = np.array(camera.focal) * parts["principal_point"]
    return move_intrinsics(camera, **parts) if parts else camera


def change_of_shared(before: Camera, after: Camera, names: Sequence[str]) -> dict[str, list[float]]:
    """By how much a camera's own numbers were moved, for each of `names` what `move_shared` would be given.

    Example:
        >>> camera = Camera.look_at((0, -4, 0), width=8, height=6)
        >>> change_of_shared(camera, replace(camera, principal=(4.0, 3.0)), ["principal_point"])
        {'principal_point': [0.0, 0.0]}
    """
    focal = np.array(before.focal)
    changes = {
        "focal": np.log(np.array(after.focal) / focal),
        "principal_point": (np.array(after.principal) - before.principal) / focal,
        "lens": np.array(after.lens.coefficients) - before.lens.coefficients,
    }
    return {name: changes[name].tolist() for name in SHARED_PARAMETERS if name in names}


def move_shared_of_views(views: Views, changes: object) -> Views:
    """Views whose cameras are moved by what `change_of_shared` gave for others of the set.

    Those of another lens, and all where `changes` is nothing of the kind, stay.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
        >>> move_shared_of_views(views, {"focal": [0.0, 0.0]}).cameras[0].focal == views.cameras[0].focal
        True
    """
    told = changes if isinstance(changes, Mapping) else {}
    known = {name: told[name] for name in SHARED_PARAMETERS if name in told}
    if not known:
        return views
    sizes = {"focal": 2, "principal_point": 2}

    def moved(camera: Camera) -> Camera:
        try:
            parts = [
                array(sizes.get(name, len(camera.lens.names)), low=-MAX_CHANGE, high=MAX_CHANGE)(name, value)
                for name, value in known.items()
            ]
        except RaymarchError:
            return camera
        return move_shared(camera, list(known), np.concatenate(parts))

    return replace(views, cameras=tuple(moved(camera) for camera in views.cameras))


def require_common_lens(cameras: Sequence[Camera]) -> None:
    """Lens check: RaymarchError where cameras have several models, so that no one change moves all, or pinholes."""
    models = sorted({camera.lens.model for camera in cameras})
    if len(models) > 1:
        raise RaymarchError(f"cameras have lenses of models {', '.join(models)}, want one to move lens; leave lens out")
    if not cameras[0].lens.names:
        raise RaymarchError(NO_LENS_CURE)
