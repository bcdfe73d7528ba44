"""Hostile and clumsy uses, each with its verdict: python benchmarks/hostile.py [--only PATTERN] [--json] [--list].

Good: refused in one line that says what came, what was wanted and the cure, or it works and the result is right; no
other file is written or lost, in bounded time and memory. Poor: right, but unhelpful, late or slow. Bad: a traceback on
the command line, a signal, a hang, a wrong result without a word, a file lost, half written or left over. Exit code 1
if any case is bad. docs/reliability.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from hostile_cases import all_cases, needs
from hostile_cases.case import Bad, Case, Poor
from hostile_cases.judge import BAD, GOOD, POOR, SKIPPED, Ruling, faults_of_files, judge, ruling_of
from hostile_cases.material import MATERIAL, make_place, snapshot
from hostile_cases.place import HANG, Place, Runner, temporary_of
from plainly import count, plainly

import raymarch

VERDICTS = (GOOD, POOR, BAD, SKIPPED)


def rule(case: Case, runner: Runner, number: int) -> Ruling:
    """Run one case in a folder of its own."""
    if reason := next(filter(None, map(needs.lacking, case.needs)), None):
        return Ruling(SKIPPED, reason)
    folder = make_place(runner.root, number)
    place = Place(runner, folder)
    if case.set_up is not None:
        case.set_up(folder)
    before = snapshot(folder)
    if callable(case.do):
        faults, what = [], ""
        try:
            what = case.do(place) or ""
        except Bad as error:
            faults.append((BAD, str(error)))
        except Poor as error:
            faults.append((POOR, str(error)))
        return ruling_of(faults + faults_of_files(case, before, snapshot(folder), folder), what)
    environment = runner.environment(folder, case.environment)
    if case.fresh or case.script or case.flags:
        done = runner.start(folder, environment, case.do, case.flags, case.script).wait(HANG)
    else:
        done = runner.fork(folder, environment, case.do, HANG)
    return judge(case, done, folder, before, snapshot(folder))


def rule_all(cases: list[Case], root: Path, jobs: int, patience: float) -> Iterator[tuple[int, Ruling]]:
    """Each case's number and ruling, as they come."""
    package = Path(raymarch.__file__).resolve().parent.parent
    runners: SimpleQueue[Runner] = SimpleQueue()
    everyone = [Runner(root, package, patience) for _ in range(jobs)]
    _make_material(everyone[0])
    for runner in everyone:
        runners.put(runner)
    results: SimpleQueue[tuple[int, Ruling]] = SimpleQueue()

    def work(number: int) -> None:
        runner = runners.get()
        try:
            results.put((number, rule(cases[number], runner, number)))
        except Exception as error:  # of the list, not of what it judges
            results.put((number, Ruling(BAD, f"the case itself failed: {type(error).__name__}: {error}")))
        finally:
            runners.put(runner)

    pool = ThreadPoolExecutor(jobs)
    try:
        for number in sorted(range(len(cases)), key=lambda i: -cases[i].seconds):  # the longest first
            pool.submit(work, number)
        for _ in cases:
            yield results.get()
    except BaseException:  # Ctrl-C, or a time limit's SIGTERM: nothing is left running
        pool.shutdown(wait=False, cancel_futures=True)
        for runner in everyone:
            runner.kill()
        raise
    pool.shutdown()
    for runner in everyone:
        runner.close()


def _make_material(runner: Runner) -> None:
    """The set and the volume that every case gets; a fit of them, so that its kernels are compiled."""
    folder = runner.root / "material"
    folder.mkdir()
    temporary_of(folder).mkdir()
    warm = runner.root / "warm.h5"
    fit = ("fit", "set", "--preset", "quick", "--steps", "3", "--resolution", "8", "--out", str(warm))
    for do in (MATERIAL, fit):
        done = runner.fork(folder, runner.environment(folder, {}), do, 600)
        if done.code:
            raise raymarch.RaymarchError(f"the material cannot be made: {(done.err.splitlines() or ['?'])[-1]}")


def table(rows: list[tuple[Case, Ruling]], width: int) -> Iterator[str]:
    """A line a case, then one an area."""
    for case, ruling in rows:
        known = f" [known: {case.known}]" if case.known and ruling.verdict == POOR else ""
        what = (ruling.what.encode("unicode_escape").decode() + known)[:width]
        yield f"{ruling.verdict:8}{case.area:13} {case.name:58.58} {what}"
    yield ""
    yield f"{'area':13} {'cases':>6}" + "".join(f"{verdict:>8}" for verdict in VERDICTS)
    for area, *counts in counts_of(rows):
        yield f"{area:13} {counts[0]:6}" + "".join(f"{number:8}" for number in counts[1:])


def counts_of(rows: list[tuple[Case, Ruling]]) -> Iterator[tuple]:
    """Area, cases, and how many of each verdict; the last row is of all."""
    for area in [*dict.fromkeys(case.area for case, _ in rows), "all"]:
        some = [ruling.verdict for case, ruling in rows if area in (case.area, "all")]
        yield (area, len(some), *(some.count(verdict) for verdict in VERDICTS))


def markdown(rows: list[tuple[Case, Ruling]]) -> Iterator[str]:
    """The tables of docs/reliability.md: counts by area, then what is not good and why."""
    yield f"| area | cases | {' | '.join(VERDICTS)} |"
    yield "|---" * (2 + len(VERDICTS)) + "|"
    for row in counts_of(rows):
        yield f"| {' | '.join(map(str, row))} |"
    for verdict in (BAD, POOR):
        yield from ("", f"| {verdict} | what happens |", "|---|---|")
        for case, ruling in rows:
            if ruling.verdict == verdict:
                what = (case.known or ruling.what).encode("unicode_escape").decode().replace("|", "\\|")
                name = case.name.encode("unicode_escape").decode().replace("|", "\\|")
                yield f"| {case.area}: {name} | {what[:160]} |"


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--only", default="", metavar="PATTERN", help="cases whose area and name match this")
    ask.add_argument("--verdict", choices=VERDICTS, help="print the cases of this verdict alone")
    ask.add_argument("--list", action="store_true", help="only say which cases there are")
    ask.add_argument("--json", action="store_true")
    ask.add_argument("--markdown", action="store_true", help="print the tables of docs/reliability.md")
    ask.add_argument("--jobs", type=count, default=2, help="cases at a time")
    ask.add_argument("--patience", type=float, default=1.0, help="what all limits are multiplied by")
    ask.add_argument("--width", type=count, default=120, help="of what happened")
    ask.add_argument("--keep", metavar="FOLDER", help="a new folder to work in and to leave as it is")
    a = ask.parse_args()
    cases = [case for case in all_cases() if re.search(a.only, f"{case.area}: {case.name}")]
    if not cases:
        raise raymarch.RaymarchError(f"no case matches {a.only!r}; --list says which there are")
    if a.list:
        for case in cases:
            print(f"{case.area:13} {case.name}")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a time limit's: as Ctrl-C
    began, rulings = time.monotonic(), {}
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as spare:
        root = Path(a.keep or spare).resolve()
        root.mkdir(exist_ok=True)
        for number, ruling in rule_all(cases, root, a.jobs, a.patience):
            rulings[number] = ruling
            if sys.stderr.isatty():
                print(f"\r{len(rulings)} of {len(cases)}", end="", file=sys.stderr, flush=True)
    rows = [(case, rulings[i]) for i, case in enumerate(cases)]
    if a.json:
        keys = ("area", "name", "verdict", "what", "known")
        print(json.dumps([dict(zip(keys, (c.area, c.name, r.verdict, r.what, c.known), strict=True)) for c, r in rows]))
    elif a.markdown:
        print("\n".join(markdown(rows)))
    else:
        for line in table([row for row in rows if a.verdict in (None, row[1].verdict)], a.width):
            print(line)
        print(f"{time.monotonic() - began:.0f} s")
    if any(ruling.verdict == BAD for ruling in rulings.values()):
        sys.exit(1)


if __name__ == "__main__":
    plainly(main)
