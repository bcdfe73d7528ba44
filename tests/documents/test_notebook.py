"""Law: every notebook is kept without outputs and runs from top to bottom."""

from __future__ import annotations

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
BY_TAICHI = {"02_draw_a_butterfly"}  # Taichi's own derivatives, which without its optimiser are not finite
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
source, folder, target = sys.argv[1:]
notebook = nbformat.read(source, as_version=4)
resources = {"metadata": {"path": folder}}
nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
nbformat.write(notebook, target)
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


@named(NOTEBOOKS)
def test_runs(path, root, tmp_path, monkeypatch, request):
    """With few steps and views, in a fresh kernel of this interpreter, without a display."""
    from ipykernel.kernelspec import write_kernel_spec

    write_kernel_spec(tmp_path / "kernels" / "python3")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    monkeypatch.setenv("RAYMARCH_NOTEBOOK_STEPS", STEPS.get(path.stem, "20"))
    monkeypatch.setenv("RAYMARCH_NOTEBOOK_RESOLUTION", "32")
    if path.stem in BY_TAICHI:
        request.getfixturevalue("optimised")
    else:
        monkeypatch.setenv("TI_OPT_LEVEL", "0")  # many kernels for few rays: they compile faster
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    few_views(root / "scenes", tmp_path / "scenes", every=8)
    target = tmp_path / "executed.ipynb"
    command = [sys.executable, "-c", EXECUTE, str(path), str(tmp_path), str(target)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr[-4000:]
    code = [cell for cell in nbformat.read(target, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    outputs = [output for cell in code for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= PICTURES[path.stem]
    warned = [output.text for output in outputs if output.get("name") == "stderr" and "Warning" in output.text]
    assert not warned
