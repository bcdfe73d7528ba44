"""Gradient check of several volumes together: that of each by all that it has, with the others held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from raymarch.errors import RaymarchError
from raymarch.gradients.check import GradientRow, check_rows
from raymarch.gradients.linearised_member import LinearisedMember
from raymarch.gradients.linearised_together import OF_VOLUMES, LinearisedTogether
from raymarch.rendering.march_settings import March


def require_groups_together(names: Sequence[str] | None, marches: Sequence[March]) -> None:
    """Group check: RaymarchError for a group by which no volume of these marches has a gradient."""
    unseen = {"colour"} if all(march.transfer for march in marches) else set()
    unseen |= set() if any(march.transfer for march in marches) else {"table"}
    known = [name for name in (*OF_VOLUMES, "background") if name not in unseen]
    for name in names or ():
        if name not in known:
            raise RaymarchError(
                f"several volumes together have no gradient by {name}, want some of {', '.join(known)}; leave it out"
            )


def check_rows_together(
    seen: LinearisedTogether, parameters: Sequence[str] | None = None, seed: int = 0
) -> list[GradientRow]:
    """Gradient check, a row for each group of each volume, "volumes[0].density" say, and the background."""
    rows = []
    for i in range(len(seen.members.volumes)):
        member = LinearisedMember(seen, i)
        names = [name for name in member.groups if parameters is None or name in parameters]
        for row in check_rows(member, names, seed):
            own = row.parameter != "background"
            rows.append(replace(row, parameter=f"volumes[{i}].{row.parameter}") if own else row)
    return rows
