"""Whether tests may be skipped: `pytest --skips any|listed|none`, where `listed` and `none` fail a run that skips.

`any`: who has not all that is optional still gets a green run, and reads what was left out.
`listed`: only what needs an extra, and what `LISTED` gives a reason for. `none`: only what is in `LISTED`. What needs
an extra has to be marked so: the run that has the extras takes what is marked, and no other would ever run it.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

LISTED = {
    r"CUDA is here": "what a machine without a GPU says is tried on such machines only",
    r"a GPU adds up in any order": "under --arch cuda; everywhere else these run",
    r"no f64 on that device": "under --arch vulkan and metal; everywhere else these run",
    r"of Taichi's compiler alone": "under RAYMARCH_ENGINE=quadrants; everywhere else these run",
    r"no Vulkan device": "a driver for Vulkan, as Mesa's on the processor: mesa-vulkan-drivers of Debian",
    r"no CUDA device": "a GPU, which few machines have",
    r"no browser": "Chromium, which the viewer's pages and widgets are tried in",
    r"no address but loopback's": "a network, without which a machine has only its loopback",
    r"no OpenVDB": "OpenVDB and its tools, which no package index has; Debian calls them python3-openvdb",
    r"no Blender": "Blender, a large program of the system",
    r"no OpenGL": "a driver for VTK's pictures; those that are kept are compared everywhere",
    r"real data is not beside the repository": "photographs and volumes of others, which the project does not ship",
    r"of POSIX|POSIX's|Windows|no named pipes|Linux's|no bash": "another operating system",
}
EXTRA = "extra: "
SHARED = Path(__file__).resolve().parents[2] / "shared"
UNMARKED = "not marked pytest.mark.extra, so that no run would have it, "
MARKED = re.compile(r"^pytestmark = .*\bpytest\.mark\.extra\b", re.M)
skipped: dict[str, str] = {}
root = Path()


def require_extra(module: str, extra: str, load: bool = True):
    """The module of an optional dependency; where it is missing the tests of this file are skipped.

    Without `load` it is only looked for: pycolmap must not come into a process that has Pillow.
    """
    __tracebackhide__ = True  # the skip is the caller's: of several in one line workers report the first alone
    try:
        if not load and importlib.util.find_spec(module) is None:
            raise ImportError
        if not load:
            return None
        return importlib.import_module(module)
    except ImportError:
        pytest.skip(f'{EXTRA}{module} is not installed; pip install "raymarch[{extra}]"', allow_module_level=True)


def require_shared(name: str) -> Path:
    """File of the real data beside the repository, which a test names as far as it needs it; else the test is skipped.

    The folder beside the repository may be somebody else's, or hold a part of the data.
    """
    __tracebackhide__ = True
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"real data is not beside the repository ({path})")
    return path


def pytest_addoption(parser):
    parser.addoption("--skips", choices=["any", "listed", "none"], default="any", help="what may be skipped")


def pytest_configure(config):
    global root
    root = config.rootpath
    config.addinivalue_line("markers", "extra: needs an optional dependency, which `pip install raymarch[all]` brings")


def _note(report) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        unseen = reason.startswith(EXTRA) and not _is_marked(report)
        skipped[report.nodeid] = UNMARKED * unseen + reason


def _is_marked(report) -> bool:
    """Whether a test, or a file that was skipped as it was collected, is marked as one that needs an extra."""
    if hasattr(report, "keywords"):
        return "extra" in report.keywords
    return MARKED.search((root / report.nodeid).read_text(encoding="utf-8")) is not None


def pytest_runtest_logreport(report):
    _note(report)


def pytest_collectreport(report):
    _note(report)


def unlisted(allowed: str) -> dict[str, str]:
    """The skipped tests that may not be, by name, with the reasons they gave."""
    if allowed == "any":
        return {}
    fine = [re.compile(pattern) for pattern in LISTED] + [re.compile(f"^{EXTRA}")] * (allowed == "listed")
    return {name: why for name, why in skipped.items() if not any(pattern.search(why) for pattern in fine)}


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput") and session.exitstatus == 0:
        session.exitstatus = 1 if unlisted(session.config.getoption("--skips")) else 0


def pytest_terminal_summary(terminalreporter, config):
    found = unlisted(config.getoption("--skips"))
    if found:
        terminalreporter.section("skipped, and not on the list of tests/skips.py", red=True)
        for name, why in sorted(found.items()):
            terminalreporter.line(f"{name}: {why}")
