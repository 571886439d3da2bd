r"""Documents compared by their words.

A document is a text, or a list of words that somebody found in it. The words of a text are what ``pattern``
matches: by default runs of two and more letters or digits, in lower case, the same as scikit-learn's.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from reprlib import repr as shortened
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.types import Objects, Points, Weights
from mercer.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.parameters import choice, fixed, whole
from mercer.kernels.strings.kmers import Words, runs_of, table, words
from mercer.kernels.structured import FeatureKernel, Ragged, encode_labels, in_order

#: texts whose words are kept, and the letters of the longest of them: at most about a hundred megabytes
_REMEMBERED, _REMEMBERED_LETTERS = 1024, 1 << 16


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many documents each word (or run of words, as a tuple) was: what tf-idf learns.

    ``reading`` is how the documents were read, in the order of ``BagOfWords.reading``; None fits any.
    """

    documents: float
    of: dict[tuple[Any, ...], float]
    reading: tuple[Any, ...] | None = None

    def inverse(self, words: Iterable[tuple[Any, ...]]) -> np.ndarray:
        """ln((1 + documents) / (1 + those with the word)) + 1, as if one more document had every word."""
        frequency = np.array([self.of.get(word, 0.0) for word in words])
        return np.log((1.0 + self.documents) / (1.0 + frequency)) + 1.0

    def __repr__(self) -> str:
        return f"<{self.documents:g} documents, {len(self.of)} words>"


@lru_cache(_REMEMBERED)
def _found(pattern: str, lowercase: bool, text: str) -> tuple[str, ...]:
    """What the pattern matches; equal words are one object, which takes less memory and is hashed once."""
    found = re.findall(pattern, text.lower() if lowercase else text)
    is_text = bool(found) and isinstance(found[0], str)  # a pattern with several groups finds tuples
    return tuple(map(sys.intern, found) if is_text else found)


def _runs(bag: Sequence[Any], m: int) -> Iterable[tuple[Any, ...]]:
    """All runs of m words."""
    return zip(*(bag[i:] for i in range(m)), strict=False)


def _is_pattern(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError, OverflowError, RecursionError):
        return False
    return isinstance(value, str)


class BagOfWords(FeatureKernel):
    r"""k(x, x') = Σᵤ w(#ᵤ(x)) w(#ᵤ(x')), #ᵤ(x) how often the word u is in the document x.

    With n > 1, u also stands for runs of 2, …, n words: pairs of words next to each other, and so on; with
    ``shortest=n`` for those of n alone. ``weighting`` says what a count c is worth:

    - None: c
    - "binary": 1 if c > 0
    - "log": 1 + ln c if c > 0
    - "tf-idf": c (ln((1 + N) / (1 + Nᵤ)) + 1), where Nᵤ of the N training documents have u. Learned by
      ``resolve(X)``, which a fit calls, and kept in the kernel; a word that none had has Nᵤ = 0. They are
      learned anew once n, shortest, lowercase or pattern have changed.

    ``.normalized()`` compares directions, whatever the lengths of documents: with "tf-idf" that is the
    product of the rows which scikit-learn's TfidfVectorizer gives.

    >>> BagOfWords()(["To be or not to be", "Be that as it may"])
    array([[10.,  2.],
           [ 2.,  5.]])
    >>> BagOfWords(2, shortest=2)(["to be or not to be"], ["not to be", "to be"])
    array([[3., 2.]])
    """

    objects = "documents"
    lemma = "the inner product of weighted counts of words"
    n: int = whole(1, maximum=1000)
    shortest: int = whole(1)
    weighting: str | None = choice(None, ("binary", "log", "tf-idf"), optional=True)
    lowercase: bool = choice(True, (True, False))
    pattern: str = fixed(r"(?u)\b\w\w+\b", "a regular expression", _is_pattern, "one, such as r'\\w+'")
    frequencies: DocumentFrequencies | None = fixed(
        None,
        "document frequencies",
        lambda v: isinstance(v, DocumentFrequencies),
        "those of a kernel that resolve(X) has returned",
        optional=True,
    )

    def check(self) -> None:
        if self.shortest > self.n:
            raise InputError(
                f"shortest must be at most n, got shortest={self.shortest}, n={self.n}: runs of words have "
                "shortest … n of them"
            )

    @property
    def reading(self) -> tuple[Any, ...]:
        """What decides which words a document has."""
        return self.shortest, self.n, self.lowercase, self.pattern

    def is_resolved(self) -> bool:
        if self.weighting != "tf-idf":
            return True
        return self.frequencies is not None and self.frequencies.reading in (None, self.reading)

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        """The kernel with the document frequencies of X, where it needs them."""
        if self.is_resolved():
            return self
        bags = self._split(data.as_objects(data.single_column(X)))
        runs = (set(chain.from_iterable(_runs(bag, m) for m in self._lengths())) for bag in bags)
        weights = np.ones(len(bags)) if weight is None else np.asarray(weight, dtype=float)
        found: Counter[tuple[Any, ...]] | defaultdict[tuple[Any, ...], float]
        if weight is None:
            found = Counter(chain.from_iterable(runs))
        else:
            found = defaultdict(float)
            for some, w in zip(runs, weights.tolist(), strict=True):
                for run in some:
                    found[run] += w
        frequencies = DocumentFrequencies(
            float(weights.sum()), {run: float(times) for run, times in found.items()}, self.reading
        )
        return type(self)(**{**self.get_params(deep=False), "frequencies": frequencies})

    def features(self, X: Objects) -> sparse.csr_array:
        if not self.is_resolved():
            raise InputError(
                f"{self!r} learns from documents first: call kernel.resolve(X), or fit an estimator"
            )
        bags = self._split(X)
        spoken = [word for bag in bags for word in bag]
        sequences = Ragged.cut(encode_labels(spoken), np.array([len(bag) for bag in bags], np.int64))
        parts = [words(sequences, m).narrow() for m in self._lengths()]
        counts = table(parts, len(bags))
        if self.weighting == "binary":
            counts.data[:] = 1.0
        elif self.weighting == "log":
            counts.data = 1.0 + np.log(counts.data)
        elif self.frequencies is not None and self.weighting == "tf-idf":
            kinds = zip(parts, self._lengths(), strict=True)
            factors = [self._inverse(sequences, part, m, spoken) for part, m in kinds]
            counts.data *= np.concatenate(factors)[counts.indices]
        return counts

    def _inverse(self, sequences: Ragged, part: Words, m: int, spoken: list[Any]) -> np.ndarray:  # (width,)
        """What a run of m words is worth, for each column of a part; 1 where there is none."""
        assert self.frequencies is not None
        codes, first = np.unique(part.codes, return_index=True)
        starts = runs_of(sequences, m)[1][first].tolist()
        factors = np.ones(part.width)
        factors[codes] = self.frequencies.inverse(tuple(spoken[start : start + m]) for start in starts)
        return factors

    def _lengths(self) -> range:
        return range(int(self.shortest), int(self.n) + 1)

    def _split(self, X: Objects) -> list[Sequence[Any]]:
        """The words of each document."""
        return [self._words(x) if isinstance(x, str) else self._listed(x) for x in X]

    def _words(self, text: str) -> Sequence[str]:
        """The words of a text, which is read once, for a search looks at the same texts many times."""
        find = _found if len(text) <= _REMEMBERED_LETTERS else _found.__wrapped__
        return find(self.pattern, bool(self.lowercase), text)

    def _listed(self, x: Any) -> list[Any]:
        """The words of a document that is no text."""
        what = "a document is a text or a list of words"
        if isinstance(x, bytes | bytearray):
            raise InputTypeError(f"{what}, got {shortened(x)}: decode it, x.decode()")
        if isinstance(x, Mapping):
            raise InputTypeError(
                f"{what}, got a {type(x).__name__}: pass list(Counter(x).elements()) for counts of words"
            )
        return list(x) if isinstance(x, Set) and self.n == 1 else in_order(x, what)
