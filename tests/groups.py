"""Which tests share a worker: kernels are compiled once a process, so files that want the same ones go together.

For `pytest -n 2 --dist loadgroup`. A group is taken by a worker as a whole, in the order of this list: first what is
quick and breaks often, then the longest; files that are in no group here are one each, and come behind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

GROUPS = {
    "quick": (  # compiles nothing: rooms, names, arguments, links and planted faults break by an edit anywhere
        "house/test_suite",
        "house/test_lists",
        "house/test_floors",
        "house/test_arguments",
        "house/test_mutants",
        "documents/test_manual",
        "geometry",
        "solvers",
    ),
    "march": (
        "kernels/test_brick_pool",  # grids that grow free trees, after which Taichi traces all anew: first
        "tape/test_tape",  # and test_tape_scene: a Tape compiles a kernel for each tree, while there are few
        "tape/test_splatting",
        "kernels",
        "gradients/test_torch_gradients",
        "registration",
        "gradients",
        "house/test_package",  # frees trees, after which Taichi traces all anew: last
    ),
    "fits": (
        "fitting",
        "documents/test_checkpoints_doc",
        "documents/test_readme",
        "cli",  # after the README: what its processes compiled is on the disk
        "viewer",
        "documents/test_notebooks_doc",
        "rendering",
        "bench",
        "data/test_scalar_volumes",
        "documents/test_lenses_doc",
        "documents/test_video_doc",
    ),
    "notebooks": ("documents/test_notebook",),
    "blocks": ("documents/test_gradients_doc", "documents/test_modes_doc", "documents/test_transfer_doc"),
    "autodiff": ("tape", "torch_bridge", "documents/test_autodiff_doc"),
    "sphere": ("documents/test_sphere",),
    "device": ("device", "house/test_values"),  # free trees, after which Taichi traces all anew: last
}
TESTS = Path(__file__).resolve().parent


def group_of(file: Path) -> str:
    """The group of a file: the first that names a beginning of its path, or the path itself."""
    path = file.relative_to(TESTS).with_suffix("").as_posix() if file.is_relative_to(TESTS) else file.stem
    return next((name for name, starts in GROUPS.items() if path.startswith(starts)), path)


def place_of(file: Path) -> tuple[int, int]:
    """Where a file comes: by its group, in the group as the group lists it."""
    names = list(GROUPS)
    group = group_of(file)
    if group not in names:
        return len(names), 0
    path = file.relative_to(TESTS).with_suffix("").as_posix()
    return names.index(group), next(i for i, start in enumerate(GROUPS[group]) if path.startswith(start))


def group_of_test(nodeid: str) -> str:
    """The group of a test by its name, which begins with its file's path in the repository."""
    return group_of(TESTS.parent / nodeid.split("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The scheduler of --dist loadgroup: xdist's own reads groups off tests' names, where pytest 9.2 lets none be."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of_test(nodeid)

    config.option.loadscopereorder = False  # it would put the group with the most tests first, not the longest
    return GroupScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: place_of(item.path))


workers: dict[str, set[str]] = {}  # which ran a group


def pytest_runtest_logreport(report):
    if node := getattr(report, "node", None):
        workers.setdefault(group_of_test(report.nodeid), set()).add(node.gateway.id)


def _spread() -> list[str]:
    return sorted(group for group, several in workers.items() if len(several) > 1)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if session.config.getvalue("dist") == "loadgroup" and _spread():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    for group in _spread():
        terminalreporter.write_line(f"group {group} was not run by one worker, so its kernels were compiled twice")
