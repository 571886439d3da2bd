"""A seed from what scikit-learn's users write as ``random_state``."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from mercer.errors import InputError

_LARGEST_SEED = 2**32 - 1  # the largest that NumPy's RandomState takes


def seed_of(random_state: Any) -> int:
    """A number stands for itself, None for 0; a generator is asked for one.

    >>> seed_of(7), seed_of(None)
    (7, 0)
    """
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_LARGEST_SEED))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_LARGEST_SEED))
    is_number = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if is_number and 0 <= int(random_state) <= _LARGEST_SEED:
        return int(random_state)
    raise InputError(
        f"random_state must be a number from 0 to {_LARGEST_SEED}, None or a NumPy generator, "
        f"got {random_state!r}"
    )
