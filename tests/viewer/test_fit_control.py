"""Law: what pages ask of a fit is done, and a pause of theirs ends with them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from raymarch.errors import RaymarchError
from raymarch.viewer import fit_viewer as module
from raymarch.viewer.fit_viewer import MAX_ABSENCE, FitControl


@pytest.fixture
def now(monkeypatch):
    """Seconds that the computer's clock shows, to be set."""
    shown = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: shown[0]))
    return shown


def test_a_fit_that_a_page_paused_goes_on_once_all_have_been_gone_for_a_while(now, caplog):
    control = FitControl(None)
    now[0] += 1000
    control.act({"action": "pause"})
    control.look_for_pages(1)
    now[0] += 1000
    control.look_for_pages(1)
    for _ in range(3):  # a page that is loaded again, each time before it is too late
        now[0] += 0.9 * MAX_ABSENCE
        control.look_for_pages(0)
        control.look_for_pages(1)
    assert control.paused and not caplog.text
    now[0] += 1.1 * MAX_ABSENCE
    control.look_for_pages(0)
    assert not control.paused and caplog.text.count("the last page has gone, so the fit goes on") == 1


def test_a_page_that_pauses_and_is_gone_at_once_does_not_hold_the_fit(now):
    control = FitControl(None)
    control.act({"action": "pause"})
    now[0] += 1.1 * MAX_ABSENCE
    control.look_for_pages(0)
    assert not control.paused


def test_a_pause_that_no_page_asked_for_needs_none(now):
    """As `NotebookFit.pause` makes one."""
    control = FitControl(None)
    control.paused = True
    for _ in range(3):
        now[0] += 2 * MAX_ABSENCE
        control.look_for_pages(0)
    assert control.paused


def test_what_no_page_may_ask_is_refused_and_changes_nothing(now):
    control = FitControl(None)
    for message in ({}, {"action": "jump"}, {"action": None}):
        with pytest.raises(RaymarchError, match="want one of pause, go, rate, stop; choose one"):
            control.act(message)
    assert (control.paused, control.stopped) == (False, False)
