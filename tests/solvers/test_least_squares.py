"""Law: the solvers find what linear algebra finds, dense and matrix-free alike."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.geometry.pose import exp_rigid
from raymarch.solvers.least_squares import Operator, cgls, conjugate_gradients, gauss_newton, levenberg_marquardt
from raymarch.solvers.linear import linear_model

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import solvers as problems

SOLVERS = [gauss_newton, levenberg_marquardt]
A = np.random.default_rng(0).normal(size=(12, 5))
B = np.random.default_rng(1).normal(size=12)
BEST = np.linalg.lstsq(A, B, rcond=None)[0]


def operator(matrix) -> Operator:
    return Operator(lambda v: matrix @ v, lambda w: matrix.T @ w)


@pytest.mark.parametrize("jacobian", [A, operator(A)], ids=["dense", "matrix-free"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_linear_problem_is_solved(solver, jacobian):
    found = solver(lambda x: (A @ x - B, jacobian), np.zeros(5), steps=200, tolerance=1e-12)
    np.testing.assert_allclose(found.x, BEST, atol=1e-6)
    assert found.converged
    assert found.cost == pytest.approx(0.5 * np.sum((A @ BEST - B) ** 2))
    assert list(found.costs) == sorted(found.costs, reverse=True)


def test_gauss_newton_solves_a_linear_problem_in_one_step():
    found = gauss_newton(lambda x: (A @ x - B, A), np.zeros(5), steps=1)
    np.testing.assert_allclose(found.x, BEST, atol=1e-12)


def powell(x):
    """Powell's singular function, whose Jacobian loses rank at the answer, 0."""
    r = [x[0] + 10 * x[1], 5**0.5 * (x[2] - x[3]), (x[1] - 2 * x[2]) ** 2, 10**0.5 * (x[0] - x[3]) ** 2]
    p, q = 2 * (x[1] - 2 * x[2]), 2 * 10**0.5 * (x[0] - x[3])
    J = [[1, 10, 0, 0], [0, 0, 5**0.5, -(5**0.5)], [0, p, -2 * p, 0], [q, 0, 0, -q]]
    return np.array(r), np.array(J)


def test_a_jacobian_that_loses_rank_is_no_obstacle():
    found = levenberg_marquardt(powell, np.array([3.0, -1, 0, 1]), steps=100)
    assert found.cost < 1e-12
    assert np.abs(found.x).max() < 1e-2


def test_a_retraction_searches_on_the_group():
    """The rigid motion between two clouds of points, from 120 degrees off."""
    points = np.random.default_rng(2).normal(size=(20, 3))
    true = exp_rigid([1.0, -2, 0.5, 0.3, 2.0, -0.4])
    seen = points @ true[:3, :3].T + true[:3, 3]

    def linearise(pose):
        here = points @ pose[:3, :3].T + pose[:3, 3]
        crossed = np.stack([np.cross(axis, points) for axis in np.eye(3)], -1)
        moves = np.concatenate([np.broadcast_to(np.eye(3), (20, 3, 3)), crossed], -1)
        return (here - seen).reshape(-1), (pose[:3, :3] @ moves).reshape(-1, 6)

    found = levenberg_marquardt(linearise, np.eye(4), retract=lambda pose, move: pose @ exp_rigid(move))
    np.testing.assert_allclose(found.x, true, atol=1e-9)


def test_conjugate_gradients_need_no_more_steps_than_unknowns():
    S = A.T @ A
    np.testing.assert_allclose(
        conjugate_gradients(lambda v: S @ v, A.T @ B, iterations=5, tolerance=0), BEST, atol=1e-8
    )


def test_cgls_never_goes_up_and_continues_from_a_start():
    left, tried = [], {}
    progress, seen = (lambda _, r: left.append(r)), (lambda k, x: tried.update({k: x.copy()}))
    first = cgls(operator(A), B, iterations=3, progress=progress, seen=seen)
    assert left == sorted(left, reverse=True)
    assert len(left) == 3
    assert [np.linalg.norm(B - A @ x) for x in tried.values()] == pytest.approx(left)
    np.testing.assert_array_equal(tried[2], cgls(operator(A), B, iterations=2))
    np.testing.assert_array_equal(tried[3], first)
    np.testing.assert_allclose(cgls(operator(A), B, start=first, tolerance=1e-12), BEST, atol=1e-8)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ((B, np.ones((3, 5))), r"Jacobian has shape \(3, 5\) for 12 residuals"),
        ((B * np.nan, A), "not finite"),
        ((B, A * np.inf), "not finite"),
    ],
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_what_cannot_be_solved_is_said(solver, pair, said):
    with pytest.raises(RaymarchError, match=said):
        solver(lambda x: pair, np.zeros(5))


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_operator_of_another_size_is_said(solver):
    wrong = Operator(lambda v: np.ones(7), lambda w: A.T @ w)
    with pytest.raises(RaymarchError, match="tangent gives 7 numbers, want 12, one for each residual"):
        solver(lambda x: (B, wrong), np.zeros(5))
    with pytest.raises(RaymarchError, match="tangent gives 7 numbers, want 12"):
        cgls(wrong, B)
    with pytest.raises(RaymarchError, match="start has 4 numbers, want 5"):
        cgls(operator(A), B, start=np.zeros(4))


def test_lists_are_as_good_as_arrays():
    np.testing.assert_allclose(cgls(operator(A), B.tolist()), cgls(operator(A), B), rtol=1e-12)
    np.testing.assert_allclose(conjugate_gradients(lambda v: 2 * v, [2.0, 4.0]), [1, 2])


EACH = 4  # problems of a kind, of the hundred of benchmarks/solvers.py


@pytest.mark.parametrize("form", problems.FORMS)
@pytest.mark.parametrize("solver", problems.SOLVERS)
@pytest.mark.parametrize("kind", problems.KINDS)
def test_what_is_solved_to_rounding_is_said_to_be(kind, solver, form):
    """Within 1e-6 of answers of size 1, over 300 times nearer than rounding of the cost alone could tell apart."""
    for seed in range(EACH):
        made = problems.problem(np.random.default_rng((7, seed)), **problems.KINDS[kind])
        found = problems.solved(made, solver, form)
        assert found.converged and made.distance(found.x) < 1e-6, seed
        assert found.steps <= 40
        assert list(found.costs)[-1] == found.cost


@pytest.mark.parametrize("form", problems.FORMS)
@pytest.mark.parametrize("solver", problems.SOLVERS)
def test_a_residual_of_single_precision_is_solved_to_its_own_rounding(solver, form):
    for seed in range(EACH):
        made = problems.problem(np.random.default_rng((8, seed)), **problems.EXTRA["float32, residual left"])
        found = problems.solved(made, solver, form)
        assert found.converged and made.distance(found.x) < 3e-3 and found.steps <= 40, seed


@pytest.mark.parametrize("form", problems.FORMS)
def test_noise_of_the_residual_that_no_step_gets_under_is_seen_as_such(form):
    """Rounded to 1e-9 by what it is made of: nobody says so to the solver, but no step goes down any more."""
    for seed in range(EACH):
        made = problems.problem(np.random.default_rng((9, seed)), bend=0.2, away=0.1, left=0.3)
        rough = problems.replace(made, residual=lambda x, exact=made.residual: 1e-9 * np.round(exact(x) / 1e-9))
        found = problems.solved(rough, "levenberg_marquardt", form)
        assert found.converged and made.distance(found.x) < 1e-4, seed


@pytest.mark.parametrize("form", problems.FORMS)
@pytest.mark.parametrize("kind", problems.UNSOLVED)
def test_what_is_no_solution_is_not_said_to_be_one(kind, form):
    make, how, solvers = problems.UNSOLVED[kind]
    for solver in solvers:
        for seed in range(EACH):
            with np.errstate(over="ignore", invalid="ignore"):
                found = problems.solved(make(np.random.default_rng((6, seed))), solver, form, **how)
            assert not found.converged and found.steps <= how.get("steps", problems.STEPS), (solver, seed)


def test_a_search_with_no_way_down_does_not_go_on():
    """A dozen ever shorter steps show it; each is a residual and a Jacobian."""
    made = problems.wrong(np.random.default_rng(0), lambda J: -J)
    for form in problems.FORMS:
        assert problems.solved(made, "levenberg_marquardt", form).steps <= 15


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_start_at_the_answer_is_one(solver):
    found = solver(lambda x: (A @ x - B, A), BEST)
    assert found.converged
    assert found.steps == 1
    np.testing.assert_allclose(found.x, BEST, atol=1e-12)
    nothing = solver(lambda x: (0 * x, np.eye(5)), np.zeros(5))
    assert nothing.converged
    assert nothing.cost == 0


def test_heavy_damping_is_no_solution_but_is_overcome():
    """Steps within the tolerance because they are damped end nothing."""
    for damping in (1e6, 1e12, 1e18):
        found = levenberg_marquardt(lambda x: (A @ x - B, A), np.zeros(5), damping=damping, steps=200)
        assert found.converged
        np.testing.assert_allclose(found.x, BEST, atol=1e-6)


@pytest.mark.parametrize("damping", [1e-3, 1.0, 1e3])
def test_a_damped_step_that_is_matrix_free_is_that_of_the_normal_equations(damping):
    """(J'J + c) p = -J'r, c the damping times the curvature along the gradient."""
    slope = A.T @ B
    c = damping * np.sum((A @ slope) ** 2) / (slope @ slope)
    step = linear_model(B, operator(A), True).step(damping)
    wanted = -np.linalg.solve(A.T @ A + c * np.eye(5), slope)
    np.testing.assert_allclose(step.move, wanted, rtol=0, atol=2e-3 * np.linalg.norm(wanted))


def test_a_wall_is_not_stepped_over():
    """A residual that is not finite on the far side: steps there are not kept, and the answer this side is found."""

    def linearise(x):
        with np.errstate(invalid="ignore"):
            return np.array([np.log(x[0]) + 2.0]), np.array([[1 / x[0]]])

    found = levenberg_marquardt(linearise, np.array([1.0]), damping=1e-9)
    assert found.converged
    assert found.x[0] == pytest.approx(np.exp(-2), rel=1e-9)


def test_cgls_ends_at_its_own_rounding():
    """Asked for more than rounding allows it stays where it is; it once flew away, to 1e100 and over."""
    rng = np.random.default_rng(3)
    for unknowns in (1, 2, 5):
        for _ in range(20):
            M, b = rng.normal(size=(12, unknowns)), rng.normal(size=12)
            best = np.linalg.lstsq(M, b, rcond=None)[0]
            near = cgls(operator(M), b, iterations=500, tolerance=1e-16)
            again = cgls(operator(M), b, start=best, iterations=500, tolerance=1e-16)
            rest = cgls(operator(M), b - M @ best, iterations=500)
            for found, wanted in ((near, best), (again, best), (rest, 0 * best)):
                np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("shape", [(6,), (6, 1), (2, 3), ()])
def test_parameters_keep_their_shape(shape):
    """Moves are flat, whatever x is."""
    wanted = np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)

    def linearise(x):
        assert np.shape(x) == shape
        return 2 * (np.ravel(x) - np.ravel(wanted)), 2 * np.eye(wanted.size)

    for search in (gauss_newton, levenberg_marquardt):
        np.testing.assert_allclose(search(linearise, np.zeros(shape)).x, wanted, rtol=1e-6)


@pytest.mark.parametrize("shape", [(4,), (4, 1), (2, 2), ()])
def test_conjugate_gradients_take_what_is_asked_for_as_flat(shape):
    b = np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)
    np.testing.assert_allclose(conjugate_gradients(lambda v: 3 * v, b), b.reshape(-1) / 3)
    assert np.isfinite(conjugate_gradients(lambda v: np.nan * v, b)).all()
