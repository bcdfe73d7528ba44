"""Law: a Dask cluster makes what one process makes and keeps what it compiled; one that is not there is told."""

from __future__ import annotations

import socket
import sys

import jobs
import numpy as np
import pytest
from skips import require_extra

import raymarch as rm
from raymarch.rendering import out_of_core
from raymarch.runtime.kernel_cache import CACHE_VARIABLE
from raymarch.tasks.executors import run_tasks
from raymarch.volumes import part_plan

pytestmark = pytest.mark.extra


@pytest.fixture
def file(tmp_path):
    """A volume's file."""
    rm.save(jobs.ball(), tmp_path / "ball.h5")
    return tmp_path / "ball.h5"


def test_a_cluster_of_its_own_makes_the_same_bytes_and_keeps_its_kernels(file, tmp_path, single, monkeypatch):
    require_extra("distributed", "cluster")
    cameras = jobs.cameras()
    wanted = single(jobs.images_here, str(file), cameras)[0]
    cache = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    seen = [one.image for one in rm.render_many(file, cameras, executor="local")]
    np.testing.assert_array_equal(seen, wanted)
    assert list(cache.glob("*.tic"))


def test_parts_of_a_volume_by_a_cluster_have_the_same_bytes(file, monkeypatch):
    require_extra("distributed", "cluster")
    monkeypatch.setattr(part_plan, "MIN_SIDE", 4)
    monkeypatch.setattr(out_of_core, "_rooms", lambda volume, memory, features: (13**3, 2000))
    x = np.linspace(-1, 1, 20)
    values = 9 * np.exp(-3 * (x[:, None, None] ** 2 + x[:, None] ** 2 + x**2)) - 0.5
    rm.save(rm.ScalarVolume(values, np.diag([0.1, 0.1, 0.1, 1])), file.with_name("scan.h5"))
    camera, images = rm.Camera.look_at((3, -3, 2), (1, 1, 1), width=20, height=20), []
    march = rm.March(mode="maximum")
    for executor in (None, "local"):
        with rm.OutOfCoreRenderer(file.with_name("scan.h5"), march, executor=executor) as renderer:
            images.append(renderer.render(camera, depth=False).image)
    np.testing.assert_array_equal(*images)
    assert np.ptp(images[0]) > 0.1


def test_a_worker_that_is_lost_costs_its_item_alone(tmp_path):
    require_extra("distributed", "cluster")
    items = [(number, str(tmp_path / "marker")) for number in range(5)]
    assert [number for number, _ in run_tasks(jobs.die_once, items, "local")] == [0, 1, 2, 3, 4]
    assert (tmp_path / "marker").exists()


def test_errors_of_the_work_are_those_of_this_process():
    require_extra("distributed", "cluster")
    with pytest.raises(rm.RaymarchError, match=r"^x is 3, want another$"):
        list(run_tasks(jobs.refuse, [3], "local"))


def test_a_cluster_that_is_not_there_is_told(monkeypatch):
    require_extra("distributed", "cluster")
    monkeypatch.setattr("raymarch.tasks.executors.SCHEDULER_SECONDS", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(
        rm.RaymarchError, match=rf"no Dask scheduler answers at {address} .*or give local for a cluster"
    ):
        list(run_tasks(jobs.square, [1], address))
    with pytest.raises(rm.RaymarchError, match="no Dask scheduler answers at nonsense"):
        list(run_tasks(jobs.square, [1], "nonsense"))


def test_a_cluster_without_workers_is_told():
    distributed = require_extra("distributed", "cluster")
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": distributed.Scheduler, "options": options}
    with (
        distributed.SpecCluster(scheduler=scheduler, workers={}) as cluster,
        pytest.raises(rm.RaymarchError, match="has no workers; start one by `dask worker"),
    ):
        list(run_tasks(jobs.square, [1], cluster.scheduler_address))


def test_a_cluster_that_loses_all_workers_is_told(monkeypatch, caplog):
    distributed = require_extra("distributed", "cluster")
    monkeypatch.setattr("raymarch.tasks.executors.LOOK_SECONDS", 0.1)
    monkeypatch.setattr("raymarch.tasks.executors.EMPTY_SECONDS", 0.3)
    with distributed.LocalCluster(1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        results = run_tasks(jobs.wait, [0.0, *[30.0] * 4], cluster.scheduler_address)
        next(results)
        cluster.scale(0)
        with pytest.raises(rm.RaymarchError, match="the cluster has lost all its workers, and no other came; look"):
            list(results)
    assert "the cluster has no worker any more" in caplog.text


def test_where_dask_is_missing_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(rm.RaymarchError, match=r'Dask is not installed .*pip install "raymarch\[cluster\]"'):
        list(run_tasks(jobs.square, [1], "local"))
