"""Contents of a scalar volume's file in lines, for `raymarch info`."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

from raymarch.cli import options, say

if TYPE_CHECKING:
    from raymarch.io.volumes.scalar_summary import ScalarSummary
    from raymarch.volumes.scalar_volume import ScalarVolume

MOST = 1 << 26  # values that are looked at; of more every so many along each axis
BAR = 40  # characters of the longest bar
SIDES = dict(
    zip("RLAPSI", ("the right", "the left", "the front", "the back", "the head", "the feet"), strict=True)
)  # fmt: skip


def print_scalar(file: str, summary: ScalarSummary, place: dict[str, Any], as_json: bool, extra: dict) -> None:
    """What a scalar volume's header says, and range, mean and histogram of its values."""
    from raymarch.data.value_contents import contents_of
    from raymarch.errors import RaymarchError

    record: dict[str, Any] = {**summary.record(), **extra}
    stride = math.ceil((math.prod(summary.shape) / MOST) ** (1 / 3))
    try:
        volume, whole = _read(file, stride, place)
        found = contents_of(volume)
        record |= {"low": found.low, "high": found.high, "mean": found.mean, "stride_of_values": stride}
        record["histogram"] = {"edges": list(found.edges), "counts": list(found.counts)}
        record["suggested"] = suggested(file, volume, place, whole)
    except RaymarchError as error:
        say.note(f"note: the values were not looked at: {error}")
    if as_json:
        options.print_json(record)
        return
    for name, text in _lines(record):
        say.result(f"{name:16} {text}".rstrip())


def _read(file: str, stride: int, place: dict[str, Any]) -> tuple[Any, bool]:
    """Volume, NaN of it taken as empty, and whether it has none."""
    from raymarch.errors import RaymarchError
    from raymarch.io.volumes.volume_file import load

    try:
        return load(file, stride=stride, **place), True
    except RaymarchError:
        return load(file, stride=stride, nan="empty", **place), False


def suggested(file: str, volume: ScalarVolume, place: dict[str, Any], whole: bool = True) -> dict[str, Any] | None:
    """What a first look at a volume takes: window, table, value of a surface, and commands to type; None of values that
    single precision hardly tells apart. What `raymarch render` does not read as it is, is converted first."""
    from raymarch.data.default_table import table_of_kind
    from raymarch.errors import RaymarchError
    from raymarch.volumes.value_kind import WORDS, kind_of

    seen = volume.as_volume()
    kind = kind_of(seen, volume.unit)
    try:
        table = table_of_kind(seen, kind)[1]
    except RaymarchError:
        return None
    window, (low, high) = [kind.ground, kind.top], volume.range
    iso = kind.iso if kind.iso is not None and low < kind.iso < high else None
    named, commands = shlex.quote(file), []
    options = {"channel": "--channel", "time": "--time-point", "level": "--level", "format": "--format"}
    changes = [f"{options[name]} {said}" for name, said in place.items() if said is not None]
    changes += [] if whole else ["--nan empty"]
    if changes:
        commands.append(f"raymarch convert {named} one.h5 {' '.join(changes)}")
        named = "one.h5"
    if window[0] < window[1]:
        commands.append(f"raymarch slices {named} --window {window[0]:.12g},{window[1]:.12g} --out slices.png")
    how = "--mode average" if kind.name == "level" else f"--table {table}"
    commands.append(f"raymarch render {named} --orbit 8 {how} --out pictures")
    if iso is not None:
        commands.append(f"raymarch render {named} --orbit 8 --iso {iso:.12g} --out surface")
    up = None if volume.world else "0,0,-1"
    if up:
        commands.append(f"raymarch render {named} --orbit 8 {how} --up {up} --out upside-down")
    return {"kind": WORDS[kind.name], "window": window, "iso": iso, "table": table, "up": up, "commands": commands}


def _lines(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and texts of the lines, those of nothing left out."""
    from raymarch.errors import figures

    def several(numbers: list[float], sign: str = "  ", step: float = 0.0) -> str:
        return sign.join(figures(x, step=step)[0] for x in numbers)

    unit, length = record["unit"], record["length_unit"]
    spacing = several(record["spacing"], " x ") + (f" {length}" if length else "  (no unit of length is said)")
    lines = [
        ("name", record["name"]),
        ("shape", several(record["shape"], " x ")),
        ("values", f"{record['dtype']}" + (f", in {unit}" if unit else "")),
        ("spacing", spacing),
        ("origin", several(record["origin"], step=min(record["spacing"]))),
        *[("directions" if i == 0 else "", f"{axis}  {several(row)}") for i, (axis, row) in enumerate(
            zip("xyz", record["directions"], strict=True)
        )],
    ]  # fmt: skip
    if (record["slope"], record["intercept"]) != (1.0, 0.0):
        lines.insert(3, ("scaled", f"stored x {record['slope']:g} + {record['intercept']:g}"))
    if record["world"]:
        words = ", ".join(f"{axis} to {SIDES[side]}" for axis, side in zip("xyz", record["sides"], strict=True))
        lines.append(("sides", f"{record['sides']} in a world of {record['world']}: {words}"))
    if "low" in record:
        low, high = figures(record["low"], record["high"])
        mean = figures(record["mean"], step=record["high"] - record["low"])[0]
        lines.append(("range", f"{low} to {high}, mean {mean}"))
        if record["stride_of_values"] > 1:
            lines.append(("", f"of one value in {record['stride_of_values']} along each axis"))
        edges, counts = figures(*record["histogram"]["edges"]), record["histogram"]["counts"]
        for i, count in enumerate(counts):
            bar = "#" * math.ceil(BAR * count / max(counts))
            lines.append(("histogram" if i == 0 else "", f"{edges[i]:>12}  {count:>12,}  {bar}"))
    if record.get("suggested"):
        lines.append(("seems to be", record["suggested"]["kind"]))
        lines += [("try" if i == 0 else "", line) for i, line in enumerate(record["suggested"]["commands"])]
    lines += [(name, f"{record[name]:,}") for name in ("bytes_on_disk", "bytes_in_memory", "bytes_to_render")]
    if "seconds_to_render" in record:
        lines.append(("seconds_to_render", f"{record['seconds_to_render']:.4g}"))
    return [(name, text) for name, text in lines if text]
