r"""How many pairs of words two sequences have in common, kind of word by kind of word, without a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.kernels.strings.kmers import SPARE, Words, numbered
from mercer.runtime.native import OPTIONS, njit


@dataclass(frozen=True)
class Shifted:
    """Words that count for the shifts first … last of 0 … shifts - 1; nearly all count for all shifts."""

    words: Words
    first: np.ndarray  # (words,)
    last: np.ndarray  # (words,)
    shifts: int


def add_products(K: np.ndarray, x: Shifted, y: Shifted | None) -> None:  # K (n, m) int64
    """K[i, j] += Σ, over equal words of row i of x and row j of y, of the shifts for which both are there.

    y = None stands for x, and then only i ≥ j is computed. Both were numbered together. For many kinds of
    words one after the other: what one kind needs stays in cache, which a table of all kinds would not.
    """
    others = x if y is None else y
    mine, theirs, width = x.words.codes, others.words.codes, x.words.width
    if width > SPARE * (len(mine) + len(theirs)) + 1024:
        codes, width = numbered(mine if y is None else np.concatenate([mine, theirs]))
        mine, theirs = codes[: len(mine)], codes[len(codes) - len(theirs) :]
    _products(
        K, x.words.rows, mine, x.first, x.last,
        others.words.rows, theirs, others.first, others.last, width, x.shifts, y is None,
    )  # fmt: skip


@njit(nogil=True, cache=True, **OPTIONS)
def _products(K, rows, columns, first, last, rows2, columns2, first2, last2, width, shifts, same):  # type: ignore[no-untyped-def]
    """Buckets of (row, times) by column, filled as rows of x come when x is compared with itself.

    Words that are not there for all shifts have an entry each, with -1 - their position for times.
    """
    begin = np.zeros(width + 1, np.int64)
    for c in columns2:
        begin[c + 1] += 1
    for c in range(width):
        begin[c + 1] += begin[c]
    end = begin[:-1].copy()
    bucket = np.empty((len(columns2), 2), np.int32)
    put = 0  # the number of other words that are in their buckets
    t = 0
    while t < len(columns):
        row = rows[t]
        while put < len(columns2) and (not same or rows2[put] <= row):
            c = columns2[put]
            e = end[c]
            always = last2[put] - first2[put] + 1 == shifts
            if always and e > begin[c] and bucket[e - 1, 0] == rows2[put] and bucket[e - 1, 1] > 0:
                bucket[e - 1, 1] += 1
            else:
                bucket[e, 0] = rows2[put]
                bucket[e, 1] = 1 if always else -1 - put
                end[c] = e + 1
            put += 1
        values = K[row]
        while t < len(columns) and rows[t] == row:
            size = last[t] - first[t] + 1
            for e in range(begin[columns[t]], end[columns[t]]):
                times = bucket[e, 1]
                if times > 0:
                    values[bucket[e, 0]] += size * times
                else:
                    other = -1 - times
                    common = min(last[t], last2[other]) - max(first[t], first2[other]) + 1
                    values[bucket[e, 0]] += max(common, 0)
            t += 1


def squares(x: Words, n: int) -> np.ndarray:  # (n,)
    """For each of n sequences, how many pairs of its own words are equal.

    >>> from mercer.kernels.strings.kmers import words
    >>> from mercer.kernels.structured import encode_sequences
    >>> squares(words(encode_sequences(["abab", "b"]), 2), 2)
    array([5., 0.])
    """
    narrow = x.narrow()
    return _squares(narrow.rows, narrow.codes, n, narrow.width)


@njit(nogil=True, cache=True, **OPTIONS)
def _squares(rows, columns, n, width):  # type: ignore[no-untyped-def]
    """c² = 1 + 3 + … + (2c - 1): each word adds as it comes."""
    total = np.zeros(n)
    last = np.full((width, 2), -1, np.int32)  # the last sequence that had the word, and how often it had it
    t = 0
    while t < len(columns):
        row, pairs = rows[t], 0
        while t < len(columns) and rows[t] == row:
            c = columns[t]
            times = last[c, 1] + 1 if last[c, 0] == row else 1
            last[c, 0], last[c, 1] = row, times
            pairs += 2 * times - 1
            t += 1
        total[row] = pairs
    return total
