r"""What support vector machines share: parameters, precision, memory, kernels as functions, attributes.

Points of weight zero (or less, as in LIBSVM) are not part of the problem. The kernel matrix is made in
float32 where its rounding, of relative size 2⁻²⁴, moves no slope by more than the tolerance: a slope is a sum
of up to n terms γᵢ k(xᵢ, x), so that C max k(x, x) 2⁻²⁴ √n ≤ tol is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from mercer.data import points as data
from mercer.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.matrix_functions import is_function, is_matrix_function, matrix_values
from mercer.estimators.shared.origin import affine_at, moved, origin_of, rounding_of
from mercer.estimators.shared.support_parameters import COEF0, SHARED
from mercer.estimators.shared.support_report import SupportReportMixin
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.gram.exact import exact_values
from mercer.kernels.base import Kernel
from mercer.kernels.objects import Precomputed
from mercer.kernels.vectors.dotproduct import Linear
from mercer.report import Plan, Report
from mercer.runtime.config import config, memory_budget, settings, thread_count
from mercer.solvers.svm.decomposition import SHRUNK
from mercer.solvers.svm.problems import Machine, Task, warm
from mercer.solvers.svm.program import WHOLE
from mercer.solvers.svm.smo import LARGEST_BLOCK

__all__ = ["SupportMixin"]

_SMALL = 1000  # points up to which float64 costs little
_FEWEST = 8  # rows that the solver must be able to hold
_VECTORS = 12  # numbers that a solver keeps per variable
_LEAST = 64  # variables of a working set


class SupportMixin(SupportReportMixin, KernelMixin):
    """For estimators on ``solvers.svm``; see the module."""

    _shared = SHARED

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

    #: a kernel that is a function of matrices, and its points, as of the fit
    _function: Any = None
    _trained_on: Any = None
    #: of a path: Grams that its fits share, by precision
    _grams: dict[str, Gram] | None = None
    _takes_matrices = False
    #: the origin that ⟨x, x'⟩ was computed from, where that matters
    _centre: np.ndarray | None = None

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
        self._trained_on = self._function = None
        if not is_function(self.kernel) or not is_matrix_function(self.kernel, X):
            yield X
            return
        K = matrix_values(self.kernel, X, X)
        self._function, self._trained_on, self._takes_matrices = self.kernel, data.copied(X), True
        try:
            yield K
        finally:
            self._takes_matrices = False

    def _kernel(self) -> Kernel:
        if self._takes_matrices:
            return Precomputed()
        if isinstance(self.kernel, str) and self.kernel in COEF0:
            COEF0[self.kernel].check("coef0", self.coef0)
        return super()._kernel()

    def _validate_new(self, X: Any) -> Any:
        if self._trained_on is not None:
            X = matrix_values(self._function, X, self._trained_on)
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
        self._centre = origin_of(self.kernel_, points, is_free=self._sums_to_zero)
        try:
            gram = self._gram(points, dtype)
        except InputError:
            if dtype == "float64" or self.precision != "auto" or settings().dtype == "float32":
                raise
            dtype, why = "float64", "float64 kernel values: those of float32 overflow"
            gram = self._gram(points, dtype)
        cache, plan = self._plan_memory(points, dtype, why, variables, problems)
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
        self._peak = float(np.abs(gram.diag()).max(initial=0.0))
        self._tau = rounding_of(self.kernel_, points, self._dtype)
        self._exact = partial(exact_values, self.kernel_, points)
        return gram, plan

    def _gram(self, points: Any, dtype: str) -> Gram:
        if self._grams is not None and dtype in self._grams:
            return self._grams[dtype]
        with config(dtype=dtype):
            gram = Gram(self.kernel_, moved(points, self._centre), cache=0)
        if self._grams is not None:
            self._grams[dtype] = gram
        return gram

    def _precision(self, points: Any, n: int) -> tuple[str, str]:
        if self.precision != "auto":
            return self.precision, f"{self.precision} kernel values were asked for"
        if self.tol < 1e-5:
            return "float64", f"float64 kernel values: tol={self.tol} is below 1e-5"
        if float(getattr(self, "C", 1.0)) == np.inf:
            return "float64", "float64 kernel values: coefficients of a hard margin may be of any size"
        if settings().dtype == "float32":
            return "float32", "float32 kernel values are configured"
        if n <= _SMALL:
            return "float64", f"float64 kernel values: they cost little for {_SMALL} points or fewer"
        if self._pairwise or not self.kernel_.domain.is_vectors:
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
            limit = int(min(limit, self.cache_size * 2**20))
        least = min(_FEWEST, n)
        rows = max(least, min(n, limit // row))
        largest, blocks = self._working_sets(n, item, rows, variables, problems, budget // 4)
        self._working_set = largest
        width = points.shape[1] if len(getattr(points, "shape", ())) == 2 else 1
        numbers = points.nnz if sparse.issparse(points) else n * width
        # the Gram's centred points, those of a batch of rows, X sorted by class
        each = item + (8 if sparse.issparse(points) else getattr(points, "itemsize", 8))
        own = numbers * (each if sparse.issparse(points) else item)
        prepared = own + min(n, LARGEST_BLOCK) * width * each + 8 * numbers * (problems > 1)
        prepared += 0 if self._centre is None else 8 * numbers
        memory = max(rows * row + blocks + 8 * _VECTORS * variables, self._afterwards(n)) + prepared
        name = "decomposition" if problems == 1 else f"decomposition of {problems} problems that share rows"
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

    def _working_sets(
        self, n: int, item: int, rows: int, variables: int, problems: int, room: int
    ) -> tuple[int, int]:
        """The largest working set whose matrices take at most ``room`` bytes, and what they take."""
        if problems > 1 or variables <= WHOLE:  # one matrix for each thread
            sizes, copies = [min(rows, n)], min(problems, thread_count())
        else:
            # the last one and the next; variables in two groups are sorted, into a third
            sizes, copies = [variables], 3 if hasattr(self, "nu") else 2
            while self.shrinking and sizes[-1] > WHOLE:  # a shrunken problem has its own
                sizes.append(int(SHRUNK * sizes[-1]))
        largest = LARGEST_BLOCK

        def taken() -> int:
            return copies * item * sum(min(size, largest) ** 2 for size in sizes)

        while largest > _LEAST and taken() > room:
            largest = max(_LEAST, int(0.9 * largest))
        return largest, taken()

    def _afterwards(self, n: int) -> int:
        """Bytes of what follows the solver, when its own are free again."""
        return 0

    def _options(self) -> dict[str, Any]:
        """For the solver, once in a fit."""
        return {
            "largest": self._working_set,
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "cache": self._cache_bytes,
            "shrinking": bool(self.shrinking),
            "rounding": self._tau,
            "exact": vars(self).pop("_exact", None),  # it holds the points, which a model does not keep
        }

    def _shown(self) -> Any:
        return True if self.progress is None and self.verbose else self.progress

    def _finite_penalty(self, weight: np.ndarray) -> float:
        """C for one unit of weight; the first that a hard margin is tried with."""
        C = 1.0 if float(self.C) == np.inf else float(self.C)
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

    # --- what was found -------------------------------------------------------------------------------------

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
        if self._centre is not None:
            # Σ γᵢ k(xᵢ, x) would cancel: f is k(w, x) - c₀ + b, w its one point (one for each function)
            W = self._primal()
            W = W.toarray() if sparse.issparse(W) else W
            one = np.ones(1) if coef.ndim == 1 else np.eye(len(W))
            constant = affine_at(self.kernel_, W, self._centre)[1]
            self.expansion_ = Expansion(self.kernel_, W, one, intercept - constant)
            return
        anchors = chosen if len(chosen) else np.zeros(1, np.intp)
        self.expansion_ = Expansion(self.kernel_, data.take(points, anchors), coef[anchors], intercept)

    def _offsets(self, W: Any) -> np.ndarray:  # (functions,)
        """c ⟨w, m⟩, what b is less for points as they came; ``W`` is that of the function that is kept."""
        if self._centre is None:
            return np.zeros(1)
        return affine_at(self.kernel_, W.toarray() if sparse.issparse(W) else W, self._centre)[0]

    def _read_one(self, points: Any, original: np.ndarray, machine: Machine) -> None:
        """Attributes from the machine of a single problem, for regression and one class."""
        chosen = np.flatnonzero(machine.coef)
        self._set_support(points, chosen, original, machine.coef[None, chosen])
        self.n_support_ = np.array([len(chosen)], np.int32)
        self.intercept_ = machine.intercept - self._offsets(None if self._centre is None else self._primal())
        self._set_expansion(points, chosen, machine.coef, self.intercept_[0])
        self.n_iter_ = machine.steps

    @property
    def coef_(self) -> Any:
        """Weights of the features, for linear kernels only: f(x) = coef_ x + intercept_."""
        kernel = vars(self).get("kernel_", self.kernel)
        if not (isinstance(kernel, Linear) or (isinstance(kernel, str) and kernel == "linear")):
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
        return safe_sparse_dot(self.dual_coef_, self._moved_vectors())

    def _moved_vectors(self) -> Any:
        """The support vectors, seen from the origin that the fit had: where Σγ = 0, w is the same."""
        return moved(self.support_vectors_, self._centre)

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
    if weight.size and np.nanmax(weight) > 1e100:
        raise InputError(
            f"Sample weights must be at most 1e100, got {np.nanmax(weight):.3g}: divide them by their mean, "
            "and C times their mean takes the place of C"
        )
    return weight if weight.ndim else float(weight)
