"""Imports of a command: what Taichi's decorators look for in vain, once for each function, is known at once."""

from __future__ import annotations

import inspect

IMPORTER = "<frozen importlib._bootstrap>"  # whose frame stands above that of each module that is imported


def spare_searches() -> None:
    """Have Python's `inspect` know which module its importer is, before anything with kernels is imported.

    `ti.func` and `ti.kernel` ask for the source about the frame two above theirs, in case it is a class. Of a module's
    functions that is the importer's, which has none: `inspect` goes through all modules to find that out, each time,
    together a quarter of a second of a command. The answer is the same.
    """
    getattr(inspect, "modulesbyfile", {}).setdefault(IMPORTER, "_frozen_importlib")
