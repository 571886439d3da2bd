r"""Kernel ridge with the penalty, and the kernel, chosen by exact leave-one-out errors."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from mercer.data import points as data
from mercer.data.types import Points, Targets, Weights
from mercer.errors import InputError
from mercer.estimators.ridge import dense_plan
from mercer.estimators.shared.base import KernelMixin, flag
from mercer.estimators.shared.definite import DefiniteMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.origin import moved, origin_of, warn_if_lost
from mercer.estimators.shared.regressor import KernelRegressorMixin
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.kernels.parameters import Parameter, choice, fixed
from mercer.report import Journal, Plan, Report
from mercer.solvers.control import Control
from mercer.solvers.linear.ridge import ridge_path
from mercer.solvers.result import Stop

__all__ = ["KernelRidgeCV"]

_COUNT = 20  # penalties of the default path


def _is_path(value: object) -> bool:
    try:
        entries = np.asarray(value)
    except ValueError:  # ragged
        return False
    if entries.ndim != 1 or entries.size == 0 or entries.dtype.kind not in "iuf":
        return False
    return bool(((entries > 0) & np.isfinite(entries)).all())


class KernelRidgeCV(KernelRegressorMixin, DefiniteMixin, KernelMixin, IterativeMixin, BaseEstimator):
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
    scoring : "squared" or "absolute": what is averaged (with the weights) over the errors left out
    alpha_per_target : whether each target takes its own α, else one serves all; the kernel is one for all
    max_time, progress, checkpoint, resume : control over a long list: see `estimators.shared.iterative`

    Attributes
    ----------
    alpha_ : the chosen α; with ``alpha_per_target`` (targets,)
    kernel_ : the chosen kernel
    best_score_ : its mean error left out
    loo_residuals_ : yᵢ - f(xᵢ) for the f learned without xᵢ, with the chosen kernel and α
    path_ : ``path_.kernels``, ``path_.alphas`` and ``path_.scores``, (kernels, alphas, targets): the mean
        errors left out; infinite where K + αI was singular, to rounding
    expansion_, dual_coef_, intercept_, report_ : as for KernelRidge

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

    _declared: ClassVar[dict[str, Parameter]] = {
        "alphas": fixed(
            None, "a list of positive numbers", _is_path, "e.g. np.logspace(-6, 2, 20)", optional=True
        ),
        "lams": fixed(
            None, "a list of positive numbers", _is_path, "e.g. np.logspace(-9, -1, 20)", optional=True
        ),
        "fit_intercept": flag(True),
        "scoring": choice("squared", ("squared", "absolute")),
        "alpha_per_target": flag(False),
        **IterativeMixin.CONTROL,
    }

    def __init__(
        self,
        alphas: Any = None,
        *,
        kernel: KernelLike | list[KernelLike] = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        lams: Any = None,
        fit_intercept: bool = True,
        scoring: str = "squared",
        alpha_per_target: bool = False,
        max_time: float | None = None,
        progress: Any = None,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.lams = lams
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.alpha_per_target = alpha_per_target
        self.max_time = max_time
        self.progress = progress
        self.checkpoint = checkpoint
        self.resume = resume

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Choose on the points X, their targets y, (n,) or (n, targets), and their weights."""
        journal = Journal()
        X, y, weight = self._validate_weighted(X, y, sample_weight, multi_output=True, y_numeric=True)
        present = np.flatnonzero(weight)
        points, Y = data.take(X, present), y[present].astype(np.float64)
        if weight.sum() < 2 and len(present) < 2:
            raise InputError(
                f"leaving one out takes at least two points with a weight, got n_samples={len(present)}: "
                "add points, or use KernelRidge"
            )
        Y = Y.reshape(len(Y), -1)
        plan = self._plan(X, Y.shape[1])
        plan.require_memory("use KernelRidge on the whole and choose alpha on fewer points")
        kernels = self._candidates(points, None if sample_weight is None else weight[present])
        weight = weight[present]
        for kernel in kernels:
            self._require_definite(points, self.fit_intercept, kernel)
        origins = [origin_of(kernel, points, self.fit_intercept) for kernel in kernels]
        places = [moved(points, origin) for origin in origins]
        alphas = self._path(Gram(kernels[0], places[0], cache=0), weight)
        search = _Search(Y, alphas, weight, self.fit_intercept, self.scoring, self.alpha_per_target)
        control = self._control("kernels", len(kernels), points, Y, weight, kernels)
        with control:
            stopped = search.run(kernels, places, control)
        self._warn_if_stopped(journal, stopped, search.done, f"of {len(kernels)} kernels")
        self._choose(kernels, places, origins, search, y.ndim == 1)
        warn_if_lost(journal, self.kernel_, places[search.kernel], type(self).__name__)
        self._warn_at_the_ends(journal, alphas)
        left = int(np.isinf(search.scores).any(axis=2).sum())
        # of the default path the smallest may be below rounding
        if left > (0 if self.alphas is not None or self.lams is not None else len(alphas) // 2):
            journal.warn(
                f"{left} of {search.scores.shape[0] * len(alphas)} pairs of kernel and penalty left out: "
                "there K is not positive definite, or K + αI singular to rounding"
            )
        self.report_: Report = journal.report(
            plan, stopped, iterations=search.done, objective=None, time=control.total_seconds
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

    def _path(self, gram: Gram, weight: np.ndarray) -> np.ndarray:
        if self.lams is not None:
            return np.asarray(self.lams, dtype=np.float64) * weight.sum()
        if self.alphas is not None:
            return np.asarray(self.alphas, dtype=np.float64)
        trace = float(weight @ gram.diag().astype(np.float64))
        if self.fit_intercept:  # the intercept takes the mean away from K
            trace -= float(weight @ (gram @ weight)) / float(weight.sum())
        return np.logspace(-8, 1, _COUNT) * (trace if trace > 0 else 1.0)

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        count = len(self.kernel) if isinstance(self.kernel, list | tuple) else 1
        n = data.n_points(X)
        why = ("one reduction of K serves every penalty and leaves out every point",)
        # besides K: blocks of some columns, and the solutions of a few penalties
        extra = 8 * n * (64 * 14 + 24 * n_outputs)
        return dense_plan("reduction of K to a band", n, 16 / 3 * count, why, 1.0, n_outputs, extra)

    def _choose(
        self, kernels: list[Kernel], places: list[Any], origins: list[Any], search: _Search, is_vector: bool
    ) -> None:
        best = search.kernel
        self.kernel_ = kernels[best]
        self._keep(places[best], search.coef, search.intercept, is_vector, origins[best])
        self.path_ = Bunch(kernels=kernels[: search.done], alphas=search.alphas, scores=search.scores)
        self.alpha_ = search.chosen if self.alpha_per_target and not is_vector else float(search.chosen[0])
        self.best_score_ = float(search.best)
        self.loo_residuals_ = search.errors[:, 0] if is_vector else search.errors

    def _warn_at_the_ends(self, journal: Journal, alphas: np.ndarray) -> None:
        ends = {float(alphas.min()): "smallest", float(alphas.max()): "largest"}
        chosen = {float(alpha) for alpha in np.atleast_1d(self.alpha_)}
        if self.alphas is None and self.lams is None:
            return  # beyond the default path nothing changes
        for alpha in sorted(chosen & set(ends)) if len(alphas) > 2 else ():
            journal.warn(
                f"the best penalty is the {ends[alpha]} of the path, {alpha:.3g}: a path that goes further "
                "may "
                "hold a better one"
            )


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

    def run(self, kernels: list[Kernel], places: list[Any], control: Control) -> Stop:
        """Try the kernels one by one, each on its points; it has converged when all were."""
        if control.restored is not None:
            for name, value in control.restored.items():
                setattr(self, name, value)
        for kernel, points in list(zip(kernels, places, strict=True))[self.done :]:
            self._try(Gram(kernel, points, cache=0).dense())
            control.step(self._state, best=float(self.best))
            if control.stopped and self.done < len(kernels):
                break
        if not np.isfinite(self.best):
            raise InputError(
                "K + αI is singular, to rounding, for every penalty and kernel: pass larger alphas, or a "
                "kernel "
                "that is positive definite (mercer.certify tells)"
            )
        return Stop.CONVERGED if self.done == len(kernels) else control.stopped or Stop.INTERRUPTED

    def _try(self, K: np.ndarray) -> None:
        """One kernel: every penalty."""
        scores = np.full((len(self.alphas), self.Y.shape[1]), np.inf)
        share = self.weight / self.weight.sum()
        mine = _Best(self.Y.shape, self.per_target)
        for j, point in enumerate(ridge_path(K, self.Y, self.alphas, self.weight, self.fit_intercept)):
            if point is None or not np.isfinite(point.errors).all():
                continue
            sizes = point.errors**2 if self.scoring == "squared" else np.abs(point.errors)
            scores[j] = share @ sizes
            mine.offer(scores[j], float(self.alphas[j]), point)
        if mine.score.mean() < self.best:
            self.best, self.kernel = float(mine.score.mean()), self.done
            self.chosen, self.coef, self.intercept, self.errors = (
                mine.alpha,
                mine.coef,
                mine.intercept,
                mine.errors,
            )
        self.scores = np.concatenate([self.scores, scores[None]])
        self.done += 1

    def _state(self) -> dict[str, Any]:
        names = ("done", "best", "kernel", "chosen", "coef", "intercept", "errors", "scores")
        return {name: getattr(self, name) for name in names}


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
