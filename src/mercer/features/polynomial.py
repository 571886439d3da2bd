"""The exact feature map of the polynomial kernel: all monomials, with √multinomial weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.types import Points
from mercer.features.base import FeatureMap
from mercer.features.monomials import REMEDY, count, exponents, homogeneous, monomial, require_names
from mercer.kernels.parameters import nonnegative, whole


@dataclass(unsafe_hash=True)
class PolynomialMap(FeatureMap):
    r"""Φ with ⟨Φ(x), Φ(y)⟩ = (⟨x, y⟩ + c)^d exactly.

    c is one more coordinate √c of every point, so that (⟨x, y⟩ + c)^d = ⟨(√c, x), (√c, y)⟩^d, and

        Φ(x) = ( √(d! / ((d−|a|)! a!)) · c^((d−|a|)/2) · x^a ),    |a| ≤ d  (|a| = d when c = 0).

    The features are in graded order, the lowest degree first and x₁ before x₂ within a degree, as in
    scikit-learn's ``PolynomialFeatures``: (x₁², √2x₁x₂, x₂²) for c = 0, d = 2 in ℝ². (Texts that write the
    inhomogeneous map as [x₁², x₂², √2x₁x₂, √2x₁, √2x₂, 1] list the same features in another order.)

    There are C(d+m−1, d) of them for c = 0 and C(d+m, d) otherwise: ask ``n_features(m)`` first. A map
    that does not fit the memory budget is refused; the kernel (⟨x, y⟩ + c)^d itself costs one product.

    >>> Phi = PolynomialMap(2, c=1.0)
    >>> Phi.n_features(2), Phi.feature_names(["x1", "x2"])
    (6, ['1', '√2 x1', '√2 x2', 'x1^2', '√2 x1 x2', 'x2^2'])
    >>> Phi(np.array([[1.0, 2.0]])) @ Phi(np.array([[3.0, -1.0]])).T  # (1·3 − 2·1 + 1)²
    array([[4.]])
    >>> PolynomialMap(6).n_features(100)
    1609344100

    It is a function of a whole table, and a step of a scikit-learn pipeline:

    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> x, y = [[-1.0], [0.0], [1.0], [2.0]], [1.0, 0.0, 1.0, 4.0]
    >>> make_pipeline(PolynomialMap(2, c=1.0), LinearRegression()).fit(x, y).predict([[3.0]]).round(6)
    array([9.])
    """

    _remedy = REMEDY

    degree: int = 2
    c: float = 0.0

    def check(self) -> None:
        whole(2).check("degree", self.degree)
        nonnegative().check("c", self.c)

    def n_features(self, m: int) -> int:
        self.check()
        return count(self._variables(m), int(self.degree))

    def __call__(self, X: Points) -> NDArray[np.floating[Any]]:
        """Φ(x) for each row of X: (n, m) to (n, n_features(m))."""
        points = self._prepare(X)
        if self.c > 0:
            offset = np.full((len(points), 1), math.sqrt(self.c), dtype=points.dtype)
            points = np.hstack([offset, points])
        return homogeneous(points, int(self.degree))

    def feature_names(self, names: Sequence[str]) -> list[str]:
        """Each feature as text, from the names of the columns.

        >>> PolynomialMap(3).feature_names(["u", "v"])
        ['u^3', '√3 u^2 v', '√3 u v^2', 'v^3']
        """
        require_names(names, self.n_features(len(names)))
        return [
            self._name(a, names) for a in exponents(self._variables(len(names)), int(self.degree)).tolist()
        ]

    def _variables(self, m: int) -> int:
        return m + 1 if self.c > 0 else m

    def _name(self, a: list[int], names: Sequence[str]) -> str:
        squared: float = math.factorial(int(self.degree)) // math.prod(map(math.factorial, a))
        if self.c > 0:
            squared *= self.c ** a[0]
            a = a[1:]
        factors = monomial(a, names)
        return " ".join([*_root(squared, lonely=not factors), *factors])


def _root(squared: float, lonely: bool) -> list[str]:
    """√squared as a factor: nothing for 1 unless it stands alone, a whole root, √k, or a decimal."""
    root = math.sqrt(squared)
    if root == int(root):
        return [str(int(root))] if root != 1 or lonely else []
    return [f"√{int(squared)}" if squared == int(squared) else f"{root:.6g}"]
