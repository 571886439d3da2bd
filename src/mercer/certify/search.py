r"""The search for a witness when no points are given: simple sets of points first, then descent.

Lines, grids, simplices and random clouds in one to three dimensions, at scales from 10⁻⁴ to 10⁴ times those
at which the kernel changes; balls of lattices that are fine enough for a given frequency; then the smallest
eigenvalue of a few points is minimised over their coordinates. A witness of many points loses one after the
other, the rest moving to make up for it. Seeded: the same kernel has the same witness every time.

>>> from mercer import Sigmoid
>>> found, _ = search(Sigmoid(eta=1.0))
>>> found.points.ravel(), bool(found.eigenvalues[-1] < 0)
(array([1., 2.]), True)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from mercer.certify.optimise import descended, share
from mercer.certify.rounding import EPSILON, gram_with_error
from mercer.certify.witness import SEED, Witness, witness_at
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.formula.expression import Expression
from mercer.kernels.formula.pair import Columns, External, Scaling

_SCALES = sorted((10.0 ** (k / 8) for k in range(-32, 33)), key=lambda s: (abs(np.log10(s)), -s))
#: A witness of more points is made smaller: a point is left out and the others are moved. Each attempt is a
#: minimisation over all points, so that large witnesses stay as they are and medium ones get one attempt.
_SMALLEST_WITNESS, _THOROUGH_UP_TO, _LARGEST_REDUCED = 3, 12, 64
_LEFT_OUT_IN_TURN = 6  # attempts on a witness that is small enough to be thorough
_MOST_SLOW_POINTS = 32  # A Python function is called for every pair of points, so that sets stay small.
_CLEAR_SHARE = -1e-4  # An eigenvalue this negative, relative to ‖K‖, needs no better witness.


def search(kernel: Kernel, dim: int | None = None, omega: float | None = None) -> tuple[Witness | None, int]:
    """A witness against the kernel, or None; and how many sets of points were tried.

    ``omega`` is a frequency at which its spectral density in ℝ^dim is thought to be negative.
    """
    expression = kernel.expression()
    space = _Trials(expression, _is_nonnegative(kernel))
    largest = _MOST_SLOW_POINTS if _is_slow(expression) else np.inf
    for d in [dim] if dim else _dimensions(expression):
        units = space.units(d)
        for shape, unit in product(_shapes(d, space.nonnegative), units):
            found = space.best_at_scales(shape * unit) if len(shape) <= largest else None
            if found is not None:
                return found, space.tried
    found = space.on_lattices(dim, omega) if dim and omega else None
    return found or space.descend(), space.tried


class _Trials:
    """Sets of points, tried one after the other."""

    def __init__(self, expression: Expression, nonnegative: bool) -> None:
        self.expression = expression
        self.nonnegative = nonnegative
        self.tried = 0
        self.promising: list[tuple[float, np.ndarray]] = []  # λ_min(K) / ‖K‖ and the points

    def units(self, d: int) -> list[float]:
        """Scales at which the kernel changes from one power of ten to the next: 1, if it does so near 1 or
        nowhere, and the near ends of other ranges of such scales.
        """
        powers = np.arange(-60, 61)
        axis = np.append(0.0, 10.0**powers)[:, None] * np.eye(1, d)
        try:
            K, _ = gram_with_error(self.expression, axis, bounded=False)
        except Exception:  # The user's map may raise anything for such points.
            return [1.0]
        values = np.stack([K[1:-1, 0], np.diagonal(K)[1:-1], np.diagonal(K, 1)[1:]])
        with np.errstate(all="ignore"):
            change = abs(np.diff(values)) / np.maximum(abs(values[:, 1:]), abs(values[:, :-1]))
        changing = powers[:-2][(change > 1e-6).any(axis=0)]
        ranges = np.split(changing, np.flatnonzero(np.diff(changing) > 1) + 1)
        ends = sorted((min(run, key=abs) for run in ranges if len(run)), key=abs)
        return [10.0 ** float(end) if abs(end) > 3 else 1.0 for end in ends[:3]] or [1.0]

    def best_at_scales(self, shape: np.ndarray) -> Witness | None:  # (n, d)
        """The witness of fewest points among all scales of a shape; the first clear one of those."""
        best: Witness | None = None
        for scale in _SCALES[:: 2 if len(shape) > 100 else 1]:
            found = self._witness(shape * scale)
            if found is not None and (best is None or _rank(found) < _rank(best)):
                best = found
        return best and self._tidy(self._fewer(best))

    def on_lattices(self, dim: int, omega: float) -> Witness | None:
        """Balls of a cubic lattice on which waves of the frequency, and not much more, can be told apart."""
        spacings = np.geomspace(0.8, 1.2 * dim**0.5, 8) * np.pi / omega
        for n in (200, 700):
            ball = _lattice_ball(dim, n)
            found = [self._witness(self._inside(ball * spacing)) for spacing in spacings]
            witnesses = [witness for witness in found if witness is not None]
            if witnesses:
                return self._tidy(self._fewer(min(witnesses, key=_rank)))
        return None

    def descend(self) -> Witness | None:
        """Minimise the smallest eigenvalue of a few points, from the most promising sets seen so far."""
        random = np.random.default_rng(SEED)
        self.promising.sort(key=lambda trial: trial[0])
        for _, start in self.promising[:4]:
            for n in (2, 3, 4, 8):
                some = start[random.choice(len(start), size=min(n, len(start)), replace=False)]
                some = some + random.normal(size=some.shape) * 0.1 * (1e-3 + abs(some).max())
                found = self._witness(self._descended(self._inside(some)))
                if found is not None:
                    return self._tidy(self._fewer(found))
        return None

    def _descended(self, points: np.ndarray) -> np.ndarray:
        try:
            return descended(self.expression, points, self._inside)
        except Exception:  # The user's map may raise anything for such points.
            return points

    def _fewer(self, found: Witness) -> Witness:
        """The witness without one point after the other, the rest moved to where the kernel still fails."""
        random = np.random.default_rng(SEED)
        while _SMALLEST_WITNESS < len(found.gram) <= _LARGEST_REDUCED and found.vector is not None:
            size, is_small = float(abs(found.points).max()), len(found.gram) <= _THOROUGH_UP_TO
            out = np.argsort(abs(found.vector), kind="stable")[: _LEFT_OUT_IN_TURN if is_small else 1]
            for i, noise in product(out, (0.0, 0.3) if is_small else (0.0,)):
                # Noise leads away from places that are stationary by symmetry alone.
                rest = np.delete(found.points, i, axis=0)
                rest = rest + noise * size * random.normal(size=rest.shape)
                fewer = self._witness(self._descended(self._inside(rest)))
                if fewer is not None and len(fewer.gram) < len(found.gram):
                    found = fewer
                    break
            else:
                break
        return found

    def _inside(self, points: np.ndarray) -> np.ndarray:
        return abs(points) if self.nonnegative else points

    def _share(self, points: np.ndarray) -> float:
        """λ_min(K) / ‖K‖, 1 where K cannot be computed."""
        try:
            value = share(self.expression, points)
        except Exception:  # The user's map may raise anything for such points.
            return 1.0
        self.tried += 1
        return value

    def _witness(self, points: np.ndarray) -> Witness | None:
        low = self._share(points)
        if low < 1:
            self.promising.append((low, points))
        if low >= -4 * len(points) * EPSILON:
            return None
        K, E = gram_with_error(self.expression, points)
        return witness_at(points, K, E)

    def _tidy(self, found: Witness) -> Witness:
        """The same witness with rounder coordinates, if it stays about as clear."""
        for digits in (1, 2, 3):
            unit = 10.0 ** (np.floor(np.log10(abs(found.points).max() or 1.0)) - digits + 1)
            points = _decimal(np.round(found.points / unit) * unit)
            if self._share(points) > 0.5 * self._share(found.points):
                continue
            rounder = self._witness(points)
            if rounder is not None and len(rounder.gram) <= len(found.gram):
                return rounder
        return found


def _decimal(values: np.ndarray) -> np.ndarray:
    """The numbers of at most 12 digits next to these: 0.3 for 3 · 0.1, and 0 for -0."""
    return np.array([float(f"{value:.12g}") for value in values.ravel()]).reshape(values.shape) + 0.0


def _is_slow(expression: Expression) -> bool:
    return any(
        isinstance(leaf, External) and getattr(leaf.source, "is_slow", False) for leaf in expression.leaves()
    )


def _rank(witness: Witness) -> tuple[int, float]:
    """Fewer points first, then a clearer eigenvalue; all clear ones are equal."""
    if witness.eigenvalues is None:
        return 0, 0.0
    low = float(witness.eigenvalues[-1] / max(abs(witness.gram).max(), 1e-300))
    return len(witness.gram), max(low, _CLEAR_SHARE)


# --- points to try -------------------------------------------------------------------------------


def _shapes(d: int, nonnegative: bool) -> Iterator[np.ndarray]:
    """Sets of points of d columns, of unit size."""
    random = np.random.default_rng(SEED)
    axis = np.zeros((1, d))
    axis[0, 0] = 1.0
    yield np.arange(1.0, 9.0)[:, None] * axis
    yield np.arange(0.0 if nonnegative else -4.0, 9.0 if nonnegative else 5.0)[:, None] * axis
    if d > 1:
        yield _grid(3, min(d, 3), d)
        corners = np.eye(d)[:100]
        yield np.vstack([np.zeros((1, d)), corners] + ([] if nonnegative else [-corners]))
    for n in (6, 24):
        cloud = random.normal(size=(n, d))
        yield abs(cloud) if nonnegative else cloud
    yield np.arange(1.0, 33.0)[:, None] * axis
    if d > 1:  # Functions of ‖x - x'‖ with compact support fail on many points only.
        triangles = np.array([[1.0, 0.0], [0.5, 0.75**0.5]])
        yield np.pad(_grid(12, 2, 2) @ triangles, ((0, 0), (0, d - 2)))
    if d > 2:
        yield _grid(6, 3, d)


def _grid(n: int, axes: int, d: int) -> np.ndarray:  # (n**axes, d)
    """The points 0 … n-1 along each of some axes."""
    points = np.stack(np.meshgrid(*[np.arange(float(n))] * axes, indexing="ij"), axis=-1)
    return np.pad(points.reshape(-1, axes), ((0, 0), (0, d - axes)))


def _lattice_ball(d: int, n: int) -> np.ndarray:  # (n, d)
    """The n points of ℤ^d nearest to the origin, or as many as are within its smallest boxes."""
    width = 1
    while (2 * width + 1) ** d < 2 * n:
        width += 1
    axis = np.arange(-width, width + 1.0)
    points = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    return points[np.argsort((points**2).sum(axis=1), kind="stable")[:n]]


def _dimensions(expression: Expression) -> list[int]:
    """Numbers of columns to try: 1, 2, 3, and what fixed columns or length scales ask for."""
    wanted = set()
    for leaf in expression.leaves():
        view: Any = getattr(leaf, "view", None)
        first = view.steps[0] if view is not None and view.steps else None
        if isinstance(first, Scaling):
            wanted.add(len(first.factors))
        if isinstance(first, Columns) and all(isinstance(c, int | np.integer) for c in first.which):
            wanted.add(max(max(first.which) + 1, -min(first.which)))
    return sorted({1, 2, 3} | {int(d) for d in wanted})


def _is_nonnegative(kernel: Kernel) -> bool:
    return kernel.domain is Domain.NONNEGATIVE or any(map(_is_nonnegative, kernel.children().values()))
