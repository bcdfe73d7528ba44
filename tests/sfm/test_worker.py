"""Laws of the worker: it finds the cameras that made the points, says who has none, and never outlives its caller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skips import require_extra

require_extra("pycolmap", "sfm", load=False)

from raymarch.errors import RaymarchError  # noqa: E402
from raymarch.sfm import worker_process  # noqa: E402
from raymarch.sfm.worker_process import run_worker  # noqa: E402

pytestmark = pytest.mark.extra
ROOT = Path(__file__).resolve().parents[2]
NEVER = float("inf")


def job(folder, names, **changes):
    made = {"groups": [names], "images": str(folder), "model_folder": str(folder / "sparse"), "matching": "exhaustive"}
    made |= {"model": "OPENCV", "start_model": "SIMPLE_RADIAL", "lens_from": 10, "max_size": 640, "features": 512}
    return {**made, "threads": 1, "seed": 0, **changes}


def flat(folder, count=3):
    for i in range(count):
        Image.fromarray(np.full((48, 64, 3), 60 * i, np.uint8)).save(folder / f"{i}.png")
    return [f"{i}.png" for i in range(count)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What two runs on the same synthetic data told, and their folders."""
    out = []
    for i in range(2):
        folder = tmp_path_factory.mktemp(f"run{i}")
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("synthetic.py")), str(folder), "lost.png"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        out.append((folder, [json.loads(line) for line in done.stdout.splitlines()]))
    return out


def test_cameras_are_those_that_made_the_points(runs):
    result = runs[0][1][-1]["result"]
    assert len(result["registered"]) == 12 and result["off"] < 1e-3 and result["error"] < 0.1
    np.testing.assert_allclose(result["back"], np.eye(4), atol=1e-9)
    assert [camera["model"] for camera in result["cameras"]] == ["OPENCV"]  # twelve share it
    assert result["cameras"][0]["params"][0] == pytest.approx(1280, rel=1e-3)


def test_who_has_no_camera_is_told_why(runs):
    (left,) = runs[0][1][-1]["result"]["left_out"]
    assert left["name"] == "lost.png" and left["why"].startswith("no features (0)")


def test_progress_counts_up_to_all(runs):
    counts = [line["show"] for line in runs[0][1] if "show" in line]
    registered = [done for what, done, of in counts if what == "registered"]
    assert registered == sorted(registered) and registered[0] == 2 and registered[-1] == 12


def test_the_same_seed_and_one_thread_give_the_same_bytes(runs):
    first, second = ((folder / "sparse").iterdir() for folder, _ in runs)
    files = {path.name: path.read_bytes() for path in first}
    assert {"cameras.bin", "images.bin", "points3D.bin"} <= set(files)
    assert {path.name: path.read_bytes() for path in second} == files


def test_photographs_without_features_are_one_line(tmp_path):
    shown = []
    (tmp_path / "work").mkdir()
    with pytest.raises(RaymarchError, match="0 of 3 photographs have features, want 3 or more"):
        run_worker(tmp_path / "work", job(tmp_path, flat(tmp_path)), lambda *count: shown.append(count), NEVER)
    assert ("features", 3, 3) in shown and ("matching", 3, 3) in shown


@pytest.mark.parametrize(
    ("how", "said"), [({"groups": None}, "COLMAP failed"), ({"start_model": "NONE"}, "COLMAP (failed|ended)")]
)
def test_what_fails_in_it_is_one_line(how, said, tmp_path):
    (tmp_path / "work").mkdir()
    with pytest.raises(RaymarchError, match=said) as caught:
        run_worker(tmp_path / "work", job(tmp_path, flat(tmp_path), **how), lambda *_: None, time.monotonic() + 60)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("os.kill(os.getpid(), 9)", "COLMAP ended with -9 while features 1 of 3"),
        ("os.write(2, b'F1 a.cc:7] Check failed: x == y'); os._exit(6)", "ended with 6 .*Check failed: x == y"),
        ("os.write(2, b'*** Aborted at 1\\n*** SIGABRT by PID 1'); time.sleep(60)", "an abort .*SIGABRT"),
    ],
    ids=["killed", "check", "abort that hangs"],
)
def test_a_worker_that_dies_is_one_line(ends, said, tmp_path, monkeypatch):
    code = "import os, time; from raymarch.sfm.messages import Messages; m = Messages(); m.show('features', 1, 3); "
    popen = subprocess.Popen
    command, env = [sys.executable, "-c", code + ends], {**os.environ, "PYTHONPATH": str(ROOT)}
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: popen(command, env=env, **options))
    (tmp_path / "work").mkdir()
    with pytest.raises(RaymarchError, match=said) as caught:
        run_worker(tmp_path / "work", {}, lambda *_: None, time.monotonic() + 30)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("how", ["time", "interrupt"])
def test_it_ends_with_its_caller(how, tmp_path, monkeypatch):
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])

    def interrupt(*_):
        raise KeyboardInterrupt

    (tmp_path / "work").mkdir()
    until = time.monotonic() if how == "time" else NEVER
    with pytest.raises(RaymarchError if how == "time" else KeyboardInterrupt):
        run_worker(tmp_path / "work", job(tmp_path, flat(tmp_path)), interrupt, until)
    assert started[0].wait(10) is not None


@pytest.mark.parametrize("how", ["result", "death"])
def test_nobody_reads_from_it_any_more_when_it_is_over(how, tmp_path, monkeypatch):
    """Its pipe is closed then; whoever still reads from it gets an error out of nowhere."""
    listen, popen, readers = worker_process._listen, subprocess.Popen, []

    def slowly(*args):
        readers.append(threading.current_thread())
        listen(*args)
        time.sleep(0.3)

    code = "print('{\"result\": {}}', flush=True); import time; time.sleep(60)" if how == "result" else "pass"
    monkeypatch.setattr(worker_process, "_listen", slowly)
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: popen([sys.executable, "-c", code], **options))
    (tmp_path / "work").mkdir()
    with nullcontext() if how == "result" else pytest.raises(RaymarchError):
        run_worker(tmp_path / "work", {}, lambda *_: None, time.monotonic() + 30)
    assert len(readers) == 1 and not readers[0].is_alive()


def test_it_ends_when_its_caller_was_killed(tmp_path):
    """Its stdin is the caller's end of a pipe."""
    command = [sys.executable, "-m", "raymarch.sfm.worker", str(tmp_path)]
    code = "import time; from pathlib import Path; from raymarch.sfm import worker; worker.reconstruct = lambda *_: "
    code += "time.sleep(60); worker.main(Path('.'))"
    (tmp_path / "job.json").write_text("{}")
    command = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
        worker.stdin.close()
        assert worker.wait(20) == 3


def test_pillow_and_taichi_stay_out_of_its_process():
    code = "import sys, raymarch.sfm.worker; print(sorted({'PIL', 'taichi', 'h5py', 'matplotlib'} & set(sys.modules)))"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
