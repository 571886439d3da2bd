r"""The kernel perceptron.

Find      f = Σᵢ αᵢ k(xᵢ, ·) + b   with   sign f(xᵢ) = yᵢ   for every i = 1 … n
Given     K, by rows; yᵢ = ±1, or several columns of them, each a function of its own; b = 0 unless there is
          an intercept
Start     α = 0, b = 0, or values of an f that is there already
Update    visit the points in order; where yᵢ f(xᵢ) ≤ 0, a mistake (or as ``mistakes`` says),
              αᵢ += yᵢ,   b += yᵢ,   that is   f += yᵢ k(xᵢ, ·) + yᵢ
Stop      after a pass without a mistake, or when the passes (epochs) run out
Bound     M ≤ ‖g‖² maxᵢ k(xᵢ, xᵢ) mistakes in all, for any g with yᵢ g(xᵢ) ≥ 1 for every i, in whatever order
          the points come. An intercept is the kernel k + 1: then g and the maximum are those of k + 1.
          There is no such g for contradictory labels, and no end to the mistakes.
Cost      a row of K and O(n) additions per mistake; O(n) comparisons per pass. Rows are fetched in blocks,
          with those of the points ahead that have the smallest yᵢ f(xᵢ): a product of matrices costs far less
          than as many of vectors, and a row fetched in vain now is often needed in a later pass.

Aizerman, Braverman and Rozonoer, Theoretical foundations of the potential function method in pattern
recognition learning, Automation and Remote Control 25 (1964), 821-837. The bound: Novikoff, On convergence
proofs on perceptrons, Symposium on the Mathematical Theory of Automata 12 (1962), 615-622.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

import numpy as np

from mercer.data.types import Targets
from mercer.errors import InputError
from mercer.runtime.config import memory_budget
from mercer.runtime.row_store import RowStore
from mercer.solvers.control import Control, State
from mercer.solvers.matrix import KernelMatrix
from mercer.solvers.perceptron.mistakes import MistakeList, Mistakes, is_mistake
from mercer.solvers.result import Result, Stop

#: an entry of the history: one visit of one point
VISIT = np.dtype([("epoch", np.int32), ("index", np.int64), ("value", np.float64), ("mistake", np.bool_)])

#: Points looked at together for the next mistake, at most and at least.
_LARGEST_WINDOW = 4096
_SMALLEST_WINDOW = 64
#: Bytes of rows that are fetched together, at most.
FETCHED_BYTES = 2**26
_AHEAD = 1024  # points among which the next mistakes are looked for


@dataclass(frozen=True, eq=False, kw_only=True)
class PerceptronResult(Result):
    """What the perceptron found, and how. For several functions every entry has one more axis, the last."""

    #: the mistakes: all that f is made of
    made: Mistakes
    #: (n,) f(xᵢ)
    values: np.ndarray
    #: (epochs,) the mistakes of each pass
    mistakes_per_epoch: np.ndarray
    #: the passes that were made, the last without a mistake if it converged
    epochs: Any
    #: whether every point came out right in a pass
    converged: Any
    #: minᵢ yᵢ f(xᵢ) / ‖f‖, in the space of k, or of k + 1 with an intercept; negative where a point is wrong,
    #: NaN where ‖f‖² < 0: K is not positive semi-definite then
    margin: Any
    #: ‖g‖² maxᵢ k(xᵢ, xᵢ) for g = f / minᵢ yᵢ f(xᵢ): infinite where f is 0 at a point, NaN unless converged
    bound: Any
    #: (visits,) of epoch (from 1), index (from 0), value (f(xᵢ) on arrival), mistake; None unless recorded;
    #: for several functions a list
    history: Any
    #: whether ‖f‖² < 0 for some f, beyond rounding: K is not positive semi-definite then
    is_indefinite: bool

    @property
    def _squeeze(self) -> bool:
        return self.values.ndim == 1

    @property
    def coef(self) -> np.ndarray:  # (n,)
        """αᵢ = yᵢ · (times xᵢ was a mistake)."""
        coef = self.made.coef(len(self.values))
        return coef[:, 0] if self._squeeze else coef

    @property
    def intercept(self) -> Any:
        """b"""
        b = self.made.intercept()
        return float(b[0]) if self._squeeze else b

    @property
    def mistakes(self) -> Any:
        """M, over all passes."""
        counts = self.made.counts()
        return int(counts[0]) if self._squeeze else counts


def perceptron(
    K: KernelMatrix,  # (n, n)
    y: Targets,  # (n,) or (n, functions) of ±1
    *,
    fit_intercept: bool = True,
    boundary: str = "mistake",
    max_epochs: int = 100,
    orders: Iterable[Any] | int | None = None,
    start: Any = None,
    prefetch: int = 64,
    cache: int | None = None,
    record: bool = False,
    keep: int | None = None,
    control: Control | None = None,
) -> PerceptronResult:
    """Pass over the points, adding yᵢ k(xᵢ, ·) at every mistake, until a pass makes none.

    Parameters
    ----------
    K : the kernel matrix, a Gram
    y : (n,) of ±1; or (n, functions), all learned in the same passes, as if each were alone
    fit_intercept : whether a mistake adds yᵢ to b as well
    boundary : what f(xᵢ) = 0 is: a "mistake" whatever yᵢ, or "negative", which is a mistake where yᵢ = +1
    max_epochs : passes at most
    orders : the order of visit of each pass, a permutation of 0 … n-1; by default 0, 1, … n-1 in every pass;
        a whole number is the seed of random ones
    start : like y, the values at the points of an f to go on from, by default 0
    prefetch : rows of K that are fetched together, at most
    cache : bytes of rows that are kept, by default a quarter of the memory budget; K need not keep any
    record : whether to keep the history, n entries per pass
    keep : mistakes of which the order is kept, at most; None for all. Where there are more, only sums are
    control : counts the points that were visited

    XOR, with k(u, v) = ⟨u, v⟩², takes two mistakes, and one where sign(0) = -1:

    >>> from mercer import Gram, Polynomial
    >>> K = Gram(Polynomial(2, c=0), [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    >>> result = perceptron(K, [1, -1, 1, -1], fit_intercept=False, record=True)
    >>> result.coef, result.mistakes, result.epochs, result.converged
    (array([ 1., -1.,  0.,  0.]), 2, 2, True)
    >>> result.history["value"][:4], result.history["mistake"][:4]
    (array([ 0.,  0.,  4., -4.]), array([ True,  True, False, False]))
    >>> perceptron(K, [1, -1, 1, -1], fit_intercept=False, boundary="negative").coef
    array([1., 0., 0., 0.])
    """
    Y = _signs(y, K.shape)
    if max_epochs < 1:
        raise InputError(
            f"max_epochs must be a whole number of at least 1, got {max_epochs!r}: pass 1, 2, 3, …"
        )
    control = control or Control()
    run = _Run(K, Y, fit_intercept, boundary, start, prefetch, cache, record, keep, orders, control)
    run.passes(max_epochs)
    return run.result(np.ndim(y) == 1)


class _Run:
    """The state between two mistakes: the values of f at all points, and where the visit is."""

    def __init__(
        self,
        K: KernelMatrix,
        Y: np.ndarray,  # (functions, n)
        fit_intercept: bool,
        boundary: str,
        start: Any,
        prefetch: int,
        cache: int | None,
        record: bool,
        keep: int | None,
        orders: Iterable[Any] | int | None,
        control: Control,
    ) -> None:
        self.K = K
        self.Y = Y
        self.positive = Y > 0
        self.intercept = fit_intercept
        self.boundary = boundary
        self.control = control
        functions, n = len(Y), K.shape[0]
        state = control.restored or {}
        # Values are float64 whatever K is: they are sums of many rows. b is apart: it saves passes.
        self.f = np.zeros((functions, n))
        if start is not None:
            self.f[:] = np.asarray(start, dtype=np.float64).reshape(n, functions).T
        self.f = state.get("f", self.f)
        self.b = state.get("b", np.zeros(functions))
        self.made = MistakeList(n, functions, keep).restore(state)
        self.per_epoch = [row.copy() for row in state.get("per_epoch", ())]
        self.settled = state.get("settled", np.zeros(functions, np.int64))  # the epoch that made no mistake
        self.position: int = state.get("position", n)  # in the order of the current epoch
        self.visits: int = state.get("visits", 0)
        self.seed: int = state.get("seed", orders if isinstance(orders, int | np.integer) else -1)
        self.orders = visiting_orders(n, self.seed if self.seed >= 0 else orders)
        self.history: list[tuple[np.ndarray, np.ndarray]] | None = None
        if record:
            self.history = [(state["seen"], state["arrived"])] if "seen" in state else []
        self.rows = _Rows(K, prefetch, cache, functions)

    @property
    def epoch(self) -> int:
        return len(self.per_epoch)

    def passes(self, max_epochs: int) -> None:
        """Epochs until all is right, from where a checkpoint left."""
        n = self.Y.shape[1]
        begun = self.epoch - (self.position < n)  # orders that were used up
        for order in islice(self.orders, max(begun, 0), max_epochs):
            if self.settled.all():
                break
            order = _permutation(order, n)
            if self.position >= n:
                self.per_epoch.append(np.zeros(len(self.Y), np.int64))
                self.position = 0
            self._pass(order)
            if self.position < n:
                return  # The control has stopped the pass before its end.
            self.settled[(self.per_epoch[-1] == 0) & (self.settled == 0)] = self.epoch
            if self.control.stopped:
                break
        if not self.per_epoch:
            raise InputError("orders is empty: give one order of visit per pass, or None")
        if self.settled.all():  # the points of the passes it did not need
            self.control.step(self.state, steps=max(0, max_epochs * n - self.control.iterations))

    def _pass(self, order: np.ndarray) -> None:
        n, width = len(order), min(_SMALLEST_WINDOW, _LARGEST_WINDOW)
        while self.position < n:
            window = order[self.position : self.position + width]
            wrong = is_mistake(self.f[:, window], self.positive[:, window], self.boundary, -self.b[:, None])
            any_wrong = wrong[0] if len(wrong) == 1 else wrong.any(axis=0)
            first = int(any_wrong.argmax())
            found = bool(any_wrong[first])
            visited = window[: first + 1] if found else window
            if self.history is not None:
                self.history.append((visited, self.f[:, visited] + self.b[:, None]))
            self.visits += len(visited)
            self.position += len(visited)
            if found:
                self._update(int(visited[-1]), wrong[:, first], order)
            # Mistakes come in crowds: after one the window is small again.
            width = min(_SMALLEST_WINDOW if found else 4 * width, _LARGEST_WINDOW)
            mistakes = int(self.made.total)
            self.control.step(self.state, steps=len(visited), epoch=self.epoch, mistakes=mistakes)
            if self.control.stopped:
                return

    def _update(self, i: int, wrong: np.ndarray, order: np.ndarray) -> None:
        row = self.rows.get(i)
        if row is None:
            row = self.rows.fetch(i, self._likely(order))
        # An infinite or missing value makes the product one too; a product may overflow without any.
        if not math.isfinite(np.dot(row, row)) and not np.isfinite(row).all():
            raise InputError(
                f"k(x, x') is not finite for x = point {i} and x' = point {int(np.isfinite(row).argmin())}: "
                "rescale the data, or choose a kernel that does not overflow on them"
            )
        for c in np.flatnonzero(wrong):
            sign = self.Y[c, i]
            change = np.add if sign > 0 else np.subtract
            change(self.f[c], row, out=self.f[c])
            if self.intercept:
                self.b[c] += sign
            self.made.append(self.visits, i, int(c), int(sign))
            self.per_epoch[-1][c] += 1

    def _likely(self, order: np.ndarray) -> np.ndarray:
        """The points ahead, those most likely to be mistakes first: the smallest yᵢ f(xᵢ)."""
        coming = order[self.position : self.position + _AHEAD]
        least = (self.Y[:, coming] * (self.f[:, coming] + self.b[:, None])).min(axis=0)
        return coming[np.argsort(least, kind="stable")]

    def state(self) -> State:
        """All that the next mistake depends on, and what the result tells."""
        state = {
            "f": self.f,
            "b": self.b,
            "per_epoch": np.array(self.per_epoch),
            "settled": self.settled,
            "position": self.position,
            "visits": self.visits,
            "seed": self.seed,
            **self.made.state(),
        }
        if self.history is not None:
            state["seen"], state["arrived"] = self._recorded()
        return state

    def _recorded(self) -> tuple[np.ndarray, np.ndarray]:  # (visits,), (functions, visits)
        assert self.history is not None
        seen, arrived = zip(*self.history, strict=True)
        self.history = [(np.concatenate(seen), np.concatenate(arrived, axis=1))]
        return self.history[0]

    def result(self, squeeze: bool) -> PerceptronResult:
        n = self.Y.shape[1]
        stopped = Stop.CONVERGED if self.settled.all() else self.control.stopped or Stop.MAX_ITER
        visits = np.where(self.settled > 0, self.settled * n, self.visits)
        made = self.made.freeze(visits, self.intercept)
        f = self.f + self.b[:, None]
        margin, bound, is_indefinite = _margins(self.K, self.Y, made, f, self.intercept)
        bound[self.settled == 0] = np.nan
        epochs = np.where(self.settled > 0, self.settled, self.epoch)
        history = None if self.history is None else self._histories(epochs)
        one = squeeze
        return PerceptronResult(
            made=made,
            values=f[0] if one else f.T,
            mistakes_per_epoch=np.array(self.per_epoch)[:, 0] if one else np.array(self.per_epoch),
            epochs=int(epochs[0]) if one else epochs,
            converged=bool(self.settled[0]) if one else self.settled > 0,
            margin=float(margin[0]) if one else margin,
            bound=float(bound[0]) if one else bound,
            history=history[0] if one and history is not None else history,
            is_indefinite=is_indefinite,
            iterations=self.epoch,
            stopped=stopped,
        )

    def _histories(self, epochs: np.ndarray) -> list[np.ndarray]:
        seen, arrived = self._recorded()
        n = self.Y.shape[1]
        histories = []
        for c, values in enumerate(arrived):
            entries = np.zeros(min(len(seen), int(epochs[c]) * n), VISIT)
            entries["epoch"] = 1 + np.arange(len(entries)) // n
            entries["index"] = seen[: len(entries)]
            entries["value"] = values[: len(entries)]
            positive = self.positive[c, entries["index"]]
            entries["mistake"] = is_mistake(entries["value"], positive, self.boundary)
            histories.append(entries)
        return histories


class _Rows:
    """Rows of K, fetched ahead and kept; the whole matrix where most of them are needed."""

    def __init__(self, K: KernelMatrix, prefetch: int, cache: int | None, functions: int) -> None:
        size = max(1, K.shape[1] * K.dtype.itemsize)
        self.K = K
        self.n = K.shape[0]
        # Many functions need most rows between them, and the whole matrix costs half, for it is symmetric.
        self.patience = self.n // 8 if functions > 2 and prefetch > 1 else self.n
        self.whole: np.ndarray | None = None
        self.fetched = 0
        self.block = int(np.clip(min(FETCHED_BYTES, memory_budget() // 16) // size, 1, max(1, prefetch)))
        capacity = memory_budget() // 4 if cache is None else cache
        self.kept = RowStore(K.shape[1], K.dtype, max(capacity, self.block * size))

    def get(self, i: int) -> np.ndarray | None:  # (n,)
        """Row i, if it is here."""
        if self.whole is not None:
            return np.asarray(self.whole[i])
        return self.kept.get(i)

    def fetch(self, i: int, likely: np.ndarray) -> np.ndarray:  # (n,)
        """Row i, and with it those of some likely points that are not here."""
        if self.fetched > self.patience and self.kept.slots >= self.n:
            self.kept = RowStore(self.n, self.K.dtype, 0)
            self.whole = self.K.dense()
            return np.asarray(self.whole[i])
        others = [j for j in likely.tolist() if j not in self.kept][: self.block - 1]
        index = np.array([*others, i])
        self.fetched += len(index)
        rows = self.K.rows(index)
        self.kept.keep(index, rows)
        return np.asarray(rows[-1])


def visiting_orders(n: int, orders: Iterable[Any] | int | None) -> Iterator[Any]:
    """The order of visit of each pass: 0 … n-1, those of a seed, or those that are given."""
    if orders is None:
        return repeat(np.arange(n))
    if isinstance(orders, int | np.integer):
        rng = np.random.default_rng(orders)
        return (rng.permutation(n) for _ in repeat(None))
    return iter(orders)


def mistake_bound(square: Any, margin: Any, largest: float) -> np.ndarray:
    """‖f‖² maxᵢ k(xᵢ, xᵢ) / (minᵢ yᵢ f(xᵢ))², where ``square`` = ‖f‖²; infinite where f does not separate."""
    square, margin = np.asarray(square, dtype=np.float64), np.asarray(margin, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(margin > 0, square / margin**2 * largest, np.inf)


def _margins(
    K: KernelMatrix, Y: np.ndarray, made: Mistakes, f: np.ndarray, intercept: bool
) -> tuple[np.ndarray, np.ndarray, bool]:  # (functions,), (functions,)
    """Margin and bound of each f, in the space of k + 1 with an intercept; whether some ‖f‖² is negative."""
    least = (Y * f).min(axis=1)
    # b = Σαᵢ, so that Σ αᵢ f(xᵢ) = αᵀKα + b², the squared norm in the space of k + 1
    terms = made.sums.T * f
    square, size = terms.sum(axis=1), np.abs(terms).sum(axis=1)
    is_negative = square < -1e-10 * size
    square = np.where(is_negative, np.nan, np.maximum(square, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = least / np.sqrt(square)
    bound = mistake_bound(square, least, float(K.diag().max()) + intercept)
    return margin, bound, bool(is_negative.any())


def _signs(y: Targets, shape: tuple[int, int]) -> np.ndarray:  # (functions, n)
    if shape[0] != shape[1]:
        raise InputError(f"K must be square, one set of points with itself, got {shape[0]} × {shape[1]}")
    y = np.asarray(y)
    if y.ndim not in (1, 2) or len(y) != shape[0]:
        raise InputError(f"y must have one entry per row of K, ({shape[0]},), got shape {y.shape}")
    if not np.isin(y, (-1, 1)).all():
        raise InputError(f"y must be -1 or 1, got {np.unique(y)[:5]}: code the two classes so")
    return np.ascontiguousarray(y.reshape(len(y), -1).T, dtype=np.float64)


def _permutation(order: Any, n: int) -> np.ndarray:
    order = np.asarray(order)
    if (
        order.shape != (n,)
        or order.dtype.kind not in "iu"
        or not np.array_equal(np.sort(order), np.arange(n))
    ):
        raise InputError(f"an order of visit must hold each of 0 … {n - 1} once, got {order!r}")
    return order
