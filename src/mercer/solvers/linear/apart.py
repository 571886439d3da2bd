r"""Errors of kernel ridge regression on blocks of points that are left out, by one factor of K + αI.

Given     K; Y, one column per target; α > 0; blocks T of the points; with an intercept
Left out  A = K + αI. The fit without the points of T errs on them by
              e_T = (P_TT)⁻¹ (P Y)_T,   P = A⁻¹ - A⁻¹1 1ᵀA⁻¹ / 1ᵀA⁻¹1
          which is the formula for one point, with a block in the place of a diagonal entry.
From before  With the blocks in the order of time, A = LLᵀ, z = L⁻¹Y and w = L⁻¹1: the factor of the points S
          before T is a corner of L, so that the fit to them has b = w_S·z_S / w_S·w_S and
              f(x_T) + b = b + L_TS (z_S - b w_S).
Cost      n³/3 for all that is predicted from before; n³ for all that is left out, and g³ a block of g.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack, solve_triangular

from mercer.solvers.linear.cholesky import factorise_shifted


def errors_left_out(
    K: np.ndarray,  # (n, n)
    Y: np.ndarray,  # (n, t)
    alpha: float,
    blocks: Sequence[np.ndarray],
) -> np.ndarray:  # (n, t)
    """The errors at the points of each block of the fit to all others.

    >>> K, y = np.eye(4), np.array([[1.0], [2.0], [3.0], [6.0]])
    >>> errors_left_out(K, y, 1.0, [np.array([0, 1]), np.array([2, 3])]).T  # each is told the others' mean
    array([[-3.5, -2.5,  1.5,  4.5]])
    """
    P, _ = lapack.dpotri(factorise_shifted(K, alpha), lower=1, overwrite_c=1)
    P = np.tril(P)
    P += np.tril(P, -1).T
    v = P.sum(axis=1)
    P -= np.outer(v / v.sum(), v)
    right, errors = P @ Y, np.empty(Y.shape)
    for rows in blocks:
        errors[rows] = np.linalg.solve(P[np.ix_(rows, rows)], right[rows])
    return errors


def errors_from_before(
    K: np.ndarray,  # (n, n)
    Y: np.ndarray,  # (n, t)
    alpha: float,
    blocks: Sequence[np.ndarray],
) -> np.ndarray:  # (n, t)
    """The errors at the points of each block of the fit to all blocks before it; nan in the first one.

    >>> K, y = np.eye(4), np.array([[1.0], [2.0], [3.0], [6.0]])
    >>> errors_from_before(K, y, 1.0, [np.array([0, 1]), np.array([2]), np.array([3])]).T
    array([[nan, nan, 1.5, 4. ]])
    """
    order = np.concatenate(blocks)
    L = factorise_shifted(K[np.ix_(order, order)], alpha)
    z = solve_triangular(L, np.column_stack([Y[order], np.ones(len(order))]), lower=True, check_finite=False)
    z, w = z[:, :-1], z[:, -1]
    errors = np.full(Y.shape, np.nan)
    start = len(blocks[0])
    for rows in blocks[1:]:
        b = (w[:start] @ z[:start]) / (w[:start] @ w[:start])
        told = b + L[start : start + len(rows), :start] @ (z[:start] - np.outer(w[:start], b))
        errors[rows] = Y[rows] - told
        start += len(rows)
    return errors
