"""Linear combinations of columns: what a search learns where the columns as they are tell too little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.features.base import FeatureMap


@dataclass(eq=False)
class LinearMap(FeatureMap):
    r"""x ↦ Aᵀx, so that the distance in the map is that of Mahalanobis, (x - x')ᵀ A Aᵀ (x - x').

    Parameters
    ----------
    matrix : (m, features) the matrix A, a column for each feature

    >>> LinearMap(np.array([[1.0, 1.0], [1.0, -1.0]]))(np.array([[2.0, 3.0]]))
    array([[ 5., -1.]])
    """

    matrix: Any

    def check(self) -> None:
        A = np.asarray(self.matrix)
        if A.ndim != 2 or A.dtype.kind not in "fiu" or not np.isfinite(A).all():
            raise InputError(
                f"matrix must hold finite numbers, (columns, features), got shape {A.shape}: pass an array"
            )

    def n_features(self, m: int) -> int:
        self.check()
        if m != len(self.matrix):
            raise InputError(
                f"the map is of {len(self.matrix)} columns, got points with {m} feature(s): pass as many"
            )
        return int(np.shape(self.matrix)[1])

    def __call__(self, X: Points) -> NDArray[np.floating[Any]]:
        """A combination of columns for each feature: (n, m) to (n, features)."""
        return np.asarray(self._prepare(X) @ np.asarray(self.matrix))

    def feature_names(self, names: Sequence[str]) -> list[str]:
        """Each feature by the column that has the most of it."""
        A = np.abs(np.asarray(self.matrix))
        return [f"combination {j + 1}, most of {names[i]}" for j, i in enumerate(A.argmax(axis=0))]

    def __repr__(self) -> str:
        rows, columns = np.shape(self.matrix)
        return f"LinearMap(<{rows} × {columns} array>)"
