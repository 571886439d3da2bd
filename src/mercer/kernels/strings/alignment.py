r"""Strings compared by their best local alignment: a similarity that is not a kernel.

Smith and Waterman, Identification of common molecular subsequences, Journal of Molecular Biology 147 (1981),
195-197.
"""

from __future__ import annotations

import numpy as np

from mercer.data.types import Objects
from mercer.kernels.parameters import nonnegative, positive
from mercer.kernels.strings.lanes import LANES, paired, self_paired
from mercer.kernels.structured import ObjectKernel, Ragged, encode_sequences
from mercer.runtime.native import INNER, OPTIONS, njit


class LocalAlignment(ObjectKernel):
    r"""s(x, x') = the largest score of an alignment of a part of x with a part of x', at least zero.

    Each pair of equal letters adds ``match``, each pair of different ones takes ``mismatch`` away, and each
    letter that is skipped takes ``gap``.

    The maximum over alignments is *not* positive definite in general, and there is no certificate: learners
    that need a kernel may fail on it. ``Subsequence`` and ``GappedKmer`` allow for gaps and differences, too,
    and are kernels.

    >>> LocalAlignment()(["xxkernelyy"], ["kernel", "colonel", "kexrnel"])
    array([[6., 3., 5.]])
    """

    objects = "sequences"
    match: float = positive(1.0)
    mismatch: float = nonnegative(1.0)
    gap: float = nonnegative(1.0)

    def encode(self, X: Objects) -> Ragged:
        return encode_sequences(X)

    def _scores(self) -> tuple[float, float, float]:
        return float(self.match), float(self.mismatch), float(self.gap)

    def pairs(self, X: Ragged, Y: Ragged | None) -> np.ndarray:
        return paired(X, Y, sweep_rows, *self._scores())

    def self_pairs(self, X: Ragged) -> np.ndarray:
        return self_paired(X, sweep_pairs, *self._scores())


@njit(nogil=True, **INNER)
def _sweep(A, n, B, match, mismatch, gap, H, left, out):  # type: ignore[no-untyped-def]
    """The best scores of LANES pairs; H[j] is the best that ends before x[i] and x'[j], row after row."""
    H[:] = 0.0
    out[:] = 0.0
    for i in range(n):
        left[:] = 0.0  # the value of x[i], x'[j-1]
        letters = A[i]
        for j in range(len(B)):
            others, diagonal, above = B[j], H[j], H[j + 1]
            for lane in range(LANES):
                score = match if letters[lane] == others[lane] else -mismatch
                best = max(max(0.0, diagonal[lane] + score), max(above[lane], left[lane]) - gap)
                diagonal[lane] = left[lane]
                left[lane] = best
                out[lane] = max(out[lane], best)
        last = H[len(B)]
        for lane in range(LANES):  # Assigning a whole row would compile an error message, for seconds.
            last[lane] = left[lane]


@njit(nogil=True, cache=True, **OPTIONS)
def sweep_rows(values, starts, stops, B, out, match, mismatch, gap):  # type: ignore[no-untyped-def]
    """Some sequences against LANES others: out (rows, LANES)."""
    longest = 0
    for row in range(len(starts)):
        longest = max(longest, stops[row] - starts[row])
    A, H, left = np.empty((longest, LANES), np.int64), np.empty((len(B) + 1, LANES)), np.empty(LANES)
    for row in range(len(starts)):
        for i in range(stops[row] - starts[row]):
            A[i] = values[starts[row] + i]
        _sweep(A, stops[row] - starts[row], B, match, mismatch, gap, H, left, out[row])


@njit(nogil=True, cache=True, **OPTIONS)
def sweep_pairs(A, B, out, match, mismatch, gap):  # type: ignore[no-untyped-def]
    """LANES pairs of sequences: out (LANES,)."""
    _sweep(A, len(A), B, match, mismatch, gap, np.empty((len(B) + 1, LANES)), np.empty(LANES), out)
