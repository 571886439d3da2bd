r"""The words of k letters in sequences, as numbers, and tables of how often each comes.

A word u₁…u_k over letters 0 … a-1 is the number Σⱼ uⱼ a^{k-j}. Where that would not fit 63 bits, what has
been read so far is numbered anew, 0, 1, …, before it goes on: at most as many numbers as there are words in
the data. So words are never confused, whatever k and the letters are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data.types import Objects
from mercer.kernels.counting import count
from mercer.kernels.structured import Ragged
from mercer.runtime.config import require_memory
from mercer.runtime.native import OPTIONS, njit

_LARGEST_CODE = 2**62  # The codes of words stay below this bound, and so fit into an int64.
#: A table has a column for each possible word where these are at most so many times the words that are there.
SPARE = 4


@dataclass(frozen=True)
class Words:
    """Numbered words, those of one sequence after those of the one before; they weigh ``weight`` each."""

    rows: np.ndarray  # (words,) the sequence that each word is in, ascending
    codes: np.ndarray  # (words,) int64
    width: int  # All codes are below this.
    weight: float = 1.0

    def narrow(self) -> Words:
        """The words with new codes, where a table of all possible words would be mostly empty."""
        if self.width <= SPARE * len(self.codes) + 1024:
            return self
        return Words(self.rows, *numbered(self.codes), self.weight)


def words(sequences: Ragged, k: int, weight: float = 1.0) -> Words:
    """All runs of k letters.

    >>> from mercer.kernels.structured import encode_sequences
    >>> words(encode_sequences(["abab", "b"]), 2)
    Words(rows=array([0, 0, 0]), codes=array([1, 2, 1]), width=4, weight=1.0)
    """
    rows, starts = runs_of(sequences, k)
    return Words(rows, *codes_at(sequences.values, starts, range(k)), weight)


def runs_of(sequences: Ragged, length: int) -> tuple[np.ndarray, np.ndarray]:
    """For every run of ``length`` letters within a sequence, which sequence that is and where it starts."""
    numbers = np.maximum(sequences.lengths - length + 1, 0)
    rows = np.repeat(np.arange(len(sequences)), numbers)
    before = np.cumsum(numbers) - numbers
    return rows, np.arange(len(rows)) + np.repeat(sequences.starts - before, numbers)


def codes_at(values: np.ndarray, starts: np.ndarray, positions: Sequence[int]) -> tuple[np.ndarray, int]:
    """Numbers for the letters at start + position, one for each start, and a bound on them.

    They can be compared within one call: words of several sets must be numbered together.

    >>> codes_at(np.array([0, 1, 2, 0]), np.array([0, 1]), (0, 2))  # a·c and b·a of abca
    (array([2, 3]), 9)
    """
    letters = int(values.max(initial=0)) + 1
    codes, width, done = np.empty(0, np.int64), 1, 0
    while done < len(positions) and len(starts):
        more = 1
        while done + more < len(positions) and width * letters ** (more + 1) <= _LARGEST_CODE:
            more += 1
        if width * letters**more > _LARGEST_CODE:
            codes, width = numbered(codes)
        codes = _append(codes, values, starts, np.array(positions[done : done + more]), letters)
        width, done = width * letters**more, done + more
    return codes, width


@njit(nogil=True, cache=True, **OPTIONS)
def _append(codes, values, starts, positions, letters):  # type: ignore[no-untyped-def]
    """Words made longer by the letters at some positions."""
    longer = np.empty(len(starts), np.int64)
    for t in range(len(starts)):
        code = codes[t] if len(codes) else 0
        for position in positions:
            code = code * letters + values[starts[t] + position]
        longer[t] = code
    return longer


def numbered(codes: np.ndarray) -> tuple[np.ndarray, int]:
    """The same distinctions by numbers 0, 1, … in the order in which they come, and how many there are.

    >>> numbered(np.array([70, 50, 70]))
    (array([0, 1, 0]), 2)
    """
    numbers, found = _number(codes)
    return numbers, max(1, found)


@njit(nogil=True, cache=True, **OPTIONS)
def _number(codes):  # type: ignore[no-untyped-def]
    """Number the codes by a table with open addressing, in which codes are compared in full."""
    bits = 4
    while (1 << bits) < 2 * len(codes):
        bits += 1
    slots, mask = np.full(1 << bits, -1, np.int64), (1 << bits) - 1
    distinct, numbers = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    found = 0
    for t in range(len(codes)):
        place = np.int64((np.uint64(codes[t]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits))
        while slots[place] >= 0 and distinct[slots[place]] != codes[t]:
            place = (place + 1) & mask
        if slots[place] < 0:
            slots[place], distinct[found] = found, codes[t]
            found += 1
        numbers[t] = slots[place]
    return numbers, found


# --- tables ------------------------------------------------------------------------------------------


def table(parts: Iterable[Words], n: int) -> sparse.csr_array:  # (n, features)
    """How often each word is in each of n sequences, times its weight; parts side by side."""
    parts = [part.narrow() for part in parts]
    ends = np.cumsum([part.width for part in parts])
    codes = [part.codes + (end - part.width) for part, end in zip(parts, ends, strict=True)]
    rows = [part.rows for part in parts]
    counts = count(np.concatenate(rows), np.concatenate(codes), n, int(ends[-1]))
    if any(part.weight != 1.0 for part in parts):
        which = np.searchsorted(ends, counts.indices, side="right")
        counts.data *= np.array([part.weight for part in parts])[which]
    return counts


# --- hashing -----------------------------------------------------------------------------------------

_ODD = np.uint64(0x9E3779B97F4A7C15)


def hashed_words(X: Objects, sequences: Ragged, k: int, buckets: int) -> sparse.csr_array:  # (n, buckets)
    """Counts of words of k letters in a fixed number of columns, each with a sign that its hash decides.

    A letter is hashed by what it prints as, so that the columns are the same in every process.
    """
    require_memory(40 * buckets, f"products of rows with {buckets} columns", "use fewer buckets")
    rows, starts = runs_of(sequences, k)
    if not len(starts):
        return sparse.csr_array((len(sequences), buckets))
    letters = np.array([_hashed(letter) for letter in _different_letters(X, sequences)], np.uint64)
    state = np.zeros(len(starts), np.uint64)
    for j in range(k):
        state = (state ^ letters[sequences.values[starts + j]]) * _ODD
        state ^= state >> np.uint64(29)
    state *= _ODD
    state ^= state >> np.uint64(32)
    signs = 1.0 - 2.0 * (state >> np.uint64(63)).astype(np.float64)
    columns = (state % np.uint64(buckets)).astype(np.int64)
    counts = sparse.csr_array((signs, (rows, columns)), shape=(len(sequences), buckets))
    counts.sum_duplicates()
    return counts


def _different_letters(X: Objects, sequences: Ragged) -> list[Any]:
    """What the numbers 0, 1, … in sequences stand for."""
    _, at = np.unique(sequences.values, return_index=True)
    which = np.searchsorted(sequences.stops, at, side="right")
    rows = {i: list(X[i]) for i in set(which.tolist())}
    return [rows[i][p] for i, p in zip(which.tolist(), (at - sequences.starts[which]).tolist(), strict=True)]


def _hashed(letter: object) -> int:
    """A hash of 64 bits; a NumPy scalar counts as the Python object that it holds."""
    text = repr(letter.item() if isinstance(letter, np.generic) else letter)
    digest = blake2b(text.encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
