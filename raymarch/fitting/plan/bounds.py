"""Bounds of the object: the box of a fit and its visual hull, from cameras and alpha masks."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import taichi as ti

from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.errors import RaymarchError
from raymarch.fitting.scene_box import BOXES_OF_A_SCENE, is_bounded
from raymarch.geometry.boxes import camera_in_box
from raymarch.kernels.fit import hull
from raymarch.kernels.rays.tile_list import list_tiles
from raymarch.views.agreement import beside, convention, dissenters, why_nothing
from raymarch.views.focus import GIVE_BOX, focus, looking_away, names_where, require_near
from raymarch.views.views import Views
from raymarch.volumes.transfer_function import TransferFunction

log = logging.getLogger(__name__)

SEARCH_CELLS = 64
FEW_VIEWS = 8
AWAY = 0.25  # of the cameras that may look away from the rest and be named; more are a way of taking pictures
GROWTHS = 3  # of the cube in which the hull is sought
USUAL, FEWER = 0.5, (0.25, 0.1)  # of the views that see the best seen cell: more than so many see one that counts
CHANCES = 5  # views, more of which have to see it where fewer do
BESIDE, MISSED = 0.1, 0.05  # of what a view shows, beside a box; of the views, that show so much there: it is too small


def find_box(views: Views, store: ImageStore) -> np.ndarray:
    """Bounding box in the world of what the views show: lower and upper corner (2, 3).

    With alpha, the bounds of the visual hull; without, the cube that the cameras' fields of view span about the
    point nearest to all their axes. Raises RaymarchError, with the views and the cause as far as these can be told,
    where the axes meet nowhere, a camera is far from all others, or no place shows something in all images. What
    speaks against the cameras without ruling them out is said in the log.
    """
    require_near(views)
    centre, half = _focus_of(views)
    if not views.shows_silhouettes:
        _doubt_directions(views, centre, half)
        again = f" --set boxes={BOXES_OF_A_SCENE}" if is_bounded(views) else ""  # else the preset takes one box too
        log.warning(
            "the images have no alpha that masks anything, so the box is all that the cameras see; a tighter box fits"
            " better, and --preset photos%s a scene without end",
            again,
        )
        return np.stack([centre - half, centre + half])
    if len(views) < FEW_VIEWS:
        log.warning("%d views carve the box badly; a tighter box fits better", len(views))
    try:
        box = _box_of_silhouettes(views, store, centre, half)
    except RaymarchError as error:
        raise RaymarchError(f"{error}: {why_nothing(views, centre, half)}") from None
    _doubt_directions(views, centre, half)
    if (dissent := dissenters(views, box)).any():
        log.warning(
            "view %s shows something where the others show nothing, or nothing where they agree; is its pose right?",
            names_where(views, dissent),
        )
    return box


def _box_of_silhouettes(views: Views, store: ImageStore, centre: np.ndarray, half: float) -> np.ndarray:
    """Bounds of the hull about a point, of cells that half as many views see as the best seen one; where that leaves
    out what many views show, as among close-ups of a part, of cells that fewer see, if these hold it and no camera."""
    first = _box_of_hull(store, centre, half, USUAL)
    missed = beside(views, first) > BESIDE
    if missed.mean() <= MISSED:
        return first
    within = camera_in_box(views.cameras, first)
    for share in FEWER:
        with suppress(RaymarchError):
            box = _box_of_hull(store, centre, half, share, CHANCES, bounded=True)
            if (beside(views, box) > BESIDE).mean() <= MISSED and (within or not camera_in_box(views.cameras, box)):
                return box
    log.warning(
        "the box leaves out some of what %d of %d views show that were asked; if that belongs to it, %s",
        *(missed.sum(), len(missed), GIVE_BOX),
    )
    return first


def _box_of_hull(
    store: ImageStore, centre: np.ndarray, half: float, share: float, least: int = 0, bounded: bool = False
) -> np.ndarray:
    """Bounds of the hull about a point, of cells as of `_bounds_of_hull`; RaymarchError where it is to be `bounded` but
    no cube holds it."""
    box = np.stack([centre - half, centre + half])
    tight = _bounds_of_hull(store, box, share, least)
    for _ in range(GROWTHS):  # grow the cube until the hull stays clear of its faces
        if _is_clear(tight, box):
            break
        half *= 1.6
        box = np.stack([centre - half, centre + half])
        tight = _bounds_of_hull(store, box, share, least)
    if bounded and not _is_clear(tight, box):
        raise RaymarchError("the images bound nothing")
    return _bounds_of_hull(store, tight, share, least)


def _is_clear(tight: np.ndarray, box: np.ndarray) -> bool:
    """Whether bounds stay clear of a box's faces."""
    return bool((tight[0] > box[0]).all() and (tight[1] < box[1]).all())


def _focus_of(views: Views) -> tuple[np.ndarray, float]:
    """`focus` of the cameras; where there is none, the error also says in what convention there would be one."""
    try:
        centre, half = focus(views.cameras)
    except RaymarchError as error:
        words = convention(views)
        raise RaymarchError(f"{error}; maybe the poses {words}" if words else str(error)) from None
    return centre, half


def _doubt_directions(views: Views, centre: np.ndarray, half: float) -> None:
    """Say which cameras look away from the rest; RaymarchError where all do and no ray can meet the cube."""
    away = looking_away(views.cameras, centre)
    if 0 < away.sum() <= AWAY * len(views):
        log.warning("%d of %d cameras look away from the rest (%s)", away.sum(), len(views), names_where(views, away))
    words = convention(views) if away.sum() > AWAY * len(views) else ""
    if not words:
        return
    some = "all cameras" if away.all() else f"{away.sum()} of {len(views)} cameras"
    said = f"{some} look away from the point where the axes meet; maybe the poses {words}"
    nearest = min(float(np.linalg.norm(c.position - centre)) for c in views.cameras)
    if away.all() and nearest > np.sqrt(3) * half:
        raise RaymarchError(f"{said}; if the cameras do look outwards, the box cannot be found, {GIVE_BOX}")
    log.warning("%s; all is well if they do look outwards", said)


def visual_hull(store: ImageStore, box: np.ndarray, cells: Sequence[int]) -> np.ndarray:
    """(x, y, z) int32 for `cells` cells of the box: how many views see it wholly, or -1 where one
    shows that it is empty, or none looks."""
    lower, upper = np.asarray(box, float)
    seen = np.zeros(tuple(cells), np.int32)
    size = (upper - lower) / np.array(seen.shape)
    hull.visual_hull(store.fields, store.views, ti.Vector(lower.tolist()), ti.Vector(size.tolist()), seen)
    return seen


def _bounds_of_hull(store: ImageStore, box: np.ndarray, share: float, least: int) -> np.ndarray:
    """Bounds of the hull within the box, one cell wider where there is room.

    A cell that few views see, such as one right before a camera, has had little chance to be found empty: it counts
    only if more than this share of those that see the best seen one see it, and more than `least`.
    """
    seen = visual_hull(store, box, (SEARCH_CELLS,) * 3)
    allowed = (seen >= 0) & (seen > max(share * seen.max(), least))
    if not allowed.any():
        raise RaymarchError("the images are transparent wherever the views agree")
    index = np.argwhere(allowed)
    size = (box[1] - box[0]) / SEARCH_CELLS
    first, last = np.maximum(index.min(0) - 1, 0), np.minimum(index.max(0) + 2, SEARCH_CELLS)
    return np.stack([box[0] + first * size, box[0] + last * size])


def narrow(
    grid: Grid, store: ImageStore, least: float | None, step: float, table: TransferFunction | None = None
) -> float:
    """Occupancy update: cells with sigma over `least` [1/world unit], tiles whose rays meet one; the fraction marked.

    With None the cells are those that are marked already. With a table sigma is what it says.

    Raises RaymarchError where no cell or no tile is left.
    """
    if least is None:
        occupied = grid.measure_occupancy()
    elif table is not None:
        occupied = grid.refresh_through(table, -math.expm1(-least * table.unit_length), margin=1)
    else:
        occupied = grid.refresh_occupancy(least, margin=1)
    if occupied == 0:
        raise RaymarchError(
            "every cell of the volume became empty; check poses, box and background, or take more steps"
        )
    if grid.boxes > 1:  # whose rays all meet something
        return occupied
    store.listed = list_tiles(store.fields, grid.fields, step, store.tiles)
    if store.listed == 0:
        raise RaymarchError("no ray of any view meets the box; check the box and the poses")
    return occupied
