"""The points of one side of a Gram on the device, as the kernels that Triton compiles read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.gram.backends.base import cut
from mercer.gram.backends.torch import torch
from mercer.gram.backends.triton.precision import FLOAT32, PRODUCTS, rounded
from mercer.gram.sides import Side

if TYPE_CHECKING:
    from mercer.gram.backends.triton.backend import TritonBackend

#: columns of a tile, at most: a multiple of those of all tiles
WIDEST_TILE = 512
#: numbers of points that are measured together: 512 MiB in float64
_MEASURED = 2**26


@dataclass
class Blocks:
    """A side on the device, for printed kernels; what they read is made when it is first asked for."""

    side: Side
    backend: TritonBackend
    _operands: dict[int, Any] = field(default_factory=dict)
    _factors: dict[tuple[int, bool], Any] = field(default_factory=dict)

    @cached_property
    def values(self) -> Any:  # (point values and, of every view, norms and shifts; n)
        table = self.measured.clone()
        for v, how in enumerate(self.backend.points(self.side)):
            if how.by_products and self.backend.product.bits < FLOAT32.bits:
                operand = self.operand(v)[: self.side.n]
                norms = torch.linalg.vector_norm(operand, dim=1, dtype=torch.float64).square()
                table[len(self.side.values) + v] = norms
        return table.to(self.backend.real)

    @cached_property
    def measured(self) -> Any:  # (the same, n), in float64, of the points as they are
        views = self.side.views
        rows = [*self.side.values, *(v.norms for v in views), *(v.shift for v in views)]
        rows = [row if row.size else np.zeros(self.side.n) for row in rows] or [np.zeros(self.side.n)]
        return self.backend._tensor(np.stack(rows), torch.float64)

    def largest_square(self, v: int) -> float:
        """The largest squared norm of a view, or what it is at most."""
        return float(self.side.views[v].norms.max())

    def _points(self, v: int) -> Any:  # (n, d), in float64
        return self.backend._tensor(self.side.views[v].matrix, torch.float64)

    def _centred(self, v: int) -> Any:  # (n, d), in float64
        centre = self.side.views[v].centre
        points = self._points(v)
        return points if centre is None else points - self.backend._tensor(centre, torch.float64)

    @cached_property
    def coordinates(self) -> tuple[Any, ...]:  # for each view (d, n), or (2d, n) with low parts
        return tuple(self._coordinates(v) for v in range(len(self.side.views)))

    def _coordinates(self, v: int) -> Any:
        real = self.backend.real
        exact = self._points(v).T.contiguous()
        high = exact.to(real)
        if not self.backend.has_low(self.side, v):
            return high
        return torch.cat([high, (exact - high.to(torch.float64)).to(real)])

    def factor(self, v: int, is_left: bool) -> Any:  # (n + a tile, d padded, or three times that)
        """Rows for Torch to multiply: of "tf32x3" in two parts, h hᵀ + h lᵀ + l hᵀ as one product."""
        whole = self.operand(v)
        if self.backend.product.name != "tf32x3":
            return whole
        if (v, is_left) not in self._factors:
            high = rounded(torch, whole, PRODUCTS[0].bits)
            low = whole - high
            self._factors[v, is_left] = torch.cat([high, *((high, low) if is_left else (low, high))], dim=1)
        return self._factors[v, is_left]

    def operand(self, v: int) -> Any:  # (n + a tile, d padded)
        """Centred rows of a view, rounded to what the product keeps, with zeros beside and below."""
        if v not in self._operands:
            how = self.backend.points(self.side)[v]
            rows = self._centred(v).to(self.backend.real)
            if self.backend.real == torch.float32:
                rows = rounded(torch, rows, self.backend.product.bits)
            padded = rows.new_zeros((len(rows) + WIDEST_TILE, how.width))
            padded[: len(rows), : rows.shape[1]] = rows
            self._operands[v] = padded
        return self._operands[v]


@dataclass
class Received(Blocks):
    """Points of a left side that came to the device as they are; ``side`` has what they share with the right
    one, centre, width and type, and their number.
    """

    rows: Any = None
    #: the largest squared norm, where it is known
    largest: float = inf

    def _points(self, v: int) -> Any:
        return self.rows.to(torch.float64)

    def largest_square(self, v: int) -> float:
        return self.largest

    @cached_property
    def measured(self) -> Any:
        views, n = self.side.views, self.side.n
        table = self.rows.new_zeros((2 * len(views), n), dtype=torch.float64)
        for v, (kinds, view) in enumerate(zip(self.backend.program.kinds, views, strict=True)):
            centre = table.new_zeros(view.width)
            if view.centre is not None:
                centre = self.backend._tensor(view.centre, torch.float64)
            for part in map(slice, *zip(*cut(n, max(1, _MEASURED // max(1, view.width))), strict=True)):
                rows = self.rows[part] - centre
                table[v, part] = rows.square().sum(dim=1)
                if "dot" in kinds and view.centre is not None:
                    table[len(views) + v, part] = rows @ centre + 0.5 * centre.square().sum()
        return table

    def largest_norm(self) -> Any:  # ()
        """The largest squared norm of all views, NaN where a number is: on the device."""
        return self.measured[: len(self.side.views)].amax()


@dataclass
class Selection(Blocks):
    """Some points of a side, gathered on the device; ``side`` has their number alone."""

    whole: Any = None
    index: Any = None

    @cached_property
    def values(self) -> Any:
        return self.whole.values[:, self.index].contiguous()

    def _coordinates(self, v: int) -> Any:
        return self.whole.coordinates[v][:, self.index].contiguous()

    def operand(self, v: int) -> Any:
        if v not in self._operands:
            rows = self.whole.operand(v)[self.index]
            self._operands[v] = torch.cat([rows, rows.new_zeros((WIDEST_TILE, rows.shape[1]))])
        return self._operands[v]
