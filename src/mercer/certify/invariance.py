r"""Does a kernel change when all points are moved, or turned?

    translation:  k(x + c, x' + c) = k(x, x')  for every c: it is a function of x - x'
    rotation:     k(Rx, Rx') = k(x, x')        for every orthogonal R: of ⟨x, x'⟩, ‖x‖ and ‖x'‖

Both together make a *radial* kernel, φ(‖x - x'‖). It is proved from the formula, where this is made of
nothing else, and refuted by two points whose kernel value changes by more than rounding explains.

>>> from mercer import Gaussian, Laplacian, Linear, Polynomial
>>> kernels = Gaussian(), Laplacian(norm=1), Polynomial(2), Linear().on(0)
>>> [invariance(k, "translation").verdict for k in kernels]
['proved', 'proved', 'refuted', 'refuted']
>>> [invariance(k, "rotation").verdict for k in kernels]
['proved', 'refuted', 'proved', 'refuted']
>>> print(invariance(Linear(), "translation"))
Linear() is not invariant under translations: k(x, x') = 6.25, and 14.5 after adding 1 to each column,
at x = [1.875, 0.625] and x' = [3.125, 0.625]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.certify.asked import Sampled, as_asked
from mercer.certify.certificate import Verdict
from mercer.certify.rounding import gram_with_error
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.calculus import substitute
from mercer.kernels.formula.expression import Expression, Number, Symbol
from mercer.kernels.formula.pair import (
    A,
    B,
    Columns,
    External,
    Mapping,
    ParameterLeaf,
    PointSum,
    Quantity,
    Scaling,
    View,
    unit_rows,
)  # fmt: skip
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import whole
from mercer.kernels.spectral.density import Spectral
from mercer.kernels.spectral.radial import Radial

#: Points at which two versions of the kernel are compared: some hundred pairs.
_POINTS_TRIED = 24
_MADE_OF = {"translation": "x - x'", "rotation": "⟨x, x'⟩, ‖x‖ and ‖x'‖"}
_CHANGE = {
    "translation": "adding 1 to each column",
    "rotation": "turning the first two columns by arctan(4/3)",
}


@dataclass(frozen=True, eq=False)
class Invariance:
    """A verdict on whether a kernel changes, with what it rests on; print it to read it."""

    verdict: Verdict
    reason: str
    kernel: Kernel = field(repr=False)
    #: "translation" or "rotation"
    under: str = field(repr=False)
    #: refuted: (2, dim) two points whose kernel value changes
    points: np.ndarray | None = field(default=None, repr=False)
    #: refuted: (2, dim) where they are moved to
    moved: np.ndarray | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        raise TypeError(
            "there are three verdicts and no truth value: write invariance(k).verdict == 'proved'"
        )

    def __str__(self) -> str:
        is_what = {"proved": "is invariant", "refuted": "is not invariant", "unknown": "may be invariant"}
        return f"{self.kernel!r} {is_what[self.verdict]} under {self.under}s: {self.reason}"


def invariance(kernel: KernelLike, under: str = "translation", dim: int = 2) -> Invariance:
    """Whether a kernel on vectors is invariant: proved by its formula, refuted by two points, or unknown.

    Parameters
    ----------
    kernel : what ``certify`` takes: a Kernel, a name, a line of text, or a function φ(r)
    under : "translation" or "rotation"
    dim : columns of the points that are tried, at least 2 for rotations; a kernel that has a length scale for
        each column has its own
    """
    if under not in _MADE_OF:
        raise InputError(f"under must be 'translation' or 'rotation', got {under!r}")
    whole(2, minimum=1 if under == "translation" else 2).check("dim", dim)
    kernel = as_asked(kernel)
    if kernel.domain is Domain.OBJECTS:
        raise InputError(f"translations and rotations are of vectors, and {kernel!r} takes other points")
    if not kernel.is_resolved():
        raise InputError(f"{kernel!r} waits for data: call kernel.resolve(X) first")
    expression = kernel.expression()
    leaves = list(expression.leaves())
    is_unchanged = _is_of_differences if under == "translation" else _is_of_products
    if all(isinstance(leaf, Number | ParameterLeaf) or is_unchanged(leaf) for leaf in leaves):
        return Invariance("proved", f"it is a function of {_MADE_OF[under]} alone", kernel, under)
    factors = [step.factors for leaf in leaves for step in _steps(leaf) if isinstance(step, Scaling)]
    return _tried(kernel, expression, under, len(factors[0]) if factors else dim)


def _steps(leaf: Expression) -> tuple[Any, ...]:
    return getattr(leaf, "view", View()).steps


def _is_of_differences(leaf: Expression) -> bool:
    """Whether a translation leaves it: a term of a - b, of columns that are kept or scaled."""
    if not all(isinstance(step, Columns | Scaling) for step in _steps(leaf)):
        return False
    if isinstance(leaf, External):
        source = getattr(leaf.source, "kernel", leaf.source)  # Waves are computed for a Spectral kernel.
        return isinstance(source, Radial | Sampled | Spectral)
    if not isinstance(leaf, Quantity):
        return False
    difference = Symbol("a - b")
    rest = substitute(leaf.term, lambda node: difference if node in (A - B, B - A) else None)
    return leaf.kind == "sqdist" or not {A, B} & set(rest.leaves())


def _is_of_products(leaf: Expression) -> bool:
    """Whether a rotation leaves it: ⟨x, x'⟩, ‖x - x'‖², ‖x‖², of all columns alike."""
    to_unit_length = Mapping(unit_rows)
    alike = (
        step == to_unit_length or (isinstance(step, Scaling) and len(set(step.factors)) == 1)
        for step in _steps(leaf)
    )
    if not all(alike):
        return False
    if isinstance(leaf, External):
        return isinstance(leaf.source, Radial | Sampled)
    if isinstance(leaf, PointSum):
        return leaf.kind == "sum" and leaf.term == A * A
    return isinstance(leaf, Quantity) and leaf.kind in ("dot", "sqdist")


def _tried(kernel: Kernel, expression: Expression, under: str, dim: int) -> Invariance:
    """The verdict that points give, which can only refute."""
    moves: dict[str, Callable[[np.ndarray], np.ndarray]] = {"translation": _shifted, "rotation": _turned}
    X = _points(dim)
    moved = moves[under](X)
    try:
        (K, E), (L, F) = gram_with_error(expression, X), gram_with_error(expression, moved)
    except InputError as error:
        raise InputError(f"{kernel!r} takes no points of {dim} columns: pass dim ({error})") from None
    with np.errstate(invalid="ignore"):
        excess = np.where(np.isfinite(K) & np.isfinite(L), abs(K - L) - (E + F), 0.0)
    found = np.argwhere(excess > 0)
    if not len(found):
        why = f"its formula is not known to be of {_MADE_OF[under]} alone, and no points tell the contrary"
        return Invariance("unknown", why, kernel, under)
    i, j = found[np.argmax(found[:, 0] != found[:, 1])]  # two different points, if such are among them
    pair = X[[i, j]]
    reason = (
        f"k(x, x') = {K[i, j]:.6g}, and {L[i, j]:.6g} after {_CHANGE[under]},\n"
        f"at x = {pair[0].tolist()} and x' = {pair[1].tolist()}"
    )
    return Invariance("refuted", reason, kernel, under, pair, moved[[i, j]])


def _points(dim: int) -> np.ndarray:  # (n, dim)
    """Positive points that can be moved and turned without rounding, and stay positive."""
    rng = np.random.default_rng(0)
    X = np.unique(rng.integers(1, 9, size=(_POINTS_TRIED, dim)), axis=0) * 0.625
    if (
        dim > 1
    ):  # Multiples of 5/8 turn by arctan(4/3) to multiples of 1/8; steep ones would leave the quadrant.
        X[:, 0] += 2 * X[:, 1]
    return X[np.argsort(np.linalg.norm(X, axis=1), kind="stable")]


def _shifted(X: np.ndarray) -> np.ndarray:
    return X + 1.0


def _turned(X: np.ndarray) -> np.ndarray:
    """x ↦ (0.6 x₁ - 0.8 x₂, 0.8 x₁ + 0.6 x₂) of the first two columns."""
    out, units = X.copy(), X / 0.625
    out[:, 0] = (3 * units[:, 0] - 4 * units[:, 1]) * 0.125
    out[:, 1] = (4 * units[:, 0] + 3 * units[:, 1]) * 0.125
    return out
