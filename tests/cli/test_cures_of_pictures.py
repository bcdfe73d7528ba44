"""Law: what a message of render, slices, view or info says to do can be done, and then it works; what info suggests is
typed as it stands, and works."""

from __future__ import annotations

import contextlib
import json
import shlex

import numpy as np
import pytest
from PIL import Image
from skips import require_extra

import raymarch as rm
from raymarch import cli
from raymarch.viewer.pictures.picture_source import VolumeSource

X = np.stack(np.meshgrid(*[np.linspace(-1, 1, 14)] * 3, indexing="ij"), -1)
BALL = ((X / (0.5, 0.5, 0.8)) ** 2).sum(-1) < 1
SCAN = np.where(BALL, 900.0, 40.0) + np.random.default_rng(3).normal(0, 5, BALL.shape)
LABELS = (BALL + (X[..., 2] > 0) * BALL + 2 * (X[..., 0] > 0.2) * BALL + 3 * (X[..., 1] > 0) * BALL).astype(np.uint8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Scans and a fog of several kinds."""
    here = tmp_path_factory.mktemp("scans")
    rm.save(rm.ScalarVolume(SCAN), here / "scan.h5")
    rm.save(rm.ScalarVolume(np.where(BALL, 50, -1000), unit="HU", world="LPS"), here / "ct.h5")
    rm.save(rm.ScalarVolume(np.round(SCAN).astype(np.int16)), here / "with space.h5")
    rm.save(rm.ScalarVolume(LABELS), here / "labels.h5")
    rm.save(rm.ScalarVolume(SCAN - 470), here / "signed.h5")
    rm.save(rm.ScalarVolume(np.full((5, 5, 5), 7.0)), here / "single.h5")
    rm.save(rm.ScalarVolume(1e7 + np.linspace(0, 1, 27).reshape(3, 3, 3)), here / "fine.h5")
    rm.save(rm.Volume.from_function(lambda p: np.full(p.shape[:-1], 0.5), shape=(6, 6, 6)), here / "fog.h5")
    holes = SCAN.astype(np.float32)
    holes[:2] = np.nan
    np.save(here / "holes.npy", holes)
    two = np.stack([SCAN, SCAN[::-1]])
    np.save(here / "two.npy", two)
    return here


@pytest.fixture
def typed(folder, monkeypatch, capsys):
    """Runs a line in the folder: its exit code, stdout and stderr."""
    monkeypatch.chdir(folder)

    def run(line):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(shlex.split(line.removeprefix("raymarch ")))
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


R = "render scan.h5 --orbit 1 --size 16 --out new"
SIGNED = R.replace("scan", "signed")
FOG = "render fog.h5 --orbit 1 --size 16 --out new"
SLICES = "slices scan.h5 --out slices.png"
CURES = [  # the mistake, what is said, what is typed then
    (f"{R} --window 0,900", "leave it out, or say --mode maximum, or --table bone,0,900", R),
    (f"{R} --window 0,900", "say --mode maximum", f"{R} --window 0,900 --mode maximum"),
    (f"{R} --window 0,900", "--table bone,0,900", f"{R} --table bone,0,900"),
    (f"{R} --mode maximum --window 0,1e-33", "apart by more than 1e-30", f"{R} --mode maximum --window 0,900"),
    (f"{R} --mode maximum --window 900,0", "the first the less", f"{R} --mode maximum --window 0,900"),
    (f"{R} --table bones", "matplotlib has, as viridis, inferno, bone", f"{R} --table bone"),
    (f"{R} --table bone,3", "such as bone,400,2400,0.5", f"{R} --table bone,40,900,0.5"),
    (f"{R} --table ct,3", "want ct", f"{R} --table ct"),
    (f"{R} --table solid,400", "want solid or solid,LOW,HIGH", f"{R} --table solid"),
    (f"{R} --table solid,nan,400", "want solid or solid,LOW,HIGH", f"{R} --table solid,300,400"),
    (f"{R} --table solid,400,400", "want LOW and HIGH apart; leave them out", f"{R} --table solid"),
    (f"{R} --table signed,-5,5", "want 0 < LOW < HIGH", f"{R} --table signed,5,900"),
    (f"{R} --table labels", "has no labels", R),
    (f"{R} --table bone --mode maximum", "leave it out, or say --mode transfer", f"{R} --table bone --mode transfer"),
    (f"{R} --iso 1e9", "choose one between", f"{R} --iso 500"),
    (f"{R} --iso 5 --mode maximum", "say --mode isosurface", f"{R} --iso 500 --mode isosurface"),
    (f"{R} --preintegrated --shading", "leave one out", f"{R} --preintegrated"),
    (f"{R} --up 0,0,0", "give the direction that is up in the world", f"{R} --up 0,0,-1"),
    (SIGNED + " --mode additive", "show them in mode transfer", SIGNED),
    (f"{FOG} --shading", "leave it out", FOG),
    (f"{FOG} --preintegrated", "want mode transfer", f"{FOG} --preintegrated --mode transfer"),
    (f"{R} --with ct.h5 --shading", "leave it out", f"{R} --with ct.h5"),
    (R.replace("scan.h5", "holes.npy"), "convert holes.npy whole.h5 --nan empty takes",
     "convert holes.npy whole.h5 --nan empty"),
    (f"{R} --extras --out new.gif", "give a folder as --out", f"{R} --extras"),
    (f"{SLICES} --colour", "leave --colour out, or take --colormap", f"{SLICES} --colormap magma"),
    (f"{SLICES} --window 5,1", "the first the less", f"{SLICES} --window 1,5"),
    (f"{SLICES} --at=99,0,0", "want a point in the volume's box", f"{SLICES} --at=1,0,0"),
    (f"{SLICES} --out slices.jpg", "end the name in .png", SLICES),
    ("info --channel 1", "give it, or leave them out", "info scan.h5"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "said", "cure"), CURES, ids=range(len(CURES)))
def test_a_cure_cures(typed, mistake, said, cure):
    code, _, error = typed(mistake)
    assert code in (1, 2) and said in error and "Traceback" not in error, error
    code, _, error = typed(cure)
    assert code == 0, error


def test_values_too_fine_are_subtracted_from(typed, folder):
    """The cure of Python, as the shell has no arithmetic."""
    code, _, error = typed("render fine.h5 --orbit 1 --size 16 --out new")
    assert code == 1 and "subtract the least" in error
    scan = rm.load(folder / "fine.h5")
    rm.save(rm.ScalarVolume(scan.values - scan.values.min()), folder / "less.h5")
    assert typed("render less.h5 --orbit 1 --size 16 --out new")[0] == 0
    assert typed("render fine.h5 --orbit 1 --size 16 --mode maximum --out new")[0] == 0


@pytest.mark.parametrize(
    "name", ["scan.h5", "ct.h5", "with space.h5", "labels.h5", "signed.h5", "single.h5", "holes.npy"]
)
def test_what_info_suggests_works_as_it_stands(typed, name):
    code, out, _ = typed(f"info '{name}' --json")
    suggested = json.loads(out)["suggested"]
    assert code == 0 and suggested["window"][0] < suggested["window"][1] and suggested["table"]
    assert typed(f"info '{name}'")[1].count("raymarch ") == len(suggested["commands"]) >= 2
    for line in suggested["commands"]:
        few = line.replace("--orbit 8", "--orbit 1 --size 24")
        again = "" if " convert " not in line else " --overwrite"
        code, _, error = typed(few + again)
        assert code == 0, (line, error)
        if "--table" in line or "--iso" in line:
            with Image.open(f"{shlex.split(line)[-1]}/0000.png") as picture:
                assert np.asarray(picture).max() > 40
    if name != "holes.npy":
        assert typed(f"render '{name}' --orbit 1 --size 24 --table {suggested['table']} --out new")[0] == 0


def test_the_default_look_is_said_as_an_option_that_gives_the_same_picture(typed, folder):
    _, _, said = typed("render scan.h5 --orbit 1 --size 24 --out plain")
    table = next(part for part in said.split() if part.startswith("solid,")).rstrip(",")
    assert "--up 0,0,-1 turns the picture upside down, --up 1,0,0 or 0,1,0 raises what lies on its side" in said
    typed(f"render scan.h5 --orbit 1 --size 24 --table {table} --out typed")
    pictures = [np.asarray(Image.open(folder / name / "0000.png")) for name in ("plain", "typed")]
    np.testing.assert_array_equal(*pictures)
    assert not pictures[0][:2].any() and pictures[0].max() > 100  # on black
    typed(f"render scan.h5 --orbit 1 --size 24 --table {table} --no-shading --out unlit")
    assert not np.array_equal(pictures[0], np.asarray(Image.open(folder / "unlit" / "0000.png")))


def test_a_body_is_not_asked_which_way_is_up(typed):
    _, _, said = typed("render ct.h5 --orbit 1 --size 16 --out new")
    assert "--up" not in said and "--table ct-skin" in said


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("", {"mode": "transfer", "shading": True, "background": (0.0, 0.0, 0.0)}),
        ("--mode maximum --window 0,500", {"mode": "maximum", "window": (0.0, 500.0)}),
        ("--iso 400 --background white", {"mode": "isosurface", "iso": 400.0, "background": None}),
        ("--table bone,100,800,0.4", {"mode": "transfer", "shading": False}),
        ("--table bone,100,800 --shading --step 2", {"shading": True, "step": 2.0}),
        ("--clip-box 0,0,0,6,9,9", {"clip": rm.Clip(((0, 0, 0), (6, 9, 9)))}),
    ],
)
@pytest.mark.extra
def test_view_begins_with_the_look_of_render(options, wanted, typed, monkeypatch):
    require_extra("websockets", "viewer")
    begun = {}

    def shown(server, watched, views, stop, begin, window, ready):
        ready()
        with contextlib.closing(VolumeSource(watched.volume, views, begin(watched.volume), window)) as source:
            begun["look"] = source.look

    monkeypatch.setattr("raymarch.viewer.view.view_file", shown)
    code, _, error = typed(f"view scan.h5 --no-browser {options}")
    assert code == 0, error
    assert {name: getattr(begun["look"], name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--iso 1e9", "so there is no surface; choose one between"),
        ("--mode additive", "which mode additive takes for extinction"),
        ("--window 0,1", "are colours; leave it out"),
        ("--table bones", "want a colour map"),
        ("--up 0,0,0", "give the direction"),
        ("--step 1e-9", "want a number from"),
    ],
)
@pytest.mark.extra
def test_view_refuses_what_it_cannot_begin_with_before_it_gives_an_address(options, said, typed):
    require_extra("websockets", "viewer")
    code, out, error = typed(f"view signed.h5 --no-browser {options}")
    assert code in (1, 2) and out == "" and said in error and "Traceback" not in error
