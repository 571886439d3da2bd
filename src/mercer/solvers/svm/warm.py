r"""Starts from the solution of a like problem."""

from __future__ import annotations

import numpy as np

from mercer.solvers.svm.problems import ClassesWithPart, OneClass, Task, filled
from mercer.solvers.svm.program import QuadraticProgram


def warm(task: Task, gamma: np.ndarray, energy: float) -> Task:
    """The task from the γ of another one, as far as its bounds and sums allow.

    Along sγ the objective is ½s²γᵀKγ - s cᵀγ, with γᵀKγ = ``energy``: the best s is taken. Where signs or
    bounds changed, γ is brought between the new ones, and the sums are repaired. A γ that does not fit at all
    (another number of variables, nothing left of it) is not used.

    >>> from mercer.solvers.svm.problems import c_svc
    >>> old = c_svc(np.array([1.0, -1.0]), np.ones(2))
    >>> warm(old, np.array([0.25, -0.25]), 0.25).program.start
    array([ 0.5, -0.5])
    """
    p = task.program
    gamma = np.asarray(gamma, dtype=np.float64)
    if gamma.shape != p.c.shape or not np.isfinite(gamma).all():
        return task
    if len(gamma) == task.points:
        gamma = gamma[p.position]
    inside = np.clip(gamma, p.lo, p.hi)
    groups = [slice(0, p.split), slice(p.split, len(gamma))]
    if not inside.any():
        return task
    if isinstance(task, ClassesWithPart | OneClass):
        return task.from_start(np.concatenate([_summed(p, inside, g, task.total) for g in groups]))
    if np.isnan(task.total):
        sides = [gamma > 0, gamma < 0]
    else:
        sides = [np.arange(len(gamma)) < p.split, np.arange(len(gamma)) >= p.split]
    rising, falling = gamma > 0, gamma < 0
    room = np.concatenate([p.hi[rising] / gamma[rising], p.lo[falling] / gamma[falling]])
    most = float(room.min())
    if most > 0:  # all signs are right
        gain = float((p.c * gamma).sum())
        if gain <= 0:
            return task  # To start from 0 is better.
        inside = np.clip(min(gain / energy if energy > 0 else 1.0, most) * gamma, p.lo, p.hi)
    if not p.balanced:
        return task.from_start(inside)
    sums = [float(np.abs(inside[side]).sum()) for side in sides]
    least = min(*sums, task.total) if task.total > 0 else min(sums)
    if least == 0:
        return task
    for side, total in zip(sides, sums, strict=True):
        inside[side] *= least / total
    if task.total > least:
        # ν-SVR: both variables of some points are raised by the same, which leaves f as it is
        first, second = groups
        both = filled(
            np.minimum(p.hi[first] - inside[first], inside[second] - p.lo[second]), task.total - least
        )
        inside = np.clip(inside + np.concatenate([both, -both]), p.lo, p.hi)
    return task.from_start(inside)


def _summed(p: QuadraticProgram, gamma: np.ndarray, group: slice, total: float) -> np.ndarray:
    """γ of a group with Σ|γ| = total: scaled, as far as bounds allow; then the rest is raised.

    Variables that are not 0 come first, then those that the task would start with: they can take it all.
    """
    bound = np.maximum(np.abs(p.lo), np.abs(p.hi))[group]
    sign = np.where(p.hi[group] > 0, 1.0, -1.0)
    size, start = np.abs(gamma[group]), np.abs(p.start[group])
    if size.any():
        size = np.minimum(size * (total / size.sum()), bound)
    for top in (np.where(size > 0, bound, 0.0), start):
        room = np.maximum(top - size, 0.0)
        missing, most = total - float(size.sum()), float(room.sum())
        if missing > 0 and most > 0:
            size = np.minimum(size + room * min(1.0, missing / most), bound)
    return sign * size
