r"""The one special function the kernels need: the shape of the general Matérn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special


def matern_shape(nu: float, z: Any) -> Any:
    r"""2^{1-ν}/Γ(ν) · z^ν K_ν(z) for ν > 0, which is 1 at z = 0; for ν ≤ 0 plainly z^ν K_ν(z).

    Orders ν ≤ 0 come up in derivatives, always multiplied by z²: that product is 0 at z = 0, where
    K_ν itself is infinite, so 0 is returned there.

    >>> matern_shape(0.5, [0.0, 1.0, 2.0]).round(6)  # exp(-z)
    array([1.      , 0.367879, 0.135335])
    """
    z = np.asarray(z, dtype=np.float64)
    scale = (1 - nu) * np.log(2.0) - special.gammaln(nu) if nu > 0 else 0.0
    small = z < 1e-290
    safe = np.where(small, 1.0, z)
    with np.errstate(all="ignore"):
        scaled = np.exp(nu * np.log(safe) - safe + scale + np.log(special.kve(nu, safe)))
    # Where K_ν overflows although z^ν K_ν(z) does not, z² is far below 4ν: Σ_k (-z²/4)^k / k!(ν-1)…(ν-k).
    series = term = np.ones_like(z)
    for k in range(1, min(10, math.ceil(nu))):
        term = term * (-safe * safe / (4 * k * (nu - k)))
        series = series + term
    series = np.where(z > 1e8, 0.0, series)  # There SciPy has no K_ν, because it is too small.
    return np.where(small, 1.0 if nu > 0 else 0.0, np.where(np.isfinite(scaled), scaled, series))
