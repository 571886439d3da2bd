"""Points to begin with.

>>> [len(example(Asked({"name": name, "number": 40}))["points"]) for name in EXAMPLES]
[4, 40, 40, 40, 40, 40, 40]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.lab.asked import MOST_POINTS, Asked

EXAMPLES = ("xor", "moons", "circles", "spirals", "blobs", "sine", "step")


def example(asked: Asked) -> dict[str, Any]:
    """Points of the plane with classes, or (x, y) of a curve; the same ones each time."""
    name = asked.word("name", EXAMPLES)
    n = asked.whole("number", 40, 4, MOST_POINTS)
    rng = np.random.default_rng(7)
    t = np.linspace(0.0, 1.0, n)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    noise = rng.normal(size=(n, 2))
    match name:
        case "xor":
            X, y = (
                np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]]),
                np.array([1.0, -1.0, 1.0, -1.0]),
            )
        case "moons":
            X = np.column_stack([1.5 * np.cos(np.pi * t) - 0.6 * y, 1.5 * y * np.sin(np.pi * t) - 0.4 * y])
            X += 0.22 * noise
        case "circles":
            X = np.where(y > 0, 0.8, 2.1)[:, None] * np.column_stack(
                [np.cos(9 * np.pi * t), np.sin(9 * np.pi * t)]
            )
            X += 0.18 * noise
        case "spirals":
            turn = 3.5 * np.pi * np.sqrt(0.02 + 0.98 * t)
            X = 0.24 * (y * turn)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)]) + 0.03 * noise
        case "blobs":
            X = 0.9 * noise + y[:, None] * np.array([1.0, 0.6])
        case "sine":
            X, y = -2.8 + 5.6 * t[:, None], np.sin(2.2 * (-2.8 + 5.6 * t)) + 0.2 * noise[:, 0]
        case _:
            X, y = -2.8 + 5.6 * t[:, None], np.where(t > 0.5, 1.0, -1.0) + 0.15 * noise[:, 0]
    return {"points": np.column_stack([X, y]).round(3).tolist()}
