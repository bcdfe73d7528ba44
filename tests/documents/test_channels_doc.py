"""Law: the program of docs/channels.md runs, and its transforms.json is one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from blocks import blocks_of

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "channels.md").read_text(encoding="utf-8")


def test_the_set_is_json_of_channels():
    from raymarch.io.image_sets.channel_frames import channels_of

    (text,) = re.findall(r"(?ms)^```json\n(.*?)^```$", TEXT)
    document = json.loads(text)
    assert channels_of(document, "transforms.json") == ("red", "green", "blue", "thermal")
    assert channels_of(document["frames"][1], "frame 1") == ("thermal",)


@pytest.mark.whole
def test_the_program_runs(tmp_path):
    (program,) = blocks_of("channels")
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=900)
