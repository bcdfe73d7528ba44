"""Readers, formats, modes, activations, losses of a user's own that lack a part, or give what they should not."""

from __future__ import annotations

from hostile_cases.case import Area, Case

area = Area("own")
READER = "own = rm.Reader('mine', {}, {})\nrm.load_views('set', reader=own)"
FORMAT = "own = rm.Format('mine', '.mine', {}, {}, {})\n"
DENSITY = "own = rm.DensityActivation('mine', {}, {})\nrm.render(replace(ball, activation=rm.Activation(own)), camera)"
YES, NOTHING, CRASH = "lambda path: True", "lambda *_, **__: None", "lambda *_, **__: 1 / 0"


def refused(name: str, source: str, says: str) -> Case:
    """A call with such an object, which must be refused with its name and the part."""
    return area.python_refused(name, f"from dataclasses import replace\n{source}", says)


CASES = [
    *[refused(name, READER.format(*parts), says) for name, parts, says in [
        ("reader without detect", ("None", NOTHING), "mine.*detect"),
        ("reader without read", (YES, "None"), "mine.*read"),
        ("reader that returns nothing", (YES, NOTHING), "mine.*read gave None"),
        ("reader that returns a path", (YES, "lambda path, split, **_: path"), "mine.*read gave"),
        ("reader that crashes", (YES, CRASH), "mine.*read.*ZeroDivisionError"),
        ("reader whose text has lines", (YES, "lambda *_, **__: {}['a\\nb']"), "mine.*read.*KeyError"),
        ("reader that takes no options", (YES, "lambda path: None"), "mine.*read.*TypeError"),
    ]],
    refused("reader by an unknown name", "rm.load_views('set', reader='colmap2')", "colmap2"),
    refused("reader that is none", "rm.load_views('set', reader=len)", "reader"),
    *[refused(name, FORMAT.format(*parts) + call, says) for name, parts, call, says in [
        ("format without write", (YES, NOTHING, "None"), "rm.save(ball, 'a.mine', format=own)", "mine.*write"),
        ("format that writes nothing", (YES, NOTHING, NOTHING), "rm.save(ball, 'a.mine', format=own)", "mine.*write"),
        ("format that crashes writing", (YES, NOTHING, CRASH), "rm.save(ball, 'a.mine', format=own)", "mine.*write"),
        ("format that crashes half way", (YES, NOTHING, "lambda v, path: path.write_bytes(b'half') / 0"),
         "rm.save(ball, 'a.mine', format=own)", "mine.*write"),
        ("format of another suffix", (YES, NOTHING, NOTHING), "rm.save(ball, 'a.h5', format=own)", "mine"),
        ("format that reads no volume", (YES, NOTHING, NOTHING), "rm.load('ball.h5', format=own)", "read gave None"),
        ("format that crashes reading", (YES, CRASH, NOTHING), "rm.load('ball.h5', format=own)", "mine.*read"),
        ("format with no answer", (NOTHING, NOTHING, NOTHING), "rm.load('ball.h5', format=own)", "mine.*detect"),
    ]],
    *[refused(name, source, says) for name, source, says in [
        ("mode without a rule", "rm.Mode('mine', None, min, max)", "mine.*composite is None"),
        ("mode in Python", "rm.render(ball, camera, march=rm.March(mode=rm.Mode('mine', max, max, max)))",
         "mine"),
        ("mode of a power of 3", "rm.Mode('mine', min, min, min, power=3)", "mine.*power is 3"),
        ("density without forward", DENSITY.format("None", "abs"), "mine.*forward is None"),
        ("density without kernel side", DENSITY.format("abs", "abs"), "mine.*value is None"),
        ("density that falls", "own = rm.DensityActivation('mine', lambda x: -x, lambda y: -y, abs, abs)\n"
         "rm.render(replace(ball, activation=rm.Activation(own)), camera)", "mine.*forward"),
        ("loss of a Python function", "rm.Loss('mine', lambda r: r * r, lambda r: 2 * r)", "mine.*value"),
        ("loss without a slope", "rm.Loss('mine', min, None)", "mine"),
        ("regulariser of nothing", "rm.Regulariser('mine', 'speed', min, min)", "mine.*speed"),
        ("objective of a word", "rm.fit(views, 'quick', objective='mine')", "objective"),
        ("activations of a file that are none", "rm.load('ball.h5', activations=[len])", "activations"),
    ]],
]  # fmt: skip
