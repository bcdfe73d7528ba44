"""Law: a fit's time counts from the end of its first step, which compiles, in each process that it goes on in;
it leaves out what compiling takes later, and stands while the fit is paused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from raymarch.fitting import clock as module
from raymarch.fitting.clock import Clock


@pytest.fixture
def now(monkeypatch):
    """Seconds that the computer's clock shows, to be set, and how many of them compiling took."""
    shown = [1000.0, 0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: shown[0], process_time=lambda: shown[0]))
    monkeypatch.setattr(module, "seconds_compiling", lambda: shown[1])
    return shown


def step(clock, now, seconds, compiling=0.0):
    clock.begin_step()
    now[0] += seconds + compiling
    now[1] += compiling
    clock.stepped()


def test_time_counts_from_when_the_first_step_was_made(now):
    clock = Clock()
    now[0] += 5  # loading
    clock.prepared()
    assert (clock.seconds, clock.preparation) == (0, 5)
    step(clock, now, 2, compiling=18)
    assert (clock.seconds, clock.preparation) == (0, 25)
    step(clock, now, 1)
    assert (clock.seconds, clock.preparation) == (1, 25)


def test_what_is_compiled_later_is_no_time_of_the_fit_either(now):
    clock = Clock()
    clock.prepared()
    step(clock, now, 20)
    for compiling in (0.0, 7.0, 0.0, 3.0):  # as a level begins
        step(clock, now, 1, compiling)
    assert (clock.seconds, clock.preparation) == (4, 30)


def test_compiling_again_is_no_time_of_a_fit_that_goes_on(now):
    clock = Clock()
    now[0] += 300  # in another process, where the fit had come to its 40th second, after 25 that it waited
    clock.prepared()
    clock.go_on(40.0, 25.0)
    assert (clock.seconds, clock.preparation) == (40, 325)
    now[0] += 7  # until somebody runs it
    step(clock, now, 20)
    step(clock, now, 2)
    assert (clock.seconds, clock.preparation) == (42, 345)


def test_a_clock_stands_while_its_fit_is_paused(now):
    clock = Clock(990.0)
    clock.prepared()
    now[0] += 30  # before the first step, as a page is waited for
    clock.set_back(clock.seconds)
    step(clock, now, 4)
    step(clock, now, 1)
    assert (clock.seconds, clock.preparation) == (1, 14)
    before = clock.seconds
    now[0] += 7
    now[1] += 5  # for a picture, in the pause
    assert clock.seconds == before + 2
    clock.set_back(before)
    assert clock.seconds == 1


def test_a_clock_stands_from_when_all_is_there_until_the_first_step_ends(now):
    clock = Clock()
    clock.prepared()
    now[0] += 120  # a notebook's next cell is run two minutes later
    assert (clock.seconds, clock.preparation) == (0, 0)
    step(clock, now, 20)
    assert (clock.seconds, clock.preparation) == (0, 20)


def test_all_that_was_done_before_the_first_step_is_preparation_if_that_is_noted_again(now):
    clock = Clock()
    clock.prepared()
    now[0] += 6
    clock.prepared()
    step(clock, now, 20)
    assert (clock.seconds, clock.preparation) == (0, 26)


@pytest.mark.parametrize(("worked", "counted"), [(0.0, 1), (16.0, 17), (1700.0, 1701), (1900.0, 3601)])
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
    assert (f"a step stood still for {3601 - counted} s" in caplog.text) == (counted < 3601)
