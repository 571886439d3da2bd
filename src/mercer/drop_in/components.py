r"""scikit-learn's kernel principal components, found and evaluated by mercer.

A K with negative eigenvalues is welcome, as in scikit-learn, as long as none of them is among those asked
for.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import decomposition
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import _check_psd_eigenvalues, validate_data

from mercer.data.types import Points, Targets
from mercer.drop_in.adapter import Adapter, adapted
from mercer.drop_in.kernels import counterpart, unknown
from mercer.estimators.pca import KernelPCA as OurKernelPCA
from mercer.gram import Gram


class ComponentsAdapter(Adapter):
    """What scikit-learn's KernelPCA does, done by mercer's; see the module."""

    n_components: int | None
    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    kernel_params: dict[str, Any] | None
    alpha: float
    fit_inverse_transform: bool
    eigen_solver: str
    tol: float
    max_iter: int | None
    remove_zero_eig: bool
    random_state: Any
    copy_X: bool

    def fit(self, X: Any, y: Targets | None = None) -> Self:
        """Find the components of the points X; y is ignored."""
        self._theirs._validate_params()
        named = (self.kernel, self.gamma, self.degree, self.coef0)
        why = unknown(*named)
        if why is not None:
            self._leave(why)
            return self._theirs.fit(X, y)
        if self.fit_inverse_transform and self.kernel == "precomputed":
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        X = validate_data(self, X, accept_sparse="csr", copy=self.copy_X)
        self.gamma_ = 1 / X.shape[1] if self.gamma is None else self.gamma
        kernel = counterpart(self.kernel, self.gamma_, self.degree, self.coef0, self.kernel_params)
        self._learn(X, kernel)
        return self

    def _learn(self, X: Any, kernel: Any) -> None:
        n = X.shape[0]
        count = n if self.n_components is None else min(n, int(self.n_components))
        model = OurKernelPCA(
            None if self.n_components is None else count,
            kernel=kernel,
            alpha=self.alpha,
            fit_inverse_transform=self.fit_inverse_transform,
            eigen_solver=self.eigen_solver,
            indefinite="clip" if count < n else "refuse",
            tol=self.tol or None,
            max_iter=self.max_iter,
            random_state=self.random_state,
        ).fit(X)
        values, vectors = model.eigenvalues_, model.eigenvectors_
        if not values.all():  # What was taken as zero may be negative, which scikit-learn refuses.
            gram = Gram(model.kernel_, np.arange(n) if self.kernel == "precomputed" else X, cache=0)
            null = vectors[:, values == 0]
            null = null - null.mean(axis=0)
            _check_psd_eigenvalues(np.append(values, np.einsum("ij,ij->j", null, gram @ null)))
        values = _check_psd_eigenvalues(values)
        if self.remove_zero_eig or self.n_components is None:
            values, vectors = values[values > 0], vectors[:, values > 0]
        self._dtype = np.float32 if X.dtype == np.float32 else np.float64  # the type of the result
        self.eigenvalues_, self.eigenvectors_ = values.astype(self._dtype), vectors.astype(self._dtype)
        self.X_fit_ = X
        vars(self).pop("_centerer", None)  # It is that of an earlier fit, by scikit-learn's code.
        if self.fit_inverse_transform:
            self.X_transformed_fit_, self.dual_coef_ = model.scores_fit_, model.dual_coef_
        self._keep(model, eigenvalues_=self.eigenvalues_)

    def fit_transform(self, X: Points, y: Targets | None = None, **params: Any) -> np.ndarray:
        """Find the components of X, and give its scores."""
        self.fit(X, **params)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    def transform(self, X: Any) -> np.ndarray:  # (m, components)
        """The scores of every row of X."""
        model = self._learner()
        if model is None:
            if hasattr(self, "X_fit_") and not hasattr(self, "_centerer"):
                self._centerer = KernelCenterer().set_output(transform="default")
                self._centerer.fit(self._theirs._get_kernel(self.X_fit_))
            return self._theirs.transform(X)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return np.asarray(model.transform(X)[:, : len(self.eigenvalues_)], self._dtype)

    def inverse_transform(self, X: Points) -> np.ndarray:  # (m, features)
        """Points whose scores are near the rows of X, by the map that ``fit`` learned."""
        model = self._learner()
        if model is None or not self.fit_inverse_transform:
            return self._theirs.inverse_transform(X)
        return model.inverse_transform(X)


KernelPCA = adapted(decomposition.KernelPCA, ComponentsAdapter, __name__)
