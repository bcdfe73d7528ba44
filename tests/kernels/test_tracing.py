"""Laws: that Taichi reads its functions' sources once changes no word of what it says of them; and only our own
kernels are compiled without its analysis of flow."""

from __future__ import annotations

import ast
import importlib.util
from types import SimpleNamespace

import pytest
import taichi as ti
from taichi.lang import kernel_impl
from taichi.lang.ast import ast_transformer_utils
from taichi.lang.exception import TaichiCompilationError

from raymarch import runtime
from raymarch.device.ray_buffer import RayBuffer
from raymarch.kernels.field import harmonics, occupancy
from raymarch.kernels.fit import losses
from raymarch.kernels.integrator import march
from raymarch.kernels.rays import camera
from raymarch.runtime import compiler

MODULES = (march, losses, harmonics, occupancy, camera)


def functions(module) -> list:
    """Taichi's own functions of a module, as it keeps them."""
    kept = [getattr(each, "__closure__", None) or () for each in vars(module).values()]
    cells = [cell.cell_contents for closure in kept for cell in closure]
    return [each for each in cells if isinstance(each, (kernel_impl.Func, kernel_impl.Kernel))]


@pytest.fixture(scope="module")
def untouched():
    """Taichi's own wording of a place, of a copy of its module."""
    spec = importlib.util.find_spec(ast_transformer_utils.__name__)
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy.ASTTransformerContext.get_pos_info


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_place_is_worded_as_by_taichi(module, untouched):
    remembered = ast_transformer_utils.ASTTransformerContext.get_pos_info
    assert "remembered" in remembered.__qualname__
    several = 0
    for function in functions(module):
        for _ in range(2):
            tree, context = kernel_impl._get_tree_and_ctx(function, is_kernel=False)
            for node in ast.walk(tree):
                if isinstance(node, (ast.stmt, ast.expr)):
                    assert remembered(context, node) == untouched(context, node)
                    several += node.lineno != node.end_lineno
    assert several > 2


def test_a_source_is_read_once():
    read = []
    lines = compiler._memoise(lambda function: (read.append(function), "x = 1")[1], lambda function: (function, 0))
    assert [lines(test_a_source_is_read_once) for _ in range(3)] == ["x = 1"] * 3
    assert read == [test_a_source_is_read_once]


def test_functions_of_one_text_are_two_places():
    """As a factory makes them: what is remembered of the one is not said of the other."""
    told = compiler._memoise(lambda context, node: context.said, compiler._place)
    contexts = [SimpleNamespace(func=SimpleNamespace(func=made()), said=said) for said in "ab"]
    node = ast.parse("x").body[0].value
    assert [told(context, node) for context in contexts * 2] == ["a", "b", "a", "b"]


def made():
    def same():
        return 1

    return same


def test_a_mistake_in_a_kernel_is_shown_where_it_is():
    @ti.kernel
    def mistaken():
        print(nowhere)  # noqa: F821

    with pytest.raises(TaichiCompilationError, match=r'test_tracing.py", line \d+, in mistaken:\n +print\(nowhere\)'):
        mistaken()


class Program:
    """Taichi's program, as far as it compiles: it notes by which settings."""

    def __init__(self, fails=()):
        self.settings, self.compiled, self.fails = (
            SimpleNamespace(cfg_optimization=True, advanced_optimization=True),
            [],
            fails,
        )

    def config(self):
        return self.settings

    def get_device_caps(self):
        return None

    def compile_kernel(self, config, caps, kernel):
        self.compiled.append((kernel, config.cfg_optimization))
        if kernel in self.fails:
            raise RuntimeError(kernel)


def test_flow_is_left_out_of_one_kernel_alone():
    program = Program(fails=("broken",))
    for kernel in ("sound", "broken"):
        compiler._compile_without_flow(program, kernel)
        assert program.settings.cfg_optimization and program.settings.advanced_optimization
    assert program.compiled == [("sound", False), ("broken", False)]


def test_users_kernels_and_derivatives_are_no_kernels_of_ours():
    @ti.kernel
    def theirs():
        pass

    assert compiler._is_ours(march.march._primal)
    assert not compiler._is_ours(march.march._adjoint)
    assert not compiler._is_ours(theirs._primal)


def test_a_kernel_of_ours_is_compiled_so_once_on_a_cpu_and_never_on_a_gpu(monkeypatch):
    compiled = []
    monkeypatch.setattr(compiler, "_compile_without_flow", lambda program, kernel: compiled.append(kernel))
    monkeypatch.setattr(losses.colour_error._primal, "compiled_kernels", {})
    with RayBuffer(4) as buffer:
        for _ in range(2):
            losses.colour_error(buffer.fields, 4, 1, ti.Vector([0.0, 0.0, 0.0]))
    ours = [*losses.colour_error._primal.compiled_kernels.values()]
    assert len(ours) == 1 and compiled == (ours if runtime.runs_on_cpu() else [])


def test_seconds_of_compiling_are_counted_once_a_kernel():
    @ti.kernel
    def theirs():
        pass

    before = compiler.seconds_compiling()
    theirs()
    first = compiler.seconds_compiling()
    assert first > before
    theirs()
    assert compiler.seconds_compiling() == first
