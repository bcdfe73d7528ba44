"""Engine: the compiler that kernels are written for, Taichi or Quadrants, which is a fork of it.

All of the package imports `ti` from here, and what it needs of the engine's own parts is named here, so that another
engine is one more branch of this file.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
from typing import TYPE_CHECKING, Any

from raymarch.errors import RaymarchError

ENGINE_VARIABLE = "RAYMARCH_ENGINE"
ENGINES = {"taichi": "Taichi", "quadrants": "Quadrants"}  # the first that is installed is taken


def _choose() -> str:
    """Name of the engine: what the variable says, else the first that is installed."""
    wanted = os.environ.get(ENGINE_VARIABLE, "")
    if wanted and wanted not in ENGINES:
        raise RaymarchError(f"{ENGINE_VARIABLE} is {wanted[:40]!r}; set it to {' or '.join(ENGINES)}, or unset it")
    for name in (wanted,) if wanted else ENGINES:
        if importlib.util.find_spec(name):
            return name
    here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if wanted:
        raise RaymarchError(f"{ENGINE_VARIABLE} is {wanted} but {wanted} is not installed: pip install {wanted}")
    raise RaymarchError(
        f"neither {' nor '.join(ENGINES)} is installed for {here}: pip install taichi for Python 3.10 to 3.13,"
        " pip install quadrants from 3.12 on and for Linux on ARM"
    )


NAME = _choose()
TITLE = ENGINES[NAME]
IS_TAICHI = NAME == "taichi"
VARIABLE_PREFIX = "TI_" if IS_TAICHI else "QD_"  # of the environment variables that the engine reads
COMPILES_WITHOUT_FLOW = not IS_TAICHI  # its `init` takes `cfg_optimization`; `runtime/compiler.py` does it for Taichi

if TYPE_CHECKING:
    import taichi as ti
    from taichi.lang import impl
    from taichi.lang.enums import AutodiffMode
    from taichi.lang.exception import TaichiCompilationError as CompilationError
    from taichi.lang.exception import TaichiSyntaxError as SyntaxFault
    from taichi.lang.exception import TaichiTypeError as TypingError
    from taichi.lang.expr import Expr
    from taichi.lang.field import ScalarField
    from taichi.lang.matrix import MatrixField
else:
    ti = importlib.import_module(NAME)
    impl = importlib.import_module(f"{NAME}.lang.impl")
    AutodiffMode = importlib.import_module(f"{NAME}.lang.enums" if IS_TAICHI else f"{NAME}.types.enums").AutodiffMode
    CompilationError, TypingError, SyntaxFault = (
        getattr(importlib.import_module(f"{NAME}.lang.exception"), f"{TITLE}{kind}Error")
        for kind in ("Compilation", "Type", "Syntax")
    )
    Expr = importlib.import_module(f"{NAME}.lang.expr").Expr
    ScalarField = importlib.import_module(f"{NAME}.lang.field").ScalarField
    MatrixField = importlib.import_module(f"{NAME}.lang.matrix").MatrixField

COMPILER_ERRORS = (CompilationError, TypingError, SyntaxFault)
__all__ = ["COMPILER_ERRORS", "CompilationError", "Expr", "MatrixField", "ScalarField", "ti"]


def state() -> Any:
    """State of the engine; `ti.init` and `ti.reset` make another."""
    return impl.get_runtime()


def program() -> Any:
    """Program of the engine, which holds what is on the device; None before `ti.init`."""
    return getattr(impl.get_runtime(), "prog" if IS_TAICHI else "_prog", None)


def recording_tape() -> Any:
    """Tape that is recording, of `ti.ad.Tape`; None if none is."""
    return impl.get_runtime().target_tape


def has_cuda() -> bool:
    """Whether the engine finds the library of CUDA's driver, which may be there without a device."""
    return bool(ti._lib.core.with_cuda())


def has_metal() -> bool:
    """Whether this is a Mac with Metal."""
    return bool(ti._lib.core.with_metal())


def destroy_tree(root: Any) -> None:
    """Free a tree of fields, by its root."""
    root.ptr.destroy_snode_tree(program())


def is_function(value: object) -> bool:
    """Whether a value is a `@ti.func`."""
    return bool(getattr(value, f"_is_{NAME}_function", False))


def kernel_class() -> Any:
    """Class of the engine's kernels, whose `materialize` makes one ready for its first launch."""
    kernels = importlib.import_module(f"{NAME}.lang.kernel_impl" if IS_TAICHI else f"{NAME}.lang.kernel")
    return kernels.Kernel


def made_of(kernel: Any) -> dict[Any, Any]:
    """What was made of a kernel, by the key of its arguments."""
    return kernel.compiled_kernels if IS_TAICHI else kernel.materialized_kernels  # type: ignore[no-any-return]


def makes_derivative(kernel: Any) -> bool:
    """Whether a kernel is a derivative that the engine makes of one."""
    return bool(kernel.autodiff_mode != AutodiffMode.NONE)
