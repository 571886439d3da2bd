r"""Functions of the RKHS: f(x) = Σᵢ αᵢ k(xᵢ, x) + b, what every learner returns.

>>> from mercer import Gaussian
>>> f = Expansion(Gaussian(sigma=1.0), [[0.0], [2.0]], [1.0, -1.0])
>>> f([[0.0], [1.0]]).round(4)
array([0.8647, 0.    ])

The reproducing property ⟨f, k(x, ·)⟩ = f(x):

>>> at_one = Expansion(f.kernel, [[0.5]], [1.0])
>>> bool(np.isclose(f @ at_one, f([[0.5]])[0]))
True
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.gram import Gram
from mercer.gram.device import is_used
from mercer.kernels.base import Kernel
from mercer.kernels.one_point import as_list, width_of
from mercer.notebook import Shown
from mercer.runtime.config import settings, within

#: Numbers of new points from which on a device is sent them as they are; points by which it chooses how.
_WORTH_A_STREAM, _SHOWN_FIRST = 2**20, 128
#: Numbers of new points that are looked at together: a Gram has a copy of its points, here of 64 MiB.
_NUMBERS_AT_ONCE = 2**23
_PREPARED = 2**26  # bytes of anchors up to which they are kept prepared, which takes as much again


class Expansion(Shown):
    """f = Σᵢ αᵢ k(xᵢ, ·) + b, or several such functions over the same anchors (columns of coef).

    Parameters
    ----------
    kernel : Kernel
    anchors : the points xᵢ; they are not copied, and must not be changed afterwards
    coef : (n,) or (n, functions): the αᵢ
    intercept : number, or one per function: b

    The intercept belongs to f as a function, not to its RKHS part: ``norm`` and ``@`` are those of
    Σᵢ αᵢ k(xᵢ, ·).
    """

    _shown_by = "mercer.notebook.expansion"
    __array_ufunc__ = None  # an array of functions would help nobody

    #: K(·, anchors) with its anchors prepared, after the first values
    _kept: Gram | None = None

    def __init__(self, kernel: Kernel, anchors: Any, coef: Any, intercept: Any = 0.0) -> None:
        if not isinstance(kernel, Kernel):
            raise InputError(f"kernel must be a Kernel such as Gaussian(sigma=1.0), got {kernel!r}")
        self.kernel = kernel.__sklearn_clone__().resolve(anchors)
        self.anchors = data.as_vectors(anchors, "anchors") if kernel.domain.is_vectors else anchors
        self.coef = _real(coef, "coef")
        self.intercept = _real(intercept, "intercept")
        n = data.n_points(self.anchors)
        if self.coef.ndim not in (1, 2) or self.coef.shape[0] != n:
            raise InputError(f"coef must have one entry per anchor ({n}), got shape {self.coef.shape}")
        if self.intercept.shape not in ((), self.coef.shape[1:]):
            raise InputError(
                f"intercept must be a number or one per function {self.coef.shape[1:]}, "
                f"got shape {self.intercept.shape}"
            )

    def __call__(self, X: Points) -> Any:  # (m,) or (m, functions); a number, or (functions,), at one point
        """The values f(x) at the points X, or f(x) at a single point, as of ``kernel(x, y)``.

        >>> from mercer import Linear
        >>> f = Expansion(Linear(), [[1.0, 2.0]], [1.0])
        >>> f([2, 3]), f([[2, 3]])
        (8.0, array([8.]))
        """
        domain = self.kernel.domain
        points, is_one = as_list(domain, X, width_of(domain, self.anchors))
        values = self.values(points)
        return _scalar(values[0]) if is_one else values

    def values(self, points: Points, dtype: str | None = None) -> np.ndarray:  # (m,) or (m, functions)
        """The values at a list of points, by kernel values of ``dtype``: of the configured one by default."""
        return self._products(points, dtype) + self.intercept

    def _products(self, points: Points, dtype: str | None) -> np.ndarray:  # (m,) or (m, functions)
        """K(points, anchors) @ coef; of an array that may be larger than memory some rows at a time."""
        if isinstance(points, np.ndarray) and self.streams(points):
            found = self._streamed(points, dtype)
            if found is not None:
                return found
        if not isinstance(points, np.ndarray) or points.size <= _NUMBERS_AT_ONCE:
            return self._gram(points, dtype) @ self.coef
        if self.kernel.domain.is_vectors and points.dtype.kind == "f":
            points = data.as_vectors(points)  # An error names the row of the whole.
        step = max(1, _NUMBERS_AT_ONCE * len(points) // points.size)
        parts = [self._gram(points[i : i + step], dtype) @ self.coef for i in range(0, len(points), step)]
        return np.concatenate(parts)

    def streams(self, points: np.ndarray) -> bool:
        """Whether these are many points for a device, which sees itself that they are finite.

        >>> from mercer import Linear
        >>> Expansion(Linear(), [[1.0]], [1.0]).streams(
        ...     np.zeros((2, 1))
        ... )  # The CPU reads them where they are.
        False
        """
        is_table = points.ndim == 2 and points.dtype.kind == "f" and self.kernel.domain.is_vectors
        return is_used() and is_table and points.size >= _WORTH_A_STREAM

    def _streamed(self, points: np.ndarray, dtype: str | None) -> np.ndarray | None:  # (m,) or (m, functions)
        """The same of many points that a device makes ready; None where it cannot, or they are not finite."""
        some = points[np.linspace(0, len(points) - 1, _SHOWN_FIRST).astype(np.int64)]
        if not np.isfinite(some).all():
            return None
        values = import_module("mercer.gram.device.arrivals").values
        found = values(self._gram(some, dtype), points, self.coef.reshape(len(self.coef), -1))
        return None if found is None else found.reshape(len(points), *self.coef.shape[1:])

    def _gram(self, points: Points, dtype: str | None) -> Gram:  # (m, n)
        """K(points, anchors); for few points preparing the anchors would take longer than all the rest."""
        kept, now = self._kept, settings()
        under = now.of_values() | ({"dtype": dtype} if dtype else {})
        if kept is not None and kept.is_of(self.kernel, self.anchors, under):
            return kept.beside(points)
        with within(**under):
            gram = Gram(self.kernel, points, self.anchors, cache=0)
        if isinstance(self.anchors, np.ndarray) and self.anchors.nbytes <= _PREPARED:
            self._kept = gram.beside(self.anchors[:1])  # it holds no points of the caller
        return gram

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def __matmul__(self, other: Expansion) -> Any:
        """⟨f, g⟩ = Σᵢⱼ αᵢ βⱼ k(xᵢ, x'ⱼ), function by function; the anchors may differ."""
        if not isinstance(other, Expansion):
            return NotImplemented
        self._require_same_space(other)
        values = Gram(self.kernel, self.anchors, other.anchors, cache=0) @ other.coef
        if self.coef.shape[1:] != other.coef.shape[1:]:
            raise InputError(
                f"⟨f, g⟩ pairs the functions one to one: "
                f"f has {self.coef.shape[1:]}, g has {other.coef.shape[1:]}"
            )
        return _scalar((self.coef * values).sum(axis=0))

    def norm(self) -> Any:
        """‖f‖ = √(αᵀ K α)."""
        K = Gram(self.kernel, self.anchors, cache=0)
        return _scalar(np.sqrt(np.maximum((self.coef * (K @ self.coef)).sum(axis=0), 0.0)))

    def __add__(self, other: Any) -> Expansion:
        if not isinstance(other, Expansion):
            if np.ndim(other) > 1 or isinstance(other, str):
                return NotImplemented
            return Expansion(
                self.kernel, self.anchors, self.coef, self.intercept + _real(other, "the added number")
            )
        self._require_same_space(other)
        if other.anchors is self.anchors:
            coef, anchors = self.coef + other.coef, self.anchors
        else:
            coef, anchors = np.concatenate([self.coef, other.coef]), data.stack(self.anchors, other.anchors)
        return Expansion(self.kernel, anchors, coef, self.intercept + other.intercept)

    __radd__ = __add__

    def __mul__(self, factor: Any) -> Expansion:
        if not np.isscalar(factor) or isinstance(factor, str):
            return NotImplemented
        factor = float(_real(factor, "the factor"))
        return Expansion(self.kernel, self.anchors, factor * self.coef, factor * self.intercept)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Expansion:
        if not np.isscalar(divisor) or isinstance(divisor, str):
            return NotImplemented
        return (1 / float(_real(divisor, "the divisor"))) * self

    def __neg__(self) -> Expansion:
        return -1.0 * self

    def __sub__(self, other: Any) -> Expansion:
        return self + (-1.0) * other

    def __rsub__(self, other: object) -> Expansion:
        return (-1.0) * self + other

    def prune(self, tol: float = 0.0) -> Expansion:
        """Without the anchors whose coefficients are at most ``tol`` times the largest, in every function.

        >>> from mercer import Linear
        >>> Expansion(Linear(), [[1.0], [2.0]], [1.0, 1e-14]).prune(1e-12)
        Expansion(Linear(), 1 anchors)
        """
        if not (np.ndim(tol) == 0 and 0 <= float(tol) < np.inf):
            raise InputError(
                f"tol must be zero or more, got {tol!r}: it is relative to the largest |coefficient|"
            )
        size = np.abs(self.coef).reshape(len(self.coef), -1).max(axis=1)
        keep = np.flatnonzero(size > tol * size.max())
        if keep.size == 0:  # f = b: one anchor of weight zero keeps the type
            keep = np.array([0])
        return Expansion(self.kernel, data.take(self.anchors, keep), self.coef[keep], self.intercept)

    def __len__(self) -> int:
        """The number of anchors."""
        return len(self.coef)

    def __repr__(self) -> str:
        functions = f", {self.coef.shape[1]} functions" if self.coef.ndim == 2 else ""
        return f"Expansion({self.kernel!r}, {len(self)} anchors{functions})"

    def _require_same_space(self, other: Expansion) -> None:
        if self.kernel != other.kernel:
            raise InputError(
                f"the functions live in different spaces: {self.kernel!r} and {other.kernel!r}; "
                "an inner product or a sum needs one kernel"
            )


def _real(value: object, name: str) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must be real numbers, got {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise InputError(
            f"{name} must be finite, got {array[~np.isfinite(array)].flat[0] if array.ndim else array}"
        )
    return array


def _scalar(value: np.ndarray) -> Any:
    return float(value) if np.ndim(value) == 0 else value
