r"""The Parzen window classifier: the nearest mean in feature space."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_class_weight

from mercer.data import points as data
from mercer.data.types import ClassWeight, Points, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin, check_weights
from mercer.estimators.shared.definite import refutation
from mercer.estimators.shared.origin import expanded, moved, origin_of, warn_if_lost
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.estimators.shared.stream import StreamMixin
from mercer.gram import Gram
from mercer.kernels.parameters import fixed
from mercer.report import Journal, Plan

_ROUNDING = 1e-5  # a mean's squared norm below this part of the largest k(x, x) is zero, in float32 too


@learner
class ParzenClassifier(StreamMixin, KernelMixin, KernelParameters, BaseEstimator):
    r"""Classification by the nearest mean in feature space, without computing a feature.

    With Φ_c = Σ wᵢ Φ(xᵢ) / Σ wᵢ over the points of class c, x belongs to the class with the smallest
    ‖Φ(x) - Φ_c‖², that is the largest

        f_c(x) = ⟨Φ(x), Φ_c⟩ - ½‖Φ_c‖² + log(π_c ω_c)
               = Σ wᵢ k(x, xᵢ) / Σ wᵢ - ½ ΣΣ wᵢ wⱼ k(xᵢ, xⱼ) / (Σ wᵢ)² + log(π_c ω_c).

    For two classes f = f₊ - f₋, and f(x) > 0 says the second one. Without weights and priors

        f(x) = (1/n₊) Σ k(x, xᵢ) - (1/n₋) Σ k(x, zⱼ) + b,
        b = ½[(1/n₋²) ΣΣ k(zᵢ, zⱼ) - (1/n₊²) ΣΣ k(xᵢ, xⱼ)].

    There is nothing to tune but the kernel, nothing to iterate, and every point is stored. With the linear
    kernel this is scikit-learn's ``NearestCentroid``; with a kernel that is a density, such as the Gaussian,
    and ``fit_offset=False``, it compares Parzen's estimates of the densities.

    Parameters
    ----------
    kernel : a Kernel such as ``Gaussian(sigma="median")``, a function of two points, or one of "rbf",
        "linear", "poly", "sigmoid", "laplacian", "cosine", "chi2", "min", "precomputed"
    gamma, degree, coef0 : numbers of a kernel given by its name, as in scikit-learn
    fit_offset : whether -½‖Φ_c‖² is part of f_c; without it no kernel value is needed to fit
    priors : π, what is added to f_c is log π_c (for two classes log π₊ - log π₋ to b): the rule of Bayes for
        classes that are Gaussian in feature space, with the identity as covariance. None adds nothing;
        "empirical" takes each class's share of the weight; or (classes,) positive numbers that sum to 1, in
        the order of ``classes_``
    class_weight : ω, {label: positive number}, 1 for labels that are left out: what missing a class costs.
        What is added to f_c is log ω_c; the mean of a class does not change when all its weights do.
        "balanced" takes ω_c = 1/π_c, which undoes the priors

    Attributes
    ----------
    classes_ : (classes,) the labels
    kernel_ : the kernel with its parameters taken from the data
    expansion_ : f, an Expansion on all points of positive weight; for several classes a column f_c each
    squared_norms_ : (classes,) ‖Φ_c‖²; NaN with ``fit_offset=False``, and for a class of which no point came.
        One that is negative tells of a kernel that is not positive definite, with a warning; so do the
        eigenvalues of K at up to 200 of the points, where the kernel is not proved
    priors_ : (classes,) π; of ones when there are none
    report_ : how the fit went
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    >>> from mercer.estimators.parzen import ParzenClassifier
    >>> model = ParzenClassifier("linear").fit([[0.0], [2.0], [9.0]], ["low", "low", "high"])
    >>> model.expansion_.coef, model.expansion_.intercept  # f(x) = ½·0x + ½·2x - 9x + ½(9² - 1²)
    (array([ 0.5,  0.5, -1. ]), array(40.))
    >>> model.predict([[4.9], [5.1]])
    array(['low', 'high'], dtype='<U4')
    """

    _: KW_ONLY
    fit_offset: bool = flag(True)
    priors: Any = fixed(
        None,
        "None, 'empirical' or one number per class",
        lambda v: not isinstance(v, str) and np.ndim(v) == 1,
        "one of them",
        words=("empirical",),
        optional=True,
    )
    class_weight: ClassWeight = None

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Take the means of the points X with labels y."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight)
        codes = self._encode(y)
        total = np.bincount(codes, weight)
        if not total.all():
            label = self.classes_.tolist()[int(total.argmin())]
            raise InputError(
                f"every class needs a point of positive weight, got none for {label!r}: leave its points "
                "out, or give them weight"
            )
        plan = self._plan(X, self._count_outputs(self.classes_))
        plan.require_memory("use fewer points")
        self._start()
        self._add(X, codes, weight)
        self._finish(journal, X)
        self.report_ = journal.report(plan)
        return self

    def partial_fit(self, X: Points, y: Targets, classes: Any = None, sample_weight: Weights = None) -> Self:
        """Take more points into the means, which stay exact: only what is new is computed.

        The first call names all classes that will come; one of which no point has come is never predicted.
        The kernel's parameters, where they are taken from data, are those of the first batch.
        """
        journal = Journal()
        X, codes, first = self._validate_stream(X, y, classes)
        weight = check_weights(sample_weight, X)
        plan = self._plan(X, self._count_outputs(self.classes_))
        if first:
            self._start()
        self._add(X, codes, weight)
        self._finish(journal, X)
        self.report_ = journal.report(plan)
        return self

    def decision_function(self, X: Points) -> np.ndarray:  # (n,) or (n, classes)
        """f(x) for every row of X; for several classes one column each."""
        X = self._validate_new(X)
        values = self.expansion_(X)
        absent = self._total == 0
        if values.ndim == 2:
            values[:, absent] = -np.inf
        elif absent.any():
            values[:] = np.inf if absent[0] else -np.inf
        return values

    # --- the steps of fit --------------------------------------------------------------------------------

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        n = data.n_points(X)
        width = data.n_columns(X) or 1
        points = 8 * n * width if isinstance(X, np.ndarray) and X.ndim == 2 else 0
        # Memory is for the stored points, and for the largest class: its points, the Gram's copy and K @ w.
        memory = points + 8 * n * (n_outputs + 3) + (2 * points if self.fit_offset else 0)
        why = "the norms of the means take K @ w within each class" if self.fit_offset else "no K is needed"
        flops = 2.0 * n * n * width / max(n_outputs, 2) if self.fit_offset else 0.0
        return Plan("means of the classes", n, memory, flops, (why,))

    def _start(self) -> None:
        self._codes = np.empty(0, np.int64)
        self._weight = np.empty(0)
        self._total = np.zeros(len(self.classes_))  # Σ wᵢ of each class
        self._square = np.zeros(len(self.classes_))  # ‖Φ_c‖² = ΣΣ wᵢ wⱼ k(xᵢ, xⱼ) / (Σ wᵢ)²
        self._has_square = True  # whether that holds for all points so far
        self._largest = 0.0  # max |k(x, x)|
        self._anchors: Any = None

    def _add(self, X: Points, codes: np.ndarray, weight: np.ndarray) -> None:
        """More points: the running sums, and the points themselves."""
        used = np.flatnonzero(weight > 0)
        X, codes, weight = data.take(X, used), codes[used], weight[used]
        total = self._total + np.bincount(codes, weight, len(self.classes_))
        if self.fit_offset:
            if not self._has_square:  # fit_offset was False before: the pairs of the stored points as well
                for c in np.unique(self._codes):
                    w = self._weight[self._codes == c] / self._total[c]
                    self._square[c] = self._pairs(data.take(self._anchors, self._codes == c), w, c)
            for c in np.unique(codes):
                # Weights are shares of all so far: their squares may be too small, or large, for a number.
                self._square[c] *= (self._total[c] / total[c]) ** 2
                self._square[c] += self._new_pairs(X, codes == c, weight / total[c], c, total[c])
        self._has_square = bool(self.fit_offset)
        self._total = total
        self._anchors = X if self._anchors is None else data.stack(self._anchors, X)
        self._codes = np.concatenate([self._codes, codes])
        self._weight = np.concatenate([self._weight, weight])

    def _new_pairs(self, X: Points, mine: np.ndarray, w: np.ndarray, c: int, total: float) -> float:
        """Σ wᵢ wⱼ k(xᵢ, xⱼ) over the pairs of class c with at least one new point, w shares of the total."""
        points, w = data.take(X, mine), w[mine]
        before = self._codes == c
        pairs = self._pairs(points, w, c)
        if before.any():
            gram = Gram(self.kernel_, points, data.take(self._anchors, before), cache=0)
            pairs += 2 * self._finite(float(w @ (gram @ (self._weight[before] / total))), c)
        return pairs

    def _pairs(self, points: Points, w: np.ndarray, c: int) -> float:
        """Σ wᵢ wⱼ k(xᵢ, xⱼ) over all pairs of points of class c."""
        gram = Gram(self.kernel_, points, cache=0)
        self._largest = max(self._largest, float(np.abs(gram.diag()).max()))
        return self._finite(float(w @ (gram @ w)), c)

    def _finite(self, pairs: float, c: int) -> float:
        if not np.isfinite(pairs):
            raise InputError(
                f"k(x, x') is not finite for some points of class {self.classes_.tolist()[c]!r}: rescale the "
                "data, or choose a kernel that does not overflow on them"
            )
        return pairs

    def _finish(self, journal: Journal, X: Points) -> None:
        """The functions, from the sums; X are the points that came last."""
        seen = self._total > 0
        share = np.where(seen, self._total, 1.0)
        self.squared_norms_ = np.where(seen & self.fit_offset, self._square, np.nan)
        self._warn_if_indefinite(journal, X)
        self.priors_ = self._priors()
        offset = np.log(self.priors_ * self._costs(), where=seen, out=np.zeros(len(seen)))
        mean, norms = self._weight / share[self._codes], self.squared_norms_
        # The coefficients of f₊ - f₋ sum to zero: it may be computed from another origin.
        is_free = len(seen) == 2 and bool(seen.all()) and self.fit_offset
        origin = origin_of(self.kernel_, self._anchors, is_free)
        if origin is None:
            warn_if_lost(journal, self.kernel_, X, type(self).__name__)
        else:
            norms = self._norms_from(origin, mean)
        offset -= 0.5 * np.nan_to_num(norms)
        if len(seen) == 2:
            coef = np.where(self._codes == 1, mean, -mean)
            intercept = offset[1] - offset[0]
        else:
            coef = np.zeros((len(mean), len(seen)))
            coef[np.arange(len(mean)), self._codes] = mean
            intercept = offset
        self.expansion_ = expanded(self.kernel_, moved(self._anchors, origin), coef, intercept, origin)

    def _norms_from(self, origin: np.ndarray, mean: np.ndarray) -> np.ndarray:  # (classes,)
        """‖Φ_c‖² of the points seen from another origin, for k = c ⟨x, x'⟩ + c₀: those of the means."""
        points = moved(self._anchors, origin)
        means = [np.asarray((mean * (self._codes == c)) @ points).ravel() for c in range(len(self.classes_))]
        return Gram(self.kernel_, np.array(means), cache=0).diag().astype(np.float64)

    def _priors(self) -> np.ndarray:  # (classes,)
        count = len(self.classes_)
        if self.priors is None:
            return np.ones(count)
        if isinstance(self.priors, str):
            return self._total / self._total.sum()
        priors = np.asarray(self.priors, dtype=np.float64)
        if priors.shape != (count,) or not (priors > 0).all() or not np.isclose(priors.sum(), 1.0):
            raise InputError(
                f"priors must be {count} positive numbers that sum to 1, one per class, got {self.priors!r}: "
                "divide them by their sum, or pass None"
            )
        return priors

    def _costs(self) -> np.ndarray:  # (classes,)
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return np.divide(1.0, self.priors_, where=self.priors_ > 0, out=np.ones(len(self.priors_)))
        if not isinstance(self.class_weight, dict | None):
            raise InputError(
                f'class_weight must be a dict or "balanced", got {self.class_weight!r}: pass '
                "{label: weight, …} or None"
            )
        costs = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        if not ((costs > 0) & np.isfinite(costs)).all():
            raise InputError(
                f"class_weight must be positive for every class, got {self.class_weight!r}: leave out the "
                "points of a class that does not count"
            )
        return np.asarray(costs)

    def _warn_if_indefinite(self, journal: Journal, X: Points) -> None:
        """Distances to means are no squared distances then; densities without an offset need none."""
        norms = self.squared_norms_
        if (norms < -_ROUNDING * self._largest).any():
            c = int(np.nanargmin(norms))
            journal.warn(
                f"{self.kernel_!r} is not positive definite on these data: ‖Φ_c‖² = {norms[c]:.3g} for class "
                f"{self.classes_.tolist()[c]!r}; a nearest mean has no meaning then: choose another kernel "
                "or other parameters"
            )
        elif self.fit_offset and (lowest := refutation(self.kernel_, X, centred=True)) < 0:
            journal.warn(
                f"{self.kernel_!r} is not positive definite: on these points its matrix has the eigenvalue "
                f"{lowest:.3g}, so that what stands for the squared distance to a mean may be negative, and "
                "the nearest mean has no meaning; choose another kernel (mercer.certify tells), or pass "
                "fit_offset=False to compare sums of kernel values alone"
            )
