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
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.kernels.columns.cells import values as column_values
from mercer.kernels.graphs.graph import Graph
from mercer.kernels.trees.tree import Tree, _flat
from mercer.persist.known import class_name, function_name, is_function, type_name
from mercer.persist.rebuild import (
    CONTAINERS,
    DICTS,
    LONGEST_RANGE,
    MOMENTS,
    NUMERIC,
    SEQUENCES,
    SPARSE,
    Room,
    container,
    count,
    from_bytes,
    is_named_tuple,
    pop,
    rebuild,
    require_width,
)

_INLINE_CHARACTERS = 2000  # Tokens of up to so many characters stay a text in the schema.
#: An array of at least so many bytes has a file of its own, written once, wherever it is in the model.
_OWN_FILE_BYTES = 1 << 16
_SCALARS = frozenset({type(None), bool, int, float, str})
_CONSTANTS = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}


class Plain:
    """Plain data, packed."""

    def __init__(self, tokens: Any, content: Any, objects: list[Any]) -> None:
        self.tokens, self.content, self.objects = tokens, content, objects


def refuse(value: object) -> Any:
    """Refuse an object that is not plain data."""
    raise InputError(f"a model file cannot hold a {type(value).__name__}")


def is_array(value: object) -> bool:
    """Whether it is an array that is stored byte for byte."""
    return type(value) is np.ndarray and not value.dtype.hasobject and value.dtype.itemsize > 0


# --- writing ---------------------------------------------------------------------------------------------


def encode(value: Any, pack: Callable[[Any], Any], trusted: Any = ()) -> Plain:
    """Pack plain data; ``pack`` turns an object with a class of its own into what skops is to store."""
    tokens: list[Any] = []
    content: list[bytes] = []
    objects: list[Any] = []
    waiting = [value]
    inside: set[int] = set()  # the addresses of the containers that are open
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
        elif is_array(item) and item.nbytes >= _OWN_FILE_BYTES:
            tokens.append(["object", len(objects)])
            objects.append(pack(item))
        elif (kind is np.ndarray or isinstance(item, np.generic)) and item.dtype.kind in NUMERIC:
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
        text if len(text) <= _INLINE_CHARACTERS else np.frombuffer(text.encode(), np.uint8),
        np.frombuffer(block, np.uint8) if block else None,
        objects,
    )


class _End:
    """Marks the place where a container ends."""

    def __init__(self, address: int) -> None:
        self.address = address


def _container_parts(item: Any) -> tuple[list[Any], list[Any]] | None:
    kind = type(item)
    if kind in SEQUENCES:
        name, items = SEQUENCES[kind], list(item)
    elif kind in DICTS:
        name, items = DICTS[kind], [*item, *item.values()]
    else:
        return None
    if _SCALARS.issuperset(map(type, items)):  # The JSON writer takes such a list as a whole.
        return [name, items], []
    return [name, len(items)], items


def _parts(item: Any, trusted: Any) -> tuple[list[Any], list[Any]] | None:
    """The token of something made of parts, and the parts; None for an object that is not known here."""
    kind = type(item)
    if kind is np.ndarray and item.dtype == object:
        return ["objects", list(item.shape)], [list(item.flat)]
    if kind is np.ma.MaskedArray:
        return ["masked"], [np.asarray(item.data), np.ma.getmaskarray(item)]
    if kind in SPARSE.values():
        require_width(item.shape, item.data)
        return ["sparse", kind.__name__, list(item.shape)], [item.data, item.indices, item.indptr]
    if is_named_tuple(kind) and class_name(kind, trusted or {}) is not None:
        return ["named", kind.__module__, kind.__qualname__, len(item)], list(item)
    if kind is Tree:
        return ["tree"], list(_flat(item, "the tree"))
    if kind is Graph:
        return ["graph"], [item.adjacency, item.labels, item.edge_labels, item.attributes]
    if kind in MOMENTS:
        return [MOMENTS[kind], item.isoformat()], []
    if kind is timedelta:
        return ["timedelta", item.days, item.seconds, item.microseconds], []
    if kind is Decimal:
        return ["decimal", str(item)], []
    if kind is complex:
        return ["complex", item.real, item.imag], []
    if kind is range and len(item) > LONGEST_RANGE:
        raise InputError(
            f"a model file cannot hold a range of {len(item)} numbers: turn it into an array, np.arange(…)"
        )
    if kind is range or kind is slice:
        return [kind.__name__], [item.start, item.stop, item.step]
    if isinstance(item, np.dtype) and item.kind in NUMERIC:
        return ["dtype", item.str], []
    if isinstance(item, type) and (name := type_name(item)) is not None:
        return ["type", name], []
    if is_function(item):
        return ["function", *function_name(item, trusted)], []
    return _foreign_parts(item)


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
    room = Room(len(text) + len(content))
    # Children come before their parents. Every NaN is one object, for code that looks objects up.
    for token in reversed(json.loads(text, parse_constant=_CONSTANTS.__getitem__)):
        if type(token) is not list:
            stack.append(token)
            continue
        name, *facts = token
        if name in ("array", "scalar", "bytes", "bytearray"):
            value, end = from_bytes(name, facts, content, end)
        elif name == "object":
            item = packed.objects[count(facts[0])]
            if isinstance(item, Plain):  # We never write this: nested packs could grow without bound.
                raise ValueError("plain data in the place of an object")
            value = unpack(item)
        elif name in CONTAINERS:
            (items,) = facts
            value = container(CONTAINERS[name], items if type(items) is list else pop(stack, items))
        else:
            value = rebuild(name, facts, stack, trusted, room)
        stack.append(value)
    (value,) = stack
    if end:
        raise ValueError("more bytes than arrays")
    return value
