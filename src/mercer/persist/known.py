r"""What a model file may name: classes and functions that do nothing but compute.

A file holds names, never code. A name is followed only if it is on this page, or if the user has passed the
class or the function itself (``trusted``). Nothing on this page opens files or asks the net. So a file from a
stranger can at worst be a bad model.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from mercer.errors import InputError, InputTypeError

#: parts of mercer whose classes are models, or parts of models
# fmt: off
_HOMES = frozenset((
    "certify", "estimators", "expansion", "features", "kernels", "losses", "persist", "report", "selection",
    "solvers", "tables", "testing",
))
#: modules among these that open files, or take files apart
_READERS = frozenset((
    "mercer.features.email.boxes", "mercer.kernels.graphs.many", "mercer.persist.archive",
    "mercer.persist.envelope", "mercer.persist.walk", "mercer.solvers.control",
    "mercer.tables.arrays", "mercer.tables.formats", "mercer.tables.frames", "mercer.tables.source",
    "mercer.tables.training",
))
#: modules whose classes may be named, and whose functions open files
_READING_FUNCTIONS = frozenset(("mercer.features.email",))
# fmt: on
#: Of scikit-learn, the classes that inherit from one of these may be named, and those below.
_BASES = frozenset(
    {
        "sklearn.base.BaseEstimator",
        "sklearn.gaussian_process.kernels.Kernel",
        "sklearn.metrics._scorer._BaseScorer",
        "sklearn.model_selection._split.BaseCrossValidator",
        "sklearn.model_selection._split.BaseShuffleSplit",
    }
)
_PARTS = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
    }
)
_FUNCTIONS = (
    "mercer.features.",
    "mercer.kernels.",
    "mercer.losses.",
    "mercer.testing.",
    "sklearn.feature_selection.",
    "sklearn.metrics.",
)
#: functions of numpy that are no ufuncs and do nothing but compute
# fmt: off
_NUMPY = frozenset((
    "amax", "amin", "around", "atleast_2d", "average", "clip", "cumsum", "diff", "dot", "einsum",
    "fliplr", "flipud", "gradient", "hstack", "max", "mean", "median", "min", "nan_to_num", "outer",
    "prod", "ravel", "real", "round", "sort", "sum", "trace", "vdot", "vstack",
))
# fmt: on
_TYPES = {
    f"builtins.{kind.__name__}": kind for kind in (bool, int, float, str, object, list, dict, set, tuple)
}
_NOT_OF_SKLEARN = frozenset(
    ("tests", "conftest", "externals", "datasets", "experimental", "_testing", "_mocking")
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(\.[A-Za-z_][A-Za-z_0-9]*)*")


def trust(given: Any) -> dict[str, Any]:
    """The classes and functions of the user, by name."""
    items = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    names = {}
    for item in items:
        if not isinstance(item, type | FunctionType):
            raise InputTypeError(
                f"trusted is a list of classes and functions of yours, got {item!r}: pass these themselves"
            )
        names[f"{item.__module__}.{item.__qualname__}"] = item
    return names


# --- classes ---------------------------------------------------------------------------------------------


def class_name(kind: type, trusted: dict[str, Any]) -> str | None:
    """The name under which a class may be in a file, or None."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    if trusted.get(name) is kind:
        return name if _find(kind.__module__, kind.__qualname__) is kind else None
    return name if _is_known(kind) and _find(kind.__module__, kind.__qualname__) is kind else None


def named_class(module: Any, name: Any, trusted: dict[str, Any]) -> type | None:
    """The class of a name in a file, or None if it may not be there."""
    if not (isinstance(module, str) and isinstance(name, str)):
        return None
    if (own := trusted.get(f"{module}.{name}")) is not None:
        return own if isinstance(own, type) and _find(module, name) is own else None
    if not _may_be_loaded(module):
        return None
    kind = _find(module, name, load=True)
    return kind if isinstance(kind, type) and kind.__module__ == module and _is_known(kind) else None


def _is_known(kind: type) -> bool:
    if not _may_be_loaded(kind.__module__):
        return False
    if kind.__module__.startswith("mercer."):
        return True
    ancestors = {f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__}
    return not ancestors.isdisjoint(_BASES) or f"{kind.__module__}.{kind.__qualname__}" in _PARTS


def _may_be_loaded(module: str) -> bool:
    """Whether a module is one of those whose classes may be known; loading it does nothing else."""
    library, _, rest = module.partition(".")
    first, *more = rest.split(".")
    if not _IDENTIFIER.fullmatch(module) or any(part.startswith("__") for part in (first, *more)):
        return False
    if library == "mercer":
        return first in _HOMES and module not in _READERS
    return library == "sklearn" and {first, *more}.isdisjoint(_NOT_OF_SKLEARN)


def _find(module: str, name: str, load: bool = False) -> Any:
    """What a module has under a name, if it is there."""
    try:
        home = import_module(module) if load else sys.modules.get(module)
    except ImportError:
        return None
    return vars(home).get(name) if home is not None else None


# --- functions -------------------------------------------------------------------------------------------


def is_function(value: object) -> bool:
    """Whether it is a function or a method, of Python, of numpy or compiled."""
    kinds = (FunctionType, BuiltinFunctionType, MethodType, np.ufunc, type(np.fliplr))
    return isinstance(value, kinds)


def function_name(function: Any, trusted: Any = ()) -> tuple[str, str]:
    """Module and name under which a function may be in a file."""
    name = str(getattr(function, "__qualname__", None) or getattr(function, "__name__", "?"))
    if isinstance(function, np.ufunc):
        homes = [
            module for module in ("numpy", "scipy.special") if _find(module, name, load=True) is function
        ]
    elif isinstance(function, type(np.fliplr)):
        homes = ["numpy"] if name in _NUMPY and vars(np).get(name) is function else []
    else:
        module = str(getattr(function, "__module__", None))
        found = named_or_none(module, name, trusted)
        homes = [module] if found is function else []
    if not homes:
        where = getattr(function, "__module__", None) or type(function).__module__
        raise InputError(
            f"a model file holds no code, and this is the function {name!r} of {where}: put something that "
            "mercer has in its place, or None; or, if the function is yours, pass trusted=[…] with it, both "
            "to save and to load"
        )
    return homes[0], name


def named_function(module: Any, name: Any, trusted: Any = ()) -> Any:
    """The function of a name in a file."""
    function = named_or_none(module, name, trusted)
    if function is None:
        raise InputError(
            f"it names the function {name!r} of {module!r}, which mercer does not know to do no harm: "
            f"if it is yours, pass trusted=[{name}]"
        )
    return function


def named_or_none(module: Any, name: Any, trusted: Any = ()) -> Any:
    """The function of that name which a file may name, or None."""
    if not (isinstance(module, str) and isinstance(name, str)):
        return None
    if trusted and f"{module}.{name}" in trusted:
        own = trusted[f"{module}.{name}"]
        return own if isinstance(own, FunctionType) else None
    if module in ("numpy", "scipy.special"):
        found = _find(module, name, load=True)
        is_plain = isinstance(found, type(np.fliplr)) and module == "numpy" and name in _NUMPY
        return found if isinstance(found, np.ufunc) or is_plain else None
    if not f"{module}.".startswith(_FUNCTIONS) or not _may_be_loaded(module):
        return None
    if module in _READING_FUNCTIONS:
        return None
    found = _find(module, name, load=True)
    return found if isinstance(found, FunctionType) and found.__module__ == module else None


# --- types of numbers ------------------------------------------------------------------------------------


def type_name(kind: type) -> str | None:
    """The name of a type of numbers or of a container, as it may be a parameter (dtype=np.float64)."""
    name = f"builtins.{kind.__name__}"
    if _TYPES.get(name) is kind:
        return name
    if issubclass(kind, np.generic) and getattr(np, kind.__name__, None) is kind:
        return f"numpy.{kind.__name__}"
    return None


def named_type(name: Any) -> type:
    """The type of that name."""
    if name in _TYPES:
        return _TYPES[name]
    library, _, rest = str(name).partition(".")
    kind = vars(np).get(rest) if library == "numpy" else None
    if not (isinstance(kind, type) and issubclass(kind, np.generic)):
        raise InputError(f"it names the type {name!r}, which is not one of numbers")
    return kind
