r"""How sure a ridge model is: the standard deviation of f, intervals for targets, and functions drawn.

Two answers to two questions. The *posterior* is that of the Gaussian process whose mean f is: it says how far
f may be from the true function, if that is one of the process. Its noise σ² is the one that makes the targets
most likely, for the α and the kernel of the model. *Intervals* are for targets, noise included; they are made
of errors left out, on a scale √(α + v(x)) that grows away from the points, and cover what they say they cover
whether the process is right or not. Weights count observations in both.
"""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.data.scalars import is_number
from mercer.data.types import Points, Seed
from mercer.errors import InputError
from mercer.estimators.shared.processes import ExactProcess, Process, SketchedProcess
from mercer.estimators.shared.regressor import KernelRegressorMixin
from mercer.expansion import Expansion
from mercer.runtime.config import settings
from mercer.runtime.seeds import seed_of
from mercer.runtime.threads import single_threaded_blas
from mercer.solvers.linear.posterior import root_of

#: what is guaranteed, in words; {least} is 1 - 2(1 - coverage)
JACKKNIFE_PLUS = (
    "by the jackknife+: with the kernel and the penalty as given, at least {least} of new targets are "
    "inside, whatever their distribution, and usually about {coverage}"
)
JACKKNIFE = (
    "by errors left out, of up to 2,000 points: about {coverage} of new targets are inside where one "
    "point more or less hardly changes the model; there is no guarantee beyond that"
)
#: Processes that were made, of functions that are still there: a factor of K takes longer than its use.
_made: WeakKeyDictionary[Expansion, tuple[dict[str, Any], Process]] = WeakKeyDictionary()


class UncertainRegressorMixin(KernelRegressorMixin):
    """For ridge models: ``_left_out`` tells of an exact process, ``_sketch`` of another one."""

    #: where they are not there, the sentence that says why
    _no_process: ClassVar[str] = (
        "this model was saved by a version of mercer that kept less: fit it again for intervals"
    )
    _left_out: dict[str, Any]
    _sketch: dict[str, Any]

    def predict(
        self, X: Points, return_std: bool = False, return_cov: bool = False
    ) -> Any:  # (n,) or (n, targets)
        """f(x) for every row of X; with its standard deviation or covariance, under the process it is of.

        Parameters
        ----------
        X : the points
        return_std : whether (mean, std) is returned: the standard deviation of f(x), without the noise of a
            target; that of a target is ``sqrt(std**2 + noise_variance_)``
        return_cov : whether (mean, cov) is returned: (n, n), of several targets (n, n, targets)
        """
        X = self._validate_for_values(X)
        mean = self.expansion_.values(X)
        if not (return_std or return_cov):
            return mean
        if return_std and return_cov:
            raise InputError("return_std and return_cov are both True: ask for one of them")
        process = self._process()
        unit = self._unit(process)
        with single_threaded_blas():
            every = range(len(unit))
            if return_std:
                found = [np.sqrt(unit[j] * process.variance(X, j)) for j in every]
            else:
                found = [unit[j] * process.covariance(X, j) for j in every]
        return mean, found[0] if mean.ndim == 1 else np.stack(found, axis=-1)

    @property
    def noise_variance_(self) -> Any:  # a number, or (targets,)
        """σ², the variance of the noise of one observation: what makes the targets most likely, given α."""
        check_is_fitted(self)
        try:
            noise = self._process().noise
        except InputError as reason:
            raise AttributeError(f"noise_variance_ is not there: {reason}") from None
        return float(noise[0]) if self.expansion_.coef.ndim == 1 else noise

    def predict_interval(self, X: Points, coverage: float = 0.9) -> np.ndarray:  # (n, 2) or (n, 2, targets)
        """The ends of an interval for the target at every row of X, noise included.

        With a model that keeps all its points they are those of the jackknife+, from closed forms of the n
        fits without one point each: where observations are exchangeable, and kernel and α were chosen
        without them, a new target is inside with a probability of at least 1 - 2(1 - coverage), whatever
        the distribution is, and usually of about ``coverage``. On landmarks, and of a linear kernel that was
        solved in its features, they are f(x) ± a quantile of the errors left out of up to 2,000 points:
        about ``coverage`` where one point more or less hardly changes f, without a bound. The width follows
        √(α + v(x)) in both, v the posterior variance of f: it grows far from the points. Without enough
        points for the coverage (1/(1 - coverage) - 1 of them) an interval has no ends.

        Parameters
        ----------
        X : the points
        coverage : the part of new targets that is to be inside, between 0 and 1
        """
        X = self._validate_new(X)
        coverage = check_coverage(coverage)
        process = self._process()
        mean = self.expansion_.values(X)
        columns = mean.reshape(len(mean), -1)
        with single_threaded_blas():
            found = [process.interval(X, columns[:, j], j, coverage) for j in range(columns.shape[1])]
        return found[0] if mean.ndim == 1 else np.stack(found, axis=-1)

    def interval_guarantee(self, coverage: float = 0.9) -> str:
        """What is guaranteed of ``predict_interval``, in words."""
        check_is_fitted(self)
        words = JACKKNIFE if "normal" in self._facts() else JACKKNIFE_PLUS
        return words.format(coverage=in_percent(coverage), least=in_percent(max(2 * coverage - 1, 0.0)))

    def sample_y(self, X: Points, n_samples: int = 1, random_state: Seed = 0) -> np.ndarray:
        """Values at the rows of X of functions that are drawn from the posterior: (n, n_samples).

        Of several targets (n, targets, n_samples), the targets drawn independently. They are values of f,
        without noise; the name and the order of the axes are those of scikit-learn's Gaussian process.
        """
        if not (is_number(n_samples) and n_samples >= 1 and n_samples == int(n_samples)):
            raise InputError(f"n_samples must be a whole number of at least 1, got {n_samples!r}: pass 1")
        mean, covariance = self.predict(X, return_cov=True)
        rng = np.random.default_rng(seed_of(random_state))
        columns = mean.reshape(len(mean), -1)
        drawn = [
            columns[:, [j]]
            + root_of(covariance.reshape(len(mean), len(mean), -1)[:, :, j])
            @ rng.standard_normal((len(mean), int(n_samples)))
            for j in range(columns.shape[1])
        ]
        return drawn[0] if mean.ndim == 1 else np.stack(drawn, axis=1)

    # --- the process ---------------------------------------------------------------------------------------

    def _unit(self, process: Process) -> np.ndarray:  # (t,)
        """σ²/α of every target."""
        noise = process.noise
        if not np.isfinite(noise).all():
            raise InputError(
                "the noise cannot be told from a single point, which f goes through: fit on more points"
            )
        return np.asarray(noise / self._facts()["alphas"])

    def _facts(self) -> dict[str, Any]:
        """``_sketch`` or ``_left_out``, whichever tells of a process."""
        facts = getattr(self, "_sketch", None) or getattr(self, "_left_out", None) or {}
        if "alphas" not in facts:
            raise InputError(str(facts.get("none", self._no_process)))
        return facts

    def _process(self) -> Process:
        """The process of the model."""
        if self._pairwise:
            raise InputError(
                "kernel='precomputed' tells no k(x, x) of new points, which the variance of f begins with: "
                "fit with mercer.Precomputed(K), K of all points, and pass their positions"
            )
        report = self.report_
        if getattr(report.stopped, "is_early", False):
            raise InputError(
                f"the fit ended early ({report.stopped}), so that f is not the mean of the process and no "
                "error left out is exact: fit with a larger max_iter or max_time"
            )
        facts, under = self._facts(), settings().of_values()
        known = _made.get(self.expansion_)
        if known is not None and known[0] == under:
            return known[1]
        f = self.expansion_
        with single_threaded_blas():
            process: Process
            if getattr(self, "_sketch", None):
                process = SketchedProcess(f.kernel, f.anchors, facts, facts["alphas"], facts["fit_intercept"])
            else:
                if "points" in facts and "origin" not in facts:
                    raise InputError(self._no_process)
                coef = np.reshape(self.dual_coef_, (len(facts["weight"]), -1))
                points = facts.get("points", f.anchors)
                rest = facts["alphas"], facts["weight"], facts["fit_intercept"], facts.get("origin")
                process = ExactProcess(f.kernel, points, coef, *rest)
        _made[f] = under, process
        return process


def in_percent(share: float) -> str:
    """A share in words.

    >>> in_percent(0.9), in_percent(0.995)
    ('90 %', '99.5 %')
    """
    return f"{100 * share:.3g} %"


def check_coverage(coverage: Any) -> float:
    """The part that is to be covered, between 0 and 1.

    >>> check_coverage(90)
    Traceback (most recent call last):
    mercer.errors.InputError: coverage must be a number between 0 and 1, got 90: pass 0.9 for 90 %
    """
    if not (is_number(coverage) and 0 < coverage < 1):
        raise InputError(f"coverage must be a number between 0 and 1, got {coverage!r}: pass 0.9 for 90 %")
    return float(coverage)
