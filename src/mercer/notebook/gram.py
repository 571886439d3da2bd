"""A Gram matrix in a notebook: what it is, and a picture of some of its entries where these cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.data import points as data
from mercer.gram import Gram
from mercer.kernels.words import in_words
from mercer.notebook.markup import beside, code, frame, note, table
from mercer.notebook.quick import is_quick, values
from mercer.notebook.thumbnail import thumbnail

_SHOWN_PER_SIDE = 64  # rows, and columns, of the picture
_FEWEST_TO_SHOW = 8  # a larger matrix is shown by so many rows at least
_COORDINATES = 2**23  # coordinates that are multiplied for the picture: some ten milliseconds


def html(gram: Gram) -> str:
    """The matrix for a notebook."""
    n, m = gram.shape
    how = "symmetric" if gram.is_symmetric else "two sets of points"
    rows = [
        ("kernel", code(in_words(gram.kernel))),
        ("size", f"{n:,} × {m:,}, {how}"),
        ("values", f"{gram.dtype.name}"),
    ]
    K = sample(gram)
    if K is None or not np.isfinite(K).any():
        return frame(table(rows), note("no picture: its values are not a formula of few numbers"))
    shown = f"{len(K):,} × {K.shape[1]:,} entries" + ("" if K.shape == gram.shape else ", evenly taken")
    text = f"{shown}, from {np.nanmin(K):.4g} to {np.nanmax(K):.4g}"
    return frame(beside(table(rows), thumbnail(K, f"Gram matrix: {text}") + note(text)))


def sample(gram: Gram) -> np.ndarray | None:
    """Some entries of the matrix, taken evenly, by NumPy; None where that is not quick.

    >>> from mercer import Gaussian, Spectrum
    >>> K = Gram(Gaussian(sigma=30.0), np.arange(1000.0)[:, None])
    >>> some = sample(K)
    >>> some.shape, bool(np.isclose(some[0, 1], K.block([0], [16])[0, 0]))
    ((64, 64), True)
    >>> sample(Gram(Spectrum(2), ["ab", "ba"])) is None
    True
    """
    if not is_quick(gram.kernel):
        return None
    X, Y = gram._raw
    width = max(1, *getattr(X, "shape", ())[1:], 1)
    most = min(_SHOWN_PER_SIDE, int((_COORDINATES / width) ** 0.5))
    if most < min(_FEWEST_TO_SHOW, *gram.shape):
        return None
    left = _some(X, most)
    return values(gram.kernel, left, left if Y is None else _some(Y, most))


def _some(points: Any, most: int) -> Any:
    n = data.n_points(points)
    return data.take(points, np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))
