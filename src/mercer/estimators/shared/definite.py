r"""Learners whose problem has a minimum only where K has no negative eigenvalue, and what becomes of other K.

A kernel that is proved positive definite (`mercer.certify`) is believed. Of any other, K at some of the
points is looked at before the fit: a cᵀKc < 0 there refutes the kernel, and the learner refuses it. Beside an
intercept the coefficients sum to zero, so only such c count: conditionally positive definite kernels are
welcome there.

``indefinite="clip"`` is the way to have such a kernel nonetheless: the negative eigenvalues of K are taken as
zero, which makes it the nearest kernel matrix, and the report says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certify.closure import Setting, data_width, prove
from mercer.certify.proof import Step
from mercer.data import points as data
from mercer.data.types import Points
from mercer.errors import IndefiniteError
from mercer.gram.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.parameters import choice
from mercer.report import Journal
from mercer.runtime.threads import single_threaded_blas

#: the declared parameter of learners that can go on without the negative part
INDEFINITE: Any = choice("refuse", ("refuse", "clip"))

_LOOKED_AT = 200  # points; their eigenvalues take some milliseconds


class DefiniteMixin:
    """For estimators that need a K without negative eigenvalues; see the module."""

    kernel_: Kernel
    #: "clip" where the learner can do so and was told to
    indefinite: str = "refuse"

    def _require_definite(self, X: Points, centred: bool, kernel: Kernel | None = None) -> None:
        """Refuse the kernel where some of the points X refute it; ``centred``: beside an intercept."""
        kernel = self.kernel_ if kernel is None else kernel
        if self.indefinite == "refuse" and not _is_proved(kernel, X):
            lowest = lowest_eigenvalue(kernel, X, centred)
            if lowest < 0:
                raise self._refusal(kernel, lowest, lowest_eigenvalue(kernel, X, centred=True) == 0)

    def _is_proved(self, X: Points) -> bool:
        """Whether the kernel is known to be positive definite on points like X."""
        return _is_proved(self.kernel_, X)

    def _must_clip(self, X: Points) -> bool:
        """Whether K is to be freed of its negative eigenvalues, and may have some."""
        return self.indefinite == "clip" and not self._is_proved(X)

    def _meet(self, lowest: float, X: Points, journal: Journal) -> None:
        """The solver saw this eigenvalue of K, and took it as zero where it is negative."""
        if _is_proved(self.kernel_, X) or lowest >= -hidden(self.kernel_, X):  # Rounding made it negative.
            return
        if self.indefinite == "refuse":
            raise self._refusal(self.kernel_, lowest)
        journal.warn(
            f"{self.kernel_!r} is not positive definite on these points: the eigenvalue {lowest:.3g} of K "
            "and all other negative ones were taken as zero, which makes K the nearest kernel matrix; "
            "mercer.certify tells more"
        )

    def _refusal(self, kernel: Kernel, lowest: float, is_conditional: bool = False) -> IndefiniteError:
        declared = getattr(self, "_declared", {})
        instead = (
            'pass indefinite="clip" to have negative eigenvalues taken as zero'
            if "indefinite" in declared
            else 'repair the matrix (mercer.repair) and pass it with kernel="precomputed"'
        )
        if getattr(self, "landmarks", None) is not None:
            instead = f"without landmarks, {instead}"
        if is_conditional:
            instead = "centre it (kernel.centered()), for it is conditionally positive definite here"
        return IndefiniteError(
            f"{kernel!r} is not positive definite: on these points its matrix has the eigenvalue "
            f"{lowest:.3g}, and the problem no minimum; take another kernel (mercer.certify "
            f"tells), or {instead}"
        )


def lowest_eigenvalue(kernel: Kernel, X: Points, centred: bool = False) -> float:
    """The least eigenvalue of K at up to 200 of the points, 0 where it is not negative beyond rounding.

    Those of all of K begin no higher (Cauchy's interlacing). ``centred``: of K on the c with Σ cᵢ = 0.

    >>> from mercer import Sigmoid
    >>> round(lowest_eigenvalue(Sigmoid(1.0, -1.0), [[0.0], [1.0]]), 3)
    -1.232
    """
    K = Gram(kernel, _some(X), cache=0).dense()
    eps, K = _rounding(kernel, K.dtype), K.astype(np.float64)
    if not np.isfinite(K).all():
        return 0.0  # The solver refuses such a K in its own words.
    size = float(np.abs(K).max(initial=0.0))
    if centred:
        K = K - K.mean(axis=0)
        K -= K.mean(axis=1, keepdims=True)
    with single_threaded_blas():
        values = np.linalg.eigvalsh((K + K.T) / 2)
    lowest = float(values.min(initial=0.0))
    return lowest if lowest < -4 * len(K) * eps * size else 0.0


def _rounding(kernel: Kernel, dtype: Any) -> float:
    """ε of the values of k: that of the matrix they are read from, where it is coarser."""
    return float(np.finfo(np.float32 if _is_given_in_single(kernel) else dtype).eps)


def _is_given_in_single(kernel: Kernel) -> bool:
    given = (getattr(part, "matrix", None) for part in kernel.parts())
    return any(getattr(matrix, "dtype", None) == np.float32 for matrix in given)


def hidden(kernel: Kernel, X: Points) -> float:
    """How far below 0 an eigenvalue of K may be by the rounding of a matrix that was given in float32.

    What K is computed from here is rounded less, as solvers know.
    """
    if not _is_given_in_single(kernel):
        return 0.0
    size = float(np.abs(Gram(kernel, X, cache=0).diag()).max(initial=0.0))
    return 4 * data.n_points(X) * _rounding(kernel, np.float64) * size


def is_known(kernel: Kernel, X: Points) -> bool:
    """Whether it is known that K has no negative eigenvalue where `refutation` found none.

    The kernel is proved, or all of K was looked at.
    """
    return data.n_points(X) <= _LOOKED_AT or _is_proved(kernel, X)


def refutation(kernel: Kernel, X: Points, centred: bool) -> float:
    """A negative eigenvalue of K that up to 200 of the points show; 0 for a proved kernel, or where none is.

    >>> from mercer import Gaussian, Sigmoid
    >>> refutation(Gaussian(1.0), [[0.0], [1.0]], centred=False)
    0.0
    >>> refutation(Sigmoid(1.0, -1.0), [[0.0], [1.0]], centred=False) < 0
    True
    """
    return 0.0 if _is_proved(kernel, X) else lowest_eigenvalue(kernel, X, centred)


def _is_proved(kernel: Kernel, X: Points) -> bool:
    some = _some(X)
    width = None if kernel.domain is Domain.OBJECTS else data_width(some)
    return isinstance(prove(kernel, Setting(width, some)), Step)


def _some(X: Points) -> Any:
    """Up to 200 of the points, evenly spread."""
    n = data.n_points(X)
    return data.take(X, np.unique(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(int)))
