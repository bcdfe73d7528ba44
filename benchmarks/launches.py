"""What a step of a fit launches on a device, and where it waits for it: python benchmarks/launches.py [SET].

A launch costs a GPU's host some microseconds. It waits where a kernel returns a number or is handed an array of the
host, and where a field is read by index: what was launched before must end first, and the device is idle meanwhile.
Counted on whichever device runs; the CPU counts the same.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import numpy as np
from plainly import count, plainly

import raymarch as rm
from raymarch import engine

NUMBER, ARRAY, READ = "returns a number", "is handed an array of the host", "is read by index"


@dataclass
class Launches:
    """Kernels launched, in order, and (kernel or field, why) of each wait."""

    kernels: list[str] = field(default_factory=list)
    waits: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def counted() -> Iterator[Launches]:
    """Launches of what runs in this context; no kernel is compiled otherwise."""
    found, kernel_class, field_class = Launches(), engine.kernel_class(), engine.ScalarField
    launch, read = kernel_class.launch_kernel, field_class.__getitem__

    def note(kernel, *args, **how):
        name = kernel.func.__name__
        found.kernels.append(name)
        if kernel.return_type is not None:
            found.waits.append((name, NUMBER))
        if any(isinstance(each, np.ndarray) for each in args):
            found.waits.append((name, ARRAY))
        return launch(kernel, *args, **how)

    def note_read(scalar, key):
        found.waits.append(("a field", READ))
        return read(scalar, key)

    with ExitStack() as patches:
        patches.enter_context(patch.object(kernel_class, "launch_kernel", note))
        patches.enter_context(patch.object(field_class, "__getitem__", note_read))
        yield found


def main() -> None:
    """Count a step of a fit, and print it."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("set", nargs="?", default="scenes/tower")
    ask.add_argument("--preset", default="quick")
    ask.add_argument("--degree", type=int, default=None)
    ask.add_argument("--steps", type=count, default=3, help="steps before the one that is counted")
    ask.add_argument("--arch", default="auto")
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    rm.start(a.arch)
    changes = {} if a.degree is None else {"sh_degree": a.degree}
    with rm.Fitter(rm.load_views(a.set, split="train"), a.preset, steps=1000, **changes) as fitter:
        for _ in range(a.steps):
            fitter.step()
        with counted() as found:
            fitter.step()
    if a.json:
        print(json.dumps({"kernels": found.kernels, "waits": found.waits}))
        return
    waits = Counter(name for name, _ in found.waits)
    for name in found.kernels:
        print(f"  {name}{'  *' if waits[name] else ''}")
    print(f"{len(found.kernels)} launches, {len(found.waits)} waits")
    for name, why in found.waits:
        print(f"* {name} {why}")


if __name__ == "__main__":
    plainly(main)
