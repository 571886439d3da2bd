r"""What support vector machines share before the solver: points, weights, precision, memory, starts.

Points of weight zero (or less, as in LIBSVM) are not part of the problem. The kernel matrix is made in
float32 where its rounding, of relative size 2⁻²⁴, moves no slope by more than the tolerance: a slope is a sum
of up to n terms γᵢ k(xᵢ, x), so that C max k(x, x) 2⁻²⁴ √n ≤ tol is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import isinf
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from mercer.data import points as data
from mercer.data.types import Points, Targets, Weights
from mercer.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.matrix_functions import is_function, is_matrix_function, matrix_values
from mercer.estimators.shared.origin import moved, origin_of, rounding_of
from mercer.estimators.shared.support_parameters import COEF0, SupportParameters
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.gram.backends import backend_of
from mercer.gram.device.kernel_rows import device_room, device_rows, holds_points
from mercer.gram.exact import exact_values
from mercer.kernels.objects import Precomputed
from mercer.report import Plan
from mercer.runtime.config import config, memory_budget, settings, thread_count, within
from mercer.solvers.control import Control
from mercer.solvers.svm.decomposition import SHRUNK
from mercer.solvers.svm.problems import Task
from mercer.solvers.svm.program import WHOLE
from mercer.solvers.svm.smo import LARGEST_BLOCK
from mercer.solvers.svm.warm import warm

#: The number of points up to which kernel values in float64, 8 MB at most, cost little more than in float32.
_FLOAT64_IS_CHEAP_BELOW = 1000
#: Rows that the store of a solver holds at least, however small the budget.
_FEWEST_ROWS = 8
#: Points from which on a device is faster than the CPU, and what rows it has to have room for.
FEWEST_ON_DEVICE, _FEWEST_DEVICE_ROWS = 4000, 64
#: Bytes on a device for every number of the points: as they come, centred, in parts for products.
_ON_DEVICE = 48
#: An error of K that no fast product keeps.
_NO_TENSOR_CORES = 1e-12
#: Points from which on the exact solution takes minutes or hours, with the square of their number and more.
_MANY_POINTS = 100_000
_LONG_WAY = (
    "from 100,000 points on the exact solution takes long: KernelMachineClassifier or -Regressor with "
    "landmarks= minimises the same loss on few of the points"
)
#: Numbers of float64 that the plan counts for each variable of a solver.
_NUMBERS_PER_VARIABLE = 12
#: Operations for every second pair of points beside those of ⟨x, x'⟩, about what it is where classes
#: overlap. Where they hardly do, fewer rows of K are computed than a half of them.
_WORK_OF_A_PAIR = 120.0
#: The working set, in variables, that a small budget makes no smaller.
_SMALLEST_WORKING_SET = 64


@dataclass(frozen=True)
class Dual:
    """The dual problem of a machine, as far as precision, memory and certificates depend on it."""

    variables: int
    #: the largest finite bound of a γ
    largest: float
    #: C; None where ν alone says what errors cost
    C: float | None = None
    #: ν, which fixes sums of γ; None where there is none
    nu: float | None = None
    #: problems that are solved together
    problems: int = 1
    #: whether Σγ = 0: there is a b that nothing penalises
    sums_to_zero: bool = True
    #: bytes of what follows the solver, when its own are free again
    afterwards: int = 0

    @property
    def is_hard(self) -> bool:
        """Whether no errors are allowed: C = ∞."""
        return self.C is not None and isinf(self.C)


@dataclass(frozen=True)
class Place:
    """Where a problem is solved."""

    #: the device that the vectors and rows of the solver are on; "" for the host
    device: str = ""
    #: how many bytes rows may take on the device
    room: int = 0
    why: tuple[str, ...] = ()
    #: the settings of `mercer.config` that the Gram is made with, where they differ from those in force
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Setup:
    """What a solver is given, and why."""

    dual: Dual
    gram: Gram
    plan: Plan
    #: the arguments that ``decomposition.solve`` is called with by their names
    options: dict[str, Any]


def unit_penalty(C: float, weight: np.ndarray, average: bool) -> float:
    """C for one unit of weight; for a hard margin, as if C were 1."""
    C = 1.0 if isinf(C) else float(C)
    return C / float(weight.sum()) if average else C


def unit_of(gram: Gram) -> float:
    """The C at which values C k(x, x) are about 1."""
    return 1.0 / max(float(np.mean(np.abs(gram.diag()))), np.finfo(np.float64).tiny ** 0.5)


class SupportMixin(SupportParameters, IterativeMixin, KernelMixin):
    """For estimators on ``solvers.svm``; see the module."""

    expansion_: Expansion
    #: γ and γᵀKγ of each problem of the last fit
    _last: tuple[tuple[np.ndarray, float], ...] = ()
    #: the kernel, where it is a function of matrices, and the points that it was fitted on
    _function: Any = None
    _trained_on: Any = None
    #: for each precision, the Gram that the fits of a path share
    _grams: dict[str, Gram] | None = None
    #: the origin that ⟨x, x'⟩ was computed from, where that matters
    _centre: np.ndarray | None = None

    def plan(self, X: Points, y: Targets | None = None) -> Plan:
        """What ``fit(X, y)`` would do: solver, precision, memory, time, and why. Nothing is fitted."""
        probe = clone(self)
        points, _, weight = probe._prepare(X, "no_validation", None)
        return probe._set_up(points, probe._dual(weight)).plan

    # --- data in -----------------------------------------------------------------------------------------

    def _prepare(
        self, X: Points, y: Targets, sample_weight: Weights, **y_options: Any
    ) -> tuple[Any, Any, np.ndarray]:
        """Points, targets and weights (zero for those to leave out), checked; ``kernel_`` is set.

        For a kernel that is a function of two matrices, its values take the place of X, as in scikit-learn.
        """
        if sparse.issparse(X) and isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InputTypeError(
                "Sparse precomputed kernels are not supported: pass K.toarray(), all values of the kernel "
                "are needed"
            )
        if isinstance(self.kernel, str) and self.kernel in COEF0:
            COEF0[self.kernel].check("coef0", self.coef0)
        if sample_weight is not None:
            sample_weight = _no_negative(sample_weight)
        self._trained_on = self._function = values = None
        if is_function(self.kernel) and is_matrix_function(self.kernel, X):
            K = matrix_values(self.kernel, X, X)
            self._function, self._trained_on, values = self.kernel, data.copied(X), Precomputed()
            X = K
        result = self._validate_fit(X, y, sample_weight, values, **y_options)
        if isinstance(y, str):
            X, y = result, None
        else:
            X, y = result
        n = data.n_points(X)
        seen = X if self._trained_on is None else self._trained_on
        is_given = self._pairwise and self._trained_on is None
        self.shape_fit_ = (n, n) if is_given else tuple(getattr(seen, "shape", (n,)))
        weight = (
            np.ones(n) if sample_weight is None else np.broadcast_to(sample_weight, (n,)).astype(np.float64)
        )
        return X, y, weight

    def _counted(self, points: Points, weight: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """The points of positive weight, where they are in X, and their weights."""
        original = np.flatnonzero(weight > 0)
        if len(original) == len(weight):
            return points, original, weight
        return data.take(points, original), original, weight[original]

    def _validate_new(self, X: Points) -> Any:
        if self._trained_on is not None:
            X = matrix_values(self._function, X, self._trained_on)
        return super()._validate_new(X)

    def _values_at(self, X: Points) -> np.ndarray:  # (m,) or (m, problems)
        """f at new points, in the precision of the fit."""
        X = self._validate_for_values(X)
        return self.expansion_.values(X, self._dtype)

    # --- precision and memory ------------------------------------------------------------------------------

    def _set_up(self, points: Points, dual: Dual) -> Setup:
        """The Gram in the precision it needs, the plan, and what the solver is told."""
        place = self._place(points, dual)
        with within(**place.settings):
            return self._set_up_there(points, dual, place)

    def _place(self, points: Points, dual: Dual) -> Place:
        """Whether the device solves the problem, or the CPU in its place, which is said then."""
        now, n, width = settings(), data.n_points(points), data.n_columns(points) or 1
        if backend_of(now.backend, now.device) not in ("torch", "triton"):
            return Place()
        room, why = device_room(now.device), ""
        if not room:
            why = "it has no float64"
        elif self._pairwise or not holds_points(self.kernel_, points):
            why = "it holds no sparse points, objects or given kernel values"
        elif n < FEWEST_ON_DEVICE or dual.variables < dual.problems * 2 * WHOLE:
            why = "so small a problem is no work for it"
        else:
            room -= _ON_DEVICE * n * width + 8 * _NUMBERS_PER_VARIABLE * dual.variables
            if room < _FEWEST_DEVICE_ROWS * 8 * n:
                why = f"its free memory does not hold the points and {_FEWEST_DEVICE_ROWS} rows of K"
        if not why:
            # What sums of tensor cores lose is not random, and γ adds it up: float32 is multiplied as it is.
            exact = {} if now.kernel_error else {"kernel_error": _NO_TENSOR_CORES}
            why = f"rows of K, slopes and selection are on {now.device!r}"
            return Place(now.device, room, (why,), exact)
        if now.device == "cpu":  # PyTorch was asked for, as a backend.
            return Place()
        cpu = {"device": "cpu", "backend": None}
        return Place(why=(f"the CPU solves it, not {now.device!r}: {why}",), settings=cpu)

    def _set_up_there(self, points: Points, dual: Dual, place: Place) -> Setup:
        n = data.n_points(points)
        dtype, why = self._precision(points, n, dual)
        self._centre = origin_of(self.kernel_, points, is_free=dual.sums_to_zero)
        try:
            gram = self._gram(points, dtype)
        except InputError:
            if dtype == "float64" or self.precision != "auto" or settings().dtype == "float32":
                raise
            dtype, why = "float64", "float64 kernel values: those of float32 overflow"
            gram = self._gram(points, dtype)
        device = device_rows(gram) if place.device else None
        plan, limits = self._plan_memory(points, dtype, why, dual, place)
        if dtype == "float32" and self.precision == "auto":
            with np.errstate(over="ignore"):
                peak = float(np.abs(gram.diag()).max(initial=0.0))
            unit = 2.0**-24 if device is None else max(2.0**-24, device.error)
            error = dual.largest * peak * unit * np.sqrt(n)
            if settings().dtype != "float32" and not (peak < 1e30 and error <= self.tol):
                why = f"float64 kernel values: those of float32 would move slopes by {error:.1g} > tol"
                plan, limits = self._plan_memory(points, "float64", why, dual, place)
                gram = self._gram(points, "float64")
                device = device_rows(gram) if place.device else None
        self._dtype = gram.dtype.name
        rounding = rounding_of(self.kernel_, points, self._dtype)
        options = {
            **limits,
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "shrinking": bool(self.shrinking),
            "rounding": rounding if device is None else rounding + device.error,
            "exact": partial(exact_values, self.kernel_, points),
            "device": device,
        }
        return Setup(dual, gram, plan, options)

    def _gram(self, points: Points, dtype: str) -> Gram:
        if self._grams is not None and dtype in self._grams:
            return self._grams[dtype]
        with config(dtype=dtype):
            gram = Gram(self.kernel_, moved(points, self._centre), cache=0)
        if self._grams is not None:
            self._grams[dtype] = gram
        return gram

    def _precision(self, points: Any, n: int, dual: Dual) -> tuple[str, str]:
        if self.precision != "auto":
            return self.precision, f"{self.precision} kernel values were asked for"
        if self.tol < 1e-5:
            return "float64", f"float64 kernel values: tol={self.tol} is below 1e-5"
        if dual.is_hard:
            return "float64", "float64 kernel values: coefficients of a hard margin may be of any size"
        if settings().dtype == "float32":
            return "float32", "float32 kernel values are configured"
        if n <= _FLOAT64_IS_CHEAP_BELOW:
            few = f"{_FLOAT64_IS_CHEAP_BELOW} points or fewer"
            return "float64", f"float64 kernel values: they cost little for {few}"
        if self._pairwise or not self.kernel_.domain.is_vectors:
            return "float64", "float64 kernel values, as they are given"
        values = points.data if sparse.issparse(points) else np.asarray(points)
        if values.size and max(float(values.max()), -float(values.min())) >= 1e15:
            return "float64", "float64 kernel values: the data would overflow in float32"
        return "float32", "float32 kernel values: their rounding is below tol"

    def _plan_memory(
        self, points: Any, dtype: str, why: str, dual: Dual, place: Place
    ) -> tuple[Plan, dict[str, int]]:
        """The plan, and the limits of the solver: the bytes of rows to keep, the largest working set."""
        n, item, budget = data.n_points(points), np.dtype(dtype).itemsize, memory_budget()
        row = -(-n * item // 64) * 64
        limit = place.room or budget // 4
        if self.cache_size != "auto":
            limit = int(min(limit, self.cache_size * 2**20))
        least = min(_FEWEST_DEVICE_ROWS if place.device else _FEWEST_ROWS, n)
        rows = max(least, min(n, limit // row))
        # rows of what has moved are enough on a device: working sets need none there
        most = n if place.device else rows
        largest, blocks = self._working_sets(n, item, most, dual, budget // 4)
        width = data.n_columns(points) or 1
        numbers = points.nnz if sparse.issparse(points) else n * width
        # Memory is for the Gram's centred points, those of a batch of rows, and X sorted by class.
        each = item + (8 if sparse.issparse(points) else getattr(points, "itemsize", 8))
        own = numbers * (each if sparse.issparse(points) else item)
        prepared = own + min(n, LARGEST_BLOCK) * width * each + 8 * numbers * (dual.problems > 1)
        prepared += 0 if self._centre is None else 8 * numbers
        on_host = 0 if place.device else rows * row
        solver = on_host + blocks + 8 * _NUMBERS_PER_VARIABLE * dual.variables
        memory = max(solver, dual.afterwards) + prepared
        name = "decomposition"
        if dual.problems > 1:
            name += f" of {dual.problems} problems that share rows"
        kept = f"room for {rows:,} of {n:,} rows of the kernel matrix"
        flops = (2.0 * width + _WORK_OF_A_PAIR) * n * n / 2
        reasons = (why, kept, *place.why, *([_LONG_WAY] if n >= _MANY_POINTS else []))
        plan = Plan(name, n, memory, flops, reasons, iterative=True, dtype=dtype)
        if on_host > budget // 2 and rows == least:
            raise MemoryBudgetError(
                f"{least} rows of the kernel matrix of {n:,} points need more than half of the memory "
                "budget: use fewer points, or raise the budget with mercer.config(memory=…)"
            )
        if memory > budget:  # asking for the budget takes a millisecond
            plan.require_memory("use fewer points, or a smaller cache_size")
        return plan, {"cache": rows * row, "largest": largest}

    def _working_sets(self, n: int, item: int, rows: int, dual: Dual, room: int) -> tuple[int, int]:
        """The largest working set whose matrices take at most ``room`` bytes, and what they take."""
        if dual.problems > 1 or dual.variables <= WHOLE:  # Each thread has a matrix of its own.
            sizes, copies = [min(rows, n)], min(dual.problems, thread_count())
        else:
            # The last one and the next are held; variables in two groups are sorted into a third.
            sizes, copies = [dual.variables], 2 if dual.nu is None else 3
            while self.shrinking and sizes[-1] > WHOLE:  # A shrunken problem has a working set of its own.
                sizes.append(int(SHRUNK * sizes[-1]))
        largest = LARGEST_BLOCK

        def taken() -> int:
            return copies * item * sum(min(size, largest) ** 2 for size in sizes)

        while largest > _SMALLEST_WORKING_SET and taken() > room:
            largest = max(_SMALLEST_WORKING_SET, int(0.9 * largest))
        return largest, taken()

    def _control_of(self, *data: Any) -> Control:
        """The control of a fit on these data; ``verbose`` shows a bar, as in scikit-learn."""
        shown = True if self.progress is None and self.verbose else None
        return self._control(type(self).__name__, None, *data, progress=shown)

    # --- warm starts ----------------------------------------------------------------------------------------

    def _warmed(self, tasks: list[Task]) -> list[Task]:
        """The tasks from where the last fit ended, where that is asked for and it is of the same size."""
        last = self._last if self.warm_start or self._grams is not None else ()
        if len(last) != len(tasks):
            return tasks
        return [warm(task, *start) for task, start in zip(tasks, last, strict=True)]

    def _path(self, X: Points, y: Targets, Cs: Any, sample_weight: Weights) -> list[Self]:
        """Fits for each C, each from the last solution, on one Gram."""
        models: list[Self] = []
        grams: dict[str, Gram] = {}
        try:
            values = list(Cs)
        except TypeError:
            raise InputError(
                f"Cs must hold the values of C to fit for, got {Cs!r}: pass a list, such as [0.1, 1.0, 10.0]"
            ) from None
        for C in values:
            model = clone(self).set_params(C=C)
            model._grams = grams
            if models:
                model._last = models[-1]._last
            model.fit(X, y, sample_weight)
            models.append(model)
        for model in models:
            model._grams = None
            model._last = model._last if self.warm_start else ()
        if not models:
            raise InputError("Cs is empty: pass the values of C to fit for, such as [0.1, 1.0, 10.0]")
        return models


def _no_negative(sample_weight: Weights) -> Any:
    """Weights with 0 for negative ones: such points are left out."""
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        return sample_weight  # the check that follows says what is wrong
    weight = np.maximum(weight, 0.0)
    if weight.size and not (weight != 0).any():  # NaN is for the check that follows
        raise InputError(
            "Invalid input - all samples have zero or negative weights: give some points a positive weight, "
            "or leave out sample_weight"
        )
    if weight.size and np.nanmax(weight) > 1e100:
        raise InputError(
            f"Sample weights must be at most 1e100, got {np.nanmax(weight):.3g}: divide them by their mean, "
            "and C times their mean takes the place of C"
        )
    return weight if weight.ndim else float(weight)
