"""A kernel's formula at one pair of points, in Python's own floats: the oracle that no backend shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.data.types import Points
from mercer.gram.gram import compare_parts
from mercer.kernels.formula.calculus import evaluate
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import (
    A,
    External,
    ExternalDiagonal,
    Mean,
    ParameterLeaf,
    PointSum,
    Quantity,
    View,
)


def pair_value(expression: Expression, X: Points, i: int, Y: Points, j: int) -> float:
    """The formula at X[i] and Y[j], in Python's floats.

    >>> from mercer import Gaussian
    >>> pair_value(Gaussian(sigma=1.0).expression(), [[0.0, 1.0]], 0, [[1.0, 1.0]], 0)
    0.60653066
    """
    points = data.take(X, [i]), data.take(Y, [j])

    def leaf(node: Expression) -> Any:
        if isinstance(node, ParameterLeaf):
            return node.value
        if isinstance(node, Quantity):
            return _over_coordinates(
                node, *(_coordinates(node.view, point) for point in node.view.both(*points))
            )
        if isinstance(node, PointSum):
            coordinates = _coordinates(node.view, node.view(points[node.side]))
            return _over_coordinates(node, coordinates, coordinates)
        if isinstance(node, External):
            return node.source.pairs(*map(compare_parts, node.view.both(*points)))[0, 0]
        if isinstance(node, ExternalDiagonal):
            return node.source.self_pairs(compare_parts(node.view(points[node.side])))[0]
        if isinstance(node, Mean):
            return _mean(node, points)
        raise TypeError(f"{node!r} is not a leaf of a kernel's formula")

    with np.errstate(all="ignore"):
        return float(evaluate(expression, leaf))


def _over_coordinates(node: Quantity | PointSum, x: Sequence[Any], y: Sequence[Any]) -> float:
    total = 1.0 if node.kind == "product" else 0.0
    for a, b in zip(x, y, strict=True):
        if node.view.labels:  # only whether they are equal matters
            a, b = 0.0, float(a != b)
        g = float(evaluate(node.term, lambda s, a=a, b=b: _coordinate_or_parameter(s, a, b)))  # type: ignore[misc]
        total = total * g if node.kind == "product" else total + g
    return total


def _coordinate_or_parameter(leaf: Expression, a: float, b: float) -> float:
    if isinstance(leaf, ParameterLeaf):
        return leaf.value
    return a if leaf == A else b


def _coordinates(view: View, point: Any) -> list[Any]:
    """What a view shows of a single point, as a list of numbers or labels."""
    if view.labels:
        table = point.to_numpy() if hasattr(point, "to_numpy") else np.asarray(point, dtype=object)
        return list(table.reshape(-1).tolist())
    row: Any = data.as_vectors(point)
    return list((row.toarray() if hasattr(row, "toarray") else row)[0].astype(float).tolist())


def _mean(node: Mean, points: tuple[Any, Any]) -> float:
    """(1/n) Σᵢ k(x, xᵢ), and the mean of these means."""
    reference = node.reference
    n = data.n_points(reference)
    rows = [(reference, i) for i in range(n)] if node.side == 2 else [(node.view(points[node.side]), 0)]
    values = [pair_value(node.inner, x, i, reference, j) for x, i in rows for j in range(n)]
    return float(np.mean(values))
