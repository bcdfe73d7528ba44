"""Least-squares problems with known answers, and some that cannot be solved: who says that it has converged.

python benchmarks/solvers.py [--count 100]

A row is a kind of problem, each by both solvers, dense and matrix-free: how many say they have converged, how far the
worst of those is from its answer, and the most steps taken. With `--count 100` it is 1,000 problems and 800 others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from plainly import count, plainly

from raymarch.solvers.least_squares import Operator, Solution, gauss_newton, levenberg_marquardt

SOLVERS = {"gauss_newton": gauss_newton, "levenberg_marquardt": levenberg_marquardt}
FORMS = ("dense", "matrix-free")
STEPS = 300


@dataclass(frozen=True, eq=False)
class Problem:
    """A residual and its Jacobian, where to start, and what of an answer counts."""

    residual: Callable[[np.ndarray], np.ndarray]
    jacobian: Callable[[np.ndarray], np.ndarray]
    start: np.ndarray
    answer: np.ndarray
    seen: np.ndarray  # of moves of x, those that the residual tells apart, in units of x

    def distance(self, x: np.ndarray) -> float:
        """From the answer."""
        return float(np.linalg.norm(self.seen @ (x - self.answer)))


def waves(rng, residuals: int, unknowns: int, bend: float) -> tuple[Callable, Callable]:
    """x -> A x + bend * B sin(C x), and its Jacobian, all matrices random."""
    A, B = rng.normal(size=(residuals, unknowns)), rng.normal(size=(residuals, 3))
    C = rng.normal(size=(3, unknowns)) / np.sqrt(unknowns)
    return lambda x: A @ x + bend * B @ np.sin(C @ x), lambda x: A + bend * (B * np.cos(C @ x)) @ C


def problem(rng, *, square=False, bend=0.0, left=0.0, lost=0, spread=0.0, away=1.0, single=False, size=8) -> Problem:
    """A random problem of known answer.

    Args:
        square: as many residuals as unknowns; else two to six times as many.
        bend: how far from linear.
        left: norm of the residual at the answer, at right angles to what the unknowns can do there.
        lost: directions of the unknowns that the residual does not depend on.
        spread: unknowns' units are powers of ten up to this, either way.
        away: how far from the answer it starts, relative to it.
        single: whether the residual is rounded to float32.
        size: unknowns at most.
    """
    unknowns = int(rng.integers(1 + lost, size + 1))
    known = unknowns - lost
    residuals = known if square else int(rng.integers(2 * known, 6 * known + 1))
    f, slope = waves(rng, residuals, known, bend)
    mixed = np.linalg.qr(rng.normal(size=(unknowns, unknowns)))[0][:known] if lost else np.eye(known)
    units = 10.0 ** rng.uniform(-spread, spread, unknowns)
    mixed = mixed / units
    answer = units * rng.normal(size=unknowns)
    start = answer + away * units * rng.normal(size=unknowns)
    J = slope(mixed @ answer)
    rest = rng.normal(size=residuals)
    rest -= J @ np.linalg.lstsq(J, rest, rcond=None)[0]
    rest *= left / max(np.linalg.norm(rest), 1e-300) if left else 0.0
    data = f(mixed @ answer) - rest
    kind = np.float32 if single else np.float64

    def residual(x):
        return (f(mixed @ x) - data).astype(kind)

    return Problem(residual, lambda x: slope(mixed @ x) @ mixed, start, answer, mixed)


KINDS: dict[str, dict] = {
    "linear, tall, all told": {},
    "linear, tall, residual left": {"left": 2.0},
    "linear, square": {"square": True},
    "linear, from far off": {"left": 2.0, "away": 1e6},
    "linear, badly scaled": {"left": 2.0, "spread": 3.0, "size": 5},
    "linear, rank lost": {"left": 2.0, "lost": 2},
    "bent, tall, all told": {"bend": 0.2, "away": 0.1},
    "bent, tall, residual left": {"bend": 0.2, "away": 0.1, "left": 0.3},
    "bent, rank lost": {"bend": 0.2, "away": 0.1, "left": 0.1, "lost": 2},
    "bent, badly scaled, square": {"bend": 0.05, "away": 0.1, "spread": 2.0, "square": True, "size": 4},
}
EXTRA: dict[str, dict] = {"float32, residual left": {"bend": 0.2, "away": 0.1, "left": 0.3, "single": True}}


def wrong(rng, by: Callable) -> Problem:
    """A solvable problem whose Jacobian is `by` of the right one."""
    made = problem(rng, bend=0.3, left=1.0, size=8)
    while made.start.size < 2:  # a single one is no other's
        made = problem(rng, bend=0.3, left=1.0)
    return replace(made, jacobian=lambda x: by(made.jacobian(x)))


def flying(rng) -> Problem:
    """An arc tangent from where undamped steps lead away for ever, and a line that is solved meanwhile."""
    slope = rng.uniform(1, 3)

    def jacobian(x):
        return np.array([[slope, 0.0], [0.0, 1 / (1 + x[1] ** 2)]])

    return Problem(
        lambda x: np.array([slope * x[0] - 1, np.arctan(x[1])]),
        jacobian,
        np.array([0.0, rng.uniform(1.5, 5)]),
        np.array([1 / slope, 0.0]),
        np.eye(2),
    )


def rosenbrock(rng) -> Problem:
    """The curved valley, from a random place in it."""

    def jacobian(x):
        return np.array([[-1.0, 0.0], [-20 * x[0], 10.0]])

    start = np.array([-1.0 - rng.uniform(), 1 + rng.uniform()])
    return Problem(lambda x: np.array([1 - x[0], 10 * (x[1] - x[0] ** 2)]), jacobian, start, np.ones(2), np.eye(2))


BOTH = tuple(SOLVERS)
UNSOLVED: dict[str, tuple[Callable, dict, tuple[str, ...]]] = {
    "slopes of the other sign": (lambda rng: wrong(rng, lambda J: -J), {}, BOTH),
    "slopes of another unknown": (lambda rng: wrong(rng, lambda J: np.roll(J, 1, axis=1)), {}, BOTH),
    "slopes 1e10 times too steep": (lambda rng: wrong(rng, lambda J: 1e10 * J), {}, BOTH),
    "no slope at all": (lambda rng: wrong(rng, lambda J: 0 * J), {}, BOTH),
    "one step": (lambda rng: problem(rng, bend=0.3, left=1.0), {"steps": 1}, BOTH),
    "a valley in four steps": (rosenbrock, {"steps": 4}, BOTH[1:]),
    "damped, and no way down": (lambda rng: wrong(rng, lambda J: -J), {"damping": 1e9}, BOTH[1:]),
    "flies away": (flying, {}, BOTH[:1]),
}


def solved(made: Problem, solver: str, form: str, **how) -> Solution:
    """What a solver makes of it."""

    def linearise(x):
        J = made.jacobian(x)
        return made.residual(x), J if form == "dense" else Operator(lambda v: J @ v, lambda w: J.T @ w)

    return SOLVERS[solver](linearise, made.start, **{"steps": STEPS, **how})


def row(name: str, make: Callable, solver: str, form: str, number: int, seed: int, **how) -> str:
    """One line of the table, over problems of seeds of their own."""
    said, worst, most = 0, 0.0, 0
    for i in range(number):
        made = make(np.random.default_rng((seed, i)))
        found = solved(made, solver, form, **how)
        said, most = said + found.converged, max(most, found.steps)
        if found.converged:
            worst = max(worst, made.distance(found.x))
    return f"{name:28} {solver:20} {form:12} {number:5} {said:9}  {worst if said else np.nan:8.1e} {most:6}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=count, default=100, help="problems of each kind")
    number = parser.parse_args().count
    print(f"{'kind':28} {'solver':20} {'form':12} {'count':>5} {'converged':>9}  {'worst':>8} {'steps':>6}")
    solvable = {name: lambda rng, kind=kind: problem(rng, **kind) for name, kind in (KINDS | EXTRA).items()}
    for seed, (name, make) in enumerate(solvable.items()):
        for solver in SOLVERS:
            for form in FORMS:
                print(row(name, make, solver, form, number, seed), flush=True)
    print("and what must not be taken for solved:")
    for seed, (name, (make, how, solvers)) in enumerate(UNSOLVED.items()):
        for solver in solvers:
            for form in FORMS:
                print(row(name, make, solver, form, number, 100 + seed, **how), flush=True)


if __name__ == "__main__":
    with np.errstate(over="ignore", invalid="ignore"):
        plainly(main)
