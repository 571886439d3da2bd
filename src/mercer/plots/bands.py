r"""A regression on one number: f, the data, and a band that new points fall into with a stated probability.

The band is f ± q, q the quantile of the sizes of errors at points that were left out: exactly, where the
model knows them (``loo_residuals_``), else of the errors at the points that are shown, which flatter a model
that was fitted to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Frame, Model, Points, Targets
from mercer.errors import InputError
from mercer.plots import style
from mercer.plots.learned import FittedModel, as_labels, learned, sample, table_of
from mercer.plots.style import Axes, Display


def error_quantile(errors: Any, level: float) -> float:
    r"""The ⌈(n+1)·level⌉-th smallest ``|error|`` of n: a new one is no larger with at least that probability.

    This holds for errors that could as well have come in any other order. Infinite where n is too small.

    >>> error_quantile([0.3, -0.1, 0.2, 0.4], 0.8), error_quantile([0.3], 0.9)
    (0.4, inf)
    """
    sizes = np.sort(np.abs(np.asarray(errors, dtype=np.float64).ravel()))
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, got {level!r}: pass 0.9 for nine points of ten")
    rank = int(np.ceil((len(sizes) + 1) * level - 1e-9))
    return float(sizes[rank - 1]) if rank <= len(sizes) else float("inf")


@dataclass
class RegressionBandDisplay(Display):
    """f over one coordinate, with a band of constant width and the data.

    Parameters
    ----------
    x, f : (grid,) places and values
    width : half of the band's height
    points, targets : (n,) the data
    level : probability of the band
    source : which errors the band is from: "left out" or "residuals"
    names : of the axes
    """

    x: np.ndarray
    f: np.ndarray
    width: float
    points: np.ndarray
    targets: np.ndarray
    level: float = 0.9
    source: str = "residuals"
    names: tuple[str, str] = ("x", "y")

    @classmethod
    def from_estimator(
        cls,
        model: Model,
        X: Points,
        y: Targets,
        *,
        level: float = 0.9,
        errors: str = "auto",
        grid: int = 400,
        most: int = 1000,
        names: Any = None,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """The display of a fitted regressor and data with one column.

        ``errors`` is "left out", "residuals", or "auto": left out where the model knows them.

        >>> from mercer import KernelRidge
        >>> x = np.linspace(0, 6, 30)[:, None]
        >>> y = np.sin(x[:, 0]) + 0.1 * np.cos(40 * x[:, 0])
        >>> display = RegressionBandDisplay.from_estimator(KernelRidge(0.1).fit(x, y), x, y)
        >>> display.source, bool(0.08 < display.width < 0.3)
        ('left out', True)
        """
        found = learned(model)
        rows = table_of(X)
        if not found.is_regressor or rows is None or rows.shape[1] != 1:
            raise InputError(
                "a band is for a regression on one column of numbers: for more, look at "
                "DecisionBoundaryDisplay or ResidualDisplay"
            )
        targets = as_labels(y, len(rows)).astype(np.float64)
        if targets.ndim != 1:
            raise InputError(f"y must be one number per point, got shape {targets.shape}: pass one column")
        off, source = _errors(found, X, targets, errors)
        x = np.linspace(rows.min(), rows.max(), grid)
        places: Any = x[:, None]
        if hasattr(X, "columns"):
            frame: Frame = X
            places = type(frame)({frame.columns[0]: x})
            names = (frame.columns[0], "y") if names is None else names
        some = sample(len(rows), most, seed)
        shown = cls(
            x,
            np.asarray(model.predict(places), dtype=np.float64).ravel(),
            error_quantile(off, level),
            rows[some, 0],
            targets[some],
            level,
            source,
            ("x", "y") if names is None else (str(names[0]), str(names[1])),
        )
        return shown.plot(ax)

    def _draw(self, ax: Axes) -> None:
        if np.isfinite(self.width):
            label = f"{self.level:.0%} by {'errors left out' if self.source == 'left out' else 'residuals'}"
            ax.fill_between(
                self.x, self.f - self.width, self.f + self.width, color=style.colour(0), alpha=0.18,
                linewidth=0, label=label.replace("%", " %"),
            )  # fmt: skip
        size = float(np.clip(2400 / max(len(self.points), 1), 6, 22))
        ax.scatter(
            self.points, self.targets, s=size, color=style.ink(), alpha=0.6, linewidths=0, label="data"
        )
        ax.plot(self.x, self.f, color=style.colour(0), linewidth=1.8, label="f")
        ax.set(xlabel=style.short(self.names[0], 40), ylabel=style.short(self.names[1], 40))
        style.tidy(ax)
        style.legend_above(ax)

    def describe(self) -> str:
        text = f"The learned function of {self.names[0]} over {len(self.points):,} points"
        return (
            f"{text}, with a band of ± {self.width:.3g} that holds {self.level:.0%} of {self.source} errors."
        )


def _errors(found: FittedModel, X: Points, targets: np.ndarray, which: str) -> tuple[np.ndarray, str]:
    if which not in ("auto", "left out", "residuals"):
        raise InputError(f"errors must be 'auto', 'left out' or 'residuals', got {which!r}")
    if which != "residuals":
        left = getattr(found.learner, "loo_residuals_", getattr(found.machine, "loo_residuals_", None))
        if left is not None and np.shape(left) == targets.shape and np.isfinite(left).all():
            return np.asarray(left), "left out"
        if which == "left out":
            raise InputError(
                f"{type(found.learner).__name__} has no errors left out for these {data.n_points(X)} points: "
                "pass the points it was fitted to, or errors='residuals'"
            )
    return targets - np.asarray(found.model.predict(X), dtype=np.float64).ravel(), "residuals"
