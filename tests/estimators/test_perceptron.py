"""KernelPerceptron: the lecture's trace, scikit-learn's contract, every kind of data."""

import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Expansion, FromFunction, Gaussian, Gram, KernelPerceptron, Linear, Polynomial, config
from mercer.errors import InputError
from mercer.solvers.perceptron import perceptron

XOR = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
XOR_LABELS = np.array([1, -1, 1, -1])


@pytest.fixture
def ring(rng):
    """Two classes that no line separates: inside and outside of a circle, with a gap between."""
    radius = np.concatenate([rng.uniform(0, 0.8, 30), rng.uniform(1.2, 2, 30)])
    angle = rng.uniform(0, 2 * np.pi, 60)
    order = rng.permutation(60)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])[order]
    return X, np.where(radius > 1, "out", "in")[order]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, test_size=0.3, random_state=0)


@parametrize_with_checks(
    [
        KernelPerceptron(),
        KernelPerceptron(
            kernel=Gaussian(sigma="median"),
            fit_intercept=False,
            shuffle=True,
            random_state=0,
            record_history=True,
        ),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


# --- the golden trace --------------------------------------------------------------------------------


def test_xor_trace():
    model = KernelPerceptron(kernel=Polynomial(2, c=0), fit_intercept=False)
    model.fit(XOR, XOR_LABELS)
    assert model.history_.tolist() == [
        (1, 0, 0.0, True),
        (1, 1, 0.0, False),
        (1, 2, 4.0, False),
        (1, 3, 0.0, False),
        (2, 0, 4.0, False),
        (2, 1, 0.0, False),
        (2, 2, 4.0, False),
        (2, 3, 0.0, False),
    ]
    assert (model.mistakes_, model.n_iter_, model.converged_) == (1, 2, True)
    assert model.bound_ == math.inf
    f = model.expansion_
    assert isinstance(f, Expansion)
    assert (f.anchors.tolist(), f.coef.tolist(), f.intercept.tolist()) == ([[1.0, 1.0]], [1.0], 0.0)
    grid = np.array([[x, z] for x in range(-3, 4) for z in range(-3, 4)], dtype=float)
    assert f(grid) == pytest.approx(grid.sum(axis=1) ** 2)
    assert model.predict(XOR).tolist() == XOR_LABELS.tolist()  # sign(0) = -1 here too
    assert model.predict([[2.0, -2.0]]).tolist() == [-1]


# --- two classes -------------------------------------------------------------------------------------


def test_two_classes(ring):
    X, y = ring
    model = KernelPerceptron(kernel=Gaussian(sigma=0.5)).fit(X, y)
    assert model.classes_.tolist() == ["in", "out"]
    assert model.converged_
    assert model.score(X, y) == 1.0
    assert 0 < model.mistakes_ <= model.bound_
    assert np.abs(model.expansion_.coef).sum() == model.mistakes_
    assert (model.expansion_.coef != 0).all()
    assert len(model.expansion_) < len(X)
    assert model.decision_function(X) == pytest.approx(model.expansion_(X))
    assert ((model.decision_function(X) > 0) == (y == "out")).all()
    result = perceptron(Gram(Gaussian(sigma=0.5), X), np.where(y == "out", 1, -1))
    assert model.bound_ == pytest.approx(result.bound)


def test_the_history_of_large_sets_is_kept_on_request_only(rng):
    X = rng.normal(size=(1001, 2))
    y = X[:, 0] > 0
    assert not hasattr(KernelPerceptron("linear", max_iter=2000).fit(X, y), "history_")
    assert len(KernelPerceptron("linear", max_iter=2000).fit(X[:1000], y[:1000]).history_) % 1000 == 0


def test_a_second_fit_forgets_the_history(ring):
    model = KernelPerceptron(record_history=True).fit(*ring)
    assert len(model.history_) == 60 * model.n_iter_
    assert not hasattr(model.set_params(record_history=False).fit(*ring), "history_")


def test_linear_kernel_gives_a_primal_weight_vector(rng):
    X = rng.integers(-9, 10, size=(80, 4)).astype(float)
    y = X @ [1.0, -2.0, 0.5, 1.0] > 0.25
    model = KernelPerceptron(kernel="linear", max_iter=10_000).fit(X, y)
    w = model.expansion_.anchors.T @ model.expansion_.coef
    assert model.decision_function(X) == pytest.approx(X @ w + model.expansion_.intercept)
    assert model.predict(X).dtype == bool


def test_shuffling_is_seeded_and_differs_by_seed(ring):
    X, y = ring

    def orders(seed):
        model = KernelPerceptron(shuffle=True, random_state=seed, record_history=True).fit(X, y)
        return model.history_["index"].reshape(-1, len(X))

    first = orders(0)
    assert np.array_equal(first, orders(0))
    assert not np.array_equal(first[0], orders(1)[0])
    assert not np.array_equal(first[0], first[1])
    assert (np.sort(first, axis=1) == np.arange(len(X))).all()


# --- more classes ------------------------------------------------------------------------------------


def test_digits(digits):
    X, Z, y, labels = digits
    model = KernelPerceptron(kernel=Polynomial(3, c=1.0), record_history=True).fit(X, y)
    assert model.converged_
    assert model.score(X, y) == 1.0
    assert model.score(Z, labels) > 0.93
    f = model.expansion_
    assert f.coef.shape == (len(f), 10)
    assert model.decision_function(Z).shape == (len(Z), 10)
    assert model.mistakes_.shape == model.bound_.shape == (10,)
    assert (model.mistakes_ <= model.bound_).all()
    assert len(model.history_) == 10
    assert [int(h["mistake"].sum()) for h in model.history_] == model.mistakes_.tolist()
    assert model.n_iter_ == max(h["epoch"].max() for h in model.history_)
    alone = KernelPerceptron(kernel=Polynomial(3, c=1.0)).fit(X, y == 7)
    assert alone.mistakes_ == model.mistakes_[7]
    assert alone.decision_function(Z) == pytest.approx(model.decision_function(Z)[:, 7])


def test_classes_share_the_rows_of_one_gram(rng, monkeypatch):
    computed = []
    original = Gram._compute_rows
    monkeypatch.setattr(
        Gram,
        "_compute_rows",
        lambda self, index: computed.extend(index.tolist()) or original(self, index),
    )
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    X += 8 * np.eye(3)[y][:, :2]
    model = KernelPerceptron().fit(X, y)
    assert model.mistakes_.sum() > len(computed) == len(set(computed)) == len(model.expansion_)


def test_shuffled_classes_visit_in_one_order(digits):
    X, _, y, _ = digits
    model = KernelPerceptron(kernel="poly", coef0=1, shuffle=True, random_state=0, record_history=True)
    model.fit(X[:200], y[:200])
    first, *others = (history["index"][:200] for history in model.history_)
    assert all(np.array_equal(first, other) for other in others)


# --- other data --------------------------------------------------------------------------------------


def test_containers_agree(ring):
    X, y = ring
    expected = KernelPerceptron().fit(X, y).decision_function(X)
    frame = pd.DataFrame(X, columns=["u", "v"])
    for table in (X.tolist(), sparse.csr_array(X), frame):
        model = KernelPerceptron().fit(table, y)
        assert model.decision_function(table) == pytest.approx(expected, abs=1e-9)
    assert model.feature_names_in_.tolist() == ["u", "v"]
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)


def test_precomputed_equals_direct(ring):
    X, y = ring
    k = Gaussian(sigma=0.5)
    X, Z = X[:40], X[40:]
    direct = KernelPerceptron(kernel=k).fit(X, y[:40])
    given = KernelPerceptron(kernel="precomputed").fit(k(X), y[:40])
    assert np.array_equal(given.predict(k(Z, X)), direct.predict(Z))
    assert given.decision_function(k(Z, X)) == pytest.approx(direct.decision_function(Z))
    assert given.mistakes_ == direct.mistakes_
    assert given.bound_ == pytest.approx(direct.bound_)
    assert given.expansion_.norm() == pytest.approx(direct.expansion_.norm())
    assert np.array_equal(X[given.expansion_.anchors], direct.expansion_.anchors)


def test_precomputed_is_cut_on_both_sides_by_cross_validation(ring):
    X, y = ring
    k = Gaussian(sigma=0.5)
    direct = cross_val_score(KernelPerceptron(kernel=k), X, y, cv=3)
    assert cross_val_score(KernelPerceptron(kernel="precomputed"), k(X), y, cv=3).tolist() == direct.tolist()


WORDS = ["kernel", "colonel", "kern", "corn", "cat", "cattle", "dog", "doll"]
KINDS = ["seed", "seed", "seed", "seed", "pet", "pet", "pet", "pet"]


def common(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.filterwarnings("ignore::mercer.errors.SlowPathWarning")
@pytest.mark.parametrize("kernel", [common, FromFunction(common)])
def test_strings(kernel):
    model = KernelPerceptron(kernel=kernel).fit(WORDS, KINDS)
    assert model.score(WORDS, KINDS) == 1.0
    assert set(model.expansion_.anchors) < set(WORDS)
    assert cross_val_score(model, WORDS, KINDS, cv=2).shape == (2,)
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.predict(WORDS).tolist() == model.predict(WORDS).tolist()


# --- tools of scikit-learn ---------------------------------------------------------------------------


def test_grid_search_reaches_the_kernel(ring):
    model = KernelPerceptron(kernel=Gaussian(sigma=1.0))
    search = GridSearchCV(model, {"kernel__sigma": [0.3, 1.0], "max_iter": [50]}, cv=3).fit(*ring)
    assert model.kernel == Gaussian(sigma=1.0)
    assert search.best_params_["kernel__sigma"] in (0.3, 1.0)
    assert search.best_estimator_.kernel_ == Gaussian(sigma=search.best_params_["kernel__sigma"])
    assert search.best_score_ > 0.8


def test_pipeline(ring):
    X, y = ring
    pipeline = make_pipeline(StandardScaler(), KernelPerceptron(kernel=Gaussian(sigma=1.0)))
    pipeline.set_params(kernelperceptron__kernel__sigma=0.5)
    assert pipeline.fit(100 * X + 7, y).score(100 * X + 7, y) == 1.0


def test_clone_is_unfitted_and_has_its_own_kernel(ring):
    model = KernelPerceptron(kernel=Gaussian(sigma=0.5) + Linear(), random_state=3).fit(*ring)
    copy = clone(model)
    assert copy.get_params().keys() == model.get_params().keys()
    assert copy.kernel == model.kernel and copy.kernel is not model.kernel
    with pytest.raises(NotFittedError):
        copy.predict(ring[0])


def test_pickle(ring):
    X, y = ring
    model = KernelPerceptron(record_history=True).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert np.array_equal(loaded.history_, model.history_)


def test_repr():
    assert repr(KernelPerceptron(Gaussian(sigma=1.0))) == "KernelPerceptron(kernel=Gaussian(sigma=1.0))"


# --- progress, warnings, refusals --------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_progress_ends_complete(rng, classes):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % classes
    X += 6 * np.eye(3)[y][:, :2]
    events = []
    with config(progress=events.append):
        model = KernelPerceptron(max_iter=50).fit(X, y)
    assert model.converged_
    assert events[-1]["done"] == events[-1]["total"] == 50 * 30 * (1 if classes == 2 else 3)
    assert events[-1]["facts"]["mistakes"] > 0
    assert all(before["done"] <= after["done"] for before, after in itertools.pairwise(events))


def test_noise_ends_with_a_warning_at_the_callers_line(ring):
    X, y = np.concatenate([ring[0], ring[0][:1]]), np.append(ring[1], "in" if ring[1][0] == "out" else "out")
    with pytest.warns(ConvergenceWarning, match="did not separate the two classes in max_iter=5") as caught:
        model = KernelPerceptron(max_iter=5).fit(X, y)
    assert caught[0].filename == __file__
    assert "raise max_iter" in str(caught[0].message)
    assert not model.converged_
    assert model.n_iter_ == 5
    assert math.isnan(model.bound_)


def test_the_warning_names_the_classes():
    X, y = [[0.0], [0.0], [9.0]], ["a", "b", "c"]
    with pytest.warns(
        ConvergenceWarning, match=r"did not separate 2 of 3 classes \('a', 'b'\) in max_iter=9"
    ):
        model = KernelPerceptron(max_iter=9).fit(X, y)
    assert np.isnan(model.bound_).tolist() == [True, True, False]


def test_separable_data_bring_no_warning(ring):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelPerceptron().fit(*ring)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_iter": 2.5}, "max_iter must be a whole number of at least 1, got 2.5: pass 1, 2, 3, …"),
        ({"fit_intercept": None}, "fit_intercept must be True or False, got None: pass one of the two"),
        ({"shuffle": 1}, "shuffle must be True or False, got 1"),
        ({"record_history": "all"}, "record_history must be True or False, got 'all'"),
    ],
)
def test_refused_parameters(options, text):
    with pytest.raises(InputError, match=text):
        KernelPerceptron(**options).fit(XOR, XOR_LABELS)


def test_refused_labels():
    with pytest.raises(InputError, match="y must hold at least two classes, got one class, 'a': add points"):
        KernelPerceptron().fit(XOR, ["a"] * 4)
    with pytest.raises(ValueError, match="Unknown label type"):
        KernelPerceptron().fit(XOR, [0.5, 1.5, 2.5, 3.5])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelPerceptron().fit(XOR, [1, -1, 1])
