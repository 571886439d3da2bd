"""The oracle: plain NumPy in float64, distances from differences; slow, simple, right."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from mercer.gram.backends.base import Backend
from mercer.gram.sides import Side, ViewData
from mercer.kernels.formula.pair import External, Quantity
from mercer.kernels.formula.source import print_source
from mercer.kernels.formula.special import matern_shape

__all__ = ["NumpyBackend"]


class NumpyBackend(Backend):
    """Every quantity by its definition, in float64, rounded to the wanted precision at the end."""

    name = "numpy"

    def __init__(self, program: Any, dtype: Any, device: str = "cpu") -> None:
        super().__init__(program, dtype, device)
        self.code: dict[str, Any] = {"np": np, "matern_shape": matern_shape}
        exec(print_source(program, "numpy"), self.code)  # text printed by mercer.kernels.formula.source

    def prepare(self, side: Side) -> Side:
        self.require_range(side)
        return side

    def block(
        self,
        x: Side,
        y: Side,
        i: tuple[int, int],
        j: tuple[int, int],
        out: np.ndarray,
        at: tuple[int, int],
        mirror: bool,
    ) -> None:
        rows, cols = slice(*i), slice(*j)
        external = iter(self.external(x, y, i, j, same=mirror))
        q = [
            next(external) if isinstance(plane, External) else self._plane(p, plane, x, y, rows, cols)
            for p, plane in enumerate(self.program.planes)
        ]
        left, right = x.values[:, rows, None], y.values[:, None, cols]
        shape = (i[1] - i[0], j[1] - j[0])
        with np.errstate(all="ignore"):
            K = np.broadcast_to(self.code["formula"](q, left, right, self.program.values), shape)
        if mirror and i == j:  # the lower triangle decides
            K = np.tril(K) + np.tril(K, -1).T
        out[at[0] : at[0] + shape[0], at[1] : at[1] + shape[1]] = K
        if mirror:
            out[at[1] : at[1] + shape[1], at[0] : at[0] + shape[0]] = K.T

    def _plane(self, p: int, plane: Quantity, x: Side, y: Side, rows: slice, cols: slice) -> np.ndarray:
        v = self.program.views.index(plane.view)
        X, Y = (_dense(side.views[v].take(part)) for side, part in ((x, rows), (y, cols)))
        if plane.kind == "dot":
            return X @ Y.T + x.views[v].shift[rows, None] + y.views[v].shift[None, cols]
        if plane.kind == "sqdist":
            return cdist(X, Y, "sqeuclidean")
        term = self.code[f"term_{p}"]
        total = np.full((len(X), len(Y)), 1.0 if plane.kind == "product" else 0.0)
        for k in range(X.shape[1]):
            g = term(X[:, k, None], Y[None, :, k], self.program.values)
            total = total * g if plane.kind == "product" else total + g
        return total


def _dense(view: ViewData) -> np.ndarray:
    return view.matrix.toarray() if view.is_sparse else view.centred(np.float64)
