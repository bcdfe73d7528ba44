"""Law: a grid's layout is the one measured on its processor, else the default; a file that says other is left aside."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from raymarch import runtime
from raymarch.device import layout_choice, memory, pool
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import block_for
from raymarch.device.layout_choice import USE_WORDS, LayoutChoice, kind_of
from raymarch.errors import RaymarchError

MEASURED = {"fit_large": 1, "read_above": 2}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, in force."""
    monkeypatch.setenv(runtime.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(layout_choice.LAYOUT_VARIABLE, "measured")
    layout_choice.current_choice.cache_clear()
    yield tmp_path / "cache"
    layout_choice.current_choice.cache_clear()


def again():
    """What a process that starts now has in force."""
    layout_choice.current_choice.cache_clear()
    return layout_choice.current_choice()


@pytest.mark.parametrize(
    ("shape", "degree", "slots", "moments", "kind", "block"),
    [
        ((191, 192, 192), 0, 0, False, "read", 1),
        ((191, 192, 192), 0, 4, False, "gradient", 1),
        ((191, 192, 192), -1, 4, False, "fit", 4),
        ((191, 192, 192), 0, 4, True, "fit", 4),
        ((192, 192, 192), 0, 0, False, "read_large", 1),
        ((192, 192, 192), 0, 1, False, "fit_large", 4),
        ((192, 192, 192), 0, 1, True, "fit_large", 4),
        ((8, 8, 8), 1, 0, False, "read_above", 4),
        ((900, 900, 900), 3, 2, True, "fit_above", 4),
    ],
)
def test_each_kind_has_its_default(shape, degree, slots, moments, kind, block):
    assert kind_of(shape, degree, slots, moments) == kind
    assert block_for(shape, degree, slots, moments) == getattr(LayoutChoice(), kind) == block
    assert kind in USE_WORDS


def test_what_is_kept_is_in_force_and_the_rest_is_the_default(cache):
    assert again().date is None
    file = layout_choice.save_choice(MEASURED)
    assert file.parent == cache
    found = again()
    assert found.choice == LayoutChoice(**MEASURED)
    assert dict(found.measured) == MEASURED
    assert found.date
    assert block_for((256, 256, 256), 0, 4, True) == 1
    with Grid((4, 4, 4), 1) as grid:
        assert grid.block == 2
    with Grid((4, 4, 4), 1, block=4) as grid:
        assert grid.block == 4


def test_measured_layouts_are_of_the_cpu(cache, monkeypatch):
    layout_choice.save_choice(MEASURED)
    monkeypatch.setattr(runtime, "runs_on_cpu", lambda: False)
    assert block_for((256, 256, 256), 0, 4, True) == LayoutChoice().fit_large


def test_the_variable_leaves_it_aside(cache, monkeypatch):
    layout_choice.save_choice(MEASURED)
    monkeypatch.setenv(layout_choice.LAYOUT_VARIABLE, "default")
    assert again().choice == LayoutChoice()
    monkeypatch.setenv(layout_choice.LAYOUT_VARIABLE, "fast")
    with pytest.raises(RaymarchError, match="RAYMARCH_LAYOUT is 'fast', want measured or default"):
        again()


def test_what_is_forgotten_is_gone(cache):
    assert not layout_choice.delete_choice()
    layout_choice.save_choice(MEASURED)
    assert layout_choice.delete_choice()
    assert again().choice == LayoutChoice()


def changed(**values):
    return lambda record: json.dumps({**record, **values})


HOSTILE = {
    "empty": lambda record: "",
    "cut off": lambda record: json.dumps(record)[:40],
    "not UTF-8": lambda record: b"\xff\xfe\x00",
    "a list": lambda record: "[]",
    "a number": lambda record: "3",
    "deep": lambda record: "[" * 4000,
    "large": lambda record: " " * 5000 + json.dumps(record),
    "a key twice": lambda record: '{"raymarch": "1", "raymarch": "1"}',
    "another key": changed(more=1),
    "another version": changed(raymarch="0.0.1"),
    "a version that is no text": changed(raymarch=[0, 1]),
    "another processor": changed(processor="6502\x1b[31m\nin red"),
    "no date": changed(measured="yesterday"),
    "a date of control characters": changed(measured="2026-01-01\x1b[31m"),
    "another kind": changed(blocks={"write": 1}),
    "a block of 3": changed(blocks={"read": 3}),
    "a block of 8": changed(blocks={"read": 8}),
    "a block that is true": changed(blocks={"read": True}),
    "a block that is text": changed(blocks={"read": "1"}),
    "a block that is a list": changed(blocks={"read": [1]}),
    "a huge block": changed(blocks={"read": 10**300}),
    "blocks that are none": changed(blocks=None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_record_is_one_line_and_the_default(name, cache, caplog):
    file = layout_choice.save_choice(MEASURED)
    text = HOSTILE[name](json.loads(file.read_text()))
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert again().choice == LayoutChoice()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"layouts are the default: {file}")
    assert "raymarch tune" in line
    assert line.isprintable()
    layout_choice.current_choice()
    assert len(caplog.records) == 1


@pytest.mark.skipif(os.name != "posix", reason="pipes and links of POSIX")
@pytest.mark.parametrize("what", ["folder", "pipe", "broken link"])
def test_what_is_no_file_is_one_line_too(what, cache, caplog):
    cache.mkdir()
    file = layout_choice.choice_file()
    {"folder": file.mkdir, "pipe": lambda: os.mkfifo(file), "broken link": lambda: file.symlink_to("gone")}[what]()
    assert again().choice == LayoutChoice()
    assert "is no file" in caplog.text
    assert len(caplog.records) == 1


def test_a_cache_that_cannot_be_written_is_said(cache, monkeypatch):
    cache.write_text("a file")
    with pytest.raises(RaymarchError, match="cannot be written"):
        layout_choice.save_choice(MEASURED)


def test_rows_of_a_flat_grid_do_not_lie_a_power_of_two_apart():
    """Memory and its count agree, and blocks are as they were."""
    pool.release()  # else one that was made before might do, and be larger
    with Grid((8, 64, 32), 0, block=1) as grid:
        assert grid.fields.density.shape == memory.padded_shape(grid._tree.room, 1) == (*grid._tree.room[:1], 68, 36)
    with Grid((8, 64, 32), 0, block=4) as grid:
        assert np.prod(grid.fields.density.shape) == np.prod(grid._tree.room)
