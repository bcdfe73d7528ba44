"""Law: a test that is skipped without a listed reason fails the run that asks for it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from groups import TESTS
from skips import LISTED

PLANTED = {
    "module": 'import pytest\npytest.skip("no time", allow_module_level=True)\n',
    "test": 'import pytest\n@pytest.mark.skip(reason="no time")\ndef test_a(): pass\n',
    "fixture": 'import pytest\n@pytest.fixture\ndef f(): pytest.skip("no time")\ndef test_a(f): pass\n',
    "extra": "import pytest\nfrom skips import require_extra\npytestmark = pytest.mark.extra\n"
    'require_extra("no_such_module", "torch")\n',
    "extra_of_one": "import pytest\nfrom skips import require_extra\n@pytest.mark.extra\n"
    'def test_a(): require_extra("no_such_module", "torch")\n',
    "unmarked": 'from skips import require_extra\nrequire_extra("no_such_module", "torch")\n',
    "unmarked_one": 'from skips import require_extra\ndef test_a(): require_extra("no_such_module", "torch")\n',
    "listed": 'import pytest\ndef test_a(): pytest.skip("no CUDA device here")\n',
    "none": "",
}
FAILS = {
    "any": set(),
    "listed": {"module", "test", "fixture", "unmarked", "unmarked_one"},
    "none": {"module", "test", "fixture", "unmarked", "unmarked_one", "extra", "extra_of_one"},
}


def run(folder: Path, *how: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "skips", "-p", "no:cacheprovider", *how]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)


def plant(folder: Path, names) -> None:
    for name in names:
        (folder / f"test_{name}.py").write_text(PLANTED[name])
    (folder / "test_good.py").write_text("def test_good(): pass\n")


@pytest.mark.parametrize(
    ("allowed", "workers"),
    [("any", ()), ("listed", ()), ("none", ()), ("listed", ("-n", "2"))],
    ids=["any", "listed", "none", "listed-two workers"],
)
def test_planted_skips_are_found(allowed, workers, tmp_path):
    plant(tmp_path, PLANTED)
    done = run(tmp_path, *workers, "--skips", allowed)
    assert done.returncode == bool(FAILS[allowed]), done.stdout
    _, _, told = done.stdout.partition("not on the list")
    assert {name for name in PLANTED if f"test_{name}.py" in told.split("short test summary")[0]} == FAILS[allowed]


@pytest.mark.parametrize("allowed", ["listed", "none"])
def test_a_run_that_skips_what_it_may_passes(allowed, tmp_path):
    plant(tmp_path, set(PLANTED) - FAILS[allowed])
    assert run(tmp_path, "--skips", allowed).returncode == 0


def reasons() -> list[str]:
    """What the tests say where they skip, outside of the plants here and of `require_extra`."""
    calls = [
        node
        for file in TESTS.rglob("*.py")
        if file.name not in ("skips.py", "test_skips.py") and ".skip" in (text := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("skip", "skipif")
    ]
    said = [call.args[:1] if call.func.attr == "skip" else [k.value for k in call.keywords] for call in calls]
    texts = [node for nodes in said for node in nodes if isinstance(node, (ast.Constant, ast.JoinedStr))]
    return sorted({str(ast.literal_eval(t)) if isinstance(t, ast.Constant) else ast.unparse(t) for t in texts})


def test_every_reason_is_on_the_list():
    """A machine that has what is missing elsewhere would not tell that the reason is no longer there."""
    assert len(found := reasons()) > 3
    assert [reason for reason in found if not any(re.search(pattern, reason) for pattern in LISTED)] == []
