"""Moves of a camera's focal length, principal point and lens, no farther than the lens can be inverted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.gradients.parameters import PLAIN_HAS_NONE

HALVINGS = 6
SHORTEST = 0.1  # of its own length, what a focal length is cut to at most in one move


def intrinsics_moved(
    camera: Camera,
    focal: np.ndarray | None = None,
    principal_point: np.ndarray | None = None,
    lens: np.ndarray | None = None,
) -> Camera:
    """Camera with these added to its focal length and principal point [pixel] and the lens's numbers; None is zero.

    A move by which the lens would fold over within the image is halved, and left at last.

    Example:
        >>> camera = Camera.look_at((0, -4, 0), width=8, height=6)
        >>> intrinsics_moved(camera, principal_point=np.ones(2)).principal
        (5.0, 4.0)
    """
    shortest = SHORTEST * np.array(camera.focal)
    for share in 0.5 ** np.arange(HALVINGS):
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


def common_lens(cameras: Sequence[Camera]) -> Lens:
    """Lens model that all cameras have, whose numbers one change moves; RaymarchError where they have several, or none.

    Example:
        >>> common_lens([replace(Camera.look_at((0, -4, 0)), lens=Lens("simple_radial", (0.1,)))] * 2).names
        ('k1',)
    """
    models = sorted({camera.lens.model for camera in cameras})
    if len(models) > 1:
        raise RaymarchError(f"cameras have lenses of models {', '.join(models)}, want one to move lens; leave lens out")
    if cameras[0].lens.plain:
        raise RaymarchError(PLAIN_HAS_NONE)
    return cameras[0].lens
