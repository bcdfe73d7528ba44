"""Gradient check of a user's own volume and cameras, in a process of its own: precision belongs to a process.

The volume goes there as HDF5, the cameras as JSON, in a folder that only this user can read; rows come back as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import one_of, optional, some_of, whole
from raymarch.arguments.declared import checked
from raymarch.data.default_table import has_values_alone
from raymarch.data.transfer_function import TransferFunction
from raymarch.data.views import CAMERAS, Views, require_colour
from raymarch.data.volume import VOLUME, AnyVolume, Volume
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.lens import Lens
from raymarch.gradients.checks import GradientRow, check_rows
from raymarch.gradients.linearised import EXACT, Linearised
from raymarch.gradients.parameters import CHOICES, groups_of, require_groups
from raymarch.gradients.part import part_met
from raymarch.io.volumes.volume_file import load, save
from raymarch.rendering.march import MARCH, March
from raymarch.rendering.shading import Shading

EXPOSURE = (1.1, 0.9, 1.05, 0.02, -0.01, 0.03)  # not plain, or half of its terms would be invisible
CANDIDATES = 16  # rays that are looked at for each that is taken
MET = 0.01  # opacity from which a ray counts as having met something


@dataclass(frozen=True)
class GradientReport:
    """Gradient check report: a `GradientRow` for each group of parameters, and the seconds it took.

    `shape` is that of the part of the volume that was looked at: all of it up to 64 samples a side.
    """

    rows: tuple[GradientRow, ...]
    seconds: float
    shape: tuple[int, ...] = ()

    @property
    def good(self) -> bool:
        """Verdict: whether no gradient is wrong; one at a kink is not."""
        return all(row.verdict != "wrong" for row in self.rows)

    def __str__(self) -> str:
        lines = [f"{'parameter':16} {'dot':>8} {'difference':>10} {'worst':>8} {'at kinks':>8}  verdict"]
        for row in self.rows:
            numbers = ["-" if x is None else f"{x:.1e}" for x in (row.dot, row.difference, row.worst)]
            lines.append(
                f"{row.parameter:16} {numbers[0]:>8} {numbers[1]:>10} {numbers[2]:>8} {row.kinks:8.1%}  {row.verdict}"
            )
        kind = f"mode {self.rows[0].mode}, {self.rows[0].precision}" if self.rows else "no rows"
        verdict = "the gradients are right" if self.good else "A GRADIENT IS WRONG"
        if all(row.verdict in ("flat", "at a kink") for row in self.rows):
            verdict = "nothing was checked: nothing moves, or all is at a kink; choose other cameras"
        return "\n".join([*lines, f"{verdict} ({kind}, {self.seconds:.0f} s)"])


@checked(
    volume=VOLUME,
    where=CAMERAS,
    parameters=optional(some_of(*CHOICES)),
    precision=one_of(*runtime.PRECISIONS),
    march=MARCH,
    rays=whole(1, 1 << 20),
    seed=whole(0, 2**31 - 1),
    arch=one_of(*runtime.ARCHES),
)
def check_gradients(
    volume: AnyVolume,
    where: Camera | Views | Sequence[Camera],
    parameters: Sequence[str] | None = None,
    *,
    precision: str = "f64",
    march: March = EXACT,
    rays: int = 256,
    seed: int = 0,
    arch: str = "cpu",
) -> GradientReport:
    """Gradient check of a volume's image, by everything that shapes it.

    Each adjoint is held against its tangent by the dot test `<Jv, w> = <v, J'w>`, and each tangent against central
    differences of the march in double precision, on a random subset of the rays of one random camera. Runs in a process
    of its own, so it works from a session that computes in single precision.

    Args:
        volume: as it comes from a fit or a file.
        where: cameras, or views.
        parameters: some of "density", "colour", "background", "pose", "focal", "principal_point", "exposure", "step",
            "box", "lens", "iso", "table"; all that the mode of `march` sees and the camera's lens has if not given.
        precision: "f64", or "f32", where only the dot test is made.
        march: how rays are sampled; early stop is off unless asked for, as its steps are no part of a derivative.
        rays: how many; those that meet something are taken first.
        seed: of the choice of camera, rays and directions.
        arch: "cpu" or "cuda".

    Of a volume of more than 64 samples a side the part is looked at that the camera's rays meet most. A mode or an
    activation of one's own is checked in this process, which must compute in `precision`, or is started so by this.

    Raises RaymarchError for a parameter that does not exist or that the mode does not see.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(12, 12, 12))
        >>> check_gradients(ball, Camera.look_at((0, -4, 0), width=32, height=32), ["pose"]).good
        True
    """
    started = time.perf_counter()
    cameras: list[Camera] = list(where)  # type: ignore[arg-type]  # as CAMERAS reads them
    camera = cameras[int(np.random.default_rng(seed).integers(len(cameras)))]
    names = list(groups_of(march.rule, camera.lens) if parameters is None else parameters)
    require_groups(names, march.rule, camera.lens)
    volume = part_met(volume, camera, seed, march.clip)
    if own := _own_of(volume, march):
        rows = _rows_here(own, volume, camera, march, names, precision, rays, seed)
        return GradientReport(tuple(rows), time.perf_counter() - started, volume.shape)
    asked = {
        "pose": camera.world_from_camera.tolist(),
        "intrinsics": {name: getattr(camera, name) for name in ("focal", "principal", "width", "height")},
        "lens": asdict(camera.lens),
        "march": {name: value for name, value in asdict(march).items() if name != "transfer"},
        "table": march.transfer and march.transfer.record(),
        "how": {"names": names, "precision": precision, "rays": rays, "seed": seed, "arch": arch},
    }
    try:
        with tempfile.TemporaryDirectory(prefix="raymarch-") as folder:
            save(volume, Path(folder) / "volume.h5")
            (Path(folder) / "asked.json").write_text(json.dumps(asked, default=float))
            _run(folder)
            rows = json.loads((Path(folder) / "rows.json").read_text())
    except OSError as error:
        raise RaymarchError(f"no use of the folder for temporary files: {error}; set TMPDIR to another") from None
    if isinstance(rows, str):
        raise RaymarchError(rows)
    return GradientReport(tuple(GradientRow(**row) for row in rows), time.perf_counter() - started, volume.shape)


def _own_of(volume: Volume, march: March) -> str | None:
    """What of the user's own, known to no other process, the image depends on."""
    for kind, value in (
        ("mode", march.mode),
        ("density activation", volume.activation.density),
        ("colour activation", volume.activation.colour),
    ):
        if not isinstance(value, str):
            return f"{kind} {value.name!r}"
    return None


def _rows_here(
    own: str, volume: Volume, camera: Camera, march: March, names: Sequence[str], precision: str, rays: int, seed: int
) -> list[GradientRow]:
    """The check in this process, where an object of the user's own is; started in `precision` if nothing runs yet."""
    try:
        runtime.start(precision=precision)
    except RaymarchError as error:
        raise RaymarchError(
            f"{own} is an object of this process, where {error}, or call rm.start"
            f'("cpu", "{precision}") before anything else'
        ) from None
    return _rows(volume, camera, march, names, rays, seed)


def _rows(
    volume: Volume, camera: Camera, march: March, names: Sequence[str], rays: int, seed: int
) -> list[GradientRow]:
    pixels = _pixels(volume, camera, march, rays, seed)
    with Linearised(volume, camera, background=_seen(volume), exposure=EXPOSURE, march=march, pixels=pixels) as seen:
        return check_rows(seen, names, seed)


def _run(folder: str) -> None:
    """The worker, to its end; it is stopped with this process's own interruption."""
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "raymarch.gradients.check_process", folder]
    env = {**os.environ, "PYTHONPATH": path}
    # In its own folder: what lies where the caller stands must not stand in for Python's modules.
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RaymarchError(f"the process that checks gradients ended with {done.returncode}: {last}")


def _work(folder: Path) -> list[GradientRow]:
    """What the worker does with its folder."""
    asked = json.loads((folder / "asked.json").read_text())
    how, shading, clip = asked["how"], asked["march"]["shading"], asked["march"]["clip"]
    table = asked["table"] and TransferFunction.of_record(asked["table"])
    own = {"shading": shading and Shading(**shading), "transfer": table, "clip": clip and Clip(**clip)}
    march = March(**{**asked["march"], **own})
    runtime.start(how["arch"], how["precision"])
    volume = load(folder / "volume.h5")
    camera = Camera(np.array(asked["pose"]), **{**asked["intrinsics"], "lens": Lens(**asked["lens"])})
    return _rows(volume, camera, march, how["names"], how["rays"], how["seed"])


def _seen(volume: Volume) -> tuple[float, ...]:
    """A background that no channel is lost on: the volume's own, unless it is black somewhere."""
    return tuple(c if c > 0 else 0.25 for c in require_colour(volume.background))


def _pixels(volume: Volume, camera: Camera, march: March, rays: int, seed: int) -> np.ndarray:
    """Random pixels that the volume's box covers, those that meet something first."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(_covered(volume, camera))[: CANDIDATES * rays]
    as_it_is = march.rule.classifies or has_values_alone(volume)
    looking = march if as_it_is else replace(march, mode=EXACT.mode, iso=None, shading=None)
    with Linearised(volume, camera, march=looking, pixels=some) as seen:
        met = seen.image()[:, 3] < 1 - MET
    return np.concatenate([some[met], some[~met]])[:rays]


def _covered(volume: Volume, camera: Camera) -> np.ndarray:
    """Pixels of the rectangle that holds the box's corners; all where some lie behind, or none of it is seen."""
    seen, depth = camera.project(volume.corners)
    pixels = np.arange(camera.width * camera.height).reshape(camera.height, camera.width)
    if (depth <= 0).any():
        return pixels.ravel()
    columns, rows = (slice(max(int(a.min()), 0), max(int(np.ceil(a.max())), 0)) for a in seen.T)
    some = pixels[rows, columns]
    return (some if some.size else pixels).ravel()


def _main(folder: str) -> None:
    try:
        rows: list | str = [asdict(row) for row in _work(Path(folder))]
    except RaymarchError as error:
        rows = str(error)
    (Path(folder) / "rows.json").write_text(json.dumps(rows))


if __name__ == "__main__":
    _main(sys.argv[1])
