"""One of Taichi's compiler options beside its contrary, kernel by kernel, in turn in one process.

python benchmarks/compiler.py -- fit scenes/tower --preset quick --steps 300 --out tower.h5
python benchmarks/compiler.py [--option cfg_optimization] [--rows 12] -- benchmarks/modes.py --repeats 21

Each kernel of the package that the command compiles is compiled twice, with the option and without, and its calls use
one and the other in turn. Prints seconds of compiling, and a row a kernel, the longest first: median milliseconds of
both, and the median ratio of neighbouring calls, over 1 where it is faster without. Nothing is taken from the disk.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from plainly import count, plainly

FEWEST = 3  # pairs of calls that a row is made of


class Twins:
    """Kernels compiled with an option and without it, and what both take."""

    def __init__(self, option: str):
        from raymarch import engine

        self.option, self.program = option, lambda: engine.program()
        self.twin: dict[int, Any] = {}  # the kernel with the option, by the one without
        self.compiling: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self.calls: dict[tuple[str, int], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        Kernel = engine.kernel_class()
        self._trace, self._launch = Kernel.materialize, Kernel.launch_kernel
        Kernel.materialize = lambda kernel, key=None, *rest, **named: self.trace(kernel, key, *rest, **named)
        Kernel.launch_kernel = lambda kernel, compiled, *given: self.launch(kernel, compiled, *given)

    def trace(self, kernel: Any, key: Any, *rest: Any, **named: Any) -> None:
        """Trace and compile a kernel that is new, twice."""
        if key is None or key in kernel.compiled_kernels or not kernel.func.__module__.startswith("raymarch."):
            self._trace(kernel, key, *rest, **named)
            return
        both = []
        for _ in range(2):
            kernel.compiled_kernels.pop(key, None)
            self._trace(kernel, key, *rest, **named)
            both.append(kernel.compiled_kernels[key])
        for on, compiled in zip((True, False), both, strict=True):
            self.compiling[kernel.func.__name__][not on] += self.compile(compiled, on)
        self.twin[id(both[1])] = both[0]

    def compile(self, kernel: Any, on: bool) -> float:
        """Compile with the option or without; the seconds that it took."""
        program = self.program()
        config = program.config()
        before = getattr(config, self.option)
        setattr(config, self.option, type(before)(on))
        began = time.perf_counter()
        program.compile_kernel(config, program.get_device_caps(), kernel)
        setattr(config, self.option, before)
        return time.perf_counter() - began

    def launch(self, kernel: Any, compiled: Any, *given: Any) -> Any:
        """Launch one of both, in turn."""
        if id(compiled) not in self.twin:
            return self._launch(kernel, compiled, *given)
        taken = self.calls[kernel.func.__name__, id(compiled)]
        without = len(taken[0]) > len(taken[1])
        began = time.perf_counter()
        result = self._launch(kernel, compiled if without else self.twin[id(compiled)], *given)
        taken[without].append(time.perf_counter() - began)
        return result

    def table(self, rows: int) -> str:
        """Seconds of compiling, and a row a kernel, those that took longest first."""
        compiling = np.array(list(self.compiling.values())).reshape(-1, 2).sum(0)
        lines = [f"compiling with {self.option} {compiling[0]:.1f} s, without {compiling[1]:.1f} s"]
        lines.append(f"{'kernel':24} calls, ms with and without, ratio, compiled in s with and without")
        for (name, _), taken in sorted(self.calls.items(), key=lambda each: -sum(map(sum, each[1])))[:rows]:
            both = np.array([taken[0][1 : len(taken[1])], taken[1][1:]])  # the first call is slow
            if both.shape[1] >= FEWEST:
                (on, off), ratio = 1e3 * np.median(both, 1), np.median(both[0] / both[1])
                times = f"{on:9.2f} {off:9.2f} {ratio:7.3f}"
                lines.append(
                    f"{name:24} {both.shape[1]:5} {times} {' '.join(f'{s:7.2f}' for s in self.compiling[name])}"
                )
        return "\n".join(lines)


def main() -> None:
    """Run a command, print what its kernels took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--option", default="cfg_optimization")
    parser.add_argument("--rows", type=count, default=12)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TI_OFFLINE_CACHE_FILE_PATH"] = cache
        from raymarch import cli, runtime
        from raymarch.engine import ti

        if not hasattr(ti._lib.core.CompileConfig, asked.option):
            raise ValueError(f"Taichi's compiler has no option {asked.option}; see taichi's CompileConfig")
        runtime.compiler.spare_work = lambda flow: None  # or the package chooses for itself
        twins = Twins(asked.option)
        sys.argv = asked.command if Path(asked.command[0]).is_file() else ["raymarch", *asked.command]
        try:
            if Path(asked.command[0]).is_file():
                sys.path.insert(0, str(Path(asked.command[0]).resolve().parent))
                runpy.run_path(asked.command[0], run_name="__main__")
            else:
                cli.main()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            runtime._end()
        print(twins.table(asked.rows))


if __name__ == "__main__":
    plainly(main)
