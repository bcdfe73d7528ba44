"""Law: what is closed is kept for the next of its kind, which is as if it were new and compiles nothing."""

from __future__ import annotations

import gc
import threading

import cases
import drive
import numpy as np
import pytest

from raymarch import engine, runtime
from raymarch.device import memory, pool
from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.device.pool import Owner
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.tangents import RayTangents, VolumeTangents
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.rendering import ray_batches
from raymarch.rendering.renderer import Renderer, render
from raymarch.system import resources
from raymarch.tape.splatting import Splat
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

CAMERA = Camera.look_at((0.3, -4, 0.5), width=12, height=10)


def ball(shape, radius=0.5) -> Volume:
    return Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < radius), lambda p: 0.5 + p, shape=shape)


@pytest.fixture
def compiled(monkeypatch):
    """The names of the kernels that were compiled since."""
    names: list[str] = []
    compile_one = engine.kernel_class().materialize

    def count(kernel, key=None, *rest, **how):
        if key is not None and key not in engine.made_of(kernel):
            names.append(kernel.func.__name__)
        return compile_one(kernel, key, *rest, **how)

    monkeypatch.setattr(engine.kernel_class(), "materialize", count)
    return names


@pytest.fixture
def empty():
    """A pool with nothing in it, for which all that comes next is compiled again: who needs none has what was there."""
    gc.collect()
    pool.release()


def test_images_of_volumes_of_many_shapes_compile_no_kernel_again(compiled, empty):
    render(ball((20, 21, 22)), CAMERA)
    assert "march" in compiled
    compiled.clear()
    for shape in [(20, 21, 22), (9, 30, 5), (32, 2, 31), (25, 25, 25)]:
        render(ball(shape), CAMERA)
    assert compiled == []


def test_calling_again_keeps_no_more(compiled):
    render(ball((20, 21, 22)), CAMERA)
    held = pool.kept_bytes()
    compiled.clear()
    for _ in range(20):
        render(ball((20, 21, 22)), CAMERA)
    assert (pool.kept_bytes(), compiled) == (held, [])


def test_what_was_never_closed_is_taken_back():
    sizes = []
    for _ in range(6):
        Renderer(ball((20, 21, 22)))
        gc.collect()
        sizes.append(pool.kept_bytes())
    assert sizes[0] > 0
    assert len(set(sizes)) == 1


def test_an_image_is_the_same_whatever_the_room():
    """Cells, blocks and skipped space belong to the volume, not to the memory that it lies in."""
    volumes = [ball(shape) for shape in ((12, 11, 10), (20, 21, 22))]
    wanted = [render(volume, CAMERA, extras=True) for volume in volumes]
    pool.release()
    with Renderer(ball((50, 60, 40), 0.9)) as larger:
        larger.render(CAMERA)
        room = larger.grid.fields.empty_distance.shape
    for volume, want in zip(volumes, wanted, strict=True):
        with Renderer(volume) as renderer:
            assert renderer.grid.fields.empty_distance.shape == room > renderer.grid.cells
            got = renderer.render(CAMERA)
        for name in ("image", "opacity", "depth"):
            np.testing.assert_array_equal(getattr(got, name), getattr(want, name))


def test_a_new_tree_has_no_kernel_of_another_compiled_again(compiled, empty):
    """Also where it takes the place of a freed one, after which Taichi would compile all anew."""
    with Renderer(ball((20, 21, 22))) as renderer:
        Grid((8, 8, 8), 2).close()
        pool.release()
        renderer.render(CAMERA)
        compiled.clear()
        with Grid((8, 8, 8), 3):
            renderer.render(CAMERA)
            assert not set(compiled) & {"march", "integrate", "rays_of_pixels"}


def test_a_larger_tree_has_no_kernel_of_another_compiled_again(compiled):
    """It frees no smaller one of its kind, after which Taichi would compile all anew."""
    with Renderer(ball((20, 21, 22))) as renderer:
        renderer.render(CAMERA)
        Grid((8, 8, 8), 2).close()
        compiled.clear()
        with Grid((40, 8, 8), 2):
            renderer.render(CAMERA)
            assert not set(compiled) & {"march", "integrate", "rays_of_pixels"}


def test_a_larger_volume_grows_the_room_once(compiled):
    for shape in [(20, 9, 9), (9, 40, 9)]:
        compiled.clear()
        render(ball(shape), CAMERA)
    assert "march" in compiled  # of the second
    compiled.clear()
    for shape in [(20, 9, 9), (9, 40, 9), (32, 64, 32)]:
        render(ball(shape), CAMERA)
    assert compiled == []


def test_a_grid_that_nobody_filled_can_be_marched():
    """Its marks say that every cell is occupied, so that no march waits for a cell that is neither."""
    with Grid((5, 6, 7), 0) as grid, RayBuffer(16) as buffer:
        empty_distance, occupied_distance = drive.distances(grid)
        assert not empty_distance.any()
        assert (occupied_distance == 255).all()
        drive.image_on(grid, buffer, CAMERA.rays(np.arange(16)), 0.1)


def test_a_gradient_is_the_same_after_another_that_was_left_unfinished(empty):
    """Slots, marks and gradients of who had the memory before are gone."""
    v = cases.volume(degree=0)
    rays = cases.rays(v)

    def gradient(scale=1.0, finish=True):
        with Grid(v.shape, 0, slots=2) as grid, RayBuffer(len(rays)) as buffer:
            grid.upload(v)
            drive.image_on(grid, buffer, rays, 0.1)
            buffer.set_image_gradient(np.full((len(rays), 4), scale))
            how = (grid.variant, len(rays), 0.1, 0.0, 0.0, drive.ti.Vector([0.2, 0.5, 0.9]))
            march(grid.fields, buffer.fields, *how)
            march_adjoint(grid.fields, buffer.fields, *how)
            if finish:
                grid.reduce_slots()
                return grid.download_gradient()
            return None

    wanted = gradient()
    gradient(np.nan, finish=False)
    for a, b in zip(gradient(), wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("distance", [0, 1, 255])
def test_a_march_goes_on_whatever_the_marks_say(distance):
    """A cell that is neither empty nor occupied by them, too."""
    v = cases.volume(degree=0)
    rays = cases.rays(v)
    wanted = drive.image(v, rays, 0.1)
    grid = drive.grid_of(0, 4, 2)
    grid.fields.occupied_distance.fill(distance)
    np.testing.assert_allclose(drive.image_on(grid, drive.ray_buffer(), rays, 0.1), wanted, rtol=0, atol=1e-14)


def test_what_another_thread_let_go_is_taken_back_by_the_right_one(empty):
    grids = [Grid((8, 8, 8), 0)]
    size = pool.kept_bytes()
    thread = threading.Thread(target=grids.clear)
    thread.start()
    thread.join()
    assert pool.kept_bytes() > size
    with Grid((8, 8, 8), 0) as grid:
        assert grid.fields is not None
        assert pool.kept_bytes() == size


def test_release_leaves_what_is_in_use(empty):
    with Grid((8, 8, 8), 0) as grid:
        Grid((8, 8, 8), 1).close()
        assert pool.release() > 0
        assert pool.kept_bytes() == 0
        grid.upload(ball((8, 8, 8)))
        np.testing.assert_array_equal(grid.download()[0], ball((8, 8, 8)).density)
    with pytest.raises(RaymarchError, match="closed"):
        grid.download()


def test_no_more_is_kept_than_its_share(monkeypatch, empty):
    """Which two of them would take more than."""
    Grid((128, 128, 64), 0).close()
    most = 3 * pool.kept_bytes() // 2
    monkeypatch.setattr(pool, "_max_kept_bytes", lambda: most)
    for shape in [(192, 100, 60), (100, 100, 100), (128, 128, 64)]:
        Grid(shape, 0).close()
        assert 0 < pool.kept_bytes() <= most


def test_what_was_unused_the_longest_is_freed_first(monkeypatch, empty):
    for degree in (0, 1, 2):
        Grid((48, 48, 48), degree).close()
    kept = [tree.kind[1] for tree in pool._kept]
    assert kept == [0, 1, 2]
    most = pool.kept_bytes() - 1
    monkeypatch.setattr(pool, "_max_kept_bytes", lambda: most)
    RayBuffer(4).close()
    assert [tree.kind[1:2] for tree in pool._kept][:2] == [(1,), (2,)]


def test_what_was_closed_is_kept_once(empty):
    """Whether its owner is garbage later or not: two owners of one memory would write over each other."""
    grid = Grid((8, 8, 8), 0)
    grid.close()
    once = pool.kept_bytes()
    del grid
    gc.collect()
    assert pool.kept_bytes() == once
    assert len(pool._kept) + len(pool._dropped) == 1


def test_what_is_kept_is_freed_before_anything_is_refused(monkeypatch, empty):
    Grid((32, 32, 32), 1).close()
    kept = pool.kept_bytes()
    monkeypatch.setattr(memory, "_free_bytes", lambda: 60**3 * 30)
    assert memory.available_bytes() == 60**3 * 30 + kept > 0
    with Grid((60, 60, 60), 0):
        assert pool.kept_bytes() == 0


ASKERS = {
    "arrays": lambda needed: resources.require_free(needed, "arrays", "take fewer"),
    "images": lambda needed: memory.require_images("images", 1, "take fewer", held=needed),
    "rays": lambda needed: ray_batches.require_room(needed // memory.BYTES_A_RAY),
}


@pytest.mark.parametrize("name", ASKERS)
def test_whoever_asks_for_memory_gets_what_is_kept(name, monkeypatch, empty):
    Grid((32, 32, 32), 1).close()
    kept = pool.kept_bytes()

    def free() -> int:
        return 10**6 + kept - pool.kept_bytes()

    for module, ask in ((memory, "_free_bytes"), (resources, "free_bytes")):
        monkeypatch.setattr(module, ask, free)
    ASKERS[name](800_000)
    assert pool.kept_bytes() == kept
    ASKERS[name](1_000_000)
    assert pool.kept_bytes() == 0


def test_release_belongs_to_the_thread_that_started(empty):
    said: list[str] = []

    def run():
        try:
            pool.release()
        except RaymarchError as error:
            said.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert runtime.dtype() is np.float64
    assert "another thread" in said[0]


def test_a_ray_takes_as_many_numbers_as_memory_counts():
    fields = [getattr(drive.ray_buffer().fields, name) for name in ("origin", "direction", "image", "target", "jitter")]
    fields += [getattr(drive.ray_buffer().fields, name) for name in ("sum_even", "sum_odd")]
    depth = 3  # with its gradient, and the weights that it is the mean by
    numbers = sum(field.n for field in fields) + fields[2].n + depth  # and the image's gradient
    assert numbers == memory.numbers_a_ray(keeps=False)
    with RayBuffer(4, keeps=True) as buffer:
        for kept in (buffer.fields.kept_density, buffer.fields.kept_colour):
            numbers += kept.n * kept.shape[0] // buffer.fields.depth.shape[0]
        assert numbers == memory.numbers_a_ray(keeps=True)


@pytest.mark.parametrize(
    "make",
    [lambda v: Renderer(v), lambda v: Linearised(v, CAMERA), lambda v: Linearised(v, CAMERA, columns=2)],
    ids=["Renderer", "Linearised", "Linearised of two columns"],
)
def test_what_cannot_be_made_as_a_whole_gives_back_its_first_part(make, monkeypatch):
    given: list[pool.Tree] = []
    give = pool.return_tree
    monkeypatch.setattr(pool, "return_tree", lambda tree: (given.append(tree), give(tree)))
    monkeypatch.setattr(RayBuffer, "__init__", lambda *_, **__: pytest.fail("no room for rays"))
    with pytest.raises(pytest.fail.Exception, match="no room"):
        make(ball((4, 4, 4)))
    assert [tree.kind[0] for tree in given] == ["Grid"]
    assert given[0] in pool._kept


OWNERS = {
    "Grid": lambda: Grid((4, 4, 4), 0, slots=1),
    "RayBuffer": lambda: RayBuffer(8),
    "ImageStore": lambda: ImageStore(Views([CAMERA], np.zeros((1, 10, 12, 4), np.uint8))),
    "Splat": lambda: Splat(3, (4, 4), 1),
    "RayTangents": lambda: RayTangents(8, 1),
    "VolumeTangents": lambda: VolumeTangents((4, 4, 4), 0, 1),
}


@pytest.mark.parametrize("name", OWNERS)
def test_an_owner_whose_constructor_fails_gives_its_memory_back(name, monkeypatch):
    given: list[pool.Tree] = []
    give, own = pool.return_tree, Owner._own

    def failing(self, *args, **how):
        own(self, *args, **how)
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "return_tree", lambda tree: (given.append(tree), give(tree)))
    monkeypatch.setattr(Owner, "_own", failing)
    with pytest.raises(KeyboardInterrupt):
        OWNERS[name]()
    assert [tree.kind[0] for tree in given] == [name]
