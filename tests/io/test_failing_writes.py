"""Laws of writes that fail or are killed, of formats that libraries write: one line, nothing of the library's, nothing
left."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm
from raymarch.io.files.atomic import replace_file, replace_folder, require_writable, system_refusals

resource = pytest.importorskip("resource", reason="limits of POSIX's")
for library in ("tifffile", "zarr", "pydicom"):
    require_extra(library, "formats")
pytestmark = pytest.mark.extra
LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from raymarch.cli import main
main(sys.argv[1:])
"""
KILLED = """
import os, signal, sys
from raymarch.io.files.atomic import replace_folder
with replace_folder(sys.argv[1]) as made:
    (made / "chunk").write_bytes(bytes(1000))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("target", ["o.zarr", "o.dicom", "o.tif", "o.ome.tif"])
def test_a_system_that_takes_no_more_is_one_line_and_leaves_nothing(target, tmp_path):
    """A limit on files stands for a full disk, at which zarr's other chunks went on, and pydicom's error had a
    trace."""
    values = np.random.default_rng(0).integers(0, 60000, (200, 120, 70)).astype("u2")
    np.savez(tmp_path / "a.npz", values=values)
    (tmp_path / "out").mkdir()
    words = [sys.executable, "-c", LIMITED, "convert", tmp_path / "a.npz", tmp_path / "out" / target]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("note: " + str(tmp_path / "a.npz"))]
    assert done.returncode == 1 and len(said) == 1 and "cannot be written (" in said[0], done.stderr
    assert "Traceback" not in said[0] and said[0].endswith(
        ("choose another disk or raise the limit", "choose another disk")
    )
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "With tag (7FE0,0010) got exception: [Errno 28] No space left on device Traceback (most",
            "No space left on de",
        ),
        ("1000000 requested and 130864 written", "No space left on device); free disk space or choose another"),
        ("the library is out of sorts", "the library is out of sorts); check the disk and the path"),
    ],
)
def test_what_libraries_make_of_a_refusal_is_told_as_the_system_s(text, said):
    with pytest.raises(rm.RaymarchError) as caught, system_refusals("a.tif"):
        raise OSError(text)
    assert said in str(caught.value) and "Traceback" not in str(caught.value)


@pytest.mark.parametrize("next_write", ["a file", "a folder", "a check", "a volume"])
def test_a_folder_of_a_killed_process_goes_with_the_next_write_of_any_kind(next_write, tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a.zarr")], check=False)
    assert len(list(tmp_path.iterdir())) == 2  # the folder and its lock
    if next_write == "a file":
        require_writable(tmp_path / "a.txt")
        with replace_file(tmp_path / "a.txt") as temporary:
            temporary.write_text("live")
    elif next_write == "a folder":
        with replace_folder(tmp_path / "b"):
            pass
    elif next_write == "a check":
        require_writable(tmp_path / "a.txt")
    else:
        rm.save(rm.ScalarVolume(np.zeros((3, 4, 5), "u1")), tmp_path / "a.npz")
    assert not list(tmp_path.glob(".raymarch-*"))


def test_a_folder_that_is_being_written_stays(tmp_path):
    with replace_folder(tmp_path / "a") as made:
        (made / "chunk").write_bytes(bytes(10))
        rm.save(rm.ScalarVolume(np.zeros((3, 4, 5), "u1")), tmp_path / "a.npz")
        assert (made / "chunk").exists()
    assert (tmp_path / "a" / "chunk").exists()
