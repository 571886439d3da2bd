r"""Strings compared by the words they nearly contain.

Leslie, Eskin, Cohen, Weston and Noble, Mismatch string kernels for discriminative protein classification,
Bioinformatics 20 (2004), 467-476.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from math import comb
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Objects, Points, Weights
from mercer.errors import InputError
from mercer.kernels.parameters import fixed, whole
from mercer.kernels.strings.kmers import Words, runs_of, table
from mercer.kernels.structured import FeatureKernel, Ragged, encode_sequences
from mercer.runtime.config import require_memory
from mercer.runtime.native import OPTIONS, longer, njit


def _is_alphabet(value: object) -> bool:
    if not isinstance(value, Collection) or isinstance(value, dict):
        return False
    return all(isinstance(letter, Hashable) for letter in value) and len(set(value)) == len(value)


class Mismatch(FeatureKernel):
    r"""k(x, x') = Σ_α Φ_α(x) Φ_α(x'), Φ_α(x) = #{words u of x : u differs from α in at most m places}.

    α are all words of k letters of ``alphabet``, by default the letters found in the training data; the value
    depends on how many there are. A letter that is not among them differs from every letter of α, so new
    strings may have some. A word has Σᵢ C(k, i) (|alphabet| - 1)ⁱ neighbours α, i ≤ m, and all are listed:
    for large alphabets with m > 1 ``GappedKmer`` is the cheaper way to allow for differences.

    >>> Mismatch(3, 1, alphabet="ab")(["aaa"], ["aaa", "aab", "abb", "bbb"])
    array([[4., 2., 2., 0.]])

    Both aaa and aab are near aaa and aab; aaa and abb are near aab and aba.
    """

    objects = "sequences"
    lemma = "the inner product of counts of neighbouring words"
    k: int = whole(3, maximum=1000)
    m: int = whole(1, minimum=0)
    alphabet: Any = fixed(
        "data",
        "a collection of different letters",
        _is_alphabet,
        'the letters, as in "acgt"',
        words=("data",),
    )

    def check(self) -> None:
        if self.m > self.k:
            raise InputError(
                f"m must be at most k, got k={self.k}, m={self.m}: a word has k letters to differ in"
            )

    def from_data(self, name: str, word: str, X: Points, weight: Weights = None) -> Any:
        """The letters of the data, as a text where they are characters."""
        sequences = data.as_objects(data.single_column(X))
        encode_sequences(sequences)  # This refuses what is no sequence.
        letters = set().union(*sequences)
        if all(isinstance(letter, str) and len(letter) == 1 for letter in letters):
            return "".join(sorted(letters))
        return tuple(sorted(letters, key=repr))

    def features(self, X: Objects) -> sparse.csr_array:
        if isinstance(self.alphabet, str) and self.alphabet == "data":
            raise InputError(f"alphabet='data' of {self!r} waits for data: call kernel.resolve(X) first")
        k, m, size = int(self.k), int(self.m), len(self.alphabet)
        if size**k >= 2**62:
            raise InputError(
                f"{self!r} numbers all words of {k} letters out of {size}, which are too many: "
                "use a smaller k, or GappedKmer"
            )
        sequences = _letters_first(X, self.alphabet)
        rows, starts = runs_of(sequences, k)
        most = sum(comb(k, i) * max(size - 1, 0) ** i for i in range(m + 1))
        require_memory(
            64 * len(starts) * most,
            f"the {most} neighbours of each of {len(starts)} words of {k} letters",
            "use a smaller m, GappedKmer, or fewer strings at a time",
        )
        owner, codes = neighbours(sequences.values, rows, starts, k, m, size)
        return table([Words(owner, codes, max(1, size**k))], len(sequences))


def _letters_first(X: Objects, alphabet: Iterable[Hashable]) -> Ragged:
    """Sequences of numbers, those of the alphabet's letters below its size and all others not."""
    letters = list(alphabet)
    is_text = all(isinstance(letter, str) and len(letter) == 1 for letter in letters)
    sequences = encode_sequences(["".join(map(str, letters)) if is_text else letters, *X])
    first = sequences.row(0)
    number = np.full(int(sequences.values.max(initial=-1)) + 1, len(first), np.int64)
    number[first] = np.arange(len(first))
    return Ragged.cut(number[sequences.values[len(first) :]], sequences.lengths[1:])


@njit(nogil=True, cache=True, **OPTIONS)
def neighbours(values, rows, starts, k, m, size):  # type: ignore[no-untyped-def]
    """The words over ``size`` letters that differ in at most m places from a values[start : start + k].

    The words so far are carried along from letter to letter: each goes on with the letter itself, and with
    every other while it has differences left.
    """
    found = 0
    owner, codes = np.empty(2 * len(starts) + 16, np.int64), np.empty(2 * len(starts) + 16, np.int64)
    words, spent = np.empty(16, np.int64), np.empty(16, np.int64)
    next_words, next_spent = np.empty(16, np.int64), np.empty(16, np.int64)
    for t in range(len(starts)):
        words[0], spent[0], here = 0, 0, 1
        for p in range(k):
            letter = values[starts[t] + p]
            if here * (size + 1) > len(next_words):
                next_words, next_spent = (
                    np.empty(2 * here * (size + 1), np.int64),
                    np.empty(2 * here * (size + 1), np.int64),
                )
            there = 0
            for w in range(here):
                for a in range(size):
                    cost = spent[w] + (a != letter)
                    if cost <= m:
                        next_words[there], next_spent[there] = words[w] * size + a, cost
                        there += 1
            words, next_words = next_words, words
            spent, next_spent = next_spent, spent
            here = there
        if found + here > len(codes):
            room = 2 * (found + here)
            owner, codes = longer(owner, found, room), longer(codes, found, room)
        for w in range(here):
            owner[found + w], codes[found + w] = rows[t], words[w]
        found += here
    return owner[:found].copy(), codes[:found].copy()
