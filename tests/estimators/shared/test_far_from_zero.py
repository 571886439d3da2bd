"""Learners on columns that are far from zero, or far apart in size: the same function, or a word about it."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import mercer
from mercer import (
    SVC,
    SVR,
    Constant,
    Gaussian,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    ParzenClassifier,
    Polynomial,
)
from mercer.estimators.shared.origin import expanded, is_affine, lost_columns, origin_of

AFFINE = [Linear(), 2 * Linear(), Linear() + 3 * Linear(), 0.5 * Linear() + Constant(2.0)]
REGRESSORS = [
    KernelRidge(alpha=0.5),
    KernelRidge(alpha=0.5, solver="cholesky"),
    KernelRidge(alpha=0.5, solver="cg"),
    KernelRidge(alpha=0.0),
    KernelRidgeCV([0.1, 1.0]),
    KernelLeastSquares(),
    KernelMachineRegressor(loss="huber"),
    SVR(tol=1e-8),
]
CLASSIFIERS = [
    KernelLogisticRegression(),
    KernelLogisticRegression(solver="gradient"),
    KernelMachineClassifier(loss="squared_hinge"),
    KernelFisherDiscriminant(alpha=0.1),
    ParzenClassifier(priors=[0.2, 0.8]),
    SVC(tol=1e-8),
]


def names(models):
    return [f"{type(m).__name__}-{m.get_params().get('solver', '')}" for m in models]


@pytest.fixture
def points(rng):
    """Points whose numbers stay exact beside 2²⁶, in multiples of 2⁻¹², and targets."""
    X = np.round(rng.normal(size=(60, 2)) * 2**12) / 2**12
    return X, X @ [1.0, -2.0] + 0.3 * rng.normal(size=60)


def far(X):
    """Beside a constant 10⁸, and far away in the other columns."""
    return np.column_stack([np.full(len(X), 1e8), X + np.array([2.0**26, -(2.0**25)])])


def values(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("kernel", AFFINE, ids=repr)
@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=names([*REGRESSORS, *CLASSIFIERS]))
def test_the_same_function_far_from_zero(points, model, kernel):
    X, t = points
    y = t if model in REGRESSORS else t > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = values(model.set_params(kernel=kernel).fit(X, y), X)
        there = values(model.fit(far(X), y), far(X))
    assert there == pytest.approx(near, abs=1e-4 * np.ptp(near))


@pytest.mark.parametrize("kernel", AFFINE, ids=repr)
def test_components_far_from_zero(points, kernel):
    X = points[0]
    near, there = KernelPCA(kernel=kernel).fit(X), KernelPCA(kernel=kernel).fit(far(X))
    assert there.eigenvalues_ == pytest.approx(near.eigenvalues_, rel=1e-9)
    assert there.transform(far(X)) == pytest.approx(near.transform(X), abs=1e-5)
    assert there.fit_transform(far(X)) == pytest.approx(near.fit_transform(X), abs=1e-9)
    if kernel == Linear():
        assert there.inverse_transform(there.transform(far(X))) == pytest.approx(far(X), abs=1e-4)


def test_what_models_tell_far_from_zero(points, tmp_path):
    X, t = points
    near, there = (KernelRidge(alpha=0.5, kernel="linear", solver="cholesky").fit(x, t) for x in (X, far(X)))
    assert there.dual_coef_ == pytest.approx(near.dual_coef_, abs=1e-6)
    assert there.coef_ == pytest.approx([0.0, *near.coef_], abs=1e-7)
    assert there.loo_residuals_ == pytest.approx(near.loo_residuals_, abs=1e-6)
    assert KernelRidgeCV([0.5], kernel="linear").fit(far(X), t).dual_coef_ == pytest.approx(
        near.dual_coef_, abs=1e-6
    )
    several = KernelRidge(alpha=0.5, kernel="linear").fit(far(X), np.column_stack([t, -t]))
    assert several.predict(far(X))[:, 1] == pytest.approx(-there.predict(far(X)), abs=1e-6)
    rows = KernelRidge(alpha=0.5, kernel="linear").fit(sparse.csr_array(far(X)), t)
    assert rows.predict(far(X)) == pytest.approx(near.predict(X), abs=1e-5)
    for model in (there, SVC(kernel="linear").fit(far(X), t > 0), KernelPCA(kernel="linear").fit(far(X))):
        mercer.save(model, tmp_path / "model")
        again = mercer.load(tmp_path / "model")
        name = "transform" if isinstance(model, KernelPCA) else "predict"
        assert np.array_equal(getattr(again, name)(far(X)), getattr(model, name)(far(X)))


def test_means_that_come_in_parts_far_from_zero(points):
    X, t = points
    near, there = ParzenClassifier("linear"), ParzenClassifier("linear")
    for part in (slice(0, 30), slice(30, 60)):
        near.partial_fit(X[part], t[part] > 0, classes=[False, True])
        there.partial_fit(far(X)[part], t[part] > 0, classes=[False, True])
    assert there.decision_function(far(X)) == pytest.approx(near.decision_function(X), abs=1e-6)


def test_kernels_of_a_list_have_their_own_points(points):
    X, t = points
    kernels = [Gaussian(1e-3), Linear(), Polynomial(2)]
    model = KernelRidgeCV([0.1, 0.5], kernel=kernels).fit(far(X), t)
    assert model.kernel_ == Linear() and model.score(far(X), t) > 0.95


def test_ridge_in_features_keeps_small_columns_beside_large_ones(rng):
    """Against exact arithmetic: scaled variables v = Du have the penalties α/D², and a small condition."""
    Z = rng.normal(size=(80, 2))
    t = Z @ [1.0, 2.0] + 0.1 * rng.normal(size=80)
    X = np.column_stack([1e8 * rng.normal(size=80), Z])
    model = KernelRidge(alpha=1.0, kernel="linear").fit(X, t)
    A = (X - X.mean(axis=0)) / [1e8, 1.0, 1.0]
    u = np.linalg.solve(A.T @ A + np.diag([1e-16, 1.0, 1.0]), A.T @ (t - t.mean()))
    assert model.coef_ == pytest.approx(u / [1e8, 1.0, 1.0], rel=1e-6)
    X = Z.copy()
    X[0] = [1e9, -1e9]  # w₁ = w₂ for one point of such a weight, nearly
    model = KernelRidge(alpha=1.0, kernel="linear").fit(X, t)
    s, r = Z[1:].sum(axis=1), t[1:] - t.mean()  # f = w(x₁ + x₂) + b
    s_c, r_c = s - s.mean(), r - r.mean()
    assert model.coef_ == pytest.approx(np.full(2, s_c @ r_c / (s_c @ s_c + 2)), rel=0.02)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(kernel=2 * Linear()),
        KernelRidge(kernel="poly", degree=2),
        KernelRidgeCV(kernel="linear"),
        KernelLeastSquares("linear"),
        KernelPCA(kernel="linear", n_components=2),
        KernelFisherDiscriminant("linear"),
        ParzenClassifier("linear"),
        KernelPerceptron("linear"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_columns_that_are_lost_are_told(points, model):
    X, t = points
    y = t > 0 if model.__sklearn_tags__().classifier_tags is not None else t
    spread = np.column_stack([1e8 * np.cos(np.arange(60)), X])
    outlier = np.vstack([X[:-1], [[1e9, -1e9]]])
    for given, columns in ((spread, "columns 1, 2"), (outlier, "columns 0, 1")):
        with pytest.warns(UserWarning) as record:
            model.fit(given, y)
        told = [str(w.message) for w in record if "sees little or nothing of" in str(w.message)]
        assert len(told) == 1 and columns in told[0] and "StandardScaler" in told[0]
        assert told[0] in model.report_.warnings


def test_columns_without_an_intercept(points):
    X, t = points
    with pytest.warns(UserWarning, match="KernelRidge sees little or nothing of columns 1, 2 of X"):
        KernelRidge(kernel=2 * Linear(), fit_intercept=False).fit(far(X) - [0, 2.0**26, -(2.0**25)], t)


def test_what_is_lost(points):
    X = points[0]
    assert not lost_columns(Linear(), X).size and not lost_columns(Polynomial(3), 1e3 * X + 1e3).size
    assert lost_columns(Polynomial(3), far(X)).tolist() == [1, 2]  # a constant column has nothing to lose
    assert not lost_columns(Gaussian(1.0), far(X)).size and not lost_columns(Linear(), [["a"]]).size
    small = np.column_stack([X, 1e-9 * X[:, 0]])
    assert lost_columns(Linear(), small).tolist() == [2] and not lost_columns(Linear(), small, 1e-9).size
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what the penalty leaves out anyway is not missed
        KernelRidge(kernel=2 * Linear()).fit(small, X[:, 0])
    rows = sparse.random_array((300, 40), density=0.05, rng=0, format="csr")
    assert not lost_columns(Linear(), rows).size
    rows = sparse.vstack([rows, sparse.csr_array(np.eye(1, 40, 3) * 1e9)]).tocsr()
    assert len(lost_columns(Linear(), rows)) >= 39
    assert not lost_columns(Linear(), X[:1]).size


def test_which_kernels_may_be_moved(points):
    X = points[0]
    assert (
        all(map(is_affine, AFFINE))
        and not is_affine(Gaussian(1.0))
        and not is_affine(Linear() + Polynomial(1))
    )
    assert origin_of(2 * Linear(), far(X), is_free=True) is not None
    assert origin_of(2 * Linear(), far(X), is_free=False) is None
    assert origin_of(2 * Linear(), X, is_free=True) is None  # not worth it
    f = expanded(AFFINE[3], X, np.ones((60, 2)), np.array([1.0, 2.0]), np.array([5.0, 7.0]))
    assert f([[5.0, 7.0]]) == pytest.approx(np.array([[121.0, 122.0]]))  # 60 · 2.0 + b
