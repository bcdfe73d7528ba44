"""Blocks of documents that run alone: each with names of its own, all in one process, as they want the same kernels."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).resolve().parents[1] / "docs"
DOCUMENTS = ("gradients", "modes", "transfer")
RUNNER = """
import json, os, runpy, sys, traceback
for path in sys.argv[1:]:
    os.chdir(os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
        error = ""
    except BaseException:
        error = traceback.format_exc()
    print("\\noutcome " + json.dumps(error), flush=True)
"""


def blocks_of(document: str) -> list[str]:
    """Python blocks of a document."""
    text = (DOCS / f"{document}.md").read_text(encoding="utf-8")
    return re.findall(r"(?ms)^```python\n(.*?)^```$", text)


@cache
def outcomes() -> dict[tuple[str, int], str]:
    """What went wrong with each block, "" if nothing did, by document and place."""
    of = [(name, k) for name in DOCUMENTS for k in range(len(blocks_of(name)))]
    with TemporaryDirectory(prefix="raymarch-") as root:
        paths = []
        for name, k in of:
            paths.append(Path(root) / f"{name}{k}" / "block.py")
            paths[-1].parent.mkdir()
            paths[-1].write_text(blocks_of(name)[k], encoding="utf-8")
        how = {"capture_output": True, "text": True, "timeout": 500, "check": False}
        done = subprocess.run([sys.executable, "-c", RUNNER, *map(str, paths)], cwd=root, **how)
    told = [json.loads(text) for text in re.findall(r"(?m)^outcome (.*)$", done.stdout)]
    ended = f"the process ended with {done.returncode}: {done.stderr[-4000:]}"
    return {one: ended if error is None else error for one, error in zip_longest(of, told)}
