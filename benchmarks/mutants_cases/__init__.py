"""Faults to plant in raymarch, by room: what an engineer might have mistyped, and which tests should notice."""

from __future__ import annotations

import importlib

from mutants_cases.fault import Fault

MODULES = (
    *("field", "march", "rays", "fit", "values", "measures", "gradients", "device", "fitting", "files", "images"),
    *("verbs", "nested", "checkpoints", "bricks", "cuts", "ray_modes", "together", "preintegrated", "lit"),
    *("stored", "workers", "beyond", "ranks"),
)


def all_faults() -> list[Fault]:
    """Every fault, room after room."""
    return [fault for name in MODULES for fault in importlib.import_module(f"mutants_cases.{name}").FAULTS]
