r"""Strings compared by the subsequences they have in common, gaps allowed but at a price.

Lodhi, Saunders, Shawe-Taylor, Cristianini and Watkins, Text classification using string kernels, JMLR 2
(2002), 419-444; Shawe-Taylor and Cristianini, Kernel methods for pattern analysis (2004), chapter 11.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from mercer.data.types import Objects
from mercer.errors import InputError
from mercer.kernels.parameters import positive, whole
from mercer.kernels.strings.lanes import LANES, paired, self_paired
from mercer.kernels.structured import ObjectKernel, Ragged, encode_sequences
from mercer.runtime.config import require_memory, thread_count
from mercer.runtime.native import INNER, OPTIONS, intrinsic, njit

#: Normalising squares a value and divides by the result, for which its logarithm must be at least this.
_LEAST_LOGARITHM = -350.0


class Subsequence(ObjectKernel):
    r"""k(x, x') = Σᵤ Φᵤ(x) Φᵤ(x'), Φᵤ(x) = Σ λ^{span} over all places in x where u is found, gaps allowed.

    u are the words of ``length`` letters; its letters must come in x in their order, not next to each other.
    The span is the number of letters of x from the first to the last that is used: those skipped in between
    count, so that ``decay`` λ < 1 makes gaps expensive. Computed by dynamic programming, in time
    length · |x| · |x'|; only sums and products of numbers that are zero or more, so nothing cancels.

    >>> cat, car = Subsequence(2, decay=0.5)(["cat"], ["cat", "car"])[0]
    >>> bool(cat == 2 * 0.5**4 + 0.5**6), bool(car == 0.5**4)
    (True, True)

    c-a is in both; cat also has a-t, and c-t with a gap.
    """

    objects = "sequences"
    lemma = "the inner product of weighted counts of subsequences"
    length: int = whole(3)
    decay: float = positive(0.5)

    def encode(self, X: Objects) -> Ragged:
        return encode_sequences(X)

    def pairs(self, X: Ragged, Y: Ragged | None) -> np.ndarray:
        others = X if Y is None else Y
        if self.length > min(X.lengths.max(), others.lengths.max()):
            return np.zeros((len(X), len(others)))
        return _finite(paired(X, Y, sweep_rows, *self._settings(others)))

    def self_pairs(self, X: Ragged) -> np.ndarray:
        if self.length > X.lengths.max():
            return np.zeros(len(X))
        return _finite(self_paired(X, sweep_pairs, *self._settings(X)))

    def _settings(self, others: Ragged) -> tuple[int, float]:
        """The parameters, if λ^{2 length}, which is all that two strings may have, has a square in floats."""
        longest = int(others.lengths.max())
        require_memory(
            8 * LANES * int(self.length) * (longest + 1) * thread_count(),
            f"tables for subsequences of {self.length} out of {longest} letters",
            "use a shorter length, or shorter strings",
        )
        if 2 * self.length * log(self.decay) < _LEAST_LOGARITHM:
            raise InputError(
                f"values as small as decay^(2 length) are lost in floats, got {self!r}: use a larger decay "
                "or a shorter length"
            )
        return int(self.length), float(self.decay)


def _finite(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise InputError(
            "the weights of common subsequences add up to more than floats can hold: use a smaller decay or "
            "a shorter length"
        )
    return values


# --- a row of the table, in vectors of LANES numbers -------------------------------------------------------
# Written for LLVM, because its own vectoriser checks before each row of lanes whether arrays overlap, which
# takes longer than the row.


def _row(builder: Any, context: Any, signature: Any, args: Any, is_last: bool) -> Any:
    """For all j: M = λ² [a = B[j]] D[j], and then either out += M, or R = λ R + M, out[j] = λ out[j] + R."""
    vector, letters = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(64), LANES)
    entries = context.make_array(signature.args[1])(context, builder, args[1]).nitems

    def at(which: int, j: Any, kind: Any) -> Any:
        """The vector at row j of an argument."""
        array = context.make_array(signature.args[which])(context, builder, args[which])
        start = builder.gep(array.data, [builder.mul(j, ir.Constant(j.type, LANES))])
        return builder.bitcast(start, kind.as_pointer())

    zero, zeros = ir.Constant(ir.IntType(64), 0), ir.Constant(vector, [0.0] * LANES)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), args[3], ir.Constant(ir.IntType(32), 0))
    rate = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))
    square = builder.fmul(rate, rate)
    letter = builder.load(at(0, zero, letters), align=8)
    running = cgutils.alloca_once(builder, vector)  # R, or the sum, stays in registers.
    builder.store(builder.load(at(4, zero, vector), align=8) if is_last else zeros, running)
    rows = builder.sdiv(entries, ir.Constant(entries.type, LANES))
    with cgutils.for_range(builder, rows) as loop:
        j = loop.index
        equal = builder.icmp_signed("==", letter, builder.load(at(1, j, letters), align=8))
        M = builder.select(equal, builder.fmul(square, builder.load(at(2, j, vector), align=8)), zeros)
        if is_last:
            builder.store(builder.fadd(builder.load(running), M), running)
        else:
            R = builder.fadd(
                builder.fmul(rate, builder.load(running), flags=["contract"]), M, flags=["contract"]
            )
            builder.store(R, running)
            above = builder.fmul(rate, builder.load(at(4, j, vector), align=8), flags=["contract"])
            builder.store(builder.fadd(above, R, flags=["contract"]), at(4, j, vector), align=8)
    if is_last:
        builder.store(builder.load(running), at(4, zero, vector), align=8)
    return context.get_dummy_value()


def _add_row(a: np.ndarray, B: np.ndarray, D: np.ndarray, decay: float, out: np.ndarray) -> None:
    out += decay**2 * np.where(a == B, D[: len(B)], 0.0).sum(axis=0)


def _next_row(a: np.ndarray, B: np.ndarray, D: np.ndarray, decay: float, out: np.ndarray) -> None:
    R = np.zeros(LANES)
    for j in range(len(B)):
        R = decay * R + decay**2 * np.where(a == B[j], D[j], 0.0)
        out[j] = decay * out[j] + R


@intrinsic(_add_row)
def add_row(typingctx: Any, a: Any, B: Any, D: Any, decay: Any, out: Any) -> Any:
    """out += Σⱼ M[j]: a and out are (LANES,), B and D (m, LANES)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _row(builder, context, signature, args, is_last=True)

    return types.none(a, B, D, decay, out), codegen


@intrinsic(_next_row)
def next_row(typingctx: Any, a: Any, B: Any, D: Any, decay: Any, out: Any) -> Any:
    """The next row of S into out (m, LANES), which holds the one before; D is that of the level below."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _row(builder, context, signature, args, is_last=False)

    return types.none(a, B, D, decay, out), codegen


# --- the recursion --------------------------------------------------------------------------------
#
# Let Mₚ[i, j] be the weight of all pairs of equal subsequences of p letters that end at x[i] and x'[j], and
# Sₚ[i, j] = Σ λ^{(i-i') + (j-j')} Mₚ[i', j'] over i' ≤ i, j' ≤ j. Then, with S₀ = 1,
#
#     Mₚ[i, j] = λ² [x[i] = x'[j]] Sₚ₋₁[i-1, j-1],   k = Σᵢⱼ M[i, j] of p = length,
#
# and S comes from the sums R along a row: R[i, j] = λ R[i, j-1] + M[i, j], S[i, j] = λ S[i-1, j] + R[i, j].
# Row i of Sₚ takes the place of row i-1, for p = length, length - 1, …, so that Sₚ₋₁ is still that of i-1.


@njit(nogil=True, **INNER)
def _sweep(A, n, B, length, decay, S, out):  # type: ignore[no-untyped-def]
    """The values of LANES pairs: A (≥ n, LANES), B (m, LANES) are letters, S (length, m + 1, LANES) room."""
    S[0] = 1.0
    S[1:] = 0.0
    out[:] = 0.0
    for i in range(n):
        add_row(A[i], B, S[length - 1], decay, out)
        for p in range(length - 1, 0, -1):
            next_row(A[i], B, S[p - 1], decay, S[p, 1:])


@njit(nogil=True, cache=True, **OPTIONS)
def sweep_rows(values, starts, stops, B, out, length, decay):  # type: ignore[no-untyped-def]
    """Some sequences against LANES others: out (rows, LANES)."""
    longest = 0
    for row in range(len(starts)):
        longest = max(longest, stops[row] - starts[row])
    A, S = np.empty((longest, LANES), np.int64), np.empty((length, len(B) + 1, LANES))
    for row in range(len(starts)):
        for i in range(stops[row] - starts[row]):
            A[i] = values[starts[row] + i]
        _sweep(A, stops[row] - starts[row], B, length, decay, S, out[row])


@njit(nogil=True, cache=True, **OPTIONS)
def sweep_pairs(A, B, out, length, decay):  # type: ignore[no-untyped-def]
    """LANES pairs of sequences: out (LANES,)."""
    _sweep(A, len(A), B, length, decay, np.empty((length, len(B) + 1, LANES)), out)
