r"""What a loss states about itself: value, derivative, curvature, conjugate, proximal map, smoothness.

    L(y, f)       the price of the value f where y was wanted; convex in f
    L'(y, f)      its derivative, a subgradient at a kink
    L''(y, f)     its second derivative, 0 where there is none
    L*(y, s)      = sup_f s f − L(y, f), the conjugate: infinite outside ``domain(y)``
    prox_t(y, u)  = argmin_z t L(y, z) + ½ (z − u)²

Weights and a quadratic term of another size reduce to that: argmin_z w L(y, z) + (σ/2)(z − u)² is
prox_{w/σ}(y, u). Fenchel and Young: L(y, f) + L*(y, s) ≥ s f, with equality exactly when s is a subgradient
at f; every certificate of the solvers is that line, summed over the points.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mercer.data.types import Reals
from mercer.errors import InputError, shown


class Loss:
    """A convex loss; all methods work on arrays, entry by entry. See the module for the formulas.

    A class with a ``name`` is registered under it. ``parameters`` are the arguments of its constructor.
    """

    registry: ClassVar[dict[str, type[Loss]]] = {}
    name: ClassVar[str] = ""
    parameters: ClassVar[tuple[str, ...]] = ()
    #: whether it takes labels y = ±1 (as a function of the margin y f), and whether it takes any real target
    for_labels: ClassVar[bool] = False
    for_targets: ClassVar[bool] = False
    #: whether L' is continuous; the curvature may jump all the same (Huber)
    smooth: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            Loss.registry[cls.name] = cls

    def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """L(y, f)."""
        raise NotImplementedError

    def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """L'(y, f), a subgradient at a kink."""
        raise NotImplementedError

    def curvature(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """L''(y, f), 0 where there is none."""
        raise NotImplementedError

    def conjugate(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """L*(y, s), infinite outside the domain."""
        raise NotImplementedError

    def domain(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest s with L*(y, s) < ∞."""
        raise NotImplementedError

    def prox(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        """argmin_z t L(y, z) + ½ (z − u)²."""
        raise NotImplementedError

    def prox_slope(self, y: np.ndarray, u: np.ndarray, t: Reals) -> np.ndarray:
        """d prox_t(y, u) / du, between 0 and 1; one of its limits where it jumps."""
        raise NotImplementedError

    def check_targets(self, y: np.ndarray) -> None:
        """Refuse targets for which the loss makes no sense."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.parameters)
        return f"{type(self).__name__}({shown})"


def within(s: np.ndarray, low: Reals, high: Reals, value: np.ndarray) -> np.ndarray:
    """The value where low ≤ s ≤ high, else infinity: the usual shape of a conjugate."""
    return np.where((s >= low) & (s <= high), value, np.inf)


def require(name: str, value: Any, accepts: bool, what: str) -> float:
    """The value of a parameter, or what is wrong with it."""
    if not accepts:
        raise InputError(f"{name} must be {what}, got {shown(value)}: pass such a number")
    return float(value)
