r"""What one may ask about: a kernel, its name, a line of text, a function of two points, a function φ(r).

A function of one argument is φ in k(x, x') = φ(‖x - x'‖), a function that takes two is k itself. φ is called
with a formula first. Where that works, and gives the same numbers as φ does, the formula can be reasoned
about; where it does not (an ``if``, a table, a function of another library), φ is a function that is only
sampled, and nothing is ever proved about it.

>>> as_asked(lambda r: np.exp(-r))
φ(‖x - x'‖), φ = <lambda>
>>> as_asked("2*gaussian(sigma=1) + polynomial(3)")
2 * Gaussian(sigma=1) + Polynomial(degree=3, c=1.0)

A text in r that names no kernel is φ(r):

>>> as_asked("max(1 - r, 0)")
φ(‖x - x'‖), φ = max(1 - r, 0)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.formula.calculus import evaluate
from mercer.kernels.formula.expression import Expression, sqrt, wrap
from mercer.kernels.formula.pair import Pair
from mercer.kernels.formula.typed import FUNCTIONS, names_in, typed_profile
from mercer.kernels.names import NAMES, KernelLike, as_kernel
from mercer.kernels.parameters import fixed, text

_SQUARES = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 101)])  # squared distances at which φ is compared
#: A formula and φ may differ by this share of the largest value, because their operations have another order.
_SAME_WITHIN = 1e-9


def as_asked(kernel: KernelLike) -> Kernel:
    """The kernel that is meant."""
    if isinstance(kernel, str) and kernel not in NAMES:
        return as_typed(kernel)
    if callable(kernel) and not isinstance(kernel, Kernel | type) and _takes_one(kernel):
        formula, sampled = OfDistance(kernel), Sampled(kernel)
        values = sampled.profile(np.sqrt(_SQUARES))  # This refuses a function that gives no numbers.
        return formula if formula.is_faithful(values) else sampled
    return as_kernel(kernel)


def as_typed(text: str) -> Kernel:
    """What a line of text asks about: φ(r), or an expression of kernels that need not be a kernel."""
    from mercer.kernels.parse import parse_kernel

    if is_profile(text):
        return OfDistance(typed_profile(text))
    return parse_kernel(text, follow_data=False, signs=True)


def is_profile(text: str) -> bool:
    """Whether a text speaks of the distance r, and of no kernel: φ(r).

    >>> is_profile("exp(-r)"), is_profile("gaussian(1).on(r)"), is_profile("exp(linear)")
    (True, False, False)
    """
    from mercer.kernels.parse import kernel_names

    names = names_in(text)
    kernels = kernel_names()
    return "r" in names and not any(n.lower().replace("_", "") in kernels for n in names - FUNCTIONS)


def _takes_one(function: Callable[..., Any]) -> bool:
    """Whether a function takes exactly one argument by position."""
    if isinstance(function, np.ufunc):
        return function.nin == 1
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # Some functions written in C do not tell their arguments.
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    is_open = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    return not is_open and sum(p.kind in positional for p in parameters) == 1


class _Profiled(Kernel, abstract=True):
    """k(x, x') = φ(‖x - x'‖), φ a Python function of one number."""

    function: Any = fixed(None, "a function of the distance", callable, "φ such that φ(r) is a number")

    def __repr__(self) -> str:
        return f"φ(‖x - x'‖), φ = {text(self.function)}"

    def profile(self, r: ArrayLike) -> np.ndarray:
        """φ(r), of a whole array at once where φ allows it."""
        r = np.asarray(r, dtype=float)
        with np.errstate(all="ignore"):
            try:
                values = np.asarray(self.function(r), dtype=float)
                if values.shape == r.shape:
                    return values
            except Exception:  # φ may be a function of single numbers, which may raise anything for arrays.
                pass
            return np.array([self._value(x) for x in r.ravel()]).reshape(r.shape)

    def _value(self, r: np.floating[Any]) -> float:
        value = self.function(float(r))
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(f"φ(r) must be a number, got {value!r} for r = {float(r):.6g}") from None


class OfDistance(_Profiled, abstract=True):
    """φ as a formula, which it gives when it is called with one."""

    def formula(self, pair: Pair) -> Expression:
        return self.function(sqrt(pair.sqdist))

    def is_faithful(self, true: np.ndarray) -> bool:
        """Whether φ can be called with a formula, and gives one that has the true values of φ."""
        try:
            formula = wrap(self.formula(Pair()))
        except Exception:  # φ is the user's, and may raise anything.
            return False
        with np.errstate(all="ignore"):
            values = evaluate(formula, lambda leaf: getattr(leaf, "value", _SQUARES))
        size = abs(true[np.isfinite(true)]).max(initial=0.0)
        return bool(np.allclose(values, true, rtol=0, atol=_SAME_WITHIN * size, equal_nan=True))


class Sampled(_Profiled, abstract=True):
    """φ as a function of which only values are known."""

    def expression(self, pair: Pair | None = None) -> Expression:
        return (pair or Pair()).external(self)

    def pairs(self, X: Points, Y: Points | None) -> np.ndarray:  # (n, m)
        X = np.asarray(X, dtype=float)
        return self.profile(cdist(X, X if Y is None else np.asarray(Y, dtype=float)))

    def self_pairs(self, X: Points) -> np.ndarray:  # (n,)
        return self.profile(np.zeros(len(X)))
