"""What docs/learners.md says of scikit-learn's estimators, by running both."""

import warnings

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA as TheirPCA
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.linear_model import Perceptron as TheirPerceptron

from mercer import KernelPCA, KernelRidge, Perceptron
from mercer.errors import InputError

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(60, 4)), rng.normal(size=(10, 4))
y = X[:, 0] ** 2 + 3


def test_defaults():
    theirs, ours = TheirRidge(), KernelRidge()
    assert (theirs.kernel, theirs.gamma, theirs.coef0) == ("linear", None, 1)
    assert (ours.kernel, ours.gamma, ours.coef0, ours.fit_intercept) == ("rbf", "scale", 1.0, True)
    theirs, ours = TheirPCA(), KernelPCA()
    assert (theirs.kernel, theirs.gamma, theirs.coef0) == ("linear", None, 1)
    assert (ours.kernel, ours.gamma, ours.coef0) == ("rbf", "scale", 0.0)
    theirs, ours = TheirPerceptron(), Perceptron()
    assert (theirs.shuffle, theirs.tol) == (True, 1e-3) and ours.shuffle is False


@pytest.mark.parametrize("weight", [None, rng.uniform(0, 2, 60)])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_ridge_is_the_same_with_these_settings(kernel, weight):
    theirs = TheirRidge(kernel=kernel, alpha=0.5).fit(X, y, weight)
    ours = KernelRidge(kernel=kernel, alpha=0.5, gamma="auto", fit_intercept=False).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-9)


def test_ridge_on_singular_and_indefinite_matrices():
    twice, targets = np.r_[X, X], np.r_[y, y]
    with pytest.warns(UserWarning, match="Singular"):
        TheirRidge(kernel="linear", alpha=0).fit(twice, targets)
    ours = KernelRidge(kernel="linear", alpha=0, fit_intercept=False).fit(twice, targets)
    w = np.linalg.lstsq(twice, targets, rcond=None)[0]
    np.testing.assert_allclose(ours.predict(Z), Z @ w, rtol=1e-6)
    TheirRidge(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X, y)
    with pytest.raises(InputError, match="not positive definite"):
        KernelRidge(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X, y)


def test_components_are_the_same_with_these_settings():
    theirs, ours = TheirPCA(5, kernel="rbf").fit(X), KernelPCA(5, gamma="auto").fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(ours.transform(Z), theirs.transform(Z), atol=1e-10)  # signs included


def test_what_only_one_of_the_two_takes():
    with pytest.raises(ValueError, match="n_components"):
        TheirPCA(0.9, kernel="rbf").fit(X)
    assert KernelPCA(0.9).fit(X).explained_variance_ratio_.sum() >= 0.9
    with pytest.raises(NotFittedError, match="fit_inverse_transform"):
        TheirPCA(2, kernel="rbf").fit(X).inverse_transform(np.zeros((1, 2)))
    assert KernelPCA(2).fit(X).inverse_transform(np.zeros((1, 2))).shape == (1, 4)
    with pytest.raises(ValueError, match="significant negative eigenvalues"):
        TheirPCA(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X)
    with pytest.raises(InputError, match="not positive definite"):
        KernelPCA(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X)


def separable(seed):
    rng = np.random.default_rng(seed)
    points, w = rng.normal(size=(40, 3)), rng.normal(size=3)
    f = points @ w
    points, labels = points[abs(f) > 0.05], np.sign(f[abs(f) > 0.05])
    # a first point of the positive class: what f = 0 means is a convention, and both then call it a mistake
    return (points, labels) if labels[0] > 0 else (-points, -labels)


def test_perceptrons():
    finished = 0
    for seed in range(20):
        points, labels = separable(seed)
        ours = Perceptron(max_iter=5000).fit(points, labels)
        theirs = TheirPerceptron(shuffle=False, tol=None, max_iter=5000).fit(points, labels)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)
        assert ours.score(points, labels) == 1.0
        finished += TheirPerceptron().fit(points, labels).score(points, labels) == 1.0
    assert finished < 20  # scikit-learn's stops by its tol on some of them, with mistakes left


def test_perceptrons_on_what_cannot_be_separated():
    noise = np.where(rng.uniform(size=60) < 0.5, 1, -1)
    with pytest.warns(UserWarning, match="did not separate"):
        Perceptron(max_iter=20).fit(X, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TheirPerceptron(max_iter=20).fit(X, noise)
