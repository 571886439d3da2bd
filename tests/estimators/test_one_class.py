"""OneClassSVM: scikit-learn's numbers, the meaning of ν, weights, odd data, control."""

import inspect
import os
import pickle
import signal

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as libsvm
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, OneClassSVM
from mercer.solvers import control


# a point of weight 2 must be as good as two to 1e-7: small problems are solved beyond the tolerance
@parametrize_with_checks([OneClassSVM()])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


@pytest.fixture
def X(rng):
    return np.vstack([rng.normal(size=(90, 2)), rng.uniform(-6, 6, size=(10, 2))])


def test_parameters_are_those_of_scikit_learn():
    mine, peer = (inspect.signature(kind).parameters for kind in (OneClassSVM, libsvm.OneClassSVM))
    assert set(peer) <= set(mine)
    assert {name for name in peer if mine[name].default != peer[name].default} == {"cache_size"}


# ν n is no whole number: else all αᵢ may be 0 or 1, and ρ anything in between
@pytest.mark.parametrize("nu", [0.055, 0.505, 0.905])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_scikit_learn(nu, kernel, container, weighted, X, rng):
    X = X + 3.0
    weight = rng.uniform(0.1, 3, 100) if weighted else None
    options = {"nu": nu, "kernel": kernel, "gamma": 0.3, "tol": 1e-8}
    model, peer = (
        kind(**options).fit(container(X), sample_weight=weight) for kind in (OneClassSVM, libsvm.OneClassSVM)
    )
    values = peer.decision_function(container(X))
    scale = np.abs(peer.score_samples(container(X))).max()
    # LIBSVM's kernel values are in float32: relative to Σ αᵢ k(xᵢ, x)
    assert model.decision_function(container(X)) == pytest.approx(values, abs=1e-5 * scale)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-5 * scale)
    assert model.offset_.shape == (1,) and np.array_equal(model.offset_, -model.intercept_)
    assert model.score_samples(container(X)) == pytest.approx(
        peer.score_samples(container(X)), abs=1e-5 * scale
    )
    clear = np.abs(values) > 1e-4 * scale
    assert np.array_equal(model.predict(container(X))[clear], peer.predict(container(X))[clear])
    assert model.predict(container(X)).dtype == np.intp
    assert type(model.dual_coef_) is type(peer.dual_coef_) and type(model.n_iter_) is int
    assert hasattr(model, "coef_") == (kernel == "linear")


@pytest.mark.parametrize("nu", [0.1, 0.33, 0.7])
def test_nu_bounds_what_is_outside(nu, X):
    model = OneClassSVM(nu=nu, tol=1e-8).fit(X)
    # points on the boundary count as inside, so this holds exactly
    assert (model.predict(X) == -1).mean() <= nu <= len(model.support_) / 100
    assert np.array_equal(model.fit_predict(X), model.predict(X))
    assert np.array_equal(model.predict(X) == 1, model.decision_function(X) > 0)


def test_all_points_are_support_vectors_at_one(X):
    """ν = 1: every αᵢ = 1, the Parzen window estimate."""
    model = OneClassSVM(nu=1.0, kernel=Gaussian(sigma=1.0)).fit(X)
    assert model.dual_coef_ == pytest.approx(np.ones((1, 100)))
    assert model.score_samples(X) == pytest.approx(Gaussian(sigma=1.0)(X).sum(axis=1))


def test_margin_objective_and_gap(X):
    model = OneClassSVM(nu=0.2, tol=1e-7).fit(X)
    norm, rho = model.expansion_.norm(), model.offset_[0]
    assert type(model.margin_) is float and model.margin_ == pytest.approx(2 / norm)
    primal = norm**2 / 2 - 20 * rho + np.maximum(0, rho - model.score_samples(X)).sum()
    assert model.report_.objective == pytest.approx(primal, rel=1e-5)
    assert 0 <= model.dual_gap_ <= 1e-7 * 100 and model.kkt_violation_ <= 1e-7


def test_weights_warm_starts_and_copies(X, rng):
    weight = rng.integers(0, 3, 100)
    model = OneClassSVM(nu=0.3, tol=1e-8).fit(X, sample_weight=weight)
    repeated = OneClassSVM(nu=0.3, tol=1e-8).fit(np.repeat(X, weight, axis=0))
    assert model.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-6)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        OneClassSVM().fit(X, sample_weight=-weight)
    warm = OneClassSVM(nu=0.3, tol=1e-6, warm_start=True).fit(X)
    first = warm.n_iter_
    assert warm.fit(X).n_iter_ < first / 4


@pytest.mark.parametrize("scale", [1e-10, 1e10])
def test_scales_duplicates_and_constant_columns(scale, X):
    odd = np.column_stack([X, np.ones(100)])
    odd[50:60] = odd[40:50]
    expected = OneClassSVM(tol=1e-6).fit(odd).decision_function(odd)
    assert OneClassSVM(tol=1e-6).fit(scale * odd).decision_function(scale * odd) == pytest.approx(
        expected, abs=1e-3
    )
    same = OneClassSVM().fit(np.ones((5, 2)))
    assert (
        np.isfinite(same.decision_function(np.zeros((1, 2)))).all()
        and (same.predict(np.ones((2, 2))) == 1).all()
    )


def test_precomputed_and_indefinite(X, rng):
    k = Gaussian(sigma=1.0)
    model, given = OneClassSVM(kernel=k).fit(X), OneClassSVM(kernel="precomputed").fit(k(X))
    new = rng.normal(size=(7, 2))
    assert given.decision_function(k(new, X)) == pytest.approx(model.decision_function(new), abs=1e-10)
    A = rng.normal(size=(30, 30))
    end = OneClassSVM(kernel="precomputed", max_iter=100_000).fit(A + A.T)
    assert np.isfinite(end.decision_function(A + A.T)).all()


def test_interrupted_and_resumed(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(control, "_EVERY", 0)
    X = rng.normal(size=(1500, 4))
    left = [2]

    def stop(event):
        left[0] -= "violation" in event["facts"]
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGINT)

    options = {"nu": 0.5, "tol": 1e-5}
    path = tmp_path / "state.npz"
    with pytest.warns(ConvergenceWarning, match="OneClassSVM was interrupted after"):
        model = OneClassSVM(checkpoint=path, progress=stop, **options).fit(X)
    assert model.report_.stopped == "interrupted" and model.fit_status_ == 1
    model.set_params(resume=True, progress=False).fit(X)
    whole = OneClassSVM(**options).fit(X)
    assert model.report_.converged
    assert model.report_.objective == pytest.approx(whole.report_.objective, rel=1e-6)
