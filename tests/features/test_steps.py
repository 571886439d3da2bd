"""Explicit maps as steps of scikit-learn's pipelines."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, KernelRidge, Linear, Polynomial
from mercer.features import GaussianTaylorMap, PolynomialMap

X = np.random.default_rng(0).normal(size=(40, 2))
MAPS = [PolynomialMap(2, c=1.0), GaussianTaylorMap(2.0, 3)]


@parametrize_with_checks([PolynomialMap(), PolynomialMap(3, c=1.0), GaussianTaylorMap(sigma=2.0, order=2)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("Phi", MAPS)
def test_transform_is_the_map(Phi):
    fitted = clone(Phi).fit(X)
    np.testing.assert_array_equal(fitted.transform(X), Phi(X))
    np.testing.assert_array_equal(Phi.transform(X), Phi(X))  # nothing is learned: no fit is needed
    np.testing.assert_array_equal(clone(Phi).fit_transform(sparse.csr_array(X)), Phi(X))
    assert fitted.n_features_in_ == 2 and fitted == Phi and "n_features_in_" not in fitted.get_params()


@pytest.mark.parametrize("Phi", MAPS)
def test_names_and_frames(Phi):
    frame = pd.DataFrame(X, columns=["u", "v"])
    fitted = clone(Phi).set_output(transform="pandas").fit(frame)
    out = fitted.transform(frame)
    assert list(out.columns) == fitted.get_feature_names_out().tolist() == Phi.feature_names(["u", "v"])
    np.testing.assert_array_equal(out.to_numpy(), Phi(X))
    assert clone(fitted).fit_transform(frame).columns.tolist() == list(
        out.columns
    )  # a clone keeps the output
    assert clone(Phi).fit(X).get_feature_names_out().tolist() == Phi.feature_names(["x0", "x1"])
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame.rename(columns={"u": "w"}))
    with pytest.raises(NotFittedError):
        clone(Phi).get_feature_names_out()


def test_names_of_the_taylor_map_say_what_is_computed():
    Phi = GaussianTaylorMap(sigma=1.5, order=3)
    x = np.array([[0.7, -0.4]])
    names = Phi.feature_names(["u", "v"])
    scope = {"u": 0.7, "v": -0.4, "bell": np.exp(-(0.7**2 + 0.4**2) / 4.5)}
    texts = [n.replace("exp(-|x|^2/4.5)", "bell").replace("^", "**").replace(" ", "*") for n in names]
    np.testing.assert_allclose([eval(text, scope) for text in texts], Phi(x)[0], rtol=1e-5)


def test_a_pipeline_of_a_map_and_a_linear_model_is_the_kernel_model():
    y = X[:, 0] * X[:, 1] + X[:, 0]
    explicit = make_pipeline(PolynomialMap(2, c=1.0), Ridge(alpha=0.5, fit_intercept=False)).fit(X, y)
    implicit = KernelRidge(alpha=0.5, kernel=Polynomial(2, c=1.0), fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(explicit.predict(X), implicit.predict(X), rtol=1e-9)


def test_a_search_over_the_degree():
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    steps = make_pipeline(StandardScaler(), PolynomialMap(1), LogisticRegression(C=100.0))
    search = GridSearchCV(steps, {"polynomialmap__degree": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"polynomialmap__degree": 2}


def test_a_map_is_still_a_map_of_kernels():
    K = (Linear() @ PolynomialMap(2, c=1.0))(X)
    np.testing.assert_allclose(K, Polynomial(2, c=1.0)(X), rtol=1e-12, atol=1e-13)
    K = (Linear() @ GaussianTaylorMap(2.0, 30))(X)
    np.testing.assert_allclose(K, Gaussian(2.0)(X), rtol=1e-9)
