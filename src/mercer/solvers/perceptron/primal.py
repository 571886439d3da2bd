r"""The perceptron on vectors.

Find      w, b   with   sign(⟨w, xᵢ⟩ + b) = yᵢ   for every i = 1 … n
Given     X, dense or CSR; yᵢ = ±1, or several columns of them, each with a w of its own
Start     w = 0, b = 0, or where an earlier run left off
Update    visit the points in order; where yᵢ(⟨w, xᵢ⟩ + b) ≤ 0, a mistake (or as the boundary says, see
          ``mistakes``),
              w += yᵢ xᵢ,   b += yᵢ (if there is one)
Stop      after a pass without a mistake, or when the passes (epochs) run out
Bound     M ≤ (b*² + 1)(r² + 1)/ρ² mistakes in all, for any w*, b* with ‖w*‖ = 1, yᵢ(⟨w*, xᵢ⟩ + b*) ≥ ρ > 0
          and ‖xᵢ‖ ≤ r; without b, r²/ρ²
Cost      O(nd) per pass, on windows of points that know their products with each other: within one, a mistake
          changes the values of those that follow, and w is brought up to date at its end

It is the kernel perceptron with the linear kernel, mistake by mistake. Rosenblatt, The perceptron: a
probabilistic model for information storage and organization in the brain, Psychological Review 65 (1958),
386-408. The bound: Novikoff, On convergence proofs on perceptrons, Symposium on the Mathematical Theory of
Automata 12 (1962), 615-622.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.solvers.control import Control, State
from mercer.solvers.perceptron.kernel import mistake_bound, visiting_orders
from mercer.solvers.perceptron.mistakes import MistakeList, Mistakes, is_mistake
from mercer.solvers.result import Result, Stop

#: Points of a window of visits: at least, and at most while no mistakes are made.
_SMALLEST_WINDOW = 64
_LARGEST_WINDOW = 1024
#: The number of columns up to which a window of sparse points is made dense: 2 MB for 64 points.
_DENSE_BELOW = 4096


@dataclass(frozen=True, eq=False, kw_only=True)
class PrimalPerceptronResult(Result):
    """What the perceptron found, and how; iterations are passes."""

    #: (d, functions)
    w: np.ndarray
    #: (functions,)
    b: np.ndarray
    #: the mistakes: w = Σ yᵢ xᵢ over them
    made: Mistakes
    #: (epochs, functions) the mistakes of each pass
    mistakes_per_epoch: np.ndarray
    #: (functions,) the passes of each
    epochs: np.ndarray
    #: (functions,) whether every point came out right in a pass
    converged: np.ndarray
    #: (functions,) minᵢ yᵢ(⟨w, xᵢ⟩ + b) / ‖w‖: the distance of the nearest point from the hyperplane
    margin: np.ndarray
    #: (functions,) the bound for the w and b that were found; infinite at margin 0, NaN unless converged
    bound: np.ndarray
    #: r² = maxᵢ ‖xᵢ‖²
    radius2: float


def primal_perceptron(
    X: Points,  # (n, d), dense or CSR
    Y: np.ndarray,  # (n, functions) of ±1
    *,
    fit_intercept: bool = True,
    boundary: str = "mistake",
    max_epochs: int = 100,
    orders: Iterable[Any] | int | None = None,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    keep: int | None = None,
    control: Control | None = None,
) -> PrimalPerceptronResult:
    """Pass over the points, adding yᵢ xᵢ to w at every mistake, until a pass makes none.

    Parameters
    ----------
    X : (n, d) points, dense or CSR
    Y : (n, functions) of ±1
    fit_intercept : whether a mistake adds yᵢ to b as well
    boundary : what a value of 0 is: a "mistake" whatever yᵢ, or "negative", which is a mistake where yᵢ = +1
    max_epochs : passes at most
    orders : the order of visit of each pass; by default 0 … n-1; a whole number is the seed of random ones
    start : w (d, functions) and b (functions,) to go on from
    keep : mistakes of which the order is kept, at most; None for all. Where there are more, only sums are
    control : counts the points that were visited

    >>> X, Y = np.array([[0.0, 1.0], [2.0, 0.0]]), np.array([[-1.0], [1.0]])
    >>> result = primal_perceptron(X, Y, fit_intercept=False)
    >>> result.w[:, 0], result.made.stored(), result.bound
    (array([ 2., -1.]), array([0, 1]), array([20.]))
    >>> result = primal_perceptron(X, Y, fit_intercept=False, boundary="negative")
    >>> result.w[:, 0], result.made.stored(), result.margin, result.bound
    (array([2., 0.]), array([1]), array([0.]), array([inf]))
    """
    control = control or Control()
    run = _Run(X, Y, fit_intercept, boundary, orders, start, keep, control)
    run.passes(max_epochs)
    return run.result()


class _Run:
    """The state between two windows."""

    def __init__(
        self,
        X: Any,
        Y: np.ndarray,
        fit_intercept: bool,
        boundary: str,
        orders: Iterable[Any] | int | None,
        start: tuple[np.ndarray, np.ndarray] | None,
        keep: int | None,
        control: Control,
    ) -> None:
        self.X = X
        self.Y = Y
        self.one = float(fit_intercept)
        self.boundary = boundary
        self.control = control
        (n, d), functions = X.shape, Y.shape[1]
        w, b = (np.zeros((d, functions)), np.zeros(functions)) if start is None else start
        state = control.restored or {}
        self.w, self.b = state.get("w", w.copy()), state.get("b", b.copy())
        self.made = MistakeList(n, functions, keep).restore(state)
        self.per_epoch = [row.copy() for row in state.get("per_epoch", ())]
        self.settled = state.get("settled", np.zeros(functions, np.int64))
        self.position: int = state.get("position", n)
        self.visits: int = state.get("visits", 0)
        self.width: int = state.get("width", _SMALLEST_WINDOW)
        self.seed: int = state.get("seed", orders if isinstance(orders, int | np.integer) else -1)
        self.orders = visiting_orders(n, self.seed if self.seed >= 0 else orders)

    def passes(self, max_epochs: int) -> None:
        """Epochs until all is right, from where a checkpoint left."""
        n = len(self.Y)
        for order in islice(self.orders, len(self.per_epoch) - (self.position < n), max_epochs):
            if self.settled.all() or self.control.stopped:
                break
            if self.position >= n:
                self.per_epoch.append(np.zeros(self.Y.shape[1], np.int64))
                self.position = 0
            while self.position < n and not self.control.stopped:
                visited = self._window(order[self.position : self.position + self.width])
                self.control.step(
                    self.state, steps=visited, epoch=len(self.per_epoch), mistakes=self.made.total
                )
            if self.position >= n:
                self.settled[(self.per_epoch[-1] == 0) & (self.settled == 0)] = len(self.per_epoch)
        if self.settled.all():  # the points of the passes it did not need
            self.control.step(self.state, steps=max(0, max_epochs * n - self.control.iterations))

    def _window(self, index: np.ndarray) -> int:
        """Visit these points; how many they were."""
        points, Y = self.X[index], self.Y[index]
        if sparse.issparse(points) and points.shape[1] <= _DENSE_BELOW:
            points = points.toarray()  # A window is small enough to be dense, and BLAS is faster.
        f = _product(points, self.w, index) + self.b
        positive, position = Y > 0, 0
        products: Any = None
        coef = np.zeros_like(f)
        while position < len(index):
            wrong = is_mistake(f[position:], positive[position:], self.boundary)
            ahead = wrong.any(axis=1)
            first = int(ahead.argmax())
            if not ahead[first]:
                break
            if products is None:
                products = _product(points, points.T, index)
            i = position + first
            sign = np.where(wrong[first], Y[i], 0.0)
            coef[i] = sign
            f += np.outer(products[i] + self.one, sign)
            for c in np.flatnonzero(sign):
                self.made.append(self.visits + i + 1, int(index[i]), int(c), int(sign[c]))
            position = i + 1
        if products is not None:
            self.w += np.asarray(points.T @ coef)
            self.b += self.one * coef.sum(axis=0)
            self.per_epoch[-1] += np.count_nonzero(coef, axis=0)
        self.visits += len(index)
        self.position += len(index)
        self.width = _SMALLEST_WINDOW if products is not None else min(2 * self.width, _LARGEST_WINDOW)
        return len(index)

    def state(self) -> State:
        return {
            "w": self.w,
            "b": self.b,
            "per_epoch": np.array(self.per_epoch),
            "settled": self.settled,
            "position": self.position,
            "visits": self.visits,
            "width": self.width,
            "seed": self.seed,
            **self.made.state(),
        }

    def result(self) -> PrimalPerceptronResult:
        n = len(self.Y)
        visits = np.where(self.settled > 0, self.settled * n, self.visits)
        with np.errstate(over="ignore", invalid="ignore"):
            least = (self.Y * (np.asarray(self.X @ self.w) + self.b)).min(axis=0)
            norm2 = (self.w**2).sum(axis=0)
            radius2 = float(squared_norms(self.X).max())
            with np.errstate(divide="ignore"):
                margin = least / np.sqrt(norm2)
        bound = mistake_bound(norm2 + self.b**2, least, radius2 + self.one)
        bound[self.settled == 0] = np.nan
        return PrimalPerceptronResult(
            w=self.w,
            b=self.b,
            made=self.made.freeze(visits, bool(self.one)),
            mistakes_per_epoch=np.array(self.per_epoch),
            epochs=np.where(self.settled > 0, self.settled, len(self.per_epoch)),
            converged=self.settled > 0,
            margin=margin,
            bound=bound,
            radius2=radius2,
            iterations=len(self.per_epoch),
            stopped=Stop.CONVERGED if self.settled.all() else self.control.stopped or Stop.MAX_ITER,
        )


def _product(points: Points, other: Any, index: np.ndarray) -> np.ndarray:  # (window, …)
    with np.errstate(over="ignore", invalid="ignore"):
        values = points @ other
    values = values.toarray() if sparse.issparse(values) else np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        bad = int(index[np.isfinite(values).all(axis=1).argmin()])
        raise InputError(f"products with x = point {bad} are not finite: rescale the data")
    return values


def squared_norms(X: Any) -> np.ndarray:  # (n,)
    """‖xᵢ‖² of the rows."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)
