r"""scikit-learn's Nyström features, computed by mercer.

Landmarks and normalisation are scikit-learn's, so that the same ``random_state`` gives the same features.
What takes the time, k(x, z) of all points with all landmarks, times the normalisation, is mercer's: blocks on
all threads, never the whole matrix of kernel values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config, kernel_approximation
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.drop_in.adapter import Adapter, adapted
from mercer.drop_in.kernels import counterpart, unknown
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.runtime.threads import by_our_threads


class LandmarksAdapter(Adapter):
    """What scikit-learn's Nystroem does after the fit, done by mercer; see the module."""

    kernel: Any
    components_: Any
    normalization_: np.ndarray

    @by_our_threads
    def transform(self, X: Any) -> Any:  # (m, components)
        """The features of every row of X."""
        check_is_fitted(self)
        is_given = self.kernel == "precomputed" or not isinstance(self.kernel, Kernel | str)
        if is_given or get_config()["array_api_dispatch"]:
            return self._theirs.transform(X)  # X holds kernel values, or arrays that are not NumPy's
        params = self._theirs._get_kernel_params()
        named = (self.kernel, params.get("gamma"), params.get("degree", 3), params.get("coef0", 1))
        why = unknown(*named)
        if why is not None:
            self._leave(why)
            return self._theirs.transform(X)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        kernel = counterpart(*named).resolve(self.components_)
        features = Gram(kernel, X, self.components_, cache=0) @ self.normalization_.T
        return features.astype(X.dtype) if X.dtype == np.float32 else features


Nystroem = adapted(kernel_approximation.Nystroem, LandmarksAdapter, __name__)
