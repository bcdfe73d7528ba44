"""Covering arrays: lists of cases in which every two values of every two factors meet, far shorter than the product.

For laws whose factors act on their own, where what one choice breaks it breaks whatever the others are, or together
with one other: such a fault is in the list. Where three must meet for it, the case is named beside the list.
"""

from __future__ import annotations

import itertools


def covering(*factors) -> list[tuple]:
    """Rows of one value a factor, as few as greedy choice finds, so that every pair of values is in a row.

    The same list each time; the first row has the first value of every factor.
    """
    open_pairs = {pair for row in itertools.product(*map(range, map(len, factors))) for pair in pairs(row)}
    rows: list[tuple[int, ...]] = []
    while open_pairs:
        every = itertools.product(*map(range, map(len, factors)))
        best = max(every, key=lambda row: (len(open_pairs & pairs(row)), [-i for i in row]))
        rows.append(best)
        open_pairs -= pairs(best)
    return [tuple(factor[i] for factor, i in zip(factors, row, strict=True)) for row in rows]


def pairs(row) -> set[tuple]:
    """Every two places of a row with what stands there."""
    return set(itertools.combinations(enumerate(row), 2))
