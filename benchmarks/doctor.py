"""Faults planted in image sets, and whether the doctor names them; and what it says of the sets as they are.

python benchmarks/doctor.py [--data ../shared/data] [--sets tower,fox] [--faults lens,turned] [--words]

The sets are scenes/tower, scenes/cloud and what DATA has of lego400, lego800, fox (half size), temple_sparse. Each
fault is planted where it applies. A fault is caught where a finding that is no mere note has its code; a false alarm is
any such finding about a set as it is.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import raymarch as rm
from raymarch.diagnosis.diagnose import examine
from raymarch.diagnosis.read_set import read_set
from raymarch.geometry.pose import exp_rigid
from raymarch.matching.matches import features_of
from raymarch.views.display_values import linear_of_srgb

ROOT = Path(__file__).resolve().parent.parent
FLIP = np.diag([1.0, -1.0, -1.0, 1.0])
DECODE = np.rint(255 * linear_of_srgb(np.arange(256) / 255)).astype(np.uint8)
SHRUNK = {"fox": 2.0}
REPEATS = 3  # cameras that are turned, one by one


class Planted(NamedTuple):
    """A set with a fault: its name, the code that the doctor should give, the views, the box to take."""

    fault: str
    code: str | None
    views: rm.Views
    box: np.ndarray | None = None


def posed(views: rm.Views, change: Callable[[np.ndarray], np.ndarray]) -> rm.Views:
    """Views whose poses are changed, one by one."""
    cameras = [replace(c, world_from_camera=change(c.world_from_camera)) for c in views.cameras]
    return replace(views, cameras=cameras)


def coloured(views: rm.Views, change: Callable[[np.ndarray, float], np.ndarray]) -> rm.Views:
    """Views whose images are changed, by their place in the set from 0 to 1."""
    count = max(len(views) - 1, 1)
    return replace(views, images=[change(views.image(i), i / count) for i in range(len(views))])


def transposed(pose: np.ndarray) -> np.ndarray:
    """A pose with its rotation transposed."""
    out = pose.copy()
    out[:3, :3] = pose[:3, :3].T
    return out


def turned(views: rm.Views, view: int) -> rm.Views:
    """Views of which one camera is turned by 5 degrees about an axis of chance."""
    axis = np.random.default_rng(view).normal(size=3)
    turn = exp_rigid(np.concatenate([np.zeros(3), np.deg2rad(5) * axis / np.linalg.norm(axis)]))
    cameras = list(views.cameras)
    cameras[view] = replace(cameras[view], world_from_camera=cameras[view].world_from_camera @ turn)
    return replace(views, cameras=cameras)


def brighter(image: np.ndarray, stops: float) -> np.ndarray:
    """An image exposed by some stops more, in linear light."""
    light = linear_of_srgb(image[..., :3] / 255) * 2**stops
    display = np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 1e-9) ** (1 / 2.4) - 0.055)
    return np.concatenate([np.rint(255 * np.clip(display, 0, 1)).astype(np.uint8), image[..., 3:]], axis=-1)


def in_linear_light(image: np.ndarray, _: float) -> np.ndarray:
    """An image in linear light, of 8 bits."""
    return np.concatenate([DECODE[image[..., :3]], image[..., 3:]], axis=-1)


def premultiplied(image: np.ndarray, _: float) -> np.ndarray:
    """An image whose colours are multiplied by its alpha."""
    colour = np.rint(image[..., :3] * (image[..., 3:] / 255)).astype(np.uint8)
    return np.concatenate([colour, image[..., 3:]], axis=-1)


def about(box: np.ndarray, factor: float, shift: float = 0.0) -> np.ndarray:
    """A box scaled about its middle, and moved by so many of its lengths."""
    middle, half = box.mean(0), (box[1] - box[0]) / 2
    return np.stack([middle - factor * half, middle + factor * half]) + shift * 2 * half


def planted(views: rm.Views, box: np.ndarray | None) -> Iterator[Planted]:
    """All faults that a set can have."""
    yield Planted("OpenCV poses as OpenGL", "opencv-poses", posed(views, lambda pose: pose @ FLIP))
    yield Planted("rotations transposed", "transposed-rotations", posed(views, transposed))
    yield Planted("world-to-camera", "world-to-camera", posed(views, np.linalg.inv))
    yield Planted("world-to-camera, OpenCV", "world-to-camera", posed(views, lambda pose: np.linalg.inv(pose @ FLIP)))
    for factor in (2.0, 0.5):
        name = f"focal length x {factor:g}"
        try:
            cameras = [replace(c, focal=(c.focal[0] * factor, c.focal[1] * factor)) for c in views.cameras]
        except rm.RaymarchError:  # a lens that does not reach as far
            continue
        yield Planted(name, "focal-length", replace(views, cameras=cameras))
    if box is not None:
        for name, other in [("/ 10", about(box, 0.1)), ("x 10", about(box, 10)), ("+ 10", about(box, 1, 10))]:
            yield Planted(f"box {name}", "box", views, other)
    if views.has_alpha:
        yield Planted("premultiplied as straight", "premultiplied-alpha", coloured(views, premultiplied))
    for k in range(REPEATS):
        yield Planted(
            "one camera turned by 5 deg", "camera-off", turned(views, (2 * k + 1) * len(views) // (2 * REPEATS))
        )
    order = np.random.default_rng(0).permutation(len(views))
    yield Planted("images shuffled", "images-shuffled", replace(views, cameras=[views.cameras[i] for i in order]))
    yield Planted("linear light", "linear-light", coloured(views, in_linear_light))
    if not views.cameras[0].lens.plain:
        bare = [replace(camera, lens=rm.Lens()) for camera in views.cameras]
        yield Planted("lens left out", "lens-left-out", replace(views, cameras=bare))
    for sign in (1, -1):
        name = f"exposure drifts by {sign:+d} stop"
        yield Planted(name, "exposure", coloured(views, lambda image, at, s=sign: brighter(image, s * (at - 0.5))))


def halved(folder: Path, target: Path) -> Path | None:
    """A copy of a set of which half the images are missing; None of one that lists none in transforms files."""
    lists = sorted(folder.glob("transforms*.json"))
    if not lists:
        return None
    shutil.copytree(folder, target)
    for each in lists:
        for frame in json.loads(each.read_text())["frames"][::2]:
            path = target / frame["file_path"]
            (path if path.exists() else path.with_name(path.name + ".png")).unlink(missing_ok=True)
    return target


def box_of(views: rm.Views) -> np.ndarray | None:
    """The set's own box, else one about what its images agree on."""
    if views.box is not None:
        return views.box
    points = examine(views, None).points
    return np.quantile(points, [0.02, 0.98], axis=0) if len(points) else None


def main() -> None:
    """Print a table of what was caught, missed and said without need."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--sets", default="tower,cloud,lego400,lego800,fox,temple_sparse")
    parser.add_argument("--faults", default="", help="Parts of the names of those to plant; all if not given.")
    parser.add_argument("--words", action="store_true", help="Print the messages too.")
    asked = parser.parse_args()
    wanted, caught, tried, alarms = asked.faults.split(","), 0, 0, 0
    for name in asked.sets.split(","):
        folder = (ROOT / "scenes" if name in ("tower", "cloud") else asked.data) / name
        if not folder.exists():
            print(f"{name:14} is not there", flush=True)
            continue
        views, said = read_set(folder, None, downscale=SHRUNK.get(name, 1.0))
        points, box = {id(views.images): features_of(views)}, box_of(views)
        cases: Iterator[Planted] = planted(views, box)
        for case in (Planted("as it is", None, views, views.box), *cases):
            if case.code and not any(part in case.fault for part in wanted):
                continue
            began = time.process_time()
            known = points.get(id(case.views.images))
            found = examine(case.views, case.box, known).findings
            seconds = time.process_time() - began
            wrong = [each for each in found if each.severity != "note"]
            hit = any(each.code == case.code for each in wrong) if case.code else not wrong
            others = [each.code for each in wrong if each.code != case.code]
            tried, caught = tried + bool(case.code), caught + bool(case.code and hit)
            alarms += len(wrong) if not case.code else 0
            result = ("caught" if hit else "MISSED") if case.code else ("fine" if hit else "FALSE ALARM")
            print(f"{name:14} {case.fault:28} {result:12} {seconds:5.1f} s of CPU  {' '.join(others)}", flush=True)
            if asked.words:
                print("\n".join(f"    {each}" for each in found), flush=True)
        with tempfile.TemporaryDirectory() as place:
            half = (
                halved(folder, Path(place) / name) if any(part in "half the files missing" for part in wanted) else None
            )
            if half is not None:
                _, said = read_set(half, None, downscale=8 * SHRUNK.get(name, 1.0))
                hit = any(each.code == "missing-files" and each.severity == "warning" for each in said)
                tried, caught = tried + 1, caught + hit
                print(f"{name:14} {'half the files missing':28} {'caught' if hit else 'MISSED'}", flush=True)
    print(f"{caught} of {tried} caught, {alarms} false alarms")


if __name__ == "__main__":
    main()
