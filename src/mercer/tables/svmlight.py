r"""LIBSVM (svmlight) files: a label and the non-zero features of a row in each line.

>>> table = read_svmlight("+1 1:0.5 3:2 # first\n-1 2:1\n", "t.libsvm")
>>> table.matrix.toarray(), table.labels
(array([[0. , 0.5, 0. , 2. ],
       [0. , 0. , 1. , 0. ]]), array([ 1., -1.]))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import InputError
from mercer.runtime.config import memory_budget
from mercer.tables.frames import frame_of
from mercer.tables.table import LABEL, Table

#: columns up to which it becomes a frame, as any other table
_DENSE = 2000
_LARGEST_INDEX = 2**62  # an index below it, and one more, is a whole number of 64 bits
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
    """The table: sparse, and as a frame too where it has few columns.

    Column j of the matrix is the feature with index j, whether a file begins at 0 or at 1: two files agree on
    what a column is, also where one of them happens to have no index 0. A frame calls it xj.
    """
    labels, lines, row_ends, indices, values = _parse(text, name)
    if not indices.size:
        raise InputError(f"{name} has labels and no features: pass lines such as '1 3:0.5 7:1'")
    first, width = min(int(indices.min()), 1), int(indices.max()) + 1
    lengths = np.diff(row_ends)
    matrix = sparse.csr_array((values, indices, row_ends), shape=(len(labels), width))
    matrix.sum_duplicates()
    twice = np.diff(matrix.indptr) < lengths
    if twice.any():
        raise InputError(
            f"line {lines[int(np.argmax(twice))]} of {name} has an index twice: give each feature one value"
        )
    return _table(matrix, _numbers(labels), first, name)


def stacked_svmlight(tables: Sequence[Table], name: str) -> Table:
    """The rows of several such tables; one that ends with an earlier column has zeros there."""
    width = max(int(table.matrix.shape[1]) for table in tables if table.matrix is not None)
    kinds = {str(table.labels.dtype): table.name for table in tables if table.labels is not None}
    if len(kinds) > 1:
        raise InputError(
            f"the labels of {kinds['float64']} are numbers and those of {kinds['object']} are texts: write "
            "them in one way"
        )
    matrix = sparse.vstack([table.as_wide_as(width) for table in tables], format="csr")
    first = min(table.first for table in tables)
    return _table(matrix, np.concatenate([table.labels for table in tables]), first, name)


def _table(matrix: sparse.csr_array, numbers: np.ndarray, first: int, name: str) -> Table:
    frame, width = None, matrix.shape[1]
    if width <= _DENSE and 8 * matrix.shape[0] * width * 2 <= memory_budget():
        dense = matrix.toarray()
        frame = frame_of({LABEL: numbers} | {f"x{j}": dense[:, j] for j in range(first, width)})
    note = "" if first else ", whose indices begin at 0"
    return Table(
        frame,
        name,
        "libsvm",
        (f"{name} is a LIBSVM file{note}: its labels are the column {LABEL!r}",),
        matrix=matrix,
        labels=numbers,
        label=LABEL,
        first=first,
    )


def _parse(text: str, name: str) -> tuple[list[str], list[int], np.ndarray, np.ndarray, np.ndarray]:
    """Labels, the lines they are in, where rows end, indices and values."""
    labels, lines, ends, indices, values = [], [], [0], [], []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        labels.append(words[0])
        lines.append(number)
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
    if indices and not 0 <= min(indices) <= max(indices) < _LARGEST_INDEX:
        wrong = next(index for index in indices if not 0 <= index < _LARGEST_INDEX)
        raise InputError(f"{name} has a feature with the index {wrong}: indices are from 0 or 1 to 2^62")
    found = np.array(values, dtype=np.float64)
    if not np.isfinite(found).all():
        raise InputError(f"{name} has a value that is not finite: leave such features out")
    return labels, lines, np.array(ends), np.array(indices, dtype=np.int64), found


def _numbers(labels: list[str]) -> Any:
    """Numbers where all are, else the texts."""
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        return np.array(labels, dtype=object)
