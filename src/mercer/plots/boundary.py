r"""Where a classifier changes its mind, and how wide the street is; of a regression, the values of f."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mercer.data import points as data
from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.gram import Gram
from mercer.plots import style
from mercer.plots.learned import FittedModel, as_labels, learned, sample, table_of
from mercer.plots.plane import Plane, normal_plane, principal_plane
from mercer.plots.regions import Regions
from mercer.plots.style import Axes, Display

_PLANES = ("auto", "features", "principal", "normal")
#: what a machine of one class calls points, by the sign of f
_OF_ONE_CLASS = ("novel", "typical")
_CONTOURS = 7  # intervals of the values of a regression, at most


@dataclass
class DecisionBoundaryDisplay(Display):
    """Points, the regions of the classes, the boundary f = 0 and, of a support vector machine, f = ±1.

    Of a regression its values, with contours; of a machine of one class what is typical and what is novel.

    Parameters
    ----------
    horizontal, vertical : (w,), (h,) coordinates of the grid
    values : (h, w) f there, for two classes or a regression; None for more classes
    regions : (h, w) codes of the classes there; None for a regression
    points : (n, 2) where the points are
    targets : (n,) their codes, or the numbers that are learned; None where they are not known
    classes : the labels that the codes stand for
    names : of the two axes
    support : (n,) whether a point is a support vector
    has_margin : whether to draw f = ±1
    predicted : (n,) the codes that the model gives to the points; 1 for typical where there is one class
    functions : those that tell the classes apart, on the grid
    """

    horizontal: np.ndarray
    vertical: np.ndarray
    values: np.ndarray | None
    regions: np.ndarray | None
    points: np.ndarray
    targets: np.ndarray | None = None
    classes: Any = None
    names: tuple[str, str] = ("x₁", "x₂")
    support: np.ndarray | None = field(default=None, repr=False)
    has_margin: bool = False
    predicted: np.ndarray | None = field(default=None, repr=False)
    functions: Regions | None = field(default=None, repr=False)

    @classmethod
    def from_estimator(
        cls,
        model: Model,
        X: Points,
        y: Targets | None = None,
        *,
        plane: str = "auto",
        names: Any = None,
        grid: int = 150,
        most: int = 500,
        seed: int = 0,
        ax: Axes = None,
    ) -> Self:
        """The display of a fitted model, alone or at the end of a pipeline, and points to show.

        ``plane`` is "features" for data with two columns; "principal" for the plane in feature space along
        which the points vary most, for any kernel and any objects; "normal", for two classes, for that of
        the boundary's normal and what varies most across it. "auto" takes the features where there are two.
        At most ``most`` points are shown, ``seed`` chooses them.

        >>> from mercer import SVC, Spectrum
        >>> texts, y = ["abab", "baba", "xyxy", "yxyx"], [0, 0, 1, 1]
        >>> model = SVC(kernel=Spectrum(2)).fit(texts, y)
        >>> display = DecisionBoundaryDisplay.from_estimator(model, texts, y)
        >>> display.names[0]
        '1st kernel direction (82 % of the variance)'
        """
        found = learned(model)
        n = data.n_points(X)
        labels = None if y is None else as_labels(y, n)
        which = sample(n, most, seed, labels if found.is_classifier else None)
        some = data.take(X, which)
        if plane not in _PLANES:
            raise InputError(f"plane must be one of {', '.join(map(repr, _PLANES))}, got {plane!r}")
        rows = table_of(some) if plane in ("auto", "features") else None
        is_flat = rows is not None and rows.shape[1] == 2
        if plane == "features" and not is_flat:
            raise InputError(
                "plane='features' is for points with two columns of numbers: pass plane='principal'"
            )
        if is_flat:
            assert rows is not None
            points, labelled, values = rows, *_on_features(found, some, names)
        else:
            seen = _plane(found, data.take(found.points(X), which), plane == "normal")
            points, labelled, values = seen.coordinates, _plane_names(seen, plane == "normal"), seen.values
        horizontal, vertical = _grid(points, grid)
        places = np.stack(np.meshgrid(horizontal, vertical), axis=-1)
        there = values(places.reshape(-1, 2)).reshape(*places.shape[:2], -1)
        shown = cls(
            horizontal,
            vertical,
            *_looked_at(found, there),
            points,
            targets=None if labels is None else _targets(found, labels[which]),
            classes=found.classes,
            names=labelled,
            support=_support(found, which, n),
            has_margin=found.has_margin,
            predicted=_predicted(found, some),
            functions=_functions(found, there),
        )
        return shown.plot(ax)

    def _draw(self, ax: Axes) -> None:
        box = (self.horizontal[0], self.horizontal[-1], self.vertical[0], self.vertical[-1])
        if self.regions is not None:
            count = len(self.classes) if self.classes is not None else 2
            painted = self.regions if self.functions is None else self.functions.refined().codes()
            # Regions are numbered by class and have one colour each: no two colours are blended.
            ax.imshow(
                painted, extent=_around(box, painted.shape), origin="lower", aspect="auto",
                interpolation="nearest",
                cmap=style.shades(count), vmin=-0.5, vmax=count - 0.5, alpha=0.16,
            )  # fmt: skip
        elif self.values is not None:
            extent = _around(box, self.values.shape)
            image = ax.imshow(
                self.values, extent=extent, origin="lower", aspect="auto", cmap=style.SEQUENTIAL
            )
            self._draw_contours(ax, style.colour_bar(ax, image, "f"))
        self._draw_lines(ax)
        self._draw_points(ax)
        ax.set(xlim=box[:2], ylim=box[2:], xlabel=style.short(self.names[0], 60))
        ax.set_ylabel(style.short(self.names[1], 60))
        style.few_ticks(ax, "x", 5)  # Numbers such as -0.125 are wide.
        style.tidy(ax, grid=None)

    def levels(self) -> np.ndarray:
        """The values at which a regression has contours: plain numbers, inside of its range.

        >>> from mercer import KernelRidge
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> model = KernelRidge(1e-6, kernel="linear").fit(X, X[:, 0] * 4)
        >>> DecisionBoundaryDisplay.from_estimator(model, X).levels()
        array([0., 1., 2., 3., 4.])
        """
        assert self.values is not None
        return style.plain_levels(float(self.values.min()), float(self.values.max()), _CONTOURS)

    def _draw_contours(self, ax: Axes, bar: Any) -> None:
        levels = self.levels()
        if not len(levels):  # a constant
            return
        assert self.values is not None
        # The map is dark below its middle, and bright above.
        middle = (float(self.values.min()) + float(self.values.max())) / 2
        inks = ["#ffffff" if level < middle else "#111111" for level in levels]
        look = {"linewidths": 0.8, "alpha": 0.8, "linestyles": "-"}
        lines = ax.contour(self.horizontal, self.vertical, self.values, levels=levels, colors=inks, **look)
        bar.set_ticks(levels)
        if sum(map(len, lines.allsegs)) <= 2 * len(levels):  # More numbers would hide what they are about.
            ax.clabel(lines, fontsize="x-small", inline_spacing=2)

    def _draw_lines(self, ax: Axes) -> None:
        ink = style.ink()
        if self.values is not None and self.regions is not None:
            low, high = float(self.values.min()), float(self.values.max())
            lines = [(0.0, "-", 1.6)]
            lines += [(-1.0, "--", 0.9), (1.0, "--", 0.9)] if self.has_margin else []
            inside = sorted((level, kind, width) for level, kind, width in lines if low < level < high)
            if inside:
                ax.contour(
                    self.horizontal, self.vertical, self.values, levels=[line[0] for line in inside],
                    linestyles=[line[1] for line in inside], linewidths=[line[2] for line in inside],
                    colors=ink,
                )  # fmt: skip
        elif self.functions is not None:
            finer = self.functions.refined()
            up, across = (
                np.linspace(side[0], side[-1], count)
                for side, count in zip((self.vertical, self.horizontal), finer.values.shape, strict=False)
            )
            for difference in finer.lines():
                ax.contour(across, up, difference, levels=[0.0], linewidths=0.9, colors=ink)
            self._name_regions(ax)

    def _name_regions(self, ax: Axes) -> None:
        """The label of each class in the middle of what it has: colours alone are not for everybody."""
        assert self.regions is not None
        for code in np.unique(self.regions):
            up, across = np.nonzero(self.regions == code)
            if len(up) < 0.01 * self.regions.size or self.classes is None:
                continue
            # The name stands on the cell nearest to the mean of its region, for the mean may be outside.
            middle = np.hypot(up - up.mean(), across - across.mean()).argmin()
            place = self.horizontal[across[middle]], self.vertical[up[middle]]
            look = {"fontsize": "large", "fontweight": "bold", "color": style.ink(), "zorder": 3}
            name = style.short(self.classes[code], 12)
            ax.text(*place, name, ha="center", va="center", path_effects=style.halo(), **look)

    def _draw_points(self, ax: Axes) -> None:
        x, y = self.points.T
        size = float(np.clip(6000 / max(len(x), 1), 13, 36))
        codes, classes = self.targets, self.classes
        if self.classes is None and self.regions is not None:
            codes, classes = self.predicted, _OF_ONE_CLASS
        if codes is None or classes is None:
            same: dict[str, Any] = {"color": style.ink()}
            if self.targets is not None and self.values is not None:  # Points and plane have one scale.
                low, high = float(self.values.min()), float(self.values.max())
                same = {"c": self.targets, "cmap": style.SEQUENTIAL, "vmin": low, "vmax": high}
            ax.scatter(x, y, s=size, edgecolors="white", linewidths=0.5, **same)
            return
        style.scatter_classes(ax, self.points, codes, classes, size)
        if self.support is not None and self.support.any() and len(classes) == 2:
            rings = {"facecolors": "none", "edgecolors": style.ink(), "linewidths": 0.7}
            ax.scatter(x[self.support], y[self.support], s=2.6 * size, **rings, label="support vectors")
        style.legend_above(ax)

    def describe(self) -> str:
        what = f"{len(self.points):,} points along {self.names[0]} and {self.names[1]}"
        if self.regions is None:
            levels = self.levels()
            lines = f" with contours from {levels[0]:g} to {levels[-1]:g}" if len(levels) else ""
            return f"{what}, over the values of the learned function{lines}."
        if self.classes is None:
            novel = "" if self.predicted is None else f"; {np.sum(self.predicted == 0):,} of them are novel"
            return f"{what}, over the region of what is typical{novel}."
        count = len(self.classes)
        text = f"{what}, over the regions of {count} classes."
        if self.targets is not None and self.predicted is not None:
            right = np.mean(self.predicted == self.targets)
            text += f" The model is right on {right:.0%} of the points."
        if self.has_margin and self.values is not None:
            text += " Dashed lines are the edges of the margin."
        return text


def _on_features(
    found: FittedModel, some: Any, names: Any
) -> tuple[tuple[str, str], Callable[[np.ndarray], np.ndarray]]:
    """The names of two columns, and the functions at places of their plane."""
    columns = list(some.columns) if hasattr(some, "columns") else None

    def values(places: np.ndarray) -> np.ndarray:  # (m, 2) → (m, functions)
        flat: Any = places
        if columns is not None:  # This is a data frame, whose names the model knows.
            flat = type(some)({name: places[:, j] for j, name in enumerate(columns)})
        return found.values(found.points(flat))

    called = (columns or ("x₁", "x₂")) if names is None else names
    return (str(called[0]), str(called[1])), values


def _plane(found: FittedModel, points: Points, normal: bool) -> Plane:
    K = np.asarray(Gram(found.kernel, points, cache=0).dense(), dtype=np.float64)
    F = found.values(points)
    if not normal:
        return principal_plane(K, F)
    if F.shape[1] != 1:
        raise InputError(f"plane='normal' is that of one function, got {F.shape[1]}: pass plane='principal'")
    return normal_plane(K, F[:, 0], _norm(found))


def _looked_at(found: FittedModel, F: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Values to draw lines of, and codes of the classes; of values of the functions, (h, w, functions)."""
    if found.is_regressor:
        return F[..., 0], None
    if not found.is_classifier:  # A machine of one class tells novel points from typical ones.
        return F[..., 0], (F[..., 0] > 0).astype(int)
    return (F[..., 0] if F.shape[-1] == 1 else None), found.codes(F)


def _functions(found: FittedModel, F: np.ndarray) -> Regions | None:
    """What tells the classes apart, or what is typical from what is not; nothing for a regression."""
    if found.is_regressor:
        return None
    return Regions(F, 2 if found.classes is None else len(found.classes), found.by_pairs)


def _around(box: tuple[float, float, float, float], shape: tuple[int, ...]) -> tuple[float, ...]:
    """The sides of a picture whose outermost pixels have their middles on the sides of the box."""
    left, right, bottom, top = box
    x, y = (right - left) / (shape[1] - 1) / 2, (top - bottom) / (shape[0] - 1) / 2
    return left - x, right + x, bottom - y, top + y


def _targets(found: FittedModel, labels: np.ndarray) -> np.ndarray | None:
    if found.classes is None:
        return np.asarray(labels, dtype=np.float64).reshape(len(labels), -1)[:, 0]
    codes = np.searchsorted(found.classes, labels).clip(0, len(found.classes) - 1)
    return np.where(found.classes[codes] == labels, codes, -1)


def _predicted(found: FittedModel, some: Any) -> np.ndarray | None:
    """The codes of the classes that points are given to; nothing for a regression."""
    if found.is_classifier:
        return _targets(found, np.asarray(found.model.predict(some)))
    return None if found.is_regressor else (found.values(found.points(some))[:, 0] > 0).astype(int)


def _support(found: FittedModel, which: np.ndarray, n: int) -> np.ndarray | None:
    """Which of the shown points are support vectors, if X can be what the machine was fitted to."""
    machine = found.machine
    support = getattr(machine, "support_", None)
    fitted = getattr(machine, "shape_fit_", None)
    if support is None or fitted is None or fitted[0] != n:
        return None
    return np.isin(which, support)


def _norm(found: FittedModel) -> float:
    margin = getattr(found.machine, "margin_", None)
    if found.has_margin and isinstance(margin, float):
        return 2 / margin if margin > 0 else 0.0
    return float(np.ravel(found.learner.expansion_.norm())[0])


def _grid(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates a little beyond the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    room = np.where(high > low, 0.06 * (high - low), 1.0)
    return tuple(np.linspace(low[j] - room[j], high[j] + room[j], count) for j in (0, 1))  # type: ignore[return-value]


def _plane_names(plane: Plane, normal: bool) -> tuple[str, str]:
    first, second = (f"{share:.0%}".replace("%", " %") for share in plane.shares)
    if normal:
        return (
            f"across the boundary ({first} of the variance)",
            f"main direction along the boundary ({second})",
        )
    return f"1st kernel direction ({first} of the variance)", f"2nd kernel direction ({second})"
