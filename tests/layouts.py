"""Image sets of many layouts, written by the equations of each from cameras that are known in OpenCV's convention.

Independent of the package: `Known` projects by itself, and each writer spells its layout out.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from PIL import Image


@dataclass(frozen=True)
class Known:
    """Known camera: camera_from_world (R, t) with x right, y down, z ahead; pixels from the image's corner."""

    rotation: np.ndarray
    translation: np.ndarray
    focal: tuple[float, float]
    principal: tuple[float, float]
    size: tuple[int, int]
    lens: dict = field(default_factory=dict)
    fisheye: bool = False

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """Pixels (n, 2) of points (n, 3) of the world."""
        x, y, z = self.rotation @ points.T + self.translation[:, None]
        x, y = x / z, y / z
        k1, k2, k3, k4, p1, p2 = (self.lens.get(name, 0.0) for name in ("k1", "k2", "k3", "k4", "p1", "p2"))
        r = np.hypot(x, y)
        if self.fisheye:
            theta = np.arctan(r)
            bent = theta * (1 + k1 * theta**2 + k2 * theta**4 + k3 * theta**6 + k4 * theta**8)
            u, v = x * bent / r, y * bent / r
        else:
            radial = 1 + k1 * r**2 + k2 * r**4 + k3 * r**6 + k4 * r**8
            u = x * radial + 2 * p1 * x * y + p2 * (r**2 + 2 * x**2)
            v = y * radial + p1 * (r**2 + 2 * y**2) + 2 * p2 * x * y
        return np.stack([self.focal[0] * u + self.principal[0], self.focal[1] * v + self.principal[1]], axis=1)

    @property
    def centre(self) -> np.ndarray:
        return -self.rotation.T @ self.translation

    @property
    def matrix(self) -> np.ndarray:
        return np.array([[self.focal[0], 0, self.principal[0]], [0, self.focal[1], self.principal[1]], [0, 0, 1]])

    def world_from_camera(self, *signs: int) -> np.ndarray:
        """Pose (4, 4) whose camera axes are OpenCV's times these signs."""
        out = np.eye(4)
        out[:3, :3] = self.rotation.T * signs
        out[:3, 3] = self.centre
        return out


def turned(rng: np.random.Generator) -> np.ndarray:
    """A rotation of chance."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def known(count=9, seed=0, size=(8, 6), **how) -> list[Known]:
    rng = np.random.default_rng(seed)
    focal, principal = (rng.uniform(7, 9), rng.uniform(7, 9)), (rng.uniform(3, 5), rng.uniform(2, 4))
    each = [Known(turned(rng), rng.uniform(-1, 1, 3) + (0, 0, 4), focal, principal, size, **how) for _ in range(count)]
    return each


def picture(i: int, size=(8, 6), channels=3) -> np.ndarray:
    return np.random.default_rng(100 + i).integers(0, 256, (size[1], size[0], channels), dtype=np.uint8)


def draw(file: Path, i: int, size, channels=3) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture(i, size, channels)).save(file)


def written(numbers) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


def llff(folder: Path, cameras: list[Known], inner="images", reduced=1, suffix="png") -> Path:
    rows = []
    for i, camera in enumerate(cameras):
        w, h = camera.size
        draw(folder / inner / f"im {i:02d}.{suffix}", i, (w // reduced, h // reduced))
        right, down, ahead = camera.rotation
        hwf = (h, w, camera.focal[0])
        rows.append([*np.stack([down, right, -ahead, camera.centre, hwf], axis=1).ravel(), 1.5, 6.5])
    np.save(folder / "poses_bounds.npy", np.array(rows))
    return folder


def middlebury(folder: Path, cameras: list[Known]) -> Path:
    lines = [str(len(cameras))]
    for i, camera in enumerate(cameras):
        draw(folder / f"temple{i:04d}.png", i, camera.size)
        k = camera.matrix.copy()
        k[:2, 2] -= 0.5
        lines.append(f"temple{i:04d}.png {written(k)} {written(camera.rotation)} {written(camera.translation)}")
    (folder / "temple_par.txt").write_text("\n".join(lines) + "\n")
    box = "The (tight) bounding box for the temple model is\n(-1.5 -1 -0.25)\n(1.0 2e0 0.5)\n"
    (folder / "README.txt").write_text("temple data set\n\n" + box)
    return folder


def dtu(folder: Path, cameras: list[Known], masks=True) -> Path:
    arrays = {}
    for i, camera in enumerate(cameras):
        draw(folder / "image" / f"{i:06d}.png", i, camera.size)
        k = camera.matrix.copy()
        k[:2, 2] -= 0.5
        projection = np.eye(4)
        projection[:3] = -2.5 * k @ np.column_stack([camera.rotation, camera.translation])  # known but for a factor
        arrays[f"world_mat_{i}"] = projection
        arrays[f"scale_mat_{i}"] = np.array([[2, 0, 0, 1], [0, 2, 0, 0.5], [0, 0, 2, -1], [0, 0, 0, 1.0]])
        if masks:
            mask = np.zeros((camera.size[1], camera.size[0]), np.uint8)
            mask[1:3, i % 4 : i % 4 + 3] = 255
            (folder / "mask").mkdir(exist_ok=True)
            Image.fromarray(mask).save(folder / "mask" / f"{i:03d}.png")
    np.savez(folder / "cameras.npz", **arrays)
    return folder


def nsvf(folder: Path, cameras: list[Known], parts="000001122", lines=False) -> Path:
    (folder / "pose").mkdir(parents=True)
    for i, camera in enumerate(cameras):
        name = f"{parts[i]}_{i:04d}" if parts else f"x{i:04d}"
        draw(folder / "rgb" / f"{name}.png", i, camera.size, 4)
        rows = camera.world_from_camera(1, 1, 1)
        (folder / "pose" / f"{name}.txt").write_text("\n".join(written(row) for row in rows) + "\n")
    (fx, _), (cx, cy), (w, h) = cameras[0].focal, cameras[0].principal, cameras[0].size
    k = np.eye(4)
    k[:3, :3] = cameras[0].matrix
    text = "\n".join(written(row) for row in k)
    if lines:
        text = f"{2 * fx!r} {2 * cx!r} {2 * cy!r} 0.\n0. 0. 0.\n0.\n1.\n{2 * h} {2 * w}\n"
    (folder / "intrinsics.txt").write_text(text)
    (folder / "bbox.txt").write_text("-1 -2 -3 1 2 3.5 0.4\n")
    return folder


def polycam(folder: Path, cameras: list[Known], inner="", kind="") -> Path:
    cycle = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0.0]])  # what is read: z, x, y
    for i, camera in enumerate(cameras):
        draw(folder / inner / f"{kind}images" / f"{7000 + i}.jpg", i, camera.size)
        pose = camera.world_from_camera(1, -1, -1)
        pose[:3] = np.linalg.inv(cycle) @ pose[:3]
        document = {f"t_{r}{c}": pose[r, c] for r in range(3) for c in range(4)}
        document |= dict(zip(("fx", "fy", "cx", "cy"), (*camera.focal, *camera.principal), strict=True))
        document |= {"width": camera.size[0], "height": camera.size[1], "blur_score": 90.5, "timestamp": 7000 + i}
        (folder / inner / f"{kind}cameras").mkdir(exist_ok=True)
        (folder / inner / f"{kind}cameras" / f"{7000 + i}.json").write_text(json.dumps(document))
    return folder


def quaternion(rotation: np.ndarray) -> list[float]:
    """x, y, z, w: the axis and the angle of a rotation."""
    values, vectors = np.linalg.eig(rotation)
    axis = np.real(vectors[:, np.argmin(abs(values - 1))])
    antisymmetric = np.array(
        [rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0], rotation[1, 0] - rotation[0, 1]]
    )
    angle = math.atan2(axis @ antisymmetric, np.trace(rotation) - 1)
    return [*(axis * math.sin(angle / 2)), math.cos(angle / 2)]


def record3d(folder: Path, cameras: list[Known], per_frame=False) -> Path:
    poses = []
    for i, camera in enumerate(cameras):
        draw(folder / "rgb" / f"{i}.png", i, camera.size)
        poses.append([*quaternion(camera.rotation.T * (1, -1, -1)), *camera.centre])
    w, h = cameras[0].size
    document = {"poses": poses, "K": cameras[0].matrix.T.ravel().tolist(), "w": w, "h": h, "fps": 60}
    if per_frame:
        document["K"] = [1.0] * 9
        document["perFrameIntrinsicCoeffs"] = [[*camera.focal, *camera.principal] for camera in cameras]
    (folder / "metadata.json").write_text(json.dumps(document))
    return folder


def metashape(folder: Path, cameras: list[Known], placed=True, labels="", component=True) -> Path:
    rotation, shift, scale = np.eye(3), np.zeros(3), 1.0
    if placed:
        rotation, shift, scale = turned(np.random.default_rng(5)), np.array([3.0, -2, 1]), 4.0
    (w, h), lens = cameras[0].size, cameras[0].lens
    names = {"k1": "k1", "k2": "k2", "k3": "k3", "k4": "k4", "p1": "p2", "p2": "p1"}  # ours to theirs
    numbers = {names[name]: value for name, value in lens.items()}
    numbers |= {"f": cameras[0].focal[1], "b1": cameras[0].focal[0] - cameras[0].focal[1]}
    numbers |= {"cx": cameras[0].principal[0] - w / 2, "cy": cameras[0].principal[1] - h / 2}
    kind = "fisheye" if cameras[0].fisheye else "frame"
    inner = "".join(f"<{name}>{value!r}</{name}>" for name, value in numbers.items())
    calibration = (
        f'<calibration type="{kind}" class="adjusted"><resolution width="{w}" height="{h}"/>{inner}</calibration>'
    )
    shown = []
    for i, camera in enumerate(cameras):
        draw(folder / "photos" / f"DSC {i:04d}.png", i, camera.size)
        pose = camera.world_from_camera(1, 1, 1)  # = [rotation | shift / scale] @ transform
        pose[:3] = rotation.T @ (pose[:3] - np.column_stack([np.zeros((3, 3)), shift / scale]))
        shown.append(
            f'<camera id="{i}" sensor_id="0" component_id="0" label="DSC {i:04d}{labels}">'
            f"<transform>{written(pose)}</transform></camera>"
        )
    shown.append('<camera id="99" sensor_id="0" label="DSC 0099"></camera>')
    transform = (
        f"<transform><rotation>{written(rotation)}</rotation><translation>{written(shift)}</translation>"
        f"<scale>{scale!r}</scale></transform>"
    )
    transform = transform if placed else ""
    part = f'<components><component id="0">{transform}</component></components>' if component else transform
    (folder / "cameras.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<document version="1.2.0"><chunk label="Chunk 1">'
        f'<sensors><sensor id="0" type="{kind}"><resolution width="{w}" height="{h}"/>{calibration}</sensor></sensors>'
        f"{part}<cameras>{''.join(shown)}</cameras></chunk></document>\n"
    )
    return folder


def realitycapture(folder: Path, cameras: list[Known]) -> Path:
    columns = ("k1", "k2", "k3", "k4", "p1", "p2")
    lines = ["#name,x,y,alt,heading,pitch,roll,f,px,py,k1,k2,k3,k4,t1,t2"]
    for i, camera in enumerate(cameras):
        w, h = camera.size
        draw(folder / "images" / f"IMG_{i:04d}.png", i, camera.size)
        r = camera.rotation.T * (1, -1, -1)  # Rz(-heading) Rx(pitch) Ry(roll), written out
        pitch = math.asin(r[2, 1])
        heading, roll = math.atan2(r[0, 1], r[1, 1]), math.atan2(-r[2, 0], r[2, 2])
        angles = [math.degrees(a) for a in (heading, pitch, roll)]
        f, px, py = (
            camera.focal[0] * 36 / max(w, h),
            (camera.principal[0] - w / 2) / max(w, h),
            (camera.principal[1] - h / 2) / max(w, h),
        )
        numbers = [*camera.centre, *angles, f, px, py, *(camera.lens.get(name, 0.0) for name in columns)]
        lines.append(f"IMG_{i:04d}.png," + ",".join(repr(float(x)) for x in numbers))
    (folder / "cameras.csv").write_text("\n".join(lines) + "\n")
    return folder


def alike(cameras: list[Known]) -> list[Known]:
    """The same cameras with one focal for both axes."""
    return [replace(camera, focal=(camera.focal[0],) * 2) for camera in cameras]


def centred(cameras: list[Known]) -> list[Known]:
    return [replace(camera, principal=(camera.size[0] / 2, camera.size[1] / 2)) for camera in cameras]
