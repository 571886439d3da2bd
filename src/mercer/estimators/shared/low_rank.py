"""The factor of low rank that keeps iterations few where K is not stored: made, and told in plans."""

from __future__ import annotations

from mercer.gram import Gram
from mercer.solvers.control import Control
from mercer.solvers.landmarks.pivots import PivotedFactor, pivoted_cholesky


def low_rank(gram: Gram, rank: int, control: Control) -> PivotedFactor | None:
    """F with K ≈ FFᵀ; None for rank 0, and where the control stops the run before F is whole.

    The pivots are random, and the same in every run: one that is resumed has the same F.
    """
    if not rank:
        return None
    found = pivoted_cholesky(gram, rank, random_state=0, stopped=lambda: control.stopped is not None)
    return None if found.is_cut else found


def factor_words(rank: int) -> str:
    """What a plan says of it.

    >>> factor_words(2000)
    'a factor of K of rank 2,000 keeps the iterations few'
    """
    if rank:
        return f"a factor of K of rank {rank:,} keeps the iterations few"
    return "there is no memory for a factor of K: with a small penalty the iterations are many"
