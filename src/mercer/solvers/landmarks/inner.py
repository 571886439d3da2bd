r"""What is done with the values F of the rows of a block, between K_b V and K_bᵀ G: objects that can be sent.

Each is called with the positions of the rows and F, and gives G, numbers that are added up, and perhaps what
is kept of the block; ``part(rows)`` is the same for these rows alone, which count from 0 then: all that a
worker elsewhere has to know. Those that have a method ``on(place)`` can do the same on a device, where
``place(array)`` is the array; it is None for what is made of others that cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.solvers.arrays import joined, namespace

#: an array, where the rows are
Place = Callable[[np.ndarray], Any]


@dataclass(frozen=True, eq=False)
class Weighted:
    """G = W F; F itself is kept where that is asked for."""

    weight: np.ndarray  # (n, 1), or (1, 1) for all rows
    keeps: bool = False

    def __call__(self, rows: slice, F: np.ndarray) -> tuple[Any, ...]:
        W = self.weight if len(self.weight) == 1 else self.weight[rows]
        return (W * F, 0.0, F) if self.keeps else (W * F, 0.0)

    def part(self, rows: slice) -> Weighted:
        W = self.weight if len(self.weight) == 1 else self.weight[rows]
        return replace(self, weight=W[:1] if (W[0] == W).all() else W)

    def on(self, place: Place) -> Weighted:
        return replace(self, weight=place(self.weight))


@dataclass(frozen=True, eq=False)
class WithIntercept:
    """The inner function of F + b, and the sums of its G before its numbers."""

    inner: Any
    b: np.ndarray  # (m,)

    def __call__(self, rows: slice, F: np.ndarray) -> tuple[Any, ...]:
        G, found, *kept = self.inner(rows, F + self.b)
        return G, joined(G.sum(axis=0), found), *kept

    def part(self, rows: slice) -> WithIntercept:
        return WithIntercept(self.inner.part(rows), self.b)

    def on(self, place: Place) -> WithIntercept | None:
        there = self.inner.on(place) if hasattr(self.inner, "on") else None
        return None if there is None else WithIntercept(there, place(self.b))


@dataclass(frozen=True, eq=False)
class RiskGradient:
    """∇R(F) and R(F); F is kept. A risk of one function takes and gives (n,)."""

    risk: Any
    is_single: bool

    def __call__(self, rows: slice, F: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        part, given = self.risk.part(rows), F[:, 0] if self.is_single else F
        G = part.gradient(given)
        return G[:, None] if self.is_single else G, part.value(given), F

    def part(self, rows: slice) -> RiskGradient:
        return RiskGradient(self.risk.part(rows), self.is_single)

    def on(self, place: Place) -> RiskGradient | None:
        return replace(self, risk=self.risk.on(place)) if hasattr(self.risk, "on") else None


@dataclass(frozen=True, eq=False)
class RiskCurvature:
    """R''(F) V of several functions, at a given F."""

    risk: Any
    F: np.ndarray  # (n, m)

    def __call__(self, rows: slice, V: np.ndarray) -> tuple[np.ndarray, float]:
        return self.risk.part(rows).curvature(self.F[rows])(V), 0.0

    def part(self, rows: slice) -> RiskCurvature:
        return RiskCurvature(self.risk.part(rows), self.F[rows])


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The fitted values ψ̃C of ψ = Qᵀφ and the errors left out, (y - ψ̃C) / (1 - h), which are kept."""

    Y: np.ndarray  # (n, t)
    #: (n,) w/c, what a leverage is multiplied by
    ratio: np.ndarray
    centre: np.ndarray  # (M,)
    C: np.ndarray  # (M, t)
    D: np.ndarray  # (M, t)
    #: 1/Σw where there is an intercept, else 0
    ones: float
    #: the least of 1 - h
    least: float

    def __call__(self, rows: slice, psi: np.ndarray) -> tuple[Any, ...]:
        psi -= self.centre
        fitted = psi @ self.C
        errors = (self.Y[rows] - fitted) / self.free(rows, psi)
        return psi[:, :0], 0.0, (fitted, errors)

    def free(self, rows: slice, psi: np.ndarray) -> np.ndarray:  # (rows, P)
        """1 - h; ψ is overwritten."""
        psi *= psi
        free = 1 - self.ratio[rows, None] * (psi @ self.D + self.ones)
        return namespace(free).clip(free, self.least, None)

    def part(self, rows: slice) -> LeftOut:
        return replace(self, Y=self.Y[rows], ratio=self.ratio[rows])

    def on(self, place: Place) -> LeftOut:
        names = ("Y", "ratio", "centre", "C", "D")
        return replace(self, **{name: place(getattr(self, name)) for name in names})


@dataclass(frozen=True, eq=False)
class Scores(LeftOut):
    """The weighted means of what is left out, for P penalties: C is (M, P t), D is (M, P)."""

    share: np.ndarray  # (n,)
    is_squared: bool

    def __call__(self, rows: slice, psi: np.ndarray) -> tuple[Any, ...]:
        psi -= self.centre
        fitted = (psi @ self.C).reshape(len(psi), self.D.shape[1], -1)
        errors = (self.Y[rows, None, :] - fitted) / self.free(rows, psi)[:, :, None]
        sizes = errors**2 if self.is_squared else abs(errors)
        return psi[:, :0], self.share[rows] @ sizes.reshape(len(psi), -1)

    def part(self, rows: slice) -> Scores:
        return replace(self, Y=self.Y[rows], ratio=self.ratio[rows], share=self.share[rows])

    def on(self, place: Place) -> Scores:
        names = ("Y", "ratio", "centre", "C", "D", "share")
        return replace(self, **{name: place(getattr(self, name)) for name in names})


@dataclass(frozen=True, eq=False)
class Largest:
    """The largest |F + b| of each column among the rows with a weight, and F + b there, which are kept."""

    weight: np.ndarray  # (n,)
    b: np.ndarray  # (m,)
    #: sizes that differ by less than this part are equal: the first of them counts
    tie: float

    def __call__(self, rows: slice, F: np.ndarray) -> tuple[Any, ...]:
        F = np.where(self.weight[rows, None] > 0, F + self.b, 0.0)
        size = np.abs(F)
        first = (size >= (1 - self.tie) * size.max(axis=0)).argmax(axis=0)
        return np.empty((len(F), 0)), 0.0, (size.max(axis=0), F[first, np.arange(F.shape[1])])

    def part(self, rows: slice) -> Largest:
        return replace(self, weight=self.weight[rows])
