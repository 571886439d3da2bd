r"""Of the points that a solver passes, the one whose objective is the lowest for certain."""

from __future__ import annotations

import numpy as np

from mercer.solvers.svm.block import Block


class Safest:
    """The best γ so far of a problem that is one working set, where K is known up to rounding.

    The rounding of K adds up to ½ε(Σ sᵢ|γᵢ|)², over the points i, to the objective that is seen; for two
    variables of a point their sum counts. Where it moves slopes by more than the tolerance, later points
    are not always better ones: what is seen may be rounding alone. A γ that may be made smaller as a whole
    (all sums are 0) is, as far as this lowers the sum of both.
    """

    def __init__(self, small: Block, c: np.ndarray, local: np.ndarray, tol: float, at_hand: bool) -> None:
        self.small, self.c, self.local, self.tol, self.at_hand = small, c, local, tol, at_hand
        self.s = np.zeros(int(local.max(initial=-1)) + 1)
        self.s[local] = np.sqrt(np.abs(small.diag))
        sums = small.gamma[: small.split].sum(), small.gamma[small.split :].sum()
        self.shrinks = not (small.balanced and any(sums)) and bool(
            (small.lo <= 0).all() and (small.hi >= 0).all()
        )
        self.start = small.gamma.copy()
        self.bound, self.gamma = np.inf, self.start
        self.lost = self.merged = False

    def note(self) -> bool:
        """Look at the point where the solver is, once rounding moves slopes by more than the tolerance.

        It is enough then, where a more exact K is ``at_hand``.
        """
        total = float((np.sqrt(np.abs(self.small.diag)) * np.abs(self.small.gamma)).sum())
        self.lost |= 2.0**-52 * float(self.s.max(initial=0.0)) * total > self.tol
        if self.lost:
            if not self.merged:
                self._merge()
            self.small.refresh(self.c)
            self._compare(self.small.gamma)
        return self.lost and self.at_hand

    def settle(self) -> None:
        """Go to the safest point, where that is another one; the slopes are then those of its γ, as it is."""
        self.note()
        if not self.lost:
            self.small.refresh(self.c)
        else:
            self._go(self.start)
            self._compare(self.start)
            self._go(self.gamma)

    def _total(self, gamma: np.ndarray) -> float:
        """Σ sᵢ|γᵢ|."""
        return float((self.s * np.abs(np.bincount(self.local, gamma, minlength=len(self.s)))).sum())

    def _merge(self) -> None:
        """Points with equal rows of K count as one: what rounding does to them is the same."""
        rows = self.small.rows_of(np.arange(len(self.local)))
        _, self.local = np.unique(rows, axis=0, return_inverse=True)
        self.s = np.zeros(int(self.local.max()) + 1)
        self.s[self.local] = np.sqrt(np.abs(self.small.diag))
        self.merged = True

    def _go(self, gamma: np.ndarray) -> None:
        self.small.gamma[:] = gamma
        self.small.refresh(self.c)

    def _compare(self, gamma: np.ndarray) -> None:
        gain = float((self.c * gamma).sum())
        energy = gain - float((gamma * self.small.slopes).sum())
        total = self._total(gamma)
        above = max(energy, 0.0) + 2.0**-52 * total * total
        part = 1.0
        if self.shrinks and above > 0:
            part = float(np.clip(gain / above, 0.0, 1.0))
        bound = 0.5 * part**2 * above - part * gain
        if bound < self.bound:
            self.bound, self.gamma = bound, part * gamma
