r"""Which classes are taken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError
from mercer.plots import style
from mercer.plots.learned import as_labels
from mercer.plots.style import Axes, Display

_CLASSES_NUMBERED = (
    15  # The counts of more classes would not fit into their cells, nor their names beside them.
)


@dataclass
class ConfusionDisplay(Display):
    """Counts of true (rows) and predicted (columns) classes, coloured by their share of the row.

    What never happened has the colour of the paper, and rare errors are seen on it.

    Parameters
    ----------
    counts : (classes, classes)
    classes : the labels
    """

    counts: np.ndarray
    classes: tuple[str, ...]

    @classmethod
    def from_estimator(cls, model: Model, X: Points, y: Targets, *, ax: Axes = None) -> Self:
        """The display of the predictions of a fitted model, for points X that it should not have seen."""
        labels = getattr(model, "classes_", None)
        return cls.from_predictions(y, model.predict(X), labels=labels, ax=ax)

    @classmethod
    def from_predictions(cls, y: Targets, predictions: Any, *, labels: Any = None, ax: Axes = None) -> Self:
        """The display of true and predicted labels.

        >>> ConfusionDisplay.from_predictions(["a", "b", "b"], ["a", "b", "a"]).counts
        array([[1, 0],
               [1, 1]])
        """
        from sklearn.metrics import confusion_matrix

        predictions = np.asarray(predictions)
        true = as_labels(y, len(predictions))
        if len(true) == 0:
            raise InputError("there are no predictions to count: pass at least one point")
        kinds = np.unique(np.concatenate([true, predictions])) if labels is None else np.asarray(labels)
        return cls(confusion_matrix(true, predictions, labels=kinds), tuple(map(str, kinds))).plot(ax)

    def _draw(self, ax: Axes) -> None:
        count = len(self.classes)
        share = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        image = ax.imshow(share, cmap=style.from_paper(), vmin=0.0, vmax=1.0)
        if count <= _CLASSES_NUMBERED:
            for i, j in np.argwhere(self.counts > 0):
                ink = "white" if share[i, j] > 0.4 else style.ink()
                size = "medium" if count <= 6 else "x-small"
                ax.text(j, i, f"{self.counts[i, j]:,}", ha="center", va="center", color=ink, fontsize=size)
        step = -(-count // _CLASSES_NUMBERED)
        style.class_ticks(ax, range(0, count, step), self.classes[::step])
        edges = np.arange(-0.5, count)
        ax.set_xticks(edges, minor=True)
        ax.set_yticks(edges, minor=True)
        ax.tick_params(which="minor", length=0)
        ax.grid(which="minor", color=style.faint(), linewidth=0.6, alpha=0.5)
        ax.set(xlabel="predicted", ylabel="true")
        style.colour_bar(ax, image, "share of the true class")

    def describe(self) -> str:
        total, right = int(self.counts.sum()), int(np.trace(self.counts))
        text = f"{right:,} of {total:,} points are on the diagonal, predicted as what they are."
        wrong = self.counts - np.diag(np.diag(self.counts))
        if wrong.any():
            i, j = np.unravel_index(wrong.argmax(), wrong.shape)
            text += f" The most common error: {self.classes[i]} taken for {self.classes[j]},"
            text += f" {wrong[i, j]:,} times."
        return text
