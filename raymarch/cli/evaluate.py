"""`raymarch evaluate`: PSNR, SSIM, LPIPS and depth error of a volume on held-out views."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raymarch.cli import modes, options, output, set_options
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.set_options import SetReading, load_fitted, refined_views
from raymarch.cli.worker_options import Workers, worker_options

if TYPE_CHECKING:
    import numpy as np

    from raymarch.evaluation.held_out import Evaluation, ViewScore
    from raymarch.rendering.march_settings import March
    from raymarch.views.views import Views
    from raymarch.volumes.volume import Volume

MAX_ROWS = 8  # of a contact sheet


@click.command(epilog="Example: raymarch evaluate tower.h5 scenes/tower --split test --sheet sheet.png")
@click.argument("run", metavar="VOLUME")
@click.argument("data")
@click.option("--split", default="test", show_default=True, help="Which views to compare with.")
@click.option("--images", type=click.Path(), help="Folder to write rendered | true | error pictures to.")
@click.option("--errors", type=click.Path(), help="Folder to write error pictures to, in colours from 0 to 0.25.")
@click.option("--sheet", type=click.Path(), help=f"Contact sheet to write (.png), the same three of {MAX_ROWS} views.")
@modes.supersample
@options.overwrite
@set_options.set_reading(set_options.background_of_set, with_depths=True)
@worker_options
@device_options
@options.as_json
def evaluate(
    run: str,
    data: str,
    split: str,
    images: str | None,
    errors: str | None,
    sheet: str | None,
    supersample: int | None,
    overwrite: bool,
    reading: SetReading,
    workers: Workers,
    device: Device,
    as_json: bool,
) -> None:
    """PSNR, SSIM, LPIPS and depth error of VOLUME against the views of DATA.

    "halves" is the PSNR of each view's right half after gain and offset of its channels were fitted on the left half,
    for photographs whose exposure changes; "masked" counts what the set's masks leave, or where its alpha is over 0.
    "depth error" is the mean distance [world unit] by which depths are off, of views that have a depth image.
    Of channels other than red, green and blue it is the PSNR of all, each over its range, and behind each one's name
    the root of its mean squared error, in its unit.
    """
    from raymarch.cli.progress import CountProgress
    from raymarch.evaluation import held_out
    from raymarch.io.image_sets.load import load_views
    from raymarch.rendering.march_settings import march_for
    from raymarch.views.identity import recorded_indices

    _require_names(data, images, errors, sheet, overwrite)
    volume = load_fitted(run)
    behind = reading.background or (volume.background if volume.is_colour else None)
    views = load_views(data, split, background=behind, for_fit=False, **reading.options(volume, depths=True))
    if (volume.is_colour and not views.channels) or (reading.background and volume.channels == views.shown):
        volume = replace(volume, background=views.background)  # what was asked for, also behind images without alpha
    known = recorded_indices(views, volume.provenance.get("views"))  # by the poses of the set
    views = refined_views(volume, views)
    if workers.where is None:
        device.start()
    pictures = _Pictures(views, volume, data, images, errors, sheet, overwrite)
    output.print_note(f"{views.count_in_words()} from {data}")
    if known:
        output.print_note(
            f"note: {len(known)} of {len(views)} views were fitted, so their scores say nothing of new ones"
        )
    with pictures.placed(), CountProgress("evaluate", len(views)) as progress:

        def seen(i: int, image: np.ndarray) -> None:
            progress.advance()
            pictures.add(i, image)

        march = march_for(volume, None)
        march = march if supersample is None else replace(march, supersample=supersample)
        if workers.where is None:
            result = held_out.evaluate(volume, views, march=march, seen=seen)
        else:
            result = _by_workers(run, volume, views, march, seen, workers, device)
    if as_json:
        output.print_json(asdict(result))
    else:
        _say(result)
    pictures.finish()  # last, so that no picture takes the scores with it


def _by_workers(
    run: str,
    volume: Volume,
    views: Views,
    march: March,
    seen: Callable[[int, np.ndarray], None],
    workers: Workers,
    device: Device,
) -> Evaluation:
    """Scores by other processes, who read the volume for themselves."""
    from raymarch.errors import RaymarchError
    from raymarch.evaluation.held_out import evaluate_colours
    from raymarch.rendering.render_many import SceneFiles, VolumeFile

    if views.channels or not volume.is_colour:
        raise RaymarchError("volumes of channels are scored by this process; leave --workers and --cluster out")
    scene = SceneFiles((VolumeFile.of(run),), march)
    return evaluate_colours(volume, views, march, seen, scene, workers.where, workers.device(device))


def _require_names(data: str, images: str | None, errors: str | None, sheet: str | None, overwrite: bool) -> None:
    """RaymarchError for names that no pictures can be written to, before anything is read."""
    from raymarch.errors import RaymarchError
    from raymarch.io.images.write import folder_named

    folders: list[Path] = []  # in the order that they are made in
    for path in (images, errors):
        if path is not None:
            folders.append(folder_named(path, data, folders).resolve())
    if len(folders) == 2 and folders[0] == folders[1]:
        raise RaymarchError(f"{errors}: is the folder of --images too, want two; choose another")
    if sheet is not None:
        _require_sheet(sheet, overwrite, folders)


def _require_sheet(sheet: str, overwrite: bool, made: Sequence[Path] = ()) -> None:
    """RaymarchError where no sheet can be written; in a folder of `made` that is not there yet, by its suffix alone."""
    from raymarch.io.files.atomic import require_writable
    from raymarch.io.images.write import require_pictures, require_png

    require_png(sheet)
    if (parent := Path(os.path.realpath(sheet)).parent) in made and not parent.is_dir():
        return
    require_pictures([sheet], overwrite)
    require_writable(sheet)


def _say(result: Evaluation) -> None:
    """Scores of each view and their means, a line each."""
    width = max(len(v.name) for v in result.views)
    for view in result.views:
        output.print_result(f"{view.name:{width}}  {_scores(view)}")
    click.echo(f"{'mean':{width}}  {_scores(result)}  {result.seconds_per_image:.2f} s an image")
    if result.masked_by:
        output.print_note(f"masked: inside {result.masked_by}")
    if result.lpips_missing and importlib.util.find_spec("lpips") is not None:  # who has it wants to know
        output.print_note(f"no LPIPS: {result.lpips_missing}")


def _scores(of: ViewScore | Evaluation) -> str:
    """Scores in words, those that there are."""
    known = [
        ("PSNR", of.psnr, "6.2f", " dB"),
        ("halves", of.psnr_halves, "6.2f", " dB"),
        ("masked", of.psnr_masked, "6.2f", " dB"),
        ("SSIM", of.ssim, ".4f", ""),
        ("masked", of.ssim_masked, ".4f", ""),
        ("LPIPS", of.lpips, ".4f", ""),
        ("depth error", of.depth_error, ".3g", ""),
        ("relative", of.depth_error_relative, ".1%", ""),
    ]
    told = [f"{name} {value:{form}}{unit}" for name, value, form, unit in known if value is not None]
    errors = [f"{name} {value:.4g}" for name, value in of.rmse.items()]
    return "  ".join([*told, *["RMSE"] * bool(errors), *errors])


class _Pictures:
    """Pictures of an evaluation, written as its images come; what cannot be written is refused before the first."""

    def __init__(
        self,
        views: Views,
        volume: Volume,
        data: str,
        images: str | None,
        errors: str | None,
        sheet: str | None,
        overwrite: bool,
    ):
        from raymarch.io.images.write import folder_for

        def folder(path: str | None) -> Path | None:
            return None if path is None else folder_for(path, views.names, outside=data, overwrite=overwrite)

        self.overwrite, self.sheet, self._shown = overwrite, sheet, None
        if views.channels or not volume.is_colour:  # pictures of three of the channels that both have, or of one
            common = [name for name in views.shown if name in volume.channels] or list(views.shown)
            names = common[: 3 if len(common) > 2 else 1]
            which = [volume.channels.index(name) for name in names if name in volume.channels]
            self._shown = which, views.ranges[[views.shown.index(name) for name in names]]
            views = views.in_colour(names)
        self.views = views
        self.images, self.errors = folder(images), folder(errors)
        if sheet is not None:
            _require_sheet(sheet, overwrite)
        count = min(len(views), MAX_ROWS)
        self.of_sheet = {round(k * (len(views) - 1) / max(count - 1, 1)) for k in range(count)}
        self.kept: list[tuple[int, np.ndarray]] = []

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Context in which pictures are written beside older ones, whose place they take at its end."""
        from raymarch.io.images.picture_folder import replacing_pictures

        files = [f"{name}.png" for name in self.views.names]
        folders = self.images, self.errors
        with ExitStack() as stack:
            self.images, self.errors = (
                None if one is None else stack.enter_context(replacing_pictures(one, files)) for one in folders
            )
            yield

    def add(self, i: int, image: np.ndarray) -> None:
        """Write what is wanted of one view's image, as bright as pictures are, which is what is scored."""
        from raymarch.io.images.write import write_comparison, write_one_of_several
        from raymarch.plot.fits import error_picture
        from raymarch.views.channel_images import eight_bit_of

        file, truth, mask = f"{self.views.names[i]}.png", self.views.rgb(i), self.views.mask(i)
        image = image if self._shown is None else eight_bit_of(image, *self._shown).astype(truth.dtype) / 255
        image = image.clip(0, 1)
        if self.images is not None:
            write_comparison(self.images / file, image, truth, mask=mask, overwrite=self.overwrite)
        if self.errors is not None:
            write_one_of_several(self.errors / file, error_picture(image, truth, mask=mask), self.overwrite)
        if self.sheet is not None and i in self.of_sheet:
            self.kept.append((i, image))

    def finish(self) -> None:
        """Write the contact sheet."""
        if self.sheet is None:
            return
        from raymarch.io.images.write import write_png
        from raymarch.plot.fits import error_sheet
        from raymarch.plot.panels import picture_of

        which = [i for i, _ in self.kept]
        truths, masks = [self.views.rgb(i) for i in which], [self.views.mask(i) for i in which]
        names = [self.views.names[i] for i in which]
        images = [image for _, image in self.kept]
        picture = picture_of(lambda: error_sheet(images, truths, names, masks=masks))
        write_png(self.sheet, picture, self.overwrite)
