r"""How many landmarks? Errors and seconds along a path of nested ones.

The landmarks of every fit are the first M of one order of the points, at random or by pivots as the
estimator's own `Landmarks` say: each fit has those of the one before it, and more. A tenth of the rows is
held out of all fits, and tells the errors. Logistic regression starts from the function on fewer landmarks,
projected on more: w = T⁻ᵀf(Z), where K(Z, Z) = TᵀT. That saves a fifth of its passes; ridge, whose
preconditioner is nearly the inverse itself, would save one of fifteen, and begins anew.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from mercer.data import points as data
from mercer.data.sources.door import opened
from mercer.data.sources.source import DataSource, Opened
from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.estimators.shared.landmarks import LandmarkMixin, Landmarks
from mercer.runtime.clock import now
from mercer.selection.nested import mistakes

#: The part of the rows that is held out, and how many at most: a mean over these is known to a percent.
_HELD_OUT, _MOST_HELD_OUT = 0.1, 20_000


@dataclass(frozen=True, eq=False)
class LandmarkPath:
    """Fits on more and more landmarks; printed, it is a table."""

    #: (fits,) M
    numbers: np.ndarray
    #: (fits,) the share of wrong labels, or the root of the mean squared error, on the rows held out
    errors: np.ndarray
    #: (fits,) of each fit alone
    seconds: np.ndarray
    #: the fitted estimators
    models: tuple[Model, ...]
    #: (m,) the rows held out
    rows: np.ndarray

    def __str__(self) -> str:
        lines = [
            f"{number:>9,}  {error:>10.4g}  {seconds:>8.3g}"
            for number, error, seconds in zip(self.numbers, self.errors, self.seconds, strict=True)
        ]
        return "\n".join(["landmarks       error   seconds", *lines])


def landmark_path(
    estimator: Model,
    X: Points | str | os.PathLike[str] | DataSource,
    y: Targets,
    numbers: Sequence[int],
    *,
    random_state: int = 0,
) -> LandmarkPath:
    """Fit clones of the estimator on each of the numbers of landmarks, in rising order.

    The estimator's ``landmarks`` says how they are chosen, ``Landmarks(1, "pivoted")`` for one; its number
    does not count. The rows held out, chosen by ``random_state``, have the weight 0. X may be in
    a file, and y the name of a column, as in ``fit``.

    >>> from mercer import Gaussian, KernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (2000, 2))
    >>> y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=2000)
    >>> path = landmark_path(KernelRidge(0.01, kernel=Gaussian(0.7)), X, y, [25, 50, 100, 200])
    >>> path.numbers, path.errors.round(1)
    (array([ 25,  50, 100, 200]), array([0.7, 0.3, 0.1, 0.1]))
    """
    _require_learner(estimator)
    table, y, _ = opened(X, y)
    points = table.points if isinstance(table, Opened) else table
    wanted, targets = _rising(numbers), np.asarray(y)
    n = data.n_points(points)
    if len(targets) != n:
        raise InputError(
            f"X and y must be of the same points, got {n} and {len(targets)}: pass one target for each point"
        )
    weight = np.ones(n)
    held_out = min(_MOST_HELD_OUT, round(_HELD_OUT * n))
    if not held_out:
        raise InputError(f"a path holds out a tenth of the rows, got {n} of them: pass more")
    test = np.sort(np.random.default_rng(random_state).choice(n, held_out, replace=False))
    weight[test] = 0.0
    order = _order(estimator, points, weight, int(wanted[-1]))
    models: list[Any] = []
    seconds = []
    for M in np.unique(np.minimum(wanted, len(order))):
        model: Any = clone(estimator).set_params(landmarks=np.sort(order[:M]))
        own = {name: value for name, value in model.get_params().items() if name == "warm_start"}
        if models and own:  # A learner that can starts from the smaller fit.
            model.set_params(warm_start=True).expansion_ = models[-1].expansion_
        began = now()
        models.append(model.fit(table, y, sample_weight=weight).set_params(**own))
        seconds.append(now() - began)
    rows, is_class = data.take(points, test), is_classifier(estimator)
    new: Any = replace(table, points=rows) if isinstance(table, Opened) else rows
    errors = [mistakes(model.predict(new), targets[test], is_class) for model in models]
    found = np.array([len(model.landmarks) for model in models])
    return LandmarkPath(found, np.array(errors), np.array(seconds), tuple(models), test)


def _require_learner(estimator: Model) -> None:
    if not isinstance(estimator, LandmarkMixin) or not hasattr(estimator, "predict"):
        raise InputError(
            "a path over landmarks needs a learner that has them and predicts, got "
            f"{type(estimator).__name__}: pass KernelRidge(), KernelLogisticRegression(), …"
        )


def _rising(numbers: Sequence[int]) -> np.ndarray:
    given = np.unique(np.asarray(numbers))
    if given.ndim != 1 or given.dtype.kind not in "iu" or not given.size or given[0] < 1:
        raise InputError(f"numbers must hold numbers of landmarks, got {numbers!r}: pass [250, 500, 1000]")
    return given


def _order(estimator: Any, X: Points, weight: np.ndarray, most: int) -> np.ndarray:
    """Positions of landmarks, the first of them for the smallest fit; fewer where no more are independent."""
    probe, given = clone(estimator), estimator.landmarks
    points = probe._validate_fit(X, sample_weight=weight)
    chosen = given if isinstance(given, Landmarks) else Landmarks(1)
    return Landmarks(most, chosen.choice, chosen.random_state).order(probe.kernel_, points, weight)
