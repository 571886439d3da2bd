"""The oracle: plain NumPy in float64, distances from differences; slow, simple, right."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from mercer.gram.backends.base import Backend, Tile
from mercer.gram.sides import Side, ViewData
from mercer.kernels.formula.pair import External, Quantity
from mercer.kernels.formula.source import print_source
from mercer.kernels.formula.special import matern_shape


class NumpyBackend(Backend[Side]):
    """Every quantity by its definition, in float64, rounded to the wanted precision at the end."""

    name = "numpy"

    def __init__(self, program: Any, dtype: Any, device: str = "cpu") -> None:
        super().__init__(program, dtype, device)
        self.code: dict[str, Any] = {"np": np, "matern_shape": matern_shape}
        exec(print_source(program, "numpy"), self.code)  # text printed by mercer.kernels.formula.source

    def prepare(self, side: Side) -> Side:
        self.require_range(side)
        return side

    def values(self, tile: Tile[Side]) -> np.ndarray:
        external = iter(self.external(tile))
        q = [
            next(external) if isinstance(plane, External) else self._plane(p, plane, tile)
            for p, plane in enumerate(self.program.planes)
        ]
        left, right = tile.x.values[:, tile.rows, None], tile.y.values[:, None, tile.columns]
        with np.errstate(all="ignore"):
            K = np.broadcast_to(self.code["formula"](q, left, right, self.program.values), tile.shape)
        if tile.mirror and tile.i == tile.j:  # the lower triangle decides
            K = np.tril(K) + np.tril(K, -1).T
        return K.astype(self.dtype, copy=False)

    def _plane(self, p: int, plane: Quantity, tile: Tile[Side]) -> np.ndarray:
        v = self.program.views.index(plane.view)
        x, y = tile.x.views[v].take(tile.rows), tile.y.views[v].take(tile.columns)
        X, Y = _dense(x), _dense(y)
        if plane.kind == "dot":
            return X @ Y.T + x.shift[:, None] + y.shift[None, :]
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
