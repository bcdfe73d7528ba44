"""Viewer, measured from a page's side: first picture, frames a second, answers, and what a fit loses by being watched.

    python benchmarks/viewer.py [--seconds 6] [--size 800x600] [--rounds 5] [--steps 100] [--fit-alone]

The fit is run unseen, looked at by a page that rests, by one that moves and draws itself, as a browser with WebGL2
does, and by one that moves and has the server draw, in turns, so that whatever else the machine does falls on all four
alike; what is printed are medians of the ratios of their steps a second. What such a page draws itself is drawn
elsewhere, on a GPU: none of it is drawn here. `tests/viewer/test_moving_picture.py` has the pictures.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from websockets.sync.client import connect

import raymarch as rm
from raymarch.fitting.fitter import Fitter
from raymarch.viewer.fit_viewer import FitViewer
from raymarch.viewer.server.server_process import ServerProcess

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "tower"


class Page:
    """Page as a browser has it, without one: it sends cameras and notes what comes when."""

    def __init__(self, url: str, size: tuple[int, int]):
        host, query = url.strip().removeprefix("http://").split("/?")
        self.link = connect(f"ws://{host}/ws?{query}", origin=f"http://{host}", max_size=None, compression=None)
        self.size, self.id, self.frames, self.pongs = size, 0, [], []
        self.scene, self.asked = None, {}
        self.atlas, self.left, self.volumes, self.atlas_bytes = None, [], 0, 0
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        try:
            for data in self.link:
                now = time.perf_counter()
                if isinstance(data, str):
                    header, rest = json.loads(data), None
                else:
                    (length,) = struct.unpack("<I", data[:4])
                    header, rest = json.loads(data[4 : 4 + length]), data[4 + length :]
                if header["type"] == "scene":
                    self.scene = header
                elif header["type"] == "frame":
                    self.frames.append((now, header, rest))
                elif header["type"] == "atlas":
                    self.take_atlas(header, rest)
                elif header["type"] == "pong":
                    self.pongs.append(now - self.asked.pop(header["id"]))
        except Exception:  # the server is gone, and with it the measurement is over
            return

    def take_atlas(self, header: dict, data: bytes | None) -> None:
        """Pull the parts of a volume that is announced, one after the other."""
        if "parts" in header and header["version"] != self.atlas:
            self.atlas, self.left = header["version"], list(range(header["parts"]))
        elif header.get("version") == self.atlas and header.get("part") in self.left:
            self.left.remove(header["part"])
            self.atlas_bytes += len(data or b"")
            self.volumes += not self.left
        if self.left:
            self.link.send(json.dumps({"type": "atlas", "version": self.atlas, "part": self.left[0]}))

    def draw_here(self) -> None:
        """As a page that draws itself: it wants the volume, and says that no picture need be drawn."""
        if self.atlas is None:
            self.link.send(json.dumps({"type": "atlas"}))
        self.link.send(json.dumps({"type": "turning"}))

    def wait(self, what, seconds=120.0):
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            if found := what():
                return found
            time.sleep(0.002)
        raise SystemExit("nothing came")

    def look(self, angle: float, moving: bool) -> dict:
        start, self.id = self.scene["camera"], self.id + 1
        target = np.array(start["target"])
        x, y, z = np.array(start["position"]) - target
        c, s = math.cos(angle), math.sin(angle)
        place = (target + np.array([c * x - s * y, s * x + c * y, z])).tolist()
        camera = {**start, "position": place, "width": self.size[0], "height": self.size[1]}
        self.link.send(json.dumps({"type": "camera", "id": self.id, **camera, "moving": moving}))
        return camera

    def ping(self):
        self.id += 1
        self.asked[self.id] = time.perf_counter()
        self.link.send(json.dumps({"type": "ping", "id": self.id}))


def volume_to_look_at(file: Path) -> rm.Volume:
    """Smoothed noise in a ball, 128^3, of which a ray meets a lot."""
    rng = np.random.default_rng(0)
    small = rng.random((17, 17, 17))
    axis = np.linspace(0, 16, 128)
    i, f = np.minimum(axis.astype(int), 15), axis - np.minimum(axis.astype(int), 15)
    for a in range(3):
        low, high = np.take(small, i, a), np.take(small, i + 1, a)
        f_a = f.reshape([-1 if b == a else 1 for b in range(3)])
        small = low + f_a * (high - low)
    x, y, z = np.ogrid[-1:1:128j, -1:1:128j, -1:1:128j]
    density = np.where(x**2 + y**2 + z**2 < 0.9, 12 * np.clip(small - 0.5, 0, 1), 0)
    volume = rm.Volume.from_array(density, np.stack([small, 1 - small, 0.5 + 0 * small], -1))
    rm.save(volume, file)
    return volume


def of_volume(size: tuple[int, int], seconds: float) -> None:
    """Opening, dragging and resting, with the verb in a process of its own, at first with the cache as it is."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "noise.h5"
        volume = volume_to_look_at(file)
        opening(file, size, 0.0)
        camera, final = opening(file, size, seconds)
        how = {"fov": math.radians(camera["fov"]), "width": size[0], "height": size[1]}
        seen = rm.render(volume, rm.Camera.look_at(camera["position"], camera["target"], camera["up"], **how))
        rm.write_png(Path(folder) / "render.png", seen.clip(0, 1))
        same = (Path(folder) / "render.png").read_bytes() == final
        print(f"at rest        the bytes of rm.render and rm.write_png: {'yes' if same else 'NO'}")


def opening(file: Path, size: tuple[int, int], seconds: float) -> tuple[dict, bytes]:
    """The verb from its start to the picture at rest, and some seconds of dragging; camera and PNG at rest."""
    command = [sys.executable, "-m", "raymarch", "view", str(file), "--no-browser"]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as verb:
        page = Page(verb.stdout.readline(), size)
        opened = time.perf_counter()
        page.wait(lambda: page.scene)
        camera = page.look(0.0, False)
        first = page.wait(lambda: page.frames)[0][0]
        final = page.wait(lambda: [f for f in page.frames if f[1]["final"]])[0]
        cache = "kernels in the cache" if seconds else "cache as it was"
        print(f"first picture  {first - opened:.2f} s after the URL, {first - begun:.2f} s after the command ({cache})")
        print(f"at rest        {size[0]} x {size[1]} whole {final[0] - opened:.2f} s after the URL")
        if seconds:
            drag(page, seconds)
        verb.terminate()
    return camera, final[2]


def drag(page: Page, seconds: float) -> None:
    """A second of dragging to warm up, then some that count."""
    page.frames.clear()
    begun = time.perf_counter()
    while (now := time.perf_counter() - begun) < 1 + seconds:
        page.look(now, True)
        time.sleep(1 / 60)
    frames = [f for f in page.frames if f[0] - begun > 1 and f[1]["moving"]]
    wide = np.median([f[1]["of"][0] for f in frames])
    gap = 1e3 * np.diff([f[0] for f in frames]).max()
    print(f"dragging       {len(frames) / seconds:.1f} frames/s, {wide:.0f} pixels wide, longest gap {gap:.0f} ms")


def steering(url: str, size: tuple[int, int], watched, moving, here, over, out) -> None:
    """Somebody at a page, in a process of their own: moves while told to, `here` where the page draws itself, and asks
    for answers while that counts."""
    page = Page(url, size)
    page.wait(lambda: page.scene)
    page.look(0.0, False)
    begun, answers, moved, frames, turned = time.perf_counter(), [], 0.0, 0, False
    while not over.is_set():
        if here.is_set():
            if not turned or page.id % 8 == 0:
                page.draw_here()
        elif turned:
            page.look(time.perf_counter() - begun, False)
        turned = here.is_set()
        if moving.is_set():
            page.look(time.perf_counter() - begun, True)
            moved += 1 / 40
        page.ping()
        time.sleep(1 / 40)
        if watched.is_set():
            answers += page.pongs
            frames += len(page.frames) if moving.is_set() else 0
        page.pongs.clear()
        page.frames.clear()
    out.put((answers, frames / max(moved, 1e-9), page.volumes, page.atlas_bytes))


def of_fit(size: tuple[int, int], rounds: int, steps: int) -> None:
    """Steps a second of one fit: unseen, watched at rest, and by somebody who moves; and answers meanwhile."""
    views = rm.load_views(SCENE, split="train")
    speeds: dict[str, list[float]] = {"unseen": [], "at rest": [], "turned": [], "moving": []}
    shares: dict[str, list[float]] = {name: [] for name in speeds}
    work: dict[str, list[float]] = {name: [] for name in speeds}  # steps a second of this process on the processors
    spawn = multiprocessing.get_context("spawn")
    watched, moving, here, over = spawn.Event(), spawn.Event(), spawn.Event(), spawn.Event()
    out = spawn.Queue()
    settings = rm.preset("quick", steps=100_000, levels=((0.0, 1.0),), resolution=96)
    with Fitter(views, settings) as fitter, FitViewer(ServerProcess()) as viewer:
        viewer.attach(fitter)
        somebody = spawn.Process(
            target=steering, args=(viewer.url, size, watched, moving, here, over, out), daemon=True
        )
        somebody.start()
        warm_up(fitter, viewer)
        for _ in range(rounds):
            for name, found in speeds.items():
                (moving.set if name == "moving" else moving.clear)()
                (here.set if name == "turned" else here.clear)()
                until = time.perf_counter() + 1.0  # so that nobody counts as moving any more, or all do
                while time.perf_counter() < until:
                    fitter.step()
                    viewer.between(fitter)
                (watched.clear if name == "unseen" else watched.set)()
                since, spent, used = time.perf_counter(), 0.0, time.process_time()
                for _ in range(steps):
                    fitter.step()
                    if name != "unseen":
                        begun = time.perf_counter()
                        viewer.between(fitter)
                        spent += time.perf_counter() - begun
                found.append(steps / (time.perf_counter() - since))
                work[name].append(steps / (time.process_time() - used))
                shares[name].append(spent / (time.perf_counter() - since))
                watched.clear()
        over.set()
        answers, rate, volumes, size_of_all = out.get(timeout=30)
        somebody.join()
    for name in ("at rest", "turned", "moving"):
        ratios = [b / a for a, b in zip(speeds["unseen"], speeds[name], strict=True)]
        listed, share = " ".join(f"{r:.2f}" for r in ratios), 100 * np.mean(shares[name])
        cpu = np.median([b / a for a, b in zip(work["unseen"], work[name], strict=True)])
        print(
            f"fit {name:10} {np.median(ratios):.2f} of its speed unseen ({listed}), {cpu:.2f} by time on the"
            f" processors, {share:.0f} % of the time for pages"
        )
    print(f"fit            {np.median(speeds['unseen']):.1f} steps/s unseen; {rate:.1f} frames/s for who moves")
    each = size_of_all / max(volumes, 1) / 1e6
    print(f"volumes        {volumes} were sent to who turned, each {each:.2f} MB")
    print(f"answers        {1e3 * np.percentile(answers, 95):.1f} ms (95 %), {1e3 * np.median(answers):.1f} ms (half)")


def warm_up(fitter: Fitter, viewer: FitViewer) -> None:
    """Compile all of it: a first picture, and some seconds."""
    begun = time.perf_counter()
    while not viewer.viewer.maker.speed.known or time.perf_counter() - begun < 3:
        fitter.step()
        viewer.between(fitter)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="of dragging")
    parser.add_argument("--fit-alone", action="store_true", help="leave out what is not of a fit")
    parser.add_argument("--size", default="800x600")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100, help="of the fit in each part of a round")
    given = parser.parse_args()
    width, height = (int(side) for side in given.size.split("x"))
    if not given.fit_alone:
        of_volume((width, height), given.seconds)
    of_fit((width, height), given.rounds, given.steps)


if __name__ == "__main__":
    main()
