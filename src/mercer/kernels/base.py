r"""What every kernel is: a formula, declared parameters, and an algebra.

A kernel is an immutable expression. A leaf on vectors declares its parameters and writes one
line, ``formula(pair)``; sums, products, powers and the rest combine such lines, so a composite
kernel is again one formula, computed in one pass.

>>> from mercer import Gaussian, Linear, Polynomial
>>> 2 * Gaussian(1.0) + Polynomial(3, c=1) * Linear()
2 * Gaussian(sigma=1.0) + Polynomial(degree=3, c=1) * Linear()

A kernel of one's own:

>>> from mercer.kernels import positive
>>> class Cauchy(Kernel):
...     scale: float = positive(1.0)
...
...     def formula(self, pair):
...         return 1 / (1 + pair.sqdist / self.scale**2)
>>> Cauchy(scale=2.0)(np.zeros((1, 2)), np.ones((1, 2)))
array([[0.66666667]])
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from mercer.data.scalars import is_scalar
from mercer.data.types import Points, Weights
from mercer.errors import InputError
from mercer.kernels.depth import require_shallow
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression, Number, wrap
from mercer.kernels.formula.pair import Pair, ParameterLeaf, Scaling
from mercer.kernels.parameters import Parameter, fingerprint, is_vector, same, text
from mercer.kernels.support import Support
from mercer.notebook import Shown


class Kernel(Shown):
    """A similarity k(x, x') of two points, as an expression. Subclass it to write your own.

    ``parameters`` holds the declarations of its parameters, under the names that ``get_params`` uses:

    >>> from mercer import Gaussian
    >>> list(Gaussian.parameters), Gaussian(sigma=2.0).parameters["sigma"].words
    (['sigma', 'gamma'], ('median',))
    """

    _shown_by = "mercer.notebook.kernel"
    #: every concrete kernel class; a class enters when it is defined
    registry: ClassVar[list[type[Kernel]]] = []
    #: what a point is; a class may say it by its word, "objects"
    domain: Domain = Domain.VECTORS
    #: what the objects of a kernel on objects are: "sequences", "sets", "trees", "graphs"; None for any
    objects: str | None = None
    #: why this kernel is positive definite for every value of its parameters, or None
    lemma: str | None = None
    #: why this kernel is positive definite if those it is made of are, or None
    closure: str | None = None
    #: where it is zero, or None where that is not known: ``Support.ball(ρ)`` if k(x, x') = 0 for ‖x - x'‖ > ρ
    support: Support | None = None

    #: other names that the constructor takes for parameters, and never gives back: ``{"lam": "gamma"}``
    aliases: ClassVar[dict[str, str]] = {}

    #: whether its numbers, and those of its parts, are leaves of the formula and do not shape it: so of
    #: mercer's own formulas, and not known of any other
    holds_numbers_as_leaves: ClassVar[bool] = True

    parameters: ClassVar[Mapping[str, Parameter]] = MappingProxyType({})

    # --- construction and parameters -------------------------------------------------------------

    def __init_subclass__(cls, abstract: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if isinstance(vars(cls).get("domain"), str):  # a word will do
            cls.domain = Domain(cls.domain)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
        cls.parameters = MappingProxyType({**cls.parameters, **own})
        if "__init__" not in vars(cls):
            keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
            cls.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
                [inspect.Parameter(n, keyword, default=p.default) for n, p in cls.parameters.items()]
            )
        if "holds_numbers_as_leaves" not in vars(cls):
            is_ours = cls.__module__.startswith("mercer.")
            cls.holds_numbers_as_leaves = is_ours and cls.expression is Kernel.expression
        if "support" not in vars(cls) and vars(cls).keys() & {"formula", "expression"}:
            cls.support = None  # What is said of one formula is not said of another that takes its place.
        has_formula = cls.formula is not Kernel.formula or cls.expression is not Kernel.expression
        if has_formula and not abstract:
            Kernel.registry.append(cls)

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self.parameters, values, strict=False))
        named = self._by_own_names(named)
        if len(values) > len(given) or not named.keys() <= self.parameters.keys() - given.keys():
            self._refuse(values, named)
        defaults = {name: parameter.default for name, parameter in self.parameters.items()}
        self._assign(defaults | given | named)

    def _refuse(self, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        """The sentence for arguments that are too many, unknown or given twice: Python's own."""
        signature = inspect.signature(type(self))
        try:
            signature.bind(*values, **named)
        except TypeError as error:
            allowed = ", ".join(signature.parameters) or "none"
            raise TypeError(f"{type(self).__name__}: {error}; its parameters are: {allowed}") from None

    def _by_own_names(self, named: dict[str, Any]) -> dict[str, Any]:
        """Parameters under the names they are declared with, each once."""
        for other, name in self.aliases.items():
            if other in named and name in named:
                raise TypeError(f"{other} is another name of {name}, and both are given: pass one of them")
        return {self.aliases.get(name, name): value for name, value in named.items()}

    def _assign(self, values: dict[str, Any]) -> None:
        """Check all, then store all: a refused value leaves the kernel as it was."""
        before = dict(vars(self))
        vars(self).update(values)
        try:
            for name, value in values.items():
                if name in self.parameters:
                    self.parameters[name].check(name, value)
            self.check()
            require_shallow(self)
        except Exception:
            vars(self).clear()
            vars(self).update(before)
            raise

    def check(self) -> None:
        """Checks that involve more than one parameter; overridden where there are any."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"kernels are immutable: build {type(self).__name__}({name}=…) anew, or use set_params({name}=…)"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError("kernels are immutable")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as scikit-learn has it; nested ones as ``k1__sigma``."""
        values = {name: vars(self)[name] for name in self._names()}
        if deep:
            for name, value in list(values.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    values |= {f"{name}__{inner}": v for inner, v in value.get_params().items()}
        return values

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name in place: the one way a kernel changes, for searches on clones.

        All of them or, if one is refused, none.
        """
        before = [(kernel, dict(vars(kernel))) for kernel in self.parts()]
        try:
            self._set(params)
        except Exception:
            for kernel, values in before:
                vars(kernel).clear()
                vars(kernel).update(values)
            raise
        return self

    def _set(self, params: dict[str, Any]) -> None:
        nested: dict[str, dict[str, Any]] = {}
        own: dict[str, Any] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            name = self.aliases.get(name, name)
            if name not in self._names():
                raise InputError(
                    f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(self._names())}"
                )
            if rest:
                nested.setdefault(name, {})[rest] = value
            else:
                own[name] = value
        if own:
            self._assign(own)
        for name, values in nested.items():
            part = vars(self)[name]
            if isinstance(part, Kernel):
                part._set(values)
            elif hasattr(part, "set_params"):
                part.set_params(**values)
            else:
                inner = ", ".join(values)
                raise InputError(f"{name} of {self!r} has no parameter {inner!r}: it is {text(part)}")

    def parts(self) -> Iterator[Kernel]:
        """The kernel and all it is made of."""
        yield self
        for child in self.children().values():
            yield from child.parts()

    def __sklearn_clone__(self) -> Self:
        """The same kernel in new objects. Fitted maps and mixtures stay: they are part of its definition."""
        copy = object.__new__(type(self))
        for name, value in vars(self).items():
            vars(copy)[name] = value.__sklearn_clone__() if isinstance(value, Kernel) else value
        return copy

    def _names(self) -> tuple[str, ...]:
        return tuple(self.parameters)

    # --- identity ----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        given = (f"{n}={text(v)}" for n, v in self.get_params(deep=False).items() if v is not None)
        return f"{type(self).__name__}({', '.join(given)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        ours, theirs, names = vars(self), vars(other), self._names()
        return names == other._names() and all(same(ours[name], theirs[name]) for name in names)

    def __hash__(self) -> int:
        return hash((type(self), *(fingerprint(v) for v in self.get_params(deep=False).values())))

    # --- the formula ---------------------------------------------------------------------------------

    def formula(self, pair: Pair) -> Expression:
        """The kernel as a formula of a pair of points."""
        raise NotImplementedError(f"{type(self).__name__} must define formula(self, pair)")

    def expression(self, pair: Pair | None = None) -> Expression:
        """The formula as a tree, parameters as named leaves."""
        pair = pair or Pair()
        if self.domain is Domain.NONNEGATIVE:
            pair = replace(pair, view=replace(pair.view, nonnegative_for=type(self).__name__))
        symbolic = object.__new__(type(self))  # This is the same kernel, with leaves for its numbers.
        for name in self._names():
            value, parameter = vars(self)[name], self.parameters[name]
            if parameter.per_column is not None and is_vector(value):
                factors = np.asarray(value, dtype=float) ** parameter.per_column
                pair = pair.through(Scaling(tuple(factors.tolist()), (*pair.path, name)))
                value = Number(1.0)  # The columns are scaled instead.
            elif isinstance(value, str) and value in parameter.words:
                raise InputError(
                    f"{name}={value!r} of {self!r} waits for data: call kernel.resolve(X) first, "
                    "or fit an estimator"
                )
            elif parameter.symbolic and value is not None:
                value = ParameterLeaf((*pair.path, name), float(value))
            elif isinstance(value, Kernel):
                value = _Part(value, name)
            vars(symbolic)[name] = value
        return wrap(symbolic.formula(pair))

    def children(self) -> dict[str, Kernel]:
        """The kernels this one is made of, by parameter name."""
        return {name: v for name in self._names() if isinstance(v := vars(self)[name], Kernel)}

    def source(self, backend: str = "numba") -> str:
        """The code printed for a backend: "numpy", "numba", "torch", or "triton" for formulas of vectors.

        >>> from mercer import Gaussian
        >>> print(Gaussian(sigma=2.0).source("numpy"))  # doctest: +ELLIPSIS
        # Gaussian(sigma=2.0)
        ...
        """
        from mercer.kernels.formula.program import Program
        from mercer.kernels.formula.source import print_source

        return f"# {self!r}\n" + print_source(Program(self), backend)

    def derivative(self, name: str) -> Kernel:
        """∂k/∂parameter as a (no longer positive definite) kernel, for every backend.

        ``name`` is a nested parameter name, with an index for one of several length scales:
        ``"sigma"``, ``"k1__sigma"``, ``"sigma[2]"``.
        """
        from mercer.kernels.derivative import Derivative

        return Derivative(self, name)

    # --- parameters taken from the data --------------------------------------------------------------

    def resolve(self, X: Points, weight: Weights = None) -> Kernel:
        """The kernel with every word ("median", "scale", …) replaced by its value on the data X.

        ``weight``, one number per point, counts a point of weight 2 as if it were there twice.

        >>> from mercer import Gaussian
        >>> Gaussian(sigma="median").resolve(np.array([[0.0], [1.0], [3.0]]))
        Gaussian(sigma=2.0)
        """
        if self.is_resolved():
            return self
        values = self.get_params(deep=False)
        for name, child in self.children().items():
            values[name] = child.resolve(X, weight)
        for name, parameter in self.parameters.items():
            if isinstance(values[name], str) and values[name] in parameter.words:
                values[name] = self.from_data(name, values[name], X, weight)
        return type(self)(**values)

    def is_resolved(self) -> bool:
        """Whether no parameter waits for data."""
        values = vars(self)
        for name, parameter in self.parameters.items():
            if parameter.words and isinstance(values[name], str) and values[name] in parameter.words:
                return False
        return all(child.is_resolved() for child in self.children().values())

    def from_data(self, name: str, word: str, X: Points, weight: Weights = None) -> float:
        """The value a word stands for; see ``mercer.kernels.heuristics``."""
        from mercer.kernels import heuristics

        return heuristics.value(self, name, word, X, weight)

    # --- evaluation ----------------------------------------------------------------------------------

    def __call__(self, X: Points, Y: Points | None = None) -> Any:  # (n, m); a number for two single points
        """The dense matrix k(xᵢ, yⱼ); ``Gram(k, X, Y)`` is the lazy one.

        With Y, either side may be a single point: a flat list of numbers, a text, a graph, a dict (see
        ``mercer.kernels.one_point``). Its dimension is then left out of the result, as in NumPy.

        >>> from mercer import Polynomial
        >>> k = Polynomial(2, c=0)
        >>> k([1, 1], [-1, 1]), k([1, 1], [1, 1])
        (0.0, 4.0)
        >>> k([1, 1], [[1, 1], [-1, 1]])
        array([4., 0.])
        """
        from mercer.gram import Gram
        from mercer.kernels.one_point import as_lists

        if Y is None:
            return Gram(self, X, Y).dense()
        X, Y, is_one_x, is_one_y = as_lists(self.domain, X, Y)
        K = Gram(self, X, Y).dense()
        if is_one_x and is_one_y:
            return float(K[0, 0])
        return K[0] if is_one_x else K[:, 0] if is_one_y else K

    # --- the algebra ---------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """``np.exp(k)``, and NumPy scalars on the left: ``np.float64(2) * k``."""
        operations: dict[str, Any] = {
            "exp": Kernel.exp,
            "add": operator.add,
            "multiply": operator.mul,
            "power": operator.pow,
        }
        is_array = any(isinstance(value, np.ndarray) for value in inputs)
        if ufunc.__name__ not in operations or method != "__call__" or options or is_array:
            return NotImplemented
        plain = (value.item() if isinstance(value, np.generic) else value for value in inputs)
        return operations[ufunc.__name__](*plain)

    def __add__(self, other: object) -> Kernel:
        from mercer.kernels.compose import Sum
        from mercer.kernels.vectors.dotproduct import Constant

        if is_scalar(other):
            return self if other == 0 else Sum(self, Constant(other))
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: object) -> Kernel:
        from mercer.kernels.compose import Sum
        from mercer.kernels.vectors.dotproduct import Constant

        if not is_scalar(other):
            return NotImplemented
        return self if other == 0 else Sum(Constant(other), self)  # Python's sum() starts with 0 + k.

    def __mul__(self, other: object) -> Kernel:
        from mercer.kernels.compose import Product, Scaled

        if is_scalar(other):
            return Scaled(other, self)
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented

    def __rmul__(self, other: object) -> Kernel:
        from mercer.kernels.compose import Scaled

        return Scaled(other, self) if is_scalar(other) else NotImplemented

    def __truediv__(self, other: Any) -> Kernel:
        from mercer.kernels.compose import Scaled

        if is_scalar(other) and other == 0:
            raise InputError(f"a kernel cannot be divided by zero, got {self!r} / {other!r}")
        return Scaled(1 / other, self) if is_scalar(other) else NotImplemented

    def __pow__(self, exponent: Any) -> Kernel:
        from mercer.kernels.compose import Power

        return Power(self, exponent)

    def __sub__(self, other: object) -> Kernel:
        raise InputError(
            "the difference of two kernels is not a kernel, and the negative of one is none: kernels may be "
            f"added, multiplied, and scaled by numbers that are zero or more, got - on {self!r}"
        )

    __rsub__ = __sub__

    def __neg__(self) -> Kernel:
        return self - self

    def __matmul__(self, function: Any) -> Kernel:
        """k @ φ: the kernel k(φ(x), φ(x'))."""
        from mercer.kernels.compose import Mapped

        return Mapped(self, function)

    def exp(self) -> Kernel:
        """exp(k)."""
        from mercer.kernels.compose import Exp

        return Exp(self)

    def polynomial(self, coefficients: Any) -> Kernel:
        """c₀ + c₁k + c₂k² + …, with coefficients cᵢ ≥ 0."""
        from mercer.kernels.compose import PolynomialOf

        return PolynomialOf(self, coefficients)

    def normalized(self) -> Kernel:
        """k(x, x') / √(k(x, x) k(x', x')): the cosine of the angle in feature space."""
        from mercer.kernels.compose import Normalized

        return Normalized(self)

    def centered(self, reference: Points | None = None) -> Kernel:
        """k with its features centred on the mean of the reference points (at fit: the training data)."""
        from mercer.kernels.compose import Centered

        return Centered(self, reference)

    def on(self, *columns: Any) -> Kernel:
        """k on chosen columns of a table, by position or by name: ``Gaussian(1.0).on("age", "height")``."""
        from mercer.kernels.compose import OnColumns

        flat = [c for group in columns for c in (group if isinstance(group, list | tuple) else [group])]
        return OnColumns(self, tuple(flat))


class _Part:
    """A kernel that is a parameter of another, in the other's formula: ``self.base.expression(pair)``."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self._kernel, self._name = kernel, name

    def expression(self, pair: Pair) -> Expression:
        return self._kernel.expression(pair.below(self._name))
