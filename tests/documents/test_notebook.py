"""Law: every notebook is kept without outputs and runs from top to bottom."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from sets import few_views

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
STEPS = {  # of the others 20
    "02_draw_a_butterfly": "100",  # from which on it proves its two ratios
    "03_your_own_photographs": "26",  # from 25 on exposures are fitted
    "07_gradients_and_gauss_newton": "8",
}
PICTURES = {  # at least
    "01_fit_and_render": 8,
    "02_draw_a_butterfly": 5,
    "03_your_own_photographs": 7,
    "04_inside_a_ct": 7,
    "05_find_a_camera_and_a_lens": 4,
    "06_write_your_own_loss_mode_and_regulariser": 4,
    "07_gradients_and_gauss_newton": 6,
}
# In a process of its own: a notebook's kernel wants no settings of this one's, and what the kernel's client warns of
# is not this project's.
EXECUTE = """
import sys, nbformat, nbclient
source, folder = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
resources = {"metadata": {"path": folder}}
nbclient.NotebookClient(
    notebook, timeout=300, kernel_name="python3", resources=resources, allow_errors=True
).execute()
nbformat.write(notebook, source)
"""


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=[path.stem for path in paths])


def test_there_are_notebooks():
    assert NOTEBOOKS


@named(NOTEBOOKS)
def test_kept_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs"), cell.source
        assert cell.get("execution_count") is None, cell.source
        assert not cell.metadata, cell.source


def executed(path, root, folder) -> list:
    """Cells of a notebook, run with few steps and views in a fresh kernel of this interpreter, without a display."""
    from ipykernel.kernelspec import write_kernel_spec

    write_kernel_spec(folder / "kernels" / "python3")
    few_views(root / "scenes", folder / "scenes", every=8)
    notebook = nbformat.read(path, as_version=4)
    nbformat.write(notebook, folder / path.name)
    env = {name: value for name, value in os.environ.items() if name not in ("MPLBACKEND", "DISPLAY")}
    env |= {"JUPYTER_PATH": str(folder), "RAYMARCH_NOTEBOOK_RESOLUTION": "32"}
    env["RAYMARCH_NOTEBOOK_STEPS"] = STEPS.get(path.stem, "20")
    command = [sys.executable, "-c", EXECUTE, str(folder / path.name), str(folder)]
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr[-4000:]
    return nbformat.read(folder / path.name, as_version=4).cells


@pytest.mark.whole
@named(NOTEBOOKS)
def test_runs(path, root, tmp_path):
    code = [cell for cell in executed(path, root, tmp_path) if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    outputs = [output for cell in code for output in cell.outputs]
    assert ["\n".join(output.traceback) for output in outputs if output.output_type == "error"] == []
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= PICTURES[path.stem]
    warned = [output.text for output in outputs if output.get("name") == "stderr" and "Warning" in output.text]
    assert not warned
