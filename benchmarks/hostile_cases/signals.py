"""Signals at every moment: what was computed is saved, what was there stays, nothing is left over."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time

from hostile_cases.case import FIT, Bad, Poor
from hostile_cases.place import Place
from hostile_cases.stops import (
    LONG,
    OUT,
    POSIX,
    area,
    moments,
    over_finished,
    require_end,
    saved_volume,
    stopped,
    under_way,
    wait_for_steps,
)

SAVES = """
for i in range(10_000):
    rm.save(ball, 'out.h5')
"""
SAVES_BESIDE = (*OUT, "out.h5.checkpoint")
SAVED = "fit set --preset quick --steps 300 --resolution 32 --out out.h5 --checkpoint-every 1e-9"
FIT_IN_PYTHON = """
import os, signal, threading
threading.Timer(3.0, os.kill, (os.getpid(), signal.{name})).start()
fit = rm.fit(views, 'quick', steps=100000, resolution=16)
assert 'interrupted' in fit.ended, fit.ended
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, 'the handler stays'
print('kept')
"""


def _twice(place: Place) -> str:
    run = place.start(LONG)
    wait_for_steps(run)
    os.kill(run.process.pid, signal.SIGINT)
    time.sleep(0.002)
    os.kill(run.process.pid, signal.SIGINT)
    done = run.wait()
    require_end(done, "a second Ctrl-C")
    return f"exit {done.code}"


def _many(place: Place) -> str:
    run = place.start(LONG)
    wait_for_steps(run)
    for _ in range(30):
        if run.process.poll() is None:
            os.kill(run.process.pid, signal.SIGINT)
        time.sleep(0.02)
    done = run.wait()
    require_end(done, "30 times Ctrl-C")
    if (place.folder / "out.h5").exists():
        saved_volume(place)
    return f"exit {done.code}"


def _killed_saving(place: Place) -> str:
    """kill -9 at 12 moments of saving: the file is whole; the next save sweeps what the killed left."""
    dice, whole = random.Random(0), 0
    for _ in range(12):
        run = place.start(SAVES)
        run.until(lambda: (place.folder / "out.h5").exists() and any(place.folder.glob(".raymarch-*")))
        time.sleep(dice.random() * 0.05)
        run.process.kill()
        run.process.wait()
        saved_volume(place)
        whole += 1
    left = list(place.folder.glob(".raymarch-*"))
    for path in left:
        os.utime(path, (1e9, 1e9))  # they are old by the time anyone looks
    place.run("rm.save(ball, 'out.h5')\n")
    left = list(place.folder.glob(".raymarch-*"))
    for path in left:
        path.unlink()
    if left:
        raise Poor(f"{whole} whole files, but {len(left)} temporary ones stay for ever")
    return f"{whole} whole files, nothing left"


def _killed_fitting(place: Place) -> str:
    shutil.copy(place.folder / "ball.h5", place.folder / "out.h5")
    before = (place.folder / "out.h5").read_bytes()
    run = place.start(LONG)
    wait_for_steps(run)
    run.process.kill()
    run.process.wait()
    if (place.folder / "out.h5").read_bytes() != before:
        raise Bad("the file there before was changed")
    return "the file there before stays"


def _two_fits(place: Place) -> str:
    """The second is refused at once, and the first ends as if there had been none."""
    first = place.start("fit set --preset quick --steps 100 --resolution 16 --out out.h5 --threads 1")
    if not first.until(lambda: (place.folder / "out.h5.lock").exists()):
        raise Bad("no lock appears")
    for second in (FIT.replace("out.h5", "./out.h5"), f"{FIT} --overwrite"):
        done = place.run(second)
        if done.code != 1 or "wait until it ends, or choose another --out" not in done.err:
            raise Bad(f"exit {done.code}: {done.err[-100:]}")
    if first.wait().code:
        raise Bad("the first did not come to its end")
    return f"refused twice, {saved_volume(place)['steps']} steps"


def _paused(place: Place) -> str:
    run = place.start("fit set --preset quick --steps 200 --resolution 16 --out out.h5")
    time.sleep(3)
    os.kill(run.process.pid, signal.SIGSTOP)
    time.sleep(1)
    os.kill(run.process.pid, signal.SIGCONT)
    done = run.wait()
    require_end(done, "a pause")
    if done.code:
        raise Bad(f"exit {done.code}: {done.err[-100:]}")
    return f"goes on, {saved_volume(place)['steps']} steps"


def _ignored(place: Place) -> str:
    """As nohup does: SIGHUP is ignored, and stays so."""
    run = place.start(
        "fit set --preset quick --steps 50 --resolution 16 --out out.h5",
        before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    time.sleep(3)
    if run.process.poll() is None:
        os.kill(run.process.pid, signal.SIGHUP)
    done = run.wait()
    if done.code:
        raise Bad(f"exit {done.code} though SIGHUP is ignored")
    return "goes on"


def _background(place: Place) -> str:
    """As a shell's `&` does: Ctrl-C is ignored when it starts, and must stay so."""
    run = place.start(
        "fit set --preset quick --steps 50 --resolution 16 --out out.h5",
        before=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    under_way(run)
    if run.process.poll() is None:
        os.kill(run.process.pid, signal.SIGINT)
    done = run.wait()
    require_end(done, "Ctrl-C where it is ignored")
    if done.code or (steps := saved_volume(place)["steps"]) != 50:
        raise Bad(f"exit {done.code}" if done.code else f"{steps} of 50 steps, though Ctrl-C is ignored")
    return "goes on, all 50 steps"


INFO, RENDER = "info ball.h5", "render ball.h5 --orbit 20 --size 64 --out pics"


def _resumed(place: Place) -> str:
    """Killed again and again at random moments, often while it saves itself; it ends as it would have otherwise."""
    rng, out, checkpoint = random.Random(0), place.folder / "out.h5", place.folder / "out.h5.checkpoint"
    whole = place.run(SAVED.split(" --checkpoint")[0].replace("out.h5", "whole.h5"))
    kills = 0
    for _ in range(6):
        run = place.start(SAVED + (" --resume" if checkpoint.exists() else ""))
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        run.until(lambda b=before: checkpoint.exists() and checkpoint.stat().st_mtime_ns != b, 60)
        time.sleep(rng.uniform(0, 0.3))
        if run.process.poll() is not None:
            break
        run.process.kill()
        run.wait()
        kills += 1
    done = place.run(SAVED + (" --resume" if checkpoint.exists() else "")) if not out.exists() else whole
    if whole.code or done.code:
        raise Bad(f"exit {whole.code}, {done.code}: {done.err.strip().splitlines()[-1]}")
    same = place.run(
        "a, b = rm.load('whole.h5'), rm.load('out.h5')\n"
        "assert a.density.tobytes() == b.density.tobytes()\n"
        "assert a.features.tobytes() == b.features.tobytes()\n"
    )
    if same.code:
        raise Bad("a fit that was killed and resumed is another one")
    if checkpoint.exists():
        raise Bad("the checkpoint stays though the volume is written")
    return f"{kills} kills, the same bytes"


CASES = [
    stopped("Ctrl-C under way saves", signal.SIGINT),
    stopped("SIGTERM under way saves, as Ctrl-C does", signal.SIGTERM),
    stopped("Ctrl-C under way saves, with --json", signal.SIGINT, LONG + " --json"),
    over_finished("Ctrl-C over a finished volume", signal.SIGINT),
    over_finished("SIGTERM over a finished volume", signal.SIGTERM),
    moments("Ctrl-C at 6 moments of a fit's start", signal.SIGINT, LONG, 6, 6.0),
    moments("SIGTERM at 4 moments of a fit's start", signal.SIGTERM, LONG, 4, 6.0),
    moments("Ctrl-C at 4 moments of info", signal.SIGINT, INFO, 4, 0.6),
    moments("Ctrl-C at 5 moments of a rendering", signal.SIGINT, RENDER, 5, 4.0),
    moments("Ctrl-C at 4 moments of an evaluation", signal.SIGINT, "evaluate ball.h5 set", 4, 3.0),
    moments("Ctrl-C at 3 moments of a dry run", signal.SIGINT, LONG + " --dry-run", 3, 4.0),
    moments("Ctrl-C at 3 moments of bench", signal.SIGINT, "bench march --n 32 --resolution 64", 3, 3.0),
    moments("Ctrl-C at 3 moments of check-gradients", signal.SIGINT, "check-gradients ball.h5 set --rays 8", 3, 5.0),
    moments("Ctrl-C at 3 moments of --help", signal.SIGINT, "fit --help", 3, 0.3),
    area.probe("Ctrl-C twice", _twice, makes=OUT, needs=POSIX),
    area.probe("Ctrl-C 30 times", _many, makes=OUT, needs=POSIX),
    area.probe("kill -9 at 12 moments of saving", _killed_saving, makes=OUT, needs=POSIX),
    area.probe("kill -9 at 6 moments of a fit that is saved, then --resume", _resumed, makes=SAVES_BESIDE, needs=POSIX),
    area.probe("kill -9 of a fit", _killed_fitting, makes=(*OUT, "out.h5.lock"), needs=POSIX),
    area.probe("stopped and continued", _paused, makes=OUT, needs=POSIX),
    area.probe("two fits to one file", _two_fits, makes=OUT, needs=POSIX),
    area.probe("SIGHUP where it is ignored", _ignored, makes=OUT, needs=POSIX),
    area.probe("Ctrl-C where it is ignored", _background, makes=OUT, needs=POSIX),
    area.python_works("rm.fit: Ctrl-C keeps the result", FIT_IN_PYTHON.format(name="SIGINT"), needs=POSIX, seconds=40),
    area.python_works("rm.fit: SIGTERM keeps the result", FIT_IN_PYTHON.format(name="SIGTERM"), needs=POSIX, seconds=40,
                      fresh=True),
    area.python_works("Ctrl-C in rm.register is a KeyboardInterrupt, and the next call works", """
import os, signal, threading
threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(40):
        rm.register(ball, views.rgb(0), views.cameras[1])
except KeyboardInterrupt:
    pass
except rm.RaymarchError:
    import time; time.sleep(3)
assert np.isfinite(rm.render(ball, camera)).all(), 'not finite'
""", needs=POSIX, seconds=60),
    area.python_works("Ctrl-C in rm.refine keeps or raises, and the next call works", """
import os, signal, threading
threading.Timer(4.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    rm.refine(views, settings=rm.preset('quick', steps=100000, resolution=16, hull=False))
except KeyboardInterrupt:
    pass
assert np.isfinite(rm.render(ball, camera)).all(), 'not finite'
""", needs=POSIX, seconds=60),
]  # fmt: skip
