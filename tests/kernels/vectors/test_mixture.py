"""k(x, x') = Σ_c P(c) p(x|c) p(x'|c), against the sum written out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from mercer import SVC, ConditionalExpectation, Gram, certify
from mercer.errors import InputError
from mercer.kernels.compose import Normalized


@pytest.fixture
def X(rng):
    return np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) * [0.5, 1.5] + 3])


def covariance(mixture, c, d):
    stored = mixture.covariances_
    return {
        "full": lambda: stored[c],
        "tied": lambda: stored,
        "diag": lambda: np.diag(stored[c]),
        "spherical": lambda: stored[c] * np.eye(d),
    }[mixture.covariance_type]()


def by_hand(mixture, X, Y):
    total = np.zeros((len(X), len(Y)))
    for c, (weight, mean) in enumerate(zip(mixture.weights_, mixture.means_, strict=True)):
        density = multivariate_normal(mean, covariance(mixture, c, X.shape[1]))
        total += weight * np.outer(density.pdf(X), density.pdf(Y))
    return total


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("family", [GaussianMixture, BayesianGaussianMixture])
def test_a_fitted_mixture(kind, family, X, backend):
    mixture = family(n_components=3, covariance_type=kind, random_state=0).fit(X)
    kernel = ConditionalExpectation(mixture)
    np.testing.assert_allclose(kernel(X, X[:7]), by_hand(mixture, X, X[:7]), rtol=1e-10, atol=1e-17)
    np.testing.assert_allclose(Gram(kernel, X).diag(), np.diagonal(by_hand(mixture, X, X)), rtol=1e-10)
    assert np.linalg.eigvalsh(kernel(X))[0] > -1e-14


def test_one_column_and_one_component(rng):
    X = rng.normal(size=(20, 1))
    mixture = GaussianMixture(1).fit(X)
    p = norm(mixture.means_[0, 0], np.sqrt(mixture.covariances_[0, 0, 0])).pdf(X[:, 0])
    np.testing.assert_allclose(ConditionalExpectation(mixture)(X), np.outer(p, p), rtol=1e-12)


def test_the_densities_are_those_of_scikit_learn(X):
    """Σ_c P(c) p(x|c) is the mixture's own density."""
    mixture = GaussianMixture(3, random_state=0).fit(X)
    features = ConditionalExpectation(mixture).features(X)  # √P(c) p(x|c)
    density = features @ np.sqrt(mixture.weights_)
    np.testing.assert_allclose(density, np.exp(mixture.score_samples(X)), rtol=1e-10)


def test_weights_may_be_given_instead(X):
    mixture = GaussianMixture(2, random_state=0).fit(X)
    kernel = ConditionalExpectation(mixture, weights=[1.0, 0.0])
    p = multivariate_normal(mixture.means_[0], mixture.covariances_[0]).pdf(X)
    np.testing.assert_allclose(kernel(X), np.outer(p, p), rtol=1e-10)


def test_a_function_of_ones_own(rng, backend):
    X, Y = rng.uniform(size=(6, 1)), rng.uniform(size=(4, 1))

    def densities(Z):
        return np.hstack([2 * Z, 2 * (1 - Z), np.ones_like(Z)])

    equal = ConditionalExpectation(densities)
    np.testing.assert_allclose(equal(X, Y), densities(X) @ densities(Y).T / 3, rtol=1e-14)
    weights = np.array([0.2, 0.3, 0.5])
    weighted = ConditionalExpectation(densities, weights)
    np.testing.assert_allclose(weighted(X, Y), densities(X) * weights @ densities(Y).T, rtol=1e-14)


def test_points_may_be_labels():
    """p(word | topic) from a table: the points need not be vectors."""
    topics = {"goal": [0.7, 0.1], "vote": [0.1, 0.8], "party": [0.2, 0.1]}
    kernel = ConditionalExpectation(lambda words: np.array([topics[w] for w in words]), [0.5, 0.5])
    P = np.array(list(topics.values()))
    np.testing.assert_allclose(kernel(list(topics)), P @ P.T / 2, rtol=1e-14)


def test_frames(X):
    mixture = GaussianMixture(2, random_state=0).fit(X)
    kernel = ConditionalExpectation(mixture)
    np.testing.assert_allclose(kernel(pd.DataFrame(X, columns=["a", "b"])), kernel(X), rtol=1e-14)


def test_a_fitted_mixture_survives_clone(X):
    """scikit-learn clones what has get_params, and a cloned mixture is not fitted any more."""
    kernel = ConditionalExpectation(GaussianMixture(2, random_state=0).fit(X))
    np.testing.assert_array_equal(clone(kernel)(X), kernel(X))


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (
            ConditionalExpectation(lambda X: X[:, 0]),
            "p(x|c) must be a non-negative array with one row per point, got shape (3,)",
        ),
        (
            ConditionalExpectation(lambda X: X - 5),
            "p(x|c) must be a non-negative array with one row per point, got shape (3, 2)",
        ),
        (
            ConditionalExpectation(lambda X: X[:1]),
            "p(x|c) must be a non-negative array with one row per point, got shape (1, 2)",
        ),
        (
            ConditionalExpectation(lambda X: X, [0.5, 0.25, 0.25]),
            "weights must have one entry per component: 2, got 3",
        ),
    ],
)
def test_refusals(kernel, text):
    with pytest.raises(InputError) as caught:
        kernel(np.ones((3, 2)))
    assert str(caught.value) == text


def test_a_mixture_that_was_not_fitted():
    with pytest.raises(InputError, match="mixture must be a fitted mixture or a function"):
        ConditionalExpectation(GaussianMixture(2))


# --- logarithms ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wide():
    """Points of 400 columns, whose densities are far below the smallest float."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 400)) * 30 + np.where(np.arange(60) % 2, 20.0, 0.0)[:, None]
    return X, GaussianMixture(2, covariance_type="diag", random_state=0).fit(X)


def normalized_by_logarithms(mixture, X):
    logs = np.array([
        multivariate_normal(m, np.diag(v)).logpdf(X) + 0.5 * np.log(w)
        for w, m, v in zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True)
    ]).T  # fmt: skip
    cross = logsumexp(logs[:, None] + logs[None], axis=-1)
    own = np.diagonal(cross)
    return np.exp(cross - (own[:, None] + own) / 2)


def test_the_normalised_kernel_is_exact_where_densities_underflow(wide, backend):
    X, mixture = wide
    assert np.exp(mixture.score_samples(X)).max() == 0.0
    kernel = ConditionalExpectation(mixture).normalized()
    np.testing.assert_allclose(kernel(X), normalized_by_logarithms(mixture, X), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(Gram(kernel, X).diag(), 1.0, rtol=1e-14)
    assert certify(kernel).verdict == "proved"
    y = np.arange(60) % 2
    assert SVC(kernel=kernel).fit(X[:40], y[:40]).score(X[40:], y[40:]) == 1.0


def test_where_nothing_underflows_it_is_the_normalised_kernel_as_ever(X):
    kernel = ConditionalExpectation(GaussianMixture(3, random_state=0).fit(X))
    K = kernel(X)
    wanted = K / np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
    np.testing.assert_allclose(kernel.normalized()(X), wanted, rtol=1e-12)
    np.testing.assert_allclose(Normalized(kernel)(X), wanted, rtol=1e-12)
    assert kernel.normalized().normalized() == kernel.normalized()
    assert repr(kernel.normalized()).endswith("normalize=True)") and "normalize" not in repr(kernel)


def test_a_function_may_give_logarithms(rng):
    X = rng.normal(size=(8, 1))
    plain = ConditionalExpectation(lambda Z: np.exp(-(np.hstack([Z, Z - 1]) ** 2)), [0.3, 0.7])
    logs = ConditionalExpectation(lambda Z: -(np.hstack([Z, Z - 1]) ** 2), [0.3, 0.7], log=True)
    np.testing.assert_allclose(logs(X), plain(X), rtol=1e-13)
    np.testing.assert_allclose(logs.normalized()(X), plain.normalized()(X), rtol=1e-12)
    with pytest.raises(InputError, match=r"log p.* must be an array of numbers with one row per point"):
        ConditionalExpectation(lambda Z: Z * np.nan, log=True)(np.ones((2, 1)))


def test_points_of_no_component_have_no_direction():
    kernel = ConditionalExpectation(lambda Z: (Z > 0) * np.ones((1, 2))).normalized()
    np.testing.assert_allclose(kernel([[1.0], [-1.0]]), [[1, 0], [0, 0]], rtol=1e-15)


def test_values_that_no_learner_can_use_are_told(wide):
    X, mixture = wide
    with pytest.warns(UserWarning, match=r"is about 10\^-\d+: densities.*take \.normalized\(\)"):
        ConditionalExpectation(mixture)(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ConditionalExpectation(mixture).normalized()(X)
