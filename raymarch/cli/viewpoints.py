"""Options of where to look from, and the cameras that they say: of a set, on an orbit, a spiral, a path of keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import output
from raymarch.cli.option_kinds import DEGREE_UNITS, Direction, Numbers, Real, Size, Whole, pack_options
from raymarch.cli.set_options import refined_views

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from raymarch.geometry.camera import Camera
    from raymarch.rendering.default_look import DefaultLook
    from raymarch.volumes.volume import Volume

IMAGE_SIDE = 512  # pixels of an orbit's or a spiral's images, unless --size says
MAX_SIDE = 16384  # pixels
PATH_FRAMES = 120  # of a path
CIRCLES = (
    "circle",
    "orbit",
    "ring",
    "turntable",
    "turn",
    "360",
    "rotate",
    "rotation",
    "loop",
)  # what --orbit is called
MIN_DENSE = 0.25  # share of the light that is lost where a volume counts as dense
DEFAULT_FOV = 40.0  # degrees, of --position
ELEVATION_OF_VALUES = 10.0  # degrees: a scan is seen nearly level, as `rendering.default_look` has it
MAX_KEYS = 16  # cameras of a set that a path goes through

views = click.option("--views", "data", help="Image set whose cameras to render from.")
split = click.option("--split", help="Which of its views; test if not given, train for --path cameras.")
path = click.option(
    "--path",
    metavar="spiral|cameras|FILE.json",
    help="Smooth path at constant speed: a spiral about --up, through cameras of --views, or keys of the viewer; or"
    " nerfstudio's camera_path.json as it is.",
)
frames = click.option(
    "--frames",
    type=Whole(1, 100000),
    help=f"How many cameras on --path, {PATH_FRAMES} if not given; of a nerfstudio path as many as it has.",
)
orbit = click.option("--orbit", type=Whole(1, 10000), help="So many cameras on a circle about --up.")
elevation = click.option(
    "--elevation", type=Real(-89, 89, units=DEGREE_UNITS), help="Of the orbit [degree]; 25 if not given, 10 of a scan."
)
up = click.option(
    "--up",
    type=Direction(),
    metavar="X,Y,Z",
    help="Direction that is up in the world, z if not given. raymarch doctor tells a set's.",
)
size = click.option(
    "--size",
    type=Size(),
    metavar="SIDE|WIDTH,HEIGHT",
    help="Of the images of an orbit or a path [pixel]; if not given 512, or as the cameras of the path have it.",
)
orthographic = click.option(
    "--orthographic", is_flag=True, help="Parallel rays on the orbit or spiral, all images of one scale."
)
position = click.option(
    "--position",
    type=Numbers(float, 3),
    metavar="X,Y,Z",
    help="One picture, from this point of the world; with --target, --up, --fov. The viewer copies such a command.",
)
target = click.option(
    "--target",
    type=Numbers(float, 3),
    metavar="X,Y,Z",
    help="What --position looks at, the volume's middle if not given; of --panorama and --cubemap what is ahead, level"
    " along an axis of the world if not given.",
)
panorama = click.option(
    "--panorama",
    type=Whole(2, MAX_SIDE),
    metavar="WIDTH",
    help="One picture of all around, longitude by latitude, WIDTH by half as many pixels; from --position, the volume's"
    " middle if not given; what is ahead, at --target, is in its middle.",
)
cubemap = click.option(
    "--cubemap",
    type=Whole(1, MAX_SIDE),
    metavar="SIDE",
    help="Six pictures of all around, SIDE pixels a side: a folder with px, nx, py, ny, pz and nz.png, as OpenGL has"
    " them, or one .png with them side by side; from where --panorama is, pz toward --target.",
)
fov = click.option(
    "--fov", type=Real(1e-3, 179.99), help=f"Horizontal field of view [degree], {DEFAULT_FOV:g} if not given."
)


@dataclass(frozen=True)
class Viewpoints:
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
    position: list[float] | None = None
    target: list[float] | None = None
    fov: float | None = None
    panorama: int | None = None
    cubemap: int | None = None

    @property
    def is_single(self) -> bool:
        """Whether they are one picture, or a cube map's six, which may be one file."""
        return self.position is not None or self.sees_all_around

    @property
    def sees_all_around(self) -> bool:
        """Whether they are a panorama or a cube map."""
        return self.panorama is not None or self.cubemap is not None

    def require(self) -> None:
        """UsageError for options that do not go together."""
        of_set = self.data is not None and self.path is None
        if of_set + (self.orbit is not None) + (self.path is not None) + self.is_single != 1:
            ways = "--position X,Y,Z, --panorama WIDTH, --cubemap SIDE, --views DATA, --orbit COUNT or --path"
            raise click.UsageError(f"say where to look from: {ways} spiral|cameras|FILE.json, one of them")
        if self.panorama is not None and self.cubemap is not None:
            raise click.UsageError("--panorama and --cubemap are two pictures of the same; leave one out")
        if (self.path == "cameras") != (self.data is not None) and self.path is not None:
            raise click.UsageError("--path cameras goes through those of --views DATA; give both, or another path")
        around = self.orbit is not None or self.path == "spiral" or self.is_single
        whole = "--panorama" if self.cubemap is None else "--cubemap"
        if self.sees_all_around and self.orthographic:
            raise click.UsageError(f"{whole} sees all around from one point, --orthographic from none; leave one out")
        if self.orthographic and not around:
            raise click.UsageError(
                "--orthographic is for --orbit, --position and --path spiral; other cameras are what they are"
            )
        if self.up is not None and not around:
            raise click.UsageError("--up is for --orbit, --position and --path spiral; other cameras are what they are")
        for name, given, there, its, cure in (
            ("--target", self.target, self.is_single, "--position", "give it, or leave the target out"),
            (
                "--fov",
                self.fov,
                self.position is not None and not self.sees_all_around,
                f"--position without {whole}",
                "other cameras have their own",
            ),
            (
                "--size",
                self.size,
                not of_set and not self.sees_all_around,
                "--orbit, --position and --path",
                f"the cameras of --views DATA are what they are, and {whole} says its own width",
            ),
            ("--elevation", self.elevation, self.orbit is not None, "--orbit", "a spiral or a path has its own"),
            ("--frames", self.frames, self.path is not None, "--path", "--orbit COUNT says its own count"),
            ("--split", self.split, self.data is not None, "--views DATA", "give it, or leave the split out"),
        ):
            if given is not None and not there:
                raise click.UsageError(f"{name} is for {its}; {cure}")
        for side in self._sides or ():
            if not 1 <= side <= MAX_SIDE:
                raise click.UsageError(f"--size: {side} pixels, want 1 to {MAX_SIDE} a side")

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
        from raymarch.geometry.camera_path import reframe

        self.require()
        if self.sees_all_around:
            return self._all_around(run, volume, look, points)
        if self.position is not None:
            return [("0000", self._at(run, volume, look, points))]
        if self.data is not None and self.path is None:
            return cameras_of_views(volume, self.data, self.split or "test", reading)
        cameras = self._around(run, volume, look, points) if self.data is None else self._through(volume, reading)
        if self._sides is not None:
            cameras = [reframe(camera, *self._sides) for camera in cameras]
        return [(f"{i:04d}", camera) for i, camera in enumerate(cameras)]

    def _at(self, run: str, volume: Volume, look: DefaultLook, points: np.ndarray) -> Camera:
        from raymarch.viewer.pictures.viewer_camera import ViewerCamera

        if volume.ndc_from_world is not None and self.target is None:
            raise click.UsageError(f"{run} has no middle to look at; give --target X,Y,Z")
        width, height = self._sides or (IMAGE_SIDE, IMAGE_SIDE)
        target = ((points.min(0) + points.max(0)) / 2).tolist() if self.target is None else self.target
        how = {"up": self.up or look.up, "fov": self.fov or DEFAULT_FOV, "orthographic": self.orthographic}
        return ViewerCamera(position=self.position, target=target, width=width, height=height, **how).camera()  # type: ignore[arg-type]

    def _all_around(self, run: str, volume: Volume, look: DefaultLook, points: np.ndarray) -> list[tuple[str, Camera]]:
        from raymarch.geometry.camera import CUBE_FACES, Camera

        if volume.ndc_from_world is not None and self.position is None:
            raise click.UsageError(f"{run} has no middle to look from; give --position X,Y,Z")
        middle = (points.min(0) + points.max(0)) / 2
        eye, up = middle if self.position is None else self.position, self.up or look.up
        if self.cubemap is not None:
            return list(zip(CUBE_FACES, Camera.cubemap(eye, self.target, up, size=self.cubemap), strict=True))
        return [("0000", Camera.panorama(eye, self.target, up, width=self.panorama or IMAGE_SIDE))]

    def _around(self, run: str, volume: Volume, look: DefaultLook, points: np.ndarray) -> list[Camera]:
        from raymarch.errors import RaymarchError
        from raymarch.geometry.orbit import UP, orbit_of_points, spiral_of_points
        from raymarch.io.videos.camera_path_file import load_camera_path

        if self.path not in (None, "spiral"):
            if Path(str(self.path)).suffix.lower() != ".json":
                circle = str(self.path).lower() in CIRCLES
                cure = f"; did you mean --orbit {PATH_FRAMES}?" if circle else ""
                raise click.UsageError(f"--path {self.path}: want spiral, cameras, or a file that ends in .json{cure}")
            return load_camera_path(str(self.path), self.frames)
        if volume.ndc_from_world is not None:
            cure = "give --views SET, with --path cameras for a clip"
            raise RaymarchError(f"{run}: was seen from one side only and has no other; {cure}")
        side = min(self._sides or (IMAGE_SIDE, IMAGE_SIDE))
        up = UP("up", look.up if self.up is None else self.up)
        how: dict[str, Any] = {"size": side, "orthographic": self.orthographic, "up": up, "front": look.front}
        if self.up is None and look.front is not None and not getattr(volume, "world", ""):
            turned = "--up 0,0,-1 turns the picture upside down, --up 1,0,0 or 0,1,0 raises what lies on its side"
            output.print_note(f"the file says no sides of a body, so z is up; {turned}")
        if self.orbit is None:
            return spiral_of_points(points, self.frames or PATH_FRAMES, **how)
        usual = 25.0 if look.front is None else ELEVATION_OF_VALUES
        return orbit_of_points(points, self.orbit, usual if self.elevation is None else self.elevation, **how)

    def _through(self, volume: Volume, reading: dict[str, Any]) -> list[Camera]:
        from raymarch.geometry.camera_path import tour_order
        from raymarch.geometry.clear_path import clear_path

        keys = [camera for _, camera in cameras_of_views(volume, str(self.data), self.split or "train", reading)]
        order = tour_order(keys, MAX_KEYS)
        if len(order) < len(keys):
            output.print_note(f"through {len(order)} of {len(keys)} cameras")
        path = clear_path(keys, order, self.frames or PATH_FRAMES, matter_of(volume, keys))
        if path.inside:
            told = f"the straight way leads through the volume in {path.inside} of {len(path.cameras)} frames"
            how = [f"goes by {path.by} more cameras"] * bool(path.by)
            how += [f"stands farther back in {path.back} frames"] * bool(path.back)
            how = how or ["goes from place to place"] * (path.left < path.inside)
            output.print_note(f"{told}; the path {' and '.join(how)}" if how else told)
            if path.left:
                cure = "keys that raymarch view saves, as --path FILE.json, go where they are put"
                output.print_note(f"note: {path.left} frames are inside the volume still; {cure}")
        return path.cameras


def matter_of(volume: Volume, cameras: Sequence[Camera]) -> Callable[[np.ndarray], np.ndarray]:
    """Whether a fitted volume is dense at points of the world: as much light is lost over a twentieth of the way to
    what the cameras look at as `MIN_DENSE` says. Of values without colours, and of NDC, nothing is known to be."""
    import numpy as np

    from raymarch.geometry.alignment import meeting_of_axes
    from raymarch.volumes.default_table import has_values_alone
    from raymarch.volumes.volume import Volume as Fitted

    if not isinstance(volume, Fitted) or volume.ndc_from_world is not None or has_values_alone(volume):
        return lambda points: np.zeros(len(points), bool)
    places = np.array([camera.position for camera in cameras])
    meeting = meeting_of_axes(cameras)
    far = np.linalg.norm(places - (places.mean(0) if meeting is None else meeting), axis=1)
    length = max(float(np.median(far)) / 20, volume.voxel)
    boxes = [volume.nested(n) for n in range(volume.boxes)] if volume.boxes > 1 else [volume]
    about = length / 4 * np.concatenate([np.zeros((1, 3)), np.eye(3), -np.eye(3)])  # and close by

    def is_dense(points: np.ndarray) -> np.ndarray:
        asked = (points[:, None] + about).reshape(-1, 3)
        sigma, known = np.zeros(len(asked)), np.zeros(len(asked), bool)
        for box in boxes:  # from the innermost on
            index_from_world = np.linalg.inv(box.world_from_index)
            index = np.rint(asked @ index_from_world[:3, :3].T + index_from_world[:3, 3])
            inside = ((index >= 0) & (index < box.box_shape)).all(1) & ~known
            if inside.any():
                i, j, k = index[inside].astype(int).T
                sigma[inside] = box.activation.sigma(box.at([i, j, k])[0])
            known |= inside
        dense: np.ndarray = 1 - np.exp(-sigma * length) > MIN_DENSE
        return np.asarray(dense.reshape(len(points), -1).any(1))

    return is_dense


def viewpoints(command: Any) -> Any:
    """Options of where to look from, given to a command as `viewpoints`, a record of them."""
    command = pack_options(Viewpoints, "viewpoints")(command)
    of_one, of_many = (fov, target, cubemap, panorama, position), (orthographic, size, frames, path, elevation, orbit)
    for option in (*of_one, up, *of_many, split, views):
        command = option(command)
    return command


NOT_OF_CAMERAS = ("background", "masks", "depths", "depth_unit")  # options of reading that bear on images alone


def cameras_of_views(volume: Volume, data: str, split: str, how: dict[str, Any]) -> list[tuple[str, Camera]]:
    """Cameras of an image set, with the names of its views."""
    from raymarch.io.image_sets.load import cameras_of_set, load_views

    if not isinstance(volume.provenance.get("refined"), dict):  # else images tell which views were fitted
        return cameras_of_set(data, split, **{key: value for key, value in how.items() if key not in NOT_OF_CAMERAS})
    views = refined_views(volume, load_views(data, split, for_fit=False, **how))
    return list(zip(views.names, views.cameras, strict=True))
