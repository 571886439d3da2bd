r"""What support vector machines share: parameters, precision, memory, kernels as functions, attributes.

Points of weight zero (or less, as in LIBSVM) are not part of the problem. The kernel matrix is made in
float32 where its rounding, of relative size 2⁻²⁴, moves no slope by more than the tolerance: a slope is a sum
of up to n terms γᵢ k(xᵢ, x), so that C max k(x, x) 2⁻²⁴ √n ≤ tol is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from mercer import data
from mercer.config import config, memory_budget, settings, thread_count
from mercer.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.estimators.base import KernelMixin, flag
from mercer.estimators.iterative import IterativeMixin
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.objects import Precomputed
from mercer.kernels.parameters import Parameter, choice, fixed, positive
from mercer.report import Journal, Plan, Report
from mercer.solvers.control import Control
from mercer.solvers.smo import LARGEST_BLOCK
from mercer.solvers.svm import Machine, Task, warm

__all__ = ["SupportMixin"]

_SMALL = 1000  # points up to which float64 costs little
_FEWEST = 8  # rows that the solver must be able to hold
_VECTORS = 12  # numbers that a solver keeps per variable
_ORDER = (
    "interrupted",
    "max_time",
    "max_iter",
    "rounding",
)  # which to report, where problems ended differently


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


#: a penalty C, infinite for none of what it penalises
PENALTY = Parameter(
    1.0, "positive", lambda v: _is_number(v) and v > 0, 'a positive number, or float("inf") for a hard margin'
)
#: ν, a part of the points
PART = Parameter(
    0.5, "in (0, 1]", lambda v: _is_number(v) and 0 < v <= 1, "a part of the points, such as 0.5"
)


class SupportMixin(IterativeMixin, KernelMixin):
    """For estimators on ``solvers.svm``; see the module."""

    _shared: ClassVar[dict[str, Parameter]] = {
        "tol": positive(1e-3),
        "shrinking": flag(True),
        "cache_size": fixed(
            "auto",
            '"auto" or positive',
            lambda v: (isinstance(v, str) and v == "auto") or (_is_number(v) and v > 0),
            'a number of megabytes, or "auto"',
        ),
        "max_iter": Parameter(
            -1,
            "a whole number of at least -1",
            lambda v: isinstance(v, int | np.integer) and not isinstance(v, bool) and bool(v >= -1),
            "a number of steps, or -1 for no limit",
        ),
        "precision": choice("auto", ["auto", "float32", "float64"]),
        "warm_start": flag(False),
        "verbose": fixed(
            False,
            "True or False",
            lambda v: isinstance(v, bool | np.bool_ | int | np.integer),
            "one of the two",
        ),
        **IterativeMixin.CONTROL,
    }

    tol: float
    C: float
    shrinking: bool
    cache_size: Any
    max_iter: int
    precision: str
    warm_start: bool
    verbose: Any

    support_: np.ndarray
    support_vectors_: Any
    n_support_: np.ndarray
    dual_coef_: Any
    intercept_: np.ndarray
    expansion_: Expansion
    n_iter_: Any
    report_: Report

    #: the points of a kernel that is a function of matrices
    _trained_on: Any = None
    #: of the last fit: γ and γᵀKγ of each problem
    _last: tuple[tuple[np.ndarray, float], ...] = ()
    #: of a path: Grams that its fits share, by precision
    _grams: dict[str, Gram] | None = None
    _takes_matrices = False

    # --- data in -----------------------------------------------------------------------------------------

    def _prepare(self, X: Any, y: Any, sample_weight: Any, **y_options: Any) -> tuple[Any, Any, np.ndarray]:
        """Points, targets and weights (zero for those to leave out), checked; ``kernel_`` is set."""
        if sparse.issparse(X) and isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InputTypeError(
                "Sparse precomputed kernels are not supported: pass K.toarray(), all values of the kernel "
                "are needed"
            )
        if sample_weight is not None:
            sample_weight = _no_negative(sample_weight)
        with self._kernel_values(X) as X:
            result = self._validate_fit(X, y, sample_weight, **y_options)
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

    def _counted(self, points: Any, weight: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """The points of positive weight, where they are in X, and their weights."""
        original = np.flatnonzero(weight > 0)
        if len(original) == len(weight):
            return points, original, weight
        return data.take(points, original), original, weight[original]

    @contextmanager
    def _kernel_values(self, X: Any) -> Iterator[Any]:
        """X; or, for a kernel that is a function of two matrices, its values, as in scikit-learn."""
        self._trained_on = None
        if not _is_function(self.kernel) or not is_matrix_function(self.kernel, X):
            yield X
            return
        K = _values(self.kernel, X, X)
        self._trained_on, self._takes_matrices = X, True
        try:
            yield K
        finally:
            self._takes_matrices = False

    def _kernel(self) -> Kernel:
        return Precomputed() if self._takes_matrices else super()._kernel()

    def _validate_new(self, X: Any) -> Any:
        check_is_fitted(self)
        if self._trained_on is not None:
            X = _values(self.kernel, X, self._trained_on)
        return super()._validate_new(X)

    def _values_at(self, X: Any) -> np.ndarray:  # (m,) or (m, problems)
        """f at new points, in the precision of the fit."""
        X = self._validate_new(X)
        with config(dtype=self._dtype):
            return self.expansion_(X)

    # --- precision and memory ------------------------------------------------------------------------------

    def _set_up(self, points: Any, largest: float, variables: int, problems: int) -> tuple[Gram, Plan]:
        """The Gram in the precision it needs, and the plan; ``largest`` is the largest finite bound of γ."""
        n = data.n_points(points)
        dtype, why = self._precision(points, n)
        cache, plan = self._plan_memory(points, dtype, why, variables, problems)
        gram = self._gram(points, dtype)
        if dtype == "float32" and self.precision == "auto":
            with np.errstate(over="ignore"):
                peak = float(np.abs(gram.diag()).max(initial=0.0))
            error = largest * peak * 2.0**-24 * np.sqrt(n)
            if settings().dtype != "float32" and not (peak < 1e30 and error <= self.tol):
                why = f"float64 kernel values: those of float32 would move slopes by {error:.1g} > tol"
                cache, plan = self._plan_memory(points, "float64", why, variables, problems)
                gram = self._gram(points, "float64")
        self._cache_bytes = cache
        self._dtype = gram.dtype.name
        return gram, plan

    def _gram(self, points: Any, dtype: str) -> Gram:
        if self._grams is not None and dtype in self._grams:
            return self._grams[dtype]
        with config(dtype=dtype):
            gram = Gram(self.kernel_, points, cache=0)
        if self._grams is not None:
            self._grams[dtype] = gram
        return gram

    def _precision(self, points: Any, n: int) -> tuple[str, str]:
        if self.precision != "auto":
            return self.precision, f"{self.precision} kernel values were asked for"
        if self.tol < 1e-5:
            return "float64", f"float64 kernel values: tol={self.tol} is below 1e-5"
        if np.isinf(getattr(self, "C", 1.0)):
            return "float64", "float64 kernel values: coefficients of a hard margin may be of any size"
        if settings().dtype == "float32":
            return "float32", "float32 kernel values are configured"
        if n <= _SMALL:
            return "float64", f"float64 kernel values: they cost little for {_SMALL} points or fewer"
        if self._pairwise or self.kernel_.domain not in ("vectors", "nonnegative"):
            return "float64", "float64 kernel values, as they are given"
        values = points.data if sparse.issparse(points) else np.asarray(points)
        if values.size and max(float(values.max()), -float(values.min())) >= 1e15:
            return "float64", "float64 kernel values: the data would overflow in float32"
        return "float32", "float32 kernel values: their rounding is below tol"

    def _plan_memory(
        self, points: Any, dtype: str, why: str, variables: int, problems: int
    ) -> tuple[int, Plan]:
        """The bytes of rows to keep, and the plan."""
        n, item, budget = data.n_points(points), np.dtype(dtype).itemsize, memory_budget()
        row = -(-n * item // 64) * 64
        limit = budget // 4
        if self.cache_size != "auto":
            limit = min(limit, int(self.cache_size * 2**20))
        least = min(_FEWEST, n)
        rows = max(least, min(n, limit // row))
        block = min(LARGEST_BLOCK, rows, n) ** 2 * item * min(problems, thread_count())
        memory = rows * row + block + 8 * _VECTORS * variables
        name = "decomposition" if problems == 1 else f"decomposition of {problems} problems that share rows"
        width = points.shape[1] if len(getattr(points, "shape", ())) == 2 else 1
        kept = f"room for {rows:,} of {n:,} rows of the kernel matrix"
        flops = (2.0 * width + 40.0) * n * n / 2
        plan = Plan(name, n, memory, flops, (why, kept), iterative=True, dtype=dtype)
        if rows * row > budget // 2 and rows == least:
            raise MemoryBudgetError(
                f"{least} rows of the kernel matrix of {n:,} points need more than half of the memory "
                "budget: use fewer points, or raise the budget with mercer.config(memory=…)"
            )
        if memory > budget:  # asking for the budget takes a millisecond
            plan.require_memory("use fewer points, or a smaller cache_size")
        return rows * row, plan

    def _options(self) -> dict[str, Any]:
        return {
            "tol": self.tol,
            "max_iter": int(self.max_iter),
            "cache": self._cache_bytes,
            "shrinking": bool(self.shrinking),
        }

    def _control(self, label: str, total: int | None, *about: Any) -> Control:
        return Control(
            label,
            total,
            max_time=self.max_time,
            progress=True if self.progress is None and self.verbose else self.progress,
            checkpoint=self.checkpoint,
            resume=self.resume,
            identity="" if self.checkpoint is None else self._identity(*about),
        )

    def _finite_penalty(self, weight: np.ndarray) -> float:
        """C for one unit of weight; the first that a hard margin is tried with."""
        C = 1.0 if np.isinf(self.C) else float(self.C)
        return C / float(weight.sum()) if self.average else C  # type: ignore[attr-defined]

    def _unit(self, gram: Gram) -> float:
        """C at which values C k(x, x) are about 1."""
        return 1.0 / max(float(np.mean(np.abs(gram.diag()))), np.finfo(np.float64).tiny ** 0.5)

    # --- warm starts ----------------------------------------------------------------------------------------

    def _warmed(self, tasks: list[Task]) -> list[Task]:
        """The tasks from where the last fit ended, where that is asked for and it is of the same size."""
        last = self._last if self.warm_start or self._grams is not None else ()
        if len(last) != len(tasks):
            return tasks
        return [warm(task, *start) for task, start in zip(tasks, last, strict=True)]

    def _path(self, X: Any, y: Any, Cs: Any, sample_weight: Any) -> list[Self]:
        """Fits for each C, each from the last solution, on one Gram."""
        models: list[Self] = []
        grams: dict[str, Gram] = {}
        for C in Cs:
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

    # --- what was found -------------------------------------------------------------------------------------

    def _finish(self, journal: Journal, plan: Plan, machines: list[Machine], seconds: float) -> None:
        """Attributes that all machines have, and the report."""
        keep = self.warm_start or self._grams is not None
        self._last = tuple((machine.gamma, machine.energy) for machine in machines) if keep else ()
        ends = [machine.stopped for machine in machines]
        stopped = next((end for end in _ORDER if end in ends), "converged")
        steps = sum(machine.steps for machine in machines)
        self.fit_status_ = int(stopped != "converged")
        one = len(machines) == 1
        gaps, violations = ([float(getattr(m, name)) for m in machines] for name in ("gap", "violation"))
        self.dual_gap_ = gaps[0] if one else np.array(gaps)
        self.kkt_violation_ = violations[0] if one else np.array(violations)
        self._warn(journal, stopped, steps, max(violations))
        self.report_ = journal.report(
            plan,
            stopped,
            time=seconds,
            iterations=steps,
            objective=float(sum(machine.objective for machine in machines)),
            gap=sum(gaps),
        )

    def _warn(self, journal: Journal, stopped: str, steps: int, violation: float) -> None:
        what = (
            f"with conditions of optimality violated by {violation:.2g}, where tol={self.tol} was asked for"
        )
        if stopped == "max_iter":  # the words that scikit-learn's users filter by
            what = (
                f"{what}. Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your "
                "data with StandardScaler or MinMaxScaler."
            )
        self._warn_if_stopped(journal, stopped, steps, what)

    def _set_support(self, points: Any, chosen: np.ndarray, original: np.ndarray, dual: np.ndarray) -> None:
        """support_, support_vectors_ and dual_coef_; ``original`` are the positions of the points in X."""
        self.support_ = original[chosen].astype(np.int32)
        is_sparse = sparse.issparse(points)
        if self._pairwise:
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = data.take(points, chosen)
        if is_sparse:
            self.support_vectors_ = sparse.csr_matrix(self.support_vectors_)
            self.dual_coef_ = sparse.csr_matrix(dual)
        else:
            self.dual_coef_ = dual

    def _set_expansion(self, points: Any, chosen: np.ndarray, coef: np.ndarray, intercept: Any) -> None:
        """f over the chosen points only; one with coefficient 0 where there is none."""
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise InputError(
                "The dual coefficients or intercepts are not finite: rescale the data, or choose a kernel "
                "that does not overflow on them"
            )
        anchors = chosen if len(chosen) else np.zeros(1, np.intp)
        self.expansion_ = Expansion(self.kernel_, data.take(points, anchors), coef[anchors], intercept)

    def _read_one(self, points: Any, original: np.ndarray, machine: Machine) -> None:
        """Attributes from the machine of a single problem, for regression and one class."""
        chosen = np.flatnonzero(machine.coef)
        self._set_support(points, chosen, original, machine.coef[None, chosen])
        self.n_support_ = np.array([len(chosen)], np.int32)
        self.intercept_ = np.array([machine.intercept])
        self._set_expansion(points, chosen, machine.coef, machine.intercept)
        self.n_iter_ = machine.steps

    @property
    def coef_(self) -> Any:
        """Weights of the features, for ``kernel="linear"`` only: f(x) = coef_ x + intercept_."""
        if not (isinstance(self.kernel, str) and self.kernel == "linear"):
            raise AttributeError("coef_ is only available when using a linear kernel")
        try:
            check_is_fitted(self)
        except ValueError as error:  # NotFittedError
            raise AttributeError(str(error)) from None
        coef = self._primal()
        if sparse.issparse(coef):
            coef.data.flags.writeable = False
        else:
            coef.flags.writeable = False
        return coef

    def _primal(self) -> Any:
        return safe_sparse_dot(self.dual_coef_, self.support_vectors_)

    @property
    def _gamma(self) -> Any:
        """γ as a number, under the name that scikit-learn's users know."""
        return vars(self.kernel_).get("gamma", 0.0)


def _no_negative(sample_weight: Any) -> Any:
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
    return weight if weight.ndim else float(weight)


def _is_function(kernel: Any) -> bool:
    return callable(kernel) and not isinstance(kernel, Kernel | type)


def is_matrix_function(function: Any, X: Any) -> bool:
    """Whether a function takes two sets of points and returns a matrix, as in scikit-learn, or two points.

    It is tried on the first three points: what returns a 3 × 3 matrix, with the corner that the first
    point alone gives, is such a function; one of two points returns a number.

    >>> X = np.eye(4)
    >>> is_matrix_function(lambda A, B: A @ B.T, X), is_matrix_function(lambda a, b: float(a[0] == b[0]), X)
    (True, False)
    """
    try:
        some, one = (data.take(X, slice(0, m)) for m in (3, 1))
        n = data.n_points(some)
        many, corner = (_array(function(part, part)) for part in (some, one))
        return (
            many.shape == (n, n)
            and corner.shape == (1, 1)
            and bool(np.isclose(many[0, 0], corner[0, 0], rtol=1e-6, atol=1e-12))
        )
    except Exception:  # whatever it raises, it is not made for matrices
        return False


def _array(K: Any) -> np.ndarray:
    return np.asarray(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)


def _values(function: Any, X: Any, Y: Any) -> np.ndarray:  # (n, m)
    """The matrix that a kernel as a function of matrices returns."""
    K = _array(function(X, Y))
    shape = (data.n_points(X), data.n_points(Y))
    if K.shape != shape:
        raise InputError(
            f"kernel must return a matrix of {shape[0]} × {shape[1]} values for that many points, got shape "
            f"{K.shape}: return the kernel of every point of the first set with every point of the second"
        )
    return K
