"""What all rooms show of a kernel on points: values on a grid, the Gram matrix, its eigenvalues, facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.data.types import Points
from mercer.expansion import Expansion
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.runtime.threads import single_threaded_blas

GRID_STEPS = 61  # values of f along each side of the picture: boundaries are drawn between them
_ROWS_SHOWN, _ROWS_DECOMPOSED, _EIGENVALUES_SHOWN = 100, 400, 60


def short(values: Any, digits: int = 5) -> Any:
    """Numbers as a page needs them: plain lists of few digits, None for what is no finite number.

    >>> short([[1 / 3, np.inf], [1e-20, 123456789.0]])
    [[0.33333, None], [1e-20, 123460000.0]]
    """
    values = np.asarray(values, dtype=float)
    is_finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        size = np.where((values == 0) | ~is_finite, 1.0, np.abs(values))
        unit = 10.0 ** (digits - 1 - np.floor(np.log10(size)))
        rounded = np.where(np.isfinite(unit) & (unit > 0), np.round(values * unit) / unit, values)
    if not is_finite.all():
        rounded = rounded.astype(object)
        rounded[~is_finite] = None
    return rounded.tolist()


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as JSON has it: single numbers of NumPy become Python's, and None where they are not finite.

    Lists of numbers are those of ``short``, which are plain already.
    """
    return {name: _plain(value) for name, value in answer.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return plain(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def fact(name: str, value: Any, note: str = "") -> dict[str, Any]:
    """A number with its name, and a word about it."""
    return {"name": name, "value": value, "note": note}


def grid(f: Callable[[np.ndarray], np.ndarray], box: tuple[float, float, float, float]) -> list[list[float]]:
    """f on a grid over the box, row by row from the bottom."""
    left, right, bottom, top = box
    x, y = np.meshgrid(np.linspace(left, right, GRID_STEPS), np.linspace(bottom, top, GRID_STEPS))
    values = f(np.column_stack([x.ravel(), y.ravel()]))
    return list(short(values.reshape(GRID_STEPS, GRID_STEPS)))


def norm_facts(f: Expansion, kernel: Kernel, X: Points) -> list[dict[str, Any]]:
    """‖f‖, and what the reproducing property bounds with it."""
    norm, largest = float(f.norm()), float(Gram(kernel, X, cache=0).diag().max())
    reach = norm * np.sqrt(max(largest, 0.0))
    return [
        fact("norm ‖f‖", norm, "αᵀKα = ‖f‖²; the intercept has no part in it"),
        fact("bound ‖f‖ √k(x,x)", reach, "|f(x) - b| ≤ ‖f‖ √k(x,x) at every one of the points"),
    ]


def gram_of(kernel: Kernel, X: np.ndarray, order: np.ndarray) -> dict[str, Any]:
    """K in an order of the points that shows its blocks, and its eigenvalues, the largest first.

    Of many points some are taken, at equal distances in that order: ``rows`` and ``points`` say how many.
    """
    spread = order[np.unique(np.linspace(0, len(order) - 1, _ROWS_DECOMPOSED).astype(int))]
    K = Gram(kernel, X[spread], cache=0).dense()
    with single_threaded_blas():
        eigenvalues = np.linalg.eigvalsh(K)[::-1]
    some = np.unique(np.linspace(0, len(K) - 1, _ROWS_SHOWN).astype(int))
    return {
        "values": short(K[np.ix_(some, some)], 3),
        "index": spread[some].tolist(),
        "rows": len(some),
        "points": len(K),
        "eigenvalues": short(eigenvalues[:_EIGENVALUES_SHOWN]),
        "lowest": short(eigenvalues[-1]),
    }
