"""The Gaussian kernel's own feature map: the Taylor series of exp, cut off with a known error."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.features.base import FeatureMap
from mercer.features.monomials import REMEDY, count, exponents, grow, monomial, require_names
from mercer.kernels.parameters import nonnegative, positive, whole


@dataclass(unsafe_hash=True)
class GaussianTaylorMap(FeatureMap):
    r"""Φ with ⟨Φ(x), Φ(y)⟩ ≈ exp(−‖x−y‖²/2σ²): the monomials of degree at most ``order``.

    exp(−‖x−y‖²/2σ²) = e^(−‖x‖²/2σ²) e^(−‖y‖²/2σ²) Σ_k ⟨x, y⟩^k / (σ^2k k!), and each ⟨x, y⟩^k has the
    √multinomial map, so

        Φ(x) = e^(−‖x‖²/2σ²) · ( √(|a|!/a!) x^a / (σ^|a| √|a|!) ),    |a| ≤ order,

    lowest degree first; in ℝ: e^(−x²/2σ²) · [1, x/(σ√1!), x²/(σ²√2!), …].

    **How it is computed.** With x = ‖x‖u the features of degree k are √p_k · √(k!/a!) u^a, where
    p_k = e^(−λ) λ^k / k! is the Poisson probability of k for λ = ‖x‖²/σ², and the vector
    (√(k!/a!) u^a) has length ⟨u, u⟩^(k/2) = 1: nothing overflows, however large x or the order.

    **Its error.** What is cut off is ⟨T(x), T(y)⟩ with T the features of degree > order, and ‖T(x)‖² =
    Σ_{k>order} p_k = P(Poisson(‖x‖²/σ²) > order), which grows with ‖x‖. By Cauchy-Schwarz, for ‖x‖, ‖y‖ ≤ R,

        |k(x, y) − ⟨Φ(x), Φ(y)⟩| ≤ P(Poisson(R²/σ²) > order),

    with equality at x = y, ‖x‖ = R. Centre the data, and see ``truncation_error`` and ``order_for``.

    >>> Phi = GaussianTaylorMap(sigma=1.0, order=8)
    >>> Phi.n_features(2)
    45
    >>> x, y = np.array([[0.5, 0.2]]), np.array([[-0.3, 0.4]])
    >>> float((Phi(x) @ Phi(y).T)[0, 0]), float(np.exp(-np.sum((x - y) ** 2) / 2))
    (0.71177032..., 0.71177032...)
    >>> Phi.truncation_error(radius=1.0)
    1.1252e-06
    >>> GaussianTaylorMap.order_for(sigma=1.0, radius=1.0, tol=1e-5)
    8
    """

    _remedy = REMEDY

    sigma: float = 1.0
    order: int = 4

    def check(self) -> None:
        positive().check("sigma", self.sigma)
        whole(4, minimum=0).check("order", self.order)

    def n_features(self, m: int) -> int:
        self.check()
        return math.comb(m + int(self.order), m)

    def __call__(self, X: Points) -> NDArray[np.floating[Any]]:
        """Φ(x) for each row of X: (n, m) to (n, n_features(m))."""
        from scipy.special import gammaln, xlogy

        points = self._prepare(X)
        n, m = points.shape
        degrees = range(int(self.order) + 1)
        features = np.empty((n, self.n_features(m)), dtype=points.dtype)
        blocks = np.split(features, np.cumsum([count(m, k) for k in degrees])[:-1], axis=1)  # views

        with np.errstate(over="ignore"):
            length = np.hypot.reduce(np.abs(points), axis=1, dtype=np.float64)  # (n,)
            # Beyond this every feature is 0; the bound avoids 0 · ∞.
            ratio = np.minimum(length / self.sigma, 1e100)
        direction = (points / np.where(length > 0, length, 1.0)[:, None]).astype(points.dtype, copy=False)

        blocks[0][:] = 1.0
        for k in degrees[1:]:
            grow(blocks[k - 1], direction, k, out=blocks[k])
        for k in degrees:
            # This is the root of a Poisson probability.
            root_p = np.exp(xlogy(k, ratio) - gammaln(k + 1) / 2 - ratio**2 / 2)
            blocks[k] *= root_p[:, None].astype(points.dtype, copy=False)
        return features

    def feature_names(self, names: Sequence[str]) -> list[str]:
        """Each feature as text, from the names of the columns, with its weight 1/(σ^|a| √a!).

        >>> GaussianTaylorMap(sigma=2.0, order=2).feature_names(["u"])
        ['exp(-|x|^2/8)', '0.5 u exp(-|x|^2/8)', '0.176777 u^2 exp(-|x|^2/8)']
        """
        require_names(names, self.n_features(len(names)))
        bell = f"exp(-|x|^2/{2 * self.sigma**2:g})"
        texts = []
        for degree in range(int(self.order) + 1):
            for a in exponents(len(names), degree).tolist():
                weight = self.sigma**-degree / math.sqrt(math.prod(map(math.factorial, a)))
                size = [] if weight == 1 else [f"{weight:.6g}"]
                texts.append(" ".join([*size, *monomial(a, names), bell]))
        return texts

    def truncation_error(self, radius: float) -> float:
        """sup |k(x, y) − ⟨Φ(x), Φ(y)⟩| over ‖x‖, ‖y‖ ≤ radius: P(Poisson(radius²/σ²) > order).

        It is the regularised incomplete gamma function P(order + 1, radius²/σ²).

        >>> GaussianTaylorMap(sigma=2.0, order=0).truncation_error(2.0)  # 1 − e⁻¹
        0.6321205588
        """
        from scipy.special import gammainc

        self.check()
        nonnegative().check("radius", radius)
        return float(gammainc(int(self.order) + 1, (radius / self.sigma) * (radius / self.sigma)))

    @classmethod
    def order_for(cls, sigma: float, radius: float, tol: float) -> int:
        """The smallest order whose truncation error on the ball of this radius is at most ``tol``.

        >>> [GaussianTaylorMap.order_for(sigma=1.0, radius=r, tol=1e-6) for r in (0.5, 1.0, 3.0)]
        [5, 9, 26]
        """
        nonnegative().check("radius", radius)
        positive().check("tol", tol)
        positive().check("sigma", sigma)
        if radius / sigma > 1e6:  # The order would be about (radius/σ)².
            raise InputError(
                f"radius / sigma must be at most 1e6, got {radius / sigma:.3g}: no map of a sensible "
                "size reaches that far; centre and scale the data, or use random features"
            )

        def enough(order: int) -> bool:
            return cls(sigma, order).truncation_error(radius) <= tol

        high = 1
        while not enough(high):
            high *= 2
        return bisect_left(range(high), True, key=enough)
