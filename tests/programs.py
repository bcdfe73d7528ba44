"""Programs as tests start them: whole ones, of which the law is that they run and what they print, write and assert.

Their kernels are compiled without the compiler's optimisation, in half the time. What kernels compute is tried as users
run it, in the processes of the tests and of README's Python.
"""

from __future__ import annotations

import os


def quickly(**more: str) -> dict[str, str]:
    """The environment of a program that compiles quickly."""
    return {**os.environ, "TI_OPT_LEVEL": "0", **more}
