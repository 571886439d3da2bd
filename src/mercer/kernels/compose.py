r"""The algebra: kernels made of kernels, and the map φ in k(φ(x), φ(x')).

Each class says how its formula comes from those of its parts; closure under these operations
(``mercer.certify`` knows the rules) is what makes the result a kernel again.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.data.scalars import is_number
from mercer.data.types import Points, Weights
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.depth import require_shallow
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import (
    Expression,
    exp,
    folded,
    integer_power,
    inverse_root,
    rebuild,
    wrap,
)
from mercer.kernels.formula.pair import Columns, Mapping, Mean, Pair, ParameterLeaf, diagonal
from mercer.kernels.parameters import fixed, is_vector, nonnegative, text
from mercer.kernels.support import Support, intersection, union

_MOST_COEFFICIENTS = 65  # The formula of a polynomial is as deep as its coefficients are many.


def _kernel() -> Any:
    return fixed(
        None, "a kernel", lambda value: isinstance(value, Kernel), "an object such as Gaussian(sigma=1.0)"
    )


def _is_column(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int | np.integer) and abs(int(value)) < 2**62)


class _Composite(Kernel):
    """A kernel made of others: the domain is the narrowest of theirs (a row of numbers is an object, too)."""

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        domains = {child.domain for child in self.children().values()}
        return next(kind for kind in Domain if kind in domains)


class _Combination(_Composite):
    """Two or more kernels, named k1, k2, … ; nested combinations of one kind are flattened."""

    def __init__(self, *terms: Any, **named: Any) -> None:
        for name in named:
            if not (name.startswith("k") and name[1:].isdigit()):
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}: its terms are k1, k2, …")
        flat: list[Kernel] = []
        for term in (*terms, *named.values()):
            if not isinstance(term, Kernel):
                raise InputError(
                    f"{type(self).__name__} combines kernels, got {term!r}: wrap a number in Constant"
                )
            # Only what the operators built is flattened, for clone must find the objects that it passed.
            flat.extend(term.children().values() if terms and type(term) is type(self) else [term])
        if not flat:
            raise InputError(f"{type(self).__name__} needs kernels to combine: pass at least one")
        vars(self).update({f"k{i}": term for i, term in enumerate(flat, 1)})
        require_shallow(self)

    def check(self) -> None:
        for name in self._names():
            if not isinstance(vars(self)[name], Kernel):
                raise InputError(
                    f"{name} must be a kernel, got {vars(self)[name]!r}: pass an object such as Linear()"
                )

    def _names(self) -> tuple[str, ...]:
        return tuple(vars(self))

    def _parts(self, pair: Pair) -> list[Expression]:
        return [term.expression(pair.below(name)) for name, term in self.children().items()]


class Sum(_Combination):
    """k1 + k2 + … : features side by side."""

    holds_numbers_as_leaves = True

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.children().values()))

    def expression(self, pair: Pair | None = None) -> Expression:
        return folded(operator.add, self._parts(pair or Pair()))

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """The larger one of those of its terms, if all have one."""
        return union(term.support for term in self.children().values())


class Product(_Combination):
    """k1 · k2 · … : all products of features. On different columns it is the tensor product."""

    holds_numbers_as_leaves = True

    def __repr__(self) -> str:
        first, *rest = self.children().values()
        return " * ".join([_bracket(first, Sum), *(_bracket(k, Sum, Scaled, Mapped) for k in rest)])

    def expression(self, pair: Pair | None = None) -> Expression:
        return folded(operator.mul, self._parts(pair or Pair()))

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """What those of its factors have in common."""
        return intersection(factor.support for factor in self.children().values())


class _Unary(_Composite):
    """A kernel made of one other."""

    kernel: Kernel

    def inner(self, pair: Pair) -> Expression:
        return self.kernel.expression(pair.below("kernel"))

    def _leaf(self, name: str, pair: Pair) -> ParameterLeaf:
        return ParameterLeaf((*pair.path, name), float(vars(self)[name]))


_SUPPORT_OF_K: Any = property(lambda self: self.kernel.support, doc="That of k.")


class Scaled(_Unary):
    """c · k, c ≥ 0."""

    holds_numbers_as_leaves = True
    support = _SUPPORT_OF_K

    scale: float = nonnegative(1.0)
    kernel: Kernel = _kernel()

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        return self.inner(pair) * self._leaf("scale", pair)

    def __repr__(self) -> str:
        return f"{text(self.scale)} * {_bracket(self.kernel, Sum, Product, Scaled, Mapped)}"


class Negative(_Unary):
    """-k: a kernel only where k is none or zero. No operator makes it; `mercer.certify` has a word on it.

    >>> from mercer import Gaussian, certify
    >>> certify(Negative(Gaussian(1.0))).verdict
    'refuted'
    """

    support = _SUPPORT_OF_K
    kernel: Kernel = _kernel()

    def expression(self, pair: Pair | None = None) -> Expression:
        return -self.inner(pair or Pair())

    def __repr__(self) -> str:
        return f"-{_bracket(self.kernel, Sum)}"


class Power(_Unary):
    """k^p. A kernel for every whole p; for a fraction only if k is infinitely divisible."""

    kernel: Kernel = _kernel()
    exponent: float = nonnegative(2)

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        exponent = self._leaf("exponent", pair)
        if float(self.exponent).is_integer():
            return integer_power(self.inner(pair), exponent)
        return rebuild("power", self.inner(pair), exponent)

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """That of k; k⁰ = 1 has none."""
        return self.kernel.support if self.exponent > 0 else None

    def __repr__(self) -> str:
        return f"{_bracket(self.kernel, *_OPERATORS)}**{text(self.exponent)}"


class PolynomialOf(_Unary):
    """c₀ + c₁k + c₂k² + … with every cᵢ ≥ 0.

    >>> from mercer import Linear
    >>> Linear().polynomial([1.0, 0.0, 2.0])([[1.0]], [[3.0]])
    array([[19.]])
    """

    kernel: Kernel = _kernel()
    coefficients: Any = fixed(
        (0.0, 1.0),
        "a non-empty list of numbers that are zero or more",
        lambda v: is_vector(v) and np.ndim(v) == 1 and len(v) > 0 and all(is_number(c) and c >= 0 for c in v),
        "[c0, c1, c2, …]",
    )

    def check(self) -> None:
        if len(self.coefficients) > _MOST_COEFFICIENTS:
            raise InputError(
                f"coefficients must be at most {_MOST_COEFFICIENTS} numbers, got {len(self.coefficients)}: "
                "leave out the smallest terms, or use kernel.exp() for the whole series"
            )

    def expression(self, pair: Pair | None = None) -> Expression:
        k = self.inner(pair or Pair())
        *rest, total = (wrap(float(c)) for c in self.coefficients)
        for coefficient in reversed(rest):  # Horner's rule
            total = total * k + coefficient
        return total

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """That of k, unless there is a constant."""
        return None if self.coefficients[0] > 0 else self.kernel.support


class Exp(_Unary):
    """exp(k): the limit of polynomials of k with non-negative coefficients."""

    kernel: Kernel = _kernel()

    def expression(self, pair: Pair | None = None) -> Expression:
        return exp(self.inner(pair or Pair()))

    def __repr__(self) -> str:
        return f"exp({self.kernel!r})"


class Normalized(_Unary):
    """k(x, x') / √(k(x, x) k(x', x')), and 0 where k(x, x) = 0.

    >>> from mercer import Polynomial
    >>> Polynomial(2).normalized()([[1.0, 2.0]], [[1.0, 2.0]])
    array([[1.]])
    """

    support = _SUPPORT_OF_K
    kernel: Kernel = _kernel()

    def expression(self, pair: Pair | None = None) -> Expression:
        k = self.inner(pair or Pair())
        x, y = (diagonal(k, side) for side in (0, 1))
        return k * inverse_root(x) * inverse_root(y)

    def __repr__(self) -> str:
        return f"{_bracket(self.kernel, *_OPERATORS)}.normalized()"


class Centered(_Unary):
    r"""k centred in feature space on reference points x₁…xₙ:

        k(x, z) - (1/n)Σᵢ k(x, xᵢ) - (1/n)Σᵢ k(z, xᵢ) + (1/n²)Σᵢⱼ k(xᵢ, xⱼ)

    The reference points are the training data unless given.

    >>> from mercer import Linear
    >>> X = np.array([[1.0], [3.0]])
    >>> Linear().centered(X)(X)
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    kernel: Kernel = _kernel()
    reference: Points | None = None

    def __init__(self, kernel: Kernel, reference: Points | None = None) -> None:
        self._assign({"kernel": kernel, "reference": reference})

    def _names(self) -> tuple[str, ...]:
        return ("kernel", "reference")

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        if self.reference is not None:
            return Centered(self.kernel.resolve(self.reference), self.reference)
        return Centered(self.kernel.resolve(X, weight), X)

    def is_resolved(self) -> bool:
        return self.reference is not None and self.kernel.is_resolved()

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        if self.reference is None:
            raise InputError(
                f"{self!r} has no points to centre on: pass them, .centered(X), or call resolve(X) first"
            )
        behind = self.inner(Pair(path=pair.path))
        key = id(self.reference)
        left, right, both = (Mean(side, pair.view, behind, self.reference, key) for side in (0, 1, 2))
        return self.inner(pair) - left - right + both

    def __repr__(self) -> str:
        points = "" if self.reference is None else f"<{data.n_points(self.reference)} points>"
        return f"{_bracket(self.kernel, *_OPERATORS)}.centered({points})"


class OnColumns(_Unary):
    """k on chosen columns of a table.

    >>> from mercer import Delta, Gaussian
    >>> Gaussian(1.0).on(0, 1) * Delta().on(2)
    Gaussian(sigma=1.0).on(0, 1) * Delta().on(2)
    """

    domain = Domain.ANY  # A point is a row of a table, whose chosen columns are checked alone.
    kernel: Kernel = _kernel()
    columns: tuple[Any, ...] = fixed(
        (),
        "a non-empty list of column positions or names",
        lambda v: is_vector(v) and len(v) > 0 and all(map(_is_column, v)),
        "e.g. [0, 1]",
    )

    def expression(self, pair: Pair | None = None) -> Expression:
        return self.inner((pair or Pair()).through(Columns(tuple(self.columns))))

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """That of k, measured on the columns."""
        return _behind(Columns(tuple(self.columns)), self.kernel)

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        return OnColumns(self.kernel.resolve(data.columns(X, list(self.columns)), weight), self.columns)

    def __repr__(self) -> str:
        which = ", ".join(map(repr, self.columns))
        return f"{_bracket(self.kernel, *_OPERATORS)}.on({which})"


class Mapped(_Unary):
    """k @ φ: the kernel k(φ(x), φ(x')), φ a function of a whole table or an object with ``transform``.

    >>> from mercer import Linear
    >>> (Linear() @ np.log)(np.array([[np.e]]), np.array([[np.e**2]]))
    array([[2.]])
    """

    domain = Domain.ANY
    kernel: Kernel = _kernel()
    function: Any = fixed(
        None,
        "a function or an object with transform",
        lambda v: callable(v) or hasattr(v, "transform"),
        "φ such that φ(X) is an array with one row per point",
    )

    def expression(self, pair: Pair | None = None) -> Expression:
        return self.inner((pair or Pair()).through(Mapping(self.function)))

    @property
    def support(self) -> Support | None:  # type: ignore[override]
        """That of k, measured on the values of φ."""
        return _behind(Mapping(self.function), self.kernel)

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        if self.is_resolved():
            return self
        return Mapped(self.kernel.resolve(Mapping(self.function)(X), weight), self.function)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", None) or repr(self.function)
        return f"{_bracket(self.kernel, Sum, Product, Scaled)} @ {name}"


#: kernels that print with an operator, and so need brackets before a dot or a power
_OPERATORS = (Sum, Product, Scaled, Power, Mapped)


def _behind(step: Any, kernel: Kernel) -> Support | None:
    """The support of a kernel of φ(x) and φ(x')."""
    return None if kernel.support is None else kernel.support.through(step)


def _bracket(kernel: Kernel, *kinds: type[Kernel]) -> str:
    return f"({kernel!r})" if isinstance(kernel, kinds) else repr(kernel)
