"""Cards: HTML by which a value shows itself in a notebook, a table with small pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Protocol, TypeVar

from raymarch.errors import distinct_figures

MAX_CELL_LENGTH = 300  # characters of a cell
# Styles stand in the elements: a <style> would be taken out of a notebook that is not trusted, or reach other outputs.
# Colours are the page's own, or mixed from its text's, so that a card can be read on a dark page and on a light one.
CARD_STYLE = (
    "display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start;color:inherit;background:transparent;margin:4px 0"
)
TITLE_STYLE = "font-weight:600;text-align:left;padding:0 0 4px 0;color:inherit;background:transparent"
NAME_STYLE = (
    "text-align:left;vertical-align:top;padding:1px 12px 1px 0;font-weight:400;opacity:0.7;background:transparent"
)
VALUE_STYLE = "text-align:left;vertical-align:top;padding:1px 0;background:transparent"
CELL_STYLE = "text-align:left;padding:1px 12px 1px 0;background:transparent"


T = TypeVar("T")


def html_of(make: Callable[[T], str], value: T) -> str | None:
    """HTML that `make` makes of a value, for its `_repr_html_`; None, by which notebooks show its text, if that fails.

    Example:
        >>> html_of(str, 5), html_of(lambda value: value.no_such_attribute, 5)
        ('5', None)
    """
    try:
        return make(value)
    except Exception:  # whatever it is: a value that is looked at must not break a cell
        return None


class Recorded(Protocol):
    """Value that has a record of plain numbers, texts and lists."""

    def record(self) -> dict:
        """Plain numbers, texts and lists."""


def record_card(value: Recorded) -> str:
    """Card of a value by its record: a row for each entry."""
    rows = [(name.replace("_", " "), plain_text(each)) for name, each in value.record().items()]
    return card_html(type(value).__name__, rows)


def card_html(title: str, rows: Iterable[tuple[str, object]], pictures: Sequence[str] = ()) -> str:
    """HTML of a title, a table of names with values, and pictures that are HTML already; texts are escaped.

    Rows whose value is None or "" are left out.

    Example:
        >>> "<script>" in card_html("Views", [("source", "<script>")])
        False
    """
    cells = "".join(
        f'<tr style="background:transparent"><th style="{NAME_STYLE}">{safe_text(name)}</th>'
        f'<td style="{VALUE_STYLE}">{safe_text(value)}</td></tr>'
        for name, value in rows
        if value is not None and value != ""
    )
    table = (
        '<table style="border:0;margin:0;color:inherit"><caption '
        f'style="{TITLE_STYLE}">{safe_text(title)}</caption>{cells}'
    )
    return f'<div class="raymarch-card" style="{CARD_STYLE}">{"".join(pictures)}<div>{table}</table></div></div>'


def table_html(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """HTML of a table with a line of heads; texts are escaped.

    Example:
        >>> table_html(["view", "PSNR"], [["a<b", "30.1"]]).count("a&lt;b")
        1
    """
    top = "".join(f'<th style="{CELL_STYLE};opacity:0.7">{safe_text(head)}</th>' for head in heads)
    lines = "".join(
        '<tr style="background:transparent">'
        + "".join(f'<td style="{CELL_STYLE}">{safe_text(value)}</td>' for value in row)
        + "</tr>"
        for row in rows
    )
    return (
        f'<table style="border:0;margin:0;color:inherit"><tr style="background:transparent">{top}</tr>{lines}</table>'
    )


def safe_text(value: object) -> str:
    """Text of a value, escaped for HTML and cut where it is long.

    Example:
        >>> safe_text('5 < 6 & "so"')
        '5 &lt; 6 &amp; &quot;so&quot;'
    """
    text = str(value)
    return escape(text if len(text) <= MAX_CELL_LENGTH else text[: MAX_CELL_LENGTH - 1] + "…")


def numbers_text(values: Iterable[float], digits: int = 4, step: float = 0.0) -> str:
    """Numbers in a row, such as a corner, without trailing zeros; to a tenth of a `step` where that takes more digits.

    Example:
        >>> numbers_text([0.5, -1.0, 1e-9])
        '0.5, -1, 1e-09'
    """
    return ", ".join(distinct_figures(float(value) + 0.0, step=step, least=digits)[0] for value in values)  # no -0


def plain_text(value: object) -> object:
    """Plain value of a record as text, its mappings and lists in one line.

    Example:
        >>> plain_text({"shape": [2, 3], "unit": None})
        'shape 2, 3'
    """
    if isinstance(value, dict):
        return ", ".join(f"{name} {plain_text(each)}" for name, each in value.items() if each not in (None, "", [], {}))
    if isinstance(value, (list, tuple)):
        return ", ".join(str(plain_text(each)) for each in value)
    return f"{value:,.5g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else value


def count_of_bytes(count: float) -> str:
    """Count of bytes in the unit that suits it.

    Example:
        >>> count_of_bytes(3 << 20)
        '3.0 MiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
