"""Law: a fit's time counts when all is compiled, in each process that it goes on in, and stands while it is paused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from raymarch.fitting import clock as module
from raymarch.fitting.clock import Clock


@pytest.fixture
def now(monkeypatch):
    """Seconds that the computer's clock shows, to be set."""
    shown = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: shown[0]))
    return shown


def test_time_counts_from_when_the_first_step_was_made(now):
    clock = Clock()
    now[0] += 5  # loading
    clock.prepared()
    assert (clock.seconds, clock.ready) == (5, 5)
    now[0] += 20  # the first step compiles
    clock.stepped()
    assert (clock.seconds, clock.ready) == (25, 25)
    now[0] += 1
    clock.stepped()
    assert (clock.seconds, clock.ready) == (26, 25)


def test_compiling_again_is_no_time_of_a_fit_that_goes_on(now):
    clock = Clock()
    now[0] += 300  # in another process, where the fit had come to its 40th second, 25 of which it waited
    clock.go_on(40.0, 25.0)
    assert (clock.seconds, clock.ready) == (40, 25)
    now[0] += 20
    clock.stepped()
    now[0] += 2
    clock.stepped()
    assert (clock.seconds, clock.ready) == (62, 45)


def test_a_clock_stands_while_its_fit_is_paused(now):
    clock = Clock(990.0)
    clock.prepared()
    now[0] += 30
    clock.stand(30)  # before the first step, as a page is waited for
    now[0] += 4
    clock.stepped()
    assert (clock.seconds, clock.ready) == (14, 14)
    now[0] += 7
    clock.stand(7)
    assert clock.seconds == 14
