r"""The verdict on a matrix: is K symmetric, and cᵀKc ≥ 0 for every c?

The entries are taken as they are, so the question has an answer, and rounding is only in ours.

- **proved**: the Cholesky factorisation of K - sI goes through. A computed factor R has RᵀR = K - sI + Δ with
  ‖Δ‖ ≤ (n+1)ε/(1 - (n+1)ε) · trace (Demmel; Rump 2006), so that K has no negative eigenvalue if s is larger
  than that.
  A small matrix that is singular is decided by elimination in fractions, which rounds nothing.
- **refuted**: two entries that differ, or c with cᵀKc < 0 by more than rounding explains.
- **unknown**: the smallest eigenvalue is zero as far as rounding can tell.

>>> print(certify_matrix([[1, 1, 0], [1, 1, 1], [0, 1, 1]]))
the 3 × 3 matrix is refuted: cᵀKc = -0.414214 < 0
eigenvalues: 2.41421, 1, -0.414214
c = 0.5 at 0
c = -0.707107 at 1
c = 0.5 at 2
>>> certify_matrix([[1, 1], [1, 1]]).reason
'elimination in exact fractions meets no negative pivot'
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mercer.certify.certificate import Certificate
from mercer.certify.proof import Step
from mercer.certify.rounding import frobenius
from mercer.certify.witness import smallest_pair, witness_at
from mercer.data import points as data
from mercer.data.sparse import dense, is_sparse
from mercer.errors import InputError
from mercer.runtime.config import require_memory

_FRACTIONS_UP_TO = 24  # rows; with these, exact fractions take well below a second
_WITNESS_UP_TO = 400  # rows; of a larger matrix c is an eigenvector, which may have many entries
_POTRF = "the Cholesky factorisation of K - sI exists for an s above its rounding errors (Demmel, Rump)"
_FRACTIONS = "elimination in exact fractions meets no negative pivot"


def certify_matrix(K: Any) -> Certificate:
    """Proved or refuted to be positive semidefinite, or unknown."""
    given = _square(K)
    epsilon = float(np.finfo(given.dtype).eps)
    matrix = given.astype(np.float64)
    skew = abs(matrix - matrix.T)
    largest = float(abs(matrix).max())
    if skew.max() > np.sqrt(epsilon) * largest:
        i, j = np.unravel_index(int(skew.argmax()), skew.shape)
        reason = f"K[{i}, {j}] = {matrix[i, j]:.6g} but K[{j}, {i}] = {matrix[j, i]:.6g}: it is not symmetric"
        return Certificate("refuted", reason, given, points=np.array([i, j]))
    symmetric = (matrix + matrix.T) / 2
    nearly = (
        f"; it was symmetric up to {skew.max():.1g}, and its symmetric part is meant" if skew.any() else ""
    )
    proof = _prove(symmetric, is_exact=not skew.any())
    if proof is not None:
        return Certificate("proved", proof + nearly, given, steps=Step(f"the {_name(given)}", proof))
    return _by_eigenvalues(given, symmetric, epsilon, nearly)


def _square(K: Any) -> np.ndarray:
    table = data.as_vectors(K, "K")
    n, m = table.shape
    if n != m:
        raise InputError(
            f"a Gram matrix is square, got shape {(n, m)}: pass k(X), the values at all pairs of points"
        )
    if is_sparse(table):
        require_memory(8 * n * n, f"a dense {n} × {n} matrix", "pass some of its rows and columns")
    return dense(table)


def _prove(K: np.ndarray, is_exact: bool) -> str | None:
    n = len(K)
    if (np.diagonal(K) < 0).any():
        return None
    shift = 4 * (n + 2) * np.finfo(float).eps * np.trace(K) + n * np.finfo(float).tiny
    if lapack.dpotrf(K - shift * np.eye(n), lower=1)[1] == 0:
        return _POTRF
    return _FRACTIONS if is_exact and n <= _FRACTIONS_UP_TO and _has_no_negative_pivot(K) else None


def _has_no_negative_pivot(K: np.ndarray) -> bool:
    """Whether K = LDLᵀ with D ≥ 0, exactly: a pivot of zero needs a row of zeros."""
    rows = [[Fraction(float(value)) for value in row] for row in K]
    while rows:
        (pivot, *first), rest = rows[0], rows[1:]
        if pivot < 0 or (pivot == 0 and any(first)):
            return False
        rows = [
            [b - row[0] * a / pivot for a, b in zip(first, row[1:], strict=True)] if pivot else row[1:]
            for row in rest
        ]
    return True


def _by_eigenvalues(given: np.ndarray, K: np.ndarray, epsilon: float, nearly: str) -> Certificate:
    low, c = smallest_pair(K)
    explained = 4 * len(K) * epsilon * float(frobenius(K))
    if low >= -explained:
        reason = (
            f"its smallest eigenvalue is {low:.3g}, and rounding explains values down to {-explained:.1g}: "
            "zero, or on either side of it"
        )
        return Certificate("unknown", reason + nearly, given)
    everywhere = np.arange(len(K))
    found = (
        witness_at(everywhere, K, np.full(K.shape, 4 * epsilon * abs(K).max()))
        if len(K) <= _WITNESS_UP_TO
        else None
    )
    if found is not None and found.vector is not None:
        c = np.zeros(len(K))
        c[found.points] = found.vector
    return Certificate(
        "refuted",
        f"cᵀKc = {c @ K @ c:.6g} < 0" + nearly,
        given,
        points=everywhere,
        vector=c,
        eigenvalues=np.linalg.eigvalsh(K)[::-1].copy(),
    )


def _name(K: np.ndarray) -> str:
    return f"{len(K)} × {len(K)} matrix"
