r"""Maps: points at their first two kernel principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.plots import style
from mercer.plots.learned import as_kernel, as_labels, sample
from mercer.plots.plane import principal_plane
from mercer.plots.style import Axes, Display


@dataclass
class KernelPCADisplay(Display):
    """Points at two components, coloured by class or by a number.

    Parameters
    ----------
    scores : (n, 2)
    targets : (n,) labels or numbers, or None
    shares : of the variance, along the two
    components : which ones, counted from 0
    """

    scores: np.ndarray
    targets: np.ndarray | None = None
    shares: tuple[float, float] | None = None
    components: tuple[int, int] = (0, 1)

    @classmethod
    def from_estimator(
        cls,
        model: Model,
        X: Points,
        y: Targets | None = None,
        *,
        components: tuple[int, int] = (0, 1),
        most: int = 1000,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """The display of a fitted KernelPCA, or of a pipeline that ends in one, and points to show."""
        if not hasattr(model, "transform"):
            raise InputError(
                f"the model must be a fitted KernelPCA, got {type(model).__name__}: for a classifier's or "
                "regressor's kernel, use from_kernel(model.kernel_, X)"
            )
        n = data.n_points(X)
        labels = None if y is None else as_labels(y, n)
        which = sample(n, most, seed, _classes(labels))
        scores = np.asarray(model.transform(data.take(X, which)))
        if max(components) >= scores.shape[1]:
            raise InputError(
                f"components {components} are to be shown, and there are {scores.shape[1]}: "
                "fit with n_components=2 or more"
            )
        last = model[-1] if hasattr(model, "named_steps") else model
        ratio = getattr(last, "explained_variance_ratio_", None)
        shares = None if ratio is None else (float(ratio[components[0]]), float(ratio[components[1]]))
        chosen = None if labels is None else labels[which]
        return cls(scores[:, list(components)], chosen, shares, components).plot(ax)

    @classmethod
    def from_kernel(
        cls,
        kernel: Kernel,
        X: Points,
        y: Targets | None = None,
        *,
        most: int = 500,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """The display of a kernel on points X: the components are found here, on the points that are shown.

        >>> from mercer import Linear
        >>> X = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
        >>> np.abs(KernelPCADisplay.from_kernel(Linear(), X).scores[:, 0]).round(6)
        array([5., 0., 5.])
        """
        n = data.n_points(X)
        labels = None if y is None else as_labels(y, n)
        which = sample(n, most, seed, _classes(labels))
        K = np.asarray(
            Gram(as_kernel(kernel).resolve(X), data.take(X, which), cache=0).dense(), dtype=np.float64
        )
        plane = principal_plane(K, np.zeros((len(which), 1)))
        return cls(plane.coordinates, None if labels is None else labels[which], plane.shares).plot(ax)

    def _draw(self, ax: Axes) -> None:
        size = float(np.clip(6000 / max(len(self.scores), 1), 13, 36))
        classes = _classes(self.targets)
        if classes is not None:
            names, codes = np.unique(classes, return_inverse=True)
            style.scatter_classes(ax, self.scores, codes, names, size)
            style.legend_above(ax)
        elif self.targets is not None:
            dots = ax.scatter(*self.scores.T, s=size, c=self.targets, cmap=style.SEQUENTIAL)
            style.colour_bar(ax, dots, "y")
        else:
            ax.scatter(*self.scores.T, s=size, color=style.colour(0), edgecolors="white", linewidths=0.3)
        shares = ("", "") if self.shares is None else (f" ({100 * share:.0f} %)" for share in self.shares)
        labels = [f"component {c + 1}{share}" for c, share in zip(self.components, shares, strict=True)]
        ax.set(xlabel=labels[0], ylabel=labels[1])
        style.tidy(ax)

    def describe(self) -> str:
        text = f"{len(self.scores):,} points at two kernel principal components"
        if self.shares is not None:
            text += f", which hold {sum(self.shares):.0%} of the variance"
        return f"{text}."


def _classes(labels: np.ndarray | None) -> np.ndarray | None:
    """Labels that are classes, not numbers on a scale."""
    if labels is None or labels.ndim != 1:
        return None
    return labels if labels.dtype.kind not in "fc" or len(np.unique(labels)) <= 12 else None
