r"""Printing a formula as LaTeX, as a book would: one fraction for a product, signs between terms, norms.

>>> from mercer.kernels.formula.pair import Pair
>>> print(latex(2 * Pair().sqdist / 3).formula)
\frac{2 \lVert x - x' \rVert^{2}}{3}

What is long and occurs more than once has a name and a line of its own, so that the text of a formula is
about as long as the formula. Guards that only keep a machine from dividing by zero are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mercer.data import points as data
from mercer.kernels.formula.expression import (
    ONE,
    OPERATIONS,
    ZERO,
    Apply,
    Expression,
    Number,
    Symbol,
    absolute,
    inverse_root,
    sqrt,
)
from mercer.kernels.formula.pair import (
    A,
    B,
    Columns,
    External,
    ExternalDiagonal,
    Joint,
    Mapping,
    Mean,
    ParameterLeaf,
    PointSum,
    Quantity,
    Scaling,
    View,
)
from mercer.kernels.formula.points import BARS, Name, listing, through
from mercer.kernels.formula.typeset import (
    ATOM,
    CALL,
    FRACTION,
    PRODUCT,
    SERIES,
    SUM,
    Text,
    between,
    called,
    decimal,
    product,
    signed,
    word,
)

_STEPS = (Columns, Joint, Mapping, Scaling)
_POWERS = ("integer_power", "large_power", "power")
#: Functions whose exponent stands before the bracket, as in sin²(x).
_WITH_EXPONENT = ("sin", "cos", "tanh")
#: What is so long gets a name where it occurs twice; a quantity counts as four nodes, a step of
#: its view as three.
_WORTH_A_NAME, _OF_A_QUANTITY, _OF_A_STEP = 7, 4, 3
_NAMES = "rstuvwpqabcdefgh"
#: a number below which the other argument of a maximum is all that is meant
_GUARD = 1e-20
_DIFFERS = absolute(A - B) > 0
_TOO_LARGE = 400  # nodes of a formula that nobody would read


class Printed(NamedTuple):
    """A formula of x and x', and the names in it with what they stand for."""

    formula: str
    where: tuple[tuple[str, str], ...]


_X, _Y = Name("x"), Name("x'")


def latex(
    expression: Expression,
    symbol: Callable[[tuple[str, ...]], str] = lambda path: word(path[-1]),
    scaling: Callable[[tuple[str, ...]], str] = lambda path: word(path[-1]),
) -> Printed | None:
    r"""A formula as LaTeX; None where it is too long for anybody to read, or has steps without a symbol.

    ``symbol`` calls the parameters, ``scaling`` what multiplies columns, both by their path in the kernel.

    >>> from mercer import Laplacian, Polynomial
    >>> print(latex(Laplacian().expression(), symbol=lambda path: r"\gamma").formula)
    \exp\left(-\gamma \lVert x - x' \rVert_{1}\right)
    """
    nodes = Counter[Expression]()
    means: dict[Expression, str] = {}
    _count(expression, nodes, means)
    steps = {type(step) for node in nodes for step in getattr(node, "view", View()).steps}
    if len(nodes) > _TOO_LARGE or not all(issubclass(step, _STEPS) for step in steps):
        return None
    printer = _Printer(symbol, scaling, means)
    sizes: dict[Expression, int] = {}
    used = {symbol(path) for path in parameters(expression)}
    letters = (letter for letter in _NAMES if letter not in used)
    named = [
        node
        for node, uses in nodes.items()
        if uses > 1 and node != expression and node not in means and _size(node, sizes) >= _WORTH_A_NAME
    ]
    for node in nodes:  # The formula of Matérn's kernel has its argument twice.
        if isinstance(node, Apply) and node.operation == "matern_shape" and node.arguments[1] not in named:
            named.append(node.arguments[1])
    for node in named:
        letter = next(letters, None)
        if letter is None:  # Written out again and again, the text would be longer than anything.
            return None
        printer.names[node] = letter
    formula = printer.defined(expression)
    where = [(f"{name}(x, x')", printer.defined(inner)) for inner, name in means.items()]
    where += [(name, printer.defined(node)) for node, name in printer.names.items()]
    return Printed(formula, tuple(where))


def _count(node: Expression, nodes: Counter[Expression], means: dict[Expression, str]) -> None:
    """How many nodes each one is an argument of, and the kernels whose means are taken."""
    nodes[node] += 1
    if nodes[node] > 1:
        return
    if isinstance(node, Mean) and node.inner not in means:
        means[node.inner] = f"k_{{{len(means)}}}"
    for part in _parts(node):
        _count(part, nodes, means)


def _size(node: Expression, known: dict[Expression, int]) -> int:
    if node not in known:
        steps = len(getattr(node, "view", View()).steps)
        own = _OF_A_QUANTITY + _OF_A_STEP * steps if isinstance(node, Quantity | PointSum) else 1
        known[node] = own + sum(_size(part, known) for part in _parts(node))
    return known[node]


def _parts(node: Expression) -> tuple[Expression, ...]:
    """What the text of a node is made of: its arguments, but for guards."""
    if isinstance(node, Mean):
        return (node.inner,)
    root = _guarded(node)
    return node.children if root is None else (root,)


def parameters(expression: Expression) -> Iterator[tuple[str, ...]]:
    """The paths of the parameters in a formula, in their order; some more than once.

    >>> from mercer import Gaussian, Linear
    >>> list(parameters((Linear() + Gaussian(sigma=[1.0, 2.0])).expression()))
    [('k2', 'sigma')]
    """
    seen: set[Expression] = set()
    rest = [expression]
    while rest:
        node = rest.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, ParameterLeaf):
            yield node.path
        yield from (step.path for step in getattr(node, "view", View()).steps if isinstance(step, Scaling))
        rest += [*_parts(node)[::-1], *([node.term] if isinstance(node, Quantity | PointSum) else [])]


@dataclass
class _Printer:
    symbol: Callable[[tuple[str, ...]], str]
    scaling: Callable[[tuple[str, ...]], str]
    #: kernels whose means are taken, by their formulas
    means: dict[Expression, str]
    #: formulas that have a name
    names: dict[Expression, str] = field(default_factory=dict)
    #: what x and x' are called, or inside of a sum over coordinates xⱼ and x'ⱼ
    points: tuple[Any, Any] = (_X, _Y)
    leaves: tuple[str, str] = ("a", "b")

    def defined(self, node: Expression) -> str:
        """The text of a formula, not its name."""
        return self._layout(node).text

    def _print(self, node: Expression) -> Text:
        if node in self.names:
            return Text(self.names[node], ATOM)
        if node in self.means:
            return Text(f"{self.means[node]}({self.points[0]}, {self.points[1]})", ATOM)
        return self._layout(node)

    def _at(self, node: Expression, level: int) -> str:
        """The text, in brackets where it holds together less than that."""
        text, own = self._print(node)
        return text if own >= level else rf"\left({text}\right)"

    def _layout(self, node: Expression) -> Text:
        if isinstance(node, Apply):
            return self._operation(node)
        if isinstance(node, Number):
            return product(*signed(node.value), [], [])
        if isinstance(node, ParameterLeaf):
            return Text(self.symbol(node.path), ATOM)
        if isinstance(node, Symbol):
            return Text(self.leaves[node == B] if node in (A, B) else word(node.name), ATOM)
        if isinstance(node, Quantity):
            return self._quantity(node)
        if isinstance(node, PointSum):
            return self._point_sum(node)
        if isinstance(node, Mean):
            return self._mean(node)
        if isinstance(node, External | ExternalDiagonal):
            x, y = self._seen(_before_codes(node.view, node.source))
            if isinstance(node, ExternalDiagonal):
                x = y = (x, y)[node.side]
            return Text(rf"{_name_of(node.source)}\left({x}, {y}\right)", CALL)
        return Text(word(repr(node)), ATOM)

    # --- arithmetic ----------------------------------------------------------------------------------

    def _operation(self, node: Apply) -> Text:
        first, *rest = node.arguments
        match node.operation:
            case "add" | "subtract":
                return self._sum(node)
            case "multiply" | "divide":
                return self._multiplied(node)
            case name if name in _POWERS:
                return self._power(first, self._print(rest[0]).text)
            case "exp":
                return self._exponential(node)
            case "sqrt" if _is_norm(first):
                return self._norm(first)
            case "less_equal" if _is_difference(first) and rest[0] == Number(0.5):
                assert isinstance(first, Quantity)
                return Text(rf"\left[{' = '.join(self._seen(first.view))}\right]", ATOM)
            case "maximum" if isinstance(rest[0], Number) and rest[0].value < _GUARD:
                if rest[0] == ZERO:
                    return Text(rf"\left({self._print(first).text}\right)_{{+}}", ATOM)
                return self._print(first)
            case "where":
                if _guarded(node) is not None:
                    return self._multiplied(node)
                condition = self._condition(first)
                values = (self._print(value).text for value in rest)
                return Text(OPERATIONS["where"].printed["latex"].format(condition, *values), PRODUCT)
        texts = (self._print(argument).text for argument in node.arguments)
        level = ATOM if node.operation in ("sqrt", "absolute", "less_equal") else CALL
        level = PRODUCT if node.operation == "matern_shape" else level
        return Text(OPERATIONS[node.operation].printed["latex"].format(*texts), level)

    def _sum(self, node: Apply) -> Text:
        if node.operation == "subtract" and node.arguments[0] == ONE:
            opposite = node.arguments[1]
            if isinstance(opposite, Apply) and opposite.operation == "less_equal":
                above, below = (self._print(side).text for side in opposite.arguments)
                return Text(rf"\left[{above} > {below}\right]", ATOM)
        text, terms = "", self._collected(node)
        for place, (sign, term) in enumerate(terms, 1):
            printed, level = self._print(term)
            if level == SUM and printed.startswith("-"):
                printed, sign, level = printed[1:], -sign, PRODUCT
            elif (level == SUM and (text or sign < 0)) or (level == SERIES and place < len(terms)):
                printed = rf"\left({printed}\right)"
            if len(terms) == 1 and sign > 0:
                return Text(printed, level)
            mark = ("+" if sign > 0 else "-") if text else ("" if sign > 0 else "-")
            text += f" {mark} {printed}" if text else mark + printed
        return Text(text, SUM)

    def _collected(self, node: Expression) -> list[tuple[int, Expression]]:
        """The terms of a sum with their signs, the numbers among them added up."""
        terms = list(self._terms(node, 1, is_whole=True))
        numbers = [sign * term.value for sign, term in terms if isinstance(term, Number)]
        if len(numbers) < 2:
            return terms
        place = next(i for i, (_, term) in enumerate(terms) if isinstance(term, Number))
        rest = [(sign, term) for sign, term in terms if not isinstance(term, Number)]
        total = math.fsum(numbers)
        return rest if rest and total == 0 else [*rest[:place], (1, Number(total)), *rest[place:]]

    def _terms(self, node: Expression, sign: int, is_whole: bool = False) -> Iterator[tuple[int, Expression]]:
        is_free = is_whole or not (node in self.names or node in self.means)
        if isinstance(node, Apply) and node.operation in ("add", "subtract") and is_free:
            first, second = node.arguments
            yield from self._terms(first, sign)
            yield from self._terms(second, -sign if node.operation == "subtract" else sign)
        else:
            yield sign, node

    def _multiplied(self, node: Expression) -> Text:
        number, above, below = self._factors(node)
        return product(*signed(number), self._listed(above), self._listed(below))

    def _factors(self, node: Expression) -> tuple[float, list[Expression], list[Expression]]:
        """The number in a product, and what stands above and below the line of its fraction."""
        number, above, below = 1.0, list[Expression](), list[Expression]()
        rest = [(node, False)]
        while rest:
            part, is_below = rest.pop()
            is_free = part is node or (part not in self.names and part not in self.means)
            operation = part.operation if isinstance(part, Apply) and is_free else ""
            if isinstance(part, Number) and part.value:
                number = number / part.value if is_below else number * part.value
            elif operation in ("multiply", "divide"):
                first, second = part.children
                rest += [(second, is_below ^ (operation == "divide")), (first, is_below)]
            elif operation == "where" and (root := _guarded(part)) is not None:
                rest.append((sqrt(root), not is_below))
            else:
                (below if is_below else above).append(part)
        for factors in (above, below):  # parameters come first: γ ‖x‖, and not ‖x‖ γ
            factors.sort(key=lambda factor: not isinstance(factor, ParameterLeaf))
        return number, above, below

    def _listed(self, factors: list[Expression]) -> list[Text]:
        """Factors one after the other, equal ones as a power and roots as one root."""
        roots = [factor for factor in factors if isinstance(factor, Apply) and factor.operation == "sqrt"]
        roots = [root for root in roots if not _is_norm(root.arguments[0]) and root not in self.names]
        if len(roots) > 1:
            inside = " ".join(self._at(root.arguments[0], PRODUCT) for root in roots)
            rest = [factor for factor in factors if factor not in roots]
            return [*self._listed(rest), Text(rf"\sqrt{{{inside}}}", ATOM)]
        return [
            self._print(factor) if times == 1 else self._power(factor, str(times))
            for factor, times in Counter(factors).items()
        ]

    def _power(self, base: Expression, exponent: str) -> Text:
        if exponent == "1":
            return self._print(base)
        if isinstance(base, Apply) and base.operation in _POWERS and exponent.isdigit():
            inner = base.arguments[1]
            if isinstance(inner, Number) and base not in self.names:
                return self._power(base.arguments[0], decimal(inner.value * int(exponent)))
        if isinstance(base, Apply) and base.operation in _WITH_EXPONENT and base not in self.names:
            head = rf"\{base.operation}"
            return Text(self._print(base).text.replace(head, rf"{head}^{{{exponent}}}", 1), FRACTION)
        return Text(f"{self._at(base, ATOM)}^{{{exponent}}}", FRACTION)

    def _exponential(self, node: Apply) -> Text:
        """exp(t), or bᵗ for exp(t log b)."""
        number, above, below = self._factors(node.arguments[0])
        logs = [part for part in above if isinstance(part, Apply) and part.operation == "log"]
        if len(logs) == 1 and node.arguments[0] not in self.names:
            above.remove(logs[0])
            exponent = product(*signed(number), self._listed(above), self._listed(below)).text
            return self._power(logs[0].arguments[0], exponent)
        return Text(OPERATIONS["exp"].printed["latex"].format(self._print(node.arguments[0]).text), CALL)

    def _condition(self, node: Expression) -> str:
        """When a condition, a number above 0, holds."""
        if isinstance(node, Apply) and node.operation == "less_equal":
            return r" \le ".join(self._print(side).text for side in node.arguments)
        if isinstance(node, Apply) and node.operation == "maximum":
            return r" \text{ or } ".join(map(self._condition, node.arguments))
        return f"{self._print(node).text} > 0"

    # --- quantities ----------------------------------------------------------------------------------

    def _quantity(self, node: Quantity) -> Text:
        if node.kind == "sqdist":
            norm = self._norm(node)
            return Text(f"{norm.text}^{{2}}", FRACTION)
        maker = _maker(node.view)
        if node.kind == "dot" and maker is not None:
            x, y = self._seen(View(node.view.steps[:-1]))
            return Text(rf"{_name_of(maker)}\left({x}, {y}\right)", CALL)
        if node.kind == "dot":
            x, y = self._seen(node.view)
            return Text(between(r"\langle", f"{x}, {y}", r"\rangle"), ATOM)
        if node.kind == "sum" and node.term == absolute(A - B):
            return Text(f"{self._norm(node).text}_{{1}}", FRACTION)
        return self._over_coordinates(node, self.points)

    def _norm(self, node: Expression) -> Text:
        r"""‖x - x'‖ or ‖x‖, the root of a quantity; scales of all columns stand before the bracket."""
        assert isinstance(node, Quantity | PointSum)
        if isinstance(node, PointSum):
            return Text(between(BARS[0], self._seen(node.view)[node.side], BARS[1]), ATOM)
        *steps, last = node.view.steps or (None,)
        x, y = self._seen(View(tuple(steps)) if isinstance(last, Scaling) else node.view)
        apart = f"{x} - {y}"
        if isinstance(last, Scaling):
            apart = rf"{self.scaling(last.path)} \odot \left({apart}\right)"
        return Text(between(BARS[0], apart, BARS[1]), ATOM)

    def _point_sum(self, node: PointSum) -> Text:
        if _is_norm(node):
            return Text(f"{self._norm(node).text}^{{2}}", FRACTION)
        maker = _maker(node.view)
        if maker is not None and node.term == A * A:
            point = self._seen(View(node.view.steps[:-1]))[node.side]
            return Text(rf"{_name_of(maker)}\left({point}, {point}\right)", CALL)
        point = self.points[node.side]
        return self._over_coordinates(node, (point, point))

    def _over_coordinates(self, node: Quantity | PointSum, points: tuple[Name, Name]) -> Text:
        """Σⱼ or Πⱼ of a term of xⱼ and x'ⱼ."""
        steps, range_ = node.view.steps, "j"
        if len(steps) == 1 and isinstance(only := steps[0], Columns):
            steps, range_ = (), rf"j \in \{{{listing(only.which)}\}}"
        if steps:
            u, v = (through(View(steps), point, self.scaling) for point in points)
            inside = (rf"\left[{u}\right]_{{j}}", rf"\left[{v}\right]_{{j}}")
        else:
            inside = (points[0].at("j"), points[1].at("j"))
        if _is_difference(node):
            return Text(rf"\#\{{{range_} : {inside[0]} \ne {inside[1]}\}}", ATOM)
        inner = _Printer(self.symbol, self.scaling, {}, leaves=inside)
        sign = r"\sum" if node.kind == "sum" else r"\prod"
        return Text(rf"{sign}_{{{range_}}} {inner._at(node.term, PRODUCT)}", SERIES)

    def _mean(self, node: Mean) -> Text:
        k, n = self.means[node.inner], data.n_points(node.reference)
        if node.side == 2:
            return Text(rf"\frac{{1}}{{{n * n}}} \sum_{{i, l}} {k}(x_{{i}}, x_{{l}})", PRODUCT)
        point = through(node.view, self.points[node.side], self.scaling)
        return Text(rf"\frac{{1}}{{{n}}} \sum_{{i}} {k}({point}, x_{{i}})", PRODUCT)

    def _seen(self, view: View) -> tuple[str, str]:
        """What the view makes of the two points."""
        x, y = (through(view, point, self.scaling) for point in self.points)
        return x, y


# --- nodes ------------------------------------------------------------------------------------------------


def _before_codes(view: View, source: Any) -> View:
    """The view without the step that encodes objects for the kernel that then compares them."""
    is_own = bool(view.steps) and isinstance(view.steps[-1], Joint) and hasattr(source, "encode")
    return View(view.steps[:-1]) if is_own else view


def _name_of(source: Any) -> str:
    """What computes an external quantity: a kernel, or what one made for it."""
    return called(source if hasattr(source, "formula") else source.kernel)


def _is_difference(node: Expression) -> bool:
    """Whether it is the number of coordinates that differ."""
    return isinstance(node, Quantity) and node.kind == "sum" and node.term == _DIFFERS


def _is_norm(node: Expression) -> bool:
    if isinstance(node, PointSum):
        return node.kind == "sum" and node.term == A * A and _maker(node.view) is None
    return isinstance(node, Quantity) and node.kind == "sqdist"


def _maker(view: View) -> Any:
    """The kernel whose features the last step of a view computes, or None."""
    step = view.steps[-1] if view.steps else None
    maker = getattr(getattr(step, "encode", getattr(step, "function", None)), "__self__", None)
    return maker if hasattr(maker, "formula") else None


def _guarded(node: Expression) -> Expression | None:
    """s of 1/√s, written so that it is 0 where s is; None of any other node."""
    if not isinstance(node, Apply) or node.operation != "where" or not node.arguments[0].children:
        return None
    inside = node.arguments[0].children[0]
    return inside if node == inverse_root(inside) else None
