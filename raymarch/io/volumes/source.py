"""Source of a scalar volume: what a file's header says, and a reader of a part of its values."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from raymarch.arguments.checks import MAX_NUMBER
from raymarch.errors import PROGRAM_FAULTS, RaymarchError, one_line
from raymarch.io.files.strict import require_file_budget
from raymarch.volumes.scalar_volume import MAX_TEXT_LENGTH, ScalarVolume
from raymarch.volumes.selection import Selection

log = logging.getLogger("raymarch")
Slices = tuple[slice, ...]
Index = tuple[slice | int, ...]
RESTORE_CURE = "restore it from a copy or export it again"
PACKAGE = Path(__file__).parents[2]
MAX_SIDE = 1 << 31  # samples along an axis
NO_SPACING_NOTES = ("says no spacing", "slices say no spacing")  # remarks that mean nothing where the caller gives one
_spacing_given: ContextVar[bool] = ContextVar("spacing given", default=False)


@dataclass(frozen=True, eq=False)
class Source:
    """Scalar volume in a file, before its values are read.

    Attributes:
        shape: count of samples (x, y, z).
        dtype: as stored.
        world_from_index: (4, 4) affine.
        read: `read(slices)`, the values (x, y, z) of slices along x, y and z, in any byte order.
        at_once: whether all values are in memory while a part is read, as of what is packed in one piece.
        slope, intercept, unit, length_unit, world, name, background, provenance: as of `ScalarVolume`.
        holds: `holds()` raises RaymarchError where the header declares more than the file can hold.
        remarks: what the file does not say and was assumed, or what was chosen, for the log.
    """

    shape: tuple[int, int, int]
    dtype: np.dtype
    world_from_index: np.ndarray
    read: Callable[[Slices], np.ndarray]
    at_once: bool = True
    slope: float = 1.0
    intercept: float = 0.0
    unit: str = ""
    length_unit: str = ""
    world: str = ""
    name: str = ""
    background: tuple[float, float, float] = (1.0, 1.0, 1.0)
    provenance: Mapping = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    holds: Callable[[], object] = lambda: None


@contextmanager
def spacing_given(given: bool) -> Iterator[None]:
    """Whether the caller of a reader gives the spacing, so that nothing is said of a file that has none."""
    token = _spacing_given.set(given)
    try:
        yield
    finally:
        _spacing_given.reset(token)


@contextmanager
def library_errors(library: str, path: Path) -> Iterator[None]:
    """Context of a call into a format's library: what that raises becomes a RaymarchError that names the library.

    Libraries raise anything for damaged files, a KeyError or TypeError too. Raised in a line of ours those are a fault
    of ours, and pass.
    """
    try:
        yield
    except (RaymarchError, MemoryError, ImportError):
        raise
    except Exception as error:
        if "imagecodecs" in str(error):  # by which tifffile unpacks what it does not itself, and which says so
            raise
        if isinstance(error, PROGRAM_FAULTS) and _is_raised_here(error):
            raise
        said = f"{type(error).__name__}: {one_line(error)}"[:200]
        if "not supported" in said and "COMPRESSION" in said:
            raise RaymarchError(
                f"{path}: is packed in a way that this imagecodecs does not unpack ({said}); pip install -U"
                " imagecodecs, or save it unpacked"
            ) from error
        raise RaymarchError(f"{path}: {library} cannot read it ({said}); copy or export it again") from error


def _is_raised_here(error: BaseException) -> bool:
    """Whether an exception comes from a line of this package, not of a library that it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(PACKAGE)


def volume_of(source: Source, selection: Selection, path: Path) -> ScalarVolume:
    """Scalar volume of a source's selected samples; remarks go to the log.

    Raises RaymarchError, before anything is read, for what is over the budget of one file, and for values that are not
    finite unless the selection says what takes their place.
    """
    require_shape(source.shape, path)
    source.holds()
    kept = source.shape if source.at_once else selection.shape(source.shape)
    march = "" if source.at_once else ", all of which raymarch render --memory marches"
    require_file_budget(
        math.prod(kept) * source.dtype.itemsize, f"{path}: its values, of which crop or stride read a part{march},"
    )
    slices = selection.slices(source.shape)
    values = np.asarray(source.read(slices))
    if values.shape != selection.shape(source.shape):
        raise RaymarchError(
            f"{path}: gave {values.shape} values, want {selection.shape(source.shape)}; export it again"
        )
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    for remark in source.remarks:
        if not (_spacing_given.get() and remark.startswith(NO_SPACING_NOTES)):
            log.warning("%s: %s", path, remark)
    return ScalarVolume(
        own_values(fill_missing(values, selection.nan, path, source.slope, source.intercept)),
        source.world_from_index @ selection.index_from_part(source.shape),
        source.slope,
        source.intercept,
        text_of(source.unit),
        text_of(source.length_unit),
        source.world,
        text_of(source.name),
        source.background,
        source.provenance,
    )


def require_shape(shape: tuple[int, ...], path: Path) -> None:
    """RaymarchError unless these are three axes of two samples or more."""
    if len(shape) != 3 or min(shape) < 2 or max(shape) > MAX_SIDE:
        size = " x ".join(map(str, shape))
        slices = "; a slice is no volume: stack several by np.stack" if len(shape) == 3 and min(shape) == 1 else ""
        raise RaymarchError(
            f"{path}: has {size or 'no'} samples, want x, y and z with 2 or more each{slices or '; check the file'}"
        )


def fill_missing(
    values: np.ndarray, nan: float | str | None, path: Path, slope: float = 1.0, intercept: float = 0.0
) -> np.ndarray:
    """Stored values where those that are no numbers are what stands for a number, or for the least value that `slope`
    and `intercept` make of the others; RaymarchError where none is given.

    No numbers are NaN, the infinite, and what lies beyond 1e30, as the marks for "no value" of NetCDF and of rasters.
    """
    if values.dtype.kind != "f":
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        ends = slope * np.array([values.min(), values.max()], float) + intercept
        if (np.abs(ends) <= MAX_NUMBER).all():  # which NaN is not
            return values
        bad = ~np.isfinite(values)
        count, what = int(bad.sum()), "NaN or infinite"
        if slope != 0:
            low, high = sorted((end - intercept) / slope for end in (-MAX_NUMBER, MAX_NUMBER))
            bad |= (values < low) | (values > high)
        if int(bad.sum()) > count:
            what = (
                f"{what} or beyond {MAX_NUMBER:g}"
                if count
                else f"beyond {MAX_NUMBER:g}, where no number is taken for one"
            )
            count = int(bad.sum())
    of = f"{count:,} of its {values.size:,} values are {what}"
    if count == values.size:
        raise RaymarchError(f"{path}: all its values are {what}, want numbers; see to how it was written")
    if nan is None:
        raise RaymarchError(
            f"{path}: {of}, want numbers; rm.load(.., nan='empty') or raymarch convert --nan empty takes"
            " them as its least value, nan=0 as that number"
        )
    if nan == "empty":
        put = float(values[~bad].min() if slope > 0 else values[~bad].max())
    else:
        put = (float(nan) - intercept) / slope
        with np.errstate(over="ignore"):
            held = np.isfinite(values.dtype.type(put))
        values = values if held else values.astype(np.float32 if abs(put) < 1e38 else np.float64)
    log.warning("%s: %s; taken as %g", path, of, slope * put + intercept)
    return np.where(bad, values.dtype.type(put), values)


def own_values(values: np.ndarray) -> np.ndarray:
    """Values that keep no more than themselves in memory: a copy of what is a part of a larger array."""
    root = values
    while isinstance(root.base, np.ndarray):
        root = root.base
    return values.copy(order="K") if root.nbytes > values.nbytes else values


def text_of(text: object) -> str:
    """Text of a header in one line, cut to what a volume may have."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())[:MAX_TEXT_LENGTH]


def decode_text(data: bytes) -> str:
    """Text of bytes up to the first zero, by UTF-8, else by Latin-1, for formats that name no encoding.

    Example:
        >>> decode_text("Kopf 頭".encode()), decode_text("Schädel".encode("latin-1"))
        ('Kopf 頭', 'Schädel')
    """
    data = data.split(b"\0")[0]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def encode_text(text: str, most: int) -> bytes:
    """UTF-8 of a text, of at most so many bytes, cut between letters.

    Example:
        >>> encode_text("頭頭", 5).decode()
        '頭'
    """
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore").encode("utf-8")
