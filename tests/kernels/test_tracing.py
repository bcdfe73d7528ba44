"""Law: that Taichi reads its functions' sources once changes no word of what it says of them."""

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
from raymarch.kernels.field import harmonics, occupancy
from raymarch.kernels.fit import losses
from raymarch.kernels.march import march
from raymarch.kernels.rays import camera

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
    lines = runtime._remembering(lambda function: (read.append(function), "x = 1")[1], lambda function: (function, 0))
    assert [lines(test_a_source_is_read_once) for _ in range(3)] == ["x = 1"] * 3
    assert read == [test_a_source_is_read_once]


def test_functions_of_one_text_are_two_places():
    """As a factory makes them: what is remembered of the one is not said of the other."""
    told = runtime._remembering(lambda context, node: context.said, runtime._place)
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
