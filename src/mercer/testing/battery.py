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
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.certify import certify
from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import SlowPathWarning
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.runtime.config import config, settings
from mercer.testing.examples import example_points
from mercer.testing.scalar import pair_value


def check_kernel(
    kernel: Kernel,
    X: Points | None = None,
    Y: Points | None = None,
    *,
    backend: str | None = None,
    dtype: Any = None,
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
    X: Points
    Y: Points
    square: Gram
    oblong: Gram
    K: np.ndarray  # (n, n)
    L: np.ndarray  # (n, m)

    @classmethod
    def of(cls, kernel: Kernel, X: Points, Y: Points) -> _Matrices:
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
            result.dtype == wanted, f"{of.kernel!r}: {what} is {result.dtype} where {wanted} was asked for"
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
    on_vectors = of.kernel.domain.is_vectors
    if not is_claimed(of.kernel, data.as_vectors(of.X).shape[1] if on_vectors else None):
        return
    # A change of each entry by at most t moves no eigenvalue by more than n t (Weyl).
    values, vectors = np.linalg.eigh(of.K.astype(np.float64))
    witness = np.array2string(vectors[:, 0], precision=3)
    _require(
        bool(values[0] >= -len(values) * of.tolerance),
        f"{of.kernel!r} is claimed to be positive semidefinite, but k(X) has the eigenvalue {values[0]}: "
        f"cᵀKc < 0 for c = {witness}",
    )


def _check_support(of: _Matrices) -> None:
    support = of.kernel.support
    if support is None:
        return
    ours, slack = support.coordinates(of.X), 1 + 1e-3  # Rounding in float32 is well below that.
    for points, matrix, name in ((of.X, of.K, "k(X, X)"), (of.Y, of.L, "k(X, Y)")):
        differences = ours[:, None] - support.coordinates(points)
        beyond = np.argwhere((np.linalg.norm(differences, support.norm, axis=2) > slack) & (matrix != 0))
        if len(beyond):
            i, j = beyond[0]
            _require(
                False,
                f"{of.kernel!r} is said to be zero outside its support, but {name}[{i}, {j}] = "
                f"{matrix[i, j]} there",
            )


def is_claimed(kernel: Kernel, dim: int | None = None) -> bool:
    """Whether mercer says that the kernel is positive semidefinite, for points in ℝ^dim if that is given.

    >>> from mercer import Wendland
    >>> is_claimed(Wendland(dim=3), dim=2), is_claimed(Wendland(dim=3), dim=5)
    (True, False)
    """
    return kernel.lemma is not None or certify(kernel, dim=dim).verdict == "proved"


_CHECKS: tuple[Callable[[_Matrices], None], ...] = (
    _check_dtype,
    _check_finite,
    _check_symmetric,
    _check_diagonal,
    _check_parts,
    _check_values,
    _check_positive,
    _check_support,
)


# --- kernels as parameter objects ------------------------------------------------------------------


def _check_parameters(kernel: Kernel, X: Points) -> None:
    own = kernel.get_params(deep=False)
    copy = _attempt(lambda: clone(kernel), f"{kernel!r} cannot be cloned")
    rebuilt = _attempt(
        lambda: type(kernel)(**own), f"{kernel!r} cannot be built again from its get_params(), {own}"
    )
    loaded = _attempt(lambda: pickle.loads(pickle.dumps(kernel)), f"{kernel!r} cannot be pickled")
    for name, value in rebuilt.get_params(deep=False).items():
        _require(value is own[name], f"{kernel!r} converts {name}: it must keep the very object it is given")
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


def _require_same_values(kernel: Kernel, other: Kernel, how: str, X: Points) -> None:
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
