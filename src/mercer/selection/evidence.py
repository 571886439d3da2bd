r"""Continuous parameters of a kernel, learned by gradient steps on the evidence.

y = f + noise, f from the Gaussian process of covariance s²k, the noise of variance s²λ. With s² at its best
value the negative logarithm of the probability of y is, up to a constant,

    L(θ, λ) = (n/2) log(q/n) + ½ log |M|,     M = K(θ) + λI,   q = yᵀM⁻¹y

and with G = M⁻¹ - (n/q) M⁻¹y yᵀM⁻¹ its derivatives are ∂L/∂θ = ½ Σᵢⱼ Gᵢⱼ ∂Kᵢⱼ/∂θ. Several targets share K; q
is their mean. The derivatives of K are the kernels' own; length scales per column, of which there may be
many, all come from one matrix where the kernel is a function of the distance. Kernel ridge regression with
the penalty λ is what such θ and λ are for.

Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 5.4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from mercer.data import points as data
from mercer.data.sparse import dense
from mercer.data.types import Points
from mercer.errors import InputError
from mercer.estimators.shared.origin import moved, origin_of
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.derivative import DistanceSlope
from mercer.kernels.parameters import is_vector
from mercer.runtime.clock import now
from mercer.runtime.native import OPTIONS, njit
from mercer.runtime.threads import run, single_threaded_blas
from mercer.solvers.linear.cholesky import factorise, inverse, solve

#: A parameter may change by this factor: a column that is scaled by more counts for all or for nothing.
_LARGEST_CHANGE = 1e4
#: λ relative to the mean k(x, x): where it begins, and its bounds
_FIRST_NOISE = 0.1
_NOISE_BOUNDS = (1e-8, 1e3)
#: The logarithm of a column's scale is pulled towards its beginning, so that an irrelevant one stays finite.
_PULL_OF_COLUMNS = 0.01
_VALUE_WHERE_REFUSED = 1e10  # what L-BFGS sees where K cannot be factored: worse than any value
_NOISE_TRIES = 7  # λ grows in so many steps; a K that is far from positive definite is then refused
#: A step that gains less of L is the last one. L is a logarithm of a probability: what the points know of a
#: parameter is known to half of such a unit, so that a twentieth of that is below all doubt.
_LEAST_GAIN = 0.025


@dataclass(frozen=True, eq=False)
class Learned:
    """A kernel with learned parameters."""

    kernel: Kernel
    #: λ beside K
    noise: float
    #: L per point; comparable between kernels on the same points
    value: float
    #: how often L was computed
    evaluations: int


def evidence(
    kernel: Kernel,
    X: Points,
    Y: np.ndarray,  # (n, t), of mean zero
    noise: float,
    names: Sequence[str] | None = None,
) -> tuple[float, dict[str, np.ndarray], float]:
    """L, its derivatives by log θ, by name, and that by log λ; L alone without ``names``.

    >>> from mercer import Gaussian
    >>> x, y = np.array([[0.0], [1.0], [3.0]]), np.array([[-1.0], [0.0], [1.0]])
    >>> value, slopes, by_noise = evidence(Gaussian(sigma=1.0), x, y, 0.1, ["sigma"])
    >>> step = [evidence(Gaussian(sigma=np.exp(h)), x, y, 0.1)[0] for h in (-1e-5, 1e-5)]
    >>> bool(abs((step[1] - step[0]) / 2e-5 - slopes["sigma"]) < 1e-6)
    True
    """
    with single_threaded_blas():
        return _evidence(kernel, X, Y, noise, names)


def _evidence(
    kernel: Kernel, X: Points, Y: np.ndarray, noise: float, names: Sequence[str] | None
) -> tuple[float, dict[str, np.ndarray], float]:
    n, t = Y.shape
    M = np.asarray(Gram(kernel, X, cache=0).dense(), dtype=np.float64)
    M.flat[:: n + 1] += noise
    factor = factorise(M.T)
    A = solve(factor, Y)
    q = max(float((Y * A).sum()) / t, 1e-300)
    value = n / 2 * np.log(q / n) + float(np.log(np.diagonal(factor)).sum())
    if names is None:
        return value, {}, np.nan
    G = inverse(factor).T  # The upper triangle is written, row by row.
    A = np.ascontiguousarray(A)
    run(lambda rows: complete(G, A, n / (q * t), rows.start, rows.stop), _bands(n))
    slopes = {name: _slopes(kernel, X, name, G) for name in names}
    return value, slopes, 0.5 * noise * float(np.trace(G))


def learn(
    kernel: Kernel,
    X: Points,
    Y: np.ndarray,  # (n, t)
    names: Sequence[str],
    noise: float | None = None,
    *,
    tied: bool = False,
    iterations: int = 30,
    deadline: float = np.inf,
) -> Learned:
    """The parameters ``names`` of the kernel, and λ, that minimise L, by gradient steps from where they are.

    ``names`` are those of ``kernel.get_params()``, their values positive numbers, or one per column; ``tied``
    columns keep their ratios. λ begins at a tenth of the mean k(x, x). Ends when ``now()`` passes the
    deadline, with the best so far.

    >>> from mercer import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> learned = learn(Gaussian(sigma=[1.0, 1.0]), X, np.sin(2 * X[:, :1]), ["sigma"])
    >>> first, second = learned.kernel.sigma
    >>> bool(second > 10 * first)  # the second column does not matter
    True
    """
    Y = Y - Y.mean(axis=0)
    X = moved(X, origin_of(kernel, X, is_free=True))
    space = _Space.of(kernel, names, tied)
    unit = _unit(kernel, X)
    least, most = (unit * side for side in _NOISE_BOUNDS)
    noise = min(max(_FIRST_NOISE * unit if noise is None else noise, least), most)
    start = np.append(np.zeros(space.size), np.log(noise))
    objective = _Objective(space, X, Y, names, deadline)
    reach = (-np.log(_LARGEST_CHANGE), np.log(_LARGEST_CHANGE))
    with suppress(_OutOfTimeError):
        for _ in range(_NOISE_TRIES):  # A K that is singular to rounding needs more noise.
            objective(start)
            if np.isfinite(objective.best):
                break
            start[-1] = min(start[-1] + np.log(100.0), np.log(most))
        minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[reach] * space.size + [(np.log(least), np.log(most))],
            options={"maxiter": iterations, "ftol": _LEAST_GAIN / len(Y)},
        )
    at = start if objective.at_best is None else objective.at_best
    kernel = space.kernel(at[:-1])
    if at[:-1].any():  # The weights of a sum may have grown, and the least noise with them.
        unit = _unit(kernel, X)
    noise = max(float(np.exp(at[-1])), _NOISE_BOUNDS[0] * unit)
    return Learned(kernel, noise, objective.best / len(Y), objective.count)


class _Objective:
    """L and its gradient per point, at the logarithms of parameters and λ; the least value so far is kept."""

    def __init__(
        self, space: _Space, X: Points, Y: np.ndarray, names: Sequence[str], deadline: float
    ) -> None:
        self.space, self.X, self.Y, self.names, self.deadline = space, X, Y, names, deadline
        self.pull = np.append(space.pull, 0.0)
        self.best, self.count, self.first = np.inf, 0, 0.0
        self.at_best: np.ndarray | None = None
        self._last: tuple[np.ndarray, float, np.ndarray] | None = None

    def __call__(self, at: np.ndarray) -> tuple[float, np.ndarray]:
        if self._last is not None and np.array_equal(
            at, self._last[0]
        ):  # L-BFGS asks for the first place twice.
            return self._last[1:]
        is_late = now() > self.deadline
        if is_late and np.isfinite(self.best):
            raise _OutOfTimeError
        self.count += 1
        kernel, noise = self.space.kernel(at[:-1]), float(np.exp(at[-1]))
        try:
            value, slopes, by_noise = evidence(kernel, self.X, self.Y, noise, None if is_late else self.names)
        except LinAlgError:  # K is singular to rounding, so that L has no value here.
            return _VALUE_WHERE_REFUSED, np.zeros_like(at)
        value += float(self.pull @ at**2)
        if not np.isfinite(self.best):
            self.first = value
        if value < self.best:
            self.best, self.at_best = value, at.copy()
        if is_late:  # No step follows, and the gradient takes code of its own.
            raise _OutOfTimeError
        gradient = np.append(self.space.gather(slopes), by_noise) + 2 * self.pull * at
        # L-BFGS-B takes a gain relative to max(|L|, 1): counted from its first value, L stays small.
        self._last = at.copy(), (value - self.first) / len(self.Y), gradient / len(self.Y)
        return self._last[1:]


def _unit(kernel: Kernel, X: Points) -> float:
    """The mean |k(x, x)|."""
    unit = float(np.mean(np.abs(Gram(kernel, X, cache=0).diag())))
    if not np.isfinite(unit):
        raise InputError(
            f"{kernel!r} is not finite at these points: scale their columns, or take a smaller degree"
        )
    return max(unit, 1e-300)


class _OutOfTimeError(Exception):
    pass


@dataclass(frozen=True, eq=False)
class _Space:
    """The logarithms of chosen parameters of a kernel, relative to where they begin."""

    start: Kernel
    values: dict[str, np.ndarray]  # one or more positive numbers each
    #: how many variables each parameter is
    sizes: tuple[int, ...]
    pull: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, names: Sequence[str], tied: bool) -> _Space:
        given = kernel.get_params()
        values = {name: np.atleast_1d(np.asarray(given[name], dtype=np.float64)) for name in names}
        sizes = tuple(1 if tied else len(value) for value in values.values())
        pull = [np.full(size, _PULL_OF_COLUMNS if size > 1 else 0.0) for size in sizes]
        return cls(kernel, values, sizes, np.concatenate([np.empty(0), *pull]))

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def kernel(self, at: np.ndarray) -> Kernel:
        """The kernel with its parameters multiplied by exp(at)."""
        given, ends = self.start.get_params(), np.cumsum(self.sizes)
        parts = [np.exp(at[end - size : end]) for end, size in zip(ends, self.sizes, strict=True)]
        changed = {}
        for (name, value), part in zip(self.values.items(), parts, strict=True):
            changed[name] = value * part if is_vector(given[name]) else float(value[0] * part[0])
        result = self.start.__sklearn_clone__()
        result.set_params(**changed)
        return result

    def gather(self, slopes: dict[str, np.ndarray]) -> np.ndarray:
        """The derivatives by the variables, from those by the parameters."""
        parts = zip(self.values, self.sizes, strict=True)
        return np.concatenate(
            [np.empty(0), *(slopes[n] if len(slopes[n]) == size else [slopes[n].sum()] for n, size in parts)]
        )


def _slopes(kernel: Kernel, X: Points, name: str, G: np.ndarray) -> np.ndarray:
    """½ Σᵢⱼ Gᵢⱼ ∂Kᵢⱼ/∂ log θ, for each entry of the parameter θ."""
    value = kernel.get_params()[name]
    if not is_vector(value):
        D = Gram(kernel.derivative(name), X, cache=0).dense()
        return np.array([0.5 * float(value) * float(np.einsum("ij,ij->", G, D))])
    slope = DistanceSlope.of(kernel, name)
    if slope is None:
        sums = [
            float(np.einsum("ij,ij->", G, Gram(kernel.derivative(f"{name}[{j}]"), X, cache=0).dense()))
            for j in range(len(value))
        ]
        return 0.5 * np.asarray(value, dtype=np.float64) * np.array(sums)
    W = np.asarray(Gram(slope, X, cache=0).dense(), dtype=np.float64)
    run(lambda rows: weigh(W[rows], G[rows], rows.start), _bands(len(W)))
    exponent = kernel.parameters[name].per_column
    assert exponent is not None
    Z = dense(data.as_vectors(X)) * np.asarray(value, dtype=np.float64) ** exponent
    if not slope.is_squared:
        return np.asarray(exponent / 2 * absolute_differences(W, np.ascontiguousarray(Z.T)))
    Z = Z - Z.mean(axis=0)
    squares = 2 * (W.sum(axis=1) @ Z**2 - np.einsum("ij,ij->j", Z, W @ Z))
    return np.asarray(exponent * squares)


_TILE = 64
_BAND = 4 * _TILE  # rows of a task: a fraction of a millisecond for a thousand columns


def _bands(n: int) -> list[slice]:
    """Rows of a matrix of n, for tasks of ours.

    >>> _bands(600)
    [slice(0, 256, None), slice(256, 512, None), slice(512, 600, None)]
    """
    return [slice(start, min(start + _BAND, n)) for start in range(0, n, _BAND)]


@njit(nogil=True, cache=True, **OPTIONS)
def complete(G, A, factor, first, last):  # type: ignore[no-untyped-def]
    """G - factor · AAᵀ in place, of a symmetric G of which the upper triangle is there.

    Done are these rows of the triangle, ``first`` a multiple of the tile, and the columns that mirror them.
    """
    n, t = A.shape
    for top in range(first, last, _TILE):
        for left in range(top, n, _TILE):
            for i in range(top, min(top + _TILE, n)):
                for j in range(max(left, i), min(left + _TILE, n)):
                    product = 0.0
                    for k in range(t):
                        product += A[i, k] * A[j, k]
                    value = G[i, j] - factor * product
                    G[i, j] = value
                    G[j, i] = value


@njit(nogil=True, cache=True, **OPTIONS)
def weigh(W, G, first):  # type: ignore[no-untyped-def]
    """W ∘ G in place, without the diagonal: of rows from the first one on.

    Where two points are equal the slope W may be infinite, and multiplies a difference of zero.
    """
    for i in range(W.shape[0]):
        for j in range(W.shape[1]):
            value = W[i, j] * G[i, j]
            W[i, j] = value if first + i != j and abs(value) < np.inf else 0.0


@njit(nogil=True, cache=True, **OPTIONS)
def absolute_differences(W, columns):  # type: ignore[no-untyped-def]
    """Σᵢⱼ Wᵢⱼ |zᵢ - zⱼ| of every column z, for a symmetric W."""
    d, n = columns.shape
    out = np.zeros(d)
    for i in range(n):
        weights = W[i]
        for k in range(d):
            z = columns[k]
            part = 0.0
            for j in range(i):
                part += weights[j] * abs(z[i] - z[j])
            out[k] += 2 * part
    return out
