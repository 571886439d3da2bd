r"""The regions of several classes on a grid, and the lines between them.

Classes are told apart by functions that are known on a grid only. Between its places they are interpolated,
and the class is decided there anew, so that a region ends where two classes are equal and not at the side of
a cell. The line between i and j is where the difference of their functions is zero (of one-vs-one machines:
where the function of the pair is), as far as the class depends on it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

_REFINEMENT = 4  # Regions are painted so many times finer than the grid, in both directions.
_MOST_NUMBERS = 2**23  # At most so many numbers are interpolated: 64 MiB.


def winners(values: np.ndarray, count: int, by_pairs: bool) -> np.ndarray:  # (…, functions) → (…)
    """The classes that values of functions stand for: by sign, by the largest, or by votes of pairs.

    >>> (
    ...     winners(np.array([[0.5, 2.0, 1.0]]), 3, by_pairs=False),
    ...     winners(np.array([[1.0, 1.0, -1.0]]), 3, True),
    ... )
    (array([1]), array([0]))
    """
    functions = values.shape[-1]
    if functions == 1:
        return (values[..., 0] > 0).astype(int)
    if functions == count and not by_pairs:
        return values.argmax(axis=-1)
    votes = np.zeros((*values.shape[:-1], count))
    for p, (i, j) in enumerate(combinations(range(count), 2)):
        votes[..., i] += values[..., p] > 0
        votes[..., j] += values[..., p] <= 0
    return votes.argmax(axis=-1)


@dataclass(frozen=True, eq=False)
class Regions:
    """The functions of ``count`` classes on a grid, (h, w, functions)."""

    values: np.ndarray
    count: int
    by_pairs: bool

    def codes(self) -> np.ndarray:  # (h, w)
        """The class at each place of the grid."""
        return winners(self.values, self.count, self.by_pairs)

    def refined(self) -> Regions:
        """The same on a finer grid, from the same corner to the same corner."""
        times = max(1, min(_REFINEMENT, int((_MOST_NUMBERS / self.values.size) ** 0.5)))
        return replace(self, values=_between(self.values, times))

    def lines(self) -> Iterator[np.ma.MaskedArray]:  # (h, w) each
        """Differences of functions whose zeros are the boundaries, masked where these do not decide."""
        codes = self.codes()
        corners = _cells(codes)
        changing = corners.max(axis=0) > corners.min(axis=0)
        for p, (i, j) in enumerate(combinations(range(self.count), 2)):
            if self.by_pairs or self.values.shape[-1] != self.count:
                difference = self.values[..., p]
                here = changing & _has_both_signs(difference)
                here &= _cells(self._depends_on(p, codes, _corners(here))).any(axis=0)
            else:
                difference = self.values[..., i] - self.values[..., j]
                here = (corners == i).any(axis=0) & (corners == j).any(axis=0)
            if here.any():
                yield np.ma.masked_array(difference, ~_corners(here))

    def _depends_on(self, p: int, codes: np.ndarray, some: np.ndarray) -> np.ndarray:  # (h, w)
        """Whether another vote of the p-th pair would change the class, at some places."""
        values = self.values[some]
        values[:, p] = np.where(values[:, p] > 0, -1.0, 1.0)
        out = np.zeros(codes.shape, dtype=bool)
        out[some] = winners(values, self.count, self.by_pairs) != codes[some]
        return out


def _between(values: np.ndarray, times: int) -> np.ndarray:
    """Values on a grid that is so many times finer, by linear interpolation along both axes."""
    if times == 1:
        return values
    for axis in (0, 1):
        n = values.shape[axis]
        at = np.linspace(0, n - 1, times * (n - 1) + 1)
        below = np.minimum(at.astype(int), max(n - 2, 0))
        share = (at - below).reshape([-1 if a == axis else 1 for a in range(values.ndim)])
        above = np.minimum(below + 1, n - 1)
        values = values.take(below, axis) * (1 - share) + values.take(above, axis) * share
    return values


def _cells(grid: np.ndarray) -> np.ndarray:  # (4, h - 1, w - 1)
    """What is at the four corners of every cell of the grid."""
    return np.stack([grid[:-1, :-1], grid[:-1, 1:], grid[1:, :-1], grid[1:, 1:]])


def _has_both_signs(grid: np.ndarray) -> np.ndarray:  # (h - 1, w - 1)
    corners = _cells(grid > 0)
    return np.asarray(corners.any(axis=0) & ~corners.all(axis=0))


def _corners(cells: np.ndarray) -> np.ndarray:  # (h, w)
    """Whether a place of the grid is a corner of one of these cells."""
    out = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1), dtype=bool)
    for down in (0, 1):
        for right in (0, 1):
            out[down : down + cells.shape[0], right : right + cells.shape[1]] |= cells
    return out
