"""Law of ranks: 1, 2, 4 and 8 processes make one fit with one digest, and a fit that is near the one of one process.

What cannot be shared, or is not alike on all ranks, is one line; of ranks that fail one tells why, and nothing is
written.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import rank_jobs
from rank_jobs import KINDS, disc_views, start_job, start_ranks
from skips import require_extra

import raymarch as rm
from raymarch.fitting.checkpoints.saver import CheckpointSaver
from raymarch.fitting.ranked_fitter import RankedFitter, places_of_tiles
from raymarch.fitting.settings.settings import preset
from raymarch.kernels.rays.dealt_rays import VIRTUAL_SLOTS
from raymarch.ranks.comm import COUNTS, Alone, sum_in_pairs
from raymarch.ranks.launch import Launch, launched
from raymarch.ranks.open_ranks import ranks_of
from raymarch.system.resources import cores

ROOT = Path(__file__).resolve().parents[2]
MIXED = "features, jitter, roulette and regularisers"


@pytest.fixture
def torch():
    return require_extra("torch", "torch")


@pytest.mark.parametrize("tiles", [1, 7, 64, 131])
@pytest.mark.parametrize("ranks", COUNTS)
def test_each_tile_is_dealt_to_one_rank(tiles, ranks):
    slots = VIRTUAL_SLOTS // ranks
    dealt = [places_of_tiles(tiles, 4, rank * slots, slots) for rank in range(ranks)]
    assert sorted(np.concatenate(dealt)) == list(range(tiles))


@pytest.mark.parametrize("ranks", COUNTS)
def test_a_sum_has_the_same_bits_by_any_count_of_ranks(ranks):
    rng = np.random.default_rng(3)
    slots = list(rng.normal(size=(VIRTUAL_SLOTS, 1000)).astype(np.float32) * 10.0 ** rng.integers(-6, 6, (8, 1)))
    each = VIRTUAL_SLOTS // ranks
    branches = [sum_in_pairs(slots[rank * each : (rank + 1) * each]) for rank in range(ranks)]
    np.testing.assert_array_equal(sum_in_pairs(branches), sum_in_pairs(slots))
    np.testing.assert_allclose(sum_in_pairs(branches), np.sum(slots, 0), rtol=1e-3, atol=1.0)


@pytest.mark.ordered
@pytest.mark.parametrize("kind", [MIXED, "density and colour side by side"])
def test_a_fit_by_ranks_is_that_of_one_process_up_to_rounding(kind):
    settings = preset("quick", **{**KINDS[kind], "steps": 6, "levels": ((0.0, 1.0),)})
    views = disc_views()
    with rm.Fitter(views, settings) as alone, RankedFitter(views, settings, Alone()) as ranked:
        for _ in range(6):
            alone.step()
            ranked.step()
        assert ranked.report().psnr == pytest.approx(alone.report().psnr, rel=1e-6)
        np.testing.assert_allclose(ranked.volume().density, alone.volume().density, rtol=1e-4, atol=1e-5)


def found(results):
    assert [result[0] for result in results] == [0] * len(results), results
    return [json.loads(text) for _, text, _ in results]


@pytest.mark.extra
@pytest.mark.ordered
def test_one_and_two_ranks_have_one_digest(torch):
    one, two = (found(start_job(count, rank_jobs.fit_by_kind, MIXED)) for count in (1, 2))
    assert len({tuple(digest) for _, *digest, _, _ in one + two}) == 1
    assert one[0][2] == [24, 24, 24] or max(one[0][2]) == 24
    assert two[0][3] == pytest.approx(one[0][3], rel=1e-5)


@pytest.mark.extra
@pytest.mark.ordered
@pytest.mark.whole
@pytest.mark.parametrize("kind", KINDS)
def test_any_count_of_ranks_has_one_digest(torch, kind):
    digests = {each[1] for count in COUNTS for each in found(start_job(count, rank_jobs.fit_by_kind, kind))}
    assert len(digests) == 1


@pytest.mark.extra
def test_a_rank_that_dies_is_one_line_and_leaves_nothing(torch, tmp_path):
    out = tmp_path / "ball.h5"
    command = ["fit", ROOT / "scenes" / "tower", "--preset", "quick", "--resolution", "16", "--steps", "400"]
    command += ["--set", "rays=256", "--out", out]
    (code, _, told), (killed, _, silent) = start_job(2, rank_jobs.fit_and_lose_one, *command)
    assert (code, killed) == (1, -9)
    lines = [line for line in told.splitlines() if line.startswith("raymarch:")]
    assert len(lines) == 1 and "rank 0 has lost another rank" in lines[0] and "start all ranks anew" in lines[0]
    assert "Traceback" not in told + silent
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extra
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_told_to_stop_ends_the_fit_of_all(torch, rank):
    assert found(start_job(2, rank_jobs.fit_and_stop_one, rank)) == [["interrupted at step 4"]] * 2


@pytest.mark.extra
def test_a_count_that_no_step_is_dealt_to_is_one_line(torch, tmp_path):
    command = ["-m", "raymarch", "fit", ROOT / "scenes" / "tower", "--out", tmp_path / "ball.h5"]
    results = start_ranks(3, *command)
    assert [code for code, _, _ in results] == [1, 1, 1]
    (line,) = [line for _, _, told in results for line in told.splitlines() if line.startswith("raymarch:")]
    assert "3 ranks were started, want 1, 2, 4 or 8" in line and line.endswith("start 2")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extra
def test_ranks_that_were_not_told_the_same_are_refused(torch):
    for code, told, _ in start_job(2, rank_jobs.fit_other_settings, 7):
        assert code == 0 and "the checksum of the settings on rank 0 is" in told and "give all ranks the same" in told


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"exposure": True}, "exposure is set and ranks do not share it; fit without it"),
        ({"learn_background": True}, "learn_background is set .* give the background's colour"),
        ({"depth_weight": 0.1}, "depth_weight is set .* leave it at 0"),
        ({"distortion_weight": 0.1}, "distortion_weight is set .* leave it at 0"),
    ],
)
def test_what_ranks_do_not_share_is_refused(asked, words):
    with pytest.raises(rm.RaymarchError, match=words):
        rm.fit(disc_views(), "quick", ranks=Alone(), **asked)


@pytest.mark.extra
@pytest.mark.ordered
@pytest.mark.parametrize(
    ("kind", "first", "then"),
    [
        pytest.param(MIXED, 1, 1),
        pytest.param(MIXED, 2, 1, marks=pytest.mark.whole),
        pytest.param("bricks", 1, 4, marks=pytest.mark.whole),
    ],
)
def test_any_count_of_ranks_goes_on_from_a_checkpoint(torch, tmp_path, kind, first, then):
    file = tmp_path / "ball.checkpoint"
    (whole,) = found(start_job(1, rank_jobs.fit_by_kind, kind))
    cut = found(start_job(first, rank_jobs.fit_by_kind, kind, file, 9))
    assert file.is_file() and {each[1] for each in cut} != {whole[1]}
    assert {each[1] for each in found(start_job(then, rank_jobs.fit_by_kind, kind, file))} == {whole[1]}


def test_a_checkpoint_of_ranks_is_not_gone_on_with_by_one_process(tmp_path):
    how = {**KINDS[MIXED], "steps": 4, "checkpoints": rm.Checkpoints(tmp_path / "c")}
    rm.fit(disc_views(), "quick", ranks=Alone(), between=lambda fitter: fitter.steps_done == 2, **how)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    how["checkpoints"] = rm.Checkpoints(tmp_path / "c", resume=True)
    with pytest.raises(rm.RaymarchError, match="is of a fit with other settings: .*ranks was True, is not there"):
        rm.fit(disc_views(), "quick", **how)
    assert rm.fit(disc_views(), "quick", ranks=Alone(), **how).resumed_from == 3  # told with the next step


def test_of_several_ranks_the_first_alone_writes_checkpoints(tmp_path):
    other = CheckpointSaver(rm.Checkpoints(tmp_path / "c"), writes=False)
    with rm.Fitter(disc_views(), "quick", **{**KINDS[MIXED], "steps": 2}) as fitter, other.alone():
        other.begin(fitter)
        fitter.step()
        other.save(fitter)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(rm.RaymarchError, match="there is no checkpoint to resume from"):
        CheckpointSaver(rm.Checkpoints(tmp_path / "c", resume=True), writes=False)


@pytest.mark.parametrize(
    ("by", "module", "words"),
    [("torchrun", "torch", r'pip install "raymarch\[torch\]"'), ("MPI", "mpi4py", "pip install mpi4py")],
)
def test_what_joins_ranks_is_named_where_it_is_missing(monkeypatch, by, module, words):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(rm.RaymarchError, match=words), ranks_of(Launch(by, 0, 2, 0, 2)):
        pass


def test_an_mpi_other_than_the_one_that_started_the_ranks_is_told(monkeypatch):
    monkeypatch.setattr("raymarch.ranks.open_ranks.mpi_comm", lambda: nullcontext(Alone()))
    words = "MPI started 2 processes, and mpi4py joins 1; start them by the mpirun"
    with pytest.raises(rm.RaymarchError, match=words), ranks_of(Launch("MPI", 1, 2, 1, 2)):
        pass


def test_a_rank_has_its_part_of_the_machine(monkeypatch):
    """Processors by how many there are here, and the GPU of its number among those that are to be seen."""
    third = launched({"RANK": "6", "WORLD_SIZE": "8", "LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "4"})
    assert third.threads == max(1, cores() // 4)
    for seen, own in ((None, "2"), ("4,5,6,7", "6")):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if seen:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
        third.bind_gpu()
        assert os.environ["CUDA_VISIBLE_DEVICES"] == own


def test_a_process_of_its_own_is_no_rank():
    """Nor is one of a batch job, whose variables are those of MPI, of one process."""
    assert launched({}) is launched({"PMI_RANK": "0", "PMI_SIZE": "1"}) is None
    assert launched({"PMI_RANK": "1", "PMI_SIZE": "2"}) == Launch("MPI", 1, 2, 1, 2)


def test_a_fit_that_is_told_to_stop_halts_after_that_step():
    settings = preset("quick", steps=50, resolution=12, rays=256, sh_degree=0)
    with RankedFitter(disc_views(), settings, Alone(), stop_when=lambda: True) as fitter:
        list(fitter.run(fitter.has_halted))
        assert fitter.steps_done == 1
