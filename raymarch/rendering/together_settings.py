"""Rules of multi-volume rendering: which volumes and modes go together, and what the march of all is set to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from raymarch.arguments.checks import Check, Wrong, shown
from raymarch.errors import RaymarchError
from raymarch.kernels.march.emission_absorption import EMISSION_ABSORPTION
from raymarch.kernels.march.transfer import TRANSFER
from raymarch.rendering.march_settings import MARCH, SINGLE_RAYS, March, march_for
from raymarch.rendering.ray_settings import require_seen
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import VOLUME, Volume

MOST = 4
ALIKE = ("jitter", "step_jitter", "seed")  # of which a ray has one
Marches: TypeAlias = "March | Sequence[March] | None"


def _volumes(value: Any) -> list[Volume]:
    if not isinstance(value, (list, tuple)):
        raise Wrong(f"is {shown(value)}", "give [volume, other]")
    if not 1 <= len(value) <= MOST:
        raise Wrong(f"is {len(value)} of them", "merge some, or leave some out")
    scans = [one for one in value if isinstance(one, ScalarVolume)]
    for said, cure in (("world", "give one.in_world(of the other)"), ("length_unit", "scale the one's affine")):
        if len(several := sorted({getattr(one, said) for one in scans} - {""})) > 1:
            raise Wrong(f"has the {said} {' and '.join(several)}", cure)
    return [VOLUME(f"volumes[{i}]", volume) for i, volume in enumerate(value)]


def _marches(value: Any) -> March | list[March] | None:
    if value is None or isinstance(value, March):
        return value
    if not isinstance(value, (list, tuple)) or not value:
        raise Wrong(f"is {shown(value)}")
    return [MARCH(f"marches[{i}]", march) for i, march in enumerate(value)]


def _of_single_rays(value: Any) -> March | list[March] | None:
    given = _marches(value)
    for i, march in enumerate(given if isinstance(given, list) else [given] if given else []):
        SINGLE_RAYS(f"marches[{i}]", march)
    return given


def _one_or_several(value: Any) -> Volume | list[Volume]:
    return _volumes(value) if isinstance(value, (list, tuple)) else VOLUME.read(value)


VOLUMES = Check(f"a list of 1 to {MOST} volumes", _volumes)
ONE_OR_SEVERAL = Check(f"a Volume, or a list of 1 to {MOST} that are rendered together", _one_or_several, VOLUME.cure)
MARCHES = Check("a list of rm.March(...), one for each volume, or one for all", _marches)
SINGLE_MARCHES = Check(MARCHES.wanted, _of_single_rays)


def marches_for(volumes: Sequence[Volume], marches: Marches) -> list[March]:
    """March of each volume; RaymarchError for what cannot be composited together, with the volume's place."""
    if marches is None or isinstance(marches, March):
        given = [march_for(volume, marches) for volume in volumes]
    else:
        if len(marches) != len(volumes):
            raise RaymarchError(
                f"marches are {len(marches)}, volumes {len(volumes)}; give one for each, or one for all"
            )
        given = [march_for(volume, march) for volume, march in zip(volumes, marches, strict=True)]
    for i, (volume, march) in enumerate(zip(volumes, given, strict=True)):
        if march.mode == TRANSFER.name and march.rule is not TRANSFER:
            what = "preintegrated" if march.preintegrated else "shading"
            raise RaymarchError(f"marches[{i}] has {what}, which several volumes together have not; leave it out")
        if march.rule is not EMISSION_ABSORPTION and march.rule is not TRANSFER:
            cure = f"take mode {EMISSION_ABSORPTION.name} or {TRANSFER.name}"
            raise RaymarchError(f"marches[{i}]: mode {march.rule.name} does not composite with other volumes; {cure}")
        if volume.boxes > 1:
            raise RaymarchError(f"volumes[{i}] has nested boxes, want one box; take volume.nested(0), the innermost")
        if volume.ndc_from_world is not None:
            raise RaymarchError(f"volumes[{i}] is in NDC, want a box in the world; resample it to one")
        require_seen(volume, march)
    for name in ALIKE:
        if len(values := sorted({getattr(march, name) for march in given})) > 1:
            few = " and ".join(f"{x:g}" for x in values[:2])
            raise RaymarchError(f"marches have {name} {few}, want one for all rays; give the same to each")
    return given


def single_marches_for(volumes: Sequence[Volume], marches: Marches) -> list[March]:
    """March of each volume for its gradients, which are of single rays: those of `marches_for`, without early ray
    termination where none are given. RaymarchError as there."""
    exact: dict[str, Any] = {"min_transmittance": 0.0, "min_weight": 0.0} if marches is None else {}
    return [replace(march, supersample=1, **exact) for march in marches_for(volumes, marches)]


def step_of(volumes: Sequence[Volume], marches: Sequence[March]) -> float:
    """Length of a step [world unit]: the shortest that any of the volumes asks for."""
    return min(march.step * volume.voxel for volume, march in zip(volumes, marches, strict=True))
