"""Device memory: how many bytes a grid takes and how many there are, asked before anything is allocated."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from raymarch import runtime
from raymarch.device import pool
from raymarch.errors import RaymarchError
from raymarch.kernels.integrator.sample import MAX_KEPT_COLOURS, MAX_KEPT_DENSITIES
from raymarch.system.resources import free_bytes as _free_bytes
from raymarch.volumes.bricks import BRICK_SIDE, table_shape

MAX_CELLS = 2**31 - 1  # beyond that Taichi writes into other fields
LIBRARY_BYTES = 250_000_000  # bytes beyond `import raymarch`: Taichi, kernels (225 to 250 from the cache, 290 compiled)
NUMBERS_A_RAY = 31  # of a `RayBuffer` that keeps no samples
COLOURS_A_RAY = 5  # of these that have a number a channel
BATCH_RAYS = 1 << 18  # rays that are marched at once
BYTES_A_RAY = 24  # of an image: colour, transmittance, distance, opacity
ALIASED_ROW = 32  # samples of a row; at degree 0 they are 512 bytes, of which eight are a page
# numbers between arrays of samples: one that is a power of two apart is, to some processors, the same line
ARRAY_SPACING = 80
BLOCK_EDGE = 4  # voxels a side, at least, of the blocks that a grid is made of and that are marked as touched
CELL_EDGE = 4  # voxels a side of an occupancy cell, at the finest shape
# Of a sparse grid, on the device and while it is made there [byte]:
BYTES_A_CELL = 4, 4  # marks and distances; arrays in which they are made
BYTES_AN_ENTRY = 8, 5  # of the table, as it is and as it was; a copy on its way there, and which bricks there are
BYTES_A_BRICK = 8 * 3 + 12  # what is known of its blocks, and where it lies


def padded_shape(shape: Sequence[int], block: int | None = None) -> tuple[int, ...]:
    """Padded shape of a grid in memory: whole blocks of marks, 4 a side or the layout's own.

    In a flat layout rows that are a multiple of 32 samples long are one block longer: samples that lie a power of two
    apart share a few lines of the cache, and a cell's corners, or a block's rows, would drive each other out.

    Example:
        >>> padded_shape((501, 4, 5)), padded_shape((64, 64, 70), block=1)
        ((504, 4, 8), (64, 68, 72))
    """
    edge = max(block or 0, BLOCK_EDGE)
    x, *rows = (-(-n // edge) * edge for n in shape)
    return (x, *(n + BLOCK_EDGE if block == 1 and n % ALIASED_ROW == 0 else n for n in rows))


@dataclass(frozen=True)
class Memory:
    """Peak memory of a fit or a rendering, beyond `import raymarch`: within 15 %.

    Attributes:
        shape: of the finest grid.
        sh_degree, slots: of it; slots are gradient buffers, 0 for a rendering.
        parts: bytes by what takes them.
        colours: channels of a sample's colour.
    """

    shape: tuple[int, int, int]
    sh_degree: int
    slots: int
    parts: dict[str, int]
    colours: int = 3

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.parts.values())


def grid_bytes(
    shape: Sequence[int],
    degree: int,
    *,
    slots: int = 0,
    moments: bool = False,
    width: int = 4,
    merged: bool = False,
    colours: int = 3,
) -> int:
    """Bytes of a device grid: density and colour; with slots a gradient and its parts, the first of which is the
    gradient itself where they are `merged`; with moments Adam's two, of density and of one colour each.

    Example:
        >>> grid_bytes((64, 64, 64), 0)  # four f32 a voxel
        4194304
    """
    copies = 1 + (slots + (0 if merged else 1) if slots else 0)
    numbers = (1 + colours * (degree + 1) ** 2) * copies + (2 * (1 + colours) if moments else 0)
    return math.prod(shape) * numbers * width


def pool_shape(bricks: int) -> tuple[int, int, int]:
    """Shape in memory of a pool with room for so many bricks, and for the one of those that are missing.

    Example:
        >>> pool_shape(9)
        (1, 1, 5120)
    """
    return 1, 1, (bricks + 1) * BRICK_SIDE**3


def cells_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Counts of occupancy cells of a grid of this finest shape."""
    return tuple(-(-(n - 1) // CELL_EDGE) for n in shape)


def index_bytes(shape: Sequence[int], bricks: int) -> tuple[int, int]:
    """Bytes that a sparse grid with room for so many bricks takes beside their samples: its occupancy cells, its table
    and its marks on the device, and the arrays that cells and table are made in.

    Example:
        >>> index_bytes((9, 9, 9), 7)  # eight cells, eight entries, eight bricks with that of the missing
        (384, 72)
    """
    cells, entries = math.prod(cells_of(shape)), math.prod(table_shape(shape))
    held, made = (a * cells + b * entries for a, b in zip(BYTES_A_CELL, BYTES_AN_ENTRY, strict=True))
    return held + BYTES_A_BRICK * (bricks + 1), made


def numbers_a_ray(keeps: bool, colours: int = 3) -> int:
    """Numbers that a ray takes in a `RayBuffer`, which keeps its samples or does not.

    Example:
        >>> numbers_a_ray(False)
        31
    """
    kept = 2 * MAX_KEPT_DENSITIES + (1 + colours) * MAX_KEPT_COLOURS if keeps else 0
    return NUMBERS_A_RAY + COLOURS_A_RAY * (colours - 3) + kept


def memory_of_rendering(
    shape: Sequence[int],
    degree: int,
    pixels: int,
    bricks: int | None = None,
    held: int | None = None,
    colours: int = 3,
) -> Memory:
    """Peak memory of loading a volume, or a sparse one of so many bricks, and rendering an image of so many pixels.

    `held` are the bytes of the volume's own arrays, those of the session's precision if not given.

    Example:
        >>> dense, sparse = (memory_of_rendering((512, 512, 512), 0, 800 * 800, bricks) for bricks in (None, 9000))
        >>> 3 * sparse.total < dense.total
        True
    """
    width = 4 if runtime.single_precision() else 8
    room = padded_shape(shape) if bricks is None else pool_shape(bricks)
    copy = grid_bytes(shape if bricks is None else room, degree, width=width, colours=colours)
    parts = {
        "libraries": LIBRARY_BYTES,
        "volume": (copy if held is None else held) + copy,
        "grid": grid_bytes(room, degree, width=width, colours=colours),
        "rays": min(pixels, BATCH_RAYS) * numbers_a_ray(False, colours) * width
        + pixels * (BYTES_A_RAY + 4 * (colours - 3)),
    }
    if bricks is not None:
        parts["cells"] = sum(index_bytes(shape, bricks))
    x, y, z = shape
    return Memory((x, y, z), degree, 0, parts, colours)


def available_bytes() -> int:
    """Memory of the device that this process can still take [byte], what is kept for reuse included."""
    of_gpu = runtime.device_bytes()
    return host_bytes() if of_gpu is None else of_gpu[0] + pool.kept_bytes()


def host_bytes() -> int:
    """Memory of the machine that this process can still take [byte], its limit on addresses considered."""
    left, kept = runtime.addresses_left(), pool.kept_bytes() if runtime.runs_on_cpu() else 0
    return kept + (_free_bytes() if left is None else min(_free_bytes(), left))


def make_room(needed: int, freed: int = 0) -> None:
    """Free what is kept for reuse where so many bytes would not be there without, `freed` more than now being free."""
    if needed > 0.9 * (available_bytes() + freed - pool.kept_bytes()):
        with contextlib.suppress(RaymarchError):  # of another thread, whose it is
            pool.release()


def require_images(what: str, pixels: int, cure: str, *, held: int = 0, stored: int = 0) -> None:
    """Memory check: RaymarchError where images need more bytes than are free, `held` by the machine and `stored` on the
    device, or where so many pixels are more than can be indexed there. What is kept for reuse is freed for them."""
    asked = [(held + stored, available_bytes())]
    if not runtime.runs_on_cpu():
        asked = [(held, host_bytes()), (stored, available_bytes())]
    for needed, free in asked:
        if needed > 0.9 * free:
            raise RaymarchError(f"{what} take {needed:,} bytes but {free:,} are free; {cure}")
    make_room(asked[-1][0])
    if (widest := runtime.max_tree_bytes()) is not None and stored > widest:
        raise RaymarchError(f"{what} take {stored:,} bytes but Vulkan takes {widest:,} in one piece; {cure}")
    if stored and pixels > (most := MAX_CELLS // 4):
        raise RaymarchError(f"{what} are {pixels:,} pixels but a fit takes at most {most:,}; {cure}")


def require_memory(
    shape: Sequence[int], needed: int, channels: int, cure: str, freed: int = 0, room: Sequence[int] = ()
) -> None:
    """Memory check before allocation: RaymarchError, with the bytes, where a grid of `shape` would not fit.

    `freed` bytes more than now will be free by then. `room` is the grid's shape in memory, where that is another.
    """
    size = " x ".join(str(n) for n in shape)
    free = available_bytes() + freed
    make_room(needed, freed)
    if needed > 0.9 * free:
        raise RaymarchError(f"a grid of {size} needs {needed:,} bytes but {free:,} are free; {cure}")
    if (most := runtime.max_tree_bytes()) is not None and needed > most:
        raise RaymarchError(f"a grid of {size} needs {needed:,} bytes but Vulkan takes {most:,} in one piece; {cure}")
    if math.prod(room or shape) * channels > MAX_CELLS:
        limit = f"{needed:,} bytes, {channels} numbers a voxel where Taichi can index {MAX_CELLS} in all"
        raise RaymarchError(f"a grid of {size} needs {limit}; {cure}")
