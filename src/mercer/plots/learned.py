r"""What pictures need of a model: the learner at the end of a pipeline, the points it sees, its functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from mercer.data import points as data
from mercer.data.sparse import dense
from mercer.data.types import Model, Points, Targets
from mercer.errors import InputError, InputTypeError
from mercer.kernels.base import Kernel
from mercer.kernels.columns.table import ColumnKernel
from mercer.kernels.compose import OnColumns
from mercer.kernels.names import KernelLike
from mercer.kernels.objects import Precomputed
from mercer.kernels.words import has_scales
from mercer.plots.filters import FilterMachine, FilterRows, is_filter
from mercer.plots.regions import winners


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted model of mercer's, alone or at the end of a pipeline or of a search of scikit-learn's."""

    #: the model that was given, which takes X as it is
    model: Model
    #: the steps of a pipeline before the learner, or None
    steps: Any
    #: the estimator of mercer
    learner: Any

    @property
    def kernel(self) -> Kernel:
        """The kernel with its parameters taken from the data."""
        kernel = self.learner.kernel_
        if not isinstance(kernel, Kernel):
            raise InputTypeError(f"the model's kernel_ must be a Kernel, got {kernel!r}: pass a mercer model")
        return kernel

    @property
    def machine(self) -> Any:
        """The learner itself, or the one that it chose."""
        return getattr(self.learner, "model_", self.learner)

    @property
    def classes(self) -> np.ndarray | None:
        """The labels of a classifier."""
        return getattr(self.learner, "classes_", None) if is_classifier(self.learner) else None

    @property
    def is_classifier(self) -> bool:
        return self.classes is not None

    @property
    def is_regressor(self) -> bool:
        return bool(is_regressor(self.learner))

    @property
    def has_margin(self) -> bool:
        """Whether f = ±1 means something: the edges of the street of a support vector machine."""
        return self.is_classifier and hasattr(self.machine, "support_")

    @property
    def penalty(self) -> float | None:
        """λ beside K: α of ridge regression, 1/C of a machine; None where there is none."""
        machine = self.machine
        for name in ("alpha_", "alpha"):
            value = getattr(machine, name, None)
            if value is not None and np.ndim(value) == 0 and np.isreal(value) and float(value) > 0:
                return float(value)
        C = getattr(machine, "C", None)
        return 1 / float(C) if C is not None and np.ndim(C) == 0 and 0 < float(C) < np.inf else None

    @property
    def fitted_points(self) -> int | None:
        """How many points the function was fitted to; None where the model does not say."""
        plan = getattr(getattr(self.machine, "report_", None), "plan", None)
        if plan is None:
            plan = getattr(getattr(self.learner, "report_", None), "plan", None)
        return None if plan is None else int(plan.points)

    @property
    def sources(self) -> list[str] | None:
        """The column of X that each column behind the steps is made of; None where no step says so."""
        steps: Any = getattr(self.steps, "steps", ())
        told = getattr(steps[0][1], "sources", None) if len(steps) == 1 else None
        return None if told is None else list(told())

    @property
    def has_own_features(self) -> bool:
        """Whether the kernel is for the columns behind the steps as they are, and for no others.

        So it is where a search has chosen it for them, and where it has a value per column or names columns:
        a step that is fitted to other rows may give other columns (a category less, another spread).
        """
        if self.steps is None:
            return False
        if self.machine is not self.learner:
            return True
        names_columns = any(isinstance(part, OnColumns | ColumnKernel) for part in self.kernel.parts())
        return names_columns or has_scales(self.kernel)

    def points(self, X: Points) -> Any:
        """What the kernel compares: X behind the steps of the pipeline."""
        points: Any = X if self.steps is None else self.steps.transform(X)
        if getattr(self.machine, "_pairwise", False) and points.shape[0] == points.shape[1]:
            return np.arange(points.shape[0])  # Training points are their indices.
        return points

    def values(self, points: Points) -> np.ndarray:  # (n, functions)
        """f at points behind the steps."""
        values = np.asarray(self.learner.expansion_(points), dtype=np.float64)
        return values.reshape(len(values), -1)

    def codes(self, values: np.ndarray) -> np.ndarray:  # (n,)
        """The classes that values of f, (n, functions), stand for."""
        assert self.classes is not None
        return winners(values, len(self.classes), self.by_pairs)

    @property
    def by_pairs(self) -> bool:
        """Whether there is a function for every pair of classes, and they vote."""
        return bool(getattr(self.machine, "_by_pairs", False))


def learned(model: Model) -> FittedModel:
    """Look through a pipeline or a search for mercer's estimator.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mercer import SVC
    >>> found = learned(make_pipeline(StandardScaler(), SVC()).fit([[0.0], [1.0], [3.0]], [0, 0, 1]))
    >>> type(found.learner).__name__, found.points([[4.0 / 3]]).round(6) + 0.0
    ('SVC', array([[0.]]))
    """
    inside, steps = model, None
    if hasattr(inside, "best_estimator_"):
        inside = inside.best_estimator_
    if hasattr(inside, "steps") and hasattr(inside, "named_steps"):
        steps, inside = (inside[:-1] if len(inside.steps) > 1 else None), inside[-1]
        if inside is None or isinstance(inside, str):
            raise InputError(f"the pipeline ends in {inside!r}: it must end in an estimator of mercer's")
    if is_filter(inside) and steps is None:
        return FittedModel(model, FilterRows(inside), FilterMachine(inside))
    if not hasattr(inside, "expansion_") or not hasattr(inside, "kernel_"):
        how = "fit it first" if hasattr(inside, "fit") else "pass a fitted estimator of mercer's"
        raise InputError(
            f"the model must be fitted and have a kernel, got {type(inside).__name__} without expansion_ and "
            f"kernel_: {how}, or a pipeline that ends in one"
        )
    return FittedModel(model, steps, inside)


def as_kernel(kernel: KernelLike) -> Kernel:
    """A kernel that was given; anything else is refused."""
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel must be a Kernel such as Gaussian(sigma=1.0), got {kernel!r}")
    return kernel


def as_labels(y: Targets, n: int) -> np.ndarray:  # (n,)
    """Targets as an array, one per point."""
    labels = np.asarray(y)
    if labels.ndim == 0 or len(labels) != n:
        raise InputError(
            f"y must have one entry per point ({n}), got shape {labels.shape}: pass the targets of X"
        )
    return labels


def sample(n: int, most: int, seed: int = 0, labels: Any = None) -> np.ndarray:  # (m,) sorted
    """At most so many of n positions, by chance; of every class its share, and at least one point.

    >>> sample(5, 10)
    array([0, 1, 2, 3, 4])
    >>> y = np.repeat([0, 1, 2], [900, 90, 1])
    >>> np.bincount(y[sample(991, 100, labels=y)])
    array([90,  9,  1])
    """
    if not isinstance(most, int | np.integer) or most < 1:
        raise InputError(f"the number of points to show must be a whole number of at least 1, got {most!r}")
    if n <= most:
        return np.arange(n)
    generator = np.random.default_rng(seed)
    if labels is None:
        return np.sort(generator.choice(n, most, replace=False))
    _, codes = np.unique(labels, return_inverse=True)
    order = generator.permutation(n)
    order = order[np.argsort(codes[order], kind="stable")]
    sizes = np.bincount(codes)
    # Every class gets its share, at least one place; the places that are left go to the largest fractions.
    parts = np.maximum(sizes * most // n, 1)
    for code in np.argsort(-(sizes * most % n), kind="stable")[: max(0, most - int(parts.sum()))]:
        parts[code] = min(parts[code] + 1, sizes[code])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    chosen = [order[start : start + part] for start, part in zip(starts, parts, strict=True)]
    return np.sort(np.concatenate(chosen))


def column_names(X: Points, d: int, names: Any = None) -> tuple[str, ...]:
    """Names for d columns: those given, if they are d, else those of a data frame, else "column 0", … ."""
    if names is not None and len(names) == d:
        return tuple(map(str, names))
    if hasattr(X, "columns"):
        return tuple(map(str, X.columns))
    return tuple(f"column {j}" for j in range(d))


def table_of(points: Points) -> np.ndarray | None:  # (n, d)
    """Points that are rows of numbers as an array, else None."""
    if data.n_columns(points) is None:
        return None
    try:
        vectors = data.as_vectors(points)
    except (InputError, TypeError, ValueError):
        return None
    return np.asarray(dense(vectors), dtype=np.float64)


def unfitted(model: Model) -> Any:
    """The model before its fit, with the kernel and the penalty that a search has chosen.

    Without the steps of a pipeline where the kernel is for what they gave (``has_own_features``).

    >>> from mercer import KernelRidgeCV
    >>> unfitted(KernelRidgeCV([0.5]).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])).alpha
    0.5
    """
    found = learned(model)
    learner, machine = found.learner, found.machine
    if is_filter(model):
        return clone(model).set_params(weights=dict(model.weights_), C=model.C_)
    if getattr(machine, "_pairwise", False):
        raise InputError("the model was given kernel values, not points: it cannot be fitted to some of them")
    if machine is not learner:
        last = clone(machine)
    elif hasattr(learner, "path_") and hasattr(learner, "alpha_"):
        from mercer.estimators.ridge import KernelRidge

        chosen = learner.kernel_.__sklearn_clone__()
        last = KernelRidge(learner.alpha_, kernel=chosen, fit_intercept=learner.fit_intercept)
    else:
        last = clone(learner)
    for name in ("checkpoint", "progress"):  # These belong to the fit that is shown.
        if name in last.get_params(deep=False):
            last.set_params(**{name: None if name == "checkpoint" else False})
    if found.steps is None or found.has_own_features:
        return last
    return Pipeline([*clone(found.steps).steps, ("learner", last)])


def refittable(model: Model, X: Points) -> tuple[Any, Any]:
    """The model before its fit, and points of which any part can be fitted: indices for kernel values.

    A kernel that was chosen for the columns behind the steps of a pipeline keeps these columns: the points
    are then those behind the steps, which are not fitted again.

    >>> from mercer import SVC
    >>> K = np.eye(4)
    >>> fresh, points = refittable(SVC(kernel="precomputed").fit(K, [0, 1, 0, 1]), K)
    >>> points, fresh.fit(points[:3], [0, 1, 0]).predict([2])
    (array([0, 1, 2, 3]), array([0]))
    """
    found = learned(model)
    if not getattr(found.machine, "_pairwise", False):
        return unfitted(model), found.points(X) if found.has_own_features else X
    K = np.asarray(X)
    if found.steps is not None or found.machine is not found.learner or K.shape[0] != K.shape[1]:
        raise InputError("the model was given kernel values, not points: it cannot be fitted to some of them")
    return clone(found.machine).set_params(kernel=Precomputed(K)), np.arange(len(K))
