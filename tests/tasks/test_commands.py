"""Law: what the command line has workers do has the bytes of what it does itself."""

from __future__ import annotations

import json
import subprocess
import sys

import jobs
import numpy as np
import pytest
import sets
from click.testing import CliRunner

import raymarch as rm
from raymarch.cli import cli, main


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A volume's file."""
    path = tmp_path_factory.mktemp("commands") / "ball.h5"
    rm.save(jobs.ball(), path)
    return path


def run(*words):
    """stdout of the command in a process of its own, which is in single precision."""
    done = subprocess.run([sys.executable, "-m", "raymarch", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pictures_and_scores_have_the_bytes_of_one_process(file, tmp_path):
    data = sets.write_set(tmp_path / "set")
    orbit = ("--orbit", 3, "--size", 24, "--extras", "--clip-box", "-1,-1,-1,0.3,1,1")
    run("render", file, *orbit, "--out", tmp_path / "one")
    run("render", file, *orbit, "--out", tmp_path / "two", "--workers", 2)
    names = sorted(path.name for path in (tmp_path / "one").glob("*.png"))
    assert len(names) == 9
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    scores = [
        run("evaluate", file, data, "--split", "train", *more).rsplit(" s an image")[0].rsplit(" ", 1)[0]
        for more in ((), ("--workers", 2))
    ]
    assert scores[0] == scores[1]


def test_a_sweep_says_each_fit_and_draws_them(tmp_path):
    data = sets.write_set(tmp_path / "set")
    words = ("--preset", "quick", "--set", "rays=64,128", "--set", "resolution=16", "--steps", 2, "--held-out", "train")
    said = run("sweep", data, *words, "--out", tmp_path / "out").splitlines()
    assert [line.split(":")[0] for line in said[:2]] == ["rays-64_resolution-16", "rays-128_resolution-16"]
    assert all("dB, 2 steps in" in line for line in said[:2])
    assert "2 fits, the best rays-" in said[2]
    assert (tmp_path / "out" / "sweep.png").stat().st_size > 1000
    told = json.loads(run("sweep", data, *words, "--out", tmp_path / "out", "--json"))
    assert [fit["found"] for fit in told["fits"]] == [True, True]


def test_a_sweep_reads_the_set_as_a_fit_does(tmp_path):
    data, out = sets.write_set(tmp_path / "set"), tmp_path / "out"
    words = ("--preset", "quick", "--set", "rays=64", "--set", "resolution=16", "--steps", 2, "--held-out", "train")
    read = ("--box", "-0.5,-0.4,-0.3,0.5,0.4,0.3", "--background", "1,0,0", "--downscale", 2)
    run("sweep", data, *words, *read, "--out", out)
    swept = rm.load(out / "rays-64_resolution-16" / "volume.h5")
    run("fit", data, *words[:-2], *read, "--out", tmp_path / "fit.h5")
    fitted = rm.load(tmp_path / "fit.h5")
    assert swept.background == fitted.background == (1, 0, 0)
    np.testing.assert_array_equal(swept.world_from_index, fitted.world_from_index)
    np.testing.assert_array_equal(swept.density, fitted.density)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (
            ("--workers", "2", "--cluster", "local"),
            "--workers are processes here, --cluster has its own; give one of them",
        ),
        (("--cluster", " "), "--cluster is empty, want a Dask scheduler's address"),
    ],
    ids=["both", "no address"],
)
@pytest.mark.parametrize("verb", ["render", "evaluate", "sweep"])
def test_one_kind_of_workers_is_asked_for(verb, asked, answer, file, tmp_path):
    words = {
        "render": ["--orbit", "2", "--out", str(tmp_path / "out")],
        "evaluate": [str(sets.write_set(tmp_path / "set")), "--split", "train"],
        "sweep": ["--set", "rays=64", "--out", str(tmp_path / "out")],
    }[verb]
    done = CliRunner().invoke(cli, [verb, str(file), *words, *asked])
    assert done.exit_code == 2
    assert answer in done.output
    assert not (tmp_path / "out").exists()


def test_a_sweep_says_at_once_what_would_fail_after_its_fits(tmp_path):
    data, out = sets.write_set(tmp_path / "set"), tmp_path / "out"
    (out / "sweep.png").mkdir(parents=True)
    words = ["sweep", str(data), "--set", "rays=64", "--out", str(out)]
    done = CliRunner().invoke(cli, words)
    assert "is a folder where the plot goes; move it, or choose another --out" in str(done.exception)
    assert [path.name for path in out.iterdir()] == ["sweep.png"]


@pytest.mark.parametrize("words", [("fit",), ("sweep", "--set", "seed=1")], ids=["fit", "sweep"])
def test_the_shell_has_no_none(words, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([*words, str(tmp_path), "--seconds", "0", "--out", "a.h5"])
    assert "--seconds is 0.0, want a number over 0 and at most 1e+09\n" in capsys.readouterr().err


@pytest.mark.parametrize("rank", [0, 1])
def test_the_first_of_several_ranks_speaks_for_all(rank, file, monkeypatch, capsys):
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit) as end:
        main(["fit", str(file), "--nosuch", "1"])
    assert end.value.code == 2
    assert ("--nosuch" in capsys.readouterr().err) == (rank == 0)
    with pytest.raises(SystemExit):
        main(["info", str(file)])
    assert ("2 ranks were started, and each does all of it" in capsys.readouterr().err) == (rank == 0)
