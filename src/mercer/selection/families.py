r"""What a search tries: kernels with the continuous parameters that are learned.

On vectors, by default: Gaussian, Matérn ½ and 3/2, rational quadratic, with one length scale per column, that
begins at √d times the spread of the column; the ℓ₁ Laplacian; and Matérn 3/2 on a learned map. Rough kernels
are among them because real tables often are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mercer.data.points import Vectors
from mercer.data.sparse import is_sparse
from mercer.features.linear import LinearMap
from mercer.kernels.base import Kernel
from mercer.kernels.compose import Mapped
from mercer.kernels.derivative import differentiable
from mercer.kernels.parameters import is_vector
from mercer.kernels.vectors.stationary import Gaussian, Laplacian, Matern, RationalQuadratic

_MOST_MAPPED = 100  # columns whose combinations are learned: a map has the square of as many numbers


@dataclass(frozen=True, eq=False)
class Family:
    """A kernel at its beginning, and the parameters to learn from there."""

    kernel: Kernel
    names: tuple[str, ...]
    #: what the kernel stands for on the points as they were given, where a search takes them in another form
    shown: Kernel | None = None

    @property
    def has_map(self) -> bool:
        """Whether the kernel is on a linear map of the columns, which is learned (`selection.gradients`)."""
        return isinstance(self.kernel, Mapped) and isinstance(self.kernel.function, LinearMap)

    @property
    def has_width(self) -> bool:
        """Whether there is a length scale, or an inverse one, among the parameters."""
        return any(_exponent(self.kernel, name) is not None for name in self.names)

    @property
    def columns(self) -> int:
        """How many parameters there are beyond one for each name."""
        if self.has_map:
            return len(vars(self.kernel)["function"].matrix)
        given = self.kernel.get_params()
        return sum(len(given[name]) - 1 for name in self.names if is_vector(given[name]))


def family(kernel: Kernel) -> Family:
    """The family of a kernel: the parameters that are positive numbers and have a derivative are learned.

    Exponents stay as they are given: of a fraction few kernels are kernels.

    >>> from mercer import Gaussian, Linear
    >>> family(2.0 * Gaussian(sigma=1.0) + 0.5 * Linear()).names
    ('k1__scale', 'k1__kernel__sigma', 'k2__scale')
    """
    given = kernel.get_params()
    names = (name for name in differentiable(kernel) if name.rpartition("__")[2] != "exponent")
    return Family(kernel, tuple(name for name in names if _is_positive(given[name])))


def widened(kernel: Kernel, names: Sequence[str], factor: float) -> Kernel:
    """The kernel with its length scales multiplied by a factor, and its inverse widths divided by it.

    >>> from mercer import Gaussian, Laplacian
    >>> widened(Gaussian(sigma=1.0) + 3.0 * Laplacian(gamma=1.0), ["k1__sigma", "k2__kernel__gamma"], 2.0)
    Gaussian(sigma=2.0) + 3.0 * Laplacian(gamma=0.5, norm=1)
    """
    given, changed = kernel.get_params(), {}
    for name in names:
        exponent = _exponent(kernel, name)
        if exponent is not None:
            value = np.asarray(given[name], dtype=np.float64) * factor**-exponent
            changed[name] = value if value.ndim else float(value)
    result = kernel.__sklearn_clone__()
    result.set_params(**changed)
    return result


def _exponent(kernel: Kernel, name: str) -> float | None:
    """What a column is multiplied by, as a power of this parameter; None where it is no width."""
    owner, _, own = name.rpartition("__")
    part: Kernel = kernel.get_params()[owner] if owner else kernel
    return part.parameters[own].per_column


def default_families(X: Vectors) -> Iterator[Family]:  # X: (n, d)
    """The families for vectors."""
    spread = spread_of(X)
    d = len(spread)
    scale = spread * np.sqrt(d)
    yield Family(Gaussian(sigma=scale), ("sigma",))
    yield Family(Matern(nu=1.5, length_scale=scale), ("length_scale",))
    yield Family(Matern(nu=0.5, length_scale=scale), ("length_scale",))
    yield Family(RationalQuadratic(alpha=1.0, length_scale=scale), ("length_scale",))
    yield Family(Laplacian(gamma=1 / (2 * d * spread)), ("gamma",))
    if 1 < d <= _MOST_MAPPED and not is_sparse(X):
        on_map = Matern(nu=1.5, length_scale=float(np.sqrt(d))) @ LinearMap(np.diag(1 / spread))
        yield Family(on_map, ("kernel__length_scale",))


def spread_of(X: Vectors) -> np.ndarray:  # (d,)
    """The standard deviation of each column; 1 for one that is constant."""
    size = np.asarray(abs(X).max(axis=0).toarray()).ravel() if is_sparse(X) else np.abs(X).max(axis=0)
    size = np.where(size > 0, size, 1.0).astype(np.float64)  # Squares of large numbers would overflow.
    if is_sparse(X):
        scaled = X.multiply(1 / size)
        mean = np.asarray(scaled.mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel() - mean**2, 0.0))
    else:
        spread = (X / size).std(axis=0)
    spread = spread * size
    return np.where(spread > 1e-12 * max(float(spread.max(initial=0.0)), 1e-300), spread, 1.0)


def _is_positive(value: object) -> bool:
    values = np.asarray(value)
    return values.dtype.kind in "iuf" and bool((values > 0).all())
