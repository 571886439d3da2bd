"""Which kernels may be looked at: those whose values NumPy works out at once, from a formula."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.errors import InputError
from mercer.gram import Gram
from mercer.kernels.base import Kernel
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import (
    Columns,
    External,
    ExternalDiagonal,
    Mapping,
    Mean,
    Scaling,
    View,
    unit_rows,
)
from mercer.kernels.objects import Precomputed
from mercer.runtime.config import within

_MOST_PARTS, _MOST_LEAVES = 40, 2000  # a kernel may have so many parts, and its formula so many leaves
_MOST_REFERENCE_POINTS = 256  # a centred kernel may take its means over so many


def is_quick(kernel: Kernel) -> bool:
    """Whether values are a formula of numbers: nothing compiled, nothing of the user's, few reference points.

    >>> from mercer import FromFunction, Gaussian, Precomputed, Spectrum
    >>> [is_quick(k) for k in (Gaussian(), Precomputed([[1.0]]), Spectrum(2), FromFunction(max))]
    [True, True, False, False]
    """
    if len(list(islice(kernel.parts(), _MOST_PARTS + 1))) > _MOST_PARTS or not kernel.is_resolved():
        return False
    leaves = list(islice(kernel.expression().leaves(), _MOST_LEAVES + 1))
    return len(leaves) <= _MOST_LEAVES and all(map(_is_quick_leaf, leaves))


def _is_quick_leaf(leaf: Expression) -> bool:
    if isinstance(leaf, Mean):
        few = data.n_points(leaf.reference) <= _MOST_REFERENCE_POINTS
        return few and all(map(_is_quick_leaf, leaf.inner.leaves()))
    if isinstance(leaf, External | ExternalDiagonal) and not isinstance(leaf.source, Precomputed):
        return False
    return all(map(_is_quick_step, getattr(leaf, "view", View()).steps))


def _is_quick_step(step: Any) -> bool:
    return isinstance(step, Columns | Scaling) or (isinstance(step, Mapping) and step.function is unit_rows)


def values(kernel: Kernel, X: Any, Y: Any) -> np.ndarray | None:  # (n, m)
    """k(X, Y) by NumPy in float64; None where the kernel does not take these points."""
    try:
        with within(backend="numpy", dtype="float64", device="cpu", cluster=None), np.errstate(all="ignore"):
            return Gram(kernel, X, Y, cache=0).dense()
    except InputError:
        return None
