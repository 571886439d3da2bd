"""K(X, Z) as a stored matrix with the few verbs that solvers on landmarks may rely on."""

import numpy as np
import pytest

from mercer.solvers.landmarks.basis import independent
from mercer.solvers.landmarks.features import Features


class StoredRows:
    """What `mercer.gram.blocks.RowBlocks` is to solvers, by plain products."""

    cost = 50.0

    def __init__(self, K, block=7):
        self.K, self.shape, self.dtype, self.block = K, K.shape, K.dtype, block

    def some(self, rows):
        return StoredRows(self.K[rows], self.block)

    def rough(self):
        return StoredRows(self.K.astype(np.float32), self.block) if self.dtype == np.float64 else None

    def values(self, V):
        return np.asarray(self.K @ V.astype(self.dtype), dtype=np.float64)

    def adjoint(self, G):
        return np.asarray(self.K.T @ G.astype(self.dtype), dtype=np.float64)

    def pass_over(self, V, inner, numbers=1, width=None, each=None):
        total, sums, F = 0.0, np.zeros(numbers), self.values(V)
        for start in range(0, len(F), self.block):
            rows = slice(start, min(start + self.block, len(F)))
            G, found, *kept = inner(rows, F[rows])
            if each is not None:
                each(rows, *kept)
            total, sums = total + self.K[rows].T @ G.astype(self.dtype), sums + found
        return np.asarray(total, dtype=np.float64), sums

    def square(self, weight, transform=lambda columns: None):
        root = np.sqrt(weight).astype(self.dtype)
        columns = np.asfortranarray((self.K * root[:, None]).T)
        transform(columns)
        return np.tril(columns @ columns.T).astype(np.float64), (columns @ root).astype(np.float64)


@pytest.fixture
def features_of():
    """Features of a stored K(X, Z) and K(Z, Z); and Φ itself, n × (independent landmarks)."""

    def make(K, own, fit_intercept=True, dtype="float64"):
        kept, basis = independent(own, dtype)
        features = Features(StoredRows(np.ascontiguousarray(K[:, kept].astype(dtype))), basis, fit_intercept)
        return features, np.linalg.solve(basis.T.T, K[:, kept].T).T

    return make


@pytest.fixture
def gaussian():
    def kernel(X, Z):
        return np.exp(-0.5 * ((X[:, None] - Z[None]) ** 2).sum(axis=2))

    return kernel
