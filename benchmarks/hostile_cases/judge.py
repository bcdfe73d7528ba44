"""The verdict on a case, from what can be measured: exit code, lines, names, files, seconds, memory."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from hostile_cases.case import REFUSED, WORKS, Bad, Case, Poor
from hostile_cases.place import Done, temporary_of

GOOD, POOR, BAD, SKIPPED = "good", "poor", "bad", "skipped"
# What the commands say on their way, on stderr, and of a wrong usage around the line that says it.
CHATTER = re.compile(
    r"note: |\s*\d+%  |\d+ views? of |measuring |checking |timing |box -?[\d.]|depth: |Usage: |Try '|interrupted|\s*$"
)
CURE = re.compile(
    r"\b(wants?|choose|check|give|take|say|correct|export|convert|create|free|restore|repack|leave|raise|shrink|scale|move"
    r"|add|remove|use|start|make|put|split|save|copy|write|end the name|look|resize|undistort|divide|lower|name|must"
    r"|Did you mean|Missing|is not one of|range|valid|supply|simplify|close|change|call|turn|swap|drop|update"
    r"|download|unpack|lift|find|send)\b",
    re.IGNORECASE,
)
LONGEST = 1000
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Ruling:
    """The verdict and what happened, in a line."""

    verdict: str
    what: str


def ruling_of(faults: list[tuple[str, str]], what: str) -> Ruling:
    """The worst of what was found, or good."""
    for level in (BAD, POOR):
        texts = [text for found, text in faults if found == level]
        if texts:
            return Ruling(level, "; ".join(dict.fromkeys(texts)))
    return Ruling(GOOD, what)


def judge(case: Case, done: Done, folder: Path, before: dict[str, str], after: dict[str, str]) -> Ruling:
    """The ruling on a case that was run."""
    faults = faults_of_files(case, before, after, folder)
    faults += faults_of_end(done)
    if not any(level == BAD for level, _ in faults):
        faults += _faults_of_what_came(case, done, folder)
    if done.cpu > case.seconds:
        faults.append((POOR, f"late: {done.cpu:.0f} s of CPU, want {case.seconds:g}"))
    if done.peak > case.memory * 1e6:
        faults.append((POOR, f"{done.peak / 1e6:.0f} MB beyond the imports, want {case.memory:g}"))
    return ruling_of(faults, what_of(done))


def what_of(done: Done) -> str:
    """The line that tells most of it."""
    lines = [line for line in done.err.splitlines() if not CHATTER.match(line)]
    text = lines[-1] if lines else (done.out.splitlines() or ["works"])[-1]
    return f"exit {done.code}: {text}" if done.code else f"works: {text}"


def faults_of_end(done: Done) -> list[tuple[str, str]]:
    """Hangs, signals and tracebacks."""
    if done.hung:
        return [(BAD, f"no end in {done.seconds:.0f} s")]
    if done.code < 0 or done.code >= 128:
        number = -done.code if done.code < 0 else done.code - 128
        name = signal.Signals(number).name if number in signal.valid_signals() else str(number)
        return [(BAD, f"ended by {name}")]
    if done.code > 2:
        return [(BAD, f"exit {done.code}")]
    return []


def hold(done: Done, expect: str, says: str = "", *, python: bool = False) -> str:
    """For probes: what happened, or Bad or Poor where a run did not end as expected."""
    case = Case("", "", "" if python else (), expect, says)
    faults = faults_of_end(done) or _faults_of_what_came(case, done, Path())
    ruling = ruling_of(faults, what_of(done))
    if ruling.verdict != GOOD:
        raise (Bad if ruling.verdict == BAD else Poor)(ruling.what)
    return ruling.what


def faults_of_files(case: Case, before, after, folder: Path) -> list[tuple[str, str]]:
    """Files lost, replaced or left over."""

    def any_of(patterns, name):
        return any(fnmatch(name, pattern) for pattern in patterns)

    faults = []
    for name, what in before.items():
        if after.get(name) != what and not any_of(case.changes, name):
            faults.append((BAD, f"{'replaced' if name in after else 'lost'}: {name!a}"))
    for name in after.keys() - before.keys():
        if Path(name).name.startswith(".raymarch-"):
            faults.append((BAD, f"left over: {name}"))
        elif not any_of(case.makes, name):
            faults.append((POOR if after[name] == "folder" else BAD, f"left behind: {name!a}"))
    spare = temporary_of(folder)
    if spare.is_dir() and (left := sorted(path.name for path in spare.iterdir())):
        faults.append((POOR, f"left in TMPDIR: {', '.join(left[:3])}"))
    return faults


def _faults_of_what_came(case: Case, done: Done, folder: Path) -> list[tuple[str, str]]:
    if done.code == 0:
        if case.expect == REFUSED:
            return [(BAD, f"accepted: {what_of(done)}")]
        return faults_of_work(case, done, folder)
    faults = faults_of_refusal(done, case.says if case.expect != WORKS else "", case.foreign, isinstance(case.do, str))
    if case.expect == WORKS:
        faults.append((POOR, f"refused: {what_of(done)}"))
    return faults


def faults_of_work(case: Case, done: Done, folder: Path) -> list[tuple[str, str]]:
    """What is wrong with a command that worked."""
    faults = []
    for line in done.err.splitlines():
        if "Warning" in line:
            faults.append((POOR, f"a library's warning: {line.strip()[:120]}"))
            break
    if strange := [line for line in done.err.splitlines() if not CHATTER.match(line) and "Warning" not in line]:
        faults.append((POOR, f"says what is no note: {strange[0][:100]!a}"))
    if CONTROL.search(done.err):
        faults.append((POOR, "raw control characters on stderr"))
    if case.says and case.expect == WORKS and not re.search(case.says, done.out + done.err):
        faults.append((POOR, f"no word of /{case.says}/"))
    try:
        if case.check is not None:
            case.check(folder, done)
    except AssertionError as error:
        faults.append((BAD, f"wrong: {error}"))
    return faults


def faults_of_refusal(done: Done, says: str, foreign=(), python: bool = False) -> list[tuple[str, str]]:
    """What is wrong with a command that was refused."""
    if "Traceback (most recent call last)" in done.err:
        last = next((line for line in reversed(done.err.splitlines()) if re.match(r"[\w.]+(:|$)", line)), "?")
        name = last.split(":")[0].split(".")[-1]
        if name in foreign:
            return []
        if name == "AssertionError":
            return [(POOR if "unhelpful" in last else BAD, f"wrong: {last}")]
        # In Python every exception is shown so; what is poor of a library's is that nobody meant it for the user.
        return [(POOR if python else BAD, f"traceback: {last[:160]}")]
    lines = [line for line in done.err.splitlines() if not CHATTER.match(line)]
    text = " ".join(lines)
    faults = []
    if not lines:
        return [(POOR, f"exit {done.code} without a word")]
    if len(lines) > 1:
        faults.append((POOR, f"{len(lines)} lines, want one: {lines[0][:80]}"))
    if len(text) > LONGEST:
        faults.append((POOR, f"a line of {len(text)} characters"))
    if says and not re.search(says, text):
        faults.append((POOR, f"does not name /{says}/: {text[:120]}"))
    if done.code != 2 and not CURE.search(text):  # of a wrong usage it is the line that leads to --help
        faults.append((POOR, f"no cure: {text[:120]}"))
    if "Warning" in text:
        faults.append((POOR, f"a library's warning: {text[:120]}"))
    if CONTROL.search(done.err):
        faults.append((POOR, f"raw control characters: {text[:80]!a}"))
    return faults
