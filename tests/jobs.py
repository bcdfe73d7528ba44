"""Functions that tests of executors have workers call: by name, as they travel."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

import raymarch as rm
from raymarch.errors import RaymarchError
from raymarch.tasks.device_thread import DEVICE_THREAD, stop_device

BALL = {"shape": (24, 24, 24)}


def square(x):
    return x * x


def refuse(x):
    raise RaymarchError(f"x is {x}, want another")


def fail(x):
    raise ZeroDivisionError(f"x is {x}")


def process_of(_item):
    return os.getpid()


def wait(seconds):
    time.sleep(seconds)
    return os.getpid()


def refuse_to_end(folder):
    """Write this process's number, and go on whatever is raised in it."""
    Path(folder, str(os.getpid())).write_text("")
    for _ in range(3000):
        with suppress(BaseException):  # as a fit that is told to end is saved and scored
            time.sleep(0.2)


def heeds_interrupts(_item):
    """Whether this process ignores Ctrl-C, and whether it blocks it, which what it begins would inherit."""
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    return ignored, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def die_once(item):
    """Kill this process where the file `item[1]` is not there yet and the number is 2."""
    number, marker = item
    if number == 2 and not Path(marker).exists():
        Path(marker).write_text("died here")
        os.kill(os.getpid(), signal.SIGKILL)
    return number, os.getpid()


def die(_item):
    os.kill(os.getpid(), signal.SIGKILL)


def ball_of_density(p):
    return 9.0 * (np.linalg.norm(p, axis=-1) < 0.5)


def ball():
    return rm.Volume.from_function(ball_of_density, **BALL)


def cameras(count=3, side=20):
    return rm.orbit((0, 0, 0), 4.0, count, like=rm.Camera.look_at((0, -4, 0), width=side, height=side))


def images_here(path, cameras):
    """(images, opacities, depths) of `rm.render` in the process that calls this."""
    with rm.Renderer(rm.load(path)) as renderer:
        seen = [renderer.render(camera) for camera in cameras]
    return [one.image for one in seen], [one.opacity for one in seen], [one.depth for one in seen]


def scores_here(path, views):
    """`rm.evaluate` of a volume in the process that calls this."""
    return [(view.name, view.psnr, view.ssim) for view in rm.evaluate(rm.load(path), views).views]


def threads_of_tasks(count):
    """Names of the threads that tasks ran in, asked from as many threads; and whether all images are alike, with Taichi
    stopped between."""
    found, images = [], []

    def task():
        found.append(threading.current_thread().name)
        images.append(rm.render(ball(), cameras(1)[0]))

    for _ in range(count):
        asking = threading.Thread(target=DEVICE_THREAD.call, args=(task,))
        asking.start()
        asking.join()
        stop_device()
    return found, all((image == images[0]).all() for image in images)


def fit_here(data, settings, changes):
    """(density, features) of `rm.fit` in the process that calls this."""
    volume = rm.fit(rm.load_views(data, "train"), settings, **changes).volume
    return volume.density, volume.features


def warnings_of_far_projector(executor, distance):
    """What a projector logs whose sources are so many voxels away; and its march."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    log = logging.getLogger("raymarch.rendering.projector")
    log.addHandler(handler)
    far = rm.Camera.look_at((distance, 0, 0), width=2, height=2, fov=1e-4)
    try:
        with rm.Projector((3, 3, 3), np.eye(4), [far], executor=executor) as projector:
            return said, projector.march.mode
    finally:
        log.removeHandler(handler)
