"""Law: a disk that is full while a volume is written is one line, and leaves nothing, whatever library writes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from skips import require_extra

SUFFIXES = (
    ".nrrd", ".nhdr", ".nii", ".nii.gz", ".mha", ".mhd", ".mrc", ".map.gz", ".vti", ".npy", ".npz", ".h5", ".xdmf",
)  # fmt: skip
CODE = """
import gc, logging, resource, signal, sys
import numpy as np, raymarch as rm, mrcfile, nibabel
logging.disable(logging.WARNING)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
volume = rm.ScalarVolume(np.random.default_rng(0).integers(0, 30000, (60, 60, 60)).astype(np.int16))
suffixes, lost = sys.argv[2:], []
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
for suffix in suffixes:
    try:
        rm.save(volume, f"{sys.argv[1]}/a{suffix}")
    except rm.RaymarchError as error:
        print(error)
    gc.collect()
"""


@pytest.mark.extra
@pytest.mark.skipif(os.name != "posix", reason="a limit on the size of files is POSIX's")
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path):
    for name in ("mrcfile", "nibabel"):
        require_extra(name, "formats")
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", CODE, str(tmp_path), *SUFFIXES],
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("[Taichi]")]
    assert len(lines) == len(SUFFIXES), done.stdout
    for line in lines:
        assert "cannot be written (File too large); the file is over a size limit" in line
    assert not done.stderr.strip() and not list(tmp_path.iterdir()), done.stderr
