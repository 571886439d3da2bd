r"""A factorisation in float32 that lets conjugate gradients solve a float64 system in a few steps.

With S = diag(√wᵢ) and M = S K S + αI, P = (LLᵀ)⁻¹ for the Cholesky factor L of M in float32 is M⁻¹ up to the
rounding of float32: half the time and half the memory of a factor in float64. As a preconditioner it leaves
a matrix PM near I, so that conjugate gradients, with products in float64, gain several digits in each step.

Rounding is about ε‖M‖ with ε = 1.2e-7. Where α is less than that LLᵀ may not even exist: a larger α' takes
its place in P, which costs some √(α'/α) times as many steps and changes nothing in the solution.

Higham and Pranesh, Exploiting lower precision arithmetic in solving symmetric positive definite linear
systems and least squares problems, SIAM J. Sci. Comput. 43 (2021), A258-A277.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError

from mercer.errors import InputError
from mercer.solvers.linear.cholesky import factorise, solve
from mercer.solvers.linear.conjugate import Multiply
from mercer.solvers.matrix import KernelMatrix

_EPSILON = float(np.finfo(np.float32).eps)
#: α' relative to ‖K‖ at least: half of what rounding may come to in the worst case
_ROUNDING = 0.5 * _EPSILON
_TRIES = 3
#: α relative to the trace of K from which a factor in float32 takes no more than a dozen steps or so
SMALLEST = 0.02 * _EPSILON


def single_inverse(
    K: KernelMatrix,  # (n, n), float32
    weight: np.ndarray,  # (n,) > 0
    alpha: float,
) -> Multiply:
    """V ↦ P V with P near (S K S + αI)⁻¹, in the memory of one float32 matrix.

    >>> from mercer import Gaussian, Gram, config
    >>> X = np.arange(4.0)[:, None]
    >>> with config(dtype="float32"):
    ...     P = single_inverse(Gram(Gaussian(1.0), X), np.ones(4), 0.1)
    >>> M = Gram(Gaussian(1.0), X).dense() + 0.1 * np.eye(4)
    >>> bool(np.abs(P(M) - np.eye(4)).max() < 1e-5)
    True
    """
    root = np.sqrt(weight).astype(K.dtype)
    norm = float(np.linalg.norm(root * (K @ root)) / max(float(np.linalg.norm(root)), 1e-300))
    inverse = _inverse(K, root, max(alpha, _ROUNDING * norm))

    def apply(V: np.ndarray) -> np.ndarray:
        size = np.maximum(np.abs(V).max(axis=0), 1e-300)  # V / size is within the range of float32.
        return inverse(V / size) * size

    return apply


def _inverse(K: KernelMatrix, root: np.ndarray, shift: float) -> Multiply:
    """V ↦ (LLᵀ)⁻¹V, for the shift or the first larger one that has an L."""
    n = len(root)
    M = np.empty((0, 0) if hasattr(K, "factorised") else (n, n), K.dtype)
    for _ in range(_TRIES):
        with suppress(LinAlgError):
            if hasattr(K, "factorised"):  # on a device
                return K.factorised(root, shift)
            K.dense(M)
            if not (root == 1).all():
                M *= root[:, None]
                M *= root
            M.flat[:: n + 1] += K.dtype.type(shift)
            return partial(solve, factorise(M.T))
        shift *= 8
    raise InputError(
        f"K + {shift / 8:.2g} I has no Cholesky factor in float32: the kernel is not positive definite on "
        "these points; mercer.certify tells more"
    )
