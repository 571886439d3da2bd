"""The evidence against densities of SciPy, an integral over b, scikit-learn's process, copies of points."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from mercer import Gaussian, KernelRidgeCV

N, ALPHA = 12, 0.3
KERNEL = Gaussian(sigma=0.8)


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, 2))


@pytest.fixture
def y(rng, X):
    return np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=N) + 2


def told(X, y, weight=None, **options):
    """The logarithm of the probability of all of y, as the learner says it."""
    model = KernelRidgeCV([ALPHA], kernel=KERNEL, scoring="evidence", **options).fit(X, y, weight)
    observations = len(y) if weight is None else weight.sum()
    return -model.best_score_ * observations, model


def on_landmarks(X, Z):
    return KERNEL(X, Z) @ np.linalg.solve(KERNEL(Z), KERNEL(Z, X))


@pytest.mark.parametrize("landmarks", [None, [1, 4, 7]])
def test_without_an_intercept_it_is_the_density_of_a_normal_law(X, y, landmarks):
    K = KERNEL(X) if landmarks is None else on_landmarks(X, X[landmarks])
    V = np.eye(N) + K / ALPHA
    noise = y @ np.linalg.solve(V, y) / N
    evidence, _ = told(X, y, fit_intercept=False, landmarks=landmarks)
    assert evidence == pytest.approx(multivariate_normal.logpdf(y, cov=noise * V), rel=1e-9)


@pytest.mark.parametrize("landmarks", [None, [1, 4, 7]])
def test_with_an_intercept_it_is_the_integral_over_b(X, y, landmarks):
    K = KERNEL(X) if landmarks is None else on_landmarks(X, X[landmarks])
    evidence, model = told(X, y, landmarks=landmarks)
    f = model.predict(X) - model.intercept_
    V = np.eye(N) + K / ALPHA
    noise = (y - f - model.intercept_) @ (y - model.intercept_) / (N - 1)
    law = multivariate_normal(np.zeros(N), noise * V)
    found, _ = quad(lambda b: np.exp(law.logpdf(y - b)), -30, 30, points=[model.intercept_], epsrel=1e-11)
    assert evidence == pytest.approx(np.log(found), rel=1e-8)


def test_it_is_that_of_the_gaussian_process_of_scikit_learn(X, y):
    evidence, model = told(X, y, fit_intercept=False)
    noise = float(y @ (y - model.predict(X))) / N
    kernel = ConstantKernel(noise / ALPHA) * RBF(KERNEL.sigma) + WhiteKernel(noise)
    peer = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    assert evidence == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-9)


@pytest.mark.parametrize("landmarks", [None, 1000])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_weight_is_that_many_observations(X, y, landmarks, fit_intercept):
    weight = np.where(np.arange(N) % 3 == 0, 2, 1)
    options = {"fit_intercept": fit_intercept, "landmarks": landmarks}
    weighed, _ = told(X, y, weight.astype(float), **options)
    copied, _ = told(np.repeat(X, weight, axis=0), np.repeat(y, weight), **options)
    assert weighed == pytest.approx(copied, rel=1e-8)


@pytest.mark.parametrize("landmarks", [None, 30])
def test_it_finds_the_width_and_the_noise_that_made_the_targets(rng, landmarks):
    """Of 400 draws at the true width, widths off by a factor of two are less likely by far."""
    X = rng.uniform(-4, 4, (400, 1))
    draw = np.linalg.cholesky(Gaussian(1.0)(X) + 1e-10 * np.eye(400)) @ rng.normal(size=400)
    y = draw + 0.3 * rng.normal(size=400)
    kernels = [Gaussian(s) for s in (0.25, 0.5, 1.0, 2.0, 4.0)]
    model = KernelRidgeCV(np.logspace(-3, 1, 13), kernel=kernels, scoring="evidence", landmarks=landmarks)
    assert model.fit(X, y).kernel_.sigma in (0.5, 1.0, 2.0)
    assert model.noise_variance_ == pytest.approx(0.09, rel=0.25)  # 400 observations know it to 7 %.


def test_targets_that_are_constant_have_an_evidence(X):
    evidence, _ = told(X, np.full(N, 3.0))
    assert np.isfinite(evidence)
