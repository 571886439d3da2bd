r"""Probabilities of a support vector machine from folds, where rows left out one by one would flatter it.

>>> from mercer import SVC
>>> X, y = np.arange(8.0)[:, None], np.array([0, 0, 1, 0, 1, 0, 1, 1])
>>> odd = np.arange(8) % 2 == 1
>>> model = SVC(kernel="linear").fit(X, y)
>>> slopes_apart(model, X, y, [(np.flatnonzero(odd), np.flatnonzero(~odd))]).shape
(1, 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from sklearn.base import clone

from mercer.data import points as data
from mercer.data.folds import Fold
from mercer.data.types import Points
from mercer.errors import quietly
from mercer.estimators.svc import SVC
from mercer.solvers.svm.calibration import fit_binary


def slopes_apart(
    model: SVC, X: Points, y: np.ndarray, folds: Sequence[Fold]
) -> np.ndarray | None:  # (problems, 2)
    """``slopes_`` of a fitted machine, from the values of machines that have not seen the rows of a fold.

    None where folds do not tell of both sides of some pair of classes.
    """
    classes = model.classes_
    if len(classes) > 2 and not model._by_pairs:  # each class against the rest
        sides = [(classes[[k]], np.delete(classes, k)) for k in range(len(classes))]
    else:
        sides = [(classes[[i]], classes[[j]]) for i, j in combinations(range(len(classes)), 2)]
    values: list[list[np.ndarray]] = [[] for _ in sides]
    signs: list[list[np.ndarray]] = [[] for _ in sides]
    for train, test in folds:
        for p, (own, others) in enumerate(sides):
            both = np.concatenate([own, others])
            known, new = train[np.isin(y[train], both)], test[np.isin(y[test], both)]
            is_own = np.isin(y[known], own)
            if len(new) == 0 or is_own.all() or not is_own.any():
                continue
            machine = clone(model).set_params(probability=False, max_time=None)
            quietly(machine.fit, data.take(X, known), is_own)
            values[p].append(np.asarray(machine.decision_function(data.take(X, new))))
            signs[p].append(np.where(np.isin(y[new], own), 1.0, -1.0))
    if any(len(np.unique(np.concatenate([np.empty(0), *one]))) < 2 for one in signs):
        return None
    found = [fit_binary(np.concatenate(f), np.concatenate(s)) for f, s in zip(values, signs, strict=True)]
    # Of two classes f is positive for the second one.
    return np.array(found)[:, ::-1] if len(classes) == 2 else np.array(found)
