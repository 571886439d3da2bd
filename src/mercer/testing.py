r"""The battery for kernels: ``check_kernel`` takes anybody's kernel and says what is wrong with it.

>>> from mercer import Kernel
>>> class Ramp(Kernel):
...     def formula(self, pair):
...         return pair.dot + pair.xx
>>> check_kernel(Ramp())
Traceback (most recent call last):
AssertionError: Ramp() is not symmetric: k(X, Y)[...] = ... but k(Y, X)[...] = ...

Everything is compared with the kernel's formula worked out for one pair of points at a time, coordinate
by coordinate, in Python's own floats (``pair_value``): no backend has a part in it.
"""

from __future__ import annotations

import pickle
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

import mercer.kernels
from mercer import data
from mercer.certify import certify
from mercer.config import config, settings
from mercer.errors import SlowPathWarning
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.expression import Expression, evaluate
from mercer.kernels.pair import (
    A,
    External,
    ExternalDiagonal,
    Mean,
    ParameterLeaf,
    PointSum,
    Quantity,
    View,
)

__all__ = [
    "check_kernel",
    "example_kernels",
    "example_points",
    "is_claimed",
    "missing_examples",
    "own_kernels",
    "pair_value",
]


# --- the battery -----------------------------------------------------------------------------------


def check_kernel(
    kernel: Kernel, X: Any = None, Y: Any = None, *, backend: str | None = None, dtype: Any = None
) -> None:
    """Raise an AssertionError that says what was found, unless the kernel keeps every promise.

    Checked are symmetry, the diagonal, rows, blocks and products against the whole matrix, the precision
    of the results, every value against the formula, positive semidefiniteness where it is claimed, and
    that the kernel behaves as a parameter object: get_params, set_params, clone, repr, pickle, ==, hash.

    Parameters
    ----------
    kernel : Kernel
    X, Y : points, optional: those of ``example_points`` when not given. A dozen are enough; the formula is
        worked out in Python for each pair of them.
    backend, dtype : as in ``mercer.config``; what is in force when not given.

    >>> from mercer import Gaussian
    >>> check_kernel(Gaussian(sigma=2.0), backend="numpy", dtype="float32")
    """
    if X is None:
        points = example_points(kernel, 15, np.random.default_rng(0))
        X, Y = data.take(points, slice(0, 10)), data.take(points, slice(6, 15))
    elif Y is None:
        Y = data.take(X, np.arange(data.n_points(X))[::-2])
    changes: Any = {"backend": backend, "dtype": dtype}
    given = {name: value for name, value in changes.items() if value is not None}
    with config(**given), warnings.catch_warnings():
        warnings.simplefilter("ignore", SlowPathWarning)  # slow is not wrong
        matrices = _Matrices.of(kernel, X, Y)
        for check in _CHECKS:
            check(matrices)
        _check_parameters(kernel, X)


@dataclass(frozen=True)
class _Matrices:
    """The Grams of a kernel on X and on X against Y, and what they are when written out."""

    kernel: Kernel
    X: Any
    Y: Any
    square: Gram
    oblong: Gram
    K: np.ndarray  # (n, n)
    L: np.ndarray  # (n, m)

    @classmethod
    def of(cls, kernel: Kernel, X: Any, Y: Any) -> _Matrices:
        kernel = kernel.resolve(X)
        square, oblong = Gram(kernel, X), Gram(kernel, X, Y)
        return cls(kernel, X, Y, square, oblong, square.dense(), oblong.dense())

    @property
    def tolerance(self) -> float:
        """How far two ways to the same value may differ.

        A value takes a sum over d coordinates and a dozen operations, each with a relative error of
        ε/2, the compiled functions of a few ε; exp(-t) or (·)^p turn a relative error of their argument
        into t or p times that, and a squared distance from a matrix product has one of ε (‖x‖² + ‖y‖²).
        With d, t, p and those norms in the tens that stays below 512 ε of the largest value.
        """
        return (
            512 * float(np.finfo(settings().dtype).eps) * float(np.abs(self.L).max() + np.abs(self.K).max())
        )

    def require_close(self, found: np.ndarray, wanted: np.ndarray, what: str, source: str) -> None:
        _require(
            found.shape == wanted.shape,
            f"{self.kernel!r}: {what} has shape {found.shape}, {source} has {wanted.shape}",
        )
        gap = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        worst = np.unravel_index(int(np.argmax(gap)), gap.shape)
        place = f"[{', '.join(map(str, worst))}]"
        _require(
            bool(gap[worst] <= self.tolerance),
            f"{self.kernel!r}: {what}{place} = {found[worst]} but {source}{place} = {wanted[worst]}",
        )


def _require(condition: bool, text: str) -> None:
    """What ``assert`` does, and ``python -O`` does not leave out."""
    if not condition:
        raise AssertionError(text)


def _check_dtype(of: _Matrices) -> None:
    wanted = np.dtype(settings().dtype)
    index = np.arange(of.square.shape[0])
    results = {
        "dense()": of.K,
        "diag()": of.square.diag(),
        "rows()": of.square.rows(index),
        "block()": of.square.block(index, index),
        "K @ V": of.square @ np.ones(len(index)),
    }
    for what, result in results.items():
        _require(
            result.dtype == wanted,
            f"{of.kernel!r}: {what} is {result.dtype} where {wanted} was asked for",
        )


def _check_finite(of: _Matrices) -> None:
    for name, matrix in (("k(X, X)", of.K), ("k(X, Y)", of.L)):
        bad = np.argwhere(~np.isfinite(matrix))
        place = ", ".join(map(str, bad[0])) if len(bad) else ""
        _require(not len(bad), f"{of.kernel!r}: {name}[{place}] is not a finite number")


def _check_symmetric(of: _Matrices) -> None:
    turned = Gram(of.kernel, of.Y, of.X).dense()
    gap = np.abs(of.L - turned.T)
    i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
    _require(
        bool(gap[i, j] <= of.tolerance),
        f"{of.kernel!r} is not symmetric: "
        f"k(X, Y)[{i}, {j}] = {of.L[i, j]} but k(Y, X)[{j}, {i}] = {turned[j, i]}",
    )
    unequal = np.argwhere(of.K != of.K.T)  # a matrix of one set of points is symmetric to the last bit
    i, j = np.append(unequal.ravel(), [0, 0])[:2]
    _require(
        not len(unequal),
        f"{of.kernel!r} is not symmetric: k(X)[{i}, {j}] = {of.K[i, j]} but k(X)[{j}, {i}] = {of.K[j, i]}",
    )


def _check_diagonal(of: _Matrices) -> None:
    of.require_close(of.square.diag(), np.diagonal(of.K), "diag()", "the diagonal of dense()")


def _check_parts(of: _Matrices) -> None:
    rng = np.random.default_rng(1)
    for gram, whole in ((of.square, of.K), (of.oblong, of.L)):
        n, m = whole.shape
        i, j = rng.integers(0, n, n // 2 + 1), rng.integers(0, m, m // 2 + 1)  # unordered, with repeats
        of.require_close(gram.rows(i), whole[i], "rows(i)", "dense()[i]")
        of.require_close(gram.block(i, j), whole[np.ix_(i, j)], "block(i, j)", "dense()[i, j]")
        V = rng.choice([-1.0, 0.0, 1.0], size=(m, 2)) / m  # entries of K @ V stay within those of K
        product = whole.astype(np.float64) @ V
        of.require_close(gram @ V, product, "(K @ V)", "(dense() @ V)")
        of.require_close(gram @ V[:, 0], product[:, 0], "(K @ v)", "(dense() @ v)")


def _check_values(of: _Matrices) -> None:
    expression = of.kernel.expression()
    for points, matrix, name in ((of.X, of.K, "k(X, X)"), (of.Y, of.L, "k(X, Y)")):
        n, m = matrix.shape
        by_hand = [[pair_value(expression, of.X, i, points, j) for j in range(m)] for i in range(n)]
        of.require_close(matrix, np.array(by_hand), name, "its formula at each pair")


def _check_positive(of: _Matrices) -> None:
    if not is_claimed(of.kernel):
        return
    # A change of each entry by at most t moves no eigenvalue by more than n t (Weyl).
    values, vectors = np.linalg.eigh(of.K.astype(np.float64))
    witness = np.array2string(vectors[:, 0], precision=3)
    _require(
        bool(values[0] >= -len(values) * of.tolerance),
        f"{of.kernel!r} is claimed to be positive semidefinite, but k(X) has the eigenvalue {values[0]}: "
        f"cᵀKc < 0 for c = {witness}",
    )


def is_claimed(kernel: Kernel) -> bool:
    """Whether mercer says that the kernel is positive semidefinite."""
    if kernel.lemma is not None:
        return True
    try:
        return certify(kernel).verdict == "proved"
    except NotImplementedError:
        return False


_CHECKS: tuple[Callable[[_Matrices], None], ...] = (
    _check_dtype,
    _check_finite,
    _check_symmetric,
    _check_diagonal,
    _check_parts,
    _check_values,
    _check_positive,
)


# --- kernels as parameter objects ------------------------------------------------------------------


def _check_parameters(kernel: Kernel, X: Any) -> None:
    own = kernel.get_params(deep=False)
    copy = _attempt(lambda: clone(kernel), f"{kernel!r} cannot be cloned")
    rebuilt = _attempt(
        lambda: type(kernel)(**own), f"{kernel!r} cannot be built again from its get_params(), {own}"
    )
    loaded = _attempt(lambda: pickle.loads(pickle.dumps(kernel)), f"{kernel!r} cannot be pickled")
    _require(rebuilt == kernel, f"{kernel!r}, built again from its get_params(), is not equal to it")
    _require(hash(rebuilt) == hash(kernel), f"{kernel!r}, built again, is equal but has another hash")
    _require(repr(rebuilt) == repr(kernel), f"{kernel!r}, built again, prints as {rebuilt!r}")
    _require(kernel != object(), f"{kernel!r} is equal to an object that is not a kernel")
    # Values, not ==: what is copied may hold an object that is equal to nothing but itself.
    for other, how in ((rebuilt, "built again"), (copy, "cloned"), (loaded, "pickled and loaded")):
        _require_same_values(kernel, other, how, X)
    _attempt(
        lambda: copy.set_params(**copy.get_params()), f"{kernel!r}: set_params(**get_params()) is refused"
    )
    _require_same_values(kernel, copy, "given its own parameters by set_params", X)


def _require_same_values(kernel: Kernel, other: Kernel, how: str, X: Any) -> None:
    few = data.take(X, slice(0, 3))
    before, after = (Gram(k.resolve(X), few).dense() for k in (kernel, other))
    _require(
        np.array_equal(before, after, equal_nan=True),
        f"{kernel!r}, {how}, has other values: {after.tolist()} instead of {before.tolist()}",
    )


def _attempt(action: Callable[[], Any], text: str) -> Any:
    try:
        return action()
    except Exception as error:
        raise AssertionError(f"{text}: {error}") from error


# --- the formula at one pair of points -------------------------------------------------------------


def pair_value(expression: Expression, X: Any, i: int, Y: Any, j: int) -> float:
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
            return _over_coordinates(node, *(_coordinates(node.view, point) for point in points))
        if isinstance(node, PointSum):
            coordinates = _coordinates(node.view, points[node.side])
            return _over_coordinates(node, coordinates, coordinates)
        if isinstance(node, External):
            return node.source.pairs(*map(node.view, points))[0, 0]
        if isinstance(node, ExternalDiagonal):
            return node.source.self_pairs(node.view(points[node.side]))[0]
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
    """A single point, seen through a view, as a list of numbers or labels."""
    point = view(point)
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


# --- kernels and points to try -----------------------------------------------------------------------


def example_kernels() -> list[Kernel]:
    """Kernels of every registered class: those below, and the default of any other that has one.

    >>> [k for k in example_kernels() if type(k).__name__ == "Min"]
    [Min()]
    """
    examples = list(_examples())
    shown = {type(kernel) for kernel in examples}
    for kind in own_kernels():
        if kind not in shown:
            with suppress(TypeError, ValueError):  # one that must be given something: ``_examples`` lacks it
                examples.append(kind())
    return examples


def own_kernels() -> list[type[Kernel]]:
    """Every registered kernel class of mercer itself."""
    for module in pkgutil.iter_modules(mercer.kernels.__path__, "mercer.kernels."):
        import_module(module.name)
    return [kind for kind in Kernel.registry if kind.__module__.startswith("mercer.")]


def missing_examples() -> list[type[Kernel]]:
    """Kernel classes of mercer that no example is an instance of; there should be none.

    >>> missing_examples()
    []
    """
    shown = {type(kernel) for kernel in example_kernels()}
    return [kind for kind in own_kernels() if kind not in shown]


def _examples() -> Iterator[Kernel]:
    from mercer import (
        ArcCosine,
        BallIndicator,
        BSpline,
        ChiSquared,
        ConditionalExpectation,
        Constant,
        Cosine,
        Delta,
        FromFunction,
        Gaussian,
        Laplacian,
        Linear,
        Matern,
        Min,
        Periodic,
        Polynomial,
        Precomputed,
        RationalQuadratic,
        Sigmoid,
        Wendland,
    )

    scales = [0.8, 2.0, 1.3]  # one per column of ``example_points``
    yield from (Linear(), Polynomial(), Polynomial(2, c=0.0, gamma=0.5), Polynomial(70, c=0.5, gamma=0.03))
    yield from (Sigmoid(eta=0.3, nu=-0.2), Cosine(), Constant(2.0))
    yield from (ArcCosine(order) for order in (0, 1, 2))
    yield from (Gaussian(), Gaussian(sigma=1.5), Gaussian(gamma=0.4), Gaussian(sigma="median"))
    yield from (Gaussian(sigma=scales), Gaussian(gamma=scales))
    yield from (Laplacian(gamma=0.7), Laplacian(gamma=0.7, norm=2))
    yield from (Laplacian(gamma=scales), Laplacian(gamma=scales, norm=2))
    yield from (Matern(nu, length_scale=1.5) for nu in (0.3, 0.5, 1.2, 1.5, 2.5, 3.0))
    yield from (Matern(0.5, scales), Matern(2.5, scales), Matern(1.2, scales))
    yield from (RationalQuadratic(alpha=0.7, length_scale=1.3), RationalQuadratic(2.0, scales))
    yield Periodic(period=2.5, length_scale=1.2)
    yield from (Wendland(radius=3.0, smoothness=s) for s in (0, 1, 2))
    yield Wendland(radius=[3.0, 2.0, 4.0])
    yield from (BSpline(degree=m, scale=1.2) for m in (1, 3, 5))
    yield from (BallIndicator(radius=1.5), Delta(), Min(), ChiSquared(gamma=0.5))
    yield ConditionalExpectation(_two_bumps, weights=[0.3, 0.7])
    yield FromFunction(_common_letters)
    yield Precomputed(_MATRIX)
    smooth, straight = Gaussian(sigma=1.2), Linear()
    yield from (smooth + straight, smooth * Polynomial(2), 0.5 * smooth, smooth + 1.0)
    yield from (
        Polynomial(1) ** 3,
        smooth**1.5,
        Linear().polynomial([1.0, 0.5, 0.25]),
        (0.1 * straight).exp(),
    )
    yield from (Polynomial(2).normalized(), Min().normalized(), BSpline().normalized())
    yield from (smooth.centered(_REFERENCE), straight.centered(_REFERENCE), Laplacian().centered(_REFERENCE))
    yield from (smooth.on(0, 2), smooth.on(0, 1) * Delta().on(2), smooth.on(0) + Polynomial(2).on(1, 2))
    yield from (smooth @ _squares, Polynomial(2) @ _squares + Matern().on(1))
    yield 2 * (smooth.on(0, 1).normalized() + straight * Cosine()) ** 2 + Periodic().on(1)
    yield smooth.derivative("sigma")


def _two_bumps(X: np.ndarray) -> np.ndarray:  # (n, d) to (n, 2)
    """Two densities on ℝᵈ, up to a factor."""
    return np.exp(-np.stack([((X - 1) ** 2).sum(axis=1), ((X + 1) ** 2).sum(axis=1)], axis=1) / 2)


def _squares(X: np.ndarray) -> np.ndarray:
    return np.asarray(X) ** 2 / 2


def _common_letters(a: str, b: str) -> int:
    return len(set(a) & set(b))


_LETTERS = "mercerkernel"
_REFERENCE = np.array([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [-0.5, 0.0, 2.0], [0.0, 1.25, 1.0]])
_MATRIX = np.minimum.outer(np.arange(1.0, 13.0), np.arange(1.0, 13.0))  # min(i, j): positive definite


def example_points(kernel: Kernel, n: int, rng: np.random.Generator) -> Any:
    """n points on which the kernel is defined, with what is special among them: an origin, a repetition.

    Vectors have three columns of multiples of 1/64, the same numbers in float32 and float64.

    >>> from mercer import Gaussian
    >>> example_points(Gaussian(), 4, np.random.default_rng(0)).shape
    (4, 3)
    """
    leaves = {type(leaf).__name__ for leaf in _leaves(kernel)}
    if "Precomputed" in leaves:
        return rng.integers(0, len(_MATRIX), n)
    if kernel.domain == "objects":
        letters = list(_LETTERS)
        return ["".join(rng.choice(letters, size=rng.integers(1, 7))) for _ in range(n)]
    points = np.round(64 * rng.normal(size=(n, 3))) / 64
    points[1::5] = 0.0
    points[4::5] = points[3::5][: len(points[4::5])]
    if kernel.domain == "any":
        points[:, 2] = np.round(points[:, 2])  # a column of categories
    return np.abs(points) if kernel.domain == "nonnegative" else points


def _leaves(kernel: Kernel) -> Iterator[Kernel]:
    children = kernel.children().values()
    for child in children:
        yield from _leaves(child)
    if not children:
        yield kernel
