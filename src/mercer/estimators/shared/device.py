"""Which exact solvers live on a device, what they take there, and the matrix they are given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.data.types import Points
from mercer.estimators.shared.low_rank import factor_words
from mercer.estimators.shared.ridge_plans import WORDS
from mercer.gram import Gram
from mercer.gram.device import is_used
from mercer.kernels.base import Kernel
from mercer.report import Method, Plan
from mercer.runtime.config import settings
from mercer.solvers.linear.precondition import factor_memory, usual_rank

_LIVE_THERE = (Method.CHOLESKY, Method.MIXED, Method.LAZY)


def matrix_for(plan: Plan, kernel: Kernel, X: Points) -> Any:
    """K of the points: one whose factors live on the device where the plan says so."""
    gram = Gram(kernel, X, cache=0)
    if not (is_used() and plan.device_memory and plan.method in _LIVE_THERE):
        return gram
    from mercer.gram.device.matrix import DeviceGram

    return DeviceGram(gram)


def on_device(
    plans: dict[str, Plan], n: int, width: int, penalties: int, chosen_rank: Any
) -> dict[str, Plan]:
    """The plans of ridge regression with what they take of the device instead of the host.

    The rank of the factor for "cg" is what the device has room for.
    """
    from mercer.gram.device.plans import ridge_memory

    item = np.dtype(settings().dtype).itemsize
    vectors, found = 8 * n * 40, dict(plans)
    where = f"K, its factor and products are on {settings().device!r}"
    for name, matrix in (("cholesky", item), ("mixed", 4)):
        needed = ridge_memory(n, width, matrix, matrix * n * n)
        why = (*plans[name].why, f"{where}, {needed.words}")
        found[name] = replace(plans[name], memory=vectors, device_memory=needed.total, why=why)
    lazy, needed = plans["cg"], ridge_memory(n, width, item, 0)
    room = needed.left - needed.total
    rank = usual_rank(n, room // 2, item, systems=penalties) if chosen_rank == "auto" else lazy.rank
    total = needed.total + (factor_memory(n, rank, item, systems=penalties) if rank else 0)
    words = WORDS[Method.LAZY] + f" with a factor of rank {rank:,}" * bool(rank)
    told = [factor_words(rank)] if rank or chosen_rank == "auto" else []
    why = (lazy.why[0], *told, f"{where}, {needed.words}")
    found["cg"] = replace(lazy, solver=words, rank=rank, memory=vectors, device_memory=total, why=why)
    return found


def device_choice(plans: dict[str, Plan]) -> Plan:
    """The first of them that fits: a factor in float64 takes no longer there than one in float32."""
    from mercer.gram.device.plans import device_budget

    budget = device_budget()
    for name in ("cholesky", "mixed"):
        if plans[name].device_memory <= budget and not (name == "mixed" and settings().dtype == "float32"):
            return plans[name]
    why = "K does not fit the device's memory"
    return replace(plans["cg"], why=(why, *plans["cg"].why))
