r"""∂k/∂θ as a kernel expression of its own: the same Gram engine computes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.compose import _Unary
from mercer.kernels.formula.calculus import differentiate
from mercer.kernels.formula.expression import Expression, Number, absolute
from mercer.kernels.formula.pair import A, B, Pair, ParameterLeaf, Quantity, derivative, scale_derivative
from mercer.kernels.formula.program import program_of
from mercer.kernels.parameters import fixed, is_vector

_NAME = re.compile(r"(?P<path>.*[^\]])(\[(?P<index>\d+)\])?$")


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

    @property
    def holds_numbers_as_leaves(self) -> bool:  # type: ignore[override]
        """Unless it is one of several length scales: then 1/θⱼ is a number of the formula."""
        return not self.name.endswith("]")

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        match = _NAME.match(self.name)
        assert match is not None
        owner, down, last = _owner(self.kernel, match["path"])
        parameter = owner.parameters.get(last) if _has_formula(owner) else None
        if parameter is None or not parameter.is_continuous(vars(owner)[last]):
            raise InputError(
                f"{self.kernel!r} has no derivative by {self.name!r}: "
                f"it can be differentiated by {', '.join(differentiable(self.kernel)) or 'nothing'}"
            )
        value, path = vars(owner)[last], (*pair.path, "kernel", *down, last)
        if value is None:
            raise InputError(f"{last} of {owner!r} is not given: differentiate by the one that is")
        if not is_vector(value):
            return derivative(self.inner(pair), ParameterLeaf(path, float(value)))
        if match["index"] is None or int(match["index"]) >= len(value):
            raise InputError(f"{last} has one value per column: ask for {last}[0] … {last}[{len(value) - 1}]")
        column = int(match["index"])
        assert parameter.per_column is not None
        rate = float(parameter.per_column / np.asarray(value, dtype=float)[column])  # d log s / dθ
        return scale_derivative(self.inner(pair), path, column) * rate


class DistanceSlope(_Unary, abstract=True):
    r"""κ'(s) of a kernel κ(s), s = Σⱼ (zⱼ - z'ⱼ)² or Σⱼ |zⱼ - z'ⱼ|, zⱼ = θⱼ^p xⱼ, one θ per column.

    Every ∂k/∂ log θⱼ, 2p κ'(s) (zⱼ - z'ⱼ)² or p κ'(s) |zⱼ - z'ⱼ|, comes from this one matrix. ``of`` a kernel
    that is not of this form is None.

    >>> from mercer import Gaussian
    >>> DistanceSlope.of(Gaussian(sigma=[2.0]), "sigma")([[0.0]], [[2.0]]).round(6)  # -k/2, s = 1
    array([[-0.303265]])
    """

    kernel: Kernel = fixed(None)
    holds_numbers_as_leaves = True

    @classmethod
    def of(cls, kernel: Kernel, name: str) -> DistanceSlope | None:
        """The slope of a kernel whose parameter ``name``, one value per column, scales all its columns."""
        leaf = _distance_plane(kernel)
        if leaf is None or [getattr(step, "path", None) for step in leaf.view.steps] != [(name,)]:
            return None
        return cls(kernel)

    @property
    def is_squared(self) -> bool:
        """Whether s is the sum of the squares."""
        leaf = _distance_plane(self.kernel)
        return leaf is not None and leaf.kind == "sqdist"

    def expression(self, pair: Pair | None = None) -> Expression:
        inner = self.inner(pair or Pair())
        leaf = _distance(inner)
        assert leaf is not None
        return differentiate(inner, leaf)


def _distance_plane(kernel: Kernel) -> Quantity | None:
    """What `_distance` finds, read off the program, which is remembered."""
    program = program_of(kernel.__sklearn_clone__())
    return _distance(program.planes[0]) if len(program.planes) == 1 and not program.left else None


def _distance(expression: Expression) -> Quantity | None:
    """Σⱼ (zⱼ - z'ⱼ)² or Σⱼ |zⱼ - z'ⱼ|, if the formula depends on the points by nothing else."""
    quantities = {leaf for leaf in expression.leaves() if not isinstance(leaf, Number | ParameterLeaf)}
    leaf = quantities.pop() if len(quantities) == 1 else None
    if not isinstance(leaf, Quantity):
        return None
    return leaf if leaf.kind == "sqdist" or (leaf.kind == "sum" and leaf.term == absolute(A - B)) else None


def _owner(kernel: Kernel, name: str) -> tuple[Kernel, list[str], str]:
    """The kernel that a nested name leads to, the way there, and the rest of the name.

    Names of parts are looked up, not cut: that of a column may hold two underscores.
    """
    down: list[str] = []
    while True:
        steps = [step for step in kernel.children() if name.startswith(f"{step}__")]
        if not steps or not _has_formula(kernel):
            return kernel, down, name
        step = max(steps, key=len)
        kernel, name = kernel.children()[step], name[len(step) + 2 :]
        down.append(step)


def _has_formula(kernel: Kernel) -> bool:
    """Whether its values are worked out by a formula, not counted or compared outside of any."""
    return not (hasattr(kernel, "pairs") or hasattr(kernel, "features"))


def differentiable(kernel: Kernel, prefix: str = "") -> Iterator[str]:
    """The parameters a kernel can be differentiated by."""
    if not _has_formula(kernel):
        return
    for name, parameter in kernel.parameters.items():
        if vars(kernel)[name] is not None and parameter.is_continuous(vars(kernel)[name]):
            yield prefix + name
    for name, child in kernel.children().items():
        yield from differentiable(child, f"{prefix}{name}__")
