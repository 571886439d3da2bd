"""Whole fits as tasks: folds of a nested error, and those of the command."""

import json
import time

import numpy as np
import pytest
from scipy import sparse

from mercer import FromFunction, Gaussian, KernelRidgeCV, Spectrum, config
from mercer.cluster.trials import each
from mercer.errors import ClusterError
from mercer.selection import AutoKernelClassifier, AutoKernelRegressor, nested_error, search


def test_folds_of_a_nested_error(client, rng):
    x = rng.uniform(-3, 3, (90, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=90)
    alone = nested_error(KernelRidgeCV(), x, y, cv=4)
    with config(cluster=client):
        found = nested_error(KernelRidgeCV(), x, y, cv=4)
    assert np.array_equal(alone.predictions, found.predictions) and alone.error == found.error


def test_a_trial_that_fails_is_named(client):
    def divide(a, b):
        return a / b

    with config(cluster=client), pytest.raises(ClusterError, match=r"half 1 failed .*ZeroDivisionError"):
        each("half", divide, (1,), [2, 0])


@pytest.mark.parametrize("parts", [1, 3])
def test_the_command_goes_to_a_scheduler_by_its_address(
    client, three, tmp_path, rng, capsys, monkeypatch, parts
):
    from mercer.cli import main

    monkeypatch.chdir(tmp_path)
    X = rng.normal(size=(80, 2)).round(3)
    rows = [f"{a},{b},{round(2 * a - b, 3)}" for a, b in X]
    names = [f"sums{part}.csv" for part in range(parts)]
    for part, name in enumerate(names):
        (tmp_path / name).write_text("\n".join(["a,b,sum", *rows[part::parts]]))
    words = ["train", *names, "-t", "sum", "--kernel", "linear", "--folds", "3", "--no-report", "--json"]
    found = []
    for more in ([], ["--cluster", three.scheduler_address]):
        assert main([*words, *more]) == 0
        found.append(json.loads(capsys.readouterr().out)["error"])
    assert found[0] == found[1]


def waves(rng, n=160):
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)


def chosen(model):
    """What a search found, but for its seconds."""
    trials = [(repr(t.kernel), t.noise, t.score, t.points, t.evidence) for t in model.trials_]
    return trials, repr(model.kernel_), model.best_score_


def same(one, other):
    assert chosen(one) == chosen(other)
    for name in ("anchors", "coef", "intercept"):
        assert np.array_equal(getattr(one.expansion_, name), getattr(other.expansion_, name)), name


def test_trials_of_regression_are_tasks(client, rng, computed):
    X, y = waves(rng)
    alone, found = AutoKernelRegressor().fit(X, y), AutoKernelRegressor()
    told = []
    with config(cluster=client, progress=told.append):
        found.fit(X, y)
    same(alone, found)
    assert len(computed("mercer-kernel-")) == len(found.trials_) == 11
    tried = [event["facts"]["tried"] for event in told if "tried" in event["facts"]]
    assert tried == list(range(1, 12))


def test_trials_of_classification_and_of_rungs_are_tasks(client, rng, monkeypatch, computed):
    """The best go on to more points, of which a cluster is sent those that trials take."""
    monkeypatch.setattr(search, "_RUNGS", (40, 60))
    X, y = waves(rng, 260)
    labels = np.where(y > 0, "up", "down")
    alone, found = AutoKernelClassifier().fit(X, labels), AutoKernelClassifier()
    with config(cluster=client):
        found.fit(X, labels)
    same(alone, found)
    points = [trial.points for trial in found.trials_]
    assert set(points) == {40, 60, 260}  # the last are the widths of the winner, compared here
    assert len(computed("mercer-kernel-")) == points.count(40) + points.count(60)


@pytest.mark.parametrize("what", ["words", "sparse", "float32"])
def test_other_points_and_settings_travel_too(client, rng, what):
    X, y = waves(rng, 80)
    kernel = "rbf"
    if what == "words":
        X, kernel = ["".join(rng.choice(list("abc"), size=6)) for _ in y], [Spectrum(2), Spectrum(3)]
    if what == "sparse":
        X = sparse.csr_array(np.where(X > 0, X, 0.0))
    settings = {"dtype": "float32"} if what == "float32" else {}
    with config(**settings):
        alone = AutoKernelRegressor(kernel).fit(X, y)
        with config(cluster=client):
            found = AutoKernelRegressor(kernel).fit(X, y)
    assert chosen(alone) == chosen(found)


def test_a_matrix_of_kernel_values_stays_here(client, rng, computed):
    X, y = waves(rng, 60)
    with config(cluster=client):
        AutoKernelRegressor("precomputed").fit(Gaussian(1.0)(X), y)
    assert not computed("mercer-kernel-")


def test_a_worker_that_dies_in_a_search_costs_nothing_but_time(client, killing, rng):
    X, y = waves(rng, 500)
    alone = AutoKernelRegressor().fit(X, y)
    with config(cluster=client), killing("mercer-kernel") as dead:
        found = AutoKernelRegressor().fit(X, y)
    assert dead
    same(alone, found)


def test_under_a_time_limit_a_search_ends_and_says_so(client, rng):
    X, y = waves(rng, 400)
    with config(cluster=client):
        model = AutoKernelRegressor(max_time=1e-9)
        model.fit(X, y)
    assert model.report_.stopped == "max_time" and len(model.trials_) == 1


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.filterwarnings("ignore:FromFunction")
def test_ctrl_c_ends_a_search_and_leaves_no_trial_behind(client, three, rng, times, interrupting):
    """The first takes the best trial so far, and gives up the others; the second ends it at once."""
    X, y = waves(rng, 120)

    def slowly(width):
        def value(x, y):
            time.sleep(1e-4)
            return np.exp(-(((x[0] - y[0]) / width) ** 2))

        return FromFunction(value)

    slow = [slowly(width) for width in (0.5, 1.0, 2.0, 4.0)]
    with config(cluster=client), interrupting("mercer-kernel", times):
        if times == 1:
            with pytest.warns(UserWarning, match=r"interrupted: the best of \d trials? is fitted"):
                model = AutoKernelRegressor(slow).fit(X, y)
            assert model.report_.stopped == "interrupted" and len(model.trials_) < 4
        else:
            with pytest.raises(KeyboardInterrupt):
                AutoKernelRegressor(slow).fit(X, y)
    while any("mercer-kernel" in str(key) for key in list(three.scheduler.tasks)):
        time.sleep(0.05)
