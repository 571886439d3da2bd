"""Names for what goes in at the door: points, their targets and weights, and what options may be.

Which points a kernel takes is checked when it is called (``as_vectors``, ``as_objects``): rows of an array, a
sparse matrix or a data frame, or a list of strings, sets, trees or graphs. The types say what these share.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np


class Points(Protocol):
    """A collection of points; ``n_points`` counts them, for a sparse matrix refuses to tell its length."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...


class Tabular(Points, Protocol):
    """Points that have columns: an array, a sparse matrix or a data frame."""

    shape: tuple[int, ...]


#: one label, one number or one row of numbers for each point; an array once a learner has checked them
Targets: TypeAlias = Any
#: one number for each point, which says how often it counts; None where all count once
Weights: TypeAlias = Any
#: one number, or an array of them
Reals: TypeAlias = "float | np.ndarray"
#: where random numbers start: what scikit-learn takes as ``random_state``
Seed: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"
#: a factor for the weights of each label; "balanced" makes classes count alike
ClassWeight: TypeAlias = "Mapping[Any, float] | str | None"
#: the file that keeps the state of a run
Checkpoint: TypeAlias = "str | os.PathLike[str] | None"
#: whether a bar is drawn (None: on a terminal), or a function that is called with each event
ProgressMode: TypeAlias = "bool | Callable[[dict[str, Any]], object] | None"
#: points of which each is an object: a string, a set, a tree, a graph
Objects: TypeAlias = Sequence[Any]
#: points as a kernel on objects encoded them, in a container of its own that numbers them
Encoded: TypeAlias = Any
#: a data frame of pandas or polars, neither of which is imported for its type
Frame: TypeAlias = Any
#: a fitted estimator of mercer or scikit-learn, or a pipeline of them
Model: TypeAlias = Any
