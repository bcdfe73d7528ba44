"""Constraints that pin every dependency to the lower bound that pyproject.toml gives: python .ci/oldest.py > FILE.

For `pip install -c FILE`, so that a bound is a version that a test has run. PyTorch and what brings it have no row:
their builds of that age need a GPU driver or are gone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    sys.exit("oldest.py needs Python 3.11, whose standard library reads TOML")

EXTRAS = ("formats", "video", "viewer", "notebook", "cluster")
BOUND = re.compile(r"([A-Za-z0-9_.-]+)>=([0-9.]+)")

project = tomllib.loads(Path(__file__).resolve().parents[1].joinpath("pyproject.toml").read_text())["project"]
for row in project["dependencies"] + [row for name in EXTRAS for row in project["optional-dependencies"][name]]:
    name, bound = BOUND.match(row).groups()
    print(f"{name}=={bound}")
