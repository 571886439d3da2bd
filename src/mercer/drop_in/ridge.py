r"""scikit-learn's kernel ridge regression, solved and evaluated by mercer: no intercept, a = (K + αI)⁻¹ y."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import kernel_ridge
from sklearn.utils.validation import _check_sample_weight, validate_data

from mercer.data.types import Points, Targets, Weights
from mercer.drop_in.adapter import Adapter, adapted
from mercer.drop_in.kernels import counterpart, unknown
from mercer.errors import IndefiniteError
from mercer.estimators.ridge import KernelRidge as OurKernelRidge


class RidgeAdapter(Adapter):
    """What scikit-learn's KernelRidge does, done by mercer's; see the module."""

    alpha: Any
    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: dict[str, Any] | None

    def fit(self, X: Points, y: Targets, sample_weight: Weights = None) -> Self:
        """Fit to the points X, their targets y, and weights of the points."""
        self._theirs._validate_params()
        named = (self.kernel, self.gamma, self.degree, self.coef0)
        why = unknown(*named)
        if why is None:
            why = self._learn(X, y, sample_weight, counterpart(*named, self.kernel_params))
        if why is None:
            return self
        self._leave(why)
        return self._theirs.fit(X, y, sample_weight)

    def _learn(self, X: Points, y: Targets, sample_weight: Weights, kernel: Any) -> str | None:
        """Fit by mercer; why not, where that is not possible."""
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), multi_output=True, y_numeric=True)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        model = OurKernelRidge(alpha=self.alpha, kernel=kernel, fit_intercept=False)
        try:
            model.fit(X, y, weight)
        except IndefiniteError:
            return f"{kernel!r} is not positive definite on these points, and the problem has no minimum"
        self.X_fit_, self.dual_coef_ = X, np.zeros(y.shape)
        self.dual_coef_[slice(None) if weight is None else weight != 0] = model.dual_coef_
        self._keep(model, dual_coef_=self.dual_coef_)
        return None

    def predict(self, X: Points) -> np.ndarray:  # (m,) or (m, targets)
        """f(x) for every row of X."""
        model = self._learner()
        if model is None:
            return self._theirs.predict(X)
        return model.predict(validate_data(self, X, accept_sparse=("csr", "csc"), reset=False))


KernelRidge = adapted(kernel_ridge.KernelRidge, RidgeAdapter, __name__)
