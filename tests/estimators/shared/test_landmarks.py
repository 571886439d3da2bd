"""Learners on landmarks: every way to name them, what they learn, long runs, and what is refused."""

import itertools
import os
import pickle
import re
import signal
import time

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from mercer import (
    Gaussian,
    Gram,
    KernelFisherDiscriminant,
    KernelLeastSquares,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelRidge,
    KernelRidgeCV,
    Linear,
    ShortestPath,
    Sigmoid,
    Spectrum,
    config,
)
from mercer.errors import InputError, InputTypeError
from mercer.estimators.shared import landmarks as shared
from mercer.estimators.shared.landmarks import Landmarks
from mercer.report import Method
from mercer.solvers import control as control_module


@pytest.fixture
def data(rng):
    X = rng.normal(size=(120, 2))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=120)


def ridge(**options):
    return KernelRidge(**{"alpha": 0.1, "kernel": Gaussian(1.0), **options})


def logistic(**options):
    return KernelLogisticRegression(Gaussian(1.0), **options)


def hinge(**options):
    return KernelMachineClassifier(Gaussian(1.0), **{"loss": "hinge", **options})


def absolute(**options):
    return KernelMachineRegressor(Gaussian(1.0), **{"loss": "absolute", "alpha": 0.1, **options})


LEARNERS = [ridge, logistic, hinge, absolute]


def labels(learner, y):
    return y > 0 if learner in (logistic, hinge) else y


def values(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


# --- naming landmarks ----------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("learner", LEARNERS)
def test_points_and_their_positions_are_the_same(data, learner):
    X, y = data
    y, chosen = labels(learner, y), [3, 50, 7, 99]
    models = [
        learner(landmarks=given).fit(X, y)
        for given in (chosen, np.array(chosen), X[chosen], X[chosen].tolist(), pd.DataFrame(X[chosen]))
    ]
    for model in models:
        assert len(model.expansion_.anchors) == 4 and model.report_.plan.method is Method.LANDMARKS
        assert np.array_equal(values(model, X), values(models[0], X))
    on_sparse = learner(landmarks=sparse.csr_array(X[chosen])).fit(sparse.csr_array(X), y)
    # Both are within 1e-6 of the same objective: functions differ by its root.
    assert values(on_sparse, X) == pytest.approx(values(models[0], X), abs=1e-2)


def test_numbers_are_drawn_from_the_points_with_a_weight(data):
    X, y = data
    weight = np.arange(120) % 3 != 0
    for given in (8, np.int64(8), Landmarks(8), Landmarks(8, "pivoted")):
        model = ridge(landmarks=given).fit(X, y, sample_weight=weight.astype(float))
        rows = {tuple(x) for x in X[weight]}
        assert len(model.expansion_.anchors) == 8 and all(tuple(z) in rows for z in model.expansion_.anchors)
    first = ridge(landmarks=8).fit(X, y).expansion_.anchors
    assert np.array_equal(first, ridge(landmarks=Landmarks(8, random_state=0)).fit(X, y).expansion_.anchors)
    assert not np.array_equal(
        first, ridge(landmarks=Landmarks(8, random_state=1)).fit(X, y).expansion_.anchors
    )


def test_auto_is_exact_while_that_fits(data):
    X, y = data
    exact, auto = ridge().fit(X, y), ridge(landmarks="auto").fit(X, y)
    assert np.array_equal(auto.predict(X), exact.predict(X))
    assert auto.report_.plan.method is not Method.LANDMARKS
    many = np.zeros((200_000, 2))
    for learner in (ridge, absolute):
        plan = learner(landmarks="auto").plan(many, many[:, 0])
        assert plan.method is Method.LANDMARKS and "8,944 landmarks" in plan.solver  # 20 √n
        assert "the exact solution would take about" in str(plan)
    with config(memory="256MiB"):  # K, 305 MiB in float64, or a few hundred landmarks.
        plan = ridge(landmarks="auto", solver="cholesky").plan(many[:6000], many[:6000, 0])
        assert plan.method is Method.LANDMARKS and "does not fit the memory budget" in str(plan)
        assert plan.memory <= 256 * 2**20


# --- what a plan expects -------------------------------------------------------------------------------


def left_of(kernel, X, Z):
    """(n,) k(x, x) - k(x, Z) K(Z, Z)⁻¹ k(Z, x), from the values of the kernel."""
    K = kernel(Z, X)
    return np.diag(kernel(X, X)) - (K * np.linalg.solve(kernel(Z, Z), K)).sum(axis=0)


EVERY = [KernelRidge, KernelRidgeCV, KernelLeastSquares, KernelLogisticRegression, KernelMachineClassifier]
EVERY += [KernelMachineRegressor, KernelPCA, KernelFisherDiscriminant]


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("how", ["points", "index", "number"])
def test_a_plan_tells_the_trace_error_of_few_rows_exactly(data, kind, how):
    """All 120 rows are looked at; Gaussian values are 1 on the diagonal."""
    X, kernel = data[0], Gaussian(1.0)
    own = {"points": X[:9], "index": np.arange(9), "number": 9}[how]
    plan = kind(kernel=kernel, landmarks=own).plan(X)
    found = plan.trace_error
    assert (found.landmarks, found.rows, found.error, plan.landmarks) == (9, 120, 0.0, 9)
    if how != "number":
        assert found.share == pytest.approx(left_of(kernel, X, X[:9]).mean(), rel=1e-9)
    text = "9 landmarks leave .* % ± 0 % of k\\(x, x\\) unexplained, by 120 of the rows"
    assert re.search(text, str(plan))
    assert kind(kernel=kernel).plan(X).trace_error is None


def test_its_standard_error_covers_the_trace_error_of_all_rows(rng):
    """Of 40 estimates about 38 are within two standard errors, fewer than 30 one time in 10⁵."""
    kernel, covered = Linear() + Gaussian(1.0), 0
    for _ in range(40):
        X = rng.normal(size=(1500, 2)) * rng.uniform(0.5, 3, size=(1500, 1))
        found = KernelRidge(kernel=kernel, landmarks=X[:20]).plan(X).trace_error
        true = left_of(kernel, X, X[:20]).sum() / np.diag(kernel(X, X)).sum()
        assert found.rows == 500 and 0 < found.error < 0.5 * true
        covered += abs(found.share - true) <= 2 * found.error
    assert covered >= 30


def test_a_plan_tries_a_few_hundred_landmarks_where_there_are_more(rng):
    X = rng.normal(size=(5000, 2))
    for choice in ("uniform", "pivoted"):
        plan = KernelRidge(kernel=Gaussian(0.1), landmarks=Landmarks(2000, choice)).plan(X)
        assert plan.trace_error.landmarks == plan.trace_error.rows == 500
        assert str(plan).endswith("of k(x, x) unexplained, by 500 of the rows; 2,000 leave less")
    words = ["".join(rng.choice(list("abc"), size=6)) for _ in range(300)]
    found = KernelRidge(kernel=Spectrum(1), landmarks=200).plan(words)
    assert found.trace_error.landmarks == found.trace_error.rows == 100
    assert "leave nothing but rounding of k(x, x) unexplained" in str(
        found
    )  # Three letters are three features.
    narrow = KernelRidge(kernel=Gaussian(1e-4), landmarks=3).plan(X)
    assert "3 landmarks leave nearly all of k(x, x) unexplained" in str(narrow)
    zero = KernelRidge(kernel=Linear(), landmarks=3).plan(0 * X)
    assert zero.trace_error.share == zero.trace_error.error == 0.0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (0, "landmarks must be a number of landmarks.*got 0: pass"),
        (-1, "got -1: pass"),
        (1.5, "got 1.5: pass"),
        (True, "got True: pass"),
        ("many", "got 'many': pass"),
        (np.array(5), r"got array\(5\): pass"),
        ([], "landmarks has no points"),
        ([[1.0, 2.0, 3.0]], "landmarks have 3 columns and X has 2: pass points like those of X"),
        ([0, 120], "by their positions, 0 to 119, got"),
        ([-1], "by their positions, 0 to 119, got"),
        ([0.0, 1.0], "landmarks must be 2-D"),
        ([[np.nan, 1.0]], "landmarks contains 1 NaN"),
        ({1, 2}, "landmarks must be 2-D"),
    ],
)
@pytest.mark.parametrize("learner", LEARNERS)
def test_anything_else_is_refused_in_a_sentence(data, learner, given, text):
    X, y = data
    with pytest.raises((InputError, InputTypeError), match=text):
        learner(landmarks=given).fit(X, labels(learner, y))


def test_landmarks_say_what_they_need():
    for number in (0, -3, 2.5, True, "5"):
        with pytest.raises(InputError, match="the number of landmarks must be 1 or more, got"):
            Landmarks(number)
    with pytest.raises(InputError, match="choice must be 'uniform' or 'pivoted', got 'best'"):
        Landmarks(5, "best")


def test_what_does_not_go_with_landmarks(data):
    X, y = data
    with pytest.raises(InputError, match="the penalty ‖f‖² alone"):
        absolute(landmarks=5, penalty=np.sqrt).fit(X, y)
    for alpha, remedy in ((0.0, "take KernelLeastSquares"), ([1.0, 2.0], "one by one")):
        with pytest.raises(InputError, match=f"alpha must be one positive number.*{remedy}"):
            ridge(alpha=alpha, landmarks=5).fit(X, np.column_stack([y, y]))
    with pytest.raises(AttributeError, match="loo_residuals_ is not there with landmarks"):
        _ = ridge(landmarks=5).fit(X, y).loo_residuals_
    with pytest.raises(InputError, match=r"k\(z, z\) is 0 for every landmark"):
        ridge(kernel=Linear(), landmarks=[[0.0, 0.0]]).fit(X, y)


# --- what is learned -----------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.filterwarnings("ignore:rounding ended the fit")
def test_all_points_as_landmarks_give_the_exact_learner(data, learner, fit_intercept):
    """Objectives within 1e-12 of J: functions differ by √(2 · 1e-12 J / λ) at most, that is 1e-5."""
    X, y = data
    y, options = labels(learner, y), {"fit_intercept": fit_intercept, "tol": 1e-12}
    exact, model = learner(**options).fit(X, y), learner(landmarks=10**6, **options).fit(X, y)
    assert values(model, X) == pytest.approx(values(exact, X), abs=1e-5)
    assert model.report_.objective == pytest.approx(exact.report_.objective, rel=1e-9)
    # The bound counts what rounding may do to ‖Φᵀs‖, enlarged by T⁻¹, to the first order.
    assert model.report_.bound <= 1e-4 * model.report_.objective
    assert model.report_.bound >= model.report_.gap


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_bound_reaches_the_exact_objective(data, learner):
    X, y = data
    y = labels(learner, y)
    exact = learner().fit(X, y).report_.objective
    for M in (1, 5, 30):
        report = learner(landmarks=M).fit(X, y).report_
        assert report.objective - report.bound <= exact * (1 + 1e-12) and report.objective >= exact * (
            1 - 1e-6
        )


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.filterwarnings("ignore:rounding ended the fit")
def test_a_weight_of_two_is_a_point_twice(data, learner):
    X, y = data
    y, twice = labels(learner, y), np.r_[np.arange(120), np.arange(30)]
    weight = np.where(np.arange(120) < 30, 2.0, 1.0)
    # Of ridge the root of tol is the gap.
    options = {"landmarks": X[::10], "tol": 1e-24 if learner is ridge else 1e-12}
    one = learner(**options).fit(X, y, sample_weight=weight)
    other = learner(**options).fit(X[twice], y[twice])
    assert values(one, X) == pytest.approx(values(other, X), abs=1e-5)


def test_class_weights_are_weights_of_points(data):
    X, y = data
    y = y > 0.5
    for learner in (logistic, hinge):
        one = learner(landmarks=X[::10], class_weight={True: 3.0, False: 1.0}, tol=1e-12).fit(X, y)
        other = learner(landmarks=X[::10], tol=1e-12).fit(X, y, sample_weight=np.where(y, 3.0, 1.0))
        assert values(one, X) == pytest.approx(values(other, X), abs=1e-5)


@pytest.mark.parametrize("learner", [ridge, absolute])
@pytest.mark.filterwarnings("ignore:rounding ended the fit")
def test_several_targets_are_learned_as_if_one_by_one(data, learner):
    X, y = data
    Y = np.column_stack([y, y**2, -y])
    model = learner(landmarks=X[::10], tol=1e-12).fit(X, Y)
    alone = [learner(landmarks=X[::10], tol=1e-12).fit(X, column).predict(X) for column in Y.T]
    assert model.predict(X) == pytest.approx(np.column_stack(alone), abs=1e-5)


@pytest.mark.parametrize("learner", [logistic, hinge])
def test_several_classes(data, learner):
    X, y = data
    codes = np.digitize(y, [-0.5, 0.5])
    model, exact = learner(landmarks=40).fit(X, codes), learner().fit(X, codes)
    assert model.score(X, codes) >= exact.score(X, codes) - 0.05
    assert values(model, X).shape == (120, 3)


def test_the_bound_is_for_few_objects(rng, monkeypatch):
    """One product with all of K takes a second of 20,000 points, or of 2,000 strings."""
    monkeypatch.setattr(shared, "_BOUND_OBJECTS", 10)
    words, y = ["ab", "abc", "b", "cab"] * 3, rng.normal(size=12)
    for some, is_known in ((10, True), (12, False)):
        model = KernelRidge(kernel=Spectrum(1), landmarks=3).fit(words[:some], y[:some])
        assert (model.report_.bound is not None) == is_known
    assert KernelRidge(landmarks=3).fit(rng.normal(size=(12, 2)), y).report_.bound is not None


def test_strings_graphs_and_matrices(rng):
    words = ["".join(rng.choice(list("abc"), size=rng.integers(3, 9))) for _ in range(40)]
    is_a = np.array([word.count("a") > word.count("b") for word in words])
    for given in (10, words[:10], [0, 1, 2], Landmarks(10, "pivoted")):
        assert (
            KernelLogisticRegression(Spectrum(2), landmarks=given).fit(words, is_a).score(words, is_a) > 0.8
        )
    graphs = [nx.gnp_random_graph(6, 0.4, seed=seed) for seed in range(20)]
    edges = np.array([graph.number_of_edges() for graph in graphs], dtype=float)
    by_index = KernelRidge(kernel=ShortestPath(), landmarks=[0, 3, 5]).fit(graphs, edges)
    by_graph = KernelRidge(kernel=ShortestPath(), landmarks=[graphs[i] for i in (0, 3, 5)]).fit(graphs, edges)
    assert np.array_equal(by_index.predict(graphs), by_graph.predict(graphs))
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    K = Gram(Gaussian(1.0), X).dense()
    given = KernelRidge(kernel="precomputed", landmarks=[0, 5, 9]).fit(K, y)
    computed = KernelRidge(kernel=Gaussian(1.0), landmarks=[0, 5, 9]).fit(X, y)
    assert given.predict(K[:4]) == pytest.approx(computed.predict(X[:4]), abs=1e-8)
    with pytest.raises(InputError, match="indices into the training set"):
        KernelRidge(kernel="precomputed", landmarks=K[:3]).fit(K, y)


@pytest.mark.sample(3)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_float32_and_threads(data, learner):
    X, y = data
    y = labels(learner, y)
    with config(dtype="float32"):
        single = learner(landmarks=20).fit(X, y)
    double = learner(landmarks=20).fit(X, y)
    assert single.report_.objective == pytest.approx(double.report_.objective, rel=1e-3)
    with config(threads=1):
        one = learner(landmarks=20).fit(X, y)
    with config(threads=3):
        three = learner(landmarks=20).fit(X, y)
    assert np.array_equal(one.expansion_.coef, three.expansion_.coef)


# --- scikit-learn --------------------------------------------------------------------------------------


@pytest.mark.sample(3)
@pytest.mark.parametrize("learner", LEARNERS)
def test_clone_pickle_and_search(data, learner):
    X, y = data
    y = labels(learner, y)
    model = learner(landmarks=X[:9]).fit(X, y)
    assert np.array_equal(values(pickle.loads(pickle.dumps(model)), X), values(model, X))
    assert np.array_equal(clone(model).get_params()["landmarks"], X[:9])
    assert clone(learner(landmarks=Landmarks(7, "pivoted"))).landmarks == Landmarks(7, "pivoted")
    search = GridSearchCV(learner(), {"landmarks": [None, 5, Landmarks(20), "auto"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# --- long runs -----------------------------------------------------------------------------------------

LONG = [
    (ridge, {"alpha": 1e-4, "landmarks": 3, "tol": 1e-24}),
    (logistic, {"landmarks": 10, "tol": 1e-12}),
    (hinge, {"landmarks": 10, "tol": 1e-9}),
    (absolute, {"landmarks": 10, "tol": 1e-9}),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("learner", "options"), LONG)
def test_resumed_equals_uninterrupted(data, learner, options, tmp_path, monkeypatch):
    monkeypatch.setattr(control_module, "_EVERY", 0.0)
    X, y = data
    y = labels(learner, y)
    events = []
    whole = learner(**options, progress=events.append).fit(X, y)
    assert len(events) >= 4
    for stop in range(1, len(events) - 1):
        path, counter = tmp_path / f"{stop}.npz", itertools.count()

        def interrupt(event, counter=counter, stop=stop):
            if next(counter) == stop:
                raise KeyboardInterrupt

        with pytest.warns(ConvergenceWarning, match="was interrupted.*the model is the best so far"):
            cut = learner(**options, checkpoint=path, progress=interrupt).fit(X, y)
        assert cut.report_.stopped == "interrupted" and np.isfinite(values(cut, X)).all()
        later = []
        rest = learner(**options, checkpoint=path, resume=True, progress=later.append).fit(X, y)
        assert rest.report_.converged and len(later) <= len(events)
        assert np.array_equal(rest.expansion_.coef, whole.expansion_.coef)
        assert np.array_equal(rest.expansion_.intercept, whole.expansion_.intercept)
        assert rest.report_.gap == whole.report_.gap and rest.n_iter_ == whole.n_iter_


def test_a_checkpoint_of_other_landmarks_is_refused(data, tmp_path):
    X, y = data
    path = tmp_path / "run.npz"
    absolute(landmarks=X[:5], checkpoint=path).fit(X, y)
    for other in (X[1:6], 5, Landmarks(5), None):
        with pytest.raises(InputError, match="is the checkpoint of another fit"):
            absolute(landmarks=other, checkpoint=path, resume=True).fit(X, y)


@pytest.mark.parametrize(("learner", "options"), LONG)
def test_ctrl_c_gives_a_model_and_a_warning(data, learner, options):
    X, y = data
    events = []

    def interrupt(event):
        events.append(event)
        if len(events) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="was interrupted after"):
        model = learner(**options, progress=interrupt).fit(X, labels(learner, y))
    assert model.report_.stopped == "interrupted" and np.isfinite(values(model, X)).all()
    assert model.report_.bound is None  # Nobody waits for a product with all of K.
    whole = learner(**options).fit(X, labels(learner, y)).report_
    assert model.report_.objective - model.report_.gap <= whole.objective * (1 + 1e-9)


@pytest.mark.parametrize(("learner", "tol"), [(ridge, 1e-20), (logistic, 1e-12)])
def test_progress_foresees_the_end(data, learner, tol):
    """By its middle a run tells how long it takes, to a factor of three, and not how long it may take."""
    X, y = data
    events = []
    learner(landmarks=8, tol=tol, progress=events.append).fit(X, labels(learner, y))
    last = events[-1]["done"]
    assert last >= 3 and events[0]["total"] >= 100
    assert last == events[-1]["total"] and events[last // 2 + 1]["total"] <= 3 * last


@pytest.mark.parametrize(("learner", "options"), LONG)
def test_max_time_gives_a_model_and_a_warning(data, learner, options, hand_clock):
    X, y = data
    with pytest.warns(ConvergenceWarning, match=r"ran out of max_time=2.0 seconds"):
        model = learner(**options, max_time=2.0, progress=lambda event: hand_clock.wait(1.5)).fit(
            X, labels(learner, y)
        )
    assert model.report_.stopped == "max_time" and np.isfinite(values(model, X)).all()
    assert model.report_.bound is None


SCRIPT = """
import sys, time
import numpy as np
from mercer import Gaussian, KernelLogisticRegression, KernelMachineRegressor, KernelRidge
from mercer.solvers import control

control._EVERY = 0.0
name, wait, paths = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
X = np.random.default_rng(0).normal(size=(200, 2))
y = np.sin(3 * X[:, 0]) + 0.3 * X[:, 1]


def slowly(event):
    print("step", flush=True)
    time.sleep(wait)


for path in paths:
    options = {"checkpoint": path, "resume": path.endswith("killed.npz"), "progress": slowly, "landmarks": 10}
    if name == "ridge":
        model = KernelRidge(1e-6, kernel=Gaussian(1.0), tol=1e-26, **options).fit(X, y)
    elif name == "logistic":
        classes = np.digitize(y, [-0.5, 0.5])
        model = KernelLogisticRegression(Gaussian(1.0), C=1e4, tol=1e-12, **options).fit(X, classes)
    else:
        options |= {"loss": "absolute", "alpha": 0.01, "tol": 1e-9}
        model = KernelMachineRegressor(Gaussian(1.0), **options).fit(X, y)
    np.save(path + ".coef.npy", model.expansion_.coef)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ridge", "logistic", "absolute"])
def test_killed_and_resumed_equals_uninterrupted(rng, name, tmp_path, fork):
    """Killed at any moment: while a step is made, or while its checkpoint is written."""
    whole, killed = tmp_path / "whole.npz", tmp_path / "killed.npz"
    run = fork(SCRIPT, name, 0.05, killed)
    assert list(itertools.islice(run, 3)) == ["step"] * 3
    time.sleep(rng.uniform(0.0, 0.08))
    run.kill()
    list(run)
    assert run.returncode == -signal.SIGKILL and killed.exists()
    rest = fork(SCRIPT, name, 0.0, killed, whole)
    said = list(rest)
    assert rest.returncode == 0, "\n".join(said)
    assert np.array_equal(np.load(f"{whole}.coef.npy"), np.load(f"{killed}.coef.npy"))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KernelRidge(landmarks=5, solver="cholesky"), "solver='cholesky' is for the exact problem"),
        (KernelRidge(landmarks=5, indefinite="clip"), "indefinite='clip' is for the exact problem"),
        (KernelLogisticRegression(landmarks=5, solver="gradient"), "solver='gradient' is for the exact"),
    ],
)
def test_ways_of_the_exact_problem_are_refused(model, words):
    """Nothing that was asked for is left out silently."""
    X = np.arange(20.0)[:, None]
    with pytest.raises(InputError, match=words):
        model.fit(X, np.arange(20) % 2)


def test_what_is_said_of_indefinite_kernels_goes_with_landmarks(data):
    """Clipped eigenvalues are for the exact problem, and advice that would be refused is none."""
    with pytest.raises(InputError, match=r"or without landmarks, pass indefinite=\"clip\""):
        ridge(kernel=Sigmoid(1.0, -1.0), landmarks=10).fit(*data)
