"""The room "perceptron, step by step": every visit of a point, and f after any of them.

>>> xor = [[1, 1, 1], [-1, 1, -1], [-1, -1, 1], [1, -1, -1]]
>>> found = steps(Asked({"points": xor, "kernel": "polynomial(2, c=0)", "intercept": False}))
>>> found["visits"]["value"]
[0.0, 0.0, 4.0, -4.0, 4.0, -4.0, 4.0, -4.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.lab.asked import Asked
from mercer.lab.classify import labelled
from mercer.lab.script import array, script
from mercer.lab.seen import fact, gram_of, grid, plain, short
from mercer.lab.typed import TypedKernel, typed_kernel

#: Visits that are sent to the page, which draws each of them: passes are fewer where there are many points.
_MOST_VISITS = 4000
_BOUND = "max k(x,x) / ρ² for the margin ρ that was found (Novikoff)"


def steps(asked: Asked) -> dict[str, Any]:
    """The visits, the proof in numbers, and f after ``step`` of them (by default after all)."""
    from mercer import KernelPerceptron

    X, y = labelled(asked)
    typed = typed_kernel(asked.text("kernel"), asked.numbers("parameters"))
    intercept = asked.flag("intercept", True)
    passes = max(1, min(asked.whole("passes", 20, 1, 1000), _MOST_VISITS // len(y)))
    model = KernelPerceptron(
        kernel=typed.kernel, fit_intercept=intercept, max_iter=passes, record_history=True
    )
    model.fit(X, y)
    history = model.history_
    step = asked.whole("step", len(history), -1, 10**6)
    step = len(history) if step < 0 else min(step, len(history))
    made = np.flatnonzero(history["mistake"][:step])
    index = history["index"][made]
    coef = np.zeros(len(y))
    np.add.at(coef, index, y[index])
    f = Expansion(model.kernel_, X, coef, coef.sum() if intercept else 0.0)
    values = f(X)
    last = history[step - 1] if step else None
    so_far = f"of {len(history)}, in {int(history['epoch'][-1])} passes over {len(y)} points"
    in_space = ", in the space of k + 1" if intercept else ""
    return plain(
        {
            "visits": {
                "epoch": history["epoch"].tolist(),
                "index": history["index"].tolist(),
                "value": short(history["value"]),
                "mistake": history["mistake"].tolist(),
            },
            "step": step,
            "visited": None if last is None else int(last["index"]),
            "converged": bool(model.converged_),
            "alpha": short(np.abs(coef)),
            "values": short(values),
            "grid": grid(f, asked.box()),
            "levels": [0],
            "proof": _proof(model, X, y, intercept),
            "facts": [
                fact("visits", step, so_far),
                fact("mistakes so far", len(made), f"{int(model.mistakes_)} in all"),
                fact("wrong now", int(((values > 0) != (y > 0)).sum()), f"of {len(y)} points"),
                fact("bound on the mistakes", model.bound_, _BOUND),
                fact("margin ρ", model.margin_, f"minᵢ yᵢ f(xᵢ) / ‖f‖{in_space}"),
                fact("norm ‖f‖", float(f.norm())),
            ],
            "notes": list(model.report_.warnings),
            "gram": gram_of(model.kernel_, X, np.lexsort((X[:, 1], X[:, 0], y))),
            "kernel": typed.described(model.kernel_, X),
            "code": _code(typed, X, y, step, intercept, passes),
        }
    )


def _code(typed: TypedKernel, X: np.ndarray, y: np.ndarray, step: int, intercept: bool, passes: int) -> str:
    """Python that gives the same f after ``step`` visits."""
    options = f"kernel=kernel, fit_intercept={intercept}, max_iter={passes}, record_history=True"
    return script(
        typed,
        ["from mercer import Expansion, KernelPerceptron"],
        [
            array("X", X),
            array("y", y.astype(int)),
            f"kernel = {typed.source}",
            f"model = KernelPerceptron({options}).fit(X, y)",
            f"so_far = model.history_[:{step}]",
            'index = so_far["index"][so_far["mistake"]]',
            "coef = np.zeros(len(y))",
            "np.add.at(coef, index, y[index])",
            f"f = Expansion(model.kernel_, X, coef, {'coef.sum()' if intercept else '0.0'})",
            f'print("mistakes after {step} visits:", len(index))',
            'print("‖f‖ =", f.norm())',
        ],
    )


def _proof(model: Any, X: np.ndarray, y: np.ndarray, intercept: bool) -> dict[str, Any]:
    """‖w‖² after each mistake j, between the two lines of the proof: (jρ)² ≤ ‖w‖² ≤ j max k(x, x).

    Every mistake adds at least ρ to ⟨w, w*⟩, and at most k(x, x) to ‖w‖². With an intercept w and k are those
    of k + 1. ρ is the margin of the last f, and there is none where the classes were not separated.
    """
    index = np.asarray(model.mistake_indices_)
    largest = float(Gram(model.kernel_, X, cache=0).diag().max()) + intercept
    # ‖w + y k(x, ·)‖² = ‖w‖² + 2 y w(x) + k(x, x), where w(x) is the value on arrival
    arrived = model.history_["value"][model.history_["mistake"]]
    squares = np.cumsum(2 * y[index] * arrived + Gram(model.kernel_, X, cache=0).diag()[index] + intercept)
    j = np.arange(1, len(index) + 1)
    lower = (j * model.margin_) ** 2 if model.converged_ else np.full(len(j), np.nan)
    return {"norm": short(squares), "upper": short(j * largest), "lower": short(lower)}
