"""A sphere's radius and centre from a depth image by Gauss-Newton, the silhouette included: taichi#6196.

    python examples/sphere.py [--out sphere.png]

`sphere_renderer.py` has the image and its Jacobian.
"""

import argparse
import time

import numpy as np
from sphere_renderer import Sphere, render

from raymarch.solvers.least_squares import Solution, gauss_newton

import taichi as ti  # isort: skip  (after raymarch, which keeps Taichi's banner off stdout)

TRUE = np.array([10.0, 10.0, 10.0, 100.0])  # radius, and centre x, y, z
START = TRUE + 0.1
NAMES = ("radius", "x", "y", "z")


def find(sphere: Sphere, data: np.ndarray, start: np.ndarray, steps: int = 6, seen=None) -> Solution:
    """Radius and centre whose image is nearest `data` [W, H]; `seen` is called with each shape tried and its cost."""

    def linearise(shape):
        J = sphere.jacobian(shape).reshape(-1, 4)
        r = sphere.fields.image.to_numpy().reshape(-1) - data.reshape(-1)
        if seen is not None:
            seen(shape, 0.5 * float(r @ r))
        return r, J

    return gauss_newton(linearise, start, steps=steps, tolerance=1e-6)


def check_silhouette(sphere: Sphere, shape: np.ndarray, column: int, step: float = 0.1, parts: int = 40):
    """The Jacobian's mean over shape[column] +- step, its inner part's, and what they should be, [W, H] each.

    The third is the central difference of images of 64 x 64 rays a pixel. A short step would drown it in the noise of
    single rays that begin or cease to hit, 1 / step; over a long one the derivative changes, hence the mean.
    """
    move = step * np.eye(4)[column]
    inside = whole = 0.0
    for t in (2 * np.arange(parts) + 1) / parts - 1:
        by_depth, by_silhouette = (each[..., column] / parts for each in sphere.parts(shape + t * move))
        inside, whole = inside + by_depth, whole + by_depth + by_silhouette
    difference = sphere.supersampled(shape + move) - sphere.supersampled(shape - move)
    return whole, inside, difference / (2 * step)


def milliseconds(call, repeats: int = 5) -> float:
    """The fastest of several calls, after one that compiles."""
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        call()
        ti.sync()
        times.append(1e3 * (time.perf_counter() - begin))
    return min(times[1:])


def draw(path: str, depth: np.ndarray, columns: list[tuple[str, np.ndarray]]) -> None:
    """The depth image, and d / d radius at a part of the silhouette, as a PNG."""
    from matplotlib.colors import SymLogNorm
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    u, v, size = 374, 294, 28
    figure = Figure(figsize=(14, 3.9), layout="constrained")
    axes = figure.subplots(1, 1 + len(columns))
    seen = axes[0].imshow(np.where(depth > 0, depth, np.nan).T, cmap="viridis", extent=(0, *depth.shape, 0))
    axes[0].add_patch(Rectangle((u, v), size, size, fill=False, color="red"))
    axes[0].set(
        title="depth times covered area", xlim=(300, 420), ylim=(340, 220), xlabel="u [pixel]", ylabel="v [pixel]"
    )
    figure.colorbar(seen, ax=axes[0], shrink=0.8)
    largest = max(np.abs(column).max() for _, column in columns)
    norm = SymLogNorm(1.0, vmin=-largest, vmax=largest)  # inside the derivative is -1 to -30, hidden on a linear scale
    for ax, (title, column) in zip(axes[1:], columns, strict=True):
        part = column[u : u + size, v : v + size].T
        seen = ax.imshow(part, cmap="RdBu_r", norm=norm, extent=(u, u + size, v + size, v))
        ax.set(title=title, xlabel="u [pixel]")
    figure.colorbar(seen, ax=axes[1:], shrink=0.8, label="d / d radius")
    figure.savefig(path, dpi=100)


def main() -> None:
    ask = argparse.ArgumentParser(description="Radius and centre of a sphere from a depth image, by Gauss-Newton.")
    ask.add_argument("--out", help="write a picture of the Jacobian at the silhouette here (PNG)")
    out = ask.parse_args().out
    with Sphere() as sphere:
        data = {"made by the same operator": sphere.render(TRUE), "64 x 64 rays a pixel": sphere.supersampled(TRUE)}
        for name, image in data.items():
            for off in (0.1, 0.2):
                print(f"data {name}, start {off} off:\n  step" + "".join(f"{each:>13}" for each in NAMES) + "   cost")
                rows = []
                found = find(sphere, image, TRUE + off, seen=lambda shape, cost, rows=rows: rows.append((shape, cost)))
                for step, (shape, cost) in enumerate(rows):
                    print(f"  {step:4d}" + "".join(f"{each:13.8f}" for each in shape) + f"   {cost:.3e}")
                print(f"  largest error {np.abs(found.x - TRUE).max():.1e} after {found.steps} steps\n")

        whole, inside, difference = check_silhouette(sphere, START, 0)
        size = np.linalg.norm(difference)
        print("d image / d radius, against differences of the image of 64 x 64 rays a pixel, relative L2 error:")
        print(f"  with the silhouette's part     {np.linalg.norm(whole - difference) / size:.1e}")
        print(f"  without                        {np.linalg.norm(inside - difference) / size:.1e}")
        print(f"  total over the image {whole.sum():.0f}, of which without the silhouette {inside.sum():.0f}\n")

        together = milliseconds(lambda: render(sphere.fields, 0, 4, False))
        apart = milliseconds(lambda: [render(sphere.fields, column, 1, False) for column in range(4)])
        print(f"four columns: {together:.0f} ms in one launch, {apart:.0f} ms in four")
        if out:
            panels = [
                ("by radius, silhouette included", whole),
                ("without it", inside),
                ("differences, 64 x 64 rays", difference),
            ]
            draw(out, sphere.render(START), panels)


if __name__ == "__main__":
    main()
