"""Law: a list that stands in several places, for speed or in another language, is the same in all of them."""

from __future__ import annotations

import re

from raymarch.cli import fit, modes
from raymarch.fitting.settings.settings import PRESETS
from raymarch.kernels.modes.registry import COMPOSITING_MODES, MODES, RAY_MODES
from raymarch.views.display_values import MAX_SUPERSAMPLE

DOCUMENTS = (
    "docs/design.md",
    "docs/where-is.md",
    "docs/words.md",
    "docs/extending.md",
    "docs/write-a-mode.md",
    "docs/how-a-march-is-differentiated.md",
    "docs/quality.md",
    "docs/performance.md",
    "CONTRIBUTING.md",
)
PATH = r"`(?:raymarch/)?([a-z_]+(?:/[a-z_0-9]+)+)(?:\.py)?`"


def names_in_code(text: str) -> list[str]:
    return re.findall(r"`([a-z-]+)`", text)


def test_the_command_line_has_every_mode():
    assert tuple(MODES) == modes.MODES


def test_the_command_line_takes_as_many_rays_a_pixel_as_a_march():
    assert modes.MAX_SUPERSAMPLE == MAX_SUPERSAMPLE


def test_the_viewer_names_every_mode(root):
    page = (root / "raymarch/viewer/client/look_panel.js").read_text(encoding="utf-8")
    listed = re.search(r"const MODE_NAMES = {(.*?)\n};", page, re.DOTALL)[1]
    assert re.findall(r'(?m)^  "?([a-z-]+)"?:', listed) == list(MODES)


def test_the_gradients_document_has_every_mode(root):
    text = (root / "docs/gradients.md").read_text(encoding="utf-8")
    table = re.search(r"(?s)\| mode \|.*?\n\n", text)[0]
    assert re.findall(r"(?m)^\| `([a-z-]+)`", table) == list(COMPOSITING_MODES)
    (beside,) = re.findall(r"Beside these, (.*?):", text)
    assert names_in_code(beside) == [name for name in MODES if name not in COMPOSITING_MODES]


def test_the_settings_of_a_march_describe_every_mode(root):
    text = (root / "raymarch/rendering/march_settings.py").read_text(encoding="utf-8")
    described = re.search(r"(?s)        mode: (.*?)        jitter: ", text)[1]
    assert [name for name in MODES if f'"{name}"' not in described] == []


def test_modes_are_of_samples_of_a_table_or_of_whole_rays():
    """What no list has is in no law that runs over the list."""
    assert [name for name in MODES if name not in {**COMPOSITING_MODES, **RAY_MODES}] == ["transfer"]


def test_the_command_line_has_every_preset():
    (option,) = (each for each in fit.params if each.name == "preset")
    assert set(option.type.choices) == set(PRESETS)


def test_modules_that_documents_name_are_there(root):
    named = {
        (document, path)
        for document in DOCUMENTS
        for path in re.findall(PATH, (root / document).read_text(encoding="utf-8"))
    }
    places = [root / "raymarch", root]
    assert (
        sorted(
            (document, path)
            for document, path in named
            if not any((place / path).is_dir() or (place / f"{path}.py").is_file() for place in places)
        )
        == []
    )


def test_tests_that_the_gradients_document_names_are_there(root):
    text = (root / "docs/gradients.md").read_text(encoding="utf-8")
    named = re.findall(r"`(test_\w+\.py)`(?:: `(\w+)`)?", text.partition("\n\n| mode")[0])
    assert named
    for file, part in named:
        tests = re.findall(r"(?m)^def (test_\w+)", (root / "tests/kernels" / file).read_text(encoding="utf-8"))
        assert any(part in test for test in tests), (file, part)
