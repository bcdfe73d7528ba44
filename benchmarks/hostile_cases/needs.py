"""What a case needs of the system, and why it is left out where that is lacking."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache


@cache
def lacking(need: str) -> str:
    """Why a case with this need cannot be run here; nothing where it can."""
    return {
        "linux": lambda: "" if sys.platform == "linux" else "wants Linux",
        "posix": lambda: "" if os.name == "posix" else "wants signals and limits of a Unix",
        "root": lambda: "" if _is_root() else "wants root",
        "stranger": lambda: "" if _is_root() and _for_others() else "wants root, and a Python that others may run",
        "mount": lambda: "" if _is_root() and _mounts() else "wants root that may mount a small disk",
        "immutable": lambda: "" if _is_root() and _marks() else "wants root that may mark files immutable (chattr)",
    }[need]()


def _is_root() -> bool:
    return os.name == "posix" and os.geteuid() == 0


def _for_others() -> bool:
    try:
        return not subprocess.run([sys.executable, "-c", "import secrets"], user=65534, capture_output=True).returncode
    except OSError:
        return False


def _mounts() -> bool:
    if sys.platform != "linux" or not shutil.which("mount"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
        return True


def _marks() -> bool:
    if not shutil.which("chattr"):
        return False
    with tempfile.NamedTemporaryFile() as file:
        if subprocess.run(["chattr", "+i", file.name], capture_output=True).returncode:
            return False
        subprocess.run(["chattr", "-i", file.name], check=True)
        return True
