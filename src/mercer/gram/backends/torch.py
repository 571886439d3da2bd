"""The Torch backend: blocks on any device that PyTorch knows, results on the host.

Blocks are large (a GPU wants much work at once), one at a time, and Torch's own threads share a
block on the CPU. Squared distances are repaired as in ``loops``: where ‖x‖² + ‖y‖² - 2⟨x,y⟩ has lost
too much, from float64 differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import InputError, require
from mercer.gram.backends.base import REPAIR, Backend, Tile, cut
from mercer.gram.sides import Side
from mercer.kernels.formula.pair import External, Quantity
from mercer.kernels.formula.program import Program
from mercer.kernels.formula.source import print_source
from mercer.runtime.config import thread_count

torch = require("torch", "torch")

#: Numbers of differences that are on the device at a time when distances are repaired: 128 MB in float64.
_DIFFERENCES = 2**24


@dataclass(frozen=True)
class PreparedTensors:
    """A side on the device; CSR views and objects stay on the host and follow block by block."""

    side: Side
    views: tuple[Any, ...]  # (n, d) tensors, or None
    exact: tuple[Any, ...]  # the points in float64
    norms: tuple[Any, ...]
    shift: tuple[Any, ...]
    values: Any  # (point values, n)


class TorchBackend(Backend[PreparedTensors]):
    """Blocks by Torch on ``config(device=…)``."""

    name = "torch"
    is_parallel = True

    def __init__(self, program: Program, dtype: Any, device: str = "cpu") -> None:
        super().__init__(program, dtype, device)
        self.where = where_of(device)
        on_gpu = self.where.type != "cpu"
        self.rows, self.columns = (8192, 16384) if on_gpu else (1024, 2048)
        self.real = getattr(torch, self.dtype.name)
        self.double = torch.float32 if self.where.type == "mps" else torch.float64  # MPS has no float64
        self.params = torch.tensor(program.values, dtype=self.real, device=self.where)
        self.code: dict[str, Any] = {
            "torch": torch, "where": _where, "less_equal": _less_equal, "matern_shape": _matern_shape,
        }  # fmt: skip
        exec(print_source(program, "torch"), self.code)  # text printed by mercer.kernels.formula.source

    @contextmanager
    def session(self) -> Iterator[None]:
        """Torch on as many threads as the configuration says."""
        before = torch.get_num_threads()
        torch.set_num_threads(thread_count())
        try:
            yield
        finally:
            torch.set_num_threads(before)

    # --- sides ---------------------------------------------------------------------------------------

    def prepare(self, side: Side) -> PreparedTensors:
        self.require_range(side)
        dense = [view.norms.size > 0 and not view.is_sparse for view in side.views]
        numeric = [view.norms.size > 0 for view in side.views]
        exact = [
            self._tensor(view.centred(np.float64), self.double) if d else None
            for view, d in zip(side.views, dense, strict=True)
        ]
        return PreparedTensors(
            side,
            tuple(None if e is None else e.to(self.real) for e in exact),
            tuple(exact),
            tuple(self._tensor(v.norms) if n else None for v, n in zip(side.views, numeric, strict=True)),
            tuple(self._tensor(view.shift) for view in side.views),
            self._tensor(side.values),
        )

    def _tensor(self, array: np.ndarray, real: Any = None) -> Any:
        tensor, real = torch.as_tensor(np.ascontiguousarray(array)), real or self.real
        if tensor.element_size() < real.itemsize:
            tensor = tensor.to(self.where)  # the device widens it: fewer bytes travel
        return tensor.to(device=self.where, dtype=real)

    def _rows(self, prepared: PreparedTensors, v: int, part: slice) -> tuple[Any, Any]:
        """The rows of a view, in the wanted precision and in float64."""
        if prepared.views[v] is not None:
            return prepared.views[v][part], prepared.exact[v][part]
        exact = self._tensor(prepared.side.views[v].matrix[part].toarray(), self.double)
        return exact.to(self.real), exact

    def holds(self, prepared: Any) -> bool:
        """Whether all that the points of a side say is on the device."""
        return (
            isinstance(prepared, PreparedTensors)
            and all(view is not None for view in prepared.views)
            and not any(isinstance(plane, External) for plane in self.program.planes)
        )

    def some(self, prepared: Any, index: Any) -> Any:
        """Some points of a side that is held, gathered on the device; ``side`` has their number alone."""

        def gathered(tensor: Any) -> Any:
            return tensor[index] if len(tensor) else tensor

        views, exact, norms, shift = (
            tuple(map(gathered, tensors))
            for tensors in (prepared.views, prepared.exact, prepared.norms, prepared.shift)
        )
        side = prepared.side._replace(n=len(index))
        return PreparedTensors(side, views, exact, norms, shift, prepared.values[:, index])

    # --- work ----------------------------------------------------------------------------------------

    def values(self, tile: Tile[PreparedTensors]) -> np.ndarray:
        return np.asarray(self._values(tile).cpu().numpy())

    def fill(self, tile: Tile[PreparedTensors], out: np.ndarray) -> None:
        K = self._values(tile)
        out[tile.rows, tile.columns] = K.cpu().numpy()
        if tile.mirror:  # transposed on the device, where that is quick
            out[tile.columns, tile.rows] = K.T.contiguous().cpu().numpy()

    def multiply(self, tile: Tile[PreparedTensors], V: np.ndarray, out: np.ndarray) -> None:
        vectors = self._tensor(V)
        total = torch.zeros((tile.shape[0], V.shape[1]), dtype=self.real, device=self.where)
        for strip in tile.strips(self.columns):
            total += self._values(strip) @ vectors[strip.columns]
        out[tile.rows] += total.cpu().numpy()

    def store(self, tile: Tile[Any], out: Any) -> None:
        """K[i, j] into a tensor on the device of just that shape."""
        for i, j in self._pieces(tile):
            part = tile._replace(i=shifted(tile.i, i), j=shifted(tile.j, j), mirror=False)
            out[slice(*i), slice(*j)] = self._values(part)

    def _pieces(self, tile: Tile[Any]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Rows and columns of a tile, counted from its own first, whose values are there at a time."""
        n, m = tile.shape
        return [(i, j) for i in cut(n, self.rows) for j in cut(m, self.columns)]

    def _values(self, tile: Tile[PreparedTensors]) -> Any:
        """K[i, j] on the device."""
        x, y = tile.x, tile.y
        external = iter(self.external(Tile(x.side, y.side, *tile[2:])))
        products: dict[int, Any] = {}
        q = [
            self._tensor(next(external))
            if isinstance(plane, External)
            else self._plane(p, plane, tile, products)
            for p, plane in enumerate(self.program.planes)
        ]
        left, right = x.values[:, tile.rows, None], y.values[:, None, tile.columns]
        K = self.code["formula"](q, left, right, self.params).expand(tile.shape)
        if tile.mirror and tile.i == tile.j:  # the lower triangle decides
            K = torch.tril(K) + torch.tril(K, -1).T
        return K

    def _plane(self, p: int, plane: Quantity, tile: Tile[PreparedTensors], products: dict[int, Any]) -> Any:
        v = self.program.views.index(plane.view)
        x, y, rows, cols = tile.x, tile.y, tile.rows, tile.columns
        (X, X_exact), (Y, Y_exact) = self._rows(x, v, rows), self._rows(y, v, cols)
        if plane.kind in ("sum", "product"):
            return self._coordinates(p, plane, X, Y)
        if v not in products:
            products[v] = X @ Y.T
        if plane.kind == "dot":
            return products[v] + (x.shift[v][rows, None] + y.shift[v][None, cols])
        scale = x.norms[v][rows, None] + y.norms[v][None, cols]
        s = torch.add(scale, products[v], alpha=-2)
        lost = s < REPAIR[self.dtype] * scale
        doubtful = torch.nonzero(lost) if bool(lost.any()) else lost.new_empty((0, 2), dtype=torch.int64)
        for part in torch.split(doubtful, max(1, _DIFFERENCES // max(1, X.shape[1]))):
            a, b = part[:, 0], part[:, 1]
            difference = X_exact[a] - Y_exact[b]
            s[a, b] = (difference * difference).sum(dim=1).to(self.real)
        return s

    def _coordinates(self, p: int, plane: Quantity, X: Any, Y: Any) -> Any:
        """Σₖ or Πₖ of the term, one coordinate at a time."""
        term = self.code[f"term_{p}"]
        total = torch.full(
            (len(X), len(Y)), 1.0 if plane.kind == "product" else 0.0, dtype=self.real, device=self.where
        )
        for k in range(X.shape[1]):
            g = term(X[:, k, None], Y[None, :, k], self.params)
            total = total * g if plane.kind == "product" else total + g
        return total


def where_of(device: str) -> Any:
    """The device, as PyTorch names it; InputError where it cannot be used."""
    try:
        where = torch.device(device)
        torch.empty(1, device=where)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"device {device!r} cannot be used ({reason}): pass one that torch has, such as 'cpu'"
        ) from error
    return where


def shifted(whole: tuple[int, int], part: tuple[int, int]) -> tuple[int, int]:
    """A part of a range, counted from its start, as a range of its own.

    >>> shifted((10, 20), (2, 4))
    (12, 14)
    """
    return whole[0] + part[0], whole[0] + part[1]


def _where(condition: Any, a: Any, b: Any) -> Any:
    return torch.where(condition > 0, a, b)


def _less_equal(a: Any, b: Any) -> Any:
    return (a <= b).to(a.dtype)


def _matern_shape(nu: Any, z: Any) -> Any:
    """2^{1-ν}/Γ(ν) z^ν K_ν(z) by the trapezoidal rule of ``elementary``, all entries at once, in float64."""
    order, real = float(nu), z.dtype
    z = z.to(torch.float64)
    small = z < 1e-290
    safe = torch.where(small, torch.ones_like(z), z)
    start = order * torch.log(safe)
    if order > 0:
        start += (1 - order) * math.log(2.0) - math.lgamma(order)
    far = (safe > abs(order)) & (start - safe + order * order / (2 * safe) < -745.0)
    safe = torch.where(far, torch.ones_like(z), safe)
    start = torch.where(far, torch.zeros_like(z), start)
    h = torch.clamp(0.55 / (order * order + safe * safe) ** 0.25, max=0.2)
    total = 0.5 * torch.exp(start - safe)
    i = 1
    while True:
        t = i * h
        size = abs(order) * t
        term = 0.5 * torch.exp(start - safe * torch.cosh(t) + size) * (1 + torch.exp(-2 * size))
        total += term
        if bool(((term <= 1e-17 * total) & (safe * torch.sinh(t) > abs(order))).all()):
            break
        i += 1
    total = torch.where(far, torch.zeros_like(z), total)
    limit = torch.full_like(z, 1.0 if order > 0 else 0.0)
    return torch.where(small, limit, total * h).to(real)
