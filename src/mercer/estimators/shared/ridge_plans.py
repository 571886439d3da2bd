"""What the solvers of kernel ridge regression take, and what they are called."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from mercer.estimators.shared.low_rank import factor_words
from mercer.report import Method, Plan
from mercer.runtime.config import memory_budget, settings
from mercer.solvers.linear.precondition import factor_memory, usual_rank
from mercer.solvers.linear.sketch_project import BLOCK_RANK, block_size

#: Products of K with vectors until the residual is 1e-10 of y, with a factor of the usual rank. Their number
#: depends on α and on the spectrum of K. With a lower rank there are more, by about the root of the ratio of
#: the ranks, which counts up to the second number.
_TYPICAL_PRODUCTS, _MOST_MORE = 60, 100.0
#: Passes of block sketch-and-project until a prediction has the two or three digits that it needs.
_TYPICAL_PASSES = 50
WORDS: dict[Method | None, str] = {
    Method.CHOLESKY: "Cholesky factorisation",
    Method.PRIMAL: "Cholesky factorisation in the features",
    Method.LAZY: "conjugate gradients",
    Method.MIXED: "Cholesky factorisation in float32, refined by conjugate gradients",
    Method.EIGENVALUES: "eigenvalues of K",
    Method.SPARSE: "conjugate gradients on the values of K that are not zero",
    Method.BLOCKS: "block sketch-and-project",
}


#: what each solver that is not for every kernel needs
NEEDS = {
    "primal": "solver='primal' needs a kernel with explicit features, linear or polynomial",
    "sparse": "solver='sparse' needs a kernel that is zero beyond some distance, such as Wendland or BSpline",
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


def lazy_plan(n: int, memory: int, product: float, chosen_rank: Any, penalties: int, width: int) -> Plan:
    """Conjugate gradients, which share the memory with the factor that makes them quick.

    ``memory`` is what they take by themselves, ``product`` the work of a product with K, to which that of the
    values of half of K is added; ``width`` is the number of columns.
    """
    product += 1.0 * n * n * (20 + width)
    item = np.dtype(settings().dtype).itemsize
    if chosen_rank == "auto":
        rank = usual_rank(n, (memory_budget() - memory) // 2, item, systems=penalties)
    else:
        rank = min(int(chosen_rank), n)
    more = math.sqrt(min(max(1.0, usual_rank(n, sys.maxsize, item) / max(rank, 1)), _MOST_MORE))
    products = more * _TYPICAL_PRODUCTS
    why = [
        "K is computed anew in each iteration",
        f"the time is that of {products:.0f} products with K; α and the targets decide how many it takes",
    ]
    flops = products * product
    if rank:
        memory += factor_memory(n, rank, item, systems=penalties)
        flops += (1.0 + penalties) * n * rank**2 + penalties / 3 * float(rank) ** 3
    if rank or chosen_rank == "auto":
        why.append(factor_words(rank))
    words = WORDS[Method.LAZY] + f" with a factor of rank {rank:,}" * bool(rank)
    return Plan(words, n, memory, flops, tuple(why), iterative=True, method=Method.LAZY, rank=rank)


def block_plan(n: int, memory: int, product: float, systems: int, n_outputs: int) -> Plan:
    """Block sketch-and-project; the arguments as in `lazy_plan`."""
    block, item = block_size(n), np.dtype(settings().dtype).itemsize
    memory += factor_memory(block, min(BLOCK_RANK, block), item, systems=systems) + 8 * 12 * n * n_outputs
    why = ("it was asked for: a pass over all blocks is the work of one product with K",)
    words, flops = WORDS[Method.BLOCKS], _TYPICAL_PASSES * product
    return Plan(words, n, memory, flops, why, iterative=True, method=Method.BLOCKS)
