r"""Mercer's theorem on an interval: k(x, x') = Σᵢ λᵢ φᵢ(x) φᵢ(x').

λᵢ and φᵢ are the eigenvalues and eigenfunctions of f ↦ ∫ k(·, t) f(t) p(t) dt on L²(p). They are computed by
Nyström's method: with nodes tⱼ and weights wⱼ of Gauss-Legendre's rule, w including p, the matrix
√wᵢ k(tᵢ, tⱼ) √wⱼ has the eigenvalues λᵢ and the eigenvectors √wⱼ φᵢ(tⱼ), and from the nodes

    φᵢ(x) = (1/λᵢ) Σⱼ wⱼ k(x, tⱼ) φᵢ(tⱼ)

for every x. The error falls faster than any power of the number of nodes where k is smooth, and like its
square where k has a kink on the diagonal, as min(s, t) has.

Atkinson, The numerical solution of integral equations of the second kind, Cambridge (1997), chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.kernels.parameters import whole

#: Nodes of the quadrature that may be asked for, at least.
_FEWEST_NODES = 8


@dataclass(frozen=True, eq=False)
class Eigenfunctions:
    """λᵢ and φᵢ of a kernel on an interval, the largest λᵢ first; called with numbers x it gives φᵢ(x).

    The sign of each φᵢ is such that its first hill, from the left, is one and no valley. Rounding of k leaves
    an error of about 10⁻¹⁶ λ₁/λᵢ in φᵢ.
    """

    kernel: Kernel
    interval: tuple[float, float]
    #: (m,) λᵢ
    values: np.ndarray
    #: (m,) by how much half as many nodes change each λᵢ: an estimate of its error, no bound
    errors: np.ndarray
    #: ∫ k(x, x) p(x) dx, which all λᵢ together sum to
    trace: float
    _nodes: np.ndarray = field(repr=False)  # (nodes,)
    _coef: np.ndarray = field(repr=False)  # (nodes, m), wⱼ φᵢ(tⱼ) / λᵢ

    def __call__(self, x: ArrayLike) -> np.ndarray:  # (n,) to (n, m)
        """φᵢ(x), a column for each i."""
        points = np.asarray(x, dtype=np.float64).reshape(-1, 1)
        low, high = self.interval
        if points.size and not (low <= points.min() and points.max() <= high):
            raise InputError(
                f"x must be in the interval from {low:g} to {high:g}, got values from {points.min():g} to "
                f"{points.max():g}: ask for the eigenfunctions of a larger interval"
            )
        return np.asarray(self.kernel(points, self._nodes[:, None]) @ self._coef)

    def features(self, x: ArrayLike) -> np.ndarray:  # (n,) to (n, m)
        """Φ(x) = (√λᵢ φᵢ(x)): an explicit map, with ⟨Φ(x), Φ(x')⟩ → k(x, x') as m grows."""
        return self(x) * np.sqrt(self.values)

    @property
    def share(self) -> float:
        """Σᵢ λᵢ / ∫ k(x, x) p(x) dx: how much of the kernel these eigenfunctions hold, at most 1."""
        return float(self.values.sum() / self.trace)


def eigenfunctions(
    kernel: KernelLike,
    interval: tuple[float, float] = (0.0, 1.0),
    count: int = 10,
    *,
    weight: Callable[[np.ndarray], Any] | None = None,
    nodes: int = 512,
) -> Eigenfunctions:
    """The eigenfunctions of a kernel on an interval, those of the ``count`` largest eigenvalues.

    They are fewer where the kernel has fewer, or where the others are below the rounding of the first.

    Parameters
    ----------
    kernel : on vectors, here of one number
    interval : two growing numbers
    count : how many
    weight : p(x) ≥ 0, a function of an array of numbers; by default 1
    nodes : of the rule of integration

    >>> from mercer import Min
    >>> pairs = eigenfunctions(Min(), count=3)  # of Brownian motion: λᵢ = 1/((i - ½)²π²)
    >>> (1 / np.sqrt(pairs.values) / np.pi).round(3)
    array([0.5, 1.5, 2.5])
    >>> pairs([0.5, 1.0]).round(3)  # √2 sin((i - ½)πx)
    array([[ 1.   ,  1.   , -1.   ],
           [ 1.414, -1.414,  1.414]])
    """
    kernel = as_kernel(kernel)
    if not kernel.domain.is_vectors:
        raise InputError(f"an interval is of numbers, and {kernel!r} takes other points")
    if not kernel.is_resolved():
        raise InputError(f"{kernel!r} waits for data: pass numbers for its parameters, or kernel.resolve(X)")
    low, high = float(interval[0]), float(interval[1])
    if not -np.inf < low < high < np.inf:
        raise InputError(f"interval must be two growing numbers, got {interval!r}: pass (0.0, 1.0)")
    whole(10).check("count", count)
    whole(512, minimum=_FEWEST_NODES).check("nodes", nodes)
    coarse = _nystroem(kernel, (low, high), weight, nodes // 2)[0]
    values, vectors, t, w, trace = _nystroem(kernel, (low, high), weight, nodes)
    rounding = nodes * np.finfo(np.float64).eps * float(np.abs(values).max(initial=0.0))
    if values.min() < -rounding:
        raise InputError(
            f"{kernel!r} is not positive definite on this interval, an eigenvalue being {values.min():.3g}: "
            "Mercer's theorem is about kernels that are (mercer.certify tells)"
        )
    m = min(count, int(np.count_nonzero(values > rounding)), nodes // 2)
    values, at_nodes = values[:m], vectors[:, :m] / np.sqrt(w)[:, None]
    is_hill = np.abs(at_nodes) > np.abs(at_nodes).max(axis=0) / 2
    first = np.take_along_axis(at_nodes, is_hill.argmax(axis=0)[None], axis=0)[0]
    at_nodes = at_nodes * np.sign(first)
    errors = np.abs(values - coarse[:m])
    return Eigenfunctions(kernel, (low, high), values, errors, trace, t, w[:, None] * at_nodes / values)


def _nystroem(
    kernel: Kernel, interval: tuple[float, float], weight: Callable[[np.ndarray], Any] | None, nodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Eigenvalues, the largest first, and eigenvectors; nodes and weights; the trace."""
    t, w = np.polynomial.legendre.leggauss(nodes)
    low, high = interval
    t, w = (low + high) / 2 + (high - low) / 2 * t, (high - low) / 2 * w
    if weight is not None:
        p = np.broadcast_to(np.asarray(weight(t), dtype=np.float64), t.shape)
        if not (np.isfinite(p).all() and (p >= 0).all() and p.any()):
            raise InputError(
                f"weight must be finite, at least 0 and not 0 throughout, got values from {p.min():g} to "
                f"{p.max():g}"
            )
        t, w = t[p > 0], (w * p)[p > 0]
    K = np.asarray(kernel(t[:, None]), dtype=np.float64)
    root = np.sqrt(w)
    values, vectors = np.linalg.eigh(root[:, None] * (K + K.T) / 2 * root)
    return values[::-1], vectors[:, ::-1], t, w, float(w @ K.diagonal())
