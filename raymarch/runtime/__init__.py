"""Taichi runtime, the only `ti.init` of the package: one device, one precision, one thread count a process."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raymarch import engine
from raymarch.arguments.checks import one_of, optional, whole
from raymarch.arguments.declared import checked
from raymarch.engine import ti
from raymarch.errors import RaymarchError, one_line
from raymarch.runtime import compiler
from raymarch.runtime.gpu_memory import gpu_bytes, has_gpu
from raymarch.runtime.kernel_cache import CACHE_VARIABLE, cache_argument
from raymarch.runtime.vulkan import DEVICE_VARIABLE, SOFTWARE, VulkanDevice, chosen_device, vulkan_devices
from raymarch.system.resources import cores

ARCHES = ("auto", "cpu", "cuda", "vulkan", "metal")
SINGLE_ONLY = ("vulkan", "metal")  # Taichi has no exp, log, sin in f64 there
PRECISIONS = ("f32", "f64")
OWNED_VARIABLES = tuple(
    engine.VARIABLE_PREFIX + name
    for name in ("ARCH", "DEFAULT_FP", "ENABLE_FALLBACK", "OFFLINE_CACHE", "UNROLLING_LIMIT", "LOG_LEVEL")
)
MIN_ADDRESS_SPACE = 3 << 29  # bytes; a gibibyte is reserved at once, and kernels are compiled beside it


@dataclass(frozen=True)
class Runtime:
    """Runtime as started: `arch` "cpu", "cuda", "vulkan" or "metal", `precision` "f32" or "f64", and how many `threads`
    of a CPU."""

    arch: str
    precision: str
    threads: int


_running: Runtime | None = None
_owner: tuple[int, threading.Thread] | None = None  # process and thread; a thread's number is soon another's
_state: object | None = None  # of Taichi as started here: `ti.init` and `ti.reset` make another
_starting = threading.Lock()
_vulkan: VulkanDevice | None = None  # that kernels run on
_spared: list[str] = []  # the arch whose compiler was spared work


@checked(arch=one_of(*ARCHES), precision=optional(one_of(*PRECISIONS)), threads=optional(whole(1, 1024)))
def start(arch: str = "auto", precision: str | None = None, threads: int | None = None) -> Runtime:
    """Start Taichi once; later calls that ask for the same, or leave it open, return what runs.

    Called by the first thing that needs the device; call it yourself to choose. Arch "auto" takes CUDA where there is
    one, else the CPU; "vulkan" and "metal" are taken where they are asked for, and compute in f32 only. Precision None
    is "f32", threads None one for each core that this process may use, of a container's share too.
    Beside kernels of your own it takes the place of `ti.init`, which frees all that anybody has on the device.

    Raises RaymarchError where a device is asked for and absent, for f64 where there is none, where Taichi cannot start
    or `ti.init` was called, before or since, and where another arch, precision or thread count already runs: that needs
    a process of its own.

    Example:
        >>> start("cpu").arch
        'cpu'
    """
    global _running
    with _starting:
        if _running is None:
            _running = _begin(arch, precision, threads)
    _require_state()
    wanted = {"arch": None if arch == "auto" else arch, "precision": precision, "threads": threads}
    for name, want in wanted.items():
        if want is not None and want != getattr(_running, name):
            raise RaymarchError(
                f"{name} {want} asked for but this process runs {getattr(_running, name)}; start another process"
            )
    return _running


def require_precision(arch: str, precision: str | None) -> None:
    """RaymarchError for f64 on a device that has none."""
    if precision == "f64" and arch in SINGLE_ONLY:
        raise RaymarchError(
            f"precision f64 asked for but {arch} computes in f32 only; use --arch cpu, or --precision f32"
        )


def _begin(arch: str, precision: str | None, threads: int | None) -> Runtime:
    """Start Taichi, unless somebody else already started it: a second start would delete their fields."""
    global _owner, _state
    if engine.program() is not None:
        raise RaymarchError(
            f"{engine.TITLE} was started before raymarch, by ti.init, and runs once a process;"
            " call rm.start in place of ti.init"
        )
    require_precision(arch, precision)
    try:
        running = _init(_choose(arch), precision or "f32", threads)
    except BaseException:
        ti.reset()  # or what was begun would pass for another's at the next try
        raise
    _owner, _state = (os.getpid(), threading.current_thread()), engine.state()
    return running


def _init(arch: str, precision: str, threads: int | None) -> Runtime:
    _require_addresses()
    threads = cores() if threads is None else threads
    cache = cache_argument()
    # Taichi announces itself on stdout, which is for results.
    with (
        contextlib.redirect_stdout(io.StringIO()),
        _without_variables(*OWNED_VARIABLES, *((CACHE_VARIABLE,) if cache else ())),
        _vulkan_variable(),
    ):
        try:
            ti.init(
                arch=getattr(ti, arch),
                default_fp=ti.f64 if precision == "f64" else ti.f32,
                enable_fallback=False,
                offline_cache=True,
                # Else sums are taken in the order that suits the memory layout: other bits in each, and hardly faster.
                fast_math=arch != "cpu",
                log_level=ti.ERROR,
                unrolling_limit=0,  # channels are unrolled, up to 48 of them
                cpu_max_num_threads=threads,
                **({"cfg_optimization": False} if arch == "cpu" and engine.COMPILES_WITHOUT_FLOW else {}),
                **cache,
            )
        except (OSError, RuntimeError) as error:
            raise _start_error(arch, error) from error
    if not _spared:  # once: of a start that failed nothing stays
        compiler.spare_work(flow=arch == "cpu")
        _spared.append(arch)
    atexit.register(end)
    return Runtime(arch, precision, threads)


def _start_error(arch: str, error: OSError | RuntimeError) -> RaymarchError:
    """Taichi's message with a cure. The only file that Taichi needs is the working folder."""
    if isinstance(error, OSError):
        return RaymarchError(f"the working folder is gone or may not be entered ({one_line(error)}); change to another")
    cure = "give the process more memory" if arch == "cpu" else "use --arch cpu, or mend the driver"
    return RaymarchError(f"{engine.TITLE} cannot start on {arch} ({one_line(error)[:160]}); {cure}")


def end() -> None:
    """End Taichi's program, which is when it writes what it compiled to the cache.

    By itself it does so when its last object is garbage, which as Python ends some of them never are.
    """
    global _state
    ours, _state = engine.state() is _state, None  # who closes something after it does nothing wrong
    if ours and _owner == (os.getpid(), threading.current_thread()):
        ti.reset()


def stop() -> None:
    """End Taichi in a process that goes on, once all that raymarch had on the device is closed (`pool.forget` it then).

    What it compiled is written to the cache, and the next start is a new one, in whichever thread. RaymarchError from
    another thread than the one that started it.
    """
    global _running, _owner
    require_owner()
    end()
    atexit.unregister(end)
    _running = _owner = None


@contextlib.contextmanager
def _vulkan_variable() -> Iterator[None]:
    """Context in which Taichi takes the Vulkan device that was chosen, by its number."""
    before = os.environ.get(DEVICE_VARIABLE)
    if _vulkan is not None:
        os.environ[DEVICE_VARIABLE] = str(_vulkan.number)
    try:
        yield
    finally:
        if _vulkan is not None and before is None:
            del os.environ[DEVICE_VARIABLE]


@contextlib.contextmanager
def _without_variables(*names: str) -> Iterator[None]:
    """Context without these environment variables, which Taichi would prefer to its arguments."""
    kept = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def addresses_left() -> int | None:
    """Address space left [byte] under this process's limit (`ulimit -v`); None without a limit."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    return None if limit == resource.RLIM_INFINITY else max(limit - used, 0)


def _require_addresses() -> None:
    left = addresses_left()
    if left is not None and left < MIN_ADDRESS_SPACE:
        raise RaymarchError(
            f"{engine.TITLE} and its compiler reserve {MIN_ADDRESS_SPACE:,} bytes of addresses but {left:,} are left"
            " to this process; lift the limit (ulimit -v unlimited, or the batch job's on virtual memory)"
        )


def require_owner() -> None:
    """Thread check: RaymarchError outside the thread and process that started Taichi, or if it was restarted."""
    if _owner is not None and os.getpid() != _owner[0]:
        raise RaymarchError('called from a fork of the process that started raymarch; start processes by "spawn"')
    if _owner is not None and threading.current_thread() is not _owner[1]:
        alive = _owner[1].is_alive()
        cure = "; use that one" if alive else ", which has ended; start another process, and in it use one thread"
        raise RaymarchError(f"called from another thread than the one that started raymarch{cure}")
    _require_state()


def _require_state() -> None:
    if _state is not None and engine.state() is not _state:
        raise RaymarchError(
            f"{engine.TITLE} was started anew, by ti.init or ti.reset, and all that raymarch had on the device is gone;"
            " start another process, and in it call rm.start in place of ti.init"
        )


def started() -> Runtime | None:
    """The runtime as started; None before."""
    return _running


def single_precision() -> bool:
    """Precision of kernels: whether `float` means f32; kernels ask this as they compile."""
    return _running is None or _running.precision == "f32"


def dtype() -> type[np.floating]:
    """NumPy dtype of `float` in kernels."""
    return np.float32 if single_precision() else np.float64


def threads() -> int:
    """CPU threads that kernels run on; before the start, the default number."""
    return _running.threads if _running else cores()


def runs_on_cpu() -> bool:
    """Device of kernels: whether they run on the CPU; kernels ask this as they compile."""
    return _running is None or _running.arch == "cpu"


def device_bytes() -> tuple[int, int] | None:
    """Free and total memory [byte] of the device, where it has its own and tells; None where the machine's counts, as
    on the CPU."""
    if runs_on_cpu() or _running is None:
        return None
    if _running.arch == "cuda":
        return gpu_bytes()
    if _vulkan is None or _vulkan.kind == SOFTWARE:
        return None
    now = next((each for each in vulkan_devices() if each.number == _vulkan.number), _vulkan)
    return now.free, now.total


def max_tree_bytes() -> int | None:
    """Bytes that one tree of fields may have; None without a limit."""
    return _vulkan.widest if _vulkan is not None and _running is not None and _running.arch == "vulkan" else None


def _choose(arch: str) -> str:
    global _vulkan
    ti.set_logging_level(ti.ERROR)
    if arch == "vulkan":
        _vulkan = _choose_vulkan()
        return arch
    with contextlib.redirect_stdout(io.StringIO()):
        library = arch in ("auto", "cuda") and engine.has_cuda()  # Taichi looks for no more than that
        metal = arch == "metal" and engine.has_metal()
    if arch == "metal":
        if not metal:
            raise RaymarchError("Metal asked for but only a Mac has it; use --arch cpu, or auto")
        return arch
    cuda = library and has_gpu()
    if arch == "cuda" and not cuda:
        raise RaymarchError("CUDA asked for but no CUDA device was found; use --arch cpu, or mend the driver")
    return "cuda" if cuda else "cpu"


def _choose_vulkan() -> VulkanDevice:
    """The Vulkan device to take."""
    cure = "use --arch cpu, or install the device's driver for Vulkan"
    devices = vulkan_devices()
    if not devices:
        raise RaymarchError(f"Vulkan asked for but no Vulkan device was found; {cure}")
    chosen = chosen_device(devices)
    if chosen is None:
        numbers = " or ".join(str(each.number) for each in devices)
        given = os.environ[DEVICE_VARIABLE]
        raise RaymarchError(f"{DEVICE_VARIABLE} is {given}, want {numbers}; unset it, and the fastest is taken")
    if not chosen.doubles:
        raise RaymarchError(f"{chosen.name} has no numbers of 64 bits, which sums are made in; use --arch cpu")
    return chosen
