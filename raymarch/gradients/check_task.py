"""Gradient check as a task that goes to another process: what is looked at, as a record and back, and its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.lens import Lens
from raymarch.gradients.check import GradientRow, check_rows
from raymarch.gradients.check_rays import background_to_check, pixels_to_check
from raymarch.gradients.checks_together import check_rows_together
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.linearised_together import LinearisedTogether
from raymarch.rendering.march_settings import March
from raymarch.rendering.shading import Shading
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume

EXPOSURE = (1.1, 0.9, 1.05, 0.02, -0.01, 0.03)  # not plain, or half of its terms would be invisible


@dataclass(frozen=True)
class CheckTask:
    """What is checked: parts of volumes, their marches, groups (all if None), and whether they are marched together."""

    volumes: Sequence[Volume]
    camera: Camera
    marches: Sequence[March]
    names: Sequence[str] | None
    rays: int
    seed: int
    together: bool

    def rows(self) -> list[GradientRow]:
        """The check, in this process."""
        behind = background_to_check(self.volumes[0])
        pixels = pixels_to_check(self.volumes, self.camera, self.marches, self.rays, self.seed)
        if self.together:
            with LinearisedTogether(
                self.volumes, self.camera, marches=list(self.marches), background=behind, pixels=pixels
            ) as several:
                return check_rows_together(several, self.names, self.seed)
        with Linearised(
            self.volumes[0], self.camera, background=behind, exposure=EXPOSURE, march=self.marches[0], pixels=pixels
        ) as seen:
            return check_rows(seen, self.names, self.seed)

    def record(self) -> dict:
        """All but the volumes, for JSON."""
        camera = self.camera
        return {
            "pose": camera.world_from_camera.tolist(),
            "intrinsics": {name: getattr(camera, name) for name in ("focal", "principal", "width", "height")},
            "lens": asdict(camera.lens),
            "marches": [{k: v for k, v in asdict(m).items() if k != "transfer"} for m in self.marches],
            "tables": [m.transfer and m.transfer.record() for m in self.marches],
            "task": {"names": self.names, "rays": self.rays, "seed": self.seed, "together": self.together},
        }

    @classmethod
    def of_record(cls, record: dict, volumes: Sequence[Volume]) -> CheckTask:
        """Task of what `record` gave, and its volumes."""
        camera = Camera(np.array(record["pose"]), **{**record["intrinsics"], "lens": Lens(**record["lens"])})
        marches = [_march_of(*one) for one in zip(record["marches"], record["tables"], strict=True)]
        return cls(volumes, camera, marches, **record["task"])


def _march_of(record: dict, table: dict | None) -> March:
    shading, clip = record["shading"], record["clip"]
    own = {"shading": shading and Shading(**shading), "clip": clip and Clip(**clip)}
    return March(**{**record, **own, "transfer": table and TransferFunction.of_record(table)})
