r"""A working set as a small problem: solved by pairs (``smo``), and by Newton's steps where pairs are slow.

Pairs of variables take millions of steps where K is nearly singular: each undoes a little of the last. There
the variables between their bounds, F, are moved together, to the minimum with the others fixed,

    K_FF δ + E λ = v_F,   Eᵀδ = 0       (E: which variable is in which group)

or as far in that direction as bounds allow: what reaches its bound stays there, and the others go on. On the
right F one such step is exact; pairs find the right F, by letting go what should leave its bound. Together
this is the method of active sets, which ends after finitely many steps however small the eigenvalues of K.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy import linalg

from mercer.solvers.svm import smo

#: Steps by pairs, per variable, before Newton's steps are tried.
_PAIRS_BEFORE_NEWTON = 25
#: Steps by pairs, per variable, between two steps of Newton's.
_PAIRS_BETWEEN = 2
_MOST_FREE = 600  # variables: the factorisation of more takes longer than their pairs
_WORK = 1e10  # multiplications in all of Newton's steps of a call, about
_RIDGE = 1e-14  # this part of k(x, x) is added to the diagonal of K_FF
_SINGULAR = 160  # variables up to which eigenvalues are worth their time
_NOTHING = 1e-15  # an eigenvalue below this times the number of variables is 0, for a diagonal of 1
_UNREACHED = 1e-6  # a part of the slopes that K cannot reach, and is not rounding


class Block:
    """K of a working set (or where its rows are), and the state of its variables, which ``solve`` improves.

    Parameters
    ----------
    K : (q, q) the matrix, or memory for it where ``rows`` are given
    diag, slopes, gamma, lo, hi : (q,) see ``smo``
    split : size of the first group
    rows, slots, columns : K[a, b] = rows[slots[a], columns[b]], when they are given
    balanced : whether the sum of each group is fixed
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
        balanced: bool = True,
    ) -> None:
        nowhere = np.empty(0, np.int64)
        self.K, self.ready = K, np.full(len(gamma), rows is None)
        self.rows = K if rows is None else rows
        self.slots = nowhere if slots is None else slots
        self.columns = nowhere if columns is None else columns
        self.diag, self.slopes, self.gamma, self.lo, self.hi = diag, slopes, gamma, lo, hi
        self.split, self.balanced = split, balanced
        self.memory = np.empty(2 * len(gamma) + 2)
        self.blocked = False

    def solve(
        self, tol: float, most: int, turns: int = 1, note: Callable[[], bool] = lambda: False
    ) -> tuple[int, bool]:
        """Until no pair violates by more than ``tol``; returns the steps, at most ``most``, and whether so.

        ``turns`` of steps by pairs and Newton's in between are made at most; of two turns, both are long.
        ``note`` is called after each, and ends it by saying True.
        """
        steps, work = 0, 0.0
        for turn in range(turns):
            patience = _PAIRS_BEFORE_NEWTON if turn == 0 or turns <= 2 else _PAIRS_BETWEEN
            patience = min(patience * len(self.gamma), most - steps)
            where = (self.K, self.ready, self.rows, self.slots, self.columns, self.diag)
            state = (self.slopes, self.gamma, self.lo, self.hi)
            if self.balanced:
                taken = int(smo.solve_rows(*where, *state, self.memory, self.split, tol, patience))
            else:
                taken = int(smo.solve_alone(*where, *state, tol, patience))
            steps += taken
            is_over = note()
            if taken < patience:
                return steps, True
            if is_over:
                break
            if steps >= most or turn == turns - 1 or work > _WORK:
                break
            for _ in range(len(self.gamma) if turns > 2 else 1):
                work += float(self._free().sum()) ** 3
                if not (self.newton() and self.blocked) or work > _WORK:
                    break
            if note():
                break
        return steps, False

    def _free(self) -> np.ndarray:  # (q,) of bool
        return np.asarray((self.gamma > self.lo) & (self.gamma < self.hi))

    def newton(self) -> bool:
        """Make one of Newton's steps; False where there is none. ``blocked``: whether a bound stops it."""
        self.blocked = False
        free = np.flatnonzero(self._free())
        if len(free) > _MOST_FREE:
            return False
        K = self.rows_of(free)
        groups = np.unique(free >= self.split) if self.balanced else np.zeros(0, np.bool_)
        E = ((free >= self.split)[:, None] == groups).astype(np.float64)
        f, g = E.shape
        if f <= g:
            return False
        # in units of 1/√k(x, x) for each variable: points may be of very different sizes
        size = np.abs(self.diag[free])
        unit = 1.0 / np.sqrt(np.where(size > 0, size, max(float(size.max()), 1e-300)))
        E *= unit[:, None]
        E /= E.max(axis=0)
        # what rounding has done to slopes in these units
        noise = 2.0**-51 * float((np.sqrt(np.abs(self.diag)) * np.abs(self.gamma)).sum())
        direction, most = _way_down(K[:, free] * unit[:, None] * unit, E, unit * self.slopes[free], noise)
        direction = unit * direction
        for group in groups:  # sums that are 0 in other units are so up to rounding
            mine = (free >= self.split) == group
            total = float(np.abs(direction[mine]).sum())
            if total > 0:
                direction[mine] -= np.abs(direction[mine]) * (float(direction[mine].sum()) / total)
        along = K.T @ direction
        fall = float((self.slopes[free] * direction).sum())
        curvature = float((along[free] * direction).sum())
        if most == np.inf:
            curvature = max(curvature, 0.0)  # a negative one is 0 but for rounding
        if not (np.isfinite(fall) and fall > 0.0 and curvature >= 0.0):
            return False  # It leads up, which a positive definite K excludes.
        gamma, lo, hi = self.gamma[free], self.lo[free], self.hi[free]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(direction > 0, (hi - gamma) / direction, (lo - gamma) / direction)
        room = np.where(direction == 0, np.inf, room)
        best = fall / curvature if curvature > 0 else np.inf
        step = float(min(most, best, room.min()))
        if not np.isfinite(step):
            return False  # nothing bounds the objective from below
        moved = gamma + step * direction
        moved = np.where(room <= step, np.where(direction > 0, hi, lo), moved)
        moved = np.clip(moved, lo, hi)
        self.blocked = bool((room <= step).any())
        self.slopes -= K.T @ (moved - gamma)
        self.gamma[free] = moved
        return True

    def refresh(self, c: np.ndarray) -> None:
        """The slopes c - Kγ computed anew: the steps have left rounding errors in them."""
        support = np.flatnonzero(self.gamma)
        self.slopes[:] = c - self.rows_of(support).T @ self.gamma[support]

    def rows_of(self, some: np.ndarray) -> np.ndarray:  # (some, q)
        """Rows of K, in float64."""
        missing = some[~self.ready[some]]
        if len(missing):
            part = np.empty((len(missing), len(self.gamma)), self.K.dtype)
            smo.gather(self.rows, self.slots[missing], self.columns, part)
            self.K[missing] = part
            self.ready[missing] = True
        return self.K[some].astype(np.float64)


def _way_down(A: np.ndarray, E: np.ndarray, v: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """δ with Eᵀδ = 0 towards the minimum of ½δᵀAδ - vᵀδ, and how many times it may be taken.

    Once, where there is a minimum. Where A is singular and v has a part that A cannot reach, the objective
    falls for ever along that part: it is the way to go, up to a bound. What is below the ``noise`` is none.
    """
    f, g = E.shape
    if f > _SINGULAR:
        system = np.zeros((f + g, f + g))
        system[:f, :f] = A
        system[:f, :f].flat[:: f + 1] += _RIDGE
        system[:f, f:], system[f:, :f] = E, E.T
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", linalg.LinAlgWarning)  # What it gives is checked afterwards.
            try:
                found = linalg.solve(system, np.append(v, np.zeros(g)), assume_a="sym", check_finite=False)
            except linalg.LinAlgError:
                return np.zeros(f), 1.0
        return found[:f], 1.0
    Q = np.linalg.qr(E, mode="complete")[0][:, g:] if g else np.eye(f)  # all δ are Qz
    try:
        values, U = np.linalg.eigh(Q.T @ A @ Q)
    except np.linalg.LinAlgError:
        return np.zeros(f), 1.0
    U = Q @ U
    along = U.T @ v
    along[np.abs(along) <= noise] = 0.0
    flat = values <= f * _NOTHING
    beyond = U[:, flat] @ along[flat]
    if np.abs(beyond).max(initial=0.0) > _UNREACHED * np.abs(U @ along).max(initial=0.0):
        return beyond, np.inf
    return U[:, ~flat] @ (along[~flat] / values[~flat]), 1.0
