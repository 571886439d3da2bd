r"""A model on its way into a file and back: objects as they are, and what they hold as ``Plain``.

skops stores an object as its class and its attributes. Here a shallow copy of every object is made whose
attributes are numbers, texts, arrays, further objects or ``Plain``: what skops writes quickly and reads
without doubt. Kernels keep nothing but their parameters, and check them again when they come back. An object
that is in two places of a model is one object again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.data.types import Model
from mercer.errors import InputError
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.expansion import Expansion
from mercer.kernels.base import Kernel
from mercer.persist.checks import check, check_reads_nothing, check_size
from mercer.persist.known import class_name
from mercer.persist.patterns import check_pattern
from mercer.persist.plain import Plain, decode, encode, is_array

_SCALARS = (bool, int, float, str)
_PLACES = {"checkpoint": None, "resume": False}


def pack(model: Model, trusted: dict[str, Any]) -> Any:
    """The model in a form that skops can store."""
    return _Packer(trusted).pack(model, "model")


def unpack(packed: Any, trusted: dict[str, Any]) -> Any:
    """The model again; it may share memory with what was packed."""
    return _Unpacker(trusted).unpack(packed)


class _Walk:
    def __init__(self, trusted: dict[str, Any]) -> None:
        self._trusted = trusted
        # What was seen is kept beside its result, so that its address is not used again.
        self._done: dict[int, tuple[Any, Any]] = {}
        self._sizes: dict[int, int] = {}  # the sizes of kernels, by address


class _Packer(_Walk):
    def pack(self, value: object, where: str) -> Any:
        if isinstance(value, StrEnum):
            value = str(value)
        if value is None or (type(value) in _SCALARS and not _is_huge(value)):
            return value
        if id(value) in self._done:
            return self._done[id(value)][1]
        if isinstance(value, np.memmap):
            value = np.array(value)
        if is_array(value) or type(value) is np.random.RandomState:
            return value
        if class_name(type(value), self._trusted) is not None and hasattr(value, "__dict__"):
            return self._copy(value, where)
        try:
            packed = encode(value, lambda item: self._object(item, where), self._trusted)
        except InputError as error:
            message = str(error)
            raise InputError(message if message.startswith(where) else f"{where}: {message}") from None
        self._done[id(value)] = (value, packed)
        return packed

    def _object(self, value: object, where: str) -> Any:
        """Something in a container that is not plain data."""
        kind = type(value)
        if kind is np.random.RandomState or is_array(value):
            return value
        if class_name(kind, self._trusted) is None or not hasattr(value, "__dict__"):
            raise InputError(
                f"{where} holds a {kind.__name__} of {kind.__module__}, which a model file cannot hold: "
                "leave it out, or turn it into numbers, texts or lists; a class of yours goes into "
                "trusted=[…], both of save and of load"
            )
        return self.pack(value, where)

    def _copy(self, value: object, where: str) -> Any:
        copy = object.__new__(type(value))
        self._done[id(value)] = (value, copy)
        names = value._names() if isinstance(value, Kernel) else tuple(vars(value))
        if isinstance(value, BaseEstimator):
            check_reads_nothing(value)
        if isinstance(value, BaseEstimator | Kernel):
            check_pattern(value, self._trusted)
        parts = _without_places(value, {name: vars(value)[name] for name in names})
        vars(copy).update({name: self.pack(part, f"{where}.{name}") for name, part in parts.items()})
        if isinstance(value, Kernel):
            check_size(value, self._sizes)
        return copy


def _without_places(value: object, parts: dict[str, Any]) -> dict[str, Any]:
    """The attributes, without the file that a fit would write its state to: a stranger shall not name one.

    A function is stored without what it has prepared.
    """
    if isinstance(value, Expansion):
        return {name: part for name, part in parts.items() if name in value.__getstate__()}
    if not isinstance(value, IterativeMixin):
        return parts
    return parts | {name: none for name, none in _PLACES.items() if name in parts}


def _is_huge(value: object) -> bool:
    """Whether it is a whole number that Python would not print."""
    return type(value) is int and value.bit_length() > 14_000


class _Unpacker(_Walk):
    def unpack(self, value: object) -> Any:
        if id(value) in self._done:
            return self._done[id(value)][1]
        if isinstance(value, Plain):
            found = decode(value, self.unpack, self._trusted)
            self._done[id(value)] = (value, found)
            return found
        self._done[id(value)] = (value, value)
        if (
            value is None
            or type(value) in _SCALARS
            or is_array(value)
            or type(value) is np.random.RandomState
        ):
            return value
        if class_name(type(value), self._trusted) is None or not hasattr(value, "__dict__"):
            raise TypeError(f"a {type(value).__name__}, which is never written so")
        for name, part in _without_places(value, dict(vars(value))).items():
            vars(value)[name] = self.unpack(part)
        check(value, self._sizes, self._trusted)
        return value
