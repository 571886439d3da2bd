r"""What a kernel is worth on some points: by exact leave-one-out, or by folds that share one Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from mercer import data
from mercer.config import config, settings
from mercer.estimators.svc import SVC
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.selection.search import Score
from mercer.solvers.ridge import ridge_path
from mercer.threads import limited_blas

__all__ = ["PENALTIES", "left_out", "machine_errors"]

#: C of support vector machines, for kernels with k(x, x) about 1
PENALTIES = tuple(float(c) for c in 10.0 ** np.arange(-0.5, 3.1, 0.5))
_SMALL = 600  # points
#: multiples of λ by the evidence
_MULTIPLES = 10.0 ** np.arange(-2.0, 1.1, 0.5)


def left_out(X: Any, Y: np.ndarray) -> Callable[[Kernel, float, np.ndarray], Score]:
    """Kernel ridge: the root of the mean squared error left out, exact, over some penalties about λ."""

    def score(kernel: Kernel, noise: float, which: np.ndarray) -> Score:
        best = Score(np.inf, np.inf, noise)
        alphas = noise * _MULTIPLES
        with limited_blas():
            K = np.asarray(Gram(kernel, data.take(X, which), cache=0).dense(), dtype=np.float64)
            path = ridge_path(K, Y[which], alphas, np.ones(len(which)))
            for alpha, point in zip(alphas, path, strict=True):
                if point is None or not np.isfinite(point.errors).all():
                    continue
                error = float(np.sqrt(np.mean(point.errors**2)))
                if error < best.error:
                    best = Score(error, error, float(alpha))
        return best

    return score


def machine_errors(
    X: Any, codes: np.ndarray, seed: int = 0, folds: int = 5
) -> Callable[[Kernel, float, np.ndarray], Score]:
    """Support vector machines: the share of errors over folds, for the best C of a path.

    K is computed once; a fold is a set of its indices, and the machines of a fold start from one another.
    Equal errors are decided by the mean squared error left out of ridge regression on the signs.
    """

    def score(kernel: Kernel, noise: float, which: np.ndarray) -> Score:
        y = codes[which]
        K = np.asarray(Gram(kernel, data.take(X, which), cache=0).dense(), dtype=np.float64)
        wrong = np.zeros(len(PENALTIES))
        fewest = int(np.bincount(y)[np.unique(y)].min()) if len(np.unique(y)) > 1 else 0
        if fewest < 2:
            return Score(1.0, 1.0, 1.0)
        splitter = StratifiedKFold(min(folds, fewest), shuffle=True, random_state=seed)
        threads = 1 if len(y) < _SMALL else settings().threads  # to start some takes longer than small fits
        for train, test in splitter.split(y, y):
            machine = SVC(kernel="precomputed")
            with config(threads=threads):
                models = machine.path(K[np.ix_(train, train)], y[train], PENALTIES)
                for i, model in enumerate(models):
                    wrong[i] += np.count_nonzero(model.predict(K[np.ix_(test, train)]) != y[test])
        best = int(wrong.argmin())
        return Score(float(wrong[best]) / len(y), float(wrong.mean()) / len(y), PENALTIES[best])

    return score
