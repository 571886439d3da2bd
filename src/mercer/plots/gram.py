r"""A Gram matrix as a picture: points ordered by class, so that a kernel which fits shows blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Model, Points, Targets
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.plots import style
from mercer.plots.learned import as_kernel, as_labels, learned, sample
from mercer.plots.style import Axes, Display

_CLASSES_NAMED = 12  # Beside the matrix there is room for so many names of classes.


@dataclass
class GramDisplay(Display):
    """The values k(xᵢ, xⱼ), dark where small, with lines between the classes.

    Parameters
    ----------
    matrix : (m, m) in the order shown
    ends : (groups,) where each group of points ends
    names : of the groups; empty where there are none
    total : how many points there are, of which m are shown
    label : what the values are
    order : (m,) which points these are
    """

    matrix: np.ndarray
    ends: np.ndarray
    names: tuple[str, ...] = ()
    total: int = 0
    label: str = "k(x, x′)"
    order: np.ndarray | None = None

    @classmethod
    def from_estimator(cls, model: Model, X: Points, y: Targets | None = None, **options: Any) -> Self:
        """The display of a fitted model's kernel, on points behind the steps of its pipeline."""
        found = learned(model)
        return cls.from_kernel(found.kernel, found.points(X), y, **options)

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel,
        X: Points,
        y: Targets | None = None,
        *,
        normalize: bool = True,
        most: int = 300,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """The display of a kernel on points X, which are sorted by y: by class, or as the numbers grow.

        With ``normalize`` the values are cosines in feature space, k(x, x') / √(k(x, x) k(x', x')).

        >>> from mercer import Gaussian
        >>> X, y = np.array([[0.0], [9.0], [0.1], [9.1]]), ["a", "b", "a", "b"]
        >>> display = GramDisplay.from_kernel(Gaussian(sigma=1.0), X, y)
        >>> display.matrix.round(1)
        array([[1., 1., 0., 0.],
               [1., 1., 0., 0.],
               [0., 0., 1., 1.],
               [0., 0., 1., 1.]])
        """
        n = data.n_points(X)
        labels = None if y is None else as_labels(y, n).reshape(n, -1)[:, 0]
        groups = labels is not None and (
            labels.dtype.kind not in "fc" or len(np.unique(labels)) <= _CLASSES_NAMED
        )
        kernel = as_kernel(kernel).resolve(X)
        chosen = sample(n, most, seed, labels if groups else None)
        ends = np.array([len(chosen)])
        names: tuple[str, ...] = ()
        if labels is not None:
            here = labels[chosen]
            chosen = chosen[np.argsort(here, kind="stable")]
            if groups:
                kinds, counts = np.unique(here, return_counts=True)
                ends, names = np.cumsum(counts), tuple(str(kind) for kind in kinds)
        shown = kernel.normalized() if normalize else kernel
        matrix = np.asarray(Gram(shown, data.take(X, chosen), cache=0).dense(), dtype=np.float64)
        label = "cosine in feature space" if normalize else "k(x, x′)"
        return cls(matrix, ends, names, n, label, chosen).plot(ax)

    def _draw(self, ax: Axes) -> None:
        m = len(self.matrix)
        off = self.matrix[~np.eye(m, dtype=bool)] if m > 1 else self.matrix.ravel()
        # The diagonal is the largest and only a line: the other values decide what is dark and bright.
        low, high = np.quantile(off, [0.01, 0.995])
        low, high = (low, high) if high > low else (min(low, 0.0), max(high, 1.0))
        image = ax.imshow(
            self.matrix, cmap=style.SEQUENTIAL, vmin=low, vmax=high, interpolation="nearest", rasterized=True
        )
        for end in self.ends[:-1]:
            for line in (ax.axhline, ax.axvline):
                line(end - 0.5, color="white", linewidth=0.6, alpha=0.9)
        starts = np.concatenate([[0], self.ends[:-1]])
        centres = (starts + self.ends - 1) / 2
        named = self.names if 0 < len(self.names) <= _CLASSES_NAMED else ()
        style.class_ticks(ax, centres if named else [], named)
        ax.set_xlabel(self._caption(), fontsize="small")
        style.colour_bar(ax, image, self.label)

    def _caption(self) -> str:
        m = len(self.matrix)
        part = f"{m:,} of {self.total:,} points" if self.total > m else f"{m:,} points"
        return f"{part}, ordered by class" if self.names else part

    def contrast(self) -> tuple[float, float]:
        """The mean value within a class (without the diagonal) and between classes."""
        codes = np.repeat(np.arange(len(self.ends)), np.diff(np.concatenate([[0], self.ends])))
        same = codes[:, None] == codes[None, :]
        np.fill_diagonal(same, False)
        other = codes[:, None] != codes[None, :]
        within = float(self.matrix[same].mean()) if same.any() else float("nan")
        between = float(self.matrix[other].mean()) if other.any() else float("nan")
        return within, between

    def describe(self) -> str:
        text = f"Kernel values of {self._caption()}."
        if len(self.ends) > 1:
            within, between = self.contrast()
            text += f" On average {within:.2f} within a class and {between:.2f} between classes."
        return text
