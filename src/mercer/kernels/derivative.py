r"""∂k/∂θ as a kernel expression of its own: the same Gram engine computes it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.compose import _Unary
from mercer.kernels.expression import Expression
from mercer.kernels.pair import Pair, ParameterLeaf, Scaling, View, derivative, scale_derivative
from mercer.kernels.parameters import fixed, is_vector

__all__ = ["Derivative"]

_NAME = re.compile(r"(?P<path>[^\[\]]+)(\[(?P<index>\d+)\])?$")


class Derivative(_Unary):
    """The derivative of a kernel with respect to one of its parameters.

    >>> from mercer import Gaussian
    >>> Gaussian(sigma=2.0).derivative("sigma")([[0.0]], [[1.0]]).round(6)  # k · d²/σ³
    array([[0.110312]])
    """

    kernel: Kernel = fixed(None)
    name: str = fixed(
        "", "a parameter's name", lambda v: isinstance(v, str) and bool(_NAME.match(v)), "'sigma'"
    )

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        match = _NAME.match(self.name)
        assert match is not None
        path = tuple(match["path"].split("__"))
        *down, last = path
        owner: Any = self.kernel
        for step in down:
            owner = owner.children().get(step) if isinstance(owner, Kernel) else None
        if not isinstance(owner, Kernel) or last not in owner._names():
            allowed = ", ".join(n for n, v in self.kernel.get_params().items() if not isinstance(v, Kernel))
            raise InputError(f"{self.kernel!r} has no parameter {self.name!r}: it has {allowed}")
        value = vars(owner)[last]
        whole = self.kernel.expression(pair)
        if is_vector(value):
            return self._per_column(whole, owner, last, value, match["index"])
        if value is None:
            raise InputError(
                f"{last} of {owner!r} is not given: differentiate with respect to the one that is"
            )
        return derivative(whole, ParameterLeaf((*pair.path, *path), float(value)))

    def _per_column(self, whole: Expression, owner: Kernel, name: str, value: Any, index: Any) -> Expression:
        if index is None or int(index) >= len(value):
            raise InputError(f"{name} has one value per column: ask for {name}[0] … {name}[{len(value) - 1}]")
        column = int(index)
        scales = np.asarray(value, dtype=float)
        power = owner._parameters[name].per_column
        assert power is not None
        scaling = Scaling(tuple((scales**power).tolist()))
        views = (getattr(leaf, "view", View()) for leaf in whole.leaves())
        view = next(view for view in views if scaling in view.steps)
        return scale_derivative(whole, view, column) * float(power / scales[column])
