"""Laws of the manual: every page is listed, links lead somewhere, the reference has each public name once, commands are
real ones, and Sphinx builds it without a warning."""

from __future__ import annotations

import fnmatch
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from skips import require_extra

import raymarch
from raymarch.cli import cli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BESIDE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
TREE = re.compile(r"(?ms)^```\{toctree\}\n(.*?)^```$")
SHELL = re.compile(r"(?ms)^ *```bash\n(.*?)^ *```$")
NAMED = re.compile(r"(?m)^\.\. auto(?:class|function|exception):: raymarch\.([\w.]+)$")
MOST = 3_000_000  # bytes of pictures


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_code(text: str) -> str:
    return re.sub(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`", "", text)


def listed() -> list[str]:
    """What the first page's lists name, a page or a pattern each."""
    lines = [line for tree in TREE.findall(text_of(DOCS / "index.md")) for line in tree.splitlines()]
    entries = [line.strip() for line in lines if line.strip() and not line.startswith(":")]
    return [re.sub(r".*<(.+)>", r"\1", entry) for entry in entries]


def anchors(page: Path) -> set[str]:
    """Headings as a code host and MyST make anchors of them; of a page that is another's text, that one's."""
    text = text_of(page)
    if included := re.match(r"```\{include\} (\S+)", text):
        text = text_of(page.parent / included[1])
    headings = re.findall(r"(?m)^#{1,3} (.+)$", re.sub(r"(?ms)^```.*?^```$", "", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_listed_once():
    pages = [page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES]
    entries = listed()
    found = {page: sum(fnmatch.fnmatchcase(page, entry) for entry in entries) for page in pages if page != "index"}
    assert {page: count for page, count in found.items() if count != 1} == {}
    assert [entry for entry in entries if not fnmatch.filter(pages, entry)] == []


def lost_links(page: Path) -> list[str]:
    """Links of a page to what is not there or, from the site, outside of it."""
    lost = []
    for target in LINK.findall(without_code(text_of(page))):
        path, _, anchor = target.partition("#")
        if re.match(r"\w+:", target):
            continue
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append(target)
        elif page.is_relative_to(DOCS) and not file.resolve().is_relative_to(DOCS):
            lost.append(f"{target} is not in the site")
    return lost


def test_every_link_leads_somewhere():
    lost = {page.relative_to(ROOT).as_posix(): lost_links(page) for page in [*PAGES, *BESIDE]}
    assert {page: links for page, links in lost.items() if links} == {}


def test_the_reference_has_every_public_name_once():
    """A new one is two lines on a page of docs/api."""
    names = [name for page in (DOCS / "api").glob("*.md") for name in NAMED.findall(text_of(page))]
    public = {name for name in raymarch.__all__ if name != "plot"} | {f"plot.{name}" for name in raymarch.plot.__all__}
    assert (public - set(names), set(names) - public) == (set(), set())
    assert len(names) == len(set(names))


def commands(page: Path) -> list[list[str]]:
    """The words of each `raymarch` command of a page's shell blocks."""
    lines = "\n".join(SHELL.findall(text_of(page))).replace("\\\n", " ").splitlines()
    parts = [part.strip() for line in lines for part in line.split("&&")]
    return [shlex.split(part)[1:] for part in parts if re.match(r"(\.venv/bin/)?raymarch ", part)]


def test_commands_are_ones_that_there_are():
    for page in [*PAGES, *BESIDE]:
        for verb, *words in commands(page):
            command = cli.commands[verb]
            known = {option for each in command.params for option in [*each.opts, *each.secondary_opts]}
            assert {word for word in words if word.startswith("--")} <= known, (page, verb)
            command.make_parser(click.Context(command)).parse_args(list(words))


def test_every_extra_is_in_the_table():
    table = text_of(DOCS / "what-there-is.md").partition("## Extras")[2]
    (extras,) = re.findall(r"(?ms)^\[project\.optional-dependencies\]\n(.*?)^\[", text_of(ROOT / "pyproject.toml"))
    assert set(re.findall(r"(?m)^\| `(\w+)` \|", table)) == set(re.findall(r"(?m)^(\w+) = ", extras)) - {"test", "dev"}


def test_the_readme_is_short_and_points_here():
    text = text_of(ROOT / "README.md")
    assert len(text.splitlines()) < 120 and "(docs/index.md)" in text


def test_the_gallery_shows_each_picture_beside_what_made_it():
    sections = re.split(r"(?m)^## ", text_of(DOCS / "gallery.md"))[1:]
    shown = [re.findall(r"\]\(gallery/([^)]+)\)", section) for section in sections]
    assert all(len(pictures) == 1 and "\n```" in section for pictures, section in zip(shown, sections, strict=True))
    kept = {file.relative_to(DOCS / "gallery").as_posix(): file for file in (DOCS / "gallery").rglob("*.*")}
    assert sorted(kept) == sorted(name for pictures in shown for name in pictures)
    assert sum(file.stat().st_size for file in kept.values()) < MOST
    for (name,), section in zip(shown, sections, strict=True):
        code = "".join(re.findall(r"(?ms)^```\w+\n(.*?)^```$", section))
        assert name in code or f"--out {Path(name).parent.as_posix()}\n" in code


@pytest.mark.whole
def test_what_pages_of_tasks_show_runs(tmp_path):
    blocks = [
        block
        for page in ("run-on-my-gpu", "look-into-my-ct", "reconstruct")
        for block in re.findall(r"(?ms)^```python\n(.*?)^```$", text_of(DOCS / f"{page}.md"))
    ]
    assert len(blocks) == 5 and all("assert " in block for block in blocks)
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.extra
def test_the_first_page_leads_to_a_picture_of_ones_own_scan(tmp_path):
    nrrd = require_extra("nrrd", "formats")
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, 20)] * 3, indexing="ij"), -1)
    values = (1000 * np.exp(-4 * (x**2).sum(-1))).astype(np.int16)
    nrrd.write(str(tmp_path / "head.nrrd"), values, {"space": "LPS", "space directions": np.diag([2.0, 2.0, 3.0])})
    (words,) = [words for words in commands(DOCS / "index.md") if words[:2] == ["render", "head.nrrd"]]
    command = [sys.executable, "-m", "raymarch", *words, "--size", "64"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert len(list((tmp_path / "head").glob("*.png"))) == 8 and "--table" in done.stderr


@pytest.mark.extra
def test_it_builds_without_a_warning(tmp_path):
    for library in ("sphinx", "myst_parser", "furo"):
        require_extra(library, "docs")
    to = [str(tmp_path / "manual"), "-d", str(tmp_path / "doctrees")]
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(DOCS), *to]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    for name in ("index", "gallery", "api/volumes", "contributing"):
        page = (tmp_path / "manual" / f"{name}.html").read_text(encoding="utf-8")
        assert len(page) > 10_000
        assert re.findall(r'(?:src|href)="(?:https?:)?//[^"]+\.(?:js|css)', page) == []  # all of it is in the site
