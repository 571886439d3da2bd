"""Certificates of support vector machines where kernel values are rounded, and origins that are moved."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, Gaussian, Gram, Linear, NuSVC, NuSVR, OneClassSVM, Polynomial, exp
from mercer.estimators.shared.origin import centre_of, moved, rounding_of
from mercer.solvers.svm.problems import c_svc, fit


@pytest.fixture
def two_columns(rng):
    y = np.where(np.arange(80) % 2, 1, -1)
    return np.column_stack([rng.normal(size=80) + 1.2 * y, rng.normal(size=80)]), y


def beside(X, value):
    return np.column_stack([X, np.full(len(X), value)])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("value", [1e7, 1e8, 1.6e9, 1e12])
def test_a_large_constant_column_changes_nothing(two_columns, value, make):
    X, y = two_columns
    plain = SVC(kernel="linear").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC(kernel="linear").fit(make(beside(X, value)), y)
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    assert coef[0, :2] == pytest.approx(plain.coef_[0], rel=1e-6) and abs(coef[0, 2]) * value < 1e-6
    assert model.decision_function(make(beside(X, value))) == pytest.approx(
        plain.decision_function(X), abs=1e-6
    )
    assert model.margin_ == pytest.approx(plain.margin_, rel=1e-6)
    # zero where every point is at a bound with room to spare: no rounding of K moves it from there
    assert 0 <= model.dual_gap_ < 1e-6 and 0 <= model.kkt_violation_ < 1e-6


@pytest.mark.parametrize("kind", [SVC, NuSVC, SVR, NuSVR])
def test_timestamps_beside_small_columns(rng, kind):
    """A constant of 1.6·10⁹ is moved away, in all machines with an intercept."""
    t = rng.uniform(size=60)
    X = np.column_stack([t, rng.normal(size=60)])
    y = (t > 0.5).astype(int) if kind in (SVC, NuSVC) else 3 * t
    far = X + np.array([1.6e9, -3e8])
    options = {"tol": 1e-7, **({"nu": 0.2} if kind in (NuSVC, NuSVR) else {})}
    a, b = kind(kernel="linear", **options).fit(X, y), kind(kernel="linear", **options).fit(far, y)
    # the points themselves were rounded by 1.6e9 · 2⁻⁵³ = 2e-7
    assert b.coef_ == pytest.approx(a.coef_, abs=1e-4)
    assert (b.predict(far) - a.predict(X)).max() == pytest.approx(0, abs=1e-4)


def test_several_classes_far_from_the_origin(rng):
    X = rng.normal(size=(90, 2)) + np.repeat([[0, 0], [4, 0], [0, 4]], 30, axis=0)
    y = np.repeat(["a", "b", "c"], 30)
    for kind in ("ovo", "ovr"):
        near = SVC(kernel="linear", multi_class=kind, probability=True).fit(X, y)
        far = SVC(kernel="linear", multi_class=kind, probability=True).fit(X + 2.0**26, y)
        shape = near.decision_function(X).shape
        assert far.coef_ == pytest.approx(near.coef_, abs=1e-5)
        assert far.decision_function(X + 2.0**26).shape == shape
        assert np.array_equal(far.predict(X + 2.0**26), near.predict(X))
        assert far.predict_proba(X + 2.0**26) == pytest.approx(near.predict_proba(X), abs=1e-4)
        assert far.intercept_.shape == near.intercept_.shape == (3,)


def test_centre():
    assert centre_of(np.array([[1.0, -1.0], [-1.0, 1.0]])) is None
    X = np.array([[1e8, 1.0], [1e8, 3.0]])
    assert np.array_equal(centre_of(X), [1e8, 2.0])
    rows = sparse.csr_matrix(np.array([[1e8, 0.0], [1e8, 3.0]]))
    assert np.array_equal(centre_of(rows), [1e8, 0.0])  # the second column stays sparse
    assert np.array_equal(moved(rows, centre_of(rows)).toarray(), [[0.0, 0.0], [0.0, 3.0]])
    assert moved(rows, centre_of(rows)).nnz <= rows.nnz
    assert centre_of(np.full((2, 2), 1e200)) is None  # its square is no number


def test_rounding_bounds_the_error_of_products(rng):
    """|K̂ - K| ≤ τ √(kᵢᵢ kⱼⱼ), against sums of twice the digits."""
    X = rng.normal(size=(40, 30)) * 10.0 ** rng.integers(-3, 4, size=30)
    long = X.astype(np.longdouble)
    for kernel, exact in (
        (Linear(), long @ long.T),
        (Polynomial(4, c=1.0), (long @ long.T + 1) ** 4),
        (
            Gaussian(1e3),
            np.exp(-(((long[:, None] - long) ** 2).sum(axis=2)) / np.longdouble(2e6)),
        ),
    ):
        K = Gram(kernel, X).dense()
        scale = np.sqrt(np.diag(K))[:, None] * np.sqrt(np.diag(K))
        assert (np.abs(K - exact) <= rounding_of(kernel, X, "float64") * scale).all()


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
def test_it_bounds_what_centring_leaves_of_them(rng, far):
    X = rng.normal(size=(40, 3)) + far
    long = X.astype(np.longdouble)
    long -= long.mean(axis=0)
    K = Gram(Linear().centered(X), X).dense()
    scale = np.sqrt(np.diag(K))[:, None] * np.sqrt(np.diag(K))
    assert (np.abs(K - long @ long.T) <= rounding_of(Linear().centered(X), X, "float64") * scale).all()


def test_it_bounds_the_error_of_exponentials(rng):
    X = rng.normal(size=(15, 3))
    X *= 16 / np.linalg.norm(X, axis=1)[:, None]  # exp k is up to exp(256)
    X = np.concatenate([X, X + 1e-3 * rng.normal(size=X.shape)])
    long = X.astype(np.longdouble)
    K = Gram(exp(Linear()), X).dense()
    scale = np.sqrt(np.diag(K))[:, None] * np.sqrt(np.diag(K))
    assert (np.abs(K - np.exp(long @ long.T)) <= rounding_of(exp(Linear()), X, "float64") * scale).all()


def test_a_centred_kernel_claims_no_more_than_is_left_of_it(two_columns):
    """Products of 10¹⁴ are rounded by 10⁻²: what is left of them around their mean is, too."""
    X, y = two_columns
    with pytest.warns(ConvergenceWarning, match="cannot tell how near the minimum it is"):
        model = SVC(kernel=Linear().centered()).fit(beside(X, 1e7), y)
    assert not model.report_.converged and model.dual_gap_ > 1
    near = SVC(kernel=Linear().centered()).fit(beside(X, 1.0), y)
    assert near.report_.converged and near.dual_gap_ < 1e-6


@pytest.mark.parametrize(
    ("kind", "options"),
    [(SVC, {}), (SVR, {}), (NuSVR, {"nu": 0.3}), (OneClassSVM, {"nu": 0.3}), (NuSVC, {"nu": 0.3})],
)
def test_a_certificate_carries_the_rounding_of_the_kernel(two_columns, kind, options):
    """Beside 10⁸ nothing is left of the other columns in (⟨x, x'⟩ + 1)³, and the fit says so."""
    X, y = two_columns
    kernel = Linear() if kind is OneClassSVM else Polynomial(3, c=1.0)
    with pytest.warns(ConvergenceWarning) as caught:
        model = kind(kernel=kernel, **options).fit(beside(X, 1e8), y)
    text = " ".join(str(w.message) for w in caught)
    assert "cannot tell how near the minimum it is" in text and "StandardScaler" in text
    assert not model.report_.converged and model.fit_status_ == 1
    assert model.kkt_violation_ > model.tol and model.dual_gap_ > model.tol
    assert model.report_.gap == model.dual_gap_ and model.report_.warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(kernel=kernel, **options).fit(StandardScaler().fit_transform(beside(X, 1e8)), y)


def test_the_stated_gap_holds_for_the_true_kernel(two_columns):
    """The dual value of the exact K is within the gap of the best, found on columns of whole numbers."""
    X, y = two_columns
    X = np.round(X * 64) / 64  # whose products with 2²⁴ are numbers, and sums of them are not
    far = beside(X, 2.0**24)
    task = c_svc(y.astype(float), np.ones(80))
    [best] = fit(Gram(Linear(), X), [task], tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [machine] = fit(Gram(Linear(), far), [task], tol=1e-9, rounding=rounding_of(Linear(), far, "float64"))
    dual = y @ machine.coef - 0.5 * np.square(machine.coef @ X).sum()
    top = best.objective - best.gap
    assert top - dual <= machine.gap and machine.gap > 0


def test_on_sane_data_the_bound_is_small(two_columns):
    X, y = two_columns
    for kernel in ("linear", "rbf", "poly"):
        model = SVC(kernel=kernel, C=100.0).fit(X, y)
        assert 0 < model.dual_gap_ <= 1e-7 * model.report_.objective


def test_nu_is_broken_for_dense_and_sparse_alike_with_a_word(rng):
    """Of 69 points on a line with random labels: no margin that ν = 0.068 allows can be told from 0."""
    X, y = rng.normal(size=(69, 1)), rng.integers(0, 2, 69)
    sign = np.where(y == 1, 1, -1)
    for points in (X, sparse.csr_matrix(X)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = NuSVC(nu=0.068).fit(points, y)
        inside = np.mean(sign * model.decision_function(points) < 1 - 1e-4)
        assert inside <= 0.068 or any("found no margin" in str(w.message) for w in caught)
    for seed in range(3):
        X, y = (
            np.random.default_rng(seed).normal(size=(69, 1)),
            np.random.default_rng(seed).integers(0, 2, 69),
        )
        with pytest.warns(ConvergenceWarning, match="more points than nu says may be inside"):
            NuSVC(nu=0.068).fit(sparse.csr_matrix(X), y)
