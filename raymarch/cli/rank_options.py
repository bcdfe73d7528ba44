"""A verb that ranks share, started by torchrun or MPI: each on its own device, the first alone speaks and writes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from raymarch.cli import output
from raymarch.cli.device_options import Device
from raymarch.ranks.launch import launched

if TYPE_CHECKING:
    from raymarch.ranks.comm import Comm


@dataclass(frozen=True)
class Shared:
    """Ranks of a verb, None for one process, and what this one computes on."""

    ranks: Comm | None
    device: Device

    @property
    def first(self) -> bool:
        """Whether this process speaks and writes."""
        return self.ranks is None or self.ranks.rank == 0

    def require_alone(self, **asked: bool) -> None:
        """RaymarchError for options that are of one process, those that are asked for."""
        from raymarch.errors import RaymarchError

        for name, value in asked.items():
            if value and self.ranks is not None:
                option = f"--{name.replace('_', '-')}"
                raise RaymarchError(
                    f"{option} is of a fit in one process, and {self.ranks.size} ranks were started; leave it out, or"
                    " start raymarch without them"
                )


@contextmanager
def shared(device: Device) -> Iterator[Shared]:
    """Ranks that were started with this process, and its device; of an error of theirs the first rank to fail tells."""
    from raymarch.errors import RaymarchError
    from raymarch.ranks.comm import require_count
    from raymarch.ranks.open_ranks import ranks_of

    launch = launched()
    if launch is None:
        yield Shared(None, device)
        return
    launch.bind_gpu()
    own = replace(device, threads=device.threads or launch.threads)
    by_gpu = own.start().arch == "cuda"
    with ranks_of(launch, by_gpu) as comm:
        try:
            with _silent(comm.rank > 0):
                require_count(comm.size)
                yield Shared(comm, own)
        except RaymarchError as error:
            if comm.first_to_fail():
                raise
            raise click.exceptions.Exit(1) from error


def speaks() -> bool:
    """Whether a mistake that every rank makes alike, such as a wrong option, is to be told by this process."""
    launch = launched()
    return launch is None or launch.rank == 0


def note_of_ranks(verb: str | None) -> None:
    """Note of the first rank where several run a verb that none of them shares."""
    launch = launched()
    if launch is not None and launch.size > 1 and launch.rank == 0 and verb != "fit":
        output.print_note(f"{launch.size} ranks were started, and each does all of it; only raymarch fit is shared")


@contextmanager
def _silent(whether: bool) -> Iterator[None]:
    """Context in which nothing is printed, if so."""
    if not whether:
        yield
        return
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield
