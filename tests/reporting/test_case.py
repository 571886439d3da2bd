"""Predictions left out, places of anchors, and pieces of the page."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, cross_val_predict

from mercer import SVC, FromFunction, Gaussian, KernelRidge, Spectrum
from mercer.reporting.case import Case, interval
from mercer.reporting.given import as_targets
from mercer.reporting.page import Html, cut, image, number, table, words


def as_case(model, X, y, **options):
    return Case(model, X, as_targets(model, X, y), **options)


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (40, 3)), rng.normal(1.5, 1, (40, 3))])
    return X, np.repeat(["a", "b"], 40)


@pytest.mark.parametrize("kind", ["array", "sparse", "pandas", "polars", "objects"])
def test_anchors_are_found_in_the_data(kind, blobs):
    import pandas as pd
    import polars as pl

    X, y = blobs
    points, kernel = {
        "array": (X, "rbf"),
        "sparse": (sparse.csr_matrix(X), "rbf"),
        "pandas": (pd.DataFrame(X, columns=list("abc")), "rbf"),
        "polars": (pl.DataFrame(X, schema=list("abc")), "rbf"),
        "objects": ([" ".join(map(str, row)) for row in X.round(2)], Spectrum(2)),
    }[kind]
    model = SVC(kernel=kernel).fit(points, y)
    case = as_case(model, points, y)
    assert case.is_training
    for anchor, place in case.places.items():
        assert model.support_[anchor] == place
    away = ["zz"] if kind == "objects" else X[:1] + 9.0
    if hasattr(points, "columns"):
        away = type(points)({name: [9.0 + j] for j, name in enumerate("abc")})
    other = as_case(model, away, ["a"])
    assert not other.is_training


def test_errors_left_out_are_those_of_folds(blobs):
    X, y = blobs
    target = X @ [1.0, 2.0, 3.0]
    held = as_case(SVC().fit(X, y), X, y).held_out
    assert held.error == np.mean(held.predictions != y[held.which]) and len(held.which) == 80
    ridge = KernelRidge(0.1).fit(X, target)
    exact = as_case(ridge, X, target).held_out
    np.testing.assert_allclose(exact.predictions, target - ridge.loo_residuals_)
    from mercer import SVR

    held = as_case(SVR().fit(X, target), X, target, seed=3).held_out
    truth = cross_val_predict(SVR(), X, target, cv=KFold(5, shuffle=True, random_state=3))
    np.testing.assert_allclose(held.predictions, truth[held.which], atol=1e-6)


def test_the_interval_holds_the_error():
    """Of 400 errors with probability 0.2, simulated 1000 times; it is meant to hold for 950 of them."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(1000):
        wrong = rng.uniform(size=400) < 0.2
        low, high = interval(wrong, np.zeros(400), True)
        inside += low <= 0.2 <= high
    assert inside >= 930  # never too short; 950 less four deviations of a binomial
    off = rng.normal(size=(1000, 200))
    held = [interval(row, np.zeros(200), False) for row in off]
    share = np.mean([low <= 1.0 <= high for low, high in held])
    assert share == pytest.approx(0.95, abs=0.03)  # the normal interval of a mean of squares, n = 200


def test_slow_kernels_are_given_fewer_points(hand_clock):
    def slow(a, b):
        hand_clock.wait(2e-4)
        return float(a == b)

    texts = [f"{i % 7}" for i in range(60)]
    kernel = FromFunction(slow)
    with pytest.warns(UserWarning):
        case = as_case(
            SVC(kernel=kernel).fit(texts, [i % 2 for i in range(60)]), texts, [i % 2 for i in range(60)]
        )
    start = hand_clock()
    assert 1e-4 < case.pair_seconds < 5e-4 and case.afford(2000, 0.5) < 75
    assert hand_clock() - start < 1
    X = np.random.default_rng(0).normal(size=(2500, 3))
    fast = as_case(KernelRidge(kernel=Gaussian(sigma=1.0)).fit(X[:50], X[:50, 0]), X, X[:, 0])
    assert fast.pair_seconds == 0  # a formula does not move this clock
    # a little slower or faster, and it is the same number of points; all of them where that is no more work
    for seconds, count in ((1e-6, 1000), (0.9e-6, 1000), (1e-9, 2000), (1e-2, 16)):
        fast.pair_seconds = seconds
        assert fast.afford(2000, 4.0, squares=4.0) == count
    fast.pair_seconds = 0.26e-6  # 1961 points, of 2500
    assert fast.afford(5000, 1.0) == 1500
    fast.pair_seconds = 0.24e-6  # 2041 points: then all
    assert fast.afford(5000, 1.0) == 2500


def test_text_is_escaped_and_cut():
    assert words("<b>'\"&\x00\ud800") == "&lt;b&gt;&#x27;&quot;&amp;\ufffd\ufffd"
    assert words(Html("<b>")) == "<b>"
    assert cut("x" * 1000, 10) == "x" * 9 + "…" and cut(None) == "None"
    assert [number(v) for v in (True, np.int64(5), 1e12, -0.5, np.inf)] == [
        "yes",
        "5",
        "1e+12",
        "-0.5",
        "inf",
    ]
    assert 'class="text"' in table(["a"], [["y" * 41]], "c") and "&lt;" in table(["<"], [["<"]], "<")
    assert image(b"abc", 'a"b') == '<img class="small" src="data:image/png;base64,YWJj" alt="a&quot;b">'
