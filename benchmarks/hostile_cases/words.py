"""The command line's words: numbers out of range, slips, things that contradict each other."""

from __future__ import annotations

import json
from pathlib import Path

from hostile_cases.case import FIT, Area, Case

area = Area("words")
RENDER = "render ball.h5 --orbit 1 --size 8 --out pics"
PICTURES = ("pics", "pics/*.png")
VERBS = ("cameras", "fit", "evaluate", "render", "info", "check-gradients", "bench")
READERS = ("cameras", "fit", "evaluate", "render", "check-gradients")  # verbs that read a file, as info does not always


def wrong(words: str, says: str, base: str = FIT, name: str = "", **more) -> Case:
    """A fit (or another command) with these words more must be refused."""
    return area.refused(name or f"{base.split()[0]} {words}", f"{base} {words}", says, **more)


def fits(words: str, **more) -> Case:
    """A fit with these words more must work."""
    return area.works(f"fit {words}", f"{FIT} {words}", makes=("out.h5",), **more)


def is_json(folder: Path, done) -> None:
    """One line of JSON on stdout."""
    lines = done.out.splitlines()
    assert len(lines) == 1, f"{len(lines)} lines on stdout"

    def constant(name):
        raise AssertionError(f"{name} is no JSON")

    assert isinstance(json.loads(lines[0], parse_constant=constant), dict), "no mapping"


def nothing_new(folder: Path, done) -> None:
    """Nothing was written."""
    assert sorted(p.name for p in folder.iterdir()) == ["ball.h5", "set"], "something was written"


HELP = [
    area.works("--help", "--help", says="Usage"),
    *[area.works(f"{verb} --help", f"{verb} --help", says="Usage") for verb in VERBS],
    area.works("--version", "--version", says="[0-9]+[.][0-9]+"),
    area.refused("a verb that is none", "fitt set", "fitt"),
    area.refused("an option before the verb", "--out x.h5 fit set", "--out"),
    *[area.refused(f"{verb} without anything", verb, "Missing|DATA|VOLUME|FILE|PHOTOS") for verb in READERS],
    area.works("info without a file tells of the machine", "info", says="processor"),
    wrong("extra words", "unexpected|extra", name="fit: words too many"),
    wrong("--stepz 3", "--stepz", name="fit: an option misspelt"),
    area.refused("fit: an option without its value", FIT + " --steps", "steps"),
    area.refused("fit: volume and set swapped", FIT.replace("fit set", "fit ball.h5"), "ball.h5.*is no image set"),
    area.refused("evaluate: volume and set swapped", "evaluate set ball.h5", "set: is an image set"),
    area.refused("info of an image set", "info set", "set: is an image set"),
    area.refused("info of an image", "info set/train/r_0.png", "is a picture, want a volume"),
]  # fmt: skip

NUMBERS = [
    *[wrong(f"--steps {x}", "steps") for x in ("0", "-1", "1.5", "1e9", "many", "''")],
    *[wrong(f"--seconds {x}", "seconds") for x in ("0", "-1", "nan", "inf", "1e999", "soon")],
    *[wrong(f"--resolution {x}", "resolution") for x in ("0", "3", "-8", "5000", "8x8x8")],
    wrong("--resolution 4096", "bytes|4096", name="fit --resolution 4096: more memory than there is"),
    *[wrong(f"--sh-degree {x}", "sh-degree|degree") for x in ("-1", "4", "nan")],
    *[wrong(f"--seed {x}", "seed") for x in ("-1", "2147483648", "1e3", "nan")],
    *[wrong(f"--memory {x}", "memory") for x in ("0", "-1", "nan", "inf")],
    wrong("--memory 0.001", "libraries|GB|budget.*at least|is the budget; .*(raise|give|memory)"),
    *[wrong(f"--box={x}", "box") for x in ("1", "1,2,3,4,5", "a,b,c,d,e,f", "1,1,1,-1,-1,-1", "0,0,0,0,0,0",
                                          "nan,0,0,1,1,1", "-inf,-inf,-inf,inf,inf,inf", "0,0,0,1e-12,1e-12,1e-12",
                                          "-1e30,-1e30,-1e30,1e30,1e30,1e30", "-1e9,-1e9,-1e9,1e9,1e9,1e9", "''")],
    wrong("--box=100,100,100,101,101,101", "box|see", name="fit --box where no camera looks"),
    fits("--box=-1,-1,-1,1,1,1"),
    *[wrong(f"--background {x}", "background") for x in ("plaid", "2,2,2", "nan,nan,nan", "1,1", "#fffff")],
    *[fits(f"--background {x}") for x in ("0.5,0.5,1", "blue", "#ffffff", "''")],
    *[wrong(f"--arch {x}", "arch|CUDA") for x in ("gpu", "metal")],
    wrong("--preset fast", "fast"),
]  # fmt: skip

SETTINGS = [
    *[wrong(f"--set {x}", says) for x, says in {
        "hull": "hull", "=3": "=3", "''": "NAME=VALUE", "unknown=1": "unknown", "rays=many": "rays", "rays=nan": "rays",
        "rays=1e12": "rays", "tv_density=-1": "tv_density", "lr_density=1e9": "lr_density", "loss=l1": "l1",
        "loss=lambda": "lambda", "optimiser=adam": "optimiser", "memory=1e999": "memory", "hull=maybe": "hull",
        "slots=0": "slots", "block=3": "block", "seed=0.5": "seed", "levels=abc": "levels", "levels=[[0,2]]": "levels",
        "density=tanh": "tanh", "step=0": "step", "min_transmittance=1": "min_transmittance", "beta1=1": "beta1",
    }.items()],
    fits("--set hull=False"), fits("--set hull=false"), fits("--set slots=None"),
    area.works("fit --set levels=((0, 0.5), (0.5, 1))", (*FIT.split(), "--set", "levels=((0, 0.5), (0.5, 1.0))"),
               makes=("out.h5",)),
    area.works("fit --set levels=[[0, 0.5], [0.5, 1]]", (*FIT.split(), "--set", "levels=[[0, 0.5], [0.5, 1.0]]"),
               makes=("out.h5",)),
    fits("--set tv_density=1e-3"), fits("--set loss=huber"), fits("--steps 2 --steps 3"), fits("--set block=None"),
    area.works("a preset quick of few steps does not advise the preset quick",
               "fit set --preset quick --steps 9 --seconds 60 --resolution 8 --out out.h5", makes=("out.h5",),
               check=lambda folder, done: _no_quick(done)),
]  # fmt: skip


def _no_quick(done) -> None:
    assert "the preset quick" not in done.err, "advises the preset that was taken"


OTHERS = [
    area.refused("render from nowhere", "render ball.h5 --out pics", "--views|--orbit"),
    area.refused("render from two places", "render ball.h5 --orbit 2 --views set --out pics", "--views|--orbit"),
    area.refused("render without --out", "render ball.h5 --orbit 2", "--out"),
    *[wrong(f"--orbit {x}", "orbit", "render ball.h5 --out pics") for x in ("0", "-1", "10001", "1.5", "nan")],
    *[wrong(f"--elevation {x}", "elevation", RENDER) for x in ("90", "-1e9", "nan", "high")],
    *[wrong(f"--size {x}", "size", RENDER) for x in ("0", "-8", "16385", "8x8x8")],
    area.works("render --size 8x8", RENDER.replace("--size 8", "--size 8x8"), makes=PICTURES),
    wrong("--background plaid", "background", RENDER),
    wrong("--split nowhere", "nowhere", "render ball.h5 --views set --out pics"),
    area.works("render --size 1", "render ball.h5 --orbit 1 --size 1 --out pics", makes=PICTURES),
    area.works("render with extras", RENDER + " --extras", makes=PICTURES),
    area.works("evaluate --json", "evaluate ball.h5 set --json", check=is_json),
    area.works("evaluate --json of a set that is the volume's own", "evaluate ball.h5 set --split train --json",
               check=is_json),
    area.works("info --json", "info ball.h5 --json", check=is_json),
    area.works("fit --json", FIT + " --json", makes=("out.h5",), check=is_json),
    area.works("fit --dry-run --json, without --out", "fit set --resolution 8 --steps 3 --dry-run --json",
               check=lambda f, d: (is_json(f, d), nothing_new(f, d))),
    area.works("fit --dry-run with --out writes nothing", FIT + " --dry-run", check=nothing_new),
    area.works("bench march --json", "bench march --n 8 --resolution 8 --repeats 1 --json", check=is_json),
    *[wrong(x, says, "bench march --repeats 1") for x, says in {
        "--n 3": "--n", "--n 1025": "--n", "--resolution 0": "resolution", "--block 3": "block",
        "--threads 0": "threads", "--threads 5000": "threads"}.items()],
    area.refused("bench of something else", "bench dance", "dance"),
    wrong("--parameters wings", "wings", "check-gradients ball.h5 set"),
    wrong("--mode dance", "dance", "check-gradients ball.h5 set"),
    wrong("--rays 0", "rays", "check-gradients ball.h5 set"),
    wrong("--precision f16", "f16", "check-gradients ball.h5 set"),
    wrong("--mode x-ray --parameters colour", "colour", "check-gradients ball.h5 set"),
    area.works("check-gradients of a few rays", "check-gradients ball.h5 set --rays 4 --parameters background --json",
               check=is_json, seconds=120),
    area.refused("a name with an escape code", ("info", "\x1b[31mred"), "no such file"),
    area.refused("a name with a new line", ("info", "a\nb.h5"), "no such file"),
    area.refused("a word with an escape code", ("fit", "set", "--out", "out.h5", "--preset", "\x1b[31m"), "preset"),
    area.refused("a split with an escape code", ("evaluate", "ball.h5", "set", "--split", "\x1b[31m\n"), "there is no"),
    area.refused("a word of half a character", ("info", "b\udcff.h5"), "no such file"),
    area.refused("a name of 100,000 characters", ("info", "b" * 100_000), "long|no such file"),
]  # fmt: skip

CASES = [*HELP, *NUMBERS, *SETTINGS, *OTHERS]
