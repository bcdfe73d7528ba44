"""The picture of rooms and imports, docs/architecture.svg.

    python docs/architecture.py

Rooms are those that docs/design.md lists, in its order. An arrow goes from a room to one that it imports. An arrow that
follows from others is left out: where a imports b and b imports c, there is none from a to c. Ids in the picture name
its rooms and arrows, by which a test holds it against the imports.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from itertools import accumulate, pairwise
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PACKAGE, PICTURE = DOCS.parent / "raymarch", DOCS / "architecture.svg"
EVERYWHERE = ("errors", "arguments", "system", "html")  # almost every room imports them, so they are not drawn
BOX, HEIGHT, RISE = 1.25, 0.36, 0.72  # width and height of a box, from level to level [inch]
COLOURS = {"kernels": "#fde9d9", "io": "#e2efda", "fit": "#ddebf7"}
FITS = ("fitting", "registration", "evaluation", "diagnosis", "sfm", "matching")

Graph = dict[str, set[str]]
Arrows = list[tuple[str, str]]
Point = tuple[float, float]


def listed_rooms() -> list[str]:
    """Rooms as docs/design.md lists them, from above, but for those that are not drawn."""
    text = (DOCS / "design.md").read_text(encoding="utf-8")
    lines = re.search(r"<!-- rooms -->\n+```\n(.*?)```", text, re.S)[1].splitlines()
    rooms = [line.split()[0].strip("/").removesuffix(".py") for line in lines]
    return [room for room in rooms if room not in EVERYWHERE]


def room_of(module: str, rooms: list[str]) -> str | None:
    """The innermost room that a module's path lies in."""
    path = module
    while path:
        if path in rooms:
            return path
        path = path.rpartition("/")[0]
    return None


def imports_of_rooms(rooms: list[str]) -> Graph:
    """Of each room, those that its modules import."""
    found: Graph = {room: set() for room in rooms}
    for file in PACKAGE.rglob("*.py"):
        room = room_of(file.relative_to(PACKAGE).with_suffix("").as_posix(), rooms)
        if room is None:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            paths = [name.replace(".", "/").removeprefix("raymarch/") for name in names if name.startswith("raymarch.")]
            found[room] |= {other for path in paths if (other := room_of(path, rooms))} - {room}
    return found


def reduced(graph: Graph) -> Graph:
    """The same graph without the arrows that follow from others."""
    beyond: Graph = {}

    def reach(room: str) -> set[str]:
        if room not in beyond:
            beyond[room] = graph[room].union(*(reach(other) for other in graph[room]))
        return beyond[room]

    return {room: to - set().union(*(reach(other) for other in to)) for room, to in graph.items()}


def rooms_and_arrows() -> tuple[list[str], Arrows]:
    """What the picture has to show."""
    rooms = listed_rooms()
    graph = reduced(imports_of_rooms(rooms))
    return rooms, sorted((room, other) for room in rooms for other in graph[room])


def rooms_and_arrows_of_picture() -> tuple[list[str], Arrows]:
    """What it shows, by its ids."""
    text = PICTURE.read_text(encoding="utf-8")
    arrows = [tuple(found.split("--")) for found in re.findall(r'id="arrow:([^"]+)"', text)]
    return re.findall(r'id="room:([^"]+)"', text), sorted(arrows)


def level_of_rooms(rooms: list[str], arrows: Arrows) -> dict[str, int]:
    """Level of each room, 0 the lowest: above all that it imports, and close below its importers if those are many."""
    to, by = defaultdict(list), defaultdict(list)
    for start, end in arrows:
        to[start].append(end)
        by[end].append(start)
    level: dict[str, int] = {}
    for room in reversed(rooms):
        level[room] = 1 + max((level[other] for other in to[room]), default=-1)
    for room in rooms:
        if by[room] and len(by[room]) >= len(to[room]):
            level[room] = min(level[other] for other in by[room]) - 1
    return level


def laid_out(rooms: list[str], arrows: Arrows) -> tuple[dict[str, Point], dict[tuple[str, str], list[Point]]]:
    """Middle of each room [inch], and the points that each arrow goes through: one on every level between its ends."""
    level = level_of_rooms(rooms, arrows)
    rows: list[list[str]] = [[] for _ in range(max(level.values()) + 1)]
    for room in rooms:
        rows[level[room]].append(room)
    ways, near = {}, defaultdict(list)
    for start, end in arrows:
        between = [f"{start}--{end}@{n}" for n in range(level[start] - 1, level[end], -1)]
        for n, name in zip(range(level[start] - 1, level[end], -1), between, strict=True):
            rows[n].append(name)
        ways[start, end] = [start, *between, end]
        for one, other in pairwise(ways[start, end]):
            near[one].append(other)
            near[other].append(one)
    x = {name: float(i) for row in rows for i, name in enumerate(row)}
    for _ in range(60):  # each to the mean of its neighbours, none over another, so that arrows cross less
        for row in [*rows, *reversed(rows)]:
            wanted = {name: sum(x[other] for other in near[name]) / max(len(near[name]), 1) for name in row}
            row.sort(key=lambda name: wanted[name])
            widths = [BOX + 0.3 if name in level else 0.3 for name in row]
            edges = [0.0, *accumulate(widths)]
            middles = [edge + width / 2 for edge, width in zip(edges, widths, strict=False)]
            shift = sum(wanted[name] - middle for name, middle in zip(row, middles, strict=True)) / len(row)
            x.update({name: middle + shift for name, middle in zip(row, middles, strict=True)})
    left = min(x[room] for room in rooms) - BOX / 2 - 0.15
    places = {name: (x[name] - left, (n + 0.5) * RISE) for n, row in enumerate(rows) for name in row}
    points = {arrow: [places[name] for name in way] for arrow, way in ways.items()}
    return {room: places[room] for room in rooms}, points


def colour_of(room: str) -> str:
    """Colour of a box: kernels, files, what finds and judges cameras and volumes, and the rest."""
    top = room.split("/")[0]
    return COLOURS.get("fit" if top in FITS else top, "#f2f2f2")


def draw() -> None:
    """Draw the picture and save it."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams.update({"svg.hashsalt": "architecture", "font.size": 9})
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
    from matplotlib.path import Path as Path2D

    places, points = laid_out(*rooms_and_arrows())
    xs = [x for way in [list(places.values()), *points.values()] for x, _ in way]
    size = (max(xs) + BOX / 2 + 0.15, max(y for _, y in places.values()) + RISE / 2)
    figure = Figure(figsize=size)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, size[0]), ylim=(0, size[1]))
    axes.axis("off")
    for (start, end), way in points.items():
        corners = [(x, y + d * HEIGHT / 2) for x, y in way for d in (1, -1)][1:-1]  # below a room, above the next
        vertices, codes = [corners[0]], [Path2D.MOVETO]
        for (x, y), (to_x, to_y) in pairwise(corners):
            vertices += [(x, (y + to_y) / 2), (to_x, (y + to_y) / 2), (to_x, to_y)]
            codes += [Path2D.CURVE4] * 3
        arrow = FancyArrowPatch(
            path=Path2D(vertices, codes), arrowstyle="-|>", mutation_scale=8, color="0.55", linewidth=0.8, fill=False
        )
        arrow.set_gid(f"arrow:{start}--{end}")
        axes.add_patch(arrow)
    for room, (x, y) in places.items():
        box = FancyBboxPatch(
            (x - BOX / 2, y - HEIGHT / 2),
            BOX,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=colour_of(room),
            edgecolor="0.35",
            linewidth=0.8,
        )
        box.set_gid(f"room:{room}")
        axes.add_patch(box)
        axes.text(x, y, room, ha="center", va="center")
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    draw()
