"""Switches of what a GPU might do faster in another order: all off, until a GPU has measured them.

Nothing but `benchmarks/gpu_adjoint.py` sets them, before its process compiles a kernel; kernels ask as they compile, so
what is off is not in them. The place of each is named with it.
"""

from __future__ import annotations

from raymarch.engine.record import record


@record()
class GpuSwitches:
    """Switches.

    Attributes:
        turned_corners: additions to the corners of a cell begin at another corner for each ray that is in it, so that
            threads side by side do not add to the same number at once (`kernels/field/gather.scatter`).
        adam_by_sample: Adam's step is made by a thread a sample in place of one a block (`kernels/fit/adam_by_sample`).
    """

    turned_corners: bool = False
    adam_by_sample: bool = False


_chosen = GpuSwitches()


def chosen() -> GpuSwitches:
    """The switches of this process."""
    return _chosen


def choose(switches: GpuSwitches) -> None:
    """Set the switches of a process that has compiled no kernel yet."""
    global _chosen
    _chosen = switches
