"""What the estimators that choose their kernel take: matrices, powers, and what they refuse."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import get_tags

from mercer import Gaussian, Matern, Polynomial, Precomputed
from mercer.errors import InputError
from mercer.selection import AutoKernelClassifier, AutoKernelRegressor
from mercer.selection.families import family
from mercer.testing import example_kernels, example_points

BOTH = [AutoKernelClassifier, AutoKernelRegressor]


@pytest.fixture
def points(rng):
    return rng.normal(size=(60, 3)), rng.normal(size=(30, 3))


def targets(kind, X):
    return (X[:, 0] > 0).astype(int) if kind is AutoKernelClassifier else np.sin(2 * X[:, 0])


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "kernel",
    [
        "precomputed",
        ["precomputed"],
        Precomputed(),
        [Precomputed() ** 2, "precomputed"],
        1.0 * Precomputed() + 1.0 * Precomputed() ** 2,
    ],
    ids=repr,
)
def test_a_matrix_of_kernel_values(points, kind, kernel):
    X, T = points
    k = Gaussian(1.5)
    model = kind(kernel).fit(k(X), targets(kind, X))
    assert get_tags(model).input_tags.pairwise
    assert model.score(k(T, X), targets(kind, T)) > 0.8
    assert len(model.trials_) >= (2 if isinstance(kernel, list) and len(kernel) > 1 else 1)


def test_a_matrix_beside_one_of_its_own(points):
    """The matrix that a kernel brings along is not taken for X."""
    X, _ = points
    K, own = Gaussian(1.5)(X), Precomputed(np.eye(60))
    model = AutoKernelRegressor([own + Precomputed(), "precomputed"]).fit(K, np.sin(2 * X[:, 0]))
    plain = next(trial.kernel for trial in model.trials_ if isinstance(trial.kernel, Precomputed))
    np.testing.assert_array_equal(plain.matrix, K)


@pytest.mark.full
@pytest.mark.parametrize("kind", BOTH)
def test_scikit_learn_cuts_the_matrix_on_both_sides(points, kind):
    X, _ = points
    K, y = Gaussian(1.5)(X), targets(kind, X)
    assert cross_val_score(kind("precomputed"), K, y, cv=3).mean() > 0.7
    search = GridSearchCV(kind("precomputed"), {"kernel": ["precomputed", Precomputed() ** 2]}, cv=3)
    assert search.fit(K, y).best_score_ > 0.7


def test_a_matrix_and_points_cannot_be_mixed(points):
    X, _ = points
    for data in (X, Gaussian()(X)):
        with pytest.raises(
            InputError, match=r"'precomputed' beside kernels of points, got \['precomputed', 'rbf'\]"
        ):
            AutoKernelRegressor(["precomputed", "rbf"]).fit(data, X[:, 0])


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(1.0) ** 2,
        Gaussian(1.0) ** 2.5,
        2.0 * Gaussian(1.0) ** 2 + Matern(1.2, 1.0),
        Polynomial(2, gamma=0.1) * Gaussian(1.0) ** 3,
    ],
    ids=repr,
)
def test_exponents_and_orders_stay(points, kernel):
    X, _ = points
    model = AutoKernelRegressor(kernel).fit(X, np.sin(2 * X[:, 0]))
    before, after = kernel.get_params(), model.kernel_.get_params()
    for name in before:
        if name.rpartition("__")[2] in ("exponent", "degree", "nu"):
            assert after[name] == before[name]
    assert any(after[name] != before[name] for name in before if name.endswith("sigma"))


@pytest.mark.parametrize(
    "change", [lambda k: k, lambda k: k**2, lambda k: k**1.5, lambda k: (k + k) ** 3 * k]
)
def test_what_is_offered_has_a_derivative(change):
    for plain in example_kernels():
        kernel = change(plain.resolve(example_points(plain, 6, np.random.default_rng(0))))
        for name in family(kernel).names:
            index = "[0]" if np.ndim(kernel.get_params()[name]) else ""
            kernel.derivative(name + index).expression()


@pytest.mark.parametrize("kind", BOTH)
def test_refusals(points, kind):
    X, _ = points
    with pytest.raises(InputError, match="progress must be True, False or a function, got 'x'"):
        kind(progress="x").fit(X, targets(kind, X))
    with pytest.raises(InputError, match=r"random_state must be a number .* got True"):
        kind(random_state=True).fit(X, targets(kind, X))
