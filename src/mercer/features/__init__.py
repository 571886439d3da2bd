"""Explicit feature maps Φ, with ⟨Φ(x), Φ(y)⟩ = k(x, y) exactly or nearly, and their size known beforehand.

A map is a function of a whole table: ``Φ(X)`` has one row per row of X, and ``kernel @ Φ`` is a kernel.
"""

from mercer.features.polynomial import PolynomialMap
from mercer.features.taylor import GaussianTaylorMap

__all__ = ["GaussianTaylorMap", "PolynomialMap"]
