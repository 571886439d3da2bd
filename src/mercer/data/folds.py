r"""Rows cut into folds at random, each of which is tested once.

They are the folds of scikit-learn's ``KFold`` and ``StratifiedKFold`` with ``shuffle=True``. Its package of
folds imports all of ``scipy.stats``, which takes longer than everything else that a search needs to start.

>>> for train, test in folds(5, 2, seed=0):
...     print(train, test)
[3 4] [0 1 2]
[0 1 2] [3 4]
>>> [y.tolist() for y in (np.array(list("aaabbb"))[test] for _, test in stratified_folds(list("aaabbb"), 3))]
[['a', 'b'], ['a', 'b'], ['a', 'b']]
"""

from __future__ import annotations

import numpy as np

from mercer.data.types import Targets
from mercer.errors import InputError

#: the rows to learn from and the rows to test, both in rising order
Fold = tuple[np.ndarray, np.ndarray]


def folds(n: int, parts: int, seed: int = 0) -> list[Fold]:
    """So many folds of n rows, the first of them one row larger where n cannot be divided."""
    _require_parts(parts, n)
    fold_of = np.empty(n, dtype=np.intp)
    order = np.arange(n)
    np.random.RandomState(seed).shuffle(order)
    sizes = np.full(parts, n // parts)
    sizes[: n % parts] += 1
    fold_of[order] = np.repeat(np.arange(parts), sizes)
    return _cut(fold_of, parts)


def stratified_folds(y: Targets, parts: int, seed: int = 0) -> list[Fold]:
    """So many folds, in each of which every class of y has about its share.

    The sorted labels are dealt out like cards: that says how many of a class come into each fold. Which of
    its rows these are is left to chance. Classes are taken in the order in which they first appear.
    """
    y = np.asarray(y)
    _require_parts(parts, len(y))
    _, first, codes, counts = np.unique(y, return_index=True, return_inverse=True, return_counts=True)
    if parts > counts.max():
        raise InputError(
            f"{parts} folds need a class of as many rows, the largest has {counts.max()}: pass fewer"
        )
    rank = np.argsort(np.argsort(first))
    codes = rank[codes.ravel()]
    dealt = np.sort(codes)
    shares = np.array([np.bincount(dealt[part::parts], minlength=len(counts)) for part in range(parts)])
    generator, fold_of = np.random.RandomState(seed), np.empty(len(y), dtype=np.intp)
    for code in range(len(counts)):
        own = np.arange(parts).repeat(shares[:, code])
        generator.shuffle(own)
        fold_of[codes == code] = own
    return _cut(fold_of, parts)


def _require_parts(parts: int, n: int) -> None:
    if not 2 <= parts <= n:
        raise InputError(f"{n} rows can be cut into 2 to {n} folds, got {parts}: pass another number")


def _cut(fold_of: np.ndarray, parts: int) -> list[Fold]:
    return [(np.flatnonzero(fold_of != part), np.flatnonzero(fold_of == part)) for part in range(parts)]
