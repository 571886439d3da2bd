r"""What the classes that stand in scikit-learn's place share.

A drop-in is a subclass of scikit-learn's class: it inherits the parameters, and overrides what computes. It
keeps two things: scikit-learn's attributes, and ``mercer_``, which is asked for predictions. Who exchanges an
attribute afterwards, or loads a model that scikit-learn fitted, has a model of scikit-learn's, and it is
evaluated by scikit-learn's code: ``mercer_`` is asked only while what it stands for is there unchanged.

What mercer does not learn is left to scikit-learn's own code, and a `SlowPathWarning` says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.errors import SlowPathWarning, warn_user


class Adapter:
    """The part of a drop-in that is not about one learner; it comes before scikit-learn's class."""

    #: scikit-learn's class
    original: type
    #: the fitted learner of mercer, while there is one
    mercer_: Any
    #: copies of attributes that ``mercer_`` stands for
    _stands_for: dict[str, np.ndarray]

    @property
    def _theirs(self) -> Any:
        """The same model, with scikit-learn's own methods."""
        return super()

    def _keep(self, model: Any, **attributes: Any) -> None:
        """The learner to ask from now on, as long as these attributes are what they are."""
        self.mercer_ = model
        self._stands_for = {name: _numbers(value).copy() for name, value in attributes.items()}

    def _learner(self) -> Any:
        """The learner of mercer that this model is, or None where it is scikit-learn's own."""
        own = vars(self)
        if "mercer_" not in own:
            return None
        same = all(np.array_equal(_numbers(own[name]), seen) for name, seen in self._stands_for.items())
        return self.mercer_ if same else None

    def _leave(self, why: str) -> None:
        """Say that scikit-learn's own code takes over, and forget what was learned before."""
        vars(self).pop("mercer_", None)
        vars(self).pop("_stands_for", None)
        warn_user(f"{type(self).__name__} is left to scikit-learn's own code: {why}", SlowPathWarning)


def _numbers(value: Any) -> np.ndarray:
    return value.data if sparse.issparse(value) else np.asarray(value)


def adapted(original: type, adapter: type[Adapter], home: str) -> Any:
    """scikit-learn's class with the adapter's methods before its own, under its name; found in ``home``."""
    own = {"__module__": home, "__qualname__": original.__name__, "__doc__": original.__doc__}
    # scikit-learn makes frames of what these return, if they are the class's own.
    own |= {name: vars(adapter)[name] for name in ("transform", "fit_transform") if name in vars(adapter)}
    return type(original)(original.__name__, (adapter, original), {**own, "original": original})
