r"""Our learners in scikit-learn's place, for code that exists.

``patch_scikit_learn()`` puts a class of ours under scikit-learn's name, in scikit-learn's public modules. It
is a subclass of scikit-learn's own, so that parameters, defaults, checks, tags and ``isinstance`` are
scikit-learn's; what is computed is mercer's. Attributes after a fit are scikit-learn's, and ``mercer_`` is
the fitted learner of mercer, with its certificates and its report.

What is imported *after* the patch is patched. A module that imported a name before keeps what it has.

>>> from mercer import patch_scikit_learn, unpatch_scikit_learn
>>> patch_scikit_learn(["SVC", "KernelRidge"])
['SVC', 'KernelRidge']
>>> from sklearn.svm import SVC
>>> model = SVC(kernel="linear").fit([[-1.0], [0.0], [2.0], [3.0]], [0, 0, 1, 1])
>>> model, model.predict([[5.0]]), bool(model.mercer_.dual_gap_ < 1e-3)
(SVC(kernel='linear'), array([1]), True)
>>> unpatch_scikit_learn()
['SVC', 'KernelRidge']
>>> import sklearn.svm
>>> sklearn.svm.SVC is SVC, isinstance(model, sklearn.svm.SVC)
(False, True)
"""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from mercer.errors import InputError

__all__ = ["PLACES", "patch_scikit_learn", "unpatch_scikit_learn"]

#: the names that are replaced: where scikit-learn's users import them from, and where ours are
PLACES = {
    "SVC": ("sklearn.svm", "mercer.drop_in.machines"),
    "NuSVC": ("sklearn.svm", "mercer.drop_in.machines"),
    "SVR": ("sklearn.svm", "mercer.drop_in.machines"),
    "NuSVR": ("sklearn.svm", "mercer.drop_in.machines"),
    "OneClassSVM": ("sklearn.svm", "mercer.drop_in.machines"),
    "KernelRidge": ("sklearn.kernel_ridge", "mercer.drop_in.ridge"),
    "KernelPCA": ("sklearn.decomposition", "mercer.drop_in.components"),
    "Nystroem": ("sklearn.kernel_approximation", "mercer.drop_in.landmarks"),
}
#: what was found under the names that are patched now
_before: dict[str, Any] = {}


def patch_scikit_learn(names: Iterable[str] | None = None) -> list[str]:
    """Put mercer's learners in scikit-learn's place: all of `PLACES`, or those named. The names, in order.

    A name that is patched already stays so.

    >>> patch_scikit_learn(["LinearSVC"])
    Traceback (most recent call last):
    mercer.errors.InputError: mercer has no drop-in for 'LinearSVC': pass names among SVC, NuSVC, SVR, ...
    """
    chosen = _chosen(names)
    for name in chosen:
        if name in _before:
            continue
        place, home = PLACES[name]
        module, ours = import_module(place), getattr(import_module(home), name)
        original = ours.original
        _before[name] = getattr(module, name)
        setattr(module, name, ours)
        if original.__module__ == place:  # pickle would not find the original under its name
            copyreg.pickle(original, _as_patched)
    return chosen


def unpatch_scikit_learn(names: Iterable[str] | None = None) -> list[str]:
    """Put back what was there before: all of it, or the names given. Those that were patched, in order."""
    undone = [name for name in _chosen(names) if name in _before]
    for name in undone:
        place, home = PLACES[name]
        ours = getattr(import_module(home), name)
        before = _before.pop(name)
        if getattr(sys.modules[place], name) is ours:  # somebody else may have put another one there
            setattr(sys.modules[place], name, before)
        copyreg.dispatch_table.pop(ours.original, None)
    return undone


def _chosen(names: Iterable[str] | None) -> list[str]:
    chosen = list(PLACES) if names is None else [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in PLACES:
            raise InputError(
                f"mercer has no drop-in for {name!r}: pass names among {', '.join(PLACES)}, or none for all"
            )
    return chosen


def _as_patched(model: Any) -> tuple[Any, ...]:
    """A model of scikit-learn's own class, which is saved as one of ours: the state of both is the same."""
    ours = getattr(import_module(PLACES[type(model).__name__][1]), type(model).__name__)
    return copyreg._reconstructor, (ours, object, None), model.__getstate__()  # type: ignore[attr-defined]
