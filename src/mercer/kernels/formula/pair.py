r"""Two points as a formula sees them: the pair quantities of a kernel.

A ``Pair`` stands for two points x and x' before any data is there. Asking it for ``pair.sqdist``
leaves a leaf in the formula; the Gram engine later fills that leaf for a whole tile of pairs
at once. Every quantity on vectors is a sum (or product) over coordinates of a small term:

    dot = Σₖ xₖ x'ₖ        sqdist = Σₖ (xₖ - x'ₖ)²        l1 = Σₖ |xₖ - x'ₖ|

``pair.sum(lambda a, b: …)`` and ``pair.product(…)`` take any other term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.sparse import is_sparse
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.kernels.formula.calculus import differentiate, substitute
from mercer.kernels.formula.expression import ONE, ZERO, Expression, Symbol, absolute, wrap

A = Symbol("a")  # a coordinate of x
B = Symbol("b")  # the same coordinate of x'


# --- views: from raw data to the matrix (or the objects) that a quantity is measured on ----------


@dataclass(frozen=True)
class Columns:
    """Keep some columns of a table."""

    which: tuple[Any, ...]

    def __call__(self, X: Points) -> Any:
        return data.columns(X, list(self.which))


@dataclass(frozen=True)
class Mapping:
    """Apply a feature map: a function of a whole table, or an object with ``transform``."""

    function: Any

    def __call__(self, X: Points) -> Any:
        mapped = self.function.transform(X) if hasattr(self.function, "transform") else self.function(X)
        if data.n_points(mapped) != data.n_points(X):
            name = getattr(self.function, "__name__", None) or repr(self.function)
            raise InputError(
                f"the map {name} must give one row per point, got {data.n_points(mapped)} rows for "
                f"{data.n_points(X)} points: pass a function of the whole table"
            )
        return mapped


@dataclass(frozen=True)
class Joint:
    """Turn objects into rows or codes, both sides of a Gram at once: what is equal gets equal numbers.

    ``encode`` takes a list of objects and gives one row (of a CSR array, or of a container that can be
    indexed) for each. Numbers that stand for words, labels or subtrees are its own choice; they mean
    something only within one call.
    """

    encode: Callable[[Any], Any]

    def __call__(self, X: Points) -> Any:
        return self.rows(self.read(X))

    def rows(self, X: Points) -> Any:
        """What ``encode`` gives, with a column also where there is nothing to count in any object."""
        rows = self.encode(X)
        return sparse.csr_array((rows.shape[0], 1)) if sparse.issparse(rows) and not rows.shape[1] else rows

    def read(self, X: Points) -> Any:
        """One side as ``encode`` wants it: a list of objects, unless a subclass takes other points."""
        return data.as_objects(data.single_column(X))

    def stack(self, X: Points, Y: Points) -> Any:
        """Both sides, as ``read`` gave them, in one."""
        return data.stack(X, Y)


def unit_rows(X: Points) -> Any:  # (n, d)
    """The rows divided by their length; zero rows stay."""
    rows = data.as_vectors(X)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1)) if is_sparse(rows) else np.linalg.norm(rows, axis=1)
    inverse = 1 / np.where(lengths > 0, lengths, 1.0)
    return sparse.csr_array(rows.multiply(inverse[:, None])) if is_sparse(rows) else rows * inverse[:, None]


@dataclass(frozen=True)
class Scaling:
    """Multiply the columns by fixed factors (ARD), those of the parameter at ``path``."""

    factors: tuple[float, ...]
    path: tuple[str, ...]

    def __call__(self, X: Points) -> Any:
        X = data.as_vectors(X)
        if X.shape[1] != len(self.factors):
            raise InputError(
                f"the kernel has {len(self.factors)} length scales but the data have {X.shape[1]} columns: "
                "give one length scale per column, or a single number"
            )
        return X * np.asarray(self.factors, dtype=X.dtype)


@dataclass(frozen=True)
class View:
    """A chain of steps applied to raw data."""

    steps: tuple[Any, ...] = ()
    labels: bool = False  # Values are only compared for equality, so that they may be anything hashable.
    nonnegative_for: str | None = None  # the kernel that takes no negative values

    def then(self, step: Any) -> View:
        return replace(self, steps=(*self.steps, step))

    def __call__(self, X: Points) -> Any:
        for step in self.steps:
            X = step(X)
        return X

    def both(self, X: Points, Y: Points) -> tuple[Any, Any]:
        """Two sets of points, whose codes are comparable."""
        for step in self.steps:
            if isinstance(step, Joint):
                n = data.n_points(X)
                rows = step.rows(step.stack(step.read(X), step.read(Y)))
                X, Y = data.take(rows, slice(0, n)), data.take(rows, slice(n, None))
            else:
                X, Y = step(X), step(Y)
        return X, Y


# --- leaves of a kernel's formula ----------------------------------------------------------------


@dataclass(frozen=True)
class ParameterLeaf(Expression):
    """A hyper-parameter, named by its path from the root kernel."""

    path: tuple[str, ...]
    value: float

    def __repr__(self) -> str:
        return self.path[-1]


@dataclass(frozen=True)
class Quantity(Expression):
    """A number for every pair of points: Σₖ or Πₖ of ``term(xₖ, x'ₖ)`` over a view's columns."""

    kind: Literal["dot", "sqdist", "sum", "product"]
    view: View
    term: Expression

    def __repr__(self) -> str:
        return self.kind if self.kind in ("dot", "sqdist") else f"{self.kind}({self.term!r})"


@dataclass(frozen=True)
class External(Expression):
    """A number for every pair of objects that only ``source.pairs(X, Y)`` can compute."""

    kind: ClassVar[Literal["external"]] = "external"
    view: View
    source: Any

    def __repr__(self) -> str:
        return repr(self.source)


@dataclass(frozen=True)
class PointSum(Expression):
    """A number for every point: Σₖ or Πₖ of ``term(xₖ)``. side 0 is x, side 1 is x'."""

    side: int
    kind: Literal["sum", "product"]
    view: View
    term: Expression

    def __repr__(self) -> str:
        return f"{self.kind}({self.term!r})" + "'" * self.side


@dataclass(frozen=True)
class ExternalDiagonal(Expression):
    """k(x, x) of an External source."""

    side: int
    view: View
    source: Any

    def __repr__(self) -> str:
        return f"diag({self.source!r})" + "'" * self.side


@dataclass(frozen=True)
class Mean(Expression):
    """(1/n) Σᵢ k(x, xᵢ) over reference points; side 2 is the mean of these means.

    The reference points, and so the inner formula, live behind the view.
    """

    side: int
    view: View
    inner: Expression
    reference: Points = field(compare=False)
    key: int = 0

    def __repr__(self) -> str:
        return "mean" + "'" * self.side


# --- the pair ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """x and x', seen through a view; ``path`` is where we are in the kernel's tree."""

    view: View = View()
    path: tuple[str, ...] = ()

    @property
    def dot(self) -> Expression:
        """⟨x, x'⟩"""
        return Quantity("dot", self.view, A * B)

    @property
    def sqdist(self) -> Expression:
        """‖x - x'‖²"""
        return Quantity("sqdist", self.view, (A - B) ** 2)

    @property
    def l1(self) -> Expression:
        """‖x - x'‖₁"""
        return self.sum(lambda a, b: absolute(a - b))

    @property
    def xx(self) -> Expression:
        """‖x‖²"""
        return PointSum(0, "sum", self.view, A * A)

    @property
    def yy(self) -> Expression:
        """‖x'‖²"""
        return PointSum(1, "sum", self.view, A * A)

    def sum(self, term: Callable[[Any, Any], Any]) -> Expression:
        """Σₖ term(xₖ, x'ₖ)"""
        return Quantity("sum", self.view, wrap(term(A, B)))

    def product(self, term: Callable[[Any, Any], Any]) -> Expression:
        """Πₖ term(xₖ, x'ₖ)"""
        return Quantity("product", self.view, wrap(term(A, B)))

    def external(self, source: Any) -> Expression:
        """``source.pairs(X, Y)``, a matrix computed outside the formula."""
        return External(self.view, source)

    def differs(self) -> Expression:
        """The number of coordinates in which x and x' differ; columns may hold any labels."""
        view = replace(self.view, labels=True)
        return Quantity("sum", view, absolute(A - B) > 0)

    def below(self, name: str) -> Pair:
        """The same pair, one level down the kernel's tree."""
        return replace(self, path=(*self.path, name))

    def through(self, step: Any) -> Pair:
        """The pair (φ(x), φ(x'))."""
        return replace(self, view=self.view.then(step))


def diagonal(expression: Expression, side: int) -> Expression:
    """The formula at x' = x, as a formula in point quantities of one side."""

    def at_equal(node: Expression) -> Expression | None:
        if isinstance(node, Quantity):
            term = substitute(node.term, lambda leaf: A if leaf == B else None)
            if node.kind == "sqdist" or (node.kind != "product" and term == ZERO):
                return ZERO
            if node.kind == "product" and term == ONE:
                return ONE
            return PointSum(side, "product" if node.kind == "product" else "sum", node.view, term)
        if isinstance(node, External):
            return ExternalDiagonal(side, node.view, node.source)
        if isinstance(node, PointSum | ExternalDiagonal):
            return replace(node, side=side)
        if isinstance(node, Mean) and node.side < 2:
            return replace(node, side=side)
        return None

    return substitute(expression, at_equal)


def _logarithmic(slope: Expression, term: Expression) -> Expression:
    """g'/g, for (Πg)' = Πg · Σ g'/g; 0 where both are 0 (a spline beyond its support).

    Where g alone is 0 the product rule cannot be written so: the result there is NaN, not a wrong number.
    """
    return slope / (term + (absolute(term) + absolute(slope) <= 0))


def derivative(expression: Expression, leaf: ParameterLeaf) -> Expression:
    """∂formula/∂parameter, also where the parameter stands inside a sum over coordinates."""

    def rule(node: Expression) -> Expression:
        if isinstance(node, Quantity | PointSum):
            inner = differentiate(node.term, leaf)
            if inner == ZERO:
                return ZERO
            if node.kind == "product":
                return node * replace(node, kind="sum", term=_logarithmic(inner, node.term))
            return replace(node, kind="sum", term=inner)
        if isinstance(node, Mean):
            return replace(node, inner=derivative(node.inner, leaf), key=hash((node.key, leaf.path)))
        if isinstance(node, External) and hasattr(node.source, "slope"):
            slope: Expression = node.source.slope(node.view, leaf)
            return slope
        return ZERO

    return differentiate(expression, leaf, rule)


def scale_derivative(expression: Expression, path: tuple[str, ...], column: int) -> Expression:
    r"""∂formula/∂ log sⱼ, s the factors by which the parameter at ``path`` multiplies the columns (ARD).

    A quantity Σₖ g(zₖ, z'ₖ) of z = s ∘ x changes by zⱼ ∂₁g + z'ⱼ ∂₂g when log sⱼ grows by one: again a
    sum over coordinates, of the single column j.
    """

    def rule(node: Expression) -> Expression:
        if isinstance(node, Mean):
            inner = scale_derivative(node.inner, path, column)
            return replace(node, inner=inner, key=hash((node.key, path, column)))
        view = getattr(node, "view", View())
        scaled = [i for i, step in enumerate(view.steps) if isinstance(step, Scaling) and step.path == path]
        if not scaled or not isinstance(node, Quantity | PointSum):
            return ZERO
        after = view.steps[scaled[0] + 1 :]
        if after and after != (Columns((column,)),):  # An earlier derivative left another column.
            return ZERO
        single = view if after else view.then(Columns((column,)))
        moved = A * differentiate(node.term, A) + B * differentiate(node.term, B)
        if node.kind == "product":
            return node * replace(node, kind="sum", view=single, term=_logarithmic(moved, node.term))
        return replace(node, kind="sum", view=single, term=moved)

    return differentiate(expression, Symbol("log s"), rule)
