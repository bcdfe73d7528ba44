"""Law: tuning keeps what is clearly faster and nothing else, ends in its time, and leaves nothing when interrupted."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from whole import whole

from raymarch import cli, runtime
from raymarch.bench import layouts, tune
from raymarch.device import layout_choice
from raymarch.device.layout_choice import USE_WORDS, LayoutChoice
from raymarch.errors import RaymarchError


class Clock:
    """A clock that only work moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """Cases whose steps take what a table says, in a cache of its own."""
    monkeypatch.setenv(runtime.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv(layout_choice.LAYOUT_VARIABLE, "measured")
    layout_choice.current_choice.cache_clear()
    clock = Clock()
    yield clock
    layout_choice.current_choice.cache_clear()


class Stub:
    """A case of which the steps are known."""

    def __init__(self, clock, kind, **seconds):
        self.clock, self.kind = clock, kind
        self.seconds = {int(name[1:]): each for name, each in seconds.items()}
        self.blocks = tuple(self.seconds)

    @contextmanager
    def steps(self):
        def step(seconds):
            if isinstance(seconds, type):
                raise seconds("no memory")
            self.clock.now += seconds

        yield {block: lambda each=each: step(each) for block, each in self.seconds.items()}


def test_the_shipped_cases_are_all_kinds_once_the_default_first():
    assert sorted(case.kind for case in layouts.CASES) == sorted(USE_WORDS)
    assert all(case.blocks[0] == getattr(LayoutChoice(), case.kind) for case in layouts.CASES)


@pytest.mark.parametrize(
    ("default", "other", "kept"),
    [
        ([1.0, 1.0, 1.0], [0.9, 0.9, 0.9], 1),
        ([1.0, 1.0, 1.0], [0.96, 0.96, 0.96], 2),
        ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], 2),
        ([1.0, 1.0, 1.0], [0.5, 1.0, 1.0], 2),  # one lucky round
        ([1.0, 2.0, 2.0], [0.99, 1.0, 1.0], 2),
    ],
)
def test_kept_is_what_is_clearly_faster_in_its_best_round_and_in_most(default, other, kept):
    assert layouts.fastest_block({2: default, 1: other}) == kept


def test_what_is_faster_is_kept_and_in_force(clock):
    cases = [Stub(clock, "fit_large", b2=1.0, b1=0.5), Stub(clock, "read", b1=1.0, b2=0.99)]
    told = []
    tuned = tune.tune(100, lambda *progress: told.append(progress), cases=cases, clock=clock)
    assert [(trial.kind, trial.kept) for trial in tuned.trials] == [("fit_large", 1), ("read", 1)]
    assert tuned.trials[0].seconds == pytest.approx({2: 1.0, 1: 0.5})
    assert told == [(USE_WORDS["fit_large"], 0, 2), (USE_WORDS["read"], 1, 2)]
    assert dict(layout_choice.current_choice().measured) == {"fit_large": 1, "read": 1}
    assert layout_choice.current_choice().choice == LayoutChoice(fit_large=1)
    assert json.loads(tuned.file.read_text())["blocks"] == {"fit_large": 1, "read": 1}


def test_it_ends_in_its_time_and_the_next_begins_with_what_is_left(clock):
    cases = [Stub(clock, kind, b1=1.0, b2=0.5) for kind in ("fit", "read", "read_large")]
    one = (layouts.ROUNDS + 1) * 1.5
    first = tune.tune(2.5 * one, cases=cases, clock=clock)
    assert ([trial.kind for trial in first.trials], first.missed) == (["fit", "read"], ("read_large",))
    assert first.seconds == pytest.approx(2 * one)
    second = tune.tune(1.5 * one, cases=cases, clock=clock)
    assert ([trial.kind for trial in second.trials], second.missed) == (["read_large"], ("fit", "read"))
    assert dict(layout_choice.current_choice().measured) == {"fit": 2, "read": 2, "read_large": 2}


def test_what_was_measured_before_is_kept_where_the_variable_leaves_it_aside(clock, monkeypatch):
    """And comes last, as it always does."""
    layout_choice.save_choice({"fit_large": 1})
    monkeypatch.setenv(layout_choice.LAYOUT_VARIABLE, "default")
    layout_choice.current_choice.cache_clear()
    cases = [Stub(clock, "fit_large", b2=1.0, b1=1.0), Stub(clock, "read", b1=1.0, b2=0.5)]
    tuned = tune.tune((layouts.ROUNDS + 1) * 2, cases=cases, clock=clock)
    assert ([trial.kind for trial in tuned.trials], tuned.missed) == (["read"], ("fit_large",))
    assert json.loads(tuned.file.read_text())["blocks"] == {"fit_large": 1, "read": 2}


def test_what_does_not_fit_the_memory_is_left_as_it_is(clock):
    cases = [Stub(clock, "fit", b1=RaymarchError, b2=0.5), Stub(clock, "read", b1=1.0, b2=0.5)]
    assert tune.tune(100, cases=cases, clock=clock).missed == ("fit",)
    with pytest.raises(RaymarchError, match="fits the free memory"):
        tune.tune(100, cases=cases[:1], clock=clock)


def test_interrupted_it_keeps_nothing(clock):
    cases = [Stub(clock, "fit", b1=1.0, b2=0.5), Stub(clock, "read", b1=KeyboardInterrupt, b2=0.5)]
    with pytest.raises(KeyboardInterrupt):
        tune.tune(100, cases=cases, clock=clock)
    assert not layout_choice.choice_file().exists()
    assert layout_choice.current_choice().date is None


@pytest.mark.parametrize("kind", ["read", "fit", whole("fit_above")])
def test_a_case_takes_a_step_in_each_layout(kind, monkeypatch):
    for name, few in (("RAYS_A_STEP", 512), ("IMAGE_SIDE", 24), ("SLOTS", 1)):
        monkeypatch.setattr(layouts, name, few)
    block = getattr(LayoutChoice(), kind)
    trial = layouts.compare(layouts.Case(kind, 32, int(kind.endswith("above")), (block,)))
    assert (trial.kind, trial.default, trial.kept) == (kind, block, block)
    assert trial.seconds[block] > 0


def said(capsys, *words):
    """Code, stdout and stderr of `raymarch WORDS`."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_the_verbs_say_what_was_found_and_what_is_in_force(clock, monkeypatch, capsys):
    cases = (Stub(clock, "fit_large", b2=1.0, b1=0.5), Stub(clock, "read", b1=1.0, b2=0.99))
    monkeypatch.setattr(tune.tune, "__kwdefaults__", {"cases": cases, "clock": clock})
    code, out, _ = said(capsys, "info")
    assert code == 0
    assert "not measured: raymarch tune" in out
    assert out.count("default") == len(USE_WORDS)
    code, out, err = said(capsys, "tune")
    assert code == 0
    assert "blocks of 2 1000.0 ms  flat 500.0 ms" in out
    assert "flat, clearly faster" in out
    assert "flat, the default" in out
    assert USE_WORDS["fit_large"] in err
    code, out, _ = said(capsys, "info", "--json")
    record = json.loads(out)
    assert record["measured"] == {"fit_large": 1, "read": 1}
    assert record["layouts"]["fit_large"] == 1
    assert record["file"] == str(layout_choice.choice_file())
    assert record["date"] in said(capsys, "info")[1]
    assert json.loads(said(capsys, "tune", "--json")[1])["trials"][0]["kept"] == 1
    assert "forgotten" in said(capsys, "tune", "--forget")[1]
    assert "nothing was measured" in said(capsys, "tune", "--forget")[1]
    assert json.loads(said(capsys, "info", "--json")[1])["date"] is None


def test_info_without_a_file_times_nothing(capsys):
    code, _, err = said(capsys, "info", "--time")
    assert code == 2
    assert "are about a FILE; give it" in err
