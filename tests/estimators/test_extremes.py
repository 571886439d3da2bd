"""Parameters beyond all measure: an estimator refuses them in a sentence, or fits with them."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from mercer import (
    SVC,
    SVR,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
    ParzenClassifier,
    Perceptron,
)

NUMBERS = [0, -1, np.nan, np.inf, 1e300, 1e-300, 10**30, 10**400, "many"]
X = np.random.default_rng(0).normal(size=(10, 2))
LABELS, VALUES = (X[:, 0] > 0).astype(int), X[:, 1]

ESTIMATORS = [
    *(
        SVC(),
        NuSVC(nu=0.3),
        SVR(),
        NuSVR(),
        OneClassSVM(),
        KernelRidge(),
        KernelRidgeCV(),
        KernelLeastSquares(),
    ),
    *(
        KernelLeastSquares(),
        KernelLogisticRegression(),
        KernelFisherDiscriminant(),
        KernelPCA(n_components=2),
    ),
    *(
        ParzenClassifier(),
        KernelPerceptron(max_iter=9),
        Perceptron(max_iter=9),
        KernelMachineClassifier(),
        KernelMachineRegressor(),
    ),
    *(KernelMachineRegressor(loss="huber"), KernelMachineRegressor(loss="quantile")),
]
#: numbers whose default is a word, or None
NUMERIC = {
    "gamma",
    "n_components",
    "lam",
    "max_iter",
    "alpha",
    "tol",
    "max_time",
    "priors",
    "alphas",
    "rcond",
}


def names(model):
    for name, value in model.get_params(deep=False).items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number or name in NUMERIC:
            yield name


@pytest.mark.sample(2)
@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: repr(model)[:40])
def test_extreme_parameters_are_refused_or_fitted_with(model):
    """A ValueError with a sentence, or finite predictions; nothing of Python's, NumPy's or Numba's own."""
    y = LABELS if is_classifier(model) else VALUES
    for name in names(model):
        for number in NUMBERS:
            changed = clone(model).set_params(**{name: number})
            if name in ("degree", "coef0"):
                changed.set_params(kernel="poly")
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    changed.fit(X, y)
                    method = changed.transform if isinstance(model, KernelPCA) else changed.predict
                    assert np.isfinite(method(X)).all(), (name, number)
            except ValueError as error:
                assert " " in str(error) and 20 < len(str(error)) < 1000, (name, number)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            SVC(C=1e300),
            r'C must be positive, got 1e\+300: pass a positive number up to 1e100, or float\("inf"\)',
        ),
        (NuSVR(C=10**400), "C must be positive and at most 1e100, of at most 4.6e"),
        (SVC(max_iter=2**70), "max_iter must be a whole number of at least -1, of at most 4.6e"),
        (KernelRidge(alpha=10**5000), "alpha must be .*, got an integer of 16610 bits"),
        (KernelFisherDiscriminant(priors=[10**400, 1]), "priors must be 2 numbers that are zero or more"),
    ],
)
def test_the_sentences(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, LABELS if is_classifier(model) else VALUES)
