"""What the tests of certificates share: a kernel of any formula, and independent arithmetic."""

import numpy as np

from mercer import Kernel
from mercer.kernels import fixed


class Formula(Kernel):
    """k = function(pair): a user's kernel, without a lemma."""

    function = fixed(None)

    def formula(self, pair):
        return self.function(pair)


class FormulaOnHistograms(Formula):
    """The same on points ≥ 0."""

    domain = "nonnegative"


def is_semidefinite(K, tolerance=1e-9):
    """Whether no eigenvalue is negative beyond a generous rounding error."""
    return bool(np.linalg.eigvalsh((K + K.T) / 2)[0] >= -tolerance * len(K) * max(np.abs(K).max(), 1e-300))
