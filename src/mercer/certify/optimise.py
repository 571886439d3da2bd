r"""Points moved to where a kernel fails more clearly: descent on the smallest eigenvalue.

With c the eigenvector of λ = λ_min(K), cᵀc = 1, the derivative of λ/‖K‖ by the i-th point is
2 Σⱼ Wᵢⱼ ∂₁k(xᵢ, xⱼ), W = ccᵀ/‖K‖ - λK/‖K‖³; ∂₁k comes from differences of the kernel, two Gram matrices per
coordinate.

>>> from mercer import Sigmoid
>>> start = np.array([[0.1], [0.2], [0.4]])
>>> share(Sigmoid(1.0).expression(), descended(Sigmoid(1.0).expression(), start)) < -0.01
True
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.certify.rounding import frobenius, gram_with_error
from mercer.kernels.formula.expression import Expression

_DIFFERENCE_STEP = 1e-6  # the step of a difference quotient, relative to the size of the points
_STEPS = 30  # iterations of L-BFGS at most: a choice, for time


def share(expression: Expression, points: np.ndarray) -> float:
    """λ_min(K) / ‖K‖; 1 where K is zero or not finite, -1 where it is not symmetric."""
    K, _ = gram_with_error(expression, points, bounded=False)
    norm = float(frobenius(K))
    if not 0 < norm < np.inf:  # This refuses NaN as well.
        return 1.0
    if abs(K - K.T).max() > 1e-10 * norm:
        return -1.0
    return float(np.linalg.eigvalsh((K + K.T) / 2)[0] / norm)


def descended(
    expression: Expression,
    points: np.ndarray,  # (n, d)
    inside: Callable[[np.ndarray], np.ndarray] = lambda points: points,
) -> np.ndarray:  # (n, d)
    """The points after some steps downhill; ``inside`` brings points back to where the kernel is defined."""
    from scipy.optimize import minimize  # It takes an eighth of a second to import and is seldom needed.

    step = _DIFFERENCE_STEP * (float(abs(points).max()) or 1.0)

    def value_and_slope(flat: np.ndarray) -> tuple[float, np.ndarray]:
        X = inside(flat.reshape(points.shape))
        K, _ = gram_with_error(expression, X, bounded=False)
        norm = float(frobenius(K))
        if not 0 < norm < np.inf:
            return 1.0, np.zeros(flat.size)
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        c = vectors[:, 0]
        W = np.outer(c, c) / norm - values[0] * K / norm**3
        slope = np.empty(X.shape)
        for k in range(X.shape[1]):
            moved = X.copy()
            moved[:, k] += step
            back = X.copy()
            back[:, k] -= step
            ahead, behind = (
                gram_with_error(expression, inside(side), X, bounded=False)[0] for side in (moved, back)
            )
            slope[:, k] = 2 * (W * (ahead - behind)).sum(axis=1) / (2 * step)
        return float(values[0] / norm), np.nan_to_num(slope.ravel(), posinf=0.0, neginf=0.0)

    end = minimize(value_and_slope, points.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return inside(end.x.reshape(points.shape))
