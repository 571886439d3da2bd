"""What one does with a formula's tree: substitute, differentiate, evaluate, write as code.

>>> from mercer.kernels.formula.expression import Symbol, exp
>>> s = Symbol("s")
>>> differentiate(exp(-s / 2), s)
exp(s * -0.5) * -0.5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mercer.kernels.formula.expression import ONE, OPERATIONS, ZERO, Apply, Expression, Number, rebuild


def substitute(expression: Expression, replace: Callable[[Expression], Expression | None]) -> Expression:
    """Rebuild the tree, with ``replace(node)`` in the place of every node for which it is not None."""
    memo: dict[Expression, Expression] = {}

    def renew(node: Expression) -> Expression:
        if node not in memo:
            new = replace(node)
            if new is None:
                new = node
                if isinstance(node, Apply):
                    new = rebuild(node.operation, *map(renew, node.arguments))
            memo[node] = new
        return memo[node]

    return renew(expression)


def differentiate(
    expression: Expression, leaf: Expression, leaf_rule: Callable[[Expression], Expression] | None = None
) -> Expression:
    """∂expression/∂leaf by the chain rule.

    ``leaf_rule`` gives the derivative of leaves that themselves hide a dependence on ``leaf``
    (a pair quantity measured on scaled columns, say).
    """
    memo: dict[Expression, Expression] = {}

    def derivative(node: Expression) -> Expression:
        if node not in memo:
            memo[node] = compute(node)
        return memo[node]

    def compute(node: Expression) -> Expression:
        if node == leaf:
            return ONE
        if not isinstance(node, Apply):
            return leaf_rule(node) if leaf_rule else ZERO
        total: Expression = ZERO
        partials = OPERATIONS[node.operation].partials(*node.arguments)
        for argument, partial in zip(node.arguments, partials, strict=True):
            inner = derivative(argument)
            if inner == ZERO:
                continue
            if partial is None:
                raise ValueError(
                    f"{node!r} has no derivative in its order or exponent: keep that parameter fixed"
                )
            total = total + partial * inner
        return total

    return derivative(expression)


def evaluate(expression: Expression, values: Callable[[Expression], Any]) -> Any:
    """The number (or array) the tree stands for, ``values`` giving that of every leaf."""
    return _value(expression, values, {})


def _value(node: Expression, values: Callable[[Expression], Any], memo: dict[Expression, Any]) -> Any:
    # A closure that calls itself would keep its arrays until the garbage collector comes.
    if node not in memo:
        if isinstance(node, Number):
            memo[node] = node.value
        elif isinstance(node, Apply):
            arguments = [_value(argument, values, memo) for argument in node.arguments]
            memo[node] = OPERATIONS[node.operation].value(*arguments)
        else:
            memo[node] = values(node)
    return memo[node]


def statements(
    expression: Expression,
    backend: str,
    names: Mapping[Expression, str],
    special: Callable[[Apply, Callable[[Expression], str]], str | None] = lambda node, write: None,
) -> list[str]:
    """The tree as assignments, each shared subtree computed once; the last one is ``result = …``.

    ``special(node, write)`` is asked first for the text of an operation.
    """
    lines: list[str] = []
    written: dict[Expression, str] = dict(names)

    def write(node: Expression) -> str:
        if node not in written:
            if not isinstance(node, Apply):
                raise KeyError(f"no name for {node!r}")
            text = special(node, write)
            if text is None:
                arguments = [write(argument) for argument in node.arguments]
                text = OPERATIONS[node.operation].printed[backend].format(*arguments)
            name = f"t{len(lines)}"
            lines.append(f"{name} = {text}")
            written[node] = name
        return written[node]

    lines.append(f"result = {write(expression)}")
    return lines
