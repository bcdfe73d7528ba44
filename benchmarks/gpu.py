"""All that is to be known of a GPU, in one command: python benchmarks/gpu.py [--arch cuda] [--resolution 1024].

First whether it is right: an image and a gradient of SH degrees 0 and 2 beside the CPU's, each in a process of its own.
Then how fast: `raymarch bench`, and `benchmarks/peers.py` on 128^3 and 256^3 beside PyTorch and Dr.Jit where they are
installed. Prints one JSON record to stdout, progress to stderr. `--arch cpu` runs the same without a GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from plainly import plainly

HERE = Path(__file__).resolve().parent
DEGREES = (0, 2)
SIZES = (128, 256)
ONE = """
import sys
from dataclasses import replace
import numpy as np
from raymarch.engine import ti
from raymarch.device.grid import Grid
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.kernels.field.copies import clear_gradients
from raymarch.device.ray_buffer import RayBuffer
from raymarch.runtime import runs_on_cpu, start
from raymarch.volumes.activation import Activation
from raymarch.bench.workload import workload
start(sys.argv[1])
degree, work = int(sys.argv[2]), workload(48, 96)
features = np.random.default_rng(0).normal(size=(48, 48, 48, 3 * (degree + 1) ** 2)).astype(np.float32)
volume = replace(work.volume, features=features, activation=Activation("softplus", -1.0, 1.0, "sigmoid"))
with Grid(volume.shape, degree, slots=2 if runs_on_cpu() else 1) as grid, RayBuffer(len(work.rays)) as rays:
    grid.upload(volume)
    rays.upload(work.rays)
    rays.set_image_gradient(work.d_image)
    call = (grid.fields, rays.fields, grid.variant, len(work.rays), grid.voxel, 1e-4, 1e-6, ti.Vector([1.0, 1.0, 1.0]))
    march(*call)
    clear_gradients(grid.fields)
    march_adjoint(*call)
    grid.reduce_slots()
    density, colour = grid.download_gradient()
    np.savez(sys.argv[3], image=rays.image(len(work.rays)), density=density, colour=colour)
"""


def note(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def results(arch: str, degree: int, folder: str) -> dict[str, np.ndarray]:
    """Image and gradients as one arch computes them."""
    path = Path(folder) / f"{arch}-{degree}-{len(list(Path(folder).iterdir()))}.npz"
    subprocess.run([sys.executable, "-c", ONE, arch, str(degree), str(path)], check=True, capture_output=True)
    with np.load(path) as arrays:
        return dict(arrays)


def differences(arch: str) -> dict:
    """Relative L2 distance of each result from the CPU's, by degree."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for degree in DEGREES:
            note(f"image and gradient of SH degree {degree} on {arch} and on the CPU")
            here, there = results(arch, degree, folder), results("cpu", degree, folder)
            found[str(degree)] = {
                name: float(np.linalg.norm(here[name] - there[name]) / np.linalg.norm(there[name])) for name in there
            }
    return found


def told(*words: str) -> dict:
    """The JSON that a command prints."""
    note(" ".join(word for word in words if word != "-m"))
    ran = subprocess.run([sys.executable, *words], check=True, capture_output=True)
    for line in ran.stderr.decode().splitlines():
        note(f"  {line}")
    return json.loads(ran.stdout.splitlines()[-1])


def main() -> None:
    """Check, measure, print."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--arch", choices=("cpu", "cuda"), default="cuda")
    ask.add_argument("--resolution", type=int, default=1024)
    a = ask.parse_args()
    size = ["--resolution", str(a.resolution), "--arch", a.arch, "--json"]
    record = {
        "differs": differences(a.arch),
        "march": {str(n): told("-m", "raymarch", "bench", "march", "--n", str(n), *size) for n in SIZES},
        "fit": told("-m", "raymarch", "bench", "fit", "--arch", a.arch, "--json"),
        "peers": {str(n): told(str(HERE / "peers.py"), "--n", str(n), *size) for n in SIZES},
    }
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    plainly(main)
