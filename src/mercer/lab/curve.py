"""The room "fit a curve": points (x, y), a learner, and its function.

>>> found = curve(Asked({"points": [[0, 0], [1, 2]], "kernel": "linear", "lam": 1e-9}))
>>> [round(found["curve"][i], 3) for i in (0, -1)], found["at"][0], found["at"][-1]
([-6.0, 6.0], -3.0, 3.0)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.lab.asked import Asked
from mercer.lab.script import array, script
from mercer.lab.seen import fact, gram_of, norm_facts, plain, short
from mercer.lab.typed import TypedKernel, typed_kernel

LEARNERS = ("ridge", "svr")
_CURVE_STEPS = 301
_LONGEST_FIT, _MOST_REFITS = 5.0, 200  # seconds, points


def curve(asked: Asked) -> dict[str, Any]:
    """The function, its coefficients, norm, bounds, and errors left out."""
    points = asked.points(2, least=2)
    X, y = points[:, :1], points[:, 1]
    typed = typed_kernel(asked.text("kernel"), asked.numbers("parameters"))
    name, model, code = machine(asked, typed)
    model.set_params(max_time=_LONGEST_FIT).fit(X, y)
    f, kernel = model.expansion_, model.kernel_
    left, right, *_ = asked.box()
    at = np.linspace(left, right, _CURVE_STEPS)
    fitted = f(X)
    alpha = np.zeros(len(y))
    facts = [
        fact("error at the points", float(np.sqrt(np.mean((y - fitted) ** 2))), "root of the mean square")
    ]
    residuals: np.ndarray | None = None
    if name == "ridge":
        alpha[:] = np.asarray(model.dual_coef_).reshape(len(y))
        residuals = np.asarray(model.loo_residuals_)
        facts.append(_left_out_fact(residuals, "exactly, from one factorisation"))
    else:
        alpha[model.support_] = model.dual_coef_[0]
        facts += [
            fact("support vectors", len(model.support_), "points on the tube or outside of it"),
            fact(
                "distance from the minimum", model.dual_gap_, "of the objective, at most; rounding included"
            ),
        ]
    return plain(
        {
            "at": short(at),
            "curve": short(f(at[:, None])),
            "values": short(fitted),
            "alpha": short(alpha),
            "left_out": None if residuals is None else short(y - residuals),
            "tube": model.epsilon if name == "svr" else None,
            "support": int(np.count_nonzero(alpha)),
            "facts": [*facts, *norm_facts(f, kernel, X)],
            "notes": list(model.report_.warnings),
            "gram": gram_of(kernel, X, np.argsort(X[:, 0], kind="stable")),
            "kernel": typed.described(kernel, X),
            "code": script(
                typed,
                [f"from mercer import {code.partition('(')[0]}"],
                [
                    array("X", X),
                    array("y", y),
                    f"kernel = {typed.source}",
                    f"model = {code}.fit(X, y)",
                    "f = model.expansion_  # f(x) = Σ αᵢ k(xᵢ, x) + b",
                    'print("error at the points:", np.sqrt(np.mean((y - f(X)) ** 2)))',
                    'print("‖f‖ =", f.norm())',
                ],
            ),
        }
    )


def left_out(asked: Asked) -> dict[str, Any]:
    """The error at points that the function was learned without, one after the other."""
    points = asked.points(2, least=2)
    X, y = points[:, :1], points[:, 1]
    if len(y) > _MOST_REFITS:
        return {
            "facts": [],
            "notes": [f"leaving out one after the other is done up to {_MOST_REFITS} points"],
        }
    typed = typed_kernel(asked.text("kernel"), asked.numbers("parameters"))
    typed = TypedKernel(typed.on(X), typed.text, typed.source, typed.imports)
    residuals = np.empty(len(y))
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        name, model, _ = machine(asked, typed)
        if name == "ridge":  # λ is for the mean over all points: the same penalty for one point less
            model.set_params(lam=None, alpha=model.lam * len(y))
        f = model.set_params(max_time=_LONGEST_FIT).fit(X[others], y[others]).expansion_
        residuals[i] = y[i] - f(X[i : i + 1])[0]
    return plain({"facts": [_left_out_fact(residuals, "each point by a fit without it")], "notes": []})


def machine(asked: Asked, typed: TypedKernel) -> tuple[str, Any, str]:
    """The learner that is asked for, not fitted: its name, itself, and Python for it."""
    import mercer

    name = asked.word("learner", LEARNERS)
    C, lam = asked.number("C", 1.0, 1e-6, 1e6), asked.number("lam", 0.01, 1e-12, 1e6)
    epsilon = asked.number("epsilon", 0.1, 0.0, 1e6)
    if name == "ridge":
        return (
            name,
            mercer.KernelRidge(kernel=typed.kernel, lam=lam),
            f"KernelRidge(kernel=kernel, lam={lam!r})",
        )
    made = mercer.SVR(kernel=typed.kernel, C=C, epsilon=epsilon)
    return name, made, f"SVR(kernel=kernel, C={C!r}, epsilon={epsilon!r})"


def _left_out_fact(residuals: np.ndarray, how: str) -> dict[str, Any]:
    return fact(
        "leave-one-out error", float(np.sqrt(np.mean(residuals**2))), f"root of the mean square; {how}"
    )
