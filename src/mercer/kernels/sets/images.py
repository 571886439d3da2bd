r"""Transformations of images that leave what they show as it is: functions of a table, one image per row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from mercer.data.types import Points
from mercer.errors import InputError


@dataclass(frozen=True)
class Shift:
    """Images, one per row, moved down and to the right by whole pixels; what comes in is ``fill``."""

    shape: tuple[int, ...]  # height, width, and perhaps channels
    down: int
    right: int
    fill: float = 0.0

    def __call__(self, X: Points) -> np.ndarray:  # (n, pixels) to (n, pixels)
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
    """Images, one per row, whose pixels come from other places; what comes in from outside is ``fill``.

    Values between pixels are interpolated linearly, and stay between those of the pixels; or by cubic pieces,
    which keeps images as sharp as they were, and may go beyond.
    """

    shape: tuple[int, ...]
    amount: float
    fill: float = 0.0
    cubic: bool = False

    def source(self, down: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the pixel at a place comes from; places are counted from the middle."""
        raise NotImplementedError

    def __call__(self, X: Points) -> np.ndarray:  # (n, pixels) to (n, pixels)
        images = _as_images(X, self.shape)
        weights = _resampling(self)
        places = weights.shape[0]
        columns = images.reshape(len(images), places, -1).transpose(1, 0, 2).reshape(places, -1)
        moved = weights @ (columns - self.fill) + self.fill
        out = moved.reshape(places, len(images), -1).transpose(1, 0, 2)
        return np.ascontiguousarray(out, images.dtype).reshape(len(images), -1)


class Rotation(_Resampled):
    """Images turned counter-clockwise by ``amount`` degrees."""

    def source(self, down: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # The numbers of rows grow downwards.
        cos, sin = np.cos(np.deg2rad(self.amount)), np.sin(np.deg2rad(self.amount))
        return cos * down + sin * right, cos * right - sin * down


class Slant(_Resampled):
    """Images leaning to the right: a row that is one pixel higher moves ``amount`` pixels further."""

    def source(self, down: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return down, right + self.amount * down


class Bend(_Resampled):
    """Images bent like an arc: the first and last rows move right by half of ``amount``, the middle left."""

    def source(self, down: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        height = down / max(float(np.abs(down).max()), 1.0)
        return down, right - self.amount * (height * height - 0.5)


class Zoom(_Resampled):
    """Images ``amount`` times as large."""

    def source(self, down: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return down / self.amount, right / self.amount


@dataclass(frozen=True)
class Stroke:
    """Images, one per row, with thicker strokes, or thinner ones where ``amount`` is below 0.

    Strokes are bright on a dark ground. A pixel goes that part of the way, at most all of it, to the
    brightest (or the darkest) of itself and its four neighbours.
    """

    shape: tuple[int, ...]
    amount: float

    def __call__(self, X: Points) -> np.ndarray:  # (n, pixels) to (n, pixels)
        images = _as_images(X, self.shape)
        rows, columns = ([(0, 0)] * images.ndim for _ in range(2))
        rows[1] = columns[2] = (1, 1)
        tall, wide = np.pad(images, rows, mode="edge"), np.pad(images, columns, mode="edge")
        around = (images, tall[:, 2:], tall[:, :-2], wide[:, :, 2:], wide[:, :, :-2])
        end = (np.maximum if self.amount > 0 else np.minimum).reduce(around)
        return (images + abs(self.amount) * (end - images)).astype(images.dtype).reshape(len(images), -1)


@lru_cache(maxsize=256)
def _resampling(change: _Resampled) -> sparse.csr_array:  # (pixels, pixels)
    """How much each pixel gets of each other."""
    height, width = change.shape[:2]
    middle = np.array([[(height - 1) / 2], [(width - 1) / 2]])
    at = np.stack(change.source(*(np.mgrid[:height, :width].reshape(2, -1) - middle))) + middle
    at = np.round(at, 9)  # A turn by a right angle then hits pixels exactly.
    corner = np.floor(at).astype(int)
    weigh = _cubic if change.cubic else _linear
    targets, sources, weights = [], [], []
    for i, j in product(range(-1, 3), repeat=2):
        row, column = corner[0] + i, corner[1] + j
        weight = weigh(np.abs(at[0] - row)) * weigh(np.abs(at[1] - column))
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (weight != 0)
        targets.append(np.flatnonzero(inside))
        sources.append((row * width + column)[inside])
        weights.append(weight[inside])
    places = (np.concatenate(targets), np.concatenate(sources))
    return sparse.csr_array((np.concatenate(weights), places), shape=(height * width, height * width))


def _linear(t: np.ndarray) -> np.ndarray:
    """What a pixel at distance t contributes."""
    return np.maximum(1 - t, 0)


def _cubic(t: np.ndarray) -> np.ndarray:
    """The same for the cubic convolution of Keys, which reproduces polynomials of degree two."""
    near, far = (1.5 * t - 2.5) * t * t + 1, ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def _as_images(X: Points, shape: tuple[int, ...]) -> np.ndarray:  # (n, height, width, …)
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


def rotations(
    shape: Sequence[int], degrees: float | Sequence[float], fill: float = 0.0, cubic: bool = False
) -> list[Rotation]:
    """Turns of images: by an angle to either side, or by each of a list of angles.

    Values between pixels are interpolated linearly, or by ``cubic`` pieces: sharper, but they may overshoot.

    >>> [turn.amount for turn in rotations((8, 8), 10.0)]
    [-10.0, 10.0]
    """
    return [Rotation(_check_shape(shape), angle, fill, cubic) for angle in _either(degrees, lambda a: -a)]


def slants(
    shape: Sequence[int], amount: float | Sequence[float], fill: float = 0.0, cubic: bool = False
) -> list[Slant]:
    """Images leaning to either side, by ``amount`` pixels from row to row, or by each of a list."""
    return [Slant(_check_shape(shape), step, fill, cubic) for step in _either(amount, lambda a: -a)]


def bends(
    shape: Sequence[int], amount: float | Sequence[float], fill: float = 0.0, cubic: bool = False
) -> list[Bend]:
    """Images bent to either side by ``amount`` pixels, from their middle row to the first and last."""
    return [Bend(_check_shape(shape), step, fill, cubic) for step in _either(amount, lambda a: -a)]


def zooms(
    shape: Sequence[int], factor: float | Sequence[float], fill: float = 0.0, cubic: bool = False
) -> list[Zoom]:
    """Images that are larger and smaller by a factor, or by each of a list of factors."""
    return [Zoom(_check_shape(shape), times, fill, cubic) for times in _either(factor, lambda a: 1 / a)]


def strokes(shape: Sequence[int], amount: float | Sequence[float]) -> list[Stroke]:
    """Images with strokes thinner and thicker by ``amount``, up to 1, or by each of a list.

    >>> image = np.array([[0.0, 0.0, 8.0, 0.0, 0.0]])
    >>> [change(image).tolist() for change in strokes((1, 5), 0.25)]
    [[[0.0, 0.0, 6.0, 0.0, 0.0]], [[0.0, 2.0, 8.0, 2.0, 0.0]]]
    """
    amounts = _either(amount, lambda a: -a)
    if not all(0 < abs(value) <= 1 for value in amounts):
        raise InputError(f"strokes change by a part of at most 1 and not by 0, got {amount!r}: pass e.g. 0.3")
    return [Stroke(_check_shape(shape), value) for value in amounts]


def _either(amount: float | Sequence[float], opposite: Callable[[float], float]) -> list[float]:
    given = [opposite(amount), amount] if isinstance(amount, int | float) else list(amount)
    return [float(value) for value in given]
