"""KernelRidgeCV: every error of the path against refitting, and what is chosen."""

import os
import signal
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, KernelRidge, KernelRidgeCV, Linear, Polynomial, Sigmoid, config
from mercer.errors import InputError, MemoryBudgetError


@parametrize_with_checks(
    [
        KernelRidgeCV(),
        KernelRidgeCV(lams=[1e-3, 1e-1], kernel=[Gaussian("median"), Linear()], fit_intercept=False),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(30, 3))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=30) + 1


@pytest.mark.sample(3)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_the_whole_path_is_refitting(rng, problem, fit_intercept, weighted):
    X, y = problem
    weight = rng.uniform(0.3, 3, 30) if weighted else np.ones(30)
    alphas = [1e-6, 1e-3, 1.0, 1e3]
    options = {"kernel": Gaussian(1.0), "fit_intercept": fit_intercept}
    model = KernelRidgeCV(alphas, **options).fit(X, y, weight)
    scores = []
    for alpha in alphas:
        errors = []
        for i in range(30):
            rest = weight.copy()
            rest[i] = max(0.0, weight[i] - 1)  # one observation less
            refit = KernelRidge(alpha, **options).fit(X, y, rest)
            errors.append(y[i] - refit.predict(X[i : i + 1])[0])
        scores.append(weight @ np.square(errors) / weight.sum())
        if alpha == model.alpha_:
            assert model.loo_residuals_ == pytest.approx(np.array(errors), abs=1e-8)
    assert model.path_.scores[0, :, 0] == pytest.approx(scores, rel=1e-8)
    assert model.alpha_ == alphas[int(np.argmin(scores))]
    assert model.best_score_ == pytest.approx(min(scores))
    direct = KernelRidge(model.alpha_, **options).fit(X, y, weight)
    assert model.predict(X) == pytest.approx(direct.predict(X), abs=1e-9)
    assert model.intercept_ == pytest.approx(direct.intercept_, abs=1e-9)


def test_the_linear_kernel_is_ridge_cv(rng):
    X = rng.normal(size=(40, 6))
    y = X @ rng.normal(size=6) + rng.normal(size=40) + 2
    alphas = np.logspace(-3, 3, 13)
    ours = KernelRidgeCV(alphas, kernel="linear").fit(X, y)
    theirs = RidgeCV(alphas).fit(X, y)  # leaves one out by default
    assert ours.alpha_ == theirs.alpha_
    assert ours.best_score_ == pytest.approx(-theirs.best_score_, rel=1e-8)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), abs=1e-8)


def test_kernels_and_penalties_together(rng):
    X = rng.uniform(-3, 3, (60, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=60)
    kernels = [Gaussian(0.01), Gaussian(0.5), Gaussian(50.0), Polynomial(2)]
    model = KernelRidgeCV(kernel=kernels).fit(X, y)
    assert model.kernel_ == Gaussian(0.5)
    assert model.path_.scores.shape == (4, 20, 1)
    assert model.best_score_ == model.path_.scores.min() == pytest.approx(np.mean(model.loo_residuals_**2))
    assert model.report_.iterations == 4
    for kernel, scores in zip(kernels, model.path_.scores, strict=True):
        alone = KernelRidgeCV(model.path_.alphas, kernel=kernel)
        with pytest.warns(UserWarning) if scores[:, 0].argmin() in (0, 19) else _nothing():
            alone.fit(X, y)
        assert alone.path_.scores[0] == pytest.approx(scores)


class _nothing:  # noqa: N801
    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass


def test_targets_share_a_penalty_or_have_their_own(rng, problem):
    X, y = problem
    Y = np.column_stack([y, rng.permutation([-1.0, 1.0] * 15)])  # the second is noise
    alphas = np.logspace(-4, 4, 9)
    own = KernelRidgeCV(alphas, kernel=Gaussian(1.0), alpha_per_target=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise may well want the largest penalty
        own.fit(X, Y)
    shared = KernelRidgeCV(alphas, kernel=Gaussian(1.0)).fit(X, Y)
    assert own.alpha_.shape == (2,) and own.alpha_[1] > own.alpha_[0]
    for t in range(2):
        direct = KernelRidge(own.alpha_[t], kernel=Gaussian(1.0)).fit(X, Y[:, t])
        assert own.predict(X)[:, t] == pytest.approx(direct.predict(X), abs=1e-9)
    assert shared.alpha_ == alphas[shared.path_.scores[0].mean(axis=1).argmin()]
    assert np.mean(own.path_.scores[0].min(axis=0)) <= shared.best_score_


def test_absolute_errors(problem):
    model = KernelRidgeCV(scoring="absolute").fit(*problem)
    assert model.best_score_ == pytest.approx(np.abs(model.loo_residuals_).mean())


def test_an_indefinite_kernel_is_refused(rng):
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    with pytest.raises(InputError, match=r"Sigmoid.* has the eigenvalue -\S+, .* or repair the matrix"):
        KernelRidgeCV(kernel=[Gaussian(1.0), Sigmoid(0.5, -1.0)]).fit(X, y)


def test_penalties_below_rounding(rng):
    X = 100 * np.repeat(rng.normal(size=(10, 1)), 3, axis=0)
    y = rng.normal(size=30)
    with pytest.warns(UserWarning, match="1 of 2 pairs of kernel and penalty left out: there K is not"):
        model = KernelRidgeCV([1e-30, 1e3], kernel=Polynomial(3)).fit(X, y)
    assert np.isinf(model.path_.scores[0, 0, 0]) and model.alpha_ == 1e3
    with pytest.raises(InputError, match="singular, to rounding, for every penalty"):
        KernelRidgeCV([1e-30], kernel=Polynomial(3)).fit(X, y)


def test_duplicates_and_constant_targets(rng):
    X = np.repeat(rng.normal(size=(5, 2)), 4, axis=0)
    model = KernelRidgeCV().fit(X, np.full(20, 7.0))
    assert model.predict(X) == pytest.approx(7.0)
    assert model.best_score_ == pytest.approx(0.0, abs=1e-12)


def test_a_long_list_can_be_stopped_and_resumed(tmp_path, problem):
    X, y = problem
    kernels = [Gaussian(s) for s in (0.1, 0.3, 1.0, 3.0)]
    expected = KernelRidgeCV(kernel=kernels).fit(X, y)

    def press_ctrl_c(event):
        if event["done"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    options = {"kernel": kernels, "checkpoint": tmp_path / "state"}
    with pytest.warns(
        ConvergenceWarning, match="was interrupted after 2 iterations, of 4 kernels.*resume=True"
    ):
        first = KernelRidgeCV(progress=press_ctrl_c, **options).fit(X, y)
    assert first.report_.stopped == "interrupted" and len(first.path_.scores) == 2
    second = KernelRidgeCV(resume=True, **options).fit(X, y)
    assert second.kernel_ == expected.kernel_ and second.alpha_ == expected.alpha_
    assert np.array_equal(second.path_.scores, expected.path_.scores)
    assert np.array_equal(second.expansion_.coef, expected.expansion_.coef)
    with pytest.raises(InputError, match="is the checkpoint of another fit"):
        KernelRidgeCV(resume=True, **options).fit(X, y + 1)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_default_path_does_not_depend_on_the_origin(rng, offset):
    X = rng.normal(size=(100, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=100)
    assert KernelRidgeCV(kernel="linear").fit(X + offset, y).score(X + offset, y) > 0.99


def test_a_checkpoint_knows_its_data_whatever_the_kernel(rng, tmp_path):
    """Arrays are compared whole, also where the kernel cannot be pickled; another process may resume."""

    class Local(Gaussian):  # of this function: nobody can pickle it
        pass

    X, y = rng.normal(size=(600, 2)), rng.normal(size=600)
    kernels = [Local(1.0), Local(2.0)]
    options = {"kernel": kernels, "alphas": [0.1, 1.0, 10.0], "checkpoint": tmp_path / "state"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        KernelRidgeCV(**options).fit(X, y)
        KernelRidgeCV(resume=True, **options).fit(X, y)
        with pytest.raises(InputError, match="another fit"), config(dtype="float32"):
            KernelRidgeCV(resume=True, **options).fit(X, y)
    other = X.copy()
    other[300] += 1.0
    with pytest.raises(InputError, match="another fit"):
        KernelRidgeCV(resume=True, **options).fit(other, y)


def test_refusals(problem):
    X, y = problem
    with pytest.raises(InputError, match="alphas must be a list of positive numbers, got"):
        KernelRidgeCV([1.0, 0.0]).fit(X, y)
    for alphas in ([1.0, np.inf], [[1], [2, 3]], "no"):
        with pytest.raises(InputError, match="alphas must be a list of positive numbers, got"):
            KernelRidgeCV(alphas).fit(X, y)
    with pytest.raises(InputError, match="kernel is an empty list"):
        KernelRidgeCV(kernel=[]).fit(X, y)
    with pytest.raises(InputError, match="must take the same points"):
        KernelRidgeCV(kernel=[Linear(), lambda a, b: 1.0]).fit(X, y)
    with pytest.raises(InputError, match="at least two points"):
        KernelRidgeCV().fit(X[:1], y[:1])
    with config(memory="1MiB"), pytest.raises(MemoryBudgetError, match="reduction of K to a band"):
        KernelRidgeCV().fit(np.ones((1000, 1)), np.ones(1000))
