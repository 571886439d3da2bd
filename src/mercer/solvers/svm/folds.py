r"""Support vector machines of many folds, pairs of classes and C, on one stored K.

For the points of two classes in a training part, and C₁ < C₂ < …, the dual in γᵢ = yᵢ αᵢ is

    minimise  ½ γᵀKγ - yᵀγ     over   0 ≤ yᵢγᵢ ≤ C,   Σγ = 0

Each machine starts from the one before, times Cₖ₊₁ / Cₖ, which is feasible, and its slopes y - Kγ come along;
where no γ is at its bound, a larger C changes nothing. Some C of one fold and pair are a single compiled
call: of a machine of a hundred points nearly all the time would else go into calling. A large C takes most of
the time and is seldom the best: the paths end when the errors have clearly risen. Up to `MOST_POINTS`; for
more, and for a solution that states its gap, there is `mercer.solvers.svm.problems`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import numpy as np

from mercer.runtime.clock import now
from mercer.runtime.native import OPTIONS, njit
from mercer.runtime.threads import run
from mercer.solvers.svm.smo import LARGEST_BLOCK, measure, solve_rows

#: A training part has at most as many points as one block of SMO.
MOST_POINTS = LARGEST_BLOCK
_TOL = 1e-2  # y f may be off by it: this changes fewer signs than another fold does
_STEPS = 200  # per point, at most: the score of a machine that is slower still changes little
_FIRST, _NEXT = 5, 2  # C that are tried in any case, and then at a time
_CLEARLY = 2.0  # standard errors of the count that is the least so far

#: positions of the training part and of the test part
Fold = tuple[np.ndarray, np.ndarray]


def mistakes_of_paths(
    K: np.ndarray,  # (n, n)
    labels: np.ndarray,  # (n,) 0, 1, …
    folds: Sequence[Fold],
    penalties: Sequence[float] | np.ndarray,  # (m,), ascending
    end: float = np.inf,
) -> np.ndarray:  # (m,)
    """How many test points of all folds are put into a wrong class, for every C; pairs of classes vote.

    Once they are clearly more than the fewest, or from ``end`` on by `clock.now`, larger C are not
    tried: the last count stands for them.

    >>> from mercer import Gaussian
    >>> X, labels = np.array([[0.0], [1.0], [4.0], [5.0], [0.5], [4.5]]), np.array([0, 0, 1, 1, 0, 1])
    >>> mistakes_of_paths(Gaussian(1.0)(X), labels, [(np.arange(4), np.array([4, 5]))], [0.1, 1.0])
    array([0, 0])
    """
    K = np.ascontiguousarray(K, dtype=np.float64)
    classes = int(labels.max()) + 1
    grid = np.asarray(penalties, dtype=np.float64)
    machines = [
        _Machine.of(number, train, test, labels, a, b)
        for number, (train, test) in enumerate(folds)
        for a, b in combinations(np.unique(labels[train]).tolist(), 2)
    ]
    wrong = np.empty(len(grid), np.int64)
    start = 0
    while start < len(grid):
        stop = min(start + (_NEXT if start else _FIRST), len(grid))
        run(partial(_Machine.go_on, K=K, penalties=grid[start:stop]), machines)
        wrong[start:stop] = _mistakes(machines, folds, labels, classes, stop - start)
        fewest = wrong[:stop].min()
        if wrong[start:stop].min() > fewest + _CLEARLY * np.sqrt(fewest + 1) or now() > end:
            wrong[stop:] = wrong[stop - 1]
            break
        start = stop
    return wrong


@dataclass(eq=False)
class _Machine:
    """The machine of a fold and two classes, on its way along C."""

    fold: int
    classes: tuple[int, int]
    train: np.ndarray  # (q,) the points of the two
    test: np.ndarray
    signs: np.ndarray  # (q,)
    gamma: np.ndarray  # (q,)
    slopes: np.ndarray  # (q,) y - Kγ
    before: float = np.nan  # the C that γ is for
    values: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # (m, test) f for the last C

    @classmethod
    def of(
        cls, fold: int, train: np.ndarray, test: np.ndarray, labels: np.ndarray, a: int, b: int
    ) -> _Machine:
        mine = train[(labels[train] == a) | (labels[train] == b)]
        signs = np.where(labels[mine] == a, 1.0, -1.0)
        return cls(fold, (a, b), mine, np.asarray(test), signs, np.zeros(len(mine)), signs.copy())

    def go_on(self, K: np.ndarray, penalties: np.ndarray) -> None:
        before = penalties[0] if np.isnan(self.before) else self.before
        self.values = machine_path(
            K,
            self.train,
            self.signs,
            self.test,
            penalties,
            self.gamma,
            self.slopes,
            before,
            _TOL,
            _STEPS * len(self.train),
        )
        self.before = penalties[-1]


def _mistakes(
    machines: Sequence[_Machine], folds: Sequence[Fold], labels: np.ndarray, classes: int, m: int
) -> np.ndarray:  # (m,)
    """How many test points are put into a wrong class, by the votes of the machines of a fold."""
    votes = [np.zeros((m, len(test), classes), np.int64) for _, test in folds]
    for (train, _), mine in zip(folds, votes, strict=True):
        mine[..., np.unique(labels[train])] = 1  # A class that is not there wins no tie.
    for machine in machines:
        mine, (a, b) = votes[machine.fold], machine.classes
        mine[..., a] += machine.values > 0
        mine[..., b] += machine.values <= 0
    wrong = np.zeros(m, np.int64)
    for (_, test), counts in zip(folds, votes, strict=True):
        wrong += (counts.argmax(axis=2) != labels[test]).sum(axis=1)
    return wrong


@njit(nogil=True, cache=True, **OPTIONS)
def machine_path(K, train, signs, test, penalties, gamma, slopes, before, tol, most):  # type: ignore[no-untyped-def]
    """f at the test points for every C, (penalties, test); γ and its slopes go on from C = before."""
    q = train.shape[0]
    out = np.empty((penalties.shape[0], test.shape[0]))
    # in float32 the rows of two threads stay in the cache; it is another K, by less than any tolerance here
    B, ready = np.empty((q, q), np.float32), np.zeros(q, np.bool_)
    diag, lo, hi, exact, memory = np.empty(q), np.empty(q), np.empty(q), np.zeros(q), np.empty(2 * q + 2)
    for t in range(q):
        diag[t] = K[train[t], train[t]]
    for c in range(penalties.shape[0]):
        C = penalties[c]
        growth = 1.0
        for t in range(q):
            if abs(gamma[t]) >= before:
                growth = C / before
        for t in range(q):
            gamma[t] *= growth
            slopes[t] = signs[t] - (signs[t] - slopes[t]) * growth
            lo[t] = 0.0 if signs[t] > 0 else -C
            hi[t] = C if signs[t] > 0 else 0.0
            gamma[t] = min(max(gamma[t], lo[t]), hi[t])
        before = C
        solve_rows(B, ready, K, train, train, diag, slopes, gamma, lo, hi, memory, q, tol, most)
        level = measure(slopes, gamma, lo, hi, exact, True)[0]
        for s in range(test.shape[0]):
            row = K[test[s]]
            total = level
            for t in range(q):
                total += gamma[t] * row[train[t]]
            out[c, s] = total
    return out
