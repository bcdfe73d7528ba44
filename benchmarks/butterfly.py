"""The butterfly of notebooks/02 in full, what it prints and seconds: python benchmarks/butterfly.py.

The notebook itself fails where the error is not 20 times smaller than a blank canvas's and 3 times smaller than with
frozen coordinates.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "02_draw_a_butterfly.ipynb"


def main() -> None:
    os.environ.pop("RAYMARCH_NOTEBOOK_STEPS", None)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    begin = time.perf_counter()
    resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.get("name") == "stdout":
                print(output.text, end="")
    print(f"{time.perf_counter() - begin:.1f} s, starting the kernel and compiling included")


if __name__ == "__main__":
    main()
