"""Script of test_worker: the worker's way behind features, on COLMAP's synthetic data; prints one line of JSON.

pycolmap is here, in a process without Pillow, and not in the tests'.
"""

import sys
from pathlib import Path

import numpy as np
import pycolmap

from raymarch.sfm import worker
from raymarch.sfm.messages import Messages

folder, lost = Path(sys.argv[1]), sys.argv[2:]
messages = Messages()
pycolmap.logging.minloglevel = 3


def synthesize(pc, job, database, attempt, messages):
    """In place of features and matches: pictures of a cloud of points, and two without any."""
    pc.set_random_seed(1)
    options = pc.SyntheticDatasetOptions()
    options.num_rigs, options.num_frames_per_rig, options.num_points3D = 1, 12, 150
    options.camera_params = [1280.0, 512.0, 384.0, 0.02]
    with pc.Database.open(database) as opened:
        global truth
        truth = pc.synthesize_dataset(options, opened)
        job["groups"] = [[image.name for image in opened.read_all_images()] + lost]


worker.extract, worker.match = synthesize, lambda *_: None
job = {"groups": [], "images": str(folder), "model_folder": str(folder / "sparse"), "matching": "exhaustive"}
job |= {"model": "OPENCV", "lens_from": 10, "seed": 0, "threads": 1}
result = worker.reconstruct(pycolmap, job, folder, messages)

# The written model against the truth: centres differ by one similarity, and seen points by nothing.
model = pycolmap.Reconstruction(folder / "sparse")
names = [image.name for image in truth.images.values()]
here, there = (
    np.array([one.find_image_with_name(name).projection_center() for name in names]) for one in (model, truth)
)
here, there = here - here.mean(0), there - there.mean(0)
here, there = here / np.linalg.norm(here), there / np.linalg.norm(there)
u, s, vt = np.linalg.svd(there.T @ here)
turn = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
back = np.array(result["sfm_from_world"]) @ np.array(result["world_from_sfm"])
messages.tell(result={**result, "off": float(np.abs(here @ turn.T - there).max()), "back": back.tolist()})
