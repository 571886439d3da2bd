"""Random Fourier features as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.data.sparse import canonical, is_sparse
from mercer.data.types import Points, Seed, Targets
from mercer.errors import InputError
from mercer.features.base import validated
from mercer.features.waves import waves_of
from mercer.kernels.base import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.kernels.parameters import whole
from mercer.runtime.config import require_memory
from mercer.runtime.seeds import seed_of
from mercer.runtime.threads import by_our_threads, run

#: Phases ⟨ω, x⟩ that one thread computes at a time: 2 MB.
_PHASES_AT_ONCE = 2**18


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Random features of a kernel of x - x': E⟨z(x), z(x')⟩ = k(x, x'), by waves of its spectral density.

    With frequencies ω₁ … ω_m drawn from the density, and weights wⱼ = k(0)/m,

        z(x) = (√w₁ cos⟨ω₁, x⟩, …, √w_m cos⟨ω_m, x⟩, √w₁ sin⟨ω₁, x⟩, …, √w_m sin⟨ω_m, x⟩).

    Of an odd number of features the last wave has one, √2w cos(⟨ω, x⟩ + b), b from [0, 2π).

    ⟨z(x), z(x')⟩ = Σⱼ wⱼ cos⟨ωⱼ, x - x'⟩ is right on average, off by some k(0)/√(2m), and exact at x = x'.
    Frequencies of kernels that are the same in every direction are orthogonal in blocks of as many as there
    are columns, which lowers the error.

    Known for Gaussian, Laplacian (both norms), Matern, RationalQuadratic, Periodic, BSpline, Spectral, Radial
    and Constant; with a length scale per column; for sums, products, whole powers and multiples of such, and
    on chosen columns. Other kernels are refused: ``LandmarkFeatures`` takes all of them, and as a rule fewer
    features for the same error. Random features need no points but for the parameters of the kernel, and no
    factorisation.

    Parameters
    ----------
    kernel : a kernel, or "rbf" or "laplacian"
    n_components : the number of features, 2m, or 2m - 1
    gamma : of a kernel given by name: a number, "scale" or "auto"
    random_state : seed of the frequencies; None is 0

    Attributes
    ----------
    frequencies_ : (m, columns) ω
    weights_ : (m,) w
    offset_ : b, or None
    kernel_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from mercer import Gaussian
    >>> from mercer.features.random_features import RandomFeatures
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> Z = RandomFeatures(Gaussian(sigma=1.0), 10_000).fit_transform(X)
    >>> (Z @ Z.T).round(2), Gaussian(sigma=1.0)(X).round(2)
    (array([[1.  , 0.37],
           [0.37, 1.  ]]), array([[1.  , 0.37],
           [0.37, 1.  ]]))
    """

    #: the kernel with every parameter a number
    kernel_: Kernel

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        n_components: int = 1000,
        *,
        gamma: float | str = "scale",
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state

    @by_our_threads
    def fit(self, X: Points, y: Targets | None = None) -> Self:
        """Draw frequencies for points with as many columns as X; y is ignored."""
        whole(1000).check("n_components", self.n_components)
        m = (int(self.n_components) + 1) // 2
        points = self._validate(X, reset=True)
        kernel = as_kernel(self.kernel, self.gamma).__sklearn_clone__()
        names = getattr(self, "feature_names_in_", None)
        # The names of the columns are in the frame alone.
        self.kernel_ = kernel.resolve(X if names is not None else points)
        d = points.shape[1]
        waves = waves_of(self.kernel_, d, names)
        require_memory(24 * m * d, f"{m:,} frequencies in {d:,} columns", "ask for fewer components")
        random = np.random.default_rng(seed_of(self.random_state))
        frequencies, self.weights_ = waves.draw(m, random)
        self.frequencies_ = np.ascontiguousarray(frequencies)
        self.offset_ = float(random.uniform(0, 2 * np.pi)) if int(self.n_components) % 2 else None
        return self

    @by_our_threads
    def transform(self, X: Points) -> Any:  # (n, n_components)
        """z(x) of every point, in float32 where X is float32."""
        check_is_fitted(self)
        points = self._validate(X, reset=False)
        n, m, width = points.shape[0], len(self.weights_), self._n_features_out
        size = n * width * points.dtype.itemsize
        require_memory(size, f"{width:,} features of {n:,} points", "ask for fewer at a time")
        out = np.empty((n, width), points.dtype)
        root = np.sqrt(self.weights_)
        step = max(1, _PHASES_AT_ONCE // m)

        def task(start: int) -> None:
            rows = slice(start, start + step)
            phases = np.asarray(points[rows].astype(np.float64, copy=False) @ self.frequencies_.T)
            out[rows, :m] = root * np.cos(phases)
            out[rows, m:] = (root * np.sin(phases))[:, : width - m]
            if self.offset_ is not None:
                out[rows, m - 1] = np.sqrt(2) * root[-1] * np.cos(phases[:, -1] + self.offset_)

        with np.errstate(invalid="ignore", over="ignore"):
            run(task, range(0, n, step))
        if not np.isfinite(out).all():
            raise InputError(
                "the points are so large that their phases overflow: rescale the columns, for example with "
                "StandardScaler"
            )
        return out

    @property
    def _n_features_out(self) -> int:
        return 2 * len(self.weights_) - (self.offset_ is not None)

    def _validate(self, X: Points, reset: bool) -> Any:
        X = validated(self, X, reset)
        return canonical(X) if is_sparse(X) else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
