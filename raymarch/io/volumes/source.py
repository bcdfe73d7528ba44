"""Source of a scalar volume: what a file's header says, and a reader of a part of its values."""

from __future__ import annotations

import bz2
import logging
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments.checks import LARGEST
from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.strict import require_file_budget
from raymarch.volumes.scalar_volume import LONGEST_TEXT, ScalarVolume
from raymarch.volumes.selection import Selection

log = logging.getLogger("raymarch")

Slices = tuple[slice, ...]
PACKAGE = Path(__file__).parents[2]
MOST_SIDE = 1 << 31  # samples along an axis

NO_SPACING = ("says no spacing", "slices say no spacing")  # remarks that mean nothing where the caller gives one
_spacing_given: ContextVar[bool] = ContextVar("spacing given", default=False)


@contextmanager
def spacing_given(given: bool) -> Iterator[None]:
    """Whether the caller of a reader gives the spacing, so that nothing is said of a file that has none."""
    token = _spacing_given.set(given)
    try:
        yield
    finally:
        _spacing_given.reset(token)


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


FAULTS = (KeyError, AttributeError, TypeError, IndexError, NameError)  # that code of ours raises where it is wrong


def _raised_here(error: BaseException) -> bool:
    """Whether an exception comes from a line of this package, not of a library that it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(PACKAGE)


@contextmanager
def read_by(library: str, path: Path) -> Iterator[None]:
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
        if isinstance(error, FAULTS) and _raised_here(error):
            raise
        said = f"{type(error).__name__}: {one_line(error)}"[:200]
        if "not supported" in said and "COMPRESSION" in said:
            raise RaymarchError(
                f"{path}: is packed in a way that this imagecodecs does not unpack ({said}); pip install -U"
                " imagecodecs, or save it unpacked"
            ) from error
        raise RaymarchError(f"{path}: {library} cannot read it ({said}); copy or export it again") from error


def volume_of(source: Source, selection: Selection, path: Path) -> ScalarVolume:
    """Scalar volume of a source's selected samples; remarks go to the log.

    Raises RaymarchError, before anything is read, for what is over the budget of one file, and for values that are not
    finite unless the selection says what takes their place.
    """
    require_shape(source.shape, path)
    source.holds()
    kept = source.shape if source.at_once else selection.shape(source.shape)
    require_file_budget(
        math.prod(kept) * source.dtype.itemsize, f"{path}: its values, of which crop or stride read a part,"
    )
    slices = selection.slices(source.shape)
    values = np.asarray(source.read(slices))
    if values.shape != selection.shape(source.shape):
        raise RaymarchError(
            f"{path}: gave {values.shape} values, want {selection.shape(source.shape)}; export it again"
        )
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    for remark in source.remarks:
        if not (_spacing_given.get() and remark.startswith(NO_SPACING)):
            log.warning("%s: %s", path, remark)
    return ScalarVolume(
        owned(filled(values, selection.nan, path, source.slope, source.intercept)),
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
    if len(shape) != 3 or min(shape) < 2 or max(shape) > MOST_SIDE:
        size = " x ".join(map(str, shape))
        slices = "; a slice is no volume: stack several by np.stack" if len(shape) == 3 and min(shape) == 1 else ""
        raise RaymarchError(
            f"{path}: has {size or 'no'} samples, want x, y and z with 2 or more each{slices or '; check the file'}"
        )


def owned(values: np.ndarray) -> np.ndarray:
    """Values that keep no more than themselves in memory: a copy of what is a part of a larger array."""
    root = values
    while isinstance(root.base, np.ndarray):
        root = root.base
    return values.copy(order="K") if root.nbytes > values.nbytes else values


def filled(
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
        if (np.abs(ends) <= LARGEST).all():  # which NaN is not
            return values
        bad = ~np.isfinite(values)
        count, what = int(bad.sum()), "NaN or infinite"
        if slope != 0:
            low, high = sorted((end - intercept) / slope for end in (-LARGEST, LARGEST))
            bad |= (values < low) | (values > high)
        if int(bad.sum()) > count:
            what = f"{what} or beyond {LARGEST:g}" if count else f"beyond {LARGEST:g}, where no number is taken for one"
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


def decoded(data: bytes) -> str:
    """Text of bytes up to the first zero, by UTF-8, else by Latin-1, for formats that name no encoding.

    Example:
        >>> decoded("Kopf 頭".encode()), decoded("Schädel".encode("latin-1"))
        ('Kopf 頭', 'Schädel')
    """
    data = data.split(b"\0")[0]
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def encoded(text: str, most: int) -> bytes:
    """UTF-8 of a text, of at most so many bytes, cut between letters.

    Example:
        >>> encoded("頭頭", 5).decode()
        '頭'
    """
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore").encode("utf-8")


def text_of(text: object) -> str:
    """Text of a header in one line, cut to what a volume may have."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())[:LONGEST_TEXT]


# Values stored in a file one behind the other, raw or packed: read once their header and the file's size agree.

STEP = 1 << 20  # bytes that are unpacked at a time
MOST_RATIO = 1100  # to which deflate packs zeros
LONGEST_WORD = 64  # letters of a number, for an array of words is as wide as the longest
MOST_BEYOND = 1 << 26  # bytes that are unpacked behind the values, for the checksum behind them
MEMBERS = {"gzip": b"\x1f\x8b", "bzip2": b"BZh"}  # how each of several streams in one file begins
CURE = "restore it from a copy or export it again"
Index = tuple[slice | int, ...]


def require_size(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype) -> int:
    """Size [byte] that a header declares, once it is one that the file behind `offset` holds; else RaymarchError."""
    if any(n < 1 for n in shape):
        raise RaymarchError(f"{path}: declares {_sizes(shape)} samples, want 1 or more an axis; {CURE}")
    declared, there = math.prod(map(int, shape)) * dtype.itemsize, path.stat().st_size - offset
    if declared > there:
        raise RaymarchError(
            f"{path}: declares {_sizes(shape)} of {dtype}, {declared:,} bytes, but holds {max(there, 0):,}; {CURE}"
        )
    return declared


def require_packed(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, packing: str, skip: int = 0) -> None:
    """RaymarchError for a header that declares more values, `skip` bytes into what is packed behind `offset`, than
    that could unpack to."""
    size = math.prod(map(int, shape)) * dtype.itemsize
    there = max(path.stat().st_size - offset, 0)
    if any(n < 1 for n in shape) or (packing != "bzip2" and skip + size > MOST_RATIO * there):
        declared = f"{_sizes(shape)} of {dtype}, {size:,} bytes"
        raise RaymarchError(f"{path}: declares {declared}, but holds {there:,} packed; {CURE}")


def values_of_words(
    words: Sequence[str] | Sequence[bytes], shape: Sequence[int], dtype: np.dtype, path: Path
) -> np.ndarray:
    """Values of a text's words, as many as an array has whose first axis is the fastest; else RaymarchError."""
    count, longest = math.prod(map(int, shape)), max(map(len, words), default=0)
    if len(words) != count or longest > LONGEST_WORD:
        found = f"has {len(words):,}" if len(words) != count else f"one of {longest:,} letters"
        raise RaymarchError(f"{path}: declares {count:,} values but {found}; {CURE}")
    return np.array(words).astype(dtype).reshape(tuple(map(int, shape)), order="F")


def read_raw(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, index: Index) -> np.ndarray:
    """Values at an index of an array whose first axis is the fastest, not packed; the rest stays on disk."""
    require_size(path, offset, shape, dtype)
    return np.array(np.memmap(path, dtype, "r", offset, tuple(map(int, shape)), "F")[index])


def read_packed(
    path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, index: Index, packing: str, skip: int = 0
) -> np.ndarray:
    """Values at an index of an array whose first axis is the fastest, packed by "gzip", "zlib" or "bzip2".

    They begin `offset` bytes into the file and, once unpacked, `skip` bytes into what was packed. All of it is
    unpacked, whatever part is wanted: RaymarchError for more than one file may ask for.
    """
    require_packed(path, offset, shape, dtype, packing, skip)
    size = math.prod(map(int, shape)) * dtype.itemsize
    require_file_budget(skip + size, f"{path}: its values, of all channels and times, as they are packed in one piece,")
    with path.open("rb") as file:
        file.seek(offset)
        data = unpacked(file.read, skip + size, packing, path, whole=True)
    return np.frombuffer(data, dtype, offset=skip).reshape(tuple(map(int, shape)), order="F")[index]


def read_end(
    path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, packing: str
) -> np.ndarray:  # fmt: skip
    """Values (.., the first axis the fastest) that are the last bytes of what was packed, whatever is before them."""
    require_packed(path, offset, shape, dtype, packing)
    size = math.prod(map(int, shape)) * dtype.itemsize
    require_file_budget(size, f"{path}: its values, of all channels and times,")
    end, count = bytearray(), 0
    with path.open("rb") as file:
        file.seek(offset)
        try:
            for piece in pieces(file.read, packing):
                end += piece
                count += len(piece)
                if len(end) > 2 * size + STEP:
                    del end[:-size]
                if count > size + MOST_BEYOND:
                    raise RaymarchError(f"{path}: unpacks to over {count:,} bytes before {size:,} of values; {CURE}")
        except (zlib.error, OSError, EOFError) as error:
            raise RaymarchError(f"{path}: its packed values are damaged ({error}); {CURE}") from error
    if len(end) < size:
        raise RaymarchError(f"{path}: declares {size:,} bytes of values but unpacks to {len(end):,}; {CURE}")
    return np.frombuffer(end, dtype, offset=len(end) - size).reshape(tuple(map(int, shape)), order="F")


def read_text(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, hexadecimal: bool = False) -> np.ndarray:
    """Values of an array whose first axis is the fastest, as words of a text, or as bytes of two letters each."""
    count = math.prod(map(int, shape))
    letters = 2 * count * dtype.itemsize if hexadecimal else 2 * count - 1
    there = path.stat().st_size - offset
    if letters > there or count < 1:
        raise RaymarchError(f"{path}: declares {count:,} values but is too short for them; {CURE}")
    require_file_budget(max(count * LONGEST_WORD, there), f"{path}: its {count:,} values as text")
    with path.open("rb") as file:
        file.seek(offset)
        words = file.read().split()
    if not hexadecimal:
        return values_of_words(words, shape, dtype, path)
    try:
        data = bytes.fromhex(b"".join(words)[:letters].decode("ascii"))
    except ValueError as error:  # UnicodeDecodeError is one
        raise RaymarchError(f"{path}: its values are no hexadecimal digits ({error}); {CURE}") from error
    if len(data) < letters // 2:
        raise RaymarchError(f"{path}: declares {letters:,} hexadecimal digits but has fewer; {CURE}")
    return np.frombuffer(data, dtype).reshape(tuple(map(int, shape)), order="F")


def after_lines(path: Path, offset: int, lines: int) -> int:
    """Byte behind so many lines of a file from `offset` on; RaymarchError where it has fewer."""
    if not lines:
        return offset
    with path.open("rb") as file:
        file.seek(offset)
        for _ in range(lines):
            if not file.readline(STEP).endswith(b"\n"):
                raise RaymarchError(f"{path}: is to have {lines:,} lines before its values but has fewer; {CURE}")
        return file.tell()


def values_of_files(
    files: Sequence[Path],
    read: Callable[[Path, tuple[int, ...]], np.ndarray],
    shape: Sequence[int],
    dtype: np.dtype,
    path: Path,
) -> np.ndarray:
    """Values of an array whose first axis is the fastest, of several files of which each has as many, one behind the
    other; `read(file, (count,))` reads those of one."""
    count = math.prod(map(int, shape))
    if count % len(files) or any(n < 1 for n in shape):
        raise RaymarchError(
            f"{path}: declares {_sizes(shape)} values in {len(files):,} files, want as many in each; {CURE}"
        )
    require_file_budget(count * dtype.itemsize, f"{path}: its values, of all files,")
    flat, each = np.empty(count, dtype), count // len(files)
    for k, file in enumerate(files):
        flat[k * each : (k + 1) * each] = read(file, (each,))
    return flat.reshape(tuple(map(int, shape)), order="F")


def unpacked(read: Callable[[int], bytes], size: int, packing: str, path: Path, whole: bool = False) -> bytearray:
    """The first `size` bytes of a packed stream; memory is taken as they come, so a stream that lies takes none.

    With `whole` a stream that ends, or goes on a little, must have its end, and the checksum in it.
    """
    data, beyond = bytearray(), 0
    try:
        for piece in pieces(read, packing):
            beyond = max(len(data) + len(piece) - size, 0)
            data += piece[: size - len(data)]
            if (len(data) == size and not whole) or beyond > MOST_BEYOND:
                break
    except (zlib.error, OSError, EOFError) as error:
        if not isinstance(error, EOFError) or len(data) == size:
            raise RaymarchError(f"{path}: its packed values are damaged ({error}); {CURE}") from error
    if len(data) < size:
        raise RaymarchError(f"{path}: declares {size:,} bytes of values but unpacks to {len(data):,}; {CURE}")
    return data


def pieces(read: Callable[[int], bytes], packing: str) -> Iterator[bytes]:
    """Unpacked bytes of a stream, of all its members where it has several; EOFError for one without its end."""
    unpacker, given = _unpacker(packing), read(STEP)
    while True:
        piece = unpacker.decompress(given, STEP)
        if piece:
            yield piece
        if unpacker.eof:
            given = unpacker.unused_data or read(STEP)
            if not (packing in MEMBERS and given.startswith(MEMBERS[packing])):
                return
            unpacker = _unpacker(packing)
            continue
        given = getattr(unpacker, "unconsumed_tail", b"")
        if not given and getattr(unpacker, "needs_input", True):
            given = read(STEP)
            if not (given or piece):  # what is left in the window comes without input
                raise EOFError("no end")


def _unpacker(packing: str) -> Any:
    return bz2.BZ2Decompressor() if packing == "bzip2" else zlib.decompressobj(47)  # of gzip and zlib alike


def _sizes(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


# Units of length: how files spell them, and those of a file's axes made into one where they differ.

METRES = {  # by short name
    "pm": 1e-12, "angstrom": 1e-10, "nm": 1e-9, "um": 1e-6, "mm": 1e-3, "cm": 1e-2, "dm": 0.1, "m": 1.0, "km": 1e3,
    "inch": 0.0254, "foot": 0.3048, "yard": 0.9144, "mile": 1609.344,
}  # fmt: skip
WORDS = {
    "pm": "picometer", "angstrom": "angstrom", "nm": "nanometer", "um": "micrometer", "mm": "millimeter",
    "cm": "centimeter", "dm": "decimeter", "m": "meter", "km": "kilometer", "inch": "inch", "foot": "foot",
    "yard": "yard", "mile": "mile",
}  # fmt: skip
SPELT = {
    **{short: short for short in METRES},
    **{word + end: short for short, word in WORDS.items() for end in ("", "s")},
    **{word.replace("meter", "metre") + end: short for short, word in WORDS.items() for end in ("", "s")},
    **dict.fromkeys(("µm", "μm", "micron", "microns", "\\u00b5m"), "um"),  # the last as ImageJ escapes it
    **dict.fromkeys(("Å", "å", "ångström", "ångstrom", "\u212b"), "angstrom"),
    **dict.fromkeys(("in", '"', "inches"), "inch"),
    **dict.fromkeys(("ft", "feet"), "foot"),
    "yd": "yard",
    "mi": "mile",
}


def short_unit(unit: str) -> str:
    """Short name of a unit of length, such as "um" of "microns" or "µm"; what is not known stays as it is.

    Example:
        >>> short_unit("Micrometers"), short_unit("pixel")
        ('um', 'pixel')
    """
    told = unit.strip()
    return SPELT.get(told) or SPELT.get(told.lower(), unit)


def in_one_unit(units: Sequence[str]) -> tuple[list[float], str, tuple[str, ...]]:
    """Factors of the axes' lengths that make them lengths in the first one's unit, that unit, and remarks.

    Units that are not known are kept where they are all the same; else they are remarked on, and there is none.

    Example:
        >>> in_one_unit(["mm", "millimeter", "um"])[:2]
        ([1.0, 1.0, 0.001], 'mm')
    """
    short = [short_unit(unit) for unit in units]
    first = short[0]
    if all(unit == first for unit in short):
        return [1.0] * len(units), first, ()
    if any(unit not in METRES for unit in short):
        told = ", ".join(unit or "none" for unit in units)
        return [1.0] * len(units), "", (f"has axes in several units ({told}); their numbers are taken as they are",)
    return [times(unit, first) for unit in short], first, ()


def times(unit: str, into: str) -> float:
    """Factor that makes a length in one unit one in another; 1 where either is not known.

    Example:
        >>> times("mm", "µm"), times("reference frame", "µm")
        (1000.0, 1.0)
    """
    unit, into = short_unit(unit), short_unit(into)
    return float(f"{METRES[unit] / METRES[into]:.12g}") if unit in METRES and into in METRES else 1.0


# Files beside a header that hold its values: in the same folder or one below it, never elsewhere.

MOST_FILES = 1 << 16
NUMBERED = re.compile(r"%(0?)(\d{0,2})([diu])")  # as printf has it, once in a name


def file_beside(path: Path, name: str, length: int, local: str = "") -> tuple[Path, int]:
    """The file with a header's values and where they begin in it.

    Args:
        path: of the header.
        name: of the file as the header says it; where that leads elsewhere, a file of its last part beside the header
            is taken, as after the two were copied.
        length: of the header [byte]: where values begin that are in the same file.
        local: the name, in letters of either case, that means the header's own file.

    Raises RaymarchError for one that is not there.
    """
    name = name.removeprefix("./")
    if local and name.upper() == local:
        return path, length
    last = re.split(r"[/\\]", name)[-1]
    if "\0" in name or "\n" in name or last in ("", ".", ".."):
        raise RaymarchError(f"{path}: its values are in {name[:80]!r}, want a file beside it; name it in the header")
    for one in (name, last):
        data = path.parent / one
        if data.is_file() and not data.is_symlink() and data.resolve().is_relative_to(path.parent.resolve()):
            return data, 0
    raise RaymarchError(f"{path}: its values are in {name[:80]!r}, want {last[:80]} beside it; move it there")


def files_of_pattern(path: Path, text: str) -> list[str]:
    """Names that a pattern as `slice%03d.raw 1 20 1` stands for; none where the text is no pattern.

    Raises RaymarchError for numbers that are none, and for too many files.
    """
    match = NUMBERED.search(text)
    if match is None:
        return []
    words = text[match.end() :].split()
    first = next((k for k in range(len(words)) if _is_whole(words[k]) and k > 0), 1)
    end = " ".join(words[:first]) if words and not _is_whole(words[0]) else ""
    numbers = words[first if end else 0 :]
    # What is behind the number in the name may be nothing, as in "slice%03d 1 20 1".
    if not 2 <= len(numbers) <= 4 or not all(map(_is_whole, numbers)):
        raise RaymarchError(f"{path}: has the pattern {text[:80]!r}, want NAME%03d.raw FIRST LAST STEP; correct it")
    low, high, step = (*map(int, numbers[:3]), 1)[:3]
    count = (high - low) // step + 1 if step else 0
    if not 1 <= count <= MOST_FILES:
        raise RaymarchError(
            f"{path}: stands for {count:,} files by {text[:80]!r}, want 1 to {MOST_FILES:,}; correct it"
        )
    zero, width, _ = match.groups()
    fill = "0" if zero else ""
    return [f"{text[: match.start()]}{n:{fill}{width}}{end}" for n in range(low, low + step * count, step)]


def _is_whole(word: str) -> bool:
    return re.fullmatch(r"[+-]?\d{1,9}", word) is not None


def files_beside(path: Path, names: Sequence[str]) -> list[Path]:
    """Files of several names beside a header; RaymarchError for one that is not there, and for none."""
    if not 1 <= len(names) <= MOST_FILES:
        raise RaymarchError(f"{path}: names {len(names):,} files of its values, want 1 to {MOST_FILES:,}; correct it")
    return [file_beside(path, name, 0)[0] for name in names]
