"""Strict NumPy files (.npy, .npz): floats and whole numbers only, as many as the header says, never pickles."""

from __future__ import annotations

import io
import math
import os
import zipfile

import numpy as np

from raymarch.errors import FAULTS_OF_OURS, RaymarchError, fault_of_ours, one_line
from raymarch.io.files.strict_text import EXPORT, read_bytes

LARGEST_FILE = 64 << 20  # bytes; 20,000 poses are 3 MB
MOST_MEMBERS = 200_000
LONGEST_HEADER = 10_000


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Array of a .npy file as float64.

    Raises RaymarchError that names the file for one that is damaged or over 64 MiB, for objects, and for numbers that
    are not finite.

    Example:
        >>> np.save("a.npy", np.arange(3))
        >>> read_npy("a.npy").tolist()
        [0.0, 1.0, 2.0]
    """
    return _array(read_bytes(path, "a NumPy array", LARGEST_FILE), str(path))


def read_npz(path: str | os.PathLike[str], wanted: str) -> dict[str, np.ndarray]:
    """Arrays of an .npz file whose names begin with `wanted`, as float64; others are not looked at.

    Raises RaymarchError as `read_npy` does, and for members that are packed over 64 MiB in all or are not what their
    sizes say.

    Example:
        >>> np.savez("a.npz", pose_0=np.eye(2), other=3)
        >>> read_npz("a.npz", "pose_")["pose_0"].shape
        (2, 2)
    """
    data = read_bytes(path, "a NumPy archive", LARGEST_FILE)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            names = [member.filename for member in members]
            if len(members) > MOST_MEMBERS or len(set(names)) < len(names):
                raise RaymarchError(f"{path}: has {len(members)} members, want few and each once; {EXPORT}")
            chosen = [one for one in members if one.filename.startswith(wanted) and one.filename.endswith(".npy")]
            if any(one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for one in chosen):
                # What unpacks without a limit, too.
                raise RaymarchError(f"{path}: is packed as no NumPy packs it; {EXPORT}")
            if (size := sum(one.file_size for one in chosen)) > LARGEST_FILE:
                raise RaymarchError(f"{path}: its arrays declare {size:,} bytes, want {LARGEST_FILE:,}; {EXPORT}")
            return {
                one.filename.removesuffix(".npy"): _array(_member(archive, one), f"{path}: {one.filename}")
                for one in chosen
            }
    except RaymarchError:
        raise
    except Exception as error:  # zipfile raises anything from struct.error to NotImplementedError for damaged files
        if isinstance(error, FAULTS_OF_OURS) and not isinstance(error, NotImplementedError):
            raise RaymarchError(f"{path}: {fault_of_ours(error)}") from error
        raise RaymarchError(f"{path}: is no whole NumPy archive ({one_line(error)}); {EXPORT}") from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as file:
        return file.read(member.file_size + 1)  # a stream that goes on for longer is cut, and refused by its length


def _array(data: bytes, where: str) -> np.ndarray:
    """The array of bytes, if its header declares just what follows it."""
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        known = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in known:
            raise RaymarchError(f"{where}: is of version {version} of NumPy's files, want 1 or 2; {EXPORT}")
        read = known[version]
        shape, by_columns, dtype = read(file, max_header_size=LONGEST_HEADER)
        if dtype.kind not in "fiu" or dtype.hasobject:
            raise RaymarchError(f"{where}: holds {str(dtype)[:60]}, want numbers; {EXPORT}")
        declared, there = math.prod(shape) * dtype.itemsize, len(data) - file.tell()
        if declared != there or any(n < 0 for n in shape):
            raise RaymarchError(f"{where}: declares {declared} bytes but holds {there}; {EXPORT}")
        flat = np.frombuffer(data, dtype, offset=file.tell())
        array = flat.reshape(shape, order="F" if by_columns else "C").astype(np.float64)
    except RaymarchError:
        raise
    except Exception as error:  # NumPy raises anything from SyntaxError to struct.error for damaged headers
        if isinstance(error, FAULTS_OF_OURS):
            raise RaymarchError(f"{where}: {fault_of_ours(error)}") from error
        raise RaymarchError(f"{where}: is no whole NumPy array ({one_line(error)}); {EXPORT}") from error
    if not np.isfinite(array).all():
        at = np.argwhere(~np.isfinite(array))[0].tolist()
        raise RaymarchError(f"{where}: is {array[tuple(at)]} at {tuple(at)}, want finite numbers; {EXPORT}")
    return array
