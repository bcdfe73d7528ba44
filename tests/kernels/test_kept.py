"""Law: gradients are the same bits whether a march keeps its samples for the adjoint or that looks them up."""

from __future__ import annotations

import drive
import numpy as np
import pytest
from kept import ROOM, STEPS, forget, gradients, lose_samples, whether
from whole import whole

CASES = [(1, STEPS["more"], 0.0, False), (1, STEPS["fewer samples than there is room for"], 0.02, False)]
CASES += [whole((2, step, least, True)) for step in STEPS.values() for least in (0.0, 0.02)]


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_the_same_bits(case):
    _, wanted = gradients(*case, keeps=False)
    kept, found = gradients(*case, keeps=True)
    for name, numbers in kept.items():
        assert case[2] > 0 or (numbers.max() == ROOM[name]) == (case[1] == STEPS["more"])
        assert numbers.min() == 0 < numbers.max()  # some rays miss
    for got, want in zip(found, wanted, strict=True):
        drive.same_sums(got, want)


def test_what_was_kept_of_another_sample_is_looked_up():
    case = CASES[0]
    _, wanted = gradients(*case, keeps=False)
    _, found = gradients(*case, keeps=True, between=forget)
    for got, want in zip(found, wanted, strict=True):
        drive.same_sums(got, want)


def test_what_was_kept_is_not_looked_up_again():
    case = CASES[1]
    _, wanted = gradients(*case, keeps=False)
    _, found = gradients(*case, keeps=True, between=lose_samples)
    _, lost = gradients(*case, keeps=False, between=lose_samples)
    for got, want in zip(found, wanted, strict=True):
        drive.same_sums(got, want)
    assert min(np.abs(lost[n] - wanted[n]).max() for n in (1, 2)) > 1e-3


@pytest.mark.whole
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_gradients_are_the_same_bits_in_single_precision(step, single):
    """Whose samples go in groups of eight."""
    wanted, found = (single(whether, keeps, 1, step, 0.0, False) for keeps in (False, True))
    assert all(np.abs(each).max() > 0 for each in wanted)
    for got, want in zip(found, wanted, strict=True):
        drive.same_sums(got, want)
