r"""Plain data out of their tokens: what may be in a file, of which types, and how large.

Every length comes from bytes that are there. What takes few bytes and can become much is held back: ranges,
empty arrays, sparse matrices that are wide and have no entries. What arrays are made of is an array or a list
already, never something that would be counted out.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from mercer.errors import InputError
from mercer.kernels.graphs.graph import Graph
from mercer.kernels.trees.tree import _from_flat
from mercer.persist.known import named_class, named_function, named_type

SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
DICTS: dict[type, str] = {dict: "dict", OrderedDict: "OrderedDict", Counter: "Counter", Bunch: "Bunch"}
SPARSE = {
    kind.__name__: kind for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix)
}
MOMENTS: dict[type, str] = {date: "date", datetime: "datetime", time: "time"}
#: kinds of arrays whose bytes are all there is to them
NUMERIC = frozenset("biufcSUmM")
CONTAINERS: dict[str, Any] = {name: kind for kind, name in {**SEQUENCES, **DICTS}.items()}
_MOMENT_NAMES: dict[str, Any] = {name: kind for kind, name in MOMENTS.items()}

#: A short file must not ask for much memory. These sizes have no bytes behind them in a file: the numbers of
#: a range; rows or columns, and bytes per entry, of an empty array; rows or columns of a sparse matrix.
LONGEST_RANGE = 10_000
_LONGEST_EMPTY, _LARGEST_ITEM = 1 << 20, 1 << 16
_WIDEST = 1 << 24


class Room:
    """How many numbers ranges may still have: some, and as many as the data have bytes."""

    def __init__(self, size: int) -> None:
        self.left = LONGEST_RANGE + size

    def take(self, length: int) -> None:
        self.left -= length
        if self.left < 0:
            raise ValueError("ranges of more numbers than a file may have")


def count(number: Any) -> int:
    """A number of things, in a token."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no number of things")
    return number


def pop(stack: list[Any], number: Any) -> list[Any]:
    """The topmost values, the last one first: they came in reverse."""
    if count(number) > len(stack):
        raise ValueError("more children than values")
    split = len(stack) - number
    taken = stack[split:][::-1]
    del stack[split:]
    return taken


def container(kind: Any, items: list[Any]) -> Any:
    """A list, a set, a dict, … of these items, keys before values."""
    if kind not in DICTS:
        return kind(items)
    if len(items) % 2:
        raise ValueError("a key without a value")
    half = len(items) // 2
    pairs = dict(zip(items[:half], items[half:], strict=True))
    if kind is not Bunch:
        return kind(pairs)
    bunch = Bunch()
    bunch.update(pairs)
    return bunch


# --- arrays ----------------------------------------------------------------------------------------------


def require_length(shape: Sequence[int], itemsize: int) -> None:
    """Refuse an array that has no bytes and is long all the same.

    >>> require_length((0, 5), 8)
    >>> require_length((10**12, 0), 8)
    Traceback (most recent call last):
    ValueError: an empty array of shape (1000000000000, 0)
    """
    is_empty = prod(shape) == 0
    if is_empty and (max(shape) > _LONGEST_EMPTY or itemsize > _LARGEST_ITEM):
        raise ValueError(f"an empty array of shape {tuple(shape)}")


def from_bytes(name: str, facts: list[Any], content: memoryview, end: int) -> tuple[Any, int]:
    """An array, a scalar or bytes that end at some place of the content, and the place where they begin."""
    if name in ("bytes", "bytearray"):
        start = end - count(facts[0])
        if start < 0:
            raise ValueError("more bytes than there are")
        return (bytes if name == "bytes" else bytearray)(content[start:end]), start
    text, shape, order = facts
    dtype = _dtype(text)
    if order not in ("C", "F"):
        raise ValueError(f"no order of an array: {order!r}")
    start = end - prod(map(count, shape)) * dtype.itemsize
    if start < 0:
        raise ValueError("more numbers than there are")
    require_length(shape, dtype.itemsize)
    flat = np.frombuffer(content[start:end], dtype) if start < end else np.empty(0, dtype)
    # A copy is aligned, and one may write to it.
    array = np.array(flat.reshape(shape, order=order), order=order)
    return (array if name == "array" else array[()]), start


def _dtype(text: Any) -> np.dtype[Any]:
    dtype = np.dtype(str(text))
    if dtype.kind not in NUMERIC or dtype.itemsize == 0:
        raise ValueError(f"no array of numbers: {text!r}")
    return dtype


def _require(value: object, *kinds: Any) -> Any:
    """The value, if it is of one of these types; else an error, for nothing is converted or counted out."""
    if type(value) not in kinds:
        raise TypeError(f"a {type(value).__name__} in the place of a {kinds[0].__name__}")
    return value


def _objects(shape: Any, items: Any) -> np.ndarray:
    require_length(list(map(count, shape)), 8)
    return np.fromiter(_require(items, list), dtype=object, count=len(items)).reshape(shape)


def _masked(data: Any, mask: Any) -> Any:
    if _require(data, np.ndarray).shape != _require(mask, np.ndarray).shape or mask.dtype != bool:
        raise ValueError("a mask that is not of the form of its array")
    return np.ma.MaskedArray(data, mask)


def require_width(shape: Sequence[int], data: np.ndarray) -> None:
    """Refuse a sparse matrix that is much wider than what it holds: columns are counted, for all of them."""
    if max(shape) > max(_WIDEST, data.nbytes):
        raise InputError(
            f"a model file cannot hold a sparse matrix of shape {tuple(shape)} with {data.size} entries: "
            f"hash its columns to fewer, at most {_WIDEST}"
        )


def _sparse(kind: Any, shape: Any, *parts: Any) -> Any:
    data, indices, indptr = (_require(part, np.ndarray) for part in parts)
    if len(list(map(count, shape))) != 2:
        raise ValueError(f"a sparse matrix of shape {shape}")
    require_width(shape, data)
    matrix = SPARSE[kind]((data, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)  # Compiled code trusts the indices.
    return matrix


# --- everything else -------------------------------------------------------------------------------------


def is_named_tuple(kind: Any) -> bool:
    """Whether it is a class of tuples with names."""
    return isinstance(kind, type) and kind.__bases__ == (tuple,) and hasattr(kind, "_fields")


def rebuild(name: Any, facts: list[Any], stack: list[Any], trusted: Any, room: Room) -> Any:
    """The object that a token stands for, made of the values that came after it."""
    if name == "missing":
        return None
    if name in _MOMENT_NAMES:
        return _MOMENT_NAMES[name].fromisoformat(*facts)
    if name in ("timedelta", "decimal", "complex"):
        return {"timedelta": timedelta, "decimal": Decimal, "complex": complex}[name](*facts)
    if name == "slice":
        return slice(*pop(stack, 3))
    if name == "range":
        found = range(*pop(stack, 3))
        room.take(len(found))
        return found
    if name in ("dtype", "type", "function", "named"):
        return _of_name(name, facts, stack, trusted)
    if name == "tree":
        return _tree(*pop(stack, 2))
    if name == "graph":
        return _graph(*pop(stack, 4))
    if name == "masked":
        return _masked(*pop(stack, 2))
    if name == "objects":
        return _objects(*facts, *pop(stack, 1))
    if name == "sparse":
        return _sparse(*facts, *pop(stack, 3))
    if name in ("frame", "series"):
        return _table(name, *facts, *pop(stack, 2))
    raise ValueError(f"nothing is called {name!r}")


def _of_name(what: str, facts: list[Any], stack: list[Any], trusted: Any) -> Any:
    if what == "dtype":
        dtype = _dtype(facts[0])
        require_length((0,), dtype.itemsize)
        return dtype
    if what == "type":
        return named_type(facts[0])
    if what == "function":
        return named_function(facts[0], facts[1], trusted)
    made = named_class(facts[0], facts[1], trusted or {})
    if not is_named_tuple(made):
        raise InputError(f"it names the tuple {facts[1]!r} of {facts[0]!r}, which mercer does not know")
    return made._make(pop(stack, facts[2]))  # type: ignore[union-attr]


def _tree(labels: Any, parents: Any) -> Any:
    """A tree from its nodes, parents first."""
    if len(_require(labels, list)) != len(_require(parents, list)):
        raise ValueError("labels and parents of a tree that are not as many")
    if any(type(parent) is not int or not 0 <= parent < v for v, parent in enumerate(parents[1:], 1)):
        raise ValueError("a node of a tree whose parent does not come before it")
    return _from_flat(labels, parents)


def _graph(adjacency: Any, labels: Any, edge_labels: Any, attributes: Any) -> Graph:
    nothing = type(None)
    return Graph(
        _require(adjacency, sparse.csr_array),
        _require(labels, list, nothing),
        _require(edge_labels, list, nothing),
        _require(attributes, np.ndarray, nothing),
    )


def _table(what: str, library: Any, names: Any, columns: Any) -> Any:
    """A data frame, or one column of it, in the library that it was in."""
    if library not in ("pandas", "polars"):
        raise ValueError(f"no data frames are of {library!r}")
    try:
        frames = import_module(library)
    except ImportError:
        raise InputError(
            f"it holds a data frame of {library}, which is not installed: pip install {library}"
        ) from None

    def series(name: Any, values: np.ndarray) -> Any:
        _require(values, np.ndarray, np.ma.MaskedArray)
        if library == "pandas":
            return frames.Series(values, name=name, dtype=values.dtype)  # Texts stay objects.
        return frames.Series(name, values.tolist() if values.dtype == object else values, strict=False)

    if what == "series":
        return series(names, columns)
    _require(names, list), _require(columns, list)
    if len(names) != len(columns) or len({len(column) for column in columns}) > 1:
        raise ValueError("columns of a data frame that are not as many, or not as long")
    if library == "polars":
        return frames.DataFrame([series(*pair) for pair in zip(names, columns, strict=True)])
    frame = frames.DataFrame({j: series(None, column) for j, column in enumerate(columns)})
    frame.columns = names
    return frame
