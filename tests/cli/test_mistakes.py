"""Law of wrong usage: what can mean one thing only is taken so; of the rest one line says the right form.

No kernel runs: values are read by the options' kinds, and lines that are refused are refused before there is one.
"""

from __future__ import annotations

import json
import os
import shlex
import warnings

import click
import numpy as np
import pytest
from PIL import Image

from raymarch import cli
from raymarch.arguments.similar_names import known_as
from raymarch.cli import mistakes
from raymarch.cli.option_kinds import (
    DEGREE_UNITS,
    FACTOR_UNITS,
    Background,
    Box,
    Colour,
    Crop,
    Direction,
    Duration,
    Gigabytes,
    Interval,
    Names,
    Numbers,
    Plane,
    Real,
    Size,
    Whole,
)
from raymarch.io.volumes.volume_file import save
from raymarch.volumes.volume import Volume

GREY = (0.5, 0.5, 0.5)
TAKEN = [  # kind of option, what is typed, what it is
    (Background(), "300", (300,)), (Background(), "1,1,1,300", (1, 1, 1, 300)), (Background(), " White", "white"),
    (Background(), "#fff", (1, 1, 1)), (Background("learned"), "learned", "learned"),
    *[(Size(), typed, [1920, 1080]) for typed in ("1920x1080", "1920X1080", "1920×1080", "1920,1080", "1920 1080",
      "1920, 1080", "1920 x 1080", "1920*1080", "(1920, 1080)", "[1920,1080]", "1920px,1080px", "1080p", "FullHD")],
    (Size(), "512", 512), (Size(), "512px", 512), (Size(), "4K", [3840, 2160]),
    *[(Interval(), typed, [-100, 300]) for typed in ("-100,300", "-100 300", "−100,300", "-100:300", "-100..300",
      "[-100, 300]", "-100;300", "(-100,300)", "-1e2,3e2", "–100, 300")],
    (Interval(), "-100,5;300,25", [-100.5, 300.25]),
    *[(Box(), typed, [[-1, -1, -1], [1, 1, 1]]) for typed in ("-1,-1,-1,1,1,1", "-1 -1 -1 1 1 1",
      "[[-1,-1,-1],[1,1,1]]", "(-1,-1,-1),(1,1,1)", "−1 −1 −1 1 1 1", "-1, -1, -1, 1, 1, 1")],
    *[(Direction(), typed, [0, 0, -1]) for typed in ("0,0,-1", "-z", "-Z", "−z", "0 0 -1", "0,0,−1")],
    (Direction(), "y", [0, 1, 0]), (Direction(), "+x", [1, 0, 0]),
    (Plane(), "0,0,1,0.5", [0, 0, 1, 0.5]), (Plane(), "z>0.5", [0, 0, 1, 0.5]), (Plane(), "x<=2", [-1, 0, 0, -2]),
    *[(Duration(), typed, 300) for typed in ("300", "300s", "5m", "5min", "5 minutes", "4m60s", "0.5m 270 sec", "3e2")],
    (Duration(), "1h", 3600), (Duration(), "1h30m", 5400), (Duration(), "1500ms", 1.5), (Duration(), "1d", 86400),
    (Duration(60), "5", 5), (Duration(60), "5m", 5), (Duration(60), "90s", 1.5), (Duration(60), "1h", 60),
    *[(Gigabytes(), typed, 8) for typed in ("8", "8GB", "8 GB", "8G", "8g", "8000MB", "0.008TB")],
    (Gigabytes(), "8GiB", 8 * 2**30 / 1e9),
    *[(Colour(), typed, (1, 1, 1)) for typed in ("white", "White", "#fff", "#FFFFFF", "1,1,1", "1 1 1", "[1, 1, 1]",
      "rgb(255,255,255)", "rgb(100%,100%,100%)", "1;1;1")],
    (Colour(), "0,5;0,5;0,5", GREY), (Colour(), "red", (1, 0, 0)), (Colour("learned"), "learned", "learned"),
    (Real(-89, 89, units=DEGREE_UNITS), "20°", 20), (Real(-89, 89, units=DEGREE_UNITS), "−20 deg", -20),
    (Real(1, 100, units={"%": 1.0}), "80%", 80), (Whole(1, 8, units=FACTOR_UNITS), "2x", 2), (Whole(1, 10), "1e1", 10),
    (Crop(), "0:10,0:20,5:30", [0, 10, 0, 20, 5, 30]), (Crop(), "0 10 0 20 5 30", [0, 10, 0, 20, 5, 30]),
    (Numbers(int, 3, 4), "64x64x32", [64, 64, 32]), (Numbers(float, 1, 3), "0.5×0.5×1", [0.5, 0.5, 1]),
]  # fmt: skip
ASKED = [  # kind of option, what is typed, what is asked after
    (Interval(), "300,-100", "did you mean -100,300?"), (Interval(), "0-100", "did you mean 0,100?"),
    (Interval(), "-100HU,300HU", "did you mean -100,300?"), (Interval(), "W400L40", "did you mean -160,240?"),
    (Interval(), "WW=80 WL=40", "did you mean 0,80?"), (Interval(), "-100", "want 2 numbers"),
    (Box(), "-1,1,-1,1,-1,1", "did you mean -1,-1,-1,1,1,1?"), (Box(), "1,1,1,0,0,0", "did you mean 0,0,0,1,1,1?"),
    (Box(), "1,2,3", "want 6 numbers, x0,y0,z0,x1,y1,z1"), (Plane(), "z=0.5", "z>0.5 or z<0.5"),
    (Real(-1e30, 1e30), "300HU", "did you mean 300?"), (Real(-1e30, 1e30), "0,5", "did you mean 0.5?"),
    (Real(-1e30, 1e30), "50%", "did you mean 0.5?"), (Whole(1, 10**7), "1,000", "did you mean 1000 or 1.000?"),
    (Whole(1, 10**7), "1,000,000", "did you mean 1000000?"), (Whole(1, 10**7), "10k", "did you mean 10000?"),
    (Whole(1, 100), "2.5", "did you mean 2?"), (Whole(1, 4096), "256x256x256", "did you mean 256?"),
    (Duration(), "1,5", "did you mean 1.5?"), (Duration(), "5 parsecs", "such as 90s, 5m or 1h30m"),
    (Gigabytes(), "8 XB", "did you mean 8?"), (Gigabytes(), "all", "want gigabytes, such as 8, 8GB or 500MB"),
    (Colour(), "255,255,255", "did you mean 1,1,1?"), (Colour(), "0.5", "did you mean 0.5,0.5,0.5?"),
    (Colour(), "transparent", "want white, black, #rrggbb or three numbers"),
    (Colour("learned"), "learnt", "or learned"),
    (Crop(), "0,0,0,10,20,30", "did you mean 0,10,0,20,0,30?"), (Numbers(float, 1, 3), "0,5", "did you mean 0.5?"),
    (Names(), "a,,b", "such as red,green,thermal"), (Names(), "a,b,a", "commas between, none of them twice"),
    (Numbers(float, 1, 3), "1,1", "want 1 or 3 numbers, n,n,n"), (Numbers(int, 1, 3), "2,2", "want 1 or 3 numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "typed", "value"), TAKEN, ids=lambda x: x if isinstance(x, str) else None)
def test_what_can_mean_one_thing_is_taken_so(kind, typed, value):
    read = kind.convert(typed, None, None)
    assert type(read) is type(value) or isinstance(value, int | float)
    if isinstance(value, str):
        assert read == value
    else:
        np.testing.assert_allclose(read, value, rtol=1e-12)


@pytest.mark.parametrize(("kind", "typed", "question"), ASKED, ids=lambda x: x if isinstance(x, str) else None)
def test_the_right_form_is_said_and_taken(kind, typed, question):
    with pytest.raises(click.BadParameter) as wrong:
        kind.convert(typed, None, None)
    told = wrong.value.message
    assert question in told and "\n" not in told
    if "did you mean" in told:  # which is a cure, and cures
        for one in told.split("did you mean ")[1].removesuffix("?").split(" or "):
            if not (isinstance(kind, Whole) and "." in one):
                kind.convert(one, None, None)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(Volume.from_function(lambda p: p[..., 0], shape=(4, 4, 4)), "v.h5")
    np.save("my head.npy", np.arange(64, dtype=np.float32).reshape(4, 4, 4))
    (tmp_path / "set").mkdir()
    Image.fromarray(np.full((6, 8, 4), 200, np.uint8)).save("set/0.png")
    pose = np.eye(4)
    pose[2, 3] = 4
    frames = [{"file_path": "0.png", "transform_matrix": pose.tolist()}] * 1
    (tmp_path / "set" / "transforms.json").write_text(json.dumps({"camera_angle_x": 0.7, "frames": frames}))
    return tmp_path


def said(line, capsys):
    """Exit code and the last line of stderr."""
    with pytest.raises(SystemExit) as ended:
        cli.main(shlex.split(line))
    return ended.value.code, capsys.readouterr().err.strip().splitlines()[-1]


LINES = {  # line, what its last line of stderr has
    "rendr v.h5": "did you mean raymarch render?",
    "train set": "did you mean raymarch fit?",
    "eval v.h5 set": "did you mean raymarch evaluate?",
    "export-mesh v.h5 o.ply": "did you mean raymarch export?",
    "reconstruct set": "did you mean raymarch fit?",
    "colmap photos": "did you mean raymarch cameras?",
    "view3d v.h5": "did you mean raymarch view?",
    "mip v.h5": "did you mean raymarch render --mode maximum?",
    "check_gradients v.h5": "did you mean raymarch check-gradients?",
    "help": "did you mean raymarch --help?",
    "xyzzy": "want one of demo, cameras, doctor, fit",
    "v.h5": "is a file, want a verb before it, such as raymarch info v.h5 or view v.h5",
    "set": "is a folder, want a verb before it, such as raymarch fit set",
    "--Version": "did you mean --version?",
    "-v": "raymarch --version says the version",
    "render v.h5 --orbit 2 --output o": "No such option '--output'; did you mean --out?",
    "render v.h5 --orbit 2 -o o": "did you mean --out?",
    "render v.h5 --orbit 2 --width 8 --height 8 --out o": "did you mean --size WIDTH,HEIGHT?",
    "render v.h5 --orbit 2 --resolution 8x8 --out o": "did you mean --size WIDTH,HEIGHT?",
    "render v.h5 --orbit 2 --clip 0,0,0,1,1,1 --out o": "did you mean --clip-box?",
    "render v.h5 --orbits 2 --out o": "did you mean --orbit?",
    "render v.h5 --orbit 2 --preset quick --out o": "it is an option of raymarch fit",
    "render v.h5 --orbit 2 --dry-run --out o": "raymarch info VOLUME --time says how long an image takes",
    "render v.h5 --orbit 2 --frobnicate --out o": "raymarch render --help lists them",
    "render v.h5 --orbit 2 o": "did you mean --out o?",
    "render v.h5 --orbit 2 --size 8 8 --out o": "numbers of one option have commas between: --size 8,8",
    "render --orbit 2 --out o": "want raymarch render VOLUME",
    "render v.h5 --orbit abc --out o": "'abc': want a whole number from 1 to 10000",
    "render v.h5 --orbit 2.5 --out o": "want a whole number; did you mean 2?",
    "render set --views v.h5 --out o": "did you mean raymarch render v.h5 --views set?",
    "evaluate set v.h5": "did you mean raymarch evaluate v.h5 set?",
    "info set": "set: is an image set, want a volume file; raymarch fit set --out volume.h5 makes one",
    "export v.h5 --out o.ply": "OUT is given by itself: raymarch export VOLUME OUT",
    "convert v.h5": "want raymarch convert IN OUT",
    "convert v.h5 -o o.nrrd": "OUT is given by itself: raymarch convert IN OUT",
    "fit set --iterations 9 --out o.h5": "did you mean --steps?",
    "fit set --lr 0.1 --out o.h5": "did you mean --set lr_density=VALUE?",
    "fit set --gpu --out o.h5": "did you mean --arch cuda?",
    "fit set --steps 1,000 --out o.h5": "did you mean 1000 or 1.000?",
    "fit set --resolution 64x64x64 --out o.h5": "did you mean 64?",
    "fit set o.h5": "did you mean --out o.h5?",
    "fit --data set --out o.h5": "what is read is given by itself",
    "fit set --verbose --out o.h5": "progress goes to stderr",
    "fit set --seconds 0 --out o.h5": "--seconds is 0.0, want a number over 0",
    "info v": "did you mean v.h5?",
    "info V.H5": "did you mean v.h5?",
    "info my head.npy": "a name with spaces goes in quotes: 'my head.npy'",
    "info v.h5 set": "raymarch info takes one at a time",
    "info '*.h5'": "is a pattern, want the name of a file; one of 1, such as v.h5",
    "info '*.nii'": "there is none of that kind",
    "info https://example.org/head.nii.gz": "https://example.org/head.nii.gz: is an address, want a file or folder",
    "info s3://bucket/head.nii.gz": "s3://bucket/head.nii.gz: is an address",
    "info -": "is stdin for other programs, want the name of a file",
    "fit https://example.org/set --out o.h5": "https://example.org/set: is an address",
    "slices v.h5 --at 1,1 --out s.png": "want 3 numbers, X,Y,Z",
    "slices v.h5 --at 9,9,9 --out s.png": "--at is 9 9 9, want a point in the volume's box",
    "slices v.h5 --cmap hot --out s.png": "did you mean --colormap?",
    "view v.h5 --host 0.0.0.0": "ssh -L",
    "cameras set": "Missing option '--out': Folder of the image set to write",
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_wrong_line_is_answered_with_the_right_form(line, here, capsys):
    before = sorted(os.listdir())
    code, told = said(line, capsys)
    assert code in (1, 2) and LINES[line] in told, told
    assert sorted(os.listdir()) == before


def command(name):
    return cli.cli.commands[name]


REPAIRED = {  # line, as it is understood
    "render v.h5 --window -100 300 --out o": "render v.h5 --window -100,300 --out o",
    "render v.h5 --up 0 0 -1 --orbit 3": "render v.h5 --up 0,0,-1 --orbit 3",
    "render --clip-box -1 -1 -1 1 1 1 v.h5": "render --clip-box -1,-1,-1,1,1,1 v.h5",
    "render v.h5 --clip-plane 0 0 1 2 --clip-plane 1 0 0 0": "render v.h5 --clip-plane 0,0,1,2 --clip-plane 1,0,0,0",
    "convert a b --spacing 1 2 3": "convert a b --spacing 1,2,3",
    "convert --spacing 0.5 a b": "convert --spacing 0.5 a b",
    "convert a b --crop 0, 4, 0, 4, 0, 4": "convert a b --crop 0,4,0,4,0,4",
    "render v.h5 –out o —orbit=3": "render v.h5 --out o --orbit=3",
    "render v.h5 --size 512 2024": "render v.h5 --size 512 2024",  # may be a name
    "render v.h5 --iso -100": "render v.h5 --iso -100",
    "render '–strange name.h5'": "render '–strange name.h5'",
}  # fmt: skip


@pytest.mark.parametrize("line", REPAIRED)
def test_words_are_mended_where_they_mean_one_thing(line):
    verb, *words = shlex.split(line)
    assert [verb, *mistakes.repair_words(command(verb), words)] == shlex.split(REPAIRED[line])


def test_home_is_found_in_quotes_and_behind_an_equals_sign(here, monkeypatch):
    monkeypatch.setenv("HOME", "/houses/me")
    monkeypatch.setenv("USERPROFILE", "/houses/me")
    words = mistakes.repair_words(command("render"), ["~/v.h5", "--out=~/o", "~", "a~b", "~other/v.h5"])
    assert words == ["/houses/me/v.h5", "--out=/houses/me/o", "/houses/me", "a~b", "~other/v.h5"]
    (here / "~").mkdir()
    assert mistakes.repair_words(command("render"), ["~/v.h5"]) == ["~/v.h5"]


def test_the_lists_name_verbs_and_options_that_there_are():
    verbs = cli.cli.commands
    assert not set(mistakes.VERBS) & set(verbs)
    for name, there in mistakes.VERBS.items():
        assert there.split()[0] in verbs or there.startswith("--"), name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {one for verb in verbs.values() for option in verb.params for one in option.opts}
    for name, others in mistakes.OPTIONS.items():
        for one in others:
            assert one.split()[0] in options, (name, one)


def test_no_option_is_listed_twice_as_an_argument_and_as_an_option_of_others():
    """One list has a name: where that of arguments gives the same in every verb, the other has none of it."""
    for name, others in mistakes.OPTIONS.items():
        same = []
        for verb in cli.cli.commands.values():
            own = [one for option in verb.params for one in option.opts if one.startswith("--")]
            mine = [one for one in others if one.split()[0].partition("=")[0] in own and name not in own]
            found = [f"--{one}" for one in known_as(name, [one.removeprefix("--") for one in own])]
            same += [found[:1] == mine[:1]] if mine or found else []
        assert not (same and all(same)), name
