r"""Kernel ridge regression by blocks of points: sketch and project, for problems beyond conjugate gradients.

Solve     the systems of `ridge_systems`, M z = S y and M v = s with M = S K S + αI: an intercept is one more
          column of a product that is spent on values of K. (Centring K would tie every block to all points.)
Step      on a random block B of b points, from the point u between two sequences w and v:
              g = M_B u - y_B,   d_B = P⁻¹g / L on the block, 0 elsewhere
              w ← u - d,   v ← βv + (1-β)u - γd,   u ← av + (1-a)w
          P = F_BF_Bᵀ + ρI from a factor of rank 100 of K_BB (see `precondition`); L the largest eigenvalue of
          P⁻¹M_BB, by 10 power iterations; Nesterov's β = 1 - √(μ/ν), γ = 1/√(μν), a = 1/(1 + γν) with ν = n/b
          and μ = α' / ν, α' being α as a part of the mean diagonal of SKS, 1 at most: a block has a point in
          one of ν steps, and takes a part of about α/ρ of what is wrong. (With μ = α', as the authors have
          it, the objective was 9e-3 of itself above its minimum after 15 passes over 2,000 points of kin40k
          for α = 0.1, and is 5e-4 so.)
Known     SKSw and SKSv are carried along: they follow from K_nB d_B, which costs what M_B u would, and
          residuals are known at every moment without a product of their own
Restart   v ← w where the objective of a system was lower a pass ago: then the momentum was too much
Stop      when every residual is at most tol times its right-hand side. One product with K, which costs as
          much as one pass, then tells the truth, and the gap; a run that is stopped has no time for it,
          and its gap is unknown.
Cost      an iteration is a pass of n/b steps: n² values of K, as a product of conjugate gradients. Memory for
          a few vectors, and for a block's factor: 100 b numbers.

Every step draws from a generator of its own, seeded by its number: a run that is resumed goes on as it would
have.

Rathore, Frangella, Yang, Dereziński and Udell, Have ASkotch: a neat solution for large-scale kernel ridge
regression, arXiv:2407.10070 (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from mercer.errors import InputError
from mercer.runtime.threads import single_threaded_blas
from mercer.solvers.control import Control, State
from mercer.solvers.landmarks.pivots import pivoted_cholesky
from mercer.solvers.linear.precondition import Damped
from mercer.solvers.linear.ridge import RidgeResult
from mercer.solvers.linear.ridge_systems import RidgeSystems
from mercer.solvers.matrix import BlockMatrix
from mercer.solvers.result import Result, Stop

_BLOCKS_PER_PASS = 100
_SMALLEST_BLOCK = 256  # points: fewer do not fill the tiles of a product
#: From so many points on a block of n/100 would be too large for memory: the authors take n/2000.
_MANY_POINTS, _MANY_BLOCKS = 10**8, 2000
BLOCK_RANK = 100  # the rank of a block's factor, at most half of the points of the block
_POWER_ITERATIONS = 10


class Restrictable(BlockMatrix, Protocol):
    """A K of which a step sees some points."""

    def combine(self, index: np.ndarray, coef: np.ndarray) -> np.ndarray:  # (n, p)
        """K[:, index] @ coef in float64, without the columns."""

    def restrict(self, index: np.ndarray) -> BlockMatrix:
        """The matrix of some of the points with each other."""


def block_size(n: int) -> int:
    """b, the number of points of a block.

    >>> block_size(1000), block_size(10**6), block_size(10**9)
    (256, 10000, 500000)
    """
    blocks = _BLOCKS_PER_PASS if n < _MANY_POINTS else _MANY_BLOCKS
    return min(n, max(_SMALLEST_BLOCK, -(-n // blocks)))


def blocks_per_pass(n: int) -> int:
    """Steps of an iteration."""
    return -(-n // block_size(n))


def sketched_ridge(
    K: Restrictable,  # (n, n)
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (t,) > 0
    weight: np.ndarray,  # (n,) > 0
    fit_intercept: bool = True,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    control: Control | None = None,
    seed: int = 0,
) -> RidgeResult:
    """f for every target; iterations are passes over all points.

    >>> from mercer import Gaussian, Gram
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> Y = np.sin(3 * X)
    >>> result = sketched_ridge(Gram(Gaussian(0.5), X), Y, np.full(1, 1e-3), np.ones(50))
    >>> result.stopped, bool(result.gap <= 1e-12 * (Y**2).sum())
    ('converged', True)
    """
    control = Control() if control is None else control
    systems = RidgeSystems(Y, alphas, weight, fit_intercept)
    run = _Run(K, systems, seed)
    if control.restored is not None:
        run.restore(control.restored)
    limit = tol * np.linalg.norm(systems.right, axis=0)
    is_known = False
    stopped: Stop | None = None
    while stopped is None:
        if (run.residual_norms() <= limit).all():
            is_known = run.refresh()
            if (run.residual_norms() <= limit).all() or not run.is_better():
                stopped = Stop.CONVERGED
        elif run.steps >= max_iter * run.per_pass or control.stopped:
            stopped = control.stopped or Stop.MAX_ITER
        else:
            with single_threaded_blas():
                run.step()
            is_known = False
            control.step(run.snapshot(), residual=run.largest_residual())
    if not is_known and stopped is Stop.MAX_ITER:
        is_known = run.refresh()
    done = Result(iterations=-(-run.steps // run.per_pass), stopped=stopped)
    return systems.result(run.W, run.residual(), done, is_known)


class _Run:
    """w, v and their products with SKS; arrays are replaced, never written, so that a snapshot stays."""

    _NAMES = ("W", "V", "KW", "KV", "steps", "before", "checked", "best")

    def __init__(self, K: Restrictable, systems: RidgeSystems, seed: int) -> None:
        self.K, self.seed = K, seed
        self.right, self.shifts = right, shifts = systems.right, systems.shifts
        self.root, self.weight = systems.root, systems.weight
        self.n = len(right)
        self.block, self.per_pass = block_size(self.n), blocks_per_pass(self.n)
        self.W = self.V = self.KW = self.KV = np.zeros_like(right)
        self.steps = 0
        #: the objectives of the systems at the end of the last pass
        self.before = np.zeros(right.shape[1])
        #: the largest residual, relative to its right-hand side, when last multiplied out, and before that
        self.checked = self.best = math.inf
        mean = float(self.weight @ K.diag()) / self.n
        nu = self.n / self.block
        mu = np.minimum(shifts / max(mean, 1e-300), 1.0) / nu
        self.beta, self.gamma = 1.0 - np.sqrt(mu / nu), 1.0 / np.sqrt(mu * nu)
        self.share = 1.0 / (1.0 + self.gamma * nu)

    def step(self) -> None:
        random = np.random.default_rng([self.seed, self.steps])
        block = np.sort(random.choice(self.n, self.block, replace=False))
        U = self.share * self.V + (1.0 - self.share) * self.W
        KU = self.share * self.KV + (1.0 - self.share) * self.KW
        gradient = KU[block] + self.shifts * U[block] - self.right[block]
        D = self.projected(block, gradient, random)
        KD = self.root * self.K.combine(block, self.root[block] * D)
        if not np.isfinite(KD).all():
            raise InputError("a product with the matrix is not finite: scale the data, or check the matrix")
        W, KW = U.copy(), KU - KD
        W[block] -= D
        V = self.beta * self.V + (1.0 - self.beta) * U
        V[block] -= self.gamma * D
        KV = self.beta * self.KV + (1.0 - self.beta) * KU - self.gamma * KD
        self.W, self.KW, self.V, self.KV = W, KW, V, KV
        self.steps += 1
        if self.steps % self.per_pass == 0:
            self.restart_where_it_rose()

    def projected(self, block: np.ndarray, gradient: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """P⁻¹g / L, for each different α."""
        part, weight = self.K.restrict(block), self.weight[block]
        root = self.root[block]
        rank = max(1, min(BLOCK_RANK, len(block) // 2))
        near = pivoted_cholesky(part, rank, random_state=int(random.integers(2**31)), weight=weight)
        start = random.standard_normal(len(block))
        out = np.empty_like(gradient)
        for alpha in np.unique(self.shifts):
            mine = self.shifts == alpha
            P = Damped(near.factor, near.residual, weight, alpha)
            v, largest = start, 1.0
            for _ in range(_POWER_ITERATIONS):
                v = P.solve(root[:, 0] * (part @ (root[:, 0] * v)) + alpha * v)
                largest = float(np.linalg.norm(v))
                v = v / largest
            out[:, mine] = P.solve(gradient[:, mine]) / max(largest, 1.0)
        return out

    def objectives(self) -> np.ndarray:  # (p,)
        """½ wᵀMw - yᵀw of every system."""
        return (self.W * (0.5 * (self.KW + self.shifts * self.W) - self.right)).sum(axis=0)

    def restart_where_it_rose(self) -> None:
        now = self.objectives()
        rose = now > self.before
        self.V, self.KV = np.where(rose, self.W, self.V), np.where(rose, self.KW, self.KV)
        self.before = now

    def residual(self) -> np.ndarray:
        return self.right - self.KW - self.shifts * self.W

    def residual_norms(self) -> np.ndarray:
        return np.linalg.norm(self.residual(), axis=0)

    def refresh(self) -> bool:
        """SKSw and SKSv multiplied out, without the rounding of many sums."""
        both = self.root * (self.K @ (self.root * np.hstack([self.W, self.V])))
        self.KW, self.KV = np.asarray(both[:, : self.W.shape[1]]), np.asarray(both[:, self.W.shape[1] :])
        self.best, self.checked = self.checked, self.largest_residual()
        return True

    def largest_residual(self) -> float:
        """Relative to its right-hand side."""
        size = np.maximum(np.linalg.norm(self.right, axis=0), 1e-300)
        return float((self.residual_norms() / size).max())

    def is_better(self) -> bool:
        """Whether the residuals that were multiplied out last are half of those before."""
        return self.checked <= 0.5 * self.best

    def snapshot(self) -> Callable[[], State]:
        state = {name: getattr(self, name) for name in self._NAMES}
        return lambda: state

    def restore(self, state: State) -> None:
        for name in self._NAMES:
            setattr(self, name, state[name])
