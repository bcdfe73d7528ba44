"""Which tests wait for `pytest --whole`: those marked `whole`, each of which a cheaper one stands for in other runs.

A case is marked if what it tries is tried in pairs by the others of its list, at a degree, a precision or a layout that
compiles faster; a test if it is a program of a document or a notebook, all of whose calls have tests of their own: the
README's run each time. Continuous integration runs all of them once.
"""

from __future__ import annotations

import pytest


def pytest_addoption(parser):
    parser.addoption("--whole", action="store_true", help="leave out no case that another stands for")


def pytest_configure(config):
    config.addinivalue_line("markers", "whole: a cheaper case stands for it but under --whole")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("--whole"):
        return
    later = [item for item in items if item.get_closest_marker("whole")]
    config.hook.pytest_deselected(items=later)
    items[:] = [item for item in items if not item.get_closest_marker("whole")]


def whole(*values, **how):
    """A case of a list that waits for `--whole`."""
    return pytest.param(*values, marks=pytest.mark.whole, **how)
