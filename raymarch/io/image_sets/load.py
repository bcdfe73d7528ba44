"""Image sets of any known layout."""

from __future__ import annotations

import logging
from pathlib import Path

from raymarch import arrays, checks
from raymarch.arguments import checked
from raymarch.checks import optional
from raymarch.data.contents import doubts
from raymarch.data.views import Views
from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.limits import require_folder
from raymarch.io.image_sets.layouts import LAYOUTS, WANTED


@checked(
    path=checks.path,
    split=checks.text,
    background=optional(arrays.colour),
    follow_links=checks.flag,
    for_fit=checks.flag,
)
def load_views(
    path, split: str = "train", *, background=None, follow_links: bool = False, for_fit: bool = True
) -> Views:
    """The views of one split of an image set, whose layout is found out from its files.

    Args:
        path: the set's folder, itself a link or not.
        split: which of its views, such as train, val or test.
        background: colour that images with alpha are composited on; white if not given.
        follow_links: read images that links in the folder lead to outside of it; only where you trust the set.
        for_fit: refuse, before anything is decoded, more images than a fit has memory for.

    What speaks against the images, such as some that are transparent all over, is said in the log.

    Raises RaymarchError where the folder is missing, of no known layout or of one that is not read yet, which it names,
    and what the layout's reader raises.

    Example:
        >>> len(load_views("lego", "train"))  # doctest: +SKIP
        100
    """
    folder = Path(path)
    try:
        layout = next((layout for layout in LAYOUTS if layout.detect(folder)), None)
    except (OSError, ValueError) as error:
        raise RaymarchError(f"{folder}: cannot be looked at ({one_line(error)}); check path and permissions") from error
    if layout is None:
        require_folder(folder)
        raise RaymarchError(f"{folder}: is no known image set, looked for {WANTED}; check the path or convert the set")
    if layout.read is None:
        raise RaymarchError(f"{folder}: looks like {layout.name}, which {layout.lack}; {layout.cure}")
    views = layout.read(folder, split, background, follow_links=follow_links, for_fit=for_fit)
    for said in doubts(views):
        logging.getLogger("raymarch").warning("%s", said)
    return views
