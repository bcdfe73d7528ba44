"""Options of rendering modes, and the march that they say."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import output
from raymarch.cli.option_kinds import FACTOR_UNITS, MAX_NUMBER, Interval, Real, Whole, pack_options, usage_errors

if TYPE_CHECKING:
    import numpy as np

    from raymarch.rendering.default_look import DefaultLook
    from raymarch.rendering.march_settings import March
    from raymarch.rendering.renderer import Rendering
    from raymarch.volumes.transfer_function import TransferFunction
    from raymarch.volumes.value_kind import ValueKind
    from raymarch.volumes.volume import AnyVolume, Volume

# As `kernels.modes.registry` has them (tests/house/test_lists.py); to import that takes a second, too long for --help.
MODES = (
    "emission-absorption", "additive", "x-ray", "transfer", "maximum", "minimum", "average", "isosurface",
    "x-ray-exact", "x-ray-joseph",
)  # fmt: skip

mode = click.option(
    "--mode",
    type=click.Choice(MODES),
    help="How rays add up; transfer for a volume of values alone, else emission-absorption.",
)
table = click.option(
    "--table",
    metavar="FILE|MAP",
    help="Transfer function: table.json, a lit one as ct, ct-bone, ct-skin, ct-lung, labels, solid,LOW,HIGH,"
    " glow,LOW,HIGH or signed,LOW,HIGH, a colour map as bone or bone,LOW,HIGH,OPACITY, or knots as the viewer copies"
    " them; mode transfer.",
)
iso = click.option(
    "--iso", type=Real(-MAX_NUMBER, MAX_NUMBER), metavar="VALUE", help="Value of the surface; mode isosurface."
)

MAX_SUPERSAMPLE = 8  # as `views.display_values` has it; its rule takes a second to import
supersample = click.option(
    "--supersample",
    type=Whole(1, MAX_SUPERSAMPLE, units=FACTOR_UNITS),
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
    "--shading/--no-shading",
    default=None,
    help="Light a transfer function's samples from the eye, by the slope of their value; as tables by name are, and"
    " isosurfaces always.",
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
class ModeOptions:
    """How a volume is shown, as the options say."""

    mode: str | None = None
    table: str | None = None
    iso: float | None = None
    step: float | None = None
    shading: bool | None = None
    preintegrated: bool = False
    supersample: int | None = None

    def march(self, volume: AnyVolume, lit: bool = True) -> March:
        """March over a volume, its mode, table or value chosen by what the volume has, and said, if not given; a table
        that is chosen is `lit` or not."""
        return self.look(volume, lit).march

    def look(self, volume: AnyVolume, lit: bool = True) -> DefaultLook:
        """Look of a volume, as `default_look` gives it, with what the options say in its place."""
        from raymarch.errors import RaymarchError
        from raymarch.rendering.default_look import default_look
        from raymarch.rendering.march_settings import March
        from raymarch.volumes.volume import VOLUME

        given = {"step": self.step, "supersample": self.supersample}
        own: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if self.preintegrated:
            own["preintegrated"] = True
        chosen = March(**self._of_mode(volume, VOLUME("volume", volume), lit), **own)
        if self.step is not None and not chosen.rule.step:
            raise RaymarchError(f"--step: mode {chosen.rule.name} has no steps; leave it out")
        return default_look(volume, chosen)

    def _of_mode(self, volume: AnyVolume, seen: Volume, lit: bool) -> dict[str, Any]:
        """Mode, and what is its own: a table and its light, the value of a surface."""
        from raymarch.errors import RaymarchError
        from raymarch.rendering.shading import Shading
        from raymarch.volumes.default_table import has_values_alone

        mode, table, iso = self.mode, self.table, self.iso
        asked = {"shading": Shading()} if self.shading else {}
        if mode is None:
            mode = "transfer" if table is not None else "isosurface" if iso is not None else None
        if mode is None and has_values_alone(seen):
            mode = self._mode_of_values(volume, seen, lit)
        if mode is None:
            return asked
        if table is not None and mode != "transfer":
            cure = "leave it out, or say --mode transfer"
            raise RaymarchError(f"--table: mode {mode} takes no transfer function; {cure}")
        if iso is not None and mode != "isosurface":
            raise RaymarchError(f"--iso: mode {mode} has no surface; leave it out, or say --mode isosurface")
        if mode == "isosurface":
            if iso is None:
                iso = _iso(volume, seen)
                output.print_note(f"the surface is at {iso:.6g}; --iso takes another")
            return {"mode": mode, "iso": iso, **asked}
        if mode != "transfer":
            return {"mode": mode, **asked}
        made, named = _table(volume, seen, table)
        if self.shading is None and named and lit and not self.preintegrated:
            asked = {"shading": Shading()}
        return {"mode": mode, "transfer": made, **asked}

    def _mode_of_values(self, volume: AnyVolume, seen: Volume, alone: bool) -> str:
        """Mode that shows values where none is said: transfer, or the mean along rays where none stands out."""
        from raymarch.rendering.march_settings import table_of

        free = alone and table_of(seen) is None and not (self.shading or self.preintegrated)
        if free and _value_kind(volume, seen).name == "level":
            output.print_note(
                "mode average, as no values stand out from the rest; --mode transfer shows the upper ones"
            )
            return "average"
        output.print_note("mode transfer, as the volume has values and no colours; --mode takes another")
        return "transfer"


def ray_mode_options(command: Any) -> Any:
    """Options of rendering modes by single rays, given to a command as `mode_options`, a record of them."""
    command = pack_options(ModeOptions, "shown")(command)
    for option in (preintegrated, shading, step, iso, table, mode):
        command = option(command)
    return command


def viewer_mode_options(command: Any) -> Any:
    """Options of rendering modes that a page begins with, given to a command as `mode_options`, a record of them."""
    command = pack_options(ModeOptions, "shown")(command)
    for option in (supersample, shading, step, iso, table, mode):
        command = option(command)
    return command


def mode_options(command: Any) -> Any:
    """Options of rendering modes, given to a command as `mode_options`, a record of them."""
    return ray_mode_options(supersample(command))


def _value_kind(volume: AnyVolume, seen: Volume) -> ValueKind:
    """Kind of a volume's values."""
    from raymarch.volumes.value_kind import kind_of

    return kind_of(seen, getattr(volume, "unit", ""))


def _iso(volume: AnyVolume, seen: Volume) -> float:
    """Value of a surface about what is seen of a volume by default."""
    from raymarch.errors import RaymarchError
    from raymarch.volumes.default_table import has_values_alone, range_of
    from raymarch.volumes.surface_value import surface_value

    found = surface_value(seen, _value_kind(volume, seen) if has_values_alone(seen) else None)
    if found is None and (seen.boxes > 1 or seen.ndc_from_world is not None):
        return 0.0  # which has no surface, as the march says
    if found is None:
        low, high = range_of(seen)
        raise RaymarchError(
            f"values are from {low:g} to {high:g}, and no surface stands out; give --iso, or another mode"
        )
    return found


def _table(volume: AnyVolume, seen: Volume, table: str | None) -> tuple[TransferFunction, bool]:
    """Table of a file, of a name or of a colour map, over the volume's range where no ends are given, and whether it is
    one of a name; where none is asked for that which the volume was fitted through, or that of its kind."""
    from raymarch.arguments.similar_names import did_you_mean
    from raymarch.errors import RaymarchError, distinct_figures
    from raymarch.io.volumes.transfer_table import load_table
    from raymarch.rendering.march_settings import table_of
    from raymarch.volumes.default_table import (
        HOUNSFIELD_TABLES,
        TABLE_NAMES,
        TABLE_OF_KIND,
        default_table,
        named_table,
        range_of,
        table_of_kind,
    )
    from raymarch.volumes.transfer_function import SOME_COLORMAPS, import_matplotlib
    from raymarch.volumes.value_kind import KIND_WORDS

    if table is not None and ":" in table and "@" in table and not table.lower().endswith(".json"):
        return _knots(table), False
    if table is not None and Path(table).suffix:
        if Path(table).suffix.lower() == ".json":
            return load_table(table), False
        if "," not in table:
            raise click.UsageError(f"--table {table}: want table.json, or the name of a colour map such as bone")
    if table is None and (fitted := table_of(seen)) is not None:
        output.print_note("seen through the table that it was fitted through; --table takes another")
        return fitted, False
    if table is None:
        kind = _value_kind(volume, seen)
        made, called = table_of_kind(seen, kind)
        output.print_note(f"--table {called}, over {made.unit_length:.4g} world units, as for {KIND_WORDS[kind.name]}")
        return made, kind.name != "constant"  # one value has no slope to light
    name, *numbers = table.split(",")
    try:
        ends = [float(number) for number in numbers]
    except ValueError:
        ends = [0.0] * 4
    if name in TABLE_NAMES:
        fixed = name in HOUNSFIELD_TABLES or name == "labels"
        if len(ends) not in ((0,) if fixed else (0, 2)) or not all(map(math.isfinite, ends)):
            raise click.UsageError(f"--table {table}: want {name}{'' if fixed else f' or {name},LOW,HIGH'}")
        if ends and (ends[0] == ends[1] or (name == "signed" and not 0 < ends[0] < ends[1])):
            wanted = "0 < LOW < HIGH" if name == "signed" else "LOW and HIGH apart"
            raise click.UsageError(f"--table {table}: want {wanted}; leave them out for the volume's own")
        kind = _value_kind(volume, seen)
        if name == "labels" and not kind.labels:
            raise RaymarchError(
                f"--table labels: the volume has no labels, being {KIND_WORDS[kind.name]}; leave it out"
            )
        if name == "signed" and not ends and not 0 < kind.low < kind.high:
            kind = replace(kind, low=0.2 * (most := max(map(abs, range_of(seen))) or 1.0), high=most)
            return named_table(seen, name, kind.low, kind.high), True
        if not ends and not fixed and TABLE_OF_KIND[kind.name] != name:
            kind = replace(kind, low=kind.ground + (kind.top - kind.ground) / 4, high=kind.top)
        low, high = ends or (kind.low, kind.high)
        return named_table(seen, name, low, high, kind.labels), kind.name != "constant"
    if len(ends) not in (0, 2, 3):
        raise click.UsageError(
            f"--table {table}: want MAP, MAP,LOW,HIGH or MAP,LOW,HIGH,OPACITY, such as bone,400,2400,0.5"
        )
    if name not in import_matplotlib().colormaps:
        cure = did_you_mean(name, (*TABLE_NAMES, *import_matplotlib().colormaps)) or "check its spelling"
        wanted = f"a colour map that matplotlib has, as {SOME_COLORMAPS}, or a lit table: {', '.join(TABLE_NAMES)}"
        raise click.UsageError(f"--table is {name!r}, want {wanted}; {cure}")
    made = default_table(seen, name, *ends)
    if not ends:
        first, last = distinct_figures(made.values[0], made.values[-1], least=4)
        opacity = made.opacities[-1]
        output.print_note(
            f"--table {name},{first},{last},{opacity:g}, its opacity over {made.unit_length:.4g} world units"
        )
    return made, False


def _knots(table: str) -> TransferFunction:
    """Table of knots in one word, as the viewer copies it."""
    from raymarch.volumes.transfer_function import TransferFunction

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
    with usage_errors():
        return TransferFunction(columns[0], list(zip(*columns[1:4], strict=True)), columns[4], unit)  # type: ignore[arg-type]


def require_window(march: March, window: list[float] | None) -> None:
    """RaymarchError for a window where a mode's images are colours."""
    from raymarch.errors import RaymarchError

    if window is not None and not renders_values(march):
        other = "maximum"
        if march.transfer is not None:
            other = f"maximum, or --table bone,{window[0]:g},{window[1]:g}"
        raise RaymarchError(f"--window: images of mode {march.mode} are colours; leave it out, or say --mode {other}")


def renders_values(march: March) -> bool:
    """Whether the images of a march are values, or integrals of them, with nothing behind them."""
    return not march.rule.background


def apply_window(seen: Rendering, window: list[float] | None, mean: bool = False) -> tuple[np.ndarray, list[float]]:
    """Display values 0..1 of an image of values, black where nothing is met; the window, the image's own if none. One
    of `mean` values, which differ little, goes from end to end of most of them."""
    import numpy as np

    from raymarch.errors import distinct_figures
    from raymarch.volumes.value_kind import distinct_range

    met = seen.opacity != 0
    if window is None:
        values = seen.image[met]
        low = float(np.quantile(values, 0.01) if mean and values.size else values.min(initial=0.0))
        high = float(np.quantile(values, 0.995) if mean else values.max()) if values.size else low
        window = list(distinct_range(low, high))
        black, white = distinct_figures(*window, least=4)
        output.print_note(f"black is {black}, white {white}, by the first image; --window takes others")
    low, high = window
    return ((seen.image - low) / (high - low)).clip(0, 1) * met[..., None], window
