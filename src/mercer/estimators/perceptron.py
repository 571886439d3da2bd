r"""The kernel perceptron as a scikit-learn classifier."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mercer.data import points as data
from mercer.data.types import Points, Targets
from mercer.errors import InputError
from mercer.estimators.shared.base import KernelMixin
from mercer.estimators.shared.iterative import IterativeMixin
from mercer.estimators.shared.mistakes import MistakesMixin, squeeze
from mercer.estimators.shared.origin import warn_if_lost
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.parameters import choice, nonnegative, whole
from mercer.report import Journal, Plan
from mercer.runtime.config import memory_budget, settings
from mercer.solvers.perceptron.budget import Budget, budget_perceptron
from mercer.solvers.perceptron.kernel import FETCHED_BYTES, VISIT, mistake_bound, perceptron
from mercer.solvers.perceptron.proof import MistakeProof
from mercer.solvers.result import Stop

#: The number of points up to which the history of all visits is recorded without being asked for.
_HISTORY_IS_CHEAP_BELOW = 1000


@learner
class KernelPerceptron(MistakesMixin, IterativeMixin, KernelMixin, KernelParameters, BaseEstimator):
    r"""Classification by f(x) = Σ yᵢ k(xᵢ, x) + b, the sum over the mistakes made in training.

    Training starts from f = 0 and passes over the points; where yᵢ f(xᵢ) ≤ 0 it adds yᵢ k(xᵢ, ·)
    to f and yᵢ to b. It ends after a pass without a mistake: f then separates the classes. Data that no f
    separates, such as noisy labels, never come to that; ``max_iter`` ends the training then, with a warning.
    Only the mistakes are stored. The second of two classes is y = +1, and ``predict`` counts f(x) = 0 as -1.
    Of more than two classes each is learned against the rest, in the same passes, and the largest f wins.

    There is no ``sample_weight``: a mistake is a mistake, and the bound counts them.

    Parameters
    ----------
    kernel : a Kernel such as ``Gaussian(sigma="median")``, a function of two points, or one of "rbf",
        "linear", "poly", "sigmoid", "laplacian", "cosine", "chi2", "min", "precomputed"
    gamma, degree, coef0 : numbers of a kernel given by its name, as in scikit-learn
    fit_intercept : whether there is a b
    boundary : what f(xᵢ) = 0 is in training. "mistake": a mistake whatever the label; the classes are
        treated alike, and what is separated has a margin. "negative": sign(0) = -1, as in ``predict``, so
        that it is a mistake only where yᵢ = +1
    prediction : which f decides; the training is the same. "last": that of the end. "averaged": the mean of f
        over all visits of a point, f̄ = (1/T) Σ_t f_t. "voted": every f_t has a vote, (1/T) Σ_t sign f_t(x).
        Both do better than the last where the classes overlap
    budget : whole number, the points that are stored at most; None for every mistake
    budget_strategy : what happens on a mistake when the budget is spent. "forget": f shrinks, and the oldest
        point goes (the Forgetron); "project": f gets the new point's projection on the span of the stored
        ones (the Projectron); "remove": the point with the smallest ``|α|`` goes. See
        ``mercer.solvers.perceptron.budget``
    residual : "project" also projects a point of which less than this share of k(x, x) is lost by it
    max_iter : passes over the data, at most
    shuffle : whether each pass visits the points in a new random order
    random_state : seed of those orders
    record_history : whether to keep ``history_``, an entry per point and pass; by default for training
        sets of at most 1000 points, where it is sure to fit an eighth of the memory budget, and never with a
        budget
    max_time, progress, checkpoint, resume : control over a long run: see `estimators.shared.iterative`

    Attributes
    ----------
    classes_ : (classes,) the labels
    kernel_ : the kernel with its parameters taken from the data
    expansion_ : f, the last or the averaged one, an Expansion on the stored points; for several classes one
        column of ``coef`` each. With "voted" it is the last, and ``decision_function`` the votes
    mistakes_ : mistakes made in all; for several classes (classes,)
    mistake_indices_ : without a budget, the training points that were mistakes, in order (of a stream,
        counted from its beginning); for several classes a list. Absent where they are more than 2¹⁸, or than
        fit a sixteenth of the memory budget
    margin_ : minᵢ yᵢ f(xᵢ) / ‖f‖ of the last f on the training points, in the space of k (of k + 1 with an
        intercept); negative where a point is wrong; NaN after ``partial_fit``, with a budget unless
        converged, and where ‖f‖² < 0, the kernel not being positive definite; for several classes (classes,)
    bound_ : ‖g‖² maxᵢ k(xᵢ, xᵢ) ≥ ``mistakes_``, g the f that was found, scaled so that yᵢ g(xᵢ) ≥ 1, in the
        space of k (of k + 1 with an intercept), maxᵢ k(xᵢ, xᵢ) over ``margin_`` squared; infinite where f is
        0 at a training point; NaN unless converged, and with a budget; for several classes (classes,)
    n_iter_ : passes made, of the class that took most
    converged_ : whether every class was separated
    history_ : when it is recorded, a structured array with an entry per visited point, in order:
        ``epoch`` (from 1), ``index`` (of the point, from 0), ``value`` (f(xᵢ) on arrival), ``mistake``; for
        several classes a list of them
    report_ : how the fit went
    n_features_in_, feature_names_in_ : as in scikit-learn, when X is a table

    Examples
    --------
    >>> from mercer import KernelPerceptron, Polynomial
    >>> X, y = [[1, 1], [-1, 1], [-1, -1], [1, -1]], [1, -1, 1, -1]
    >>> xor = KernelPerceptron(Polynomial(2, c=0), fit_intercept=False).fit(X, y)
    >>> xor.expansion_.anchors.tolist(), xor.expansion_.coef  # f(x) = (x₁ + x₂)² - (x₁ - x₂)² = 4x₁x₂
    ([[1.0, 1.0], [-1.0, 1.0]], array([ 1., -1.]))
    >>> xor.history_["value"]
    array([ 0.,  0.,  4., -4.,  4., -4.,  4., -4.])
    >>> xor.predict([[3, 2], [3, -3]])
    array([ 1, -1])

    A stream, of which at most 20 points are kept:

    >>> rng = np.random.default_rng(0)
    >>> model = KernelPerceptron(Polynomial(2), budget=20, budget_strategy="project")
    >>> for _ in range(10):
    ...     X = rng.normal(size=(50, 2))
    ...     model = model.partial_fit(X, (X**2).sum(axis=1) > 1, classes=[False, True])
    >>> len(model.expansion_) <= 20, model.predict([[0.1, 0.2], [2.0, 1.0]])
    (True, array([False,  True]))
    """

    _: KW_ONLY
    budget: int | None = whole(None, optional=True)
    budget_strategy: str = choice("forget", Budget.STRATEGIES)
    residual: float = nonnegative(1e-6)
    record_history: bool | None = flag(None, optional=True)

    def fit(self, X: Points, y: Targets) -> Self:
        """Train on the points X and their labels y."""
        journal = Journal()
        X, y = self._validate_fit(X, y)
        self._require_last()
        codes = self._encode(y)
        Y = self._signs(codes)
        plan = self._plan(X, Y.shape[1])
        plan.require_memory("use fewer points, or partial_fit on parts of them")
        warn_if_lost(journal, self.kernel_, X, type(self).__name__)
        gram = Gram(self.kernel_, X, cache=0)
        diagonal = gram.diag()
        self._largest = float(diagonal.max())
        with self._control("perceptron", self.max_iter * len(codes), X, codes, self.kernel_) as control:
            options = {"max_epochs": self.max_iter, "orders": self._seed(), "control": control}
            run = self._run if self.budget is None else self._run_on_budget
            result, epochs, converged = run(X, gram, Y, options)
        self._seen = len(codes)
        remedy = (
            "raise max_iter, scale the data, or take a richer kernel (a smaller sigma, a larger gamma or "
        )
        remedy = remedy + "degree)" if self.budget is None else f"raise budget={self.budget} or max_iter"
        if diagonal.min() < 0 or getattr(result, "is_indefinite", False):
            remedy = "take a kernel that is positive definite"
            journal.warn(
                f"{self.kernel_!r} is not positive definite on these data, k(x, x) or ‖f‖² being negative: "
                f"the bound on the mistakes does not hold, and there is no margin; {remedy}"
            )
        self._end_of_fit(journal, result, epochs, converged, remedy)
        self.report_ = journal.report(plan, result.stopped, iterations=epochs, time=control.total_seconds)
        return self

    def partial_fit(self, X: Points, y: Targets, classes: Any = None) -> Self:
        """Go on with more points: each is visited once, in order, and need not be kept by the caller.

        A stream of batches gives what one pass over all of them gives. The first call names all classes that
        will come. The kernel's parameters, where they are taken from data, are those of the first batch.
        """
        journal = Journal()
        X, codes, first = self._validate_stream(X, y, classes)
        self._require_last()
        if not first:
            self._require_same_budget()
        Y = self._signs(codes)
        plan = self._plan(X, Y.shape[1])
        if first:
            self._seen, self._largest = 0, -np.inf
        go_on = self._continue if self.budget is None else self._continue_on_budget
        go_on(X, Y, first)
        self._end_of_batch(len(codes), Y.shape[1])
        self.__dict__.pop("history_", None)
        self.report_ = journal.report(plan, iterations=1)
        return self

    def decision_function(self, X: Points) -> np.ndarray:  # (n,) or (n, classes)
        """f(x) for every row of X, or the votes; for several classes one column each."""
        X = self._validate_new(X)
        return self._votes(X) if self._is_voted else self.expansion_(X)

    def bound(self, g: Expansion, X: Points | None = None, y: Targets | None = None) -> Any:
        """‖g‖² maxᵢ k(xᵢ, xᵢ) ≥ ``mistakes_`` of the training, for another g that separates the classes.

        With an intercept it is (‖g‖² + b²)(maxᵢ k(xᵢ, xᵢ) + 1). g is taken at its word that yᵢ g(xᵢ) ≥ 1 on
        the training points; given those (X, y), it is scaled so that this holds. For several classes g has a
        column for each, and so has the result.
        """
        square, least = self._separator(g, X, y)
        return squeeze(mistake_bound(square, least, self._largest + self.fit_intercept))

    def proof(
        self, g: Expansion | None = None, X: Points | None = None, y: Targets | None = None
    ) -> MistakeProof:
        """The convergence proof, mistake by mistake, for a g as in ``bound``, or for the f that was found.

        >>> from mercer import KernelPerceptron, Polynomial
        >>> X, y = [[1, 1], [-1, 1], [-1, -1], [1, -1]], [1, -1, 1, -1]
        >>> proof = KernelPerceptron(Polynomial(2, c=0), fit_intercept=False).fit(X, y).proof()
        >>> proof.lower.round(3), proof.progress.round(3), proof.norms.round(3), proof.upper.round(3)
        (array([0.   , 1.414, 2.828]), array([0.   , 1.414, 2.828]), array([0.   , 2.   , 2.828]),
         array([0.   , 2.   , 2.828]))
        """
        if g is None:
            return self._proof(None, None, None)
        square, least = self._separator(g, X, y)
        return self._proof(g(self.expansion_.anchors), square[0], least[0])

    def _separator(
        self, g: Any, X: Points | None, y: Targets | None
    ) -> tuple[np.ndarray, np.ndarray]:  # (functions,), (functions,)
        """‖g‖² in the space of k, or of k + 1 with an intercept, and minᵢ yᵢ g(xᵢ)."""
        if not isinstance(g, Expansion):
            raise InputError(f"g must be an Expansion, got {g!r}: pass Expansion(kernel, points, coef, b)")
        if not self.fit_intercept and np.any(g.intercept):
            raise InputError(
                "g must have no intercept where the perceptron has none (fit_intercept=False), got "
                f"{g.intercept}: add a Constant to the kernel instead"
            )
        points = self._validate_new(X) if X is not None else None
        square = np.atleast_1d(np.square(g.norm()) + np.square(g.intercept))
        if points is None:
            return square, np.ones_like(square)
        codes = np.searchsorted(self.classes_, np.asarray(y))
        return square, (self._signs(codes) * g(points).reshape(len(codes), -1)).min(axis=0)

    # --- before the fit ----------------------------------------------------------------------------------

    def _plan(self, X: Points, n_outputs: int) -> Plan:
        n, size = data.n_points(X), np.dtype(settings().dtype).itemsize
        width = data.n_columns(X) or 1
        points = 8 * n * width if isinstance(X, np.ndarray) and X.ndim == 2 else 0  # the Gram's own copy
        if self.budget is not None:
            stored = int(self.budget)
            batch = min(max(stored, 64), 1024, n)
            memory = points + 2 * 8 * batch * (stored + batch) + 8 * stored * (stored + n_outputs) + 8 * n
            why: tuple[str, ...] = (f"at most {stored:,} points are stored ({self.budget_strategy})",)
            flops = 2.0 * n * (stored + batch) * width
            return Plan("kernel perceptron with a budget", n, memory, flops, why, iterative=True)
        kept = min(n * n * size, memory_budget() // 4)
        block = max(n * size, min(64 * n * size, FETCHED_BYTES, memory_budget() // 16))
        memory = points + kept + 2 * min(block, n * n * size) + (5 * 8 + 1) * n * n_outputs + 16 * n
        memory += self._mistake_bytes(n, n_outputs)
        memory += self._history_bytes(n, n_outputs) if self._is_recorded(n, n_outputs) else 0
        why = (
            "one row of K is needed per mistake",
            "every row fits" if kept == n * n * size else "rows are kept in a quarter of the budget",
        )
        return Plan("kernel perceptron", n, memory, n * n * width / 2, why, iterative=True)

    def _history_bytes(self, n: int, functions: int) -> int:
        """What the history takes at most: visits and values as they come, joined, and as they are shown."""
        return int(self.max_iter) * n * (2 * 8 + functions * (2 * 8 + VISIT.itemsize))

    def _is_recorded(self, n: int, functions: int) -> bool:
        if self.record_history is None:
            return n <= _HISTORY_IS_CHEAP_BELOW and self._history_bytes(n, functions) <= memory_budget() // 8
        return bool(self.record_history)

    def _require_last(self) -> None:
        if self.budget is not None and self.prediction != "last":
            raise InputError(
                f"prediction must be 'last' with a budget, got {self.prediction!r}: the average and the "
                "votes need the points that were given up; pass prediction='last' or budget=None"
            )
        if self.budget is not None and self.record_history:
            raise InputError(
                "record_history must be None or False with a budget, got True: a history has no bound on its "
                "memory; leave one of the two out"
            )

    def _require_same_budget(self) -> None:
        model = vars(self).get("_budget")
        size, strategy = (None, self.budget_strategy) if model is None else (model.size, model.strategy)
        if size != self.budget or strategy != self.budget_strategy:
            raise InputError(
                f"budget must stay as it was when the training began, {size!r} ({strategy!r}), got "
                f"{self.budget!r} ({self.budget_strategy!r}): set it back, or start anew with a clone or fit"
            )

    # --- without a budget --------------------------------------------------------------------------------

    def _run(
        self, X: Points, gram: Gram, Y: np.ndarray, options: dict[str, Any]
    ) -> tuple[Any, int, np.ndarray]:
        options |= {"fit_intercept": self.fit_intercept, "boundary": self.boundary}
        options |= {"prefetch": self._prefetch()}
        options |= {"record": self._is_recorded(*Y.shape), "keep": self._keep_order()}
        result = perceptron(gram, Y, **options)
        self.__dict__.pop("_budget", None)  # It is that of an earlier fit.
        self._publish(self._adopt(X, result.made))
        self.margin_, self.bound_ = squeeze(result.margin), squeeze(result.bound)
        self.__dict__.pop("history_", None)  # It is that of an earlier fit.
        if result.history is not None:
            self.history_ = result.history[0] if len(result.history) == 1 else result.history
        return result, int(result.epochs.max()), result.converged

    def _continue(self, X: Points, Y: np.ndarray, first: bool) -> None:
        """One visit of each point, from the f that is there."""
        start = None
        if not first:
            anchors, made = self.expansion_.anchors, self._mistakes
            start = Expansion(self.kernel_, anchors, made.coef(len(self.expansion_)), made.intercept())(X)
        gram = Gram(self.kernel_, X, cache=0)
        self._largest = max(self._largest, float(gram.diag().max()))
        result = perceptron(
            gram,
            Y,
            fit_intercept=self.fit_intercept,
            boundary=self.boundary,
            max_epochs=1,
            start=start,
            prefetch=self._prefetch(),
            keep=self._keep_order(),
        )
        self._publish(self._adopt(X, result.made, first))

    def _prefetch(self) -> int:
        """Rows to compute together; where Python is called for every value, none in vain."""
        return 1 if any(getattr(part, "is_slow", False) for part in self.kernel_.parts()) else 64

    # --- with a budget -----------------------------------------------------------------------------------

    def _run_on_budget(
        self, X: Points, gram: Gram, Y: np.ndarray, options: dict[str, Any]
    ) -> tuple[Any, int, np.ndarray]:
        self._budget = self._new_budget(Y.shape[1])
        result = budget_perceptron(gram, Y, self._budget, **options)
        self._publish_stored(X)
        self.margin_ = squeeze(result.margin)
        self.bound_ = squeeze(np.full_like(result.margin, np.nan))
        self.__dict__.pop("history_", None)
        converged = np.full(Y.shape[1], result.stopped == Stop.CONVERGED)
        return result, len(result.mistakes_per_epoch), converged

    def _continue_on_budget(self, X: Points, Y: np.ndarray, first: bool) -> None:
        if first:
            self._budget = self._new_budget(Y.shape[1])
        begin = len(self._budget.source)
        if begin:
            self._budget.source = np.arange(begin)
            X = data.stack(self.expansion_.anchors, X)
            Y = np.concatenate([np.zeros((begin, Y.shape[1])), Y])
        gram = Gram(self.kernel_, X, cache=0)
        self._largest = max(self._largest, float(gram.diag().max()))
        budget_perceptron(gram, Y, self._budget, begin=begin, max_epochs=1)
        self._publish_stored(X)

    def _new_budget(self, functions: int) -> Budget:
        assert self.budget is not None
        return Budget(
            int(self.budget),
            functions,
            self.budget_strategy,
            fit_intercept=self.fit_intercept,
            boundary=self.boundary,
            residual=float(self.residual),
        )

    def _publish_stored(self, X: Points) -> None:
        """What users see of the stored points, which are some of X."""
        model = self._budget
        source, coef = model.source, model.coef.copy()
        if not len(source):  # no mistake yet: one point of weight zero
            source, coef = np.array([0]), np.zeros((1, coef.shape[1]))
        self._is_voted = False
        self._set_expansion(data.take(X, source), coef, model.intercept)
        self.mistakes_ = squeeze(model.mistakes.copy())
        self.__dict__.pop("mistake_indices_", None)
