r"""Monomials x^a = x₁^a₁ ⋯ x_m^a_m of degree |a| = a₁ + ⋯ + a_m: counted, listed, and evaluated.

By the multinomial theorem

    ⟨x, y⟩^d = Σ_{|a| = d} (d! / a!) x^a y^a,      a! = a₁! ⋯ a_m!,

so the monomials of degree d weighted by √(d!/a!) are an exact feature map of the kernel ⟨x, y⟩^d. They
come in lexicographic order, x₁^d first: for d = 2 in ℝ², (x₁², √2 x₁x₂, x₂²).

>>> count(2, 2), exponents(2, 2).tolist()
(3, [[2, 0], [1, 1], [0, 2]])
>>> homogeneous(np.array([[3.0, 5.0]]), 2)
array([[ 9.        , 21.21320344, 25.        ]])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import InputError
from mercer.features.base import in_words
from mercer.runtime.config import require_memory

Floats = NDArray[np.floating[Any]]

#: what helps where a map made of monomials does not fit the memory budget
REMEDY = "use the kernel itself, which needs no features, a lower degree or fewer columns"


def count(m: int, degree: int) -> int:
    """The number of monomials of exactly this degree in m variables: C(d + m − 1, d).

    >>> count(100, 6), count(1000, 2)
    (1609344100, 500500)
    """
    return math.comb(degree + m - 1, degree) if m > 0 else int(degree == 0)


def exponents(m: int, degree: int) -> NDArray[np.int64]:
    """The exponents a of all monomials of this degree, one per row: (count(m, degree), m).

    >>> exponents(3, 1).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    """
    size = count(m, degree)
    require_memory(
        8 * size * m, f"a table of the exponents of {in_words(size)} monomials", "lower the degree"
    )
    table = np.zeros((size, m), dtype=np.int64)
    for a, factors in zip(table, combinations_with_replacement(range(m), degree), strict=True):
        for variable in factors:
            a[variable] += 1
    return table


def weights(m: int, degree: int) -> NDArray[np.float64]:
    """The weights √(d!/a!) in the same order: what :func:`homogeneous` makes of a point of ones.

    >>> weights(2, 3) ** 2
    array([1., 3., 3., 1.])
    """
    return homogeneous(np.ones((1, m)), degree)[0]


def homogeneous(X: Floats, degree: int) -> Floats:
    """Φ_d(x) = (√(d!/a!) x^a), |a| = d, for each row of X: (n, m) to (n, count(m, degree)).

    >>> Phi = homogeneous(np.array([[1.0, 2.0, 3.0], [2.0, 0.0, 1.0]]), 4)
    >>> float(Phi[0] @ Phi[1])  # (1·2 + 2·0 + 3·1)⁴
    625.0
    """
    block = np.ones((len(X), 1), dtype=X.dtype)
    for d in range(1, degree + 1):
        block = grow(block, X, d, out=np.empty((len(X), count(X.shape[1], d)), dtype=X.dtype))
    return block


def grow(lower: Floats, X: Floats, degree: int, out: Floats) -> Floats:
    """Φ_d from Φ_{d−1}, written into ``out``.

    A monomial of degree d whose first variable is xᵢ is xᵢ times one of degree d − 1 in xᵢ, …, x_m, and
    those are the last ones of ``lower``. The weight grows by √(d/aᵢ), since d!/a! = (d−1)!/(a−eᵢ)! · d/aᵢ.
    """
    # lower (n, count(m, d-1)); X (n, m); out (n, count(m, d))
    m = X.shape[1]
    start = 0
    for i in range(m):
        width = count(m - i, degree - 1)
        np.multiply(lower[:, -width:], X[:, i : i + 1], out=out[:, start : start + width])
        start += width
    out *= np.sqrt(degree / _first_exponents(m, degree)).astype(X.dtype)
    return out


def _first_exponents(m: int, degree: int) -> NDArray[np.int64]:
    """aᵢ of the first variable xᵢ in each monomial of this degree.

    In order, for each i and each aᵢ = d, …, 1, there are as many as monomials of degree d − aᵢ in what
    is left, x_{i+1}, …, x_m.
    """
    powers = range(degree, 0, -1)
    repeats = [count(m - 1 - i, degree - power) for i in range(m) for power in powers]
    return np.repeat(np.tile(np.array(powers, dtype=np.int64), m), repeats)


def monomial(a: Sequence[int], names: Sequence[str]) -> list[str]:
    """The factors x₁^a₁, … of a monomial as texts.

    >>> monomial([2, 0, 1], ["u", "v", "w"])
    ['u^2', 'w']
    """
    return [f"{name}^{power}" if power > 1 else name for name, power in zip(names, a, strict=True) if power]


def require_names(names: Any, size: int) -> None:
    """Refuse a single text for a list of names, and a list of features that is too long."""
    if isinstance(names, str):
        raise InputError(f"names must be a list with one name per column, got {names!r}: pass [{names!r}]")
    require_memory(100 * size, f"a list of {in_words(size)} feature names", "lower the degree")
