r"""What a ridge model without its points keeps, so that it can say how sure it is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from mercer.data import points as data
from mercer.data.types import Points
from mercer.estimators.shared.landmarks import Restricted
from mercer.estimators.shared.processes import SketchedProcess
from mercer.estimators.shared.ridge_solution import LOST
from mercer.kernels.base import Kernel
from mercer.kernels.vectors.dotproduct import Linear
from mercer.solvers.linear.primal import PrimalResult

#: Points whose scores are kept: of so many, the part that is covered is right to 0.7 %, of 90 %.
_SCORED = 2000


class Fitted(NamedTuple):
    """A function on landmarks, and its values."""

    coef: np.ndarray  # (M, t)
    values: np.ndarray  # (n, t)


def sketched(
    problem: Restricted,
    result: Any,  # with coef (M, t) and values (n, t), as `Fitted`
    Y: np.ndarray,  # (n, t)
    alphas: np.ndarray,  # (t,)
    weight: np.ndarray,  # (n,)
    normal: np.ndarray,
) -> dict[str, Any]:
    """The sketch of a model on landmarks."""
    residuals, features = Y - result.values, problem.features
    minima = weight @ residuals**2 + alphas * (features.basis.weights(result.coef) ** 2).sum(axis=0)
    kept = {"normal": normal, "alphas": alphas, "fit_intercept": features.fit_intercept}
    return _sketch(problem.kernel, problem.points, problem.X, residuals, weight, minima, kept)


def sketch_of_linear(
    X: Points, Y: np.ndarray, result: PrimalResult, alphas: np.ndarray, weight: np.ndarray, has_b: bool
) -> dict[str, Any]:
    """The sketch of a linear kernel solved in its features; empty where these are too many to be kept."""
    if result.normal is None:
        return {}
    residuals = result.dual * alphas / weight[:, None]
    kept = {"normal": result.normal, "centre": result.centre, "alphas": alphas, "fit_intercept": has_b}
    return _sketch(Linear(), None, X, residuals, weight, result.objective, kept)


def _sketch(
    kernel: Kernel,
    anchors: Any,
    X: Points,
    residuals: np.ndarray,  # (n, t) y - f - b
    weight: np.ndarray,  # (n,)
    minima: np.ndarray,  # (t,) of Σ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖²
    kept: dict[str, Any],
) -> dict[str, Any]:
    """``kept``, σ², and the scores of some of the points, drawn at random, with their weights."""
    rows = np.flatnonzero(weight)
    if len(rows) > _SCORED:
        rows = np.sort(np.random.default_rng(0).choice(rows, _SCORED, replace=False))
    try:
        process = SketchedProcess(kernel, anchors, kept, kept["alphas"], kept["fit_intercept"])
    except LinAlgError:
        return {"none": LOST}
    scores = process.score(data.take(X, rows), residuals[rows], weight[rows])
    count = float(weight.sum()) - kept["fit_intercept"]
    noise = np.maximum(minima, 0.0) / count if count > 0 else np.full(len(minima), np.inf)
    return kept | {"noise": noise, "scores": scores, "weight": weight[rows]}
