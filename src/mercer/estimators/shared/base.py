r"""What estimators with a kernel share: parameters → kernel, data → Gram, tags for scikit-learn.

What a point is, the kernel says (``Kernel.domain``). Vectors go through scikit-learn's ``validate_data``;
lists of objects and tables with columns of several kinds go to the kernel as they are; with
``kernel="precomputed"`` the table holds kernel values, and the points are their indices.

    @learner
    class KernelThing(KernelMixin, KernelParameters, ClassifierMixin, BaseEstimator):
        alpha: float = positive(1.0)

        def fit(self, X, y):
            X, y = self._validate_fit(X, y)    # checks the declared parameters too; sets kernel_
            result = solver(Gram(self.kernel_, X), y, …)
            self.expansion_ = Expansion(self.kernel_, X, result.coef)
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from inspect import getattr_static, isfunction
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from mercer.cluster import DaskRows
from mercer.cluster.lazy import lazily
from mercer.data import points as data
from mercer.data.labels import require_labels, require_targets
from mercer.data.refusals import refuse_too_large
from mercer.data.sources import Opened
from mercer.data.sources.door import is_in_file, opened, takes_files
from mercer.data.sparse import canonical, require_indices
from mercer.data.types import Points, Targets, Weights
from mercer.errors import InputError, warn_user
from mercer.gram.sides import check_domain
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.names import as_kernel
from mercer.kernels.objects import Precomputed, asymmetry
from mercer.kernels.parameters import Parameter
from mercer.report import Journal, Plan, TraceError, note
from mercer.runtime.threads import by_our_threads

#: methods of estimators that do work with BLAS; values of f are products with a Gram, which sees to it itself
_WORK = {"fit", "partial_fit", "fit_transform", "fit_predict", "path", "transform", "inverse_transform"}
#: methods of which a Dask collection stays lazy
_LAZY = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform")
#: methods that take points with their targets, which may be columns of one file
_WITH_TARGETS = ("fit", "partial_fit", "fit_transform", "path", "plan", "score")


#: the numbers of a table below which scikit-learn's checks take longer than all the rest
_FEW_NUMBERS = 2**13
#: and those from which on our threads look whether they are finite
_MANY_NUMBERS = 2**21
_REALS = (np.dtype(np.float64), np.dtype(np.float32))


class KernelMixin:
    """For estimators with the parameters kernel, gamma, degree and coef0; see the module."""

    #: what is checked when fitting starts, parameter by parameter; the kernel checks its own
    _declared: ClassVar[dict[str, Parameter]] = {}

    kernel: Any
    gamma: float | str
    degree: Any
    coef0: Any
    #: the kernel with every parameter a number, of the estimator's own
    kernel_: Kernel
    #: the names of the columns, where the points had them
    feature_names_in_: np.ndarray
    #: whether the data are kernel values, as of the fit
    _pairwise: bool

    def __init_subclass__(cls, **options: Any) -> None:
        """What learns or transforms goes by our threads, not by those of BLAS; points may be in a file."""
        super().__init_subclass__(**options)
        for name in _WORK & vars(cls).keys():
            if isfunction(method := vars(cls)[name]):
                setattr(cls, name, by_our_threads(method))
        for name in _LAZY:
            if isfunction(method := getattr_static(cls, name, None)):
                setattr(cls, name, lazily(method))
        for name in _WITH_TARGETS:  # some are inherited from others: score is scikit-learn's
            if isfunction(method := getattr_static(cls, name, None)):
                setattr(cls, name, takes_files(method))

    # --- data ------------------------------------------------------------------------------------------

    def _validate_fit(
        self,
        X: Any,
        y: Targets = "no_validation",
        sample_weight: Weights = None,
        kernel: Kernel | None = None,
        **y_options: Any,
    ) -> Any:
        """The points (and targets) to fit on, checked; ``kernel_`` is set, from ``kernel`` if that is given.

        ``y_options`` go to scikit-learn's ``validate_data`` (multi_output, y_numeric).
        """
        self._validate_params()
        kernel = self._kernel() if kernel is None else kernel
        self._pairwise = is_pairwise(kernel)
        X, y = self._validate(X, y, kernel.domain, reset=True, **y_options)
        if self._pairwise:
            if X.shape[0] != X.shape[1]:
                raise InputError(
                    f"kernel='precomputed' is fitted on a square matrix, got shape {X.shape}: pass the "
                    "kernel values of the training points with each other, and to predict those of the new "
                    "points (rows) with the training points (columns)"
                )
            kernel, X = with_matrix(kernel, _symmetric(X)), np.arange(X.shape[0])
        # The kernel is copied, because set_params(kernel__sigma=…) must not reach a fitted model.
        weight = None if sample_weight is None else check_weights(sample_weight, X)
        self.kernel_ = kernel.__sklearn_clone__().resolve(X, weight)
        return X if _is_absent(y) else (X, y)

    def _validate_params(self) -> None:
        """Refuse parameters that make no sense, before there are data; the name is scikit-learn's."""
        for name, parameter in self._declared.items():
            parameter.check(name, getattr(self, name))
        self._kernel()

    def _validate_weighted(self, X: Points, y: Targets, sample_weight: Weights, **y_options: Any) -> Any:
        """Points, targets and weights (ones when None) to fit on, checked; ``kernel_`` is set."""
        X, y = self._validate_fit(X, y, sample_weight, **y_options)
        return X, y, check_weights(sample_weight, X)

    def _validate_new(self, X: Points) -> Any:
        """Points to apply a fitted estimator to, checked against those it was fitted on."""
        if self._finds_nothing_to_check(X):
            return X
        check_is_fitted(self)
        if is_in_file(X) and self._reads_files():
            X = opened(X, columns=getattr(self, "feature_names_in_", None))[0]
        domain = self.kernel_.domain
        X = self._validate(X, "no_validation", domain, reset=False)[0]
        # X is taken for many points, never for a single one.
        return check_domain(self.kernel_, X, "X") if domain is Domain.ANY else X

    def _validate_for_values(self, X: Points) -> Any:
        """The same, where only values of ``expansion_`` are wanted: a device sees what is not finite."""
        f = getattr(self, "expansion_", None)
        if isinstance(X, np.ndarray) and f is not None and f.streams(X) and self._is_as_in_fit(X):
            return X
        return self._validate_new(X)

    def _finds_nothing_to_check(self, X: Points) -> bool:
        """Whether these are a few rows of finite numbers, as many in each as the fit had, without names.

        scikit-learn's checks would pass them as they are, and take longer than the prediction itself.
        """
        return (
            type(X) is np.ndarray
            and 0 < X.size <= _FEW_NUMBERS
            and self._is_as_in_fit(X)
            and bool(np.isfinite(X).all())
        )

    def _is_as_in_fit(self, X: np.ndarray) -> bool:
        """Whether it is a plain array of vectors without names, with as many columns as the fit had."""
        return (
            X.ndim == 2
            and X.dtype in _REALS
            and X.flags.c_contiguous
            and X.shape[1] == getattr(self, "n_features_in_", None)
            and not hasattr(self, "feature_names_in_")
            and not self._pairwise
            and self.kernel_.domain is Domain.VECTORS
        )

    def _validate(
        self, X: Points, y: Targets, domain: Domain, reset: bool, **y_options: Any
    ) -> tuple[Any, Any]:
        with_y = not _is_absent(y)
        if with_y and y is not None:
            (require_labels if is_classifier(self) else require_targets)(y)
        if isinstance(X, Opened):
            return self._from_file(X, y, reset, **y_options)
        if sparse.issparse(X):
            require_indices(X)
        if self._pairwise or domain.is_vectors:
            data.require_numbers(X)
            accept = False if self._pairwise else "csr"
            options = {"accept_sparse": accept, "dtype": [np.float64, np.float32], "reset": reset}
            try:
                with config_context(assume_finite=True) if _is_seen_finite(X, y) else nullcontext():
                    if not with_y:
                        X = validate_data(self, X, **options)
                    else:
                        X, y = validate_data(self, X, y, **options, **y_options)
            except OverflowError:
                refuse_too_large("X or y")
            return canonical(X) if sparse.issparse(X) else X, y
        if with_y:
            y = _check_y(y, **y_options)
        if len(getattr(X, "shape", ())) == 2:  # a table: only the names and the number of its columns
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif reset:
            vars(self).pop("n_features_in_", None)  # It is that of an earlier fit.
            vars(self).pop("feature_names_in_", None)
        if domain is Domain.OBJECTS:
            X = data.as_objects(X)
        if (reset or with_y) and isinstance(X, list | tuple):  # A model keeps objects, which may change.
            X = data.copied(X)
        if with_y:
            check_consistent_length(X, y)
        return X, y

    def _reads_files(self) -> bool:
        """Whether the points are rows of numbers, which may be in a file."""
        try:
            kernel = self._kernel()
        except InputError:  # ``fit`` will raise it.
            return False
        return kernel.domain.is_vectors and not is_pairwise(kernel)

    def _from_file(self, X: Opened, y: Targets, reset: bool, **y_options: Any) -> tuple[Any, Any]:
        """The points of a file, whose numbers were checked as they were read; names and targets are left."""
        if y is None:
            raise InputError(f"{type(self).__name__} needs targets: pass y, an array or the name of a column")
        if not _is_absent(y):
            y = _check_y(y, **y_options)
            check_consistent_length(X.points, y)
        if reset or X.names is None or not hasattr(self, "feature_names_in_"):
            validate_data(self, X.points, reset=reset, skip_check_array=True)
        if reset and X.names is not None:
            self.feature_names_in_ = np.array(X.names, dtype=object)
        elif X.names is not None and not hasattr(self, "feature_names_in_"):
            name = type(self).__name__  # in the words of scikit-learn
            warn_user(f"X has feature names, but {name} was fitted without feature names", UserWarning)
        is_exact = reset and getattr(self, "landmarks", None) is None
        return np.asarray(X.points) if is_exact and isinstance(X.points, DaskRows) else X.points, y

    # --- before fitting ----------------------------------------------------------------------------------

    def plan(self, X: Points, y: Targets | None = None) -> Plan:
        """What ``fit(X, y)`` would do: solver, memory, expected time, and why. Nothing is fitted.

        With landmarks it also says how much of k(x, x) they leave unexplained, by a few of the rows.
        """
        probe, journal = clone(self), Journal()
        X = probe._validate_fit(X)
        n_outputs = 1 if y is None else probe._count_outputs(np.asarray(y))
        plan = probe._measured(X, probe._plan(X, n_outputs))
        return journal.noted(replace(plan, trace_error=probe._trace_error(X, plan)))

    def _count_outputs(self, y: np.ndarray) -> int:
        """The number of functions that are learned from the targets y."""
        if is_classifier(self):
            classes = len(np.unique(y))
            return 1 if classes <= 2 else classes
        return 1 if y.ndim == 1 else y.shape[1]

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        """The plan for these validated points; ``fit`` follows it."""
        raise NotImplementedError

    def _measured(self, X: Points, plan: Plan) -> Plan:
        """The plan with the time of a few values of K, where nothing else tells how long they take."""
        return plan

    def _trace_error(self, X: Points, plan: Plan) -> TraceError | None:
        """What is left of K, where the plan is to approximate it."""
        return None

    # --- the kernel ------------------------------------------------------------------------------------

    def _kernel(self) -> Kernel:
        return as_kernel(self.kernel, self.gamma, self.degree, self.coef0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        try:
            kernel = self._kernel()
            domain = kernel.domain
        except InputError:  # ``fit`` will raise it.
            return tags
        tags.input_tags.pairwise = is_pairwise(kernel)
        tags.input_tags.sparse = domain.is_vectors
        tags.input_tags.positive_only = domain is Domain.NONNEGATIVE
        tags.input_tags.string = tags.input_tags.one_d_array = domain is Domain.OBJECTS
        return tags


def _is_absent(y: Targets) -> bool:
    return isinstance(y, str) and y == "no_validation"


def _is_seen_finite(X: Points, y: Targets) -> bool:
    """Whether our threads see that many numbers are finite, which takes scikit-learn's check longer."""
    if not (type(X) is np.ndarray and X.dtype in _REALS and X.size >= _MANY_NUMBERS):
        return False
    if not (y is None or _is_absent(y)):
        is_array = isinstance(y, np.ndarray) and y.dtype.kind in "fiubU"
        if not is_array or (y.dtype.kind == "f" and not data.has_finite_sum(y)):
            return False
    return data.has_finite_sum(X)


def check_weights(sample_weight: Weights, X: Points) -> np.ndarray:  # (n,)
    """The weights of the points, zero or more and not all of them zero; ones when None."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise InputError("Sample weights must contain at least one non-zero number: leave out sample_weight")
    return np.asarray(weight)


def is_pairwise(kernel: Kernel) -> bool:
    """Whether X holds kernel values; a Precomputed that has its matrix takes indices instead."""
    return any(isinstance(part, Precomputed) and part.matrix is None for part in kernel.parts())


def _symmetric(K: np.ndarray) -> np.ndarray:
    """(K + Kᵀ)/2 where rounding has made K a little asymmetric, and a word about it in the report.

    More than a little is refused by the kernel that takes the matrix.
    """
    if not np.isfinite(K).all():
        return K  # The kernel refuses it in its own words.
    difference, largest, (i, j) = asymmetry(K)
    if difference == 0:
        return K
    Precomputed(K)  # refuses what is clearly asymmetric
    note(
        f"K was made symmetric, (K + Kᵀ)/2: its entries differed by up to {difference:.2g}, "
        f"{difference / largest:.1g} of the largest, at ({i}, {j})"
    )
    return (K + K.T) / 2


def with_matrix(kernel: Kernel, K: np.ndarray) -> Kernel:
    """The kernel with K for every Precomputed() that waits for one."""
    kernel = kernel.__sklearn_clone__()
    for part in kernel.parts():
        if isinstance(part, Precomputed) and part.matrix is None:
            part.set_params(matrix=K)
    return kernel
