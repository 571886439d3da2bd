r"""NumPy's files: a matrix, a structured array, or an archive with X and y.

>>> import io
>>> stream = io.BytesIO()
>>> np.savez(stream, X=np.eye(2), y=np.array([0, 1]))
>>> sorted(columns_of(stream.getvalue(), "t.npz"))
['target', 'x1', 'x2']
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.tables.intake import require_room
from mercer.tables.table import LABEL

#: what the points and the targets are called in archives, the first found first
_POINTS = (("X", "x", "data", "features"), ("X_train", "x_train"))
_TARGETS = (("y", "Y", "target", "labels", "label"), ("y_train", "Y_train"))


def columns_of(content: bytes, name: str) -> dict[str, np.ndarray]:
    """The columns by name: x1, x2, … and target, or the names that the file has."""
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _of_array(loaded, name)
        with loaded:
            require_room(sum(item.file_size for item in loaded.zip.infolist()), name)  # They may be packed.
            return _of_archive({key: loaded[key] for key in loaded.files}, name)
    except InputError:
        raise
    except Exception as error:  # a damaged file fails in many ways: zip, header, number of bytes
        if "allow_pickle" in str(error):
            raise InputError(
                f"{name} holds Python objects, which are not read because reading them could run code: save "
                "numbers or texts"
            ) from None
        raise InputError(f"{name} is damaged or cut off: it cannot be read as NumPy's ({error})") from None


def _of_array(array: np.ndarray, name: str) -> dict[str, np.ndarray]:
    if array.dtype.names:
        return {field: _usable(array[field], f"{name}, {field!r}") for field in array.dtype.names}
    if array.ndim != 2 or array.size == 0:
        raise InputError(
            f"{name} must be a matrix, one row per point, got shape {array.shape}: save a 2-D array"
        )
    array = _usable(array, name)
    return {f"x{j + 1}": array[:, j] for j in range(array.shape[1])}


def _of_archive(arrays: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    for points, targets in zip(_POINTS, _TARGETS, strict=True):
        key = next((key for key in points if key in arrays), None)
        label = next((key for key in targets if key in arrays), None)
        if key is None or (label is None and len(arrays) > 1):
            continue
        columns = _of_array(arrays[key], f"{name}, {key!r}")
        if label is not None:
            target = _usable(arrays[label], f"{name}, {label!r}")
            target = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
            if target.shape != (len(arrays[key]),):
                raise InputError(
                    f"{name} has {key!r} of shape {arrays[key].shape} and {label!r} of shape {target.shape}: "
                    "save one target per row"
                )
            columns[LABEL] = target
        return columns
    if len(arrays) == 1:
        ((key, array),) = arrays.items()
        return _of_array(array, f"{name}, {key!r}")
    if (
        arrays
        and len({array.shape for array in arrays.values()}) == 1
        and next(iter(arrays.values())).ndim == 1
    ):
        return {key: _usable(array, f"{name}, {key!r}") for key, array in arrays.items()}
    has = ", ".join(f"{key} {array.shape}" for key, array in list(arrays.items())[:8]) or "nothing"
    raise InputError(f"{name} has no matrix X and targets y, it has {has}: save np.savez(path, X=…, y=…)")


def _usable(array: np.ndarray, name: str) -> Any:
    if array.dtype.kind not in "biufUSMm":
        raise InputError(
            f"{name} holds {array.dtype}, which is neither numbers, texts nor dates: save one of these"
        )
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
