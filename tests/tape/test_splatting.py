"""Law: splat is the transpose of gather, its adjoint and tangent are its derivatives, and no light is made."""

import subprocess
import sys
from functools import cache

import cases
import numpy as np
import pytest
import reference
import single as worker
from drive import best_agreement
from whole import whole

from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.kernels.integrator.splat import splat_adjoint
from raymarch.tape.splatting import Splat, splat

COUNT = 40
KINDS = [((7, 5), 1), ((7, 5), 3), ((6, 5, 4), 3)]  # shape, channels
KINDS += [whole(kind) for kind in (((20, 3), 1), ((20, 3), 3), ((6, 5, 4), 1))]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]} x {kind[1]}")


@cache
def of(kind) -> Splat:
    """The one splat of its kind."""
    return Splat(COUNT, *kind)


def points(kind, seed=0, margin=1.5):
    """Positions as far as `margin` outside, and values."""
    shape, channels = kind
    rng = np.random.default_rng(seed)
    positions = rng.uniform(-margin, np.array(shape) - 1 + margin, (COUNT, len(shape)))
    return positions, rng.normal(size=(COUNT, channels))


def kinky(kind, seed=0):
    """The same with points on samples, on the last sample, on lines between samples and far outside."""
    positions, values = points(kind, seed)
    shape = kind[0]
    positions[:5] = np.floor(positions[:5])
    positions[5], positions[6], positions[7], positions[8] = 0, np.array(shape) - 1, -1, shape
    positions[9:12, 0] = np.floor(positions[9:12, 0])
    positions[12], positions[13] = 1e12, -1e12
    return positions, values


def deposited(kind, positions, values):
    s = of(kind)
    s.upload(positions, values)
    s.deposit()
    return s.target.to_numpy()


def gradients(kind, positions, values, d_target):
    """(d_positions, d_values)."""
    s = of(kind)
    s.upload(positions, values)
    s.clear_gradients()
    s.target.grad.from_numpy(d_target)
    splat_adjoint(s.fields)
    return s.positions.grad.to_numpy(), s.values.grad.to_numpy()


def test_one_point_on_a_sample():
    assert splat([[1, 2]], [1.0], (3, 4)).tolist() == [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_one_point_in_the_middle_of_eight_samples():
    assert np.all(splat([[0.5, 0.5, 0.5]], [8.0], (2, 2, 2)) == 1)


@each_kind
def test_reference(kind):
    positions, values = kinky(kind)
    wanted = reference.splat(positions, values, kind[0])
    assert np.abs(splat(positions, values, kind[0]) - wanted).max() < 1e-12
    assert np.abs(deposited(kind, positions, values) - wanted).max() < 1e-12


def test_many_channels():
    kind = (5, 4), 40
    positions, values = points(kind)
    assert np.abs(splat(positions, values, kind[0]) - reference.splat(positions, values, kind[0])).max() < 1e-12
    assert np.abs(deposited(kind, positions, values) - reference.splat(positions, values, kind[0])).max() < 1e-12


def transpose_error(pair, volume, values):
    splatted, gathered = (np.asarray(each, np.float64) for each in pair)
    difference = np.sum(splatted * volume.density) - values @ gathered
    return abs(difference) / (np.linalg.norm(gathered) * np.linalg.norm(values))


def in_the_grid(seed):
    """A volume, and points in it, some on samples and on the last ones."""
    rng = np.random.default_rng(seed)
    volume = cases.volume(seed=seed)
    top = np.array(volume.shape) - 1.0
    positions = rng.uniform(0, 1, (COUNT, 3)) * top
    positions[:6] = np.floor(positions[:6])
    positions[6], positions[7] = 0, top
    return volume, positions, rng.normal(size=COUNT)


def test_transpose_of_gather():
    """`abs(<Jv, w> - <v, J'w>) / (norm(Jv) norm(w))`, worst of 20 pairs, in f64."""
    for seed in range(20):
        volume, positions, values = in_the_grid(seed)
        assert transpose_error(worker.splat_and_gather(positions, values, volume), volume, values) < 1e-12


def test_transpose_of_gather_in_f32(single):
    for seed in range(3):
        volume, positions, values = in_the_grid(seed)
        pair = single(worker.splat_and_gather, positions, values, volume)
        assert pair[0].dtype == np.float32
        assert transpose_error(pair, volume, values) < 1e-5


def test_transpose_of_gather_in_an_image():
    """Against an image interpolated as two equal slices of a volume."""
    rng = np.random.default_rng(0)
    image, values = rng.normal(size=(7, 5)), rng.normal(size=COUNT)
    positions = rng.uniform(0, 1, (COUNT, 2)) * (6, 4)
    gathered = [reference.gather(np.stack([image, image], 2), (*p, 0.3)) for p in positions]
    assert abs(np.sum(splat(positions, values, (7, 5)) * image) - values @ gathered) < 1e-12


@pytest.mark.parametrize("of_what", ["positions", "values"])
@each_kind
def test_adjoint_is_the_derivative(kind, of_what):
    positions, values = points(kind)
    rng = np.random.default_rng(1)
    w = rng.normal(size=(*kind[0], kind[1]))
    direction = rng.normal(size=(positions if of_what == "positions" else values).shape)

    def along(h):
        moved = (positions + h * direction, values) if of_what == "positions" else (positions, values + h * direction)
        return np.sum(w * splat(*moved, kind[0]))

    d = gradients(kind, positions, values, w)[0 if of_what == "positions" else 1]
    assert best_agreement(along, np.sum(d * direction)) < 1e-7


@pytest.mark.parametrize("shape", [(7, 5), (6, 5, 4)])
def test_gradient_in_f32(single, shape):
    """Against that in f64, relative L2 norm."""
    positions, values = points((shape, 3))
    w = np.random.default_rng(1).normal(size=(*shape, 3))
    for rough, fine in zip(
        single(worker.splat_gradient, positions, values, w), gradients((shape, 3), positions, values, w), strict=True
    ):
        assert rough.dtype == np.float32
        assert np.linalg.norm(rough - fine) < 1e-5 * np.linalg.norm(fine)


@each_kind
def test_tangent_is_the_adjoints_transpose(kind):
    """Worst of 20 pairs; points on samples and outside are among them."""
    for seed in range(20):
        positions, values = kinky(kind, seed)
        rng = np.random.default_rng(100 + seed)
        dot_positions, dot_values = rng.normal(size=positions.shape), rng.normal(size=values.shape)
        w = rng.normal(size=(*kind[0], kind[1]))
        d_positions, d_values = gradients(kind, positions, values, w)
        dot_target = of(kind).tangent(dot_positions, dot_values)
        difference = np.sum(dot_target * w) - np.sum(d_positions * dot_positions) - np.sum(d_values * dot_values)
        assert abs(difference) < 1e-12 * np.linalg.norm(dot_target) * np.linalg.norm(w)


@each_kind
def test_inside_nothing_is_lost(kind):
    positions, values = points(kind, margin=0)
    total = splat(positions, values, kind[0]).reshape(-1, kind[1]).sum(0)
    assert np.abs(total - values.sum(0)).max() < 1e-12


def test_outside_only_the_share_of_samples_inside():
    """A quarter of an index over the edge, three quarters stay; an index over it, nothing; so too far away."""
    for row, kept in ((-0.25, 0.75), (2.25, 0.75), (-1, 0), (3, 0), (-7.5, 0), (1e15, 0), (-1e300, 0)):
        assert splat([[row, 1]], [1.0], (3, 3)).sum() == kept


def test_on_a_sample_the_derivative_is_that_from_the_right():
    """Where four cells meet, and on the last sample, from where rightwards light is lost."""
    rng = np.random.default_rng(0)
    kind = (7, 5), 1
    w = rng.normal(size=(7, 5, 1))
    positions, values = points(kind)
    for p in ([3.0, 2.0], [0.0, 0.0], [6.0, 4.0], [-1.0, 1.0]):
        positions[0] = p
        d = gradients(kind, positions, values, w)[0][0]
        for axis in range(2):
            right, left = (
                np.sum(w * (splat([p + h * np.eye(2)[axis]], values[:1], (7, 5)) - splat([p], values[:1], (7, 5)))) / h
                for h in (0.25, -0.25)  # linear within the cell
            )
            assert abs(d[axis] - right) < 1e-12
            assert abs(right - left) > 1e-3 or p[0] == -1  # there, along the edge, nothing changes


@ti.kernel
def on_a_circle(angle: ti.template(), positions: ti.template(), values: ti.template()):
    for i in range(COUNT):
        positions[i, 0] = 3.1 + 3.6 * ti.cos(angle[i])
        positions[i, 1] = 2.2 + 2.9 * ti.sin(angle[i])
        values[i, 0] = angle[i] ** 2


@ti.kernel
def cubes(target: ti.template(), loss: ti.template()):
    for I in ti.grouped(target):
        loss[None] += target[I] ** 3


@pytest.mark.parametrize("clear", [False, True])
def test_inside_the_tape_between_kernels_of_a_user(clear):
    """The gradient goes loss, target, position and value, angle; twice the same, as gradients were cleared."""
    s = of(((7, 5), 1))
    angle, loss = ti.field(float, COUNT, needs_grad=True), ti.field(float, (), needs_grad=True)
    rng = np.random.default_rng(0)
    start, direction = rng.uniform(0, 6, COUNT), rng.normal(size=COUNT)

    def run(angles):
        angle.from_numpy(angles)
        with ti.ad.Tape(loss, clear_gradients=clear):
            on_a_circle(angle, s.positions, s.values)
            s.deposit()
            cubes(s.target, loss)
        return loss[None]

    for _ in range(2):
        s.clear_gradients()
        angle.grad.fill(0)
        run(start)
        wanted = np.sum(angle.grad.to_numpy() * direction)
        assert best_agreement(lambda h: run(start + h * direction), wanted) < 1e-7


def test_deposit_overwrites_and_gradients_add():
    kind = (7, 5), 3
    positions, values = points(kind)
    w = np.random.default_rng(0).normal(size=(7, 5, 3))
    once = deposited(kind, positions, values)
    of(kind).deposit()
    assert np.array_equal(of(kind).target.to_numpy(), once)
    d_positions, d_values = gradients(kind, positions, values, w)
    splat_adjoint(of(kind).fields)
    assert np.allclose(of(kind).positions.grad.to_numpy(), 2 * d_positions, rtol=1e-12, atol=1e-12)
    assert np.allclose(of(kind).values.grad.to_numpy(), 2 * d_values, rtol=1e-12, atol=1e-12)


@pytest.mark.whole
def test_any_number_of_threads_same_bits(root):
    """In f32, in processes of their own."""
    code = "import sys, single; single.print_splat(int(sys.argv[1]))"
    runs = [
        subprocess.Popen([sys.executable, "-c", code, threads], stdout=subprocess.PIPE, text=True, cwd=root / "tests")
        for threads in ("1", "2")
    ]
    first, second = (run.communicate()[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert first == second
    assert len(first.strip()) == 64


BAD = [
    (([1.0, 2.0], [1.0], (3, 3)), r"positions have shape \(2,\), want \(1, 2\)"),
    (([[1.0]], [1.0], (3, 3)), r"positions have shape \(1, 1\), want \(1, 2\)"),
    (([[1.0, 2.0, 3.0]], [1.0], (3, 3)), r"positions have shape \(1, 3\), want \(1, 2\)"),
    (([[1.0, 2.0]], [1.0, 2.0], (3, 3)), r"positions have shape \(1, 2\), want \(2, 2\)"),
    ((np.zeros((0, 2)), np.zeros(0), (3, 3)), "one point or more"),
    (([[1.0, 2.0]], np.zeros((1, 0)), (3, 3)), "one point or more"),
    (([[1.0, 2.0]], 1.0, (3, 3)), r"values have shape \(\)"),
    (([[1.0, 2.0]], np.zeros((1, 1, 1)), (3, 3)), r"values have shape \(1, 1, 1\)"),
    (([[1.0, np.nan]], [1.0], (3, 3)), r"positions are nan at \(0, 1\)"),
    (([[1.0, 2.0]], [np.inf], (3, 3)), r"values are inf at \(0, 0\)"),
    (([["a", "b"]], [1.0], (3, 3)), r"positions are \[\['a', 'b'\]\], want"),
    (([[1.0, 2.0], [1.0]], [1.0, 1.0], (3, 3)), r"positions are \[\[1.0, 2.0\], \[1.0\]\], want"),
    (([[1.0]], [1.0], (3,)), r"shape is \(3,\), want 2 whole numbers"),
    (([[1.0]], [1.0], 3), "shape is 3, want 2 whole numbers"),
    (([[1.0, 1.0]], [1.0], (3, 0)), r"shape is \(3, 0\)"),
    (([[1.0, 1.0]], [1.0], (3, 2.5)), r"shape is \(3, 2.5\)"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input(arguments, message):
    with pytest.raises(RaymarchError, match=message) as raised:
        splat(*arguments)
    assert "\n" not in str(raised.value)


def test_bad_splats():
    for arguments, message in (
        ((0, (3, 3)), "count is 0"),
        ((1, (3, 3), 0), "channels is 0"),
        ((1.5, (3, 3)), "count is 1.5"),
        ((1, (3,)), "want 2 whole numbers"),
        ((1, (100000, 100000, 1000)), "take a smaller one"),
    ):
        with pytest.raises(RaymarchError, match=message):
            Splat(*arguments)
    with pytest.raises(RaymarchError, match=r"values have shape \(40,\), want \(40, 1\)"):
        of(((7, 5), 1)).upload(np.zeros((COUNT, 2)), np.zeros(COUNT))
    with pytest.raises(RaymarchError, match=r"dot_positions have shape \(40, 3\), want \(40, 2\)"):
        of(((7, 5), 1)).tangent(np.zeros((COUNT, 3)), np.zeros((COUNT, 1)))


def test_after_close():
    s = Splat(1, (2, 2))
    s.close()
    s.close()
    for use in (s.deposit, lambda: s.positions, lambda: s.upload([[0, 0]], [[1]])):
        with pytest.raises(RaymarchError, match="this splat is closed"):
            use()
