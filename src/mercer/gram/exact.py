r"""Kernel values with 106 bits, for the few points of a problem that float64 cannot tell apart.

Beside a column of 10⁸ one of 1 is lost in ⟨x, x'⟩, and more so in its powers: the relative rounding 2⁻⁵³ of
the largest term is larger than the others. With ``twofold`` numbers it is 2⁻¹⁰⁴.
"""

from __future__ import annotations

import numpy as np

from mercer.data.types import Points
from mercer.kernels.base import Kernel
from mercer.kernels.vectors.dotproduct import Linear, Polynomial
from mercer.runtime.native import compiles, njit
from mercer.runtime.twofold import EXACTLY, add, multiply


def exact_values(
    kernel: Kernel, points: Points, index: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:  # (m, m), (m, m)
    """K of some of the points, as the sum of two matrices; None where there is no such arithmetic.

    There is for ⟨x, x'⟩ and its powers, of vectors that are not sparse, unless they overflow; and where code
    is compiled, for it would take minutes otherwise.

    >>> K = exact_values(Linear(), np.array([[1e9, 1e-4]]), np.arange(1))
    >>> K[0], K[1].round(24)
    (array([[1.e+18]]), array([[1.e-08]]))
    """
    if type(kernel) not in (Linear, Polynomial) or not isinstance(points, np.ndarray) or not compiles():
        return None
    X = np.ascontiguousarray(points[index], np.float64)
    high, low = np.empty((2, len(X), len(X)))
    if isinstance(kernel, Polynomial):
        _powers(X, float(kernel.gamma), float(kernel.c), int(kernel.degree), high, low)
    else:
        _powers(X, 1.0, 0.0, 1, high, low)
    return (high, low) if np.isfinite(high).all() and np.isfinite(low).all() else None


@njit(cache=True, **EXACTLY)
def _powers(X, gamma, c, degree, high, low):  # type: ignore[no-untyped-def]
    """(γ ⟨xᵢ, xⱼ⟩ + c)^degree = highᵢⱼ + lowᵢⱼ."""
    for i in range(X.shape[0]):
        for j in range(i + 1):
            h, l = 0.0, 0.0
            for k in range(X.shape[1]):
                p, e = multiply(X[i, k], 0.0, X[j, k], 0.0)
                h, l = add(h, l, p, e)
            h, l = multiply(h, l, gamma, 0.0)
            h, l = add(h, l, c, 0.0)
            p, e = h, l
            for _ in range(degree - 1):
                p, e = multiply(p, e, h, l)
            high[i, j] = high[j, i] = p
            low[i, j] = low[j, i] = e
