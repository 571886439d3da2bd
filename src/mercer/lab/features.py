"""The room "feature space": where the points lie along the principal components of Φ(x).

>>> found = feature_space(Asked({"points": [[0, 0, 1], [3, 4, 1], [6, 8, -1]], "kernel": "linear"}))
>>> found["scores"]
[[5.0], [0.0], [-5.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.lab.asked import Asked
from mercer.lab.script import array, script
from mercer.lab.seen import fact, gram_of, grid, plain, short
from mercer.lab.typed import typed_kernel

#: Components that the room shows, of those that there are.
_COMPONENTS = 6


def feature_space(asked: Asked) -> dict[str, Any]:
    """Scores of the points, shares of the variance, and one component as a function on the plane."""
    from mercer import KernelPCA

    points = asked.points(3, least=2)
    X, y = points[:, :2], points[:, 2]
    typed = typed_kernel(asked.text("kernel"), asked.numbers("parameters"))
    model = KernelPCA(None, kernel=typed.kernel)
    scores = model.fit_transform(X)[:, :_COMPONENTS]
    shares = model.explained_variance_ratio_
    component = min(asked.whole("component", 1, 1, _COMPONENTS), scores.shape[1])
    f = model.expansion_
    facts = [
        fact("variance in the first two", float(shares[:2].sum()), "the share that the picture shows"),
        fact("components that are not zero", len(shares), f"of at most {len(X) - 1}, one less than points"),
        fact("largest eigenvalue", float(model.eigenvalues_[0]), "of the centred Gram matrix"),
    ]
    return plain(
        {
            "scores": short(scores),
            "shares": short(shares[:30]),
            "component": component,
            "grid": grid(lambda Z: f(Z)[:, component - 1], asked.box()),
            "levels": [0],
            "facts": facts,
            "notes": list(model.report_.warnings),
            "gram": gram_of(model.kernel_, X, np.lexsort((X[:, 1], X[:, 0], y))),
            "kernel": typed.described(model.kernel_, X),
            "code": script(
                typed,
                ["from mercer import KernelPCA"],
                [
                    array("X", X),
                    f"kernel = {typed.source}",
                    "model = KernelPCA(kernel=kernel)",
                    f"scores = model.fit_transform(X)[:, :{_COMPONENTS}]",
                    'print("shares of the variance:", model.explained_variance_ratio_[:5])',
                ],
            ),
        }
    )
