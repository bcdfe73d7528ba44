"""Held-out evaluation: PSNR, SSIM and LPIPS of a volume on views that it was not fitted to.

Scores of the object alone count what the set's masks, its alpha, or its box and background tell from the rest."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from raymarch.arguments.checks import callback, optional
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError, short_value
from raymarch.evaluation.metrics import (
    MIN_NETWORK_SIDE,
    Distance,
    depth_error,
    lpips_distance,
    psnr,
    psnr_halves,
    ssim,
)
from raymarch.geometry.boxes import camera_in_box, meets_box
from raymarch.geometry.camera import Camera
from raymarch.html.card import card_html, html_of, table_html
from raymarch.io.volumes.volume_file import load
from raymarch.rendering.march_settings import MARCH, March, march_for
from raymarch.rendering.render_many import SceneFiles, VolumeFile, renderer_of
from raymarch.rendering.renderer import Renderer
from raymarch.tasks.executors import EXECUTOR, Where, run_tasks
from raymarch.tasks.worker import Device
from raymarch.views.contents import require_pixels
from raymarch.views.depth_images import align_depths, camera_of_depth, distance_by_z, mask_of_depth, unit_doubt
from raymarch.views.display_values import decibels
from raymarch.views.identity import is_same_source
from raymarch.views.views import VIEWS, Views
from raymarch.volumes.volume import VOLUME, AnyVolume, Volume, ranges_of

log = logging.getLogger(__name__)
MIN_EXCESS_ERROR = 0.01  # mean squared error over that of one colour all over
MAX_PSNR_GAP = 10.0  # dB under what a fit had on its own rays, from which on views are doubted to be of its set
SCORES = ("psnr", "ssim", "psnr_halves", "psnr_masked", "ssim_masked", "lpips", "depth_error", "depth_error_relative")
ALPHA_MASK, SET_MASK, SET_AND_ALPHA_MASK = "alpha over 0", "the set's mask", "the set's mask, and alpha over 0"
BOX_MASK = "the set's box, where the image is not its background"
MIN_COLOUR_DIFFERENCE = 0.1  # display value, by which a channel of the object differs from the background
SCORE_NAMES = {
    "psnr": "PSNR [dB]",
    "ssim": "SSIM",
    "lpips": "LPIPS",
    "psnr_halves": "PSNR by halves [dB]",
    "psnr_masked": "PSNR of the object [dB]",
    "ssim_masked": "SSIM of the object",
    "depth_error": "depth error [world unit]",
    "depth_error_relative": "depth error, relative",
}
MAX_LISTED = 40  # views that are listed, worst first


@dataclass(frozen=True)
class ViewScore:
    """Score of one view, by `rm.psnr` and its like; None for what it does not have.

    Attributes:
        name: of the view.
        psnr: of the image [dB], without what its mask takes out, as all below.
        ssim: structural similarity; None for images under 11 pixels a side.
        psnr_halves: gains and offsets fitted on the left half, scored on the right [dB].
        psnr_masked, ssim_masked: of the object alone (`masked_by`); None where nothing tells it from the rest.
        lpips: learned perceptual distance, 0 for the same image; what a mask takes out is as it should be.
        depth_error: mean absolute error of the depth where the view's depth image knows it [world unit]; where
            nothing is met all of it is missing. None where the view has none.
        depth_error_relative: the same as a part of the true depth.
        rmse: of channels other than red, green and blue the root of the mean squared error of each, in its unit; their
            PSNR is of all together, each over its range, and they have no other scores but that of the object.
    """

    name: str
    psnr: float
    ssim: float | None
    psnr_halves: float | None = None
    psnr_masked: float | None = None
    ssim_masked: float | None = None
    lpips: float | None = None
    depth_error: float | None = None
    depth_error_relative: float | None = None
    rmse: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """Result of `evaluate`: means over the views that have a score, each view's, and the seconds an image took.

    Attributes:
        psnr, ssim, psnr_halves, psnr_masked, ssim_masked, lpips, depth_error, depth_error_relative: means of those of
            `views`, which are `ViewScore`s.
        masked_by: what tells the object from the rest, mask, alpha or the set's box; "" where nothing does.
        lpips_missing: why there is no LPIPS; "" where there is.
        rmse: of channels, the root of the mean over all views of each one's squared error, in its unit.
    """

    psnr: float
    ssim: float | None
    views: tuple[ViewScore, ...]
    seconds_per_image: float
    psnr_halves: float | None = None
    psnr_masked: float | None = None
    ssim_masked: float | None = None
    lpips: float | None = None
    masked_by: str = ""
    lpips_missing: str = ""
    depth_error: float | None = None
    depth_error_relative: float | None = None
    rmse: Mapping[str, float] = field(default_factory=dict)

    def _repr_html_(self) -> str | None:
        return html_of(evaluation_card, self)

    def __repr__(self) -> str:
        similarity = "none" if self.ssim is None else f"{self.ssim:.4f}"
        return (
            f"Evaluation(PSNR {self.psnr:.2f} dB, SSIM {similarity}, {len(self.views)} views,"
            f" {self.seconds_per_image:.3g} s an image)"
        )


def _volume_or_path(value: object) -> object:
    return value if isinstance(value, (str, os.PathLike)) else VOLUME.read(value)


VOLUME_OR_PATH = replace(VOLUME, wanted="a Volume, or the path of its file", read=_volume_or_path)


@checked(volume=VOLUME_OR_PATH, views=VIEWS, march=optional(MARCH), seen=optional(callback), executor=EXECUTOR)
def evaluate(
    volume: AnyVolume | str | os.PathLike[str],
    views: Views,
    *,
    march: March | None = None,
    seen: Callable[[int, np.ndarray], None] | None = None,
    executor: Where = None,
) -> Evaluation:
    """PSNR, SSIM, LPIPS and depth error of `volume` rendered by the views' cameras: over the views' background where
    images have alpha, else over the volume's own, which may have been learned.

    Pixels that a mask takes out count nowhere.

    Args:
        volume: or the path of its file, which an `executor` wants.
        march: how the volume is marched; as `render` does if not given.
        seen: called with each view's number and image (height, width, 3), for progress or to keep the pictures.
        executor: who renders and scores, as `rm.render_many` takes it; None for this process. A view travels with its
            image, the volume as a path.

    A view without any error, such as one of nothing but background, has an infinite PSNR, and none in the mean.
    PSNR comes by halves too, and PSNR and SSIM of the object alone where masks, alpha or a box tell it. The depth error
    is of views with a depth image; of a volume that was fitted to relative ones, after a scale and a shift. LPIPS needs
    PyTorch, the package lpips and its weights on this machine: where they are not, `lpips_missing` says why.

    Whether the volume looks as if it belonged to another set is told in the log after the first view.

    Of channels other than red, green and blue those that volume and views both have are compared, by their names, where
    the views know them: see `ViewScore.rmse`.

    Raises RaymarchError for a view that is masked all over, for channels of which both have none, or the views know
    nothing, and for channels or a volume without a file where an executor is given.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> views = Views([Camera.look_at((0, -4, 0), width=16, height=16)], np.full((1, 16, 16, 3), 255, np.uint8))
        >>> round(evaluate(ball, views).psnr, 1)
        20.8
    """
    require_pixels(views)
    if isinstance(volume, (str, os.PathLike)):
        file, volume = os.fspath(volume), VOLUME("volume", load(volume))
    elif executor is not None:
        raise RaymarchError(
            "volume is in memory, and workers read files; rm.save it, and give the path of its file in its place"
        )
    if views.channels or not volume.is_colour:
        if executor is not None:
            raise RaymarchError("volumes of channels are scored by this process; leave executor out")
        return evaluate_channels(volume, views, march, seen)
    scene = None if executor is None else SceneFiles((VolumeFile.of(file),), march_for(volume, march, lit=True))
    return evaluate_colours(volume, views, march, seen, scene, executor)


def evaluate_colours(
    volume: Volume,
    views: Views,
    march: March | None,
    seen: Callable[[int, np.ndarray], None] | None,
    scene: SceneFiles | None = None,
    executor: Where = None,
    device: Device | None = None,
) -> Evaluation:
    """As `evaluate`, of colours; where `scene` says how workers find the volume, by those of an executor."""
    behind, relative = background_of(volume, views), _has_relative_depth(volume, views)
    scores, seconds = [], []
    distance, why = lpips_distance()
    with ExitStack() as owners:
        if scene is None:
            renderer = owners.enter_context(Renderer(volume, march))
            scored = (_score_view(renderer, views, i, behind, relative, distance) for i in range(len(views)))
        else:
            tasks = [ViewToScore(scene, views[i], behind, relative) for i in range(len(views))]
            scored = run_tasks(score_in_worker, tasks, executor, device)  # type: ignore[assignment]
            owners.callback(scored.close)
        for i, (of_view, image, took) in enumerate(scored):
            scores.append(of_view)
            seconds.append(took)
            if i == 0 and (doubt := doubt_of_set(volume, views, image)):
                log.warning("%s", doubt)
            if seen is not None:
                seen(i, image)
    return Evaluation(
        views=tuple(scores),
        seconds_per_image=float(np.mean(seconds[1:] or seconds)),
        masked_by=mask_source(views),
        lpips_missing=why,
        **{name: _mean([getattr(s, name) for s in scores]) for name in SCORES},  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class ViewToScore:
    """A view, its image with it, for a worker to render and score."""

    scene: SceneFiles
    views: Views  # one
    background: Sequence[float]
    relative: bool


def score_in_worker(task: ViewToScore) -> tuple[ViewScore, np.ndarray, float]:
    """`_score_view` of a view that travelled."""
    return _score_view(renderer_of(task.scene), task.views, 0, task.background, task.relative, _network())


@cache
def _network() -> Distance | None:
    """LPIPS of a worker, whose network is read once."""
    return lpips_distance()[0]


def _score_view(
    renderer: Renderer,
    views: Views,
    view: int,
    behind: Sequence[float],
    relative: bool,
    distance: Distance | None,
) -> tuple[ViewScore, np.ndarray, float]:
    """Scores of a view, its image, and the seconds that rendering that took."""
    start = time.perf_counter()
    image = renderer.render(views.cameras[view], behind, depth=False).image  # type: ignore[arg-type]
    seconds = time.perf_counter() - start
    depths = depth_scores(renderer, views, view, relative)
    return replace(score(views, view, image, distance), **depths), image, seconds  # type: ignore[arg-type]


def score(views: Views, view: int, image: np.ndarray, distance: Distance | None = None) -> ViewScore:
    """Score of one view's image (height, width, 3), which is clipped to 0..1; LPIPS by `distance`, if any."""
    truth, shown = views.rgb(view), np.clip(image, 0, 1)  # an x-ray is brighter than any display
    mask, inside = views.mask(view), object_mask(views, view)

    def similarity(within: np.ndarray | None) -> float | None:
        large = min(image.shape[:2]) >= 11 and (within is None or within[5:-5, 5:-5].any())
        return ssim(shown, truth, within) if large else None

    def perceived(of: Distance) -> float:
        return of(shown if mask is None else np.where(mask[..., None], shown, truth), truth)

    return ViewScore(
        name=views.names[view],
        psnr=psnr(shown, truth, mask),
        ssim=similarity(mask),
        psnr_halves=psnr_halves(shown, truth, mask),
        psnr_masked=psnr(shown, truth, inside) if inside is not None and inside.any() else None,
        ssim_masked=None if inside is None else similarity(inside),
        lpips=None if distance is None or min(image.shape[:2]) < MIN_NETWORK_SIDE else perceived(distance),
    )


def depth_scores(renderer: Renderer, views: Views, view: int, relative: bool) -> dict[str, float]:
    """Depth errors of a view by name, where it has a depth image: of the centres of that one's pixels.

    Depths that are relative are given the scale and shift that suit the volume before they are compared.
    """
    depth, mask = views.depth(view), views.mask(view)
    if depth is None:
        return {}
    camera = camera_of_depth(views.cameras[view], depth)
    found = renderer.render(camera, depth=True).depth
    true = np.array(depth, float)
    if mask is not None:
        true[~mask_of_depth(mask, depth.shape)] = np.nan
    both = np.isfinite(found) & ~np.isnan(true)
    if relative:
        ratio = distance_by_z(camera, camera.rays().direction).reshape(true.shape)
        if (how := align_depths(true[both], ratio[both], found[both].astype(float))) is None:
            return {}
        true = how[0] * true + how[1] * ratio
        true[true <= 0] = np.nan
    if np.isnan(true).all():
        return {}
    return {"depth_error": depth_error(found, true), "depth_error_relative": depth_error(found, true, relative=True)}


def fitted_relative_depth(volume: AnyVolume) -> bool:
    """Whether a volume was fitted to relative depth images, so that others of its set have no unit either."""
    told = volume.provenance if isinstance(volume.provenance, Mapping) else {}
    settings = told.get("settings")
    return isinstance(settings, Mapping) and settings.get("depth_scale") == "per-view"


def _has_relative_depth(volume: AnyVolume, views: Views) -> bool:
    """`fitted_relative_depth`; else the log says where the depth images are of another unit than the volume."""
    relative, middle = fitted_relative_depth(volume), volume.box.mean(0)
    usual = float(np.median([np.linalg.norm(c.position - middle) for c in views.cameras]))
    if not relative and (doubt := unit_doubt(views.depths, usual)):
        log.warning("%s", doubt)
    return relative


def _mean(numbers: list[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    known = [number for number in known if not np.isinf(number)] or known
    return float(np.mean(known)) if known else None


def background_of(volume: AnyVolume, views: Views) -> Sequence[float]:
    """Background over which a volume is compared with views: theirs where images have alpha, and so show it; else its
    own, which may have been learned, for a set's says nothing of images that are whole."""
    return views.background if views.has_alpha else volume.background


def is_worse_than_one_colour(image: np.ndarray, truth: np.ndarray) -> bool:
    """Whether pixels (..., 3) are farther from the true ones than those are from their own mean.

    Example:
        >>> truth = np.tile([[0.0], [1.0]], (1, 3))
        >>> is_worse_than_one_colour(1 - truth, truth), is_worse_than_one_colour(truth, truth)
        (True, False)
    """
    truth = truth.reshape(-1, truth.shape[-1])
    return bool(((image.reshape(truth.shape) - truth) ** 2).mean() > truth.var(axis=0).mean() + MIN_EXCESS_ERROR)


def doubt_of_set(volume: AnyVolume, views: Views, image: np.ndarray) -> str:
    """Why the volume may be of another set than the views, by the image of the first; "" where there is no doubt."""
    truth, shown, mask = views.rgb(0), np.clip(image, 0, 1), views.mask(0)
    kept = np.ones(truth.shape[:2], bool) if mask is None else np.asarray(mask, bool)
    found = psnr(shown, truth, mask)
    told = volume.provenance if isinstance(volume.provenance, Mapping) else {}
    of_fit, on_rays = told.get("views"), told.get("rays_psnr")
    source = of_fit.get("source") if isinstance(of_fit, Mapping) else None
    reached = float(on_rays) if isinstance(on_rays, (int, float)) and np.isfinite(on_rays) else None
    same = is_same_source(source, views.source)
    poor = is_worse_than_one_colour(shown[kept], truth[kept])
    if not poor and (reached is None or same or found > reached - MAX_PSNR_GAP):
        return ""
    name = short_value(views.names[0])
    had = "" if reached is None else f", where its fit had {reached:.1f} dB on its rays"
    if poor:
        seen = f"after one view: {name} is shown worse than one colour all over would ({found:.1f} dB{had})"
    else:
        seen = f"after one view: {name} comes out at {found:.1f} dB{had}"
    if same:
        look = "raymarch render VOLUME --views SET --out pictures"
        return f"{seen}; look at it ({look}), and fit anew if it is not the object"
    whose = f"; the volume was fitted to {short_value(source)}" if source else ""
    return f"{seen}{whose}; give the set and the volume that belong together"


def object_mask(views: Views, view: int) -> np.ndarray | None:
    """Pixels (height, width) that show the object; None where nothing tells it from the rest.

    The view's mask, and where alpha is over 0. Of a set that has neither but a box before its cameras, the pixels
    whose rays meet the box and whose colour is not the background's.
    """
    mask = views.mask(view)
    if views.shows_silhouettes:
        shows = views.image(view)[..., -1] > 0
        return shows if mask is None else shows & mask
    if (box := _box_before_cameras(views)) is None:
        return mask
    unlike = np.abs(views.rgb(view) - np.asarray(views.background)).max(-1) > MIN_COLOUR_DIFFERENCE
    shows = unlike & _box_pixels(views.cameras[view], box)
    return shows if mask is None else shows & mask


def mask_source(views: Views) -> str:
    """What the object's masks of a set are made of, in words; "" where it has none."""
    masks = any(views.mask(i) is not None for i in range(len(views)))
    if views.shows_silhouettes:
        return SET_AND_ALPHA_MASK if masks else ALPHA_MASK
    if _box_before_cameras(views) is not None:
        return f"{SET_MASK}, and {BOX_MASK}" if masks else BOX_MASK
    return SET_MASK if masks else ""


def _box_before_cameras(views: Views) -> np.ndarray | None:
    """The set's own box (2, 3), if no camera stands in it: what is behind it is background then."""
    if views.box is None:
        return None
    return None if camera_in_box(views.cameras, views.box) else views.box


def _box_pixels(camera: Camera, box: np.ndarray) -> np.ndarray:
    """Pixels (height, width) whose rays meet a box."""
    rays = camera.rays()
    return meets_box(rays.origin, rays.direction, box).reshape(camera.height, camera.width)


def evaluate_channels(
    volume: Volume, views: Views, march: March | None, seen: Callable[[int, np.ndarray], None] | None
) -> Evaluation:
    """As `evaluate`, of channels: those that volume and views have in common, by their names."""
    names = [name for name in volume.channels if name in views.shown]
    if not names:
        raise RaymarchError(
            f"the volume has the channels {', '.join(volume.channels)}, the views {', '.join(views.shown)}, none in"
            " common; give the set and the volume that belong together"
        )
    mine, theirs = ([of.index(name) for name in names] for of in (volume.channels, views.shown))
    told = "ranges" in volume.provenance or not views.channels
    ranges = ranges_of(volume)[mine] if told else views.ranges[theirs]
    behind = np.array(volume.background)
    if views.has_alpha:
        behind[mine] = np.array(views.background)[theirs]
    scores, seconds, squares, counts = [], [], np.zeros(len(names)), np.zeros(len(names))
    relative = _has_relative_depth(volume, views)
    with Renderer(volume, march) as renderer:
        for i, camera in enumerate(views.cameras):
            start = time.perf_counter()
            image = renderer.render(camera, behind.tolist(), depth=False).image
            seconds.append(time.perf_counter() - start)
            gap = image[..., mine].astype(float) - views.values(i)[..., theirs]
            mask, inside = views.mask(i), object_mask(views, i) if views.shows_silhouettes else None
            known = np.isfinite(gap) & (True if mask is None else np.asarray(mask)[..., None])
            square, count = np.where(known, gap, 0) ** 2, known.sum((0, 1))
            total = square.sum((0, 1))
            squares, counts = squares + total, counts + count
            rmse = {name: float(np.sqrt(t / n)) for name, t, n in zip(names, total, count, strict=True) if n}
            masked = None
            if inside is not None and (known & inside[..., None]).any():
                masked = _decibels_of_channels(square, known & inside[..., None], ranges)
            psnr_of_all = _decibels_of_channels(square, known, ranges)
            depth = depth_scores(renderer, views, i, relative)
            scores.append(ViewScore(views.names[i], psnr_of_all, None, psnr_masked=masked, rmse=rmse, **depth))
            if seen is not None:
                seen(i, image)
    if not counts.any():
        raise RaymarchError(
            f"no view knows a number of {', '.join(names)}, the channels that it has in common with the volume; take"
            " views that do, whose masks leave some of them"
        )
    return Evaluation(
        psnr=float(_mean([s.psnr for s in scores]) or 0.0),
        ssim=None,
        views=tuple(scores),
        seconds_per_image=float(np.mean(seconds[1:] or seconds)),
        psnr_masked=_mean([s.psnr_masked for s in scores]),
        masked_by=mask_source(views) if views.shows_silhouettes or views.masks is not None else "",
        rmse={name: float(np.sqrt(t / n)) for name, t, n in zip(names, squares, counts, strict=True) if n},
        depth_error=_mean([s.depth_error for s in scores]),
        depth_error_relative=_mean([s.depth_error_relative for s in scores]),
    )


def _decibels_of_channels(square: np.ndarray, known: np.ndarray, ranges: np.ndarray) -> float:
    """PSNR [dB] of all channels that are known, each over its range; infinite of none."""
    scaled = np.where(known, square / np.ptp(ranges, axis=1) ** 2, 0)
    return decibels(float(scaled.sum() / max(known.sum(), 1)))


def evaluation_card(evaluation: Evaluation) -> str:
    """HTML of an evaluation for a notebook: the means, and the scores of each view."""
    known = [name for name in SCORE_NAMES if getattr(evaluation, name) is not None]
    rows: list[tuple[str, object]] = [(SCORE_NAMES[name], _short_value(getattr(evaluation, name))) for name in known]
    rows += [(f"RMSE of {name}", f"{value:.4g}") for name, value in evaluation.rmse.items()]
    rows += [
        ("views", len(evaluation.views)),
        ("seconds an image", f"{evaluation.seconds_per_image:.3g}"),
        ("object told by", evaluation.masked_by),
        ("no LPIPS as", evaluation.lpips_missing),
    ]
    worst = sorted(evaluation.views, key=lambda view: view.psnr)[:MAX_LISTED]
    lines = [[view.name, *(_short_value(getattr(view, name)) for name in known)] for view in worst]
    heads = ["view, worst first", *(SCORE_NAMES[name] for name in known)]
    return card_html("Evaluation", rows) + table_html(heads, lines)


def _short_value(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
