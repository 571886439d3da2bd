r"""What a search tried: kernels and how well they did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mercer.data.types import Model
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.words import in_words, short_name
from mercer.plots import style
from mercer.plots.style import Axes, Display

_LABEL = 34  # letters beside a line of the picture


@dataclass(frozen=True)
class Tried:
    """One trial, whatever the search that made it."""

    kernel: str
    error: float
    points: int | None = None
    penalty: float | None = None
    seconds: float | None = None
    #: the kernel without its numbers, or with them where only they tell it from others
    name: str = ""


def tried(source: Any) -> list[Tried]:
    """Trials of a search, best first; those on more points come before those on fewer.

    ``source`` is ``trials_``, an estimator that has it or ``path_``, a search of scikit-learn's, or a list of
    dicts with "kernel" and "error".

    >>> [trial.kernel for trial in tried([{"kernel": "a", "error": 0.2}, {"kernel": "b", "error": 0.1}])]
    ['b', 'a']
    """
    if hasattr(source, "trials_"):
        source = source.trials_
    if hasattr(source, "cv_results_"):
        source = _of_search(source)
    elif hasattr(source, "path_"):
        source = _of_path(source)
    if isinstance(source, str | bytes) or not isinstance(source, Sequence):
        raise InputError(f"trials must be a list of trials, got {type(source).__name__}: pass model.trials_")
    rows = _told_apart([_read(trial) for trial in source])
    return sorted(rows, key=lambda row: (-(row.points or 0), row.error))


def _told_apart(rows: list[Tried]) -> list[Tried]:
    """Trials with names of their own: with their numbers where kernels differ by nothing else."""
    texts: dict[tuple[str, int | None], set[str]] = {}
    for row in rows:
        texts.setdefault((row.name, row.points), set()).add(_name(row.kernel))
    return [
        replace(row, name=_name(row.kernel)) if len(texts[row.name, row.points]) > 1 else row for row in rows
    ]


def _read(trial: Any) -> Tried:
    if isinstance(trial, Tried):
        return trial

    def get(name: str) -> Any:
        found = trial.get(name) if isinstance(trial, dict) else getattr(trial, name, None)
        if found is None and name in ("error", "penalty"):  # These belong to the score of a trial.
            score = trial.get("score") if isinstance(trial, dict) else getattr(trial, "score", None)
            return getattr(score, name, score if name == "error" and np.isscalar(score) else None)
        return found

    kernel, error = get("kernel"), get("error")
    if kernel is None or error is None:
        raise InputError(f"a trial needs a kernel and an error, got {trial!r}: pass model.trials_")
    points, penalty, seconds = (get(name) for name in ("points", "penalty", "seconds"))
    text, name = (
        (in_words(kernel), short_name(kernel))
        if isinstance(kernel, Kernel)
        else (str(kernel), _name(str(kernel)))
    )
    own = ", a scale per column" if get("per_column") else ""
    return Tried(
        text + own,
        float(error),
        None if points is None else int(points),
        None if penalty is None else float(penalty),
        None if seconds is None else float(seconds),
        name + own.replace("a scale ", ""),
    )


def _of_path(model: Model) -> list[dict[str, Any]]:
    """The best penalty of every kernel of KernelRidgeCV; errors in the units of y."""
    path = model.path_
    scores = np.asarray(path.scores).mean(axis=2)  # (kernels, alphas)
    if getattr(model, "scoring", None) == "evidence":
        raise InputError(
            "KernelRidgeCV(scoring='evidence') has compared no errors: its path_ is drawn by "
            "PathDisplay.from_estimator(model)"
        )
    if getattr(model, "scoring", None) == "squared":
        scores = np.sqrt(scores)
    best = scores.argmin(axis=1)
    return [
        {"kernel": kernel, "error": scores[i, best[i]], "penalty": path.alphas[best[i]]}
        for i, kernel in enumerate(path.kernels)
        if np.isfinite(scores[i, best[i]])
    ]


def _of_search(search: Any) -> list[dict[str, Any]]:
    results = search.cv_results_
    return [
        {
            "kernel": ", ".join(f"{name}={value}" for name, value in parameters.items()),
            "error": 1 - score if getattr(search, "scoring", None) is None else -score,
            "seconds": seconds,
        }
        for parameters, score, seconds in zip(
            results["params"], results["mean_test_score"], results["mean_fit_time"], strict=True
        )
        if np.isfinite(score)
    ]


def _name(kernel: str) -> str:
    """What tells a kernel from others: no lengths of arrays, the same in all of them.

    >>> _name("Matern(nu=1.5, length_scale=<30 array>), a scale per column")
    'Matern(nu=1.5), per column'
    """
    text = re.sub(r"(, )?\w+=<[^<>]*>", "", style.brief(kernel)).replace("(, ", "(").replace("()", "")
    return text.replace(", a scale per column", ", per column")


def _with(names: list[str], values: list[Any], what: str) -> list[str]:
    """The names, those that are equal with a value where it differs among them."""
    seen: dict[str, set[Any]] = {}
    for name, value in zip(names, values, strict=True):
        seen.setdefault(name, set()).add(value)

    def said(name: str, value: Any) -> str:
        if len(seen[name]) == 1 or value is None:
            return name
        return f"{name}, {value:,} points" if what == "points" else f"{name}, {what} {value:.3g}"

    return [said(name, value) for name, value in zip(names, values, strict=True)]


@dataclass
class TrialsDisplay(Display):
    """Trials as dots on a line each, best at the top; smaller dots for fewer points.

    Parameters
    ----------
    trials : best first
    total : how many there were
    """

    trials: list[Tried]
    total: int

    @classmethod
    def from_trials(cls, trials: Any, *, most: int = 12, ax: Axes = None) -> Self:
        """The display of the ``trials_`` of a search; the best ones of them.

        >>> display = TrialsDisplay.from_trials([{"kernel": "Linear()", "error": 0.25}])
        >>> display.total, display.trials[0].error
        (1, 0.25)
        """
        rows = tried(trials)
        if not rows:
            raise InputError("there are no trials to show: fit a search first")
        return cls(rows[:most], len(rows)).plot(ax)

    def labels(self) -> list[str]:
        """What the lines are called, each one in its own way.

        Kernels that are the same are told apart by their penalties, or by how many points they learned from;
        a trial that was made twice by a number.

        >>> rows = [
        ...     {"kernel": "a", "error": e, "penalty": p} for e, p in ((0.1, 1.0), (0.2, 2.0), (0.3, 2.0))
        ... ]
        >>> TrialsDisplay.from_trials(rows).labels()
        ['a, penalty 1', 'a, penalty 2', 'a, penalty 2 (2)']
        """
        names = [trial.name for trial in self.trials]
        for what in ("points", "penalty"):
            names = _with(names, [getattr(trial, what) for trial in self.trials], what)
        cut = [style.short(name, _LABEL) for name in names]
        cut = [
            label if cut.count(label) == 1 else style.short_in_the_middle(name, _LABEL)
            for label, name in zip(cut, names, strict=True)
        ]
        earlier = [cut[:i].count(label) for i, label in enumerate(cut)]
        return [f"{label} ({n + 1})" if n else label for label, n in zip(cut, earlier, strict=True)]

    def _draw(self, ax: Axes) -> None:
        place = np.arange(len(self.trials))
        errors = np.array([trial.error for trial in self.trials])
        points = np.array([trial.points or 0 for trial in self.trials])
        size = 18 + 40 * points / max(points.max(initial=0), 1)
        ax.hlines(place, errors.min(), errors, color=style.faint(), linewidth=1)
        ax.scatter(errors, place, s=size, color=[style.colour(1 if i == 0 else 0) for i in place], zorder=3)
        ax.set_yticks(place, self.labels())
        ax.set_ylim(len(place) - 0.5, -0.5)
        style.few_ticks(ax, "x")
        ax.set_xlabel("error in the search")
        style.tidy(ax, grid="x")

    def describe(self) -> str:
        best, worst = self.trials[0], max(self.trials, key=lambda trial: trial.error)
        text = (
            f"The errors of {len(self.trials)} of {self.total} trials, from {best.error:.4g} of {best.name}"
        )
        return f"{text} to {worst.error:.4g} of {worst.name}."
