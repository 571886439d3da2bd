r"""The Gram matrix K, Kᵢⱼ = k(xᵢ, yⱼ), that has not been computed.

All verbs go through one loop over ranges of rows and columns, on the configured threads, under the
memory budget; what a backend does inside a range is its own business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from mercer.data import agreement
from mercer.data import points as data
from mercer.errors import InputError, SlowPathWarning, warn_user
from mercer.gram.backends import make_backend
from mercer.gram.row_store import RowCache
from mercer.gram.sides import Sides, check_domain, point_values, prepare, prepare_left
from mercer.kernels.base import Kernel
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import External
from mercer.kernels.formula.program import Program, program_of
from mercer.runtime.config import Settings, config, require_memory, settings
from mercer.runtime.threads import run

__all__ = ["Gram"]


_SMALL_RESULT = 2**20  # bytes
_COMBINED = 512  # columns that are added up in the precision of K before float64 takes over
_WORTH_THREADS = 2**17  # pairs of points below which starting threads takes longer than the work


class Gram:
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

    __array_ufunc__ = None  # V @ K must not be NumPy's

    def __init__(self, kernel: Kernel, X: Any, Y: Any = None, *, cache: int | None = None) -> None:
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
        self._build(program, prepare(program, X, Y, _mean), (X, Y), cache)

    def _build(self, program: Program, sides: Sides, raw: tuple[Any, Any], cache: int | None) -> None:
        now = settings()
        self._program = program
        self._raw = raw
        self._settings = {"dtype": now.dtype, "backend": now.backend, "device": now.device}
        self._capacity = cache
        self._sides = sides
        self.dtype = np.dtype(now.dtype)
        self.shape = (sides.left.n, sides.right.n)
        self._backend = make_backend(now.backend, program, self.dtype, now.device)
        self._x = self._backend.prepare(sides.left)
        same_values = sides.left.values is sides.right.values or not len(sides.left.values)
        self._y = self._x if self.is_symmetric and same_values else self._backend.prepare(sides.right)
        self._cache = RowCache(self.shape, self.dtype, cache)

    def is_of(self, kernel: Kernel, Y: Any, now: Settings) -> bool:
        """Whether it is K(·, Y) of this kernel, and one made now would compute alike."""
        is_alike = all(getattr(now, name) == value for name, value in self._settings.items())
        return is_alike and self._raw[1] is Y and self.kernel == kernel

    def beside(self, X: Any) -> Gram:
        """K(X, Y) for other points X, under the settings of this Gram, which has prepared Y already.

        >>> from mercer import Gaussian
        >>> K = Gram(Gaussian(sigma=1.0), [[0.0]], [[0.0], [1.0]])
        >>> K.beside([[1.0]]).dense().round(4)
        array([[0.6065, 1.    ]])
        """
        Y = self._raw[1]
        if self.kernel.domain.is_vectors:
            agreement.require_same_names(X, Y)
        X = check_domain(self.kernel, X, "X")
        left = prepare_left(self._program, X, self._sides.right, _mean) if not self.is_symmetric else None
        if left is None:
            return _remake(self.kernel, X, Y, self._capacity, self._settings)
        gram: Gram = object.__new__(Gram)
        vars(gram).update(vars(self))
        gram._raw, gram._sides, gram.shape = (X, Y), Sides(left, self._sides.right), (left.n, self.shape[1])
        gram._x = self._backend.prepare(left)
        gram._cache = RowCache(gram.shape, self.dtype, self._capacity)
        return gram

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
        n = self.shape[0]
        return point_values(self._program.diagonal, self._raw[0], n, {}, _mean).astype(self.dtype)

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
        self._fill(self._x, self._y, out, mirror=self.is_symmetric)
        return out

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
        self._fill(x, y, out, mirror=False)
        return out

    def write_rows(
        self, index: np.ndarray, columns: tuple[int, int], out: np.ndarray, places: np.ndarray
    ) -> None:
        """K[index, start:stop] into out[places, start:stop]: for solvers that keep rows themselves.

        Nothing is checked and nothing is cached: index and places are int64, out has K's precision.
        """
        start, stop = columns
        x = self._backend.take(self._x, self._sides.left, index, "rows")
        self._run(
            lambda j: self._backend.scatter(x, self._y, j, out, places),
            [(start + a, start + b) for a, b in _cut(stop - start, self._strip(len(index)))],
            len(index) * (stop - start),
        )

    def write_block(self, i: np.ndarray, j: np.ndarray, out: np.ndarray) -> None:  # (len(i), len(j))
        """K[i, j] into ``out``, for solvers: nothing is checked."""
        if not (len(i) and len(j)):
            return
        x = self._backend.take(self._x, self._sides.left, i, "rows")
        y = self._backend.take(self._y, self._sides.right, j, "columns")
        self._run(
            lambda part: self._backend.scatter(x, y, part, out, np.arange(len(i))),
            _cut(len(j), self._strip(len(i))),
            out.size,
        )

    def combine(self, index: np.ndarray, coef: np.ndarray) -> np.ndarray:  # (n,)
        """Σᵣ coefᵣ K[:, indexᵣ] in float64, for solvers: columns are not stored, nothing is checked."""
        total = np.zeros(self.shape[0])
        for start, stop in _cut(len(index), _COMBINED):
            total += self._combined(index[start:stop], coef[start:stop])
        return total

    def _combined(self, index: np.ndarray, coef: np.ndarray) -> np.ndarray:  # (n,)
        y = self._backend.take(self._y, self._sides.right, index, "columns")
        column = np.ascontiguousarray(coef[:, None], dtype=self.dtype)
        out = np.zeros((self.shape[0], 1), self.dtype)
        self._run(
            lambda i: self._backend.multiply(self._x, y, i, column, out),
            _cut(self.shape[0], self._backend.rows),
            out.size * len(index),
        )
        return out[:, 0]

    def restrict(self, index: np.ndarray) -> Gram:
        """The matrix of some of the points with each other."""
        return _remake(self.kernel, data.take(self._raw[0], index), None, self._capacity, self._settings)

    def _strip(self, rows: int) -> int:
        """How many columns of that many rows make a task for one thread."""
        return max(self._backend.columns, _WORTH_THREADS // rows)

    def __matmul__(self, V: Any) -> np.ndarray:  # (n,) or (n, p)
        """K @ V without the matrix."""
        V = np.asarray(V)
        if V.ndim not in (1, 2) or V.shape[0] != self.shape[1] or V.dtype.kind not in "fiub":
            raise InputError(
                f"K is {self.shape[0]} × {self.shape[1]}: it multiplies real vectors of length "
                f"{self.shape[1]}, got {V.dtype} of shape {V.shape}"
            )
        columns = np.ascontiguousarray(V.reshape(self.shape[1], -1), dtype=self.dtype)
        out = self._room(self.shape[0], columns.shape[1], "product")
        out[:] = 0
        self._run(
            lambda i: self._backend.multiply(self._x, self._y, i, columns, out),
            _cut(self.shape[0], self._backend.rows),
            self.shape[0] * self.shape[1],
        )
        return out.reshape(self.shape[0], *V.shape[1:])

    def __reduce__(self) -> tuple[Any, ...]:
        # prepared anew where it is loaded
        return _remake, (self.kernel, *self._raw, self._capacity, self._settings)

    def __repr__(self) -> str:
        n, m = self.shape
        return f"Gram({self.kernel!r}, {n} × {m}, {self.dtype.name}, {self._backend.name})"

    # --- the loop --------------------------------------------------------------------------------------

    def _compute_rows(self, index: np.ndarray) -> np.ndarray:
        out = self._room(len(index), self.shape[1], "set of rows")
        x = self._backend.prepare(self._sides.left.take(index))
        self._fill(x, self._y, out, mirror=False)
        return out

    def _room(self, n: int, m: int, what: str) -> np.ndarray:
        """Memory for a result, if it fits the budget (asking costs more than a small result)."""
        if (size := n * m * self.dtype.itemsize) > _SMALL_RESULT:
            require_memory(size, f"a {what} of {n} × {m} {self.dtype.name}", "ask for less at a time")
        return np.empty((n, m), self.dtype)

    def _fill(self, x: Any, y: Any, out: np.ndarray, mirror: bool) -> None:
        """The matrix of two prepared sides into ``out``, range by range."""
        n, m = out.shape

        def task(ranges: tuple[tuple[int, int], tuple[int, int]]) -> None:
            i, j = ranges
            self._backend.block(x, y, i, j, out, (i[0], j[0]), mirror)

        self._run(task, _ranges(n, m, self._backend, lower=mirror), n * m)

    def _run(self, task: Callable[[Any], None], tasks: Iterable[Any], pairs: int) -> None:
        alone = self._backend.is_parallel or pairs < _WORTH_THREADS
        with self._backend.session():
            run(task, tasks, 1 if alone else None)


def _remake(kernel: Kernel, X: Any, Y: Any, cache: int | None, settings: dict[str, Any]) -> Gram:
    """A Gram under the settings that another was made with."""
    with config(**settings):
        return Gram(kernel, X, Y, cache=cache)


def _mean(inner: Expression, X: Any, reference: Any) -> np.ndarray:
    """(1/n) Σᵢ k(x, xᵢ) for every x of X."""
    gram = object.__new__(Gram)
    program = Program(inner)
    gram._build(program, prepare(program, X, reference, _mean), (X, reference), 0)
    return gram @ np.full(gram.shape[1], 1.0 / gram.shape[1])


def _cut(n: int, step: int) -> list[tuple[int, int]]:
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def _ranges(
    n: int, m: int, backend: Any, lower: bool = False
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Ranges of rows and columns; only those that touch the lower triangle when it is mirrored."""
    step = backend.rows if lower else max(backend.columns, _WORTH_THREADS // n)
    for i in _cut(n, backend.rows):
        for j in _cut(m, step):
            if not lower or j[0] < i[1]:
                yield i, j


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
