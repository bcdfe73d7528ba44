"""Result of a fit as a volume: what the grid holds, where it lies, and how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raymarch.device.grid import Grid
from raymarch.fitting.photometry import Photometry
from raymarch.fitting.plan.plan import Plan
from raymarch.fitting.report import provenance
from raymarch.fitting.through_table import clear_raws
from raymarch.volumes.volume import Volume


def volume_of(grid: Grid, plan: Plan, photometry: Photometry, told: Mapping[str, Any]) -> Volume:
    """Volume of a fit's grid; samples that the fit skipped as empty are made empty for every reader."""
    about: dict[str, Any] = {
        "activation": plan.activation,
        "background": photometry.background,
        "provenance": provenance(plan.settings, plan.views, {**told, **photometry.record()}),
    }
    table = plan.settings.transfer
    empty = None if table is None else clear_raws(table, grid.activation)
    return Volume(world_from_index=grid.world_from_index, samples=grid.carved_samples(empty), **about, **plan.lies)
