"""The learners: mercer against scikit-learn, NumPy and an honest stopwatch, at equal quality.

Run with ``make bench BENCH=learners`` or ``python -m benchmarks.learners [part …]``; the parts are the
functions below. Every row says what equal quality means beside the times. Rows on USPS and Fashion-MNIST
need the real data (``benchmarks/_data.py``).
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA as PeerPCA
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from benchmarks._data import fashion, usps
from benchmarks._timing import Table, fresh_process, interleaved, write
from mercer import (
    Gaussian,
    Gram,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelPCA,
    KernelPerceptron,
    KernelRidge,
    KernelRidgeCV,
)


def seconds(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def smooth(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of d variables at n points, with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def peak(setup: str, work: str) -> float:
    """GiB that a fresh process needed at most for ``work``, everything included (Linux)."""
    script = f"import numpy as np\n{setup}\n{work}\n"
    # not getrusage: its maximum begins with that of the process that started this one
    script += "lines = open('/proc/self/status').read().split()\n"
    script += "print(int(lines[lines.index('VmHWM:') + 1]) / 2**20)"
    return float(fresh_process(script).splitlines()[-1])


_POINTS = "X = np.random.default_rng(0).normal(size=({n}, {d}))\ny = np.sin(X[:, 0])"


def ridge() -> Table:
    table = Table(
        "Kernel ridge, float64", "case", "mercer s", "scikit-learn s", "ratio", "peak GiB", "equal", "bar"
    )
    n, d, gamma = 10_000, 50, 1 / 50
    X, y = smooth(n, d)
    ours, theirs = (
        KernelRidge(1.0, gamma=gamma, fit_intercept=False),
        PeerRidge(1.0, kernel="rbf", gamma=gamma),
    )
    mine, peer = interleaved(lambda: ours.fit(X, y), lambda: theirs.fit(X, y), repeats=3)
    error = np.abs(ours.dual_coef_ - theirs.dual_coef_).max()
    setup = _POINTS.format(n=n, d=d)
    memory = peak(
        setup, "from mercer import KernelRidge\nKernelRidge(gamma=0.02, fit_intercept=False).fit(X, y)"
    )
    other = peak(
        setup, "from sklearn.kernel_ridge import KernelRidge\nKernelRidge(kernel='rbf', gamma=0.02).fit(X, y)"
    )
    table.add(
        f"KernelRidge {n}×{d}",
        mine,
        peer,
        f"{peer / mine:.2f} ×",
        f"{memory:.2f} of {other:.2f} ({memory / other:.0%})",
        f"coefficients to {error:.0e}",
        "≥ 1.6 ×, ≤ 45 %",
    )
    n = 5000
    X, y = smooth(n, d)
    path = KernelRidgeCV(np.logspace(-4, 2, 20), gamma=gamma, fit_intercept=False)
    theirs = PeerRidge(1.0, kernel="rbf", gamma=gamma)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, peer = interleaved(lambda: path.fit(X, y), lambda: theirs.fit(X, y), repeats=3)
    direct = KernelRidge(path.alpha_, gamma=gamma, fit_intercept=False).fit(X, y)
    error = np.abs(direct.loo_residuals_ - path.loo_residuals_).max()
    table.add(
        f"KernelRidgeCV {n}×{d}, 20 penalties",
        mine,
        peer,
        f"{mine / peer:.2f} × one fit",
        "",
        f"errors left out to {error:.0e}",
        "≤ 7 × one fit",
    )
    return table


def component_analysis(table: Table, n: int, d: int, bar: str, repeats: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, d))
    gamma = 1 / d
    ours = KernelPCA(10, kernel="rbf", gamma=gamma)
    peers = [
        PeerPCA(10, kernel="rbf", gamma=gamma, eigen_solver=solver, random_state=0)
        for solver in ("arpack", "randomized")
    ]
    mine, *others = interleaved(
        lambda: ours.fit(X), *(lambda peer=peer: peer.fit(X) for peer in peers), repeats=repeats
    )
    exact = peers[0].eigenvalues_
    error = np.abs(ours.eigenvalues_ / exact - 1).max()
    memory = other = float("nan")
    if n > 10_000:
        setup = _POINTS.format(n=n, d=d)
        memory = peak(
            setup, f"from mercer import KernelPCA\nKernelPCA(10, kernel='rbf', gamma={gamma}).fit(X)"
        )
        other = peak(
            setup,
            "from sklearn.decomposition import KernelPCA\n"
            f"KernelPCA(10, kernel='rbf', gamma={gamma}, eigen_solver='arpack').fit(X)",
        )
    table.add(
        f"{n}×{d}",
        mine,
        ", ".join(f"{other:.3g}" for other in others),
        f"{min(others) / mine:.2f} ×",
        f"{memory:.2f} of {other:.2f}",
        f"{error:.0e} (randomized {np.abs(peers[1].eigenvalues_ / exact - 1).max():.0e})",
        bar,
    )


def pca() -> Table:
    table = Table(
        "Kernel PCA, 10 components, float64",
        "case",
        "mercer s",
        "scikit-learn s (arpack, randomized)",
        "ratio to the best",
        "peak GiB",
        "eigenvalues, relative",
        "bar",
    )
    component_analysis(table, 5000, 50, "≥ 2 ×", 5)
    component_analysis(table, 20_000, 20, "≥ 3 ×, half the memory", 1)
    return table


def shifted(X: np.ndarray) -> np.ndarray:  # (n, 256) → (5n, 256)
    """Each image, and the four that it becomes when moved by a pixel."""
    images = np.pad(X.reshape(-1, 16, 16), ((0, 0), (1, 1), (1, 1)), constant_values=-1.0)
    moves = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)]
    parts = [images[:, 1 + a : 17 + a, 1 + b : 17 + b].reshape(len(X), -1) for a, b in moves]
    return np.stack(parts, axis=1).reshape(-1, X.shape[1])


def invariant(X: np.ndarray, Y: np.ndarray, gamma: float) -> np.ndarray:  # (n, m)
    """k(x, y) = Σₛ Σₜ exp(-γ‖s(x) - t(y)‖²) over moves s and t, normalised: a kernel on sets."""
    k = Gaussian(gamma=gamma)

    def sums(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        gram, m = Gram(k, A, B, cache=0), len(B) // 5
        starts = range(0, len(A), 1000)
        rows = (gram.rows(np.arange(start, min(start + 1000, len(A)))) for start in starts)
        sums_of_rows = (part.reshape(-1, 5, 5 * m).sum(axis=1) for part in rows)
        return np.concatenate([part.reshape(-1, m, 5).sum(axis=2) for part in sums_of_rows])

    def norms(A: np.ndarray) -> np.ndarray:
        return np.sqrt([k(A[i : i + 5]).sum() for i in range(0, len(A), 5)])

    A, B = shifted(X), shifted(Y)
    return sums(A, B) / norms(A)[:, None] / norms(B)


def classifiers() -> Table:
    table = Table("Classifiers on USPS", "case", "fit s", "test error", "log-loss", "how", "bar")
    X, y, X_test, y_test = usps()

    def row(case: str, model: Any, n: int, how: str, bar: str) -> None:
        took, _ = seconds(lambda: model.fit(X[:n], y[:n]))
        loss = (
            log_loss(y_test, model.predict_proba(X_test)) if hasattr(model, "predict_proba") else float("nan")
        )
        table.add(case, took, f"{1 - model.score(X_test, y_test):.2%}", loss, how, bar)

    KernelLogisticRegression(Gaussian(gamma=0.01)).fit(X[:200], y[:200])  # compiled before the clock starts
    logistic = KernelLogisticRegression(Gaussian(gamma=0.01), C=300.0)
    row("KernelLogisticRegression 2000", logistic, 2000, "γ = 0.01, C = 300", "")
    row("KernelLogisticRegression 7291", logistic, 7291, "γ = 0.01, C = 300", "< 60 s")
    # the same learner with a kernel that knows that a moved digit is the same digit; γ and C by 4 folds of
    # the first 2000 rows
    best: tuple[float, float, float] = (np.inf, 0.0, 0.0)
    for gamma in (0.005, 0.01, 0.015, 0.02):
        search = GridSearchCV(
            KernelLogisticRegression("precomputed", tol=1e-5),
            {"C": [30.0, 100.0, 300.0, 1000.0]},
            cv=StratifiedKFold(4),
            scoring="neg_log_loss",
            refit=False,
        )
        search.fit(invariant(X[:2000], X[:2000], gamma), y[:2000])
        index = search.best_index_
        best = min(best, (-search.cv_results_["mean_test_score"][index], gamma, search.best_params_["C"]))
    _, gamma, C = best
    for n, bar in ((2000, "≤ 6.5 %, ≤ 0.22"), (7291, "< 60 s, ≤ 5 %")):
        model = KernelLogisticRegression("precomputed", C=C)
        took, _ = seconds(lambda n=n, model=model: model.fit(invariant(X[:n], X[:n], gamma), y[:n]))
        P = model.predict_proba(invariant(X_test, X[:n], gamma))
        wrong = (model.classes_[P.argmax(axis=1)] != y_test).mean()
        how = f"on sets of 5 moved images, γ = {gamma}, C = {C:g} by folds; kernel in the time; "
        how += f"gap {model.report_.gap / model.report_.objective:.0e} of the objective"
        table.add(f"KernelLogisticRegression {n}, moved", took, f"{wrong:.2%}", log_loss(y_test, P), how, bar)
    fisher = GridSearchCV(
        KernelFisherDiscriminant(alpha="auto"),
        {"kernel": [Gaussian(gamma=g) for g in (0.002, 0.005, 0.01, 0.02)]},
        cv=4,
    )
    row("KernelFisherDiscriminant 2000", fisher, 2000, "α left out, γ by 4 folds, in the time", "≤ 6.0 %")
    table.rows[-1][4] += f": {fisher.best_params_['kernel']!r}"
    row(
        "SVC + Platt (scikit-learn) 2000",
        SVC(gamma=0.01, C=10, probability=True, random_state=0),
        2000,
        "",
        "",
    )
    row("LogisticRegression (scikit-learn) 2000", LogisticRegression(max_iter=1000), 2000, "linear", "")
    if "gp" in sys.argv:
        process = GaussianProcessClassifier(ConstantKernel(10.0, "fixed") * RBF(7.0, "fixed"))
        row("GaussianProcessClassifier (scikit-learn) 2000", process, 2000, "width given", "")
    return table


def online(X: np.ndarray, y: np.ndarray, gamma: float, epochs: int) -> np.ndarray:
    """The kernel perceptron as one would write it in NumPy: f from the stored mistakes, point by point."""
    stored: list[int] = []
    signs: list[float] = []
    for _ in range(epochs):
        for i in range(len(X)):
            value = 0.0
            if stored:
                differences = X[stored] - X[i]
                value = float(np.dot(signs, np.exp(-gamma * (differences**2).sum(axis=1)) + 1))
            if (value > 0) != (y[i] > 0):
                stored.append(i)
                signs.append(y[i])
    return np.array(stored)


def gram_first(X: np.ndarray, y: np.ndarray, gamma: float, epochs: int) -> np.ndarray:
    """The same with the whole Gram matrix computed first, by NumPy."""
    squares = (X**2).sum(axis=1)
    K = np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0)) + 1
    alpha = np.zeros(len(X))
    stored = []
    for _ in range(epochs):
        for i in range(len(X)):
            if (K[i] @ alpha > 0) != (y[i] > 0):
                alpha[i] += y[i]
                stored.append(i)
    return np.array(stored)


def perceptron() -> Table:
    table = Table("Kernel perceptron, 5 epochs", "case", "mercer s", "NumPy s", "ratio", "mistakes", "bar")
    X, labels = fashion()
    X, y = X[:10_000], np.where(labels[:10_000] % 2, 1.0, -1.0)
    gamma = 0.02
    model = KernelPerceptron(Gaussian(gamma=gamma), max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, gram = interleaved(lambda: model.fit(X, y), lambda: gram_first(X, y, gamma, 5), repeats=3)
    few, mistakes = seconds(lambda: online(X[:2000], y[:2000], gamma, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small, fitted = seconds(
            lambda: KernelPerceptron(Gaussian(gamma=gamma), max_iter=5).fit(X[:2000], y[:2000])
        )
    table.add(
        "Fashion-MNIST 2k", small, few, f"{few / small:.1f} ×", f"{fitted.mistakes_} and {len(mistakes)}", ""
    )
    whole, mistakes = seconds(lambda: online(X, y, gamma, 5))
    case, bar = "Fashion-MNIST 10k, values from the stored mistakes", "≥ 20 ×"
    table.add(case, mine, whole, f"{whole / mine:.1f} ×", f"{model.mistakes_} and {len(mistakes)}", bar)
    stored = gram_first(X, y, gamma, 5)
    case = "Fashion-MNIST 10k, the whole Gram first"
    table.add(case, mine, gram, f"{gram / mine:.1f} ×", f"{model.mistakes_} and {len(stored)}", "")
    return table


def losses() -> Table:
    table = Table(
        "Any loss, 5000×20, Gaussian kernel",
        "loss",
        "seconds",
        "objective",
        "gap",
        "gap, relative",
        "iterations",
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 20))
    f = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    targets = {
        KernelMachineRegressor: f + 0.3 * rng.standard_t(3, size=5000),
        KernelMachineClassifier: np.where(f + 0.3 * rng.normal(size=5000) > 0, 1, -1),
    }
    poisson = rng.poisson(np.exp(np.clip(f, -3, 2)))
    kinds = {
        KernelMachineClassifier: ("hinge", "squared_hinge", "logistic"),
        KernelMachineRegressor: (
            "squared",
            "absolute",
            "huber",
            "epsilon_insensitive",
            "quantile",
            "poisson",
        ),
    }
    for kind, names in kinds.items():
        for loss in names:
            model = kind(Gaussian(sigma=4.0), loss=loss, alpha=0.5)
            y = poisson if loss == "poisson" else targets[kind]
            model.fit(X[:300], y[:300])  # compiled before the clock starts
            took, _ = seconds(lambda model=model, y=y: model.fit(X, y))
            report = model.report_
            table.add(
                loss,
                took,
                f"{report.objective:.6g}",
                f"{report.gap:.1e}",
                f"{report.gap / report.objective:.1e}",
                report.iterations,
            )
    return table


PARTS = {part.__name__: part for part in (ridge, pca, classifiers, perceptron, losses)}

if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name in PARTS] or list(PARTS)
    write(
        "learners" if len(chosen) == len(PARTS) else "_" + "-".join(chosen),
        *(PARTS[name]() for name in chosen),
    )
