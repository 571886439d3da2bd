r"""The door to skops, which stores objects as their classes and attributes, in a zip archive.

skops constructs only what is trusted. Before it is asked to, every node of its schema is looked at here: the
few kinds of nodes that mercer writes, classes that mercer knows, arrays as long as they say, nothing
compressed, nothing that stands for something longer. So neither a flaw in how skops reads other nodes nor a
small file that unpacks to a large one matters.
"""

from __future__ import annotations

import io
import json
from math import prod
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from mercer.errors import InputError, require
from mercer.persist.known import named_class
from mercer.persist.rebuild import require_length
from mercer.runtime.imports import importing_skops

_PLAIN = {"dict": "DictNode", "list": "ListNode", "tuple": "TupleNode"}
_KEYS = {"str", "int", "float", "bool"}  # types that skops notes for the keys of a dict
_OLDEST_PROTOCOL = 2  # the oldest protocol of skops whose nodes are known here


def _skops() -> Any:
    with importing_skops():
        return require("skops.io", extra="models")


def write(packed: Any) -> bytes:
    """What ``walk.pack`` has made, as bytes."""
    return bytes(_skops().dumps(packed))


def read(payload: bytes, trusted: dict[str, Any]) -> Any:
    """What was written. Raises errors of all kinds where the bytes are no such archive."""
    return _skops().loads(payload, trusted=sorted(audit(payload, trusted)))


def audit(payload: bytes, trusted: dict[str, Any]) -> set[str]:
    """The names of the classes in an archive, all of which are known."""
    with ZipFile(io.BytesIO(payload)) as archive:
        _check_members(archive, len(payload))
        schema = json.loads(archive.read("schema.json"))
    if type(schema.get("protocol")) is not int or schema["protocol"] < _OLDEST_PROTOCOL:
        raise ValueError(f"skops's protocol is {schema.get('protocol')!r}")
    found: set[str] = set()
    owners: dict[Any, Any] = {}
    lengths: dict[Any, int] = {}
    for part, length in _parts(schema):
        if not isinstance(part, dict):
            continue
        if "__loader__" in part or "__module__" in part or "__class__" in part:
            found |= _check_node(part, trusted)
            number = part.get("__id__")
            if lengths.setdefault(number, length) != length and number is not None:
                raise ValueError("a node stands for a longer one")  # skops would follow it every time.
        if part.get("__loader__") == "NdArrayNode":
            _check_owner(part, owners)
    return found


def _parts(schema: Any) -> list[tuple[Any, int]]:
    """All that is in a JSON document, each with the number of things in it."""
    parts: list[Any] = [schema]
    parents = [-1]
    for i, part in enumerate(parts):  # The list grows meanwhile.
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        parts.extend(inner)
        parents.extend([i] * len(inner))
    lengths = [1] * len(parts)
    for i in range(len(parts) - 1, 0, -1):
        lengths[parents[i]] += lengths[i]
    return list(zip(parts, lengths, strict=True))


def _check_node(node: dict[str, Any], trusted: dict[str, Any]) -> set[str]:
    loader, module, name = (str(node.get(key)) for key in ("__loader__", "__module__", "__class__"))
    if [loader, module, name] != [node.get(key) for key in ("__loader__", "__module__", "__class__")]:
        raise ValueError("a node without a class")
    if loader == "ObjectNode":
        if named_class(module, name, trusted) is None:
            raise InputError(
                f"it holds an object of the class {name!r} of {module!r}, which mercer does not know: if the "
                f"class is yours, pass trusted=[{name}]"
            )
        return {f"{module}.{name}"}
    fits: dict[str, bool] = {
        "JsonNode": (module, name) == ("builtins", "str") and isinstance(node.get("content"), str),
        "NdArrayNode": (module, name) == ("numpy", "ndarray") and node.get("type") == "numpy",
        "RandomStateNode": module.startswith("numpy.random") and name == "RandomState",
        "TypeNode": module == "builtins" and name in _KEYS,
    }
    if not fits.get(loader, module == "builtins" and _PLAIN.get(name) == loader):
        raise InputError(
            f"it holds a {loader} of the class {name!r} of {module!r}, which mercer never writes"
        )
    return {f"{module}.{name}"} if loader == "RandomStateNode" else set()


def _check_owner(node: dict[str, Any], owners: dict[Any, Any]) -> None:
    """That the bytes of an array become one array: skops would read them anew for every other node."""
    name, number = node.get("file"), node.get("__id__")
    if not isinstance(name, str) or type(number) is not int or owners.setdefault(name, number) != number:
        raise ValueError("one array for the bytes of another")


def _check_members(archive: ZipFile, size: int) -> None:
    """That the parts of an archive are no more than what is there, and arrays as long as their heads say."""
    members = archive.infolist()
    if sum(member.file_size for member in members) > size:
        raise ValueError("its parts are larger than the whole")
    for member in members:
        if member.compress_type != ZIP_STORED or member.flag_bits & 1:
            raise ValueError("a part is compressed or encrypted")
        if member.filename.endswith(".npy"):
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                heads = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }
                shape, _, dtype = heads[version](file)
                if dtype.hasobject or file.tell() + prod(shape) * dtype.itemsize != member.file_size:
                    raise ValueError("an array is not as long as it says")
                require_length(shape, dtype.itemsize)
