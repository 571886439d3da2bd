r"""The honest error of all rows, from searches that left out only some of them.

A row has two losses. :math:`h_i` is that of a search that has not seen it; it costs a whole search for each
fold and is known of the rows S of some folds. :math:`c_i` is that of the machine alone, fitted without the
fold, with the kernel and the penalty that were chosen on all rows: it costs a fit and is known of all n rows.
By itself it is too small, for the choice has seen the row. But

.. math:: \frac 1 n \sum_i c_i + \frac 1 {|S|} \sum_{i \in S} (h_i - c_i)

has the same expectation as the mean of :math:`h_i` over all rows, where chance decided which rows S are: that
of the :math:`c_i` over S is then that of the :math:`c_i` over all. It is the difference estimator of sampling
in two phases (Cochran, Sampling Techniques, 1977, chapters 7 and 12). Its variance is small where both
machines err on the same rows; with S = all rows it is the nested error.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from mercer.selection.nested import share_interval


def corrected(
    cheap: np.ndarray,  # (n,) losses of the machine alone
    honest: np.ndarray,  # (m,) losses of searches
    rows: np.ndarray,  # (m,) which rows these are
) -> tuple[float, float]:
    """The mean loss, and the variance of that estimate: each row counts with its share of the sum.

    >>> corrected(np.array([0.0, 0.0, 1.0, 0.0]), np.array([1.0, 0.0]), np.array([0, 1]))
    (0.75, 0.3125)
    >>> corrected(np.array([1.0, 3.0]), np.array([1.0, 3.0]), np.array([0, 1]))
    (2.0, 1.0)
    """
    n, m = len(cheap), len(rows)
    judged = cheap[rows] / n + (honest - cheap[rows]) / m
    others = np.delete(cheap, rows) / n
    variance = sum(len(part) * float(np.var(part, ddof=1)) for part in (judged, others) if len(part) > 1)
    return float(cheap.mean() + (honest - cheap[rows]).mean()), variance


def error_of(
    cheap: np.ndarray,  # (n,) losses: whether a label is wrong, or the square of an error
    honest: np.ndarray,  # (m,)
    rows: np.ndarray,  # (m,)
    is_class: bool,
) -> tuple[float, tuple[float, float]]:
    """The share of wrong labels or the root of the mean squared error, and its 95 % interval.

    That of a share is Clopper and Pearson's for as many rows as have its variance, at least those of S and at
    most all. One row more on which the two machines differ is counted in that variance, for on few rows they
    may agree by chance.
    """
    n, m = len(cheap), len(rows)
    mean, variance = corrected(cheap, honest, rows)
    mean = max(mean, 0.0)
    if not is_class:
        margin = float(stdtrit(max(m - 1, 1), 0.975)) * np.sqrt(variance)
        return float(np.sqrt(mean)), (float(np.sqrt(max(mean - margin, 0.0))), float(np.sqrt(mean + margin)))
    share = min(mean, 1.0)
    spread = max(share * (1 - share), (n - 1) / n**2)
    points = min(max(spread / (variance + m**-2.0), m), n)
    ends = share_interval(share * points, points)
    return share, (float(ends[0]), float(ends[1]))
