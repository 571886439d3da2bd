"""Arrays of NumPy, or of the library that a device's arrays are of: the same formula for both.

Solvers do not import that library. An array says of which it is, and where two libraries name a function
otherwise, it is here.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.special import expit as expit_of_scipy


def namespace(x: Any) -> Any:
    """The library that an array is of.

    >>> namespace(np.zeros(1)) is np
    True
    """
    return np if isinstance(x, np.ndarray | np.generic) else sys.modules[type(x).__module__.partition(".")[0]]


def expit(x: Any) -> Any:
    """1/(1 + exp(-x))."""
    xp = namespace(x)
    return expit_of_scipy(x) if xp is np else xp.special.expit(x)


def log_sum_exp(x: Any) -> Any:
    """log(1 + exp x).

    >>> log_sum_exp(np.array([0.0, 1e5])).round(4)
    array([6.9310e-01, 1.0000e+05])
    """
    xp = namespace(x)
    return np.logaddexp(0.0, x) if xp is np else xp.logaddexp(xp.zeros_like(x), x)


def joined(sums: Any, numbers: Any) -> Any:
    """Sums, (m,), with numbers behind them, of the library of the sums.

    >>> joined(np.array([1.0]), 2.0)
    array([1., 2.])
    """
    xp = namespace(sums)
    if xp is np:
        return np.concatenate([sums, np.atleast_1d(numbers)])
    more = sums.new_tensor(numbers) if isinstance(numbers, float) else numbers
    return xp.concatenate([sums, more.reshape(-1)])
