r"""Imports that leave out what nobody needs.

skops lists scikit-learn's estimators, which imports every package of scikit-learn: also its adapters for
PyTorch, Dask and CuPy, which import these. None has an estimator, and the walk skips what cannot be imported.
So, while skops is imported, they cannot be; PyTorch alone would take two thirds of the time.

>>> with refusing(("wsgiref.validate",)):
...     import wsgiref.validate
Traceback (most recent call last):
ImportError: wsgiref.validate is left out while something else is imported
>>> import wsgiref.validate
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident

__all__ = ["ADAPTERS", "refusing"]

#: scikit-learn's adapters for libraries of arrays
ADAPTERS = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy"))


class _Refusal:
    """A finder that comes before the others, and refuses some modules to the thread that made it."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules, self._thread = tuple(modules), get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self._modules and get_ident() == self._thread:
            raise ImportError(f"{name} is left out while something else is imported", name=name)


@contextmanager
def refusing(modules: Sequence[str]) -> Iterator[None]:
    """Modules that are not loaded yet cannot be imported in this block, by this thread."""
    refusal = _Refusal(modules)
    sys.meta_path.insert(0, refusal)
    try:
        yield
    finally:
        sys.meta_path.remove(refusal)
