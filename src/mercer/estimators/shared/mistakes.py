r"""What the perceptrons share: a list of mistakes, and the function that is read from it."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mercer.data import points as data
from mercer.data.types import Points, Seed
from mercer.errors import InputError, MemoryBudgetError
from mercer.estimators.shared.classes import signs
from mercer.estimators.shared.parameters import flag, learner
from mercer.estimators.shared.stream import StreamMixin
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.parameters import choice, whole
from mercer.report import Journal
from mercer.runtime.config import memory_budget
from mercer.runtime.threads import by_our_threads
from mercer.solvers.perceptron.mistakes import BOUNDARIES, Mistakes
from mercer.solvers.perceptron.proof import MistakeProof, follow
from mercer.solvers.result import Stop

_ORDERED = 2**18  # mistakes of which the order is kept where nothing depends on it, at most
_BYTES = 48  # a mistake takes them: in the list, in its copies and in ``mistake_indices_``
_ENTRIES = 2**21  # kernel values that are looked at together when votes are counted


@learner
class MistakeParameters:
    """The parameters that both perceptrons have."""

    _: KW_ONLY
    fit_intercept: bool = flag(True)
    boundary: str = choice("mistake", BOUNDARIES)
    prediction: str = choice("last", ("last", "averaged", "voted"))
    max_iter: int = whole(100)
    shuffle: bool = flag(False)
    random_state: Seed = None


class MistakesMixin(MistakeParameters, StreamMixin):
    """What perceptrons do with the list of their mistakes."""

    kernel_: Kernel

    #: the mistakes, their points counted by their place in ``expansion_.anchors``
    _mistakes: Mistakes
    #: (stored,) which training points these are, counted from the first that came
    _stored: np.ndarray
    #: the points that came so far
    _seen: int
    #: maxᵢ k(xᵢ, xᵢ) of the points that came so far
    _largest: float
    #: maxᵢ k(xᵢ, xᵢ) / margin², of the function that was found
    bound_: Any
    #: how the fit asked to predict: set_params is about the next one
    _is_voted: bool

    def _signs(self, codes: np.ndarray) -> np.ndarray:  # (n, functions)
        """±1 for each function that is learned."""
        return signs(codes, len(self.classes_)).reshape(len(codes), -1)

    def _seed(self) -> int | None:
        """The seed of the orders of visit; None for 0 … n-1."""
        return int(check_random_state(self.random_state).randint(2**31 - 1)) if self.shuffle else None

    def _keep_order(self) -> int:
        """How many mistakes are kept in order; the votes may take more memory for them than what is shown."""
        budget = memory_budget()
        if self.prediction == "voted":
            return max(1, budget // (4 * _BYTES))
        return max(1, min(_ORDERED, budget // (16 * _BYTES)))

    def _mistake_bytes(self, n: int, functions: int) -> int:
        """What the mistakes on n points take at most: sums for each, in copies, and the list."""
        visits = int(self.max_iter) * n * functions
        return 6 * 8 * n * functions + _BYTES * min(visits, self._keep_order())

    def _require_order(self, made: Mistakes) -> None:
        """The votes are of all functions on the way."""
        if self.prediction != "voted" or made.is_ordered:
            return
        if int(made.counts().sum()) > self._keep_order():
            raise MemoryBudgetError(
                f"prediction='voted' needs every mistake in order, got {int(made.counts().sum()):,}, more "
                "than fit a quarter of the memory budget: use prediction='averaged' or a smaller max_iter, "
                "or raise the budget with mercer.config(memory=…)"
            )
        raise InputError(
            "prediction='voted' needs every mistake in order, and the training so far, with another "
            "prediction, did not keep so many: fit again"
        )

    def _adopt(self, X: Points, made: Mistakes, first: bool = True) -> Any:
        """Keep the mistakes made on X, after those that are kept unless they are the first; the anchors."""
        stored = made.stored()
        if not first:
            anchors = self.expansion_.anchors
            both = self._mistakes.then(made.among(stored), data.n_points(anchors), self._keep_order())
            self._require_order(both)
            self._mistakes = both
            self._stored = np.append(self._stored, stored + self._seen)
            return data.stack(anchors, data.take(X, stored)) if stored.size else anchors
        self._require_order(made)
        stored = stored if stored.size else np.array([0])  # no mistake yet: one point of weight zero
        self._stored, self._mistakes, self._seen = stored, made.among(stored), 0
        return data.take(X, stored)

    def _publish(self, anchors: Points) -> np.ndarray:  # (anchors, functions)
        """What users see of the list of mistakes; α, of the last f or the averaged one."""
        made, averaged = self._mistakes, self.prediction == "averaged"
        self._is_voted = self.prediction == "voted"
        coef = made.coef(data.n_points(anchors), averaged)
        self._set_expansion(anchors, coef, made.intercept(averaged))
        self.mistakes_ = squeeze(made.counts())
        self.__dict__.pop("mistake_indices_", None)
        if made.is_ordered:
            points = self._stored.astype(np.int32)
            indices = [points[made.index[made.function == c]] for c in range(coef.shape[1])]
            self.mistake_indices_ = indices[0] if len(indices) == 1 else indices
        return coef

    def _set_expansion(self, anchors: Points, coef: np.ndarray, b: np.ndarray) -> None:
        one = coef.shape[1] == 1
        self.expansion_ = Expansion(self.kernel_, anchors, coef[:, 0] if one else coef, b[0] if one else b)

    @by_our_threads
    def _votes(self, X: Points) -> np.ndarray:  # (n,) or (n, functions)
        """The votes on points X of all functions on the way to f, a few points at a time."""
        made, f = self._mistakes, self.expansion_
        gram = Gram(f.kernel, X, f.anchors, cache=0)
        step = max(1, _ENTRIES // (len(f) + int(made.counts().max())))
        n = gram.shape[0]
        out = np.concatenate([made.votes(gram.rows(slice(i, i + step))) for i in range(0, n, step)])
        return out[:, 0] if out.shape[1] == 1 else out

    def _proof(self, g: Any, square: Any, least: Any) -> MistakeProof:
        """The convergence proof for g, by its values at the anchors, ‖g‖² and minᵢ yᵢ g(xᵢ); or for f."""
        made = None if "_budget" in vars(self) else self._mistakes
        if made is None or not made.is_ordered or len(made.visits) > 1:
            raise InputError(
                "a proof follows the mistakes of two classes one by one, and this model has not kept them: "
                "fit on two classes, without a budget, and in fewer passes"
            )
        K = Gram(self.kernel_, self.expansion_.anchors, cache=0).dense() + float(made.has_intercept)
        largest = self._largest + made.has_intercept
        if g is None:
            if not self.converged_:
                raise InputError(
                    "the function that was found does not separate the classes, and proves nothing: pass one "
                    "that does, or fit until it converges"
                )
            g = K @ made.coef(len(K))[:, 0]
            square = float(made.coef(len(K))[:, 0] @ g)
            least = np.sqrt(square * largest / self.bound_)  # ``bound_`` is ‖f‖² R² / least²
        norm = float(np.sqrt(square))
        radius = float(np.sqrt(largest))
        return follow(K, made.index, made.sign, g, norm, float(least) / norm, radius)

    def _end_of_batch(self, n: int, functions: int) -> None:
        """What is known after a batch of a stream, which nobody keeps."""
        self._seen += n
        self.n_iter_, self.converged_ = 1, False
        unknown = np.full(functions, np.nan)
        self.margin_, self.bound_ = squeeze(unknown), squeeze(unknown)

    def _end_of_fit(
        self, journal: Journal, result: Any, epochs: int, converged: np.ndarray, remedy: str
    ) -> None:
        """Say whether it came to an end, and where not, what helps."""
        self.n_iter_, self.converged_ = epochs, bool(converged.all())
        per_epoch = result.mistakes_per_epoch
        last = int(per_epoch[-1].sum()) if len(per_epoch) else 0
        if result.stopped != Stop.MAX_ITER:
            self._warn_if_stopped(journal, result.stopped, epochs, f"with {last} mistakes in the last")
            return
        failed = np.flatnonzero(~converged)
        what = "the two classes"
        if len(converged) > 1:
            labels = ", ".join(map(repr, self.classes_[failed[:5]].tolist())) + ", …" * (len(failed) > 5)
            what = f"{len(failed)} of {len(converged)} classes ({labels})"
        journal.warn(
            f"the perceptron did not separate {what} in max_iter={self.max_iter} passes, and made {last} "
            f"mistakes in the last: {remedy}; noisy labels are never separated, and need a learner that "
            "tolerates mistakes",
            ConvergenceWarning,
        )


def squeeze(values: np.ndarray) -> Any:
    """One number where there is one function."""
    return values.item() if len(values) == 1 else values
