r"""Whether what comes out of a file is as a constructor or a fit would have left it.

A checksum tells a damaged file from a whole one, but anybody can compute one. What does not fit together is
found here, when the file is loaded, and not later by whatever error a prediction happens to end in.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.errors import InputError
from mercer.expansion import Expansion
from mercer.kernels.base import Kernel

__all__ = ["check"]


def check(part: Any) -> None:
    """Refuse a kernel, a function or an estimator that is not whole.

    >>> from mercer import SVC
    >>> model = SVC()
    >>> del model.C
    >>> check(model)
    Traceback (most recent call last):
    mercer.errors.InputError: the file is damaged: its SVC has no C; save the model again
    """
    if isinstance(part, Kernel):
        _check_kernel(part)
    elif isinstance(part, Expansion):
        _require(part, "kernel", "anchors", "coef", "intercept")
        Expansion(part.kernel, part.anchors, part.coef, part.intercept)
    elif isinstance(part, BaseEstimator):
        _require(part, *type(part)._get_param_names())
        _check_fitted(part)


def _require(part: Any, *names: str) -> None:
    missing = [name for name in names if not hasattr(part, name)]
    if missing:
        raise _damaged(part, f"has no {' and no '.join(missing)}")


def _damaged(part: Any, what: str) -> InputError:
    return InputError(f"the file is damaged: its {type(part).__name__} {what}; save the model again")


def _check_kernel(kernel: Kernel) -> None:
    """The checks that the constructor makes."""
    _require(kernel, *kernel._names())
    for name in kernel._names():
        if name in kernel._parameters:
            kernel._parameters[name].check(name, vars(kernel)[name])
    kernel.check()


def _check_fitted(model: Any) -> None:
    """The attributes that predictions of any estimator rely on."""
    found = vars(model)
    kinds: dict[str, Any] = {"n_features_in_": Integral, "classes_": np.ndarray | list}
    if type(model).__module__.startswith("mercer."):
        kinds |= {"kernel_": Kernel, "expansion_": Expansion, "classes_": np.ndarray, "model_": BaseEstimator}
    for name, kind in kinds.items():
        if name in found and not isinstance(found[name], kind):
            raise _damaged(model, f"has a {type(found[name]).__name__} as {name}")
    f, width = found.get("expansion_"), found.get("n_features_in_")
    shape: tuple[int, ...] = getattr(f.anchors, "shape", ()) if isinstance(f, Expansion) else ()
    is_direct = found.get("features_") is None  # else the points are what the features make of the columns
    if width is not None and is_direct and len(shape) == 2 and width != shape[1]:
        raise _damaged(model, f"was fitted to {width} columns, and its points have {shape[1]}")
