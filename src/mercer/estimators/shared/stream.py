r"""What classifiers that learn from a stream share: ``partial_fit``'s labels and points."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.errors import InputError
from mercer.estimators.shared.base import is_pairwise
from mercer.estimators.shared.classes import KernelClassifierMixin


class StreamMixin(KernelClassifierMixin):
    """For classifiers with ``partial_fit(X, y, classes=None)``; the first call names the classes."""

    def _validate_stream(self, X: Any, y: Any, classes: Any) -> tuple[Any, np.ndarray, bool]:
        """Points, codes of their labels, and whether this is the first call; sets ``classes_``."""
        first = not hasattr(self, "classes_")
        if is_pairwise(self._kernel()):
            raise InputError(
                "partial_fit needs the points themselves, got kernel='precomputed', whose table compares the "
                "training points only with each other: use fit, or a kernel on the points"
            )
        if first and classes is None:
            raise InputError(
                "classes must be given in the first call of partial_fit, got None: pass all labels that will "
                "ever come, such as np.unique(y)"
            )
        known = np.unique(classes) if first else self.classes_
        if not first and classes is not None and not np.array_equal(np.unique(classes), known):
            raise InputError(
                f"classes must stay those of the first call, {known.tolist()}, got "
                f"{np.unique(classes).tolist()}: leave the argument out, or start anew with a clone"
            )
        if len(known) < 2:
            raise InputError(f"classes must hold at least two labels, got {known.tolist()}: pass all of them")
        if first:
            X, y = self._validate_fit(X, y)
        else:
            X, y = self._validate(X, y, self.kernel_.domain, reset=False)
        check_classification_targets(y)
        unknown = np.setdiff1d(y, known)
        if unknown.size:
            raise InputError(
                f"y must hold labels from classes, {known.tolist()}, got {unknown[:5].tolist()}: "
                "name every label in the first call of partial_fit"
            )
        self.classes_ = known
        return X, np.searchsorted(known, y), first
