r"""A model and its error within a time.

The error must be of the way that made the model. So the first search leaves a part of the rows out, and has
most of the time if it needs it:

1. A search without the first fold (of a large table: without a tenth of the rows). Its error there is honest.
2. If it came to its end, and there is time for another one, that is the search on all rows, which makes the
   model. Other folds follow, each with a whole search, until 200 rows were judged (or all of them, where
   folds were asked for) or the time is over: a fold that would be starved is not begun, and one that was is
   not counted. Then the machine alone is fitted without each fold, and the error of all rows is corrected by
   what that hides (`mercer.selection.two_phase`).
3. If not, the kernel that was found is fitted on all rows: model and error are of the same search.

Where searches differ all the same, the result says how (`mercer.tables.honest.difference`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from mercer.cluster.trials import each
from mercer.data import points as data
from mercer.data.apart import Apart
from mercer.data.folds import Fold, folds, stratified_folds
from mercer.data.types import Model, Points
from mercer.errors import MemoryBudgetError, quietly
from mercer.report import Method
from mercer.runtime.clock import now
from mercer.runtime.config import settings
from mercer.tables.honest import Effort, Honest, corrected, difference, judged
from mercer.tables.model import TableModel

_FIRST = 0.7  # the share of the time that the first search has; the rest is for a fit on all rows
_ALL = 2.0  # times that a search on all rows takes, of one on four fifths: as their square, and some more
_TENTH = 10  # parts that rows are cut into where one of them is held out
_SAME = "the model is of the same search"
_LEAST_SECONDS = 1e-3  # seconds for a search, however little time is left
_JUDGED = 200  # rows that are judged by searches, where the machine alone judges all
_AGAIN = 1.2  # times that another fold may take, of the first
_LONGER = 1.3  # times that the fit on all rows may take, of what is expected
_POWERS = {"KernelRidge": 3.0}  # time of an exact fit as a power of the points; 2.2 of other machines


class Listener(Protocol):
    """Who hears what a training does now, and what one should know of it."""

    def step(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...


@dataclass(eq=False)
class Telling:
    """Tells a listener, if there is one, and keeps the notes."""

    listener: Listener | None = None
    notes: list[str] = field(default_factory=list)

    def step(self, text: str) -> None:
        if self.listener is not None:
            self.listener.step(text)

    def note(self, text: str) -> None:
        self.notes.append(text)
        if self.listener is not None:
            self.listener.note(text)


@contextmanager
def held_back() -> Iterator[None]:
    """Without warnings of fits on the way: those of the model that is kept are told when it is there."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        warnings.filterwarnings("ignore", message="the last fit takes")
        yield


@dataclass(eq=False)
class _Judged:
    """A search that left some rows out."""

    model: TableModel
    test: np.ndarray
    predictions: np.ndarray
    effort: Effort
    seconds: float
    warnings: list[str]


@dataclass(eq=False)
class Fitting:
    """The way from a table to a model and its error, until ``end`` on the clock of `mercer.runtime.clock`."""

    blank: TableModel
    X: Points
    y: np.ndarray
    seed: int
    telling: Telling
    #: when all must be done; infinite where no time was given
    end: float = np.inf
    #: after this no other fold is begun; infinite where a time or folds were asked for
    patience: float = np.inf
    #: what the rows belong to, which no fold separates
    apart: Apart | None = None

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(self.end - now(), 0.0)

    def by_held_out(self) -> tuple[TableModel, Honest]:
        """One search without a tenth of the rows."""
        self.telling.step("searching, with a tenth of the rows held out")
        train, test = self._tenth()
        found = self._searched(train, test)
        how = f"a tenth of the rows, {len(test):,}, {self._unseen}"
        return self._on_all_rows(found, train, how)

    def by_folds(self, parts: int, *, every: bool = True) -> tuple[TableModel, Honest]:
        """The searches of the module: of every one of so many folds, or of as many as hold enough rows."""
        splits = self._splits(parts)
        parts = len(splits)  # fewer, where most rows are of one point in time
        # Times are no folds at random, and of groups a few are worth few rows.
        every = every or self.apart is not None
        wanted = parts if every else min(parts, -(-_JUDGED * parts // len(self.y)))
        is_latest = self.apart is not None and self.apart.is_ordered
        self.telling.step(f"searching, without {'the latest rows' if is_latest else f'fold 1 of {parts}'}")
        first = self._searched(*splits[0])
        if not first.effort.is_whole or _ALL * first.seconds > self.left:
            return self._on_all_rows(first, splits[0][0], self._short([first], parts) + _SAME)
        self.telling.step("searching, on all rows")
        kept = _LONGER * self._refit_seconds(first)
        model, said = self._fit(np.arange(len(self.y)), self.left - kept)
        if not Effort.of(model, len(self.y)).is_whole and kept < self.left:
            return self._on_all_rows(first, splits[0][0], self._short([first], parts) + _SAME)
        self._repeat(said)
        found = [first]
        is_spread = settings().cluster is not None  # where folds are searched side by side
        for number in range(2, min(3, wanted + 1) if is_spread else wanted + 1):
            if _AGAIN * first.seconds > min(self.left, self.patience - now()):
                break
            which = f"each of {wanted - 1} folds" if is_spread else f"fold {number} of {parts}"
            self.telling.step(f"estimating the error: the search again without {which}")
            these = splits[1:wanted] if is_spread else splits[number - 1 : number]
            shared = (self.blank, self.X, self.y, self.apart, _FIRST * self.left)
            others = [one for one in each("fold", searched, shared, these) if one.effort.is_whole]
            found += others
            if len(others) < len(these):
                break
        differs = difference(Effort.of(model, len(self.y)), [one.effort for one in found])
        honest = self._judged(found, self._how(found, parts), self.y, differs)
        alone = None if every or len(found) == parts else self._alone(model, splits)
        return model, honest if alone is None else corrected(self.y, honest, alone)

    # --- the steps -------------------------------------------------------------------------------------

    def _searched(self, train: np.ndarray, test: np.ndarray) -> _Judged:
        return searched(self.blank, self.X, self.y, self.apart, _FIRST * self.left, (train, test))

    def _splits(self, parts: int) -> list[Fold]:
        """The folds; of times the last one, which learns from the most rows, comes first."""
        is_class, n = is_classifier(self.blank), len(self.y)
        if self.apart is not None:
            found = self.apart.folds(parts, self.seed, self.y if is_class else None)
            return found[::-1] if self.apart.is_ordered else found
        return stratified_folds(self.y, parts, self.seed) if is_class else folds(n, parts, self.seed)

    @property
    def _unseen(self) -> str:
        if self.apart is None:
            return "that the search did not see"
        if self.apart.is_ordered:
            return "the latest, of which the search saw none"
        return "whose groups the search did not see"

    def _alone(self, model: TableModel, splits: list[Fold]) -> np.ndarray | None:  # (n,)
        """What the machine of a model predicts for each fold that it is fitted without; None without time."""
        machine, seconds = model.estimator_.model_, _report(model.estimator_.model_, "time", 0.0)
        if _LONGER * len(splits) * seconds > self.left:
            return None
        self.telling.step("estimating the error: the machine alone, without each fold")
        Z, told = model.transform(self.X), np.empty_like(self.y)
        for train, test in splits:
            one = quietly(clone(machine).fit, data.take(Z, train), self.y[train])
            told[test] = one.predict(data.take(Z, test))
        return told

    def _fit(self, train: np.ndarray, seconds: float) -> tuple[TableModel, list[str]]:
        return _fitted(self.blank, self.X, self.y, self.apart, train, seconds)

    def _refit_seconds(self, found: _Judged) -> float:
        """How long the machine that a search has found takes on all rows, about."""
        inner = getattr(found.model.estimator_, "model_", None)
        power = _POWERS.get(type(inner).__name__, 2.2)
        if getattr(_report(inner, "plan", None), "method", None) is Method.LANDMARKS:
            power = 1.0
        growth = (len(self.y) / found.effort.fitted) ** power
        return float(_report(inner, "time", found.seconds) * growth)

    def _on_all_rows(self, found: _Judged, train: np.ndarray, how: str) -> tuple[TableModel, Honest]:
        """The kernel that was found, fitted on all rows; or the model as it is."""
        model, n = found.model, len(self.y)
        honest = self._judged([found], how, self.y[train])
        used = found.effort.fitted
        inner = getattr(model.estimator_, "model_", None)
        about_fit = {*_report(model.estimator_, "warnings", ()), *_report(inner, "warnings", ())}
        self._repeat([text for text in found.warnings if text not in about_fit])
        as_it_is = f"the model is fitted on {used:,} of {n:,}"
        if _LONGER * self._refit_seconds(found) > self.left:
            self.telling.note(f"no time is left to fit on all rows: {as_it_is}; a longer max_time takes more")
            return model, honest
        self.telling.step("fitting on all rows, with the kernel that was found")
        try:
            return quietly(refitted, model, self.X, self.y), honest
        except MemoryBudgetError as error:
            self.telling.note(f"there is no room to fit on all rows, {as_it_is}: {error}")
            return model, honest

    def _judged(self, found: list[_Judged], how: str, seen: np.ndarray, differs: str = "") -> Honest:
        tests, predictions = [one.test for one in found], [one.predictions for one in found]
        apart = "" if self.apart is None else self.apart.option
        clusters = None if self.apart is None else self.apart.clusters(np.concatenate(tests))
        return judged(self.y, tests, predictions, how, seen, differs, apart, clusters)

    def _how(self, found: list[_Judged], folds: int) -> str:
        if len(found) == folds:
            return f"{folds} folds{self._kept_apart}, with the search done again in each"
        return self._short(found, folds) + "the search was done again in each"

    def _short(self, found: list[_Judged], folds: int) -> str:
        rows = sum(len(one.test) for one in found)
        return f"{len(found)} of {folds} folds{self._kept_apart}, {rows:,} rows: time was short; "

    @property
    def _kept_apart(self) -> str:
        if self.apart is None:
            return ""
        if self.apart.is_ordered:
            return " of the later half of the rows, each predicted from all rows before it"
        return f" of whole groups, {self.apart.count:,} in all"

    def _repeat(self, said: list[str]) -> None:
        for text in dict.fromkeys(said):
            warnings.warn(text, stacklevel=2)

    def _tenth(self) -> Fold:
        """One of ten folds; with a share of every class, where that leaves none of them out."""
        n, sizes = len(self.y), np.unique(self.y, return_counts=True)[1]
        if self.apart is not None:
            order, held = self.apart.held(np.arange(n), max(n // _TENTH, 1), self.seed)
            return order[:-held], order[-held:]
        if is_classifier(self.blank) and sizes.min() >= 2 and n >= _TENTH * len(sizes):
            return stratified_folds(self.y, _TENTH, self.seed)[0]
        return folds(n, min(_TENTH, n), self.seed)[0]


def _report(estimator: Model, name: str, default: Any) -> Any:
    return getattr(getattr(estimator, "report_", None), name, default)


def searched(
    blank: TableModel,
    X: Any,
    y: np.ndarray,
    apart: Apart | None,
    seconds: float,
    split: tuple[np.ndarray, np.ndarray],
) -> _Judged:
    """A search on the first rows of a split, and its predictions for the others."""
    (train, test), began = split, now()
    model, said = _fitted(blank, X, y, apart, train, seconds)
    taken = now() - began
    predictions = model.predict(data.take(X, test))
    return _Judged(model, test, predictions, Effort.of(model, len(train)), taken, said)


def _fitted(
    blank: TableModel, X: Any, y: np.ndarray, apart: Apart | None, train: np.ndarray, seconds: float
) -> tuple[TableModel, list[str]]:
    """A model of some rows, and what was warned about on the way."""
    model = limited(blank, max(seconds, _LEAST_SECONDS) if np.isfinite(seconds) else None)
    X = X if len(train) == len(y) else data.take(X, train)
    with warnings.catch_warnings(record=True) as said:
        model.fit(X, y[train], **({} if apart is None else apart.options(train)))
    return model, [str(warning.message) for warning in said]


def limited(blank: TableModel, seconds: float | None) -> TableModel:
    """A clone whose search takes at most so many seconds."""
    model = clone(blank)
    search = getattr(model.estimator, "search", model.estimator)
    search.set_params(max_time=seconds)
    return model


def refitted(model: TableModel, X: Points, y: np.ndarray) -> TableModel:
    """The same features, kernel and penalty on all rows; the error on what was held out stays honest.

    A machine that was found by warm starts goes on from where it is.
    """
    search = model.estimator_
    machine = search.model_ if getattr(search.model_, "warm_start", False) else clone(search.model_)
    inner = machine.fit(model.transform(X), y)
    search.model_, search.kernel_ = inner, inner.kernel_
    for name in ("expansion_", "report_", "classes_"):
        if hasattr(inner, name):
            setattr(search, name, getattr(inner, name))
    if hasattr(inner, "classes_"):
        model.classes_ = inner.classes_
    return model
