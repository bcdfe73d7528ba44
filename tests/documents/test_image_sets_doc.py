"""Law: docs/image-sets.md names every reader with the files it is known by, and every camera model that is read."""

import re
from pathlib import Path

from raymarch.io.image_sets.camera_keys import (
    AXIS_SIGNS,
    DISTORTION_KEYS,
    FISHEYE_MODEL,
    PERSPECTIVE_MODELS,
    UNREAD_LENSES,
)
from raymarch.io.image_sets.camera_models import COLMAP_MODELS
from raymarch.io.image_sets.load import READERS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "image-sets.md").read_text()


def test_every_reader_has_a_row_and_a_section():
    rows = re.findall(r"^\| `([^`]+)`", TEXT.split("**Held out**")[0], re.M)
    assert rows == [reader.name for reader in READERS]
    sections = re.findall(r"^## (.*)", TEXT, re.M)
    assert all(any(reader.name in section for section in sections) for reader in READERS)


def test_every_camera_model_and_key_of_a_lens_is_named():
    names = {model.name for model in COLMAP_MODELS.values()} | {
        *PERSPECTIVE_MODELS,
        FISHEYE_MODEL,
        *AXIS_SIGNS,
        *UNREAD_LENSES,
        "k1",
        *DISTORTION_KEYS[3:],
    }
    assert {name for name in names if f"`{name}`" not in TEXT} == set()
