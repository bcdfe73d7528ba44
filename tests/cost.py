"""What the tests cost: `pytest --cost` ends with a table of kernels compiled and CPU seconds, a row a file.

Kernels are those of the process that runs the tests; the seconds are of it and of the processes that a test waited for.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict

import pytest

COST = "cost"
compiled: list[str] = []


def pytest_addoption(parser):
    parser.addoption("--cost", action="store_true", help="end with a table of kernels and CPU seconds a file")


def pytest_configure(config):
    if config.getoption("--cost"):
        _count_kernels()


def _count_kernels() -> None:
    from raymarch import engine

    compile_one = engine.kernel_class().materialize

    def count(kernel, key=None, *rest, **how):
        if key is not None and key not in engine.made_of(kernel):
            compiled.append(kernel.func.__name__)
        return compile_one(kernel, key, *rest, **how)

    engine.kernel_class().materialize = count


def _seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    item.stash[COST_START] = _seconds(), len(compiled)
    return (yield)


COST_START: pytest.StashKey = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if item.config.getoption("--cost") and call.when == "teardown":
        seconds, kernels = item.stash[COST_START]
        report.user_properties.append((COST, [_seconds() - seconds, compiled[kernels:]]))
    return report


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("--cost"):
        return
    kernels, seconds, tests = defaultdict(list), Counter(), Counter()
    single: list = []
    for report in (r for reports in terminalreporter.stats.values() for r in reports if hasattr(r, "user_properties")):
        file = report.nodeid.split("::")[0]
        for name, value in report.user_properties:
            if name == COST:
                seconds[file] += value[0]
                kernels[file] += value[1]
                tests[file] += 1
                single.append((value[0], len(value[1]), report.nodeid, dict(Counter(value[1]))))
    terminalreporter.section("cost")
    for file in sorted(tests, key=lambda file: -seconds[file]):
        terminalreporter.line(f"{seconds[file]:7.1f} s {len(kernels[file]):5} kernels {tests[file]:5} tests  {file}")
    terminalreporter.line(
        f"{sum(seconds.values()):7.1f} s {sum(map(len, kernels.values())):5} kernels {sum(tests.values()):5} tests"
    )
    if os.environ.get("COST_DETAIL"):
        for s, k, nodeid, names in sorted(single, key=lambda x: -x[0])[:60]:
            terminalreporter.line(f"{s:6.1f} {k:4} {nodeid} {names}")
