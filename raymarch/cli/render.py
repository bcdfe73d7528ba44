"""`raymarch render`: images of a volume, or a clip of them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import frame_files as clips
from raymarch.cli import modes, options, output, set_options
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.frame_files import Clip, Images
from raymarch.cli.option_kinds import Gigabytes, require_not_given
from raymarch.cli.set_options import SetReading
from raymarch.cli.viewpoints import Viewpoints, viewpoints
from raymarch.cli.worker_options import Workers, worker_options

if TYPE_CHECKING:
    from collections.abc import Generator

    import numpy as np

    from raymarch.geometry.camera import Camera
    from raymarch.geometry.clip import Clip as Clipping
    from raymarch.rendering.march_settings import March
    from raymarch.rendering.out_of_core import OutOfCoreRenderer
    from raymarch.rendering.render_many import SceneFiles
    from raymarch.rendering.renderer import Rendering
    from raymarch.volumes.file_volume import FileVolume
    from raymarch.volumes.volume import Volume

MET_BETWEEN = (1.0, 99.0)  # percentiles of a picture's distances


@click.command(epilog="Example: raymarch render tower.h5 --orbit 120 --out clip.mp4")
@click.argument("run", metavar="VOLUME")
@viewpoints
@options.channels
@options.clip_box
@options.clip_plane
@click.option(
    "--out",
    required=True,
    help="Folder for PNG files; a clip: .mp4, .webm (both by PyAV) or .gif; of one picture a .png file.",
)
@clips.fps
@clips.quality
@click.option("--extras", is_flag=True, help="Write depth and opacity too.")
@modes.mode_options
@modes.window
@options.others
@options.their_tables
@click.option(
    "--memory",
    type=Gigabytes(),
    help="Render a volume larger than memory part by part, taking so much in all [GB]; with --workers or --cluster so"
    " much each, this process too.",
)
@options.place_options
@options.overwrite
@set_options.set_reading(set_options.background)
@worker_options
@device_options
def render(
    run: str,
    viewpoints: Viewpoints,
    channels: tuple[str, ...] | None,
    clip_box: list[list[float]] | None,
    clip_plane: tuple[list[float], ...],
    out: str,
    fps: float,
    quality: float,
    extras: bool,
    shown: modes.ModeOptions,
    window: list[float] | None,
    others: tuple[str, ...],
    tables: tuple[str, ...],
    memory: float | None,
    format: str | None,
    channel: int | None,
    time: int | None,
    level: int | None,
    overwrite: bool,
    reading: SetReading,
    workers: Workers,
    device: Device,
) -> int:
    """Render VOLUME from the cameras of an image set, on an orbit or along a path, to PNG files or a clip.

    Ctrl-C ends a clip early: the frames so far go to NAME.interrupted.mp4 beside it, which plays; exit code 1.
    """
    from raymarch.io.files.lock import lock_file
    from raymarch.io.images.write import SUFFIXES, folder_named, require_pictures
    from raymarch.views.views import require_colour

    viewpoints.require()
    place: dict[str, Any] = {"channel": channel, "time": time, "level": level}
    if memory is not None:
        _require_alone(channels, others)
        _require_memory(memory)
    elif workers.where is not None and any(one is not None for one in place.values()):
        raise click.UsageError(
            "--channel, --time-point and --level are read by this process alone; leave --workers out"
        )
    reading.require_set(viewpoints.data, "--views DATA")
    clip = Clip(out, fps, quality, overwrite) if Clip.is_meant(out) else None
    file = viewpoints.is_single and Path(out).suffix.lower() in SUFFIXES and not Path(out).is_dir()
    if clip:
        clip.require()
    elif file:
        require_pictures([out], overwrite)
    else:
        require_not_given(["fps", "quality"], "is for a clip, and --out is a folder of pictures")
        folder_named(out, viewpoints.data)
        Clip.require_folder_name(out)
    if (clip or file) and extras:
        raise click.UsageError("--extras are pictures beside it; give a folder as --out, or leave them out")
    volume = _load(run, format, channels, place, memory)
    look = shown.look(volume, lit=not others)
    chosen = look.march
    modes.require_window(chosen, window)
    volumes = options.add_others(volume, chosen, shown, others, tables)
    box = _box_of(volumes[0])
    behind = require_colour(reading.background or look.background)
    cut = options.clip_of(clip_box, clip_plane, volume)
    how = {"background": behind, **reading.options(volume)}
    named = viewpoints.cameras(run, volume, look, _seen_points(volumes, cut), how)
    if workers.where is None or memory is not None:
        device.start()
    cameras, context = [camera for _, camera in named], click.get_current_context()
    in_parts, parts = None, 0
    if memory is not None:  # before a folder is made: too little of it leaves nothing
        by = _ByWorkers(format, place, workers, device)
        in_parts, parts = _out_of_core(run, volume, replace(chosen, clip=cut), memory, cameras, by)
        context.with_resource(in_parts)
    # Else two would mix their pictures in one folder.
    context.with_resource(lock_file(out, "choose another --out"))
    pictures = _Pictures(out, extras, overwrite, _reach(volume, box, cameras))
    if clip:
        clip.require_one_size(named)
    elif not file:
        pictures.require([name for name, _ in named], viewpoints.data)

    from raymarch.cli.progress import CountProgress

    with ExitStack() as owners:
        if in_parts is not None:
            progress = owners.enter_context(CountProgress("part", parts * len(cameras)))
            in_parts.watch, images_done = progress.advance, lambda: None
        else:
            progress = owners.enter_context(CountProgress("render", len(named)))
            images_done = progress.advance
        if in_parts is not None:
            renderings = (in_parts.render(camera, behind, depth=extras) for camera in cameras)
        elif workers.where is None:
            renderer = owners.enter_context(options.renderer_of(*volumes, cut))
            renderings = (renderer.render(camera, behind, depth=extras) for camera in cameras)
        else:
            files = _files(run, format, channels, volumes, cut, others)
            renderings = _by_workers(files, cameras, behind, extras, workers, device)
        owners.callback(renderings.close)
        images = Images(renderings, named, window, modes.renders_values(chosen), images_done, chosen.mode == "average")
        code = clip.write(images) if clip else _write_file(out, images, overwrite) if file else pictures.write(images)
    if chosen.shading is None:  # whose highlights are white by what they are
        images.say_what_is_bright()
    pictures.say()
    return code


def _require_alone(channels: tuple[str, ...] | None, others: tuple[str, ...]) -> None:
    """UsageError for options that a volume larger than memory does not go with."""
    for given, name, why in (
        (channels is not None, "--channels", "is of fitted volumes"),
        (bool(others), "--with", "takes all volumes into memory"),
    ):
        if given:
            raise click.UsageError(f"--memory renders one volume part by part, {name} {why}; leave one of them out")


def _require_memory(memory: float) -> None:
    """RaymarchError for an amount of memory that is none."""
    from raymarch.rendering.out_of_core import MEMORY

    MEMORY("--memory", memory)


def _load(
    run: str, format: str | None, channels: tuple[str, ...] | None, place: dict[str, Any], memory: float | None
) -> Any:
    """Volume of a file, whose values stay there where it is to be rendered part by part."""
    from raymarch.io.volumes.parts_of_file import open_in_parts
    from raymarch.io.volumes.volume_file import FORMAT, load

    if memory is not None:
        return open_in_parts(run, format=FORMAT("--format", format), **place)
    return options.shown_in_colour(load(run, format=format, **place), channels)


@dataclass
class _ByWorkers:
    """Who goes through parts of a file: its format, and which of its channels, times and levels; this process if no
    workers are given."""

    format: str | None
    place: dict[str, Any]
    workers: Workers
    device: Device

    def of(self, run: str) -> dict[str, Any]:
        """As `OutOfCoreRenderer.of` takes it."""
        from raymarch.rendering.parts_by_workers import FileInParts
        from raymarch.rendering.render_many import VolumeFile

        if self.workers.where is None:
            return {}
        file = FileInParts(VolumeFile.of(run, format=self.format), **self.place)
        return {"file": file, "executor": self.workers.where, "device": self.workers.device(self.device)}


def _out_of_core(
    run: str, volume: FileVolume, march: March, memory: float, cameras: list[Camera], by: _ByWorkers
) -> tuple[OutOfCoreRenderer, int]:
    """Renderer of a volume part by part, once it is said what that takes, and how many parts an image is of."""
    from raymarch.rendering.out_of_core import OutOfCoreRenderer

    renderer = OutOfCoreRenderer.of(volume, march, memory, **by.of(run))
    try:
        ahead = renderer.forecast(cameras[0])
    except BaseException:
        renderer.close()
        raise
    each = f", by the first of {len(cameras)} cameras" if len(cameras) > 1 else ""
    if by.workers.where is not None:
        count = f"{renderer.workers} worker{'' if renderer.workers == 1 else 's'}" if renderer.workers else "workers"
        each += f"; by {count}, up to {ahead.parts_at_once} parts at once"
    output.print_note(f"{run}: {ahead}{each}")
    return renderer, ahead.parts_met * ahead.passes


def _files(
    run: str,
    format: str | None,
    channels: tuple[str, ...] | None,
    volumes: tuple[list[Volume], list[March]],
    clip: Clipping | None,
    others: tuple[str, ...],
) -> SceneFiles:
    """Volumes that are seen, as workers find them."""
    from raymarch.rendering.render_many import SceneFiles, VolumeFile

    first = VolumeFile.of(run, format=format, channels=channels)
    worlds = [getattr(volume, "world", "") for volume in volumes[0][1:]]
    beside = [VolumeFile.of(path, world=world) for path, world in zip(others, worlds, strict=True)]
    return SceneFiles((first, *beside), tuple(replace(march, clip=clip) for march in volumes[1]))


def _by_workers(
    files: SceneFiles, cameras: list[Camera], behind: tuple, depth: bool, workers: Workers, device: Device
) -> Generator[Rendering, None, None]:
    """Renderings by other processes."""
    from raymarch.rendering.render_many import Frame, draw_frames

    frames = [Frame(files, camera, behind, depth) for camera in cameras]
    yield from draw_frames(frames, workers.where, workers.device(device))


def _write_file(out: str, images: Images, overwrite: bool) -> int:
    """Exit code 0, once the only picture is written, or several side by side."""
    import numpy as np

    from raymarch.io.images.write import write_png

    image = np.concatenate([image for _, image, _ in images], axis=1)
    write_png(out, image, overwrite=overwrite)
    output.print_result(f"{out}: {image.shape[1]} x {image.shape[0]} pixels")
    return 0


@dataclass
class _Pictures:
    """Pictures of a folder: of images, and with `extras` of their opacity and depth, shown from end to end of `reach`,
    which is that of the first picture that meets anything if None."""

    out: str
    extras: bool
    overwrite: bool
    reach: tuple[float, float] | None

    def require(self, names: list[str], data: str | None) -> None:
        """RaymarchError where they cannot be written."""
        from raymarch.io.images.write import folder_for

        kinds = ("", "_opacity", "_depth") if self.extras else ("",)
        folder_for(self.out, [name + kind for name in names for kind in kinds], outside=data, overwrite=self.overwrite)

    def write(self, images: Images) -> int:
        """Exit code 0, once all are written."""
        from raymarch.io.images.picture_folder import older_pictures, replacing_pictures

        folder, kinds = Path(self.out), ("", "_opacity", "_depth") if self.extras else ("",)
        files = [f"{name}{kind}.png" for name, _ in images.named for kind in kinds]
        if gone := len(older_pictures(folder, files)):
            output.print_note(f"{folder}: {gone} older pictures of raymarch's make room for the new ones")
        done, place = 0, folder
        try:
            with replacing_pictures(folder, files) as place:
                for name, image, seen in images:
                    if self.extras and self.reach is None:
                        self.reach = _reach_met(seen.depth)
                    _write(place / name, image, seen if self.extras else None, self.reach, self.overwrite)
                    done += 1
        except KeyboardInterrupt:
            left = f"{done} of {len(images.named)} images" if place == folder else "its older pictures, as they were"
            output.print_note(f"{folder}: has {left}")
            raise
        output.print_result(f"{folder}: {len(images.named)} images")
        return 0

    def say(self) -> None:
        """Note of what depths are shown as."""
        if self.extras and self.reach is not None:
            near, far = self.reach
            output.print_note(f"depth: white at {near:.4g}, dark at {far:.4g} world units, black where nothing is met")


def _write(
    path: Path, image: np.ndarray, seen: Rendering | None, reach: tuple[float, float] | None, overwrite: bool
) -> None:
    """Pictures of an image, and of opacity and depth where those are seen, beside one another."""
    from raymarch.io.images.write import write_depth, write_one_of_several

    write_one_of_several(f"{path}.png", image, overwrite)
    if seen is not None:
        write_one_of_several(f"{path}_opacity.png", seen.opacity, overwrite)
        near, far = reach or (None, None)
        write_depth(f"{path}_depth.png", seen.depth, near, far, overwrite=overwrite)


def _seen_points(volumes: tuple[list[Volume], list[March]], clip: Clipping | None) -> np.ndarray:
    """Points (n, 3) around what is seen of all volumes."""
    import numpy as np

    from raymarch.rendering.default_look import farthest_seen_points
    from raymarch.volumes.volume import VOLUME

    pairs = zip(*volumes, strict=True)
    return np.concatenate([farthest_seen_points(VOLUME("volume", volume), march, clip) for volume, march in pairs])


def _box_of(volumes: list[Volume]) -> np.ndarray:
    """Box (2, 3) around those of all volumes."""
    import numpy as np

    lower, upper = zip(*(volume.box for volume in volumes), strict=True)
    return np.stack([np.min(lower, axis=0), np.max(upper, axis=0)])


def _reach(volume: Volume, box: np.ndarray, cameras: list[Camera]) -> tuple[float, float] | None:
    """Nearest and farthest distance [world unit] at which any of the cameras can meet what is in the box; None of
    nested boxes and NDC, which go on far beyond it: over so long a way hardly any difference would be seen."""
    import numpy as np

    if volume.boxes > 1 or volume.ndc_from_world is not None:
        return None
    eyes = np.linalg.norm(np.stack([camera.position for camera in cameras]) - box.mean(0), axis=1)
    half = 0.5 * float(np.linalg.norm(box[1] - box[0]))
    return max(float(eyes.min()) - half, 0.0), float(eyes.max()) + half


def _reach_met(depth: np.ndarray) -> tuple[float, float] | None:
    """Distances [world unit] between which most of what a picture meets is; None of one that meets nothing."""
    import numpy as np

    met = depth[np.isfinite(depth)]
    if not met.size:
        return None
    near, far = np.percentile(met, MET_BETWEEN)
    return float(near), float(far)
