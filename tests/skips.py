"""Whether tests may be skipped: `pytest --skips any|listed|none`, where `listed` and `none` fail a run that skips.

`any`: who has not all that is optional still gets a green run, and reads what was left out.
`listed`: only what needs an extra, and what `LISTED` gives a reason for. `none`: only what is in `LISTED`.
"""

from __future__ import annotations

import importlib
import importlib.util
import re

import pytest

LISTED = {
    r"CUDA is here": "what a machine without a GPU says is tried on such machines only",
    r"no CUDA device": "a GPU, which few machines have",
    r"real data is not beside the repository": "photographs and volumes of others, which the project does not ship",
    r"(vtk|SimpleITK) is not installed": "programs of others that read our volumes, 50 to 120 MB, for tests alone",
    r"signals and shells of POSIX|Windows|no named pipes|Linux's /proc|no bash": "another operating system",
}
EXTRA = "extra: "
skipped: dict[str, str] = {}


def require_extra(module: str, extra: str, load: bool = True):
    """The module of an optional dependency; where it is missing the tests of this file are skipped.

    Without `load` it is only looked for: pycolmap must not come into a process that has Pillow.
    """
    try:
        if not load and importlib.util.find_spec(module) is None:
            raise ImportError
        if not load:
            return None
        return importlib.import_module(module)
    except ImportError:
        pytest.skip(f'{EXTRA}{module} is not installed; pip install "raymarch[{extra}]"', allow_module_level=True)


def pytest_addoption(parser):
    parser.addoption("--skips", choices=["any", "listed", "none"], default="any", help="what may be skipped")


def pytest_configure(config):
    config.addinivalue_line("markers", "extra: needs an optional dependency, which `pip install raymarch[all]` brings")


def _note(report) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[report.nodeid] = reason.removeprefix("Skipped: ")


def pytest_runtest_logreport(report):
    _note(report)


def pytest_collectreport(report):
    _note(report)


def unlisted(allowed: str) -> dict[str, str]:
    """The skipped tests that may not be, by name, with the reasons they gave."""
    if allowed == "any":
        return {}
    fine = [re.compile(pattern) for pattern in LISTED] + [re.compile(EXTRA)] * (allowed == "listed")
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
