r"""The parameters of a learner, each declared once: a line of its class gives name, type, default and check.

    @learner
    class KernelThing(KernelMixin, KernelParameters, BaseEstimator):
        alpha: float = positive(1.0)       # checked when fitting starts
        verbose: bool = False              # not checked

scikit-learn wants a constructor that stores what it is given, whatever it is, and that shows its parameters
by name: a dataclass makes just that. ``_: KW_ONLY`` stands between parameters that may be given by position
and those that may not; parameters that several learners have are in classes of their own, such as these.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from mercer.data.types import Checkpoint, ProgressMode
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import Parameter, fixed, positive

Learner = TypeVar("Learner", bound=type)


@dataclass_transform(eq_default=False)
def learner(cls: Learner) -> Learner:
    """The class with a constructor of its parameters, and their checks in ``_declared``.

    In the signature a class's own parameters stand before those it shares with others, but for those that may
    be given by position: they stand in the order in which they are taken.
    """
    made: Any = cls
    checks = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
    inherited = [vars(base).get("_declared", {}) for base in reversed(cls.__mro__)]
    made._declared = {name: check for declared in [*inherited, checks] for name, check in declared.items()}
    for name, parameter in checks.items():
        setattr(cls, name, parameter.default)
    dataclass(eq=False, repr=False, match_args=False)(cls)
    own = [field.name for field in fields(made) if field.name in vars(cls)]
    for name in own:  # A learner that lost a parameter, in a damaged file, has none of its class.
        delattr(cls, name)
    bases: list[Any] = [base for base in cls.__mro__[1:] if "__dataclass_fields__" in vars(base)]
    order = [*own, *(name for base in bases for name in inspect.signature(base.__init__).parameters)]
    signature = inspect.signature(made.__init__)
    in_order = sorted(
        signature.parameters.values(),
        key=lambda p: (p.kind, order.index(p.name) if p.kind is p.KEYWORD_ONLY else 0),
    )
    made.__init__.__signature__ = signature.replace(parameters=in_order)
    return cls


def flag(default: bool | None, **options: Any) -> Any:
    """A declared parameter that is True or False."""
    return fixed(
        default, "True or False", lambda v: isinstance(v, bool | np.bool_), "one of the two", **options
    )


@learner
class KernelParameters:
    """A kernel, by itself or by its name and the numbers that scikit-learn gives beside a name."""

    kernel: KernelLike = "rbf"
    _: KW_ONLY
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0


@learner
class RunParameters:
    """Control over a long run; see `mercer.estimators.shared.iterative`."""

    _declared: ClassVar[dict[str, Parameter]]

    _: KW_ONLY
    max_time: float | None = positive(None, optional=True)
    progress: ProgressMode = fixed(
        None,
        "True, False or a function",
        lambda v: isinstance(v, bool) or callable(v),
        "one of them",
        optional=True,
    )
    checkpoint: Checkpoint = fixed(
        None, "a path", lambda v: isinstance(v, str | os.PathLike), "a file name", optional=True
    )
    resume: bool = flag(False)
