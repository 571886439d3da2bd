r"""Invariance by sets: a point stands for the set of its variants, and sets are compared by their elements.

What no vector of pixels knows, that an image moved by a pixel shows the same thing, a kernel can be told:
k(x, x') is the mean of the base kernel over all variants of x and all variants of x'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.data.sparse import dense
from mercer.data.types import Points
from mercer.kernels.base import Kernel
from mercer.kernels.compose import _kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Joint, Mapping, Pair
from mercer.kernels.parameters import fixed
from mercer.kernels.sets.sets import Stacked, StackedKernel
from mercer.kernels.vectors.dotproduct import Linear


class Invariant(StackedKernel):
    r"""k(x, x') = (1/T²) Σᵢ Σⱼ base(tᵢ(x), tⱼ(x')), where t₁ is the identity and the others are given.

    Each of ``transformations`` is a function of a whole table, (n, d) to (n, d), such as those that
    ``shifts`` and ``rotations`` list for images; of a list of objects where ``base`` takes objects.

    >>> from mercer import Gaussian
    >>> mirrored = Invariant(Gaussian(sigma=1.0), [np.fliplr])
    >>> mirrored([[0.0, 1.0]], [[1.0, 0.0]]) == mirrored([[0.0, 1.0]], [[0.0, 1.0]])
    array([[ True]])
    """

    closure = "k(x, x') is the set kernel of a kernel of variants: ⟨mean of Φ(tᵢ(x)), mean of Φ(tⱼ(x'))⟩"
    base: Kernel = _kernel()
    transformations: Any = fixed(
        (),
        "a list of functions",
        lambda v: isinstance(v, list | tuple) and all(map(callable, v)),
        "e.g. shifts((8, 8), 1.0), or [np.fliplr]",
    )

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.base.domain

    @property
    def objects(self) -> str | None:  # type: ignore[override]
        return self.base.objects

    @property
    def is_mean(self) -> bool:
        return True

    def variants(self, X: Points) -> list[Any]:
        """X and what the transformations make of it."""
        return [X, *(Mapping(function)(X) for function in self.transformations)]

    def encode(self, X: Points) -> Stacked:
        variants = self.variants(X)
        n, several = data.n_points(X), len(variants)
        stack = variants[0]
        for more in variants[1:]:
            stack = data.stack(stack, more)
        # The variants of a point become neighbours.
        order = np.arange(n * several).reshape(several, n).T.ravel()
        return Stacked.of(np.full(n, several), self.base, data.take(stack, order))

    def average(self, X: Points) -> Any:  # (n, d)
        """The mean of the variants: all that a linear base kernel sees."""
        variants = self.variants(dense(data.as_vectors(X)))
        return sum(variants[1:], start=np.array(variants[0], np.float64)) / len(variants)

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        if type(self.base) is Linear:
            return pair.through(Mapping(self.average)).dot
        return pair.through(_Points(self.encode, self.domain)).external(self)


@dataclass(frozen=True)
class _Points(Joint):
    """Points whose variants are taken, as the transformations see them."""

    domain: Domain

    def read(self, X: Points) -> Any:
        if self.domain.is_vectors:
            return dense(data.as_vectors(X))
        return data.as_objects(data.single_column(X)) if self.domain is Domain.OBJECTS else X


@dataclass(frozen=True)
class Composed:
    """One transformation after the other."""

    steps: tuple[Any, ...]

    def __call__(self, X: Points) -> Any:
        for step in self.steps:
            X = step(X)
        return X


def compositions(*families: Sequence[Any]) -> list[Composed]:
    """All ways to apply at most one transformation of each family, in their order; without doing nothing.

    >>> from mercer import rotations, shifts
    >>> len(compositions(shifts((8, 8), 1.0), rotations((8, 8), 10.0)))  # (1 + 4) (1 + 2) - 1
    14
    """
    chosen = product(*([(), *((function,) for function in family)] for family in families))
    return [Composed(steps) for parts in chosen if (steps := tuple(step for part in parts for step in part))]
