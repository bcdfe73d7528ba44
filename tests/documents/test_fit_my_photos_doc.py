"""Law: what docs/fit-my-photos.md shows runs, and the options, settings and scores that it names are there."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

import raymarch as rm
from raymarch.cli import cli
from raymarch.evaluation.held_out import Evaluation
from raymarch.fitting.settings.objective import LOSSES
from raymarch.fitting.settings.settings import PRESETS, FitSettings

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "fit-my-photos.md"
TEXT = DOCUMENT.read_text().partition("## Check the set")[2]
BLOCKS = re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", TEXT)
COMMANDS = [line.split() for language, code in BLOCKS if language == "bash" for line in code.splitlines()]
VERBS = {name: cli.commands[name] for name in ("cameras", "doctor", "fit", "evaluate", "render", "export", "convert")}
OPTIONS = {option for command in VERBS.values() for each in command.params for option in each.opts}


@pytest.mark.parametrize("code", [code for language, code in BLOCKS if language == "python"])
def test_a_block_runs(code):
    exec(code, {})


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[1] in VERBS], ids=" ".join)
def test_the_options_of_a_command_are_its_own(words):
    known = {option for each in VERBS[words[1]].params for option in each.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_what_the_text_names_is_there():
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT)) <= OPTIONS
    settings = {each.name for each in fields(FitSettings)} | {
        *signature(rm.fit).parameters,
        *signature(rm.load_views).parameters,
    }
    assert set(re.findall(r"`(\w+)=", TEXT)) <= settings
    assert set(re.findall(r'loss="(\w+)"', TEXT)) <= set(LOSSES)
    assert set(re.findall(r"--preset (\w+)", TEXT)) <= set(PRESETS)
    scores = {each.name for each in fields(Evaluation)}
    assert {"psnr", "ssim", "psnr_halves", "psnr_masked", "ssim_masked", "lpips", "masked_by"} <= scores
    assert PRESETS["photos"].exposure and PRESETS["photos"].loss == "squared"
