"""Processes of one fit, as torchrun starts them: `python rank_jobs.py JOB` on each rank, and who starts them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
SIZE = 24
SMALL = {"steps": 16, "resolution": 24, "rays": 1024, "levels": ((0.0, 0.5), (0.4, 1.0)), "seconds": None}
KINDS = {
    "features, jitter, roulette and regularisers": {
        **SMALL,
        "sh_degree": 1,
        "tv_density": 1e-3,
        "supersample": 3,
        "supersample_from": 0.6,
        "supersample_seen": 0.0,
        "bricks": False,
    },
    "bricks": {**SMALL, "sh_degree": 1, "bricks": True},
    "density and colour side by side": {**SMALL, "sh_degree": 0, "bricks": False},
}


def disc_views(count=6):
    """Views of a coloured ball, painted without a march."""
    import raymarch as rm

    cameras = rm.orbit((0, 0, 0), 4.0, count, like=rm.Camera.look_at((0, -4, 0), width=SIZE, height=SIZE))
    y, x = np.mgrid[:SIZE, :SIZE] - (SIZE - 1) / 2
    inside = x**2 + y**2 < (0.25 * SIZE) ** 2
    images = np.zeros((count, SIZE, SIZE, 4), np.uint8)
    for i, image in enumerate(images):
        image[..., 0], image[..., 1], image[..., 2] = 90 + 5 * x, 120 + 4 * y, 20 * i
        image[..., 3] = 255 * inside
        image[~inside] = 0
    return rm.Views(cameras, images)


def digest(volume):
    return hashlib.sha256(volume.density.tobytes() + volume.features.tobytes()).hexdigest()[:16]


def fit_by_kind(kind, checkpoint=None, cut=None):
    """A fit, all of it; or until a step, with a checkpoint; or from there to its end."""
    import raymarch as rm

    how = {} if checkpoint is None else {"checkpoints": rm.Checkpoints(checkpoint, resume=cut is None)}
    if cut is not None:
        how["between"] = lambda fitter: fitter.steps_done == int(cut)
    with rm.open_ranks() as ranks:
        result = rm.fit(disc_views(), "quick", ranks=ranks, **how, **KINDS[kind])
        print(json.dumps([ranks.rank, digest(result.volume), result.volume.shape, result.history[-1].psnr]))


def fit_and_lose_one(*arguments):
    """`raymarch fit` with the arguments, in which the last rank is killed in the third step."""
    from raymarch.cli import main
    from raymarch.fitting.ranked_fitter import RankedFitter

    step = RankedFitter.step

    def lost(self):
        if self.steps_done == 3 and self.comm.rank == self.comm.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        step(self)

    RankedFitter.step = lost
    main(list(arguments))


def fit_and_stop_one(rank):
    """A fit of which one rank is told to stop, as by Ctrl-C, in the fourth step."""
    import raymarch as rm
    from raymarch.fitting.ranked_fitter import RankedFitter

    step = RankedFitter.step

    def stopped(self):
        if self.steps_done == 3 and self.comm.rank == int(rank):
            signal.raise_signal(signal.SIGINT)
        step(self)

    RankedFitter.step = stopped
    with rm.open_ranks() as ranks:
        print(json.dumps([rm.fit(disc_views(), "quick", ranks=ranks, **KINDS["bricks"]).ended]))


def fit_other_settings(seed):
    """A fit whose last rank is given another seed."""
    import raymarch as rm

    with rm.open_ranks() as ranks:
        try:
            rm.fit(disc_views(), "quick", ranks=ranks, seed=int(seed) * ranks.rank, steps=2, resolution=16)
        except rm.RaymarchError as error:
            print(error)


def free_port():
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]


def start_ranks(count, *command):
    """Return code, stdout and stderr of so many ranks of `python COMMAND`."""
    env = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    ranks = []
    try:
        for rank in range(count):
            own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
            own = {**env, **{name: str(number) for name, number in own.items()}}
            ranks.append(subprocess.Popen([sys.executable, *map(str, command)], env=own, **pipes))
        until = time.monotonic() + 240
        said = [rank.communicate(timeout=until - time.monotonic()) for rank in ranks]
        return [(rank.returncode, *texts) for rank, texts in zip(ranks, said, strict=True)]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def start_job(count, job, *arguments):
    """As `start_ranks`, of a function of this file."""
    return start_ranks(count, HERE, job.__name__, *arguments)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
