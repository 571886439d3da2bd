"""Explicit feature maps Φ: of kernels, with their size known beforehand, and hand-made ones.

A map is a function of a whole table: ``Φ(X)`` has one row per row of X, and ``kernel @ Φ`` is a kernel.
``PolynomialMap`` and ``GaussianTaylorMap`` have ⟨Φ(x), Φ(y)⟩ = k(x, y), exactly or nearly; so have the
``eigenfunctions`` of a kernel on an interval (Mercer). ``PolarMap``, ``InkFeatures`` and ``color_histogram``
are made by hand, for spirals, for drawn characters and for images.
"""

from mercer.features.colors import color_histogram
from mercer.features.ink import InkFeatures
from mercer.features.mercer_expansion import eigenfunctions
from mercer.features.polar import PolarMap
from mercer.features.polynomial import PolynomialMap
from mercer.features.taylor import GaussianTaylorMap

__all__ = [
    "GaussianTaylorMap",
    "InkFeatures",
    "PolarMap",
    "PolynomialMap",
    "color_histogram",
    "eigenfunctions",
]
