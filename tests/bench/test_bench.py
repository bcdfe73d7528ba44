"""Law: what speeds are measured on is the same work everywhere, and a benchmark says what it measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from raymarch import cli, runtime
from raymarch.bench import speed
from raymarch.bench.frames import KINDS, bench_frames
from raymarch.bench.start import bench_start
from raymarch.bench.workload import views_of_blobs, workload
from raymarch.device import memory, pool
from raymarch.device.grid_layout import MAX_SLOTS
from raymarch.device.layout_choice import current_choice
from raymarch.errors import RaymarchError

MORE = (os.cpu_count() or 1) + 1  # threads than cores


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "raymarch", *words], capture_output=True, text=True, check=False, timeout=300
    )


def test_the_workload_has_as_many_samples_as_its_definition():
    assert workload(128, 256).samples == 9_582_742


def test_views_of_the_fit_show_something_and_are_held_apart():
    train, test = views_of_blobs(32, 24)
    assert len(train) == 7 * len(test)
    assert train.has_alpha
    shown = train.images[..., 3].mean() / 255
    assert 0.1 < shown < 0.9
    seen = {tuple(c.position) for c in train.cameras} & {tuple(c.position) for c in test.cameras}
    assert not seen


FEW = ("--n", "16", "--resolution", "32", "--repeats", "1", "--json")


def test_bench_prints_the_figures_of_a_march_as_json(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "march", *FEW])
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    record = json.loads(said.out)
    assert record["samples"] == workload(16, 32).samples
    assert record["march_msamples"] > 0


@pytest.mark.parametrize(("what", "names"), [("frames", list(KINDS)), ("xray", ["exact", "joseph"])])
def test_bench_prints_the_figures_of_each_kind(what, names, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", what, *FEW])
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    record = json.loads(said.out)[what]
    assert [one.get("kind") or one["quadrature"] for one in record] == names
    assert all((one["n"], one["resolution"], one["repeats"]) == (16, 32, 1) for one in record)
    assert all(one.get("ms", 1) > 0 and one.get("back_seconds", 1) > 0 for one in record)


def test_a_peer_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "vtk", None)
    with pytest.raises(RaymarchError, match="vtk is not installed, .* pip install vtk, or leave --peer out"):
        bench_frames(8, 8, repeats=1, peer=True)


@pytest.mark.whole
def test_the_start_is_timed_with_an_empty_cache_and_a_full_one():
    speed = bench_start(repeats=1)
    assert 0 < speed.python < speed.picture and speed.picture < speed.picture_cold and speed.step < speed.step_cold


@pytest.mark.whole
def test_bench_prints_the_figures_of_all_on_many_threads_and_of_a_fit_that_gets_a_picture():
    done = run("bench", "all", *FEW, "--steps", "16", "--threads", str(MORE))
    assert done.returncode == 0 and f"{MORE} threads on" in done.stderr, done.stderr
    record = json.loads(done.stdout)
    assert record["adjoint_msamples"] > 0
    assert (record["n"], record["resolution"], record["repeats"]) == (16, 32, 1)
    choice = current_choice().choice
    assert (record["read_block"], record["block"]) == (choice.read, choice.gradient)  # the adjoint alone: no Adam
    assert len(record["frames"]) == len(KINDS) and len(record["xray"]) == 2
    fit = record["fit"]
    assert fit["steps"] == 16
    assert fit["psnr"] > 15
    assert fit["seconds"] > fit["start_seconds"] > 0


class Stepped:
    """A fitter of 100 steps that take a second each, and whose reports take a minute."""

    rays_a_step, history, box = 1000, (), None

    def __init__(self, clock):
        self.clock, self.steps_done = clock, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def progress(self):
        return self.steps_done / 100

    def step(self):
        self.steps_done += 1
        self.clock.now += 1.0

    def report(self):
        self.clock.now += 60.0

    def volume(self):
        return None


def test_the_time_of_a_step_is_that_of_steps_alone(monkeypatch):
    clock, scores = SimpleNamespace(now=0.0), SimpleNamespace(psnr=20.0)
    monkeypatch.setattr(speed, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(speed, "views_of_blobs", lambda: ([], []))
    monkeypatch.setattr(speed, "Fitter", lambda *_, **__: Stepped(clock))
    monkeypatch.setattr(speed, "Fit", lambda *_: SimpleNamespace(evaluate=lambda _: scores))
    found = speed.bench_fit(steps=100)
    assert (found.step_ms, found.rays_per_second) == (1000, 1000)
    assert (found.start_seconds, found.seconds) == (1, 160)


def test_a_benchmark_takes_no_more_slots_than_a_grid_has(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "benchmarks")
    import peers

    monkeypatch.setattr(peers, "THREADS", 2 * MAX_SLOTS)
    ours = peers.Raymarch(workload(8, 8))
    for owner in (ours.read_grid, ours.grid, ours.rays):
        owner.close()
    assert ours.slots == (MAX_SLOTS if runtime.runs_on_cpu() else 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--n", "3"), "4<=x<=1024"),
        (("--block", "3"), "'3' is not one of '1', '2', '4', '8'"),
    ],
)
def test_what_bench_cannot_do_is_said(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "march", "--repeats", "1", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_workload_out_of_bounds_is_said():
    with pytest.raises(RaymarchError, match="want 4 to 1024"):
        workload(2, 16)


def test_a_workload_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 30)
    monkeypatch.setattr(pool, "release", lambda: 0)  # what others compiled for is kept
    with pytest.raises(RaymarchError, match="1024 x 1024 x 1024 needs .* take a smaller n or resolution"):
        workload(1024, 16)
    with pytest.raises(RaymarchError, match="take a smaller n or resolution"):
        workload(16, 8192)
