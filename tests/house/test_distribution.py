"""Law: wheel and sdist have all that they should: data of the package is declared, what tests read is in the manifest,
and what is said of the version twice is said alike."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def patterns() -> list[str]:
    """Of files of the package that are not Python."""
    (listed,) = re.findall(r"(?ms)^\[tool\.setuptools\.package-data\]\nraymarch = \[(.*?)\]", PROJECT)
    return re.findall(r'"([^"]+)"', listed)


def test_data_of_the_package_is_declared():
    files = [file for file in (ROOT / "raymarch").rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    names = [file.relative_to(ROOT / "raymarch").as_posix() for file in files if file.suffix != ".py"]
    assert "py.typed" in names
    assert [name for name in names if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns())] == []


def test_a_folder_with_python_is_a_package():
    folders = {file.parent for file in (ROOT / "raymarch").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_sdist_has_what_a_clone_has():
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    grafted = set(re.findall(r"(?m)^graft (\S+)$", manifest))
    folders = {"tests", "docs", "scenes", "notebooks", "benchmarks", "examples"}
    assert grafted == folders and all((ROOT / folder).is_dir() for folder in folders)
    alone = re.findall(r"(?m)^include (.+)$", manifest)[0].split()
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE", ".ci/run"):
        assert (ROOT / name).is_file() and any(fnmatch.fnmatchcase(name, pattern) for pattern in alone)


def test_the_citation_is_of_this_version():
    version = re.search(r'(?m)^version = "(.+)"', PROJECT)[1]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"(?m)^version: (.+)$", citation)[1] == version
    assert re.search(r"(?m)^license: (.+)$", citation)[1] == re.search(r'(?m)^license = "(.+)"', PROJECT)[1]
