"""Options of how an image set is read, and its views as the fit of a volume had them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import output
from raymarch.cli.option_kinds import FACTOR_UNITS, Background, Colour, Real, Whole, pack_options

if TYPE_CHECKING:
    from raymarch.views.views import Views
    from raymarch.volumes.volume import Volume

downscale = click.option(
    "--downscale",
    type=Real(1, 1 << 20, "images are made smaller, by 2 for half as many pixels a side", FACTOR_UNITS),
    metavar="K",
    help="Make images K times smaller as they are read; the fit's where that is known, else 1.",
)
holdout = click.option(
    "--holdout",
    type=Whole(0, 1 << 20, "every 8th view by 8, none by 0"),
    metavar="K",
    help="Hold one view in K out for the split test, where DATA has no splits; the fit's where that is known, else 8.",
)
background = click.option(
    "--background",
    type=Colour(),
    metavar="COLOUR",
    help="Colour behind the object: white, black or r,g,b in 0..1; the volume's or the set's own if not given.",
)
background_of_set = click.option(
    "--background",
    type=Background(),
    metavar="COLOUR",
    help="Colour behind the object: white, black, r,g,b in 0..1, or a number a channel; the volume's or the set's own"
    " if not given.",
)
masks = click.option(
    "--masks",
    type=click.Choice(["ignored", "alpha"]),
    help="What masks take out: unknown, the default, or empty, as around an object that is masked in all images.",
)
depth_unit = click.option(
    "--depth-unit",
    type=Real(1e-9, 1e9, "0.001 where depth images have millimetres and the world metres"),
    metavar="X",
    help="World units of one step of the depth images' values; what the set says if not given, else 0.001.",
)
follow_links = click.option(
    "--follow-links", is_flag=True, help="Read images that links in DATA lead to outside of it; if you trust the set."
)


@dataclass(frozen=True)
class SetReading:
    """How an image set is read, as the options say; None where they say nothing."""

    downscale: float | None = None
    holdout: int | None = None
    background: Any = None
    masks: str | None = None
    follow_links: bool = False
    depth_unit: float | None = None

    def require_set(self, data: str | None, option: str) -> None:
        """UsageError for what is said where no set is given."""
        if data is None and (self.downscale is not None or self.holdout is not None or self.follow_links):
            raise click.UsageError(f"--downscale, --holdout and --follow-links are of the image set {option}; give it")

    def options(self, volume: Volume | None = None, depths: bool = False) -> dict[str, Any]:
        """Options of `load_views` but for the background: what is asked for, else what the fit of a volume had;
        `depths` says whether depth images are wanted."""
        of_fit = None if volume is None else volume.provenance.get("views")
        known = of_fit if isinstance(of_fit, dict) else {}
        masks = "alpha" if self.masks is None and known.get("masks") == "alpha" else self.masks
        return {
            "downscale": known.get("downscale", 1.0) if self.downscale is None else self.downscale,
            "holdout": known.get("holdout") if self.holdout is None else self.holdout,
            **({} if masks is None else {"masks": masks}),
            "follow_links": self.follow_links,
            "depths": depths,
            **({} if self.depth_unit is None else {"depth_unit": self.depth_unit}),
        }


def set_reading(background: Any = None, with_masks: bool = False, with_depths: bool = False) -> Any:
    """Options of how an image set is read, given to a command as `reading`, a record of them.

    Args:
        background: the option of a colour, None for a command that has none.
        with_masks: whether the command has an option of what masks take out.
        with_depths: whether it has one of the unit of depth images.
    """
    depths = depth_unit if with_depths else None
    several = (follow_links, depths, masks if with_masks else None, background, holdout, downscale)

    def declare(command: Any) -> Any:
        command = pack_options(SetReading, "reading")(command)
        for option in several:
            command = command if option is None else option(command)
        return command

    return declare


def load_fitted(run: str) -> Volume:
    """The volume of a file that is compared with pictures; RaymarchError for a scalar volume, which has no colours."""
    from raymarch.errors import RaymarchError
    from raymarch.io.volumes.volume_file import load
    from raymarch.volumes.volume import Volume as Fitted

    volume = load(run)
    if not isinstance(volume, Fitted):
        raise RaymarchError(
            f"{run}: is a scalar volume, which has no colours to compare with pictures; take a fitted one, or"
            " rm.evaluate(volume, views, march=rm.March(mode='x-ray')) in Python"
        )
    return volume


def shown_views(data: str, split: str, volume: Any, channels: tuple[str, ...] | None, how: dict[str, Any]) -> Views:
    """Views of a set as a volume's pictures show it: over its background, or of channels some of them as colours."""
    from raymarch.io.image_sets.load import load_views
    from raymarch.views.views import require_colour

    views = load_views(data, split, for_fit=False, **how)
    if views.channels:
        return views.in_colour(channels)
    return replace(views, background=require_colour(volume.background))


def refined_views(volume: Volume, views: Views, *, say_so: bool = True) -> Views:
    """Views of a fitted volume's set as the fit's refinement has them: the lens of all cameras, and the poses of views
    that it was fitted to. What moved is said where it has not been yet."""
    from raymarch.registration.intrinsics import move_shared_of_views

    refined = volume.provenance.get("refined")
    if not isinstance(refined, dict):
        return views
    from raymarch.registration.refined_fit import views_as_fitted

    shared = refined.get("shared")
    moved = move_shared_of_views(views, shared)
    told = [f"{', '.join(shared)} of the cameras"] if shared and moved is not views else []
    found = views_as_fitted(moved, volume.provenance)
    if count := moved_poses(moved, found):
        told.append(f"poses of {count} of {len(views)} views")
    if say_so and told:
        output.print_note(f"{' and '.join(told)} as the fit refined them")
    return found


def moved_poses(views: Views, others: Views) -> int:
    """Count of cameras that stand elsewhere in the same views with other cameras."""
    pairs = zip(views.cameras, others.cameras, strict=True)
    return sum(bool((one.world_from_camera != other.world_from_camera).any()) for one, other in pairs)
