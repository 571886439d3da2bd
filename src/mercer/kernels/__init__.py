"""Kernels: what is similar. One file per family; ``base`` is what they share.

``expression`` holds formulas as trees, ``pair`` the quantities a formula may use, ``program`` and
``source`` turn a kernel into code, ``compose`` is the algebra.
"""

from mercer.kernels.parameters import choice, fixed, nonnegative, positive, real, whole

__all__ = ["choice", "fixed", "nonnegative", "positive", "real", "whole"]
