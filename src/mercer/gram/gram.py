r"""The Gram matrix K, Kᵢⱼ = k(xᵢ, yⱼ), that has not been computed.

All verbs go through one loop over ranges of rows and columns, on the configured threads, under the
memory budget; what a backend does inside a range is its own business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mercer.cluster import DaskRows, is_collection
from mercer.data import agreement
from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import InputError, SlowPathWarning, warn_user
from mercer.gram.backends import make_backend
from mercer.gram.backends.base import Tile, cut
from mercer.gram.sides import OtherGrams, Sides, check_domain, point_values, prepare, prepare_left
from mercer.gram.sparse import sparse_matrix, sparse_or_none
from mercer.kernels.base import Kernel
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import External
from mercer.kernels.formula.program import Program, program_of
from mercer.kernels.structured import Members, Parts
from mercer.notebook import Shown
from mercer.runtime.config import require_memory, settings, within
from mercer.runtime.row_store import RowStore
from mercer.runtime.threads import run

#: A result of fewer bytes is not compared with the memory budget, which takes longer than to allocate it.
_UNASKED_BYTES = 2**20
#: Columns that are added up in the precision of K before float64 takes over: the rounding of a sum of 512
#: terms in any order is √512 = 23 units in its last place as a rule, little beside that of K itself.
_COMBINED = 512
#: Multiplications of a product below which OpenBLAS takes one thread by itself.
_WORTH_A_LIMIT = 2**18
#: Pairs of vectors below which threads take longer to start (some 0.1 ms) than one of them to compute all.
_WORTH_THREADS = 2**17
#: Into how many ranges objects are cut, whose pairs may take a microsecond or a second each: tasks that are
#: many beside the threads end at about the same time. A range has so many objects at least.
_OBJECT_RANGES, _FEWEST_OBJECTS = 32, 4


class Gram(Shown):
    """A kernel matrix, lazily: K = k(X, Y), or k(X, X) when Y is not given.

    Parameters
    ----------
    kernel : Kernel
    X : points: an array, CSR matrix or data frame with one row per point, or a list of objects
    Y : points, optional
    cache : bytes for rows kept by ``rows``, optional: none when 0, by default as much as the budget allows

    Precision and backend are those of ``mercer.config`` when the Gram is made. The points are not
    copied: changing them later changes what is computed.

    >>> from mercer import Gaussian
    >>> K = Gram(Gaussian(sigma=1.0), [[0.0], [1.0], [2.0]])
    >>> K.shape
    (3, 3)
    >>> K.block([0], [1, 2]).round(4)
    array([[0.6065, 0.1353]])
    >>> (K @ np.ones(3)).round(4)
    array([1.7419, 2.2131, 1.7419])
    """

    _shown_by = "mercer.notebook.gram"
    __array_ufunc__ = None  # V @ K must not be NumPy's

    def __new__(cls, kernel: Any = None, X: Any = None, Y: Any = None, **options: Any) -> Any:
        """A Gram; of rows on a cluster, one whose products are computed there."""
        if is_collection(X) or isinstance(X, DaskRows):
            from mercer.gram.spread import SpreadGram

            return SpreadGram(kernel, X, Y)
        return super().__new__(cls)

    #: the values that are not zero, after a product that took less work with them
    _stored: sparse.csr_array | None = None
    #: whether a product has looked for zeros
    _has_looked = False

    def __init__(
        self, kernel: Kernel, X: Points, Y: Points | None = None, *, cache: int | None = None
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise InputError(f"kernel must be a Kernel such as Gaussian(sigma=1.0), got {kernel!r}")
        kernel = kernel.__sklearn_clone__()  # a later set_params must not reach this Gram
        if Y is not None and kernel.domain.is_vectors:
            agreement.require_same_names(X, Y)
        X = check_domain(kernel, X, "X")
        Y = None if Y is None else check_domain(kernel, Y, "Y")
        if not kernel.is_resolved():
            if Y is not None:
                raise InputError(
                    f"{kernel!r} takes parameters from the data, and here are two sets: "
                    "say which with kernel.resolve(X)"
                )
            kernel = kernel.resolve(X)
        self.kernel = kernel
        program = program_of(kernel)
        for plane in program.planes:
            if isinstance(plane, External) and getattr(plane.source, "is_slow", False):
                warn_user(
                    f"{plane.source!r} calls Python once per pair of points, the slow path: "
                    "write a Kernel with a formula to have it compiled",
                    SlowPathWarning,
                )
        self._build(program, prepare(program, X, Y, _OTHERS, kernel.domain.is_vectors), (X, Y), cache)

    def _build(self, program: Program, sides: Sides, raw: tuple[Any, Any], cache: int | None) -> None:
        now = settings()
        self._program = program
        self._raw = raw
        self._settings = now.of_values()
        self._capacity = cache
        self._sides = sides
        self.dtype = np.dtype(now.dtype)
        self.shape = (sides.left.n, sides.right.n)
        self._backend = make_backend(now.backend, program, self.dtype, now.device)
        self._backend.decide(sides)
        self._x = self._backend.prepare(sides.left)
        same_values = sides.left.values is sides.right.values or not len(sides.left.values)
        self._y = self._x if self.is_symmetric and same_values else self._backend.prepare(sides.right)
        self._width = sum([view.width for view in sides.right.views if view.norms.size])
        self._has_objects = any(isinstance(plane, External) for plane in program.planes)

    def is_of(self, kernel: Kernel, Y: Points, under: dict[str, Any]) -> bool:
        """Whether it is K(·, Y) of this kernel under these settings."""
        return self._settings == under and self._raw[1] is Y and self.kernel == kernel

    def beside(self, X: Points) -> Gram:
        """K(X, Y) for other points X, under the settings of this Gram, which has prepared Y already.

        >>> from mercer import Gaussian
        >>> K = Gram(Gaussian(sigma=1.0), [[0.0]], [[0.0], [1.0]])
        >>> K.beside([[1.0]]).dense().round(4)
        array([[0.6065, 1.    ]])
        """
        Y, left, are_vectors = self._raw[1], None, self.kernel.domain.is_vectors
        if are_vectors:
            agreement.require_same_names(X, Y)
        X = check_domain(self.kernel, X, "X")
        if not self.is_symmetric:
            left = prepare_left(self._program, X, self._sides.right, _OTHERS, are_vectors)
        if left is None:
            return _remake(self.kernel, X, Y, self._capacity, self._settings)
        gram: Gram = object.__new__(Gram)
        vars(gram).update(vars(self))
        gram._raw, gram._sides, gram.shape = (X, Y), Sides(left, self._sides.right), (left.n, self.shape[1])
        gram._x = self._backend.prepare(left)
        gram._stored, gram._has_looked = None, False
        vars(gram).pop("_cache", None)
        return gram

    @cached_property
    def _cache(self) -> RowStore:
        return RowStore(self.shape[1], self.dtype, self._capacity)

    @property
    def is_symmetric(self) -> bool:
        """Whether one set of points is compared with itself."""
        return self._raw[1] is None

    @property
    def T(self) -> Gram:
        """The transpose: K(Y, X)."""
        if self.is_symmetric:
            return self
        return _remake(self.kernel, self._raw[1], self._raw[0], self._capacity, self._settings)

    def diag(self) -> np.ndarray:  # (n,)
        """The values k(xᵢ, xᵢ), computed without the matrix."""
        if not self.is_symmetric:
            raise InputError(
                f"diag() is for one set of points; this Gram is {self.shape[0]} × {self.shape[1]}"
            )
        return diagonal_values(self.kernel, self._raw[0]).astype(self.dtype)

    def dense(self, out: np.ndarray | None = None) -> np.ndarray:  # (n, m)
        """The whole matrix, if it fits the memory budget, or into an array that is already there."""
        n, m = self.shape
        if out is None:
            require_memory(
                n * m * self.dtype.itemsize,
                f"a dense {n} × {m} Gram matrix of {self.dtype.name}",
                "use it lazily (K @ V, K.rows, K.block), use float32",
            )
            out = np.empty((n, m), self.dtype)
        elif (
            out.shape != (n, m)
            or out.dtype != self.dtype
            or not (out.flags.c_contiguous and out.flags.writeable)
        ):
            raise InputError(
                f"out must be a C-contiguous, writeable {n} × {m} array of {self.dtype.name}, "
                f"got {out.dtype} of shape {out.shape}: pass np.empty(K.shape, K.dtype)"
            )
        self._fill(self._x, self._y, out, self.is_symmetric)
        return out

    @property
    def takes_whole_rows(self) -> bool:
        """Whether `write_range` is as good as smaller tiles."""
        return self._backend.takes_whole_rows(self._x)

    def write_range(self, start: int, stop: int, out: np.ndarray) -> None:  # (stop - start, m)
        """K[start:stop] into ``out``, unchecked, by one call of the backend in the thread that asks.

        Many threads that wait for Python's lock some twenty times in a block are no faster than two.
        """
        with self._backend.session():
            self._backend.write(Tile(self._x, self._y, (start, stop), (0, self.shape[1])), out)

    def sparse(self) -> sparse.csr_array:  # (n, m)
        """The values that are not zero, of a kernel with compact support, if they fit the memory budget.

        A tree finds the points that are near each other, and no other pairs are computed.

        >>> from mercer import Wendland
        >>> K = Gram(Wendland(radius=1.5), [[0.0], [1.0], [9.0]])
        >>> K.sparse().toarray().round(4)
        array([[1.    , 0.0453, 0.    ],
               [0.0453, 1.    , 0.    ],
               [0.    , 0.    , 1.    ]])
        """
        return sparse_matrix(self) if self._stored is None else self._stored.copy()

    def rows(self, index: Any, columns: Any = None) -> np.ndarray:  # (len(index), m)
        """The rows of some points, from the cache where they are there."""
        index = _positions(index, self.shape[0], "row")
        out = self._cache.fetch(index, self._compute_rows)
        return out if columns is None else out[:, _positions(columns, self.shape[1], "column")]

    def block(self, i: Any, j: Any) -> np.ndarray:  # (len(i), len(j))
        """The values of some points against some others."""
        i, j = _positions(i, self.shape[0], "row"), _positions(j, self.shape[1], "column")
        if not (len(i) and len(j)):
            return np.empty((len(i), len(j)), self.dtype)
        x = self._backend.prepare(self._sides.left.take(i))
        y = self._backend.prepare(self._sides.right.take(j))
        out = self._room(len(i), len(j), "block")
        self._fill(x, y, out)
        return out

    def write_rows(
        self, index: np.ndarray, columns: tuple[int, int], out: np.ndarray, places: np.ndarray
    ) -> None:
        """K[index, start:stop] into out[places, start:stop]: for solvers that keep rows themselves.

        Nothing is checked and nothing is cached: index and places are int64, out has K's precision.
        """
        x = self._backend.take(self._x, self._sides.left, index, "rows")
        self._scatter(Tile(x, self._y, (0, len(index)), columns), out, places)

    def write_block(self, i: np.ndarray, j: np.ndarray, out: np.ndarray) -> None:  # (len(i), len(j))
        """K[i, j] into ``out``, for solvers: nothing is checked."""
        if not (len(i) and len(j)):
            return
        x = self._backend.take(self._x, self._sides.left, i, "rows")
        y = self._backend.take(self._y, self._sides.right, j, "columns")
        self._scatter(Tile(x, y, (0, len(i)), (0, len(j))), out, np.arange(len(i)))

    def combine(self, index: np.ndarray, coef: np.ndarray) -> np.ndarray:  # (n,) or (n, p)
        """K[:, index] @ coef in float64, for solvers: columns are not stored, nothing is checked."""
        total = np.zeros((self.shape[0], *coef.shape[1:]))
        for start, stop in cut(len(index), _COMBINED):
            y = self._backend.take(self._y, self._sides.right, index[start:stop], "columns")
            part = coef[start:stop].reshape(stop - start, -1)
            out = np.zeros((self.shape[0], part.shape[1]), self.dtype)
            self._multiply(y, np.ascontiguousarray(part, dtype=self.dtype), out)
            total += out.reshape(total.shape)
        return total

    def sums(
        self, left: Members, right: Members, shape: tuple[int, int], lower: bool = False
    ) -> np.ndarray:  # shape
        """Σ_{a∈A} Σ_{b∈B} K[a, b] for all sets A of the left and B of the right: for kernels of sets.

        ``lower`` says that both are the same: what is above the diagonal is not computed then.
        """
        (rows, row_sets), (columns, column_sets) = left, right
        x = self._backend.prepare(self._sides.left.take(rows))
        y = self._backend.prepare(self._sides.right.take(columns))
        parts: dict[int, np.ndarray] = {}

        def task(tile: Tile[Any]) -> None:
            sets = row_sets[tile.rows] - row_sets[tile.i[0]]
            parts[tile.i[0]] = np.zeros((sets[-1] + 1, shape[1]))
            self._backend.sums(tile, sets, column_sets, parts[tile.i[0]])

        tiles = []
        for i in cut(len(rows), self._backend.rows):
            last = row_sets[i[1] - 1] if lower else column_sets[-1]
            tiles.append(Tile(x, y, i, (0, int(np.searchsorted(column_sets, last, side="right")))))
        self._run(task, tiles, len(rows) * len(columns))
        out = np.zeros(shape)
        for tile in tiles:  # in their order: a set may be in two parts, and threads must not change its sum
            start, part = row_sets[tile.i[0]], parts.pop(tile.i[0])
            out[start : start + len(part)] += part
        return np.tril(out) + np.tril(out, -1).T if lower else out

    def restrict(self, index: np.ndarray) -> Gram:
        """The matrix of some of the points with each other."""
        return _remake(self.kernel, data.take(self._raw[0], index), None, self._capacity, self._settings)

    def __matmul__(self, V: Any) -> np.ndarray:  # (n,) or (n, p)
        """K @ V without the matrix, or with the few values that are not zero, where that is less work."""
        V = np.asarray(V)
        if V.ndim not in (1, 2) or V.shape[0] != self.shape[1] or V.dtype.kind not in "fiub":
            raise InputError(
                f"K is {self.shape[0]} × {self.shape[1]}: it multiplies real vectors of length "
                f"{self.shape[1]}, got {V.dtype} of shape {V.shape}"
            )
        columns = np.ascontiguousarray(V.reshape(self.shape[1], -1), dtype=self.dtype)
        out = self._room(self.shape[0], columns.shape[1], "product")
        if not self._has_looked:
            self._stored, self._has_looked = sparse_or_none(self), True
        if self._stored is not None:
            out[:] = self._stored @ columns
        else:
            out[:] = 0
            self._multiply(self._y, columns, out)
        return out.reshape(self.shape[0], *V.shape[1:])

    def __reduce__(self) -> tuple[Any, ...]:
        # What was prepared stays here: it is made anew where the Gram is loaded.
        return _remake, (self.kernel, *self._raw, self._capacity, self._settings)

    def __repr__(self) -> str:
        n, m = self.shape
        stored = "" if self._stored is None else f", {self._stored.nnz:,} values stored"
        return f"Gram({self.kernel!r}, {n} × {m}, {self.dtype.name}, {self._backend.label}{stored})"

    # --- the loop --------------------------------------------------------------------------------------

    def _compute_rows(self, index: np.ndarray) -> np.ndarray:
        out = self._room(len(index), self.shape[1], "set of rows")
        x = self._backend.prepare(self._sides.left.take(index))
        self._fill(x, self._y, out)
        return out

    def _room(self, n: int, m: int, what: str) -> np.ndarray:
        """Memory for a result, if it fits the budget (asking costs more than a small result)."""
        if (size := n * m * self.dtype.itemsize) > _UNASKED_BYTES:
            require_memory(size, f"a {what} of {n} × {m} {self.dtype.name}", "ask for less at a time")
        return np.empty((n, m), self.dtype)

    def _fill(self, x: Any, y: Any, out: np.ndarray, mirror: bool = False) -> None:
        """The matrix of two prepared sides into ``out``."""
        tiles = _tiles(x, y, out.shape, self._task(*out.shape), mirror)
        self._run(lambda tile: self._backend.fill(tile, out), tiles, out.size)

    def _scatter(self, tile: Tile[Any], out: np.ndarray, places: np.ndarray) -> None:
        """The rows of a tile into ``out[places]``, some columns for each thread."""
        n, m = tile.shape
        strips = tile.strips(self._task(n, m)[1])
        self._run(lambda strip: self._backend.scatter(strip, out, places), strips, n * m)

    def _multiply(self, y: Any, V: np.ndarray, out: np.ndarray) -> None:
        """K(X, y) @ V added to ``out``, some rows for each thread."""
        n, m = self.shape[0], len(V)
        rows = max(self._task(n, m)[0], self._backend.product_rows)
        tiles = [Tile(self._x, y, i, (0, m)) for i in cut(n, rows)]
        self._run(lambda tile: self._backend.multiply(tile, V, out), tiles, n * m)

    def _task(self, n: int, m: int) -> tuple[int, int]:
        """How many rows and columns of an n × m matrix are a task for one thread."""
        rows, columns = self._backend.rows, max(self._backend.columns, _WORTH_THREADS // n)
        if self._has_objects:
            rows = min(rows, max(_FEWEST_OBJECTS, -(-n // _OBJECT_RANGES)))
            columns = min(columns, max(_FEWEST_OBJECTS, -(-m // _OBJECT_RANGES)))
        return rows, columns

    def _run(self, task: Callable[[Any], None], tasks: Iterable[Any], pairs: int) -> None:
        is_little = pairs < _WORTH_THREADS and not self._has_objects
        alone = self._backend.is_parallel or is_little
        with self._backend.session():
            if is_little and pairs * self._width < _WORTH_A_LIMIT:
                for item in tasks:
                    task(item)
            else:
                run(task, tasks, 1 if alone else None)


def _remake(kernel: Kernel, X: Points, Y: Points | None, cache: int | None, settings: dict[str, Any]) -> Gram:
    """A Gram under the settings that another was made with."""
    with within(**settings):
        return Gram(kernel, X, Y, cache=cache)


def _mean(inner: Expression, X: Points, reference: Points) -> np.ndarray:
    """(1/n) Σᵢ k(x, xᵢ) for every x of X."""
    gram = object.__new__(Gram)
    program = Program(inner)
    gram._build(program, prepare(program, X, reference, _OTHERS), (X, reference), 0)
    gram._has_looked = True  # A formula alone does not say where it is zero.
    return gram @ np.full(gram.shape[1], 1.0 / gram.shape[1])


def compare_parts(X: Any) -> Any:
    """X; if it is objects whose parts a kernel compares, these have their matrix from now on."""
    parts = getattr(X, "parts", None)
    if isinstance(parts, Parts) and not hasattr(parts, "matrix") and data.n_points(parts.points):
        parts.matrix = Gram(parts.kernel, parts.points, cache=0)
    return X


_OTHERS = OtherGrams(_mean, compare_parts)


def diagonal_values(kernel: Kernel, X: Points) -> np.ndarray:  # (n,)
    """k(x, x) of points that were checked, in float64.

    >>> from mercer import Linear
    >>> diagonal_values(Linear(), np.array([[1.0], [2.0]]))
    array([1., 4.])
    """
    return point_values(program_of(kernel).diagonal, X, data.n_points(X), {}, _OTHERS)


def _tiles(
    x: Any, y: Any, shape: tuple[int, ...], task: tuple[int, int], mirror: bool
) -> Iterator[Tile[Any]]:
    """Tiles of the whole matrix; only those that touch the lower triangle when they are mirrored."""
    n, m = shape
    for i in cut(n, task[0]):
        for j in cut(m, task[0] if mirror else task[1]):
            if not mirror or j[0] < i[1]:
                yield Tile(x, y, i, j, mirror)


def _positions(index: Any, n: int, what: str) -> np.ndarray:
    """Non-negative positions from a number, a slice, a mask or a list."""
    if isinstance(index, slice):
        return np.arange(n)[index]
    index = np.atleast_1d(np.asarray(index))
    if index.dtype == bool and index.shape == (n,):
        return np.flatnonzero(index)
    if index.size == 0:
        return np.empty(0, np.int64)
    if index.dtype.kind not in "iu" or index.ndim != 1:
        raise InputError(
            f"{what}s are chosen by whole numbers, a slice or a mask of length {n}, got {index!r}"
        )
    if index.min() < -n or index.max() >= n:
        raise InputError(f"{what} {index.min() if index.min() < -n else index.max()} is outside 0 … {n - 1}")
    return np.where(index < 0, index + n, index)
