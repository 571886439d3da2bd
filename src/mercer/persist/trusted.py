"""The classes of mercer by name, for whoever loads its models with skops itself: MLflow does."""

from __future__ import annotations

import inspect
import pkgutil
from functools import cache
from importlib import import_module

import mercer
from mercer.persist.known import class_name

#: parts of mercer whose classes are in fitted models
_HOMES = (
    "estimators",
    "expansion",
    "features",
    "kernels",
    "losses",
    "report",
    "selection",
    "solvers",
    "tables",
)


def trusted_types() -> list[str]:
    """The names of mercer's classes that models consist of, none of which opens files or runs code of others.

    They are for ``skops.io.load(file, trusted=trusted_types())`` and for ``skops_trusted_types`` of MLflow.
    skops puts models together without looking whether their parts fit: for files of strangers there is
    `mercer.load`.

    >>> "mercer.estimators.svc.SVC" in trusted_types()
    True
    """
    return list(_names())


@cache
def _names() -> tuple[str, ...]:
    found: set[str] = set()
    for module in pkgutil.walk_packages(mercer.__path__, "mercer."):
        if module.name.split(".")[1] in _HOMES:
            classes = inspect.getmembers(import_module(module.name), inspect.isclass)
            names = (class_name(kind, {}) for _, kind in classes if kind.__module__ == module.name)
            found.update(name for name in names if name is not None)
    return tuple(sorted(found))
