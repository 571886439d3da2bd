r"""What a report is about: model, data, and predictions of points that the model had not seen."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data import points as data
from mercer.data.folds import folds, stratified_folds
from mercer.data.types import Model, Points
from mercer.gram import Gram
from mercer.kernels.words import in_words, short_name
from mercer.plots.filters import is_filter
from mercer.plots.learned import FittedModel, learned, refittable, sample
from mercer.plots.relevance import RelevanceDisplay
from mercer.report import fit_notes
from mercer.runtime.clock import now
from mercer.selection.nested import mistakes, share_interval
from mercer.verdict import Verdict, constant_error

LISTED_CLASSES = 30  # in tables with a row for each class
_REFITTED = 2000  # points that folds are made of
_EXACT = 3000  # points up to which errors left out are asked for that the model has not computed yet
_FOLDS = 5  # for errors that nobody has measured before
_FEW_CLASSES = 12  # up to which probabilities, found for every pair of classes, cost little
#: numbers of points to choose from: what is shown must not depend on how fast the machine is at the moment
_STEPS = (16, 25, 40, 60, 100, 150, 200, 300, 400, 500, 700, 1000, 1500, 2000, 3000, 5000)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions of points by models that had not seen them."""

    which: np.ndarray  # (m,) positions in X
    predictions: np.ndarray  # (m,)
    error: float
    interval: tuple[float, float] | None
    #: how they were made, as a sentence
    how: str
    #: what a constant would get wrong of the same points
    baseline: float
    #: whether nothing that made the model had seen the points
    is_honest: bool = False
    probabilities: np.ndarray | None = None  # (m, classes)


@dataclass(eq=False)
class Case:
    """A fitted model and the data of a report."""

    model: Model
    X: Any
    y: np.ndarray
    features: tuple[str, ...] | None = None
    trials: Any = None
    error: Any = None
    seed: int = 0
    #: what is to be told of the data and of the fit; None for the warnings of the model itself
    told: Any = None
    #: seconds for everything
    limit: float = 18.0
    began: float = field(default_factory=now)

    @property
    def end(self) -> float:
        """When the time is over, on the clock of `mercer.runtime.clock`."""
        return self.began + self.limit

    def left(self, most: float) -> float:
        """Seconds that a part may take: at most so many, and half of what is left."""
        return float(max(0.1, min(most, (self.end - now()) / 2)))

    @cached_property
    def found(self) -> FittedModel:
        return learned(self.model)

    @property
    def learner_name(self) -> str:
        return type(self.found.machine).__name__

    @property
    def unit(self) -> str:
        """What the data consist of."""
        return "points"

    @property
    def kernel_text(self) -> str:
        """The formula of the kernel, with its numbers."""
        return in_words(self.found.kernel, self._feature_names)

    @property
    def kernel_name(self) -> str:
        """The kernel, without its numbers."""
        return short_name(self.found.kernel, self._feature_names)

    @property
    def _feature_names(self) -> list[str] | None:
        """Names of the columns behind the steps, where these are made of a table."""
        if self.found.sources is None:
            return None
        return [str(name) for name in self.found.steps.get_feature_names_out()]

    @property
    def is_pairwise(self) -> bool:
        """Whether the columns of X are kernel values."""
        return bool(getattr(self.found.machine, "_pairwise", False))

    @property
    def has_targets(self) -> bool:
        return self.is_class or self.is_regression

    @property
    def was_searched(self) -> bool:
        """Whether kernel or penalty were chosen on the data."""
        given = self.trials is not None or hasattr(self.model, "cv_results_")
        return given or any(hasattr(self.found.learner, name) for name in ("trials_", "path_"))

    @property
    def fitted(self) -> int:
        """How many points the model was fitted to, as far as it says."""
        points = self.found.fitted_points
        return self.n if points is None else points

    @property
    def notes(self) -> list[str]:
        """What one should know of the data and of the fit."""
        return fit_notes(self.found.learner) if self.told is None else [str(text) for text in self.told]

    @property
    def n(self) -> int:
        return data.n_points(self.X)

    @property
    def is_class(self) -> bool:
        return self.found.is_classifier

    @property
    def is_regression(self) -> bool:
        return self.found.is_regressor

    @cached_property
    def points(self) -> Any:
        """The data behind the steps of the pipeline."""
        return self.found.points(self.X)

    @cached_property
    def inside(self) -> tuple[Any, Any]:
        """The learner and the points that it sees, which are made once; model and data without such steps."""
        if self.found.steps is None or self.is_pairwise or is_filter(self.model):
            return self.model, self.X
        return self.found.learner, self.points

    @property
    def refitted(self) -> tuple[Any, Any]:
        """Model and data for fits on parts of the points: the steps are among what is fitted, or stay."""
        return self.inside if self.found.has_own_features else (self.model, self.X)

    def predict(self, which: np.ndarray) -> np.ndarray:
        """What the model says of some of the points."""
        model, points = self.inside
        return np.asarray(model.predict(data.take(points, which)))

    def some(self, most: int) -> np.ndarray:
        """Positions of at most so many points, of each class its share."""
        return sample(self.n, most, self.seed, self.y if self.is_class else None)

    # --- how many points one can afford --------------------------------------------------------------------

    @cached_property
    def pair_seconds(self) -> float:
        """What one value of the kernel takes, about: some kernels on objects are slow."""
        taken, count = 0.0, 40
        Gram(self.found.kernel, self._points(2), cache=0).dense()  # its code is compiled by now
        while taken < 5e-3 and count <= 160:  # a few values tell the time of the call alone
            some = self._points(count)
            start = now()
            Gram(self.found.kernel, some, cache=0).dense()
            taken = now() - start
            pairs, count = data.n_points(some) ** 2, 2 * count
        return taken / pairs

    def _points(self, most: int) -> Any:
        return data.take(self.points, self.some(most))

    def afford(self, most: int, seconds: float, squares: float = 1.0) -> int:
        """How many points m such that ``squares`` · m² values of the kernel take about so many seconds."""
        m = float(np.sqrt(seconds / (squares * max(self.pair_seconds, 1e-12))))
        if self.n <= min(most, 1.25 * m):
            return self.n
        return min(most, max((step for step in _STEPS if step <= m), default=_STEPS[0]))

    def afford_values(self, most: int, seconds: float) -> int:
        """At how many points f can be computed in so many seconds."""
        each = self.pair_seconds * len(self.found.learner.expansion_)
        return int(max(1, min(most, seconds / max(each, 1e-12))))

    # --- where the anchors come from -----------------------------------------------------------------------

    @cached_property
    def influence(self) -> np.ndarray:  # (anchors,)
        """The size of the coefficients: the largest ``|α|`` of a point over the functions."""
        coef = np.asarray(self.found.learner.expansion_.coef)
        return np.asarray(np.abs(coef.reshape(len(coef), -1)).max(axis=1))

    @cached_property
    def places(self) -> dict[int, int]:
        """For each anchor its position in X, where it is there."""
        anchors = self.found.learner.expansion_.anchors
        points = self.points
        if not hasattr(anchors, "columns") and hasattr(points, "columns"):  # The model keeps numbers.
            points = data.as_vectors(points)
        known = {print_: i for i, print_ in reversed(list(enumerate(_prints(points))))}
        return {a: known[p] for a, p in enumerate(_prints(anchors)) if p in known}

    @property
    def is_training(self) -> bool:
        """Whether X holds points that the model was fitted to."""
        try:
            return bool(self.places)
        except Exception:  # what cannot be compared is taken for the training data, to be honest
            return True

    @cached_property
    def relevance(self) -> RelevanceDisplay:
        """How much the columns matter."""
        return RelevanceDisplay.measured(
            self.found, self.X, self.y, names=self.features, max_time=self.left(4.0), seed=self.seed
        )

    @property
    def apart(self) -> str:
        """What the folds of the error keep apart, groups or times; else empty."""
        return str(getattr(self.error, "apart", ""))

    # --- the error -----------------------------------------------------------------------------------------

    @cached_property
    def verdict(self) -> Verdict:
        """The one error of the model and what it is compared with: as given, else of points left out here."""
        unit = "rows" if data.n_columns(self.X) is not None and not self.is_pairwise else self.unit
        stated = self._stated()
        if stated is None:
            held = self.held_out
            which = "never seen" if held.is_honest else "left out"
            return Verdict(
                self.is_class, held.error, held.interval, held.baseline, len(held.which), unit, which
            )
        value, limits = stated
        known, baseline = self.given, getattr(self.error, "baseline", None)
        if baseline is None:
            baseline = constant_error(self.y, self.y, self.is_class) if known is None else known.baseline
        count = getattr(self.error, "tested", None if known is None else len(known.which))
        return Verdict(self.is_class, value, limits, float(baseline), count, unit)

    def _stated(self) -> tuple[float, tuple[float, float] | None] | None:
        """The error that was given, and its interval."""
        value, limits = getattr(self.error, "error", self.error), getattr(self.error, "interval", None)
        if isinstance(value, tuple | list) and len(value) == 2:
            value, limits = value
        if value is None or np.ndim(value) != 0 or not np.isreal(value):
            return None
        return float(value), None if limits is None else (float(limits[0]), float(limits[1]))

    # --- predictions left out ------------------------------------------------------------------------------

    @cached_property
    def held_out(self) -> HeldOut:
        """Given ones, else exact ones left out, else of folds, else, for new data, the model's own."""
        if self.given is not None:
            return self.given
        if not self.is_training:
            which = self.some(self.afford_values(5000, 3.0))
            how = "Predicted by the model itself, for which these points are new."
            P = self._chances(self.inside[0], data.take(self.inside[1], which))
            return self._judge(which, self.predict(which), how, P, is_honest=True)
        exact = self._left_out_exactly()
        return exact if exact is not None else self._in_folds()

    @cached_property
    def given(self) -> HeldOut | None:
        """Predictions that came with the error, of all points or of some ``rows``."""
        given = getattr(self.error, "predictions", None)
        which = getattr(self.error, "rows", None)
        which = np.arange(self.n) if which is None else np.asarray(which)
        if given is None or np.shape(given) != self.y[which].shape:
            return None
        how, differs = getattr(self.error, "how", None), getattr(self.error, "differs", "")
        how = f"{how}; {differs}" if how and differs else how
        folds = len(getattr(self.error, "errors", ()))
        told = (
            f"Predicted by models that had not seen them: {how}."
            if how
            else f"Predicted in {folds} folds by models whose whole selection was made without them."
        )
        return self._judge(which, np.asarray(given), told, is_honest=True)

    @property
    def _is_cheap(self) -> bool:
        """Whether probabilities cost little: they are found for every pair of classes."""
        return self.found.classes is not None and len(self.found.classes) <= _FEW_CLASSES

    @property
    def has_probabilities(self) -> bool:
        return hasattr(self.found.machine, "predict_proba")

    @property
    def could_be_calibrated(self) -> bool:
        """Whether fits in folds would have probabilities, which predictions that are known have not."""
        if self.apart:  # These folds are of rows at random.
            return False
        if not self.is_class or not self.is_training or self.held_out.probabilities is not None:
            return False
        could = "probability" in self.found.machine.get_params(deep=False) and self._is_cheap
        return could or self.has_probabilities

    @cached_property
    def calibrated(self) -> HeldOut | None:
        """Predictions left out that have probabilities; None where the learner has none to give."""
        if self.is_class and self.held_out.probabilities is not None:
            return self.held_out
        if not self.could_be_calibrated:
            return None
        held = self._in_folds()
        return held if held.probabilities is not None else None

    def _left_out_exactly(self) -> HeldOut | None:
        learner = self.found.learner
        if not self.is_regression or (not hasattr(learner, "path_") and self.n > _EXACT):
            return None
        # A search may have scaled the targets, and its errors with them.
        if self.found.model is not learner and self.found.steps is None:
            return None
        left = getattr(learner, "loo_residuals_", None)
        if left is None or np.shape(left) != self.y.shape or not np.isfinite(left).all():
            return None
        how = "Each point predicted by the model that leaves it out, exactly; kernel and penalty as chosen."
        return self._judge(np.arange(self.n), self.y - np.asarray(left), how)

    def _in_folds(self) -> HeldOut:
        which = self.some(self.afford(_REFITTED, 4.0, squares=4.0))
        y = self.y[which]
        fresh, points = refittable(*self.refitted)
        last = fresh[-1] if hasattr(fresh, "named_steps") else fresh
        if "probability" in last.get_params(deep=False) and self._is_cheap:  # It does not change predictions.
            last.set_params(probability=True)
        fewest = int(np.unique(y, return_counts=True)[1].min()) if self.is_class else 0
        if fewest >= 2:
            parts = stratified_folds(y, min(_FOLDS, fewest), self.seed)
        else:
            parts = folds(len(y), min(_FOLDS, len(y)), self.seed)
        end = now() + self.left(6.0)
        predictions: list[np.ndarray] = []
        chances: list[np.ndarray | None] = []
        done: list[np.ndarray] = []
        for train, test in parts:
            if done and now() > end:
                break
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = fresh.fit(data.take(points, which[train]), y[train])
            predictions.append(np.asarray(fitted.predict(data.take(points, which[test]))))
            chances.append(self._chances(fitted, data.take(points, which[test])))
            done.append(which[test])
        many = f"{len(done)} of {len(parts)} folds" if len(done) < len(parts) else f"{len(done)} folds"
        of = f"{len(which):,} of {self.n:,} points" if len(which) < self.n else f"all {self.n:,} points"
        same = "kernel and the penalty"
        if self.found.has_own_features:
            same = f"features, the {same}"
        how = f"Predicted in {many} of {of} by models with the {same} of this one."
        if len(which) < self.n:
            how += " Those learned from fewer points than this one, so that their error may be too large."
        if self.was_searched:
            how += (
                " Kernel and penalty were chosen with all points in view, which makes it a little too small."
            )
        known = [part for part in chances if part is not None]
        P = np.concatenate(known) if len(known) == len(chances) else None
        return self._judge(np.concatenate(done), np.concatenate(predictions), how, P)

    def _chances(self, model: Model, X: Points) -> np.ndarray | None:
        classes = self.found.classes
        if classes is None:
            return None
        found = learned(model)
        if not hasattr(found.machine, "predict_proba"):
            return None
        P = np.asarray(found.machine.predict_proba(found.points(X)))
        return P if list(found.machine.classes_) == list(classes) else None

    def _judge(
        self,
        which: np.ndarray,
        predictions: np.ndarray,
        how: str,
        P: np.ndarray | None = None,
        is_honest: bool = False,
    ) -> HeldOut:
        y = self.y[which]
        error, baseline = mistakes(predictions, y, self.is_class), constant_error(y, self.y, self.is_class)
        limits = interval(predictions, y, self.is_class)
        return HeldOut(which, predictions, error, limits, how, baseline, is_honest, P)


def interval(predictions: np.ndarray, y: np.ndarray, is_class: bool) -> tuple[float, float]:
    """The 95 % interval of the error, by the points: exact for a share, normal for a mean square.

    >>> low, high = interval(np.zeros(10), np.zeros(10), True)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    if is_class:
        low, high = share_interval(np.count_nonzero(predictions != y), len(y))
        return float(low), float(high)
    squares = ((predictions - y) ** 2).reshape(len(y), -1).mean(axis=1)
    margin = 1.96 * float(squares.std(ddof=1)) / np.sqrt(len(y)) if len(y) > 1 else np.inf
    low, high = (np.sqrt(max(float(squares.mean()) + side * margin, 0.0)) for side in (-1, 1))
    return float(low), float(high)


def _prints(points: Any) -> list[Any]:
    """What two points have in common only if they are equal."""
    if sparse.issparse(points):
        rows: Any = data.as_vectors(points)
        cuts = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return [(rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in cuts]
    if hasattr(points, "columns"):  # a data frame of either library
        columns = [
            points[name].to_list() if hasattr(points[name], "to_list") else [] for name in points.columns
        ]
        return [repr(row) for row in zip(*columns, strict=True)]
    if isinstance(points, np.ndarray) and points.dtype.kind in "biuf":
        return [row.tobytes() for row in np.ascontiguousarray(points, dtype=np.float64)]
    return [_print(point) for point in points]


def _print(point: Any) -> Any:
    if isinstance(point, str | bytes | int | float):
        return point
    try:
        return pickle.dumps(point)
    except Exception:  # an object that cannot be written down is equal to itself alone
        return id(point)
