"""Laws of the command line: results on stdout, the rest on stderr; 0 done, 1 could not, 2 wrong usage; no traceback.

Each verb does what it does once in a process of its own, a fit until it is interrupted, in a folder that holds a
volume, a few views and things that are neither; other options, and what is refused, go by the same `main`
in this process.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from whole import whole

from raymarch import cli, runtime
from raymarch.cli import modes, options
from raymarch.geometry.orbit import orbit_of_points
from raymarch.io.volumes.volume_file import load, save
from raymarch.rendering.default_look import farthest_seen_points
from raymarch.rendering.march_settings import March
from raymarch.rendering.renderer import render
from raymarch.rendering.shading import Shading
from raymarch.volumes.default_table import default_table
from raymarch.volumes.scalar_volume import ScalarVolume

VERBS = ("cameras", "fit", "evaluate", "render", "slices", "info")
# Of as many pixels and rays as in the README: kernels are on the disk; in this process they are those of `fitting`.
TINY = "--preset quick --steps 30 --resolution 24 --sh-degree 0 --set rays=512"
QUICK = f"{TINY} --set slots=1"
FIT_KEYS = {"out", "steps", "seconds", "rays_psnr", "shape", "sh_degree", "box", "ended", "resumed_from"} | {
    "preparation_seconds",
    "warnings",
}
INFO_KEYS = {
    "shape",
    "degree",
    "box",
    "activation",
    "bytes_on_disk",
    "bytes_in_memory",
    "bytes_to_render",
    "boxes",
    "bricks",
    "ndc",
    "provenance",
}
FEW = 4
posix = pytest.mark.skipif(os.name != "posix", reason="signals and shells of POSIX")


def words(line: str) -> list[str]:
    return [sys.executable, "-m", "raymarch", *shlex.split(line)]


def raymarch(line: str, folder: Path) -> subprocess.CompletedProcess:
    """Run `raymarch LINE` in a folder."""
    return subprocess.run(words(line), cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture
def here_and_now(capsys, monkeypatch):
    """As `raymarch(line, folder)`, in this process."""

    def run(line: str, folder: Path) -> subprocess.CompletedProcess:
        monkeypatch.chdir(folder)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(shlex.split(line))
        said = capsys.readouterr()
        return subprocess.CompletedProcess(line, ended.value.code, said.out, said.err)

    return run


@pytest.fixture
def done_now(here_and_now):
    """As `done(line, folder)`, in this process."""

    def run(line: str, folder: Path) -> subprocess.CompletedProcess:
        ended = here_and_now(line, folder)
        assert ended.returncode == 0, ended.stderr
        return ended

    return run


def done(line: str, folder: Path) -> str:
    """What `raymarch LINE` prints; it must succeed."""
    run = raymarch(line, folder)
    assert run.returncode == 0, run.stderr
    return run.stdout


def few_views(source: Path, target: Path) -> None:
    """Every 16th training view of an image set, a quarter as large, as its splits train and test."""
    document = json.loads((source / "transforms_train.json").read_text())
    document["frames"] = document["frames"][::16][:FEW]
    (target / "train").mkdir(parents=True)
    for frame in document["frames"]:
        file = source / f"{frame['file_path']}.png".replace(".png.png", ".png")
        with Image.open(file) as image:
            image.reduce(4).save(target / "train" / file.name)
    for split in ("train", "test"):
        (target / f"transforms_{split}.json").write_text(json.dumps(document))


@pytest.fixture(scope="module")
def first(root, tmp_path_factory):
    """A folder with a tiny fit of a few views of the tower, volume.h5, and what was said as it was made."""
    folder = tmp_path_factory.mktemp("cli")
    few_views(root / "scenes" / "tower", folder / "few")
    (folder / "folder").mkdir()
    (folder / "folder.h5").mkdir()
    (folder / "text.h5").write_text("no volume")
    line, out, err = f"fit few {QUICK} --out volume.h5", io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            cli.main(shlex.split(line))
    return folder, subprocess.CompletedProcess(line, ended.value.code, out.getvalue(), err.getvalue())


@pytest.fixture
def here(first):
    """That folder."""
    return first[0]


def picture(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def frames(folder: Path) -> list[str]:
    document = json.loads((folder / "few" / "transforms_test.json").read_text())
    return [Path(frame["file_path"]).stem for frame in document["frames"]]


def contents(folder: Path) -> dict[Path, str | None]:
    """Every file with a digest of its bytes, every folder: a difference of the bytes would take minutes to show."""
    files = {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
    return {path: None if data is None else hashlib.sha256(data).hexdigest() for path, data in files.items()}


# What is asked for comes.


def test_fit_says_one_line_and_shows_progress(first):
    folder, run = first
    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == 1
    assert run.stdout.startswith("volume.h5: ")
    assert "samples" in run.stdout
    assert "100%  step 30 " in run.stderr
    assert f"{FEW} views" in run.stderr
    assert "--box" in run.stderr
    volume = load(folder / "volume.h5")
    assert max(volume.shape) == 24
    assert volume.degree == 0
    assert volume.provenance["ended"] == "done"
    assert volume.provenance["steps"] == 30


def test_fit_as_json(here, done_now, tmp_path):
    out = tmp_path / "json.hdf5"
    text = done_now(f"fit few {QUICK} --set steps=3 --out {shlex.quote(str(out))} --json", here).stdout
    record = json.loads(text)
    assert text.count("\n") == 1
    assert set(record) == FIT_KEYS
    assert (record["out"], record["steps"], record["sh_degree"], record["ended"]) == (str(out), 3, 0, "done")
    assert record["shape"] == list(load(out).shape)
    assert np.shape(record["box"]) == (2, 3)


def test_evaluate_as_json_with_pictures(here, tmp_path):
    pictures = tmp_path / "pictures"
    errors, sheet = tmp_path / "errors", tmp_path / "sheet.png"
    where = shlex.join(["--images", str(pictures), "--errors", str(errors), "--sheet", str(sheet)])
    text = done(f"evaluate volume.h5 few --split test --json {where}", here)
    record = json.loads(text)
    assert text.count("\n") == 1
    scores = {"psnr", "ssim", "psnr_halves", "psnr_masked", "ssim_masked", "lpips"}
    scores |= {"depth_error", "depth_error_relative", "rmse"}
    assert set(record) == {*scores, "views", "seconds_per_image", "masked_by", "lpips_missing"}
    assert all(set(view) == {"name", *scores} for view in record["views"])
    assert [view["name"] for view in record["views"]] == frames(here)
    for mean in ("psnr", "ssim", "psnr_halves", "psnr_masked", "ssim_masked"):
        assert record[mean] == pytest.approx(np.mean([view[mean] for view in record["views"]]))
    assert names(pictures) == sorted(f"{name}.png" for name in frames(here))
    height, width, _ = picture(here / "few" / "train" / f"{frames(here)[0]}.png").shape
    assert all(picture(file).shape == (height, 3 * width, 3) for file in pictures.iterdir())
    assert names(errors) == names(pictures)
    assert all(picture(file).shape == (height, width, 3) for file in errors.iterdir())
    assert picture(sheet).shape[2] == 3 and min(picture(sheet).shape[:2]) > 300


def test_evaluate_as_text(here, done_now):
    """A line a view and one for the mean, nothing else."""
    lines = done_now("evaluate volume.h5 few", here).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*frames(here), "mean"]
    assert all(word in line for line in lines for word in ("PSNR", "halves", "masked", "SSIM"))


ORBIT = "render volume.h5 --orbit 3 --size 40"


@pytest.fixture(scope="module")
def orbit(first, tmp_path_factory):
    """Pictures of an orbit with depth and opacity."""
    folder = tmp_path_factory.mktemp("pictures") / "orbit"
    assert done(f"{ORBIT} --extras --out {shlex.quote(str(folder))}", first[0]).count("\n") == 1
    return folder


def test_an_orbit_comes_with_its_extras(orbit):
    kinds = ("", "_depth", "_opacity")
    assert names(orbit) == sorted(f"{i:04d}{kind}.png" for i in range(3) for kind in kinds)
    for name in names(orbit):
        assert picture(orbit / name).shape == ((40, 40) if "_" in name else (40, 40, 3))
    assert picture(orbit / "0000_opacity.png").max() > 100


def test_a_volume_of_values_is_seen_through_a_table_that_is_said(done_now, tmp_path):
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, 12)] * 3, indexing="ij"), -1)
    save(ScalarVolume(1000 * np.exp(-4 * (x**2).sum(-1))), tmp_path / "v.h5")
    render, out = "render v.h5 --orbit 1 --size 24 --background black", shlex.quote(str(tmp_path / "values"))
    run = done_now(f"{render} --out {out}", tmp_path)
    assert "mode transfer, as the volume has values" in run.stderr, run.stderr
    typed = re.search(r"table (\S+),", run.stderr)[1]
    seen = picture(tmp_path / "values" / "0000.png")
    assert seen.max() > 50
    done_now(f"{render} --table {typed} --out {out}", tmp_path)
    again = picture(tmp_path / "values" / "0000.png")
    np.testing.assert_allclose(again.astype(float), seen.astype(float), atol=2)  # four digits of the range were said


@pytest.mark.parametrize(
    ("options", "march"),
    [
        ("--step 3", {"step": 3.0}),
        ("--shading", {"shading": Shading()}),
        ("--preintegrated --supersample 2", {"preintegrated": True, "supersample": 2}),
    ],
)
def test_options_of_a_march_are_those_of_python(options, march, done_now, tmp_path):
    table = "bone,100,900,0.4"
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, 12)] * 3, indexing="ij"), -1)
    scan = ScalarVolume(1000 * np.exp(-4 * (x**2).sum(-1)), np.diag([1.0, 1.0, 2.0, 1.0]))
    save(scan, tmp_path / "v.h5")
    done_now(f"render v.h5 --orbit 1 --size 24 --table {table} --background black {options} --out seen", tmp_path)
    plain = March(mode="transfer", transfer=default_table(scan.as_volume(), "bone", 100, 900, 0.4))
    points = farthest_seen_points(scan.as_volume(), plain)
    camera = orbit_of_points(points, 1, 10.0, size=24, front=(0, -1, 0))[0]
    wanted, other = (render(scan, camera, background="black", march=m) for m in (replace(plain, **march), plain))
    seen = picture(tmp_path / "seen" / "0000.png") / 255
    np.testing.assert_allclose(seen, wanted, atol=0.51 / 255)
    assert abs(seen - other).max() > 2 / 255


def test_slices_are_a_picture_of_the_volume_s_values(here, done_now, tmp_path):
    out = shlex.quote(str(tmp_path / "slices.png"))
    middle = done_now(f"slices volume.h5 --out {out}", here).stdout
    first = picture(tmp_path / "slices.png")
    assert middle.startswith(f"{tmp_path / 'slices.png'}: z = ") and first.shape[2] == 3 and np.ptp(first) == 255
    lower, upper = load(here / "volume.h5").box
    at = ",".join(f"{x:.17g}" for x in upper)
    corner = done_now(f"slices volume.h5 --at={at} --window 0,9 --colormap magma --out {out}", here).stdout
    said = [float(x) for x in re.findall(r"= (\S+?)(?:,|$)", corner)]
    np.testing.assert_allclose(said, upper[::-1], rtol=5e-3)
    assert not np.array_equal(first, picture(tmp_path / "slices.png"))
    done_now(f"slices volume.h5 --colour --at={','.join(map(str, (lower + upper) / 2))} --out {out}", here)


def test_a_volume_is_rendered_together_with_another(here, done_now, tmp_path):
    """With itself through a table to which nothing is clear, so that all of the box is met."""
    out = shlex.quote(str(tmp_path / "both"))
    both = "--with volume.h5 --with-table bone,-9,9,0.9"
    done_now(f"render volume.h5 --orbit 1 --size 24 --extras {both} --out {out}", here)
    assert picture(tmp_path / "both" / "0000_opacity.png")[8:-8, 8:-8].min() > 100


def test_steps_and_rays_a_pixel_are_those_asked_for_in_all_volumes_together(here):
    shown = modes.ModeOptions(step=2.0, supersample=3)
    volume = load(here / "volume.h5")
    _, marches = options.add_others(volume, shown.march(volume), shown, [str(here / "volume.h5")] * 2, ["bone,-9,9"])
    assert [march.mode for march in marches] == ["emission-absorption", "transfer", "emission-absorption"]
    assert {(march.step, march.supersample) for march in marches} == {(2.0, 3)}


def test_a_folder_that_may_not_be_entered_is_one_line(here, here_and_now, monkeypatch):
    def refuse(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_dir", refuse)
    ended = here_and_now("info closed/volume.h5", here)
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr.count("\n") == 1 and "closed/volume.h5" in ended.stderr and "permissions" in ended.stderr


@pytest.mark.parametrize(
    "line", ["info {}.h5", "evaluate {}.h5 few", "slices {}.nii.gz --out b.png", "convert {} a.h5"]
)
def test_a_name_that_is_too_long_for_the_disk_is_one_line(line, here, here_and_now):
    ended = here_and_now(line.format("a" * 300), here)
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr.count("\n") == 1 and "raymarch: aaa" in ended.stderr


def test_views_are_rendered_under_their_names(here, done_now, tmp_path):
    done_now(f"render volume.h5 --views few --background black --out {shlex.quote(str(tmp_path / 'seen'))}", here)
    assert names(tmp_path / "seen") == sorted(f"{name}.png" for name in frames(here))
    for name in frames(here):
        truth = picture(here / "few" / "train" / f"{name}.png")
        assert picture(tmp_path / "seen" / f"{name}.png").shape == (*truth.shape[:2], 3)


def test_info(here, here_and_now):
    text, record = done("info volume.h5", here), json.loads(here_and_now("info volume.h5 --json", here).stdout)
    assert set(record) == INFO_KEYS
    assert record["shape"] == list(load(here / "volume.h5").shape)
    assert record["provenance"]["settings"]["resolution"] == 24
    for word in ("shape", "bytes_on_disk", "settings", "versions"):
        assert any(line.startswith(word) for line in text.splitlines())


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example(verb, tmp_path, here_and_now):
    run = here_and_now(f"{verb} --help", tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert f"Example: raymarch {verb} " in run.stdout


def test_help_and_version(tmp_path, done_now):
    shown = done("--help", tmp_path)
    assert all(verb in shown for verb in VERBS)
    assert done_now("--version", tmp_path).stdout.startswith("raymarch, version 0.")


# What cannot be is said in one line, and nothing is written.

MISTAKES = {
    "fit missing --out new.h5": "no such folder",
    "fit text.h5 --out new.h5": "which is no image set",
    "fit folder --out new.h5": "no known image set",
    "fit few --split val --out new.h5": "it has the splits test, train",
    "fit few --out nowhere/new.h5": "there is no folder",
    "fit few --out new.npz": "end the name in .h5",
    "fit few --out folder.h5": "is a folder",
    "fit few --out text.h5": "is no volume of raymarch's and would be lost",
    "render volume.h5 --views few --out few/test": "lies in the image set few",
    "evaluate volume.h5 few --images few": "lies in the image set few",
    "fit few --out volume.h5 --box=0,0,0,1e300,1,1": "within 1e+09 of the origin",
    "fit few --out volume.h5 --resolution 1200 --set bricks=false": "bytes",
    "fit few --out volume.h5 --box 90,90,90,91,91,91 --resolution 16": "box",
    "evaluate missing.h5 few": "missing.h5",
    "evaluate text.h5 few": "text.h5",
    "evaluate folder few": "folder",
    "evaluate volume.h5 missing": "no such folder",
    "evaluate volume.h5 few --split val": "it has the splits test, train",
    "evaluate volume.h5 few --images nowhere/new": "create its parent",
    "evaluate volume.h5 few --images text.h5": "text.h5",
    "evaluate volume.h5 few --images new --errors folder/../new": "is the folder of --images too",
    "render missing.h5 --orbit 3 --out new": "missing.h5",
    "render volume.h5 --views missing --out new": "no such folder",
    "render volume.h5 --orbit 3 --mode x-ray --with volume.h5 --out new": "mode x-ray does not composite with other",
    "render volume.h5 --orbit 3 --out new.avi": "videos are .mp4, .webm, .gif",
    "render volume.h5 --path missing.json --out new": "missing.json: is no file",
    "render volume.h5 --orbit 3 --mode x-ray --table bone --out new": "mode x-ray takes no transfer function",
    "render volume.h5 --orbit 3 --mode maximum --iso 3 --out new": "mode maximum has no surface",
    "render volume.h5 --orbit 3 --table missing.json --out new": "missing.json",
    "render volume.h5 --orbit 3 --out nowhere/new": "create its parent",
    "render volume.h5 --orbit 3 --out text.h5": "folder",
    "render volume.h5 --orbit 3 --shading --out new": "shading is given in mode emission-absorption",
    "render volume.h5 --orbit 3 --preintegrated --out new": "preintegrated is True in mode emission-absorption",
    "render volume.h5 --orbit 3 --mode x-ray-exact --step 1 --out new": "--step: mode x-ray-exact has no steps",
    "render volume.h5 --orbit 3 --window 1,2 --out new": "are colours; leave it out",
    "slices missing.h5 --out new.png": "missing.h5",
    f"convert {os.devnull} new.h5": "is a device or pipe" if os.name == "posix" else "",
    "slices volume.h5 --out new.jpg": ".png",
    "slices volume.h5 --at 0,0,90 --out new.png": "at is 0 0 90, want a point in the volume's box",
    "render volume.h5 --orbit 3 --clip-plane 0,0,0,1 --out new": "clip: planes",
    "info missing.h5": "missing.h5",
    "info text.h5": "text.h5",
    "info folder": "folder",
}

WRONG_VALUES = {
    "render volume.h5 --orbit 3 --table bones --out new": "--table is 'bones', want a colour map",
    "slices volume.h5 --colormap grye --out new.png": "--colormap is 'grye', want a colour map",
    "render volume.h5 --orbit 3 --fps 9 --out new": "--fps is for a clip, and --out is a folder of pictures",
    "bench fit --n 16": "--n is for march, frames, xray, and WHAT is fit; leave it out",
    "bench march --steps 9": "--steps is for fit, and WHAT is march; leave it out",
    "tune --forget --seconds 9": "--seconds is for measuring, and --forget measures nothing; leave it out",
    "check-gradients volume.h5 --split test": "--split is of the image set DATA, which is not given; leave it out",
    "fit few --out volume.h5 --set step=1e-9": "step is 1e-09",
    "fit few --out volume.h5 --set speed=1": "unknown setting speed",
    "fit few --out volume.h5 --set resolution=many": "resolution",
    "fit few --out volume.h5 --set levels=3": "levels is 3",
    "fit few --out volume.h5 --set levels=((0,0.5),(0.4,2))": "levels is ((0, 0.5), (0.4, 2))",
    "fit few --out volume.h5 --set levels=((((((((((((((0": "levels is",
    "fit few --out volume.h5 --set hull=1": "hull is 1, want True or False",
    "fit few --out volume.h5 --set slots=0": "slots is 0",
    "fit few --out volume.h5 --set density=None": "density is None",
    "fit few --out volume.h5 --set steps=None": "neither steps nor seconds",
    "fit few --out volume.h5 --set beta1=1": "beta1 is 1",
    "fit few --out volume.h5 --set seed=__import__('os').getpid()": "seed is",
    "fit few --out volume.h5 --set optimiser=3": "optimiser",
    "fit few --out volume.h5 --set tv_density=-1": "tv_density is -1",
    "fit few --out volume.h5 --set tv_density=nan": "tv_density is nan",
    "fit few --out volume.h5 --set name=quick": "unknown setting name",
    "fit few --out volume.h5 --set block=3": "block is 3",
    "fit few --out volume.h5 --seconds -1": "seconds is -1",
    "fit few --out volume.h5 --seconds nan": "seconds is nan",
    "fit few --out volume.h5 --seconds inf": "seconds is inf",
    "fit few --out volume.h5 --steps 0": "steps is 0",
    "fit few --out volume.h5 --resolution 0": "resolution is 0",
    "fit few --out volume.h5 --resolution 100000": "resolution is 100000",
    "fit few --out volume.h5 --memory nan": "--memory is nan",
    "fit few --out volume.h5 --checkpoint-every -1": "'-1': want a number from 1e-09 to 1e+06",
    "fit few --out volume.h5 --background purpel": "'purpel': want white, black, #rrggbb",
    "fit few --out volume.h5 --threads 0": "'0': want a whole number from 1 to 1024",
    "cameras few --out new --max-size 3": "--max-size is 3, want a whole number from 64",
    "cameras few --out new --seconds nan": "--seconds is nan",
    "export volume.h5 new.glb --iso nan": "'nan': want a number from",
    "render volume.h5 --orbit 3 --frames 4 --out new": "--frames is for --path",
    "render volume.h5 --orbit 3 --split test --out new": "--split is for --views DATA",
    "render volume.h5 --path spiral --elevation 4 --out new": "--elevation is for --orbit",
    "render volume.h5 --views few --size 40 --out new": "--size is for --orbit, --position and --path",
}

MISUSES = [
    "fit few",
    "fit --out new.h5",
    "fit few --preset fast --out new.h5",
    "fit few --sh-degree 9 --out new.h5",
    "fit few --resolution many --out new.h5",
    "fit few --box 1,2,3,4,5 --out new.h5",
    "fit few --set tv_density --out new.h5",
    "fit few --arch abacus --out new.h5",
    "evaluate volume.h5",
    "evaluate volume.h5 few --background purpel --images new",
    "evaluate volume.h5 few --downscale 0.5",
    "evaluate volume.h5 few --downscale nan",
    "evaluate volume.h5 few --holdout -1",
    "slices volume.h5",
    "slices volume.h5 --at 1,2 --out new.png",
    "slices volume.h5 --window 5,5 --out new.png",
    "slices volume.h5 --window 0,1e-320 --out new.png",
    "slices volume.h5 --colour --window 5,6 --out new.png",
    "slices volume.h5 --colour --colormap gray --out new.png",
    "render volume.h5 --orbit 3 --fps nan --out new.gif",
    "render volume.h5 --orbit 3 --elevation 95 --out new",
    "render volume.h5 --orbit 3 --elevation nan --out new",
    "render volume.h5 --orbit 3 --fps 0 --out new.gif",
    "render volume.h5 --orbit 3 --quality 101 --out new.gif",
    "render volume.h5 --orbit 3 --step 0 --out new",
    "render volume.h5 --orbit 3 --mode maximum --window 5,1 --out new",
    "render volume.h5 --orbit 3 --mode maximum --window nan,1 --out new",
    "render volume.h5 --orbit 3 --mode maximum --window 0,inf --out new",
    "render volume.h5 --orbit 3 --background purpel --out new",
    "render volume.h5 --out new",
    "render volume.h5 --orbit 3 --views few --out new",
    "render volume.h5 --orbit 0 --out new",
    "render volume.h5 --orbit 3 --clip-box 1,2,3 --out new",
    "render volume.h5 --orbit 3 --clip-box 1,1,1,0,0,0 --out new",
    "render volume.h5 --orbit 3 --clip-box 0,0,0,1,nan,1 --out new",
    "render volume.h5 --orbit 3 --table bone,1 --out new",
    "render volume.h5 --orbit 3 --table bone.csv --out new",
    "render volume.h5 --orbit 3 --with-table bone --out new",
    "render volume.h5 --orbit 3 --clip-plane 0,0,1 --out new",
    "render volume.h5 --views few --orthographic --out new",
    "render volume.h5 --orbit 3 --size 0 --out new",
    "render volume.h5 --orbit 3 --size 3,4,5 --out new",
    "render volume.h5 --orbit 3 --path spiral --out new",
    "render volume.h5 --path cameras --out new",
    "render volume.h5 --path round --out new",
    "render volume.h5 --path spiral --views few --out new",
    "render volume.h5 --orbit 3 --extras --out new.gif",
    "render volume.h5 --orbit 3 --downscale 2 --out new",
    "render volume.h5 --path spiral --holdout 4 --out new",
    "view volume.h5 --holdout 4",
    "view volume.h5 --follow-links",
    "info --channel 1",
    "fit few --no-browser --out new.h5",
    "fit few --port 8000 --out new.h5",
    "fit missing --port 8000 --out new.h5",
    "fit few --box 0,0,0,1,1,0 --out new.h5",
    "fit few --box 0,0,0,1,1,nan --out new.h5",
    "dance",
]


def refused(line: str, folder: Path, run=raymarch) -> str:
    """The one line that `raymarch LINE` says as it exits with 1, with every file as it was."""
    before = contents(folder)
    run = run(line, folder)
    assert run.returncode == 1, (run.stdout, run.stderr)
    assert run.stdout == ""
    assert contents(folder) == before
    said = [
        text
        for text in run.stderr.splitlines()
        if not text.startswith((f"{FEW} views of ", f"note: {FEW} views carve "))
    ]
    assert len(said) == 1 and said[0].startswith("raymarch: "), run.stderr
    return said[0]


def misused(line: str, folder: Path, run=raymarch) -> str:
    """What `raymarch LINE` says as it exits with 2 and shows how it is used, with every file as it was."""
    before = contents(folder)
    run = run(line, folder)
    assert (run.returncode, run.stdout) == (2, "")
    assert "Usage: raymarch" in run.stderr
    assert "Error: " in run.stderr
    assert "Traceback" not in run.stderr
    assert contents(folder) == before
    return run.stderr


def one_a_verb(lines) -> list[str]:
    """The first line of each verb."""
    first: dict[str, str] = {}
    for line in lines:
        first.setdefault(line.split()[0], line)
    return list(first.values())


def first_now_the_others_later(lines) -> list:
    """All verbs go by one `main`, so that one of them stands for the others in a process of its own."""
    return [lines[0], *map(whole, lines[1:])]


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake_is_one_line_and_leaves_files_alone(line, here, here_and_now):
    assert MISTAKES[line] in refused(line, here, here_and_now)


@pytest.mark.parametrize("line", first_now_the_others_later(one_a_verb(MISTAKES)))
def test_mistake_of_each_verb_is_one_line_of_a_process_of_its_own(line, here):
    assert MISTAKES[line] in refused(line, here)


@pytest.mark.parametrize("line", MISUSES)
def test_misuse_exits_2(line, here, here_and_now):
    misused(line, here, here_and_now)


@pytest.mark.parametrize("line", WRONG_VALUES)
def test_wrong_values_are_wrong_usage_that_names_what_they_are_of(line, here, here_and_now):
    assert WRONG_VALUES[line] in misused(line, here, here_and_now)


@pytest.mark.parametrize("line", first_now_the_others_later(one_a_verb(MISUSES)))
def test_misuse_of_each_verb_exits_2_from_a_process_of_its_own(line, here):
    misused(line, here)


COMPUTING = ["render volume.h5 --orbit 2 --out new", whole("fit few --out new.h5"), whole("evaluate volume.h5 few")]


@pytest.mark.parametrize("line", COMPUTING)  # which ask for their device by the same options
def test_cuda_where_there_is_none_is_a_mistake(line, here):
    if runtime._choose("auto") == "cuda":
        pytest.skip("CUDA is here")
    assert "no CUDA device" in refused(f"{line} --arch cuda", here)


@pytest.mark.parametrize("line", COMPUTING)
def test_a_device_that_is_not_there_is_a_mistake(line, here, monkeypatch):
    for variable in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):  # without drivers its loader finds no device
        monkeypatch.setenv(variable, "none")
    assert "no Vulkan device was found; use --arch cpu" in refused(f"{line} --arch vulkan", here)


@pytest.mark.skipif(sys.platform == "darwin", reason="of Linux and Windows")
def test_metal_is_on_a_mac_alone(here):
    assert "only a Mac has it" in refused(f"{COMPUTING[0]} --arch metal", here)


def test_f64_where_there_is_none_is_a_mistake(here):
    ended = raymarch("check-gradients volume.h5 --arch vulkan", here)
    told = "raymarch: precision f64 asked for but vulkan computes in f32 only; use --arch cpu, or --precision f32"
    assert (ended.returncode, ended.stdout, ended.stderr.splitlines()[-1]) == (1, "", told)


# Ctrl-C and pipes.


def started(line: str, folder: Path) -> subprocess.Popen:
    """`raymarch LINE` in a process group of its own, past its first report."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(words(line), cwd=folder, start_new_session=True, **pipes)
    for text in process.stderr:
        if "krays/s" in text:
            return process
    raise AssertionError(f"{line} showed no progress and exited with {process.wait()}")


@posix
@pytest.mark.parametrize(("number", "finished"), [("SIGINT", False), whole("SIGTERM", True)])
def test_interrupted_fit_is_saved(number, finished, here, tmp_path):
    """Under its name, and beside a finished one of that name."""
    out, beside = tmp_path / "part.h5", tmp_path / "part.interrupted.h5"
    if finished:
        shutil.copy(here / "volume.h5", out)
    long = TINY.replace("--steps 30", "--steps 1000000")
    with started(f"fit few {long} --out {shlex.quote(str(out))}", here) as process:
        os.killpg(process.pid, getattr(signal, number))
        said, noted = process.communicate(timeout=60)
    assert process.returncode == (1 if finished else 0), noted
    assert said.count("\n") == 1
    assert "Traceback" not in noted
    assert "interrupted at step" in noted
    assert names(tmp_path) == (["part.h5", "part.interrupted.h5"] if finished else ["part.h5"])
    if finished:
        assert out.read_bytes() == (here / "volume.h5").read_bytes()
    volume = load(beside if finished else out)
    assert volume.provenance["ended"].startswith("interrupted at step")
    assert 0 < volume.provenance["steps"] < 1000000


def test_interrupted_twice_gives_up(monkeypatch, capsys):
    """The first Ctrl-C is a question, the second an end, with one line."""
    from raymarch.system.interrupt import catch_first_interrupt

    def work(**_):
        with catch_first_interrupt() as asked:
            signal.raise_signal(signal.SIGINT)
            assert asked()
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(cli.cli.commands["info"], "callback", work)
    with pytest.raises(SystemExit) as ended:
        cli.main(["info", "volume.h5"])
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert (said.out, said.err.strip()) == ("", "interrupted")


@posix
@pytest.mark.parametrize("line", ["info volume.h5", whole("evaluate volume.h5 few --json"), "fit --help"])
def test_a_reader_that_leaves_is_no_traceback(line, here):
    """As under `| head -0`."""
    with subprocess.Popen(words(line), cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        noted = process.stderr.read()
    assert process.returncode in (0, 1)
    assert "Traceback" not in noted
    assert "Exception" not in noted
    assert "Error" not in noted


@posix
@pytest.mark.parametrize("gone", ["HOME", whole("cache"), whole("XDG_CACHE_HOME")])
def test_without_a_home_or_a_cache_it_renders_the_same(gone, here, orbit, tmp_path):
    """Byte by byte. Taichi alone aborts without a home, and crashes at exit where its cache cannot be written."""
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    if gone != "HOME":
        env["HOME" if gone == "cache" else gone] = "/dev/null"
    command = words(f"{ORBIT} --out {shlex.quote(str(tmp_path / 'one'))}")
    run = subprocess.run(command, cwd=here, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0 and "Error" not in run.stderr, run.stderr
    assert names(tmp_path / "one") == [name for name in names(orbit) if "_" not in name]
    for name in names(tmp_path / "one"):
        assert (tmp_path / "one" / name).read_bytes() == (orbit / name).read_bytes()


def test_a_process_that_ends_leaves_its_kernels_on_disk(tmp_path):
    """Taichi alone writes them when its last object is garbage, which as Python ends some of them never are."""
    env = {**os.environ, "TI_OFFLINE_CACHE_FILE_PATH": str(tmp_path)}
    code = "import threading, time; from raymarch.device.grid import Grid; grid = Grid((4, 4, 4), 0)\n"
    code += "threading.Thread(target=lambda kept: time.sleep(60), args=[grid], daemon=True).start()"
    subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True, timeout=120)
    assert list(tmp_path.glob("*.tic"))


@posix
def test_a_fork_is_told_so(here):
    code = """
import os, sys
import raymarch as rm
renderer = rm.Renderer(rm.load("volume.h5"))
child = os.fork()
if child == 0:
    try:
        renderer.render(rm.Camera.look_at((0, -4, 0), width=8, height=8))
    except rm.RaymarchError as error:
        os._exit(3 if "fork" in str(error) else 4)
    os._exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


def test_another_thread_is_told_so():
    from threading import Thread

    from raymarch.device.ray_buffer import RayBuffer
    from raymarch.errors import RaymarchError

    said = []
    with RayBuffer(4) as buffer:

        def look():
            try:
                _ = buffer.fields
            except RaymarchError as error:
                said.append(str(error))

        thread = Thread(target=look)
        thread.start()
        thread.join()
    assert len(said) == 1
    assert "another thread" in said[0]
