r"""Kernels as scikit-learn's users name them: its pairwise functions, with their parameters and defaults."""

from __future__ import annotations

from functools import partial
from typing import Any

from mercer.data.scalars import is_number
from mercer.kernels.base import Kernel
from mercer.kernels.names import NAMES, as_kernel


def counterpart(
    metric: Any, gamma: Any = None, degree: Any = 3, coef0: Any = 1, params: dict[str, Any] | None = None
) -> Kernel:
    """The kernel of mercer that is scikit-learn's ``pairwise_kernels(metric=…)``.

    ``params`` are arguments of a function of two points. For γ, None is 1 over the number of columns.

    >>> counterpart("rbf", gamma=0.5), counterpart("poly")
    (Gaussian(gamma=0.5), Polynomial(degree=3, c=1, gamma='auto'))
    """
    if callable(metric) and params:
        metric = partial(metric, **params)
    if is_number(degree) and degree == int(degree):
        degree = int(degree)
    return as_kernel(metric, gamma, degree, coef0)


def unknown(metric: Any, gamma: Any = None, degree: Any = 3, coef0: Any = 1) -> str | None:
    """Why mercer has no such kernel; None where it has.

    >>> unknown("poly", degree=2.5)
    'mercer has no polynomial kernel with degree=2.5, which must be a whole number of at least 1'
    """
    if callable(metric):
        return None
    if metric not in NAMES:
        return f"mercer has no kernel {metric!r}, which is none: it is positive definite on differences alone"
    if metric in ("poly", "polynomial"):
        if degree != int(degree) or degree < 1:
            return (
                f"mercer has no polynomial kernel with degree={degree!r}, which must be a whole number of "
                "at least 1"
            )
        if coef0 < 0:
            return f"mercer has no polynomial kernel with coef0={coef0!r}: it is not positive definite"
    uses_gamma = metric in ("rbf", "poly", "polynomial", "sigmoid", "laplacian", "chi2")
    if uses_gamma and gamma == 0:
        return f"with gamma=0 the kernel {metric!r} is the same for all points"
    return None
