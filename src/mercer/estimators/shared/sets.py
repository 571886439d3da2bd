r"""Sets of classes that hold the right one as often as is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.estimators.shared.uncertain import check_coverage
from mercer.solvers.conformal import quantile

#: what is guaranteed of sets without points held out, in words
SETS = (
    "the class is in the set for {coverage} of new points or more, if the probabilities are right; they "
    "are learned from this model alone, and no bound is proved"
)


def likely(probabilities: np.ndarray, coverage: float) -> np.ndarray:  # (n, classes) -> (n, classes) bool
    """The likeliest classes of each point, as many as it takes for their probabilities to sum to that.

    >>> likely(np.array([[0.95, 0.03, 0.02], [0.5, 0.1, 0.4]]), 0.9)
    array([[ True, False, False],
           [ True, False,  True]])
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    before = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1)
    before = np.pad(before, ((0, 0), (1, 0)))[:, :-1]
    found = np.empty(probabilities.shape, np.bool_)
    np.put_along_axis(found, order, before < coverage - 1e-12, axis=1)
    return found


def set_threshold(probabilities: np.ndarray, codes: np.ndarray, coverage: float) -> float:
    """The probability from which on a class is in the set, by points held out whose classes are known.

    Split conformal: the k-th largest probability of a right class, k = ⌈p (n + 1)⌉; 0 where k > n.

    >>> set_threshold(np.array([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]]), np.array([0, 1, 1]), 0.75)
    0.4
    """
    right = probabilities[np.arange(len(codes)), codes]
    return max(-float(quantile(-right[:, None], coverage)[0]), 0.0)


class PredictionSetMixin:
    """For classifiers with ``predict_proba``."""

    classes_: np.ndarray

    @available_if(lambda model: hasattr(model, "predict_proba"))
    def predict_set(
        self, X: Points, coverage: float = 0.9, *, held_out: Any = None
    ) -> np.ndarray:  # (n, classes) bool
        """Which classes are in a set that is to hold the right one; columns in the order of ``classes_``.

        Without ``held_out`` it is the likeliest classes, until their probabilities sum to ``coverage``: it
        holds the right one so often, or more often, if the probabilities are right. With points that the
        model has not seen it is the classes of at least a probability that is theirs (split conformal), and
        the prediction: where these and the new points are exchangeable, the right class is inside with a
        probability of at least ``coverage``, whatever the probabilities are worth.

        Parameters
        ----------
        X : the points
        coverage : how often the right class is to be inside, between 0 and 1
        held_out : (points, labels) that were not learned from
        """
        coverage = check_coverage(coverage)
        probabilities = self.predict_proba(X)  # type: ignore[attr-defined]
        if held_out is None:
            return likely(probabilities, coverage)
        points, labels = held_out
        labels = np.asarray(labels)
        codes = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        if (self.classes_[codes] != labels).any():
            other = labels[self.classes_[codes] != labels].tolist()[0]
            raise InputError(
                f"held_out has the label {other!r}, which the model does not know: leave such points out"
            )
        least = set_threshold(self.predict_proba(points), codes, coverage)  # type: ignore[attr-defined]
        found = probabilities >= least
        found[np.arange(len(found)), probabilities.argmax(axis=1)] = True
        return found
