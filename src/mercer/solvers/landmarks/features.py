r"""What solvers of restricted problems see: a linear model F = Φw + b in the features φ(x) = T⁻ᵀ k(Z, x).

    Φ = K T⁻¹,   K = K(X, Z),   ⟨φ(x), φ(x')⟩ = k(x, Z) K_MM⁻¹ k(Z, x')
    f = ⟨w, φ(·)⟩ + b = Σⱼ βⱼ k(zⱼ, ·) + b

The unknowns are one array u, (M, m) or, with an intercept, (M + 1, m): w and, last, b. Φ is never made: each
of these verbs is a pass over the rows of K.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mercer.runtime.clock import now
from mercer.runtime.progress import ROWS
from mercer.solvers.landmarks.inner import WithIntercept
from mercer.solvers.landmarks.posterior import MOST_FEATURES, leading

#: Rows per landmark whose square is near enough to that of all rows for a preconditioner: a fifth of all
#: rows within these bounds, so that the square costs a few passes and saves more of them.
_SAMPLED = 10, 20
#: Multiplications of matrix products in the time of one operation of a kernel's formula, about.
_PRODUCT_SPEED = 1.75
#: An error of a preconditioner, as a part of the penalty, that costs no iteration; and one of the system
#: itself, of which a step of Newton's method sees nothing.
SLACK, SLACK_OF_SYSTEM = 0.1, 1e-3
#: The error of single precision, as a part of the penalty, up to which it costs few iterations.
_MOST_ROUGH = 2.0
#: How far single precision may move features, whose length is that of Φ(x) at most.
_MOST_MOVED = 0.1
#: Units of the precision of K, relative to each diagonal entry, that are added before a factorisation: a
#: matrix that is not positive definite by rounding alone becomes so.
_UNITS = 512.0


def sample_size(n: int, M: int, fewest: int = _SAMPLED[0], most: int = _SAMPLED[1]) -> int:
    """Of n rows, so many stand for all of them on M landmarks: ``fewest`` to ``most`` of them for each.

    >>> sample_size(1000, 200), sample_size(15_000, 200), sample_size(10**9, 200)
    (1000, 3000, 4000)
    """
    return min(n, max(fewest * M, n // 5), most * M)


class Passes(Protocol):
    """K(X, Z) as passes over its rows; ``mercer.gram.blocks.RowBlocks`` is one."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    #: additions and multiplications per kernel value, about
    cost: float

    def some(self, rows: np.ndarray) -> Passes:
        """The same for some of the rows."""

    def rough(self) -> Passes | None:
        """The same in single precision; None where that would not be faster."""

    def pass_over(
        self, V: np.ndarray, inner: Any, numbers: int = 1, width: int | None = None, each: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Kᵀ inner(K V), and sums; ``each`` takes the rows of a block and what ``inner`` keeps of it."""

    def values(self, V: np.ndarray) -> np.ndarray:
        """K V."""

    def adjoint(self, G: np.ndarray) -> np.ndarray:
        """Kᵀ G."""

    def square(self, weight: np.ndarray, *, transform: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The lower triangle of Kᵀ W K, and Kᵀ W 1, where columns of Kᵀ may be transformed first."""


class Features:
    """Φ, with a column of ones where there is an intercept.

    >>> class Identity:
    ...     shape, dtype, cost = (2, 2), np.dtype(float), 1.0
    ...
    ...     def values(self, V):
    ...         return V
    >>> from mercer.solvers.landmarks.basis import Basis
    >>> Features(Identity(), Basis(2 * np.eye(2)), True).values(np.array([[2.0], [4.0], [1.0]])).ravel()
    array([2., 3.])
    """

    def __init__(
        self,
        K: Passes,
        basis: Any,
        fit_intercept: bool,
        own_rows: np.ndarray | None = None,
        own: int = 0,
    ) -> None:
        self.K = K
        #: a `Basis`, or what has its verbs
        self.basis = basis
        self.fit_intercept = fit_intercept
        #: where the landmarks are among the rows, if they were drawn at random from these and the basis knows
        #: their square
        self.own_rows = own_rows
        #: how many of the rows, the first ones, are the landmarks themselves
        self.own = own
        self.n = K.shape[0]
        self.size = basis.size + fit_intercept
        #: passes over all rows of K
        self.passes = 0
        #: hears after each of them how many there were, and the rows per second of the last
        self.follow: Callable[..., object] | None = None

    @contextmanager
    def passing(self) -> Iterator[None]:
        """A pass over all rows, which is counted and told."""
        began = now()
        yield
        self.passes += 1
        if self.follow is not None:
            self.follow(passes=self.passes, **{ROWS: self.n / max(now() - began, 1e-9)})

    @cached_property
    def rough(self) -> Passes | None:
        """K in single precision, a pass over which takes half the time; None where there is no such."""
        return self.K.rough()

    def is_rough_enough(self, weight: np.ndarray, penalty: float) -> bool:
        """Whether Φ̃ᵀWΦ̃ in single precision is right to a small multiple of the penalty.

        Rounding k(x, Z) moves φ(x) by ε ‖k(x, Z)‖ ‖T⁻¹‖, about, of every row independently.
        """
        if self.rough is None:
            return False
        rows = math.sqrt(float(weight.sum()) * float(weight.max(initial=0.0)))
        moved = float(np.finfo(np.float32).eps) * math.sqrt(self.basis.amplification)
        return moved <= _MOST_MOVED and rows * moved <= _MOST_ROUGH * penalty

    def some(self, rows: np.ndarray) -> Features:
        """The same model for some of the rows."""
        M, first = self.basis.size, self.own_rows
        own = M if first is not None and np.array_equal(rows[:M], first) else 0
        return Features(self.K.some(rows), self.basis, self.fit_intercept, own=own)

    def joined(self, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:  # (M, m), (m,) → (M + 1, m)
        """u of β and b."""
        w = self.basis.weights(coef)
        return np.vstack([w, intercept]) if self.fit_intercept else w

    def split(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β (M, m) and b (m,) of u."""
        w = u[: self.basis.size]
        b = u[-1] if self.fit_intercept else np.zeros(u.shape[1])
        return self.basis.coefficients(w), b

    def penalty(self, size: float) -> np.ndarray:  # (M + 1, 1)
        """The diagonal of the penalty: none on b."""
        diagonal = np.full((self.size, 1), size)
        if self.fit_intercept:
            diagonal[-1] = 0.0
        return diagonal

    def apply(
        self,
        u: np.ndarray,  # (M + 1, m)
        inner: Any,
        numbers: int = 1,
        is_rough: bool = False,
        each: Callable[[slice, Any], object] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # (M + 1, p), (numbers,)
        """Φ̃ᵀ inner(Φ̃u) in one pass, with the sums of the numbers that ``inner`` gives.

        ``is_rough``: in single precision. ``each`` takes the rows of a block and what ``inner`` keeps of it.
        """
        beta, b = self.split(u)
        columns = u.shape[1]
        K = self.rough if is_rough and self.rough is not None else self.K
        with self.passing():
            total, sums = K.pass_over(beta, WithIntercept(inner, b), columns + numbers, each=each)
        return self._stacked(total, sums[:columns]), sums[columns:]

    def values(self, u: np.ndarray) -> np.ndarray:  # (n, m)
        """Φ̃u."""
        beta, b = self.split(u)
        with self.passing():
            return self.K.values(beta) + b

    def adjoint(self, G: np.ndarray) -> np.ndarray:  # (n, m) → (M + 1, m)
        """Φ̃ᵀG."""
        with self.passing():
            return self._stacked(self.K.adjoint(G), G.sum(axis=0))

    def _stacked(self, total: np.ndarray, sums: np.ndarray) -> np.ndarray:
        w = self.basis.features(total)
        return np.vstack([w, sums]) if self.fit_intercept else w

    # --- preconditioners -----------------------------------------------------------------------------

    def sample(self, weight: np.ndarray, wanted: int | None = None) -> Sample:
        """Rows with a weight that stand for all of them; all rows where these are few."""
        if wanted is None:
            wanted = sample_size(self.n, self.basis.size, *getattr(self.K, "sampled", _SAMPLED))
        if self.n <= wanted:
            return self.whole(weight)
        if self.own_rows is not None and weight[self.own_rows].any():
            return self.stratified(weight, self.own_rows)
        return self.sampled(*_drawn(weight, wanted))

    def stratified(self, weight: np.ndarray, own: np.ndarray) -> Sample:
        """The landmarks, which say most of what they span, and some of the other rows, which stand for these.

        Counted with the others, the landmarks would stand for rows that are not like them; without them, what
        only they span would look empty. Where a pass costs less than the others would, they are left out.
        """
        wanted = self.K.others()  # type: ignore[attr-defined]
        if not wanted:
            return self.sampled(own, weight, float(weight[own].sum()) / float(weight.sum()))
        is_other = weight > 0
        is_other[own] = False
        others = np.flatnonzero(is_other)
        if len(others) > wanted:
            others = np.sort(np.random.default_rng(0).choice(others, wanted, replace=False))
        share = float(weight[others].sum()) / float(weight.sum() - weight[own].sum())
        return self.sampled(np.concatenate([own, others]), weight, share)

    def normal(self, sample: Sample, square: Any, weight: np.ndarray) -> np.ndarray:
        """Φ̃ᵀWΦ̃, packed (see `posterior`), of a sample and its square.

        On a device, where samples are too small for it, of other rows and the first landmarks alone.
        """
        if not hasattr(self.K, "few"):
            return leading(square, self.fit_intercept) / sample.share
        count = min(self.basis.size, MOST_FEATURES)
        rows, _, share = _drawn(weight, sample_size(self.n, count))
        some = Features(self.K.few(rows, count), self.basis.first(count), self.fit_intercept)
        found = some.basis.lower(some.square(weight[rows]), some.size)
        return leading(found, self.fit_intercept) / share

    def sampled(self, rows: np.ndarray, weight: np.ndarray, share: float) -> Sample:
        """Some rows as a sample; landmarks among them, beside others, stand for themselves alone."""
        features, counts = self.some(rows), np.ones(len(rows))
        if features.own and len(rows) > features.own:
            counts[: features.own] = share
        return Sample(features, rows, counts * weight[rows], share, counts[:, None])

    def whole(self, weight: np.ndarray) -> Sample:
        """All rows, as a sample."""
        return Sample(self, slice(None), weight, 1.0)

    def square(self, weight: np.ndarray, slack: float = 0.0) -> Any:  # (M + 1, M + 1)
        """A triangle of Φ̃ᵀWΦ̃, as the basis takes it; ``slack`` is an error that it may have."""
        own = {"own": self.own} if self.own else {}
        total, first = self.basis.square(self.K, weight, slack, **own)
        return self.basis.bordered(total, first, float(weight.sum())) if self.fit_intercept else total

    def square_cost(self, rows: int) -> float:
        """What the square of so many rows and its factor cost, in passes."""
        M = self.basis.size
        products = 2.0 * rows * M * M + M**3 / 3  # the triangular solves, and the square
        return (rows * M * self.K.cost + products / _PRODUCT_SPEED) / (self.n * M * (self.K.cost + 4.0))

    def inverse(self, square: Any, penalty: float) -> Callable[[np.ndarray], np.ndarray]:
        """V ↦ (Φ̃ᵀWΦ̃ + penalty)⁻¹V, of a square that was computed; it is overwritten."""
        rounding = _UNITS * float(np.finfo(self.K.dtype).eps)
        return self.basis.inverse(square, self.penalty(penalty)[:, 0], rounding)


def _drawn(weight: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray, float]:
    """So many rows with a weight, at random; the weights of all rows; what part of these the rows have."""
    present = np.flatnonzero(weight)
    if len(present) > wanted:
        present = np.sort(np.random.default_rng(0).choice(present, wanted, replace=False))
    rows = present if present.size else np.arange(wanted)
    return rows, weight, float(weight[rows].sum()) / float(weight.sum()) if present.size else 1.0


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows that stand for all: Φ̃ᵀWΦ̃ ≈ Φ̃ₛᵀWₛΦ̃ₛ / share."""

    #: the model of these rows
    features: Features
    rows: np.ndarray | slice
    #: (s,) their weights
    weight: np.ndarray
    #: what part of all weight they have
    share: float
    #: (s, 1) by how much each is counted, beside others: landmarks that stand for themselves alone count
    #: ``share``
    counts: np.ndarray | float = 1.0

    def square(self, penalty: float, slack: float = SLACK) -> np.ndarray:  # (M + 1, M + 1)
        """The lower triangle of Φ̃ₛᵀWₛΦ̃ₛ; ``slack``: an error, as a part of the penalty, that is allowed."""
        own = self.share * penalty
        square = self.features.square(self.weight, slack * own)
        # Weights that are zero everywhere leave b alone: this keeps the matrix positive definite.
        if self.features.fit_intercept:
            square[-1, -1] += 1e-10 * (own + float(square[-1, -1]))
        return square

    def inverse(
        self, penalty: float, slack: float = SLACK, square: np.ndarray | None = None
    ) -> Callable[[np.ndarray], np.ndarray]:
        """V ↦ (Φ̃ₛᵀWₛΦ̃ₛ / share + penalty)⁻¹V; of a square that is there, which is overwritten."""
        own = self.share * penalty
        square = self.square(penalty, slack) if square is None else square
        near = self.features.inverse(square, own)
        return lambda V: self.share * near(V)
