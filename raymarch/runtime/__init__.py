"""Taichi runtime, the only `ti.init` of the package: one device, one precision, one thread count a process."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import taichi as ti

from raymarch.arguments.checks import one_of, optional, whole
from raymarch.arguments.declared import checked
from raymarch.data.cores import cores
from raymarch.errors import RaymarchError
from raymarch.runtime import compiler

ARCHES = ("auto", "cpu", "cuda")
PRECISIONS = ("f32", "f64")
OURS = ("TI_ARCH", "TI_DEFAULT_FP", "TI_ENABLE_FALLBACK", "TI_OFFLINE_CACHE", "TI_UNROLLING_LIMIT", "TI_LOG_LEVEL")
CACHE = "TI_OFFLINE_CACHE_FILE_PATH"
ADDRESSES = 3 << 29  # bytes; a gibibyte is reserved at once, and kernels are compiled beside it


@dataclass(frozen=True)
class Runtime:
    """Runtime as started: `arch` "cpu" or "cuda", `precision` "f32" or "f64", and how many `threads` of a CPU."""

    arch: str
    precision: str
    threads: int


_running: Runtime | None = None
_owner: tuple[int, int] | None = None  # process and thread


@checked(arch=one_of(*ARCHES), precision=optional(one_of(*PRECISIONS)), threads=optional(whole(1, 1024)))
def start(arch: str = "auto", precision: str | None = None, threads: int | None = None) -> Runtime:
    """Start Taichi once; later calls that ask for the same, or leave it open, return what runs.

    Called by the first thing that needs the device; call it yourself to choose. Arch "auto" takes CUDA where there is
    one, precision None is "f32", threads None one for each core that this process may use, of a container's share too.

    Raises RaymarchError where CUDA is asked for and absent, and where another arch, precision or thread count already
    runs: that needs a process of its own.

    Example:
        >>> start("cpu").arch
        'cpu'
    """
    global _running, _owner
    if _running is None:
        _running, _owner = _init(_choose(arch), precision or "f32", threads), (os.getpid(), threading.get_ident())
    wanted = {"arch": None if arch == "auto" else arch, "precision": precision, "threads": threads}
    for name, want in wanted.items():
        if want is not None and want != getattr(_running, name):
            raise RaymarchError(
                f"{name} {want} asked for but this process runs {getattr(_running, name)}; start another process"
            )
    return _running


def _init(arch: str, precision: str, threads: int | None) -> Runtime:
    _require_addresses()
    threads = cores() if threads is None else threads
    compiler.spare_work(flow=arch == "cpu")
    cache = _cache()
    # Taichi announces itself on stdout, which is for results.
    with contextlib.redirect_stdout(io.StringIO()), _without(*OURS, *((CACHE,) if cache else ())):
        ti.init(
            arch=ti.cuda if arch == "cuda" else ti.cpu,
            default_fp=ti.f64 if precision == "f64" else ti.f32,
            enable_fallback=False,
            offline_cache=True,
            # Else sums are taken in the order that suits the memory layout: other bits in each, and hardly faster.
            fast_math=arch == "cuda",
            log_level=ti.ERROR,
            unrolling_limit=0,  # channels are unrolled, up to 48 of them
            cpu_max_num_threads=threads,
            **cache,
        )
    atexit.register(_end)
    return Runtime(arch, precision, threads)


def _end() -> None:
    """End Taichi's program, which is when it writes what it compiled to the cache.

    By itself it does so when its last object is garbage, which as Python ends some of them never are.
    """
    if _owner == (os.getpid(), threading.get_ident()):
        ti.reset()


@contextlib.contextmanager
def _without(*names: str) -> Iterator[None]:
    """Within it the environment lacks these variables, which Taichi would take instead of what it is told."""
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def addresses_left() -> int | None:
    """Address space left [byte] by a limit (`ulimit -v`) of this process; None without one."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    return None if limit == resource.RLIM_INFINITY else max(limit - used, 0)


def _require_addresses() -> None:
    left = addresses_left()
    if left is not None and left < ADDRESSES:
        raise RaymarchError(
            f"Taichi and its compiler reserve about {ADDRESSES:,} bytes of addresses but {left:,} are left to this"
            " process; lift the limit (ulimit -v unlimited, or the batch job's on virtual memory)"
        )


def cache_folder() -> Path:
    """Folder of the user's cache, in which Taichi keeps compiled kernels; it may be missing, or not be writable."""
    if os.environ.get(CACHE):
        return Path(os.environ[CACHE])
    if os.name != "posix":
        return Path.home()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "taichi"


def _cache() -> dict[str, str]:
    """Where compiled kernels are kept, if not where Taichi would: it crashes at exit where it may not write."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return {}
    except OSError:
        return {"offline_cache_file_path": _private_folder()}


def _private_folder() -> str:
    """A folder among the temporary files that nobody else may write to, for what lies in a cache is run.

    The same each time, as Taichi writes to it when all else has ended and nobody could remove it.
    """
    if os.name != "posix":
        return tempfile.mkdtemp(prefix="raymarch-")
    folder = Path(tempfile.gettempdir()) / f"raymarch-{os.getuid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return str(folder)
    return tempfile.mkdtemp(prefix="raymarch-")


def require_owner() -> None:
    """Thread check: RaymarchError unless in the thread and process that started Taichi; it fails in others."""
    if _owner is not None and threading.get_ident() != _owner[1]:
        raise RaymarchError("called from another thread than the one that started raymarch; use that one")
    if _owner is not None and os.getpid() != _owner[0]:
        raise RaymarchError('called from a fork of the process that started raymarch; start processes by "spawn"')


def single_precision() -> bool:
    """Precision of kernels: whether `float` means f32; kernels ask this as they compile."""
    return _running is None or _running.precision == "f32"


def dtype() -> type[np.floating]:
    """NumPy dtype of `float` in kernels."""
    return np.float32 if single_precision() else np.float64


def threads() -> int:
    """Threads of a CPU that kernels run on, or would once started as nobody asked for a number."""
    return _running.threads if _running else cores()


def on_cpu() -> bool:
    """Device of kernels: whether they run on the CPU; kernels ask this as they compile."""
    return _running is None or _running.arch == "cpu"


def _choose(arch: str) -> str:
    ti.set_logging_level(ti.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):
        cuda = arch != "cpu" and ti._lib.core.with_cuda()
    if arch == "cuda" and not cuda:
        raise RaymarchError("CUDA asked for but no CUDA device was found; use --arch cpu, or mend the driver")
    return "cuda" if cuda else "cpu"
