r"""What regressors share whose function is an expansion, for one target or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.data.types import Points
from mercer.estimators.shared.origin import expanded
from mercer.expansion import Expansion
from mercer.kernels.vectors.dotproduct import Linear


class KernelRegressorMixin(RegressorMixin):
    """For regressors that predict f = ``expansion_``, one or several targets."""

    expansion_: Expansion
    #: the coefficients of the points, where ``expansion_`` has others
    _dual: np.ndarray | None = None

    def predict(self, X: Points) -> np.ndarray:  # (n,) or (n, targets)
        """f(x) for every row of X."""
        X = self._validate_for_values(X)
        return self.expansion_.values(X)

    @property
    def dual_coef_(self) -> np.ndarray:
        """The coefficients of the points with a weight, under scikit-learn's name."""
        check_is_fitted(self)
        return self.expansion_.coef if self._dual is None else self._dual

    @property
    def coef_(self) -> np.ndarray:  # (d,) or (targets, d)
        """w of f(x) = ⟨w, x⟩ + b, for the linear kernel; as in scikit-learn's ``Ridge``."""
        if "expansion_" in vars(self) and self.kernel_ == Linear():
            return np.asarray(self.expansion_.anchors.T @ self.expansion_.coef).T
        raise AttributeError(
            "coef_ is there after the fit of a linear kernel alone, which has a vector of weights: see "
            "expansion_ for the function of any other"
        )

    @property
    def intercept_(self) -> Any:
        """b, one per target."""
        b = self.expansion_.intercept
        return float(b) if b.ndim == 0 else b

    def _keep(
        self,
        points: Points,
        coef: np.ndarray,
        intercept: np.ndarray,
        is_vector: bool,
        origin: np.ndarray | None,
    ) -> None:
        """The learned functions on points moved by ``origin``; ``coef`` (n, t), t = 1 if y was a vector."""
        chosen, b = (coef[:, 0], intercept[0]) if is_vector else (coef, intercept)
        self.expansion_ = expanded(self.kernel_, points, chosen, b, origin)
        self._dual = None if origin is None else chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
