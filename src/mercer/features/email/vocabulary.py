r"""Bags as sparse rows: for the elements that training bags have, what they are worth in a message.

    φ(A) = (ω(x) log₂(1 + A(x)))ₓ / ‖·‖,     ω(x) = ln((1 + N) / (1 + Nₓ)) + 1

Nₓ of the N training bags have x; one that none has counts as if one had it. The inner product of two rows
is the cosine kernel of the bags, φ(A)·φ(B). The norm is that of the whole bag: unknown elements count
there, so that a message of which little is known has short rows. An empty bag is the row of zeros, and
alike to none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The elements of training bags, with their columns and what they are worth.

    >>> known = Vocabulary.of([{"to": 2, "be": 1}, {"be": 1, "or": 1}])
    >>> known.columns
    {'be': 0, 'or': 1, 'to': 2}
    >>> known.rows([{"be": 3}, {"who": 1, "to": 1}, {}]).toarray().round(3)
    array([[1.   , 0.   , 0.   ],
           [0.   , 0.   , 0.707],
           [0.   , 0.   , 0.   ]])
    """

    columns: dict[str, int]
    worth: np.ndarray  # (width,) ω
    unknown: float  # ω of any other element

    @classmethod
    def of(cls, bags: Sequence[Mapping[str, float]]) -> Self:
        often = Counter(chain.from_iterable(bags))
        known = sorted(often)
        frequency = np.fromiter((often[x] for x in known), np.float64, len(known))
        worth = np.log((1 + len(bags)) / (1 + frequency)) + 1
        return cls({x: i for i, x in enumerate(known)}, worth, float(np.log((1 + len(bags)) / 2) + 1))

    @property
    def is_shared(self) -> np.ndarray:  # (width,)
        """Which elements are of at least two training bags."""
        return self.worth < self.unknown

    def keep(self, which: np.ndarray) -> Self:
        """Some of the columns. Elements of one bag may go: they are worth what unknown ones are."""
        names = np.array(list(self.columns), dtype=object)[which].tolist()
        return type(self)({x: i for i, x in enumerate(names)}, self.worth[which], self.unknown)

    def __len__(self) -> int:
        return len(self.columns)

    def rows(self, bags: Sequence[Mapping[str, float]]) -> sparse.csr_array:  # (n, width)
        """φ of every bag."""
        lengths = np.fromiter(map(len, bags), np.int64, len(bags))
        total = int(lengths.sum())
        number = self.columns.get
        codes = np.fromiter((number(x, -1) for x in chain.from_iterable(bags)), np.int32, total)
        counts = np.fromiter(chain.from_iterable(bag.values() for bag in bags), np.float64, total)
        owner = np.repeat(np.arange(len(bags), dtype=np.int32), lengths)
        values = np.log1p(np.maximum(counts, 1e-9)) / np.log(2)
        values *= np.where(codes < 0, self.unknown, np.append(self.worth, 0.0)[codes])
        square = np.bincount(owner, values**2, minlength=len(bags))
        is_known = codes >= 0
        entries = values[is_known] / np.sqrt(square[owner[is_known]])
        rows = sparse.csr_array((entries, (owner[is_known], codes[is_known])), shape=(len(bags), len(self)))
        rows.sort_indices()
        return rows
