"""Diagnosis of a fitted volume: floaters, what no view sees, the gap to held-out views, exposure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.diagnosis import floaters
from raymarch.diagnosis.finding import Finding, setting_of_fit, sort_findings
from raymarch.diagnosis.images import MAX_BRIGHTNESS, MIN_BRIGHTNESS
from raymarch.errors import short_value
from raymarch.evaluation.held_out import background_of, is_worse_than_one_colour
from raymarch.evaluation.metrics import psnr
from raymarch.matching import points
from raymarch.rendering.renderer import Renderer
from raymarch.views.display_values import linear_of_srgb
from raymarch.views.views import COLOUR_VIEWS, Views
from raymarch.volumes.default_table import has_values_alone
from raymarch.volumes.volume import COLOUR_VOLUME, AnyVolume, Volume

MAX_RENDERED_VIEWS = 12  # views that are rendered of either kind
MAX_IMAGE_SIDE = 160  # pixels of their longer side
MIN_PSNR_GAP = 4.0  # dB between views that were fitted and held out
MIN_EXPOSURE_SPREAD = 0.4  # f-stops between rendered and true brightness
MAX_PSNR = 99.0  # dB, above which images count as the same
MIN_FAILED_FRACTION = 0.9  # of the views, that a volume of others shows worse than one colour all over would
MAX_HIDDEN_FRACTION = 0.02  # of what is opaque, where no view looks
MAX_UNSEEN_FRACTION = 0.3  # of the box


@checked(volume=COLOUR_VOLUME, train=COLOUR_VIEWS, test=optional(COLOUR_VIEWS))
def diagnose_fit(volume: AnyVolume, train: Views, test: Views | None = None) -> tuple[Finding, ...]:
    """Diagnosis of a fitted volume: what is wrong with it, the worst first; empty where nothing was found.

    Some views are rendered small, which takes some seconds.

    Args:
        volume: what was fitted.
        train: the views it was fitted to.
        test: views that were held out, or None.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 4.0, 4, like=Camera.look_at((4, 0, 0), width=8, height=8))
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
        >>> diagnose_fit(ball, Views(ring, np.full((4, 8, 8, 3), 255, np.uint8)))
        ()
    """
    fitted = _render_views(volume, train)
    findings = [*volume_findings(volume, train), _other_views_finding(volume, fitted)]
    if findings[-1] is None:  # else neither exposures nor a gap mean anything
        findings.append(_exposure(volume, fitted))
        if test is not None:
            findings.append(_psnr_gap(fitted, _render_views(volume, test)))
    return sort_findings([each for each in findings if each is not None])


def volume_findings(volume: Volume, views: Views) -> list[Finding]:
    """Findings that need no rendering, quick enough for the end of each fit; none of a volume of values, which are no
    extinction."""
    if has_values_alone(volume):
        return []
    inner = volume.nested(0)
    found = [floaters.loose_matter(inner)]
    if volume.ndc_from_world is None:  # else it is what the cameras see, and begins beyond the near plane
        found += [floaters.matter_before_cameras(volume, views.cameras), _unseen_matter(inner, views)]
    return [each for each in found if each is not None]


def _unseen_matter(volume: Volume, views: Views) -> Finding | None:
    """Matter, or much of the box, where no view looks."""
    samples = np.array([(0, 0, 0), volume.shape]) - 0.5  # along the volume's axes, which may not be the world's
    count = points.coverage(views, samples, volume.world_from_index)
    starts = [np.unique(np.arange(points.COVERAGE_SIDE) * n // points.COVERAGE_SIDE) for n in volume.shape]
    alpha = floaters.opacity_in_parts(volume, starts)
    for axis, (first, length) in enumerate(zip(starts, volume.shape, strict=True)):
        count = count.take(first * points.COVERAGE_SIDE // length, axis)
    seen = count > 0
    hidden = float(alpha[~seen].sum() / max(float(alpha.sum()), 1e-9))
    if hidden > MAX_HIDDEN_FRACTION:
        message = f"{hidden:.0%} of what is opaque lies where no view looks"
        return Finding(
            "unseen", "warning", message, "a tighter --box, or --set sparsity=1e-3, or views that look there"
        )
    if (count == 0).mean() > MAX_UNSEEN_FRACTION:
        message = f"no view looks at {(count == 0).mean():.0%} of the box, whose samples are wasted"
        return Finding("unseen", "note", message, "a tighter --box")
    return None


def _render_views(volume: Volume, views: Views) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Name, rendered image, true one, and which pixels count, of some views, small."""
    out = []
    with Renderer(volume) as renderer:
        for i in sorted(set(np.linspace(0, len(views) - 1, min(len(views), MAX_RENDERED_VIEWS)).astype(int).tolist())):
            camera, truth, mask = views.cameras[i], views.rgb(i), views.mask(i)
            k = min(-(-max(camera.width, camera.height) // MAX_IMAGE_SIDE), camera.width, camera.height)
            height, width = camera.height // k, camera.width // k
            small = replace(
                camera,
                focal=(camera.focal[0] / k, camera.focal[1] / k),
                principal=(camera.principal[0] / k, camera.principal[1] / k),
                width=width,
                height=height,
            )
            behind = background_of(volume, views)
            shown = np.clip(renderer.render(small, behind, depth=False).image, 0, 1)
            cut = truth[: height * k, : width * k].reshape(height, k, width, k, 3).mean((1, 3))
            counts = np.ones((height, width), bool) if mask is None else mask[k // 2 :: k, k // 2 :: k][:height, :width]
            out.append((views.names[i], shown, cut, counts))
    return out


def _psnr_gap(fitted: list, held_out: list) -> Finding | None:
    """Held-out views that come out far worse than those that were fitted."""
    scores = [
        [min(psnr(shown[counts], truth[counts]), MAX_PSNR) for _, shown, truth, counts in some if counts.any()]
        for some in (fitted, held_out)
    ]
    if not all(scores):
        which = "fitted" if not scores[0] else "held out"
        message = f"views that were {which} are masked all over, so the gap between fitted and held-out ones is unknown"
        return Finding("gap", "note", message, "masks that leave some pixels: False is what does not count")
    train, test = (float(np.mean(each)) for each in scores)
    if train - test < MIN_PSNR_GAP:
        return None
    message = (
        f"held-out views come out at {test:.1f} dB where fitted ones do at {train:.1f}: the fit learned them by heart"
    )
    return Finding(
        "gap", "warning", message, "more views; poses may be off: --refine; then a lower --resolution or --sh-degree"
    )


def _other_views_finding(volume: Volume, fitted: list) -> Finding | None:
    """Volume of another set, or of other cameras: it shows hardly a view better than one colour all over would."""
    far = []
    for _, shown, truth, counts in fitted:
        if counts.any():
            far.append(is_worse_than_one_colour(shown[counts], truth[counts]))
    if not far or np.mean(far) < MIN_FAILED_FRACTION:
        return None
    of_fit = volume.provenance.get("views")
    source = of_fit.get("source") if isinstance(of_fit, dict) else None
    whose = f", which was fitted to {short_value(source)}," if source else ""
    message = f"the volume{whose} shows {sum(far)} of {len(far)} views worse than one colour all over would"
    return Finding(
        "other-set", "error", message, "give the set and the volume that belong together; else the fit failed: fit anew"
    )


def _exposures(volume: Volume) -> dict[str, np.ndarray]:
    """Gains and offsets (2, 3) that a fit found, by the names of views, as far as its provenance tells them."""
    told = volume.provenance.get("exposures")
    out = {}
    for each in told if isinstance(told, (list, tuple)) else ():
        with suppress(TypeError, ValueError, OverflowError):
            name, *numbers = each
            found = np.array(numbers, float).reshape(2, 3)
            if np.isfinite(found).all():
                out[str(name)] = found
    return out


def _exposure(volume: Volume, fitted: list) -> Finding | None:
    """Views that are brighter or darker than the volume has them, after the exposures of its fit."""
    stops, known = [], _exposures(volume)
    for name, shown, truth, counts in fitted:
        if name in known:
            gain, offset = known[name]
            shown = np.clip(gain * shown + offset, 0, 1)
        usable = (
            counts
            & (truth.max(-1) < MAX_BRIGHTNESS)
            & (truth.mean(-1) > MIN_BRIGHTNESS)
            & (shown.mean(-1) > MIN_BRIGHTNESS)
        )
        if usable.sum() > 50:
            both = (np.log2(np.maximum(linear_of_srgb(image[usable]).mean(-1), 1e-4)) for image in (truth, shown))
            stops.append(float(np.median(np.subtract(*both))))
    if len(stops) < 3 or np.ptp(stops) < MIN_EXPOSURE_SPREAD:
        return None
    if setting_of_fit(volume, "exposure") is True:
        message = f"exposure differs by {np.ptp(stops):.1f} stops between views beyond what the fit found of it"
        return Finding("exposure", "warning", message, "develop all photos alike, or more steps")
    message = f"exposure differs by {np.ptp(stops):.1f} stops between views, which the volume cannot show"
    return Finding(
        "exposure", "warning", message, "--preset photos, or --set exposure=True: an exposure for each image"
    )
