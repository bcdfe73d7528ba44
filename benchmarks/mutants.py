"""Planted faults, and which tests notice: python benchmarks/mutants.py [--only PATTERN] [--json] [--list] [--jobs N].

Each fault is one piece of a function of the package, changed as an engineer might mistype it, in a copy that is thrown
away; the tests named for it run there until one fails. First they must pass on a copy without any fault. Exit code 1 if
under 95 % are caught, of those that are not accepted with a reason, if a fault's piece is no longer in its function, or
if a test fails unprovoked. Kernels are compiled into one cache, in the folder for temporary files. docs/testing.md has
the figures.

A list of our own, not a tool that changes every operator: such tools know no kernels, whose tests would then be run
thousands of times, a few seconds of compiling each.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutants_cases import all_faults
from mutants_cases.fault import Fault, no_longer_match
from mutants_cases.place import ACCEPTED, CAUGHT, SURVIVED, Place, Ruling
from plainly import count, plainly

from raymarch.errors import RaymarchError

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "raymarch"
ENOUGH = 0.95  # of the faults that are not accepted


def rule_all(faults: list[Fault], jobs: int, patience: float, prove: bool) -> Iterator[tuple[int, Ruling]]:
    """Each fault's number and ruling, as they come; RaymarchError where the tests fail without any."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        places: SimpleQueue[Place] = SimpleQueue()
        everyone = [Place(ROOT, Path(folder) / str(i), patience) for i in range(jobs)]
        if prove:
            everyone[0].prove(sorted({test for fault in faults for test in fault.tests}))
        for place in everyone:
            places.put(place)
        results: SimpleQueue[tuple[int, Ruling | BaseException]] = SimpleQueue()

        def work(number: int) -> None:
            place = places.get()
            try:
                results.put((number, place.rule(faults[number])))
            except BaseException as error:
                results.put((number, error))
            finally:
                places.put(place)

        with ThreadPoolExecutor(jobs) as pool:
            for number in range(len(faults)):
                pool.submit(work, number)
            try:
                for _ in faults:
                    number, ruling = results.get()
                    if isinstance(ruling, BaseException):
                        raise ruling
                    yield number, ruling
            finally:
                pool.shutdown(cancel_futures=True)


def address_of(fault: Fault) -> str:
    """File, function and name; a fault that matches no more has no file."""
    file = "?" if no_longer_match([fault], PACKAGE) else fault.found(PACKAGE)[0]
    return f"{file:42} {fault.where:32} {fault.name}"


def line_of(fault: Fault, ruling: Ruling) -> str:
    """A row of the table."""
    return (
        f"{ruling.verdict:9}{ruling.seconds:5.0f} s  {fault.where:42} {fault.name:64.64} {ruling.by or fault.accepted}"
    )


def summary(rows: list[tuple[Fault, Ruling]], seconds: float) -> dict:
    """How many were planted, caught, accepted and not noticed."""
    counts = {verdict: sum(r.verdict == verdict for _, r in rows) for verdict in (CAUGHT, ACCEPTED, SURVIVED)}
    asked = len(rows) - counts[ACCEPTED]
    share = counts[CAUGHT] / asked if asked else 1.0
    return {"planted": len(rows), **counts, "share": round(share, 4), "seconds": round(seconds)}


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--only", default="", metavar="PATTERN", help="faults whose file, function and name match this")
    ask.add_argument("--list", action="store_true", help="only say which faults there are")
    ask.add_argument("--json", action="store_true")
    ask.add_argument("--jobs", type=count, default=2, help="faults at a time")
    ask.add_argument("--patience", type=float, default=1.0, help="what the limit of a fault's time is multiplied by")
    ask.add_argument("--unproved", action="store_true", help="do not run the tests without any fault first")
    a = ask.parse_args()
    faults = [fault for fault in all_faults() if re.search(a.only, address_of(fault))]
    if not faults:
        raise RaymarchError(f"no fault matches {a.only!r}; --list says which there are")
    if a.list:
        for fault in faults:
            print(address_of(fault))
        return
    if lost := no_longer_match(faults, ROOT / "raymarch"):
        raise RaymarchError("\n".join(["faults whose piece is not there any more:", *lost]))
    began, rulings = time.monotonic(), {}
    for number, ruling in rule_all(faults, a.jobs, a.patience, not a.unproved):
        rulings[number] = ruling
        if not a.json:
            print(line_of(faults[number], ruling), flush=True)
    rows = [(fault, rulings[i]) for i, fault in enumerate(faults)]
    found = summary(rows, time.monotonic() - began)
    if a.json:
        keys = ("name", "where", "accepted")
        told = [{**{key: getattr(f, key) for key in keys}, **r._asdict()} for f, r in rows]
        print(json.dumps({**found, "faults": told}))
    else:
        print(", ".join(f"{name} {value}" for name, value in found.items()))
        for fault, ruling in rows:
            if ruling.verdict != CAUGHT:
                print(line_of(fault, ruling))
    if found["share"] < ENOUGH:
        sys.exit(1)


if __name__ == "__main__":
    plainly(main)
