"""The room "classify": points of two classes, a learner, and its boundary.

>>> xor = [[1, 1, 1], [-1, 1, -1], [-1, -1, 1], [1, -1, -1]]
>>> found = classify(Asked({"points": xor, "kernel": "polynomial(2, c=0)", "C": 100}))
>>> found["values"], found["facts"][1]["value"]  # f(x) = x₁x₂, of norm 1/√2 and margin 2√2
([1.0, -1.0, 1.0, -1.0], 2.8284)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.lab.asked import Asked
from mercer.lab.script import array, script
from mercer.lab.seen import fact, gram_of, grid, norm_facts, plain, short
from mercer.lab.typed import TypedKernel, typed_kernel

LEARNERS = ("svm", "logistic", "ridge", "perceptron")
_LONGEST_FIT = 5.0  # seconds
_MOST_REFITS = 200  # points up to which each is left out in turn


def classify(asked: Asked) -> dict[str, Any]:
    """The function on the plane, its coefficients, margin, norm, bounds and error left out."""
    X, y = labelled(asked)
    typed = typed_kernel(asked.text("kernel"), asked.numbers("parameters"))
    name, model, code = machine(asked, typed)
    model.set_params(max_time=_LONGEST_FIT).fit(X, y)
    f, kernel = model.expansion_, model.kernel_
    values = f(X)
    alpha = _coefficients(name, model, len(y))
    wrong = int(((values > 0) != (y > 0)).sum())
    facts = [
        fact("wrong", wrong, f"of the {len(y)} points"),
        *_of_learner(name, model, X, y, values),
        *norm_facts(f, kernel, X),
    ]
    return plain(
        {
            "values": short(values),
            "alpha": alpha,
            "support": int(np.count_nonzero(alpha)),
            "grid": grid(f, asked.box()),
            "levels": [-1, 0, 1] if name in ("svm", "ridge") else [0],
            "facts": facts,
            "notes": list(model.report_.warnings),
            "gram": gram_of(kernel, X, np.lexsort((X[:, 1], X[:, 0], y))),
            "kernel": typed.described(kernel, X),
            "code": script(
                typed,
                [f"from mercer import {code.partition('(')[0]}"],
                [
                    array("X", X),
                    array("y", y.astype(int)),
                    f"kernel = {typed.source}",
                    f"model = {code}.fit(X, y)",
                    "f = model.expansion_  # f(x) = Σ αᵢ k(xᵢ, x) + b",
                    'print("wrong:", int(((f(X) > 0) != (y > 0)).sum()), "of", len(y))',
                    'print("‖f‖ =", f.norm())',
                ],
            ),
        }
    )


def left_out(asked: Asked) -> dict[str, Any]:
    """How many points are wrong for the learner that was trained without them, one after the other."""
    X, y = labelled(asked)
    if len(y) > _MOST_REFITS:
        return {
            "facts": [],
            "notes": [f"leaving out one after the other is done up to {_MOST_REFITS} points"],
        }
    typed = typed_kernel(asked.text("kernel"), asked.numbers("parameters"))
    typed = TypedKernel(typed.on(X), typed.text, typed.source, typed.imports)
    wrong = 0
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        if len(np.unique(y[others])) < 2:
            wrong += 1  # Nothing is known of its class without it.
            continue
        name, model, _ = machine(asked, typed)
        if name == "ridge":  # λ is for the mean over all points: the same penalty for one point less
            model.set_params(lam=None, alpha=model.lam * len(y))
        f = model.set_params(max_time=_LONGEST_FIT).fit(X[others], y[others]).expansion_
        wrong += int((f(X[i : i + 1])[0] > 0) != (y[i] > 0))
    return plain({"facts": [_left_out_fact(wrong, len(y), "each point by a fit without it")], "notes": []})


def labelled(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """Points of the plane, and their classes, 1 or -1, of which there are both."""
    points = asked.points(3, least=2)
    X, y = points[:, :2], points[:, 2]
    if not np.isin(y, (-1, 1)).all():
        raise InputError(f"the class of a point is 1 or -1, got {y[~np.isin(y, (-1, 1))][0]:g}")
    if len(np.unique(y)) < 2:
        raise InputError("all points are of one class: add some of the other")
    return X, y


def machine(asked: Asked, typed: TypedKernel) -> tuple[str, Any, str]:
    """The learner that is asked for, not fitted: its name, itself, and Python for it."""
    import mercer

    name = asked.word("learner", LEARNERS)
    C, lam = asked.number("C", 1.0, 1e-6, 1e6), asked.number("lam", 0.01, 1e-12, 1e6)
    match name:
        case "svm":
            return name, mercer.SVC(kernel=typed.kernel, C=C), f"SVC(kernel=kernel, C={C!r})"
        case "logistic":
            made: Any = mercer.KernelLogisticRegression(kernel=typed.kernel, C=C)
            return name, made, f"KernelLogisticRegression(kernel=kernel, C={C!r})"
        case "ridge":
            return (
                name,
                mercer.KernelRidge(kernel=typed.kernel, lam=lam),
                f"KernelRidge(kernel=kernel, lam={lam!r})",
            )
        case _:
            return name, mercer.KernelPerceptron(kernel=typed.kernel), "KernelPerceptron(kernel=kernel)"


def _coefficients(name: str, model: Any, n: int) -> list[float]:
    """αᵢ of every point: f = Σ yᵢαᵢ k(xᵢ, ·) + b for the SVM, Σ αᵢ k(xᵢ, ·) + b for the others."""
    alpha = np.zeros(n)
    if name == "svm":
        alpha[model.support_] = np.abs(model.dual_coef_[0])
    elif name == "perceptron":
        np.add.at(alpha, model.mistake_indices_, 1.0)
    elif name == "ridge":
        alpha = np.asarray(model.dual_coef_).reshape(n)
    else:
        alpha[:] = model.expansion_.coef
    return list(short(alpha))


def _left_out_fact(wrong: int, n: int, how: str) -> dict[str, Any]:
    return fact("leave-one-out error", wrong / n, f"{wrong} of {n} points wrong; {how}")


def _of_learner(
    name: str, model: Any, X: np.ndarray, y: np.ndarray, values: np.ndarray
) -> list[dict[str, Any]]:
    """What is known of the function of one learner."""
    n = len(y)
    if name == "svm":
        share = len(model.support_) / n
        left = _svm_left_out(model, X, y, values)
        return [
            fact("margin 2/‖f‖", model.margin_),
            fact("support vectors", len(model.support_), f"α = C at {int(_at_bound(model).sum())} of them"),
            _left_out_fact(int(((left > 0) != (y > 0)).sum()), n, "by the span of the support vectors"),
            fact(
                "bound on that error",
                share,
                "support vectors / points: f stays without any other point",
            ),
            fact(
                "distance from the minimum", model.dual_gap_, "of the objective, at most; rounding included"
            ),
        ]
    if name == "ridge":
        left = y - model.loo_residuals_
        wrong = int(((left > 0) != (y > 0)).sum())
        return [_left_out_fact(wrong, n, "exactly, from one factorisation")]
    if name == "logistic":
        return [fact("distance from the minimum", model.report_.gap, "of the objective, at most")]
    return [
        fact("mistakes in training", int(model.mistakes_), f"in {model.n_iter_} passes"),
        fact(
            "bound on the mistakes",
            model.bound_,
            "‖g‖² max k(x,x), for g = f scaled to yᵢ g(xᵢ) ≥ 1 (Novikoff)",
        ),
        fact("margin", model.margin_, "minᵢ yᵢ f(xᵢ) / ‖f‖, in the space of k + 1"),
    ]


def _at_bound(model: Any) -> np.ndarray:
    return np.abs(model.dual_coef_[0]) >= model.C


def _svm_left_out(model: Any, X: np.ndarray, y: np.ndarray, values: np.ndarray) -> np.ndarray:
    """f₋ᵢ(xᵢ) of every point, by the span rule."""
    from mercer.gram import Gram
    from mercer.solvers.svm.calibration import left_out as by_spans

    gram = Gram(model.kernel_, X, cache=0)
    gamma = np.zeros(len(y))
    gamma[model.support_] = model.dual_coef_[0]
    lo, hi = np.where(y > 0, 0.0, -model.C), np.where(y > 0, model.C, 0.0)
    return by_spans(gamma, values, lo, hi, gram.block, gram.diag())
