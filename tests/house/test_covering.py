"""Law: in a covering array every two values of every two factors meet, and it is shorter than the product."""

from __future__ import annotations

import itertools
import math

import pytest
from covering import covering

FACTORS = [
    [(0, 1), (0, 1)],
    [(0, 1), (0, 1), (0, 1)],
    [("a", "b", "c"), ("d", "e"), (False, True), (0, 1, 2, 3)],
    [tuple(range(n)) for n in (4, 3, 3, 3, 2, 2)],
    [((), {}), ("one",)],
]


@pytest.mark.parametrize("factors", FACTORS)
def test_every_pair_meets_and_few_rows_do(factors):
    rows = covering(*factors)
    for (i, first), (k, second) in itertools.combinations(enumerate(factors), 2):
        for a, b in itertools.product(first, second):
            assert any(row[i] == a and row[k] == b for row in rows)
    largest = sorted(map(len, factors))[-2:]
    assert math.prod(largest) <= len(rows) <= math.prod(map(len, factors))
    if len(factors) > 2 and min(map(len, factors)) > 1:
        assert len(rows) < math.prod(map(len, factors))
    assert all(value in factor for row in rows for value, factor in zip(row, factors, strict=True))


def test_the_list_is_the_same_each_time_and_starts_with_the_first_of_all():
    assert covering(*FACTORS[3]) == covering(*FACTORS[3])
    assert covering(*FACTORS[2])[0] == ("a", "d", False, 0)
