r"""Whole fits as tasks of a cluster: folds of a nested error, trials of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mercer.cluster.spread import Run, Spread
from mercer.runtime.config import settings

__all__ = ["each"]


def each(what: str, function: Callable[..., Any], shared: tuple[Any, ...], items: Sequence[Any]) -> list[Any]:
    """``function(*shared, item)`` for every item, in their order: by the configured cluster, else one by one.

    >>> each("power", pow, (2,), [3, 4])
    [8, 16]
    """
    client = settings().cluster
    if client is None:
        return [function(*shared, item) for item in items]
    found: dict[int, Any] = {}
    run = Run(Spread(client, None), what, function, shared, lambda g: ([items[g]], ()), found.__setitem__)
    run.go(range(len(items)))
    return [found[g] for g in range(len(items))]
