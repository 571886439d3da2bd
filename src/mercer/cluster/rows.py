r"""A Dask array or frame as points: the shape is known here, and the rows are on the cluster.

What Dask leaves open is settled first: unknown chunk sizes are computed, several blocks of columns become
one, numbers become floats. How rows are chunked does not matter: blocks are cut by their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer.cluster.client import active_client, dask_module, limit
from mercer.cluster.runs import Run, in_turn
from mercer.data.sources.source import Opened
from mercer.errors import InputError, InputTypeError
from mercer.runtime.config import require_memory


def is_collection(X: object) -> bool:
    """Whether X is an array, a frame or a column of Dask."""
    return type(X).__module__.partition(".")[0].startswith("dask") and hasattr(X, "dask")


class DaskRows:
    """The rows of a Dask array of floats, with one block of columns and chunks of known sizes."""

    ndim = 2
    __array_ufunc__ = None  # weight @ rows is ours

    def __init__(self, array: Any, client: Any) -> None:
        self.array, self.client = array, client
        self.shape: tuple[int, int] = tuple(map(int, array.shape))  # type: ignore[assignment]
        self.dtype = array.dtype
        self.nbytes = self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        """Some rows, brought here."""
        if isinstance(index, slice):
            return self._bring(self.array[index])
        index = np.asarray(index)
        index = np.flatnonzero(index) if index.dtype == bool else index
        order = np.argsort(index, kind="stable")  # Dask takes rows in their order chunk by chunk.
        return self._bring(self.array[index[order]])[np.argsort(order, kind="stable")]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        remedy = "pass landmarks=…, with which rows stay on the cluster"
        require_memory(2 * self.nbytes, f"a copy here of {self!r}", remedy)
        return np.asarray(self[:], dtype=dtype)

    def __rmatmul__(self, weight: np.ndarray) -> np.ndarray:  # (n,) → (d,)
        return self._bring(dask_module("dask.array").asarray(weight) @ self.array)

    def __repr__(self) -> str:
        return f"the Dask array of {self.shape[0]:,} × {self.shape[1]}"

    def rowwise(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:  # (n,)
        """A function of the rows, one number each, computed where they are."""
        return self._bring(self.array.map_blocks(function, drop_axis=1, dtype=np.float64))

    def subset(self, index: np.ndarray) -> DaskRows:
        """Some of the rows, which stay where they are."""
        return DaskRows(self.array[index], self.client)

    def digest(self) -> np.ndarray:  # (n,)
        """A number for each row that tells it from others, whatever the chunks."""
        return self.rowwise(_digests)

    def _bring(self, array: Any) -> np.ndarray:
        return np.asarray(_computed(self.client, array))


def _digests(X: np.ndarray) -> np.ndarray:  # (n,)
    """Sums of the bits of the numbers of a row, by odd factors, modulo 2⁶⁴; as float64."""
    bits = np.ascontiguousarray(X, dtype=np.float64).view(np.uint64)
    factors = np.random.default_rng(0).integers(0, 2**63, bits.shape[1], dtype=np.uint64) * np.uint64(2)
    sums = (bits * (factors + np.uint64(1))).sum(axis=1, dtype=np.uint64)
    return (sums >> np.uint64(11)).astype(np.float64)


def _finite(X: np.ndarray) -> np.ndarray:  # (n,)
    return np.isfinite(X).all(axis=1).astype(np.float64)


# --- what Dask leaves open ------------------------------------------------------------------------------


def opened(X: Any, y: Any, sample_weight: Any, columns: Any = None) -> tuple[Any, Any, Any]:
    """Points, targets and weights: X stays on the cluster, and what has one number per row comes here."""
    client = active_client()
    names: tuple[str, ...] | None = None
    if is_collection(X):
        X, names, y, sample_weight = _points(X, y, sample_weight, columns)
        X = _settled(X, client)
        if client is None:
            remedy = "start a dask.distributed.Client"
            require_memory(2 * X.nbytes, f"a copy here of a Dask array of {X.shape}", remedy)
            rows: Any = np.ascontiguousarray(_computed(None, X))
            whole = np.isfinite(rows).all(axis=1)
        else:
            rows = DaskRows(X, client)
            whole = rows.rowwise(_finite)
        if not whole.all():
            raise InputError(
                f"X contains NaN or inf in {int((whole == 0).sum()):,} rows, the first at row "
                f"{int(whole.argmin()):,}: drop those rows or fill the gaps"
            )
        X = Opened(rows, names)
    y, sample_weight = (_column(value, client) for value in (y, sample_weight))
    n = X.points.shape[0] if isinstance(X, Opened) else None
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if n is not None and hasattr(value, "shape") and value.shape[:1] != (n,):
            raise InputError(f"X has {n:,} rows and {name} has {value.shape[0]:,}: pass one entry per row")
    return X, y, sample_weight


def _points(X: Any, y: Any, sample_weight: Any, columns: Any) -> tuple[Any, Any, Any, Any]:
    """X without the columns that y and the weights are named by; and these columns."""
    require_table(X)
    own = [value for value in (y, sample_weight) if isinstance(value, str)]
    if not hasattr(X, "columns"):
        if own:
            raise InputTypeError(
                f"{own[0]!r} names a column, and X is a Dask array: pass the numbers themselves"
            )
        return X, None, y, sample_weight
    labels = list(X.columns)
    for name in [*own, *([] if columns is None else columns)]:
        if name not in labels:
            raise InputError(f"X has no column {name!r}: it has {', '.join(map(repr, labels[:20]))}")
    wanted = list(columns) if columns is not None else [label for label in labels if label not in own]
    y, sample_weight = (X[value] if isinstance(value, str) else value for value in (y, sample_weight))
    for label in wanted:
        kind = X.dtypes[label]
        if getattr(kind, "kind", "O") not in "biuf":
            raise InputTypeError(
                f"column {label!r} of X must hold numbers, got {kind}: turn it into numbers first, or choose "
                "columns, X[[…]]"
            )
    names = tuple(wanted) if all(isinstance(label, str) for label in wanted) else None
    array = X[wanted].to_dask_array()
    if array.dtype.kind == "O":  # true and false beside numbers, or numbers that may be missing
        array = X[wanted].astype(np.float64).to_dask_array()
    return array, names, y, sample_weight


def require_table(X: Any) -> None:
    """Refuse collections of Dask that have no rows and columns."""
    if not isinstance(X, dask_module("dask.array").Array) and not hasattr(type(X), "to_dask_array"):
        raise InputTypeError(
            f"X must be an array or a frame of Dask, got a {type(X).__name__}: dask.array.from_delayed(…) "
            "makes one of parts"
        )
    if X.ndim != 2:
        remedy = "X.to_frame()" if hasattr(X, "to_frame") else "X.reshape(-1, 1)"
        raise InputError(
            f"X must be 2-D, one row per point, got a Dask {type(X).__name__} of {X.ndim} dimensions: "
            f"{remedy} for points with one column"
        )


def _settled(array: Any, client: Any) -> Any:
    """A 2-D array of floats with known chunks of rows, and all columns in one."""
    is_plain = isinstance(array._meta, np.ndarray) and not isinstance(array._meta, np.ma.MaskedArray)
    if array.dtype.kind not in "biuf" or not is_plain:
        kind = f"{type(array._meta).__name__} of {array.dtype}"
        raise InputTypeError(
            f"X must be made of NumPy arrays of numbers, got chunks of {kind}: X.map_blocks(…) converts them"
        )
    if not (array.dtype.kind == "f" and array.dtype.itemsize in (4, 8)):
        array = array.astype(np.float64)
    if any(np.isnan(size) for size in array.shape):
        array = _sized(array, client)
    if not array.shape[0]:
        raise InputError("X has no rows: pass at least one")
    return array.rechunk({1: -1}) if array.numblocks[1] > 1 else array


def _sized(array: Any, client: Any) -> Any:
    """The array with the sizes of its chunks, which are computed; the one that was given stays as it is."""
    rows, columns = array.numblocks
    sizes = array.map_blocks(_shape, dtype=np.int64, chunks=((1,) * rows, (2,) * columns))
    found = np.asarray(_computed(client, sizes))
    chunks = tuple(map(int, found[:, 0])), tuple(map(int, found[0, 1::2]))
    return dask_module("dask.array").Array(array.dask, array.name, chunks, meta=array._meta)


def _shape(part: np.ndarray) -> np.ndarray:  # (1, 2)
    return np.array([part.shape])


def _column(value: Any, client: Any) -> Any:
    """What has an entry per row, as an array here."""
    if not is_collection(value):
        return value
    found = np.asarray(_computed(client, value))
    return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found


def _computed(client: Any, collection: Any) -> Any:
    """The value of a collection, or a sentence; without a client it is computed here."""
    if client is None:
        return collection.compute()
    found: list[Any] = []

    def submit(numbers: Sequence[int]) -> dict[int, Any]:
        return {0: client.compute(collection, retries=int(limit("retries")))}

    run = Run(client, submit, lambda g: "the reading of rows", lambda g, value: found.append(value))
    run.go(in_turn(1))
    return found[0]
