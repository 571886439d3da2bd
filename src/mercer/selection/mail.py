r"""A filter for mails: a support vector machine on a sum of kernels, one for each aspect of a message.

    k(x, x') = Σₐ wₐ kₐ(x, x'),     f(x) = Σᵢ αᵢ k(xᵢ, x) + b = Σₐ Σₜ cₐₜ φₐₜ(x) + b

kₐ is the cosine of two bags (`mercer.features.email`), φₐ the row of a bag (`…email.vocabulary`). The
weights wₐ are learned by gradient steps on errors left out (`mercer.selection.mixture`), C (by likelihood)
and the threshold on f by folds of the training messages, those with the same words in one fold. Since every
kₐ is an inner product of rows, f is a sum over the elements of the message, and that is its explanation.

Every message is alike to itself by elements that no other training message has. That tells nothing about
new ones, and makes any labels separable; so the machine is trained without those elements, and f has them
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.utils.validation import check_is_fitted

from mercer.data.labels import require_labels
from mercer.data.scalars import is_number
from mercer.data.types import Targets
from mercer.errors import InputError, InputTypeError
from mercer.estimators.svc import SVC
from mercer.features.email import ASPECTS, Mail, read
from mercer.features.email.vocabulary import Vocabulary
from mercer.gram import Gram
from mercer.kernels.objects import Precomputed
from mercer.kernels.vectors.dotproduct import Linear
from mercer.runtime.seeds import seed_of
from mercer.runtime.threads import single_threaded_blas
from mercer.selection.mixture import learn_weights

#: The weights of aspects are learned on so many messages together, so many times.
_BLOCK_SIZE, _MOST_BLOCKS = 1500, 2
_PULL_TO_PRIOR = 10.0  # Learning begins with the weights below, and stays near them where messages are few.
_PRIOR = {
    "words": 0.33,
    "pairs": 0.07,
    "time": 0.02,
    "path": 0.16,
    "addresses": 0.045,
    "sender": 0.29,
    "encoding": 0.006,
    "links": 0.07,
}
#: C and the threshold are chosen on at most so many messages, at least so many of them of the rarer kind.
_MOST_CHOSEN, _LEAST_RARE = 8000, 1000
#: The threshold is told by the largest values of hams: this share of them, where these are at least so many.
_TAIL_SHARE, _LEAST_IN_TAIL = 0.01, 20
_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Explanation:
    """Why a message was taken for what it was: f - threshold as a sum.

    Positive numbers speak for spam. ``print`` it, or look at ``aspects`` and ``elements``.
    """

    label: Any
    probability: float  # the probability that it is spam
    value: float  # f - threshold, the sum of ``aspects`` and ``rest``
    rest: float  # b - threshold
    aspects: dict[str, float]  # what each aspect adds to f
    elements: list[tuple[str, str, float]]  # aspect, element, what it adds to f; the strongest come first

    @property
    def is_spam(self) -> bool:
        """Whether it was taken for spam, however that is labelled."""
        return self.value > 0

    def __str__(self) -> str:
        lines = [
            f"{self.label}: spam with probability {self.probability:.2%}, f - threshold = {self.value:+.2f}"
        ]
        lines += [
            f"  {value:+.2f}  {name}"
            for name, value in sorted(self.aspects.items(), key=lambda a: -abs(a[1]))
        ]
        lines.append(f"  {self.rest:+.2f}  (none of them)")
        lines += [f"    {value:+.3f}  {aspect}: {element}" for aspect, element, value in self.elements[:12]]
        return "\n".join(lines)


class MailClassifier(ClassifierMixin, BaseEstimator):
    r"""Spam or ham, from raw messages.

    The kernel is Σₐ wₐ kₐ over the aspects of a message, kₐ the cosine of two bags; see the module.

    Parameters
    ----------
    aspects : the names of those that are looked at; by default all eight of `mercer.features.email.ASPECTS`
    weights : "learn", "equal", or a dict of numbers by aspect
    C : weight of the errors, or "auto": chosen by folds
    ham : the label of wanted mail; by default "ham" where that is one of the two, else the first of them
    ham_loss : the share of hams that may be lost; the threshold on f is where so many would be, by the values
        of messages left out, but never below zero
    folds : number of folds for choosing; messages with the same words are in one fold
    random_state : seed of the folds and of the messages that weights are learned on; None is 0

    Attributes
    ----------
    classes_ : the two labels, sorted
    weights_ : the weights of the aspects, by name, which sum to 1
    C_, threshold_ : what was chosen; a message is spam where f(x) > threshold_
    left_out_ : (n,) f of the training messages, each by a machine that did not see its fold; NaN beyond 8,000
    curve_ : slope and offset of the logistic curve of probabilities
    intercept_, coef_ : b, and c by aspect, one number for each known element
    vocabularies_ : the known elements, by aspect
    support_, dual_coef_ : positions of the support vectors in the training messages, and their αᵢ

    Examples
    --------
    >>> names = "ann bob cat dan eve fay gus hal ida jim".split()
    >>> spam = [f"Subject: dear {name}\n\nbuy cheap pills now, {name}" for name in names]
    >>> ham = [f"Subject: lunch\n\nshall {name} and I meet you at noon?" for name in names]
    >>> model = MailClassifier().fit(spam + ham, ["spam"] * 10 + ["ham"] * 10)
    >>> model.predict(["Subject: hello\n\nbuy cheap pills", "Subject: lunch\n\nmeet you at noon?"])
    array(['spam', 'ham'], dtype='<U4')
    """

    def __init__(
        self,
        *,
        aspects: Sequence[str] = ASPECTS,
        weights: Any = "learn",
        C: Any = "auto",
        ham: Any = None,
        ham_loss: float = 0.003,
        folds: int = 5,
        random_state: int = 0,
    ) -> None:
        self.aspects = aspects
        self.weights = weights
        self.C = C
        self.ham = ham
        self.ham_loss = ham_loss
        self.folds = folds
        self.random_state = random_state

    # --- learning --------------------------------------------------------------------------------------

    def fit(self, X: Iterable[Any], y: Targets) -> Self:
        """Learn from messages (see `mercer.features.email.read`) and their labels, of two kinds."""
        self._validate_params()
        mails = _read(X)
        signs = self._signs(np.asarray(y), len(mails))
        self.vocabularies_ = {a: Vocabulary.of([getattr(mail, a) for mail in mails]) for a in self.aspects}
        rows = self._rows(mails)
        shared = {a: row[:, self.vocabularies_[a].is_shared] for a, row in rows.items()}
        rng = np.random.default_rng(seed_of(self.random_state))
        groups = _same(mails)
        self.weights_ = self._weights(shared, signs, groups, rng)
        Z = self._scaled(shared)
        K = self._choose(Z, signs, groups, rng)
        if len(K) == len(signs):
            model = SVC(kernel=Precomputed(K), C=self.C_).fit(np.arange(len(K)), signs)
        else:
            model = SVC(kernel=Linear(), C=self.C_).fit(Z, signs)
        self.support_, self.dual_coef_ = model.support_, sparse.csr_array(model.dual_coef_).toarray()[0]
        self.intercept_ = float(model.intercept_[0])
        self.coef_: dict[str, np.ndarray] = {}
        for name, row in rows.items():
            self._set_coef(name, self.weights_[name] * (row[self.support_].T @ self.dual_coef_))
        return self

    def _validate_params(self) -> None:
        given = list(self.aspects) if isinstance(self.aspects, list | tuple) else []
        if not given or any(given.count(name) > 1 or name not in ASPECTS for name in given):
            raise InputError(f"aspects must be a list of some of {', '.join(ASPECTS)}, got {self.aspects!r}")
        if not (is_number(self.ham_loss) and 0 <= self.ham_loss <= 1):
            raise InputError(
                f"ham_loss must be between 0 and 1, got {self.ham_loss!r}: pass 0.01 for one ham of a hundred"
            )
        is_auto = isinstance(self.C, str) and self.C == "auto"
        if not is_auto and not (is_number(self.C) and 0 < self.C < np.inf):
            raise InputError(f"C must be 'auto' or a positive number, got {self.C!r}")
        if not (isinstance(self.folds, int | np.integer) and self.folds >= 2):
            raise InputError(f"folds must be a whole number of at least 2, got {self.folds!r}")
        self._check_weights(given)

    def _check_weights(self, aspects: list[str]) -> None:
        weights = self.weights
        if isinstance(weights, str) and weights in ("learn", "equal"):
            return
        if not isinstance(weights, dict):
            raise InputError(f"weights must be 'learn', 'equal' or a dict by aspect, got {weights!r}")
        if unknown := [name for name in weights if name not in aspects]:
            raise InputError(f"weights has {unknown[0]!r}, which is none of the aspects {', '.join(aspects)}")
        numbers = list(weights.values())
        if not all(is_number(w) and 0 <= w < np.inf for w in numbers) or not sum(numbers) > 0:
            raise InputError(f"weights must be zero or more and not all zero, got {weights!r}")

    def _signs(self, y: np.ndarray, n: int) -> np.ndarray:  # (n,) ±1
        """+1 for spam; sets ``classes_``."""
        if y.shape != (n,):
            raise InputError(f"y must hold one label for each of {n} messages, got shape {y.shape}")
        require_labels(y)
        try:
            self.classes_ = np.unique(y)
        except TypeError:
            kinds = ", ".join(sorted({type(label).__name__ for label in y.tolist()}))
            raise InputTypeError(f"y must hold labels of one type, got {kinds}: pass texts") from None
        if len(self.classes_) != 2:
            some = ", ".join(repr(label) for label in self.classes_[:5].tolist())
            raise InputError(f"y must hold two labels, spam and ham, got {len(self.classes_)}: {some}")
        labels = self.classes_.tolist()
        ham = self.ham if self.ham is not None else "ham" if "ham" in labels else labels[0]
        if np.ndim(ham) or ham not in labels:
            raise InputError(f"ham must be one of the labels {labels!r}, got {ham!r}")
        self._ham_is_first = bool(self.classes_[0] == ham)
        signs = np.where(y == ham, -1.0, 1.0)
        if min(np.count_nonzero(signs > 0), np.count_nonzero(signs < 0)) < 2:
            raise InputError("there must be at least two spams and two hams: add messages of the rarer kind")
        return signs

    def _weights(
        self,
        rows: dict[str, sparse.csr_array],
        signs: np.ndarray,
        groups: np.ndarray,
        rng: np.random.Generator,
    ) -> dict[str, float]:
        """The weights of the aspects, with a sum of 1."""
        weights = dict.fromkeys(rows, 1.0)
        if isinstance(self.weights, dict):
            weights = {name: self.weights.get(name, 0.0) for name in rows}
        elif self.weights == "learn" and len(rows) > 1:
            once = rng.permutation(np.unique(groups, return_index=True)[1])[: _BLOCK_SIZE * _MOST_BLOCKS]
            pieces = np.array_split(once, -(-len(once) // _BLOCK_SIZE))
            with single_threaded_blas():
                blocks = [([_products(row[p]) for row in rows.values()], signs[p]) for p in pieces]
                prior = np.array([_PRIOR[name] for name in rows])
                weights = dict(
                    zip(rows, learn_weights(blocks, prior, pull=_PULL_TO_PRIOR).tolist(), strict=True)
                )
        largest = max(weights.values())  # The sum of the weights as they are may overflow.
        total = sum(weight / largest for weight in weights.values())
        return {name: float(weight / largest / total) for name, weight in weights.items()}

    def _choose(
        self, Z: sparse.csr_array, signs: np.ndarray, groups: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Sets C, threshold and curve of probabilities by values of f at messages left out; returns K."""
        self.left_out_ = np.full(len(signs), np.nan)
        some, stands_for = _sample(signs, rng)
        Z, signs = Z[some], signs[some]
        # Each group is of one kind, so that every fold leaves some of both.
        groups = 2 * groups[some] + (signs > 0)
        fewest = min(len(np.unique(groups[signs == sign])) for sign in (-1, 1))
        if fewest < 2:
            raise InputError("all spams, or all hams, have the same words: add messages of that kind")
        K = _products(Z)
        kernel = Precomputed(K)
        penalties = _PENALTIES if self.C == "auto" else (float(self.C),)
        values = np.empty((len(penalties), len(some)))
        count = min(int(self.folds), fewest)
        fold = _folds(signs, groups, count, np.random.default_rng(seed_of(self.random_state)))
        for train, test in ((np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(count)):
            for i, model in enumerate(SVC(kernel=kernel).path(train, signs[train], penalties)):
                values[i, test] = model.decision_function(test)
        is_ham = signs < 0
        curves = [LogisticRegression(C=1e3).fit(v[:, None], signs, stands_for) for v in values]
        losses = [
            log_loss(is_ham, curve.predict_proba(v[:, None])[:, 0], sample_weight=stands_for)
            for curve, v in zip(curves, values, strict=True)
        ]
        best = int(np.argmin(losses))
        self.C_, self.left_out_[some] = penalties[best], values[best]
        self.threshold_ = max(0.0, _upper_end(values[best][is_ham], self.ham_loss))
        self.curve_ = float(curves[best].coef_[0, 0]), float(curves[best].intercept_[0])
        return K

    # --- what was learned -----------------------------------------------------------------------------------

    def decision_function(self, X: Iterable[Any]) -> np.ndarray:  # (m,)
        """f(x) - threshold: positive for the second of ``classes_``."""
        check_is_fitted(self)
        value = self._values(X) - self.threshold_
        return value if self._ham_is_first else -value

    def predict(self, X: Iterable[Any]) -> np.ndarray:  # (m,)
        """The label of every message."""
        is_second = self.decision_function(X) > 0
        return self.classes_[is_second.astype(int)]

    def predict_proba(self, X: Iterable[Any]) -> np.ndarray:  # (m, 2)
        """P(label | message), in the order of ``classes_``.

        A logistic curve through the values left out. A message is called spam where that is much more
        probable than ham: the larger of the two probabilities need not be that of ``predict``.
        """
        check_is_fitted(self)
        spam = self._probability(self._values(X))
        return np.column_stack([1 - spam, spam] if self._ham_is_first else [spam, 1 - spam])

    def explain(self, message: Any) -> Explanation:
        """Which aspects and elements of a message speak for spam (positive) and for ham (negative)."""
        check_is_fitted(self)
        [mail] = _read([message])
        aspects, elements = {}, []
        for name, row in self._rows([mail]).items():
            terms = dict(zip(row.indices, (row.data * self.coef_[name][row.indices]).tolist(), strict=True))
            columns = self.vocabularies_[name].columns
            of_it = [(name, x, terms[columns[x]]) for x in getattr(mail, name) if x in columns]
            aspects[name] = float(sum(terms.values()))
            elements += [element for element in of_it if element[2]]
        elements.sort(key=lambda e: -abs(e[2]))
        rest = self.intercept_ - self.threshold_
        value = rest + sum(aspects.values())
        spam = self._probability(np.array(value + self.threshold_))
        is_second = (value > 0) == self._ham_is_first
        label = self.classes_.tolist()[int(is_second)]
        return Explanation(label, float(spam), value, rest, aspects, elements)

    def _probability(self, values: np.ndarray) -> np.ndarray:
        """The probability of spam where f has these values."""
        slope, offset = self.curve_
        return np.asarray(expit(slope * values + offset))

    def _values(self, X: Iterable[Any]) -> np.ndarray:
        check_is_fitted(self)
        rows = self._rows(_read(X))
        return self.intercept_ + sum(row @ self.coef_[name] for name, row in rows.items())

    def _rows(self, mails: list[Mail]) -> dict[str, sparse.csr_array]:
        return {
            a: known.rows([getattr(mail, a) for mail in mails]) for a, known in self.vocabularies_.items()
        }

    def _scaled(self, rows: dict[str, sparse.csr_array]) -> sparse.csr_array:
        """Rows whose inner products are those of the sum of kernels."""
        return sparse.csr_array(sparse.hstack([np.sqrt(self.weights_[a]) * row for a, row in rows.items()]))

    def _set_coef(self, name: str, coef: np.ndarray) -> None:
        """Keeps what is needed of an aspect: elements with a coefficient, or a frequency."""
        needed = (coef != 0) | self.vocabularies_[name].is_shared
        self.vocabularies_[name] = self.vocabularies_[name].keep(needed)
        self.coef_[name] = coef[needed]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.string = tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _read(X: Iterable[Any]) -> list[Mail]:
    is_one = isinstance(X, str | bytes | bytearray | memoryview | Mail | Mapping) or hasattr(X, "as_bytes")
    if is_one or not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
        raise InputTypeError(
            f"X must be a list of messages, got a {type(X).__name__}: pass [message], or "
            "mercer.features.email.messages(path) for those of a file or folder"
        )
    return [read(message) for message in X]


def _same(mails: list[Mail]) -> np.ndarray:  # (n,)
    """A number for each message, the same for those that have the same words; one without words is alone."""
    numbers: dict[Any, int] = {}
    keys = ((frozenset(mail.words.items()) or i) for i, mail in enumerate(mails))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _upper_end(values: np.ndarray, share: float) -> float:
    """The value that a share of the values to come will exceed.

    The largest hundredth of them, m values above u, is taken for exponential, with mean u + s: the share is
    above u + s ln(0.01/share). All m tell where the end is, and not the two or three around it. Where they
    are few, or the share is larger, it is a quantile.

    >>> _upper_end(np.arange(101.0), 0.25)
    75.0
    >>> end = _upper_end(np.random.default_rng(0).exponential(size=10**6), 0.001)
    >>> bool(abs(end - np.log(1000)) < 0.08)  # three deviations: one is √(1 + 2.3²)/√m, m = 10⁴
    True
    """
    m = int(_TAIL_SHARE * len(values))
    if m < _LEAST_IN_TAIL or not 0 < share < _TAIL_SHARE:
        return float(np.quantile(values, 1 - share))
    largest = np.sort(values)[-m - 1 :]
    return float(largest[0] + (largest[1:] - largest[0]).mean() * np.log(_TAIL_SHARE / share))


def _folds(
    signs: np.ndarray, groups: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:  # (messages,)
    """The fold of each message: whole groups, which are of one kind, dealt out by size, spams and hams apart.

    Where there are ``count`` ≥ 2 groups or more of each, every fold has some of both and leaves some of both.
    """
    fold = np.empty(len(signs), np.int64)
    for sign in (-1, 1):
        _, group, sizes = np.unique(groups[signs == sign], return_inverse=True, return_counts=True)
        order = rng.permutation(len(sizes))
        order = order[np.argsort(-sizes[order], kind="stable")]  # The largest groups are dealt first.
        dealt = np.empty(len(sizes), np.int64)
        dealt[order] = np.arange(len(sizes)) % count
        fold[signs == sign] = dealt[group]
    return fold


def _sample(signs: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the messages to choose on, and how many messages each of them stands for.

    Where there are too many, as many of either kind as its share, but of a rare kind not few.
    """
    if len(signs) <= _MOST_CHOSEN:
        return np.arange(len(signs)), np.ones(len(signs))
    rare, common = sorted((np.flatnonzero(signs == sign) for sign in (-1, 1)), key=len)
    few = max(_MOST_CHOSEN * len(rare) // len(signs), min(len(rare), _LEAST_RARE))
    stands_for = np.empty(len(signs))
    some = []
    for kind, count in ((rare, few), (common, _MOST_CHOSEN - few)):
        some.append(rng.permutation(kind)[:count])
        stands_for[kind] = len(kind) / count
    chosen = np.sort(np.concatenate(some))
    return chosen, stands_for[chosen]


def _products(rows: sparse.csr_array) -> np.ndarray:
    """The Gram matrix of sparse rows."""
    if not rows.shape[1]:
        return np.zeros((rows.shape[0], rows.shape[0]))
    return np.asarray(Gram(Linear(), rows, cache=0).dense(), dtype=np.float64)
