r"""The list of mistakes: all that a perceptron is, and the three ways to predict from it.

A mistake at visit t (from 1) of the point xᵢ adds yᵢ k(xᵢ, ·) (+ yᵢ) to f. So f after visit t is a sum over
the mistakes up to t, and of T visits

    last        f = f_T
    averaged    f̄ = (1/T) Σ_t f_t = Σ_m (1 - (t_m - 1)/T) y_m k(x_m, ·)
    voted       (1/T) Σ_t sign f_t(x): each f votes as often as it survived a visit; sign(0) = -1

What a mistake is depends on the points on the boundary, f(xᵢ) = 0, where every training begins:

    "mistake"   yᵢ f(xᵢ) ≤ 0: such a point is wrong whatever its label. The classes are treated alike
    "negative"  sign f(xᵢ) ≠ yᵢ with sign(0) = -1: such a point is wrong only if yᵢ = +1

The first two are sums, of yᵢ and of yᵢ (t - 1) for each point. The votes need the list in order: at x they
take one row of kernel values, sums over its beginnings, and no more memory than the list. Noisy labels make
mistakes without end, so that the order is kept only up to a number of mistakes, where one is given.

Freund and Schapire, Large margin classification using the perceptron algorithm, Machine Learning 37 (1999),
277-296.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

#: what a point with f(x) = 0 is while a perceptron is trained
BOUNDARIES = ("mistake", "negative")


def is_mistake(f: np.ndarray, positive: np.ndarray, boundary: str, zero: Any = 0.0) -> Any:  # like f
    """Which of the points with values f, whose labels are +1 where ``positive``, are mistakes.

    ``zero`` is the value on the boundary, in place of 0.

    >>> f, positive = np.array([0.0, 0.0, 2.0]), np.array([True, False, True])
    >>> is_mistake(f, positive, "mistake"), is_mistake(f, positive, "negative")
    (array([ True,  True, False]), array([ True, False, False]))
    """
    wrong = (f > zero) != positive
    return wrong | (f == zero) if boundary == "mistake" else wrong


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The mistakes of one or several functions; ``time`` … ``sign`` are None where the order is not kept.

    >>> found = MistakeList(3, 1)
    >>> found.append(time=1, index=0, function=0, sign=1)
    >>> found.append(time=4, index=2, function=0, sign=-1)
    >>> made = found.freeze(visits=np.array([4]), has_intercept=True)
    >>> made.coef(3)[:, 0], made.coef(3, averaged=True)[:, 0], made.intercept(averaged=True)
    (array([ 1.,  0., -1.]), array([ 1.  ,  0.  , -0.25]), array([0.75]))
    >>> made.votes(np.array([[0.5, 0.0, 2.0]]))[:, 0]  # f_t(x) + b = 1.5, 1.5, 1.5, -1.5
    array([0.5])
    """

    #: (n, functions) Σ yᵢ over the mistakes at each point
    sums: np.ndarray
    #: (n, functions) Σ yᵢ (t - 1)
    late: np.ndarray
    #: (functions,) how many
    number: np.ndarray
    #: (functions,) T, the visits of each function
    visits: np.ndarray
    #: whether b goes along
    has_intercept: bool = True
    #: (M,) the visit, from 1
    time: Any = None
    #: (M,) the point
    index: Any = None
    #: (M,) the function that was wrong
    function: Any = None
    #: (M,) yᵢ
    sign: Any = None

    @property
    def is_ordered(self) -> bool:
        """Whether the list is kept."""
        return self.time is not None

    def of(self, c: int) -> Mistakes:
        """The mistakes of one function."""
        mine = slice(c, c + 1)
        one = Mistakes(
            self.sums[:, mine], self.late[:, mine], self.number[mine], self.visits[mine], self.has_intercept
        )
        if not self.is_ordered:
            return one
        which = self.function == c
        function = np.zeros(int(which.sum()), np.int32)
        return replace(
            one, time=self.time[which], index=self.index[which], function=function, sign=self.sign[which]
        )

    def counts(self) -> np.ndarray:  # (functions,)
        """The mistakes of each function."""
        return self.number.copy()

    def stored(self) -> np.ndarray:
        """The points that were a mistake, each once, in increasing order."""
        return np.flatnonzero(self.sums.any(axis=1))  # A point's sign is always the same: nothing cancels.

    def coef(self, n: int, averaged: bool = False) -> np.ndarray:  # (n, functions)
        """α, of the last f or of the average, of the points 0 … n-1."""
        out = np.zeros((n, len(self.visits)))
        out[: len(self.sums)] = self._weights() if averaged else self.sums
        return out

    def intercept(self, averaged: bool = False) -> np.ndarray:  # (functions,)
        """b, of the last f or of the average."""
        if not self.has_intercept:
            return np.zeros(len(self.visits))
        return (self._weights() if averaged else self.sums).sum(axis=0)

    def _weights(self) -> np.ndarray:  # (n, functions)
        """Σ yᵢ (1 - (t - 1)/T)"""
        return self.sums - self.late / np.maximum(self.visits, 1)

    def votes(self, values: np.ndarray) -> np.ndarray:  # (m, functions)
        """(1/T) Σ_t sign f_t(x), from a row of kernel values per x; ``index`` counts their columns."""
        out = np.empty((len(values), len(self.visits)))
        for c in range(len(self.visits)):
            mine = self.of(c)
            f = values[:, mine.index].astype(np.float64)
            if self.has_intercept:
                f += 1.0
            f *= mine.sign
            np.cumsum(f, axis=1, out=f)
            survived = np.diff(mine.time, append=mine.visits + 1)
            agree = (f > 0) @ survived.astype(np.float64)  # the visits at which f_t(x) > 0
            out[:, c] = 2 * agree / mine.visits[0] - 1
        return out

    def among(self, stored: np.ndarray) -> Mistakes:
        """The same mistakes, their points counted by their place in ``stored``, which is sorted."""
        index = np.searchsorted(stored, self.index).astype(np.int32) if self.is_ordered else None
        return replace(self, sums=self.sums[stored], late=self.late[stored], index=index)

    def then(self, later: Mistakes, n: int, keep: int | None = None) -> Mistakes:
        """These, and after them the later ones, whose points count on from n; in order up to ``keep``."""
        gap = np.zeros((n - len(self.sums), len(self.visits)))
        both = Mistakes(
            np.concatenate([self.sums, gap, later.sums]),
            np.concatenate([self.late, gap, later.late + self.visits * later.sums]),
            self.number + later.number,
            self.visits + later.visits,
            self.has_intercept,
        )
        is_short = keep is None or int(both.number.sum()) <= keep
        if not (self.is_ordered and later.is_ordered and is_short):
            return both
        return replace(
            both,
            time=np.concatenate([self.time, later.time + self.visits[later.function]]),
            index=np.concatenate([self.index, later.index + np.int32(n)]),
            function=np.concatenate([self.function, later.function]),
            sign=np.concatenate([self.sign, later.sign]),
        )


#: the numbers of a mistake in the list, 17 bytes
_TYPES = {"time": "q", "index": "i", "function": "i", "sign": "b"}


class MistakeList:
    """The mistakes while they come: sums for each of n points, and the list of at most ``keep``."""

    def __init__(self, n: int, functions: int, keep: int | None = None) -> None:
        self.keep = keep
        self.sums, self.late = np.zeros((n, functions)), np.zeros((n, functions))
        self.number = np.zeros(functions, np.int64)
        self.total = 0  # mistakes so far
        self._entries: dict[str, array] | None = {name: array(code) for name, code in _TYPES.items()}

    def append(self, time: int, index: int, function: int, sign: int) -> None:
        self.sums[index, function] += sign
        self.late[index, function] += sign * (time - 1)
        self.number[function] += 1
        self.total += 1
        if self._entries is None:
            return
        if self.keep is not None and self.total > self.keep:
            self._entries = None
            return
        for entries, value in zip(self._entries.values(), (time, index, function, sign), strict=True):
            entries.append(value)

    def state(self) -> dict[str, np.ndarray]:
        """The state for a checkpoint."""
        state = {"made_sums": self.sums, "made_late": self.late, "made_number": self.number}
        for name, entries in (self._entries or {}).items():
            state[f"made_{name}"] = np.array(entries, dtype=_TYPES[name])
        return state

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from what a checkpoint held, if it did."""
        if "made_sums" not in state:
            return self
        self.sums, self.late, self.number = (state[f"made_{name}"] for name in ("sums", "late", "number"))
        self.total = int(self.number.sum())
        if "made_time" in state:
            self._entries = {
                name: array(code, state[f"made_{name}"].tolist()) for name, code in _TYPES.items()
            }
        else:
            self._entries = None
        return self

    def freeze(self, visits: np.ndarray, has_intercept: bool) -> Mistakes:
        """The mistakes so far."""
        made = Mistakes(self.sums, self.late, self.number, np.asarray(visits), has_intercept)
        if self._entries is None:
            return made
        lists: dict[str, Any] = {
            name: np.array(entries, dtype=_TYPES[name]) for name, entries in self._entries.items()
        }
        return replace(made, **lists)
