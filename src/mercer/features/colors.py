"""Images as bags of colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.errors import InputError
from mercer.kernels.parameters import whole


def color_histogram(images: Any, levels: int = 16) -> np.ndarray:  # (levels³,), or (n, levels³)
    """How many pixels of an image have each colour, red, green and blue being cut into ``levels`` steps each.

    The bin of a colour is (R · levels + G) · levels + B, with R, G, B its steps from 0: 4096 bins for 16
    levels. ``Intersection`` and ``Min`` compare such counts; images of different sizes want their
    frequencies, ``counts / counts.sum(axis=-1, keepdims=True)``.

    Parameters
    ----------
    images : one image, (height, width, 3), or several: a list of images of any sizes, or one array of them;
        whole numbers from 0 to 255, or floating ones from 0 to 1
    levels : steps of each channel, from 1 to 256

    >>> image = np.array([[[255, 0, 0], [250, 5, 3]], [[0, 0, 0], [0, 0, 17]]], dtype=np.uint8)
    >>> counts = color_histogram(image)
    >>> counts.shape, {int(bin): int(counts[bin]) for bin in np.flatnonzero(counts)}
    ((4096,), {0: 1, 1: 1, 3840: 2})
    >>> color_histogram([image, image[:1]], levels=2)
    array([[2, 0, 0, 0, 2, 0, 0, 0],
           [0, 0, 0, 0, 2, 0, 0, 0]])
    """
    whole(16).check("levels", levels)
    if levels > 256:
        raise InputError(f"levels must be at most 256, the values of a channel, got {levels}: pass e.g. 16")
    if isinstance(images, list | tuple) or np.ndim(images) == 4:
        if not len(images):
            raise InputError(
                "there is no image in the list: pass one of shape (height, width, 3), or several"
            )
        return np.stack([_histogram(np.asarray(image), levels) for image in images])
    return _histogram(np.asarray(images), levels)


def _histogram(image: np.ndarray, levels: int) -> np.ndarray:  # (height, width, 3) to (levels³,)
    if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise InputError(
            f"an image is an array of shape (height, width, 3), got {image.shape}: convert it to RGB, "
            "without a channel of transparency"
        )
    if image.dtype.kind not in "uif":
        raise InputError(f"the pixels of an image are numbers, got {image.dtype}: pass an array of uint8")
    largest = 1.0 if image.dtype.kind == "f" else 255
    if not (image.min() >= 0 and image.max() <= largest):
        raise InputError(
            f"pixels of type {image.dtype} must be from 0 to {largest}, got values from {image.min()} to "
            f"{image.max()}: whole numbers go up to 255, floating ones up to 1"
        )
    if image.dtype.kind == "f":
        steps = np.minimum((image.astype(np.float64) * levels).astype(np.intp), levels - 1)
    else:
        steps = image.astype(np.intp) * levels // 256
    bins = (steps[..., 0] * levels + steps[..., 1]) * levels + steps[..., 2]
    return np.bincount(bins.ravel(), minlength=levels**3)
