"""One rule for the threads of BLAS: every learner keeps it, alone and beside others."""

import pkgutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_classifier
from threadpoolctl import threadpool_info, threadpool_limits

import mercer
from mercer import (
    SVC,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelMachineRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
    Matern,
    Perceptron,
    config,
)
from mercer.estimators.shared.base import KernelMixin
from mercer.gram.backends.numba.backend import NumbaBackend
from mercer.runtime import threads
from mercer.runtime.threads import LARGE, blas_threads, large_lapack, run, single_threaded_blas
from mercer.selection import AutoKernelRegressor
from mercer.selection.evidence import learn

HOMES = {n: home for n, home in mercer._LATER.items() if ".estimators." in home and ".shared." not in home}
ESTIMATORS = [getattr(mercer, name) for name in HOMES]


def is_ours(library):
    """Whether NumPy or SciPy uses it: other packages may bring a BLAS of one thread that stays at one."""
    folder = Path(library["filepath"]).parent.name
    return library["user_api"] == "blas" and (
        not folder.endswith(".libs") or folder in ("numpy.libs", "scipy.libs")
    )


def limits():
    return {library["num_threads"] for library in threadpool_info() if is_ours(library)}


@pytest.fixture
def several():
    """A BLAS of three threads, whatever the machine and the environment."""
    with threadpool_limits(3, user_api="blas"):
        assert limits() == {3}
        yield


# --- the rule ------------------------------------------------------------------------------------------


def test_sizes_and_free_cores_decide(monkeypatch):
    monkeypatch.setattr(threads, "free_cores", lambda: 6)
    assert [blas_threads(n) for n in (0, 100, LARGE - 1, LARGE, 20_000)] == [1, 1, 1, 6, 6]
    with config(threads=2):
        assert [blas_threads(n) for n in (100, 20_000)] == [1, 2]
    monkeypatch.setattr(threads, "free_cores", lambda: 1)
    assert blas_threads(20_000) == 1


def test_a_large_factorisation_has_what_is_free_and_no_more_than_it_had(several, monkeypatch):
    for free, expected in ((1, 1), (2, 2), (16, 3)):
        monkeypatch.setattr(threads, "free_cores", lambda free=free: free)
        with single_threaded_blas():  # an estimator
            with large_lapack(LARGE):
                assert limits() == {expected}
            assert limits() == {1}
    assert limits() == {3}


def test_those_who_are_inside_share(several, monkeypatch):
    monkeypatch.setattr(threads, "free_cores", lambda: 2)
    seen = []

    def other():
        with large_lapack(LARGE):
            seen.append(limits())

    with ThreadPoolExecutor(1) as pool, large_lapack(LARGE):
        pool.submit(other).result()
        assert limits() == {2}
    assert seen == [{1}] and limits() == {3}


def test_tasks_within_tasks_share_the_threads():
    seen = []

    def task(_):
        run(lambda _: seen.append(config().__repr__()), range(3))

    with config(threads=4):
        run(task, range(2))
        assert len(seen) == 6 and all("threads=1" in text for text in seen)
        # two tasks on four threads have two each; a task of theirs has one of these
        seen.clear()
        run(lambda _: seen.append(config().__repr__()), range(2))
        assert all("threads=2" in text for text in seen)


# --- every learner ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*ESTIMATORS, AutoKernelRegressor], ids=lambda kind: kind.__name__)
def test_blas_has_one_thread_inside_and_its_own_number_after(kind, several, monkeypatch, rng):
    X = rng.normal(size=(40, 2))
    y = X[:, 0] > 0 if is_classifier(kind()) else X[:, 0]
    seen, validate = [], KernelMixin._validate_fit

    def watched(*arguments, **options):
        seen.append(limits())
        return validate(*arguments, **options)

    monkeypatch.setattr(KernelMixin, "_validate_fit", watched)
    kind().fit(X, y)
    assert seen and all(limit == {1} for limit in seen)
    assert limits() == {3}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", [SVC, KernelRidge, KernelLogisticRegression], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("rows, threads_of_blas", [(1, 3), (20_000, 1)])
def test_values_of_f_limit_blas_where_their_products_are_large(
    kind, rows, threads_of_blas, several, monkeypatch, rng
):
    """OpenBLAS takes one thread for a single row by itself, and telling it so took a sixth of the time."""
    X = rng.normal(size=(40, 2))
    model = kind().fit(X, X[:, 0] > 0)
    seen, multiply = [], NumbaBackend.multiply

    def watched(*arguments):
        seen.append(limits())
        multiply(*arguments)

    monkeypatch.setattr(NumbaBackend, "multiply", watched)
    model.predict(rng.normal(size=(rows, 2)))
    assert seen and all(limit == {threads_of_blas} for limit in seen)
    assert limits() == {3}


@pytest.mark.parametrize(
    "model, place",
    [
        (Perceptron(), "mercer.estimators.linear_perceptron.Perceptron._map"),
        (KernelPerceptron(prediction="voted"), "mercer.solvers.perceptron.mistakes.Mistakes.votes"),
        (KernelFisherDiscriminant(), "mercer.estimators.fisher.linear_scores"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_other_products_of_predictions_keep_it(model, place, several, monkeypatch, rng):
    X = rng.normal(size=(40, 2))
    model.fit(X, X[:, 0] > 0)
    owner, _, name = place.rpartition(".")
    owner = pkgutil.resolve_name(owner)
    original, seen = getattr(owner, name), []
    monkeypatch.setattr(owner, name, lambda *given: seen.append(limits()) or original(*given))
    model.predict(X)
    assert seen == [{1}] and limits() == {3}


def test_learning_parameters_keeps_it_too(several, monkeypatch, rng):
    X = rng.normal(size=(30, 2))
    seen = []
    monkeypatch.setattr("mercer.selection.evidence.complete", lambda *arguments: seen.append(limits()))
    learn(Matern(length_scale=1.0), X, X[:, :1], ["length_scale"], iterations=2)
    assert seen and all(limit == {1} for limit in seen)
    assert limits() == {3}


# --- what it costs ---------------------------------------------------------------------------------------

FAMILIES = {
    "newton": lambda X, y: KernelMachineRegressor(loss="absolute").fit(X, y),
    "ridge": lambda X, y: KernelRidge(0.1).fit(X, y),
    "path": lambda X, y: KernelRidgeCV().fit(X, y),
    "eigenvalues": lambda X, y: KernelPCA(5).fit(X),
    "krylov": lambda X, y: KernelPCA(5, eigen_solver="lanczos").fit(X),
    "fisher": lambda X, y: KernelFisherDiscriminant().fit(X, y > 0),
    "logistic": lambda X, y: KernelLogisticRegression().fit(X, y > 0),
    "evidence": lambda X, y: learn(Matern(length_scale=1.0), X, y[:, None], ["length_scale"], iterations=3),
}


def cpu(work, repeats=3):
    """Seconds of all threads: the least of some runs, because caches are shared with whatever else runs."""
    spent = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return min(spent)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", FAMILIES)
def test_no_more_work_than_on_one_thread(name, several, rng):
    """Threads that spin are work: of BLAS's own, 400 points with an absolute loss took nine times as much."""
    X = rng.normal(size=(400, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=400)
    FAMILIES[name](X, y)  # compiled before
    with config(threads=1), single_threaded_blas():
        alone = cpu(lambda: FAMILIES[name](X, y))
    assert cpu(lambda: FAMILIES[name](X, y)) < 1.5 * alone + 0.02


@pytest.mark.full
def test_fits_side_by_side_cost_no_more_than_one_after_the_other(several, rng):
    X = rng.normal(size=(200, 3))
    targets = [np.sin(X[:, 0]) + 0.3 * rng.normal(size=200) for _ in range(8)]

    def one(y):
        return KernelMachineRegressor(loss="absolute").fit(X, y).predict(X)

    expected = [one(y) for y in targets]
    alone = cpu(lambda: [one(y) for y in targets], 2)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, targets))
        together = cpu(lambda: list(pool.map(one, targets)), 2)
    assert together < 2.5 * alone + 0.05  # spinning threads of BLAS took seven times as much
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert limits() == {3}


# --- the same numbers ------------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "evidence"])
def test_the_same_to_the_last_bit_for_any_number_of_threads(name, rng):
    X = rng.normal(size=(900, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=900)
    models = []
    for count in (1, 2, 5):
        with config(threads=count):
            models.append(FAMILIES[name](X, y))
    for model in models[1:]:
        assert np.array_equal(model.expansion_.coef, models[0].expansion_.coef)


def test_a_search_is_the_same_for_any_number_of_threads(rng):
    X = rng.uniform(-2, 2, (150, 2))
    y = np.sin(3 * X[:, 0]) + 0.05 * rng.normal(size=150)
    models = []
    for count in (1, 4):
        with config(threads=count):
            models.append(AutoKernelRegressor(["rbf", "laplacian", Matern(length_scale=1.0)]).fit(X, y))
    first, second = ([(t.kernel, t.score, t.per_column) for t in model.trials_] for model in models)
    assert first == second and np.array_equal(models[0].predict(X), models[1].predict(X))
