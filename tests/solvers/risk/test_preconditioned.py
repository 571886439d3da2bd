"""Newton's step with a factor of low rank: the solution of the dense system, and few products."""

import numpy as np
import pytest

from mercer import Gaussian, Gram
from mercer.solvers.control import Control
from mercer.solvers.landmarks.pivots import pivoted_cholesky
from mercer.solvers.risk.logistic import LogisticRisk, SoftmaxRisk
from mercer.solvers.risk.newton import newton
from mercer.solvers.risk.objective import shift_hessian
from mercer.solvers.risk.preconditioned import RootedCurvature, newton_step


class Lazy:
    """Products with K, counted."""

    def __init__(self, K):
        self.K, self.shape, self.dtype, self.count = K, K.shape, K.dtype, 0

    def __matmul__(self, V):
        self.count += 1
        return self.K @ V

    def diag(self):
        return self.K.diagonal()


@pytest.fixture
def points(rng):
    X = rng.normal(size=(250, 2))
    X[::5] = X[1::5]  # K is singular
    return X


@pytest.fixture
def gram(points):
    return Gram(Gaussian(1.0), points, cache=0)


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("functions", [1, 3])
def test_the_step_solves_the_dense_system(rng, gram, functions, shifted):
    n, K, near = 250, gram.dense(), pivoted_cholesky(gram, 40, random_state=0)
    if functions == 1:
        H = rng.uniform(0, 0.25, n)
        H[::4] = 0.0
        r, dense = rng.normal(size=n), np.diag(H)
        inverse = np.linalg.pinv(shift_hessian(H, r)) if shifted else None
        large = K
    else:
        H = SoftmaxRisk(rng.integers(0, 3, n), 3, rng.uniform(0, 2, n)).curvature(rng.normal(size=(n, 3)))
        assert isinstance(H, RootedCurvature)
        r = rng.normal(size=(n, 3))
        basis = np.eye(3 * n).reshape(-1, n, 3)
        dense = np.array([H(V).ravel() for V in basis])
        inverse = np.linalg.pinv(shift_hessian(H, r), rcond=1e-12, hermitian=True) if shifted else None
        large = np.kron(K, np.eye(3))
    if shifted:
        ones = np.kron(np.ones((n, 1)), np.eye(functions))
        middle = np.linalg.pinv(ones.T @ dense @ ones, rcond=1e-12, hermitian=True)
        dense = dense - dense @ ones @ middle @ ones.T @ dense
        if functions == 1:
            r -= r.mean()
    delta, K_delta, enough = newton_step(
        lambda V: K @ V, H, near, 1e-2, r, K @ r, shift_inverse=inverse, tol=1e-9, max_iter=200
    )
    expected = np.linalg.solve(1e-2 * np.eye(len(dense)) + dense @ large, -r.ravel()).reshape(r.shape)
    assert enough
    # The residual is 1e-9 of r in the norm of K, and the step at most 1 / λ of it.
    np.testing.assert_allclose(K_delta, K @ delta, atol=1e-8 * np.abs(r).max() / 1e-2)
    difference = delta - expected
    assert (difference * (K @ difference)).sum() <= (1e-6 / 1e-2) ** 2 * (r * (K @ r)).sum()


@pytest.mark.parametrize("functions", [None, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_newton_needs_a_fraction_of_the_products(rng, gram, points, functions, fit_intercept):
    K, near = gram.dense(), pivoted_cholesky(gram, 50, random_state=0)
    noisy = points[:, 0] + 0.5 * rng.normal(size=250)
    if functions is None:
        risk = LogisticRisk(np.where(noisy > 0, 1.0, -1.0), 1e3)
    else:
        risk = SoftmaxRisk(np.digitize(noisy, [-0.5, 0.5]), 3, 1e3)
    options = {"n_functions": functions, "fit_intercept": fit_intercept, "tol": 1e-9}
    exact = newton(K, risk, 1.0, direct=functions is None, **options)
    plain = newton(Lazy(K), risk, 1.0, **options)
    quick = newton(Lazy(K), risk, 1.0, near=near, **options)
    assert quick.stopped == plain.stopped == "converged"
    assert quick.products <= plain.products / 3
    assert abs(quick.objective - exact.objective) <= quick.gap + exact.gap + 1e-12 * exact.objective


def test_a_stopped_run_resumes(rng, gram, points, tmp_path):
    K, near = Lazy(gram.dense()), pivoted_cholesky(gram, 30, random_state=0)
    risk = LogisticRisk(np.where(points[:, 0] + 0.5 * rng.normal(size=250) > 0, 1.0, -1.0), 1e3)
    whole = newton(K, risk, 1.0, near=near)
    for limit in (2, 100):
        again = pivoted_cholesky(gram, 30, random_state=0)
        with Control(checkpoint=tmp_path / "state.npz", resume=True) as control:
            part = newton(K, risk, 1.0, near=again, max_iter=limit, control=control)
    np.testing.assert_array_equal(part.coef, whole.coef)
    assert part.iterations == whole.iterations > 2 and part.products == whole.products


def test_a_curvature_without_roots_is_solved_without_the_factor(gram):
    """A risk of somebody else's has products with H alone."""

    class Squares:
        def value(self, F):
            return 0.5 * ((F - 1) ** 2).sum()

        def gradient(self, F):
            return F - 1

        def curvature(self, F):
            return lambda V: V

    near = pivoted_cholesky(gram, 20, random_state=0)
    found = newton(Lazy(gram.dense()), Squares(), 0.1, n_functions=2, near=near, fit_intercept=False)
    expected = np.linalg.solve(gram.dense() + 0.1 * np.eye(250), np.ones(250))
    np.testing.assert_allclose(found.values[:, 0], gram.dense() @ expected, atol=1e-3)


def test_points_that_are_all_the_same(rng):
    gram = Gram(Gaussian(1.0), np.zeros((20, 1)), cache=0)  # K = 11ᵀ
    near = pivoted_cholesky(gram, 5, random_state=0)
    y = np.where(rng.uniform(size=20) > 0.4, 1.0, -1.0)
    found = newton(Lazy(gram.dense()), LogisticRisk(y), 1.0, near=near)
    assert found.stopped == "converged" and near.factor.shape[1] == 1
    np.testing.assert_allclose(found.values, found.values[0])
