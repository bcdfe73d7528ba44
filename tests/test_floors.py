"""Law: imports point down the floors of the house, modules are short, and nothing happens on import."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "raymarch"
FLOORS = {
    0: ["errors", "checks", "arrays", "arguments", "runtime", "interrupt"],
    1: [
        "pose",
        "similarity",
        "camera",
        "rays",
        "samples",
        "tiles",
        "volume",
        "view",
        "parameters",
        "memory",
        "pool",
        "kernels",
        "grid_layout",
        "grid",
        "owner",
    ]
    + ["raybuffer", "raymotion", "imagestore", "dotgrid"],
    2: ["renderer", "optimiser", "losses", "tape", "hull", "io", "metrics", "settings", "report"]
    + ["projection", "linearised", "scene", "derivatives", "deposit", "tensors", "torch_bridge", "workload", "budget"]
    + ["krylov", "linear_model", "contents", "focus", "agreement"],
    3: ["fitter", "evaluation", "gradient_check", "check", "solve", "registration", "refinement", "bench", "estimate"],
    4: ["cli", "plot"],
    5: ["__init__", "__main__"],
}
FLOOR = {name: floor for floor, names in FLOORS.items() for name in names}
VALUES = ("pose", "camera", "rays", "samples", "volume", "view")
KERNELS_MAY_IMPORT = ("kernels", "runtime", "errors", "volume")


def name_of(path: Path) -> str:
    """Dotted name of a module without the package's."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def floor_of(name: str) -> int:
    return FLOOR[name.split(".")[0]]


def imported(name: str) -> set[str]:
    """Modules of the package that a module imports, anywhere in it; `__init__` for names of the package itself."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            candidates = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            candidates = [alias.name for alias in node.names]
        else:
            continue
        for dotted in candidates:
            if dotted.split(".")[0] == "raymarch":
                tail = dotted.split(".")[1:]
                known = [".".join(tail[:n]) for n in (2, 1) if ".".join(tail[:n]) in MODULES]
                found.add(known[0] if known else "__init__")
    return found - {name}


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name):
    assert name.split(".")[0] in FLOOR, f"{name} has no floor; put it into the table"
    above = {other for other in imported(name) if floor_of(other) > floor_of(name)}
    assert not above, f"{name} on floor {floor_of(name)} imports {above}"


def test_no_cycles():
    order = list(TopologicalSorter({name: imported(name) for name in MODULES}).static_order())
    assert set(order) == set(MODULES)


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("kernels")])
def test_kernels_know_only_kernels_and_constants(name):
    assert {other.split(".")[0] for other in imported(name)} <= set(KERNELS_MAY_IMPORT)


def external(name: str) -> set[str]:
    """Top-level names of all that a module imports."""
    nodes = list(ast.walk(ast.parse(MODULES[name].read_text())))
    froms = {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    return froms | {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}


@pytest.mark.parametrize("name", VALUES)
def test_values_know_only_numpy(name):
    assert external(name) <= set(sys.stdlib_module_names) | {"numpy", "raymarch"}
    assert {floor_of(other) for other in imported(name)} <= {0, 1}
    assert imported(name) <= {*VALUES, "errors", "checks", "arrays", "arguments"}


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_short(name):
    assert len(MODULES[name].read_text().splitlines()) <= 300


def test_only_the_runtime_starts_taichi():
    def starts(name):
        calls = [node.func for node in ast.walk(ast.parse(MODULES[name].read_text())) if isinstance(node, ast.Call)]
        return any(ast.unparse(call) in ("ti.init", "taichi.init", "ti.reset") for call in calls)

    assert [name for name in MODULES if starts(name)] == ["runtime"]


def test_nothing_happens_on_import():
    """Every module but the entry point is imported; nothing is printed, warned or started."""
    names = ", ".join("raymarch" + ("" if n == "__init__" else f".{n}") for n in MODULES if n != "__main__")
    code = f"import {names}\nfrom raymarch import runtime\nassert runtime._running is None"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
