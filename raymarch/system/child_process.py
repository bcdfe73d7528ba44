"""Command of a child process: this Python, running a module of this very package."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE_PARENT = Path(__file__).resolve().parents[2]  # the folder that the package lies in
# Not by PYTHONPATH: there that folder would come before Python's own modules, and where all packages are installed one
# may bear the name of such a module. So the package is taken from where it is, and its folder comes after all others.
START_CODE = "; ".join(
    (
        "import importlib.machinery, importlib.util, runpy, sys",
        "root, module = sys.argv[1:3]",
        "del sys.argv[1:3]",
        "spec = importlib.machinery.PathFinder.find_spec('raymarch', [root])",
        "sys.modules['raymarch'] = package = importlib.util.module_from_spec(spec)",
        "root in sys.path or sys.path.append(root)",
        "spec.loader.exec_module(package)",
        "runpy.run_module(module, run_name='__main__', alter_sys=True)",
    )
)


def child_command(module: str, *arguments: str) -> list[str]:
    """Command that runs a module as `python -m` does, and finds this package however this process has found it.

    Example:
        >>> child_command("raymarch.sfm.worker", "folder")[-2:]
        ['raymarch.sfm.worker', 'folder']
    """
    return [sys.executable, "-c", START_CODE, str(PACKAGE_PARENT), module, *arguments]
