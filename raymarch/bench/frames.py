"""Benchmark of frames of a scan: fog and bone through a table, lit and not, and the maximum; beside VTK where asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.device.memory import require_memory
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import Renderer
from raymarch.rendering.shading import Shading
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction

VALUES = (0.0, 200.0, 350.0, 500.0, 750.0, 950.0, 1200.0, 1700.0)
REDS = (0.0, 0.7, 0.85, 0.9, 0.95, 1.0, 1.0, 1.0)
GREENS = (0.0, 0.25, 0.45, 0.6, 0.8, 0.9, 0.97, 1.0)
BLUES = (0.0, 0.2, 0.35, 0.45, 0.65, 0.8, 0.92, 1.0)
COLOURS = tuple(zip(REDS, GREENS, BLUES, strict=True))
FOG = (0.0, 0.0, 0.005, 0.02, 0.06, 0.12, 0.25, 0.5)  # opacities over a voxel
BONE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.6, 0.9)
Kind = tuple[tuple[float, ...] | None, bool]  # opacities, None of the maximum; whether lit
KINDS: dict[str, Kind] = {
    "fog": (FOG, False),
    "fog lit": (FOG, True),
    "bone": (BONE, False),
    "bone lit": (BONE, True),
    "maximum": (None, False),
}
STEP = 0.5  # voxels
FOV = np.deg2rad(30)
BYTES_A_SAMPLE = 60  # at most while the scan is made
PEER_MISSING = (
    "vtk is not installed, and its frames are what these are timed beside; pip install vtk, or leave --peer out"
)


@dataclass(frozen=True)
class FrameSpeed:
    """Speed of frames of one kind.

    Attributes:
        kind: one of `KINDS`.
        ms: milliseconds of a frame, the fastest of `repeats`, each from another camera.
        first_ms: of the first frame, which compiles or loads what was compiled.
        peer_ms: of VTK's ray caster for CPUs, in turn with ours; None if not asked.
        n, resolution, arch, threads, repeats: of what it was measured.
    """

    kind: str
    ms: float
    first_ms: float
    peer_ms: float | None
    n: int
    resolution: int
    arch: str
    threads: int
    repeats: int


def scan_of_lumps(n: int, seed: int = 0) -> np.ndarray:
    """Values (x, y, z) int16 of a scan made here: a shell of bone about soft lumps, with noise.

    Example:
        >>> scan_of_lumps(16).shape, int(scan_of_lumps(16).max()) > 700
        ((16, 16, 16), True)
    """
    rng, axis = np.random.default_rng(seed), np.linspace(-1, 1, n, dtype=np.float32)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij", sparse=True)
    far = np.sqrt((x / 0.85) ** 2 + (y / 0.92) ** 2 + (z / 0.8) ** 2)
    values = 950 * (far < 0.95) - 700 * (far < 0.84)
    for _ in range(30):
        c, r = rng.uniform(-0.45, 0.45, 3), rng.uniform(0.05, 0.16)
        near = np.exp(-((x - c[0]) ** 2 + (y - c[1]) ** 2 + (z - c[2]) ** 2) / (2 * r * r))
        values = values + rng.uniform(100, 600) * near
    noisy = values + rng.normal(0, 8, values.shape).astype(np.float32)
    return np.clip(np.rint(noisy), VALUES[0], 2000).astype(np.int16)


def bench_frames(n: int = 256, resolution: int = 512, *, repeats: int = 5, peer: bool = False) -> list[FrameSpeed]:
    """Benchmark of frames of a scan of n^3 samples, resolution^2 pixels, half a voxel a step, each kind in turn.

    Args:
        n, resolution: of scan and frames.
        repeats: timed frames of each kind, after one that is not.
        peer: whether VTK draws the same in turn, with as many threads.

    Raises RaymarchError where the scan does not fit the memory, or VTK is asked for and not installed.

    Example:
        >>> [speed.kind for speed in bench_frames(16, 32, repeats=1)][-1]
        'maximum'
    """
    running = runtime.start()
    require_memory((n, n, n), BYTES_A_SAMPLE * n**3, 0, "take a smaller n")
    values = scan_of_lumps(n)
    place = np.eye(4)
    place[:3, 3] = -(n - 1) / 2
    scan, found = ScalarVolume(values, place), []
    for kind, (opacities, lit) in KINDS.items():
        theirs = _frames_of_vtk(values, resolution, opacities, lit) if peer else None
        with Renderer(scan, _march(opacities, lit)) as renderer:

            def ours(k: int, renderer: Renderer = renderer) -> None:
                renderer.render(_camera(k, n, resolution), "black", depth=False)

            first, own, other = _in_turn(ours, theirs, repeats)
        found.append(FrameSpeed(kind, own, first, other, n, resolution, running.arch, runtime.threads(), repeats))
    return found


def _in_turn(
    ours: Callable[[int], None], theirs: Callable[[int], None] | None, repeats: int
) -> tuple[float, float, float | None]:
    """Milliseconds of our first frame, of our fastest and of the peer's, a frame of each after the other."""
    first, own, other = _ms(ours, 0), [], []
    if theirs is not None:
        theirs(0)
    for k in range(1, repeats + 1):
        own.append(_ms(ours, k))
        if theirs is not None:
            other.append(_ms(theirs, k))
    return first, min(own), min(other) if other else None


def _ms(draw: Callable[[int], None], k: int) -> float:
    begun = time.perf_counter()
    draw(k)
    return 1e3 * (time.perf_counter() - begun)


def _eye(k: int, n: int) -> tuple[float, float, float]:
    angle = np.deg2rad(20 + 7 * k)
    return 2.4 * n * float(np.sin(angle)), -2.4 * n * float(np.cos(angle)), 0.7 * n


def _camera(k: int, n: int, resolution: int) -> Camera:
    return Camera.look_at(_eye(k, n), (0, 0, 0), fov=FOV, width=resolution, height=resolution, up=(0, 0, 1))


def _march(opacities: tuple[float, ...] | None, lit: bool) -> March:
    if opacities is None:
        return March(mode="maximum", step=STEP)
    table = TransferFunction(np.array(VALUES), np.array(COLOURS), np.array(opacities), unit_length=1.0)
    light = Shading(ambient=0.3, diffuse=0.7, specular=0.2) if lit else None
    return March(mode="transfer", transfer=table, step=STEP, shading=light)


def _frames_of_vtk(
    values: np.ndarray, resolution: int, opacities: tuple[float, ...] | None, lit: bool
) -> Callable[[int], None]:
    """VTK's fixed-point ray caster on the same scan, table, steps and cameras: draws frame k off the screen."""
    try:
        import vtk
        from vtk.util.numpy_support import numpy_to_vtk
    except ImportError:
        raise RaymarchError(PEER_MISSING) from None
    n, image, shown = len(values), vtk.vtkImageData(), vtk.vtkVolumeProperty()
    image.SetDimensions(n, n, n)
    image.SetOrigin(*(-(n - 1) / 2,) * 3)
    image.GetPointData().SetScalars(numpy_to_vtk(values.ravel(order="F"), deep=1, array_type=vtk.VTK_SHORT))
    colour, opacity = vtk.vtkColorTransferFunction(), vtk.vtkPiecewiseFunction()
    ends = ((VALUES[0], (0, 0, 0), 1.0), (VALUES[-1], (1, 1, 1), 1.0))
    for value, rgb, alpha in ends if opacities is None else zip(VALUES, COLOURS, opacities, strict=True):
        colour.AddRGBPoint(value, *rgb)
        opacity.AddPoint(value, alpha)
    shown.SetColor(colour)
    shown.SetScalarOpacity(opacity)
    shown.SetScalarOpacityUnitDistance(1)
    shown.SetInterpolationTypeToLinear()
    shown.SetShade(lit)
    shown.SetAmbient(0.3)
    shown.SetDiffuse(0.7)
    shown.SetSpecular(0.2)
    mapper, actor = vtk.vtkFixedPointVolumeRayCastMapper(), vtk.vtkVolume()
    mapper.SetInputData(image)
    mapper.SetNumberOfThreads(runtime.threads())
    mapper.AutoAdjustSampleDistancesOff()
    mapper.SetImageSampleDistance(1)
    mapper.SetSampleDistance(STEP)
    mapper.SetInteractiveSampleDistance(STEP)
    if opacities is None:
        mapper.SetBlendModeToMaximumIntensity()
    actor.SetMapper(mapper)
    actor.SetProperty(shown)
    return _drawn_off_screen(vtk, actor, n, resolution)


def _drawn_off_screen(vtk: Any, actor: Any, n: int, resolution: int) -> Callable[[int], None]:
    renderer, window = vtk.vtkRenderer(), vtk.vtkRenderWindow()
    renderer.AddVolume(actor)
    window.SetOffScreenRendering(1)
    window.SetSize(resolution, resolution)
    window.SetMultiSamples(0)
    window.AddRenderer(renderer)
    camera = renderer.GetActiveCamera()
    camera.SetViewUp(0, 0, 1)
    camera.SetFocalPoint(0, 0, 0)
    camera.SetViewAngle(float(np.rad2deg(FOV)))

    def draw(k: int) -> None:
        camera.SetPosition(*_eye(k, n))
        renderer.ResetCameraClippingRange()
        window.Render()

    return draw
