"""The picture of docs/how-a-march-is-differentiated.md, drawn with the code of that page.

python docs/march_picture.py
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import numpy as np

DOCS = Path(__file__).resolve().parent
PAGE, PICTURE = DOCS / "how-a-march-is-differentiated.md", DOCS / "march.svg"
STEPS, LENGTH = 160, 4.0  # along the ray [world unit]


def names_of_page() -> dict:
    """What the blocks of the page define."""
    names: dict = {}
    for block in re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8")):
        exec(compile(block, PAGE.name, "exec"), names)
    return names


def two_clouds() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances [world unit], optical depths, colours: a thin dark cloud, and a dense one with a bright front."""
    dt = LENGTH / STEPS
    t = (np.arange(STEPS) + 0.5) * dt
    thin, dense = (height * np.exp(-(((t - middle) / 0.3) ** 2)) for middle, height in ((1.1, 0.7), (2.8, 9.0)))
    brightness = (0.2 * thin + np.interp(t, (2.2, 3.4), (1.0, 0.2)) * dense) / (thin + dense)
    return t, (thin + dense) * dt, np.repeat(brightness[:, None], 3, axis=1)


def draw() -> None:
    """Draw the three rows and save them."""
    matplotlib.use("agg")
    matplotlib.rcParams.update({"svg.hashsalt": "march", "font.size": 9})
    import matplotlib.pyplot as plt

    page = names_of_page()
    t, tau, c = two_clouds()
    background, d_image, dt = np.zeros(3), np.full(3, 1 / 3), LENGTH / STEPS  # a loss that is the mean of the channels
    (_, image), weights = page["loop"](page["value"], (1.0, np.zeros(3)), tau, c)
    d_tau, _ = page["adjoint_of"](tau, c, background, d_image)
    one = np.eye(STEPS)
    slopes = [
        page["tangent_of"](tau, c, background, one[k], np.zeros((STEPS, 3))) @ d_image for k in range(0, STEPS, 8)
    ]
    T = np.exp(-np.cumsum(tau))
    ahead = image.mean() - np.cumsum(np.array(weights) * c[:, 0])

    figure, rows = plt.subplots(3, 1, figsize=(7.2, 5.6), sharex=True, layout="constrained")
    rows[0].fill_between(t, tau / dt / 9, color="0.85", label="extinction, scaled")
    rows[0].plot(t, T, label="transmittance T")
    rows[0].plot(t, np.array(weights) / dt, label="weight w, by length")
    rows[0].set_ylabel("value")
    rows[1].axhline(0, color="0.7", linewidth=0.8)
    rows[1].plot(t, d_tau, color="C3", label="adjoint: all samples in one pass")
    rows[1].plot(t[::8], slopes, "k.", label="tangent: one pass a dot")
    rows[1].set_ylabel("d image / d tau")
    rows[2].plot(t, ahead, color="C2", label="radiance still to come")
    rows[2].set_ylabel("ahead")
    rows[2].set_xlabel("distance along the ray [world unit]")
    for row, corner in zip(rows, ("upper right", "lower right", "upper right"), strict=True):
        row.legend(loc=corner, frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    draw()
