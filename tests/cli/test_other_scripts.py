"""Law of names in other scripts: printed as they are, in JSON, in messages and in what is written; of any shell."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from raymarch import cli
from raymarch.errors import RaymarchError, decode_names
from raymarch.io.volumes.volume_file import save
from raymarch.volumes.volume import Volume

NAMES = ("Τόμος", "体积", "حجم", "том", "🗿 head", "Größe", "ボリューム", "חתך")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    volume = Volume.from_function(lambda p: p[..., 0], shape=(4, 4, 4))
    for name in NAMES:
        save(volume, f"{name}.h5")
    return tmp_path


def ran(line, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(shlex.split(line))
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


@pytest.mark.parametrize("name", NAMES)
def test_names_are_printed_and_kept(name, here, capsys):
    code, out, err = ran(f"convert '{name}.h5' 'of {name}.npz' --json", capsys)
    assert code == 0 and json.loads(out)["path"] == f"of {name}.npz", err
    code, out, err = ran(f"info '{name}2.h5'", capsys)
    assert code == 1 and f"{name}2.h5: no such file" in err and f"did you mean {name}.h5?" in err
    code, out, err = ran(f"slices 'of {name}.npz' --out '{name}.png'", capsys)
    assert code == 0 and out.startswith(f"{name}.png: ") and "Glyph" not in err, err
    with Image.open(here / f"{name}.png") as picture:
        assert picture.width > 100


@pytest.mark.skipif(os.name != "posix", reason="locales of POSIX")
@pytest.mark.parametrize("name", NAMES[:4])
def test_a_shell_without_utf8_gets_the_letters_too(name, here):
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = [sys.executable, "-m", "raymarch", "convert", f"{name}.h5", f"of {name}.npz", "--overwrite"]
    for how in ([], ["--json"]):
        done = subprocess.run(
            [*words, *how], env={**os.environ, **plain}, capture_output=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        out = done.stdout.decode("utf-8")
        assert f"of {name}.npz" in (json.loads(out)["path"] if how else out)
    assert (here / f"of {name}.npz").exists()


def test_bytes_of_names_are_letters_where_they_can_be():
    as_bytes = "Τόμος.h5".encode().decode("ascii", "surrogateescape")
    assert decode_names(as_bytes) == "Τόμος.h5" and str(RaymarchError(as_bytes)) == "Τόμος.h5"
    broken = b"\xff.h5".decode("ascii", "surrogateescape")
    assert decode_names(broken) == broken and str(RaymarchError(broken)) == "\\udcff.h5"
    assert decode_names("plain\nname") == "plain\nname"


def test_a_set_keeps_its_name_in_what_a_volume_says_of_it(here, capsys):
    folder = here / "σκηνή 场景"
    folder.mkdir()
    Image.fromarray(np.full((6, 8, 4), 200, np.uint8)).save(folder / "εικόνα.png")
    pose = np.eye(4)
    pose[2, 3] = 4
    frames = [{"file_path": "εικόνα.png", "transform_matrix": pose.tolist()}]
    document = {"camera_angle_x": 0.7, "frames": frames}
    (folder / "transforms.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    code, out, err = ran(f"doctor '{folder.name}'", capsys)
    assert code in (0, 1) and "unreadable" not in out
    code, out, err = ran(f"convert '{folder.name}' 'σύνολο.h5' --holdout 0", capsys)
    assert code == 0 and out.startswith("σύνολο.h5: "), err
