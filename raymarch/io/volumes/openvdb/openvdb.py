"""OpenVDB, sparse volumes of film and games: .vdb, as Blender and Houdini read it. `layout.py` has what is in a file.

A scalar volume is the grid "density"; a fitted volume its extinction, and its colours as the grid "Cd". The box of a
file of others is that of its active voxels. Read and written by NumPy alone; values packed by Blosc take imagecodecs.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import corners_of
from raymarch.io.files.atomic import system_refusals
from raymarch.io.files.strict import require_file_budget
from raymarch.io.volumes.format import require_one_grid, require_one_place
from raymarch.io.volumes.openvdb.fit import READ_ACTIVATION, features_of, grids_of_fit
from raymarch.io.volumes.openvdb.grids import Choice, Grid, choose_grid, is_openvdb, read_grids
from raymarch.io.volumes.openvdb.layout import LEAF_SIDE, LEAF_VOXELS, LOWER_SIDE, leaf_numbers
from raymarch.io.volumes.openvdb.tree import NO_BOX, Tree
from raymarch.io.volumes.openvdb.writer import Leaves, NewGrid, write_grids
from raymarch.io.volumes.scalar_format import explain_damage, name_path, narrow_values, plain_values, scalar_format
from raymarch.io.volumes.source import RESTORE_CURE, Slices, Source, fill_missing, log, require_shape, volume_of
from raymarch.io.volumes.summary import ScalarSummary, VolumeSummary, bytes_of
from raymarch.views.views import require_colour
from raymarch.volumes.bricks import BRICK_SHAPE, Bricks, overhanging_samples, table_shape
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import EVERYTHING, Selection
from raymarch.volumes.volume import AnyVolume, Volume

NAME = "OpenVDB"
NOTES = "raymarch_"  # before the names of what raymarch notes in a grid's metadata
TEXTS = ("unit", "length_unit", "world", "name")  # fields of a scalar volume that are noted
WHOLE_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ONE, COLOUR = slice(0, 1), slice(0, 3)
SAMPLE_BYTES = 4 * (1 + 3)  # of a volume with colours


def source(path: Path, selection: Selection) -> Source:
    """Source of the grid that a selection means; RaymarchError for other kinds of grids, and for a grid of nothing."""
    choice = _choose(path, selection)
    grid = choice.grid
    with path.open("rb") as file:
        tree = grid.tree(file)
    low, shape = _extent(grid, tree)
    whole = grid.metadata.get(f"{NOTES}dtype")
    whole = whole if whole in WHOLE_TYPES and tree.dtype.kind == "f" else None
    part = slice(choice.component, choice.component + 1)

    def read(slices: Slices) -> np.ndarray:
        kept = math.prod(len(range(*one.indices(n))) for one, n in zip(slices, shape, strict=True))
        require_file_budget(kept * tree.dtype.itemsize, f"{path}: its values, of which crop or stride read a part,")
        with path.open("rb") as file:
            values = grid.values(file, tree, low, slices, part)[..., 0]
        return values if whole is None else _whole(values, np.dtype(whole))

    noted: dict[str, Any] = {one: str(grid.metadata.get(NOTES + one, "")) for one in TEXTS}
    if f"{NOTES}name" not in grid.metadata:
        noted["name"] = grid.name
    return Source(
        shape,
        tree.dtype if whole is None else np.dtype(whole),
        _affine(grid, low),
        read,
        at_once=False,
        background=_background(grid.metadata),
        remarks=choice.remarks,
        **noted,
    )


def _choose(path: Path, selection: Selection) -> Choice:
    require_one_place(Selection(time=selection.time, level=selection.level), path)
    with path.open("rb") as file:
        return choose_grid(read_grids(file, path.stat().st_size), selection.channel)


def _extent(grid: Grid, tree: Tree, step: int = 1) -> tuple[np.ndarray, tuple[int, int, int]]:
    """First voxel (3,), a multiple of `step`, and count (x, y, z) of a grid's samples: as raymarch noted, else those
    of the box of what is active."""
    noted = grid.metadata.get(f"{NOTES}shape")
    if isinstance(noted, list) and len(noted) == 3 and min(noted) >= 2:
        if grid.metadata.get(f"{NOTES}shape_check") != [_checksum(noted)]:
            raise RaymarchError(f"grid {grid.name[:40]!r} has a shape noted that was altered; {RESTORE_CURE}")
        is_whole = (tree.box == NO_BOX).all() or ((tree.box[0] >= 0).all() and (tree.box[1] < noted).all())
        if is_whole:
            return np.zeros(3, np.int64), (noted[0], noted[1], noted[2])
    if (tree.box == NO_BOX).all():
        raise RaymarchError(f"grid {grid.name[:40]!r} has no active voxel, want some; see to what was exported")
    low = tree.box[0] // step * step
    x, y, z = (tree.box[1] - low + 1).tolist()
    return low, (x, y, z)


def _checksum(shape: Sequence[int]) -> int:
    """Checksum of a shape, without which one wrong bit would be gigabytes."""
    return zlib.crc32(np.array(shape, "<i4").tobytes())


def _affine(grid: Grid, low: np.ndarray) -> np.ndarray:
    """Affine (4, 4) from a sample's index, counted from voxel `low`, to the world."""
    moved = np.eye(4)
    moved[:3, 3] = low
    return grid.affine @ moved


def _background(metadata: Mapping[str, Any]) -> tuple[float, float, float]:
    """Colour behind a volume, white unless it is noted."""
    noted = metadata.get(f"{NOTES}background")
    return require_colour(noted) if isinstance(noted, list) and len(noted) == 3 else (1.0, 1.0, 1.0)


def _whole(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values of the type of whole numbers that they were of, as they are where another program changed them."""
    ends = np.iinfo(dtype)
    low, high = float(values.min()), float(values.max())
    fits = ends.min <= low and high <= ends.max and bool((values == np.rint(values)).all())
    return values.astype(dtype) if fits else values


# Files with colours.


def read(path: Path, *, selection: Selection = EVERYTHING) -> AnyVolume:
    """Scalar volume of a grid; with colours beside it, unless a channel is chosen, a volume of both."""
    with explain_damage(path, NAME):
        choice = _choose(path, selection)
        if choice.colours is None:
            return volume_of(source(path, selection), selection, path)
        for remark in choice.remarks:
            log.warning("%s: %s", path, remark)
        return _Coloured(path, choice).volume(selection)


def describe(path: Path, *, selection: Selection = EVERYTHING) -> VolumeSummary | ScalarSummary:
    """Summary of a file, without its values."""
    with explain_damage(path, NAME):
        choice = _choose(path, selection)
        if choice.colours is None:
            found = source(path, selection)
            require_shape(found.shape, path)
            return ScalarSummary.of_source(found, path)
        return _Coloured(path, choice).summary()


class _Coloured:
    """Grids of density and colour of a file, before their values are read."""

    def __init__(self, path: Path, choice: Choice) -> None:
        assert choice.colours is not None
        self.path, self.grids = path, (choice.grid, choice.colours)
        with path.open("rb") as file:
            self.trees = tuple(grid.tree(file) for grid in self.grids)
        self.low, self.shape = _extent(choice.grid, self.trees[0], LEAF_SIDE)
        self.affine = _affine(choice.grid, self.low)
        require_shape(self.shape, path)
        require_file_budget(
            4 * math.prod(table_shape(self.shape)), f"{path}: its table of bricks, of which crop or stride read a part,"
        )

    def table(self) -> np.ndarray | None:
        """Table of the bricks that hold something, -1 elsewhere; None where dense arrays take less."""
        full = np.zeros(table_shape(self.shape), bool)
        for tree in self.trees:
            at = tree.origins - self.low
            at = at[((at >= 0) & (at < self.shape)).all(1)] // LEAF_SIDE
            full[tuple(at.T)] = True
            for where, _ in self._tiles(tree):
                full[where] = True
        if 2 * int(full.sum()) > full.size or self.trees[0].background.any():
            return None
        table = np.full(full.shape, -1, np.int32)
        table[full] = np.arange(int(full.sum()))
        return table

    def _tiles(self, tree: Tree) -> list[tuple[tuple[slice, ...], np.ndarray]]:
        """Slices of the table that tiles fill, and their values."""
        found = []
        for tiles in tree.tiles:
            near = ((tiles.origins < self.low + self.shape) & (tiles.origins + tiles.side > self.low)).all(1)
            first = (tiles.origins[near] - self.low) // LEAF_SIDE
            count = tiles.side // LEAF_SIDE
            for at, value in zip(first.tolist(), tiles.values[near], strict=True):
                found.append((tuple(slice(max(n, 0), n + count) for n in at), value))
        return found

    def volume(self, selection: Selection) -> Volume:
        """Volume of what is selected: of bricks where they are less than dense arrays and all is wanted."""
        table = self.table() if selection.is_all else None
        background = _background(self.grids[0].metadata)
        affine = self.affine @ selection.index_from_part(self.shape)
        if table is None:
            slices, kept = selection.slices(self.shape), selection.shape(self.shape)
            self._require_budget(math.prod(kept))
            with self.path.open("rb") as file:
                density, light = (
                    grid.values(file, tree, self.low, slices, part)
                    for grid, tree, part in zip(self.grids, self.trees, (ONE, COLOUR), strict=True)
                )
            arrays = self._arrays(density, light, selection)
            return Volume(*arrays, affine, READ_ACTIVATION, background)
        count = int(table.max(initial=-1)) + 1
        self._require_budget(count * LEAF_VOXELS)
        density, light = (self._bricks(grid, tree, table) for grid, tree in zip(self.grids, self.trees, strict=True))
        sigma, features = self._arrays(density, light, selection)
        numbers, beyond = overhanging_samples(table, self.shape)
        for array in (sigma, features):
            some = array[numbers]
            some[beyond] = 0
            array[numbers] = some
        return Volume.of_bricks(Bricks(table, sigma, features), self.shape, affine, READ_ACTIVATION, background)

    def _bricks(self, grid: Grid, tree: Tree, table: np.ndarray) -> np.ndarray:
        """Values (brick, 8, 8, 8, width) of a grid."""
        out = np.empty((int(table.max(initial=-1)) + 1, *BRICK_SHAPE, tree.width), tree.dtype)
        out[...] = tree.background
        for where, value in self._tiles(tree):
            numbers = table[where]
            out[numbers[numbers >= 0]] = value
        box = np.stack([self.low, self.low + self.shape - 1])
        with self.path.open("rb") as file:
            for origin, values in tree.leaves(file, (grid.source or grid).end, box):
                out[table[tuple((origin - self.low) // LEAF_SIDE)]] = values
        return out

    def _arrays(self, density: np.ndarray, light: np.ndarray, selection: Selection) -> tuple[np.ndarray, np.ndarray]:
        """Raw density and features of values (..., 1) and colours (..., 3)."""
        sigma, light = (fill_missing(one, selection.nan, self.path) for one in (density[..., 0], light))
        return sigma.astype(np.float32), features_of(light)

    def _require_budget(self, samples: int) -> None:
        wide = max(tree.dtype.itemsize for tree in self.trees) // 4
        require_file_budget(
            samples * SAMPLE_BYTES * wide, f"{self.path}: its samples, of which crop or stride read a part,"
        )

    def summary(self) -> VolumeSummary:
        """What the file holds."""
        corners, table = corners_of(self.affine, self.shape), self.table()
        bricks = None if table is None else int(table.max(initial=-1)) + 1
        samples = math.prod(self.shape) if bricks is None else bricks * LEAF_VOXELS
        return VolumeSummary(
            shape=self.shape,
            box=np.stack([corners.min(0), corners.max(0)]),
            activation=READ_ACTIVATION,
            bytes_on_disk=bytes_of(self.path),
            bytes_in_memory=samples * SAMPLE_BYTES + (0 if table is None else table.nbytes),
            bricks=bricks,
        )


# Writing.


def write(volume: AnyVolume, path: Path, *, half: bool = False, compression: str = "zip") -> None:
    """File of a volume: of a fit its extinction and its colours, of a scalar volume its values."""
    with name_path(path), system_refusals(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not isinstance(volume, ScalarVolume) and not volume.is_colour:
            log.warning(
                "the file gets colours alone: the volume's first three channels, or the first of fewer in grey, of %s;"
                " volume.in_colour(names) takes others, and .h5 keeps all",
                ", ".join(volume.channels),
            )
        volume = volume if isinstance(volume, ScalarVolume) else volume.in_colour()
        require_one_grid(volume, path)
        grids = [_scalar_grid(volume)] if isinstance(volume, ScalarVolume) else grids_of_fit(volume)
        notes = {
            f"{NOTES}shape": np.array(volume.shape, "<i4"),
            f"{NOTES}shape_check": np.int64(_checksum(volume.shape)),
            f"{NOTES}background": np.array(volume.background),
        }
        grids = [replace(grid, metadata={**grid.metadata, **notes}) for grid in grids]
        write_grids(path, grids, volume.world_from_index, half=half, compression=compression)


def _scalar_grid(volume: ScalarVolume) -> NewGrid:
    """Grid of a scalar volume's values: leaves of nothing but 0 are left out."""
    plain = plain_values(volume)
    values = narrow_values(volume, plain, "f4", NAME)
    notes: dict[str, Any] = {f"{NOTES}{one}": text for one in TEXTS if (text := getattr(volume, one)) or one == "name"}
    if str(plain.dtype.newbyteorder("=")) in WHOLE_TYPES:
        notes[f"{NOTES}dtype"] = str(plain.dtype.newbyteorder("="))
    kind = "fog volume" if volume.range[0] >= 0 else "unknown"

    def leaves(place: tuple[int, int, int]) -> Leaves:
        block = values[tuple(slice(n * LOWER_SIDE, (n + 1) * LOWER_SIDE) for n in place)]
        a, b, c = table_shape(block.shape)
        padded = np.zeros((a * LEAF_SIDE, b * LEAF_SIDE, c * LEAF_SIDE), np.float32)
        padded[tuple(map(slice, block.shape))] = block
        cubes = padded.reshape(a, LEAF_SIDE, b, LEAF_SIDE, c, LEAF_SIDE).transpose(0, 2, 4, 1, 3, 5)
        found = cubes.reshape(-1, LEAF_VOXELS, 1)
        numbers = leaf_numbers(np.indices((a, b, c)).reshape(3, -1).T)
        return numbers, (found != 0)[..., 0], lambda kept: found[kept]

    return NewGrid("density", np.zeros(1), volume.shape, leaves, {"class": kind, **notes})


OPENVDB = replace(scalar_format(NAME, (".vdb",), is_openvdb, source, write), read=read, write=write, describe=describe)
