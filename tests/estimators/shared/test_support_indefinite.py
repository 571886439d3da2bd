"""Machines and means on kernels that are none: they work, they warn, and they claim nothing."""

import warnings

import numpy as np
import pytest

from mercer import (
    SVC,
    SVR,
    BallIndicator,
    Gaussian,
    Kernel,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    NuSVC,
    NuSVR,
    OneClassSVM,
    ParzenClassifier,
    Sigmoid,
    repair,
)
from mercer.errors import InputError
from mercer.kernels.formula.expression import sqrt

MACHINES = [(SVC, {}), (SVR, {}), (NuSVC, {"nu": 0.3}), (NuSVR, {"nu": 0.3}), (OneClassSVM, {"nu": 0.3})]
REFUTED = "is not positive definite: on these points its matrix has the eigenvalue"


@pytest.fixture
def xor(rng):
    X = rng.normal(size=(60, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("kernel", [Sigmoid(1.0, -1.0), BallIndicator(1.5)])
@pytest.mark.parametrize(("kind", "options"), MACHINES)
def test_the_gap_is_unknown_and_told_so(xor, kind, options, kernel):
    X, y = xor
    with pytest.warns(UserWarning, match=REFUTED):
        model = kind(kernel=kernel, **options).fit(X, y)
    assert np.isnan(model.dual_gap_) and np.isnan(model.report_.gap)
    assert "how far above the minimum is unknown" in str(model.report_)
    assert any(REFUTED in text for text in model.report_.warnings)
    assert model.kkt_violation_ <= model.tol


def test_of_several_problems_all_gaps_are(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    with pytest.warns(UserWarning, match=REFUTED):
        model = SVC(kernel=Sigmoid(1.0, -1.0)).fit(X, y)
    assert np.isnan(model.dual_gap_).all() and model.dual_gap_.shape == (3,)


@pytest.mark.parametrize(("kind", "options"), MACHINES)
def test_matrices_are_looked_at(xor, kind, options):
    X, y = xor
    K = BallIndicator(1.5)(X)
    with pytest.warns(UserWarning, match=REFUTED):
        assert np.isnan(kind(kernel="precomputed", **options).fit(K, y).dual_gap_)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*positive definite.*")
        assert kind(kernel="precomputed", **options).fit(repair(K)[0], y).dual_gap_ >= 0


@pytest.mark.parametrize(("kind", "options"), MACHINES)
def test_proved_kernels_are_believed(xor, kind, options):
    X, y = xor
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*positive definite.*")
        for kernel in ("linear", "rbf", "poly", Gaussian(1.0) * Gaussian(2.0)):
            assert kind(kernel=kernel, **options).fit(X, y).dual_gap_ >= 0


class Distance(Kernel):
    """-‖x - x'‖: positive definite for coefficients that sum to 0."""

    def formula(self, pair):
        return -sqrt(pair.sqdist)


def test_beside_an_intercept_a_condition_is_enough(xor):
    X, y = xor
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*positive definite.*")
        model = SVC(kernel=Distance()).fit(X, y)
    assert 0 < model.dual_gap_ < 1e-6
    with pytest.warns(UserWarning, match=REFUTED):
        OneClassSVM(kernel=Distance()).fit(X)


def test_a_machine_that_is_its_own_witness(rng):
    """The 200 points that are looked at are definite; γᵀKγ < 0 shows that the others are not."""
    n = 800
    K = np.eye(n)
    hidden = np.setdiff1d(np.arange(n), np.unique(np.linspace(0, n - 1, 200).astype(int)))
    K[np.ix_(hidden, hidden)] = -np.ones((600, 600)) + 1.001 * np.eye(600)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    K *= y[:, None] * y
    K[np.arange(n), np.arange(n)] = np.abs(K.diagonal())
    with pytest.warns(UserWarning, match=REFUTED):
        model = SVC(kernel="precomputed").fit(K, y)
    assert np.isnan(model.dual_gap_)


def test_a_better_dual_value_exists():
    """What was called "at most 0 above the minimum": another stationary point is below it."""
    better = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 2))
        y = np.where(rng.uniform(size=20) < 0.5, 1.0, -1.0)
        K = Sigmoid(1.0, -1.0)(X)
        values = []
        for order in (np.arange(20), rng.permutation(20), rng.permutation(20)):
            with pytest.warns(UserWarning, match=REFUTED):
                model = SVC(kernel="precomputed", C=10.0).fit(K[np.ix_(order, order)], y[order])
            gamma = np.zeros(20)
            gamma[order[model.support_]] = model.dual_coef_[0]
            values.append(gamma @ K @ gamma / 2 - gamma @ y)
            assert np.isnan(model.dual_gap_)
        better += max(values) > min(values) + 0.1
    assert better > 0


def test_nearest_means_warn(xor):
    X, y = xor
    kernel = BallIndicator(1.5)  # whose means have positive squared norms
    with pytest.warns(UserWarning, match=REFUTED + ".*nearest mean has no meaning"):
        model = ParzenClassifier(kernel).fit(X, y)
    assert (model.squared_norms_ > 0).all() and model.report_.warnings
    with pytest.warns(UserWarning, match=REFUTED):
        ParzenClassifier(kernel).partial_fit(X, y, classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ParzenClassifier(kernel, fit_offset=False).fit(X, y)  # sums of kernel values, no distances
        ParzenClassifier("rbf").fit(X, y)


def test_more_points_than_were_looked_at_have_no_gap(rng):
    """No negative eigenvalue among 200 points proves nothing of 300."""
    X = 50 * rng.normal(size=(300, 2))
    y = np.where(rng.uniform(size=300) < 0.5, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(kernel=BallIndicator(1.5), C=10.0).fit(X, y)
    assert np.isnan(model.dual_gap_) and "not known to be positive definite" in str(model.report_)
    assert SVC(C=10.0).fit(X, y).dual_gap_ >= 0


def test_a_matrix_of_float32_is_judged_by_its_own_rounding(rng):
    A = rng.normal(size=(30, 4))
    K = (A @ A.T).astype(np.float32)  # of rank 4: its other eigenvalues are rounding
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC(kernel="precomputed").fit(K, A[:, 0] > 0)
    assert np.isfinite(model.dual_gap_)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "learner",
    [OneClassSVM, SVR, KernelPCA, KernelFisherDiscriminant, KernelRidge, KernelLogisticRegression],
)
def test_other_learners_judge_it_by_its_own_rounding_too(learner, rng):
    """Matrices of rank 3, whose other eigenvalues are ±10⁻⁶ by rounding; not so the last one's."""
    model = learner(kernel="precomputed")
    for _ in range(5):
        A = rng.normal(size=(50, 3))
        K, y = (A @ A.T).astype(np.float32), (A[:, 0] > 0).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(K, y)
        assert not hasattr(model, "dual_gap_") or np.isfinite(model.dual_gap_)
    K[0, 0] -= 1.0 + K[0, 0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(K, y)
        except InputError as error:
            assert "is not positive definite" in str(error)
        else:
            assert any("is not positive definite" in str(w.message) for w in caught)
