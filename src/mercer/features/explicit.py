r"""Kernels with few features: k(x, y) = ⟨Φ(x), Φ(y)⟩ with a Φ that can be computed.

>>> from mercer import Linear, Polynomial
>>> explicit_size(Linear(), 3), explicit_size(Polynomial(2, c=1.0), 3)
(3, 10)
>>> Phi = explicit_features(Polynomial(2, c=1.0, gamma=0.5), np.array([[1.0, 2.0]]))
>>> Phi @ Phi.T, Polynomial(2, c=1.0, gamma=0.5)([[1.0, 2.0]])
(array([[12.25]]), array([[12.25]]))
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data.sparse import dense
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.features.polynomial import PolynomialMap
from mercer.kernels.base import Kernel
from mercer.kernels.vectors.dotproduct import Linear, Polynomial


def explicit_size(kernel: Kernel, n_columns: int) -> int | None:
    """The number of features of a kernel on points with so many columns; None when no map is known."""
    if type(kernel) is Linear:
        return n_columns
    if type(kernel) is Polynomial:
        return kernel.n_monomials(n_columns)
    return None


def explicit_features(kernel: Kernel, X: Points) -> Any:  # (n, features)
    """Φ(x) for each row of X: a CSR array where X is one and Φ is the identity."""
    if type(kernel) is Linear:
        return X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if type(kernel) is Polynomial:
        scaled = math.sqrt(kernel.gamma) * np.asarray(dense(X), dtype=np.float64)
        return PolynomialMap(int(kernel.degree), float(kernel.c))(scaled)
    raise InputError(f"no explicit features are known for {kernel!r}: it has them for Linear and Polynomial")
