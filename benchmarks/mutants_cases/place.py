"""A copy of the project in which faults are planted, one at a time, and its tests are run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from mutants_cases.fault import Fault
from raymarch.errors import RaymarchError

CAUGHT, ACCEPTED, SURVIVED = "caught", "accepted", "survived"
COPIED = ("raymarch", "tests", "docs", "README.md", "pyproject.toml")
LINKED = ("benchmarks", "examples", "notebooks", "scenes")  # which no fault is in
LONGEST = 120.0  # seconds that a fault's tests may take; one that hangs is noticed too
PROOF = 1800.0  # seconds for all tests without any fault
CACHE = "TI_OFFLINE_CACHE_FILE_PATH"
PYTEST = ("-m", "pytest", "-q", "-x", "--tb=line", "-rfE", "--no-header", "-p", "no:cacheprovider", "--whole")


class Ruling(NamedTuple):
    """Whether a fault was noticed, by which test, and in how many seconds."""

    verdict: str
    by: str
    seconds: float


class Place:
    """The copy in a new folder; kernels are kept in a cache that all copies share, so that few are compiled."""

    def __init__(self, root: Path, folder: Path, patience: float = 1.0):
        self.folder, self.patience = folder, patience
        folder.mkdir(parents=True)
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(root / name, folder / name)
        for name in LINKED:
            (folder / name).symlink_to(root / name, target_is_directory=True)
        kept = os.environ.get(CACHE) or str(Path(tempfile.gettempdir()) / "raymarch-mutants")
        # Bytecode is told from its source by size and second: that of a fault would pass for that of the next.
        own = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", CACHE: kept}
        self.environment = {**os.environ, **own}

    def prove(self, tests: list[str]) -> None:
        """RaymarchError where a test fails, or is not there, without any fault."""
        code, said = self._run(tests, PROOF)
        if code:
            last = _first_failure(said) or (said.strip().splitlines() or ["no word"])[-1]
            raise RaymarchError(f"without any fault the tests fail: {last}; mend that first")

    def rule(self, fault: Fault) -> Ruling:
        """Plant the fault, run its tests, and take it out."""
        path, changed = fault.planted(self.folder / "raymarch")
        whole, began = path.read_bytes(), time.monotonic()
        path.write_text(changed, encoding="utf-8")
        try:
            code, said = self._run(list(fault.tests), LONGEST)
        finally:
            path.write_bytes(whole)
        seconds = round(time.monotonic() - began, 1)
        if code == 0:
            return Ruling(ACCEPTED if fault.accepted else SURVIVED, "", seconds)
        if code in (3, 4, 5):
            raise RaymarchError(f"{fault.name}: pytest ended with {code}: {said.strip().splitlines()[-1]}")
        return Ruling(CAUGHT, _first_failure(said) or f"the process ended with {code}", seconds)

    def _run(self, tests: list[str], longest: float) -> tuple[int, str]:
        """Status and output of pytest; of one that takes too long the status of a process that was stopped."""
        command = [sys.executable, *PYTEST, *tests]
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            # In a session of its own, so that what its tests have started ends with it.
            run = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=said, stderr=said, start_new_session=True
            )
            try:
                code = run.wait(longest * self.patience)
            except BaseException as error:
                os.killpg(run.pid, signal.SIGKILL)
                code = run.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
            said.seek(0)
            return code, said.read()


def _first_failure(said: str) -> str:
    found = re.search(
        r"^(?:FAILED|ERROR)\S*(?: not found:)? (?:\S*?tests/)?([\w./]+(?:::\w+(?:\[.*\])?)?)", said, re.MULTILINE
    )
    return found[1] if found else ""
