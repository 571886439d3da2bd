r"""Losses L(y, f), by name or the user's own.

>>> as_loss("huber", delta=2.0)
Huber(delta=2.0)
>>> sorted(Loss.registry)
['absolute', 'epsilon_insensitive', 'hinge', 'huber', 'logistic', 'poisson', 'quantile', 'squared',
 'squared_epsilon_insensitive', 'squared_hinge']
"""

from __future__ import annotations

from copy import copy
from difflib import get_close_matches
from typing import Any

from mercer.errors import InputError, InputTypeError
from mercer.losses.base import Loss
from mercer.losses.margin import Hinge, Logistic, SquaredHinge
from mercer.losses.own import OwnLoss
from mercer.losses.target import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    Poisson,
    Quantile,
    Squared,
    SquaredEpsilonInsensitive,
)

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "OwnLoss",
    "Poisson",
    "Quantile",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "as_loss",
]


def as_loss(given: Any, **parameters: Any) -> Loss:
    """A loss from its name, an object or a function.

    Parameters
    ----------
    given : a name of ``Loss.registry``; a Loss; a function L(y, f) of arrays; a pair of functions (L, L');
        or an object with ``value``, and perhaps ``derivative``, ``curvature`` and ``smooth``
    parameters : for losses by name (epsilon, delta, quantile); those that the loss does not have are left out

    >>> as_loss("hinges")
    Traceback (most recent call last):
    mercer.errors.InputError: loss is not a known name, got 'hinges': did you mean 'hinge'?
    """
    if isinstance(given, str):
        if given not in Loss.registry:
            near = get_close_matches(given, Loss.registry, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"pass one of {', '.join(sorted(Loss.registry))}"
            raise InputError(f"loss is not a known name, got {given!r}: {hint}")
        kind = Loss.registry[given]
        return kind(**{name: value for name, value in parameters.items() if name in kind.parameters})
    if isinstance(given, type):
        raise InputTypeError(
            f"loss must be an object, got the class {given.__name__}: pass {given.__name__}()"
        )
    if isinstance(given, Loss):
        return copy(given)  # The check of the targets writes into it.
    if isinstance(given, tuple) and len(given) == 2:
        return OwnLoss(*given)
    if hasattr(given, "value"):
        more = {name: getattr(given, name, None) for name in ("derivative", "curvature", "smooth")}
        return OwnLoss(given.value, **more)
    if callable(given):
        return OwnLoss(given)
    raise InputTypeError(
        f"loss must be a name, a Loss or a function of (y, f), got {given!r}: pass one of "
        f"{', '.join(sorted(Loss.registry))}, or a function"
    )
