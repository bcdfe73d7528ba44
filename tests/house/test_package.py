"""Laws of the package as a whole: light to import, documented, its examples true, bound to no machine."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from skips import require_extra

import raymarch

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("taichi", "h5py", "matplotlib", "torch", "nrrd", "nibabel", "mrcfile", "tifffile", "zarr", "pydicom")
HEAVY += ("trimesh", "skimage", "scipy")
DEPENDENCIES = {"taichi", "numpy", "h5py", "matplotlib", "pillow", "rich", "click"}
OPTIONAL = {
    "torch": {
        f"torch.{name}" for name in ("cameras", "functions", "march_session", "neural_volumes", "render", "tensors")
    }
    | {"ranks.torch_comm"},
    "mpi4py": {"ranks.mpi_comm"},
    "pycolmap": {"sfm.worker"},
    "av": {"io.videos.write_video"},
    "anywidget": {"viewer.notebook.notebook_view"},
    "distributed": {"tasks.executors", "tasks.worker"},
    "websockets": {"viewer.server.server", "viewer.server.server_process"},
    "nibabel": {"io.volumes.nifti"},
    "mrcfile": {"io.volumes.mrc"},
    "imagecodecs": {"io.volumes.openvdb.stream", "io.volumes.vtk"},
    "trimesh": {"io.meshes.mesh_file"},
    "tifffile": {"io.volumes.tiff", "io.volumes.picture_slices", "io.image_sets.channel_frames"},
    "zarr": {"io.volumes.zarr"},
    "pydicom": {f"io.volumes.dicom.{name}" for name in ("dicom", "series", "writing")},
}  # a library of an extra, and the modules that know it
PEERS = {"vtk": {"bench.frames"}}  # a program that ours is timed beside, and the modules that know it
EXAMPLES_OF_EXTRAS = {
    "raymarch.io.meshes.mesh_file": "trimesh",
    "raymarch.meshing.isosurface_mesh": "skimage",  # trimesh is its neighbour in the same extra
    "raymarch.viewer.view": "websockets",
}  # examples that cannot run without what an extra brings
PUT_OFF = {f"raymarch.{name}" for name in ("bench.speed", "gradients.check_process", "gradients.linearised")}
EXTRAS = ("torch", "notebook", "sfm", "video", "viewer", "formats", "cluster", "mpi", "quadrants")
TEXTS = {".py", ".md", ".toml", ".ipynb"}
# A home, a mount or a drive: what exists on one machine only.
OF_A_MACHINE = re.compile(r"(?<![\w.])/(?:work|home|root|Users|mnt|scratch)/\w|\b[A-Z]:\\\\?Users")


def modules() -> list[str]:
    walked = pkgutil.walk_packages(raymarch.__path__, "raymarch.")
    return sorted(module.name for module in walked if not module.name.endswith("__main__"))


def with_examples() -> list[str]:
    folder = Path(raymarch.__file__).parent.parent
    files = {name: folder.joinpath(*name.split(".")) for name in modules()}
    files = {name: file / "__init__.py" if file.is_dir() else file.with_suffix(".py") for name, file in files.items()}
    return [name for name, file in files.items() if ">>> " in file.read_text()]


def python(code: str, folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_imports_are_light_and_silent(tmp_path):
    """Nothing that takes long is imported before it is used, so that `raymarch --help` answers at once."""
    code = f"import sys, raymarch; loaded = set({HEAVY}) & set(sys.modules); assert not loaded, loaded\n"
    code += f"import raymarch.cli; loaded = set({HEAVY}) & set(sys.modules); assert not loaded, loaded"
    done = python(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_first_use_of_taichi_is_silent(tmp_path):
    done = python("import raymarch as rm; rm.start('cpu')", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_taichi_is_imported_where_warnings_are_errors_and_filters_come_and_go(tmp_path):
    """As pytest has them: those of a module that it collects are gone when its tests run."""
    code = """
import warnings
with warnings.catch_warnings():
    import raymarch as rm
warnings.simplefilter("error")
rm.start
"""
    done = python(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_public_name_is_there_and_documented():
    """By a docstring of its own, not the one that dataclass makes."""
    documented = {name: (getattr(raymarch, name).__doc__ or "").strip() for name in raymarch.__all__}
    assert [name for name, own in documented.items() if not own or own.startswith(f"{name}(")] == []


def test_public_names_are_listed():
    assert dir(raymarch) == raymarch.__all__
    assert len(set(raymarch.__all__)) == len(raymarch.__all__)


def test_the_package_tells_its_version():
    assert raymarch.__version__ == importlib.metadata.version("raymarch")


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = raymarch.nonsense


def test_there_are_examples():
    assert {
        "raymarch.geometry.camera",
        "raymarch.evaluation.metrics",
        "raymarch.rendering.renderer",
        "raymarch.fitting.settings.settings",
    } <= set(with_examples())


@pytest.fixture
def no_display(monkeypatch):
    """Figures without windows, closed afterwards."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    yield
    plt.close("all")


def examples() -> list:
    """The modules with examples, those that need an extra marked so; put off that which starts a process, and those
    whose kernels nothing else wants, all of whose calls have tests of their own.

    Last that which frees what kernels were compiled for: the others stand on it.
    """
    marks = dict.fromkeys(EXAMPLES_OF_EXTRAS, pytest.mark.extra)
    marks |= dict.fromkeys(PUT_OFF, pytest.mark.whole)
    names = sorted(with_examples(), key=lambda name: name == "raymarch.device.pool")
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]


@pytest.mark.parametrize("name", examples())
def test_examples_are_true(name, tmp_path, monkeypatch, no_display):
    monkeypatch.chdir(tmp_path)
    if name in EXAMPLES_OF_EXTRAS:
        require_extra(EXAMPLES_OF_EXTRAS[name], "formats")
    module = importlib.import_module(name)
    names = {"np": np, "Path": Path, **{public: getattr(raymarch, public) for public in raymarch.__all__}}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    for example in doctest.DocTestFinder().find(module, extraglobs={**names, **vars(module)}):
        runner.run(example, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def project_files() -> list[Path]:
    """The texts of the package, its tests, scenes, notebooks and documents."""
    folders = ["raymarch", "tests", "scenes", "docs", "notebooks", "benchmarks"]
    found = [file for folder in folders for file in sorted((ROOT / folder).rglob("*"))]
    texts = [file for file in [*found, *ROOT.glob("*.md"), *ROOT.glob("*.toml")] if file.suffix in TEXTS]
    return [file for file in texts if ".ipynb_checkpoints" not in file.parts]


def test_no_file_names_a_path_of_one_machine():
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in project_files()}
    assert len(texts) > 50
    assert {file: OF_A_MACHINE.findall(text) for file, text in texts.items() if OF_A_MACHINE.search(text)} == {}


@pytest.mark.parametrize("path", ["/wo" + "rk/main", "/ho" + "me/ann/x", "open('/ro" + "ot/x')", "C:\\Us" + "ers\\ann"])
def test_a_path_of_one_machine_is_noticed(path):
    assert OF_A_MACHINE.search(path)


def test_dependencies_are_the_seven_and_another_engine_where_taichi_has_no_wheel():
    """By text: tomllib came with Python 3.11."""
    text = (ROOT / "pyproject.toml").read_text()
    listed = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert sorted(re.findall(r'^    "([a-z0-9_-]+)', listed[1], re.MULTILINE)) == sorted([*DEPENDENCIES, "quadrants"])


def test_imports_are_of_the_dependencies():
    """Whatever the package imports is of Python, its own or declared."""
    known = {*sys.stdlib_module_names, "raymarch", "PIL", "mpl_toolkits", *DEPENDENCIES}
    importers: dict[str, set[str]] = {}
    for file in (ROOT / "raymarch").rglob("*.py"):
        module = ".".join(file.relative_to(ROOT / "raymarch").with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                importers.setdefault(str(node.module).split(".")[0], set()).add(module)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    importers.setdefault(alias.name.split(".")[0], set()).add(module)
    assert {name: files for name, files in importers.items() if name not in known} == OPTIONAL | PEERS


def test_what_is_optional_is_an_extra_that_no_test_run_needs():
    """By text; and the modules that know a library are imported where there is none."""
    text = (ROOT / "pyproject.toml").read_text()
    extras = dict(re.findall(r"^(\w+) = \[(.*)\]$", text, re.MULTILINE))
    assert [name for name in OPTIONAL if not any(f'"{name}' in extras[extra] for extra in EXTRAS)] == []
    assert [name for name in OPTIONAL if any(f'"{name}' in extras[other] for other in ("test", "dev"))] == []
    blocked = f"import sys; sys.modules.update(dict.fromkeys({list(OPTIONAL)})); "
    imports = "; ".join(f"import raymarch.{module}" for known in OPTIONAL.values() for module in sorted(known))
    subprocess.run([sys.executable, "-c", blocked + imports], check=True, timeout=60)


def test_a_missing_torch_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(raymarch.RaymarchError, match=r'PyTorch is not installed .* pip install "raymarch\[torch\]"'):
        raymarch.TorchMarch((4, 4, 4))


def test_installed_without_a_compiler():
    """Pure Python: no extension, no build step."""
    files = [file for file in (ROOT / "raymarch").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    client = [file for file in files if file.parent.name == "client"]
    assert {file.suffix for file in files if file not in client} == {".py", ".typed"}
    assert {file.suffix for file in client} <= {".js", ".css", ".html", ".txt"}
    assert not (ROOT / "setup.py").exists()
