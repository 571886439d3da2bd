r"""Kernels on histograms and counts, vectors of ℝ₊: Min (histogram intersection) and χ²."""

from __future__ import annotations

from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression, exp, maximum, minimum
from mercer.kernels.formula.pair import Pair
from mercer.kernels.parameters import positive


class Min(Kernel):
    r"""k(x, x') = Σₖ min(xₖ, x'ₖ) on ℝ₊: the histogram intersection.

    >>> Min()([[1.0, 3.0]], [[2.0, 2.0]])
    array([[3.]])
    """

    domain = Domain.NONNEGATIVE
    lemma = "min(a, b) = ∫ [t ≤ a][t ≤ b] dt, an inner product of indicator functions"

    def formula(self, pair: Pair) -> Expression:
        return pair.sum(minimum)


class ChiSquared(Kernel):
    r"""k(x, x') = exp(-γ Σₖ (xₖ - x'ₖ)² / (xₖ + x'ₖ)) on ℝ₊, terms with xₖ = x'ₖ = 0 left out.

    >>> ChiSquared(gamma=1.0)([[1.0, 0.0]], [[0.0, 0.0]]).round(6)
    array([[0.367879]])
    """

    domain = Domain.NONNEGATIVE
    lemma = "(a-b)²/(a+b) is of negative type on ℝ₊, so exp(-γ ·) of its sum is a kernel (Schoenberg)"
    gamma: float = positive(1.0)

    def formula(self, pair: Pair) -> Expression:
        # Where both are 0, the numerator is 0 too, and the tiny number prevents 0/0.
        return exp(-pair.sum(lambda a, b: (a - b) ** 2 / maximum(a + b, 1e-30)) * self.gamma)
