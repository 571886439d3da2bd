r"""Whether probabilities mean what they say: of points given 80 %, are 80 % of that class?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.plots import style
from mercer.plots.learned import as_labels
from mercer.plots.style import Axes, Display
from mercer.selection.nested import share_interval

_TWENTIETHS = np.linspace(0, 1, 21)
_HEIGHT_OF_BARS = 0.14  # a part of the picture


@dataclass
class CalibrationDisplay(Display):
    """Predicted probabilities against shares that came true, in bins of equally many points.

    Parameters
    ----------
    predicted, observed, low, high : (bins,) mean probability, share that came true, and its 95 % interval
    counts : (bins,) points
    label : what the probability is of
    spread : (20,) how many of the probabilities are in each twentieth of 0 to 1
    """

    predicted: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray
    label: str
    spread: np.ndarray

    @classmethod
    def from_estimator(cls, model: Model, X: Points, y: Targets, *, bins: int = 10, ax: Axes = None) -> Self:
        """The display of a fitted classifier with ``predict_proba`` and points it has not seen."""
        if not hasattr(model, "predict_proba"):
            raise InputError(
                f"{type(model).__name__} gives no probabilities: fit SVC(probability=True) or "
                "KernelLogisticRegression"
            )
        return cls.from_predictions(y, model.predict_proba(X), classes=model.classes_, bins=bins, ax=ax)

    @classmethod
    def from_predictions(cls, y: Targets, P: Any, *, classes: Any, bins: int = 10, ax: Axes = None) -> Self:
        """The display of labels and probabilities, (n, classes).

        Shown are those of the second of two classes, else of the predicted one.

        >>> y, P = np.array([0, 1, 1, 1]), np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
        >>> display = CalibrationDisplay.from_predictions(y, P, classes=[0, 1], bins=2)
        >>> display.predicted, display.observed
        (array([0.15, 0.85]), array([0.5, 1. ]))
        """
        P, classes = np.asarray(P, dtype=np.float64), np.asarray(classes)
        if P.ndim != 2 or P.shape[1] != len(classes):
            raise InputError(f"P must have a column per class ({len(classes)}), got shape {P.shape}")
        labels = as_labels(y, len(P))
        if len(classes) == 2:
            p, came, label = P[:, 1], labels == classes[1], f"P({style.short(classes[1])})"
        else:
            p, came = P.max(axis=1), classes[P.argmax(axis=1)] == labels
            label = "P(predicted class)"
        order = np.argsort(p, kind="stable")
        parts = [part for part in np.array_split(order, max(1, min(bins, len(p)))) if len(part)]
        counts = np.array([len(part) for part in parts])
        hits = np.array([np.count_nonzero(came[part]) for part in parts])
        low, high = share_interval(hits, counts)
        predicted = np.array([p[part].mean() for part in parts])
        spread = np.histogram(p, _TWENTIETHS)[0]
        return cls(predicted, hits / counts, low, high, counts, label, spread).plot(ax)

    def error(self) -> float:
        """The mean distance of shares from probabilities, over points."""
        return float(np.average(np.abs(self.predicted - self.observed), weights=self.counts))

    def _draw(self, ax: Axes) -> None:
        start = min(0.0 if self.predicted.min() < 0.5 else 0.4, float(self.low.min()))
        ax.plot([0, 1], [0, 1], "--", color=style.ink(), linewidth=0.9, alpha=0.6, label="as it should be")
        share = _HEIGHT_OF_BARS * self.spread / max(self.spread.max(), 1)
        bars = {"width": 0.046, "color": style.ink(), "alpha": 0.25, "linewidth": 0}
        label = f"points, up to {self.spread.max():,} in a bar"
        # Their heights are shares of the picture, whatever the axis says.
        middles = _TWENTIETHS[:-1] + 0.025
        ax.bar(middles, share, transform=ax.get_xaxis_transform(), label=label, **bars)
        ax.vlines(self.predicted, self.low, self.high, color=style.colour(0), linewidth=1.2, alpha=0.6)
        look = {"color": style.colour(0), "markersize": 4.5, "linewidth": 1.3}
        ax.plot(self.predicted, self.observed, "o-", label=f"share of {self._sizes()} each", **look)
        ax.set(xlim=(start, 1.02), ylim=(start - 0.02, 1.02), xlabel=f"predicted: {self.label}")
        ax.set_ylabel("share that came true")
        style.tidy(ax)
        style.legend_above(ax)

    def _sizes(self) -> str:
        """How many points are in a bin: they differ by one at most."""
        low, high = int(self.counts.min()), int(self.counts.max())
        return f"{low:,} point{'s' * (low > 1)}" if low == high else f"{low:,} to {high:,} points"

    def describe(self) -> str:
        inside = int(np.count_nonzero((self.low <= self.predicted) & (self.predicted <= self.high)))
        text = (
            f"Predicted probabilities against shares that came true, in {len(self.counts)} bins of "
            f"{self._sizes()}: on average "
        )
        text += f"{self.error():.3f} apart; in {inside} bins the probability is inside the 95 % interval."
        return text
