"""Kernels: what is similar. A folder for each kind of object, a file for each family.

``base`` is what all kernels share, ``compose`` the algebra, and ``formula`` leads from Python to code.
"""

import sys

from mercer.kernels.formula import expression
from mercer.kernels.parameters import choice, fixed, nonnegative, positive, real, whole

__all__ = ["choice", "fixed", "nonnegative", "positive", "real", "whole"]

# Users' own kernels take exp, sqrt and the other functions of a formula from here.
sys.modules[f"{__name__}.expression"] = expression
