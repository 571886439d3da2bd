r"""The kernel perceptron as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from mercer import data
from mercer.errors import InputError
from mercer.estimators.base import KernelMixin, flag
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.parameters import Parameter, whole
from mercer.progress import Progress, progress
from mercer.solvers.perceptron import PerceptronResult, perceptron

__all__ = ["KernelPerceptron"]

_SMALL = 1000  # points up to which the history is worth its memory


class KernelPerceptron(KernelMixin, ClassifierMixin, BaseEstimator):
    r"""Classification by f(x) = Σ yᵢ k(xᵢ, x) + b, the sum over the mistakes made in training.

    Training starts from f = 0 and passes over the points; where sign f(xᵢ) ≠ yᵢ it adds yᵢ k(xᵢ, ·)
    to f and yᵢ to b. It ends after a pass without a mistake: f then separates the classes. Data that no f
    separates, such as noisy labels, never come to that; ``max_iter`` ends the training then, with a warning.
    Only the mistakes are stored. The second of two classes is y = +1, and f(x) = 0 counts as -1. Of more than
    two classes each is learned against the rest, on one Gram, and the largest f wins.

    Parameters
    ----------
    kernel : a Kernel such as ``Gaussian(sigma="median")``, a function of two points, or one of "rbf",
        "linear", "poly", "sigmoid", "laplacian", "cosine", "chi2", "min", "precomputed"
    gamma : number, "scale" or "auto": γ of a kernel given by name
    degree : whole number, for "poly"
    coef0 : number, for "poly" and "sigmoid"
    fit_intercept : whether there is a b
    max_iter : passes over the data, at most
    shuffle : whether each pass visits the points in a new random order
    random_state : seed of those orders
    record_history : whether to keep ``history_``, an entry per point and pass; by default for training
        sets of at most 1000 points

    Attributes
    ----------
    classes_ : (classes,) the labels
    kernel_ : the kernel with its parameters taken from the data
    expansion_ : f, an Expansion on the stored points; for several classes one column of ``coef`` each
    mistakes_ : mistakes made in all; for several classes (classes,)
    bound_ : ‖g‖² maxᵢ k(xᵢ, xᵢ) ≥ ``mistakes_``, g the f that was found, scaled so that yᵢ g(xᵢ) ≥ 1, in the
        space of k (of k + 1 with an intercept); infinite where f is 0 at a training point; NaN unless
        converged; for several classes (classes,)
    n_iter_ : passes made, of the class that took most
    converged_ : whether every class was separated
    history_ : when it is recorded, a structured array with an entry per visited point, in order:
        ``epoch`` (from 1), ``index`` (of the point, from 0), ``value`` (f(xᵢ) on arrival), ``mistake``; for
        several classes a list of them
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    >>> from mercer import KernelPerceptron, Polynomial
    >>> X, y = [[1, 1], [-1, 1], [-1, -1], [1, -1]], [1, -1, 1, -1]
    >>> xor = KernelPerceptron(Polynomial(2, c=0), fit_intercept=False).fit(X, y)
    >>> xor.expansion_.anchors, xor.expansion_.coef  # f(x) = ⟨(1, 1), x⟩² = (x₁ + x₂)²
    (array([[1., 1.]]), array([1.]))
    >>> xor.history_["value"]
    array([0., 0., 4., 0., 4., 0., 4., 0.])
    >>> xor.predict([[3, 2], [3, -3]])
    array([ 1, -1])
    """

    _declared: ClassVar[dict[str, Parameter]] = {
        "fit_intercept": flag(True),
        "max_iter": whole(100),
        "shuffle": flag(False),
        "record_history": flag(None, optional=True),
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        max_iter: int = 100,
        shuffle: bool = False,
        random_state: Any = None,
        record_history: bool | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.record_history = record_history

    def fit(self, X: Any, y: Any) -> Self:
        """Train on the points X and their labels y."""
        X, y = self._validate_fit(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y must hold at least two classes, got one class, {self.classes_.tolist()[0]!r}: "
                "add points of another, or check how the labels were made"
            )
        results = self._solve(Gram(self.kernel_, X), codes)
        self._keep(X, results)
        self._warn_unless_converged(results)
        return self

    def decision_function(self, X: Any) -> np.ndarray:  # (n,) or (n, classes)
        """f(x) for every row of X; for several classes one column each."""
        X = self._validate_new(X)
        return self.expansion_(X)

    def predict(self, X: Any) -> np.ndarray:  # (n,)
        """The label of every row of X."""
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]

    # --- the steps of fit --------------------------------------------------------------------------------

    def _solve(self, gram: Gram, codes: np.ndarray) -> list[PerceptronResult]:
        """One perceptron for two classes, else one per class; the Gram keeps the rows they share."""
        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        seed = check_random_state(self.random_state).randint(2**31 - 1) if self.shuffle else None
        record = len(codes) <= _SMALL if self.record_history is None else bool(self.record_history)
        results = []
        with progress(len(positives) * self.max_iter * len(codes), "perceptron") as bar:
            for function, code in enumerate(positives, 1):
                result = perceptron(
                    gram,
                    np.where(codes == code, 1.0, -1.0),
                    fit_intercept=self.fit_intercept,
                    max_epochs=self.max_iter,
                    orders=None if seed is None else _shuffles(seed, len(codes)),
                    record=record,
                    report=_reporter(bar),
                )
                results.append(result)
                bar.advance(function * self.max_iter * len(codes) - bar.done)  # the passes it did not need
        return results

    def _keep(self, X: Any, results: list[PerceptronResult]) -> None:
        coef = np.column_stack([result.coef for result in results])  # (n, functions)
        stored = np.flatnonzero(coef.any(axis=1))
        coef, intercept = coef[stored], np.array([result.intercept for result in results])
        mistakes = np.array([result.mistakes for result in results])
        bound = np.array([result.bound for result in results])
        history = [result.history for result in results if result.history is not None]
        one = len(results) == 1
        self.expansion_ = Expansion(
            self.kernel_,
            data.take(X, stored),
            coef[:, 0] if one else coef,
            intercept[0] if one else intercept,
        )
        self.mistakes_ = int(mistakes[0]) if one else mistakes
        self.bound_ = float(bound[0]) if one else bound
        self.n_iter_ = max(result.epochs for result in results)
        self.converged_ = all(result.converged for result in results)
        if history:
            self.history_ = history[0] if one else history
        elif hasattr(self, "history_"):
            del self.history_  # of an earlier fit

    def _warn_unless_converged(self, results: list[PerceptronResult]) -> None:
        if self.converged_:
            return
        failed = [i for i, result in enumerate(results) if not result.converged]
        what = "the two classes"
        if len(results) > 1:
            labels = self.classes_[failed].tolist()
            what = f"{len(failed)} of {len(results)} classes ({', '.join(map(repr, labels[:5]))}"
            what += ", …)" if len(labels) > 5 else ")"
        last = sum(int(results[i].mistakes_per_epoch[-1]) for i in failed)
        warnings.warn(
            f"the perceptron did not separate {what} in max_iter={self.max_iter} passes, and made {last} "
            "mistakes in the last: raise max_iter, scale the data, or take a richer kernel (a smaller sigma, "
            "a larger gamma or degree); noisy labels are never separated, and need a learner that tolerates "
            "mistakes",
            ConvergenceWarning,
            stacklevel=3,
        )


def _shuffles(seed: int, n: int) -> Iterator[np.ndarray]:
    """A new order of visit for each pass; the same ones for every class, which then share rows."""
    rng = np.random.default_rng(seed)
    while True:
        yield rng.permutation(n)


def _reporter(bar: Progress) -> Any:
    def report(points: int, epoch: int, mistakes: int) -> None:
        bar.advance(points, epoch=epoch, mistakes=mistakes)

    return report
