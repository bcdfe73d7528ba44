"""Law: a picture through a table is VTK's by the same camera and unit distance; nothing is mirrored or half off."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skips import require_extra
from vtk_scene import BACKGROUND, CAMERAS, TABLE, TESTS, VOLUME

from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import Renderer

FOLDER = Path(__file__).parent
MARCH = March(mode="transfer", transfer=TABLE, step=0.1, min_transmittance=0, min_weight=0)
MEAN, WORST = 0.0008, 0.008  # of 1; VTK rounds to 1/255, and reads colours off a table of its own
GL = """
import sys, vtk
window = vtk.vtkRenderWindow()
window.OffScreenRenderingOn()
window.Render()
sys.exit(0 if window.SupportsOpenGL() else 1)
"""


def read(folder, name):
    with Image.open(folder / f"vtk_{name}.png") as image:
        return np.asarray(image) / 255


def ours(camera, volume=VOLUME, table=TABLE):
    with Renderer(volume, replace(MARCH, transfer=table)) as renderer:
        return renderer.render(camera, BACKGROUND, depth=False).image


@pytest.mark.parametrize("name", CAMERAS)
def test_a_picture_is_that_of_vtk(name):
    image, wanted = ours(CAMERAS[name]), read(FOLDER, name)
    off = np.abs(image - wanted)
    assert np.abs(wanted - BACKGROUND).max() > 0.4
    assert off.mean() < MEAN and off.max() < WORST
    for mirrored in (wanted[::-1], wanted[:, ::-1], wanted[::-1, ::-1]):
        assert np.abs(image - mirrored).mean() > 10 * MEAN


def test_conventions_half_a_voxel_or_a_tenth_of_opacity_apart_are_told_apart():
    wanted = read(FOLDER, "perspective")
    place = VOLUME.world_from_index.copy()
    place[:3, 3] += place[:3, :3] @ (0.5, 0.5, 0.5)
    others = {
        "cells": (replace(VOLUME, world_from_index=place), TABLE),
        "mirrored": (replace(VOLUME, values=VOLUME.values[::-1].copy()), TABLE),
        "unit": (VOLUME, replace(TABLE, unit_length=1.1 * TABLE.unit_length)),
    }
    off = {name: np.abs(ours(CAMERAS["perspective"], *other) - wanted) for name, other in others.items()}
    assert all(each.mean() > 1.5 * MEAN and each.max() > 2 * WORST for each in off.values())


@pytest.mark.extra
def test_vtk_gives_the_kept_pictures_by_what_the_document_shows(tmp_path):
    """In a process of its own, whatever the driver does; the block compares a picture of its own with ours."""
    require_extra("vtk", "all", load=False)
    how = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    if subprocess.run([sys.executable, "-c", GL], **how).returncode:
        pytest.skip("no OpenGL that renders without a display")
    env = {**os.environ, "TI_OPT_LEVEL": "0"}
    done = subprocess.run([sys.executable, TESTS / "vtk_scene.py", tmp_path], env=env, **how)
    assert done.returncode == 0, done.stderr[-4000:]
    for name in CAMERAS:
        assert np.abs(read(tmp_path, name) - read(FOLDER, name)).max() < 2.5 / 255  # of another driver
