r"""Data on its way into a Gram: raw points → the matrices and vectors a program reads.

A ``Side`` holds, for each view of the program, the matrix it is measured on (or the objects, for
kernels without a formula), not copied where it is of floats already; the squared norms of its rows, and
what centring takes away. Views that squared distances are measured on are centred, by those who multiply
them, on the mean of the right side, so that
‖x‖² + ‖y‖² - 2⟨x,y⟩ loses as little as possible; products are shifted back:

    ⟨x, y⟩ = ⟨x-m, y-m⟩ + (⟨x-m, m⟩ + ½‖m‖²) + (⟨y-m, m⟩ + ½‖m‖²)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mercer.data import agreement
from mercer.data import points as data
from mercer.data.sparse import is_sparse, require_indices
from mercer.errors import InputError, InputTypeError
from mercer.gram.sparse_rows import CommonColumns, sort_columns
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.calculus import evaluate
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import A, ExternalDiagonal, Mean, ParameterLeaf, PointSum, View
from mercer.kernels.formula.program import Program
from mercer.kernels.one_point import is_one_object
from mercer.runtime.threads import run

#: Numbers of a matrix that are worked on together: half a megabyte in float64, which a core's cache holds.
_CACHED = 2**16
#: Numbers of a matrix from which its rows are shared out to threads: reading 8 MB takes one about 1 ms.
_WORTH_THREADS = 2**20
#: Numbers of a matrix whose rows one thread adds up; the mean does not depend on the threads.
_SUMMED = 2**21
#: Numbers of the rows of a sparse matrix that are dense at a time: 32 MB.
_DENSE_AT_ONCE = 2**22
#: Norms or shifts of a view that has none.
_NONE = np.empty(0)

Codes = dict[Any, float]


class OtherGrams(NamedTuple):
    """What the data of a Gram need other Grams for."""

    #: a function of a formula, points X and n reference points xᵢ: (1/n) Σᵢ k(x, xᵢ) for every x of X
    mean: Callable[[Expression, Any, Any], np.ndarray]
    #: a function of encoded objects, which adds the matrix of their parts if a kernel compares parts
    compared: Callable[[Any], Any]


class ViewData(NamedTuple):
    """One view of one side."""

    matrix: Any  # (n, d) floats, C-contiguous, as they came; or CSR of float64, or a sequence of objects
    norms: np.ndarray  # (n,) squared norms of the centred rows, empty for objects
    shift: np.ndarray  # (n,) what shifts a product of centred rows back, empty where there are no products
    centre: np.ndarray | None = None  # (d,) what is taken from every row
    columns: CommonColumns | None = None  # for CSR: the columns that are common on the right side

    @property
    def is_sparse(self) -> bool:
        return is_sparse(self.matrix)

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    def centred(self, dtype: Any) -> np.ndarray:  # (n, d)
        """The rows of a dense matrix less the centre, rounded once."""
        centre = self.centre
        if centre is None:
            return np.ascontiguousarray(self.matrix, dtype=dtype)
        out = np.empty(self.matrix.shape, dtype)

        def subtract(part: slice) -> None:
            np.subtract(self.matrix[part], centre, out=out[part], casting="same_kind")

        _in_parts(subtract, *self.matrix.shape)
        return out

    def take(self, index: Any) -> ViewData:
        norms, shift = (v[index] if v.size else v for v in (self.norms, self.shift))
        return ViewData(data.take(self.matrix, index), norms, shift, self.centre, self.columns)


class Side(NamedTuple):
    """The points of one side of a Gram, ready for every view and point value of a program."""

    n: int
    views: tuple[ViewData, ...]
    values: np.ndarray  # (number of point values, n) float64

    def take(self, index: Any) -> Side:
        views = tuple(view.take(index) for view in self.views)
        return Side(len(np.arange(self.n)[index]), views, np.ascontiguousarray(self.values[:, index]))


class Sides(NamedTuple):
    """Both sides; the same object twice when a set of points is compared with itself."""

    left: Side
    right: Side


def check_domain(kernel: Kernel, X: Any, name: str) -> Any:
    """The raw points, checked for what the kernel says a point is."""
    if kernel.domain.is_vectors:
        return data.as_vectors(X, name)
    if kernel.domain is Domain.OBJECTS:
        return data.as_objects(X, name)
    if is_one_object(X) or not (hasattr(X, "shape") or hasattr(X, "__len__")):
        raise InputTypeError(
            f"{name} must be a table or a list of points, got {X!r}: pass one entry per point"
        )
    if data.n_points(X) == 0:
        raise InputError(f"{name} has no points: pass at least one")
    if is_sparse(X):
        require_indices(X, name)
    return X


def prepare(program: Program, X: Any, Y: Any, others: OtherGrams, are_vectors: bool = False) -> Sides:
    """Both sides of a Gram; Y = None compares X with itself. ``are_vectors`` says that both were checked."""
    codes: Codes = {}
    seen = [(None, view(X)) if Y is None else view.both(X, Y) for view in program.views]
    seen = [(others.compared(left), others.compared(right)) for left, right in seen]

    def matrices(side: int, name: str) -> list[Any]:
        checked = ((X, X if Y is None else Y)[side]) if are_vectors else None
        return [_matrix(program, v, both[side], name, codes, checked) for v, both in enumerate(seen)]

    right = matrices(1, "X" if Y is None else "Y")
    left = right if Y is None else matrices(0, "X")
    for v, is_numeric in enumerate(program.are_numeric if Y is not None else ()):
        if is_numeric:
            agreement.require_same_width(left[v], right[v], "X", "Y")
            if is_sparse(left[v]) != is_sparse(right[v]):
                left[v], right[v] = (sparse.csr_array(matrix) for matrix in (left[v], right[v]))
            if left[v].dtype != right[v].dtype:
                left[v], right[v] = left[v].astype(np.float64), right[v].astype(np.float64)
    known = [_known(kinds, matrix) for kinds, matrix in zip(program.kinds, right, strict=True)]
    theirs = _side(program, X if Y is None else Y, right, known, 1, codes, others)
    if Y is None:
        # Both sides have the same points: they share one copy of the views, and each has its point values.
        values = _values(program.left, _Shown(X, program, right), theirs.n, codes, others)
        return Sides(Side(theirs.n, theirs.views, values), theirs)
    return Sides(_side(program, X, left, known, 0, codes, others), theirs)


def prepare_left(
    program: Program, X: Any, right: Side, others: OtherGrams, are_vectors: bool = False
) -> Side | None:
    """The left side for a right one that is there; None where both have to be read together.

    That is so for objects and labels, whose numbers are those of one Gram, and where one side would change
    the other's type.
    """
    matrices: list[Any] = []
    for v, (view, theirs) in enumerate(zip(program.views, right.views, strict=True)):
        if view.labels or not isinstance(theirs.matrix, np.ndarray) or not theirs.norms.size:
            return None
        matrix = _matrix(program, v, view(X), "X", {}, X if are_vectors else None)
        if is_sparse(matrix):
            return None
        agreement.require_same_width(matrix, theirs.matrix, "X", "Y")
        if matrix.dtype != theirs.matrix.dtype:
            if theirs.matrix.dtype != np.float64:
                return None
            matrix = matrix.astype(np.float64)
        matrices.append(matrix)
    known = [(theirs.centre, theirs.columns) for theirs in right.views]
    return _side(program, X, matrices, known, 0, {}, others)


def _matrix(program: Program, v: int, X: Any, name: str, codes: Codes, checked: Any) -> Any:
    """What the v-th view shows, as the matrix or the objects that planes are computed from.

    It is not looked at again where it is what was ``checked`` already.
    """
    view = program.views[v]
    if not program.are_numeric[v]:
        return X if hasattr(X, "__getitem__") and hasattr(X, "shape") else data.as_objects(X)
    if view.labels:
        return _label_codes(X, codes)
    matrix = X if X is checked else data.as_vectors(X, name)
    if view.nonnegative_for:
        agreement.require_nonnegative(matrix, name, view.nonnegative_for)
    if is_sparse(matrix):
        return sparse.csr_array(matrix, dtype=np.float64)
    return matrix


def _label_codes(X: Any, codes: Codes) -> np.ndarray:  # (n, columns)
    """Numbers for labels: equal labels, equal numbers, in both sides and whatever their types."""
    table = X.toarray() if is_sparse(X) else X
    table = table.to_numpy() if hasattr(table, "to_numpy") else np.asarray(table)
    table = table.reshape(len(table), -1)
    values, places = table.ravel(), np.arange(table.size)
    if table.dtype.kind != "O":
        if table.dtype.kind == "f":
            data.as_vectors(table)  # refuses NaN, which equals nothing
        values, places = np.unique(table, return_inverse=True)
    numbers = np.array([codes.setdefault(label, float(len(codes))) for label in values.tolist()])
    return numbers[places].reshape(table.shape)


def _known(kinds: set[str], matrix: Any) -> tuple[np.ndarray | None, CommonColumns | None]:
    """What the right side of a view says about both: the centre, and of CSR the common columns."""
    if is_sparse(matrix):
        return None, None if kinds == {"external"} else sort_columns(matrix)
    if "sqdist" not in kinds or not kinds <= {"sqdist", "dot"}:
        return None, None  # other quantities need the points where they are
    return _mean_row(matrix), None


def _mean_row(matrix: np.ndarray) -> np.ndarray:  # (d,)
    """The mean of all rows; of many, of sums over parts, added in their order."""
    n, d = matrix.shape
    step = max(1, _SUMMED // max(d, 1))
    parts = [slice(start, start + step) for start in range(0, n, step)]
    sums = np.empty((len(parts), d))

    def add(p: int) -> None:
        np.add.reduce(matrix[parts[p]], axis=0, dtype=np.float64, out=sums[p])

    run(add, range(len(parts)), None if len(parts) > 1 else 1)
    return np.add.reduce(sums, axis=0) / n


def _side(
    program: Program,
    raw: Any,
    matrices: list[Any],
    known: list[tuple[np.ndarray | None, CommonColumns | None]],
    side: int,
    codes: Codes,
    others: OtherGrams,
) -> Side:
    n = data.n_points(raw)
    views = []
    for kinds, matrix, (centre, columns) in zip(program.kinds, matrices, known, strict=True):
        norms = shift = _NONE
        if kinds != {"external"}:
            norms, shift = _norms_and_shift(matrix, centre, "dot" in kinds)
        views.append(ViewData(matrix, norms, shift, centre, columns))
    slots, shown = (program.left, program.right)[side], _Shown(raw, program, matrices)
    return Side(n, tuple(views), _values(slots, shown, n, codes, others))


def _norms_and_shift(
    matrix: Any, centre: np.ndarray | None, has_products: bool
) -> tuple[np.ndarray, np.ndarray]:
    """‖x-m‖² of all rows, and ⟨x-m, m⟩ + ½‖m‖² where there are products to shift back, in float64.

    A few rows at a time, so that caches hold them.
    """
    shift = np.zeros(matrix.shape[0]) if has_products else _NONE
    if is_sparse(matrix):
        return _squared_norms(matrix), shift
    norms = np.empty(len(matrix))

    def measure(part: slice) -> None:
        rows = np.asarray(matrix[part], np.float64) if centre is None else matrix[part] - centre
        norms[part] = _squared_norms(rows)
        if has_products and centre is not None:
            # BLAS is not used here: its threads would spin on for a while, in the way of those that compute.
            shift[part] = np.einsum("ij,j->i", rows, centre) + half

    half = 0.5 * float(np.einsum("j,j", centre, centre)) if has_products and centre is not None else 0.0
    _in_parts(measure, *matrix.shape)
    return norms, shift


def _squared_norms(matrix: Any) -> np.ndarray:
    if is_sparse(matrix):
        with np.errstate(over="ignore"):
            return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", matrix, matrix)  # It does not warn of overflows.


def _in_parts(task: Callable[[slice], None], n: int, d: int) -> None:
    """The task for n rows, in parts that caches hold; on all threads where that pays."""
    step = max(1, _CACHED // d)
    if n <= step:
        task(slice(0, n))
        return
    parts = [slice(start, start + step) for start in range(0, n, step)]
    if n * d >= _WORTH_THREADS:
        run(task, parts)
    else:
        for part in parts:
            task(part)


class _Shown(NamedTuple):
    """Raw points, and what views were seen to show: objects are not read again for their k(x, x)."""

    raw: Any
    program: Program | None = None
    matrices: Sequence[Any] = ()  # what ``_matrix`` made of the views of the program

    def through(self, view: View) -> tuple[Any, bool]:
        """What the view shows, and whether it is a matrix of numbers already."""
        if self.program is not None and view in self.program.views:
            v = self.program.views.index(view)
            return self.matrices[v], self.program.are_numeric[v]
        return view(self.raw), False


def _values(slots: list[Expression], shown: _Shown, n: int, codes: Codes, others: OtherGrams) -> np.ndarray:
    values = np.empty((len(slots), n))
    for row, slot in zip(values, slots, strict=True):
        row[:] = _point_values(slot, shown, n, codes, others)
    return values


def point_values(
    expression: Expression, raw: Any, n: int, codes: Codes, others: OtherGrams
) -> np.ndarray:  # (n,)
    """A formula of single points, for all of them, in float64."""
    return _point_values(expression, _Shown(raw), n, codes, others)


def _point_values(
    expression: Expression, shown: _Shown, n: int, codes: Codes, others: OtherGrams
) -> np.ndarray:
    def leaf(node: Expression) -> Any:
        if isinstance(node, ParameterLeaf):
            return node.value
        if isinstance(node, PointSum):
            return _point_sum(node, *shown.through(node.view), codes)
        if isinstance(node, ExternalDiagonal):
            return node.source.self_pairs(others.compared(shown.through(node.view)[0]))
        if isinstance(node, Mean):
            if node.side == 2:
                return others.mean(node.inner, node.reference, node.reference).mean()
            return others.mean(node.inner, node.view(shown.raw), node.reference)
        raise TypeError(f"{node!r} is not a quantity of one point")

    with np.errstate(all="ignore"):
        return np.array(np.broadcast_to(evaluate(expression, leaf), (n,)), dtype=np.float64)


def _point_sum(node: PointSum, X: Any, is_matrix: bool, codes: Codes) -> np.ndarray:  # (n,)
    matrix: Any = X if is_matrix else _label_codes(X, codes) if node.view.labels else data.as_vectors(X)
    if is_sparse(matrix):
        if node.kind == "sum" and node.term == A * A:
            return _squared_norms(sparse.csr_array(matrix, dtype=np.float64))
        rows = max(1, _DENSE_AT_ONCE // matrix.shape[1])
        parts = [matrix[i : i + rows].toarray() for i in range(0, matrix.shape[0], rows)]
        return np.concatenate([_reduce(node, part) for part in parts])
    return _reduce(node, matrix)


def _reduce(node: PointSum, matrix: np.ndarray) -> np.ndarray:
    matrix = np.asarray(matrix, dtype=np.float64)

    def leaf(symbol: Expression) -> Any:
        return symbol.value if isinstance(symbol, ParameterLeaf) else matrix

    terms = np.broadcast_to(evaluate(node.term, leaf), matrix.shape)
    return terms.sum(axis=1) if node.kind == "sum" else terms.prod(axis=1)
