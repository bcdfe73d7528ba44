"""Law: where the manual says what to do instead, the mistake is made, what it says is done, and it works."""

import contextlib
import dataclasses
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import raymarch as rm
from raymarch import cli

DOCS = Path(__file__).parents[2] / "docs"


def says(page: str, sentence: str) -> bool:
    """Whether a page has a sentence, wherever its lines break."""
    return sentence in re.sub(r"\s+", " ", (DOCS / page).read_text(encoding="utf-8"))


def typed(line: str) -> tuple[int, str]:
    """Exit code of a line of the shell, and all that it says."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told), pytest.raises(SystemExit) as ended:
        cli.main(shlex.split(line.removeprefix("raymarch ")))
    return int(ended.value.code or 0), told.getvalue()


@pytest.fixture(autouse=True)
def head(tmp_path, monkeypatch):
    """The folder of a scan in Hounsfield units that no program is in, with a file of somebody else's beside it."""
    monkeypatch.chdir(tmp_path)
    x = np.stack(np.meshgrid(*[np.linspace(-1, 1, 12)] * 3, indexing="ij"), -1)
    values = np.round(1200 * np.exp(-3 * (x**2).sum(-1)) - 1000).astype(np.int16)
    rm.save(rm.ScalarVolume(values, np.diag([8.0, 8.0, 8.0, 1.0]), unit="HU", length_unit="mm"), "head.h5")
    np.save("bare.npy", values.astype(np.float32))
    Path("theirs.nrrd").write_bytes(b"a letter")


def test_spacing_that_a_file_lacks_is_given(caplog):
    assert says(
        "look-into-my-ct.md", "`raymarch convert in.tif out.nrrd --spacing 0.5,0.5,2` writes one with the right"
    )
    assert typed("raymarch info bare.npy")[0] == 0 and "says no spacing" in caplog.text
    caplog.clear()
    assert typed("raymarch convert bare.npy out.nrrd --spacing 0.5,0.5,2")[0] == 0
    code, told = typed("raymarch info out.nrrd")
    assert code == 0 and "0.5 x 0.5 x 2" in told and "says no spacing" not in caplog.text


def test_air_of_a_scan_is_0_once_1000_are_added():
    assert says("look-into-my-ct.md", "by `dataclasses.replace(head, intercept=head.intercept + 1000)`")
    head = rm.load("head.h5")
    assert head.range[0] < -900
    raised = dataclasses.replace(head, intercept=head.intercept + 1000)
    assert raised.range[0] >= 0 and raised.range[1] - raised.range[0] == head.range[1] - head.range[0]


def test_a_mirrored_scan_is_flipped_in_python_and_saved():
    assert says("look-into-my-ct.md", "values=np.ascontiguousarray(head.values[::-1])")
    head = rm.load("head.h5")
    ramp = dataclasses.replace(head, values=np.arange(head.values.size, dtype=np.int16).reshape(head.values.shape))
    rm.save(dataclasses.replace(ramp, values=np.ascontiguousarray(ramp.values[::-1])), "flipped.nrrd")
    assert (rm.load("flipped.nrrd").values[0] == ramp.values[-1]).all()


def test_what_others_wrote_is_replaced_with_overwrite_alone():
    assert says("fit-my-photos.md", "Nothing that raymarch did not write is replaced without `--overwrite`")
    code, told = typed("raymarch convert head.h5 theirs.nrrd")
    assert code == 1 and "--overwrite" in told and Path("theirs.nrrd").read_bytes() == b"a letter"
    assert typed("raymarch convert head.h5 theirs.nrrd --overwrite")[0] == 0
    assert rm.load("theirs.nrrd").shape == (12, 12, 12)


def test_the_innermost_of_nested_boxes_is_saved_on_a_grid():
    assert says("fit-my-photos.md", '`rm.save(rm.load("statue.h5").nested(0), "statue.nrrd")`')
    both = rm.Volume.from_function(lambda p: 4.0 * (abs(p).max(-1) < 0.5), shape=(16, 8, 8))
    nested = dataclasses.replace(both, boxes=2)
    rm.save(nested, "statue.h5")
    code, told = typed("raymarch convert statue.h5 statue.nrrd")
    assert code == 1 and "nested" in told
    rm.save(rm.load("statue.h5").nested(0), "statue.nrrd")
    assert rm.load("statue.nrrd").shape == (8, 8, 8)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("render head.h5 --orbit 1 --table ctbone --out new", "did you mean 'ct-bone'"),
        ("render head.h5 --orbit 1 --table jett --out new", "did you mean 'jet'"),
        ("render head.h5 --orbit 1 --table sold,1,2 --out new", "did you mean 'solid'"),
        ("render head.h5 --path circle --out new", "did you mean --orbit 120?"),
        ("render head.h5 --path turntable --out new", "did you mean --orbit 120?"),
        ("view head.h5 --host 0.0.0.0", "--bind ADDRESS listens elsewhere"),
        ("view head.h5 --listen 0.0.0.0", "did you mean --bind?"),
    ],
)
def test_what_is_called_by_another_name_is_asked_for_by_ours(line, said):
    code, told = typed(line)
    assert code == 2 and said in told and not Path("new").exists()
