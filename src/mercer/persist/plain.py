r"""Plain data as one text and one block of bytes: lists, dicts, arrays, tables, trees, graphs.

A model on objects holds thousands of them. Each would be a node of its own in skops's schema; here a
container becomes a flat list of tokens, parents before their children, written as JSON:

    [("a", 1), {2.5}]   →   [["list", 2], ["tuple", ["a", 1]], ["set", [2.5]]]

A token that is a list opens something, the others are values. Arrays and bytes lie one after the other in
``content``; objects that have a class of their own are in ``objects``, for skops. Nothing here calls itself,
so that data may be as deep as memory allows, and nothing is longer than what is there: no file can ask for
more memory than it has bytes.

>>> packed = encode([("a", 1), {2.5}, np.arange(3)], refuse)
>>> packed.tokens
'[["list", 3], ["tuple", ["a", 1]], ["set", [2.5]], ["array", "<i8", [3], "C"]]'
>>> decode(packed, refuse)
[('a', 1), {2.5}, array([0, 1, 2])]
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from mercer.errors import InputError
from mercer.kernels.cells import values as column_values
from mercer.kernels.graph import Graph
from mercer.kernels.trees import Tree, _flat, _from_flat
from mercer.persist.known import (
    class_name,
    function_name,
    is_function,
    named_class,
    named_function,
    named_type,
    type_name,
)

__all__ = ["Plain", "decode", "encode", "is_array", "refuse"]

_SHORT = 2000  # characters of tokens that stay a text, in the schema
_LARGE = 1 << 16  # bytes from which an array has a file of its own: once, wherever it is in the model
_SCALARS = frozenset({type(None), bool, int, float, str})
_SEQUENCES: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_DICTS: dict[type, str] = {dict: "dict", OrderedDict: "OrderedDict", Counter: "Counter", Bunch: "Bunch"}
_SPARSE = {
    kind.__name__: kind for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.csc_matrix)
}
_MOMENTS: dict[type, str] = {date: "date", datetime: "datetime", time: "time"}
_BY_NAME: dict[str, Any] = {name: kind for kind, name in {**_SEQUENCES, **_DICTS, **_MOMENTS}.items()}
_CONSTANTS = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
#: kinds of arrays whose bytes are all there is to them
_NUMERIC = frozenset("biufcSUmM")


class Plain:
    """Plain data, packed."""

    def __init__(self, tokens: Any, content: Any, objects: list[Any]) -> None:
        self.tokens, self.content, self.objects = tokens, content, objects


def refuse(value: Any) -> Any:
    """What is done with an object that is not plain data, where nobody knows better."""
    raise InputError(f"a model file cannot hold a {type(value).__name__}")


def is_array(value: Any) -> bool:
    """Whether it is an array that is stored byte for byte."""
    return type(value) is np.ndarray and not value.dtype.hasobject and value.dtype.itemsize > 0


# --- writing ---------------------------------------------------------------------------------------------


def encode(value: Any, pack: Callable[[Any], Any], trusted: Any = ()) -> Plain:
    """Pack plain data; ``pack`` turns an object with a class of its own into what skops is to store."""
    tokens: list[Any] = []
    content: list[bytes] = []
    objects: list[Any] = []
    waiting = [value]
    inside: set[int] = set()  # addresses of what is open
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind in _SCALARS:
            tokens.append(item)
        elif kind is _End:
            inside.remove(item.address)
        elif kind is bytes or kind is bytearray:
            tokens.append([kind.__name__, len(item)])
            content.append(bytes(item))
        elif is_array(item) and item.nbytes >= _LARGE:
            tokens.append(["object", len(objects)])
            objects.append(pack(item))
        elif (kind is np.ndarray or isinstance(item, np.generic)) and item.dtype.kind in _NUMERIC:
            order = "F" if item.flags.f_contiguous and not item.flags.c_contiguous else "C"
            what = "array" if kind is np.ndarray else "scalar"
            tokens.append([what, item.dtype.str, list(item.shape), order])
            content.append(item.tobytes(order))
        elif (parts := _container_parts(item) or _parts(item, trusted)) is not None:
            token, children = parts
            tokens.append(token)
            if children:
                if id(item) in inside:
                    raise InputError(f"a {kind.__name__} holds itself: it cannot be written to a file")
                inside.add(id(item))
                waiting.extend([_End(id(item)), *reversed(children)])
        else:
            tokens.append(["object", len(objects)])
            objects.append(pack(item))
    try:
        text = json.dumps(tokens)
    except ValueError:
        raise InputError(
            "a model file cannot hold a whole number of thousands of digits: turn it into a text or a float"
        ) from None
    block = b"".join(content)
    return Plain(
        text if len(text) <= _SHORT else np.frombuffer(text.encode(), np.uint8),
        np.frombuffer(block, np.uint8) if block else None,
        objects,
    )


class _End:
    """Where something that was opened ends."""

    def __init__(self, address: int) -> None:
        self.address = address


def _container_parts(item: Any) -> tuple[list[Any], list[Any]] | None:
    kind = type(item)
    if kind in _SEQUENCES:
        name, items = _SEQUENCES[kind], list(item)
    elif kind in _DICTS:
        name, items = _DICTS[kind], [*item, *item.values()]
    else:
        return None
    if _SCALARS.issuperset(map(type, items)):  # at the speed of the JSON writer
        return [name, items], []
    return [name, len(items)], items


def _parts(item: Any, trusted: Any) -> tuple[list[Any], list[Any]] | None:
    """The token of something made of parts, and the parts; None for an object that is not known here."""
    kind = type(item)
    if kind is np.ndarray and item.dtype == object:
        return ["objects", list(item.shape)], [list(item.flat)]
    if kind is np.ma.MaskedArray:
        return ["masked"], [np.asarray(item.data), np.ma.getmaskarray(item)]
    if kind in _SPARSE.values():
        return ["sparse", kind.__name__, list(item.shape)], [item.data, item.indices, item.indptr]
    if _is_named_tuple(kind) and class_name(kind, trusted or {}) is not None:
        return ["named", kind.__module__, kind.__qualname__, len(item)], list(item)
    if kind is Tree:
        return ["tree"], list(_flat(item, "the tree"))
    if kind is Graph:
        return ["graph"], [item.adjacency, item.labels, item.edge_labels, item.attributes]
    if kind in _MOMENTS:
        return [_MOMENTS[kind], item.isoformat()], []
    if kind is timedelta:
        return ["timedelta", item.days, item.seconds, item.microseconds], []
    if kind is Decimal:
        return ["decimal", str(item)], []
    if kind is complex:
        return ["complex", item.real, item.imag], []
    if kind is range or kind is slice:
        return [kind.__name__], [item.start, item.stop, item.step]
    if isinstance(item, np.dtype) and item.kind in _NUMERIC:
        return ["dtype", item.str], []
    if isinstance(item, type) and (name := type_name(item)) is not None:
        return ["type", name], []
    if is_function(item):
        return ["function", *function_name(item, trusted)], []
    return _foreign_parts(item)


def _is_named_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and kind.__bases__ == (tuple,) and hasattr(kind, "_fields")


def _foreign_parts(item: Any) -> tuple[list[Any], list[Any]] | None:
    """Data frames and their missing values, by the names of their types: neither library is imported here."""
    library, name = type(item).__module__.partition(".")[0], type(item).__name__
    if library == "pandas" and name in ("NAType", "NaTType"):
        return ["missing"], []
    if library == "pandas" and name == "Timestamp":
        return ["datetime", item.to_pydatetime(warn=False).isoformat()], []
    if library in ("pandas", "polars") and name == "DataFrame":
        columns = [column_values(item, j) for j in range(item.shape[1])]
        return ["frame", library], [list(item.columns), columns]
    if library in ("pandas", "polars") and name == "Series":
        return ["series", library], [item.name, np.asarray(item.to_numpy())]
    return None


# --- reading ---------------------------------------------------------------------------------------------


def decode(packed: Plain, unpack: Callable[[Any], Any], trusted: Any = ()) -> Any:
    """The data that were packed; ``unpack`` finishes what skops has made of an object.

    What does not fit together raises an error of whatever kind: the caller says that the file is damaged.
    """
    text = packed.tokens if isinstance(packed.tokens, str) else packed.tokens.tobytes()
    content = memoryview(b"" if packed.content is None else packed.content.tobytes())
    end = len(content)
    stack: list[Any] = []
    # children come before their parents; every NaN is one object, for code that looks objects up
    for token in reversed(json.loads(text, parse_constant=_CONSTANTS.__getitem__)):
        if type(token) is not list:
            stack.append(token)
            continue
        name, *facts = token
        if name in ("array", "scalar", "bytes", "bytearray"):
            value, end = _from_bytes(name, facts, content, end)
        elif name == "object":
            value = unpack(packed.objects[_count(facts[0])])
        elif name in _BY_NAME and name not in _MOMENTS.values():
            (items,) = facts
            value = _container(_BY_NAME[name], items if type(items) is list else _pop(stack, items))
        else:
            value = _rebuild(name, facts, stack, trusted)
        stack.append(value)
    (value,) = stack
    if end:
        raise ValueError("more bytes than arrays")
    return value


def _count(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no number of things")
    return number


def _pop(stack: list[Any], number: Any) -> list[Any]:
    """The topmost values, the last one first: they came in reverse."""
    if _count(number) > len(stack):
        raise ValueError("more children than values")
    split = len(stack) - number
    taken = stack[split:][::-1]
    del stack[split:]
    return taken


def _container(kind: Any, items: list[Any]) -> Any:
    if kind not in _DICTS:
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


def _from_bytes(name: str, facts: list[Any], content: memoryview, end: int) -> tuple[Any, int]:
    """An array, a scalar or bytes that end at some place of the content, and the place where they begin."""
    if name in ("bytes", "bytearray"):
        start = end - _count(facts[0])
        if start < 0:
            raise ValueError("more bytes than there are")
        return (bytes if name == "bytes" else bytearray)(content[start:end]), start
    text, shape, order = facts
    dtype = np.dtype(str(text))
    if dtype.kind not in _NUMERIC or dtype.itemsize == 0 or order not in ("C", "F"):
        raise ValueError(f"no array of numbers: {text!r}")
    start = end - prod(map(_count, shape)) * dtype.itemsize
    if start < 0:
        raise ValueError("more numbers than there are")
    flat = np.frombuffer(content[start:end], dtype) if start < end else np.empty(0, dtype)
    array = np.array(
        flat.reshape(shape, order=order), order=order
    )  # a copy: aligned, and one may write to it
    return (array if name == "array" else array[()]), start


def _rebuild(name: Any, facts: list[Any], stack: list[Any], trusted: Any) -> Any:
    if name == "missing":
        return None
    if name in _MOMENTS.values():
        return _BY_NAME[name].fromisoformat(*facts)
    if name in ("timedelta", "decimal", "complex"):
        return {"timedelta": timedelta, "decimal": Decimal, "complex": complex}[name](*facts)
    if name in ("range", "slice"):
        return (range if name == "range" else slice)(*_pop(stack, 3))
    if name == "dtype":
        return np.dtype(str(facts[0]))
    if name == "type":
        return named_type(facts[0])
    if name == "function":
        return named_function(facts[0], facts[1], trusted)
    if name == "named":
        made = named_class(facts[0], facts[1], trusted or {})
        if not _is_named_tuple(made):
            raise InputError(f"it names the tuple {facts[1]!r} of {facts[0]!r}, which mercer does not know")
        return made._make(_pop(stack, facts[2]))  # type: ignore[union-attr]
    if name == "tree":
        return _from_flat(*_pop(stack, 2))
    if name == "graph":
        return Graph(*_pop(stack, 4))
    if name == "masked":
        return np.ma.MaskedArray(*_pop(stack, 2))
    if name == "objects":
        (shape,), (items,) = facts, _pop(stack, 1)
        return np.fromiter(items, dtype=object, count=len(items)).reshape(shape)
    if name == "sparse":
        kind, shape = facts
        data, indices, indptr = _pop(stack, 3)
        matrix = _SPARSE[kind]((data, indices, indptr), shape=tuple(map(_count, shape)))
        matrix.check_format(full_check=True)  # compiled code trusts the indices
        return matrix
    if name in ("frame", "series"):
        return _table(name, *facts, *_pop(stack, 2))
    raise ValueError(f"nothing is called {name!r}")


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
        if library == "pandas":
            return frames.Series(values, name=name, dtype=values.dtype)  # texts stay objects
        return frames.Series(name, values.tolist() if values.dtype == object else values, strict=False)

    if what == "series":
        return series(names, columns)
    if library == "polars":
        return frames.DataFrame([series(*pair) for pair in zip(names, columns, strict=True)])
    frame = frames.DataFrame({j: series(None, column) for j, column in enumerate(columns)})
    frame.columns = names
    return frame
