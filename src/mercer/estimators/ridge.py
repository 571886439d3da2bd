r"""Kernel ridge regression as a scikit-learn regressor."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mercer.data import points as data
from mercer.data.scalars import is_number
from mercer.data.types import Points, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.definite import INDEFINITE, DefiniteMixin
from mercer.estimators.shared.device import device_choice, matrix_for, on_device
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.landmarks import LANDMARKS, LandmarkMixin, LandmarksLike, Restricted, facts_of
from mercer.estimators.shared.origin import moved, origin_of, warn_if_lost
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.estimators.shared.ridge_plans import NEEDS, WORDS, block_plan, dense_plan, lazy_plan
from mercer.estimators.shared.ridge_solution import CLIPPED, NO_NOISE, WIDE, RidgeSolution
from mercer.estimators.shared.sketches import sketch_of_linear, sketched
from mercer.estimators.shared.sparse_plan import POINTS_WORTH_A_LOOK, sparse_plan
from mercer.estimators.shared.uncertain import UncertainRegressorMixin
from mercer.expansion import Expansion
from mercer.features.explicit import explicit_features, explicit_size
from mercer.gram import Gram
from mercer.gram.device import is_used
from mercer.kernels.domain import Domain
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import choice, fixed, nonnegative, positive, whole
from mercer.kernels.vectors.dotproduct import Linear
from mercer.report import Journal, Method, Plan
from mercer.runtime.config import config, memory_budget, settings, thread_count
from mercer.runtime.threads import single_threaded_blas
from mercer.solvers.landmarks.ridge import restricted_ridge
from mercer.solvers.linear.iterated import iterated_ridge
from mercer.solvers.linear.near_inverse import near_inverse
from mercer.solvers.linear.primal import primal_ridge
from mercer.solvers.linear.ridge import leave_one_out, minimum_norm, ridge
from mercer.solvers.linear.single import SMALLEST, single_inverse
from mercer.solvers.linear.sketch_project import blocks_per_pass, sketched_ridge


@learner
class KernelRidge(
    UncertainRegressorMixin,
    DefiniteMixin,
    LandmarkMixin,
    KernelMixin,
    KernelParameters,
    IterativeMixin,
    BaseEstimator,
):
    r"""Regression by minimising Σᵢ wᵢ (yᵢ - f(xᵢ) - b)² + α ‖f‖².

    The solution is f = Σᵢ aᵢ k(xᵢ, ·), a = (K + αI)⁻¹ (y - b); without iterating where K fits. With the
    linear kernel it is scikit-learn's ``Ridge``; with ``fit_intercept=False`` its ``KernelRidge``.
    The lecture's convention (1/n) Σᵢ (yᵢ - f(xᵢ))² + λ ‖f‖² is ``lam=λ``, that is α = nλ.

    Parameters
    ----------
    alpha : α, or one per target; 0 asks for least squares of minimum norm (see KernelLeastSquares)
    kernel : a Kernel such as ``Gaussian(sigma="median")``, a function of two points, or one of "rbf",
        "linear", "poly", "sigmoid", "laplacian", "cosine", "chi2", "min", "precomputed"
    gamma, degree, coef0 : numbers of a kernel given by its name, as in scikit-learn
    lam : λ, or one per target, instead of alpha, which then counts for nothing: α = λ Σᵢ wᵢ
    fit_intercept : whether there is a b, which is not penalised
    solver : "cholesky"; "mixed", a factor in float32 that conjugate gradients in float64 refine to ``tol``,
        in half the time and memory; "primal", on the features of a linear or polynomial kernel; "cg",
        conjugate gradients, which never stores K, with a factor of K of low rank that keeps the iterations
        few; "sketch", block sketch-and-project, which never has more than a hundredth of the points in work:
        some digits where "cg" takes too long; "sparse", conjugate gradients on the values of K that are not
        zero, for kernels that are zero beyond some distance (Wendland, B-splines, products with them); "auto"
        takes the primal where there are so many fewer features than points that it is less work, "sparse"
        where there are so few values, "mixed" for many points where α allows it or K fits the memory budget
        in float32 only, and "cg" where it does not fit at all
    rank : for "cg", the rank of that factor, which takes n · rank numbers; "auto" is 20√n, 5000 at most, or
        what half of the memory budget has room for; 0 for no factor
    landmarks : None, a number, "auto", points or their positions: f is then an expansion on these few points,
        learned from all of X; see `mercer.estimators.shared.landmarks`
    indefinite : "refuse" a K with negative eigenvalues, or "clip" them: take them as zero
    tol : for "cg", "mixed", "sparse" and "sketch", the residual relative to y; for landmarks its root is
        the gap that is allowed, relative to the objective
    max_iter : for these, iterations at most; of "sketch" they are passes over all points
    max_time, progress, checkpoint, resume : for the iterations of these, control over a long run; see
        ``mercer.estimators.shared.iterative``

    Attributes
    ----------
    expansion_ : f, an Expansion on the training points (of a linear kernel solved in the primal, on the
        vector of weights); for several targets one column of ``coef`` each
    dual_coef_, intercept_ : a, a row per training point with a weight, as in scikit-learn's KernelRidge; b
    coef_ : (d,) or (targets, d), of the linear kernel only: w of f(x) = ⟨w, x⟩ + b, as in ``Ridge``
    loo_residuals_ : yᵢ - f(xᵢ) for the f learned without xᵢ and the same α, for every i; computed when
        asked for
    noise_variance_ : σ² of the Gaussian process whose mean f is, for each target; computed when asked for
    report_ : how the fit went
    kernel_, n_features_in_, feature_names_in_ : as everywhere

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, KernelRidge
    >>> X = np.linspace(0, 3, 7)[:, None]
    >>> model = KernelRidge(alpha=1e-6, kernel=Gaussian(sigma=1.0)).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.25]]).round(3), round(float(np.sin(1.25)), 3)
    (array([0.949]), 0.949)
    >>> model.loo_residuals_.round(2)  # beyond the ends it has to guess
    array([-0.1 ,  0.03, -0.01,  0.01, -0.01,  0.03, -0.1 ])
    """

    alpha: Any = nonnegative(1.0, per_column=1.0)
    _: KW_ONLY
    kernel: KernelLike = "rbf"
    coef0: float = 1.0
    lam: Any = nonnegative(None, per_column=1.0, optional=True)
    fit_intercept: bool = flag(True)
    solver: str = choice("auto", ("auto", "cholesky", "mixed", "primal", "cg", "sparse", "sketch"))
    rank: Any = fixed(
        "auto",
        "'auto' or a whole number of at least 0",
        lambda v: v == "auto" if isinstance(v, str) else is_number(v) and v >= 0 and v == int(v),
        "one of them",
    )
    landmarks: LandmarksLike = LANDMARKS
    indefinite: str = INDEFINITE
    tol: float = positive(1e-10)
    max_iter: int = whole(1000)

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Fit on the points X, their targets y, (n,) or (n, targets), and their weights."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight, multi_output=True, y_numeric=True)
        Y = y.astype(np.float64).reshape(len(y), -1)
        alphas = self._alphas(Y.shape[1], weight)
        plan = self._plan(X, Y.shape[1])
        plan.require_memory(
            "lower rank, use fewer points"
            if plan.rank
            else "use fewer points"
            if plan.iterative
            else "use solver='cg', which never stores K, use fewer points"
        )
        if plan.method is Method.LANDMARKS:
            return self._fit_landmarks(plan, X, Y, alphas, weight, y.ndim == 1, journal)
        present = np.flatnonzero(weight)  # a point of weight zero is as if it were not there
        points, Y, weight = data.take(X, present), Y[present], weight[present]
        self._require_definite(points, self.fit_intercept)
        origin = origin_of(self.kernel_, points, self.fit_intercept)
        points = moved(points, origin)
        solution = self._solve(plan, points, Y, alphas, weight, journal)
        self._keep(solution.anchors, solution.coef, solution.intercept, y.ndim == 1, origin)
        if solution.dual is not None:
            self._dual = solution.dual if y.ndim == 2 else solution.dual[:, 0]
        self._left_out, self._sketch = {"errors": solution.errors}, solution.sketch
        if solution.none:
            self._left_out["none"] = solution.none
        elif not solution.sketch:  # Errors left out are computed from these when somebody asks.
            self._left_out |= {"alphas": alphas, "weight": weight, "fit_intercept": self.fit_intercept}
            self._left_out |= {} if origin is None else {"points": points, "origin": origin}
        self.report_ = journal.report(plan, objective=float(solution.objective.sum()), **solution.facts)
        self.n_iter_ = max(1, self.report_.iterations)
        return self

    @property
    def loo_residuals_(self) -> np.ndarray:  # (n,) or (n, targets)
        """yᵢ - f(xᵢ) for the f learned without xᵢ; of the points with a weight, in their order.

        A point of weight w > 1 counts as w observations, of which one is left out. NaN where f goes through
        every point, whatever it is.
        """
        check_is_fitted(self)
        if not self._left_out:
            raise AttributeError(
                "loo_residuals_ is not there with landmarks, which keep none of the other points: "
                "KernelRidgeCV(landmarks=…) computes the errors left out when it is fitted"
            )
        if self._left_out["errors"] is None:
            known, coef = self._left_out, np.reshape(self.dual_coef_, (len(self._left_out["weight"]), -1))
            dense_plan("leave-one-out errors", len(coef), 1.0, ()).require_memory("use fewer points")
            with single_threaded_blas():
                gram = Gram(self.kernel_, known.get("points", self.expansion_.anchors), cache=0)
                rest = known["alphas"], known["weight"], known["fit_intercept"]
                self._left_out = known | {"errors": leave_one_out(gram, coef, *rest)}
        errors = self._left_out["errors"]
        return errors[:, 0] if self.expansion_.coef.ndim == 1 else errors

    # --- the steps of fit --------------------------------------------------------------------------------

    def _fit_landmarks(
        self,
        plan: Plan,
        X: Points,
        Y: np.ndarray,
        alphas: np.ndarray,
        weight: np.ndarray,
        is_vector: bool,
        journal: Journal,
    ) -> Self:
        """On landmarks, from all of X: f restricted to them."""
        if len(np.unique(alphas)) > 1 or not alphas[0] > 0:
            remedy = "fit the targets one by one" if alphas.all() else "take KernelLeastSquares for none"
            raise InputError(
                f"with landmarks alpha must be one positive number, got {self.alpha!r}: {remedy}"
            )
        (Z, rows), alpha = self._landmarks_and_rows(X, weight), float(alphas[0])
        self._require_definite(Z, self.fit_intercept)
        warn_if_lost(journal, self.kernel_, Z, type(self).__name__)
        problem = Restricted(self.kernel_, X, Z, self.fit_intercept, rows)
        mean = weight @ Y / weight.sum() if self.fit_intercept else np.zeros(Y.shape[1])
        Y -= mean
        with self._control("conjugate gradients", self.max_iter, X, Y, weight, self.kernel_) as control:
            problem.features.follow = control.show
            result = restricted_ridge(
                problem.features,
                Y,
                alpha,
                weight,
                tol=math.sqrt(self.tol),
                max_iter=self.max_iter,
                control=control,
                accuracy=problem.accuracy,
                origin=mean,
            )
        self._warn_if_stopped(journal, result.stopped, result.iterations, f"gap {result.gap:.2g}")
        self._keep(problem.points, result.coef, result.intercept, is_vector, None)
        self._left_out, every = {}, np.full(Y.shape[1], alpha)
        self._sketch = sketched(problem, result, Y, every, weight, result.normal)
        facts = facts_of(result, bound=problem.bound(result, 2 * alpha))
        self.report_ = journal.report(plan, objective=result.objective, time=control.total_seconds, **facts)
        self.n_iter_ = max(1, result.iterations)
        return self

    def _alphas(self, targets: int, weight: np.ndarray) -> np.ndarray:  # (targets,)
        """α of each target."""
        given = np.asarray(self.alpha if self.lam is None else self.lam, dtype=np.float64)
        name = "alpha" if self.lam is None else "lam"
        if given.size not in (1, targets):
            raise InputError(
                f"{name} must be a number or one per target ({targets}), got {given.size}: pass one of the "
                "two"
            )
        return np.broadcast_to(given.ravel(), targets) * (1.0 if self.lam is None else weight.sum())

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        return self._with_landmarks(X, self._exact_plan(X, n_outputs), 15, n_outputs)

    def _exact_plan(self, X: Points, n_outputs: int) -> Plan:
        n = data.n_points(X)
        given = np.asarray(self.alpha if self.lam is None else self.lam)
        if not np.all(given > 0):
            return dense_plan(
                Method.EIGENVALUES, n, 10.0, ("without a penalty K may be singular",), 2.2, n_outputs
            )
        if self._must_clip(X):
            if self.solver in ("cg", "mixed", "sparse", "sketch"):
                raise InputError(
                    f"indefinite='clip' takes the eigenvalues of K, got solver={self.solver!r}, which does "
                    "not compute them: pass solver='auto'"
                )
            clipped = ("K may have negative eigenvalues, which are to be clipped",)
            return dense_plan(Method.EIGENVALUES, n, 10.0, clipped, 2.2, n_outputs)
        penalties = len(np.unique(given))
        plans = self._plans(X, n, n_outputs, penalties)
        if self.solver != "auto":
            if self.solver not in plans:
                raise InputError(f"{NEEDS[self.solver]}, got {self.kernel_!r}: pass solver='auto'")
            return plans[self.solver]
        budget, primal = memory_budget(), plans.get("primal")
        if primal is not None and primal.seconds < plans["cholesky"].seconds and primal.memory <= budget:
            return primal
        thin = plans.get("sparse")
        if thin is not None and thin.seconds < plans["cholesky"].seconds and thin.memory <= budget:
            return thin
        if is_used():
            return device_choice(plans)
        if plans["cholesky"].memory > budget:
            how = "mixed" if plans["mixed"].memory <= budget else "cg"
            why = f"K, {n:,} × {n:,}, does not fit the memory budget"
            return replace(plans[how], why=(why + " in float64" * (how == "mixed"), *plans[how].why))
        if n >= _MIXED_FROM and penalties == 1 and self._is_gentle(X, given) and self._is_proved(X):
            return replace(plans["mixed"], why=("there are many points", *plans["mixed"].why))
        return plans["cholesky"]

    def _is_gentle(self, X: Points, given: np.ndarray) -> bool:
        """Whether a factor in float32 does for α, and K is quick to compute in float64."""
        if settings().dtype != "float64" or self.kernel_.domain is Domain.OBJECTS:
            return False
        trace = float(Gram(self.kernel_, X, cache=0).diag().sum())
        alpha = float(given.min()) * (1.0 if self.lam is None else data.n_points(X))
        return alpha >= SMALLEST * trace

    def _plans(self, X: Points, n: int, n_outputs: int, penalties: int) -> dict[str, Plan]:
        """What each solver would take."""
        product = 1.0 * n * n * (20 + 2 * n_outputs)
        width = data.n_columns(X)
        vectors = 8 * n * (n_outputs + 1) * 10
        tiles = 2**21 * min(thread_count(), -(-n // _ROWS))
        plans = {
            "cholesky": dense_plan(
                Method.CHOLESKY, n, 2 / 3 * penalties, ("K fits the memory budget",), 1.0, n_outputs
            ),
            "cg": lazy_plan(n, vectors + tiles, product, self.rank, penalties, width or 20),
            "sketch": block_plan(n, vectors + tiles, product, penalties, n_outputs),
            "mixed": Plan(
                WORDS[Method.MIXED],
                n,
                4 * n * n + 2 * vectors + tiles,
                float(n) ** 3 / 3 + 16 * product,  # a product in float64 counts twice
                ("a factor in float32 takes half the time and memory of one in float64",),
                iterative=True,
                method=Method.MIXED,
                dtype="float32",
            ),
        }
        if is_used():
            plans = on_device(plans, n, data.n_columns(X) or 20, penalties, self.rank)
        if self.kernel_.support is not None and (n >= POINTS_WORTH_A_LOOK or self.solver == "sparse"):
            plans["sparse"] = sparse_plan(self.kernel_, X, n_outputs)
        p = None if width is None else explicit_size(self.kernel_, width)
        if p is not None:
            memory = 8 * ((3 if self.kernel_ == Linear() else 4) * n * p + 4 * p * p + 8 * n * n_outputs)
            why = (f"the kernel has {p:,} features" + ", fewer than there are points" * (p < n),)
            plans["primal"] = Plan(
                WORDS[Method.PRIMAL], n, memory, 4.0 * n * p**2 + 9.0 * p**3, why, method=Method.PRIMAL
            )
        return plans

    def _solve(
        self, plan: Plan, X: Points, Y: np.ndarray, alphas: np.ndarray, weight: np.ndarray, journal: Journal
    ) -> RidgeSolution:
        if plan.method is Method.PRIMAL:
            solution = self._in_features(X, Y, alphas, weight)
            if solution is not None:
                if sparse.issparse(X) or self.kernel_ != Linear():  # Columns are multiplied as in K.
                    self._warn_if_lost(journal, X, alphas, weight)
                return solution
            journal.warn(
                f"the features of {self.kernel_!r} are too large for the primal: solved by the Cholesky "
                "factorisation of K; scale the data, for example with StandardScaler"
            )
            dense_plan(Method.CHOLESKY, len(Y), 2 / 3, (), 1.0, Y.shape[1]).require_memory("scale the data")
        self._warn_if_lost(journal, X, alphas, weight)
        gram = matrix_for(plan, self.kernel_, X)
        if plan.method in (Method.LAZY, Method.MIXED, Method.SPARSE, Method.BLOCKS):
            return self._iterate(plan, gram, X, Y, alphas, weight, journal)
        if not alphas.all():
            if alphas.any():
                raise InputError(
                    f"alpha must be positive for all targets or zero for all, got {self.alpha!r}: "
                    "fit the others on their own with KernelLeastSquares"
                )
            result = minimum_norm(gram, Y, weight, self.fit_intercept)
        else:
            result = ridge(
                gram, Y, alphas, weight, self.fit_intercept, clip=plan.method is Method.EIGENVALUES
            )
        self._meet(result.clipped, X, journal)
        none = "" if plan.method is not Method.EIGENVALUES else NO_NOISE if not alphas.all() else CLIPPED
        rest = result.intercept, result.objective, result.errors
        return RidgeSolution(X, result.coef, *rest, none=none)

    def _warn_if_lost(self, journal: Journal, X: Points, alphas: np.ndarray, weight: np.ndarray) -> None:
        """Warn of lost columns that the penalty would let matter."""
        least = 1e-3 * float(alphas.min()) / float(weight.sum())
        warn_if_lost(journal, self.kernel_, X, type(self).__name__, least)

    def _in_features(
        self, X: Points, Y: np.ndarray, alphas: np.ndarray, weight: np.ndarray
    ) -> RidgeSolution | None:
        """In the primal; None where the expansion on the points would not give the same function."""
        Phi = explicit_features(self.kernel_, X)
        result = primal_ridge(Phi, Y, alphas, weight, self.fit_intercept)
        rest = result.intercept, result.objective, result.errors, result.dual
        if self.kernel_ == Linear():  # v is a point itself: f = k(v, ·)
            anchors = sparse.csr_array(result.weights.T) if sparse.issparse(X) else result.weights.T
            sketch = sketch_of_linear(X, Y, result, alphas, weight, self.fit_intercept)
            none = "" if sketch else WIDE
            return RidgeSolution(anchors, np.eye(Y.shape[1]), *rest, sketch=sketch, none=none)
        some = np.unique(np.linspace(0, len(Y) - 1, 200).astype(int))
        expansion = Expansion(self.kernel_, X, result.coef, result.intercept)
        difference = expansion(data.take(X, some)) - Phi[some] @ result.weights - result.intercept
        size = np.sqrt(np.mean((Y - Y.mean(axis=0)) ** 2)) + np.finfo(float).tiny
        if not np.abs(difference).max() <= 1e-8 * size:
            return None
        return RidgeSolution(X, result.coef, *rest)

    def _iterate(
        self,
        plan: Plan,
        gram: Gram,
        X: Points,
        Y: np.ndarray,
        alphas: np.ndarray,
        weight: np.ndarray,
        journal: Journal,
    ) -> RidgeSolution:
        """Solve by products with K, of which a factor of it makes few enough, or by blocks of it."""
        near, rough, K = None, None, gram
        gains = plan.method is Method.LAZY and gram.dtype == np.float64 and self.kernel_.domain.is_vectors
        if gains or plan.method is Method.MIXED:
            with config(dtype="float32"):
                single = matrix_for(plan, self.kernel_, X)
            if gains:
                rough = single
            else:
                near = single_inverse(single, weight, float(alphas.min()))
        steps = self.max_iter * (blocks_per_pass(len(Y)) if plan.method is Method.BLOCKS else 1)
        with self._control(WORDS[plan.method], steps, X, Y, weight, self.kernel_) as control:
            options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "control": control}
            if plan.method is Method.SPARSE:
                K = gram.sparse()
                near = near_inverse(K, weight, float(alphas.min()))
            if plan.method is Method.BLOCKS:
                result = sketched_ridge(gram, Y, alphas, weight, self.fit_intercept, **options)
            else:
                options |= {"rank": plan.rank, "precondition": near, "rough": rough}
                result = iterated_ridge(K, Y, alphas, weight, self.fit_intercept, **options)
        assert result.gap is not None
        how_far = "gap unknown" if np.isnan(result.gap) else f"gap {result.gap:.2g}"
        self._warn_if_stopped(journal, result.stopped, result.iterations, how_far)
        facts = {name: getattr(result, name) for name in ("stopped", "iterations", "gap")}
        facts["time"] = control.total_seconds
        return RidgeSolution(X, result.coef, result.intercept, result.objective, facts=facts)


_ROWS = 496  # so many rows of K, at most, a thread has at a time in a product
_MIXED_FROM = 8000  # points from which a factor in float32 and its refinement take less than one in float64
