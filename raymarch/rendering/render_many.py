"""Many images of volumes that lie in files, each by a worker that reads the files for itself.

A volume of 57 MB on the disk is 143 MB in memory and on a wire, its path is a line. So what travels to a worker is a
`SceneFiles` and a camera, and what comes back is an image.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from raymarch.arguments.checks import flag, optional, path
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.io.files.stamp import stamp_of
from raymarch.io.volumes.volume_file import load
from raymarch.rendering.march_settings import March
from raymarch.rendering.medium import MARCHES, MAX_VOLUMES, Marches
from raymarch.rendering.renderer import BACKGROUND, Renderer, Rendering
from raymarch.tasks.executors import EXECUTOR, Where, run_tasks
from raymarch.tasks.last_made import LastMade
from raymarch.tasks.worker import Device
from raymarch.views.views import CAMERAS
from raymarch.volumes.volume import AnyVolume, Colour, Volume


@dataclass(frozen=True)
class VolumeFile:
    """A volume as a worker finds it: an absolute `path`, its `format` if that was said, the `channels` that are shown
    as colours, the `world` that a scan is turned into; and how many bytes the file has and when it was written, which
    a worker compares with what it sees."""

    path: str
    format: str | None = None
    channels: tuple[str, ...] | None = None
    world: str = ""
    stamp: tuple[int, int] | None = field(default=None)  # bytes, nanoseconds; None of a folder

    @staticmethod
    def of(
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        channels: Sequence[str] | None = None,
        world: str = "",
    ) -> VolumeFile:
        """That of a file that is there; RaymarchError for one that is not."""
        whole = os.path.abspath(path)
        if not os.path.exists(whole):
            raise RaymarchError(f"{path}: is not there; give the path of a volume's file")
        return VolumeFile(whole, format, None if channels is None else tuple(channels), world, stamp_of(whole))

    def require(self) -> None:
        """RaymarchError where this machine sees no such file, or another."""
        host = platform.node()
        if not os.path.exists(self.path):
            raise RaymarchError(
                f"{self.path}: the worker on {host} does not see it; put it where all workers see it by that path, or"
                " take workers on this machine alone"
            )
        if stamp_of(self.path) != self.stamp:
            raise RaymarchError(
                f"{self.path}: the worker on {host} sees another file there, of another size or time; put one where all"
                " workers see it, and leave it as it is until they are through"
            )

    def load(self) -> AnyVolume:
        """The volume; RaymarchError where this machine sees no such file, or another."""
        self.require()
        volume = load(self.path, format=self.format)
        if isinstance(volume, Volume):
            return volume.in_colour(self.channels)
        return volume.in_world(self.world) if self.world else volume


@dataclass(frozen=True)
class SceneFiles:
    """Volumes in files, and how rays see them: a march for each, one for all, or None."""

    volumes: tuple[VolumeFile, ...]
    march: March | tuple[March, ...] | None = None

    def renderer(self) -> Renderer:
        """Renderer of the volumes, read from their files."""
        volumes = [file.load() for file in self.volumes]
        march = list(self.march) if isinstance(self.march, tuple) else self.march
        return Renderer(volumes, march)


@dataclass(frozen=True)
class Frame:
    """One image to make: of a scene by a camera, with depth and normals if they are asked for."""

    scene: SceneFiles
    camera: Camera
    background: Colour | None = None
    depth: bool = False
    normals: bool = False


_last_renderer: LastMade[Renderer] = LastMade()


def renderer_of(scene: SceneFiles) -> Renderer:
    """Renderer of a scene, the last one where that is of the same: frames of a scene come one after the other."""
    return _last_renderer.of(scene, scene.renderer)


def draw_frame(frame: Frame) -> Rendering:
    """A frame's image, in a worker."""
    return renderer_of(frame.scene).render(frame.camera, frame.background, depth=frame.depth, normals=frame.normals)


def draw_frames(frames: Sequence[Frame], where: Where, device: Device | None = None) -> Iterator[Rendering]:
    """Images of frames in their order, by the workers of `where`."""
    try:
        yield from run_tasks(draw_frame, frames, where, device)
    finally:
        if where is None:
            _last_renderer.close()


def _paths(value: object) -> list[str | os.PathLike[str]]:
    if isinstance(value, list | tuple) and 1 <= len(value) <= MAX_VOLUMES:
        return [path.read(one) for one in value]
    return [path.read(value)]


PATHS = replace(path, wanted=f"{path.wanted}, or a list of 1 to {MAX_VOLUMES}", read=_paths)


@checked(path=PATHS, cameras=CAMERAS, executor=EXECUTOR, march=optional(MARCHES), background=BACKGROUND, extras=flag)
def render_many(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    cameras: Sequence[Camera],
    *,
    executor: Where = None,
    march: Marches = None,
    background: Colour | None = None,
    extras: bool = False,
) -> Iterator[Rendering]:
    """Renderings of the volume in a file by many cameras, one after another in their order, as `rm.render` makes them.

    Args:
        path: of a volume's file, or of one to four that are seen together. Each worker reads it for itself, so all must
            see it by this path.
        cameras: of any sizes.
        executor: who renders: None for this process; a number of processes on this machine; the address of a Dask
            scheduler, "tcp://host:8786", or "local" for a cluster of its own (`pip install "raymarch[cluster]"`); or
            any executor of processes with `submit`, such as `concurrent.futures.ProcessPoolExecutor` with the context
            "spawn", submitit's, or mpi4py.futures'. In a script call it under `if __name__ == "__main__":`.
        march, background: as `rm.render` takes them.
        extras: depth and normals too; without them depth is infinite.

    The bytes of an image do not depend on who made it. A few images more than there are workers are under way; a lost
    worker's are made again by another.

    Raises RaymarchError for a file that is not there; as images are asked for, what `rm.render` raises, and for workers
    that are not there, do not see the file, or have another version of raymarch.

    Example:
        >>> from raymarch.geometry.orbit import orbit
        >>> cameras = orbit((0, 0, 0), 4.0, 24, like=Camera.look_at((0, -4, 0), width=64, height=64))
        >>> images = [seen.image for seen in render_many("tower.h5", cameras, executor=4)]  # doctest: +SKIP
    """
    # Its rule makes a list of the path.
    marches = tuple(march) if isinstance(march, Sequence) else march
    scene = SceneFiles(tuple(VolumeFile.of(one) for one in cast("list[str]", path)), marches)
    return draw_frames([Frame(scene, camera, background, extras, extras) for camera in cameras], executor)
