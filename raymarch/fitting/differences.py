"""Differences between the fit that a checkpoint is of and one that is to go on from it, named one by one."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.errors import RaymarchError, short
from raymarch.fitting.plan.plan import Plan
from raymarch.fitting.report import versions
from raymarch.views.identity import CLOSE

log = logging.getLogger(__name__)

# Settings that may be others: memory says how far a sparse grid may grow from here on, and whether it is sparse is
# compared as it came to be, which may be by the device.
MAY_DIFFER = ("memory", "bricks")
BEFORE = {"cooldown": 0.0, "reopen": 1.0, "early": 1.0}  # what fits did whose checkpoints do not tell
MOST = 4  # differences that are named
LONGEST = 160  # letters of a value that is shown as it is
CURE = "give what it had, or begin anew without it (--overwrite)"


def grid_record(plan: Plan) -> dict[str, Any]:
    """Where a fit's grid lies, how fine it is, whether it is in bricks, and its precision, in plain numbers."""
    ndc = None if plan.ndc_from_world is None else plan.ndc_from_world.ravel().tolist()
    place = {"box": plan.box.ravel().tolist(), "ndc_from_world": ndc}
    return {**place, "shape": list(plan.shape), "sparse": plan.bricks > 0, "precision": np.dtype(runtime.dtype()).name}


def require_same(record: Mapping[str, Any], plan: Plan, path: object) -> None:
    """RaymarchError that names what differs between a checkpoint's record and the fit of this plan."""
    if words := plan.views_digest.difference(record["views"]):
        raise RaymarchError(f"{path}: is of a fit to other views: {words}; {CURE}")
    require_same_settings(record, plan.settings.record(), path)
    now = grid_record(plan)
    if words := _differences({"sparse": now["sparse"], **record["grid"]}, now):  # older ones do not tell
        raise RaymarchError(f"{path}: is of a fit with another grid: {words}; {CURE}")


def require_same_settings(record: Mapping[str, Any], settings: Mapping[str, Any], path: object) -> None:
    """RaymarchError that names the settings that differ, what they were and what they are."""
    if words := _differences({**BEFORE, **_flat(record["settings"])}, settings):
        raise RaymarchError(f"{path}: is of a fit with other settings: {words}; {CURE}")


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two mappings, in words; "" if nothing does."""
    old, new = _flat(was), _flat(json.loads(json.dumps(now)))
    other = [name for name in {**new, **old} if name not in MAY_DIFFER and not _same(old.get(name), new.get(name))]
    words = [f"{name} was {_shown(name, old)}, is {_shown(name, new)}" for name in other[:MOST]]
    return ", ".join(words) + (f", and {len(other) - MOST} more" if len(other) > MOST else "")


def _same(was: Any, now: Any) -> bool:
    """Whether two values are the same; numbers of a box to ten figures, for the last bit may be another machine's."""
    if was and isinstance(was, list) and isinstance(now, list) and all(isinstance(n, float) for n in was + now):
        return len(was) == len(now) and np.allclose(was, now, rtol=CLOSE, atol=0)
    return bool(was == now)


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Mapping without those within it: `optimiser`'s lr_density goes by its own name, as it is given."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value) if name == "optimiser" and isinstance(value, Mapping) else {name: value}
    return flat


def _shown(name: str, values: Mapping[str, Any]) -> str:
    if name not in values:
        return "not there"
    value = values[name]
    plain = json.dumps(value) if isinstance(value, (list, dict)) else repr(value)
    return plain if len(plain) < LONGEST else short(value)


def made_by() -> dict[str, str]:
    """Software and device that the last bits depend on."""
    return {**versions(), "arch": runtime.start().arch}


def note_versions(record: Mapping[str, Any], path: object) -> None:
    """Say where the software is not what the checkpoint was made by."""
    now = made_by()
    other = [
        f"{name} {record['made_by'].get(name)}, now {now[name]}"
        for name in now
        if record["made_by"].get(name) != now[name]
    ]
    if other:
        log.warning("%s was made by %s; the last bits may differ", path, ", ".join(other))
