r"""Dynamic programming over pairs of sequences, many pairs at a time.

The table of one pair is filled cell by cell, each from its neighbours: nothing for a processor to do in
parallel. So ``LANES`` pairs go through the loops together, one in each lane: a sequence x against as many
others, of about the same length, padded with a letter that equals no other.

A kernel supplies two compiled functions. ``sweep_rows(values, starts, stops, B, out, *settings)`` compares
sequences with the columns of B (m, LANES); ``sweep_pairs(A, B, out, *settings)`` those of A with those of B.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.kernels.structured import Ragged

#: Pairs that are compared at a time: their float64 numbers fill two of the widest vector registers.
LANES = 16
#: letters that equal no other letter, and not each other
_NO_ROW, _NO_COLUMN = -1, -2


def paired(X: Ragged, Y: Ragged | None, sweep_rows: Callable[..., None], *settings: Any) -> np.ndarray:
    """The (n, m) values of all pairs, a group of LANES columns at a time."""
    others = X if Y is None else Y
    order = np.argsort(others.lengths, kind="stable")
    if Y is None:
        X = X[order]
    K = np.zeros((len(X), len(others)))
    for first in range(0, len(others), LANES):
        group = others[order[first : first + LANES]]
        B = packed(group, _NO_COLUMN)
        rows = X if Y is not None else X[first:]
        out = np.empty((len(rows), LANES))
        sweep_rows(rows.values, rows.starts, rows.stops, B, out, *settings)
        if Y is not None:
            K[:, order[first : first + LANES]] = out[:, : len(group)]
        else:
            K[first:, first : first + len(group)] = out[:, : len(group)]
    if Y is None:
        K[np.ix_(order, order)] = np.tril(K) + np.tril(K, -1).T
    return K


def self_paired(X: Ragged, sweep_pairs: Callable[..., None], *settings: Any) -> np.ndarray:  # (n,)
    """The value of every sequence with itself."""
    order = np.argsort(X.lengths, kind="stable")
    values = np.empty(len(X))
    for first in range(0, len(X), LANES):
        here = order[first : first + LANES]
        out = np.empty(LANES)
        sweep_pairs(packed(X[here], _NO_ROW), packed(X[here], _NO_COLUMN), out, *settings)
        values[here] = out[: len(here)]
    return values


def packed(X: Ragged, padding: int) -> np.ndarray:  # (longest, LANES) int64
    """Up to LANES sequences side by side."""
    letters = np.full((int(X.lengths.max(initial=0)), LANES), padding, np.int64)
    for lane in range(len(X)):
        row = X.row(lane)
        letters[: len(row), lane] = row
    return letters
