"""Gradient check of a user's own volumes and cameras, in a process of its own: precision belongs to a process.

Volumes go there as HDF5, the cameras as JSON, in a folder that only this user can read; rows come back as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import one_of, optional, some_of, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.lens import Lens
from raymarch.gradients.check import GradientRow, check_rows
from raymarch.gradients.check_sample import background_to_check, crop_met, over_ranges, pixels_to_check
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import CHOICES, groups_of, require_groups
from raymarch.html.card import card_html, html_of, table_html
from raymarch.io.volumes.volume_file import load, save
from raymarch.rendering.march_settings import EXACT, March
from raymarch.rendering.medium import (
    MARCHES_OF_SINGLE_RAYS,
    VOLUMES,
    AnyVolumes,
    several,
    single_marches_for,
)
from raymarch.rendering.shading import Shading
from raymarch.system.child_process import child_command
from raymarch.views.views import CAMERAS, Views
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

EXPOSURE = (1.1, 0.9, 1.05, 0.02, -0.01, 0.03)  # not plain, or half of its terms would be invisible


@dataclass(frozen=True)
class CheckTask:
    """What is checked: parts of volumes, their marches, groups (all if None), and whether they were given as a list."""

    volumes: Sequence[Volume]
    camera: Camera
    marches: Sequence[March]
    names: Sequence[str] | None
    rays: int
    seed: int
    listed: bool

    def rows(self) -> list[GradientRow]:
        """The check, in this process."""
        behind = background_to_check(self.volumes[0])
        pixels = pixels_to_check(self.volumes, self.camera, self.marches, self.rays, self.seed)
        volume, march = (self.volumes, self.marches) if self.listed else (self.volumes[0], self.marches[0])
        how: dict[str, Any] = {"background": behind, "exposure": EXPOSURE, "march": march, "pixels": pixels}
        with Linearised(volume, self.camera, **how) as seen:
            return check_rows(seen, self.names, self.seed)

    def record(self) -> dict:
        """All but the volumes, for JSON."""
        camera = self.camera
        return {
            "pose": camera.world_from_camera.tolist(),
            "intrinsics": {name: getattr(camera, name) for name in ("focal", "principal", "width", "height")},
            "lens": asdict(camera.lens),
            "marches": [{k: v for k, v in asdict(m).items() if k != "transfer"} for m in self.marches],
            "tables": [m.transfer and m.transfer.record() for m in self.marches],
            "task": {"names": self.names, "rays": self.rays, "seed": self.seed, "listed": self.listed},
        }

    @classmethod
    def of_record(cls, record: dict, volumes: Sequence[Volume]) -> CheckTask:
        """Task of what `record` gave, and its volumes."""
        camera = Camera(np.array(record["pose"]), **{**record["intrinsics"], "lens": Lens(**record["lens"])})
        marches = [_march_of(*one) for one in zip(record["marches"], record["tables"], strict=True)]
        return cls(volumes, camera, marches, **record["task"])


def _march_of(record: dict, table: dict | None) -> March:
    shading, clip = record["shading"], record["clip"]
    own = {"shading": shading and Shading(**shading), "clip": clip and Clip(**clip)}
    return March(**{**record, **own, "transfer": table and TransferFunction.of_record(table)})


@dataclass(frozen=True)
class GradientReport:
    """Gradient check report: a `GradientRow` for each group of parameters, and the seconds it took.

    `shape` is that of the part of the (first) volume that was looked at: all of it up to 64 samples a side.
    """

    rows: tuple[GradientRow, ...]
    seconds: float
    shape: tuple[int, ...] = ()

    @property
    def good(self) -> bool:
        """Verdict: whether no gradient is wrong; one at a kink is not."""
        return all(row.verdict != "wrong" for row in self.rows)

    def _repr_html_(self) -> str | None:
        return html_of(report_card, self)

    def __str__(self) -> str:
        lines = [f"{'parameter':16} {'dot':>8} {'difference':>10} {'worst':>8} {'at kinks':>8}  verdict"]
        for row in self.rows:
            numbers = ["-" if x is None else f"{x:.1e}" for x in (row.dot, row.difference, row.worst)]
            lines.append(
                f"{row.parameter:16} {numbers[0]:>8} {numbers[1]:>10} {numbers[2]:>8} {row.kinks:8.1%}  {row.verdict}"
            )
        modes = " and ".join(dict.fromkeys(row.mode for row in self.rows))
        kind = f"mode {modes}, {self.rows[0].precision}" if self.rows else "no rows"
        verdict = "the gradients are right" if self.good else "A GRADIENT IS WRONG"
        if all(row.verdict in ("flat", "at a kink") for row in self.rows):
            verdict = "nothing was checked: nothing moves, or all is at a kink; choose other cameras"
        return "\n".join([*lines, f"{verdict} ({kind}, {self.seconds:.0f} s)"])


def report_card(report: GradientReport) -> str:
    """HTML of a gradient check for a notebook: a row a parameter."""
    said = str(report).rsplit("\n", 1)[-1]
    heads = ("parameter", "dot product", "difference", "worst", "at kinks", "verdict")
    rows = []
    for row in report.rows:
        numbers = ["" if x is None else f"{x:.1e}" for x in (row.dot, row.difference, row.worst)]
        rows.append((row.parameter, *numbers, f"{row.kinks:.1%}", row.verdict))
    return card_html("GradientReport", [("", said)]) + table_html(heads, rows)


@checked(
    volume=VOLUMES,
    where=CAMERAS,
    parameters=optional(some_of(*CHOICES)),
    precision=one_of(*runtime.PRECISIONS),
    march=MARCHES_OF_SINGLE_RAYS,
    rays=whole(1, 1 << 20),
    seed=whole(0, 2**31 - 1),
    arch=one_of(*runtime.ARCHES),
)
def check_gradients(
    volume: AnyVolumes,
    where: Camera | Views | Sequence[Camera],
    parameters: Sequence[str] | None = None,
    *,
    precision: str = "f64",
    march: March | Sequence[March] = EXACT,
    rays: int = 256,
    seed: int = 0,
    arch: str = "cpu",
) -> GradientReport:
    """Gradient check of a volume's image, by everything that shapes it.

    Each adjoint is held against its tangent by the dot test `<Jv, w> = <v, J'w>`, and each tangent against central
    differences of the march in double precision, on a random subset of the rays of one random camera. Runs in a process
    of its own, so it works from a session that computes in single precision.

    Args:
        volume: as it comes from a fit or a file; or a list of volumes that are seen together.
        where: cameras, or views.
        parameters: some of "density", "colour", "background", "pose", "focal", "principal_point", "exposure", "step",
            "box", "lens", "iso", "table"; all that the mode of `march` sees and the camera's lens has if not given.
        precision: "f64", or "f32", where only the dot test is made.
        march: how rays are sampled; early stop is off unless asked for, as its steps are no part of a derivative. Of
            several volumes one each, or one for all.
        rays: how many; those that meet something are taken first.
        seed: of the choice of camera, rays and directions.
        arch: "cpu", "cuda", or "auto" for either; "vulkan" and "metal" in f32 alone.

    Of a volume of more than 64 samples a side the part is looked at that the camera's rays meet most. Rows of several
    volumes are named "volumes[0].density" and so on, and the groups are those of `Linearised`. A mode or an
    activation of one's own is checked in this process, which must run in `precision` on `arch`, or is started so by it.

    Raises RaymarchError for a parameter that does not exist or that the mode does not see.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(12, 12, 12))
        >>> check_gradients(ball, Camera.look_at((0, -4, 0), width=32, height=32), ["pose"]).good
        True
    """
    started = time.perf_counter()
    runtime.require_precision(arch, precision)
    cameras: list[Camera] = list(where)  # type: ignore[arg-type]  # as CAMERAS reads them
    camera = cameras[int(np.random.default_rng(seed).integers(len(cameras)))]
    volumes, marches = several(volume), single_marches_for(volume, march)
    rules = [one.rule for one in marches]
    names = list(groups_of(rules, camera.lens)) if parameters is None else list(parameters)
    require_groups(names, rules, camera.lens)
    volumes = [over_ranges(crop_met(one, camera, seed, its.clip)) for one, its in zip(volumes, marches, strict=True)]
    task = CheckTask(volumes, camera, marches, names, rays, seed, isinstance(volume, list))
    if own := next(filter(None, map(_user_functions, volumes, marches)), None):
        rows = _rows_here(own, task, precision, arch)
    else:
        rows = _rows_in_process(task, precision, arch)
    return GradientReport(tuple(rows), time.perf_counter() - started, volumes[0].shape)


def _rows_in_process(task: CheckTask, precision: str, arch: str) -> list[GradientRow]:
    """The check in a process of its own."""
    asked = {**task.record(), "runtime": {"arch": arch, "precision": precision}}
    try:
        with tempfile.TemporaryDirectory(prefix="raymarch-") as folder:
            for i, volume in enumerate(task.volumes):
                save(volume, Path(folder) / f"volume_{i}.h5")
            (Path(folder) / "asked.json").write_text(json.dumps(asked, default=float))
            _run(folder)
            rows = json.loads((Path(folder) / "rows.json").read_text())
    except OSError as error:
        raise RaymarchError(f"no use of the folder for temporary files: {error}; set TMPDIR to another") from None
    if isinstance(rows, str):
        raise RaymarchError(rows)
    return [GradientRow(**row) for row in rows]


def _user_functions(volume: Volume, march: March) -> str | None:
    """What of the user's own, known to no other process, the image depends on."""
    for kind, value in (
        ("mode", march.mode),
        ("density activation", volume.activation.density),
        ("colour activation", volume.activation.colour),
    ):
        if not isinstance(value, str):
            return f"{kind} {value.name!r}"
    return None


def _rows_here(own: str, task: CheckTask, precision: str, arch: str) -> list[GradientRow]:
    """The check in this process, where an object of the user's own is; started as asked for if nothing runs yet."""
    try:
        runtime.start(arch, precision)
    except RaymarchError as error:
        raise RaymarchError(
            f"{own} is an object of this process, where {error}, or call rm.start"
            f'("{arch}", "{precision}") before anything else'
        ) from None
    return task.rows()


def _run(folder: str) -> None:
    """The worker, to its end; it is stopped with this process's own interruption."""
    command = child_command("raymarch.gradients.check_process", folder)
    # In its own folder: what lies where the caller stands must not stand in for Python's modules.
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RaymarchError(f"the process that checks gradients ended with {done.returncode}: {last}")


def _work(folder: Path) -> list[GradientRow]:
    """What the worker does with its folder."""
    asked = json.loads((folder / "asked.json").read_text())
    runtime.start(**asked["runtime"])
    volumes = [load(folder / f"volume_{i}.h5") for i in range(len(asked["marches"]))]
    return CheckTask.of_record(asked, volumes).rows()


def _main(folder: str) -> None:
    try:
        rows: list | str = [asdict(row) for row in _work(Path(folder))]
    except RaymarchError as error:
        rows = str(error)
    (Path(folder) / "rows.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    _main(sys.argv[1])
