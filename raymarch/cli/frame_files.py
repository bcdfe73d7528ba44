"""Images of a volume in a row, and the clip that they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raymarch.cli import modes, output
from raymarch.cli.option_kinds import Real

if TYPE_CHECKING:
    import numpy as np

    from raymarch.geometry.camera import Camera
    from raymarch.rendering.renderer import Rendering

# Of clips, those that are not written too.
VIDEO_SUFFIXES = {".mp4", ".webm", ".gif", ".mov", ".avi", ".mkv", ".m4v", ".wmv", ".mpg", ".mpeg", ".ogv", ".flv"}

OTHER_SUFFIXES = {".ply", ".obj", ".stl", ".glb", ".json", ".zip", ".pdf", ".mp3"}  # and those of volumes

fps = click.option(
    "--fps", type=Real(0.1, 240, units={"fps": 1.0}), default=30.0, show_default=True, help="Frames a second of a clip."
)
quality = click.option(
    "--quality", type=Real(1, 100, units={"%": 1.0}), default=85.0, show_default=True, help="Of a clip, 1 to 100."
)


@dataclass
class Images:
    """Images of cameras with names as display values, of their renderings, each made when it is asked for."""

    renderings: Iterator[Rendering]
    named: Sequence[tuple[str, Camera]]
    window: list[float] | None
    values: bool
    done: Callable[[], None]
    mean: bool = False
    bright: int = 0

    def __iter__(self) -> Iterator[tuple[str, np.ndarray, Rendering]]:
        from raymarch.io.images.write import MIN_VISIBLE_CLIPPING

        for (name, _), seen in zip(self.named, self.renderings, strict=True):
            image = None
            if self.values:
                image, self.window = modes.apply_window(seen, self.window, self.mean)
            image = seen.image if image is None else image
            self.bright += bool((image > MIN_VISIBLE_CLIPPING).any())
            yield name, image.clip(max=1), seen
            self.done()

    def say_what_is_bright(self) -> None:
        """Note of images with colours that are cut."""
        if self.bright:
            count = f"{self.bright} of {len(self.named)} images"
            output.print_note(f"note: {count} have colours over 1, written as 1")


@dataclass(frozen=True)
class Clip:
    """A clip to write, once what cannot be is refused."""

    path: str
    fps: float
    quality: float
    overwrite: bool

    @staticmethod
    def is_meant(out: str) -> bool:
        """Whether a name is that of a clip, not of a folder."""
        return Path(out).suffix.lower() in VIDEO_SUFFIXES and not Path(out).is_dir()

    @staticmethod
    def require_folder_name(out: str) -> None:
        """UsageError for a name that is hardly that of a folder of pictures but of a clip, a volume or a mesh."""
        from raymarch.io.videos.write_video import VIDEO_SUFFIXES as WRITTEN

        path = Path(out)
        if path.is_dir():
            return
        name, suffix = path.name.lower(), path.suffix.lower()
        if f".{name}" in VIDEO_SUFFIXES:
            raise click.UsageError(f"--out {out}: is a suffix without a name, want one, such as clip.{name}")
        kinds = ", ".join(WRITTEN)
        from raymarch.io.volumes.volume_file import FORMATS

        if suffix in OTHER_SUFFIXES or any(suffix in one.suffixes for one in FORMATS):
            raise click.UsageError(f"--out {out}: ends in {suffix}, want a folder for pictures, or a clip ({kinds})")
        if close := get_close_matches(suffix, WRITTEN, n=1, cutoff=0.7) if suffix else []:
            raise click.UsageError(
                f"--out {out}: ends in {suffix}, want a folder for pictures, or a clip; did you mean"
                f" {path.with_suffix(close[0])}?"
            )

    def require(self) -> None:
        """RaymarchError where the clip cannot be written."""
        from raymarch.io.videos.write_video import FPS, QUALITY, require_videos

        FPS("--fps", self.fps)
        QUALITY("--quality", self.quality)
        require_videos([self.path], self.overwrite)

    def require_one_size(self, named: Sequence[tuple[str, Camera]]) -> None:
        """RaymarchError where images would differ in size."""
        from raymarch.errors import RaymarchError

        if len(sizes := {(camera.width, camera.height) for _, camera in named}) > 1:
            words = " and ".join(f"{width} x {height}" for width, height in sorted(sizes)[:2])
            raise RaymarchError(f"{self.path}: views are of {words}, a clip is of one size; take --path cameras")

    def write(self, images: Images) -> int:
        """Exit code: 0 where the clip is written, 1 where it was interrupted, with the part that there is beside it."""
        from raymarch.io.videos.write_video import seconds_played, write_clip
        from raymarch.system.interrupt import catch_first_interrupt

        done, total = 0, len(images.named)

        def frames(asked: Callable[[], bool]) -> Iterator[np.ndarray]:
            nonlocal done
            for _, image, _ in images:
                done += 1
                yield image
                if asked():
                    return

        with catch_first_interrupt() as asked:
            place = write_clip(
                self.path, frames(asked), self.fps, self.quality, self.overwrite, cut=lambda: done < total
            )
        if done < total:
            output.print_note(f"interrupted: {place} has {done} of {total} frames; {self.path} is as it was")
            return 1
        output.print_result(f"{place}: {done} frames, {seconds_played(place, done, self.fps):.3g} s")
        return 0
