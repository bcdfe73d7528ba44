"""Options of rendering modes, and the march that they say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import say
from raymarch.cli.option_kinds import FOLD, LARGEST, Interval, Real, Whole, as_usage, packed

if TYPE_CHECKING:
    import numpy as np

    from raymarch.data.transfer_function import TransferFunction
    from raymarch.data.volume import AnyVolume, Volume
    from raymarch.rendering.march import March
    from raymarch.rendering.renderer import Rendering

# As `kernels.march.modes` has them (tests/house/test_lists.py); importing that takes a second, which --help should not.
MODES = (
    "emission-absorption", "additive", "x-ray", "transfer", "maximum", "minimum", "average", "isosurface",
    "x-ray-exact",
)  # fmt: skip

mode = click.option(
    "--mode",
    type=click.Choice(MODES),
    help="How rays add up; transfer for a volume of values alone, else emission-absorption.",
)
table = click.option(
    "--table",
    metavar="FILE|MAP",
    help="Transfer function: table.json, a colour map as bone or bone,LOW,HIGH,OPACITY, or knots as the viewer copies"
    " them; mode transfer.",
)
iso = click.option(
    "--iso", type=Real(-LARGEST, LARGEST), metavar="VALUE", help="Value of the surface; mode isosurface."
)

MOST_SUPERSAMPLE = 8  # as `data.supersample` has it, for the same reason
supersample = click.option(
    "--supersample",
    type=Whole(1, MOST_SUPERSAMPLE, units=FOLD),
    metavar="K",
    help="Rays along each edge of a pixel, which is the mean of K x K; as it was fitted if not given.",
)

step = click.option(
    "--step",
    type=Real(1e-3, 1e6),
    metavar="VOXELS",
    help="Length of a ray's steps, in voxels; 0.5 if not given.",
)
shading = click.option(
    "--shading",
    is_flag=True,
    help="Light a transfer function's samples from the eye, by the slope of their value; an isosurface always is.",
)
preintegrated = click.option(
    "--preintegrated",
    is_flag=True,
    help="Integrate the transfer function without steps, so that no thin layer of it is missed; 2 to 6 times as long.",
)

window = click.option(
    "--window",
    type=Interval(),
    metavar="LOW,HIGH",
    help="Values that are black and white, of modes whose images are values; those of the first image if not given.",
)


@dataclass(frozen=True)
class Shown:
    """How a volume is shown, as the options say."""

    mode: str | None = None
    table: str | None = None
    iso: float | None = None
    step: float | None = None
    shading: bool = False
    preintegrated: bool = False
    supersample: int | None = None

    def march(self, volume: AnyVolume) -> March:
        """March over a volume, its mode, table or value chosen by what the volume has, and said, if not given."""
        from raymarch.data.volume import VOLUME
        from raymarch.errors import RaymarchError
        from raymarch.rendering.march import March
        from raymarch.rendering.shading import Shading

        given = {"step": self.step, "supersample": self.supersample}
        own: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if self.shading:
            own["shading"] = Shading()
        if self.preintegrated:
            own["preintegrated"] = True
        chosen = March(**self._of_mode(VOLUME("volume", volume)), **own)
        if self.step is not None and not chosen.rule.step:
            raise RaymarchError(f"--step: mode {chosen.rule.name} has no steps; leave it out")
        return chosen

    def _of_mode(self, volume: Volume) -> dict[str, Any]:
        """Mode, and what is its own: a table, the value of a surface."""
        from raymarch.data.default_table import default_table, has_values_alone
        from raymarch.errors import RaymarchError

        mode, table, iso = self.mode, self.table, self.iso
        if mode is None:
            mode = "transfer" if table is not None else "isosurface" if iso is not None else None
        if mode is None and has_values_alone(volume):
            mode = "transfer"
            say.note("mode transfer, as the volume has values and no colours; --mode takes another")
        if mode is None:
            return {}
        if table is not None and mode != "transfer":
            cure = "leave it out, or say --mode transfer"
            raise RaymarchError(f"--table: mode {mode} takes no transfer function; {cure}")
        if iso is not None and mode != "isosurface":
            raise RaymarchError(f"--iso: mode {mode} has no surface; leave it out, or say --mode isosurface")
        if mode == "isosurface":
            if iso is None:
                chosen = default_table(volume).values
                iso = float(chosen[0] + chosen[-1]) / 2
                say.note(f"the surface is at {iso:.4g}; --iso takes another")
            return {"mode": mode, "iso": iso}
        return {"mode": mode, "transfer": _table(volume, table)} if mode == "transfer" else {"mode": mode}


def marched(command: Any) -> Any:
    """Options of rendering modes by single rays, given to a command as `shown`, a record of them."""
    command = packed(Shown, "shown")(command)
    for option in (preintegrated, shading, step, iso, table, mode):
        command = option(command)
    return command


def shown(command: Any) -> Any:
    """Options of rendering modes, given to a command as `shown`, a record of them."""
    return marched(supersample(command))


def _table(volume: Volume, table: str | None) -> TransferFunction:
    """Table of a file or of a colour map, over the volume's range where no ends are given; where none is asked for that
    which the volume was fitted through."""
    from raymarch.data.colormaps import COLORMAP
    from raymarch.data.default_table import default_table
    from raymarch.errors import figures
    from raymarch.io.volumes.transfer_table import load_table
    from raymarch.rendering.march import table_of

    if table is not None and ":" in table and "@" in table and not table.lower().endswith(".json"):
        return _knots(table)
    if table is not None and Path(table).suffix:
        if Path(table).suffix.lower() == ".json":
            return load_table(table)
        if "," not in table:
            raise click.UsageError(f"--table {table}: want table.json, or the name of a colour map such as bone")
    if table is None and (fitted := table_of(volume)) is not None:
        say.note("seen through the table that it was fitted through; --table takes another")
        return fitted
    name, *numbers = ("viridis" if table is None else table).split(",")
    try:
        ends = [float(number) for number in numbers]
    except ValueError:
        ends = [0.0] * 4
    if len(ends) not in (0, 2, 3):
        raise click.UsageError(
            f"--table {table}: want MAP, MAP,LOW,HIGH or MAP,LOW,HIGH,OPACITY, such as bone,400,2400,0.5"
        )
    with as_usage():
        COLORMAP("table", name)
    made = default_table(volume, name, *ends)
    if not ends:
        low, high = figures(made.values[0], made.values[-1], least=4)
        most = made.opacities[-1]
        say.note(f"--table {name},{low},{high},{most:g}, its opacity over {made.unit_length:.4g} world units")
    return made


def _knots(table: str) -> TransferFunction:
    """Table of knots in one word, as the viewer copies it."""
    from raymarch.data.transfer_function import TransferFunction

    knots, _, length = table.rpartition("@")
    try:
        rows = [[float(each) for each in knot.split(":")] for knot in knots.split(",")]
        if {len(row) for row in rows} != {5}:
            raise ValueError
        unit = float(length)
    except ValueError:
        wanted = "VALUE:RED:GREEN:BLUE:OPACITY,...@LENGTH, such as 0:0:0:0:0,100:1:1:1:0.5@2"
        raise click.UsageError(f"--table {table[:60]}: want {wanted}") from None
    columns = list(zip(*rows, strict=True))
    with as_usage():
        return TransferFunction(columns[0], list(zip(*columns[1:4], strict=True)), columns[4], unit)  # type: ignore[arg-type]


def require_window(march: March, window: list[float] | None) -> None:
    """RaymarchError for a window where a mode's images are colours."""
    from raymarch.errors import RaymarchError

    if window is not None and not gives_values(march):
        raise RaymarchError(f"--window: images of mode {march.mode} are colours; leave it out")


def gives_values(march: March) -> bool:
    """Whether the images of a march are values, or integrals of them, with nothing behind them."""
    return not march.rule.background


def in_window(seen: Rendering, window: list[float] | None) -> tuple[np.ndarray, list[float]]:
    """Display values 0..1 of an image of values, black where nothing is met; the window, the image's own if none."""
    from raymarch.data.value_contents import above
    from raymarch.errors import figures

    met = seen.opacity != 0
    if window is None:
        values = seen.image[met]
        low = float(values.min(initial=0.0))
        high = float(values.max()) if values.size else low
        window = [low, high if high > low else above(low)]
        black, white = figures(*window, least=4)
        say.note(f"black is {black}, white {white}, by the first image; --window takes others")
    low, high = window
    return ((seen.image - low) / (high - low)).clip(0, 1) * met[..., None], window
