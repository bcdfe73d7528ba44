"""Demonstration: a scene made in seconds, a volume fitted to its views, held-out views, pictures in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raymarch.demo.island import BOX, island
from raymarch.demo.scene_views import CAMERA_DISTANCE, CAMERA_FOV, CAMERA_TARGET, cameras, views_of
from raymarch.evaluation.held_out import Evaluation, evaluate
from raymarch.fitting.fit import fit
from raymarch.fitting.report import Fit, Report, cut_short
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit
from raymarch.io.files.atomic import replace_file, replace_folder, require_new_folder
from raymarch.io.files.authorship import require_only, sizes_in
from raymarch.io.images.write import write_png
from raymarch.io.videos.write_video import has_av, write_video
from raymarch.io.volumes.volume_file import save
from raymarch.plot.panels import picture_of
from raymarch.rendering.renderer import Renderer
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

RECORD_FILE = "demo.json"  # in a folder that a demonstration made, which the next one may replace
WARM_UP_STEPS = 3  # steps
ShowProgress = Callable[[str, int, int], None]  # what is done, how much of it, of how much


@dataclass(frozen=True)
class Plan:
    """Sizes of a demonstration: views to fit and held out, pixels a side, seconds of the fit, frames of the orbit and
    their pixels a side, and samples along the volume's longest side."""

    train: int = 48
    test: int = 8
    size: int = 176
    seconds: float = 35.0
    frames: int = 60
    frame_size: int = 352
    resolution: int = 144
    seed: int = 0


@dataclass(frozen=True)
class DemonstrationResult:
    """Result of a demonstration: the fit, its scores on held-out views, and the pictures' names."""

    fit: Fit
    scores: Evaluation
    pictures: tuple[str, ...]


def require_demo_folder(out: str | os.PathLike[str]) -> None:
    """Write check: RaymarchError where a demonstration could not be written, or would replace other things."""
    try:
        record = json.loads((Path(out) / RECORD_FILE).read_text())
        ours = dict(record["files"]) if record["made by"] == "raymarch demo" else {}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        ours = {}
    require_only(out, ours)
    require_new_folder(out, overwrite=True)


def demonstrate(
    out: str | os.PathLike[str],
    plan: Plan = Plan(),
    *,
    show: ShowProgress = lambda *_: None,
    report: Callable[[Report], None] | None = None,
    done: Callable[[str], None] = lambda _: None,
) -> DemonstrationResult:
    """Demonstration in a folder, which is there once all of it is: island.h5, its views, pictures and scores.

    `show` is called as views and pictures are made, `report` with the fit's reports, `done` with a line after each
    part. Ctrl-C ends the fit early, and what is there is evaluated.

    Raises RaymarchError where the folder cannot be written or is not a demonstration's.
    """
    require_demo_folder(out)
    with replace_folder(out) as folder:
        train, test = make_views(plan, show)
        _write_set(folder / "scene", {"train": train, "test": test})
        done(f"scene     {len(train)} views to fit and {len(test)} held out, of {plan.size} x {plan.size} pixels")
        result = _fit(train, plan, show, report)
        done(f"fit       {result.seconds:.0f} s, {len(result.history) and result.history[-1].step} steps")
        if cut_short(result.ended):
            done(f"          {result.ended}; pictures of what is there follow, Ctrl-C ends them")
        save(result.volume, folder / "island.h5")
        scores, rendered = _evaluate(result.volume, test, show)
        done(f"held out  PSNR {scores.psnr:.2f} dB, SSIM {scores.ssim or np.nan:.3f}, over {len(test)} views")
        pictures = _pictures(folder, result, test, rendered, plan, show)
        _write_record(folder, plan, result, scores)
    return DemonstrationResult(result, scores, pictures)


def make_views(plan: Plan, show: ShowProgress) -> tuple[Views, Views]:
    """Views of the scene for the fit, and held-out views from other positions."""
    solids, total, count = island(plan.seed), plan.train + plan.test, iter(range(1, 1 << 30))

    def one() -> None:
        show("scene", next(count), total)

    train, test = (
        views_of(solids, cameras(n, plan.size, held_out), one)
        for n, held_out in ((plan.train, False), (plan.test, True))
    )
    return train, test


def _fit(train: Views, plan: Plan, show: ShowProgress, report: Callable[[Report], None] | None) -> Fit:
    """Fit of so many seconds. A few steps before it compile the kernels, which takes long the first time."""
    show("compiling", 0, 1)
    if cut_short(fit(train, "quick", steps=WARM_UP_STEPS, resolution=plan.resolution, box=BOX).ended):
        raise KeyboardInterrupt  # there is nothing yet to look at
    show("compiling", 1, 1)
    return fit(train, "quick", seconds=plan.seconds, resolution=plan.resolution, box=BOX, show=report)


def _evaluate(volume: Volume, test: Views, show: ShowProgress) -> tuple[Evaluation, list[np.ndarray]]:
    rendered: list[np.ndarray] = []

    def seen(i: int, image: np.ndarray) -> None:
        rendered.append(image)
        show("held out", i + 1, len(test))

    return evaluate(volume, test, seen=seen), rendered


def _pictures(
    folder: Path, result: Fit, test: Views, rendered: list[np.ndarray], plan: Plan, show: ShowProgress
) -> tuple[str, ...]:
    """Pictures of a folder: held-out views rendered, true and their error, the fit's way, and an orbit."""
    from raymarch import plot

    few = np.linspace(0, len(test) - 1, min(len(test), 4)).round().astype(int)
    truths, names = [test.rgb(i) for i in few], [f"held out {test.names[i]}" for i in few]
    write_png(folder / "held-out.png", picture_of(lambda: plot.error_sheet([rendered[i] for i in few], truths, names)))
    if result.history:
        write_png(folder / "fit.png", picture_of(lambda: _history(result)))
    name = "orbit.mp4" if has_av() else "orbit.gif"
    like = Camera.look_at((1, 0, 0), fov=CAMERA_FOV, width=plan.frame_size, height=plan.frame_size)
    path = orbit(CAMERA_TARGET, CAMERA_DISTANCE, plan.frames, elevation=20, like=like)
    with Renderer(result.volume) as renderer:

        def frames() -> Iterator[np.ndarray]:
            for i, camera in enumerate(path):
                yield renderer.render(camera, depth=False).image
                show("orbit", i + 1, len(path))

        write_video(folder / name, frames(), fps=20)
        write_png(folder / "view.png", renderer.render(path[-len(path) // 8].scaled(2), depth=False).image.clip(max=1))
    return tuple(sorted(file.name for file in folder.iterdir() if file.suffix in (".png", ".mp4", ".gif")))


def _history(result: Fit):  # type: ignore[no-untyped-def]  # a Figure of Matplotlib, which is imported when used
    from matplotlib.figure import Figure

    from raymarch import plot

    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    plot.history(result, figure.subplots(1, 2), against="seconds")
    return figure


def _write_set(folder: Path, splits: dict[str, Views]) -> None:
    """Image set in the layout of NeRF-synthetic."""
    folder.mkdir()
    for split, views in splits.items():
        (folder / split).mkdir()
        frames = []
        for i, (camera, name) in enumerate(zip(views.cameras, views.names, strict=True)):
            write_png(folder / split / f"{name}.png", views.image(i))
            frames.append({"file_path": f"./{split}/{name}", "transform_matrix": camera.world_from_camera.tolist()})
        angle = 2 * np.arctan(views.cameras[0].width / 2 / views.cameras[0].focal[0])
        with replace_file(folder / f"transforms_{split}.json") as temporary:
            temporary.write_text(json.dumps({"camera_angle_x": float(angle), "frames": frames}, indent=1) + "\n")


def _write_record(folder: Path, plan: Plan, result: Fit, scores: Evaluation) -> None:
    record = {
        "made by": "raymarch demo",
        "files": {**dict(sorted(sizes_in(folder).items())), RECORD_FILE: None},
        "scene": "made here by a ray tracer in NumPy: surfaces, sun and sky, no volume; held-out views are not fitted",
        "psnr": scores.psnr,
        "ssim": scores.ssim,
        "views": {view.name: view.psnr for view in scores.views},
        "seconds": result.seconds,
        "ended": result.ended,
        "plan": vars(plan),
    }
    with replace_file(folder / RECORD_FILE) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n")
