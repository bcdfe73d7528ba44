"""A format of volumes: the .npz of NumPy, which is read without raymarch too."""

import json
import zipfile
from dataclasses import astuple
from pathlib import Path

import numpy as np

import raymarch as rm

ARRAYS = ("density", "features", "world_from_index", "background")


def detect(path):
    """Whether a file is an archive that holds a volume."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return {f"{name}.npy" for name in (*ARRAYS, "notes")} <= set(archive.namelist())


def write(volume, path):
    notes = json.dumps([astuple(volume.activation), dict(volume.provenance)])
    np.savez_compressed(path, notes=notes, **{name: getattr(volume, name) for name in ARRAYS})


def read(path):
    with np.load(path) as archive:
        density, features, affine, background = (archive[name] for name in ARRAYS)
        activation, provenance = json.loads(str(archive["notes"]))
    return rm.Volume(density, features, affine, rm.Activation(*activation), background, provenance)


npz = rm.Format("npz", ".npz", detect, read, write)


ball = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(16, 16, 16))
rm.save(ball, "ball.npz", format=npz)
again = rm.load("ball.npz", format=npz)
assert again.density.tobytes() == ball.density.tobytes() and again.activation == ball.activation
assert rm.describe("ball.npz", format=npz).shape == (16, 16, 16)


def fail(volume, path):
    path.write_bytes(b"half of it")
    raise RuntimeError("the cat pulled the plug")


before = Path("ball.npz").read_bytes()
try:
    rm.save(ball, "ball.npz", format=rm.Format("npz", ".npz", detect, read, fail))
except rm.RaymarchError as error:
    assert "format 'npz': write of ball.npz raised RuntimeError: the cat pulled the plug" in str(error)
assert Path("ball.npz").read_bytes() == before and [str(file) for file in Path().iterdir()] == ["ball.npz"]


def read_part(path, *, selection=None):
    selection = selection or rm.Selection()
    values = np.memmap(path, np.uint8, "r", shape=(16, 20, 24))
    place = np.eye(4) @ selection.index_from_part(values.shape)
    return rm.ScalarVolume(np.array(values[selection.slices(values.shape)]), place)


scan = rm.Format("scan", ".scan", lambda path: False, read_part, lambda volume, path: volume.values.tofile(path))
rm.save(rm.ScalarVolume(np.arange(16 * 20 * 24).reshape(16, 20, 24).astype(np.uint8)), "a.scan", format=scan)
part = rm.load("a.scan", format=scan, stride=(1, 2, 3))
assert part.shape == (16, 10, 8) and part.spacing.tolist() == [1, 2, 3]
