"""Plausibility of intrinsics: numbers that no lens has, and cameras that are unlike the others of their set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from raymarch.errors import RaymarchError, first_names
from raymarch.geometry.camera import Camera

MAX_OBLIQUITY = 10.0  # tan of the angle between the optical axis and the image's middle; 84 degrees
MIN_FOCAL, MAX_FOCAL = 1 / 200, 1e6  # in widths of the image; fields of view of 179.4 degrees and 0.2 seconds of arc
MIN_USUAL_FOCAL = 1 / 12  # in widths of the image, a field of view of 161 degrees
MAX_ODD_SHARE = 0.15  # of the views, that are named as unlike the others
MIN_ODD_ZOOM = 2.0  # times the usual focal length


def require_plausible(focal: Sequence[float], principal: Sequence[float], width: int, height: int, where: str) -> None:
    """Intrinsics check: RaymarchError, opened by `where`, for a focal or principal point off by orders of magnitude.

    Example:
        >>> require_plausible((500, 500), (200, 150), 400, 300, "frame 0")
    """
    for name, f, c, size, side in [
        ("x", focal[0], principal[0], width, "wide"),
        ("y", focal[1], principal[1], height, "high"),
    ]:
        if not (math.isfinite(f) and f > 0):
            continue  # which `Camera` refuses
        if f < MIN_FOCAL * size:
            shares = " (is it a share of the width?)" if f < 10 else ""
            raise RaymarchError(
                f"{where}: focal fl_{name} is {f:.3g} pixels in an image {size} pixels {side},"
                f" a field of view of {math.degrees(2 * math.atan(size / 2 / f)):.1f} degrees{shares}; want pixels"
            )
        if f > MAX_FOCAL * size:
            raise RaymarchError(
                f"{where}: focal fl_{name} is {f:.3g} pixels in an image {size} pixels {side}, want at most"
                f" {MAX_FOCAL * size:.3g}; correct it"
            )
        if abs(c - size / 2) > MAX_OBLIQUITY * f and abs(c - size / 2) > size:
            raise RaymarchError(
                f"{where}: c{name} is {c:.3g} in an image {size} pixels {side}, far out of it;"
                " want the principal point in pixels from the corner"
            )


def doubts_of(cameras: Sequence[Camera], names: Sequence[str]) -> list[str]:
    """Warnings about focals and principal points that may be meant otherwise, and about images of another size or
    focal than nearly all others: each with the views that it is about, where it is not about most.

    Example:
        >>> usual, odd = (Camera(np.eye(4), (f, f), (200, 150), 400, 300) for f in (500, 1500))
        >>> doubts_of([odd] + 19 * [usual], [f"{i}.png" for i in range(20)])
        ['1 of 20 cameras have another focal length than the others (0.png): 3.75 widths of the image, not 1.25']
    """
    said = dict[str, list[int]]()
    for i, camera in enumerate(cameras):
        if text := intrinsics_doubt(camera):
            said.setdefault(text, []).append(i)
    out = list[str]()
    for text, which in said.items():
        count, some = f"{len(which)} of {len(cameras)}", first_names([names[i] for i in which])
        out.append(text if 2 * len(which) > len(cameras) else f"{text} ({count}: {some})")
    sizes = [(camera.width, camera.height) for camera in cameras]
    usual, _ = Counter(sizes).most_common(1)[0]
    if odd := few_odd([size != usual for size in sizes]):
        wide, high = sizes[odd[0]]
        some = first_names([names[i] for i in odd])
        out.append(
            f"{len(odd)} of {len(cameras)} images have another size than the others ({some}): {wide} x {high} pixels,"
            f" not {usual[0]} x {usual[1]}"
        )
    shares = [camera.focal[0] / max(camera.width, camera.height) for camera in cameras]
    middle = sorted(shares)[len(shares) // 2]
    if odd := few_odd([not middle / MIN_ODD_ZOOM < share < middle * MIN_ODD_ZOOM for share in shares]):
        some = first_names([names[i] for i in odd])
        out.append(
            f"{len(odd)} of {len(cameras)} cameras have another focal length than the others ({some}):"
            f" {shares[odd[0]]:.3g} widths of the image, not {middle:.3g}"
        )
    return out


def intrinsics_doubt(camera: Camera) -> str:
    """Warning about a focal or principal point that may be meant otherwise; or "".

    Example:
        >>> intrinsics_doubt(Camera(np.eye(4), (500, 500), (0.5, 0.5), 400, 300))
        'cx, cy are 0.5, 0.5: pixels are wanted, not shares of the image'
    """
    if min(camera.width, camera.height) > 16 and all(0 < c <= 1 for c in camera.principal):
        u, v = camera.principal
        return f"cx, cy are {u:g}, {v:g}: pixels are wanted, not shares of the image"
    if camera.focal[0] < MIN_USUAL_FOCAL * camera.width:
        angle = math.degrees(2 * math.atan(camera.width / 2 / camera.focal[0]))
        return f"the focal of {camera.focal[0]:.3g} pixels is a field of view of {angle:.0f} degrees; is it in pixels?"
    return ""


def few_odd(odd: Sequence[bool]) -> list[int]:
    """Indices of the odd ones, where they are few enough to be told from the rest.

    Example:
        >>> few_odd([False] * 9 + [True]), few_odd([True, False])
        ([9], [])
    """
    which = [i for i, is_odd in enumerate(odd) if is_odd]
    return which if 0 < len(which) <= MAX_ODD_SHARE * len(odd) else []
