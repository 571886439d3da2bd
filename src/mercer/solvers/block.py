r"""A working set as a small problem: solved by pairs (``smo``), and by Newton's steps where pairs are slow.

Pairs of variables take millions of steps where K is nearly singular: each undoes a little of the last. There
the variables between their bounds, F, are moved together, to the minimum with the others fixed,

    K_FF δ + E λ = v_F,   Eᵀδ = 0       (E: which variable is in which group)

or as far in that direction as bounds allow. On the right F one such step is exact; pairs find the right F.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import linalg

from mercer.solvers import smo

__all__ = ["Block"]

_PATIENCE = 25  # steps by pairs, per variable, before Newton's is tried
_LARGEST = 600  # variables: the factorisation of more takes longer than their pairs
_RIDGE = 1e-14  # of the largest k(x, x), added to the diagonal of K_FF


class Block:
    """K of a working set (or where its rows are), and the state of its variables, which ``solve`` improves.

    Parameters
    ----------
    K : (q, q) the matrix, or memory for it where ``rows`` are given
    diag, slopes, gamma, lo, hi : (q,) see ``smo``
    split : size of the first group
    rows, slots, columns : K[a, b] = rows[slots[a], columns[b]], when they are given
    """

    def __init__(
        self,
        K: np.ndarray,
        diag: np.ndarray,
        slopes: np.ndarray,
        gamma: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
        split: int,
        rows: np.ndarray | None = None,
        slots: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ) -> None:
        nowhere = np.empty(0, np.int64)
        self.K, self.ready = K, np.full(len(gamma), rows is None)
        self.rows = K if rows is None else rows
        self.slots = nowhere if slots is None else slots
        self.columns = nowhere if columns is None else columns
        self.diag, self.slopes, self.gamma, self.lo, self.hi = diag, slopes, gamma, lo, hi
        self.split = split

    def solve(self, tol: float, most: int, turns: int = 1) -> tuple[int, bool]:
        """Until no pair violates by more than ``tol``; returns the steps, at most ``most``, and whether so.

        ``turns`` of many steps by pairs and one of Newton's are made at most.
        """
        steps = 0
        for turn in range(turns):
            patience = min(_PATIENCE * len(self.gamma), most - steps)
            taken = int(
                smo.solve_rows(
                    self.K, self.ready, self.rows, self.slots, self.columns, self.diag,
                    self.slopes, self.gamma, self.lo, self.hi, self.split, tol, patience,
                )
            )  # fmt: skip
            steps += taken
            if taken < patience:
                return steps, True
            if steps >= most or turn == turns - 1:
                break
            self.newton()
        return steps, False

    def newton(self) -> bool:
        """One of Newton's steps; False where there is none to make."""
        free = np.flatnonzero((self.gamma > self.lo) & (self.gamma < self.hi))
        if len(free) > _LARGEST:
            return False
        K = self._rows_of(free)
        groups = np.unique(free >= self.split)
        E = ((free >= self.split)[:, None] == groups).astype(np.float64)
        f, g = E.shape
        if f <= g:
            return False
        system = np.zeros((f + g, f + g))
        system[:f, :f] = K[:, free]
        system[:f, :f].flat[:: f + 1] += _RIDGE * np.abs(self.diag).max()
        system[:f, f:], system[f:, :f] = E, E.T
        side = np.concatenate([self.slopes[free], np.zeros(g)])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", linalg.LinAlgWarning)  # what comes of it is looked at
                direction = linalg.solve(system, side, assume_a="sym", check_finite=False)[:f]
        except linalg.LinAlgError:
            return False
        along = K.T @ direction
        fall = float((self.slopes[free] * direction).sum())
        curvature = float((along[free] * direction).sum())
        if not (np.isfinite(fall) and fall > 0.0 and curvature >= 0.0):
            return False  # not a way down: K is singular, or no kernel's
        gamma, lo, hi = self.gamma[free], self.lo[free], self.hi[free]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(direction > 0, (hi - gamma) / direction, (lo - gamma) / direction)
        room = np.where(direction == 0, np.inf, room)
        best = fall / curvature if curvature > 0 else np.inf
        step = float(min(1.0, best, room.min()))
        moved = gamma + step * direction
        moved = np.where(room <= step, np.where(direction > 0, hi, lo), moved)
        moved = np.clip(moved, lo, hi)
        self.slopes -= K.T @ (moved - gamma)
        self.gamma[free] = moved
        return True

    def refresh(self, c: np.ndarray) -> None:
        """The slopes c - Kγ computed anew: the steps have left rounding errors in them."""
        support = np.flatnonzero(self.gamma)
        self.slopes[:] = c - self._rows_of(support).T @ self.gamma[support]

    def _rows_of(self, some: np.ndarray) -> np.ndarray:  # (some, q)
        missing = some[~self.ready[some]]
        if len(missing):
            part = np.empty((len(missing), len(self.gamma)), self.K.dtype)
            smo.gather(self.rows, self.slots[missing], self.columns, part)
            self.K[missing] = part
            self.ready[missing] = True
        return self.K[some].astype(np.float64)
