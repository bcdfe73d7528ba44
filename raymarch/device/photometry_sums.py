"""Photometric sums on the device: what exposures and the background are told from, added up over the steps of a fit."""

from __future__ import annotations

import numpy as np

from raymarch.device.pool import Owner
from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.kernels.fit.photometry import BACKGROUND_NUMBERS, NUMBERS, NUMBERS_A_VIEW
from raymarch.views.exposure import MOMENTS


@record(eq=False)
class PhotometryFields:
    """Device fields of `PhotometricSums`; the last two are one step's, tile by tile."""

    moments: ti.Field
    behind: ti.Field
    of_tile: ti.Field
    view_of_tile: ti.Field


class PhotometricSums(Owner[PhotometryFields]):
    """Photometric sums of so many views over steps of so many tiles, freed by `close`; all 0 to begin with."""

    name = "these photometric sums"

    def __init__(self, views: int, tiles: int):
        self._views = views
        self._own((), self._build, self._bytes, room=(views, tiles))
        self.fields.moments.fill(0)
        self.fields.behind.fill(0)

    @staticmethod
    def _bytes(room: tuple[int, ...]) -> int:
        return 8 * (room[0] * NUMBERS_A_VIEW + room[1] * (NUMBERS + 1))

    @staticmethod
    def _build(room: tuple[int, ...]) -> tuple[list[ti.FieldsBuilder], PhotometryFields]:
        tree, views = ti.FieldsBuilder(), ti.FieldsBuilder()
        f = PhotometryFields(ti.field(ti.f64), ti.field(ti.f64), ti.field(ti.f64), ti.field(ti.i32))
        tree.dense(ti.ij, (room[0], NUMBERS_A_VIEW)).place(f.moments)
        tree.dense(ti.i, BACKGROUND_NUMBERS).place(f.behind)
        tree.dense(ti.ij, (room[1], NUMBERS)).place(f.of_tile)
        views.dense(ti.i, room[1]).place(f.view_of_tile)
        return [tree, views], f

    def take(self, keep: float) -> tuple[np.ndarray, np.ndarray]:
        """Moments (view, 5, channel), of which the share `keep` goes on counting, and (2, channel) of the background,
        which begin anew."""
        moments, behind = self.fields.moments.to_numpy(), self.fields.behind.to_numpy()
        self.fields.moments.from_numpy(keep * moments)
        self.fields.behind.fill(0)
        return moments[: self._views].reshape(-1, MOMENTS, 3), behind.reshape(2, 3)

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Moments (view, 15) and sums of the background (6,), as they stand."""
        return self.fields.moments.to_numpy()[: self._views], self.fields.behind.to_numpy()

    def put(self, moments: np.ndarray, behind: np.ndarray) -> None:
        """Set what `numbers` gave."""
        room = np.zeros(self.fields.moments.shape)
        room[: self._views] = moments
        self.fields.moments.from_numpy(room)
        self.fields.behind.from_numpy(behind)
