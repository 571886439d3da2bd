"""Which numbers the products of points are computed with, and how far the kernel values then are from exact.

Tensor cores multiply numbers of fewer bits than float32 has, at many times its speed; two or three such
products for one ("x3") win bits back. Points are rounded to those bits before anything else, and the norms in
‖x‖² + ‖y‖² - 2⟨x, y⟩ are those of the rounded points: K is the kernel matrix of points that have moved a
little, and as definite as the kernel is. How much K differs is not guessed: it is computed, in float64, on
some of the pairs, as ‖K̂ - K‖/‖K‖ in the Frobenius norm without the diagonal, and the fastest product that
keeps it below ``config(kernel_error=…)`` is taken. What sums in float32 add to it is that of every float32
matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Arithmetic(NamedTuple):
    """A way to multiply float32 points: its name, and how many bits of them it keeps."""

    name: str
    bits: int

    @property
    def unit(self) -> float:
        """The largest relative error of a number."""
        return float(2.0**-self.bits)


#: Ways to multiply float32 numbers, from the fastest to the most exact.
PRODUCTS = (Arithmetic("tf32", 11), Arithmetic("tf32x3", 22), Arithmetic("float32", 24))
FLOAT32 = PRODUCTS[-1]
#: The relative error of K that is allowed where ``config(kernel_error=…)`` says nothing.
DEFAULT_ERROR = 1e-6


def cheapest(error: Callable[[Arithmetic], float], allowed: float) -> tuple[Arithmetic, float]:
    """The first product whose error is allowed, float32 else, and its error."""
    for product in PRODUCTS[:-1]:
        found = error(product)
        if found <= allowed:
            return product, found
    return FLOAT32, error(FLOAT32)


def rounded(torch: Any, x: Any, bits: int) -> Any:
    """The float32 tensor with so many bits in each number, to the nearest and ties to even."""
    if bits >= FLOAT32.bits:
        return x
    dropped = FLOAT32.bits - bits
    pattern = x.contiguous().view(torch.int32)
    last = (pattern >> dropped) & 1
    pattern = (pattern + ((1 << (dropped - 1)) - 1) + last) & -(1 << dropped)
    return pattern.view(torch.float32)
