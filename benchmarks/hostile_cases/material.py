"""What lies in a case's folder: a small image set, the volume that it shows, and what has become of them."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

from hostile_cases.place import temporary_of

MATERIAL = """
import json, os
ball = rm.Volume.from_function(
    lambda p: 12 * np.clip(5 - 8 * np.linalg.norm(p, axis=-1), 0, 1), lambda p: 0.5 + 0.6 * p,
    shape=(16,) * 3, box=((-0.8,) * 3, (0.8,) * 3))
rm.save(ball, "ball.h5")
like = rm.Camera.look_at((1, 0, 0), fov=0.5, width=24, height=24)
cameras = [c for e in (30, -20) for c in rm.orbit((0, 0, 0), 4, 6, elevation=e, like=like)]
with rm.Renderer(ball) as renderer:
    for split, some in (("train", cameras), ("test", cameras[1:3])):
        os.makedirs(f"set/{split}")
        frames = []
        for i, camera in enumerate(some):
            seen = renderer.render(camera, "black")
            alpha = seen.opacity[..., None]
            image = np.concatenate([seen.image / np.maximum(alpha, 1e-6), alpha], -1)
            rgba = np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)
            from PIL import Image
            Image.fromarray(rgba).save(f"set/{split}/r_{i}.png")
            frames.append({"file_path": f"./{split}/r_{i}", "transform_matrix": camera.world_from_camera.tolist()})
        with open(f"set/transforms_{split}.json", "w") as file:
            json.dump({"camera_angle_x": 0.5, "frames": frames}, file)
"""


def make_place(root: Path, number: int) -> Path:
    """A new folder with `set` (12 views of 24 x 24 to fit, 2 to test) and `ball.h5` in it."""
    folder = root / f"{number:03d}"
    shutil.copytree(root / "material", folder)
    temporary_of(folder).mkdir()
    return folder


def snapshot(folder: Path) -> dict[str, str]:
    """What lies in a folder: the digest of each file, by its path."""
    found = {}
    for top, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(top, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                what = f"link to {os.readlink(path)}"
            elif not stat.S_ISREG(mode):
                what = "folder" if stat.S_ISDIR(mode) else "special"
            elif path.stat().st_size > 64 << 20:
                what = f"{path.stat().st_size} bytes of {path.stat().st_mtime_ns}"
            else:
                what = hashlib.sha256(path.read_bytes()).hexdigest()
            found[path.relative_to(folder).as_posix()] = what
    return found
