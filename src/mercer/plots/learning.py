r"""How the error falls with more points, and whether more would help."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.plots import style
from mercer.plots.learned import as_labels, learned, refittable, sample
from mercer.plots.style import Axes, Display
from mercer.runtime.clock import now
from mercer.selection.nested import mistakes


@dataclass
class LearningCurveDisplay(Display):
    """Errors on points to learn from and on others, against how many were learned from.

    Parameters
    ----------
    sizes : (k,)
    train, test : (k, repeats) errors; NaN where there was no time
    label : what the error is
    """

    sizes: np.ndarray
    train: np.ndarray
    test: np.ndarray
    label: str

    @classmethod
    def from_estimator(
        cls,
        model: Model,
        X: Points,
        y: Targets,
        *,
        sizes: Any = None,
        repeats: int = 3,
        most: int = 2000,
        max_time: float | None = None,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """Fit the model again on more and more points, with the kernel and the penalty that it has.

        Of at most ``most`` points a quarter is left out and predicted, anew for each of the ``repeats``.
        ``max_time`` ends it after so many seconds, about: a fit that would take longer is not begun.

        >>> from mercer import KernelRidge
        >>> x = np.random.default_rng(0).uniform(0, 6, (80, 1))
        >>> display = LearningCurveDisplay.from_estimator(
        ...     KernelRidge(0.1).fit(x, np.sin(x[:, 0])), x, np.sin(x[:, 0])
        ... )
        >>> int(display.sizes[-1]), bool(display.test[-1].mean() < display.test[0].mean())
        (60, True)
        """
        found = learned(model)
        n = data.n_points(X)
        y = as_labels(y, n)
        which = sample(n, most, seed, y if found.is_classifier else None)
        if len(which) < 8:
            raise InputError(f"a learning curve takes at least 8 points, got {len(which)}")
        learn = len(which) - max(2, len(which) // 4)
        steps = _sizes(learn) if sizes is None else np.asarray(sizes, dtype=int)
        if steps.ndim != 1 or steps.size == 0 or steps.min() < 2 or steps.max() > learn:
            raise InputError(f"sizes must be whole numbers from 2 to {learn}, got {sizes!r}")
        fresh, points = refittable(model, X)
        train, test = np.full((2, len(steps), repeats), np.nan)
        clock = _Clock(max_time)
        orders = [np.random.default_rng([seed, r]).permutation(which) for r in range(repeats)]
        # One size is finished before the next, so that its mean is complete.
        for i, size in enumerate(steps):
            for r, order in enumerate(orders):
                here, left = order[: int(size)], order[learn:]
                if found.is_classifier and len(np.unique(y[here])) < 2:
                    continue
                if not clock.has_time_for(int(size)):
                    break
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # The fit of the model itself has warned already.
                    fitted = fresh.fit(data.take(points, here), y[here])
                    for errors, part in ((train, here), (test, left)):
                        predicted = fitted.predict(data.take(points, part))
                        errors[i, r] = mistakes(predicted, y[part], found.is_classifier)
                clock.took(int(size))
        done = np.isfinite(test).any(axis=1)
        if not done.any():
            raise InputError("there was no time for a single fit, or no part had two classes")
        label = "share of errors" if found.is_classifier else "root mean squared error"
        return cls(steps[done], train[done], test[done], label).plot(ax)

    def _draw(self, ax: Axes) -> None:
        for errors, name, i in ((self.test, "left out", 1), (self.train, "learned from", 0)):
            mean = np.nanmean(errors, axis=1)
            low, high = np.nanmin(errors, axis=1), np.nanmax(errors, axis=1)
            ax.fill_between(self.sizes, low, high, color=style.colour(i), alpha=0.15, linewidth=0)
            ax.plot(
                self.sizes, mean, color=style.colour(i), marker=style.marker(i), markersize=4, linewidth=1.5,
                label=name,
            )  # fmt: skip
        if len(self.sizes) > 2:
            ax.set_xscale("log")
            ax.set_xticks(self.sizes, [f"{size:,}" for size in self.sizes])
            ax.minorticks_off()
        ax.set(xlabel="points to learn from", ylabel=self.label)
        ax.set_ylim(bottom=0)
        style.tidy(ax)
        style.legend(ax)

    def describe(self) -> str:
        first, last = np.nanmean(self.test[0]), np.nanmean(self.test[-1])
        text = f"The {self.label} at points left out goes from {first:.3g} with {self.sizes[0]:,} points"
        text += f" to learn from to {last:.3g} with {self.sizes[-1]:,}"
        return f"{text}; at those learned from it is then {np.nanmean(self.train[-1]):.3g}."


class _Clock:
    """Whether another fit fits in, if time grows with the square of the points."""

    def __init__(self, seconds: float | None) -> None:
        self.end = np.inf if seconds is None else now() + seconds
        self.last = now()
        self.rate = 0.0

    def has_time_for(self, size: int) -> bool:
        self.last = now()
        # The first fit tells how long a fit takes.
        return self.rate == 0 or self.last + self.rate * size**2 <= self.end

    def took(self, size: int) -> None:
        self.rate = (now() - self.last) / size**2


def _sizes(learn: int) -> np.ndarray:
    """Up to six sizes, each about twice the last, up to all."""
    count = int(np.clip(np.log2(max(learn / 12, 1)) + 1, 2, 6))
    return np.unique((learn * 2.0 ** -np.arange(count)).astype(int).clip(2))
