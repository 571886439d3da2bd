r"""Which columns matter: by the kernel's own length scales, or by how f changes when a column is shuffled."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from mercer import data
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.parameters import is_vector
from mercer.plots import style
from mercer.plots.learned import as_labels, learned, sample, table_of, width_of
from mercer.plots.style import Display

__all__ = ["RelevanceDisplay", "column_factors"]


def column_factors(kernel: Kernel, columns: int) -> np.ndarray | None:  # (columns,)
    """What the kernel multiplies each column by before it compares: 1/ℓⱼ for length scales ℓⱼ.

    Of several parts with such parameters the root of the sum of squares; None where there are none.

    >>> from mercer import Gaussian, Laplacian, Linear
    >>> column_factors(Gaussian(sigma=[2.0, 4.0]) + Linear(), 2), column_factors(Linear(), 2)
    (array([0.5 , 0.25]), None)
    """
    squares, found = np.zeros(columns), False
    for part in kernel.parts():
        for name, parameter in part._parameters.items():
            value: Any = vars(part).get(name)
            if parameter.per_column is not None and is_vector(value) and len(value) == columns:
                squares += np.asarray(value, dtype=np.float64) ** (2 * parameter.per_column)
                found = True
    return np.sqrt(squares) if found else None


@dataclass
class RelevanceDisplay(Display):
    """Columns by how much they matter, the most at the top.

    Parameters
    ----------
    relevance : (columns,)
    names : of the columns
    label : what the numbers are
    kind : "length scales" or "permutation"
    most : columns that are shown, at most
    """

    relevance: np.ndarray
    names: tuple[str, ...]
    label: str
    kind: str
    most: int = 15

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        kind: str = "auto",
        names: Any = None,
        repeats: int = 2,
        most: int = 400,
        max_time: float | None = None,
        seed: int = 0,
        ax: Any = None,
    ) -> Any:
        """Of a fitted model and data with columns.

        "length scales" multiplies each column's spread by what the kernel multiplies it with, 1/ℓⱼ; the
        columns are those behind the steps of a pipeline. "permutation" is by how much f changes, relative to
        its spread, when a column of X is shuffled, on at most ``most`` points: √2 where f is a function of
        that column alone. "auto" takes the length scales where they tell columns apart.

        >>> from mercer import Gaussian, KernelRidge
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = KernelRidge(0.1, kernel=Gaussian(sigma=[1.0, 50.0])).fit(X, np.sin(X[:, 0]))
        >>> for kind in ("length scales", "permutation"):
        ...     RelevanceDisplay.from_estimator(model, X, np.sin(X[:, 0]), kind=kind).order()[0].item()
        0
        0
        """
        if kind not in ("auto", "length scales", "permutation"):
            raise InputError(f"kind must be 'auto', 'length scales' or 'permutation', got {kind!r}")
        if kind != "permutation":
            shown = cls._from_scales(model, X, names)
            # scales that are all the same say nothing of the columns
            if shown is not None and (
                kind == "length scales" or np.ptp(shown.relevance) > 0.01 * shown.relevance.max()
            ):
                return shown.plot(ax)
            if kind == "length scales":
                raise InputError("the kernel has no length scale per column: pass kind='permutation'")
        return cls._from_permutation(model, X, y, names, repeats, most, max_time, seed).plot(ax)

    @classmethod
    def _from_scales(cls, model: Any, X: Any, names: Any) -> Any:
        found = learned(model)
        rows = table_of(found.points(X))
        factors = None if rows is None else column_factors(found.kernel, rows.shape[1])
        if rows is None or factors is None:
            return None
        labels = _names(found.points(X), rows.shape[1], names)
        if found.steps is not None and hasattr(found.steps, "get_feature_names_out"):
            try:
                inside = list(found.steps.get_feature_names_out(names))
                labels = tuple(map(str, inside)) if len(inside) == len(labels) else labels
            except (ValueError, AttributeError, TypeError):  # a step that keeps no names
                pass
        return cls(factors * rows.std(axis=0), labels, "spread / length scale", "length scales")

    @classmethod
    def _from_permutation(
        cls, model: Any, X: Any, y: Any, names: Any, repeats: int, most: int, limit: float | None, seed: int
    ) -> Any:
        d, n = width_of(X), data.n_points(X)
        if d is None:
            raise InputError("relevance is of columns, and these points are objects: look at prototypes")
        found = learned(model)
        labels = as_labels(y, n) if y is not None and found.is_classifier else None
        some = data.take(X, sample(n, most, seed, labels))
        end = np.inf if limit is None else monotonic() + limit
        generator = np.random.default_rng(seed)
        changed = np.full(d, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            base = found.values(found.points(some))
            spread = float(np.sqrt(base.var(axis=0).sum())) or 1.0
            for j in range(d):
                if monotonic() > end and j:
                    break
                others = [found.values(found.points(_shuffled(some, j, generator))) for _ in range(repeats)]
                square = np.mean([((other - base) ** 2).sum(axis=1).mean() for other in others])
                changed[j] = float(np.sqrt(square)) / spread
        return cls(changed, _names(X, d, names), "change of f / its spread", "permutation")

    def order(self) -> np.ndarray:
        """Columns that were looked at, the most relevant first."""
        seen = np.flatnonzero(np.isfinite(self.relevance))
        return seen[np.argsort(-self.relevance[seen], kind="stable")]

    def _draw(self, ax: Any) -> None:
        order = self.order()[: self.most]
        place = np.arange(len(order))
        ax.barh(place, self.relevance[order], color=style.colour(0), height=0.7)
        ax.set_yticks(place, [style.short(self.names[j], 22) for j in order])
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.axvline(0, color=style.ink(), linewidth=0.8)
        ax.set_xlabel(self.label)
        style.tidy(ax, grid="x")

    def describe(self) -> str:
        """What the picture shows, in words."""
        order = self.order()
        first = ", ".join(f"{self.names[j]} ({self.relevance[j]:.3g})" for j in order[:3])
        return f"The {min(len(order), self.most)} most relevant of {len(self.names)} columns; first {first}."


def _shuffled(X: Any, j: int, generator: np.random.Generator) -> Any:
    """X with the values of column j in another order."""
    order = generator.permutation(data.n_points(X))
    if hasattr(X, "iloc"):
        changed = X.copy()
        changed.isetitem(j, X.iloc[order, j].array)
        return changed
    if hasattr(X, "with_columns"):  # polars
        return X.with_columns(X[X.columns[j]][order.tolist()].alias(X.columns[j]))
    if hasattr(X, "tolil"):
        changed = X.tolil(copy=True)
        changed[:, [j]] = X.tocsc()[:, [j]].tocsr()[order]
        return changed.tocsr()
    changed = np.array(X, copy=True)
    changed[:, j] = changed[order, j]
    return changed


def _names(X: Any, d: int, names: Any) -> tuple[str, ...]:
    if names is not None and len(names) == d:
        return tuple(map(str, names))
    if hasattr(X, "columns"):
        return tuple(map(str, X.columns))
    return tuple(f"column {j}" for j in range(d))
