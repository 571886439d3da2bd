r"""Whole numbers that are names: 3 for married, 4 for widowed.

Let mₖ be the mean of the targets in the rows with the k-th value, in the order of the values. Of a quantity
that matters, neighbours are alike; of names in no order they are not. Von Neumann's ratio of the means,

    η = [Σₖ (mₖ₊₁ - mₖ)² / (K - 1)] / [Σₖ (mₖ - m)² / K],

both sums less what chance adds to them, is about 2 for names and small for quantities. Whether the column
matters at all is what an analysis of variance says first.

>>> rng = np.random.default_rng(0)
>>> x = rng.integers(0, 10, 2000)
>>> name = rng.normal(size=10)[x]
>>> are_names(x, name + rng.normal(size=2000)), are_names(x, x + rng.normal(size=2000))
(True, False)
"""

from __future__ import annotations

import numpy as np
from scipy.special import fdtrc

_FEWEST_VALUES, _MOST_VALUES = 4, 50  # different values that codes have
_ROWS = 10  # the mean of a value is believed from so many rows on
_ROWS_EACH = 25  # values need so many rows on average: fewer make rough means of a smooth quantity
_SURE = 1e-4  # probability of such means by chance
_ROUGH = 1.0  # between the 2 of names and the 0 of quantities


def are_names(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether values of x, as far as y tells, are names of categories; y are numbers or labels."""
    if x.dtype.kind == "f" and (~np.isfinite(x) | (x != np.floor(x))).any():
        return False
    values, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    if not _FEWEST_VALUES <= len(values) <= _MOST_VALUES or len(x) < _ROWS_EACH * len(values):
        return False
    if y.dtype.kind != "f":
        labels = np.unique(y)[:20]
        Y = (y[:, None] == labels).astype(np.float64)
    else:
        Y = y.reshape(len(y), -1)
    Y = Y / np.maximum(Y.std(axis=0), 1e-300)
    means = np.stack([np.bincount(places, Y[:, j]) / counts for j in range(Y.shape[1])], axis=1)  # (K, t)
    known = counts >= _ROWS
    n, K = len(Y), len(means)
    if known.sum() < _FEWEST_VALUES or n <= K:
        return False
    within = ((Y - means[places]) ** 2).sum(axis=0) / (n - K)  # (t,)
    between = (counts[:, None] * (means - Y.mean(axis=0)) ** 2).sum(axis=0) / (K - 1)
    if not (fdtrc(K - 1, n - K, between / np.maximum(within, 1e-300)) < _SURE).any():
        return False
    return _ratio(means[known], within.sum() / counts[known]) > _ROUGH


def may_be_names(block: np.ndarray) -> np.ndarray:  # (m, n) columns of numbers as rows -> (m,) bool
    """Which of many columns `are_names` has to look at: whole numbers, enough rows, and four values or more.

    Whole numbers whose range is d have at most d + 1 different values.

    >>> rows = np.arange(200.0)
    >>> may_be_names(np.array([rows % 10, rows % 3, rows / 2]))
    array([ True, False, False])
    """
    found, rows = np.zeros(len(block), dtype=bool), _ROWS_EACH * _FEWEST_VALUES
    places = np.flatnonzero(_are_whole(block[:, :rows])) if block.shape[1] >= rows else np.arange(0)
    x = block[places]  # few: most numbers are not whole, which their first rows tell
    is_gap = np.isnan(x)
    low, high = (np.where(is_gap, end, x) for end in (np.inf, -np.inf))
    spans = high.max(axis=1, initial=-np.inf) - low.min(axis=1, initial=np.inf)
    counts = np.count_nonzero(~is_gap, axis=1)
    found[places] = _are_whole(x) & (spans >= _FEWEST_VALUES - 1) & (counts >= rows)
    return found


def _are_whole(block: np.ndarray) -> np.ndarray:  # (m, n) -> (m,) bool
    return np.asarray((((block == np.floor(block)) & np.isfinite(block)) | np.isnan(block)).all(axis=1))


def _ratio(means: np.ndarray, chance: np.ndarray) -> float:  # (K, t), (K,) variances of the means
    """Von Neumann's; 0 where the means differ no more than by chance."""
    steps = ((np.diff(means, axis=0) ** 2).sum(axis=1) - chance[1:] - chance[:-1]).mean()
    spread = ((means - means.mean(axis=0)) ** 2).sum(axis=1).mean() - chance.mean() * (1 - 1 / len(means))
    return float(steps / spread) if spread > 0 else 0.0
