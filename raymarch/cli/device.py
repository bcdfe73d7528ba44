"""Options of the device to compute on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, say
from raymarch.cli.option_kinds import Whole, packed

if TYPE_CHECKING:
    from raymarch.runtime import Runtime

threads = click.option("--threads", type=Whole(1, 1024), metavar="N", help="Of the CPU; one a core if not given.")


@dataclass(frozen=True)
class Device:
    """Device to compute on, as the options say: `arch`, and `threads` of a CPU."""

    arch: str
    threads: int | None = None

    def start(self) -> Runtime:
        """The runtime, started; RaymarchError where there is no such device."""
        from raymarch.data.cores import cores
        from raymarch.runtime import start

        if self.threads and self.threads > cores():
            say.note(f"note: {self.threads} threads on {cores()} cores; more than one a core makes nothing faster")
        return start(self.arch, threads=self.threads)


def computed_on(command: Any) -> Any:
    """Options of the device, given to a command as `device`, a record of them."""
    return options.arch(threads(packed(Device, "device")(command)))
