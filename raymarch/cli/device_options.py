"""Start of a verb: what Taichi's decorators would look for in vain is known, and the device to compute on runs."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import output
from raymarch.cli.option_kinds import Whole, pack_options

if TYPE_CHECKING:
    from raymarch.runtime import Runtime

IMPORT_FRAME_FILE = "<frozen importlib._bootstrap>"  # whose frame stands above that of each module that is imported


arch = click.option(
    "--arch",
    type=click.Choice(["auto", "cpu", "cuda", "vulkan", "metal"]),
    default="auto",
    show_default=True,
    help="Device to compute on; auto is CUDA where there is one, else the CPU.",
)
threads = click.option("--threads", type=Whole(1, 1024), metavar="N", help="Of the CPU; one a core if not given.")


def name_importer() -> None:
    """Have Python's `inspect` know which module its importer is, before anything with kernels is imported.

    `ti.func` and `ti.kernel` ask for the source about the frame two above theirs, in case it is a class. Of a module's
    functions that is the importer's, which has none: `inspect` goes through all modules to find that out, each time,
    together a quarter of a second of a command. The answer is the same.
    """
    getattr(inspect, "modulesbyfile", {}).setdefault(IMPORT_FRAME_FILE, "_frozen_importlib")


@dataclass(frozen=True)
class Device:
    """Device to compute on, as the options say: `arch`, and `threads` of a CPU."""

    arch: str
    threads: int | None = None

    def start(self) -> Runtime:
        """The runtime, started; RaymarchError where there is no such device."""
        from raymarch.runtime import start
        from raymarch.system.resources import cores

        if self.threads and self.threads > cores():
            output.print_note(
                f"note: {self.threads} threads on {cores()} cores; more than one a core makes nothing faster"
            )
        return start(self.arch, threads=self.threads)


def device_options(command: Any) -> Any:
    """Options of the device, given to a command as `device`, a record of them."""
    return arch(threads(pack_options(Device, "device")(command)))
