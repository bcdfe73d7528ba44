"""Settings of the manual: `python -m sphinx -W -q docs build/manual`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

project = "raymarch"
author = "the raymarch developers"
copyright = "2026, the raymarch developers"
version = release = re.search(r'(?m)^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3

html_theme = "furo"
html_title = "raymarch"
html_copy_source = False
html_static_path, html_css_files = ["_static"], ["manual.css"]
html_theme_options = {"sidebar_hide_name": False}

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar = True

CODE = re.compile(r"(``?)(.+?)\1")


def as_rst(line: str) -> str:
    """A line of a docstring, whose only markup is code in backticks, as reStructuredText."""
    words, at = [], 0
    for code in CODE.finditer(line):
        words += [escaped(line[at : code.start()]), rf"``{code[2]}``\ "]
        at = code.end()
    return "".join([*words, escaped(line[at:])])


def escaped(text: str) -> str:
    """Text without the signs that reStructuredText would take for markup."""
    return re.sub(r"([*|`\\]|_\b)", r"\\\1", text)


def plain(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings as they are written here, made what Sphinx reads; examples are left alone."""
    if what in ("property", "attribute"):
        lines.insert(0, "")  # else napoleon takes what is before a colon for the type
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if example:
            lines[i] = line.replace("  # doctest: +SKIP", "").replace("  # doctest: +ELLIPSIS", "")
        else:
            lines[i] = as_rst(line)


def setup(app: object) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", plain, priority=400)  # before napoleon, which is at 500
    return {"parallel_read_safe": True}
