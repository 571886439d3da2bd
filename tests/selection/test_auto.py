"""Estimators that choose their kernel."""

import os
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import Gaussian, KernelRidge, Laplacian, Linear, Polynomial, Spectrum, config
from mercer.errors import InputError
from mercer.runtime.clock import now
from mercer.selection import AutoKernelClassifier, AutoKernelRegressor, nested_error
from mercer.selection.families import family
from mercer.selection.search import Bench, Clock, Score, Search


@parametrize_with_checks(
    [
        AutoKernelRegressor(kernel="rbf"),
        AutoKernelClassifier(kernel="linear"),  # C is all there is to search
        AutoKernelClassifier(kernel="rbf"),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (240, 4))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=240)


@pytest.fixture(scope="module")
def fitted(wave):
    return AutoKernelRegressor().fit(*wave)


def test_it_finds_what_matters(wave, fitted):
    X, y = wave
    rng = np.random.default_rng(1)
    T = rng.uniform(-2, 2, (500, 4))
    truth = np.sin(3 * T[:, 0]) + T[:, 1]
    error = np.sqrt(np.mean((fitted.predict(T) - truth) ** 2))
    plain = KernelRidge(0.1, kernel="rbf").fit(X, y)
    assert error < 0.5 * np.sqrt(np.mean((plain.predict(T) - truth) ** 2))
    scales = next(v for k, v in fitted.kernel_.get_params().items() if np.size(v) == 4)
    assert np.argmin(scales) == 0 and min(scales[2:]) > 5 * scales[0]


def test_every_trial_is_told(fitted):
    assert len(fitted.trials_) == 11  # five families, with and without a scale for each column; a map
    assert {type(trial.kernel).__name__ for trial in fitted.trials_} >= {"Gaussian", "Matern", "Laplacian"}
    assert fitted.best_score_ == min(trial.score.error for trial in fitted.trials_)
    assert all(trial.seconds >= 0 and trial.points for trial in fitted.trials_)  # 0: another one compiled


def test_it_is_deterministic_for_a_seed(wave):
    X, y = wave
    models = [AutoKernelRegressor(["rbf", "laplacian"], random_state=3).fit(X, y) for _ in range(2)]
    assert models[0].kernel_ == models[1].kernel_ and models[0].alpha_ == models[1].alpha_
    assert np.array_equal(models[0].predict(X), models[1].predict(X))


def test_a_time_limit_is_obeyed(wave, cpu_clock):
    X, y = wave
    AutoKernelRegressor("rbf").fit(X[:50], y[:50])  # compiled before
    began = now()  # a limit does not pay for compiling
    model = AutoKernelRegressor(max_time=0.05).fit(X, y)
    assert now() - began < 2
    assert 1 <= len(model.trials_) < 10


def test_what_does_not_fit_is_said(wave):
    X, y = np.tile(wave[0], (8, 1)), np.tile(wave[1], 8)
    with config(memory="16MB"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = AutoKernelRegressor("rbf", max_time=20).fit(X, y)
    assert any("of 1,920 points" in str(w.message) for w in caught)
    assert len(model.expansion_.coef) < 1920


def test_classes(rng):
    X, y = make_moons(200, noise=0.2, random_state=0)
    labels = np.array(["left", "right"])[y]
    model = AutoKernelClassifier().fit(X, labels)
    assert (
        model.score(
            *[
                make_moons(1000, noise=0.2, random_state=1)[0],
                np.array(["left", "right"])[make_moons(1000, noise=0.2, random_state=1)[1]],
            ]
        )
        > 0.95
    )
    assert model.C_ == model.model_.C
    assert set(model.predict(X)) == {"left", "right"}
    assert np.array_equal(model.decision_function(X) > 0, model.predict(X) == "right")


def test_objects_and_mixtures(rng):
    texts = ["".join(rng.choice(list("abc"), 15)) for _ in range(80)]
    y = np.array([text.count("ab") > 1 for text in texts]).astype(int)
    mixture = 1.0 * Spectrum(2).normalized() + 1.0 * Spectrum(4).normalized()
    model = AutoKernelClassifier(mixture).fit(texts, y)
    assert model.score(texts, y) > 0.9
    given = model.kernel_.get_params()
    assert given["k1__scale"] > given["k2__scale"]


def test_in_pipelines_and_searches():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), AutoKernelClassifier("rbf"))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.9
    search = GridSearchCV(model, {"autokernelclassifier__kernel": ["rbf", "linear"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.9
    assert clone(model).get_params()["autokernelclassifier__kernel"] == "rbf"


def test_the_nested_error_is_honest(rng):
    X, y = rng.normal(size=(120, 5)), rng.integers(2, size=120)
    result = nested_error(AutoKernelClassifier([Gaussian(s) for s in (0.3, 1.0, 3.0)]), X, y, cv=4)
    # labels without any relation: half of them are wrong, within three standard deviations
    assert abs(result.error - 0.5) < 3 * 0.5 / np.sqrt(120)
    assert result.interval[0] < result.error < result.interval[1]
    assert result.predictions.shape == y.shape and len(result.errors) == 4


def test_refusals(rng):
    with pytest.raises(InputError, match="kernel is an empty list"):
        AutoKernelRegressor([]).fit(rng.normal(size=(20, 2)), rng.normal(size=20))
    with pytest.raises(InputError, match="takes at least 4 of them, got n_samples=3"):
        AutoKernelRegressor().fit(rng.normal(size=(3, 2)), rng.normal(size=3))
    with pytest.raises(InputError, match="max_time must be positive"):
        AutoKernelRegressor(max_time=-1).fit(rng.normal(size=(20, 2)), rng.normal(size=20))
    with pytest.raises(ValueError, match="class"):
        AutoKernelClassifier(Linear()).fit(rng.normal(size=(20, 2)), np.zeros(20))


def test_progress_is_told(wave):
    told = []
    model = AutoKernelRegressor(["rbf", "laplacian"], progress=told.append).fit(*wave)
    errors = [event["facts"]["error"] for event in told if event["facts"]]
    made = [trial.score.error for trial in model.trials_]  # those told are the best so far, after each trial
    assert len(errors) == len(made) > 1 and set(errors) <= set(made)
    assert errors == sorted(errors, reverse=True) and errors[-1] == min(made)


# --- numbers of any size, few points, little time ------------------------------------------------------


@pytest.mark.full  # six searches
@pytest.mark.parametrize("size", [1e300, pytest.param(1e-300, marks=pytest.mark.full)])
def test_the_scale_of_the_numbers_does_not_matter(wave, size):
    """The squares of such numbers are zero, or none; the predictions are the same to rounding."""
    X, y = wave[0][:60], wave[1][:60]
    plain = AutoKernelRegressor().fit(X, y)
    columns = AutoKernelRegressor().fit(X * size, y)
    np.testing.assert_allclose(columns.predict(X * size), plain.predict(X), atol=1e-3)
    with np.errstate(all="ignore"):
        targets = AutoKernelRegressor().fit(X, y * size)
    np.testing.assert_allclose(targets.predict(X) / size, plain.predict(X), atol=1e-3)
    assert targets.best_score_ == pytest.approx(plain.best_score_, rel=1e-3)
    labels = AutoKernelClassifier().fit(X * size, y > 0)
    assert labels.score(X * size, y > 0) == AutoKernelClassifier().fit(X, y > 0).score(X, y > 0)


@pytest.mark.parametrize("far", [1e3, 1e8])
def test_a_linear_kernel_far_from_zero(rng, far):
    """The noise is 0.1 and the weights are known to 0.1 / √300, about; without an origin errors are of 2."""
    X, new = rng.normal(size=(300, 3)), rng.normal(size=(100, 3))
    weights = np.array([1.0, 2.0, -1.0])
    model = AutoKernelRegressor([Linear()]).fit(X + far, X @ weights + 0.1 * rng.normal(size=300))
    assert np.abs(model.predict(new + far) - new @ weights).max() < 0.1


def test_what_the_evidence_of_few_points_spoils_is_undone():
    """Sixty points, a fifth of the labels wrong: the evidence of all is best where K is the unit matrix."""
    rng = np.random.default_rng(5)
    X, T = rng.normal(size=(60, 3)), rng.normal(size=(4000, 3))
    y = X[:, 0] + 0.8 * rng.normal(size=60) > 0
    model = AutoKernelClassifier(random_state=5).fit(X, y)
    # of the true boundary 21.5 % are wrong, by the noise; a coin gives 50
    assert np.mean(model.predict(T) != (T[:, 0] + 0.8 * rng.normal(size=4000) > 0)) < 0.3


def test_the_best_score_is_that_of_the_kernel_that_was_chosen():
    for seed in (5, 6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3))
        model = AutoKernelClassifier(random_state=seed).fit(X, X[:, 0] + 0.8 * rng.normal(size=60) > 0)
        same = [t.score.error for t in model.trials_ if type(t.kernel) is type(model.kernel_)]
        assert model.best_score_ in same


@pytest.mark.full
def test_a_sum_of_kernels_without_noise(wave):
    X = wave[0][:80, :3]
    y = np.sin(2 * X[:, 0])
    model = AutoKernelRegressor(1.0 * Gaussian([1.0, 1.0, 1.0]) + 1.0 * Laplacian(1.0)).fit(X, y)
    assert model.score(X, y) > 0.999


def test_the_fewest_points(rng):
    X = rng.normal(size=(8, 3))
    for n in (4, 5, 8):
        for seed in range(6):
            model = AutoKernelClassifier("rbf", random_state=seed).fit(X[:n], np.arange(n) % 2)
            assert set(model.predict(X)) <= {0, 1}
    assert len(AutoKernelClassifier("rbf").fit(X, np.arange(8)).classes_) == 8


def test_a_kernel_that_overflows_is_refused(rng):
    X = 10 * rng.normal(size=(30, 3))
    for model in (AutoKernelRegressor(Polynomial(10**6)), AutoKernelClassifier(Polynomial(10**6))):
        with np.errstate(all="ignore"), pytest.raises(InputError, match="is not finite at these points"):
            model.fit(X, np.arange(30) % 2)


def test_little_memory_takes_fewer_points(rng):
    X = rng.normal(size=(2000, 5))
    for memory in ("1MB", "300KB"):
        with config(memory=memory), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            AutoKernelClassifier("rbf").fit(X[:300], X[:300, 0] > 0)
    with config(memory="8MB"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = AutoKernelRegressor("rbf", max_time=5).fit(X, X[:, 0])
    assert 100 < len(model.expansion_.coef) < 2000


@pytest.mark.full  # fewer points: test_landmarks.py
def test_many_points_are_learned_from_on_landmarks(rng):
    """Where memory has no room for the exact solution, all points count, and the report says how."""
    X = rng.normal(size=(12_000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=12_000)
    with config(memory="100MB"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = AutoKernelRegressor("rbf").fit(X, y)
    assert not caught
    assert f"{len(model.expansion_):,} landmarks, and from all 12,000 points" in str(model.report_)
    assert 400 < len(model.expansion_) < 2000
    assert model.score(X, y) > 0.9


@pytest.mark.full  # 30,000 of them
def test_little_time_takes_fewer_points(rng, cpu_clock):
    """Whole machines of fewer points, and not one of all that is cut short."""
    X = rng.normal(size=(30_000, 6))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=30_000)
    for model, targets in ((AutoKernelRegressor("rbf"), y), (AutoKernelClassifier("rbf"), y > 0)):
        clone(model).fit(X[:50], targets[:50])  # compiled before
        began = now()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = clone(model).set_params(max_time=1.0).fit(X, targets)
        assert now() - began < 4
        if getattr(fitted.model_, "landmarks", None) is None:
            assert len(caught) == 1 and "of 30,000 points, as many as" in str(caught[0].message)
        else:
            assert not caught and "from all 30,000 points" in str(fitted.report_)
        assert fitted.score(X[-2000:], targets[-2000:]) > 0.85


@pytest.mark.parametrize("kind", [AutoKernelRegressor, AutoKernelClassifier])
def test_an_interrupted_search_says_so(wave, kind, monkeypatch):
    """Ctrl-C ends the search after the trial that it came in; the best so far is fitted, to all points."""
    X, y = wave[0], wave[1] > 0
    step = Bench.learn

    def interrupted(self, *arguments):
        monkeypatch.undo()  # once: a second one ends it at once
        os.kill(os.getpid(), signal.SIGINT)
        return step(self, *arguments)

    monkeypatch.setattr(Bench, "learn", interrupted)
    with pytest.warns(UserWarning, match=r"interrupted: the best of \d trials is fitted"):
        model = kind().fit(X, y)
    assert model.report_.stopped == "interrupted" and np.isfinite(model.predict(X)).all()
    assert kind("rbf").fit(X[:50], y[:50]).report_.stopped == "converged"


def test_the_evidence_of_what_is_kept_is_of_the_same_points(wave):
    """That of a trial as it is, is where learning on these points begins."""
    X, Y = wave[0], wave[1][:, None]
    search = Search(X, Y, lambda kernel, noise, which: Score(1.0, 1.0, noise), clock=Clock(None))
    [trial] = search.run([family(Gaussian(sigma=1.0))])
    before, after = search.evidence(trial, 2000), search.finish(trial, 2000).evidence
    assert after <= before <= search.evidence(replace(trial, kernel=Gaussian(sigma=0.1)), 2000)
    assert np.isnan(search.evidence(replace(trial, kernel=Linear(), noise=0.0), 2000))


def test_a_slow_machine_compares_the_same_kernels_on_fewer_points(wave, monkeypatch):
    """Trials that would take longer than there is time for take fewer points, and none takes all of it."""
    X, Y = wave[0], wave[1][:, None]
    slow = {"seconds": lambda which: 1e-6 * len(which) ** 2.3}
    monkeypatch.setattr(Search, "_trial_seconds", lambda self, family, which: slow["seconds"](which))
    families = [family(Gaussian(sigma=1.0)), family(Linear())]

    def points(seconds):
        search = Search(X, Y, lambda kernel, noise, which: Score(1.0, 1.0, noise), clock=Clock(seconds))
        return search._affordable(families, 1000)

    assert points(None) == points(1e6) == 1000
    few = points(2.0)
    assert 100 <= few < 1000 and points(0.2) < few
    assert points(1e-3) == 100  # never fewer


def test_nothing_is_timed_where_no_time_is_left(wave, monkeypatch):
    """One trial on few points, of one thread, and a last fit of few points: nothing more would be used."""
    monkeypatch.setattr(Search, "_trial_seconds", None)  # a call would fail
    monkeypatch.setattr(AutoKernelRegressor, "_slowness", None)
    X, Y = wave[0], wave[1][:, None]
    search = Search(X, Y, lambda kernel, noise, which: Score(1.0, 1.0, noise), clock=Clock(0.0))
    found = search.run([family(Gaussian(sigma=1.0)), family(Laplacian(gamma=1.0))])
    assert [trial.points for trial in found] == [100] and search.is_cut
    with pytest.warns(UserWarning, match="the last fit takes 1,000 of 2,160 points"):
        model = AutoKernelRegressor(max_time=1e-9).fit(np.tile(X, (9, 1)), np.tile(wave[1], 9))
    assert len(model.expansion_) == 1000 and len(model.trials_) == 1


def test_every_trial_has_its_share_of_the_time(wave, monkeypatch):
    X, Y = wave[0], wave[1][:, None]
    ends, learn = [], Bench.learn

    def noted(self, *arguments):
        ends.append(arguments[-1])
        return learn(self, *arguments)

    monkeypatch.setattr(Bench, "learn", noted)
    search = Search(X, Y, lambda kernel, noise, which: Score(1.0, 1.0, noise), clock=Clock(1000.0))
    with config(threads=1):
        search.run([family(Gaussian(sigma=1.0)) for _ in range(5)])
    assert ends[0] < ends[1] < search.clock.end - 500 and max(ends) <= search.clock.end


def test_a_search_that_came_to_its_end_did_not_run_out_of_time(wave):
    X, Y = wave[0], wave[1][:, None]
    search = Search(X, Y, lambda kernel, noise, which: Score(1.0, 1.0, noise), clock=Clock(1000.0))
    search.run([family(Gaussian(sigma=1.0))])
    assert not search.is_cut
    short = Search(X, Y, lambda kernel, noise, which: Score(1.0, 1.0, noise), clock=Clock(0.0))
    short.run([family(Gaussian(sigma=1.0)), family(Laplacian(1.0))])
    assert short.is_cut
    model = AutoKernelRegressor(kernel=[Gaussian(sigma=1.0)], max_time=1000.0).fit(*wave)
    assert model.report_.stopped == "converged"


def test_compiling_is_not_charged(wave, monkeypatch, hand_clock):
    """A search under a limit tries as much when each trial waits for the compiler first."""
    from mercer.runtime.clock import standing_still

    learn = Bench.learn

    def compiled(self, *arguments):
        with standing_still():
            hand_clock.wait(3.0)
        return learn(self, *arguments)

    monkeypatch.setattr(Bench, "learn", compiled)
    X, y = wave[0][:80], wave[1][:80]
    model = AutoKernelRegressor(["rbf", "laplacian"], max_time=2.0).fit(X, y)
    assert model.report_.stopped == "converged" and len(model.trials_) == 2


def test_the_best_so_far_is_told_by_its_name(wave):
    told = []
    with config(progress=told.append):
        AutoKernelRegressor(["rbf", "laplacian"]).fit(wave[0][:80], wave[1][:80])
    named = [event["facts"] for event in told if "tried" in event["facts"]]
    assert [facts["tried"] for facts in named] == [1, 2]
    assert all(facts["best"].startswith(("Gaussian", "Laplacian")) for facts in named)


def test_a_search_that_is_late_makes_one_family_and_scores_one_half(rng):
    X, scored, made = rng.normal(size=(30, 2)), [], []

    def families():
        for sigma in (1.0, 2.0, 3.0):
            made.append(sigma)
            yield family(Gaussian(sigma=sigma))

    def score(kernel, noise, which):
        scored.append(len(which))
        return Score(0.5, 0.5, noise)

    search = Search(X, X[:, :1], score, clock=Clock(0.0))
    (trial,) = search.run(families())
    assert trial.kernel.sigma == 1.0 and search.is_cut
    assert scored == [15] and 3.0 not in made
