"""A first look at mercer: handwritten digits, one learner with four kernels, one kernel with seven learners.

    python -m mercer.demo [PICTURE]

Trains the kernel perceptron on scikit-learn's 8 × 8 digits, prints how well each kernel did and how well the
other learners do with the best of them, and draws its Gram matrix beside what its perceptron stored. Takes
some seconds.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from mercer import (
    SVC,
    Gaussian,
    Kernel,
    KernelFisherDiscriminant,
    KernelLogisticRegression,
    KernelMachineClassifier,
    KernelPerceptron,
    Linear,
    ParzenClassifier,
    Polynomial,
    config,
)
from mercer.errors import require
from mercer.progress import Progress, progress

__all__ = ["main"]

# The fourth shows the algebra: the fourth power of a Gaussian is a Gaussian of half the width.
KERNELS: tuple[Kernel, ...] = (
    Linear(),
    Polynomial(3, c=1.0),
    Gaussian(sigma="median"),
    Gaussian(sigma="median") ** 4,
)
LEARNERS: tuple[tuple[str, Callable[[Kernel], Any]], ...] = (
    ("ParzenClassifier", ParzenClassifier),
    ("KernelPerceptron", KernelPerceptron),
    ("KernelPerceptron, averaged", lambda kernel: KernelPerceptron(kernel, prediction="averaged")),
    ("KernelFisherDiscriminant", KernelFisherDiscriminant),
    ("KernelLogisticRegression", lambda kernel: KernelLogisticRegression(kernel, C=100.0)),
    ("KernelMachineClassifier, hinge", lambda kernel: KernelMachineClassifier(kernel, alpha=0.05)),
    ("SVC", lambda kernel: SVC(kernel=kernel, C=10.0)),
)
_OWN, _OTHER, _INK = "#2166ac", "#b35806", "#333333"
_LEFT, _STEP = 0.06, 0.092  # where a half of the picture starts; from image to image


@dataclass(frozen=True)
class Digits:
    """Images as rows of 64 grey values in [0, 1], in two parts."""

    X: np.ndarray  # (n, 64)
    y: np.ndarray  # (n,)
    X_test: np.ndarray  # (m, 64)
    y_test: np.ndarray  # (m,)


@dataclass(frozen=True)
class Outcome:
    """One kernel's line of the table."""

    kernel: Kernel
    model: KernelPerceptron
    error: float
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m mercer.demo", description=__doc__.splitlines()[0])
    parser.add_argument(
        "picture", nargs="?", type=Path, default=Path("mercer-demo.png"), help="where to draw"
    )
    path: Path = parser.parse_args(arguments).picture
    if not path.parent.is_dir():
        parser.error(f"the folder of the picture does not exist, got {path}: make {path.parent} first")
    try:
        require("matplotlib", "plot")
    except ImportError as error:
        print(f"The picture needs matplotlib. {error}", file=sys.stderr)
        return 1
    digits = load()
    print(
        f"{len(digits.y):,} handwritten digits to learn from, {len(digits.y_test):,} held out.\n", flush=True
    )
    outcomes = compare(digits)
    print(table(outcomes, len(digits.y)))
    best = min(outcomes, key=lambda outcome: outcome.error)
    print("\n" + learners(best.kernel, digits))
    draw(best, digits, path)
    print(f"\nPicture: {path.resolve()}")
    return 0


def load() -> Digits:
    """Scikit-learn's digits, 70 % to learn from."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.3, stratify=y, random_state=0)
    return Digits(X, y, X_test, y_test)


def compare(digits: Digits, kernels: Sequence[Kernel] = KERNELS) -> list[Outcome]:
    """One perceptron per kernel, with one bar over all of them."""
    with progress(10 * len(kernels), "digits learned") as bar:
        return [train(kernel, digits, _follow(bar, 10 * i)) for i, kernel in enumerate(kernels)]


def train(kernel: Kernel, digits: Digits, listen: Callable[[dict[str, Any]], None]) -> Outcome:
    """Fit and test, timed after the kernel's code has been compiled (the first run on a machine only)."""
    kernel.resolve(digits.X)(digits.X[:2])
    start = perf_counter()
    with config(progress=listen), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        model = KernelPerceptron(kernel).fit(digits.X, digits.y)
    error = 1 - model.score(digits.X_test, digits.y_test)
    return Outcome(kernel, model, error, perf_counter() - start)


def _follow(bar: Progress, before: int) -> Callable[[dict[str, Any]], None]:
    """The events of one fit as steps of the bar over all."""

    def listen(event: dict[str, Any]) -> None:
        bar.advance(before + 10 * event["done"] // event["total"] - bar.done)

    return listen


# --- the table -----------------------------------------------------------------------------------------


def table(outcomes: Sequence[Outcome], n: int) -> str:
    """The comparison as text, a line per kernel."""
    width = max(len(repr(outcome.kernel)) for outcome in outcomes) + 2
    lines = [f"{'kernel':<{width}}  held-out error  mistakes  stored points    time"]
    lines.append("─" * len(lines[0]))
    for o in outcomes:
        name = repr(o.kernel) + ("" if o.model.converged_ else " *")
        lines.append(
            f"{name:<{width}}  {o.error:>14.1%}  {np.sum(o.model.mistakes_):>8,}"
            f"  {len(o.model.expansion_):>13,}  {o.seconds:>4.1f} s"
        )
    lines.append("─" * len(lines[0]))
    lines.append(f"A model is the points it was ever wrong about, of {n:,}, and their weights.")
    if not all(o.model.converged_ for o in outcomes):
        passes = outcomes[0].model.max_iter
        lines.append(f"* did not separate every digit from the others in {passes} passes.")
    return "\n".join(lines)


def learners(kernel: Kernel, digits: Digits) -> str:
    """Every classifier with one kernel, as text."""
    head = f"with {kernel!r}"
    width = max(len(head), *(len(name) for name, _ in LEARNERS))
    lines = [f"{head:<{width}}  held-out error    time"]
    lines.append("─" * len(lines[0]))
    for name, make in LEARNERS:
        start = perf_counter()
        model = make(kernel).fit(digits.X, digits.y)
        error = 1 - model.score(digits.X_test, digits.y_test)
        lines.append(f"{name:<{width}}  {error:>14.1%}  {perf_counter() - start:>4.1f} s")
    return "\n".join(lines)


# --- the picture ---------------------------------------------------------------------------------------


def draw(outcome: Outcome, digits: Digits, path: Path) -> None:
    """The Gram matrix by class; what was stored with most weight; what is still wrong."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(13, 6.6), dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1))
    _draw_gram(left, outcome.model, digits)
    _draw_images(right, outcome.model, digits)
    figure.savefig(path)


def _draw_gram(figure: Any, model: KernelPerceptron, digits: Digits) -> None:
    order = np.argsort(digits.y, kind="stable")
    K = model.kernel_.normalized()(digits.X[order])
    ends = np.cumsum(np.bincount(digits.y))
    axes = figure.add_axes((_LEFT, 0.09, 0.79, 0.79))
    low, high = np.quantile(K, [0.02, 0.995])
    image = axes.imshow(K, cmap="magma", vmin=low, vmax=high)
    for end in ends[:-1]:
        axes.axhline(end - 0.5, color="white", linewidth=0.4, alpha=0.6)
        axes.axvline(end - 0.5, color="white", linewidth=0.4, alpha=0.6)
    centres = ends - np.bincount(digits.y) / 2
    axes.set_xticks(centres, range(10))
    axes.set_yticks(centres, range(10))
    axes.tick_params(length=0, labelsize=10, labelcolor=_INK)
    axes.set_xlabel(f"{len(K):,} images, ordered by digit", color=_INK)
    bar = figure.colorbar(image, cax=figure.add_axes((0.875, 0.09, 0.022, 0.79)), extend="both")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, labelcolor=_INK)
    _title(figure, "What the learner sees: the Gram matrix", f"cosines in feature space, {model.kernel!r}")


def _draw_images(figure: Any, model: KernelPerceptron, digits: Digits) -> None:
    f = model.expansion_
    stored = f"{len(f):,} of {len(digits.y):,} images, weighted by how often they were mistakes"
    _title(figure, "What it learned: the images it stored", stored)
    figure.text(_LEFT, 0.86, "most weight for each digit", color=_OWN, fontsize=10)
    figure.text(_LEFT, 0.505, "most weight against it: its look-alikes", color=_OTHER, fontsize=10)
    for digit in range(10):
        figure.text(_LEFT + _STEP * digit + 0.035, 0.827, digit, ha="center", fontweight="bold", color=_INK)
        by_weight = np.argsort(f.coef[:, digit], kind="stable")
        for rank in range(3):
            for top, i, colour in ((0.745, by_weight[-1 - rank], _OWN), (0.42, by_weight[rank], _OTHER)):
                weight = f"{f.coef[i, digit]:+.0f}".replace("-", "−")
                _image(figure, digit, top - 0.098 * rank, f.anchors[i], colour, weight)
    predicted = model.predict(digits.X_test)
    wrong = np.flatnonzero(predicted != digits.y_test)
    what = f"still wrong: {len(wrong)} of {len(predicted)} held-out images (true → predicted)"
    figure.text(_LEFT, 0.177, what, color=_INK, fontsize=10)
    for column, i in enumerate(wrong[:10]):
        _image(figure, column, 0.092, digits.X_test[i], _INK, f"{digits.y_test[i]} → {predicted[i]}")


def _image(figure: Any, column: int, bottom: float, pixels: np.ndarray, colour: str, caption: str) -> None:
    axes = figure.add_axes((_LEFT + _STEP * column, bottom, 0.07, 0.07))
    axes.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(caption, fontsize=7, color=colour, labelpad=2)
    for spine in axes.spines.values():
        spine.set(color=colour, linewidth=1.2)


def _title(figure: Any, title: str, subtitle: str) -> None:
    figure.text(_LEFT, 0.945, title, fontsize=14, fontweight="bold", color=_INK)
    figure.text(_LEFT, 0.905, subtitle, fontsize=10, color=_INK)


if __name__ == "__main__":
    sys.exit(main())
