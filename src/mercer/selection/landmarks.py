r"""Classes learned from all points, on landmarks, where a support vector machine has time for few of them.

We take kernel logistic regression: of adult's 43,957 rows (of covtype's 45,000, class 2 against the rest) it
errs 13.5 % (18.7 %) on 1,000 landmarks in 9 s (5 s) of one core, the squared hinge 13.6 % (18.8 %) in 10 s
(6 s), the hinge takes more than 57 s, and a support vector machine of a quarter of the rows errs 14.1 %
(20.7 %) in 2 s.

Its C is found on points that are held out: from three times that of the support vector machine, for the
logistic loss is smaller, by steps of √10 as long as these err less, each fit from the solution of the last.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import quietly
from mercer.estimators.logistic import KernelLogisticRegression
from mercer.estimators.shared.definite import refutation
from mercer.estimators.shared.landmark_plans import landmark_plan
from mercer.estimators.shared.landmarks import Landmarks
from mercer.estimators.svc import SVC
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.report import Plan
from mercer.runtime.clock import now
from mercer.runtime.config import memory_budget
from mercer.selection.search import Clock
from mercer.solvers.result import Stop

#: There are 20 √n landmarks where time and memory allow it, and so many at least.
_LANDMARKS_PER_ROOT, _LEAST_LANDMARKS = 20.0, 500
#: What the first fit and the last take together, about: passes over the rows, of two classes and of several,
#: and squares of the features of twenty rows per landmark. Fits between them are made while there is time.
_PASSES, _PASSES_OF_SEVERAL, _SQUARES, _ROWS_SQUARED = 25, 80, 5, 20
_BUSY = 1.5  # All of it may take so many times longer, on a machine that is shared.
#: Points whose kernel values are timed: the first of these, or the second where that took less than so long.
_POINTS_TIMED, _SECONDS_WORTH_TIMING = (100, 1000), 0.005
#: The part of the points that is held out, and how many at most: half a percent is then the standard error.
_HELD_OUT, _MOST_HELD_OUT = 0.1, 5000
#: C relative to that of the support vector machine, and the factor of a step.
_FIRST_C, _STEP = 3.0, 10**0.5
#: How near the minimum of the objective fits that are compared end, and the last one.
_TOLERANCE, _LAST_TOLERANCE = 1e-2, 1e-3
_LEAST_SECONDS = 0.3  # A fit has this time, however little is left.
_CUT = (Stop.MAX_TIME, Stop.INTERRUPTED)  # After a fit that ended so, no other is begun but the last.


def on_landmarks(
    X: Points, y: np.ndarray, rival: SVC, order: np.ndarray, clock: Clock, seed: int, held: int = 0
) -> tuple[KernelLogisticRegression | None, Stop]:
    """A machine of all points, and whether somebody interrupted the choice of its C.

    It is None where there is no time for it, and where a rival is better: a machine of the first points in
    this order. Both are compared on the last of them, ``held`` of them where that is given.
    """
    n, kernel = len(y), rival.kernel_
    held = held or held_out_points(n)
    M = _affordable(kernel, X, len(rival.classes_), clock.left)
    if M < _LEAST_LANDMARKS or refutation(kernel, X, centred=False) < 0:
        return None, Stop.CONVERGED
    rest, test = np.sort(order[:-held]), np.sort(order[-held:])
    known, new = data.take(X, rest), data.take(X, test)

    def errors(model: SVC | KernelLogisticRegression) -> int:
        return int(np.count_nonzero(model.predict(new) != y[test]))

    def fitted(model: KernelLogisticRegression, C: float) -> KernelLogisticRegression:
        model.set_params(C=C, max_time=max(clock.left / 2, _LEAST_SECONDS))
        return quietly(model.fit, known, y[rest])

    Z = data.take(X, Landmarks(M, "pivoted", seed).choose(kernel, X, np.ones(n)))
    began = now()
    blank = KernelLogisticRegression(kernel, landmarks=Z, warm_start=True, tol=_TOLERANCE)
    first = best = last = fitted(blank, _FIRST_C * rival.C)
    seconds, least = now() - began, errors(first)
    for factor in (_STEP, 1 / _STEP):
        while last.report_.stopped not in _CUT and 2 * seconds < clock.left:
            last = fitted(copy(best), factor * best.C)
            found = errors(last)
            if found >= least:
                break
            best, least = last, found
        if best is not first:
            break
    stopped = Stop.INTERRUPTED if last.report_.stopped == Stop.INTERRUPTED else Stop.CONVERGED
    if least > errors(rival):
        return None, stopped
    best.set_params(tol=_LAST_TOLERANCE, max_time=max(clock.left, _LEAST_SECONDS)).fit(X, y)
    return best.set_params(max_time=None), stopped


def held_out_points(n: int) -> int:
    """How many of n points are held out to compare machines on."""
    return min(int(_HELD_OUT * n), _MOST_HELD_OUT)


def _affordable(kernel: Kernel, X: Points, classes: int, seconds: float) -> int:
    """How many landmarks there is memory and time for."""
    n, several = data.n_points(X), classes > 2
    outputs, passes = (classes, _PASSES_OF_SEVERAL) if several else (1, _PASSES)
    M, value = int(min(n, _LANDMARKS_PER_ROOT * np.sqrt(n))), _seconds_per_value(kernel, X)
    while M >= _LEAST_LANDMARKS:
        squared = _SQUARES * min(n, _ROWS_SQUARED * M)
        products = Plan("", n, 0, M * (4.0 * passes * n * outputs + 2.0 * squared * M)).seconds
        needed = _BUSY * (M * (passes * n + squared) * value + products)
        if needed <= seconds and landmark_plan(X, M, passes, outputs, "").memory <= memory_budget():
            break
        M = M * 4 // 5
    return M


def _seconds_per_value(kernel: Kernel, X: Points) -> float:
    """The time of one kernel value, in a matrix of many."""
    found = 0.0
    for size in _POINTS_TIMED:
        some = data.take(X, slice(0, size))
        gram = Gram(kernel, some, some, cache=0)
        gram.dense()  # Memory and code are there the second time.
        began = now()
        gram.dense()
        took = now() - began
        found = took / data.n_points(some) ** 2
        if took >= _SECONDS_WORTH_TIMING:
            break
    return found
