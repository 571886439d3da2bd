r"""What a regression gets wrong: y - f(x) against f(x)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.plots import style
from mercer.plots.learned import as_labels, sample
from mercer.plots.style import Axes, Display


@dataclass
class ResidualDisplay(Display):
    """Errors y - f(x) against the predictions, or targets against predictions.

    Parameters
    ----------
    predictions, targets : (n,)
    kind : "residuals", or "targets"
    shown : (m,) the points that are drawn
    """

    predictions: np.ndarray
    targets: np.ndarray
    kind: str = "residuals"
    shown: np.ndarray | None = None

    @classmethod
    def from_estimator(cls, model: Model, X: Points, y: Targets, **options: Any) -> Self:
        """The display of a fitted regressor and points it has not seen."""
        return cls.from_predictions(y, model.predict(X), **options)

    @classmethod
    def from_predictions(
        cls,
        y: Targets,
        predictions: Any,
        *,
        kind: str = "residuals",
        most: int = 1000,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """The display of targets and predictions, one number per point.

        >>> ResidualDisplay.from_predictions([1.0, 2.0], [1.5, 1.5]).rmse()
        0.5
        """
        predictions = np.asarray(predictions, dtype=np.float64)
        targets = as_labels(y, len(predictions)).astype(np.float64)
        if predictions.ndim != 1 or targets.ndim != 1:
            raise InputError(f"residuals are of one target, got shape {predictions.shape}: pass one column")
        if kind not in ("residuals", "targets"):
            raise InputError(f"kind must be 'residuals' or 'targets', got {kind!r}")
        return cls(predictions, targets, kind, sample(len(targets), most, seed)).plot(ax)

    def rmse(self) -> float:
        """The root of the mean squared error."""
        return float(np.sqrt(np.mean((self.targets - self.predictions) ** 2)))

    def _draw(self, ax: Axes) -> None:
        shown = np.arange(len(self.targets)) if self.shown is None else self.shown
        x, off = self.predictions[shown], (self.targets - self.predictions)[shown]
        size = float(np.clip(4000 / max(len(x), 1), 5, 20))
        up = off if self.kind == "residuals" else self.targets[shown]
        ax.scatter(x, up, s=size, color=style.colour(0), alpha=0.55, linewidths=0)
        if self.kind == "residuals":
            ax.axhline(0.0, color=style.ink(), linewidth=1)
            low, high = np.quantile(self.targets - self.predictions, [0.05, 0.95])
            ax.axhspan(low, high, color=style.colour(0), alpha=0.1, linewidth=0, label="nine of ten")
            ax.set_ylabel("error y - f(x)")
            style.legend(ax, loc="upper left")
        else:
            ends = [min(x.min(), up.min()), max(x.max(), up.max())]
            ax.plot(ends, ends, "--", color=style.ink(), linewidth=1)
            ax.set_ylabel("true y")
        ax.set_xlabel("predicted f(x)")
        style.tidy(ax)

    def describe(self) -> str:
        off = self.targets - self.predictions
        low, high = np.quantile(off, [0.05, 0.95])
        text = (
            f"Errors of {len(off):,} predictions: root mean square {self.rmse():.4g}, mean {off.mean():.3g}"
        )
        return f"{text}; nine of ten are between {low:.3g} and {high:.3g}."
