"""The room "is it a kernel?": a verdict, with its proof or its witness.

>>> found = certify_typed(Asked({"kernel": "gaussian(1)*linear"}))
>>> found["verdict"], found["steps"]["rule"], len(found["steps"]["parts"])
('proved', 'a product of kernels (Schur)', 2)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from mercer.certify import Certificate, certify
from mercer.certify.conditional import what_it_allows
from mercer.certify.proof import Step
from mercer.errors import InputError, MemoryBudgetError
from mercer.kernels.base import Kernel
from mercer.lab.asked import Asked
from mercer.lab.seen import plain, short
from mercer.lab.typed import asked_about

#: The dimension that may be asked for, and the points of a counterexample that are shown, at most.
_HIGHEST_DIMENSION, _POINTS_SHOWN = 64, 24


def certify_typed(asked: Asked) -> dict[str, Any]:
    """The verdict on a text, in any dimension (``dim`` 0) or in one."""
    return _certified(asked.text("kernel"), asked.whole("dim", 0, 0, _HIGHEST_DIMENSION))


@lru_cache(maxsize=256)
def _certified(text: str, dim: int) -> dict[str, Any]:
    typed = asked_about(text)
    found = certify(typed.kernel, dim=dim or None)
    asks = f"certify({typed.source}{f', dim={dim}' if dim else ''})"
    return plain(
        {
            "kernel": {"text": text, "resolved": repr(found.kernel)},
            "verdict": found.verdict,
            "reason": found.reason,
            "conditional": None if found.conditional is None else what_it_allows(found.conditional),
            "conditions": [] if found.steps is None else list(found.steps.conditions),
            "steps": None if found.steps is None else _tree(found.steps),
            "witness": _witness(found),
            "frequency": None if found.frequency is None else found.frequency.omega,
            "dimension": found.dimension,
            "shape": shape_of(typed.kernel, dim or 1),
            "code": f"from mercer import certify\n\ncertificate = {asks}\nprint(certificate)\n",
        }
    )


def _tree(step: Step) -> dict[str, Any]:
    parts = [_tree(part) for part in step.parts]
    return {"subject": step.subject, "rule": step.rule, "needs": list(step.needs), "parts": parts}


def _witness(found: Certificate) -> dict[str, Any] | None:
    """Points, the vector c with cᵀKc < 0, and eigenvalues; of many points those that tell most."""
    if found.points is None or found.eigenvalues is None:
        return None
    points = np.asarray(found.points, dtype=float)
    c = np.ones(len(points)) if found.vector is None else np.asarray(found.vector)
    most = np.sort(np.argsort(-np.abs(c), kind="stable")[:_POINTS_SHOWN])
    return {
        "points": short(points[most]),
        "vector": None if found.vector is None else short(c[most]),
        "number": len(points),
        "eigenvalues": short(np.asarray(found.eigenvalues)[[0, -1]]),
        "all_eigenvalues": short(np.asarray(found.eigenvalues)[:60]),
    }


def shape_of(kernel: Kernel, dim: int) -> dict[str, Any] | None:
    """k(0, x) along the first axis; None of a kernel that is not of numbers."""
    if not kernel.domain.is_vectors or not kernel.is_resolved():
        return None
    at = np.linspace(-4.0, 4.0, 201)
    X = np.zeros((len(at), dim))
    X[:, 0] = at
    try:
        values = kernel(np.zeros((1, dim)), X)[0]
    except (InputError, MemoryBudgetError):  # the kernel needs numbers ≥ 0, or named columns
        return None
    return {"at": short(at), "values": short(values)}
