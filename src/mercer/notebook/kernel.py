"""A kernel in a notebook: what one would type, its formula, and k(x, 0) where points are numbers."""

from __future__ import annotations

import numpy as np

from mercer.kernels import notation
from mercer.kernels.base import Kernel
from mercer.kernels.domain import Domain
from mercer.kernels.words import in_words
from mercer.notebook.curve import curves
from mercer.notebook.markup import beside, code, formula, frame
from mercer.notebook.quick import is_quick, values

_POINTS_OF_CURVE = 161  # so many points are drawn
_USUAL_WIDTH = 3.0  # half the width of the curve, where the kernel has no scale of its own
#: the distances at which the scale of a kernel is looked for
_DISTANCES = np.geomspace(1e-4, 1e4, 161)


def html(kernel: Kernel) -> str:
    """The kernel for a notebook."""
    return frame(beside(code(in_words(kernel)) + formula(notation.latex(kernel)), _curve(kernel)))


def latex(kernel: Kernel) -> str:
    """The kernel where a notebook wants LaTeX."""
    return rf"$\displaystyle {notation.latex(kernel)}$"


def _curve(kernel: Kernel) -> str:
    found = shape(kernel)
    if found is None:
        return ""
    x, centre, k = found
    return curves(x, k[None], f"k(x, {centre:g})")


def shape(kernel: Kernel) -> tuple[np.ndarray, float, np.ndarray] | None:  # (n,), the centre, (n,)
    """Numbers x where the kernel changes, a centre c, and k(x, c); None where points are no numbers, or slow.

    The centre is 0, or 1 for a kernel that is constant there, as those of inner products are.

    >>> from mercer import Gaussian, Linear
    >>> x, centre, k = shape(Gaussian(sigma=10.0))
    >>> bool(30 < x[-1] < 60), centre, float(k.max())
    (True, 0.0, 1.0)
    >>> shape(Linear())[1], shape(Linear())[0][-1]
    (1.0, np.float64(3.0))
    """
    if not kernel.domain.is_vectors or not is_quick(kernel):
        return None
    for centre in (0.0, 1.0):
        far = values(kernel, centre + _DISTANCES[:, None], [[centre]])
        if far is None:
            return None
        width = _scale(far[:, 0])
        if width or np.ptp(far) > 0:
            break
    left, right = (centre - width, centre + width) if width else (-_USUAL_WIDTH, _USUAL_WIDTH)
    x = np.linspace(0.0 if kernel.domain is Domain.NONNEGATIVE else left, right, _POINTS_OF_CURVE)
    k = values(kernel, x[:, None], [[centre]])
    return None if k is None else (x, centre, k[:, 0])


def _scale(far: np.ndarray) -> float:
    """Some three times the distance at which a bounded kernel has changed by half; 0 where there is none."""
    finite = np.isfinite(far).all()
    size = float(np.abs(far).max()) if finite else np.inf
    if not finite or size > 10 * max(abs(float(far[0])), 1e-300) or np.ptp(far) <= 1e-9 * size:
        return 0.0
    half = np.abs(far - far[0]) >= np.ptp(far) / 2
    return _rounded(3.5 * float(_DISTANCES[half.argmax()]))


def _rounded(width: float) -> float:
    """A width of two digits, for the numbers at the axis."""
    return float(f"{width:.1e}")
