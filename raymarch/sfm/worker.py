"""Worker of structure from motion, a process of its own: COLMAP's checks end a process, and its memory is given back.

It is told what to do by `job.json` in its folder and answers by `Messages`. It ends when its stdin does, so that it
does not outlive who asked.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.sfm.mapping import (
    AFFINE_FEATURES_ATTEMPT,
    ALL_PAIRS_ATTEMPT,
    FEWER_MATCHES_ATTEMPT,
    PLAIN_ATTEMPT,
    WEAKER_FEATURES_ATTEMPT,
    Attempt,
    extract,
    map_cameras,
    match,
    refine_lenses,
    upright_gauge,
)
from raymarch.sfm.messages import Messages, rows_of

MIN_POSED_FRACTION = 0.9  # of the photographs that match any other: no further attempt
MAX_ALL_PAIRS = 400  # photographs at most, where a sequence did not hang together
MIN_FEATURES = 15
PAIR_FACTOR = 2147483647  # COLMAP's number of a pair is that of its first image times this, plus that of its second
CAMERA_FROM_COLMAP = np.diag([1.0, -1.0, -1.0])  # COLMAP's camera axes, y down and looking along z, to ours


def reconstruct(pc: Any, job: dict, folder: Path, messages: Messages) -> dict:
    """Largest reconstruction of a job's photographs, upright, written as a COLMAP model; and what became of each."""
    pc.logging.minloglevel = 3
    pc.set_random_seed(job["seed"])
    best: list = []
    database = place = folder / "none.db"
    tried = []
    for number, attempt in enumerate(_attempts(job)):
        count = best[0].num_reg_images() if best else 0
        if number and (
            count >= MIN_POSED_FRACTION * _count_matched(place) or (attempt.shaped and 2 * count >= _photos(job))
        ):
            continue
        if number:
            messages.tell(note=f"{count} of {_photos(job)} photographs registered; trying again with {attempt.name}")
        if number == 0 or not attempt.same_features:
            database = folder / f"features_{number}.db"
            extract(pc, job, database, attempt, messages)
            match(pc, job, database, attempt, messages)
        found = map_cameras(pc, job, database, folder / f"models_{number}", attempt, messages)
        tried.append({"attempt": attempt.name or "first", "registered": [one.num_reg_images() for one in found]})
        if number == 0 or (found and found[0].num_reg_images() > count):
            best, place = found, database
    if not best or best[0].num_reg_images() < 3:
        raise RaymarchError(_failure_reason(place, _photos(job)))
    refine_lenses(pc, job, best[0])
    return {
        **_write_model(pc, best[0], Path(job["model_folder"])),
        **_unposed_reasons(best, place, job),
        "attempts": tried,
    }


def _photos(job: dict) -> int:
    return sum(map(len, job["groups"]))


def _attempts(job: dict) -> list[Attempt]:
    """Attempts, in order; the first that registers enough photographs ends the search."""
    sequence = job["matching"] == "sequential" and _photos(job) <= MAX_ALL_PAIRS
    return [
        PLAIN_ATTEMPT,
        FEWER_MATCHES_ATTEMPT,
        *([ALL_PAIRS_ATTEMPT] if sequence else []),
        WEAKER_FEATURES_ATTEMPT,
        AFFINE_FEATURES_ATTEMPT,
    ]


def _pairs(database: Path) -> list[tuple[int, int]]:
    """Pairs of images whose matches agree with one epipolar geometry."""
    rows = rows_of(database, "SELECT pair_id FROM two_view_geometries WHERE rows > 0")
    return [divmod(number, PAIR_FACTOR) for (number,) in rows]


def _count_matched(database: Path) -> int:
    """How many photographs match any other, and at least half of those that have features."""
    with_features = rows_of(database, f"SELECT count(*) FROM keypoints WHERE rows >= {MIN_FEATURES}")[0][0]
    return max(len({one for pair in _pairs(database) for one in pair}), with_features // 2)


def _failure_reason(database: Path, photos: int) -> str:
    """Why nothing was reconstructed."""
    rows = rows_of(database, f"SELECT count(*) FROM keypoints WHERE rows >= {MIN_FEATURES}")
    if rows[0][0] < 3:
        return f"{rows[0][0]} of {photos} photographs have features, want 3 or more; take sharp ones, of texture"
    pairs = _pairs(database)
    if not pairs:
        return f"no two of {photos} photographs show the same thing; take them so that neighbours overlap by two thirds"
    return (
        f"{photos} photographs have {len(pairs)} pairs that match, but no three cameras could be found;"
        " take more, from places some steps apart"
    )


def _write_model(pc: Any, model: Any, folder: Path) -> dict:
    """Make a model upright, write it, and return its statistics."""
    images = sorted((image for image in model.images.values() if image.has_pose), key=lambda image: image.name)
    poses = np.array([image.cam_from_world().matrix() for image in images])
    turns = poses[:, :, :3].transpose(0, 2, 1)
    eyes = -(turns @ poses[:, :, 3:])[:, :, 0]
    points = np.array([point.xyz for point in model.points3D.values()]).reshape(-1, 3)
    gauge = upright_gauge(eyes, turns @ CAMERA_FROM_COLMAP, points)
    model.transform(pc.Sim3d(gauge.world_from_sfm[:3]))
    folder.mkdir(parents=True)
    model.write_binary(folder)
    cameras = [
        {"model": camera.model_name, "width": camera.width, "height": camera.height, "params": list(camera.params)}
        for _, camera in sorted(model.cameras.items())
    ]
    return {
        "registered": [image.name for image in images],
        "world_from_sfm": gauge.world_from_sfm.tolist(),
        "sfm_from_world": np.linalg.inv(gauge.world_from_sfm).tolist(),
        "up": gauge.up,
        "centre": gauge.centre,
        "points": model.num_points3D(),
        "error": model.compute_mean_reprojection_error(),
        "cameras": cameras,
    }


def _unposed_reasons(models: list, database: Path, job: dict) -> dict:
    """Why each photograph without a camera has none."""
    inside = {image.name for image in models[0].images.values() if image.has_pose}
    elsewhere = {
        image.name: model.num_reg_images() for model in models[1:] for image in model.images.values() if image.has_pose
    }
    rows = rows_of(database, "SELECT name, images.image_id, rows FROM images JOIN keypoints USING (image_id)")
    numbers = {name: (number, features) for name, number, features in rows}
    pairs = Counter(one for pair in _pairs(database) for one in pair)
    out = []
    for name in sorted(name for group in job["groups"] for name in group if name not in inside):
        number, features = numbers.get(name, (0, 0))
        if features < MIN_FEATURES:
            why = f"no features ({features}): too dark, blurred or without texture"
        elif not pairs[number]:
            why = "matches no other photograph"
        elif name in elsewhere:
            why = f"in a part of {elsewhere[name]} photographs that does not hang together with the rest"
        else:
            why = f"matches {pairs[number]} others, too little to be placed"
        out.append({"name": name, "why": why})
    return {"left_out": out}


def main(folder: Path) -> None:
    """Run the job of a folder."""
    messages = Messages()

    def watch() -> None:
        while sys.stdin.buffer.read(1):
            pass
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
    try:
        import pycolmap

        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        messages.tell(result=reconstruct(pycolmap, job, folder, messages))
    except RaymarchError as error:
        messages.tell(error=str(error))
    except Exception as error:  # pycolmap raises anything
        messages.tell(
            error=f"COLMAP failed ({type(error).__name__}: {' '.join(str(error).split())[:300]}); try other settings"
        )
    os._exit(0)  # threads of COLMAP's that still run shall not hold it


if __name__ == "__main__":
    main(Path(sys.argv[1]))
