r"""Error against penalty or width: the path that a choice was made on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.plots import style
from mercer.plots.learned import as_labels
from mercer.plots.style import Axes, Display
from mercer.selection.nested import mistakes

_KERNELS_DRAWN = 5  # lines that can be told apart in one picture


def varying(kernels: Sequence[Kernel]) -> tuple[str, np.ndarray] | None:
    """The one number in which kernels differ, its name and values; None where it is not one.

    >>> from mercer import Gaussian
    >>> varying([Gaussian(sigma=1.0), Gaussian(sigma=2.0)])
    ('sigma', array([1., 2.]))
    """
    parameters = [kernel.get_params() for kernel in kernels]
    if len(kernels) < 2 or len({(type(k), tuple(p)) for k, p in zip(kernels, parameters, strict=True)}) > 1:
        return None
    scalar = [
        name
        for name, value in parameters[0].items()
        if isinstance(value, int | float | np.integer | np.floating)
    ]
    other = [name for name, v in parameters[0].items() if name not in scalar and not isinstance(v, Kernel)]
    if any(np.any(p[name] != parameters[0][name]) for name in other for p in parameters):
        return None
    changing = [name for name in scalar if len({p[name] for p in parameters}) > 1]
    if len(changing) != 1:
        return None
    return changing[0], np.array([float(p[changing[0]]) for p in parameters])


@dataclass
class PathDisplay(Display):
    """Errors along a path, a line for each kernel, and the best point.

    Parameters
    ----------
    x : (places,) penalties or widths
    errors : (lines, places); not finite where there is none
    names : of the lines
    labels : of the axes
    """

    x: np.ndarray
    errors: np.ndarray
    names: tuple[str, ...]
    labels: tuple[str, str]

    @classmethod
    def from_estimator(cls, model: Model, *, against: str = "penalty", ax: Axes = None) -> Self:
        """The errors left out of a fitted KernelRidgeCV, against the penalty or the width of the kernel.

        >>> from mercer import Gaussian, KernelRidgeCV
        >>> x = np.linspace(0, 6, 40)[:, None]
        >>> widths = [Gaussian(sigma=s) for s in (0.1, 1.0, 10.0)]
        >>> y = np.sin(3 * x[:, 0]) + 0.1 * np.cos(50 * x[:, 0])
        >>> model = KernelRidgeCV(np.logspace(-6, 0, 4), kernel=widths).fit(x, y)
        >>> PathDisplay.from_estimator(model, against="kernel").best()
        (1.0, 'best penalty')
        """
        path = getattr(model, "path_", None)
        if path is None:
            raise InputError(
                f"{type(model).__name__} has no path_: pass a fitted KernelRidgeCV, or the models of "
                "SVC().path(X, y, Cs) to from_models"
            )
        scores = np.asarray(path.scores, dtype=np.float64).mean(axis=2)  # (kernels, alphas)
        scoring = getattr(model, "scoring", "squared")
        label = "-log evidence" if scoring == "evidence" else f"mean {scoring} error left out"
        if against == "penalty":
            order = np.argsort(scores.min(axis=1), kind="stable")[:_KERNELS_DRAWN]
            order = np.sort(order)
            names = tuple(repr(path.kernels[i]) for i in order)
            return cls(np.asarray(path.alphas), scores[order], names, ("penalty α", label)).plot(ax)
        if against != "kernel":
            raise InputError(f"against must be 'penalty' or 'kernel', got {against!r}")
        found = varying(list(path.kernels))
        if found is None:
            raise InputError("the kernels of the path differ in more than one number: pass against='penalty'")
        name, values = found
        order = np.argsort(values)
        errors = scores.min(axis=1)[order][None]
        return cls(values[order], errors, ("best penalty",), (f"{name} of the kernel", label)).plot(ax)

    @classmethod
    def from_models(
        cls, models: Sequence[Model], X: Points, y: Targets, *, parameter: str = "C", ax: Axes = None
    ) -> Self:
        """The errors on points X of models that differ in one parameter, as ``SVC().path`` returns them."""
        models = list(models)
        if not models or not all(hasattr(model, parameter) for model in models):
            raise InputError(f"pass fitted models that have the parameter {parameter!r}, got {models!r:.100}")
        x = np.array([float(getattr(model, parameter)) for model in models])
        predictions = [np.asarray(model.predict(X)) for model in models]
        labels = as_labels(y, len(predictions[0]))
        is_class = hasattr(models[0], "classes_")
        errors = [mistakes(p, labels, is_class) for p in predictions]
        label = "share of errors" if is_class else "root mean squared error"
        order = np.argsort(x, kind="stable")
        return cls(x[order], np.array(errors)[order][None], ("error",), (parameter, label)).plot(ax)

    @classmethod
    def from_search(cls, search: Any, parameter: str, *, ax: Axes = None) -> Self:
        """The best mean score, as 1 - score, for each value of a parameter in a search of scikit-learn's."""
        results = getattr(search, "cv_results_", None)
        if results is None or f"param_{parameter}" not in results:
            known = [] if results is None else [name[6:] for name in results if name.startswith("param_")]
            raise InputError(
                f"the search has no parameter {parameter!r}: it has {', '.join(known) or 'none'}"
            )
        values = np.asarray(list(results[f"param_{parameter}"]), dtype=np.float64)
        scores = np.asarray(results["mean_test_score"], dtype=np.float64)
        x = np.unique(values)
        best = np.array([np.nanmax(scores[values == value]) for value in x])
        return cls(x, (1 - best)[None], ("best of the rest",), (parameter, "1 - score")).plot(ax)

    def best(self) -> tuple[float, str]:
        """The place and the line of the smallest error."""
        finite = np.where(np.isfinite(self.errors), self.errors, np.inf)
        line, place = np.unravel_index(finite.argmin(), finite.shape)
        return float(self.x[place]), self.names[line]

    def _draw(self, ax: Axes) -> None:
        for i, (row, name) in enumerate(zip(self.errors, self.names, strict=True)):
            seen = np.isfinite(row)
            ax.plot(
                self.x[seen], row[seen], color=style.colour(i), marker=style.marker(i), markersize=3.5,
                linewidth=1.3, label=style.short(name, 34) if len(self.names) > 1 else None,
            )  # fmt: skip
        finite = self.errors[np.isfinite(self.errors)]
        if finite.size:
            x = self.best()[0]
            ax.plot([x], [finite.min()], "o", markersize=10, fillstyle="none", color=style.ink())
            ax.annotate(
                f"{finite.min():.4g} at {x:.3g}", (x, finite.min()), xytext=(0, -9), ha="center", va="top",
                textcoords="offset points", fontsize="small", color=style.ink(),
            )  # fmt: skip
        if (self.x > 0).all() and self.x.max() > 20 * self.x.min():
            ax.set_xscale("log")
        if finite.size and finite.min() > 0 and finite.max() > 8 * finite.min():
            style.log_scale(ax, "y")
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1])
        ax.margins(y=0.16)
        style.tidy(ax)
        style.legend_above(ax)

    def describe(self) -> str:
        x, name = self.best()
        text = f"The {self.labels[1]} against the {self.labels[0]}; smallest at {x:.3g}"
        return f"{text} of {name}." if len(self.names) > 1 else f"{text}."
