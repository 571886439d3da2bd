"""The linear model in the features, against Φ made of a stored matrix."""

import numpy as np
import pytest

#: Condition numbers of T are at most 1e3 here: 1e-11 leaves room for 1e5 units in the last place.
NEAR = {"rel": 1e-10, "abs": 1e-10}


@pytest.fixture(params=[True, False], ids=["intercept", "no intercept"])
def problem(rng, features_of, gaussian, request):
    X = rng.normal(size=(50, 3))
    features, Phi = features_of(gaussian(X, X[:6]), gaussian(X[:6], X[:6]), request.param)
    return features, np.column_stack([Phi, np.ones(50)]) if request.param else Phi


def test_verbs_are_products_with_the_features(rng, problem):
    features, Phi = problem
    u, G = rng.normal(size=(features.size, 2)), rng.normal(size=(50, 2))
    assert features.values(u) == pytest.approx(Phi @ u, **NEAR)
    assert features.adjoint(G) == pytest.approx(Phi.T @ G, **NEAR)
    total, sums = features.apply(u, lambda rows, F: (F * G[rows], (F * F).sum()))
    assert total == pytest.approx(Phi.T @ (G * (Phi @ u)), **NEAR)
    assert sums == pytest.approx([((Phi @ u) ** 2).sum()], **NEAR)
    assert features.passes == 3


def test_rough_passes_are_those_of_single_precision(rng, problem):
    features, Phi = problem
    u = rng.normal(size=(features.size, 2))
    exact = Phi.T @ (Phi @ u)
    rough, _ = features.apply(u, lambda rows, F: (F, 0.0), is_rough=True)
    off = np.abs(rough - exact).max() / np.abs(exact).max()
    assert 1e-10 < off < 1e3 * np.finfo(np.float32).eps  # T⁻¹ multiplies roundings by 1e3 at most.


@pytest.mark.parametrize("zeros", [0, 30])
def test_squares_and_their_inverses(rng, problem, zeros):
    features, Phi = problem
    weight = rng.uniform(0.1, 1.0, size=50)
    weight[:zeros] = 0.0
    exact = Phi.T @ (weight[:, None] * Phi)
    for slack in (0.0, np.inf):  # of the features, and of kernel values
        assert np.tril(features.square(weight, slack=slack)) == pytest.approx(np.tril(exact), **NEAR)
    penalty = np.diag(features.penalty(0.3)[:, 0])
    solve = features.inverse(features.square(weight), 0.3)
    V = rng.normal(size=(features.size, 2))
    assert solve(V) == pytest.approx(np.linalg.solve(exact + penalty, V), rel=1e-8)
    assert features.penalty(0.3)[-1] == (0.0 if features.fit_intercept else 0.3)


@pytest.fixture
def many(rng, features_of, gaussian):
    X = rng.normal(size=(1000, 3))
    return features_of(gaussian(X, X[:6]), gaussian(X[:6], X[:6]), fit_intercept=False)


def test_samples_are_of_rows_with_a_weight(problem, many):
    few = problem[0].sample(np.ones(50))  # 50 rows for 6 landmarks: all of them.
    assert few.features is problem[0] and few.rows == slice(None) and few.share == 1.0
    features, _ = many
    weight = np.zeros(1000)
    weight[100:150] = 1.0
    found = features.sample(weight)
    assert np.array_equal(found.rows, np.arange(100, 150)) and found.share == 1.0
    chosen, again = features.sample(np.ones(1000)), features.sample(np.ones(1000))
    assert len(chosen.rows) == 120 == len(set(chosen.rows)) and np.array_equal(chosen.rows, again.rows)
    assert chosen.features.n == 120 and chosen.share == 0.12
    assert features.sample(np.zeros(1000)).features.n == 120  # No row counts: any will do.


def test_a_sample_is_inverted_for_all_rows(rng, many):
    features, Phi = many
    weight, V = rng.uniform(0.1, 1.0, size=1000), rng.normal(size=(6, 2))
    sample = features.sample(weight)
    own = Phi[sample.rows]
    scaled = own.T @ (weight[sample.rows, None] * own) * weight.sum() / weight[sample.rows].sum()
    assert sample.inverse(0.3)(V) == pytest.approx(np.linalg.solve(scaled + 0.3 * np.eye(6), V), rel=1e-8)


def test_float32_squares_of_nearly_dependent_features_are_factorised(rng, features_of, gaussian):
    """Φᵀ Φ is singular to float32: no penalty to speak of, duplicates of nearly all rows."""
    X = 0.05 * rng.normal(size=(300, 1))
    Z = np.linspace(-0.1, 0.1, 12)[:, None]
    features, _ = features_of(gaussian(X, Z), gaussian(Z, Z), True, "float32")
    solve = features.inverse(features.square(np.ones(300)), 1e-12)
    assert np.isfinite(solve(np.ones((features.size, 1)))).all()
