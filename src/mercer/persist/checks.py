r"""Whether what comes out of a file is as a constructor or a fit would have left it.

A checksum tells a damaged file from a whole one, but anybody can compute one. What does not fit together is
found here, when the file is loaded, and not later by whatever error a prediction happens to end in.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from mercer.data import points as data
from mercer.data.types import Model
from mercer.errors import InputError
from mercer.expansion import Expansion
from mercer.features.email.vocabulary import Vocabulary
from mercer.kernels.base import Kernel
from mercer.kernels.depth import require_shallow
from mercer.kernels.formula.program import Program
from mercer.persist.patterns import check_pattern
from mercer.persist.sizes import mismatch

#: the number of kernels that one kernel may be made of, each counted as often as it is used
MOST_KERNELS = 10_000
_MOST_JOBS = 1024


def check(part: Any, sizes: dict[int, int] | None = None, trusted: dict[str, Any] | None = None) -> None:
    """Refuse a kernel, a function or an estimator that is not whole.

    ``sizes`` has the numbers of kernels that those looked at before are made of, by address; ``trusted`` what
    the user has named.

    >>> from mercer import SVC
    >>> model = SVC()
    >>> del model.C
    >>> check(model)
    Traceback (most recent call last):
    mercer.errors.InputError: the file is damaged: its SVC has no C; save the model again
    """
    if isinstance(part, Kernel):
        _check_kernel(part)
        check_pattern(part, trusted or {})
        check_size(part, {} if sizes is None else sizes)
    elif isinstance(part, Expansion):
        _require(part, "kernel", "anchors", "coef", "intercept")
        _check_expansion(Expansion(part.kernel, part.anchors, part.coef, part.intercept))
    elif isinstance(part, BaseEstimator):
        _require(part, *type(part)._get_param_names())
        check_reads_nothing(part)
        check_pattern(part, trusted or {})
        _check_parameters(part)
        _check_fitted(part)
    elif isinstance(part, Vocabulary):
        _check_vocabulary(part)


def _require(part: Any, *names: str) -> None:
    missing = [name for name in names if not hasattr(part, name)]
    if missing:
        raise _damaged(part, f"has no {' and no '.join(missing)}")


def _damaged(part: Any, what: str) -> InputError:
    return InputError(f"the file is damaged: its {type(part).__name__} {what}; save the model again")


def _check_kernel(kernel: Kernel) -> None:
    """The checks that the constructor makes."""
    _require(kernel, *kernel._names())
    for name in kernel._names():
        if name in kernel.parameters:
            kernel.parameters[name].check(name, vars(kernel)[name])
    kernel.check()
    require_shallow(kernel)


def check_size(kernel: Kernel, sizes: dict[int, int]) -> None:
    """A kernel that is in two places of others is written once, and computed twice: not without limit."""
    sizes[id(kernel)] = size = 1 + sum(sizes.get(id(part), 1) for part in _kernels_in(vars(kernel).values()))
    if size > MOST_KERNELS:
        raise InputError(
            f"its kernel is made of {size} kernels, and a model file may have {MOST_KERNELS}: use fewer terms"
        )


def _kernels_in(values: Any) -> Iterator[Kernel]:
    for value in values:
        if isinstance(value, Kernel):
            yield value
        elif isinstance(value, list | tuple):
            yield from _kernels_in(value)
        elif isinstance(value, dict):
            yield from _kernels_in(value.values())


def _check_expansion(f: Expansion) -> None:
    """That a kernel with a number for each column, or with columns by number, has as many as the points."""
    if f.kernel.domain.is_vectors:
        for view in Program(f.kernel).views:
            view(data.take(f.anchors, slice(0, 1)))


def _check_parameters(model: Model) -> None:
    """The checks that a fit begins with, of every estimator that has any."""
    is_stated = type(model)._validate_params is not BaseEstimator._validate_params
    if not is_stated and not hasattr(model, "_parameter_constraints"):
        return
    try:
        model._validate_params()
    except (ValueError, TypeError) as error:
        raise InputError(
            f"its {type(model).__name__} could not be fitted: {error}; set the parameter and save the model "
            "again"
        ) from None


def check_reads_nothing(model: Model) -> None:
    """Refuse an estimator of scikit-learn that would open files that a model file names, or start a crowd."""
    if not type(model).__module__.startswith("sklearn."):
        return
    found = vars(model)
    kind = type(model).__name__
    if found.get("input", "content") != "content":
        raise InputError(
            f"a {kind} with input={found['input']!r} opens files when it is used: a model file may have "
            "input='content' alone"
        )
    if found.get("memory") is not None:
        raise InputError(
            f"a {kind} with memory={found['memory']!r} keeps files in a folder, and runs what is there: a "
            "model file may have memory=None alone; call set_params(memory=None) first"
        )
    jobs = found.get("n_jobs")
    if isinstance(jobs, Integral) and abs(int(jobs)) > _MOST_JOBS:
        raise InputError(
            f"a {kind} with n_jobs={jobs} would start that many processes: pass at most {_MOST_JOBS}"
        )


def _check_vocabulary(known: Vocabulary) -> None:
    """That the columns of elements are 0, 1, …, with a weight each."""
    _require(known, "columns", "worth", "unknown")
    columns, worth = known.columns, known.worth
    is_whole = isinstance(columns, dict) and isinstance(worth, np.ndarray) and worth.shape == (len(columns),)
    if not is_whole or list(columns.values()) != list(range(len(columns))) or not np.isfinite(worth).all():
        raise _damaged(known, "has not one weight for each of its columns")


def _check_mails(model: Model) -> None:
    """That a filter of mails has a coefficient for each known element of each aspect."""
    parts: list[Any] = [vars(model).get(name) for name in ("vocabularies_", "coef_", "weights_")]
    if parts[0] is None:
        return  # The filter is not fitted.
    if not all(isinstance(part, dict) for part in parts) or len({frozenset(part) for part in parts}) != 1:
        raise _damaged(model, "has not the same aspects everywhere")
    for name, coef in model.coef_.items():
        known = model.vocabularies_[name]
        if (
            not isinstance(known, Vocabulary)
            or np.shape(coef) != (len(known),)
            or not np.isfinite(coef).all()
        ):
            raise _damaged(model, f"has not one coefficient for each element of the {name}")
    if len(model.classes_) != 2 or not np.isfinite([model.intercept_, model.threshold_, *model.curve_]).all():
        raise _damaged(model, "has not two classes with a threshold between them")


def _check_fitted(model: Model) -> None:
    """The attributes that predictions of any estimator rely on."""
    found = vars(model)
    kinds: dict[str, Any] = {"n_features_in_": Integral, "classes_": np.ndarray | list}
    if type(model).__module__.startswith("mercer."):
        kinds |= {"kernel_": Kernel, "expansion_": Expansion, "classes_": np.ndarray, "model_": BaseEstimator}
    for name, kind in kinds.items():
        if name in found and not isinstance(found[name], kind):
            raise _damaged(model, f"has a {type(found[name]).__name__} as {name}")
    f, width = found.get("expansion_"), found.get("n_features_in_")
    shape: tuple[int, ...] = getattr(f.anchors, "shape", ()) if isinstance(f, Expansion) else ()
    is_direct = found.get("features_") is None  # Otherwise the features make the points of the columns.
    if width is not None and is_direct and len(shape) == 2 and width != shape[1]:
        raise _damaged(model, f"was fitted to {width} columns, and its points have {shape[1]}")
    if isinstance(f, Expansion) and "kernel_" in found and found["kernel_"] != f.kernel:
        raise _damaged(model, "has another kernel than the function in it")
    if (wrong := mismatch(model)) is not None:
        raise _damaged(model, wrong)
    _check_inner(model, found.get("model_", found.get("estimator_")))
    if type(model).__name__ == "MailClassifier":
        _check_mails(model)


def _check_inner(model: Model, inner: Any) -> None:
    """That a model in a model has the same classes, and as many columns as the features make."""
    if not isinstance(inner, BaseEstimator):
        return
    found, classes, width = vars(model), *(vars(inner).get(name) for name in ("classes_", "n_features_in_"))
    if classes is not None and "classes_" in found and not np.array_equal(found["classes_"], classes):
        raise _damaged(model, "has other classes than the model in it")
    features: Any = found.get("features_")
    is_known = type(features).__name__ == "TableFeatures"
    made = len(features.get_feature_names_out()) if is_known else width
    if width is not None and made != width:
        raise _damaged(model, f"has features of {made} columns, and a model of {width}")
