"""Law: what a GPU may do in another order has the gradient of the CPU, to the rounding of a sum."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu_adjoint.py"


@pytest.mark.whole
def test_every_switch_has_the_gradient_of_the_cpu():
    small = "--arch cpu --precision f64 --n 16 --rays 128 --repeats 1 --degrees 1 --sides 1 --json"
    done = subprocess.run([sys.executable, str(SCRIPT), *small.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len({row["row"]["switches"] for row in rows}) == len(rows) == 4
    for row in rows:
        assert max(row["d_density"], row["d_features"]) < 1e-12
        assert min(row[name] for name in ("march", "adjoint", "adam", "step")) > 0
    assert rows[1]["d_density"] > 0  # another order
