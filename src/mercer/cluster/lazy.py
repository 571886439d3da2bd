r"""Predictions of Dask collections: a Dask array of the same chunks, computed when Dask is asked for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.cluster.client import dask_module
from mercer.cluster.rows import is_collection, require_table
from mercer.errors import InputError, InputTypeError
from mercer.runtime.config import settings, within
from mercer.runtime.threads import single_threaded_blas

Method = TypeVar("Method", bound=Callable[..., Any])


def lazily(method: Method) -> Method:
    """A method of a fitted estimator and points; of a Dask array or frame it stays lazy."""
    if hasattr(method, "is_lazy"):
        return method

    @wraps(method)
    def inside(self: Any, X: Any = None, *args: Any, **options: Any) -> Any:
        if is_collection(X) and not args and not options:
            return _lazy(self, method.__name__, X)
        return method(self, X, *args, **options)

    vars(inside)["is_lazy"] = True
    return inside  # type: ignore[return-value]


def _lazy(model: Any, name: str, X: Any) -> Any:
    da, delayed = dask_module("dask.array"), dask_module("dask").delayed
    require_table(X)
    check_is_fitted(model)
    columns = getattr(X, "columns", None)
    known = getattr(model, "feature_names_in_", None)
    if columns is not None and known is not None:
        missing = [label for label in known if label not in list(columns)]
        if missing:
            raise InputError(f"X has no column {missing[0]!r}, which the model was fitted with: add it")
        X = X[list(known)]
    width = getattr(model, "n_features_in_", X.shape[1] if columns is not None else None)
    if width is None:
        raise InputTypeError(
            f"X is a Dask {type(X).__name__} of numbers, and {model.kernel_!r} compares other things: pass "
            "the objects themselves"
        )
    if X.shape[1] != width and not np.isnan(X.shape[1]):
        raise InputError(f"X has {X.shape[1]} columns, and the fit had {width}: pass the same")
    if columns is None and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    # A point or two tell what a prediction looks like: those that the model knows, or those of Dask.
    anchors = getattr(getattr(model, "expansion_", None), "anchors", None)
    sample = np.ones((1, width)) if not isinstance(anchors, np.ndarray) else anchors[:1]
    values = settings().of_values()
    found = _apply(model, name, values, sample if columns is None else X._meta_nonempty)
    token = dask_module("dask.base").tokenize(model, name, values, X)
    sent = delayed(model, name=f"mercer-model-{token}")
    if columns is None:
        shape = {"drop_axis": 1} if found.ndim == 1 else {"chunks": (X.chunks[0], (found.shape[1],))}
        meta = np.empty((0,) * found.ndim, found.dtype)
        return X.map_blocks(_of_block, sent, name, values, name=f"mercer-{name}-{token}", meta=meta, **shape)
    blocks = [
        da.from_delayed(delayed(_apply)(sent, name, values, part), (np.nan, *found.shape[1:]), found.dtype)
        for part in X.to_delayed()
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _of_block(part: np.ndarray, model: Any, name: str, values: dict[str, Any]) -> np.ndarray:
    return _apply(model, name, values, part)


def _apply(model: Any, name: str, values: dict[str, Any], part: Any) -> np.ndarray:
    """The method for one block, by one thread, under the settings of the client that values depend on.

    A block without rows has no predictions.
    """
    with within(threads=1, progress=False, cluster=None, **values), single_threaded_blas():
        if len(part) == 0:
            return _apply(model, name, values, np.ones((1, part.shape[1])))[:0]
        return np.asarray(getattr(model, name)(part))
