"""Kernels by the names scikit-learn users write: strings are converted at the door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.objects import FromFunction, Precomputed
from mercer.kernels.vectors.dotproduct import Cosine, Linear, Polynomial, Sigmoid
from mercer.kernels.vectors.histogram import ChiSquared, Min
from mercer.kernels.vectors.stationary import Gaussian, Laplacian

#: what stands for a kernel: the object, a name such as "rbf" or "precomputed", or a function of two points
KernelLike: TypeAlias = "Kernel | str | Callable[..., float]"

NAMES: dict[str, Callable[[Any, Any, Any], Kernel]] = {
    "linear": lambda gamma, degree, coef0: Linear(),
    "rbf": lambda gamma, degree, coef0: Gaussian(gamma=gamma),
    "gaussian": lambda gamma, degree, coef0: Gaussian(gamma=gamma),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, coef0, gamma),
    "polynomial": lambda gamma, degree, coef0: Polynomial(degree, coef0, gamma),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(gamma, coef0),
    "laplacian": lambda gamma, degree, coef0: Laplacian(gamma, norm=1),
    "cosine": lambda gamma, degree, coef0: Cosine(),
    "chi2": lambda gamma, degree, coef0: ChiSquared(1.0 if isinstance(gamma, str) else gamma),
    "min": lambda gamma, degree, coef0: Min(),
    "precomputed": lambda gamma, degree, coef0: Precomputed(),
}


def as_kernel(kernel: KernelLike, gamma: Any = "scale", degree: int = 3, coef0: float = 0.0) -> Kernel:
    """A kernel object from an object, a scikit-learn-style string, or a function of two points.

    >>> as_kernel("rbf", gamma=0.5)
    Gaussian(gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if gamma is None:  # scikit-learn's kernel functions take None so.
        gamma = "auto"
    if isinstance(kernel, str) and kernel in NAMES:
        return NAMES[kernel](gamma, degree, coef0)
    if callable(kernel) and not isinstance(kernel, type):
        return FromFunction(kernel)
    raise InputError(
        f"kernel must be a Kernel such as Gaussian(sigma=1.0), or one of {', '.join(map(repr, NAMES))}, "
        f"got {kernel!r}"
    )
