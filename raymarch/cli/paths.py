"""Options of camera paths, and the cameras that they say: of an image set, on an orbit, a spiral or a path of keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, say
from raymarch.cli.option_kinds import Numbers, Real, packed

if TYPE_CHECKING:
    import numpy as np

    from raymarch.data.volume import Volume
    from raymarch.geometry.camera import Camera
    from raymarch.rendering.default_look import DefaultLook

SIDE = 512  # pixels of an orbit's or a spiral's images, unless --size says
LARGEST = 16384
FRAMES = 120  # of a path
ELEVATION_OF_VALUES = 10.0  # degrees: a scan is seen nearly level, as `rendering.default_look` has it
KEYS = 16  # cameras of a set that a path goes through, at most

views = click.option("--views", "data", help="Image set whose cameras to render from.")
split = click.option("--split", help="Which of its views; test if not given, train for --path cameras.")
path = click.option(
    "--path",
    metavar="spiral|cameras|FILE.json",
    help="Smooth path at constant speed: a spiral about --up, through cameras of --views, or keys of the viewer.",
)
frames = click.option(
    "--frames", type=click.IntRange(1, 100000), help=f"How many cameras on --path, {FRAMES} if not given."
)
orbit = click.option("--orbit", type=click.IntRange(1, 10000), help="So many cameras on a circle about --up.")
elevation = click.option(
    "--elevation", type=Real(-89, 89), help="Of the orbit [degree]; 25 if not given, 10 of a scan."
)
up = click.option(
    "--up",
    type=Numbers(float, 3),
    metavar="X,Y,Z",
    help="Direction that is up in the world, for orbits and spirals; z if not given. raymarch doctor tells a set's.",
)
size = click.option(
    "--size",
    type=Numbers(int, 1, 2),
    metavar="SIDE|WIDTH,HEIGHT",
    help="Of the images of an orbit or a path [pixel]; if not given 512, or as the cameras of the path have it.",
)
orthographic = click.option(
    "--orthographic", is_flag=True, help="Parallel rays on the orbit or spiral, all images of one scale."
)


@dataclass(frozen=True)
class Where:
    """Where to look from, as the options say."""

    data: str | None
    split: str | None
    orbit: int | None
    elevation: float | None
    path: str | None
    frames: int | None
    size: Any
    orthographic: bool
    up: list[float] | None = None

    def require(self) -> None:
        """UsageError for options that do not go together."""
        of_set = self.data is not None and self.path is None
        if of_set + (self.orbit is not None) + (self.path is not None) != 1:
            ways = "--views DATA, --orbit COUNT or --path spiral|cameras|FILE.json"
            raise click.UsageError(f"say where to look from: {ways}, one of them")
        if (self.path == "cameras") != (self.data is not None) and self.path is not None:
            raise click.UsageError("--path cameras goes through those of --views DATA; give both, or another path")
        around = self.orbit is not None or self.path == "spiral"
        if self.orthographic and not around:
            raise click.UsageError("--orthographic is for --orbit and --path spiral; other cameras are what they are")
        if self.up is not None and not around:
            raise click.UsageError("--up is for --orbit and --path spiral; other cameras are what they are")
        for name, given, there, its, cure in (
            ("--size", self.size, not of_set, "--orbit and --path", "the cameras of --views DATA are what they are"),
            ("--elevation", self.elevation, self.orbit is not None, "--orbit", "a spiral or a path has its own"),
            ("--frames", self.frames, self.path is not None, "--path", "--orbit COUNT says its own count"),
            ("--split", self.split, self.data is not None, "--views DATA", "give it, or leave the split out"),
        ):
            if given is not None and not there:
                raise click.UsageError(f"{name} is for {its}; {cure}")
        for side in self._sides or ():
            if not 1 <= side <= LARGEST:
                raise click.UsageError(f"--size: {side} pixels, want 1 to {LARGEST} a side")

    @property
    def _sides(self) -> tuple[int, int] | None:
        if self.size is None:
            return None
        return (self.size, self.size) if isinstance(self.size, int) else tuple(self.size)

    def cameras(
        self, run: str, volume: Volume, look: DefaultLook, points: np.ndarray, reading: dict[str, Any]
    ) -> list[tuple[str, Camera]]:
        """Cameras with their names, those of orbits and spirals framed on points (n, 3).

        RaymarchError for a volume in NDC, seen from elsewhere, and for what is no path.
        """
        from raymarch.geometry.camera_path import framed

        self.require()
        if self.data is not None and self.path is None:
            return of_set(volume, self.data, self.split or "test", reading)
        cameras = self._around(run, volume, look, points) if self.data is None else self._through(volume, reading)
        if self._sides is not None:
            cameras = [framed(camera, *self._sides) for camera in cameras]
        return [(f"{i:04d}", camera) for i, camera in enumerate(cameras)]

    def _around(self, run: str, volume: Volume, look: DefaultLook, points: np.ndarray) -> list[Camera]:
        from raymarch.errors import RaymarchError
        from raymarch.geometry.orbit import UP, orbit_of_points, spiral_of_points
        from raymarch.io.videos.camera_path_file import load_camera_path

        if self.path not in (None, "spiral"):
            if Path(str(self.path)).suffix.lower() != ".json":
                raise click.UsageError(f"--path {self.path}: want spiral, cameras, or a file that ends in .json")
            return load_camera_path(str(self.path), self.frames or FRAMES)
        if volume.ndc_from_world is not None:
            cure = "give --views SET, with --path cameras for a clip"
            raise RaymarchError(f"{run}: was seen from one side only and has no other; {cure}")
        side = min(self._sides or (SIDE, SIDE))
        up = UP("up", look.up if self.up is None else self.up)
        how: dict[str, Any] = {"size": side, "orthographic": self.orthographic, "up": up, "front": look.front}
        if self.up is None and look.front is not None and not getattr(volume, "world", ""):
            say.note("the file says no sides of a body, so z is up; --up 0,0,-1 turns the picture upside down")
        if self.orbit is None:
            return spiral_of_points(points, self.frames or FRAMES, **how)
        usual = 25.0 if look.front is None else ELEVATION_OF_VALUES
        return orbit_of_points(points, self.orbit, usual if self.elevation is None else self.elevation, **how)

    def _through(self, volume: Volume, reading: dict[str, Any]) -> list[Camera]:
        from raymarch.geometry.camera_path import path_through
        from raymarch.geometry.tour import tour

        keys = [camera for _, camera in of_set(volume, str(self.data), self.split or "train", reading)]
        order = tour(keys, KEYS)
        if len(order) < len(keys):
            say.note(f"through {len(order)} of {len(keys)} cameras")
        return path_through([keys[i] for i in order], self.frames or FRAMES)


def where(command: Any) -> Any:
    """Options of where to look from, given to a command as `where`, a record of them."""
    command = packed(Where, "where")(command)
    for option in (up, orthographic, size, frames, path, elevation, orbit, split, views):
        command = option(command)
    return command


def of_set(volume: Volume, data: str, split: str, how: dict[str, Any]) -> list[tuple[str, Camera]]:
    """Cameras of an image set, with the names of its views."""
    from raymarch.io.image_sets.load import load_views

    views = options.as_refined(volume, load_views(data, split, for_fit=False, **how))
    return list(zip(views.names, views.cameras, strict=True))
