r"""Pre-images: a point z whose feature Φ(z) is nearest to a given element of the feature space.

Find      z minimising ‖Φ(z) - Σᵢ cᵢ Φ(xᵢ)‖²

**Fixed point**, for k(x, x') = κ(‖x - x'‖²). ‖Φ(z)‖² is constant, so z maximises f(z) = Σᵢ cᵢ κ(‖z - xᵢ‖²);
where its gradient is zero,
          z = Σᵢ gᵢ xᵢ / Σᵢ gᵢ,     gᵢ = -cᵢ κ'(‖z - xᵢ‖²)
Start     a point near the answer; go to the right-hand side. Where coefficients of both signs nearly cancel
          in Σᵢ gᵢ that is too far, or backwards: the step is then the gradient, Σᵢ gᵢ (xᵢ - z) / Σᵢ |gᵢ|,
          times a number that falls when f would fall and doubles when it grows. So f never falls.
          Where every gᵢ is zero or one is infinite there is no step: start again from the next candidate.
Stop      when no z moves by more than tol times the spread of the data, or when iterations or time run out.
Cost      n distances, values and slopes per point and iteration. A local maximum, as for every such method.

**Ridge**: a map learned from examples, z = Σⱼ k'(s, sⱼ) βⱼ with β = S (S K' S + αI)⁻¹ S X, S = diag(√w), sⱼ
the representations of the training points xⱼ. A weight of 2 counts an example twice, 0 not at all. One
Cholesky factorisation.

Mika, Schölkopf, Smola, Müller, Scholz and Rätsch, Kernel PCA and de-noising in feature spaces, NIPS (1998);
Bakır, Weston and Schölkopf, Learning to find pre-images, NIPS (2003).

>>> X = np.array([[0.0], [1.0], [2.0]])
>>> def radial(Z, X):  # κ and -κ' of the Gaussian of width 1
...     values = np.exp(-((Z - X.T) ** 2) / 2)
...     return values, values / 2
>>> fixed_point(X, np.array([[0.0, 1.0, 0.0]]), radial, np.array([[[0.5]]])).points
array([[1.]])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.runtime.config import memory_budget
from mercer.solvers.control import Control, State
from mercer.solvers.linear.cholesky import factorise, solve
from mercer.solvers.result import Result, Stop

#: Weights cᵢ κ'(…) that are computed together: 16 MB for each of their arrays.
_WEIGHTS_TOGETHER = 2**21
_FARTHEST = 1e3  # the longest step, in steps along the gradient


@dataclass(frozen=True, eq=False, kw_only=True)
class PreimageResult(Result):
    """Points, and how they were found."""

    #: (m, d) z
    points: np.ndarray
    #: (m,) whether z came to rest; else it is the last of its points, or a candidate
    converged: np.ndarray


def fixed_point(
    X: Points,
    coef: np.ndarray,
    radial: Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray]],
    candidates: np.ndarray,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    control: Control | None = None,
) -> PreimageResult:
    """The pre-images of Σᵢ cᵢ Φ(xᵢ) for every row c of ``coef``.

    Parameters
    ----------
    X : (n, d) the points xᵢ, dense or CSR
    coef : (m, n) the cᵢ
    radial : Z, X ↦ κ(‖z - xᵢ‖²) and -κ'(‖z - xᵢ‖²), both (rows of Z, n)
    candidates : (m, tries, d) points to start from, the best first
    """
    control = control or Control()
    m, tries, _ = candidates.shape
    # a row of weights, its parts and what ``radial`` makes on its way are about 12 arrays
    block = min(_WEIGHTS_TOGETHER, memory_budget() // (2 * 8 * 12))
    least, rows = tol * _spread(X), max(1, block // coef.shape[1])
    state = control.restored or {
        "Z": candidates[:, 0].astype(np.float64),
        "step": np.zeros((m, candidates.shape[2])),  # to the next trial, and by how much it is stretched
        "length": np.ones(m),
        "value": np.full(m, -np.inf),  # f(z), -∞ before it is known
        "trial": np.zeros(m, dtype=int),
        "converged": np.zeros(m, dtype=bool),
    }
    # a point without a further candidate stays where it is
    while (active := np.flatnonzero(~state["converged"] & (state["trial"] < tries))).size:
        stopped = Stop.MAX_ITER if control.iterations >= max_iter else control.stopped
        if stopped:
            break
        for start in range(0, len(active), rows):
            _advance(X, coef, radial, candidates, state, active[start : start + rows], least)
        control.step(lambda: state, points=len(active))
    else:
        stopped = Stop.CONVERGED
    return PreimageResult(
        points=state["Z"], converged=state["converged"], iterations=control.iterations, stopped=stopped
    )


def _advance(
    X: Points,
    coef: np.ndarray,
    radial: Any,
    candidates: np.ndarray,
    state: State,
    part: np.ndarray,
    least: float,
) -> None:
    """Make one trial for each of some points."""
    Z, value, length = state["Z"], state["value"], state["length"]
    trial = Z[part] + length[part, None] * state["step"][part]
    kernel, slope = radial(trial, X)
    c = coef[part]
    g, terms = c * slope, c * kernel
    del kernel, slope, c
    f, total, size = terms.sum(axis=1), g.sum(axis=1), np.abs(g).sum(axis=1)
    is_first = value[part] == -np.inf
    is_possible = np.isfinite(f + size) & (size > 1e-200)
    is_lost = is_first & ~is_possible
    rounding = 1e-15 * np.abs(terms).sum(axis=1)
    is_up = is_possible & (f >= value[part] - rounding)

    lost = part[is_lost]
    state["trial"][lost] += 1
    last = candidates.shape[1]
    Z[lost] = candidates[lost, np.where(state["trial"][lost] < last, state["trial"][lost], 0)]

    up = part[is_up]
    grew = (f > value[part] + rounding)[is_up]
    moved = np.linalg.norm(trial[is_up] - Z[up], axis=1)
    Z[up], value[up] = trial[is_up], f[is_up]
    total, size, first = total[is_up], size[is_up], is_first[is_up]
    step = np.asarray(g[is_up] @ X) - total[:, None] * trial[is_up]
    state["step"][up] = step / size[:, None]
    longest = size / np.maximum(total, size / _FARTHEST)  # It ends at the fixed point, if that is ahead.
    # where f is flat to rounding steps must shrink to end; those of positive weights do by themselves
    grew |= longest < 1.01
    length[up] = np.minimum(np.where(first, 10.0, np.where(grew, 2.0, 0.5) * length[up]), longest)
    next_step = length[up] * np.linalg.norm(state["step"][up], axis=1)
    state["converged"][up] = np.where(first, next_step == 0, np.minimum(moved, next_step) <= least)

    down = part[~is_up & ~is_lost]
    length[down] /= 4
    state["converged"][down] = length[down] * np.linalg.norm(state["step"][down], axis=1) <= least


def _spread(X: Any) -> float:
    """The root mean squared distance of the points to their mean; 1 where they coincide."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    squares = X.multiply(X).sum() if hasattr(X, "multiply") else np.einsum("ij,ij->", X, X)
    variance = float(squares) / X.shape[0] - float(mean @ mean)
    size = float(squares) / X.shape[0]
    return float(np.sqrt(variance)) if variance > 1e-14 * size else max(float(np.sqrt(size)), 1e-300) or 1.0


def ridge_map(
    K: np.ndarray, X: np.ndarray, alpha: float, weight: np.ndarray | None = None
) -> np.ndarray:  # (n, d)
    """β = S (S K S + αI)⁻¹ S X, S = diag(√w); K is destroyed.

    >>> ridge_map(np.eye(2), np.array([[2.0], [4.0]]), 1.0)
    array([[1.],
           [2.]])
    """
    if weight is not None:
        root = np.sqrt(weight)
        K *= root
        K *= root[:, None]
        X = root[:, None] * X
    K.flat[:: len(K) + 1] += alpha
    if weight is not None:  # examples of weight 0 take no part, even where alpha is 0
        none = np.flatnonzero(root == 0)
        K[none, none] = 1.0
    try:
        factor = factorise(K.T)
    except LinAlgError:
        raise InputError(
            f"K + alpha I of the learned map back is not positive definite, got alpha={alpha!r}: raise alpha"
        ) from None
    beta = solve(factor, X)
    return beta if weight is None else root[:, None] * beta
