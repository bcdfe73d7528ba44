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
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: shown[0], process_time=lambda: shown[0]))
    return shown


def step(clock, now, seconds):
    clock.begin_step()
    now[0] += seconds
    clock.stepped()


def test_time_counts_from_when_the_first_step_was_made(now):
    clock = Clock()
    now[0] += 5  # loading
    clock.prepared()
    assert (clock.seconds, clock.ready) == (5, 5)
    step(clock, now, 20)  # it compiles
    assert (clock.seconds, clock.ready) == (25, 25)
    step(clock, now, 1)
    assert (clock.seconds, clock.ready) == (26, 25)


def test_compiling_again_is_no_time_of_a_fit_that_goes_on(now):
    clock = Clock()
    now[0] += 300  # in another process, where the fit had come to its 40th second, 25 of which it waited
    clock.go_on(40.0, 25.0)
    assert (clock.seconds, clock.ready) == (40, 25)
    now[0] += 7  # until somebody runs it
    step(clock, now, 20)
    step(clock, now, 2)
    assert (clock.seconds, clock.ready) == (62, 45)


def test_a_clock_stands_while_its_fit_is_paused(now):
    clock = Clock(990.0)
    clock.prepared()
    now[0] += 30
    clock.stand(30)  # before the first step, as a page is waited for
    step(clock, now, 4)
    assert (clock.seconds, clock.ready) == (14, 14)
    now[0] += 7
    clock.stand(7)
    assert clock.seconds == 14


def test_a_clock_stands_from_when_all_is_there_until_the_first_step_begins(now):
    clock = Clock()
    clock.prepared()
    now[0] += 120  # a notebook's next cell is run two minutes later
    assert (clock.seconds, clock.ready) == (0, 0)
    step(clock, now, 20)
    assert (clock.seconds, clock.ready) == (20, 20)


def test_all_that_was_done_before_the_first_step_counts_if_that_is_noted_again(now):
    clock = Clock()
    clock.prepared()
    now[0] += 6
    clock.prepared()
    assert (clock.seconds, clock.ready) == (6, 6)
    step(clock, now, 20)
    assert (clock.seconds, clock.ready) == (26, 26)


@pytest.mark.parametrize(("worked", "counted"), [(0.0, 21), (16.0, 37), (1700.0, 1721), (1900.0, 3621)])
def test_a_process_that_was_stopped_in_a_step_has_not_spent_its_time(monkeypatch, caplog, worked, counted):
    shown = {"clock": 0.0, "work": 0.0}
    monkeypatch.setattr(
        module, "time", SimpleNamespace(perf_counter=lambda: shown["clock"], process_time=lambda: shown["work"])
    )
    clock = Clock()
    for seconds, work in ((20, 20), (3600, worked), (1, 1)):
        clock.begin_step()
        shown["clock"] += seconds
        shown["work"] += work
        clock.stepped()
    assert clock.seconds == counted
    assert (f"was stopped for {3621 - counted} s" in caplog.text) == (counted < 3621)
