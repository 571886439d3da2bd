r"""What classifiers share: labels → codes, weights, problems of two classes; values of f → labels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from mercer.data.types import ClassWeight, Points
from mercer.errors import InputError, InputTypeError
from mercer.estimators.shared.sets import PredictionSetMixin
from mercer.expansion import Expansion


class KernelClassifierMixin(PredictionSetMixin, ClassifierMixin):
    """For classifiers that decide by f = ``expansion_``: its sign for two classes, else its largest column.

    ``classes_`` holds the labels, sorted; a class's *code* is its position there.
    """

    classes_: np.ndarray
    class_weight: ClassWeight
    class_weight_: np.ndarray
    expansion_: Expansion

    def _encode(self, y: np.ndarray) -> np.ndarray:  # (n,)
        """The code of each label; sets ``classes_``."""
        check_classification_targets(y)
        try:
            self.classes_, codes = np.unique(y, return_inverse=True)
        except TypeError:
            kinds = ", ".join(sorted({type(label).__name__ for label in y}))
            raise InputTypeError(
                f"y must hold labels of one kind, got {kinds}: write them all as text, or as numbers"
            ) from None
        if len(self.classes_) < 2:
            raise InputError(
                f"y must hold at least two classes, got one class, {self.classes_.tolist()[0]!r}: "
                "add points of another, or check how the labels were made"
            )
        return codes

    def _with_class_weight(self, weight: np.ndarray, codes: np.ndarray) -> np.ndarray:  # (n,)
        """The weights of the points, times those of their classes (``class_weight``, as in scikit-learn)."""
        given = getattr(self, "class_weight", None)
        if given is None:
            return weight
        if not (isinstance(given, dict) or (isinstance(given, str) and given == "balanced")):
            raise InputTypeError(
                f'class_weight must be a dict or "balanced", got {given!r}: pass {{label: weight, …}} or None'
            )
        if given == "balanced":  # weights count: a point of weight 2 is as good as two points
            share = np.bincount(codes, weight, minlength=len(self.classes_))
            per_class = np.divide(weight.sum(), len(self.classes_) * share, where=share > 0, out=share.copy())
        else:
            per_class = compute_class_weight(given, classes=self.classes_, y=self.classes_[codes])
            if not (np.isfinite(per_class).all() and (per_class >= 0).all()):
                raise InputError(
                    f"class_weight must be finite and zero or more, got {given!r}: pass a weight per label"
                )
        return weight * per_class[codes]

    def _weigh(self, weight: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Weights of points times those of their classes; sets ``class_weight_``."""
        weighted = self._with_class_weight(weight, codes)
        if isinstance(self.class_weight, str):  # These are the factors that "balanced" came to.
            before, after = (np.bincount(codes, w, minlength=len(self.classes_)) for w in (weight, weighted))
            self.class_weight_ = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
        else:
            self.class_weight_ = compute_class_weight(
                self.class_weight, classes=self.classes_, y=self.classes_[codes]
            )
        return weighted

    def decision_function(self, X: Points) -> np.ndarray:  # (n,) or (n, classes)
        """f(x) for every row of X; for several classes one column each."""
        X = self._validate_for_values(X)
        return self.expansion_.values(X)

    def predict(self, X: Points) -> np.ndarray:  # (n,)
        """The label of every row of X."""
        codes = decide(self.decision_function(X))
        return self.classes_[codes]


def decide(values: np.ndarray) -> np.ndarray:  # (n,)
    """The code of the class that values of f, (n,) or (n, classes), stand for."""
    return (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)


def signs(codes: np.ndarray, n_classes: int) -> np.ndarray:  # (n,) or (n, classes)
    """±1: for two classes +1 for the second; for more, one column each against the rest."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


class Problems:
    """Which points a problem of two classes has, and their signs.

    Two classes are one problem, +1 for the second. More are one for each pair, +1 for the first, and their
    points come class by class; or one for each class, +1 against the rest.
    """

    def __init__(self, codes: np.ndarray, classes: int, by_pairs: bool) -> None:
        self.codes = codes
        self.classes = classes
        #: pairs of classes
        self.segments = list(combinations(range(classes), 2)) if by_pairs and classes > 2 else []
        #: where segments of the points begin and end
        self.bounds = np.array([0, len(codes)])
        if self.segments:
            self.bounds = np.searchsorted(codes, np.arange(classes + 1))

    def __len__(self) -> int:
        return len(self.segments) or (1 if self.classes == 2 else self.classes)

    @property
    def variables(self) -> int:
        return len(self.codes) * (self.classes - 1 if self.segments else len(self))

    def segment(self, p: int) -> tuple[int, ...]:
        return self.segments[p] if self.segments else (0,)

    def points(self, p: int) -> np.ndarray:
        b = self.bounds
        return np.concatenate([np.arange(b[s], b[s + 1]) for s in self.segment(p)])

    def signs(self, p: int) -> np.ndarray:
        if self.segments:
            return np.repeat([1.0, -1.0], np.diff(self.bounds)[list(self.segments[p])])
        return np.where(self.codes == (1 if self.classes == 2 else p), 1.0, -1.0)
