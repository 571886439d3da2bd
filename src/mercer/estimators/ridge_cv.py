r"""Kernel ridge with the penalty, and the kernel, chosen by exact leave-one-out errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from mercer.data import points as data
from mercer.data.types import Points, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.definite import DefiniteMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.landmarks import LANDMARKS, LandmarkMixin, LandmarksLike, Restricted
from mercer.estimators.shared.origin import moved, origin_of, warn_if_lost
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.estimators.shared.ridge_plans import dense_plan
from mercer.estimators.shared.sketches import Fitted, sketched
from mercer.estimators.shared.uncertain import UncertainRegressorMixin
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.kernels.parameters import choice, fixed
from mercer.report import Journal, Method, Plan
from mercer.solvers.control import Control
from mercer.solvers.landmarks.path import RestrictedPath
from mercer.solvers.linear.ridge import ridge_path
from mercer.solvers.result import Stop

_COUNT = 20  # penalties of the default path


def _is_path(value: object) -> bool:
    try:
        entries = np.asarray(value)
    except ValueError:  # The lists have different lengths.
        return False
    if entries.ndim != 1 or entries.size == 0 or entries.dtype.kind not in "iuf":
        return False
    return bool(((entries > 0) & np.isfinite(entries)).all())


@learner
class KernelRidgeCV(
    UncertainRegressorMixin,
    DefiniteMixin,
    LandmarkMixin,
    KernelMixin,
    KernelParameters,
    IterativeMixin,
    BaseEstimator,
):
    r"""Kernel ridge over a path of penalties α and a list of kernels, the best by leave-one-out error.

    The errors are exact, those of n fits without one point each, and the whole path takes one reduction of K
    (K = Q B Qᵀ, B a band) and a few products for each α: no refitting. See KernelRidge for the problem.

    Parameters
    ----------
    alphas : the penalties; by default 20, evenly spaced in their logarithm, from 1e-8 to 10 times the trace
        of K (of the first kernel)
    kernel : a kernel, or a list of them to choose from; see KernelRidge
    gamma, degree, coef0 : for kernels given by name
    lams : the lecture's λ, instead of alphas, which then count for nothing: α = λ Σᵢ wᵢ
    fit_intercept : whether there is a b, which is not penalised
    scoring : what the best kernel and α have least of: "squared" or "absolute", the mean (with the weights)
        of the errors left out; "evidence", -log p(y) for each observation under the Gaussian process whose
        mean f is, with the variance of the noise that makes y most likely (`mercer.solvers.linear.evidence`)
    alpha_per_target : whether each target takes its own α, else one serves all; the kernel is one for all
    landmarks : None, a number, "auto", points or their positions: f is then an expansion on these few points,
        the same for every kernel, learned from all of X, of which one point is left out at a time; see
        `mercer.estimators.shared.landmarks`
    max_time, progress, checkpoint, resume : control over a long list: see `estimators.shared.iterative`

    Attributes
    ----------
    alpha_ : the chosen α; with ``alpha_per_target`` (targets,)
    kernel_ : the chosen kernel
    best_score_ : its score
    loo_residuals_ : yᵢ - f(xᵢ) for the f learned without xᵢ, with the chosen kernel and α
    path_ : ``path_.kernels``, ``path_.alphas`` and ``path_.scores``, (kernels, alphas, targets): the
        scores; infinite where K + αI was singular, to rounding
    expansion_, dual_coef_, intercept_, noise_variance_, report_ : as for KernelRidge

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (80, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = KernelRidgeCV(kernel=[Gaussian(sigma=s) for s in (0.01, 1.0, 100.0)]).fit(X, y)
    >>> model.kernel_
    Gaussian(sigma=1.0)
    >>> bool(0.005 < model.best_score_ < 0.02)  # the variance of the noise is 0.01
    True
    """

    alphas: Any = fixed(
        None, "a list of positive numbers", _is_path, "e.g. np.logspace(-6, 2, 20)", optional=True
    )
    _: KW_ONLY
    kernel: KernelLike | list[KernelLike] = "rbf"  # type: ignore[assignment]  # A list is tried in turn.
    coef0: float = 1.0
    lams: Any = fixed(
        None, "a list of positive numbers", _is_path, "e.g. np.logspace(-9, -1, 20)", optional=True
    )
    fit_intercept: bool = flag(True)
    scoring: str = choice("squared", ("squared", "absolute", "evidence"))
    alpha_per_target: bool = flag(False)
    landmarks: LandmarksLike = LANDMARKS

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Choose on the points X, their targets y, (n,) or (n, targets), and their weights."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight, multi_output=True, y_numeric=True)
        if weight.sum() < 2 and np.count_nonzero(weight) < 2:
            raise InputError(
                "leaving one out takes at least two points with a weight, got n_samples="
                f"{np.count_nonzero(weight)}: add points, or use KernelRidge"
            )
        points, Y = X, y.astype(np.float64).reshape(len(y), -1)
        plan = self._plan(X, Y.shape[1])
        plan.require_memory("use landmarks, or KernelRidge on the whole and choose alpha on fewer points")
        on_landmarks = plan.method is Method.LANDMARKS
        Z = self._landmark_points(X, weight, squared=True) if on_landmarks else None
        if not (on_landmarks and weight.all()):  # In a container of the model's own, as anchors have to be.
            present = np.flatnonzero(weight)  # A point of weight zero is as if it were not there.
            points, Y, weight = data.take(X, present), Y[present], weight[present]
        kernels = self._candidates(points, None if sample_weight is None else weight)
        problem = (
            self._on_landmarks(kernels, points, weight, Z)
            if on_landmarks
            else self._on_points(kernels, points, weight)
        )
        search = _Search(Y, problem.alphas, weight, self.fit_intercept, self.scoring, self.alpha_per_target)
        control = self._control("kernels", len(kernels), points, Y, weight, kernels)
        search.follow = control.show
        with control:
            stopped = search.run(len(kernels), lambda i: problem.trial(search, i), control)
        self._warn_if_stopped(journal, stopped, search.done, f"of {len(kernels)} kernels")
        self._choose(kernels, problem, search, y.ndim == 1)
        self._n_fit = len(Y)
        warn_if_lost(journal, self.kernel_, problem.places[search.kernel], type(self).__name__)
        self._warn_at_the_ends(journal, problem.alphas)
        left = int(np.isinf(search.scores).any(axis=2).sum())
        # The smallest penalties of the default path may be below rounding.
        if left > (0 if self.alphas is not None or self.lams is not None else len(problem.alphas) // 2):
            journal.warn(
                f"{left} of {search.scores.shape[0] * len(problem.alphas)} pairs of kernel and penalty left "
                "out: there K is not positive definite, or K + αI singular to rounding"
            )
        facts = {name: getattr(search, name) for name in ("objective", "gap", "bound")}
        known = {name: float(value) for name, value in facts.items() if not np.isnan(value)}
        self.report_ = journal.report(
            plan, stopped, iterations=search.done, time=control.total_seconds, **known
        )
        return self

    # --- the steps of fit --------------------------------------------------------------------------------

    def _kernel(self) -> Kernel:
        """The first candidate: it says what a point is."""
        return self._given()[0]

    def _given(self) -> list[Kernel]:
        given = list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel]
        if not given:
            raise InputError("kernel is an empty list: pass a kernel, or a list of at least one")
        return [as_kernel(kernel, self.gamma, self.degree, self.coef0) for kernel in given]

    def _candidates(self, X: Points, weight: Weights) -> list[Kernel]:
        if not isinstance(self.kernel, list | tuple):
            return [self.kernel_]
        given = self._given()
        if self._pairwise or len({kernel.domain for kernel in given}) > 1:
            raise InputError(
                "a list of kernels to choose from must take the same points, and compute them, got "
                f"{given!r}: fit one model for each kind"
            )
        return [kernel.__sklearn_clone__().resolve(X, weight) for kernel in given]

    def _on_points(self, kernels: list[Kernel], points: Points, weight: np.ndarray) -> _Problem:
        """f on all of the points."""
        for kernel in kernels:
            self._require_definite(points, self.fit_intercept, kernel)
        origins = [origin_of(kernel, points, self.fit_intercept) for kernel in kernels]
        places = [moved(points, origin) for origin in origins]
        gram = Gram(kernels[0], places[0], cache=0)

        def trace() -> float:
            whole = float(weight @ gram.diag().astype(np.float64))
            # The intercept takes the mean away from K.
            mean = float(weight @ (gram @ weight)) / float(weight.sum()) if self.fit_intercept else 0.0
            return whole - mean

        def trial(search: _Search, i: int) -> _Trial:
            return search.exact(Gram(kernels[i], places[i], cache=0).dense())

        return _Problem(places, origins, self._path(weight, trace), trial)

    def _on_landmarks(self, kernels: list[Kernel], points: Points, weight: np.ndarray, Z: Any) -> _Problem:
        """f on landmarks Z, the same for every kernel, from all of the points."""
        for kernel in kernels:
            self._require_definite(Z, self.fit_intercept, kernel)
        first = [Restricted(kernels[0], points, Z, self.fit_intercept)]

        def trace() -> float:
            none = None if self.fit_intercept else np.zeros(first[0].features.basis.size)
            return first[0].variance(weight, none)

        def trial(search: _Search, i: int) -> _Trial:
            mine = first.pop() if i == 0 else Restricted(kernels[i], points, Z, self.fit_intercept)
            mine.features.follow = search.follow
            return search.restricted(mine)

        return _Problem([Z] * len(kernels), [None] * len(kernels), self._path(weight, trace), trial, True)

    def _path(self, weight: np.ndarray, trace: Callable[[], float]) -> np.ndarray:
        if self.lams is not None:
            return np.asarray(self.lams, dtype=np.float64) * weight.sum()
        if self.alphas is not None:
            return np.asarray(self.alphas, dtype=np.float64)
        size = trace()
        return np.logspace(-8, 1, _COUNT) * (size if size > 0 else 1.0)

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        count = len(self.kernel) if isinstance(self.kernel, list | tuple) else 1
        n = data.n_points(X)
        why = ("one reduction of K serves every penalty and leaves out every point",)
        # Besides K there are blocks of some columns, and the solutions of a few penalties.
        extra = 8 * n * (64 * 14 + 24 * n_outputs)
        exact = dense_plan("reduction of K to a band", n, 16 / 3 * count, why, 1.0, n_outputs, extra)
        # A pass for each of: the trace, Φ̃ᵀWΦ̃ (2 n M² with its triangular solves), its right-hand side, the
        # scores and the errors (2 n M² each).
        return self._with_landmarks(X, exact, 5 * count, n_outputs, squares=6 * count)

    def _choose(self, kernels: list[Kernel], problem: _Problem, search: _Search, is_vector: bool) -> None:
        best, coef = search.kernel, search.coef
        self.kernel_, origin, points = kernels[best], problem.origins[best], problem.places[best]
        self._sketch, self._left_out = search.sketch, {}
        if problem.on_landmarks:  # landmarks that are combinations of others are left out
            order = search.sketch["order"]
            points, coef = data.take(points, order), coef[order]
        else:
            self._left_out = {"alphas": search.chosen, "weight": search.weight}
            self._left_out |= {"fit_intercept": self.fit_intercept}
            self._left_out |= {} if origin is None else {"points": points, "origin": origin}
        self._keep(points, coef, search.intercept, is_vector, origin)
        self.path_ = Bunch(kernels=kernels[: search.done], alphas=search.alphas, scores=search.scores)
        self.alpha_ = search.chosen if self.alpha_per_target and not is_vector else float(search.chosen[0])
        self.best_score_ = float(search.best)
        self.loo_residuals_ = search.errors[:, 0] if is_vector else search.errors

    def _warn_at_the_ends(self, journal: Journal, alphas: np.ndarray) -> None:
        ends = {float(alphas.min()): "smallest", float(alphas.max()): "largest"}
        chosen = {float(alpha) for alpha in np.atleast_1d(self.alpha_)}
        if self.alphas is None and self.lams is None:
            return  # The usual path is so long that nothing changes beyond it.
        for alpha in sorted(chosen & set(ends)) if len(alphas) > 2 else ():
            journal.warn(
                f"the best penalty is the {ends[alpha]} of the path, {alpha:.3g}: a path that goes further "
                "may "
                "hold a better one"
            )


@dataclass(frozen=True, eq=False)
class _Problem:
    """What the kernels are tried on."""

    #: for each kernel, the points that f is an expansion on, and the origin that was taken off them
    places: list[Any]
    origins: list[Any]
    alphas: np.ndarray
    trial: Callable[[_Search, int], _Trial]
    on_landmarks: bool = False


@dataclass(frozen=True, eq=False)
class _Trial:
    """What one kernel gives: the scores of all penalties, and f of the best of them."""

    scores: np.ndarray  # (alphas, targets)
    score: np.ndarray  # (targets,)
    alpha: np.ndarray  # (targets,)
    coef: np.ndarray
    intercept: np.ndarray
    errors: np.ndarray  # (n, targets)
    #: the minimum, summed over the targets, how far from it f is, and from that of all functions; NaN where
    #: it is not computed
    objective: float = np.nan
    gap: float = np.nan
    bound: float = np.nan
    #: what is kept of a fit on landmarks beside f, with the landmarks that are used as "order"
    sketch: dict[str, Any] = field(default_factory=dict)


class _Search:
    """The best of what was tried so far, and the scores of all of it."""

    def __init__(
        self,
        Y: np.ndarray,
        alphas: np.ndarray,
        weight: np.ndarray,
        fit_intercept: bool,
        scoring: str,
        per_target: bool,
    ) -> None:
        self.Y, self.alphas, self.weight = Y, alphas, weight
        self.fit_intercept, self.scoring, self.per_target = fit_intercept, scoring, per_target
        self.done = 0
        self.best = np.inf
        self.kernel = 0
        self.chosen: np.ndarray = np.full(Y.shape[1], np.nan)
        self.coef: np.ndarray = np.zeros(Y.shape)
        self.intercept: np.ndarray = np.zeros(Y.shape[1])
        self.errors: np.ndarray = Y.copy()
        self.scores = np.empty((0, len(alphas), Y.shape[1]))
        self.objective = self.gap = self.bound = np.nan
        self.sketch: dict[str, Any] = {}
        #: hears of every pass over the rows, on landmarks
        self.follow: Callable[..., object] | None = None

    def run(self, count: int, trial: Callable[[int], _Trial], control: Control) -> Stop:
        """Try the kernels one by one; it has converged when all were."""
        if control.restored is not None:
            for name, value in control.restored.items():
                first, _, part = name.partition("sketch_")
                if first:
                    setattr(self, name, value)
                else:
                    self.sketch[part] = bool(value) if part == "fit_intercept" else value
        for i in range(self.done, count):
            self._offer(trial(i))
            control.step(self._state, best=float(self.best))
            if control.stopped and self.done < count:
                break
        if not np.isfinite(self.best):
            raise InputError(
                "K + αI is singular, to rounding, for every penalty and kernel: pass larger alphas, or a "
                "kernel "
                "that is positive definite (mercer.certify tells)"
            )
        return Stop.CONVERGED if self.done == count else control.stopped or Stop.INTERRUPTED

    def _offer(self, found: _Trial) -> None:
        if found.score.mean() < self.best:
            self.best, self.kernel = float(found.score.mean()), self.done
            self.chosen, self.coef, self.intercept = found.alpha, found.coef, found.intercept
            self.errors, self.objective = found.errors, found.objective
            self.gap, self.bound, self.sketch = found.gap, found.bound, found.sketch
        self.scores = np.concatenate([self.scores, found.scores[None]])
        self.done += 1

    def exact(self, K: np.ndarray) -> _Trial:
        """The trial of one kernel on all points, with every penalty."""
        scores = np.full((len(self.alphas), self.Y.shape[1]), np.inf)
        share = self.weight / self.weight.sum()
        mine = _Best(self.Y.shape, self.per_target)
        for j, point in enumerate(ridge_path(K, self.Y, self.alphas, self.weight, self.fit_intercept)):
            if point is None or not np.isfinite(point.errors).all():
                continue
            if self.scoring == "evidence":
                scores[j] = point.surprise
            else:
                scores[j] = share @ (point.errors**2 if self.scoring == "squared" else np.abs(point.errors))
            mine.offer(scores[j], float(self.alphas[j]), point)
        return _Trial(scores, mine.score, mine.alpha, mine.coef, mine.intercept, mine.errors)

    def restricted(self, problem: Restricted) -> _Trial:
        """The trial of one kernel on landmarks, with every penalty; errors only where it beats the others."""
        path = RestrictedPath(problem.features, self.Y, self.weight)
        scores = path.scores(self.alphas, self.scoring)
        scores[self.alphas < path.zero] = np.inf  # below the rounding of what α is added to
        targets = np.arange(scores.shape[1])
        best = (
            scores.argmin(axis=0) if self.per_target else np.full(len(targets), scores.mean(axis=1).argmin())
        )
        score, alpha = scores[best, targets], self.alphas[best]
        coef, intercept = path.solve(alpha)
        found = _Trial(scores, score, alpha, problem.spread(coef), intercept, np.empty_like(self.Y))
        if not score.mean() < self.best:
            return found
        values, errors = path.left_out(alpha)
        sketch = sketched(problem, Fitted(coef, values), self.Y, alpha, self.weight, path.normal)
        sketch["order"] = problem.kept
        objective = float(path.objective(alpha).sum())
        found = replace(found, errors=errors, objective=objective, sketch=sketch)
        if np.ptp(alpha) > 0:  # These are several problems, and no one gap.
            return found
        result = path.certified(float(alpha[0]), problem.accuracy)
        bound = problem.bound(result, 2 * float(alpha[0]))
        bound = np.nan if bound is None else bound
        return replace(found, objective=result.objective, gap=result.gap, bound=bound)

    def _state(self) -> dict[str, Any]:
        names = ["done", "best", "kernel", "chosen", "coef", "intercept", "errors", "scores"]
        names += ["objective", "gap", "bound"]
        sketch = {f"sketch_{name}": np.asarray(value) for name, value in self.sketch.items()}
        return {name: getattr(self, name) for name in names} | sketch


class _Best:
    """The best penalty of one kernel: of each target, or of all together."""

    def __init__(self, shape: tuple[int, ...], per_target: bool) -> None:
        self.per_target = per_target
        self.score = np.full(shape[1], np.inf)
        self.alpha = np.full(shape[1], np.nan)
        self.coef, self.errors = np.zeros(shape), np.zeros(shape)
        self.intercept = np.zeros(shape[1])

    def offer(self, score: np.ndarray, alpha: float, point: Any) -> None:
        better = (
            score < self.score if self.per_target else np.full(len(score), score.mean() < self.score.mean())
        )
        self.score[better], self.alpha[better] = score[better], alpha
        self.coef[:, better], self.errors[:, better] = point.coef[:, better], point.errors[:, better]
        self.intercept[better] = point.intercept[better]
