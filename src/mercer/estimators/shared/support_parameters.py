r"""What the parameters of support vector machines may be."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from mercer.data.scalars import is_number
from mercer.estimators.shared.parameters import KernelParameters, flag, learner
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import Parameter, choice, fixed, positive


def _is_infinite(value: object) -> bool:
    return isinstance(value, float | np.floating) and bool(value == np.inf)


#: a penalty C: its square and its products with kernel values are numbers too
FINITE_PENALTY: Any = Parameter(
    1.0, "positive and at most 1e100", lambda v: is_number(v) and 0 < float(v) <= 1e100, "a positive number"
)
#: infinite for none of what it penalises
PENALTY: Any = Parameter(
    1.0,
    "positive",
    lambda v: FINITE_PENALTY.accepts(v) or _is_infinite(v),
    'a positive number up to 1e100, or float("inf") for a hard margin',
)
#: ν, a part of the points
PART: Any = Parameter(
    0.5, "in (0, 1]", lambda v: is_number(v) and 0 < v <= 1, "a part of the points, such as 0.5"
)

#: what coef0 may be for the kernels that have it: they know it by other names
COEF0 = {
    "poly": Parameter(
        0.0,
        "non-negative",
        lambda v: is_number(v) and v >= 0,
        'a number that is zero or more: with a negative one "poly" is not positive definite',
    ),
    "sigmoid": Parameter(0.0, "a finite number", is_number, "a real number"),
}
COEF0["polynomial"] = COEF0["poly"]


@learner
class SupportParameters(KernelParameters):
    """The parameters that all machines have."""

    _: KW_ONLY
    kernel: KernelLike = "rbf"
    tol: float = positive(1e-3)
    shrinking: bool = flag(True)
    cache_size: float | str = fixed(
        "auto",
        '"auto" or positive',
        lambda v: (isinstance(v, str) and v == "auto") or (is_number(v) and v > 0) or _is_infinite(v),
        'a number of megabytes, or "auto"',
    )
    max_iter: int = fixed(
        -1,
        "a whole number of at least -1",
        lambda v: isinstance(v, int | np.integer) and not isinstance(v, bool) and bool(-1 <= v <= 2**62),
        "a number of steps, or -1 for the solver's own limit",
    )
    precision: str = choice("auto", ["auto", "float32", "float64"])
    warm_start: bool = flag(False)
    verbose: bool = fixed(
        False,
        "True or False",
        lambda v: isinstance(v, bool | np.bool_ | int | np.integer),
        "one of the two",
    )
