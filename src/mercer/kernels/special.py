r"""z^ν K_ν(z): the one special function the kernels need (the general Matérn)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

__all__ = ["bessel_product"]


def bessel_product(nu: float, z: Any) -> Any:
    r"""z^ν K_ν(z) for z ≥ 0, with its limit 2^{ν-1} Γ(ν) at z = 0 when ν > 0.

    For ν ≤ 0 the product diverges at 0; there it only ever appears multiplied by z², whose
    limit is 0, so 0 is returned.

    >>> float(bessel_product(0.5, 0.0)).__round__(12) == round((np.pi / 2) ** 0.5, 12)
    True
    """
    z = np.asarray(z, dtype=np.float64)
    at_zero = 2.0 ** (nu - 1) * special.gamma(nu) if nu > 0 else 0.0
    small = z < 1e-290 ** (1 / max(1.0, abs(nu)))  # below this K_nu overflows
    safe = np.where(small, 1.0, z)
    with np.errstate(all="ignore"):
        scaled = np.exp(nu * np.log(safe) - safe) * special.kve(nu, safe)
    return np.where(small, at_zero, scaled)
