"""Taichi's compiler: measures its time, and spares it rereading sources and an analysis that LLVM repeats."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import time
import traceback
from collections.abc import Callable
from textwrap import TextWrapper
from typing import Any
from weakref import WeakKeyDictionary

from raymarch import engine

QUICK_VARIABLE = "RAYMARCH_QUICK_COMPILE"
_compile_seconds = [0.0]
_traces_ours = [False]  # whether the kernel that is traced just now is of this package


def seconds_compiling() -> float:
    """Seconds that this process has spent on making kernels ready, by tracing, compiling or reading them from the disk.

    On a GPU without what its driver does at a kernel's first launch.

    Example:
        >>> seconds_compiling() >= 0
        True
    """
    return _compile_seconds[0]


def spare_work(flow: bool) -> None:
    """Spare Taichi's compiler work that changes nothing for users: reading sources again and, by `flow`, the analysis
    of the flow of control in our own kernels."""
    with contextlib.suppress(ImportError, AttributeError):  # where the engine has moved what this stands on
        if engine.IS_TAICHI:
            _read_sources_once()
            _word_no_places()
        else:
            _follow_no_attributes()
        _watch_compiling(flow and engine.IS_TAICHI)


def _watch_compiling(flow: bool) -> None:
    """Count the seconds of each new kernel; by `flow`, have Taichi compile ours without its own pass over the flow of
    control, which forwards stores to loads.

    That pass took half of what compiling took, and LLVM does the same again in a tenth of that: kernels run as fast,
    with the same bits. Kernels of a user's own and derivatives that Taichi makes are compiled as ever.
    """
    Kernel = engine.kernel_class()
    trace = Kernel.materialize

    def traced(kernel: Any, key: Any = None, *rest: Any, **named: Any) -> None:
        if key is None or key in engine.made_of(kernel):
            trace(kernel, key, *rest, **named)
            return
        began, _traces_ours[0] = time.perf_counter(), kernel.func.__module__.startswith("raymarch.")
        try:
            trace(kernel, key, *rest, **named)
            if flow and _is_ours(kernel):
                _compile_without_flow(engine.program(), kernel.compiled_kernels[key])
        finally:
            _traces_ours[0] = False
            _compile_seconds[0] += time.perf_counter() - began

    Kernel.materialize = traced


def _compile_without_flow(program: Any, kernel: Any) -> None:
    """Compile a kernel before its first launch; all other kernels compile as before.

    With the environment variable `RAYMARCH_QUICK_COMPILE` also without Taichi's own simplification, a third faster.
    Kernels have the same bits then, and some are slower by a fifth: for tests, which run each a few times.
    """
    config = program.config()
    before = config.cfg_optimization, config.advanced_optimization
    config.cfg_optimization, config.advanced_optimization = False, QUICK_VARIABLE not in os.environ
    with contextlib.suppress(Exception):  # of any kind: the launch fails in the same way, and words it
        program.compile_kernel(config, program.get_device_caps(), kernel)
    config.cfg_optimization, config.advanced_optimization = before


def _is_ours(kernel: Any) -> bool:
    """Whether a kernel is of this package, and no derivative that Taichi makes of one."""
    return kernel.func.__module__.startswith("raymarch.") and not engine.makes_derivative(kernel)


def _follow_no_attributes() -> None:
    """Have Quadrants not follow attributes of arguments from function to function in kernels of this package.

    It looks for arrays inside of objects, which ours have none of. Where a function calls itself with a part of its own
    argument, as a march does with the integrand that looks ahead, it would follow them for ever (Quadrants 1.3, 1.4).
    """
    pruning = importlib.import_module(f"{engine.NAME}.lang._pruning").Pruning
    follow = pruning._propagate_chain_paths
    pruning._propagate_chain_paths = staticmethod(lambda *given: None if _traces_ours[0] else follow(*given))


def _read_sources_once() -> None:
    """Have Taichi remember the source of its functions and the places in it; kernels and messages stay as they are.

    Taichi 1.7 reads a function anew wherever a kernel calls it, and words the place of every expression in case an
    error shows it: two fifths of what tracing takes, in every process, with its kernels on the disk or not.
    """
    from taichi.lang import kernel_impl
    from taichi.lang.ast import ast_transformer_utils as tracing

    kernel_impl.getsourcelines = _memoise(kernel_impl.getsourcelines, lambda function: (function, None))
    kernel_impl.getsourcefile = _memoise(kernel_impl.getsourcefile, lambda function: (function, None))
    tracing.ASTTransformerContext.get_pos_info = _memoise(tracing.ASTTransformerContext.get_pos_info, _place)
    tracing.TextWrapper = ShortWrapper


def _word_no_places() -> None:
    """Have Taichi trace functions of this package without a word on the place of each of their expressions.

    It notes the place for messages of its compiler, which has nothing to say of functions that are tested: a third of
    what tracing takes. Errors found while tracing name their place as before, and functions of users are traced as
    before, so that all their errors do.
    """
    from taichi.lang import impl
    from taichi.lang.ast.ast_transformer import ASTTransformer
    from taichi.lang.ast.ast_transformer_utils import Builder
    from taichi.lang.exception import TaichiCompilationError, handle_exception_from_cpp

    with_place, builders = Builder.__call__, dict[type, Callable[..., Any] | None]()

    def without_place(self: Any, context: Any, node: Any) -> Any:
        kind = type(node)
        if kind is ast.FunctionDef:  # as a whole its place is noted
            context.is_ours = _is_function_of_ours(context) and type(self) is ASTTransformer
        if kind not in builders:
            builders[kind] = getattr(ASTTransformer, f"build_{kind.__name__}", None)
        build = builders[kind]
        if build is None or kind is ast.FunctionDef or not getattr(context, "is_ours", False):
            return with_place(self, context, node)
        try:
            return build(context, node)
        except Exception as error:
            if impl.get_runtime().print_full_traceback or context.raised or not isinstance(node, (ast.stmt, ast.expr)):
                raise
            context.raised = True
            known, place = handle_exception_from_cpp(error), context.get_pos_info(node)
            if isinstance(known, TaichiCompilationError):
                raise type(known)(f"{place}{known}") from None
            raise TaichiCompilationError(f"{place}{traceback.format_exc()}") from None

    Builder.__call__ = without_place


def _is_function_of_ours(context: Any) -> bool:
    """Whether what is traced is a function of this package."""
    function = getattr(context.func, "func", None)
    return function is not None and function.__module__.startswith("raymarch.")


class ShortWrapper(TextWrapper):
    """Python's text wrapper with a fast path for text that fits on one line, as nearly all lines of kernels do."""

    def wrap(self, text: str) -> list[str]:
        """Lines of the text, as Python's own wrapper makes them."""
        line = self._munge_whitespace(text).rstrip(" ")
        return ([line] if line else []) if len(line) <= self.width else super().wrap(text)


def _place(context: Any, node: Any) -> tuple[object, tuple]:
    at = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
    return context.func.func, (type(node), *at)


def _memoise(work: Callable[..., Any], of: Callable[..., tuple[object, object]]) -> Callable[..., Any]:
    """Memoise `work` by function and by the key `of` its arguments, for as long as the function lives."""
    known: WeakKeyDictionary[object, dict[object, Any]] = WeakKeyDictionary()

    def remembered(*arguments: Any) -> Any:
        function, key = of(*arguments)
        results = known.setdefault(function, {})
        if key not in results:
            results[key] = work(*arguments)
        return results[key]

    return remembered
