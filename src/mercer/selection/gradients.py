r"""A linear map of the columns, learned: directions in which f changes count, and others do not.

f = Σᵢ αᵢ κ(‖Aᵀ(x - xᵢ)‖²) is kernel ridge regression on some points. Its average gradient outer product

    M = (1/n) Σᵢ ∇f(xᵢ) ∇f(xᵢ)ᵀ

is large along the directions that tell y apart: of y = g(⟨a, x⟩) it is a multiple of aaᵀ. The next A is √M,
with which f is learned again, and so on. With s = ‖z - z'‖² of the mapped points z = Aᵀx and W = κ'(s),

    ∇f(xᵢ) = 2 A Σⱼ αⱼ Wᵢⱼ (zᵢ - zⱼ)

which for all points is one matrix product. κ's width and λ come from the evidence in every round.

Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural networks and
backpropagation-free machine learning models, Science 383 (2024), 1461-1467.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from mercer.features.linear import LinearMap
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.compose import Mapped
from mercer.kernels.derivative import DistanceSlope
from mercer.runtime.threads import single_threaded_blas
from mercer.selection.evidence import Learned, learn
from mercer.selection.families import spread_of
from mercer.solvers.linear.cholesky import factorise, solve

#: Rounds, steps of learning in each, and what M gets of a multiple of the unit matrix, relative to its trace:
#: a direction that did not matter to f may still matter to the next one.
_ROUNDS, _STEPS, _SHARE_KEPT = 3, 8, 1e-3


def gradient_products(
    kernel: Kernel,  # a function of ‖z - z'‖²/ℓ² with one length scale ``name`` for all columns
    name: str,
    Z: np.ndarray,  # (n, m)
    Y: np.ndarray,  # (n, t)
    noise: float,
) -> np.ndarray:  # (m, m)
    """The mean over points of ∇f ∇fᵀ, summed over targets, of the ridge regression with the penalty λ.

    >>> from mercer import Gaussian
    >>> Z = np.random.default_rng(0).normal(size=(80, 3))
    >>> M = gradient_products(Gaussian(sigma=2.0), "sigma", Z, np.sin(Z[:, :1]), 1e-3)
    >>> int(M.argmax()), bool(M[0, 0] > 10 * (M[1, 1] + M[2, 2]))
    (0, True)
    """
    n, m = Z.shape
    width = float(kernel.get_params()[name])
    each = kernel.__sklearn_clone__()
    each.set_params(**{name: np.full(m, width)})
    slope = DistanceSlope.of(each, name)
    assert slope is not None
    with single_threaded_blas():
        K = np.asarray(Gram(kernel, Z, cache=0).dense(), dtype=np.float64)
        K.flat[:: n + 1] += noise
        alphas = solve(factorise(K.T), Y)
        W = np.asarray(Gram(slope, Z, cache=0).dense(), dtype=np.float64)
        W[~np.isfinite(W)] = 0.0  # It multiplies a difference of zero.
        M = np.zeros((m, m))
        for alpha in alphas.T:
            slopes = 2 / width**2 * ((W @ alpha)[:, None] * Z - W @ (alpha[:, None] * Z))
            M += slopes.T @ slopes / n
    return M


def learn_map(
    kernel: Kernel,  # `Mapped`, a kernel with one length scale, on a `LinearMap`
    X: np.ndarray,  # (n, d)
    Y: np.ndarray,  # (n, t)
    noise: float | None = None,
    *,
    rounds: int = _ROUNDS,
    deadline: float = np.inf,
) -> Learned:
    """The kernel on the map whose evidence was best, of as many rounds as there is time for.

    >>> from mercer import Matern
    >>> rng = np.random.default_rng(0)
    >>> X, a = rng.normal(size=(200, 3)), np.array([0.6, 0.8, 0.0])
    >>> kernel = Matern(nu=1.5, length_scale=2.0) @ LinearMap(np.eye(3))
    >>> A = learn_map(kernel, X, np.sin(2 * X @ a)[:, None]).kernel.function.matrix
    >>> bool(abs(a @ np.linalg.eigh(A @ A.T)[1][:, -1]) > 0.99)
    True
    """
    Y = Y - Y.mean(axis=0)
    assert isinstance(kernel, Mapped)
    unit = spread_of(X)[:, None]  # Columns of any size: squares of what is left do not overflow.
    X, inner, A = X / unit.T, kernel.kernel, np.asarray(kernel.function.matrix, dtype=np.float64) * unit
    (name,) = (name for name, p in inner.parameters.items() if p.per_column is not None)
    best: Learned | None = None
    count = 0
    for left in range(rounds, -1, -1):
        Z = X @ A
        found = learn(inner, Z, Y, [name], noise, iterations=_STEPS, deadline=deadline)
        inner, noise, count = found.kernel, found.noise, count + found.evaluations
        if best is None or found.value < best.value:
            best = Learned(inner @ LinearMap(A / unit), noise, found.value, count)
        if not left or not np.isfinite(found.value):
            break
        M = A @ gradient_products(inner, name, Z, Y, noise) @ A.T
        A = _root(M, X, Z)
    assert best is not None  # There is a round at least.
    return Learned(best.kernel, best.noise, best.value, count)


def _root(M: np.ndarray, X: np.ndarray, Z: np.ndarray) -> np.ndarray:  # (d, d)
    """√M, of the size at which mapped points are as far apart as they were: a width for these fits those."""
    M = M + _SHARE_KEPT * np.trace(M) / len(M) * np.eye(len(M))
    values, Q = eigh(M)
    A = (Q * np.sqrt(np.maximum(values, 0.0))) @ Q.T
    before, after = (float(np.sqrt(points.var(axis=0).sum())) for points in (Z, X @ A))
    return np.asarray(A * (before / after if after > 0 else 1.0))
