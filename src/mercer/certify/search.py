r"""The search for a witness when no points are given: simple sets of points first, then descent.

Lines, grids, simplices and random clouds in one to three dimensions, at scales from 10⁻⁴ to 10⁴;
then the smallest eigenvalue of a few points is minimised over their coordinates. Seeded: the same
kernel has the same witness every time.

>>> from mercer import Sigmoid
>>> found, _ = search(Sigmoid(eta=1.0))
>>> found.points.ravel(), bool(found.eigenvalues[-1] < 0)
(array([1., 2.]), True)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.certify.rounding import EPSILON, frobenius, gram_with_error
from mercer.certify.witness import Witness, witness_at
from mercer.kernels.base import Kernel
from mercer.kernels.expression import Expression
from mercer.kernels.pair import Columns, Scaling

__all__ = ["search"]

_SEED = 20240229
_SCALES = sorted((10.0 ** (k / 8) for k in range(-32, 33)), key=lambda s: (abs(np.log10(s)), -s))
_CLEAR = -1e-4  # an eigenvalue this negative, relative to ‖K‖, needs no better witness


def search(kernel: Kernel, dim: int | None = None) -> tuple[Witness | None, int]:
    """A witness against the kernel, or None; and how many sets of points were tried."""
    expression = kernel.expression()
    space = _Trials(expression, _is_nonnegative(kernel))
    for d in [dim] if dim else _dimensions(expression):
        for shape in _shapes(d, space.nonnegative):
            found = space.best_at_scales(shape)
            if found is not None:
                return found, space.tried
    return space.descend(), space.tried


class _Trials:
    """Sets of points, tried one after the other."""

    def __init__(self, expression: Expression, nonnegative: bool) -> None:
        self.expression = expression
        self.nonnegative = nonnegative
        self.tried = 0
        self.promising: list[tuple[float, np.ndarray]] = []  # the smallest eigenvalue share, points

    def best_at_scales(self, shape: np.ndarray) -> Witness | None:  # (n, d)
        """The witness of fewest points among all scales of a shape; the first clear one of those."""
        best: Witness | None = None
        for scale in _SCALES[:: 2 if len(shape) > 100 else 1]:
            found = self._witness(shape * scale)
            if found is not None and (best is None or _rank(found) < _rank(best)):
                best = found
        return best and self._tidy(best)

    def descend(self) -> Witness | None:
        """Minimise the smallest eigenvalue of a few points, from the most promising sets seen so far."""
        from scipy.optimize import minimize  # an eighth of a second to import, and seldom needed

        random = np.random.default_rng(_SEED)
        self.promising.sort(key=lambda trial: trial[0])
        for _, start in self.promising[:4]:
            for n in (2, 3, 4):
                some = start[random.choice(len(start), size=min(n, len(start)), replace=False)]
                some = some + random.normal(size=some.shape) * 0.1 * (1e-3 + abs(some).max())

                def share(flat: np.ndarray, shape: tuple[int, ...] = some.shape) -> float:
                    return self._share(self._inside(flat.reshape(shape)))

                end = minimize(share, some.ravel(), method="Nelder-Mead", options={"maxfev": 150})
                found = self._witness(self._inside(end.x.reshape(some.shape))) if end.fun < 0 else None
                if found is not None:
                    return self._tidy(found)
        return None

    def _inside(self, points: np.ndarray) -> np.ndarray:
        return abs(points) if self.nonnegative else points

    def _share(self, points: np.ndarray) -> float:
        """λ_min(K) / ‖K‖, 1 where K cannot be computed."""
        try:
            K, _ = gram_with_error(self.expression, points, bounded=False)
        except Exception:  # a feature map of the user's may refuse made-up points in any way it likes
            return 1.0
        self.tried += 1
        norm = float(frobenius(K))
        if not 0 < norm < np.inf:  # nor NaN
            return 1.0
        if abs(K - K.T).max() > 1e-10 * norm:
            return -1.0
        return float(np.linalg.eigvalsh((K + K.T) / 2)[0] / norm)

    def _witness(self, points: np.ndarray) -> Witness | None:
        share = self._share(points)
        if share < 1:
            self.promising.append((share, points))
        if share >= -4 * len(points) * EPSILON:
            return None
        K, E = gram_with_error(self.expression, points)
        return witness_at(points, K, E)

    def _tidy(self, found: Witness) -> Witness:
        """The same witness with rounder coordinates, if it stays about as clear."""
        for digits in (1, 2, 3):
            unit = 10.0 ** (np.floor(np.log10(abs(found.points).max() or 1.0)) - digits + 1)
            points = np.round(np.round(found.points / unit) * unit, 12) + 0.0  # -0.0 is 0
            if self._share(points) > 0.5 * self._share(found.points):
                continue
            rounder = self._witness(points)
            if rounder is not None and len(rounder.gram) <= len(found.gram):
                return rounder
        return found


def _rank(witness: Witness) -> tuple[int, float]:
    """Fewer points first, then a clearer eigenvalue; all clear ones are equal."""
    if witness.eigenvalues is None:
        return 0, 0.0
    share = float(witness.eigenvalues[-1] / max(abs(witness.gram).max(), 1e-300))
    return len(witness.gram), max(share, _CLEAR)


# --- points to try -------------------------------------------------------------------------------


def _shapes(d: int, nonnegative: bool) -> Iterator[np.ndarray]:
    """Sets of points of d columns, of unit size."""
    random = np.random.default_rng(_SEED)
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
    if d > 1:  # compactly supported functions of ‖x - x'‖ fail on many points only
        triangles = np.array([[1.0, 0.0], [0.5, 0.75**0.5]])
        yield np.pad(_grid(12, 2, 2) @ triangles, ((0, 0), (0, d - 2)))
    if d > 2:
        yield _grid(6, 3, d)


def _grid(n: int, axes: int, d: int) -> np.ndarray:  # (n**axes, d)
    """The points 0 … n-1 along each of some axes."""
    points = np.stack(np.meshgrid(*[np.arange(float(n))] * axes, indexing="ij"), axis=-1)
    return np.pad(points.reshape(-1, axes), ((0, 0), (0, d - axes)))


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
    return kernel.domain == "nonnegative" or any(map(_is_nonnegative, kernel.children().values()))
