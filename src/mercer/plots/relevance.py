r"""Which columns matter: by the kernel's own length scales, or by how f changes when a column is shuffled."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.words import do_tell, has_scales, per_column
from mercer.plots import style
from mercer.plots.learned import FittedModel, as_labels, column_names, learned, sample, table_of
from mercer.plots.shuffling import Shuffling
from mercer.plots.style import Axes, Display


def column_factors(kernel: Kernel, columns: int) -> np.ndarray | None:  # (columns,)
    """What the kernel multiplies each column by before it compares: 1/ℓⱼ for length scales ℓⱼ.

    Of several parts with such parameters the root of the sum of squares; None where there are none.

    >>> from mercer import Gaussian, Laplacian, Linear
    >>> column_factors(Gaussian(sigma=[2.0, 4.0]) + Linear(), 2), column_factors(Linear(), 2)
    (array([0.5 , 0.25]), None)
    """
    squares, found = np.zeros(columns), False
    for _, value, power in per_column(kernel):
        if len(value) == columns:
            squares += np.asarray(value, dtype=np.float64) ** (2 * power)
            found = True
    return np.sqrt(squares) if found else None


@dataclass
class RelevanceDisplay(Display):
    """Columns by how much they matter, the most at the top.

    Parameters
    ----------
    relevance : (columns,) NaN for a column that was not measured
    names : of the columns
    label : what the numbers are
    kind : "length scales" or "permutation"
    most : columns that are shown, at most
    precision : (columns,) standard errors of measured numbers; None where the numbers are exact
    rows : (columns,) how many rows each was measured on; None where the numbers are exact
    """

    relevance: np.ndarray
    names: tuple[str, ...]
    label: str
    kind: str
    most: int = 15
    precision: np.ndarray | None = None
    rows: np.ndarray | None = None

    @classmethod
    def from_estimator(
        cls,
        model: Model,
        X: Points,
        y: Targets | None = None,
        *,
        kind: str = "auto",
        names: Any = None,
        repeats: int = 2,
        most: int = 400,
        max_time: float | None = None,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """The display of a fitted model and data with columns.

        "length scales" multiplies each column's spread by what the kernel multiplies it with, 1/ℓⱼ; the
        columns are those behind the steps of a pipeline. Where a step says what column each of them is made
        of (`mercer.tables.TableFeatures`), a column of X has the root of the sum of the squares of its parts.
        "permutation" is by how much f changes, relative to its spread, when a column of X is shuffled, on at
        most ``most`` points (`mercer.plots.shuffling`): √2 where f is a function of that column alone. Every
        column is measured coarsely before any finely; ``max_time`` ends it. "auto" takes the length scales
        where some column stands out by them: twice the median.

        >>> from mercer import Gaussian, KernelRidge
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = KernelRidge(0.1, kernel=Gaussian(sigma=[1.0, 50.0])).fit(X, np.sin(X[:, 0]))
        >>> for kind in ("length scales", "permutation"):
        ...     RelevanceDisplay.from_estimator(model, X, np.sin(X[:, 0]), kind=kind).order()[0].item()
        0
        0
        """
        options = {"repeats": repeats, "most": most, "max_time": max_time, "seed": seed}
        return cls.measured(learned(model), X, y, kind, names, **options).plot(ax)

    @classmethod
    def measured(
        cls,
        found: FittedModel,
        X: Points,
        y: Targets | None,
        kind: str = "auto",
        names: Any = None,
        **options: Any,
    ) -> Self:
        """The display that `from_estimator` draws, not drawn yet; ``options`` are those of a permutation."""
        if kind not in ("auto", "length scales", "permutation"):
            raise InputError(f"kind must be 'auto', 'length scales' or 'permutation', got {kind!r}")
        if kind != "permutation":
            shown, tells = cls._from_scales(found, X, names)
            if shown is not None and (kind == "length scales" or tells):
                return shown
            if kind == "length scales":
                raise InputError("the kernel has no length scale per column: pass kind='permutation'")
        return cls._from_permutation(found, X, y, names, **options)

    @classmethod
    def _from_scales(cls, found: FittedModel, X: Points, names: Any) -> tuple[Self | None, bool]:
        """The display, or None without such scales; and whether they tell columns apart."""
        if not has_scales(found.kernel):
            return None, False
        points = found.points(X)
        rows = table_of(points)
        factors = None if rows is None else column_factors(found.kernel, rows.shape[1])
        if rows is None or factors is None:
            return None, False
        spread, sources = rows.std(axis=0), found.sources
        moved, tells = factors * spread, do_tell(factors, spread)
        if sources is not None:  # The factors go back to the columns of X.
            given = column_names(X, data.n_columns(X) or 0, names)
            by_source = np.array([np.sqrt((moved[group] ** 2).sum()) for group in _groups(X, sources)])
            return cls(by_source, given, "spread / length scale", "length scales"), tells
        labels = column_names(points, rows.shape[1], names)
        if found.steps is not None and hasattr(found.steps, "get_feature_names_out"):
            try:
                inside = list(found.steps.get_feature_names_out(names))
                labels = tuple(map(str, inside)) if len(inside) == len(labels) else labels
            except (ValueError, AttributeError, TypeError):  # A step may keep no names.
                pass
        return cls(moved, labels, "spread / length scale", "length scales"), tells

    @classmethod
    def _from_permutation(
        cls, found: FittedModel, X: Points, y: Targets | None, names: Any, most: int = 400, **options: Any
    ) -> Self:
        d, n = data.n_columns(X), data.n_points(X)
        if d is None:
            raise InputError("relevance is of columns, and these points are objects: look at prototypes")
        labels = as_labels(y, n) if y is not None and found.is_classifier else None
        some = data.take(X, sample(n, most, options["seed"], labels))
        sources = found.sources
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if sources is None:
                measured = Shuffling(lambda rows: found.values(found.points(rows)), some, **options)
            else:  # Each cell becomes numbers by itself, which can be shuffled in its place.
                groups = _groups(X, sources)
                measured = Shuffling(found.values, found.points(some), groups=groups, **options)
        return cls(
            measured.relevance,
            column_names(X, d, names),
            "change of f / its spread",
            "permutation",
            precision=measured.precision,
            rows=measured.rows,
        )

    def order(self) -> np.ndarray:
        """Columns that were looked at, the most relevant first."""
        seen = np.flatnonzero(np.isfinite(self.relevance))
        return seen[np.argsort(-self.relevance[seen], kind="stable")]

    def _draw(self, ax: Axes) -> None:
        order = self.order()[: self.most]
        place = np.arange(len(order))
        ax.barh(place, self.relevance[order], color=style.colour(0), height=0.7)
        if self.precision is not None:
            look = {"fmt": "none", "ecolor": style.ink(), "elinewidth": 1, "capsize": 2}
            ax.errorbar(self.relevance[order], place, xerr=2 * self.precision[order], **look)
        ax.set_yticks(place, [style.short(self.names[j], 22) for j in order])
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.axvline(0, color=style.ink(), linewidth=0.8)
        ax.set_xlabel(self.label)
        style.tidy(ax, grid="x")

    def describe(self) -> str:
        order = self.order()
        first = ", ".join(f"{self.names[j]} ({self.relevance[j]:.3g})" for j in order[:3])
        of = f"{len(self.names)} columns"
        if len(order) < len(self.names):
            of = f"the {len(order)} columns that were measured, of {len(self.names)}"
        return f"The {min(len(order), self.most)} most relevant of {of}; first {first}."


def _groups(X: Any, sources: list[str]) -> list[np.ndarray]:
    """For each column of X, the columns behind the steps that are made of it."""
    names = map(str, X.columns) if hasattr(X, "columns") else (f"x{j + 1}" for j in range(X.shape[1]))
    made: dict[str, list[int]] = {name: [] for name in names}
    for place, name in enumerate(sources):
        made[name].append(place)
    return [np.array(places, dtype=np.intp) for places in made.values()]
