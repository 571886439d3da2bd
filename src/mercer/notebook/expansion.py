r"""A function Σᵢ αᵢ k(xᵢ, ·) + b in a notebook: its formula, and its curve where points are numbers."""

from __future__ import annotations

import numpy as np

from mercer.expansion import Expansion
from mercer.kernels import notation
from mercer.kernels.formula.typeset import decimal
from mercer.kernels.words import in_words
from mercer.notebook.curve import curves
from mercer.notebook.markup import beside, code, formula, frame, note
from mercer.notebook.quick import is_quick, values

_POINTS_OF_CURVE = 161  # so many points are drawn
_PAIRS = 2**20  # kernel values that the curve may take
_LINES_SHOWN, _DOTS_SHOWN = 8, 100  # functions and anchors that are drawn
_BEYOND = 0.1  # the part of the range of the anchors that is added on either side


def html(f: Expansion) -> str:
    """The function for a notebook."""
    text = code(in_words(f.kernel)) + formula(_formula(f)) + formula(notation.latex(f.kernel))
    found = graph(f)
    if found is None:
        return frame(beside(text))
    x, lines, dots = found
    few = [f"{len(dots):,} of {len(f):,} anchors"] if len(dots) < len(f) else []
    count = 1 if f.coef.ndim == 1 else f.coef.shape[1]
    few += [f"{len(lines)} of {count:,} functions"] if len(lines) < count else []
    said = "dots at the anchors" + " of the first" * (count > 1) + (f" ({', '.join(few)})" if few else "")
    return frame(beside(text, curves(x, lines, "f(x)", dots) + note(said)))


def _formula(f: Expansion) -> str:
    of = "f_c(x)" if f.coef.ndim == 2 else "f(x)"
    alpha, b = (r"\alpha_{ic}", "b_c") if f.coef.ndim == 2 else (r"\alpha_i", "b")
    text = rf"{of} = \sum_{{i=1}}^{{{len(f)}}} {alpha}\, k(x_i, x)"
    if f.intercept.any():
        text += f" + {b}" + (rf", \quad b = {decimal(float(f.intercept))}" if f.intercept.ndim == 0 else "")
    return text + (rf", \quad c = 1, \dots, {f.coef.shape[1]}" if f.coef.ndim == 2 else "")


def graph(f: Expansion) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:  # (n,), (lines, n), (dots, 2)
    """Numbers x around the anchors, f there, and some anchors with f at them; None where that is not quick.

    >>> from mercer import Linear
    >>> x, lines, dots = graph(Expansion(Linear(), [[0.0], [2.0]], [5.0, 1.5], intercept=1.0))
    >>> float(x[0]), float(x[-1]), lines[0, [0, -1]].round(9), dots
    (-0.2, 2.2, array([0.4, 7.6]), array([[0., 1.],
           [2., 7.]]))
    """
    anchors = f.anchors
    is_line = isinstance(anchors, np.ndarray) and anchors.ndim == 2 and anchors.shape[1] == 1
    if not is_line or len(f) * (_POINTS_OF_CURVE + _DOTS_SHOWN) > _PAIRS or not f.kernel.domain.is_vectors:
        return None
    if not is_quick(f.kernel):
        return None
    low, high = float(anchors.min()), float(anchors.max())
    room = _BEYOND * (high - low) or 1.0
    start = max(0.0, low - room) if low >= 0 and f.kernel.domain == "nonnegative" else low - room
    x = np.linspace(start, high + room, _POINTS_OF_CURVE)
    some = anchors[np.linspace(0, len(f) - 1, min(len(f), _DOTS_SHOWN)).round().astype(np.intp), 0]
    K = values(f.kernel, np.concatenate([x, some])[:, None], anchors)
    if K is None:
        return None
    coef = f.coef.reshape(len(f), -1)[:, :_LINES_SHOWN]
    found = K @ coef + np.atleast_1d(f.intercept)[:_LINES_SHOWN]
    return x, found[:_POINTS_OF_CURVE].T, np.column_stack([some, found[_POINTS_OF_CURVE:, 0]])
