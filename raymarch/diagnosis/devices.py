"""Devices of this machine: what each is, whether it computes right, which one is taken and why.

Drivers are asked, and devices tried, in processes of their own: a driver may crash or hang, and that is an answer too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from raymarch.runtime.vulkan import DEVICE_VARIABLE
from raymarch.system.child_process import child_command

MODULE = "raymarch.diagnosis.device_test"
ARCHES = ("cpu", "metal", "vulkan") if sys.platform == "darwin" else ("cpu", "cuda", "vulkan")
MAX_SECONDS = 180.0  # for a device's kernels to compile, which may take half a minute, and run
LISTING_SECONDS = 60.0
CURES = {
    "cpu": "give the process more memory; if it has enough, report this with what raymarch devices prints",
    "cuda": "use --arch cpu, or mend the driver",
    "vulkan": "use --arch cpu, or install the device's driver for Vulkan",
    "metal": "use --arch cpu",
}
NAMES = {"cuda": "CUDA", "vulkan": "Vulkan", "metal": "Metal"}


@dataclass(frozen=True)
class DeviceReport:
    """What is known of a device.

    Attributes:
        arch: that `--arch` takes it by.
        name: as its driver tells; "" where there is none.
        bytes: of its memory, the machine's where it has none of its own.
        works: whether a march and its gradient are right on it.
        chosen: whether `--arch auto` takes it.
        why: what the self-test found, and why it is taken or not; where it does not work the fault, "; " and the cure.
    """

    arch: str
    name: str
    bytes: int
    works: bool
    chosen: bool
    why: str

    def record(self) -> dict:
        """Report as plain values, for printing."""
        return asdict(self)


@dataclass(frozen=True)
class Answer:
    """What a child process printed, a record a line; `fault` where it was not to be had."""

    records: list[dict[str, Any]]
    fault: str = ""


def examine_devices(
    show: Callable[[str], None] = lambda text: None, max_seconds: float = MAX_SECONDS
) -> list[DeviceReport]:
    """Reports of all devices, those of one architecture after the other; `show` is told what is tried.

    A device whose self-test takes longer than `max_seconds` does not work. No process is left over.
    """
    found = {arch: ask_child("list", arch, LISTING_SECONDS) for arch in ARCHES}
    taken = "cuda" if "cuda" in found and found["cuda"].records else "cpu"
    reports = []
    for arch, answer in found.items():
        if answer.fault or not answer.records:
            fault = answer.fault or f"no {NAMES.get(arch, arch)} device was found"
            reports.append(DeviceReport(arch, "", 0, False, False, with_cure(fault, arch)))
        for row in answer.records:
            show(f"trying {arch}: {row['name']}")
            number = row["number"] if arch == "vulkan" else None
            tried = ask_child("test", arch, max_seconds, number)
            chosen = arch == taken
            works, why = _judgement(tried, arch, row, _reason(arch, row, taken))
            reports.append(DeviceReport(arch, row["name"], row["bytes"], works, chosen, why))
    return reports


def _reason(arch: str, row: dict, taken: str) -> str:
    """Why a device is taken, or how it would be."""
    if arch == taken:
        return "--arch auto takes it" + (", as there is no CUDA device" if arch == "cpu" and "cuda" in ARCHES else "")
    if not row["taken"]:
        return f"--arch {arch} takes it where {DEVICE_VARIABLE} is {row['number']}"
    return f"--arch {arch} takes it"


def _judgement(tried: Answer, arch: str, row: dict, reason: str) -> tuple[bool, str]:
    """Whether a device works, and why that is said."""
    if tried.fault or not tried.records:
        return False, with_cure(tried.fault or "its self-test said nothing", arch)
    (told,) = tried.records
    if "error" in told:
        return False, with_cure(told["error"], arch)
    about = f" ({row['about']})" if row["about"] else ""
    return True, f"right to {told['worst']:.0e} in {told['seconds']:.1f} s{about}; {reason}"


def with_cure(fault: str, arch: str) -> str:
    """A fault with its cure, one of its own if it has that."""
    return fault if "; " in fault else f"{fault}; {CURES[arch]}"


def ask_child(task: str, arch: str, max_seconds: float, number: int | None = None) -> Answer:
    """Answer of the self-test's process; it is over when this returns or raises."""
    environment = {**os.environ, **({} if number is None else {DEVICE_VARIABLE: str(number)})}
    reading, writing = os.pipe()  # the child ends where this is closed, as by the end of this process
    try:
        child = subprocess.Popen(
            child_command(MODULE, task, arch),
            env=environment,
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # drivers' own chat: what matters is told by the exit code
            start_new_session=True,  # Ctrl-C comes to us, and we end it
        )
    except OSError as error:
        os.close(writing)
        return Answer([], f"no process could be started for it ({error.strerror})")
    finally:
        os.close(reading)
    try:
        printed, _ = child.communicate(timeout=max_seconds)
    except subprocess.TimeoutExpired:
        return Answer([], f"it was not done in {max_seconds:.0f} s")
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()
        os.close(writing)
    if child.returncode:
        return Answer([], f"its driver ended the process that tried it ({_code_text(child.returncode)})")
    return Answer([json.loads(line) for line in printed.splitlines() if line.startswith(b"{")])


def _code_text(code: int) -> str:
    """Exit code in words."""
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"exit code {code}"
