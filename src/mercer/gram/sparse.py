r"""The Gram matrix of a compactly supported kernel as a CSR matrix: only values that are not zero.

Cell by cell (`Neighbours`), the engine computes the values of all points near the cell, and those that are
not zero are kept. Of a set of points with itself only one triangle is computed; the other mirrors it.

Before anything large is done, some of the cells tell how many values there will be (`thinness`): what does
not fit the memory budget is refused, and a product goes through the CSR matrix only where that is less work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mercer.errors import InputError, SlowPathWarning, warn_user
from mercer.gram.backends.base import cut
from mercer.gram.neighbours import Neighbours
from mercer.runtime.config import memory_budget, require_memory
from mercer.runtime.threads import run

if TYPE_CHECKING:
    from mercer.gram.gram import Gram

#: Cells that are looked at to know how many values there are: two thousand points, some ten milliseconds.
_CELLS_LOOKED_AT = 16
#: Cells for one task of a thread.
_CELLS_PER_TASK = 16
#: Columns of a cell that are computed at a time: 128 × 32,768 values of float64 take 32 MB.
_STRIP_COLUMNS = 2**15
#: What a cell costs before its values are computed, and a value that is kept, in values that are computed (of
#: about 2 ns): the tree and Python take some 0.2 ms, the CSR matrix 60 ns a value.
_CELL_COST, _ENTRY_COST = 2**17, 30
#: Pairs of points below which a product never looks for zeros: all of them take a few hundredths of a second.
_PAIRS_WORTH_A_LOOK = 2**24
#: Share of values from which a CSR matrix, with its column numbers, takes more memory than it saves.
_DENSE_SHARE = 1 / 3


@dataclass(frozen=True)
class Thinness:
    """How much of K is not zero, from some of its rows; all of them where there are few."""

    entries: int  # values that are not zero
    evaluations: int  # values that are computed to find them
    cells: int
    bytes_each: int  # bytes that a value takes while the matrix is made

    @property
    def memory(self) -> int:
        """Bytes that the making of the CSR matrix takes at its peak."""
        return self.entries * self.bytes_each

    @property
    def work(self) -> float:
        """What the making of the CSR matrix takes, in values computed."""
        return self.evaluations + _CELL_COST * self.cells + _ENTRY_COST * self.entries


def thinness(gram: Gram, neighbours: Neighbours | None = None) -> Thinness:
    """An estimate of what ``gram.sparse()`` takes."""
    near = _neighbours(gram) if neighbours is None else neighbours
    looked_at = np.unique(np.linspace(0, len(near.cells) - 1, _CELLS_LOOKED_AT).round().astype(int))
    entries = evaluations = rows = 0
    for cell in looked_at:
        index, columns = near.cells[cell], near.columns(cell)
        entries += sum(len(v) for _, _, v in _values(gram, near, index, columns, lower=False))
        evaluations += len(index) * len(columns)
        rows += len(index)
    share = gram.shape[0] / rows
    half = 0.5 if near.is_symmetric else 1.0
    return Thinness(
        int(share * entries), int(half * share * evaluations), len(near.cells), 2 * gram.dtype.itemsize + 24
    )


def sparse_matrix(gram: Gram) -> sparse.csr_array:
    """All values of K that are not zero, if they fit the memory budget."""
    near = _neighbours(gram)
    found = thinness(gram, near)
    n, m = gram.shape
    if found.entries > _DENSE_SHARE * n * m and n * m > _PAIRS_WORTH_A_LOOK:
        warn_user(
            f"about {found.entries / n:,.0f} of {m:,} values in a row of K are not zero, which is too many "
            "for a sparse matrix to be of use: take K.dense() or K @ V, or a smaller radius",
            SlowPathWarning,
        )
    require_memory(found.memory, f"a sparse {n} × {m} matrix of about {found.entries:,} values", _REMEDY)
    return _build(gram, near, found)


def sparse_or_none(gram: Gram) -> sparse.csr_array | None:
    """The matrix, where a product with it takes less than half of the work of one without, or None.

    It takes a quarter of the memory budget at most, as rows do that are kept.
    """
    n, m = gram.shape
    if n * m < _PAIRS_WORTH_A_LOOK or gram.kernel.support is None:
        return None
    near = _neighbours(gram)
    if _CELL_COST * len(near.cells) > n * m / 2:
        return None
    found = thinness(gram, near)
    is_less = 2 * found.work < n * m and 4 * found.memory < memory_budget()
    return _build(gram, near, found) if is_less else None


_REMEDY = "use it lazily (K @ V, K.rows, K.block), take a kernel of smaller radius"


def _neighbours(gram: Gram) -> Neighbours:
    support = gram.kernel.support
    if support is None:
        raise InputError(
            f"sparse() is for kernels that are zero beyond some distance, got {gram.kernel!r}: take Wendland "
            "or BSpline, or a product with one of them, or use K.dense() or K @ V; a kernel of your own says "
            "by its support where it is zero"
        )
    return Neighbours(support, *gram._raw, gram.dtype)


def _build(gram: Gram, near: Neighbours, expected: Thinness) -> sparse.csr_array:
    tasks = cut(len(near.cells), _CELLS_PER_TASK)
    pieces: dict[int, list[tuple[np.ndarray, ...]]] = {}
    counts = np.zeros(len(tasks), np.int64)

    def work(task: int) -> None:
        pieces[task] = []
        for cell in range(*tasks[task]):
            columns = near.columns(cell, lower=near.is_symmetric)
            pieces[task] += _values(gram, near, near.cells[cell], columns, lower=near.is_symmetric)
        counts[task] = sum(len(values) for _, _, values in pieces[task])
        total = int(counts.sum()) * (2 if near.is_symmetric else 1)
        if total > expected.entries:  # The estimate was too low: ask again.
            what = f"a sparse {gram.shape[0]} × {gram.shape[1]} matrix of more than {total:,} values"
            require_memory(total * expected.bytes_each, what, _REMEDY)

    run(work, range(len(tasks)))
    ordered = [piece for task in range(len(tasks)) for piece in pieces.pop(task)]
    i, j, values = (np.concatenate(parts) for parts in zip(*ordered, strict=True))
    del ordered
    if near.is_symmetric:
        off = i != j
        i, j, values = np.append(i, j[off]), np.append(j, i[off]), np.append(values, values[off])
    matrix = sparse.coo_array((values, (i, j)), shape=gram.shape).tocsr()
    matrix.sort_indices()
    return matrix


def _values(
    gram: Gram, near: Neighbours, rows: np.ndarray, columns: np.ndarray, lower: bool
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, columns and values of what is not zero; ``lower``: up to the diagonal, in the order of cells."""
    index: Any = np.int32 if max(gram.shape) < 2**31 else np.int64
    found = [(np.empty(0, index), np.empty(0, index), np.empty(0, gram.dtype))]
    for part in cut(len(columns), _STRIP_COLUMNS):
        some = columns[slice(*part)]
        out = np.empty((len(rows), len(some)), gram.dtype)
        gram.write_block(rows, some, out)
        kept = out != 0
        if lower:
            kept &= near.rank[some] <= near.rank[rows][:, None]
        i, j = np.nonzero(kept)
        found.append((rows.astype(index)[i], some.astype(index)[j], out[kept]))
    return found
