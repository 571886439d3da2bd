r"""Support vector machines of many folds, pairs of classes and C, on one stored K.

For the points of two classes in a training part, and C₁ < C₂ < …, the dual in γᵢ = yᵢ αᵢ is

    minimise  ½ γᵀKγ - yᵀγ     over   0 ≤ yᵢγᵢ ≤ C,   Σγ = 0

Each machine starts from the one before, times Cₖ₊₁ / Cₖ, which is feasible, and its slopes y - Kγ come along.
All of one fold and pair is a single compiled call: of a machine of a hundred points nearly all the time would
else go into calling. Up to `LARGEST` points; for more, and for a solution that states its gap, there is
`mercer.solvers.svm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numba import njit

from mercer.native import OPTIONS
from mercer.solvers.smo import LARGEST_BLOCK, measure, solve_rows
from mercer.threads import run

__all__ = ["LARGEST", "Fold", "mistakes_of_paths"]

#: points of a training part
LARGEST = LARGEST_BLOCK
_TOL = 1e-3  # of y f
_STEPS = 200  # per point, at most: the score of a machine that is slower still changes little

#: positions of the training part and of the test part
Fold = tuple[np.ndarray, np.ndarray]


def mistakes_of_paths(
    K: np.ndarray,  # (n, n)
    labels: np.ndarray,  # (n,) 0, 1, …
    folds: Sequence[Fold],
    penalties: Sequence[float] | np.ndarray,  # (m,), ascending
) -> np.ndarray:  # (m,)
    """How many test points of all folds are put into a wrong class, for every C; pairs of classes vote.

    >>> from mercer import Gaussian
    >>> X, labels = np.array([[0.0], [1.0], [4.0], [5.0], [0.5], [4.5]]), np.array([0, 0, 1, 1, 0, 1])
    >>> mistakes_of_paths(Gaussian(1.0)(X), labels, [(np.arange(4), np.array([4, 5]))], [0.1, 1.0])
    array([0, 0])
    """
    K = np.ascontiguousarray(K, dtype=np.float64)
    classes = int(labels.max()) + 1
    grid = np.asarray(penalties, dtype=np.float64)
    votes = [np.zeros((len(grid), len(test), classes), np.int64) for _, test in folds]
    found: dict[tuple[int, int, int], np.ndarray] = {}

    def one(task: tuple[int, int, int]) -> None:
        fold, a, b = task
        train, test = folds[fold]
        mine = train[(labels[train] == a) | (labels[train] == b)]
        signs = np.where(labels[mine] == a, 1.0, -1.0)
        found[task] = machine_path(K, mine, signs, np.asarray(test), grid, _TOL, _STEPS * len(mine))

    tasks = [
        (fold, a, b)
        for fold, (train, _) in enumerate(folds)
        for a, b in combinations(np.unique(labels[train]).tolist(), 2)
    ]
    run(one, tasks)
    for (fold, a, b), values in found.items():
        votes[fold][..., a] += values > 0
        votes[fold][..., b] += values <= 0
    wrong = np.zeros(len(grid), np.int64)
    for (_, test), counts in zip(folds, votes, strict=True):
        wrong += (counts.argmax(axis=2) != labels[test]).sum(axis=1)
    return wrong


@njit(nogil=True, cache=True, **OPTIONS)
def machine_path(K, train, signs, test, penalties, tol, most):  # type: ignore[no-untyped-def]
    """f at the test points for every C, (penalties, test)."""
    q = train.shape[0]
    out = np.empty((penalties.shape[0], test.shape[0]))
    B, ready = np.empty((q, q)), np.zeros(q, np.bool_)
    diag, gamma, slopes = np.empty(q), np.zeros(q), signs.copy()
    lo, hi = np.empty(q), np.empty(q)
    for t in range(q):
        diag[t] = K[train[t], train[t]]
    before = penalties[0]
    for c in range(penalties.shape[0]):
        C = penalties[c]
        for t in range(q):
            gamma[t] *= C / before
            slopes[t] = signs[t] - (signs[t] - slopes[t]) * (C / before)
            lo[t] = 0.0 if signs[t] > 0 else -C
            hi[t] = C if signs[t] > 0 else 0.0
            gamma[t] = min(max(gamma[t], lo[t]), hi[t])
        before = C
        solve_rows(B, ready, K, train, train, diag, slopes, gamma, lo, hi, q, tol, most)
        level, _, _ = measure(slopes, gamma, lo, hi)
        for s in range(test.shape[0]):
            row = K[test[s]]
            total = level
            for t in range(q):
                total += gamma[t] * row[train[t]]
            out[c, s] = total
    return out
