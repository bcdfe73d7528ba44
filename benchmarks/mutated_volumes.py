"""Damaged volume files by the thousand, each a volume or one line: python benchmarks/mutated_volumes.py [--count N].

A file of each format is damaged by a seed: bytes changed, mostly in the header, runs cut out, doubled or put in, the
end cut off, numbers in text made large. Of a folder one file is. What is raised must be a RaymarchError of one line
that names the path, in under 5 s. Exit code 1 if anything else came; its file is kept, and said.
"""

from __future__ import annotations

import argparse
import logging
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import raymarch as rm

SUFFIXES = (
    ".h5", ".nrrd", ".nii", ".nii.gz", ".mha", ".mrc", ".vti", ".tif", ".npy", ".npz", ".ome.zarr", ".vdb", ".dicom",
    ".xdmf",
)  # fmt: skip
HANG = 5.0  # seconds
HEADER = 700  # bytes in which damage says most
NUMBERS = (b"0", b"-1", b"4294967296", b"99999999999999999999", b"1e400", b"nan", b"")


def volume(suffix: str) -> rm.ScalarVolume:
    """Whole numbers, upright: what each format holds."""
    values = np.arange(5 * 6 * 7, dtype=np.int16).reshape(5, 6, 7)
    return rm.ScalarVolume(values, np.eye(4) if suffix == ".npy" else np.diag([1.0, 0.5, 2.0, 1.0]))


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A copy with one to three faults."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        reach = max(1, min(len(out), HEADER) if rng.random() < 0.7 else len(out))
        at, many = int(rng.integers(reach)), int(rng.integers(1, 9))
        kind = rng.integers(6)
        if kind == 0:
            out[at : at + many] = rng.integers(0, 256, many).astype(np.uint8).tobytes()
        elif kind == 1:
            out[at : at + many] = bytes([int(rng.choice([0, 127, 128, 255]))]) * many
        elif kind == 2:
            del out[at : at + many]
        elif kind == 3:
            out[at:at] = out[at : at + 16]
        elif kind == 4:
            del out[int(rng.integers(1, len(out) + 1)) if len(out) else 0 :]
        else:
            numbers = list(re.finditer(rb"[0-9.]+", bytes(out[:HEADER])))
            if numbers:
                one = numbers[rng.integers(len(numbers))]
                out[one.start() : one.end()] = NUMBERS[rng.integers(len(NUMBERS))]
    return bytes(out)


def faults_of(suffix: str, count: int, folder: Path, seed: int) -> Counter:
    """Verdicts of `count` damaged files of a format; those that are wrong are said at once."""
    whole, found, rng = folder / f"a{suffix}", Counter(), np.random.default_rng(seed)
    rm.save(volume(suffix), whole)
    here = folder / f"b{suffix}"
    for i in range(count):
        for old in (here, folder / "a.h5" if suffix == ".xdmf" else here):
            shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
        if whole.is_dir():
            shutil.copytree(whole, here)
            files = sorted(file for file in here.rglob("*") if file.is_file())
            one = files[rng.integers(len(files))]
        else:
            one = Path(shutil.copy(whole, here))
        if suffix == ".xdmf":
            rm.save(volume(suffix), folder / "a.xdmf", overwrite=True)
        one.write_bytes(damaged(one.read_bytes(), rng))
        begun = time.perf_counter()
        try:
            rm.load(here)
            said = "read"
        except rm.RaymarchError as error:
            line = str(error)
            said = "refused" if "\n" not in line and here.name in line and len(line) < 800 else f"poor line: {line!r}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            said = f"{type(error).__name__}: {error}"
        if (took := time.perf_counter() - begun) > HANG:
            said = f"took {took:.1f} s"
        if said not in ("read", "refused"):
            kept = Path(tempfile.gettempdir()) / f"mutated-{i}{suffix}"
            if one.is_file():
                shutil.copy(one, kept)
            print(f"{suffix} {i}: {' '.join(said.split())[:300]}  ({kept})", flush=True)
            said = "WRONG"
        found[said] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="damaged files of each format")
    parser.add_argument("--only", nargs="*", default=SUFFIXES, metavar="SUFFIX", help="some of the formats")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    wrong = 0
    for suffix in asked.only:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with tempfile.TemporaryDirectory(prefix="raymarch-") as folder:
            found = faults_of(suffix, asked.count, Path(folder), asked.seed)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        said = ", ".join(f"{found[each]:6} {each}" for each in ("read", "refused", "WRONG"))
        print(f"{suffix:10}{said}, {more:.0f} MB more", flush=True)
        wrong += found["WRONG"]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
