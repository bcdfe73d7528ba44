"""Laws: all of Taichi comes through one module; records are plain objects to an engine; every engine has one digest."""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from skips import require_extra

import raymarch
from raymarch import engine
from raymarch.engine.record import record, record_fields, replace
from raymarch.errors import RaymarchError

ROOT = Path(raymarch.__file__).parent.parent


@record(eq=False)
class Place:
    x: float
    y: float = 2.0

    @property
    def sum(self) -> float:
        return self.x + self.y


@record()
class Named(Place):
    name: str = "here"


def test_all_of_an_engine_comes_through_one_module():
    importers = set()
    for file in (ROOT / "raymarch").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if {name.split(".")[0] for name in names} & set(engine.ENGINES):
                importers.add(file.relative_to(ROOT / "raymarch").as_posix())
    # The compiler module spares Taichi work by its own parts, and nothing of it is run with another engine.
    assert importers == {"engine/__init__.py", "runtime/compiler.py"}


@pytest.mark.parametrize("kind", [Place, Named])
def test_a_record_is_no_dataclass_and_behaves_as_one(kind):
    made = kind(1.0, y=3.0)
    assert not dataclasses.is_dataclass(kind) and not dataclasses.is_dataclass(made)
    assert (made.x, made.y, made.sum) == (1.0, 3.0, 4.0) and "x=1.0, y=3.0" in repr(made)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.x = 5.0
    changed = replace(made, x=5.0)
    assert type(changed) is kind and (changed.x, changed.y, made.x) == (5.0, 3.0, 1.0)
    with pytest.raises(TypeError):
        replace(made, z=1.0)
    with pytest.raises(TypeError):
        dataclasses.replace(made, x=5.0)
    assert [each.name for each in record_fields(made)][:2] == ["x", "y"]
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made)):
        assert (again.x, again.y) == (1.0, 3.0)


def test_records_inherit_fields_and_are_equal_as_they_say():
    assert [each.name for each in record_fields(Named)] == ["x", "y", "name"]
    assert Named(1.0, name="a") == Named(1.0, name="a") and hash(Named(1.0)) == hash(Named(1.0))
    assert Place(1.0) != Place(1.0)


@pytest.mark.parametrize(
    ("variable", "installed", "wanted"),
    [
        ("", {"taichi", "quadrants"}, "taichi"),
        ("", {"quadrants"}, "quadrants"),
        ("quadrants", {"taichi", "quadrants"}, "quadrants"),
        ("taichi", {"taichi"}, "taichi"),
    ],
)
def test_the_engine_is_the_one_asked_for_or_the_first_installed(variable, installed, wanted, monkeypatch):
    monkeypatch.setenv(engine.ENGINE_VARIABLE, variable)
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: name in installed or None)
    assert engine._choose() == wanted


@pytest.mark.parametrize(
    ("variable", "installed", "said"),
    [
        ("numba", {"taichi"}, r"^RAYMARCH_ENGINE is 'numba'; set it to taichi or quadrants, or unset it$"),
        (
            "quadrants",
            {"taichi"},
            r"RAYMARCH_ENGINE is quadrants but quadrants is not installed: pip install quadrants$",
        ),
        (
            "",
            set(),
            r"^neither taichi nor quadrants is installed for Python 3.*: pip install taichi for Python 3.10 to",
        ),
    ],
)
def test_an_engine_that_is_not_there_is_one_line_with_its_cure(variable, installed, said, monkeypatch):
    monkeypatch.setenv(engine.ENGINE_VARIABLE, variable)
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: name in installed or None)
    with pytest.raises(RaymarchError, match=said):
        engine._choose()


def test_the_shell_says_so_in_one_line():
    command = [sys.executable, "-m", "raymarch", "bench", "march"]
    environment = {**os.environ, "RAYMARCH_ENGINE": "numba"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode and "Traceback" not in done.stderr
    assert "RAYMARCH_ENGINE is 'numba'; set it to taichi or quadrants" in done.stderr


@pytest.mark.extra
def test_every_engine_has_the_same_image_gradient_modes_and_fit():
    require_extra("quadrants", "quadrants", load=False)
    found = {}
    for name in engine.ENGINES:
        command = [sys.executable, str(ROOT / "benchmarks" / "engines.py"), "--one", "--quick"]
        environment = {**os.environ, "RAYMARCH_ENGINE": name, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found[name] = json.loads(done.stdout.strip().splitlines()[-1])
    assert {row["engine"] for row in found.values()} == set(engine.ENGINES)
    assert found["taichi"]["digests"] == found["quadrants"]["digests"] and len(found["taichi"]["digests"]) > 8
