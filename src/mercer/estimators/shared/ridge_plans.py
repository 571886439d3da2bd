"""What the solvers of kernel ridge regression take, and what they are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.shared.low_rank import factor_words
from mercer.report import Method, Plan
from mercer.runtime.config import memory_budget, settings
from mercer.solvers.linear.precondition import factor_memory, usual_rank

__all__ = ["WORDS", "dense_plan", "lazy_plan"]

#: of K with vectors, until the residual is 1e-10 of y: what α and the spectrum of K make of it
_TYPICAL_PRODUCTS = 60
WORDS: dict[Method | None, str] = {
    Method.CHOLESKY: "Cholesky factorisation",
    Method.PRIMAL: "Cholesky factorisation in the features",
    Method.LAZY: "conjugate gradients",
    Method.MIXED: "Cholesky factorisation in float32, refined by conjugate gradients",
    Method.EIGENVALUES: "eigenvalues of K",
}


def dense_plan(
    how: Method | str,
    n: int,
    cubes: float,
    why: tuple[str, ...],
    matrices: float = 1.0,
    n_outputs: int = 1,
    extra: int = 0,
) -> Plan:
    """A plan that stores K: ``cubes`` · n³ operations in the memory of ``matrices`` n × n matrices."""
    itemsize = np.dtype(settings().dtype).itemsize
    memory = int(matrices * n * n * itemsize) + 8 * n * (6 * n_outputs + 12) + extra
    method = how if isinstance(how, Method) else None
    return Plan(WORDS.get(method, str(how)), n, memory, cubes * float(n) ** 3, why, method=method)


def lazy_plan(n: int, memory: int, product: float, chosen_rank: Any, penalties: int) -> Plan:
    """Conjugate gradients, which share the memory with the factor that makes them quick.

    ``memory`` is what they take by themselves, ``product`` the work of a product with K.
    """
    item = np.dtype(settings().dtype).itemsize
    if chosen_rank == "auto":
        rank = usual_rank(n, (memory_budget() - memory) // 2, item, systems=penalties)
    else:
        rank = min(int(chosen_rank), n)
    why, flops = ["K is computed anew in each iteration"], _TYPICAL_PRODUCTS * product
    if rank:
        memory += factor_memory(n, rank, item, systems=penalties)
        flops += (1.0 + penalties) * n * rank**2 + penalties / 3 * float(rank) ** 3
    if rank or chosen_rank == "auto":
        why.append(factor_words(rank))
    words = WORDS[Method.LAZY] + f" with a factor of rank {rank:,}" * bool(rank)
    return Plan(words, n, memory, flops, tuple(why), iterative=True, method=Method.LAZY, rank=rank)
