r"""Invariance by sets: a point stands for the set of its variants, and sets are compared by their elements.

What no vector of pixels knows, that an image moved by a pixel shows the same thing, a kernel can be told:
k(x, x') is the mean of the base kernel over all variants of x and all variants of x'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from mercer import data
from mercer.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.compose import _kernel
from mercer.kernels.dotproduct import Linear
from mercer.kernels.expression import Expression
from mercer.kernels.pair import Joint, Mapping, Pair
from mercer.kernels.parameters import fixed
from mercer.kernels.sets import Stacked, StackedKernel

__all__ = [
    "Composed",
    "Invariant",
    "Rotation",
    "Shift",
    "Slant",
    "Zoom",
    "compositions",
    "rotations",
    "shifts",
    "slants",
    "zooms",
]


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
    def domain(self) -> str:  # type: ignore[override]
        return self.base.domain

    @property
    def objects(self) -> str | None:  # type: ignore[override]
        return self.base.objects

    @property
    def is_mean(self) -> bool:
        return True

    def variants(self, X: Any) -> list[Any]:
        """X and what the transformations make of it."""
        return [X, *(Mapping(function)(X) for function in self.transformations)]

    def encode(self, X: Any) -> Stacked:
        variants = self.variants(X)
        n, several = data.n_points(X), len(variants)
        stack = variants[0]
        for more in variants[1:]:
            stack = data.stack(stack, more)
        order = np.arange(n * several).reshape(several, n).T.ravel()  # the variants of a point are neighbours
        return Stacked.of(np.full(n, several), (self.base, data.take(stack, order)))

    def average(self, X: Any) -> Any:  # (n, d)
        """The mean of the variants: all that a linear base kernel sees."""
        variants = self.variants(_dense(X))
        return sum(variants[1:], start=np.array(variants[0], np.float64)) / len(variants)

    def expression(self, pair: Pair | None = None) -> Expression:
        pair = pair or Pair()
        if type(self.base) is Linear:
            return pair.through(Mapping(self.average)).dot
        return pair.through(_Points(self.encode, self.domain)).external(self)


@dataclass(frozen=True)
class _Points(Joint):
    """Points whose variants are taken, as the transformations see them."""

    domain: str

    def read(self, X: Any) -> Any:
        if self.domain in ("vectors", "nonnegative"):
            return _dense(X)
        return data.as_objects(data.single_column(X)) if self.domain == "objects" else X


def _dense(X: Any) -> np.ndarray:
    X = data.as_vectors(X)
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


# --- transformations of images ----------------------------------------------------------------------


@dataclass(frozen=True)
class Shift:
    """Images, one per row, moved down and to the right by whole pixels; what comes in is ``fill``."""

    shape: tuple[int, ...]  # height, width, and perhaps channels
    down: int
    right: int
    fill: float = 0.0

    def __call__(self, X: Any) -> np.ndarray:  # (n, pixels) to (n, pixels)
        images = _as_images(X, self.shape)
        out = np.full_like(images, self.fill)
        height, width = self.shape[:2]
        (to_rows, rows), (to_columns, columns) = (
            _ranges(*a) for a in ((height, self.down), (width, self.right))
        )
        out[:, to_rows, to_columns] = images[:, rows, columns]
        return out.reshape(len(images), -1)


def _ranges(size: int, step: int) -> tuple[slice, slice]:
    """Where a line of pixels that is moved goes, and what of it stays in sight."""
    step = max(-size, min(size, step))
    return slice(max(step, 0), size + min(step, 0)), slice(max(-step, 0), size - max(step, 0))


@dataclass(frozen=True)
class _Resampled:
    """Images, one per row, under a linear map about their middle; what comes in is ``fill``.

    Values between pixels are interpolated linearly.
    """

    shape: tuple[int, ...]
    amount: float
    fill: float = 0.0

    def source(self) -> tuple[float, float, float, float]:
        """The matrix, row by row, from a place (down and right of the middle) to where it comes from."""
        raise NotImplementedError

    def __call__(self, X: Any) -> np.ndarray:  # (n, pixels) to (n, pixels)
        images = _as_images(X, self.shape)
        weights = _resampling(*self.shape[:2], self.source())
        places = weights.shape[0]
        columns = images.reshape(len(images), places, -1).transpose(1, 0, 2).reshape(places, -1)
        moved = weights @ (columns - self.fill) + self.fill
        out = moved.reshape(places, len(images), -1).transpose(1, 0, 2)
        return np.ascontiguousarray(out, images.dtype).reshape(len(images), -1)


class Rotation(_Resampled):
    """Images turned counter-clockwise by ``amount`` degrees."""

    def source(self) -> tuple[float, float, float, float]:
        angle = np.deg2rad(self.amount)  # rows grow downwards
        return float(np.cos(angle)), float(np.sin(angle)), float(-np.sin(angle)), float(np.cos(angle))


class Slant(_Resampled):
    """Images leaning to the right: a row that is one pixel higher moves ``amount`` pixels further."""

    def source(self) -> tuple[float, float, float, float]:
        return 1.0, 0.0, self.amount, 1.0


class Zoom(_Resampled):
    """Images ``amount`` times as large."""

    def source(self) -> tuple[float, float, float, float]:
        return 1 / self.amount, 0.0, 0.0, 1 / self.amount


@lru_cache(maxsize=256)
def _resampling(
    height: int, width: int, source: tuple[float, float, float, float]
) -> sparse.csr_array:  # (pixels, pixels)
    """How much each pixel gets of each other."""
    middle = np.array([[(height - 1) / 2], [(width - 1) / 2]])
    at = np.reshape(source, (2, 2)) @ (np.mgrid[:height, :width].reshape(2, -1) - middle) + middle
    at = np.round(at, 9)  # a turn by a right angle hits pixels exactly
    corner = np.floor(at).astype(int)
    rest = at - corner
    targets, sources, weights = [], [], []
    for i, j in product((0, 1), repeat=2):
        row, column = corner[0] + i, corner[1] + j
        weight = (rest[0] if i else 1 - rest[0]) * (rest[1] if j else 1 - rest[1])
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (weight > 0)
        targets.append(np.flatnonzero(inside))
        sources.append((row * width + column)[inside])
        weights.append(weight[inside])
    places = (np.concatenate(targets), np.concatenate(sources))
    return sparse.csr_array((np.concatenate(weights), places), shape=(height * width, height * width))


def _as_images(X: Any, shape: tuple[int, ...]) -> np.ndarray:  # (n, height, width, …)
    X = np.asarray(X)
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    if X.ndim != 2 or X.shape[1] != np.prod(shape):
        raise InputError(
            f"images of shape {shape} have {np.prod(shape)} pixels, got a table of shape {X.shape}: pass one "
            "image per row, or the shape that the images have"
        )
    return X.reshape(len(X), *shape)


def _check_shape(shape: Any) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape)
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise InputError(
            f"the shape of an image is (height, width) or (height, width, channels), got {shape!r}"
        )
    return sizes


def shifts(shape: Sequence[int], distance: float = 1.0, fill: float = 0.0) -> list[Shift]:
    """All moves of images by whole pixels, no further than ``distance``; without the move by nothing.

    >>> [(move.down, move.right) for move in shifts((8, 8), 1.0)]
    [(-1, 0), (0, -1), (0, 1), (1, 0)]
    >>> len(shifts((8, 8), 1.5)), len(shifts((8, 8), 2.0))
    (8, 12)
    """
    shape, reach = _check_shape(shape), int(distance)
    steps = product(range(-reach, reach + 1), repeat=2)
    return [Shift(shape, a, b, fill) for a, b in steps if 0 < a * a + b * b <= distance * distance]


def rotations(shape: Sequence[int], degrees: float | Sequence[float], fill: float = 0.0) -> list[Rotation]:
    """Turns of images: by an angle to either side, or by each of a list of angles.

    >>> [turn.amount for turn in rotations((8, 8), 10.0)]
    [-10.0, 10.0]
    """
    return [Rotation(_check_shape(shape), angle, fill) for angle in _either(degrees, lambda a: -a)]


def slants(shape: Sequence[int], amount: float | Sequence[float], fill: float = 0.0) -> list[Slant]:
    """Images leaning to either side, by ``amount`` pixels from row to row, or by each of a list."""
    return [Slant(_check_shape(shape), step, fill) for step in _either(amount, lambda a: -a)]


def zooms(shape: Sequence[int], factor: float | Sequence[float], fill: float = 0.0) -> list[Zoom]:
    """Images that are larger and smaller by a factor, or by each of a list of factors."""
    return [Zoom(_check_shape(shape), times, fill) for times in _either(factor, lambda a: 1 / a)]


def _either(amount: float | Sequence[float], opposite: Callable[[float], float]) -> list[float]:
    given = [opposite(amount), amount] if isinstance(amount, int | float) else list(amount)
    return [float(value) for value in given]


@dataclass(frozen=True)
class Composed:
    """One transformation after the other."""

    steps: tuple[Any, ...]

    def __call__(self, X: Any) -> Any:
        for step in self.steps:
            X = step(X)
        return X


def compositions(*families: Sequence[Any]) -> list[Composed]:
    """All ways to apply at most one transformation of each family, in their order; without doing nothing.

    >>> len(compositions(shifts((8, 8), 1.0), rotations((8, 8), 10.0)))  # (1 + 4) (1 + 2) - 1
    14
    """
    chosen = product(*([(), *((function,) for function in family)] for family in families))
    return [Composed(steps) for parts in chosen if (steps := tuple(step for part in parts for step in part))]
