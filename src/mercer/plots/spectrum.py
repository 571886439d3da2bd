r"""Eigenvalues of a Gram matrix, and how many dimensions are left under a penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Model, Points
from mercer.errors import InputError
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.plots import style
from mercer.plots.learned import as_kernel, learned, sample
from mercer.plots.style import Axes, Display


def effective_dimension(eigenvalues: Any, penalty: Any) -> np.ndarray:
    r"""d(λ) = Σᵢ σᵢ / (σᵢ + λ): how many directions a penalty λ leaves, of eigenvalues σᵢ of K.

    >>> effective_dimension([1.0, 1.0, 0.0], [0.0, 1.0, 3.0])
    array([2. , 1. , 0.5])
    """
    values = np.maximum(np.asarray(eigenvalues, dtype=np.float64), 0.0)
    values = values[values > 0]
    penalties = np.asarray(penalty, dtype=np.float64)
    if (penalties < 0).any():
        raise InputError(f"a penalty must be zero or more, got {penalties.min()}")
    return np.asarray((values / (values + penalties[..., None])).sum(axis=-1))


@dataclass
class SpectrumDisplay(Display):
    """Eigenvalues of K/m, largest first, and the effective dimension at a penalty.

    Parameters
    ----------
    eigenvalues : (m,) of the matrix of m points, largest first
    total : how many points there are, of which m are used
    penalty : λ beside K of all points; the m that are used have m/n of it; None for no mark
    """

    eigenvalues: np.ndarray
    total: int = 0
    penalty: float | None = None

    @classmethod
    def from_estimator(cls, model: Model, X: Points, **options: Any) -> Self:
        """The display of a fitted model's kernel and penalty, on points behind the steps of its pipeline."""
        found = learned(model)
        return cls.from_kernel(found.kernel, found.points(X), **{"penalty": found.penalty, **options})

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel,
        X: Points,
        *,
        penalty: float | None = None,
        most: int = 500,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """The display of a kernel on points X, at most ``most`` of them.

        >>> from mercer import Linear
        >>> display = SpectrumDisplay.from_kernel(Linear(), np.eye(3) * [2.0, 1.0, 0.0], penalty=1.0)
        >>> display.eigenvalues, round(display.dimension(), 2)
        (array([4., 1., 0.]), 1.3)
        """
        n = data.n_points(X)
        kernel = as_kernel(kernel).resolve(X)
        some = data.take(X, sample(n, most, seed))
        K = np.asarray(Gram(kernel, some, cache=0).dense(), dtype=np.float64)
        return cls(np.linalg.eigvalsh((K + K.T) / 2)[::-1], n, penalty).plot(ax)

    @property
    def _scaled(self) -> float | None:
        """λ for as many points as were used."""
        if self.penalty is None:
            return None
        return self.penalty * len(self.eigenvalues) / max(self.total, len(self.eigenvalues))

    def dimension(self) -> float:
        """The effective dimension d(λ); NaN without a penalty."""
        return (
            float("nan")
            if self._scaled is None
            else float(effective_dimension(self.eigenvalues, self._scaled))
        )

    def directions(self, share: float = 0.95) -> int:
        """How many directions hold this share of the trace."""
        positive = np.maximum(self.eigenvalues, 0.0)
        if positive.sum() == 0:
            return 0
        return int(np.searchsorted(np.cumsum(positive) / positive.sum(), share - 1e-12) + 1)

    def _draw(self, ax: Axes) -> None:
        m = len(self.eigenvalues)
        values = self.eigenvalues / m
        rank = np.arange(1, m + 1)
        top = max(float(values.max(initial=0.0)), 1e-300)
        seen = values > 1e-10 * top  # Smaller ones are rounding.
        ax.plot(rank[seen], values[seen], ".-", color=style.colour(0), markersize=4, linewidth=1)
        ax.set_yscale("log")
        ax.set_xscale("log" if seen.sum() > 30 else "linear")
        if self._scaled is not None:
            ax.axhline(self._scaled / m, color=style.colour(1), linewidth=1, linestyle="--")
            # Eigenvalues lie above the line before they cross it, then below: the words go to the other side.
            before = np.log(max(int(np.count_nonzero(values > self._scaled / m)), 1)) > 0.42 * np.log(m)
            place, across, up, off = (0.01, "left", "top", -3) if before else (0.99, "right", "bottom", 3)
            low, high = ax.get_ylim()
            if before and 0 < low < high:  # There is room for a line of words below it.
                ax.set_ylim(bottom=min(low, self._scaled / m / (high / low) ** 0.1))
            ax.annotate(
                f"penalty: {self.dimension():.3g} effective dimensions",
                (place, self._scaled / m), xycoords=("axes fraction", "data"), xytext=(0, off),
                textcoords="offset points", ha=across, va=up, fontsize="small", color=style.colour(1),
                path_effects=style.halo(),
            )  # fmt: skip
        ax.set(xlabel="rank", ylabel=f"eigenvalue of K/{m:,}")
        style.tidy(ax)

    def describe(self) -> str:
        m = len(self.eigenvalues)
        of = f" of {self.total:,}" if self.total > m else ""
        text = f"Eigenvalues of the kernel matrix of {m:,}{of} points, falling on a logarithmic scale."
        text += f" {self.directions():,} directions hold 95 % of their sum."
        if self._scaled is not None:
            text += f" The penalty leaves {self.dimension():.3g} effective dimensions."
        return text
