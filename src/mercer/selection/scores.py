r"""What a kernel is worth on some points: by exact leave-one-out, or by folds that share one Gram matrix."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError

from mercer.data import points as data
from mercer.data.apart import Apart
from mercer.data.folds import stratified_folds
from mercer.data.types import Points
from mercer.estimators.shared.origin import moved, origin_of
from mercer.estimators.svc import SVC
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.runtime.config import config
from mercer.runtime.threads import run, single_threaded_blas
from mercer.selection.search import Score
from mercer.solvers.linear.apart import errors_from_before, errors_left_out
from mercer.solvers.linear.ridge import downhill, ridge_valley
from mercer.solvers.svm.folds import MOST_POINTS, Fold, mistakes_of_paths

#: C of support vector machines, in units of 1 / mean k(x, x): K/c with C·c gives the same machine
PENALTIES = tuple(float(c) for c in 10.0 ** np.arange(-0.5, 4.6, 0.5))
#: the largest number of points that are scored by folds
MOST_FOR_FOLDS = MOST_POINTS * 5 // 4
_TOLERANCE = 1e-2  # machines are scored with it: ten times the default is enough for errors
#: penalties that are tried, relative to λ of the evidence
_PENALTY_FACTORS = 10.0 ** np.arange(-2.0, 1.1, 0.5)


class RidgeErrors:
    """Kernel ridge: the root of the mean squared error left out, exact, over some penalties about λ.

    A point is left out alone, with its group, or with all that is not before it.
    """

    def __init__(self, X: Points, Y: np.ndarray, apart: Apart | None = None) -> None:
        self.X, self.Y, self.apart = X, Y, apart

    def of(self, rows: np.ndarray) -> RidgeErrors:
        """The same for some of the points."""
        return RidgeErrors(data.take(self.X, rows), self.Y[rows], _some(self.apart, rows))

    def __call__(self, kernel: Kernel, noise: float, which: np.ndarray) -> Score:
        X, Y = data.take(self.X, which), self.Y[which]
        apart = _some(self.apart, which)
        error, penalty = least_left_out(kernel, X, Y, noise * _PENALTY_FACTORS, noise, apart)
        return Score(error, error, penalty)


def least_left_out(
    kernel: Kernel,
    X: Points,
    Y: np.ndarray,
    penalties: np.ndarray,
    near: float,
    apart: Apart | None = None,
) -> tuple[float, float]:
    """The root of the least mean squared error left out, and its penalty: downhill from that near to one."""
    start = int(np.abs(np.log(penalties / near)).argmin())
    if apart is not None:
        of = _ErrorsApart(kernel, X, Y, apart)
        best, error = downhill(lambda i: of.mean_square(penalties[i]), len(penalties), start)
        return float(np.sqrt(error)), float(penalties[best])
    with single_threaded_blas():
        X = moved(X, origin_of(kernel, X, is_free=True))
        K = np.asarray(Gram(kernel, X, cache=0).dense(), dtype=np.float64)
        penalty, error = ridge_valley(K, Y, penalties, start)
    return float(np.sqrt(error)), penalty


def errors_apart(kernel: Kernel, X: Points, Y: np.ndarray, penalty: float, apart: Apart) -> np.ndarray:
    """The errors of points that are left out with their groups, or predicted from what is before; (m, t)."""
    try:
        errors = _ErrorsApart(kernel, X, Y, apart).of(penalty)
    except LinAlgError:  # No penalty that was tried gives them.
        return np.full((1, Y.shape[1]), np.inf)
    return errors[np.isfinite(errors).all(axis=1)]


class _ErrorsApart:
    """Errors of kernel ridge at any penalty, with K computed once."""

    def __init__(self, kernel: Kernel, X: Points, Y: np.ndarray, apart: Apart) -> None:
        apart.require(2, "an error of what was not learned from takes")
        self.Y, self.apart = Y, apart
        with single_threaded_blas():
            X = moved(X, origin_of(kernel, X, is_free=True))
            self.K = np.asarray(Gram(kernel, X, cache=0).dense(), dtype=np.float64)

    def of(self, penalty: float) -> np.ndarray:  # (n, t)
        errors = errors_from_before if self.apart.is_ordered else errors_left_out
        with single_threaded_blas():
            return errors(self.K, self.Y, float(penalty), self.apart.blocks())

    def mean_square(self, penalty: float) -> float:
        try:
            return float(np.nanmean(self.of(penalty) ** 2))
        except LinAlgError:
            return np.inf


def _some(apart: Apart | None, rows: np.ndarray) -> Apart | None:
    return None if apart is None else apart.take(rows)


class MachineErrors:
    """Support vector machines: the share of errors over folds, for the best C of a path.

    K is computed once for a path; a fold is a set of its indices, and the machines of a fold start from one
    another. Of more points than `MOST_FOR_FOLDS`, each fold is an SVC with rows of its own.
    Single errors are noisy: what is compared is the mean over neighbouring C, and equal means are decided by
    the mean over all. Folds keep ``apart`` what belongs together.
    """

    def __init__(
        self, X: Points, codes: np.ndarray, seed: int = 0, folds: int = 5, apart: Apart | None = None
    ) -> None:
        self.X, self.codes, self.seed, self.folds, self.apart = X, codes, seed, folds, apart

    def of(self, rows: np.ndarray) -> MachineErrors:
        """The same for some of the points."""
        X, apart = data.take(self.X, rows), _some(self.apart, rows)
        return MachineErrors(X, self.codes[rows], self.seed, self.folds, apart)

    def __call__(self, kernel: Kernel, noise: float, which: np.ndarray) -> Score:
        errors, penalties = self.path(kernel, which)
        smooth = neighbours(errors)
        best = int(smooth.argmin())
        return Score(float(smooth[best]), float(errors.mean()), float(penalties[best]))

    def path(
        self,
        kernel: Kernel,
        which: np.ndarray,
        rounds: Sequence[int] = (0,),
        part: slice = slice(None),
        end: float = np.inf,
    ) -> tuple[np.ndarray, np.ndarray]:  # (m,), (m,)
        """The errors for every C of a part of `PENALTIES`, and C; each round cuts other folds.

        From ``end`` on, by `clock.now`, no larger C is tried: the last errors stand for theirs.
        A point that is alone in its class is in no fold, and counts as wrong; all are 1 without two classes.
        """
        _, y, counts = np.unique(self.codes[which], return_inverse=True, return_counts=True)
        which, alone = which[counts[y] > 1], int(np.sum(counts == 1))
        _, y = np.unique(self.codes[which], return_inverse=True)
        fewest = int(counts[counts > 1].min(initial=len(y)))
        if y.max(initial=0) == 0:
            return np.ones(len(PENALTIES[part])), np.array(PENALTIES[part])
        X = data.take(self.X, which)
        gram = Gram(kernel, X, cache=0)
        unit = float(np.mean(gram.diag()))
        penalties = np.array(PENALTIES[part]) / (unit if unit > 0 else 1.0)
        folds, rounds = self._cut(y, which, fewest, rounds)
        tested = sum(len(test) for _, test in folds) / len(rounds)
        if len(which) <= MOST_FOR_FOLDS:
            K = np.asarray(gram.dense(), dtype=np.float64)
            wrong = mistakes_of_paths(K, y, folds, penalties, end)
        else:
            wrong = _mistakes_of_paths(kernel, X, y, folds, penalties)
        return (wrong / len(rounds) + alone) / (tested + alone), penalties

    def _cut(
        self, y: np.ndarray, which: np.ndarray, fewest: int, rounds: Sequence[int]
    ) -> tuple[list[Fold], Sequence[int]]:
        """The folds of all rounds, and these: in the order of time there is one way to cut."""
        seeds = [(self.seed + number) % 2**32 for number in rounds]
        if self.apart is None:
            parts = min(self.folds, fewest)
            return [fold for seed in seeds for fold in stratified_folds(y, parts, seed)], rounds
        apart = self.apart.take(which)
        apart.require(2, "an error of what was not learned from takes")
        parts = min(self.folds, apart.count)
        if apart.is_ordered:
            return apart.folds(parts), rounds[:1]
        return [fold for seed in seeds for fold in apart.folds(parts, seed, y)], rounds


def _mistakes_of_paths(
    kernel: Kernel, X: Points, y: np.ndarray, folds: Sequence[Fold], penalties: np.ndarray
) -> np.ndarray:  # (m,)
    """What `mistakes_of_paths` gives, for folds that are too large for it: each has a thread."""
    wrong = np.zeros((len(folds), len(penalties)), np.int64)

    def one(number: int) -> None:
        train, test = folds[number]
        if (y[train] == y[train[0]]).all():  # as where a class is of one group
            wrong[number] = np.count_nonzero(y[test] != y[train[0]])
            return
        new = data.take(X, test)
        with config(threads=1, progress=False):
            models = SVC(kernel=kernel, tol=_TOLERANCE).path(data.take(X, train), y[train], penalties)
            wrong[number] = [np.count_nonzero(model.predict(new) != y[test]) for model in models]

    with warnings.catch_warnings():  # Only the warnings of the last machine are of interest.
        warnings.simplefilter("ignore")
        run(one, range(len(folds)))
    return wrong.sum(axis=0)


def neighbours(values: np.ndarray) -> np.ndarray:
    """Each value averaged with the two beside it, (1, 2, 1)/4, along every axis; of those that are not nan.

    >>> neighbours(np.array([0.0, 4.0, 8.0, np.nan]))
    array([1.33333333, 4.        , 6.66666667,        nan])
    """
    known = np.isfinite(values)
    total, weight = np.where(known, values, 0.0), known.astype(np.float64)
    for axis in range(values.ndim):
        total, weight = (2.0 * a + sum(beside(a, axis)) for a in (total, weight))
    return np.where(known, total / np.maximum(weight, 1.0), np.nan)


def beside(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """What stands before and after each value along an axis; 0 at the ends.

    >>> beside(np.array([1, 2, 3]), axis=0)
    (array([0, 1, 2]), array([2, 3, 0]))
    """
    end = np.zeros_like(values.take([0], axis))
    last = values.shape[axis] - 1
    before = np.concatenate([end, values.take(range(last), axis)], axis)
    after = np.concatenate([values.take(range(1, last + 1), axis), end], axis)
    return before, after
