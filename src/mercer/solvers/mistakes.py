r"""The list of mistakes: all that a perceptron is, and the three ways to predict from it.

A mistake at visit t (from 1) of the point xᵢ adds yᵢ k(xᵢ, ·) (+ yᵢ) to f. So f after visit t is a sum over
the mistakes up to t, and of T visits

    last        f = f_T
    averaged    f̄ = (1/T) Σ_t f_t = Σ_m (1 - (t_m - 1)/T) y_m k(x_m, ·)
    voted       (1/T) Σ_t sign f_t(x): each f votes as often as it survived a visit; sign(0) = -1

The votes at x take one row of kernel values, sums over its beginnings, and no more memory than the list.

Freund and Schapire, Large margin classification using the perceptron algorithm, Machine Learning 37 (1999),
277-296.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

__all__ = ["MistakeList", "Mistakes"]


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The mistakes of one or several functions, in order.

    >>> made = Mistakes.of_one(time=[1, 4], index=[0, 2], sign=[1, -1], visits=4)
    >>> made.coef(3)[:, 0], made.coef(3, averaged=True)[:, 0], made.intercept(averaged=True)
    (array([ 1.,  0., -1.]), array([ 1.  ,  0.  , -0.25]), array([0.75]))
    >>> made.votes(np.array([[0.5, 0.0, 2.0]]))[:, 0]  # f_t(x) + b = 1.5, 1.5, 1.5, -1.5
    array([0.5])
    """

    #: (M,) the visit, from 1
    time: np.ndarray
    #: (M,) the point
    index: np.ndarray
    #: (M,) the function that was wrong
    function: np.ndarray
    #: (M,) yᵢ
    sign: np.ndarray
    #: (functions,) T, the visits of each function
    visits: np.ndarray
    #: whether b goes along
    has_intercept: bool = True

    @classmethod
    def of_one(cls, time: Any, index: Any, sign: Any, visits: int, has_intercept: bool = True) -> Mistakes:
        """The list of a single function."""
        time, index, sign = (np.asarray(part, dtype=np.int64) for part in (time, index, sign))
        return cls(time, index, np.zeros_like(time), sign, np.array([visits]), has_intercept)

    def of(self, c: int) -> Mistakes:
        """The mistakes of one function."""
        mine = self.function == c
        return Mistakes.of_one(
            self.time[mine], self.index[mine], self.sign[mine], int(self.visits[c]), self.has_intercept
        )

    def counts(self) -> np.ndarray:  # (functions,)
        """The mistakes of each function."""
        return np.bincount(self.function, minlength=len(self.visits))

    def stored(self) -> np.ndarray:
        """The points that were a mistake, each once, in increasing order."""
        return np.unique(self.index)

    def coef(self, n: int, averaged: bool = False) -> np.ndarray:  # (n, functions)
        """α, of the last f or of the average; ``index`` counts 0 … n-1."""
        functions = len(self.visits)
        cell = self.index * functions + self.function
        return np.bincount(cell, self._weights(averaged), n * functions).reshape(n, functions)

    def intercept(self, averaged: bool = False) -> np.ndarray:  # (functions,)
        """b, of the last f or of the average."""
        if not self.has_intercept:
            return np.zeros(len(self.visits))
        return np.bincount(self.function, self._weights(averaged), len(self.visits))

    def _weights(self, averaged: bool) -> np.ndarray:  # (M,)
        if not averaged:
            return self.sign.astype(np.float64)
        return self.sign * (1 - (self.time - 1) / self.visits[self.function])

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
        return replace(self, index=np.searchsorted(stored, self.index))

    def then(self, later: Mistakes, n: int) -> Mistakes:
        """These, and after them the later ones, whose points count on from n."""
        return Mistakes(
            np.concatenate([self.time, later.time + self.visits[later.function]]),
            np.concatenate([self.index, later.index + n]),
            np.concatenate([self.function, later.function]),
            np.concatenate([self.sign, later.sign]),
            self.visits + later.visits,
            self.has_intercept,
        )


class MistakeList:
    """The list while it grows: four whole numbers per mistake."""

    def __init__(self) -> None:
        self._entries = array("q")

    @property
    def total(self) -> int:
        """The mistakes so far."""
        return len(self._entries) // 4

    def append(self, time: int, index: int, function: int, sign: int) -> None:
        self._entries.extend((time, index, function, sign))

    def state(self) -> dict[str, np.ndarray]:
        """For a checkpoint."""
        return {"made": np.array(self._entries, dtype=np.int64)}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Self:
        """The list that a checkpoint held, or an empty one."""
        made = cls()
        made._entries.extend(state["made"].tolist() if "made" in state else ())
        return made

    def freeze(self, visits: np.ndarray, has_intercept: bool) -> Mistakes:
        """The list as it is now."""
        time, index, function, sign = np.array(self._entries, dtype=np.int64).reshape(-1, 4).T
        return Mistakes(time, index, function, sign, np.asarray(visits), has_intercept)
