"""The door through which data come in: checked once, then a float array, a CSR array or a list of objects.

>>> as_vectors([[1, 2], [3, 4]])
array([[1., 2.],
       [3., 4.]])
>>> as_vectors([[1.0, float("nan")]])
Traceback (most recent call last):
mercer.errors.InputError: X contains 1 NaN, the first at X[0, 1]: drop those rows or fill the gaps (for
example with sklearn.impute.SimpleImputer)

Data frames and tensors are recognised by the module of their type; their libraries are never imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.data.column_names import find_columns
from mercer.data.library import is_frame, is_lazy, library_of
from mercer.data.refusals import (
    refuse_complex,
    refuse_dtype,
    refuse_lazy,
    refuse_masked,
    refuse_ragged,
)
from mercer.data.sparse import canonical, is_sparse, require_indices
from mercer.data.types import Frame, Objects, Points
from mercer.errors import InputError, InputTypeError, shown
from mercer.runtime.threads import run

#: what to use for columns of any kind
_FOR_TABLES = "take kernel=mercer.ColumnKernel(), or the features of mercer.tables.TableFeatures"

#: Values whose temporary array costs less than asking NumPy not to warn of a sum.
_SIZE_OF_A_SHORT_SUM = 2**13
#: Numbers that a thread adds up together: 8 MB in float64 take one of them about a millisecond.
_WORTH_THREADS = 2**20
_REALS = (np.dtype(np.float64), np.dtype(np.float32))

#: points as rows: a dense float array, or a CSR array with sorted indices
Vectors: TypeAlias = "NDArray[np.floating[Any]] | sparse.csr_array"


# --- points that are vectors ----------------------------------------------------------------------


def as_vectors(X: Points, name: str = "X") -> Vectors:
    """Points as the rows of a C-contiguous float array or of a CSR array, all finite.

    Takes arrays, lists of lists, scipy.sparse matrices, pandas and polars data frames, torch tensors.
    float32 stays float32 and everything else becomes float64; what is right already is not copied.

    >>> as_vectors(np.array([[True, False]]))
    array([[1., 0.]])
    >>> as_vectors([1.0, 2.0], name="Y")
    Traceback (most recent call last):
    mercer.errors.InputError: Y must be 2-D, one row per point, got shape (2,). Reshape your data:
    Y.reshape(-1, 1) for points with one column, Y.reshape(1, -1) for one point
    """
    labels = None
    if type(X) is np.ndarray and X.dtype in _REALS and X.flags.c_contiguous and X.ndim == 2 and X.size:
        _require_finite(X, name)  # the usual case: nothing else can be wrong with it
        return X
    if X is None:
        raise InputTypeError(f"{name} must be a table of numbers, got None: pass one row per point")
    if is_lazy(X):
        refuse_lazy(name)
    if isinstance(X, np.ma.MaskedArray):
        refuse_masked(X, name)
    if sparse.issparse(X):
        array = _sparse_values(X, name)
    else:
        if is_frame(X):
            labels = list(X.columns)
            X = _frame_values(X, name)
        elif library_of(X) == "torch":
            X = _tensor_values(X, name)
        array = _dense_values(X, name)
    _require_finite(array, name, labels)
    return array


def _dense_values(X: Any, name: str) -> NDArray[np.floating[Any]]:
    try:
        array = np.asarray(X)
    except ValueError:
        refuse_ragged(X, name)
    if array.ndim == 0:
        raise InputTypeError(
            f"{name} must be 2-D, one row per point, got a single {type(X).__name__}: "
            "pass a 2-D array, a list of rows, a data frame or a sparse matrix"
        )
    if array.dtype.kind == "c":
        refuse_complex(name, array.dtype)
    if array.dtype.kind not in "biufO":
        refuse_dtype(array.dtype, name)
    if array.dtype == object and array.ndim == 1 and array.size and np.ndim(array[0]) > 0:
        refuse_ragged(X, name)
    _require_table(array.shape, name)
    if array.dtype == object:
        array = _object_values(array, name)
    return np.ascontiguousarray(array, dtype=_float_type(array.dtype))


def _sparse_values(X: sparse.sparray, name: str) -> sparse.csr_array:
    _require_table(X.shape, name)
    if X.dtype.kind == "c":
        refuse_complex(name, X.dtype)
    require_indices(X, name)
    real = _float_type(X.dtype)
    rows = X if isinstance(X, sparse.csr_array) and X.dtype == real else sparse.csr_array(X.astype(real))
    return canonical(rows)


def _frame_values(X: Frame, name: str) -> NDArray[np.floating[Any]]:
    """The columns of a pandas or polars frame, each checked under its own name."""
    parts = [_column_values(X, j, name) for j in range(X.shape[1])]
    single = all(part.dtype == np.float32 for part in parts)
    values = np.empty(X.shape, dtype=np.float32 if single else np.float64)
    for j, part in enumerate(parts):
        values[:, j] = part
    return values


def _column_values(X: Frame, j: int, name: str) -> NDArray[Any]:
    label = X.columns[j]
    part = (X.iloc[:, j] if library_of(X) == "pandas" else X[:, j]).to_numpy()
    if part.dtype.kind == "c":
        refuse_complex(f"column {label!r} of {name}", part.dtype)
    if part.dtype.kind not in "biufO":
        raise InputTypeError(
            f"column {label!r} of {name} must hold numbers, got {part.dtype}: turn it into numbers first, or "
            f"{_FOR_TABLES}"
        )
    return _object_values(part, name, label) if part.dtype == object else part


def require_numbers(X: Points) -> None:
    """Refuse what would become numbers without a word: masked values, dates; and frames by their columns.

    >>> require_numbers(np.array([["2026-01-01"]], dtype="datetime64[D]"))
    Traceback (most recent call last):
    mercer.errors.InputTypeError: X must hold numbers, got datetime64[D]: turn text and dates into numbers ...
    """
    if isinstance(X, str | bytes):
        raise InputTypeError(
            f"X must be a table of numbers, got the single text {shown(X, 40)}: pass one row per point"
        )
    if is_lazy(X):
        refuse_lazy("X")
    if isinstance(X, np.ma.MaskedArray):
        refuse_masked(X, "X")
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        refuse_dtype(X.dtype, "X")
    if not is_frame(X):
        return
    labels = list(X.columns)
    twice = [label for label in labels if labels.count(label) > 1] if len(set(labels)) < len(labels) else []
    if twice:
        raise InputError(
            f"X has {labels.count(twice[0])} columns of the name {twice[0]!r}: rename them, or pass "
            "X.to_numpy()"
        )
    for j in range(X.shape[1]):
        _column_values(X, j, "X")


def _tensor_values(X: Any, name: str) -> NDArray[Any]:
    if str(X.layout) != "torch.strided":
        raise InputTypeError(
            f"{name} must be a dense tensor, got layout {X.layout}: "
            f"pass {name}.to_dense(), or a scipy.sparse matrix"
        )
    if X.is_floating_point() and X.element_size() < 4:
        X = X.float()  # NumPy has no bfloat16.
    return X.numpy(force=True)


def _object_values(array: NDArray[Any], name: str, label: Any = None) -> NDArray[np.float64]:
    """Python numbers as floats; None and NA as NaN, so that they are reported as missing."""
    values = np.empty(array.shape)
    flat = values.reshape(-1)
    for index, value in enumerate(array.flat):
        try:
            flat[index] = np.nan if _is_missing(value) else _number(value)
        except (TypeError, ValueError):
            place = _place(array.shape, index, name, label)
            instead = "use a kernel on objects" if label is None else _FOR_TABLES
            raise InputTypeError(
                f"{place} is {shown(value, 40)}: this argument must be free of strings and other objects "
                f"that are not numbers; encode them first, or {instead}"
            ) from None
        except OverflowError:
            place = _place(array.shape, index, name, label)
            raise InputError(
                f"{place} is too large for a float, got {shown(value, 40)}: "
                "rescale the column, or take its logarithm"
            ) from None
    return values


def _number(value: Any) -> float:
    if isinstance(value, str | bytes | bytearray):
        raise TypeError("float() would read text such as '1.5'")
    return float(value)


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _float_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    return np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64


def _require_table(shape: tuple[int, ...], name: str) -> None:
    if shape[0] == 0:
        raise InputError(f"{name} has no points, got shape {shape}: pass at least one row")
    if len(shape) == 1:
        raise InputError(
            f"{name} must be 2-D, one row per point, got shape {shape}. Reshape your data: "
            f"{name}.reshape(-1, 1) for points with one column, {name}.reshape(1, -1) for one point"
        )
    if len(shape) > 2:
        raise InputError(
            f"{name} must be 2-D, one row per point, got shape {shape}. Reshape your data: "
            f"{name}.reshape({shape[0]}, -1) makes one row of each {name}[i]"
        )
    if shape[1] == 0:  # scikit-learn's checks look for these words.
        raise InputError(
            f"{name} has 0 feature(s) (shape={shape}) while a minimum of 1 is required: "
            "pass at least one column"
        )


def _require_finite(X: Vectors, name: str, labels: list[Any] | None = None) -> None:
    values = stored(X)
    if values.size <= _SIZE_OF_A_SHORT_SUM:
        if np.isfinite(values).all():
            return
    elif has_finite_sum(values):  # This is the usual case: one pass, without a temporary array.
        return
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size == 0:  # Only the sum overflowed.
        return
    nans = int(np.count_nonzero(np.isnan(values)))
    counts = " and ".join(
        f"{count} {what}" for count, what in ((nans, "NaN"), (bad.size - nans, "inf")) if count
    )
    row, column = position(X, int(bad[0]))
    place = f"{name}[{row}, {column}]" if labels is None else f"row {row} of column {labels[column]!r}"
    remedy = "drop those rows or fill the gaps (for example with sklearn.impute.SimpleImputer)"
    if not nans:
        remedy = "drop those rows or clip the values to finite ones"
    raise InputError(f"{name} contains {counts}, the first at {place}: {remedy}")


def has_finite_sum(values: NDArray[Any]) -> bool:
    """Whether all numbers are finite and their sum too; of many of them each thread adds some.

    >>> has_finite_sum(np.array([1.0, np.inf])), has_finite_sum(np.ones(2))
    (False, True)
    """
    if values.size < _WORTH_THREADS or not values.flags.c_contiguous:
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(values.sum()))
    parts = np.array_split(values.reshape(-1), -(-values.size // _WORTH_THREADS))
    finite = np.zeros(len(parts), np.bool_)

    def look(p: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            finite[p] = np.isfinite(parts[p].sum())

    run(look, range(len(parts)))
    return bool(finite.all())


def stored(X: Vectors) -> NDArray[Any]:
    """The values that are kept: all of them, or the non-zero ones of a sparse array."""
    return np.asarray(X.data if is_sparse(X) else X)


def position(X: Vectors, index: int) -> tuple[int, int]:
    """Row and column of the index-th stored value."""
    if is_sparse(X):
        return int(np.searchsorted(X.indptr, index, side="right")) - 1, int(X.indices[index])
    row, column = divmod(index, X.shape[1])
    return row, column


def _place(shape: tuple[int, ...], index: int, name: str, label: Any) -> str:
    if len(shape) == 1:  # This is a column of a data frame.
        return f"row {index} of column {label!r} of {name}"
    return f"{name}[{', '.join(map(str, np.unravel_index(index, shape)))}]"


# --- points that are objects ----------------------------------------------------------------------


def as_objects(X: Points, name: str = "X") -> Objects:
    """Points that are any Python objects: a list, a tuple, an array or a Series of them.

    >>> as_objects(np.array(["ab", "b"]))
    ['ab', 'b']
    >>> as_objects("ab")
    Traceback (most recent call last):
    mercer.errors.InputTypeError: X must be a list of objects, got the single text 'ab': pass [text]
    """
    objects: Sequence[Any] | None = None
    if isinstance(X, str | bytes | bytearray):
        raise InputTypeError(
            f"{name} must be a list of objects, got the single text {shown(X, 40)}: pass [text]"
        )
    if is_frame(X):
        raise InputTypeError(
            f"{name} must be a list of objects, got a {type(X).__name__}: "
            f"pass one of its columns, {name}['column']"
        )
    if isinstance(X, np.ndarray) and X.ndim > 0:
        is_column = X.dtype == object and X.shape[1:] == (1,)  # scikit-learn passes a column so.
        # The rows would be views.
        objects = X.ravel().tolist() if X.ndim == 1 or is_column else list(X.copy())
    elif library_of(X) in ("pandas", "polars") and hasattr(X, "to_list"):
        objects = X.to_list()
    elif isinstance(X, Sequence):
        objects = X
    if objects is None:
        raise InputTypeError(
            f"{name} must be a list of objects, got a {type(X).__name__}: pass a list, "
            "list(…) of what you have, or [object] for a single one"
        )
    if len(objects) == 0:
        raise InputError(f"{name} has no points, got an empty {type(X).__name__}: pass at least one object")
    return objects


# --- parts of a table -------------------------------------------------------------------------------


def n_points(X: Points) -> int:
    """The number of rows, or of objects.

    >>> n_points(np.ones((3, 2))), n_points(["a", "b"])
    (3, 2)
    """
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def n_columns(X: Points) -> int | None:
    """The number of columns; None where points are objects.

    >>> n_columns(np.ones((3, 2))), n_columns(["a", "b"])
    (2, None)
    """
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def take(X: Any, index: Any) -> Any:
    """The points at these positions (an integer array, a mask or a slice), in the container they came in.

    >>> take(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if not isinstance(index, slice):
        index = np.asarray(index)
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.intp, copy=False)
    if library_of(X) == "pandas":
        return X.iloc[index]
    if sparse.issparse(X):
        return X.tocsr()[index]
    if hasattr(X, "shape") or isinstance(index, slice):
        return X[index]
    return [X[i] for i in index]


def copied(X: Any) -> Any:
    """What the caller cannot change: points, or one of them that is a list, an array or a graph.

    Objects of other types are the same ones, for nobody but their author knows how to copy them.

    >>> bags = [["a", "b"], ["c"]]
    >>> own = copied(bags)
    >>> bags[1].append("d")
    >>> own
    [['a', 'b'], ['c']]
    """
    if type(X) in (list, tuple, set):
        return type(X)(map(copied, X))
    if type(X) is dict:
        return {key: copied(value) for key, value in X.items()}
    if library_of(X) == "polars":
        return X.clone()
    is_known = isinstance(X, np.ndarray) or sparse.issparse(X) or library_of(X) in ("pandas", "networkx")
    return X.copy() if is_known else X


def stack(a: Any, b: Any) -> Any:
    """Two sets of points as one, in the container they came in.

    >>> stack(["a"], ["b", "c"])
    ['a', 'b', 'c']
    """
    if sparse.issparse(a) or sparse.issparse(b):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(a), sparse.csr_array(b)]))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.concatenate([a, b])
    if hasattr(a, "columns"):  # This is a data frame of pandas or polars.
        return import_module(type(a).__module__.partition(".")[0]).concat([a, b])
    return [*a, *b]


def single_column(X: Any) -> Any:
    """The objects of a table with one column; anything else as it is.

    >>> single_column(np.array([["ab"], ["b"]], dtype=object))
    array(['ab', 'b'], dtype=object)
    """
    if n_columns(X) != 1:
        return X
    return X.iloc[:, 0] if library_of(X) == "pandas" else X[:, 0]


def columns(X: Any, which: Any, name: str = "X") -> Any:
    """Some columns of a table, by position (an integer always is one), slice, mask or name.

    >>> columns(np.array([[1, 2, 3], [4, 5, 6]]), [2, 0])
    array([[3, 1],
           [6, 4]])
    >>> columns(np.ones((2, 3)), [3])
    Traceback (most recent call last):
    mercer.errors.InputError: X has no column 3: it has 3 columns, 0 to 2
    """
    if sparse.issparse(X):
        require_indices(X, name)
    elif not is_frame(X):
        X = _as_table(X, name)
    labels = list(X.columns) if is_frame(X) else None
    positions = find_columns(which, X.shape[1], labels, name)
    if library_of(X) == "pandas":
        return X.iloc[:, positions]
    if sparse.issparse(X):
        return X.tocsr()[:, positions]
    return X[:, which] if isinstance(X, np.ndarray) and isinstance(which, slice) else X[:, positions]


def _as_table(X: Any, name: str) -> NDArray[Any]:
    """A 2-D array of whatever the columns hold: numbers and words side by side stay what they are."""
    try:
        table = X.numpy(force=True) if library_of(X) == "torch" else np.asarray(X)
        if table.dtype.kind in "US" and not isinstance(X, np.ndarray):
            table = np.array(X, dtype=object)
    except ValueError:
        refuse_ragged(X, name)
    if table.ndim == 0:
        raise InputTypeError(
            f"{name} must be a table, got a single {type(X).__name__}: pass a 2-D array or a data frame"
        )
    _require_table(table.shape, name)
    return table
