"""Each room says what the engine says; and the code it shows gives the same numbers."""

import json

import numpy as np
import pytest

from mercer import (
    SVC,
    SVR,
    Gaussian,
    KernelLogisticRegression,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    Laplacian,
    Polynomial,
    certify,
)
from mercer.certify import density
from mercer.errors import InputError
from mercer.lab.rooms import ROOMS, answer

MOONS = answer("example", {"name": "moons", "number": 40})["points"]
SINE = answer("example", {"name": "sine", "number": 30})["points"]
XOR = [[1, 1, 1], [-1, 1, -1], [-1, -1, 1], [1, -1, -1]]
X, y = np.array(MOONS)[:, :2], np.array(MOONS)[:, 2]
T, s = np.array(SINE)[:, :1], np.array(SINE)[:, 1]


def near(found, true):
    """Equal as far as the five digits of an answer tell."""
    return np.allclose(np.array(found, dtype=float), true, rtol=6e-5, atol=1e-9)


def facts(found):
    return {fact["name"]: fact["value"] for fact in found["facts"]}


def run(code):
    """The names that a script leaves."""
    left = {}
    exec(compile(code, "the code on screen", "exec"), left)
    return left


def on_grid(f, box=(-3, 3, -3, 3)):
    x, v = np.meshgrid(np.linspace(*box[:2], 61), np.linspace(*box[2:], 61))
    return f(np.column_stack([x.ravel(), v.ravel()])).reshape(61, 61)


# --- classify -------------------------------------------------------------------------------------------


def test_svm():
    found = answer("classify", {"points": MOONS, "kernel": "gaussian(sigma=0.8)", "C": 10})
    model = SVC(kernel=Gaussian(sigma=0.8), C=10.0).fit(X, y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = abs(model.dual_coef_[0])
    assert near(found["alpha"], alpha) and found["support"] == len(model.support_)
    assert near(found["values"], model.decision_function(X))
    assert near(found["grid"], on_grid(model.expansion_))
    told = facts(found)
    assert near(told["margin 2/‖f‖"], model.margin_) and near(told["norm ‖f‖"], model.expansion_.norm())
    assert told["bound on that error"] == len(model.support_) / len(y) >= told["leave-one-out error"]
    K = Gaussian(sigma=0.8)(X)
    order = found["gram"]["index"]
    assert np.allclose(found["gram"]["values"], K[np.ix_(order, order)], rtol=6e-3)
    assert near(found["gram"]["eigenvalues"][:5], np.linalg.eigvalsh(K)[::-1][:5])


@pytest.mark.parametrize(
    ("learner", "model"),
    [
        ("svm", SVC(kernel=Gaussian(sigma=0.8), C=2.0)),
        ("logistic", KernelLogisticRegression(kernel=Gaussian(sigma=0.8), C=2.0)),
        ("ridge", KernelRidge(kernel=Gaussian(sigma=0.8), lam=0.1)),
        ("perceptron", KernelPerceptron(kernel=Gaussian(sigma=0.8))),
    ],
)
def test_learners(learner, model):
    request = {"points": MOONS, "kernel": "gaussian(sigma=0.8)", "C": 2, "lam": 0.1, "learner": learner}
    found = answer("classify", request)
    f = model.fit(X, y).expansion_
    assert near(found["values"], f(X))
    assert facts(found)["wrong"] == ((f(X) > 0) != (y > 0)).sum()
    # α gives f back: f = Σ αᵢ k(xᵢ, ·) + b, with yᵢαᵢ for those that are not negative
    signed = np.array(found["alpha"]) * (y if learner in ("svm", "perceptron") else 1)
    rest = np.array(found["values"]) - Gaussian(sigma=0.8)(X) @ signed
    assert np.ptp(rest) < 1e-3
    left = run(found["code"])
    assert near(found["values"], left["f"](X))


@pytest.mark.parametrize("learner", ["svm", "logistic", "perceptron"])
def test_errors_left_out(learner):
    points = MOONS[:16]
    request = {"points": points, "kernel": "gaussian(sigma=0.8)", "lam": 0.1, "learner": learner}
    wrong = 0
    for i in range(16):
        rest = [point for number, point in enumerate(points) if number != i]
        model = run(answer("classify", {**request, "points": rest})["code"])["f"]
        wrong += (model([points[i][:2]])[0] > 0) != (points[i][2] > 0)
    assert facts(answer("classify_left_out", request))["leave-one-out error"] == wrong / 16


def test_the_error_left_out_at_once_is_that_of_fits_without_each_point():
    for number in (16, 40):
        request = {"points": MOONS[:number], "kernel": "gaussian(sigma=0.8)", "lam": 0.1, "learner": "ridge"}
        at_once, refits = (facts(answer(room, request)) for room in ("classify", "classify_left_out"))
        assert at_once["leave-one-out error"] == refits["leave-one-out error"]


def test_widths_that_follow_the_data_are_the_same_in_every_fit_without_a_point():
    points = MOONS[:10]
    words = answer(
        "classify_left_out", {"points": points, "kernel": "gaussian(sigma=median)", "learner": "ridge"}
    )
    width = answer("classify", {"points": points, "kernel": "gaussian(sigma=median)"})["kernel"]["asks"]
    number = answer("classify_left_out", {"points": points, "kernel": width, "learner": "ridge"})
    assert words == number


def test_a_point_alone_in_its_class_is_wrong_without_it():
    points = [*[[0.1 * i, 0, 1] for i in range(4)], [2, 2, -1]]
    found = answer("classify_left_out", {"points": points, "kernel": "gaussian(1)", "learner": "ridge"})
    assert facts(found)["leave-one-out error"] == 1 / 5


def test_many_points_are_answered_in_part():
    points = answer("example", {"name": "blobs", "number": 600})["points"]
    found = answer("classify", {"points": points, "kernel": "gaussian(1)", "learner": "ridge"})
    assert (found["gram"]["rows"], found["gram"]["points"]) == (100, 400) and len(found["values"]) == 600
    assert (
        "up to 200 points" in answer("classify_left_out", {"points": points, "kernel": "linear"})["notes"][0]
    )


def test_warnings_of_a_fit_are_notes():
    with pytest.warns(UserWarning, match="not positive definite"):
        found = answer("classify", {"points": MOONS, "kernel": "sigmoid(1, -1)"})
    assert "not positive definite" in found["notes"][0]
    assert facts(found)["distance from the minimum"] is None  # NaN, which JSON has not


# --- typed kernels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("exp(-2*r)", Laplacian(gamma=2.0, norm=2)),
        ("exp(-r**2/2)", Gaussian(sigma=1.0)),
        ("2*gaussian(1) + polynomial(2)", 2 * Gaussian(sigma=1.0) + Polynomial(2)),
        ("gaussian(sigma=median)", Gaussian(sigma="median")),
        ("rbf", Gaussian(gamma="scale")),
        ("gaussian(1).normalized() * exp(linear/4)", None),
        ("polynomialof(gaussian(1), [1, 2])", None),
    ],
)
def test_a_typed_kernel_is_that_kernel(text, kernel):
    found = answer("classify", {"points": MOONS, "kernel": text})
    if kernel is not None:
        assert near(found["values"], SVC(kernel=kernel).fit(X, y).decision_function(X))
    assert near(found["values"], run(found["code"])["f"](X))
    assert answer("certify", {"kernel": found["kernel"]["asks"], "dim": 2})["verdict"] == "proved"


def test_sliders_turn_the_numbers_of_a_kernel():
    found = answer("classify", {"points": MOONS, "kernel": "2*gaussian(1) + polynomial(2)"})
    sliders = {slider["name"]: (slider["value"], slider["kind"]) for slider in found["kernel"]["sliders"]}
    assert sliders == {
        "k1__scale": (2, "nonnegative"),
        "k1__kernel__sigma": (1, "positive"),
        "k2__degree": (2, "whole"),
        "k2__c": (1.0, "nonnegative"),
        "k2__gamma": (1.0, "positive"),
    }
    turned = {"k1__kernel__sigma": 0.5, "k2__degree": 3.0}
    found = answer("classify", {"points": MOONS, "kernel": found["kernel"]["text"], "parameters": turned})
    assert found["kernel"]["text"] == "2 * Gaussian(sigma=0.5) + Polynomial(degree=3, c=1.0)"
    kernel = 2 * Gaussian(sigma=0.5) + Polynomial(3)
    assert near(found["values"], SVC(kernel=kernel).fit(X, y).decision_function(X))


# --- the other rooms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "model"),
    [
        ("ridge", KernelRidge(kernel=Gaussian(sigma=0.5), lam=0.02)),
        ("svr", SVR(kernel=Gaussian(sigma=0.5), C=3.0, epsilon=0.2)),
    ],
)
def test_curve(learner, model):
    request = {
        "points": SINE,
        "kernel": "gaussian(0.5)",
        "lam": 0.02,
        "C": 3,
        "epsilon": 0.2,
        "learner": learner,
    }
    found = answer("curve", {**request, "box": [-2, 4, -1, 1]})
    f = model.fit(T, s).expansion_
    assert near(found["curve"], f(np.linspace(-2, 4, 301)[:, None]))
    told = facts(found)
    assert near(told["error at the points"], np.sqrt(np.mean((s - f(T)) ** 2)))
    assert near(found["values"], run(found["code"])["f"](T))
    refits = facts(answer("curve_left_out", request))["leave-one-out error"]
    if learner == "ridge":
        assert near(found["left_out"], s - model.loo_residuals_)
        assert near(told["leave-one-out error"], refits)  # one factorisation, and a fit for each point
    else:
        assert found["tube"] == 0.2 and found["support"] == len(model.support_)


def test_certify():
    proved = answer("certify", {"kernel": "gaussian(1) + linear"})
    assert proved["verdict"] == "proved" and [p["subject"] for p in proved["steps"]["parts"]][1] == "Linear()"
    assert answer("certify", {"kernel": "max(1 - r, 0)"})["conditions"] == ["points in ℝ^m, m ≤ 1"]
    refuted = answer("certify", {"kernel": "max(1 - r, 0)", "dim": 2})
    true = certify("max(1 - r, 0)", dim=2)
    assert (refuted["verdict"], refuted["reason"], refuted["dimension"]) == ("refuted", true.reason, 1)
    points, c = np.array(refuted["witness"]["points"]), np.array(refuted["witness"]["vector"])
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    assert c @ np.maximum(1 - distances, 0) @ c < 0  # the witness is one, by itself
    assert run(refuted["code"])["certificate"].reason == true.reason
    assert answer("certify", {"kernel": "gaussian(1) - 2*linear"})["verdict"] == "refuted"
    assert answer("certify", {"kernel": "spectrum(3)"})["shape"] is None  # of strings
    at, values = (np.array(proved["shape"][name]) for name in ("at", "values"))
    assert near(values, np.exp(-(at**2) / 2))


def test_perceptron_on_xor():
    """f = (x₁ + x₂)² - (x₁ - x₂)² = 4x₁x₂ after two mistakes, and the visits by hand."""
    request = {"points": XOR, "kernel": "polynomial(2, c=0)", "intercept": False}
    found = answer("perceptron", request)
    assert found["visits"] == {
        "epoch": [1] * 4 + [2] * 4,
        "index": [0, 1, 2, 3] * 2,
        "value": [0, 0, 4, -4, 4, -4, 4, -4],
        "mistake": [True, True, False, False] + [False] * 4,
    }
    assert found["converged"] and found["step"] == 8
    # ‖w‖² = 4, then 4 + 4; k(x,x) = 4; the margin is 4/√8 = √2
    assert found["proof"] == {"norm": [4, 8], "upper": [4, 8], "lower": [2, 8]}
    assert near(found["grid"], on_grid(lambda Z: 4 * Z[:, 0] * Z[:, 1]))
    first = answer("perceptron", {**request, "step": 1})
    assert first["alpha"] == [1, 0, 0, 0] and first["visited"] == 0
    assert near(first["grid"], on_grid(lambda Z: (Z[:, 0] + Z[:, 1]) ** 2))
    assert near(first["values"], run(first["code"])["f"](np.array(XOR)[:, :2]))
    start = answer("perceptron", {**request, "step": 0})
    assert start["visited"] is None and not np.any(start["grid"])


def test_perceptron_with_an_intercept_and_more_visits_than_are_shown():
    found = answer("perceptron", {"points": MOONS, "kernel": "gaussian(0.5)", "passes": 50})
    model = KernelPerceptron(kernel=Gaussian(sigma=0.5), max_iter=50).fit(X, y)
    assert near(found["values"], model.decision_function(X))
    assert facts(found)["mistakes so far"] == model.mistakes_ <= facts(found)["bound on the mistakes"]
    norm = found["proof"]["norm"]
    assert near(norm[-1], model.expansion_.norm() ** 2 + model.expansion_.intercept**2)
    many = answer("example", {"name": "blobs", "number": 2000})["points"]
    with pytest.warns(UserWarning, match="max_iter=2"):
        assert len(answer("perceptron", {"points": many, "kernel": "linear"})["visits"]["index"]) == 4000


def test_feature_space():
    found = answer("features", {"points": MOONS, "kernel": "gaussian(0.7)", "component": 2})
    model = KernelPCA(kernel=Gaussian(sigma=0.7)).fit(X)
    assert near(found["scores"], model.transform(X)[:, :6])
    assert near(found["shares"], model.explained_variance_ratio_[:30])
    assert near(found["grid"], on_grid(lambda Z: model.transform(Z)[:, 1]))
    assert near(found["scores"], run(found["code"])["scores"])


def test_spectrum():
    found = answer("spectrum", {"kernel": "gaussian(2)"})
    omega = np.array(found["omega"])
    assert np.allclose(found["density"], 2 * np.exp(-2 * omega**2), atol=1e-4)  # ω has five digits
    assert np.allclose(found["profile"], np.exp(-(np.array(found["r"]) ** 2) / 8), atol=1e-4)
    assert facts(found)["v(ω)"] == "not negative here"
    ball = answer("spectrum", {"kernel": "ballindicator"})  # v = √(2/π) sin(ω)/ω
    assert facts(ball)["v(ω)"] == "negative" and min(ball["density"]) < -0.1
    left = run(answer("spectrum", {"kernel": "exp(-r)", "dim": 3})["code"])
    assert near(left["v"](left["omega"]), density("exp(-r)", dim=3)(left["omega"]))
    with pytest.raises(InputError, match="Linear"):
        answer("spectrum", {"kernel": "linear"})
    with pytest.raises(InputError, match="waits for data"):
        answer("spectrum", {"kernel": "rbf"})


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("room", "request_", "says"),
    [
        ("atlantis", {}, "there is no room 'atlantis'"),
        ("classify", [], "a request is an object"),
        ("classify", {"points": XOR}, "kernel must be a text"),
        ("classify", {"points": XOR, "kernel": "gaussian("}, "not closed"),
        ("classify", {"points": XOR, "kernel": "gausian(1)"}, "did you mean 'gaussian'"),
        ("classify", {"points": XOR, "kernel": "__import__('os').system('true')"}, "cannot read the kernel"),
        ("classify", {"points": XOR, "kernel": "exp(-r) + q"}, "there is no 'q'"),
        ("classify", {"points": XOR, "kernel": "spectrum(3)"}, "compares objects"),
        ("classify", {"points": XOR, "kernel": "linear" + " " * 5000}, "at most 4,000 characters"),
        ("classify", {"points": XOR, "kernel": "gaussian(1)", "parameters": {"rho": 1}}, "no number 'rho'"),
        ("classify", {"points": XOR, "kernel": "gaussian(1)", "parameters": {"sigma": -1}}, "positive"),
        (
            "classify",
            {"points": XOR, "kernel": "gaussian(1)", "parameters": {"sigma": "1"}},
            "by their names",
        ),
        ("classify", {"points": XOR, "kernel": "linear", "C": 0}, "C must be a number from"),
        ("classify", {"points": XOR, "kernel": "linear", "C": True}, "C must be a number from"),
        ("classify", {"points": XOR, "kernel": "linear", "learner": "oracle"}, "learner must be one of svm"),
        ("classify", {"points": XOR, "kernel": "linear", "box": [1, 0, 0, 1]}, "left < right"),
        ("classify", {"points": "many", "kernel": "linear"}, "at most 2,000 points, got 'many'"),
        ("classify", {"points": [[0, 0, 1]] * 2001, "kernel": "linear"}, "at most 2,000 points, got 2,001"),
        ("classify", {"points": [[0, 0, 1]], "kernel": "linear"}, "at least 2 points are needed"),
        ("classify", {"points": [[0, 0, 1], [1, 1, 1]], "kernel": "linear"}, "all points are of one class"),
        ("classify", {"points": [[0, 0, 1], [1, 1, 2]], "kernel": "linear"}, "1 or -1, got 2"),
        ("classify", {"points": [[0, 0, 1], [1, None, -1]], "kernel": "linear"}, "point 2 must be 3 numbers"),
        ("classify", {"points": [[0, 0, 1], [1, 1e99, -1]], "kernel": "linear"}, "of at most 1e\\+09"),
        ("curve", {"points": XOR, "kernel": "linear"}, "point 1 must be 2 numbers"),
        ("certify", {"kernel": "linear", "dim": 1.5}, "dim must be a whole number"),
        ("certify", {"kernel": "linear", "dim": 1000}, "dim must be a number from 0 to 64"),
        ("perceptron", {"points": XOR, "kernel": "linear", "intercept": 1}, "true or false"),
        ("features", {"points": [[0, 0, 1]], "kernel": "linear"}, "at least 2 points"),
        ("example", {"name": "moons", "number": 10**9}, "number must be a number from 4 to 2000"),
    ],
)
def test_refusals_are_sentences(room, request_, says):
    with pytest.raises(InputError, match=says):
        answer(room, request_)


def test_every_answer_is_plain_json():
    requests = {"table": {"text": "0,1,a\n1,2,b", "room": "classify"}, "example": {"name": "xor"}}
    for room in ROOMS:
        points = SINE if room.startswith("curve") else XOR
        request = requests.get(room, {"points": points, "kernel": "gaussian(1)"})
        json.dumps(answer(room, request), allow_nan=False)
