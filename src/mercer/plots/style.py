r"""How pictures look: colours, markers, axes; and a picture as SVG. The one file that loads matplotlib.

The colours are told apart by people with any colour vision, on light and on dark paper, and classes differ by
their markers as well. Ink is taken from matplotlib's settings, so that its dark styles work.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeAlias

import numpy as np

from mercer.errors import InputError, require

#: These are the colours of Okabe and Ito, without yellow and black, which light or dark paper would hide.
_COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"),
    *("#56B4E9", "#8A6D3B", "#7A7A7A", "#6F4FA3", "#9AA300"),
)
_LETTERS_IN_A_ROW = 28  # the labels below a small matrix have room for so many
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
#: colour maps that grow evenly in lightness, also in grey
SEQUENTIAL, DIVERGING = "cividis", "PuOr_r"

#: what stands for ink, faint lines and paper in a report's pictures, until the page's colours replace them
_INK, _FAINT, _PAPER = "#010203", "#040506", "#070809"


#: axes of matplotlib, which is not imported for its types
Axes: TypeAlias = Any


def _library(name: str = "matplotlib") -> Any:
    return require(name, "plot")


def colour(i: int) -> str:
    """The colour of class i; they begin again after ten."""
    return _COLOURS[i % len(_COLOURS)]


def marker(i: int) -> str:
    """The marker of class i, another one when the colours begin again."""
    return _MARKERS[(i + i // len(_COLOURS)) % len(_MARKERS)]


def ink() -> str:
    """The colour of text, by matplotlib's settings."""
    return str(_library().rcParams["text.color"])


def faint() -> str:
    """The colour of lines that only guide the eye."""
    return str(_library().rcParams["grid.color"])


def halo() -> list[Any]:
    """What makes a text readable over points: an edge in the colour of the paper."""
    settings = _library().rcParams
    paper = _PAPER if settings["text.color"] == _INK else settings["figure.facecolor"]
    return [_library("matplotlib.patheffects").withStroke(linewidth=2.5, foreground=paper, alpha=0.85)]


def shades(count: int) -> Any:
    """A colour map with the colours of the first classes, for regions."""
    return _library("matplotlib.colors").ListedColormap([colour(i) for i in range(count)])


def from_paper() -> Any:
    """A colour map from the paper, of whatever colour, to the first colour; small values are already seen."""
    red, green, blue = _library("matplotlib.colors").to_rgb(colour(0))
    opacity = np.sqrt(np.linspace(0, 1, 256))
    table = np.column_stack([np.tile([red, green, blue], (256, 1)), opacity])
    return _library("matplotlib.colors").ListedColormap(table)


def short(value: object, width: int = 24) -> str:
    """A label for an axis or a legend, cut where it is long.

    >>> short("a name that nobody could read in a legend"), short(3)
    ('a name that nobody coul…', '3')
    """
    text = " ".join(str(value).split())
    # A dollar sign would begin a formula.
    return (text if len(text) <= width else f"{text[: width - 1]}…").replace("$", r"\$")


def short_in_the_middle(value: object, width: int = 24) -> str:
    """A label that keeps its end, where texts differ there.

    >>> short_in_the_middle("a name that nobody could read, of 2", 12)
    'a name… of 2'
    """
    text = " ".join(str(value).split())
    if len(text) > width:
        text = f"{text[: width // 2]}…{text[-(width - width // 2 - 1) :]}"
    return text.replace("$", r"\$")


def brief(kernel: object) -> str:
    """A kernel's formula with numbers of four digits.

    >>> from mercer import Gaussian
    >>> brief(Gaussian(gamma=0.00043160917894282747))
    'Gaussian(gamma=0.0004316)'
    """
    text = kernel if isinstance(kernel, str) else repr(kernel)
    return re.sub(r"\d+\.\d{4,}(e[+-]?\d+)?", lambda found: f"{float(found[0]):.4g}", text)


# --- axes ------------------------------------------------------------------------------------------------


class Display:
    """What displays share: ``plot(ax=None)`` draws, and sets ``ax_`` and ``figure_``."""

    ax_: Axes
    figure_: Any

    def plot(self, ax: Axes = None) -> Self:
        """Draw, on the given axes or in a figure of its own."""
        self.ax_ = axes_of(ax)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError

    def describe(self) -> str:
        """What the picture shows, in words, for those who do not see it."""
        raise NotImplementedError


def axes_of(ax: Axes) -> Axes:
    """The axes to draw on: those given, or new ones in a figure of pyplot's, as scikit-learn does."""
    if ax is None:
        # A warning of many open figures would point here, and not at the line that leaves them open.
        with _library().rc_context({"figure.max_open_warning": 0}):
            _, ax = _library("matplotlib.pyplot").subplots(figsize=(5.2, 4.0), layout="constrained")
    elif not hasattr(ax, "plot") or not hasattr(ax, "figure"):
        raise InputError(f"ax must be matplotlib axes or None, got {ax!r}: pass plt.subplots()[1]")
    return ax


def new_figure(width: float = 4.0, height: float = 3.1, **grid: Any) -> tuple[Any, Any]:
    """A figure that is nobody's but the caller's, no window and no global list, and its axes."""
    figure = _library("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    _library("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    return figure, figure.subplots(**grid)


def tidy(ax: Axes, grid: str | None = "both") -> None:
    """Two spines instead of four, and faint lines behind everything."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize="small")
    ax.set_axisbelow(True)
    if grid is not None:
        ax.grid(True, axis=grid, color=faint(), linewidth=0.6, alpha=0.5)


def legend(ax: Axes, **options: Any) -> None:
    """A legend, where there is anything to tell apart."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize="small", frameon=False, **{"handletextpad": 0.5, **options})


def log_scale(ax: Axes, which: str) -> None:
    """A logarithmic axis, "x" or "y", with plain numbers: 1, 2 and 5 of every power of ten."""
    getattr(ax, f"set_{which}scale")("log")
    axis, ticker = getattr(ax, f"{which}axis"), _library("matplotlib.ticker")
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def plain_levels(low: float, high: float, intervals: int) -> np.ndarray:
    """Plain numbers from low to high, such as 0, 0.5 and 1, at most so many intervals; none where low = high.

    >>> plain_levels(-0.13, 1.2, 5)
    array([0. , 0.5, 1. ])
    """
    if not high > low:
        return np.empty(0)
    values = _library("matplotlib.ticker").MaxNLocator(intervals, steps=[1, 2, 5, 10]).tick_values(low, high)
    slack = 1e-6 * (high - low)
    return np.asarray(values[(values >= low - slack) & (values <= high + slack)])


def few_ticks(ax: Axes, which: str, most: int = 4) -> None:
    """At most so many intervals on an axis, "x" or "y": where there is little room for numbers."""
    getattr(ax, f"{which}axis").set_major_locator(_library("matplotlib.ticker").MaxNLocator(most))


def class_ticks(ax: Axes, places: Any, names: Any) -> None:
    """The names of classes along both axes of a matrix, slanted below it where they are long; no spines."""
    words = [short(name, 12) for name in names]
    longest = max(map(len, words), default=0)
    upright: dict[str, Any] = {"rotation": 90} if longest * len(words) >= _LETTERS_IN_A_ROW else {}
    slanted = {"rotation": 45, "ha": "right"} if longest > 4 else upright
    ax.set_xticks(places, words, **slanted)
    ax.set_yticks(places, words)
    ax.tick_params(length=0, labelsize="small")
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_anchor("N")


def scatter_classes(ax: Axes, points: np.ndarray, codes: np.ndarray, classes: Any, size: float) -> None:
    """Points, (n, 2), each with the colour and the marker of its class."""
    for i, label in enumerate(classes):
        here = codes == i
        if here.any():
            ax.scatter(
                *points[here].T, s=size, color=colour(i), marker=marker(i),
                edgecolors="white", linewidths=0.3, label=short(label),
            )  # fmt: skip


def legend_above(ax: Axes) -> None:
    """A legend over the axes, which hides nothing and takes no width; as many columns as the words allow."""
    words = ax.get_legend_handles_labels()[1]
    if words:
        fits = sum(map(len, words)) + 5 * len(words) <= 56
        columns = len(words) if fits else max(1, min(len(words), 5, 56 // (max(map(len, words)) + 5)))
        style = {"columnspacing": 1.0, "handlelength": 1.4, "labelspacing": 0.3, "borderaxespad": 0.2}
        legend(ax, ncols=columns, loc="lower center", bbox_to_anchor=(0.5, 1.0), **style)


def colour_bar(ax: Axes, image: Any, label: str) -> Any:
    """A thin bar beside the axes."""
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0.0, 0.045, 1.0)))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize="small")
    bar.set_label(label, fontsize="small")
    return bar


# --- pictures in a page ------------------------------------------------------------------------------------


@contextmanager
def report_style() -> Iterator[None]:
    """Pictures whose ink and faint lines take the colours of the page they are in."""
    settings = {
        "font.size": 9.5,
        "font.family": "sans-serif",
        "axes.titlesize": 10.5,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "legend.labelcolor": _INK,
        "svg.fonttype": "path",
        "svg.hashsalt": "mercer",
        "grid.color": _FAINT,
        "hatch.color": _INK,
        **dict.fromkeys(
            ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK
        ),
    }
    with _library().rc_context(settings):
        yield


def as_svg(figure: Any, name: str) -> str:
    """A figure as an SVG element for a page; ``name`` keeps its ids apart from those of others.

    The text in it is drawn: what the picture says must be said beside it.
    """
    file = io.StringIO()
    unsaid = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with np.errstate(all="ignore"):
        figure.savefig(file, format="svg", metadata=unsaid)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = svg.replace(_INK, "currentColor").replace(_FAINT, "var(--faint)").replace(_PAPER, "var(--card)")
    svg = svg.replace(_COLOURS[0].lower(), "var(--first)")  # This colour is too dark on dark paper.
    # The page decides on the size; the box keeps the proportions.
    head, rest = svg.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    return f'{head} aria-hidden="true" focusable="false">{rest}'.strip()


def as_png(pixels: np.ndarray) -> bytes:  # (h, w) or (h, w, 3)
    """An image as a PNG file, grey values from the smallest, white, to the largest, black."""
    values = np.asarray(pixels, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    scaled = (values - low) / (high - low) if high > low else np.zeros_like(values)
    file = io.BytesIO()
    # Small images stay small, for the page enlarges them.
    options = {"cmap": "gray_r", "vmin": 0.0, "vmax": 1.0} if values.ndim == 2 else {}
    _library("matplotlib.image").imsave(file, scaled, format="png", metadata={"Software": None}, **options)
    return file.getvalue()
