"""Check of a compositing mode of the user's own: its parts are there, and its derivatives are those of its rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.errors import RaymarchError, one_line
from raymarch.kernels.march.mode import AnyMode, Mode, RayMode
from raymarch.kernels.march.modes import MODES
from raymarch.kernels.march.probe import probe_adjoint, probe_composite, probe_tangent

T, TAU = (each.ravel() for each in np.meshgrid([0.93, 0.61, 0.27, 0.08], [0.011, 0.13, 0.46, 1.37], indexing="ij"))
H = 4e-3  # of T and tau: differences are good to its square
GOOD = 1e-2  # of the derivative, or of 1


def require_mode(mode: AnyMode) -> None:
    """Mode check: RaymarchError, with mode and part, where one lacks or a derivative is wrong; ours are right."""
    if not isinstance(mode, RayMode) and not any(mode is ours for ours in MODES.values()):
        _require(mode, runtime.single_precision())


@cache
def _require(mode: Mode, single: bool) -> None:
    weight, after = _composite(mode, T, TAU)
    by_T, by_tau = (_Slope(mode, *move) for move in ((H, 0.0), (0.0, H)))
    tangent = _numbers(mode, "tangent", probe_tangent, 4, T, TAU)
    for column, (slope, of, by) in enumerate([(by_T, 0, "T"), (by_T, 1, "T"), (by_tau, 0, "tau"), (by_tau, 1, "tau")]):
        what = f"of {('weight', 'T_after')[of]} by {by}"
        _compare(mode, "tangent", what, tangent[:, column], slope.mean[:, of], slope.smooth[:, of])
    adjoint = _numbers(mode, "adjoint", probe_adjoint, 2, T, TAU)
    by_remaining = by_tau.mean[:, 1] if mode.power is None else by_tau.mean[:, 1] / after
    _compare(mode, "adjoint", "by weight", adjoint[:, 0], by_tau.mean[:, 0], by_tau.smooth[:, 0])
    _compare(mode, "adjoint", "by remaining", adjoint[:, 1], by_remaining, by_tau.smooth[:, 1])
    if mode.power is not None:
        half, half_after = _composite(mode, T / 2, TAU)
        same = np.ones(len(T), bool)
        _compare(mode, "power", "weight at T / 2", weight / 2**mode.power, half, same)
        _compare(mode, "power", "T_after at T / 2", after / 2, half_after, same)


class _Slope:
    """Central differences of weight and T after along one axis, and where both sides agree: elsewhere is a kink."""

    def __init__(self, mode: Mode, dT: float, dtau: float):
        h = dT + dtau
        ahead, here, back = (np.stack(_composite(mode, T + s * dT, TAU + s * dtau), 1) for s in (1, 0, -1))
        right, left = (ahead - here) / h, (here - back) / h
        self.mean = (right + left) / 2
        self.smooth = np.abs(right - left) <= 0.1 * np.maximum(np.abs(self.mean), 1)


def _composite(mode: Mode, at_T: np.ndarray, at_tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weight, after = _numbers(mode, "composite", probe_composite, 2, at_T, at_tau).T
    return weight, after


def _numbers(
    mode: Mode, part: str, kernel: Callable[..., None], columns: int, at_T: np.ndarray, at_tau: np.ndarray
) -> np.ndarray:
    out = np.empty((len(at_T), columns), runtime.dtype())
    try:
        kernel(mode, at_T.astype(out.dtype), at_tau.astype(out.dtype), out)
    except (ti.TaichiCompilationError, ti.TaichiTypeError, ti.TaichiSyntaxError, TypeError, ValueError) as error:
        last = one_line(error).split("^")[-1].strip(" ~")
        raise _wrong(mode, part, f"does not compile: {last[-200:]}") from error
    bad = np.argwhere(~np.isfinite(out))
    if len(bad):
        i, j = bad[0]
        raise _wrong(mode, part, f"gives {out[i, j]} at T {at_T[i]:g}, tau {at_tau[i]:g}, want finite numbers")
    return out.astype(float)


def _compare(mode: Mode, part: str, what: str, given: np.ndarray, wanted: np.ndarray, smooth: np.ndarray) -> None:
    gap = np.abs(given - wanted) / np.maximum(np.abs(wanted), 1) * smooth
    if gap.max() > GOOD:
        i = int(gap.argmax())
        at = f"at T {T[i]:g}, tau {TAU[i]:g}"
        raise _wrong(mode, part, f"gives {given[i]:.4g} {what} {at}, differences of composite give {wanted[i]:.4g}")


def _wrong(mode: Mode, part: str, why: str) -> RaymarchError:
    return RaymarchError(f"mode {mode.name!r}: {part} {why}; rm.Mode says what each part is")
