r"""Columns of numbers, many at once: what kind they are, what is learned of them, and how they are written.

A block holds one column of the table per row, (m, n) float64, with NaN where a cell is missing. A table of
ten thousand columns would take seconds if each column were a call of its own.

>>> block = np.array([[1.0, 2.0, np.nan, 3.0]])
>>> learned = LearnedScales.of(block)
>>> learned.standardised(block).round(3)
array([[-1.225,  0.   ,  0.   ,  1.225]])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

#: A number up to this one can be squared, and some of the squares added.
LARGEST_TO_SQUARE = 1e150
#: In fewer rows, that each has a value of its own says nothing.
ROWS_THAT_TELL = 20
_EXACT = 2.0**53  # whole numbers from which float64 does not tell neighbours apart
_SKEWED = 1.5  # third standardised moment from which tails are heavy
_PEAKED = 12.0  # fourth one, less that of the normal distribution
_ZEROS = 0.05  # share of zeros from which zero means nothing, rather than a middle
_DIFFERENT = 8  # values that tails are told from, at least


# --- sums and medians of what is there ---------------------------------------------------------------------


def _counts(block: np.ndarray) -> np.ndarray:  # (m,)
    return np.count_nonzero(~np.isnan(block), axis=1)


def _means(block: np.ndarray) -> np.ndarray:  # (m,)
    """NaN counts as not being there; a plain mean is quicker where nothing is missing."""
    means = block.mean(axis=1)
    gaps = np.flatnonzero(np.isnan(means))
    if len(gaps):
        means[gaps] = np.nansum(block[gaps], axis=1) / np.maximum(_counts(block[gaps]), 1)
    return np.asarray(means)


def _spreads(block: np.ndarray, means: np.ndarray) -> np.ndarray:  # (m,) standard deviations
    return np.sqrt(_means((block - means[:, None]) ** 2))


def _medians(block: np.ndarray) -> np.ndarray:  # (m,)
    """The medians of the cells that are there, at least one in each row: NaN is sorted to the end."""
    counts, rows = _counts(block), np.arange(len(block))
    if (counts == block.shape[1]).all():
        return np.asarray(np.median(block, axis=1))
    ordered = np.sort(block, axis=1)
    return np.asarray((ordered[rows, (counts - 1) // 2] + ordered[rows, counts // 2]) / 2)


def _moments(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (m,), (m,)
    """The third and fourth standardised moments, the latter less 3; 0 for a constant row."""
    means = _means(block)
    spreads = _spreads(block, means)
    varies = spreads > 0
    z = (block - means[:, None]) / np.where(varies, spreads, 1.0)[:, None]
    return np.where(varies, _means(z**3), 0.0), np.where(varies, _means(z**4) - 3, 0.0)


# --- what is learned ---------------------------------------------------------------------------------------


def signed_logarithm(x: np.ndarray, unit: Any) -> np.ndarray:
    r"""sign(x) · log(1 + |x| / unit): straight near zero, and short in the tails.

    >>> signed_logarithm(np.array([-1.0, 0.0, np.e - 1]), 1.0).round(3)
    array([-0.693,  0.   ,  1.   ])
    """
    return np.sign(x) * np.log1p(np.abs(x) / unit)


def _units(block: np.ndarray) -> np.ndarray:  # (m,)
    """The median of |x| ≠ 0 where tails are heavy and the signed logarithm makes them lighter; else 0.

    Zero must mean something: no value has the other sign, or many are zero. Of centred numbers the logarithm
    would stretch the middle, which made errors larger (pol, protein).
    """
    counts = np.maximum(_counts(block), 1)
    above, below, zero = (np.count_nonzero(sign, axis=1) for sign in (block > 0, block < 0, block == 0))
    is_middle = (np.minimum(above, below) > 0) & (zero / counts < _ZEROS)
    found = np.flatnonzero(~is_middle & (above + below >= _DIFFERENT))
    found = found[(np.diff(np.sort(block[found], axis=1), axis=1) > 0).sum(axis=1) >= _DIFFERENT - 1]
    skew, peak = _moments(block[found])
    is_heavy = (np.abs(skew) >= _SKEWED) | (peak >= _PEAKED)
    found, skew, peak = found[is_heavy], skew[is_heavy], peak[is_heavy]
    units = np.zeros(len(block))
    if len(found):
        x = block[found]
        medians = _medians(np.where(x == 0, np.nan, np.abs(x)))
        new_skew, new_peak = _moments(signed_logarithm(x, medians[:, None]))
        is_lighter = np.abs(new_skew) + _root(new_peak) < np.abs(skew) + _root(peak)
        units[found[is_lighter]] = medians[is_lighter]
    return units


def _root(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(x, 0.0))


@dataclass(frozen=True, eq=False)
class LearnedScales:
    """(g(x) - mean) / spread for each row of a block, g the signed logarithm where a unit is not 0."""

    medians: np.ndarray  # (m,) what a gap is filled with
    means: np.ndarray  # (m,) of g(x)
    spreads: np.ndarray  # (m,) of g(x)
    units: np.ndarray  # (m,)

    @classmethod
    def of(cls, block: np.ndarray, logarithm: bool = True) -> Self:
        units = _units(block) if logarithm else np.zeros(len(block))
        seen = _shortened(block, units)
        means = _means(seen)
        spreads = _spreads(seen, means)
        return cls(_medians(block), means, np.where(spreads > 0, spreads, 1.0), units)

    def standardised(self, block: np.ndarray) -> np.ndarray:  # (m, n)
        filled = np.where(np.isnan(block), self.medians[:, None], block)
        return (_shortened(filled, self.units) - self.means[:, None]) / self.spreads[:, None]


def _shortened(block: np.ndarray, units: np.ndarray) -> np.ndarray:  # (m, n)
    heavy = np.flatnonzero(units)
    if not len(heavy):
        return block
    block = block.copy()
    block[heavy] = signed_logarithm(block[heavy], units[heavy, None])
    return block


# --- which columns are looked at one by one ----------------------------------------------------------------


def need_a_closer_look(block: np.ndarray) -> np.ndarray:  # (m,) bool
    """Where a column may be something else than numbers to learn from: empty, constant or a row number.

    What has gaps, or a value that is no whole number, or two neighbouring rows that are equal, is no row
    number. Whole numbers beyond 2⁵³, which are not told apart here, are looked at as they are.

    >>> need_a_closer_look(np.array([[0.5, 2.0, 2.0], [1.0, 1.0, 1.0], [3.0, np.nan, 3.0]]))
    array([False,  True, False])
    """
    n = block.shape[1]
    head = block[:, :ROWS_THAT_TELL]  # tells most columns, so that few are looked at to their end
    seem_constant = (head == head[:, :1]).all(axis=1) | np.isnan(head).all(axis=1)
    seem_counting = (head == np.floor(head)).all(axis=1) & (np.diff(head, axis=1) != 0).all(axis=1)
    found = np.flatnonzero(seem_constant | (seem_counting & (n >= ROWS_THAT_TELL)))
    x = block[found]
    is_constant, is_empty = (x == x[:, :1]).all(axis=1), np.isnan(x).all(axis=1)
    counts_up = (x == np.floor(x)).all(axis=1) & (np.diff(x, axis=1) != 0).all(axis=1) & (n >= ROWS_THAT_TELL)
    result = np.zeros(len(block), dtype=bool)
    result[found] = is_constant | is_empty | counts_up
    return result | (np.abs(head) >= _EXACT).any(axis=1)
