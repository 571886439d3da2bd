"""The problems of benchmarks/svm.py: data, learners, equal quality, and runs in turns."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import svm as peers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import mercer
from benchmarks import _data
from mercer import Gaussian, Gram, config
from mercer.runtime.config import thread_count

try:
    from sklearnex import svm as onedal
except ImportError:  # it exists for some processors only
    onedal = None

QUICK = "--quick" in sys.argv
CACHE = {"cache_size": float(sys.argv[sys.argv.index("--cache") + 1])} if "--cache" in sys.argv else {}
SMALL = 400  # points, with --quick


@dataclass(frozen=True, eq=False)
class Data:
    """Points and targets, to learn from and held out."""

    X: Any  # (n, d)
    y: np.ndarray  # (n,)
    X_test: Any  # (m, d)
    y_test: np.ndarray  # (m,)
    gamma: float


@dataclass(frozen=True, eq=False)
class Case:
    """A row of the table: a problem, and what is asked of the ratios of times."""

    title: str
    kind: str  # "SVC", "SVR" or "OneClassSVM"
    load: Callable[[], Data]
    parameters: dict[str, Any]
    bars: tuple[float | None, float]  # oneDAL ÷ mercer in float32, scikit-learn ÷ mercer

    def make(self, who: str, gamma: float) -> Any:
        """The estimator of one of "mercer float32", "oneDAL float64", "scikit-learn", …"""
        library, _, precision = who.partition(" ")
        parameters = {**self.parameters, "gamma": gamma}
        if library == "mercer":
            return getattr(mercer, self.kind)(**parameters, precision=precision, progress=False)
        return getattr(onedal if library == "oneDAL" else peers, self.kind)(**parameters, **CACHE)


@dataclass(eq=False)
class Outcome:
    """What one learner did with one case."""

    model: Any
    seconds: float
    runs: int
    objective: float = float("nan")
    error: float = float("nan")

    @property
    def support(self) -> int:
        return len(self.model.support_)


# --- data ------------------------------------------------------------------------------------------------


def scale(X: Any) -> float:
    """γ of gamma="scale", one number for everybody."""
    return float(1.0 / (X.shape[1] * X.var()))


def cut(data: tuple[Any, np.ndarray, Any, np.ndarray], gamma: float | None = None) -> Data:
    X, y, X_test, y_test = data
    if QUICK:
        X, y, X_test, y_test = X[:SMALL], y[:SMALL], X_test[:SMALL], y_test[:SMALL]
    return Data(X, y, X_test, y_test, scale(X) if gamma is None else gamma)


def fashion(n: int, parity: bool) -> Data:
    (X, y), (X_test, y_test) = _data.fashion(), _data.fashion("t10k")
    return cut((X[:n], y[:n] % 2, X_test, y_test % 2) if parity else (X[:n], y[:n], X_test, y_test))


def digits() -> Data:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.25, stratify=y, random_state=0)
    return cut((X, y, X_test, y_test))


def kin40k() -> Data:
    X, y, X_test, y_test = _data.regression("kin40k")
    return cut((X[:20_000], y[:20_000], X_test, y_test))


def donors() -> Data:
    X, y = _data.donors(25_000)
    inlier = np.where(y == 0, 1, -1)
    return cut((X[:20_000], inlier[:20_000], X[20_000:], inlier[20_000:]))


def _case(
    title: str, kind: str, load: Callable[[], Data], bars: tuple[Any, float], **parameters: float
) -> Case:
    said = ", ".join(
        f"{ {'nu': 'ν', 'epsilon': 'ε'}.get(name, name) } = {value:g}" for name, value in parameters.items()
    )
    return Case(f"{title}, {said}", kind, load, parameters, bars)


CASES = {
    "fashion 10k": _case(
        "Fashion-MNIST 10k×784, even/odd, γ = scale", "SVC", lambda: fashion(10_000, True), (2, 20), C=10
    ),
    "fashion 30k": _case(
        "Fashion-MNIST 30k×784, even/odd, γ = scale", "SVC", lambda: fashion(30_000, True), (1.6, 20), C=10
    ),
    "fashion10": _case(
        "Fashion-MNIST 20k×784, 10 classes, γ = scale", "SVC", lambda: fashion(20_000, False), (2, 10), C=10
    ),
    "a9a": _case("a9a 32,561×123 sparse, γ = 0.05", "SVC", lambda: cut(_data.a9a(), 0.05), (2, 10), C=1),
    "covtype": _case(
        "covtype 50k×54, class 2 against the rest, γ = 0.1",
        "SVC",
        lambda: cut(_data.covtype(50_000), 0.1),
        (2, 10),
        C=10,
    ),
    "usps": _case("USPS 7,291×256, 10 classes, γ = scale", "SVC", lambda: cut(_data.usps()), (4, 3), C=10),
    "digits": _case("digits 1,347×64, 10 classes, γ = scale", "SVC", digits, (4, 3), C=1),
    "noisy": _case("noisy 20k×50, γ = 0.08", "SVC", lambda: cut(_data.noisy(20_000), 0.08), (2.5, 10), C=100),
    "svr": _case("SVR, kin40k 20k×8, γ = scale", "SVR", kin40k, (2, 10), C=10, epsilon=0.1),
    "oneclass": _case("one class, donors 20k×10, γ = scale", "OneClassSVM", donors, (None, 10), nu=0.1),
}


@cache
def loaded(name: str) -> Data:
    return CASES[name].load()


# --- equal quality ---------------------------------------------------------------------------------------


def objective(case: Case, model: Any, data: Data) -> float:
    """½ βᵀKβ minus the linear term of the dual, in float64; of several classes, the sum over all pairs."""
    coef = model.dual_coef_
    coef = coef.toarray() if sparse.issparse(coef) else np.asarray(coef)
    coef, support = coef.astype(np.float64), np.asarray(model.support_)
    if len(coef) > 1:
        coef = by_pairs(coef, np.searchsorted(np.unique(data.y), data.y[support]))
    B = coef.T
    with config(dtype="float64"):
        value = 0.5 * float((B * (Gram(Gaussian(gamma=data.gamma), data.X[support], cache=0) @ B)).sum())
    if case.kind == "SVC":
        return value - float(np.abs(B).sum())
    if case.kind == "SVR":
        slack = case.parameters["epsilon"] * np.abs(B).sum()
        return value - float((data.y[support] * B[:, 0]).sum()) + float(slack)
    return value


def by_pairs(coef: np.ndarray, codes: np.ndarray) -> np.ndarray:  # (pairs, support vectors)
    """One-vs-one coefficients as LIBSVM packs them, a row per other class, unpacked: a row per pair."""
    rows = []
    for i, j in combinations(range(len(coef) + 1), 2):
        rows.append(np.where(codes == i, coef[j - 1], 0.0) + np.where(codes == j, coef[i], 0.0))
    return np.array(rows)


def error(case: Case, model: Any, data: Data, precision: str) -> float:
    """The share of wrong answers on held-out points; of a regression, the root of the mean squared error."""
    X = typed(data.X_test, precision)
    if type(model).__module__.startswith("sklearn.") and not sparse.issparse(X):
        parts = np.array_split(np.arange(X.shape[0]), thread_count())  # it takes one thread only, and long
        with ThreadPoolExecutor(len(parts)) as pool:
            predicted = np.concatenate(list(pool.map(lambda part: model.predict(X[part]), parts)))
    else:
        predicted = model.predict(X)
    if case.kind == "SVR":
        return float(np.sqrt(np.mean((predicted - data.y_test) ** 2)))
    return float(np.mean(predicted != data.y_test))


def typed(X: Any, precision: str) -> Any:
    """X in a precision; sparse matrices in the class, and with the 32-bit indices, that all peers know."""
    X = X.astype(precision or "float64")
    if not sparse.issparse(X):
        return np.ascontiguousarray(X)
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sparse.csr_matrix(parts, shape=X.shape)


# --- timing ----------------------------------------------------------------------------------------------


def repeats(who: str, warm_up: float) -> int:
    if QUICK:
        return 1
    if warm_up < 0.2:
        return 15
    if warm_up < 2:
        return 5
    if warm_up < 8:
        return 3
    return 1 if warm_up < 20 or who != "scikit-learn" else 0


def in_turns(functions: dict[str, Any]) -> dict[str, Outcome]:
    """Medians of runs in turns after a warm-up; a scikit-learn run over 20 s is its own measurement."""
    first = {who: clocked(function) for who, function in functions.items()}
    count = {who: repeats(who, took) for who, (took, _) in first.items()}
    times: dict[str, list[float]] = {who: [] for who in functions}
    for turn in range(max(count.values())):
        for who, function in functions.items():
            if turn < count[who]:
                times[who].append(clocked(function)[0])
    return {
        who: Outcome(model, float(np.median(times[who] or [took])), max(1, count[who]))
        for who, (took, model) in first.items()
    }


def clocked(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


FLOAT32, FLOAT64, PEER = (
    ("mercer float32", "oneDAL float32"),
    ("mercer float64", "oneDAL float64"),
    ("scikit-learn",),
)


MEASURED: dict[str, dict[str, Outcome]] = {}


def measured(name: str, who: tuple[str, ...]) -> dict[str, Outcome]:
    """The learners' fits of one case, in one run, with the quality of each; measured once."""
    case, data = CASES[name], loaded(name)
    who = tuple(w for w in who if not w.startswith("oneDAL") or hasattr(onedal, case.kind))
    if set(who) <= set(MEASURED.get(name, ())):
        return MEASURED[name]
    functions: dict[str, Any] = {}
    for learner in who:
        X = typed(data.X, learner.partition(" ")[2])

        def fit(learner: str = learner, X: Any = X) -> Any:
            model = case.make(learner, data.gamma)
            return model.fit(X) if case.kind == "OneClassSVM" else model.fit(X, data.y)

        functions[learner] = fit
    outcomes = in_turns(functions)
    for learner, outcome in outcomes.items():
        if learner.startswith("oneDAL") and not hasattr(outcome.model, "_onedal_estimator"):
            print(f"{name}: {learner} fell back to scikit-learn", flush=True)
            outcome.seconds = float("nan")
        outcome.objective = objective(case, outcome.model, data)
        outcome.error = error(case, outcome.model, data, learner.partition(" ")[2])
    MEASURED[name] = outcomes
    return outcomes
