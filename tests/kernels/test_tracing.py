"""Laws: that Taichi reads its functions' sources once, and words no place of ours unless there is an error, changes no
word of what it says of them; and only our own kernels are compiled without its analysis of flow."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from types import SimpleNamespace

import pytest

from raymarch import engine, runtime
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.kernels.field import harmonics, occupancy
from raymarch.kernels.fit import losses
from raymarch.kernels.integrator import march
from raymarch.kernels.rays import camera
from raymarch.runtime import compiler

if not engine.IS_TAICHI:
    pytest.skip("of Taichi's compiler alone", allow_module_level=True)

kernel_impl = importlib.import_module("taichi.lang.kernel_impl")
ast_transformer_utils = importlib.import_module("taichi.lang.ast.ast_transformer_utils")
TaichiCompilationError = engine.CompilationError
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


def unknown_name():
    x = 1.0
    while x < 2.0:
        x += nowhere  # noqa: F821
    return x


def wrong_shape():
    x = ti.Vector([1.0, 2.0])
    for i in range(3):
        if i > 1:
            x = ti.Vector([1.0, 2.0, 3.0])
    return x[0]


def python_of_its_own():
    x = ti.static(1 // 0)
    return x


def unsupported():
    x = 1.0
    try:
        x = 2.0
    except ValueError:
        x = 3.0
    return x


def unsupported_value():
    x = f"{1.0}"
    return x + 1


MISTAKES = (unknown_name, python_of_its_own, unsupported, unsupported_value)


def error_of(function, module, monkeypatch, in_kernel):
    """Error of a kernel that is, or calls, a function that says it is of `module`."""
    monkeypatch.setattr(function, "__module__", module)

    def calls():
        inner()

    inner = ti.func(function)
    with pytest.raises(TaichiCompilationError) as caught:
        ti.kernel(function if in_kernel else calls)()
    return type(caught.value), str(caught.value)


def test_what_is_wrong_in_a_function_of_ours_as_a_whole_names_the_function(monkeypatch):
    """Shapes are looked at after tracing, where only users' functions have a place for each expression."""
    ours = error_of(wrong_shape, "raymarch.kernels", monkeypatch, in_kernel=False)[1]
    assert "in wrong_shape:" in ours and "cannot assign" in ours
    theirs = error_of(wrong_shape, "elsewhere", monkeypatch, in_kernel=False)[1]
    assert "x = ti.Vector([1.0, 2.0, 3.0])" in theirs


@pytest.mark.parametrize("in_kernel", [True, False], ids=["kernel", "function"])
@pytest.mark.parametrize("function", MISTAKES, ids=lambda function: function.__name__)
def test_a_mistake_in_a_function_of_ours_is_shown_as_one_of_a_user(function, in_kernel, monkeypatch):
    ours = error_of(function, "raymarch.kernels", monkeypatch, in_kernel)
    theirs = error_of(function, "elsewhere", monkeypatch, in_kernel)
    assert ours[0] == theirs[0] and "test_tracing.py" in ours[1]
    assert "Traceback" in ours[1] or ours[1] == theirs[1]  # a traceback names the functions that it went through


def test_only_expressions_of_ours_go_without_their_place(monkeypatch):
    placed = []
    place = ast_transformer_utils.ASTTransformerContext.get_pos_info
    monkeypatch.setattr(
        ast_transformer_utils.ASTTransformerContext,
        "get_pos_info",
        lambda context, node: placed.append(type(node)) or place(context, node),
    )

    def add():
        x = 1.0
        x = x * 2.0 + 1.0

    counts = []
    for module in ("elsewhere", "raymarch.kernels"):
        monkeypatch.setattr(add, "__module__", module)
        ti.kernel(add)()
        counts.append(len(placed))
        placed.clear()
    assert counts[0] > 5 and counts[1] <= 3  # the function as a whole


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
