r"""scikit-learn's five support vector machines, fitted and evaluated by mercer.

scikit-learn's ``fit`` checks the data, codes the labels, takes γ from the points, and hands over to LIBSVM in
``_dense_fit`` or ``_sparse_fit``; these and their counterparts for predictions are what is overridden here.
LIBSVM counts the first of two classes as positive, mercer and scikit-learn the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import svm

from mercer.drop_in.adapter import Adapter, adapted
from mercer.drop_in.kernels import unknown
from mercer.estimators.one_class import OneClassSVM as OurOneClassSVM
from mercer.estimators.svc import SVC as OurSVC  # noqa: N811
from mercer.estimators.svc import NuSVC as OurNuSVC
from mercer.estimators.svr import SVR as OurSVR  # noqa: N811
from mercer.estimators.svr import NuSVR as OurNuSVR

_OURS: dict[str, Any] = {
    "c_svc": OurSVC,
    "nu_svc": OurNuSVC,
    "one_class": OurOneClassSVM,
    "epsilon_svr": OurSVR,
    "nu_svr": OurNuSVR,
}
#: scikit-learn's default: who did not choose a size gets what the memory budget has room for
_MEGABYTES = 200


class MachineAdapter(Adapter):
    """What LIBSVM does for scikit-learn's classes, done by mercer's; see the module."""

    _impl: str
    _gamma: float
    kernel: Any

    # --- fitting -------------------------------------------------------------------------------------------

    def _dense_fit(self, X: Any, y: Any, *rest: Any, **more: Any) -> None:
        self._fit_by(self._theirs._dense_fit, X, y, *rest, **more)

    def _sparse_fit(self, X: Any, y: Any, *rest: Any, **more: Any) -> None:
        self._fit_by(self._theirs._sparse_fit, X, y, *rest, **more)

    def _fit_by(self, libsvm: Any, X: Any, y: Any, sample_weight: Any, *rest: Any, **more: Any) -> None:
        given = vars(self)
        why = unknown(self.kernel, self._gamma, given["degree"], given["coef0"])
        if why is not None:
            self._leave(why)
            libsvm(X, y, sample_weight, *rest, **more)
            return
        if callable(self.kernel):
            # scikit-learn's ``_compute_kernel`` takes the training points from this attribute.
            self._BaseLibSVM__Xfit = X
            X = self._points(X)
        model = self._unfitted()
        y = y.astype(np.intp) if self._classifies else y
        model.fit(X, y, sample_weight if len(sample_weight) else None)
        self._read(model)

    @property
    def _classifies(self) -> bool:
        return self._impl in ("c_svc", "nu_svc")

    def _unfitted(self) -> Any:
        """mercer's learner with the parameters that both have, under the names that both have."""
        ours, given = _OURS[self._impl], vars(self)
        shared = {name: given[name] for name in ours._get_param_names() if name in given}
        shared["kernel"] = "precomputed" if callable(self.kernel) else self.kernel
        shared["gamma"] = "scale" if shared["kernel"] == "precomputed" else self._gamma
        shared["cache_size"] = "auto" if shared["cache_size"] == _MEGABYTES else shared["cache_size"]
        if self._classifies:
            weights = dict(enumerate(given["class_weight_"].tolist()))
            shared |= {
                # LIBSVM has no class weights for ν-SVC either.
                "class_weight": weights if self._impl == "c_svc" else None,
                "probability": bool(given.get("_effective_probability", given["probability"])),
                "decision_function_shape": "ovo",
                "break_ties": False,
            }
        return ours(**shared)

    def _read(self, model: Any) -> None:
        """What LIBSVM would have returned."""
        is_binary = self._classifies and len(model.classes_) == 2
        sign = -1.0 if is_binary else 1.0
        self.support_ = model.support_
        self.support_vectors_ = model.support_vectors_
        self._n_support = model.n_support_ if self._classifies else np.array([*model.n_support_, 0], np.int32)
        self.dual_coef_ = sign * model.dual_coef_
        self.intercept_ = sign * model.intercept_
        self._probA = self._probB = np.empty(0)
        if hasattr(model, "slopes_"):  # P = 1/(1 + exp(A f + B)) with one slope, for who looks
            self._probA, self._probB = -model.slopes_.mean(axis=1), np.zeros(len(model.slopes_))
        self.fit_status_ = model.fit_status_
        self._num_iter = np.asarray(model.n_iter_)
        self._keep(model, _dual_coef_=self.dual_coef_, _intercept_=self.intercept_)

    # --- predictions ---------------------------------------------------------------------------------------

    def _dense_predict(self, X: Any) -> Any:
        model = self._learner()
        return self._theirs._dense_predict(X) if model is None else model.predict(self._points(X))

    def _sparse_predict(self, X: Any) -> Any:
        model = self._learner()
        return self._theirs._sparse_predict(X) if model is None else model.predict(X)

    def _dense_decision_function(self, X: Any) -> Any:
        model = self._learner()
        return self._theirs._dense_decision_function(X) if model is None else self._values(model, X)

    def _sparse_decision_function(self, X: Any) -> Any:
        model = self._learner()
        return self._theirs._sparse_decision_function(X) if model is None else self._values(model, X)

    def _dense_predict_proba(self, X: Any) -> Any:
        model = self._learner()
        return self._theirs._dense_predict_proba(X) if model is None else model.predict_proba(self._points(X))

    def _sparse_predict_proba(self, X: Any) -> Any:
        model = self._learner()
        return self._theirs._sparse_predict_proba(X) if model is None else model.predict_proba(X)

    def _points(self, X: Any) -> Any:
        """What mercer's learner takes: values, where the kernel is a function."""
        return self._theirs._compute_kernel(X)

    def _values(self, model: Any, X: Any) -> np.ndarray:  # (m, problems), with LIBSVM's signs
        values = model.decision_function(X)
        return -values[:, None] if self._classifies and values.ndim == 1 else values.reshape(len(values), -1)


SVC = adapted(svm.SVC, MachineAdapter, __name__)
NuSVC = adapted(svm.NuSVC, MachineAdapter, __name__)
SVR = adapted(svm.SVR, MachineAdapter, __name__)
NuSVR = adapted(svm.NuSVR, MachineAdapter, __name__)
OneClassSVM = adapted(svm.OneClassSVM, MachineAdapter, __name__)
