"""Law: imports point down the rooms that docs/design.md lists, without a circle, and nothing happens on import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import raymarch

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "raymarch"
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.read_text() or path.parent == PACKAGE
}
LISTED = re.search(r"<!-- rooms -->\n+```\n(.*?)```", (ROOT / "docs" / "design.md").read_text(), re.S)[1].splitlines()
ROOMS = [line.split()[0].strip("/").removesuffix(".py").replace("/", ".") for line in reversed(LISTED)]
ENTRANCES = ("__init__", "__main__")  # they hand on what is public, and see all rooms
VALUES = ("geometry", "views", "volumes", "solvers")


def room_of(name: str) -> str:
    """The room a module lies in, folders of the room included; one that lies in none is a room of its own."""
    folder = name.rpartition(".")[0]
    while folder and folder not in ROOMS:
        folder = folder.rpartition(".")[0]
    return folder or (name.split(".")[0] if "." in name else name)


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
                tries = [".".join(tail[:n]) for n in range(len(tail), 0, -1)]
                known = [m for t in tries for m in (t, f"{t}.__init__") if m in MODULES]
                found.add(known[0] if known else "__init__")
    return found - {name}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Modules that each imports."""
    return {name: imported(name) for name in MODULES}


def test_every_room_is_listed_and_every_listed_room_is_there():
    assert {room_of(name) for name in MODULES} == {*ROOMS, *ENTRANCES}
    assert len(ROOMS) == len(set(ROOMS))


def test_imports_point_down(imports):
    floor = {name: ROOMS.index(room_of(name)) for name in MODULES if name not in ENTRANCES}
    upward = [
        f"{name} imports {other}"
        for name in floor
        for other in imports[name]
        if other in ENTRANCES or floor[other] > floor[name]
    ]
    assert upward == []


def test_no_cycles(imports):
    assert set(TopologicalSorter(imports).static_order()) == set(MODULES)


def test_kernels_know_only_kernels_and_constants(imports):
    known = {"kernels", "runtime", "engine", "errors", "volumes", "views"}
    kernels = [name for name in MODULES if name.startswith("kernels.")]
    assert [name for name in kernels if not {other.split(".")[0] for other in imports[name]} <= known] == []


WHERE_USED = {"volumes.transfer_function": {"matplotlib"}}  # for the colour maps it knows by name


def test_values_know_only_numpy(imports):
    rooms = {*VALUES, "arguments", "errors", "html", "system"}
    for name in [name for name in MODULES if room_of(name) in VALUES]:
        nodes = list(ast.walk(ast.parse(MODULES[name].read_text())))
        froms = {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
        others = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        libraries = set(sys.stdlib_module_names) | {"numpy", "raymarch"} | WHERE_USED.get(name, set())
        assert froms | others <= libraries, name
        assert {room_of(other) for other in imports[name]} <= rooms, name


def test_no_room_bears_a_public_name():
    """Importing `raymarch.render.x` would replace `raymarch.render`."""
    folders = {room.split(".")[0] for room in ROOMS} | {name for name in MODULES if "." not in name}
    assert folders & set(raymarch.__all__) <= {"plot"}


def test_the_two_lists_of_public_names_agree():
    tree = ast.parse(MODULES["__init__"].read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    typed = {
        alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert typed == {name: f"raymarch.{module}" for name, module in raymarch._MODULE_OF.items()}


def test_only_the_runtime_starts_taichi():
    def starts(name):
        text = MODULES[name].read_text()
        if "init(" not in text and "reset(" not in text:
            return False
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        return any(ast.unparse(call) in ("ti.init", "taichi.init", "ti.reset") for call in calls)

    assert [name for name in MODULES if starts(name)] == ["runtime.__init__"]


def test_nothing_happens_on_import():
    """Every module but the entry point is imported; nothing is printed, warned or started."""
    found = {f"raymarch.{name}".removesuffix(".__init__") for name in MODULES if name != "__main__"}
    code = f"import {', '.join(sorted(found))}\nfrom raymarch import runtime\nassert runtime._running is None"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
