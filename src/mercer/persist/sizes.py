r"""Whether the arrays of a fitted model are of one model: of as many classes, functions, points and columns.

A model with n anchors, F functions Σᵢ αᵢ k(xᵢ, ·) + b, C classes and d columns has attributes of these sizes,
by the class that makes them. Sizes of one letter in two places are equal, and what predictions are computed
from is finite:

    "SF"     an array of S rows and F columns
    "S(F)"   the same, where f is one function (n,) only S numbers
    "S<N"    S whole numbers, each one of 0 … N-1
    "*"      an array of any size
    "S~"     S numbers that may be NaN or infinite
    "S pts"  S points, vectors of d columns or objects

A dot leads into a dict or an object. A test asks for every array of every estimator whether it is here.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.data import points as data
from mercer.data.types import Model
from mercer.estimators.shared.origin import is_affine
from mercer.expansion import Expansion
from mercer.solvers.landmarks.posterior import MOST_FEATURES

#: a record of the search or of the training, which may have any length: nothing is computed from it
_RECORD = "record"
# fmt: off
_SHAPES: dict[str, dict[str, str]] = {
    "BaseEstimator": {"feature_names_in_": "d names"},
    "SupportMixin": {
        "support_": "S<N", "support_vectors_": "S pts", "dual_coef_": "DS", "intercept_": "F", "_centre": "d",
        "margin_": "(F)~", "dual_gap_": "(F)~", "kkt_violation_": "(F)~", "offset_": "F",
        "_trained_on": "N pts",
    },
    "SupportClassifier": {"n_support_": "C", "class_weight_": "C", "slopes_": "F2", "n_iter_": "F"},
    "_SupportRegressor": {"n_support_": "1"},
    "OneClassSVM": {"n_support_": "1"},
    "UncertainRegressorMixin": {
        "_left_out.errors": "NF~", "_left_out.coef": "nF", "_left_out.alphas": "F", "_left_out.weight": "n",
        "_left_out.points": "n pts", "_left_out.origin": "d", "_sketch.alphas": "F", "_sketch.noise": "F~",
        "_sketch.scores": "QF", "_sketch.weight": "Q", "_sketch.normal": "P", "_sketch.centre": "d",
        "_sketch.order": "n<G",
    },
    "KernelRidge": {"_dual": "N(F)"},
    "TableModel": {"left_out_errors_": "E"},
    "KernelRidgeCV": {
        "loo_residuals_": "N(F)~", "alpha_": "F or number", "path_.alphas": "A", "path_.scores": "KAF~",
        "path_.kernels": "K items",
    },
    "KernelFisherDiscriminant": {
        "priors_": "C", "means_": "CF", "covariance_": "FF", "_precision": "FF", "ratios_": "F",
        "explained_variance_ratio_": "F", "alphas_": "A", "loo_errors_": "A~",
    },
    "KernelPCA": {
        "eigenvalues_": "F", "eigenvectors_": "nF", "residuals_": "F~", "explained_variance_": "F",
        "explained_variance_ratio_": "F", "_weight": "n", "scores_fit_": "RF", "dual_coef_": "Rd",
        "_mean_coef": "n", "_centroid": "d",
    },
    "LandmarkFeatures": {"components_": "n pts", "component_indices_": "n", "expansion_.coef": "nn"},
    "ParzenClassifier": {
        "priors_": "C", "squared_norms_": "C~", "_total": "C", "_square": "C", "_codes": "n<C",
        "_weight": "n", "_anchors": "n pts",
    },
    "MistakesMixin": {
        "mistakes_": "(F)", "margin_": "(F)~", "bound_": "(F)~", "_stored": "n<T", "history_": _RECORD,
        "mistake_indices_": _RECORD, "_mistakes.sums": "nF", "_mistakes.late": "nF", "_mistakes.number": "F",
        "_mistakes.visits": "F", "_mistakes.time": "M", "_mistakes.index": "M<n", "_mistakes.function": "M<F",
        "_mistakes.sign": "M",
    },
    "Perceptron": {"coef_": "Fd", "intercept_": "F", "_w": "dF", "_b": "F"},
    "MailClassifier": {"left_out_": "N~", "support_": "S<N", "dual_coef_": "S"},
    "RandomFeatures": {"frequencies_": "Wd", "weights_": "W"},
    "LinearClassifierMixin": {"coef_": "*d"},
}
# fmt: on
_WHOLE = re.compile(r"(?P<letters>[A-Za-z0-9*]*)(\((?P<last>[A-Z])\))?(<(?P<below>[A-Z]|n))?(?P<loose>~)?")


def mismatch(model: Model) -> str | None:
    """What does not fit together in a fitted estimator, or None.

    >>> from mercer import SVC
    >>> model = SVC().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> mismatch(model)
    >>> model.classes_ = model.classes_[:2]
    >>> mismatch(model)
    'has 2 classes and 3 functions'
    """
    found: Any = vars(model)
    if (wrong := _wrong_classes(found.get("classes_"))) is not None:
        return wrong
    sizes = _Sizes(model)
    C, F = sizes.known.get("C"), sizes.known.get("F")
    if C is not None and F is not None and not _has_functions(model, C, F):
        return f"has {C} classes and {F} functions"
    for base in type(model).__mro__:
        for name, wanted in _SHAPES.get(base.__name__, {}).items():
            value = _at(found, name)
            if value is not None and (wrong := sizes.wrong(value, wanted)):
                return f"has {wrong} as {name}"
    return _wrong_support(found, sizes.known) if "SupportMixin" in sizes.bases else None


def _at(found: dict[str, Any], name: str) -> Any:
    """What is at a place, or None."""
    first, *rest = name.split(".")
    value = found.get(first)
    for part in rest:
        value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
    return value


def _wrong_classes(classes: Any) -> str | None:
    """Labels are sorted, and each is there once."""
    if not isinstance(classes, np.ndarray):
        return None
    if classes.ndim != 1 or not classes.size:
        return f"has classes of shape {classes.shape}"
    try:
        is_sorted = len(classes) == 1 or bool((classes[:-1] < classes[1:]).all())
    except TypeError:
        is_sorted = False
    return None if is_sorted else "has labels as classes_ that are not sorted, or twice there"


def _has_functions(model: Model, C: int, F: int) -> bool:
    """Whether F functions tell C classes apart: one for two classes, else one for each, or each pair."""
    bases = {base.__name__ for base in type(model).__mro__}
    inner = vars(model).get("model_")
    if isinstance(inner, BaseEstimator) and hasattr(inner, "classes_"):  # whose function it is
        return _has_functions(inner, C, F)
    if "KernelFisherDiscriminant" in bases:
        return 1 <= F <= max(C - 1, 1)
    by_pairs = "SupportClassifier" in bases and vars(model).get("_by_pairs", True)
    of_many = C * (C - 1) // 2 if by_pairs else C
    return C > 1 and (of_many if C > 2 else 1) == F


def _wrong_support(found: dict[str, Any], sizes: dict[str, int]) -> str | None:
    """The anchors of f are the support vectors, or one point where there are none; or w, of each function."""
    if "n" not in sizes or "S" not in sizes:
        return None
    n, S = sizes["n"], sizes["S"]
    if n != (max(S, 1) if found.get("_centre") is None else sizes["F"]):
        return f"has {S} support vectors and a function of {n}"
    counts = found.get("n_support_")
    if isinstance(counts, np.ndarray) and ((counts < 0).any() or counts.sum() != S):
        return f"has {S} support vectors and {counts.tolist()} of them as n_support_"
    return None


class _Sizes:
    """The sizes of one model, by letter; those that nothing has told yet are what is met first."""

    def __init__(self, model: Model) -> None:
        found = vars(model)
        self.bases = {base.__name__ for base in type(model).__mro__}
        self.known: dict[str, int] = {}
        self._is_one = False  # whether f is one function, with coefficients (n,)
        self._is_pairwise = bool(found.get("_pairwise"))
        classes, width, f = (found.get(name) for name in ("classes_", "n_features_in_", "expansion_"))
        if isinstance(classes, np.ndarray):
            self.known["C"] = classes.size
        if width is not None:
            self.known["d"] = int(width)
        if isinstance(f, Expansion):
            self.known["F"] = int(np.prod(f.coef.shape[1:]))
            # Otherwise the anchors may be w alone.
            if "SupportMixin" in self.bases or not is_affine(f.kernel):
                self.known["n"] = data.n_points(f.anchors)
            self._is_one = f.coef.ndim == 1
            C = self.known.get("C", 2)
            by_pairs = C > 2 and bool(found.get("_by_pairs", True))
            self.known["D"] = C - 1 if by_pairs else self.known["F"]
        shape, seen = found.get("shape_fit_"), found.get("_seen")
        if isinstance(shape, tuple) and shape:
            self.known["N"] = int(shape[0])
        self._of_sketch(found.get("_sketch"), f)
        if isinstance(found.get("_n_fit"), int):
            self.known["N"] = found["_n_fit"]
        if isinstance(seen, int):
            self.known["T"] = seen

    def _of_sketch(self, sketch: Any, f: Any) -> None:
        """P, the numbers of the packed triangle of all features, anchors or columns, and of b."""
        if not (isinstance(sketch, dict) and isinstance(f, Expansion) and "normal" in sketch):
            return
        if sketch.get("centre") is None:
            self.known["n"] = data.n_points(f.anchors)
        of = self.known.get("n" if sketch.get("centre") is None else "d", 0)
        size = min(of, MOST_FEATURES) + bool(sketch.get("fit_intercept"))
        self.known["P"] = size * (size + 1) // 2

    def wrong(self, value: object, wanted: str) -> str | None:
        """What is wrong with an attribute, in words, or None."""
        if wanted == _RECORD:
            return None
        if wanted.endswith((" pts", " items", " names")):
            letter, _, what = wanted.partition(" ")
            return self._wrong_items(value, letter, what)
        if wanted.endswith(" or number"):
            wanted = wanted.partition(" ")[0] if isinstance(value, np.ndarray) else ""
        parts = _WHOLE.fullmatch(wanted)
        assert parts is not None
        letters = parts["letters"] + ("" if parts["last"] is None or self._is_one else parts["last"])
        return self._wrong_array(value, letters, parts["below"], bool(parts["loose"]))

    def _size(self, letter: str, length: int) -> int:
        """What a size must be; a letter that nothing has told yet is this length."""
        if letter.isdecimal():
            return int(letter)
        return length if letter == "*" else self.known.setdefault(letter, length)

    def _wrong_array(self, value: Any, letters: str, below: str | None, loose: bool) -> str | None:
        if not letters and type(value) in (int, float):
            value = np.asarray(value)
        if not (isinstance(value, np.ndarray | np.generic) or sparse.issparse(value)):
            return f"a {type(value).__name__}"
        shape = value.shape
        if len(shape) != len(letters) or any(
            self._size(letter, length) != length for letter, length in zip(letters, shape, strict=True)
        ):
            return f"an array of shape {shape}"
        numbers = np.asarray(value.data if sparse.issparse(value) else value)
        if numbers.dtype.kind not in ("fiub" if below is None else "iu"):
            return f"an array of {numbers.dtype}"
        if not loose and not np.isfinite(numbers).all():
            return "an array with NaN or infinity"
        most = self.known.get(below or "")
        if most is not None and numbers.size and not (numbers.min() >= 0 and numbers.max() < most):
            return f"an array with {numbers.min()} to {numbers.max()}, where there are {most},"
        return None

    def _wrong_items(self, value: Any, letter: str, what: str) -> str | None:
        """Points, texts or kernels: how many, and how wide vectors are."""
        shape = getattr(value, "shape", None)
        if shape is None and not isinstance(value, list | tuple):
            return f"a {type(value).__name__}"
        if shape == (0, 0) and self._is_pairwise:
            return None  # Kernel values stand for the points.
        length = len(value) if shape is None else shape[0] if shape else -1
        if length != self._size(letter, length):
            return f"{length} {'points' if what == 'pts' else what}"
        wide = None if self._is_pairwise else self.known.get("d")
        if what == "pts" and shape is not None and len(shape) == 2 and wide not in (None, shape[1]):
            return f"points of {shape[1]} columns"
        return None
