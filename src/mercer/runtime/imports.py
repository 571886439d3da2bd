r"""Imports that leave out what nobody needs.

scikit-learn imports pandas and all of ``scipy.stats`` when it starts, and skops lists scikit-learn's
estimators, which imports every package of scikit-learn. `refusing` and `deferring` keep such modules out of
an import that can do without them.

>>> with refusing(("wsgiref.validate",)):
...     import wsgiref.validate
Traceback (most recent call last):
ImportError: wsgiref.validate is left out while something else is imported
>>> import wsgiref.validate

What was deferred is loaded as soon as anything of it is asked for:

>>> import sys
>>> with deferring(("wsgiref.handlers",)):
...     import wsgiref.handlers
>>> "_LazyModule" in str(type(sys.modules["wsgiref.handlers"])), wsgiref.handlers.CGIHandler.__name__
(True, 'CGIHandler')

A process that runs the command ``mercer`` and nothing else is `lean`: there modules can be left out that
the code of somebody else might ask for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from threading import get_ident
from types import ModuleType
from typing import Any

#: scikit-learn's adapters for libraries of arrays, which import these libraries; none has an estimator
ADAPTERS = tuple(f"sklearn.externals.array_api_compat.{name}" for name in ("torch", "dask", "cupy"))
#: where skops asks scikit-learn for the names of more types, and does without them if it must
_TYPES = ("sklearn._loss", "sklearn.ensemble")
#: the parts of skops that store trees and losses
_OF_SKLEARN = ("skops.io._sklearn", "skops.io._quantile_forest")

_lean = False


class _Finder:
    """A finder that comes before the others, and treats some modules for the thread that made it."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules, self._thread = tuple(modules), get_ident()

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        is_meant = name in self._modules and get_ident() == self._thread
        return self._spec(name, path) if is_meant else None

    def _spec(self, name: str, path: Any) -> ModuleSpec | None:
        raise ImportError(f"{name} is left out while something else is imported", name=name)


class _Later(_Finder):
    """A finder whose modules are loaded when something of them is first asked for."""

    def _spec(self, name: str, path: Any) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def _first(finder: _Finder) -> Iterator[None]:
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextmanager
def refusing(modules: Sequence[str]) -> Iterator[None]:
    """Modules that are not loaded yet cannot be imported in this block, by this thread."""
    with _first(_Finder(modules)):
        yield


@contextmanager
def deferring(modules: Sequence[str]) -> Iterator[None]:
    """Modules that this block imports, in this thread, are loaded when something of them is asked for."""
    with _first(_Later(modules)):
        yield


@contextmanager
def lean(is_alone: bool) -> Iterator[None]:
    """Inside, the process is lean, if it runs the command alone."""
    global _lean
    before, _lean = _lean, _lean or is_alone
    try:
        yield
    finally:
        _lean = before


def is_lean() -> bool:
    """Whether the process runs the command ``mercer`` and nothing else."""
    return _lean


def import_sklearn() -> None:
    """Import scikit-learn; in a lean process without what it can do without.

    That is pandas, which is refused, and ``scipy.stats`` and joblib's asyncio, which are loaded when they are
    used.
    """
    if not _lean:
        return
    with refusing(("pandas",)), deferring(("scipy.stats", "asyncio")):
        import sklearn.base  # noqa: F401


@contextmanager
def importing_skops() -> Iterator[None]:
    """Inside, skops is imported without libraries that it needs for nothing that mercer writes.

    skops lists the estimators of scikit-learn and the functions of NumPy and SciPy, to trust them unasked,
    and knows how trees and losses are stored. mercer names all that it trusts, and writes none of them. So a
    lean process goes without; elsewhere skops stays whole, for it may be somebody else's too.
    """
    if not _lean or "skops.io" in sys.modules:
        with refusing(ADAPTERS):
            yield
        return
    import numpy
    import scipy.special
    import sklearn.utils

    for name in _OF_SKLEARN:
        empty: Any = ModuleType(name, "It is left out: mercer writes no such objects.")
        empty.NODE_TYPE_MAPPING = {}
        sys.modules[name] = empty
    listed, sklearn.utils.all_estimators = sklearn.utils.all_estimators, list
    try:
        with refusing(_TYPES), _unlisted(numpy), _unlisted(scipy.special):
            yield
    finally:
        sklearn.utils.all_estimators = listed


@contextmanager
def _unlisted(module: ModuleType) -> Iterator[None]:
    """``dir(module)`` is empty inside: who looks through all that is in it finds, and loads, nothing."""
    names = vars(module)
    before = names.get("__dir__")
    names["__dir__"] = list
    try:
        yield
    finally:
        if before is None:
            del names["__dir__"]
        else:
            names["__dir__"] = before
