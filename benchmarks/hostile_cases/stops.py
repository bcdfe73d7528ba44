"""Commands stopped by a signal, once, at several moments, or over a finished result."""

from __future__ import annotations

import json
import os
import shutil
import time

import numpy as np

from hostile_cases.case import Area, Bad, Case, Poor
from hostile_cases.material import snapshot
from hostile_cases.place import Done, Place, Running

area = Area("signals")
POSIX = ("posix",)
LONG = "fit set --preset quick --steps 100000 --resolution 32 --set refresh=10 --out out.h5"
OUT = ("out.h5", "out*.h5", "*.h5")
BESIDE = ("*.h5", "ball*")


def saved_volume(place: Place, name: str = "out.h5") -> dict:
    """What a saved volume's provenance says; Bad where it cannot be read."""
    done = place.run(f"import json\nprint(json.dumps(dict(rm.load({name!r}).provenance)))\n")
    if done.code:
        raise Bad(f"{name} is unreadable: {done.err[-120:]}")
    return json.loads(done.out)


def require_end(done: Done, name: str) -> None:
    """Bad for a traceback or a hang."""
    if done.hung:
        raise Bad(f"no end after {name}")
    # Before raymarch's main runs, and as the interpreter ends, Ctrl-C is Python's own.
    if "Traceback" in done.err and ", in main" in done.err:
        raise Bad(f"traceback after {name}: {done.err.strip().splitlines()[-1]}")


def under_way(run: Running) -> bool:
    return run.until(lambda: "step " in run.said(), 90)


def wait_for_steps(run: Running) -> None:
    # Off a terminal a fit speaks every ten seconds; its first line of steps may be a while away.
    if not under_way(run):
        raise Bad(f"the fit did not begin: {run.said()[-200:]}")


def stopped(name: str, which: int, do: str = LONG) -> Case:
    """A fit stopped under way: saved and said."""

    def probe(place: Place) -> str:
        run = place.start(do)
        wait_for_steps(run)
        os.kill(run.process.pid, which)
        done = run.wait()
        require_end(done, name)
        if not (place.folder / "out.h5").exists():
            raise Poor(f"nothing is saved, exit {done.code}: {(done.err.strip().splitlines() or ['no word'])[-1][:80]}")
        if done.code < 0:
            raise Bad(f"saved, but ended by a signal: {done.code}")
        if "interrupted" not in done.err + done.out:
            raise Poor("saved without a word of the interruption")
        return f"exit {done.code}, {saved_volume(place)['steps']} steps saved"

    return area.probe(name, probe, makes=OUT, needs=POSIX)


def over_finished(name: str, which: int) -> Case:
    """A fit over a finished volume, stopped: the finished one stays, the other lies beside it and is named."""

    def probe(place: Place) -> str:
        shutil.copy(place.folder / "ball.h5", place.folder / "out.h5")
        before = (place.folder / "out.h5").read_bytes()
        run = place.start(LONG)
        wait_for_steps(run)
        os.kill(run.process.pid, which)
        done = run.wait()
        require_end(done, name)
        if (place.folder / "out.h5").read_bytes() != before:
            raise Bad(f"the finished volume was replaced by an interrupted one, exit {done.code}")
        others = [p.name for p in place.folder.glob("*.h5") if p.name not in ("ball.h5", "out.h5")]
        if not others:
            raise Poor("the finished volume stays, but the interrupted one is lost")
        if others[0] not in done.err + done.out:
            raise Poor(f"saved beside it as {others[0]}, without a word")
        saved_volume(place, others[0])
        return f"kept; the interrupted one is {others[0]}, exit {done.code}"

    return area.probe(name, probe, makes=OUT, changes=BESIDE, needs=POSIX)


def moments(name: str, which: int, do: str, count: int, longest: float) -> Case:
    """A command stopped at several moments, from its first to its last: no traceback, nothing half."""

    def probe(place: Place) -> str:
        before = snapshot(place.folder)
        codes = []
        for delay in np.linspace(0.05, longest, count):
            run = place.start(do)
            time.sleep(delay)
            if run.process.poll() is None:
                os.kill(run.process.pid, which)
            done = run.wait()
            require_end(done, f"{name} at {delay:.1f} s")
            codes.append(done.code)
            for made in place.folder.glob("*.h5"):
                if made.name not in before:
                    saved_volume(place, made.name)
                    made.unlink()
            shutil.rmtree(place.folder / "pics", ignore_errors=True)
        return f"exits {codes}"

    return area.probe(name, probe, needs=POSIX)
