r"""Hand-made features of drawn characters: loops, joints, ends, angles, ink.

A drawing is made black and white and thinned to lines one pixel wide. On these a pixel tells by the circle
around it what is there: walking around the circle one crosses one line at an end, two along a stroke, three
or four at a joint. Two joints closer than a stroke is wide are one.

Thinning: Zhang and Suen, A fast parallel algorithm for thinning digital patterns, Communications of the ACM
27 (1984), 236-239.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.types import Points
from mercer.errors import InputError
from mercer.features.base import FeatureMap

NAMES = ("loops", "3-joints", "4-joints", "ends", "angles", "ink")
#: Smaller images are enlarged to so many pixels, by a whole factor: their lines would touch otherwise.
_PIXELS_TO_SEE_BY = 32
_SAME_JOINT_WITHIN = 3  # pixels of the enlarged image
_CIRCLE = 4  # the radius, in pixels, of the circle on which an angle is measured
_SHARP = 0.5  # cos(θ/2) from which on strokes make an angle: θ = 120°
_SMALLEST_LOOP = 4  # pixels of the enlarged image
_IMAGES_AT_ONCE = 64  # these stay in the cache


@dataclass(unsafe_hash=True)
class InkFeatures(FeatureMap):
    """(loops, 3-joints, 4-joints, ends, angles, ink) of drawn characters, one image per row.

    The first five are counts: of regions that strokes enclose, of places where three and where four or more
    strokes meet, of free ends, and of bends sharper than 120°. Ink is the mean of the pixels. Strokes are
    bright on a dark ground.

    Parameters
    ----------
    shape : (height, width) of the images; None for as near a square as the number of pixels allows
    threshold : a pixel is drawn where it is brighter than this part of the image's brightest one

    >>> cross = np.zeros((9, 9))
    >>> cross[4, 1:8] = cross[1:8, 4] = 1.0
    >>> ring = np.zeros((9, 9))
    >>> ring[2:7, 2:7] = 1.0
    >>> ring[3:6, 3:6] = 0.0
    >>> InkFeatures().feature_names([])
    ['loops', '3-joints', '4-joints', 'ends', 'angles', 'ink']
    >>> InkFeatures()(np.stack([cross.ravel(), ring.ravel()]))[:, :4]
    array([[0., 0., 1., 4.],
           [1., 0., 0., 0.]])
    """

    shape: tuple[int, int] | None = None
    threshold: float = 0.4

    def check(self) -> None:
        if not (isinstance(self.threshold, int | float) and 0 <= self.threshold < 1):
            raise InputError(
                f"threshold must be a number from 0 to below 1, got {self.threshold!r}: pass e.g. 0.4"
            )
        if self.shape is not None and not (
            len(self.shape) == 2
            and all(isinstance(size, int | np.integer) and size > 0 for size in self.shape)
        ):
            raise InputError(f"shape must be (height, width) or None, got {self.shape!r}: pass e.g. (28, 28)")

    def n_features(self, m: int) -> int:
        self.check()
        return len(NAMES)

    def feature_names(self, names: Sequence[str]) -> list[str]:
        """The names of the features, whatever those of the pixels are."""
        return list(NAMES)

    def __call__(self, X: Points) -> NDArray[np.floating[Any]]:
        """The features of each row of X: (n, pixels) to (n, 6)."""
        pixels = self._prepare(X)
        images = pixels.reshape(len(pixels), *self._shape(pixels.shape[1]))
        features = np.empty((len(pixels), len(NAMES)), dtype=pixels.dtype)
        for start in range(0, len(images), _IMAGES_AT_ONCE):
            some = slice(start, start + _IMAGES_AT_ONCE)
            features[some, :-1] = counted(_strokes(images[some], self.threshold))
        features[:, -1] = pixels.mean(axis=1)
        return features

    def _shape(self, m: int) -> tuple[int, int]:
        if self.shape is None:
            height = next(size for size in range(math.isqrt(m), 0, -1) if m % size == 0)
            return height, m // height
        if math.prod(self.shape) != m:
            raise InputError(
                f"images of shape {self.shape} have {math.prod(self.shape)} pixels, got rows of {m}: pass "
                "one image per row, or the shape that the images have"
            )
        return self.shape


def _strokes(images: np.ndarray, threshold: float) -> np.ndarray:  # (n, h, w) to (n, height, width) of bools
    """What is drawn, enlarged where images are small, with an empty frame around it."""
    from scipy.ndimage import zoom

    factor = -(-_PIXELS_TO_SEE_BY // max(images.shape[1:]))
    if factor > 1:
        images = zoom(images, (1, factor, factor), order=1, mode="nearest", grid_mode=True)
    brightest = images.max(axis=(1, 2), keepdims=True)
    drawn = (images > threshold * brightest) & (brightest > 0)
    frame = _CIRCLE + 1
    return np.pad(drawn, ((0, 0), (frame, frame), (frame, frame)))


def counted(strokes: np.ndarray) -> np.ndarray:  # (n, height, width) of bools to (n, 5)
    """Loops, 3-joints, 4-joints, ends and angles; the frame must be empty."""
    lines = thinned(strokes)
    lines_around = _crossings(_near(lines, 1))
    three, four, blobs = _joints(lines, lines_around)
    ends = _count((lines_around == 1) & lines & ~blobs)
    return np.stack([_loops(strokes), three, four, ends, _angles(lines, lines_around)], axis=1)


def thinned(strokes: np.ndarray) -> np.ndarray:  # (n, h, w) of bools
    """Strokes as lines one pixel wide, of the same topology; the frame must be empty."""
    lines = strokes.copy()
    while True:
        before = np.count_nonzero(lines)
        # The neighbours count clockwise from the one above: 0 is above, 2 right, 4 below, 6 left.
        for sides in (((0, 2, 4), (2, 4, 6)), ((0, 2, 6), (0, 4, 6))):
            near = _near(lines, 1)
            number = _total(near)
            removed = lines & (number >= 2) & (number <= 6) & (_crossings(near) == 1)
            for a, b, c in sides:
                removed &= ~(near[a] & near[b] & near[c])
            lines ^= removed
        if np.count_nonzero(lines) == before:
            return lines


def _offsets(radius: int) -> list[tuple[int, int]]:
    """The pixels of the square around a pixel, from the one above it on, clockwise."""
    r = radius
    top = [(-r, j) for j in range(r + 1)]
    right = [(i, r) for i in range(-r + 1, r + 1)]
    bottom = [(r, j) for j in range(r - 1, -r - 1, -1)]
    left = [(i, -r) for i in range(r - 1, -r - 1, -1)]
    return top + right + bottom + left + [(-r, j) for j in range(-r + 1, 0)]


def _near(images: np.ndarray, radius: int) -> list[np.ndarray]:
    """Each of the images moved by one of the offsets; the frame comes round and is empty."""
    return [np.roll(images, (-down, -right), axis=(1, 2)) for down, right in _offsets(radius)]


def _total(near: list[np.ndarray]) -> np.ndarray:
    """How many are drawn, at each pixel."""
    total = np.zeros(near[0].shape, np.uint8)
    for image in near:
        total += image
    return total


def _crossings(near: list[np.ndarray]) -> np.ndarray:
    """How many lines cross the circle around each pixel."""
    return _total([~a & b for a, b in zip(near, near[1:] + near[:1], strict=True)])


def _loops(strokes: np.ndarray) -> np.ndarray:  # (n,)
    """The regions of the ground that strokes enclose."""
    labels, _ = _components(~strokes, corners=False)
    sizes = np.bincount(labels.ravel())
    outside = np.unique(labels[:, 0, 0])
    is_loop = sizes >= _SMALLEST_LOOP
    is_loop[0] = is_loop[outside] = False
    return _count_labels(labels, is_loop)


def _joints(lines: np.ndarray, lines_around: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where three, and where more strokes meet, (n,) each; and the pixels that belong to joints."""
    blobs = _grown((lines_around >= 3) & lines, _SAME_JOINT_WITHIN)
    labels, number = _components(blobs)
    joint_near = np.maximum.reduce(_near(labels, 1))
    leaving, count = _components(lines & ~blobs & (joint_near > 0))
    # Each of the pieces of lines around a joint is one stroke that leaves it.
    joint_of = np.zeros(count + 1, dtype=np.intp)
    joint_of[leaving.ravel()] = joint_near.ravel()
    strokes = np.bincount(joint_of[1:], minlength=number + 1)
    strokes[0] = 0
    return _count_labels(labels, strokes == 3), _count_labels(labels, strokes > 3), blobs


def _angles(lines: np.ndarray, lines_around: np.ndarray) -> np.ndarray:  # (n,)
    """The places along single strokes that bend sharply.

    Where two lines leave the circle in directions with an angle of θ between them, the mean of the two has
    the length cos(θ/2).
    """
    near, offsets = _near(lines, _CIRCLE), _offsets(_CIRCLE)
    is_joint = (lines_around >= 3) & lines
    places = lines & ~_grown(is_joint, _CIRCLE) & (_crossings(near) == 2)
    drawn = np.stack([image[places] for image in near], axis=1)
    directions = np.array(offsets) / np.linalg.norm(offsets, axis=1, keepdims=True)
    mean = drawn @ directions / np.maximum(drawn.sum(axis=1, keepdims=True), 1)
    places[places] = np.linalg.norm(mean, axis=1) > _SHARP
    return _count(_grown(places, 1))


def _grown(marks: np.ndarray, reach: int) -> np.ndarray:
    """The pixels no further than ``reach`` from a mark, in rows and in columns."""
    for axis in (1, 2):
        marks = np.any([np.roll(marks, step, axis=axis) for step in range(-reach, reach + 1)], axis=0)
    return marks


def _components(marks: np.ndarray, corners: bool = True) -> tuple[np.ndarray, int]:
    """The connected pieces of each image, numbered from 1 through all images; and how many there are."""
    from scipy.ndimage import label

    within = np.ones((3, 3), bool) if corners else np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)
    structure = np.zeros((3, 3, 3), bool)
    structure[1] = within
    labels, number = label(marks, structure)
    return labels, int(number)


def _count(marks: np.ndarray) -> np.ndarray:  # (n,)
    """The marked pixels of each image, those that touch counted once."""
    labels, number = _components(marks)
    return _count_labels(labels, np.arange(number + 1) > 0)


def _count_labels(labels: np.ndarray, counted: np.ndarray) -> np.ndarray:  # (n,)
    """How many of the pieces that count are in each image."""
    found, first = np.unique(labels, return_index=True)
    image = first // labels[0].size
    return np.bincount(image[counted[found]], minlength=len(labels))
