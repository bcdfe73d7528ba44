"""Which tests share a worker: kernels are compiled once a process, so files that want the same ones go together.

For `pytest -n 2 --dist loadgroup`. A group is taken by a worker as a whole, in the order of this list, the longest
first; files that are in no group here are one each, and come behind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

GROUPS = {
    "march": (
        "kernels",
        "gradients/test_torch_gradients",
        "autodiff/test_tape",
        "registration",
        "house/test_package",
        "gradients",
    ),
    "fits": ("fitting", "rendering", "device"),
    "readme": ("documents/test_readme",),
    "notebooks": ("documents/test_notebook",),
    "blocks": ("documents/test_gradients_doc",),
    "verbs": ("cli",),
    "autodiff": ("autodiff", "documents/test_autodiff_doc"),
    "sphere": ("documents/test_sphere",),
    "bench": ("bench",),
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


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # it would put the group with the most tests first, not the longest
    else:
        config.addinivalue_line("markers", "xdist_group(name): which tests share a worker")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: place_of(item.path))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item.path)))
