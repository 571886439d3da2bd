"""The convergence proof, against a loop that computes w anew after each mistake."""

import numpy as np
import pytest

from mercer import Expansion, Gaussian, KernelPerceptron, Perceptron, Polynomial
from mercer.errors import InputError


def separable(rng, n=80, d=3):
    X = rng.normal(size=(n, d))
    w = np.array([1.0, -2.0, 0.5])[:d]
    far = np.abs(X @ w + 0.3) > 0.4
    return X[far], np.where(X @ w + 0.3 > 0, 1, -1)[far], w


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("prediction", ["last", "averaged", "voted"])
def test_it_is_what_a_loop_finds(rng, fit_intercept, prediction):
    X, y, w = separable(rng)
    y = y if fit_intercept else np.where(X @ w > 0, 1, -1)
    model = Perceptron(fit_intercept=fit_intercept, prediction=prediction, max_iter=10_000).fit(X, y)
    Z = np.column_stack([X, np.full(len(X), float(fit_intercept))])
    w_star = np.append(w, 0.3 if fit_intercept else 0.0)
    proof = model.proof(w, 0.3 if fit_intercept else 0.0, X, y)
    steps = np.cumsum((y[:, None] * Z)[model.mistake_indices_], axis=0)
    steps = np.concatenate([np.zeros((1, Z.shape[1])), steps])
    unit = w_star / np.linalg.norm(w_star)
    np.testing.assert_allclose(proof.norms, np.linalg.norm(steps, axis=1), atol=1e-9)
    np.testing.assert_allclose(proof.progress, steps @ unit, atol=1e-9)
    assert proof.margin == pytest.approx((y * (Z @ unit)).min())
    assert proof.radius == pytest.approx(np.linalg.norm(Z, axis=1).max())
    assert proof.bound == pytest.approx(model.bound(w, w_star[-1], X, y))
    own = model.proof()
    assert own.bound == pytest.approx(model.bound_) and own.mistakes == model.mistakes_


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_chain_of_inequalities_holds(rng, fit_intercept):
    X, y, _ = separable(rng, d=2)
    model = KernelPerceptron(Gaussian(0.7), fit_intercept=fit_intercept).fit(X, y)
    proof = model.proof()
    chain = np.stack([proof.lower, proof.progress, proof.norms, proof.upper])
    assert (np.diff(chain, axis=0) >= -1e-9 * proof.norms.max()).all() and proof.mistakes <= proof.bound
    f = model.expansion_
    assert proof.norms[-1] == pytest.approx(np.hypot(f.norm(), f.intercept))
    again = model.proof(2 * f, X, y)  # a separator counts by its direction
    np.testing.assert_allclose(again.progress, proof.progress, rtol=1e-9)


def test_a_separator_at_its_word_has_the_margin_one(rng):
    model = KernelPerceptron(Polynomial(2, c=0), fit_intercept=False)
    model.fit([[1, 1], [-1, 1], [-1, -1], [1, -1]], [1, -1, 1, -1])
    g = Expansion(Polynomial(2, c=0), [[1.0, 1.0], [-1.0, 1.0]], [0.25, -0.25])  # x₁x₂
    assert model.proof(g).bound == model.bound(g) == pytest.approx(2.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_has_no_proof(rng):
    X, y, _ = separable(rng, d=2)
    with pytest.raises(InputError, match="follows the mistakes of two classes one by one"):
        Perceptron(max_iter=5).fit(X, np.arange(len(X)) % 3 if len(X) else y).proof()
    model = KernelPerceptron(Gaussian(0.5)).fit(X, y)
    with pytest.raises(InputError, match="without a budget"):
        model.set_params(budget=5).fit(X, y).proof()
    with pytest.raises(InputError, match="does not separate the classes, and proves nothing"):
        Perceptron(max_iter=2).fit([[0.0], [1.0], [2.0]], [0, 1, 0]).proof()
