r"""Whether the arrays of a fitted model are of one model: of as many classes, functions, points and columns.

A model with n anchors, F functions Σᵢ αᵢ k(xᵢ, ·) + b, C classes and d columns has attributes of these sizes,
by the class that makes them. Sizes of one letter in two places are equal, and what predictions are computed
from is finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer import data
from mercer.expansion import Expansion

__all__ = ["mismatch"]

#: attributes by the class that has them; "*" is any size
_SHAPES: dict[str, dict[str, str]] = {
    "SupportMixin": {"support_": "n", "dual_coef_": "*n", "intercept_": "F"},
    "SupportClassifier": {"n_support_": "C", "class_weight_": "C", "slopes_": "F*"},
    "KernelFisherDiscriminant": {"priors_": "C", "means_": "CF", "covariance_": "FF", "_precision": "FF"},
    "KernelPCA": {"eigenvalues_": "F"},
    "ParzenClassifier": {"priors_": "C", "_total": "C"},
    "Perceptron": {"coef_": "Fd", "intercept_": "F"},
    "LinearClassifierMixin": {"coef_": "*d"},
}


def mismatch(model: Any) -> str | None:
    """What does not fit together in a fitted estimator, or None.

    >>> from mercer import SVC
    >>> model = SVC().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> mismatch(model)
    >>> model.classes_ = model.classes_[:2]
    >>> mismatch(model)
    'has 2 classes and 3 functions'
    """
    found = vars(model)
    classes, width, f = (found.get(name) for name in ("classes_", "n_features_in_", "expansion_"))
    sizes: dict[str, int] = {}
    if isinstance(classes, np.ndarray):
        if classes.ndim != 1 or not classes.size:
            return f"has classes of shape {classes.shape}"
        sizes["C"] = classes.size
    if width is not None:
        sizes["d"] = int(width)
    if isinstance(f, Expansion):
        sizes["n"], sizes["F"] = data.n_points(f.anchors), int(np.prod(f.coef.shape[1:]))
        support = found.get("support_")
        if found.get("_centre") is not None and isinstance(support, np.ndarray):
            sizes["n"] = len(support)  # the anchor of f is its w: the support vectors are apart
        if "C" in sizes and not _has_functions(model, sizes["C"], sizes["F"]):
            return f"has {sizes['C']} classes and {sizes['F']} functions"
    for base in type(model).__mro__:
        for name, wanted in _SHAPES.get(base.__name__, {}).items():
            if name in found and (wrong := _wrong(found[name], wanted, sizes)):
                return f"has {wrong} as {name}"
    return None


def _has_functions(model: Any, C: int, F: int) -> bool:
    """Whether F functions tell C classes apart: one for two classes, else one for each, or each pair."""
    bases = {base.__name__ for base in type(model).__mro__}
    if "KernelFisherDiscriminant" in bases:
        return 1 <= F <= max(C - 1, 1)
    by_pairs = "SupportClassifier" in bases and vars(model).get("_by_pairs", True)
    of_many = C * (C - 1) // 2 if by_pairs else C
    return (of_many if C > 2 else 1) == F


def _wrong(value: Any, wanted: str, sizes: dict[str, int]) -> str | None:
    if value is None:
        return None
    if not (isinstance(value, np.ndarray) or sparse.issparse(value)):
        return f"a {type(value).__name__}"
    shape = tuple(sizes.get(letter) for letter in wanted)
    if value.ndim != len(shape) or any(
        size not in (None, length) for size, length in zip(shape, value.shape, strict=True)
    ):
        return f"an array of shape {value.shape}"
    numbers = value.data if sparse.issparse(value) else value
    if numbers.dtype.kind not in "fiub":
        return f"an array of {numbers.dtype}"
    if not np.isfinite(numbers).all():
        return "an array with NaN or infinity"
    return None
