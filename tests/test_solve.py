"""Law: the solvers find what linear algebra finds, dense and matrix-free alike."""

from __future__ import annotations

import numpy as np
import pytest

from raymarch.errors import RaymarchError
from raymarch.pose import exp_rigid
from raymarch.solve import Operator, cgls, conjugate_gradients, gauss_newton, levenberg_marquardt

SOLVERS = [gauss_newton, levenberg_marquardt]
rng = np.random.default_rng(0)
A = rng.normal(size=(12, 5))
B = rng.normal(size=12)
BEST = np.linalg.lstsq(A, B, rcond=None)[0]


def operator(matrix) -> Operator:
    return Operator(lambda v: matrix @ v, lambda w: matrix.T @ w)


@pytest.mark.parametrize("jacobian", [A, operator(A)], ids=["dense", "matrix-free"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_linear_problem_is_solved(solver, jacobian):
    found = solver(lambda x: (A @ x - B, jacobian), np.zeros(5), steps=200, tolerance=1e-12)
    np.testing.assert_allclose(found.x, BEST, atol=1e-6)
    assert found.converged and found.cost == pytest.approx(0.5 * np.sum((A @ BEST - B) ** 2))
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
    assert found.cost < 1e-12 and np.abs(found.x).max() < 1e-2


def test_a_retraction_searches_on_the_group():
    """The rigid motion between two clouds of points, from 120 degrees off."""
    points = rng.normal(size=(20, 3))
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
    left = []
    first = cgls(operator(A), B, iterations=3, progress=lambda _, r: left.append(r))
    assert left == sorted(left, reverse=True) and len(left) == 3
    np.testing.assert_allclose(cgls(operator(A), B, start=first, tolerance=1e-12), BEST, atol=1e-8)


@pytest.mark.parametrize(
    "pair, said",
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
    assert (cgls(operator(A), B.tolist()) == cgls(operator(A), B)).all()
    np.testing.assert_allclose(conjugate_gradients(lambda v: 2 * v, [2.0, 4.0]), [1, 2])
