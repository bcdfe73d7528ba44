"""TorchMarch against plain torch, in seconds: python benchmarks/torch_bridge.py [--n 128] [--size 128] [--json].

8 RGBA templates of n^3, each seen by a camera of size x size pixels, steps of one voxel, f32 on the CPU: image, then
image and the gradients by template, camera position and rotation. The other side is the plain torch march that the
tests hold it against (tests/torch_twin.py). Best of several, in turn; compiled before.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import raymarch as rm

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))


def timed(march, tensors, dt: float) -> tuple[float, float]:
    """Seconds of the image, and of its gradients after it."""
    begin = time.perf_counter()
    image = march(*tensors, dt=dt)
    middle = time.perf_counter()
    image.square().sum().backward()
    return middle - begin, time.perf_counter() - middle


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--n", type=int, default=128)
    ask.add_argument("--size", type=int, default=128)
    ask.add_argument("--templates", type=int, default=8)
    ask.add_argument("--repeats", type=int, default=3)
    ask.add_argument("--slots", type=int, default=4)
    ask.add_argument("--json", action="store_true")
    a = ask.parse_args()
    rm.start("cpu", "f32")
    import torch
    import torch_twin

    shape, dt = (a.n,) * 3, 2 / (a.n - 1)
    tensors = torch_twin.case(shape, a.templates, (a.size, a.size), density=1.0, dtype=torch.float32)
    for tensor in tensors[3:]:
        tensor.requires_grad_(False)
    best = {"ours": [float("inf")] * 2, "torch": [float("inf")] * 2}
    with rm.TorchMarch(shape, slots=a.slots) as ours:
        timed(ours, tensors, dt)
        for _ in range(a.repeats):
            for name, march in (("ours", ours), ("torch", torch_twin.march)):
                best[name] = [min(pair) for pair in zip(best[name], timed(march, tensors, dt), strict=True)]
    if a.json:
        print(json.dumps(best))
        return
    scene = f"{a.templates} templates of {a.n}^3, {a.size}^2 pixels each, steps of {dt:.4f}"
    print(f"{scene}, {torch.get_num_threads()} threads")
    for what, ours_s, torch_s in zip(("image", "gradients"), best["ours"], best["torch"], strict=True):
        print(f"{what:9s}  ours {ours_s:7.3f} s  torch {torch_s:7.3f} s  {torch_s / ours_s:5.1f} times")


if __name__ == "__main__":
    main()
