"""A volume as one HTML file that anybody can open: packed bricks, a ray marcher on WebGL2, and where to look from.

`make_page` packs, so that the size is known before anything is written; `export_page` writes as well.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import Colour, Numbers, flag, number, optional, text
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import CAMERA, Camera
from raymarch.geometry.orbit import UP
from raymarch.io.files.atomic import replace_file, require_writable
from raymarch.io.files.authorship import require_ours
from raymarch.rendering.default_look import default_look
from raymarch.rendering.march_settings import MARCH, March, require_seen, supersample_of
from raymarch.rendering.renderer import Renderer
from raymarch.viewer.page.atlas import FINE, MAX_DEGREE, Atlas, Steps, pack_atlas
from raymarch.viewer.page.looks import Window, is_of_values, looks_of, scene_record
from raymarch.viewer.page.page_files import page_html
from raymarch.viewer.page.photographs import jpeg_uri, photograph_uri, straight
from raymarch.viewer.page.record import camera_record, packed_text, require_drawn, volume_record
from raymarch.viewer.page.thinner import fewer_samples, thinner
from raymarch.viewer.page.viewpoints import MAX_CAMERAS, first_camera, path_of, some_of
from raymarch.viewer.pictures.viewer_camera import WINDOW
from raymarch.views.views import CAMERAS, Views
from raymarch.volumes.default_table import range_of
from raymarch.volumes.samples import samples_text
from raymarch.volumes.scalar_volume import ANY_VOLUME
from raymarch.volumes.volume import SHOWN_VOLUME, AnyVolume, Volume

log = logging.getLogger(__name__)

MEGABYTE = 1_000_000
MAX_MB = number(0.05, 2000, unit="MB")
DEFAULT_MAX_MB = 32.0
# Steps of a byte that numbers have, from the finest: what is tried before a volume gets fewer samples.
LADDER: tuple[Steps, ...] = (FINE, (1, 3, 5), (1, 3, 15), (3, 5, 17), (3, 15, 17), (3, 15, 51))
# About how much of the finest each takes up, by which those that cannot fit are passed over.
SHARES = (1.0, 0.84, 0.68, 0.63, 0.57, 0.39)
MIN_CELLS = 8  # along the longest side of a volume that gets fewer samples
MAX_TRIES = 8
MAX_PHOTOGRAPHS = 24
MARK = 'name="generator" content="raymarch"'  # by which a page is known to be ours
HEAD_BYTES = 512  # in which the mark is
SUFFIXES = (".html", ".htm")


@dataclass(frozen=True, eq=False)
class Page:
    """A page, before it is written.

    Attributes:
        html: all of it.
        shape: samples (x, y, z) of the volume in it, those of all nested boxes along x.
        of_shape: those of the volume that it was made of.
        bricks: that hold its samples.
        degree: of the harmonics in it; None where it has no colours.
        mode: that it begins with.
        cameras, photographs: how many it offers.
    """

    html: str
    shape: tuple[int, int, int]
    of_shape: tuple[int, int, int]
    bricks: int
    degree: int | None
    mode: str
    cameras: int
    photographs: int

    @property
    def nbytes(self) -> int:
        """Size [byte]."""
        return len(self.html.encode("utf-8"))

    def __repr__(self) -> str:
        return f"Page({self.nbytes / MEGABYTE:.1f} MB, {samples_text(self.shape)} samples in {self.bricks:,} bricks)"

    @checked(path=checks.path, overwrite=flag)
    def write(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the page to a file, which is replaced in one step.

        Raises RaymarchError for a name that does not end in .html, a file that raymarch did not write unless
        `overwrite`, and what the system refuses.
        """
        require_page_file(path, self.nbytes, overwrite)
        with replace_file(path) as temporary:
            temporary.write_bytes(self.html.encode("utf-8"))


def require_page_file(path: str | os.PathLike[str], size: int = 0, overwrite: bool = False) -> None:
    """RaymarchError where a page of `size` bytes could not be written, or would take the place of somebody's file."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise RaymarchError(f"{path}: pages are written as {' or '.join(SUFFIXES)}; end the name in one of them")
    require_ours([path], "page", _is_ours, overwrite)
    require_writable(path, size)


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return MARK.encode() in file.read(HEAD_BYTES)


def _views_or_cameras(value: object) -> Any:
    return value if isinstance(value, Views) else CAMERAS.read(value)


OPTIONS: dict[str, Any] = {
    "volume": ANY_VOLUME,
    "views": optional(replace(CAMERAS, read=_views_or_cameras)),
    "march": optional(MARCH),
    "background": optional(checks.colour),
    "window": optional(WINDOW),
    "title": text,
    "max_mb": MAX_MB,
    "pictures": flag,
    "camera": optional(CAMERA),
    "up": optional(UP),
}


@checked(**OPTIONS)
def make_page(
    volume: AnyVolume,
    *,
    views: Views | Sequence[Camera] | None = None,
    march: March | None = None,
    background: Colour | None = None,
    window: tuple[float, float] | None = None,
    title: str = "",
    max_mb: float = DEFAULT_MAX_MB,
    pictures: bool = False,
    camera: Camera | None = None,
    up: Numbers | None = None,
) -> Page:
    """Page of a volume as `export_page` writes it, which has the arguments; nothing is written."""
    seen: Volume = SHOWN_VOLUME("volume", volume)
    volume = volume if getattr(volume, "is_colour", True) else seen
    views = views.in_colour() if isinstance(views, Views) else views
    look = default_look(volume, march)
    require_drawn(seen, look.march)
    require_seen(seen, look.march)
    _require_surface(seen, look.march)
    behind = look.background if background is None else background
    high = look.up if up is None else tuple(np.asarray(up, float).tolist())
    cameras = [] if views is None else list(views.cameras if isinstance(views, Views) else views)
    photographs = _photographs(views, pictures)
    first = camera or (cameras[0] if cameras else first_camera(seen, look, high))
    still, met = _still(seen, look.march, straight(first), behind, window)
    kept = some_of(len(cameras), MAX_CAMERAS) if cameras else []
    page: dict[str, Any] = {
        "title": title,
        "looks": looks_of(seen, look, behind, met),
        "scene": scene_record(seen),
        "cameras": [_camera_of_set(views, cameras, i, photographs) for i in kept],
        "start": camera_record(straight(first)),
        "path": [camera_record(one) for one in path_of(cameras)] if len(cameras) > 1 else [],
        "up": list(high),
        "supersample": look.march.supersample or supersample_of(seen) or 1,
        "box": None if seen.ndc_from_world is not None else _outer_box(seen).tolist(),
        "centre": seen.box.mean(0).tolist(),
        "still": still,
    }
    _say_what_is_cut(seen, look.march)
    packed, html = _within(seen, page, max_mb)
    return Page(
        html, packed[0].shape, seen.shape, packed[1].count, packed[1].degree, next(iter(page["looks"])), len(kept),
        len(photographs),
    )  # fmt: skip


@checked(path=checks.path, overwrite=flag, **OPTIONS)
def export_page(
    volume: AnyVolume,
    path: str | os.PathLike[str],
    *,
    views: Views | Sequence[Camera] | None = None,
    march: March | None = None,
    background: Colour | None = None,
    window: tuple[float, float] | None = None,
    title: str = "",
    max_mb: float = DEFAULT_MAX_MB,
    pictures: bool = False,
    camera: Camera | None = None,
    up: Numbers | None = None,
    overwrite: bool = False,
) -> Page:
    """A volume as one HTML file, which shows it in any browser with WebGL2 and asks nothing of any other machine.

    Args:
        volume: `rm.Volume` or `rm.ScalarVolume`, dense or sparse, of nested boxes or in NDC.
        path: of the file, .html.
        views: whose cameras the page offers, and with `pictures` the photographs; or a list of cameras.
        march: what it begins with, as `render` chooses it if not given: mode, table, value of the surface, light, clip.
        background: behind the volume; its own if not given.
        window: values that are black and white, where the mode's picture is one of values.
        title: of the page.
        max_mb: size of the file at most [MB]: numbers get fewer steps, then the volume fewer samples, which the log
            says.
        pictures: whether photographs of `views` come with it, up to 24 of them, 640 pixels wide at most.
        camera: that it begins with; the first of `views`, or one that sees all of the volume, if not given.
        up: direction of the world (3,) that is up when the page is turned.
        overwrite: whether a file may be replaced that raymarch did not write.

    A number has 8 bits, with an offset and a scale for each brick of 8^3 cells. Harmonics above degree 1 are cut.

    Raises RaymarchError for a volume that does not fit into `max_mb` with 8 cells a side, activations and modes of
    one's own, a matcap, and what `render` refuses.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(24, 24, 24))
        >>> export_page(ball, "ball.html", title="A ball").shape
        (24, 24, 24)
    """
    require_page_file(path, 0, overwrite)
    page: Page = make_page(
        volume, views=views, march=march, background=background, window=window, title=title, max_mb=max_mb,
        pictures=pictures, camera=camera, up=up,
    )  # fmt: skip
    page.write(path, overwrite)
    return page


def _require_surface(volume: Volume, march: March) -> None:
    """RaymarchError for a surface of a value that the volume does not have."""
    low, high = range_of(volume)
    if march.iso is not None and not low <= march.iso <= high:
        raise RaymarchError(
            f"iso is {march.iso:g} but values go from {low:g} to {high:g}, so there is no surface; choose one between"
        )


def _still(
    volume: Volume, march: March, camera: Camera, background: Any, window: Window | None
) -> tuple[str, Window | None]:
    """Still picture as a URI, for browsers that cannot march; of values over the window, or over its own, which comes
    with it."""
    with Renderer(volume, march) as renderer:
        image = renderer.render(camera, background, depth=False).image
    if is_of_values(str(march.mode)):
        low, high = window or (float(image.min()), float(image.max()))
        window = low, high if high > low else low + 1.0
        image = (image - window[0]) / (window[1] - window[0])
    return jpeg_uri(np.asarray(image).clip(0, 1)), window


def _photographs(views: Any, pictures: bool) -> dict[int, str]:
    """Photographs as URIs, by the numbers of their views."""
    if not pictures:
        return {}
    if not isinstance(views, Views):
        raise RaymarchError("pictures is True without views, want the Views whose photographs they are; give views")
    chosen = some_of(len(views), MAX_PHOTOGRAPHS)
    if len(chosen) < len(views):
        log.warning("%d of %d photographs are in the page, evenly chosen", len(chosen), len(views))
    return {i: photograph_uri(views.rgb(i), views.cameras[i]) for i in chosen}


def _camera_of_set(views: Any, cameras: Sequence[Camera], i: int, photographs: dict[int, str]) -> dict[str, Any]:
    name = views.names[i] if isinstance(views, Views) else f"camera {i + 1}"
    own = camera_record(straight(cameras[i]))
    return {"name": Path(name).name, **own, **({"picture": photographs[i]} if i in photographs else {})}


def _outer_box(volume: Volume) -> np.ndarray:
    return volume.nested(volume.boxes - 1).box if volume.boxes > 1 else volume.box


def _say_what_is_cut(volume: Volume, march: March) -> None:
    """Notes of what the page shows otherwise than `render` does."""
    if volume.samples.coloured() and volume.degree > MAX_DEGREE:
        log.warning("harmonics of degree %d are cut to degree %d in the page", volume.degree, MAX_DEGREE)
    if march.shading is not None and march.shading.occlusion > 0:
        log.warning("the page has no ambient occlusion; its light is the same without")
    if march.preintegrated:
        log.warning("the page takes steps where preintegrated has none; --step 0.25 makes them shorter")


def _within(volume: Volume, page: dict[str, Any], max_mb: float) -> tuple[tuple[Volume, Atlas], str]:
    """A volume, packed, as little coarser as fits, and the page; what was given up is said."""
    bound = int(max_mb * MEGABYTE)
    rest = len(page_html({**page, "volume": {}}, "").encode("utf-8")) + 2000  # without the volume
    tried, factor, rung, whole = volume, 1.0, 0, 0
    for _ in range(MAX_TRIES):
        atlas = pack_atlas(tried, LADDER[rung])
        packed = packed_text(atlas)
        size = rest + len(packed)
        whole = whole or size
        if size <= bound:
            return (tried, atlas), _finished(volume, (tried, atlas), page, packed, (size, whole), LADDER[rung], max_mb)
        over = (bound - rest) / len(packed) * SHARES[rung]
        if rung < len(LADDER) - 1:
            rung = next((i for i in range(rung + 1, len(LADDER)) if SHARES[i] < over), len(LADDER) - 1)
            if tried.samples.coloured() and SHARES[rung] < 1.3 * over:
                continue
            rung = len(LADDER) - 1
        factor *= 0.97 * max((bound - rest) / len(packed), 0.01) ** (1 / 2.6)
        if max(fewer_samples(volume.box_shape, factor)) <= MIN_CELLS:
            break
        tried = thinner(volume, factor)
    least = int(np.ceil((rest + 20_000) / MEGABYTE * 10)) / 10
    held = f"page, pictures and code alone take {rest / MEGABYTE:.2g} MB"
    raise RaymarchError(
        f"max_mb is {max_mb:g}, but {held}, and all of the volume {whole / MEGABYTE:.3g} MB;"
        f" give {max(least, 2 * max_mb):g} or more, or leave pictures out"
    )


def _finished(
    volume: Volume,
    kept: tuple[Volume, Atlas],
    page: dict[str, Any],
    packed: str,
    sizes: tuple[int, int],
    steps: Steps,
    max_mb: float,
) -> str:
    """The page with its volume; what it is coarser than the volume that was given is said."""
    (tried, atlas), (size, whole) = kept, sizes
    if tried is not volume:
        log.warning(
            "the page has %s of %s samples, as all would be %.3g MB and --max-mb is %g; --max-mb %d keeps them",
            samples_text(tried.shape), samples_text(volume.shape), whole / MEGABYTE, max_mb,
            int(np.ceil(whole / MEGABYTE)),
        )  # fmt: skip
    elif steps != FINE:
        log.warning(
            "numbers in the page have %d, %d and %d steps of density, colour and harmonics in a brick, as 255 would be"
            " %.3g MB and --max-mb is %g",
            *(255 // step for step in steps), whole / MEGABYTE, max_mb,
        )  # fmt: skip
    about = {"samples": list(tried.shape), "of": list(volume.shape), "bytes": size}
    return page_html({**page, "about": about, "volume": volume_record(tried, atlas)}, packed)
