r"""LIBSVM (svmlight) files: a label and the non-zero features of a row in each line.

>>> table = read_svmlight("+1 1:0.5 3:2 # first\n-1 2:1\n", "t.libsvm")
>>> table.matrix.toarray(), table.labels
(array([[0.5, 0. , 2. ],
       [0. , 1. , 0. ]]), array([ 1., -1.]))
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse

from mercer.config import memory_budget
from mercer.errors import InputError
from mercer.tables.frames import frame_of
from mercer.tables.table import LABEL, Table

__all__ = ["is_svmlight", "read_svmlight"]

#: columns up to which it becomes a frame, as any other table
_DENSE = 2000
_LINE = re.compile(r"[^\s:,;]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?")
_LABEL_ONLY = re.compile(r"[+-]?\d+(\.\d*)?\s*(#.*)?")


def is_svmlight(text: str) -> bool:
    r"""Whether the first lines are a label and pairs of index and value each.

    >>> is_svmlight("1 3:0.5 7:1\n-1 2:1\n"), is_svmlight("a,b\n1,2\n"), is_svmlight("12:30 ok\n")
    (True, False, False)
    """
    lines = [line.strip() for line in text[:20000].splitlines()[:20]]
    lines = [line for line in lines if line and not line.startswith("#")]
    lines = lines[:-1] if len(text) > 20000 else lines
    matches = [bool(_LINE.fullmatch(line)) for line in lines]
    return any(matches) and all(
        match or _LABEL_ONLY.fullmatch(line) for match, line in zip(matches, lines, strict=True)
    )


def read_svmlight(text: str, name: str) -> Table:
    """The table: sparse, and as a frame too where it has few columns."""
    labels, row_ends, indices, values = _parse(text, name)
    if indices.size and indices.min() < 0:
        raise InputError(f"{name} has a feature with a negative index: indices begin at 1, or at 0")
    first = 0 if indices.size and indices.min() == 0 else 1
    width = int(indices.max()) - first + 1 if indices.size else 0
    if width <= 0:
        raise InputError(f"{name} has labels and no features: pass lines such as '1 3:0.5 7:1'")
    matrix = sparse.csr_array((values, indices - first, row_ends), shape=(len(row_ends) - 1, width))
    matrix.sum_duplicates()
    numbers = _numbers(labels)
    frame = None
    if width <= _DENSE and 8 * matrix.shape[0] * width * 2 <= memory_budget():
        dense = matrix.toarray()
        frame = frame_of({LABEL: numbers} | {f"x{j + 1}": dense[:, j] for j in range(width)})
    note = "" if first else ", whose indices begin at 0"
    return Table(
        frame,
        name,
        "libsvm",
        (f"{name} is a LIBSVM file{note}: its labels are the column {LABEL!r}",),
        matrix=matrix,
        labels=numbers,
        label=LABEL,
    )


def _parse(text: str, name: str) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    labels, ends, indices, values = [], [0], [], []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        labels.append(words[0])
        try:
            for word in words[1:]:
                index, _, value = word.partition(":")
                if index != "qid":
                    indices.append(int(index))
                    values.append(float(value))
        except ValueError:
            raise InputError(
                f"line {number} of {name} has {word!r} where a LIBSVM file has index:value: correct it"
            ) from None
        ends.append(len(indices))
    found = np.array(values, dtype=np.float64)
    if not np.isfinite(found).all():
        raise InputError(f"{name} has a value that is not finite: leave such features out")
    return labels, np.array(ends), np.array(indices, dtype=np.int64), found


def _numbers(labels: list[str]) -> Any:
    """Numbers where all are, else the texts."""
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels, dtype=object)
