"""Options of who does independent work: this process, several on this machine, or the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli.option_kinds import Whole, pack_options

if TYPE_CHECKING:
    from raymarch.cli.device_options import Device
    from raymarch.tasks.worker import Device as WorkerDevice

workers = click.option(
    "--workers", type=Whole(1, 1024), metavar="N", help="Processes on this machine that share the work."
)
cluster = click.option(
    "--cluster",
    metavar="ADDRESS|local",
    help="Dask scheduler whose workers share it, tcp://host:8786, or local for a cluster of its own. They must see"
    " the files by the same paths.",
)


@dataclass(frozen=True)
class Workers:
    """Who does the work: so many processes, or the cluster at an address; neither for this process."""

    workers: int | None = None
    cluster: str | None = None

    @property
    def where(self) -> int | str | None:
        """As `tasks.executors.run_tasks` takes it; UsageError for both, and for an address that is none."""
        if self.workers is not None and self.cluster is not None:
            raise click.UsageError("--workers are processes here, --cluster has its own; give one of them")
        if self.cluster is not None and not self.cluster.strip():
            raise click.UsageError("--cluster is empty, want a Dask scheduler's address, tcp://host:8786, or local")
        return self.workers if self.cluster is None else self.cluster

    @staticmethod
    def device(device: Device) -> WorkerDevice:
        """The device of each worker."""
        from raymarch.tasks.worker import Device as OfWorker

        return OfWorker(device.arch, device.threads)


def worker_options(command: Any) -> Any:
    """Options of who works, given to a command as `workers`, a record of them."""
    return workers(cluster(pack_options(Workers, "workers")(command)))
