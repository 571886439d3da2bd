r"""The kernel perceptron.

Find      f = Σᵢ αᵢ k(xᵢ, ·) + b   with   sign f(xᵢ) = yᵢ   for every i = 1 … n
Given     K, a row at a time; yᵢ = ±1; b = 0 unless there is an intercept; sign(0) = -1
Start     α = 0, b = 0
Update    visit the points in order; where sign f(xᵢ) ≠ yᵢ, a mistake,
              αᵢ += yᵢ,   b += yᵢ,   that is   f += yᵢ k(xᵢ, ·) + yᵢ
Stop      after a pass without a mistake, or when the passes (epochs) run out
Bound     M ≤ ‖g‖² maxᵢ k(xᵢ, xᵢ) mistakes in all, for any g with yᵢ g(xᵢ) ≥ 1 for every i, in whatever order
          the points come. An intercept is the kernel k + 1: then g and the maximum are those of k + 1.
          There is no such g for contradictory labels, and no end to the mistakes.
Cost      one row of K and O(n) additions per mistake; O(n) comparisons per pass

Aizerman, Braverman and Rozonoer, Theoretical foundations of the potential function method in pattern
recognition learning, Automation and Remote Control 25 (1964), 821-837. The bound: Novikoff, On convergence
proofs on perceptrons, Symposium on the Mathematical Theory of Automata 12 (1962), 615-622.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.solvers.matrix import KernelMatrix

__all__ = ["PerceptronResult", "perceptron"]

#: an entry of the history: one visit of one point
VISIT = np.dtype([("epoch", np.int32), ("index", np.int64), ("value", np.float64), ("mistake", np.bool_)])

_WINDOW = 4096  # points looked at together for the next mistake


@dataclass(frozen=True, eq=False)
class PerceptronResult:
    """What the perceptron found, and how."""

    #: (n,) αᵢ = yᵢ · (times xᵢ was a mistake)
    coef: np.ndarray
    #: b
    intercept: float
    #: (n,) f(xᵢ)
    values: np.ndarray
    #: (epochs,) the mistakes of each pass
    mistakes_per_epoch: np.ndarray
    #: ‖g‖² maxᵢ k(xᵢ, xᵢ) for g = f / minᵢ yᵢ f(xᵢ): infinite where f is 0 at a point, NaN unless converged
    bound: float
    #: (visits,) of epoch (from 1), index (from 0), value (f(xᵢ) on arrival), mistake; None unless recorded
    history: np.ndarray | None

    @property
    def mistakes(self) -> int:
        """M, over all passes."""
        return int(self.mistakes_per_epoch.sum())

    @property
    def epochs(self) -> int:
        """The passes made, the last one without a mistake if it converged."""
        return len(self.mistakes_per_epoch)

    @property
    def converged(self) -> bool:
        """Whether every point came out right in the last pass."""
        return bool(self.mistakes_per_epoch[-1] == 0)


def perceptron(
    K: KernelMatrix,  # (n, n)
    y: Any,  # (n,) of ±1
    *,
    fit_intercept: bool = True,
    max_epochs: int = 100,
    orders: Iterable[Any] | None = None,
    record: bool = False,
    report: Callable[[int, int, int], object] | None = None,
) -> PerceptronResult:
    """Pass over the points, adding yᵢ k(xᵢ, ·) at every mistake, until a pass makes none.

    Parameters
    ----------
    K : the kernel matrix, a Gram
    y : (n,) of ±1
    fit_intercept : whether a mistake adds yᵢ to b as well
    max_epochs : passes at most
    orders : the order of visit of each pass, a permutation of 0 … n-1; by default 0, 1, … n-1 in every pass
    record : whether to keep the history, n entries per pass
    report : called as ``report(points, epoch, mistakes)``, with the points visited since the last call and
        the mistakes so far, after each mistake and at least once per few thousand points

    XOR, with k(u, v) = ⟨u, v⟩², takes one mistake:

    >>> from mercer import Gram, Polynomial
    >>> K = Gram(Polynomial(2, c=0), [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    >>> result = perceptron(K, [1, -1, 1, -1], fit_intercept=False, record=True)
    >>> result.coef, result.mistakes, result.epochs, result.converged
    (array([1., 0., 0., 0.]), 1, 2, True)
    >>> result.history["value"][:4], result.history["mistake"][:4]
    (array([0., 0., 4., 0.]), array([ True, False, False, False]))
    """
    y = _signs(y, K.shape)
    if max_epochs < 1:
        raise InputError(
            f"max_epochs must be a whole number of at least 1, got {max_epochs!r}: pass 1, 2, 3, …"
        )
    run = _Run(K, y, fit_intercept, [] if record else None, report)
    per_epoch: list[int] = []
    visits = repeat(np.arange(len(y))) if orders is None else orders
    for order in islice(visits, max_epochs):
        per_epoch.append(run.epoch(len(per_epoch) + 1, _permutation(order, len(y))))
        if per_epoch[-1] == 0:
            break
    if not per_epoch:
        raise InputError("orders is empty: give one order of visit per pass, or None")
    return PerceptronResult(
        coef=run.coef,
        intercept=float(run.coef.sum()) if fit_intercept else 0.0,
        values=run.f,
        mistakes_per_epoch=np.array(per_epoch),
        bound=_bound(K, y, run.coef, run.f, fit_intercept) if per_epoch[-1] == 0 else math.nan,
        history=np.concatenate(run.history) if run.history is not None else None,
    )


class _Run:
    """The state between two mistakes: α and the values of f at all points."""

    def __init__(
        self,
        K: KernelMatrix,
        y: np.ndarray,
        fit_intercept: bool,
        history: list[np.ndarray] | None,
        report: Callable[[int, int, int], object] | None,
    ) -> None:
        self.K = K
        self.y = y
        self.fit_intercept = fit_intercept
        self.history = history
        self.report = report
        self.mistakes = 0
        self.coef = np.zeros(len(y))
        self.f = np.zeros(len(y))  # float64 whatever the precision of K: it is a sum of many rows

    def epoch(self, epoch: int, order: np.ndarray) -> int:
        """One pass, from mistake to mistake; the number of them."""
        before, start = self.mistakes, 0
        while start < len(order):
            window = order[start : start + _WINDOW]
            wrong = (self.f[window] > 0) != (self.y[window] > 0)
            first = int(wrong.argmax())
            found = bool(wrong[first])
            visited = window[: first + 1] if found else window
            if self.history is not None:
                self.history.append(self._visits(epoch, visited, found))
            if found:
                self._update(int(visited[-1]))
            start += len(visited)
            if self.report is not None:
                self.report(len(visited), epoch, self.mistakes)
        return self.mistakes - before

    def _update(self, i: int) -> None:
        row = self.K.rows([i])[0]
        if not np.isfinite(row).all():
            raise InputError(
                f"k(x, x') is not finite for x = point {i} and x' = point {int(np.isfinite(row).argmin())}: "
                "rescale the data, or choose a kernel that does not overflow on them"
            )
        self.coef[i] += self.y[i]
        self.f += self.y[i] * row
        if self.fit_intercept:
            self.f += self.y[i]
        self.mistakes += 1

    def _visits(self, epoch: int, visited: np.ndarray, found: bool) -> np.ndarray:
        entries = np.zeros(len(visited), VISIT)
        entries["epoch"] = epoch
        entries["index"] = visited
        entries["value"] = self.f[visited]
        entries["mistake"][-1] = found
        return entries


def _bound(K: KernelMatrix, y: np.ndarray, coef: np.ndarray, f: np.ndarray, fit_intercept: bool) -> float:
    """‖g‖² maxᵢ k(xᵢ, xᵢ), in the space of k + 1 when there is an intercept."""
    margin = float((y * f).min())
    if margin <= 0:
        return math.inf
    # b = Σαᵢ, so that Σ αᵢ f(xᵢ) = αᵀKα + b², the squared norm in the space of k + 1
    return float(coef @ f) / margin**2 * (float(K.diag().max()) + fit_intercept)


def _signs(y: Any, shape: tuple[int, int]) -> np.ndarray:
    if shape[0] != shape[1]:
        raise InputError(f"K must be square, one set of points with itself, got {shape[0]} × {shape[1]}")
    y = np.asarray(y)
    if y.shape != (shape[0],):
        raise InputError(f"y must have one entry per row of K, ({shape[0]},), got shape {y.shape}")
    if not np.isin(y, (-1, 1)).all():
        raise InputError(f"y must be -1 or 1, got {np.unique(y)[:5]}: code the two classes so")
    return y.astype(np.float64)


def _permutation(order: Any, n: int) -> np.ndarray:
    order = np.asarray(order)
    if (
        order.shape != (n,)
        or order.dtype.kind not in "iu"
        or not np.array_equal(np.sort(order), np.arange(n))
    ):
        raise InputError(f"an order of visit must hold each of 0 … {n - 1} once, got {order!r}")
    return order
