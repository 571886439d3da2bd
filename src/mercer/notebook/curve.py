"""Curves as SVG, without a drawing library: polylines in the ink of the page."""

from __future__ import annotations

import numpy as np

from mercer.notebook.markup import escape

#: The picture, in pixels: small enough to stand beside a few words.
_WIDTH, _HEIGHT = 260, 140
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 10, 20  # room for the numbers
#: lines that are told apart on light and on dark paper; by their dashes, too
_COLOURS = ("#2f8fd0", "#d5701a", "#12a07a", "#c0609a")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")


def curves(
    x: np.ndarray, values: np.ndarray, label: str, dots: np.ndarray | None = None
) -> str:  # (n,), (lines, n), (points, 2)
    """Lines over x, with the numbers at the ends of both axes, and dots; empty where nothing is finite.

    The axis of the values begins at 0 where they come near to it.

    >>> svg = curves(np.array([0.0, 1.0]), np.array([[2.0, 4.0]]), "2 + 2x")
    >>> "46.0,65.0 248.0,10.0" in svg
    True
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return ""
    low, high = float(finite.min()), float(finite.max())
    room = 0.0 if high > low else max(abs(high), 1.0) / 2  # A constant is in the middle.
    said = f"{label}, for x from {x[0]:.4g} to {x[-1]:.4g}: from {low:.4g} to {high:.4g}"
    low, high = low - room, high + room
    if 0 < low <= high - low:
        low = 0.0
    elif 0 < -high <= high - low:
        high = 0.0

    def across(place: np.ndarray) -> np.ndarray:
        return np.asarray(_LEFT + (place - x[0]) / (x[-1] - x[0]) * (_WIDTH - _LEFT - _RIGHT))

    def up(value: np.ndarray) -> np.ndarray:
        return np.asarray(_HEIGHT - _BOTTOM - (value - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM))

    parts = [_axes(float(x[0]), float(x[-1]), low, high, float(up(np.zeros(1))[0]))]
    for i, line in enumerate(values):
        there = np.isfinite(line)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across(x[there]), up(line[there]), strict=True))
        look = f'fill="none" stroke="{_COLOURS[i % 4]}" stroke-width="1.8"'
        look += f' stroke-dasharray="{_DASHES[i // 4 % 4]}"' if i > 3 else ""
        parts.append(f'<polyline {look} points="{points}"/>')
    for a, b in () if dots is None else dots[np.isfinite(dots).all(axis=1)]:
        place = f'cx="{float(across(a)):.1f}" cy="{float(up(b)):.1f}"'
        parts.append(f'<circle {place} r="2" fill="currentColor" fill-opacity="0.6"/>')
    middle = f'x="{(_LEFT + _WIDTH - _RIGHT) // 2}" y="{_HEIGHT - 7}" text-anchor="middle"'
    parts.append(f"<text {middle}>{escape(label)}</text>")
    head = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img"'
    ink = 'font-size="10" font-family="sans-serif" fill="currentColor"'
    label = f'aria-label="{escape(said)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {head} {ink} {label}>{"".join(parts)}</svg>'


def _axes(left: float, right: float, low: float, high: float, zero: float) -> str:
    """Two lines with their first and last numbers, and a faint one where the values are zero."""
    floor, edge = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    faint = 'stroke="currentColor" stroke-opacity="0.45"'
    lines = [
        f'<path d="M{_LEFT} {_TOP}V{floor}H{edge}" fill="none" {faint}/>',
        f'<text x="{_LEFT}" y="{_HEIGHT - 7}" text-anchor="middle">{left:.4g}</text>',
        f'<text x="{edge}" y="{_HEIGHT - 7}" text-anchor="middle">{right:.4g}</text>',
        f'<text x="{_LEFT - 5}" y="{floor}" text-anchor="end">{low:.3g}</text>',
        f'<text x="{_LEFT - 5}" y="{_TOP + 7}" text-anchor="end">{high:.3g}</text>',
    ]
    if low < 0 < high:
        lines.append(f'<path d="M{_LEFT} {zero:.1f}H{edge}" {faint} stroke-dasharray="2 3"/>')
    return "".join(lines)
