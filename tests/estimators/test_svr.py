"""SVR and NuSVR: scikit-learn's numbers, tubes known by hand, C = ∞, weights, control, odd data."""

import inspect
import os
import signal
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as libsvm
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVR, Gaussian, NuSVR, config
from mercer.errors import InputError
from mercer.solvers import control

PAIR = [(SVR, libsvm.SVR), (NuSVR, libsvm.NuSVR)]


# a point of weight 2 must be as good as two to 1e-7: small problems are solved beyond the tolerance
@parametrize_with_checks([SVR(), NuSVR()])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


@pytest.fixture
def wave(rng):
    X = rng.uniform(-2, 2, size=(120, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=120)


@pytest.mark.parametrize(("ours", "theirs"), PAIR)
def test_parameters_are_those_of_scikit_learn(ours, theirs):
    mine, peer = (inspect.signature(kind).parameters for kind in (ours, theirs))
    assert set(peer) <= set(mine)
    assert {name for name in peer if mine[name].default != peer[name].default} == {"cache_size"}


@pytest.mark.parametrize(("ours", "theirs"), PAIR)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_scikit_learn(ours, theirs, kernel, container, weighted, wave, rng):
    X, y = wave
    weight = rng.uniform(0.1, 3, 120) if weighted else None
    options = {"kernel": kernel, "gamma": 0.5, "C": 2.0, "tol": 1e-8}
    if ours is NuSVR:
        options["nu"] = 0.505  # ν n / 2 is no whole number: else b may not be unique
    model, peer = (kind(**options).fit(container(X), y, sample_weight=weight) for kind in (ours, theirs))
    # LIBSVM's kernel values are in float32
    assert model.predict(container(X)) == pytest.approx(peer.predict(container(X)), abs=1e-4)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-4) and model.fit_status_ == 0
    assert model.dual_coef_.shape == (1, len(model.support_)) and type(model.n_iter_) is int
    assert type(model.dual_coef_) is type(peer.dual_coef_) and model.shape_fit_ == peer.shape_fit_
    assert model.n_support_.shape == (1,) and model.n_support_[0] == model.support_vectors_.shape[0]
    if kernel == "linear":
        assert type(model.coef_) is type(peer.coef_) and model.coef_.shape == (1, 2)
        assert X @ (model.coef_ if container is np.asarray else model.coef_.toarray())[0] == pytest.approx(
            model.predict(container(X)) - model.intercept_
        )
    else:
        full = [np.zeros(120), np.zeros(120)]
        for coef, each in zip(full, (model, peer), strict=True):
            dual = each.dual_coef_ if container is np.asarray else each.dual_coef_.toarray()
            coef[each.support_] = dual[0]
        assert full[0] == pytest.approx(full[1], abs=1e-2)
        assert not hasattr(model, "coef_")


def test_objective_and_gap(wave):
    X, y = wave
    model = SVR(C=2.0, gamma=0.5, epsilon=0.2, tol=1e-6).fit(X, y)
    slack = np.maximum(0, np.abs(y - model.predict(X)) - 0.2)
    primal = model.expansion_.norm() ** 2 / 2 + 2.0 * slack.sum()
    assert model.report_.objective == pytest.approx(primal, rel=1e-6)
    assert 0 <= model.dual_gap_ <= 2e-6 * 120 and model.kkt_violation_ <= 1e-6
    for kind in (SVR, NuSVR):
        found = kind(gamma=0.5).fit(X, y)
        assert type(found.margin_) is float and found.margin_ == pytest.approx(2 / found.expansion_.norm())


def test_the_tube_of_nu(wave):
    X, y = wave
    model = NuSVR(nu=0.3, C=5.0, gamma=0.5, tol=1e-7).fit(X, y)
    same = SVR(epsilon=model.epsilon_, C=5.0, gamma=0.5, tol=1e-7).fit(X, y)
    assert model.predict(X) == pytest.approx(same.predict(X), abs=1e-4)
    outside = (np.abs(y - model.predict(X)) > model.epsilon_ + 1e-5).mean()
    assert outside <= 0.3 <= len(model.support_) / 120


def test_no_errors_at_all(wave):
    X, y = wave
    model = SVR(C=np.inf, kernel=Gaussian(sigma=0.3), epsilon=0.1).fit(X[:60], y[:60])
    assert np.abs(y - model.predict(X))[:60].max() <= 0.1 + 2e-3 and model.report_.converged
    with pytest.raises(InputError, match="no function comes within epsilon of all targets by this kernel"):
        SVR(C=np.inf, kernel="linear", epsilon=0.05).fit(X, y)
    twice = np.vstack([X[:1], X[:1]])
    with pytest.raises(InputError, match="no function comes within epsilon"):
        SVR(C=np.inf).fit(twice, [0.0, 1.0])
    assert SVR(C=np.inf).fit(twice, [0.0, 0.1]).predict(twice[:1]) == pytest.approx(0.05, abs=0.06)


def test_no_support_vectors():
    model = SVR(kernel="linear", epsilon=1.0).fit(sparse.csr_array(np.eye(4)), [0.04, 0.04, 0.1, 0.16])
    assert len(model.support_) == 0 and model.dual_coef_.nnz == 0 and model.support_vectors_.shape == (0, 4)
    assert model.predict(np.eye(4)) == pytest.approx(model.intercept_[0]) and model.coef_.nnz == 0
    assert model.margin_ == np.inf  # f is constant


def test_average_weights_and_path(wave, rng):
    X, y = wave
    weight = rng.integers(0, 3, 120).astype(float)
    model = SVR(C=60.0, average=True, gamma=0.5, tol=1e-8).fit(X, y, sample_weight=weight)
    repeated = np.repeat(np.arange(120), weight.astype(int))
    plain = SVR(C=60.0 / weight.sum(), gamma=0.5, tol=1e-8).fit(X[repeated], y[repeated])
    assert model.predict(X) == pytest.approx(plain.predict(X), abs=1e-6)
    assert (weight[model.support_] > 0).all()
    for kind in (SVR, NuSVR):
        Cs = [0.1, 1.0, 20.0, 3.0]
        for C, each in zip(Cs, kind(gamma=0.5, tol=1e-6).path(X, y, Cs), strict=True):
            alone = kind(C=C, gamma=0.5, tol=1e-6).fit(X, y)
            assert each.report_.objective == pytest.approx(alone.report_.objective, rel=1e-5)
    warm = SVR(gamma=0.5, warm_start=True, tol=1e-6).fit(X, y)
    first = warm.n_iter_
    assert warm.fit(X, y).n_iter_ < first / 4


@pytest.mark.parametrize("C", [1e-6, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("kind", [SVR, NuSVR])
def test_every_size_of_c_ends(C, kind, wave):
    X, y = wave
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(C=C, kernel=Gaussian(sigma=0.3), max_iter=100_000).fit(X[:50], y[:50])
    assert model.report_.stopped != "max_iter" and np.isfinite(model.predict(X)).all()
    assert np.abs(model.dual_coef_).max(initial=0) <= C


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_targets(scale, wave):
    X, y = wave
    model = SVR(C=scale, epsilon=0.1 * scale, tol=1e-6 * scale, gamma=0.5).fit(X, scale * y)
    expected = SVR(epsilon=0.1, tol=1e-6, gamma=0.5).fit(X, y)
    assert model.predict(X) / scale == pytest.approx(expected.predict(X), abs=1e-4)


def test_constant_targets_and_duplicates(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 3, axis=0)
    assert SVR().fit(X, np.full(30, 7.0)).predict(X) == pytest.approx(7.0, abs=0.11)
    assert NuSVR(tol=1e-6).fit(X, np.full(30, 7.0)).predict(X) == pytest.approx(7.0, abs=1e-3)
    y = np.tile([0.0, 1.0, 2.0], 10)  # contradictory: every place has the same three targets
    assert SVR(C=100.0, tol=1e-6).fit(X, y).predict(X) == pytest.approx(1.0, abs=1e-3)


def test_precision_and_plan(rng):
    X = rng.normal(size=(2100, 2))
    assert SVR().plan(X).dtype == "float32" and SVR(C=1e6).plan(X).dtype == "float64"
    with config(dtype="float32"):
        model = NuSVR(gamma=0.5).fit(X[:100], X[:100, 0])
    assert model.report_.plan.dtype == "float32"
    assert model.predict(X) == pytest.approx(NuSVR(gamma=0.5).fit(X[:100], X[:100, 0]).predict(X), abs=0.01)


def test_bad_parameters(wave):
    for kind, name, value in [
        (SVR, "epsilon", -1.0),
        (NuSVR, "nu", 0.0),
        (NuSVR, "nu", 1.5),
        (NuSVR, "C", np.inf),
    ]:
        with pytest.raises(ValueError, match=f"{name} must be"):
            kind(**{name: value}).fit(*wave)
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        SVR().fit(*wave, sample_weight=np.zeros(120))


def test_interrupted_and_resumed(wave, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(control, "_EVERY", 0)
    X = rng.normal(size=(700, 3))
    y = X[:, 0] + rng.normal(size=700)
    left = [3]

    def stop(event):
        left[0] -= "violation" in event["facts"]
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGINT)

    options = {"C": 50.0, "tol": 1e-5}
    path = tmp_path / "state.npz"
    with pytest.warns(ConvergenceWarning, match="SVR was interrupted after"):
        model = SVR(checkpoint=path, progress=stop, **options).fit(X, y)
    assert model.report_.stopped == "interrupted" and path.exists()
    model.set_params(resume=True, progress=False).fit(X, y)
    whole = SVR(**options).fit(X, y)
    assert model.report_.converged
    assert model.report_.objective == pytest.approx(whole.report_.objective, rel=1e-6)
    with pytest.warns(ConvergenceWarning, match="ran out of max_time"):
        SVR(max_time=1e-9, **options).fit(X, y)
