r"""How much f changes when a column loses its information: its cells are those of other rows.

For a row x and the row x' that lends its cell of column j,

    relevance of j = √E (f(x with x'ⱼ) - f(x))² / spread of f,

which is √2 where f is a function of that column alone. The mean is taken over rows, in rounds: every column
is measured on a few rows before any is measured on more, and where time is short only the leading ones go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Points
from mercer.runtime.clock import now

_FIRST_ROWS = 16  # rows of the first round: few, so that every column is measured soon
_LEADING_COLUMNS = 15  # Where there is no time for all columns, at least so many go on.
#: Rows with a changed cell are computed in batches of at most this size, and of about this time: the clock is
#: asked after each.
_BATCH_ROWS, _BATCH_CELLS, _BATCH_SECONDS = 2048, 1 << 22, 0.25


class Shuffling:
    """Squares of the changes of f, by column.

    Parameters
    ----------
    values : from a table of m rows to f, (m, functions)
    X : (n, d) a table
    max_time : seconds for all rounds; None for as long as they take
    repeats : other rows that lend their cells to a row
    groups : for each column to measure, the columns of X that change together, of an array; by default each
        column of X is one. Where there are none, f does not change, which is known without measuring

    Attributes
    ----------
    rows : (d,) on how many rows with a changed cell a column was measured; 0 for one that was not
    """

    def __init__(
        self,
        values: Callable[[Any], np.ndarray],
        X: Any,
        *,
        max_time: float | None = None,
        repeats: int = 2,
        seed: int = 0,
        groups: Sequence[np.ndarray] | None = None,
    ) -> None:
        self._values, self._X, self._repeats, self._groups = values, X, repeats, groups
        self._generator = np.random.default_rng(seed)
        self._end = np.inf if max_time is None else now() + max_time
        d = int(X.shape[1]) if groups is None else len(groups)
        self._known = np.array([groups is not None and len(groups[j]) == 0 for j in range(d)], dtype=bool)
        self.rows, self._sum, self._square = np.zeros(d, dtype=int), np.zeros(d), np.zeros(d)
        self._order = self._generator.permutation(data.n_points(X))
        self._each, self._largest = np.inf, 0
        self._timed(data.take(X, self._order[:_FIRST_ROWS]))
        if max_time is not None:  # The rows as they are may take a quarter of the time.
            affordable = max(_FIRST_ROWS, int(max_time / (4 * max(self._each, 1e-12))))
            self._X = data.take(X, self._order[:affordable])
            self._order = np.arange(data.n_points(self._X))
        self._base = self._timed(self._X)
        self.spread = float(np.sqrt(self._base.var(axis=0).sum())) or 1.0
        self._run()

    @property
    def relevance(self) -> np.ndarray:  # (d,)
        """The relevance of each column; NaN for one that was not measured."""
        return np.sqrt(self._mean) / self.spread

    @property
    def precision(self) -> np.ndarray:  # (d,)
        """The standard error of the relevance: that of the mean of the squares, over 2√mean.

        It is 0 where no row changed at all, and NaN for a column that was not measured.
        """
        mean, m = self._mean, np.maximum(self.rows, 2)
        variance = np.maximum(self._square / m - mean**2, 0.0) / (m - 1)
        root = np.sqrt(mean)
        error = np.divide(np.sqrt(variance), 2 * root, out=np.zeros_like(root), where=root > 0)
        return np.where(self.rows > 0, error / self.spread, np.nan)

    @property
    def _mean(self) -> np.ndarray:  # (d,)
        return np.where(self.rows > 0, self._sum / np.maximum(self.rows, 1), np.nan)

    # --- rounds ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        rounds = list(self._rounds())
        # The order is random, so that no column is favoured if the time is too short for one round.
        self.rows[self._known] = sum(map(len, rounds))
        columns = self._generator.permutation(np.flatnonzero(~self._known))
        for number, rows in enumerate(rounds):
            if number:
                measured = columns[self.rows[columns] > 0]  # These are all columns, unless the time was over.
                columns = measured[np.argsort(-self._sum[measured] / self.rows[measured], kind="stable")]
                work = sum(len(later) for later in rounds[number:]) * len(columns)
                if work * self._each > self._end - now():
                    columns = columns[: max(_LEADING_COLUMNS, len(columns) // 2)]
            if not self._measure(columns, rows):
                return

    def _rounds(self) -> Iterator[np.ndarray]:
        """The rows of each round, each about as many as all before it; all of them again for the repeats."""
        n, done, width = len(self._order), 0, _FIRST_ROWS
        while done < n:
            yield self._order[done : done + width]
            done, width = done + width, max(_FIRST_ROWS, done + width)
        for _ in range(self._repeats - 1):
            yield self._order

    def _measure(self, columns: np.ndarray, rows: np.ndarray) -> bool:
        """Measure columns on rows; False if the time was over before the last, which keep what they had."""
        most = max(len(rows), min(_BATCH_ROWS, _BATCH_CELLS // max(int(self._X.shape[1]), 1)))
        at_once = int(np.clip(_BATCH_SECONDS / max(self._each, 1e-12), len(rows), most))
        count = max(1, at_once // len(rows))
        for start in range(0, len(columns), count):
            if now() > self._end and self.rows[~self._known].any():
                return False
            some = columns[start : start + count]
            lenders = self._generator.integers(0, len(self._order), (len(some), len(rows)))
            changed = self._timed(with_cells_of_others(self._X, rows, some, lenders, self._groups))
            off = changed.reshape(len(some), len(rows), -1) - self._base[rows]
            squares = (off**2).sum(axis=2)
            self.rows[some] += len(rows)
            self._sum[some] += squares.sum(axis=1)
            self._square[some] += (squares**2).sum(axis=1)
        return True

    def _timed(self, X: Points) -> np.ndarray:  # (m, functions)
        """f at rows, and what a row takes: by the most rows at once, for a call takes time of its own."""
        began, m = now(), data.n_points(X)
        values = self._values(X)
        if m >= self._largest:
            self._each, self._largest = (now() - began) / m, m  # seconds
        return values


def with_cells_of_others(
    X: Any,
    rows: np.ndarray,
    columns: np.ndarray,
    lenders: np.ndarray,
    groups: Sequence[np.ndarray] | None = None,
) -> Any:
    """For each of the columns the rows once, one below the other, with the lenders' cells in that column.

    With groups, for each of these, in all of its columns.

    >>> X = np.array([[0, 0], [1, 10], [2, 20]])
    >>> with_cells_of_others(X, np.array([0, 1]), np.array([0, 1]), np.array([[2, 2], [2, 0]]))
    array([[ 2,  0],
           [ 2, 10],
           [ 0, 20],
           [ 1,  0]])
    """
    every = np.tile(rows, len(columns))
    blocks = [slice(i * len(rows), (i + 1) * len(rows)) for i in range(len(columns))]

    def cells(i: int) -> np.ndarray:  # (rows,): where a column comes from
        chosen = every.copy()
        chosen[blocks[i]] = lenders[i]
        return chosen

    if hasattr(X, "iloc"):
        changed = X.iloc[every].copy()
        for i, j in enumerate(columns.tolist()):
            changed.isetitem(j, X.iloc[cells(i), j].array)
        return changed
    if hasattr(X, "with_columns"):  # This is a frame of polars.
        names = [X.columns[j] for j in columns.tolist()]
        return X[every].with_columns(**{name: X[name][cells(i)] for i, name in enumerate(names)})
    if sparse.issparse(X):
        changed = X.tocsr()[every].tolil()
        by_column = X.tocsc()
        for i, j in enumerate(columns.tolist()):
            changed[blocks[i], [j]] = by_column[:, [j]].tocsr()[lenders[i]]
        return changed.tocsr()
    changed = np.asarray(X)[every]
    for i, j in enumerate(columns.tolist()):
        places = [j] if groups is None else groups[j]
        changed[blocks[i], places] = np.asarray(X)[np.ix_(lenders[i], places)]
    return changed
