"""Where learners meet tables in files: a path or a `DataSource` in place of X, and columns by their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, TypeGuard, TypeVar

from mercer.cluster.rows import is_collection
from mercer.cluster.rows import opened as opened_collections
from mercer.data.library import is_frame, is_lazy, library_of
from mercer.data.refusals import refuse_lazy
from mercer.data.sources.frames import load_polars
from mercer.data.sources.source import DataSource
from mercer.data.types import Points, Targets, Weights
from mercer.errors import InputError, InputTypeError, shown

Method = TypeVar("Method", bound=Callable[..., Any])


def takes_files(method: Method) -> Method:
    """A method of points and targets, with points from a file, and targets and weights by their columns.

    The estimator says by ``_reads_files()`` whether its points are rows of numbers. ``score`` and
    ``partial_fit`` take the columns of a file that the estimator was fitted on.
    """
    if hasattr(method, "takes_files"):
        return method
    names = list(signature(method).parameters)[1:]
    begins_anew = method.__name__ not in ("partial_fit", "score")

    @wraps(method)
    def inside(self: Any, *args: Any, **options: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **options}
        X: Any = given.get("X")
        y, weight = given.get("y"), given.get("sample_weight")
        if len(args) > len(names) or not _are_to_be_opened(X, y, weight) or not self._reads_files():
            _refuse_if_unread(X, y)
            return method(self, *args, **options)
        known = None if begins_anew else getattr(self, "feature_names_in_", None)
        if any(map(is_collection, (X, y, weight))):
            here = opened(X, y, weight, known) if is_in_file(X) else (X, y, weight)
            values = opened_collections(*here, known)
        else:
            values = opened(X, y, weight, known)
        found = dict(zip(("X", "y", "sample_weight"), values, strict=True))
        return method(self, **{name: found.get(name, value) for name, value in given.items()})

    vars(inside)["takes_files"] = True
    return inside  # type: ignore[return-value]


def is_in_file(X: object) -> TypeGuard[str | os.PathLike[str] | DataSource]:
    """Whether X names a file, or may do so."""
    return isinstance(X, str | os.PathLike | DataSource)


def _are_to_be_opened(X: Any, y: Any, sample_weight: Any) -> bool:
    """Whether X is in a file or a table of Arrow, or a column of a frame is named, or anything is Dask's."""
    if is_in_file(X) or any(map(is_collection, (X, y, sample_weight))):
        return True
    if not hasattr(X, "__arrow_c_stream__"):
        return False
    return not is_frame(X) or isinstance(y, str) or isinstance(sample_weight, str)


def _refuse_if_unread(X: Any, y: Any) -> None:
    if is_lazy(X):
        refuse_lazy("X")
    if isinstance(y, str) and y != "no_validation":  # scikit-learn's word for no targets at all
        raise InputTypeError(
            f"y is the text {shown(y)}: a column can be named where X is a file or a data frame, and is "
            "read as numbers; here pass the targets themselves"
        )
    if isinstance(X, DataSource) or is_collection(X):
        what = repr(X) if isinstance(X, DataSource) else f"a {type(X).__name__} of Dask"
        raise InputTypeError(
            f"{what} holds columns of numbers, and this kernel compares other things: pass the objects, or "
            "take a kernel on vectors such as mercer.Gaussian()"
        )


def opened(
    X: Points | str | os.PathLike[str] | DataSource,
    y: Targets = None,
    sample_weight: Weights = None,
    columns: Sequence[str] | None = None,
) -> tuple[Any, Any, Any]:
    """Points, targets and weights; those that are in files, or named as columns, as arrays.

    Whatever else X is, it stays as it is: arrays, sparse matrices, lists, frames with targets of their own.
    """
    target, weight = (value if isinstance(value, str) else None for value in (y, sample_weight))
    if isinstance(X, str | os.PathLike):
        X = _source(X)
    if isinstance(X, DataSource):
        table = X.open(target, weight, None if columns is None else list(columns))
        return (
            table,
            y if target is None else table.targets,
            sample_weight if weight is None else table.weights,
        )
    if library_of(X) is None and hasattr(X, "__arrow_c_stream__") and hasattr(X, "schema"):
        X = load_polars().DataFrame(X)  # This is a table of Arrow, whose columns stay where they are.
    if is_frame(X) and (target is not None or weight is not None):
        named = [name for name in (target, weight) if name is not None]
        for name in named:
            if name not in X.columns:
                known = ", ".join(map(repr, list(X.columns)[:20]))
                raise InputError(f"X has no column {name!r}: it has {known}")
        y = y if target is None else X[target]
        sample_weight = sample_weight if weight is None else X[weight]
        X = X.drop(columns=named) if library_of(X) == "pandas" else X.drop(named)
    return X, y, sample_weight


def _source(path: str | os.PathLike[str]) -> DataSource:
    """The source of a path; a text that names nothing is more likely meant to be something else."""
    text = os.fspath(path)
    is_there = any(mark in text for mark in "*?[/\\") or os.path.exists(text)
    if isinstance(path, str) and not is_there and not os.path.splitext(text)[1]:
        raise InputTypeError(
            f"X must be a table of numbers, got the single text {shown(text, 40)}, and there is no such "
            "file: pass one row per point, or the path of a .npy, Parquet, Arrow or CSV file"
        )
    return DataSource(path)
