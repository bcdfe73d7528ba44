"""Law: what docs/how-a-march-is-differentiated.md shows runs, and its picture can be drawn from it."""

import re
import runpy

import numpy as np


def test_blocks_run_and_assert(root):
    names = runpy.run_path(str(root / "docs" / "march_picture.py"))["names_of_page"]()
    text = (root / "docs" / "how-a-march-is-differentiated.md").read_text(encoding="utf-8")
    assert {"loop", "value", "pull", "push"} <= set(names) and text.count("assert ") == 2


def test_the_picture_shows_the_derivative_of_its_own_ray(root):
    """More of the thin dark cloud makes the pixel darker, more of the bright front brighter; the rear hardly counts."""
    script = runpy.run_path(str(root / "docs" / "march_picture.py"))
    page, (t, tau, c) = script["names_of_page"](), script["two_clouds"]()
    d_tau, _ = page["adjoint_of"](tau, c, np.zeros(3), np.full(3, 1 / 3))
    assert (d_tau[abs(t - 1.1) < 0.2] < 0).all() and (d_tau[abs(t - 2.4) < 0.1] > 0.02).all() and abs(d_tau[-1]) < 1e-2
    assert re.search(r"\]\(march\.svg\)", (root / "docs" / "how-a-march-is-differentiated.md").read_text())
