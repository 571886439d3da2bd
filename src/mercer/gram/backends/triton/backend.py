"""The Triton backend: what `triton_source` prints, compiled by Triton and run on a CUDA device.

A product K @ V is one kernel that reads points and writes sums; blocks are its other use. Views of few
columns are compared coordinate by coordinate; wider ones by products on tensor cores, in the precision that
`precision` chose; of very wide ones the products are computed before, block by block, and read. Rows are
shared out in parts, whose sums are added in float64 and in one order: no result depends on who was first.

What needs Python or sparse products (`External`, CSR) is left to the Torch backend, on the same device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf, isfinite
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from mercer.errors import InputError
from mercer.gram.backends.base import LARGEST_NUMBER, REPAIR, Tile, cut
from mercer.gram.backends.torch import PreparedTensors, TorchBackend, shifted, torch
from mercer.gram.backends.triton import elementary
from mercer.gram.backends.triton.blocks import WIDEST_TILE, Blocks, Received, Selection
from mercer.gram.backends.triton.precision import (
    DEFAULT_ERROR,
    FLOAT32,
    PRODUCTS,
    Arithmetic,
    cheapest,
    rounded,
)
from mercer.gram.sides import Side, Sides
from mercer.kernels.formula.pair import External, Quantity
from mercer.kernels.formula.program import Program
from mercer.kernels.formula.source import print_source
from mercer.kernels.formula.triton_source import Access, Again, Reading, exponent_of
from mercer.runtime import generated
from mercer.runtime.config import settings

#: columns of a view up to which coordinates are read one by one: beyond, products on tensor cores are faster;
#: those of float64 have to be stored first
_FEW_COLUMNS = {np.dtype(np.float32): 8, np.dtype(np.float64): 16}
#: columns of a view up to which tiles of its points fit beside each other for ``tl.dot``
_MANY_COLUMNS = 128
#: columns of ``tl.dot`` come in multiples of this
_PADDING = 16
#: parts that the columns of K are cut into, at most, and columns of a part, at least
_MOST_PARTS, _FEWEST_COLUMNS = 64, 2048
#: numbers of partial sums that are there at a time: 1 GiB in float32
_SUMS = 2**28
#: rows and columns of products that are computed before: 1 GiB in float32
_GIVEN_ROWS, _GIVEN_COLUMNS = 2**14, 2**14
#: columns of V for one pass over K, at most and at least: ``tl.dot`` takes no fewer
_MOST_VECTORS, _FEWEST_VECTORS = 64, 16
#: columns of V up to which one pass for each takes less time than one for all by ``tl.dot``
_SINGLE = 2
#: exponents of this size are safe in float32
_TAME = 64.0
#: points of either side on which errors are measured
_SAMPLE = 128
#: pairs of a launch that are computed again one by one, at most: beyond, all of their tiles are
_MOST_PAIRS = 2**20
#: of these, so many are together
_PAIRS, _PAIR_WARPS = 16, 2


class Shape(NamedTuple):
    """Rows and columns of a tile, and the warps that compute it."""

    rows: int
    columns: int
    warps: int
    stages: int = 2


class TritonBackend(TorchBackend):
    """Printed kernels on a CUDA device; on the CPU only where Triton interprets (``TRITON_INTERPRET=1``)."""

    name = "triton"
    product_rows = 2**31

    def __init__(self, program: Program, dtype: Any, device: str = "cpu") -> None:
        super().__init__(program, dtype, device)
        if self.where.type != "cuda" and not elementary.interprets():
            raise InputError(
                f"backend='triton' computes on CUDA devices, got device={device!r}: pass device='cuda', "
                "or let mercer choose (backend=None), which takes what the device can run"
            )
        #: how products of float32 points are computed, and the relative error of K that comes from it
        self.product: Arithmetic = FLOAT32
        self.error = 0.0
        self._allowed = settings().kernel_error or DEFAULT_ERROR
        values = program.values if program.values.size else np.zeros(1)
        self._constants = self._tensor(values)
        self._empty = torch.zeros(16, dtype=self.real, device=self.where)
        self._exponents = tuple(self._exponent(v) for v in range(len(program.views)))
        self._is_printed = not any(isinstance(plane, External) for plane in program.planes)

    def _exponent(self, v: int) -> int | None:
        constant = exponent_of(self.program, v) if self.real == torch.float32 else None
        return constant if constant is not None and self.program.values[constant] < 0 else None

    # --- sides ---------------------------------------------------------------------------------------

    def decide(self, sides: Sides) -> None:
        """The product that the two sides allow."""
        if self.real != torch.float32 or not self._prints(sides.right):
            return
        if not any(how.by_products for how in self.points(sides.right)):
            return
        self.product, self.error = cheapest(_Error(self, sides), self._allowed)

    @property
    def label(self) -> str:
        """The backend, and what its products cost in precision where they cost something."""
        if self.product.bits == FLOAT32.bits:
            return self.name
        about = f"relative error about {self.error:.1g}, by some of the pairs"
        return f"{self.name}, products in {self.product.name}: {about}"

    def _prints(self, side: Side) -> bool:
        return self._is_printed and not any(view.is_sparse for view in side.views)

    def prepare(self, side: Side) -> Any:
        if not self._prints(side):
            return super().prepare(side)
        self.require_range(side)
        return Blocks(side, self)

    @property
    def largest_square(self) -> float:
        """What a squared norm may be without an overflow."""
        return LARGEST_NUMBER[self.dtype] / 4

    def receives(self, right: Side) -> bool:
        """Whether points for the left side can be made ready on the device: they are read as they are."""
        views = self.program.views
        is_plain = not any(view.steps or view.labels or view.nonnegative_for for view in views)
        return is_plain and bool(views) and not self.program.left and self._prints(right)

    def received(self, rows: Any, right: Blocks) -> Received:
        """Points that are on the device, for the left side; beside a right one."""
        side = right.side._replace(n=len(rows), values=np.empty((0, len(rows))))
        return Received(side, self, rows=rows)

    def holds(self, prepared: Any) -> bool:
        return isinstance(prepared, Blocks) or super().holds(prepared)

    def some(self, prepared: Any, index: Any) -> Any:
        if isinstance(prepared, PreparedTensors):
            return super().some(prepared, index)
        side = prepared.side._replace(n=len(index))
        return Selection(side, self, whole=prepared, index=index)

    def has_low(self, side: Side, v: int) -> bool:
        """Whether coordinates have low parts: float64 points whose differences are wanted in float32."""
        is_rounded = side.views[v].matrix.dtype == np.float64 and self.real == torch.float32
        return is_rounded and "sqdist" in self.program.kinds[v]

    def points(self, side: Side) -> tuple[Reading, ...]:
        """How the views of a side are read."""
        return tuple(self._points(side, v) for v in range(len(side.views)))

    def _points(self, side: Side, v: int) -> Reading:
        width, has_low = side.views[v].width, self.has_low(side, v)
        if width <= _FEW_COLUMNS[self.dtype]:
            return Reading(Access.UNROLLED, width, has_low)
        if not self.program.kinds[v] & {"dot", "sqdist"}:
            return Reading(Access.LOOP, 0, has_low)
        padded = -(-width // _PADDING) * _PADDING
        is_narrow = padded <= _MANY_COLUMNS and self.real == torch.float32
        return Reading(Access.ROWS if is_narrow else Access.PRODUCTS, padded, has_low, self._exponents[v])

    # --- work ----------------------------------------------------------------------------------------

    def multiply(self, tile: Tile[Any], V: np.ndarray, out: np.ndarray) -> None:
        if isinstance(tile.x, PreparedTensors):
            for i in cut(tile.shape[0], self.rows):
                start = tile.i[0]
                super().multiply(tile._replace(i=(start + i[0], start + i[1])), V, out)
            return
        product = self.times(tile, self._tensor(V[tile.columns]))
        out[tile.rows] += product.to(self.real).cpu().numpy()

    def times(self, tile: Tile[Blocks], V: Any) -> Any:  # (rows, p), float64
        """K[i, j] @ V, all on the device."""
        p = V.shape[1]
        total = torch.zeros((tile.shape[0], p), dtype=torch.float64, device=self.where)
        if p <= (_SINGLE if self.real == torch.float32 else 1):
            for column in range(p):
                part = slice(column, column + 1)
                self._add_product(tile, V[:, part].contiguous(), total[:, part])
        elif self.real == torch.float64:
            self._add_stored(tile, V, total)
        else:
            V = rounded(torch, V, self.second.bits)
            for start, stop in cut(p, _MOST_VECTORS):
                width = max(_FEWEST_VECTORS, 1 << (stop - start - 1).bit_length())
                some = V.new_zeros((len(V), width))
                some[:, : stop - start] = V[:, start:stop]
                part = V.new_zeros((tile.shape[0], width), dtype=torch.float64)
                self._add_product(tile, some, part)
                total[:, start:stop] = part[:, : stop - start]
        return total

    def _add_product(self, tile: Tile[Blocks], V: Any, total: Any) -> None:
        """K @ V for vectors in a number that kernels take."""
        width = V.shape[1]
        for i, j in self._ranges(tile, max(1, _SUMS // (_MOST_PARTS * width))):
            parts = min(_MOST_PARTS, -(-(j[1] - j[0]) // _FEWEST_COLUMNS))
            sums = torch.empty((parts, i[1] - i[0], width), dtype=self.real, device=self.where)
            part = tile._replace(i=shifted(tile.i, i), j=shifted(tile.j, j))
            self._launch(part, V[slice(*j)].contiguous(), sums, width, parts)
            total[slice(*i)] += sums.sum(dim=0, dtype=torch.float64)

    def _add_stored(self, tile: Tile[Blocks], V: Any, total: Any) -> None:
        """K @ V by blocks of K that are written and multiplied."""
        for i in cut(tile.shape[0], _GIVEN_ROWS):
            for j in cut(tile.shape[1], _GIVEN_COLUMNS):
                K = self._values(tile._replace(i=shifted(tile.i, i), j=shifted(tile.j, j), mirror=False))
                total[slice(*i)] += K @ V[slice(*j)]

    def _ranges(self, tile: Tile[Blocks], rows: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Rows and columns of a tile, counted from its own first, that one launch is for."""
        columns = tile.shape[1]
        if any(how.access is Access.PRODUCTS for how in self.points(tile.x.side)):
            rows, columns = min(rows, _GIVEN_ROWS), _GIVEN_COLUMNS
        return ((i, j) for i in cut(tile.shape[0], rows) for j in cut(tile.shape[1], columns))

    def _values(self, tile: Tile[Any]) -> Any:
        """K[i, j] on the device."""
        if isinstance(tile.x, PreparedTensors):
            return super()._values(tile)
        K = torch.empty(tile.shape, dtype=self.real, device=self.where)
        self.store(tile, K)
        if tile.mirror and tile.i == tile.j:  # the lower triangle decides
            K = torch.tril(K) + torch.tril(K, -1).T
        return K

    def store(self, tile: Tile[Any], out: Any) -> None:
        """K[i, j] into a tensor, whose rows are written where they are."""
        if isinstance(tile.x, PreparedTensors):
            super().store(tile, out)
            return
        for i, j in self._ranges(tile, tile.shape[0]):
            part = tile._replace(i=shifted(tile.i, i), j=shifted(tile.j, j))
            self._launch(part, self._empty, out[slice(*i), slice(*j)], 0, 1)

    def fuses(self, x: Any, y: Any) -> bool:
        """Whether products with K and with its transpose are one printed kernel each, that stores nothing.

        Products that are computed before are stored anyway; where the sides have values of their own (k(x,
        x), say), they cannot be swapped.
        """
        if isinstance(x, PreparedTensors) or len(x.side.values) or len(y.side.values):
            return False
        return self.real == torch.float32 and not any(
            how.access is Access.PRODUCTS for how in self.points(x.side)
        )

    # --- kernels -------------------------------------------------------------------------------------

    @property
    def second(self) -> Arithmetic:
        """How values are multiplied into several vectors, by tensor cores that cut bits off."""
        return next((product for product in PRODUCTS if 2 * product.unit <= self._allowed), FLOAT32)

    def _launch(self, tile: Tile[Blocks], V: Any, out: Any, vectors: int, parts: int) -> None:
        """One kernel over a tile, and a second one over what has cancelled."""
        x, y = tile.x, tile.y
        points = tuple(
            how._replace(is_tame=how.exponent is not None and self._is_tame(x, y, v))
            for v, how in enumerate(self.points(x.side))
        )
        shape = self._shape(points, vectors)
        n, m = tile.shape
        tiles = -(-m // shape.columns)
        blocks = -(-n // shape.rows)
        checks = any(
            how.by_products and "sqdist" in kinds
            for how, kinds in zip(points, self.program.kinds, strict=True)
        )
        flags = torch.zeros(blocks * tiles if checks else 16, dtype=torch.int8, device=self.where)
        pairs = torch.empty(
            1 + (_MOST_PAIRS if checks and not vectors else 0), dtype=torch.int64, device=self.where
        )
        pairs[0] = 0
        arguments = {
            "left": x.values, "right": y.values, "constants": self._constants, "V": V, "out": out,
            "flags": flags, "pairs": pairs, "most_pairs": _MOST_PAIRS,
            "row": tile.i[0], "rows": n, "column": tile.j[0], "columns": m, "tiles": tiles,
            "each": -(-tiles // parts), "x_step": x.side.n, "y_step": y.side.n,
            # Sums do not read it; another kernel would be compiled for steps of another divisibility.
            "out_step": _PADDING if vectors else out.stride(0),
            "BM": shape.rows, "BN": shape.columns, "P": vectors,
            "FIRST": _word(self.product), "SECOND": _word(self.second),
            "num_warps": shape.warps, "num_stages": shape.stages,
        }  # fmt: skip
        for v, (how, view) in enumerate(zip(points, x.side.views, strict=True)):
            arguments[f"d{v}_width"] = view.width
            if how.access is Access.ROWS:
                arguments |= {f"a{v}": x.operand(v), f"b{v}": y.operand(v)}
            elif how.access is Access.PRODUCTS:
                arguments[f"g{v}"] = self._product_of(x.factor(v, True), y.factor(v, False), tile)
                arguments[f"g{v}_step"] = arguments[f"g{v}"].stride(0)
        self._run(self._kernel(points), (blocks, parts), arguments, x, y)
        if checks:
            self._repair(points, (blocks, parts), arguments, x, y)

    def _repair(
        self, points: tuple[Reading, ...], grid: tuple[int, int], arguments: dict[str, Any], x: Any, y: Any
    ) -> None:
        """From differences, the pairs whose values were stored, if they are few; else the flagged tiles."""
        is_stored = not arguments["P"]
        pairs = int(arguments["pairs"][0]) if is_stored else 0
        if 0 < pairs <= _MOST_PAIRS:
            each = zip(points, self.program.kinds, strict=True)
            kernel = self._kernel(tuple(_of_pairs(how, kinds) for how, kinds in each), Again.PAIRS)
            arguments |= {"BM": _PAIRS, "BN": 1, "num_warps": _PAIR_WARPS}
            self._run(kernel, (-(-pairs // _PAIRS), 1), arguments, x, y)
        elif pairs or (not is_stored and bool(arguments["flags"].any())):
            exact = tuple(Reading(Access.LOOP, 0, how.has_low) if how.by_products else how for how in points)
            self._run(self._kernel(exact, Again.TILES), grid, arguments, x, y)

    def _run(
        self, kernel: Any, grid: tuple[int, int], arguments: dict[str, Any], x: Blocks, y: Blocks
    ) -> None:
        given = {name: arguments[name] for name in kernel.arg_names if name in arguments}
        for v in range(len(x.side.views)):
            if f"x{v}" in kernel.arg_names:
                given |= {f"x{v}": x.coordinates[v], f"y{v}": y.coordinates[v]}
        with torch.cuda.device(self.where if self.where.type == "cuda" else -1):
            kernel[grid](**given, num_warps=arguments["num_warps"], num_stages=arguments["num_stages"])

    def _is_tame(self, x: Blocks, y: Blocks, v: int) -> bool:
        """Whether 2^|c s| is finite for every error s of a squared distance."""
        constant = self._exponents[v]
        assert constant is not None
        size = x.largest_square(v) + y.largest_square(v)
        return bool(-self.program.values[constant] * size * 4 * PRODUCTS[0].unit < _TAME)

    def _kernel(self, points: tuple[Reading, ...], again: Again | None = None) -> Any:
        key = (self.program.layout, self.dtype, points, again)
        if key not in _kernels:
            text = print_source(
                self.program, "triton", real=self.dtype.name, points=points,
                repair=REPAIR[self.dtype], again=again,
            )  # fmt: skip
            _kernels[key] = generated.load(text, elementary.salt()).tile
        return _kernels[key]

    def _product_of(self, X: Any, Y: Any, tile: Tile[Blocks]) -> Any:
        """⟨x, y⟩ of rows and columns, and of as many columns more as tiles go over."""
        stop = tile.j[0] + -(-tile.shape[1] // WIDEST_TILE) * WIDEST_TILE
        with self._multiplying():
            return X[tile.rows] @ Y[tile.j[0] : stop].T

    @contextmanager
    def _multiplying(self) -> Iterator[None]:
        """Torch's products of float32 on tensor cores where points were rounded for them."""
        cuda = torch.backends.cuda.matmul
        with _switch:
            before = cuda.allow_tf32
            cuda.allow_tf32 = self.product is not FLOAT32
            try:
                yield
            finally:
                cuda.allow_tf32 = before

    def _shape(self, points: tuple[Reading, ...], vectors: int) -> Shape:
        """Tiles that suit what is read: fixed, so that sums are the same on every device."""
        if self.real == torch.float64:
            return Shape(16 if any(how.access is Access.PRODUCTS for how in points) else 32, 64, 4)
        if any(how.access is Access.PRODUCTS for how in points):
            return Shape(64, 64, 4)
        widest = max((how.width for how in points if how.access is Access.ROWS), default=0)
        if widest:
            if vectors > 1:
                return Shape(128, 64, 4 if widest <= 64 else 8, 3)
            is_short = self.product.name == "tf32"
            return (
                Shape(64, 128, 4, 4) if widest <= 64 else Shape(64, 64, 4) if is_short else Shape(128, 64, 8)
            )
        if vectors > 1:
            return Shape(64, 64, 2, 3) if self.second.name == "tf32" else Shape(128, 16, 4)
        width = sum(how.width for how in points if how.access is Access.UNROLLED)
        return Shape(32, 32, 2) if width <= 4 else Shape(32, 32, 4)


#: printed kernels by what they depend on; their code is in files, and compiled code in Triton's cache
_kernels: dict[Any, Any] = {}
#: held while Torch's switch for tensor cores is not as it was: there is one for the process
_switch = Lock()


def _word(product: Arithmetic) -> str:
    """The product as ``tl.dot`` calls it."""
    return "ieee" if product is FLOAT32 else product.name


def _of_pairs(how: Reading, kinds: set[str]) -> Reading:
    """How the pairs of a view are read again."""
    if not how.by_products:
        return how
    return Reading(Access.STRIPS if kinds <= {"dot", "sqdist"} else Access.LOOP, 0, how.has_low)


class _Error:
    """The relative error of K that a product causes, on pairs of some of the points.

    The larger one of two: of points on the left with those on the right, and of these with each other, but
    for themselves, whose k(x, x) is exact and would hide the rest.
    """

    def __init__(self, backend: TritonBackend, sides: Sides) -> None:
        self.backend = backend
        y = TorchBackend.prepare(backend, _some(sides.right))
        x = y if sides.left is sides.right else TorchBackend.prepare(backend, _some(sides.left))
        self.pairs = [(y, y)] if x is y else [(y, y), (x, y)]
        self.exact = [self._values(*pair, None) for pair in self.pairs]

    def __call__(self, product: Arithmetic) -> float:
        errors = []
        for pair, exact in zip(self.pairs, self.exact, strict=True):
            gap, size = float((self._values(*pair, product) - exact).norm()), float(exact.norm())
            errors.append(gap / size if size > 0 else 0.0 if gap == 0 else inf)
        return max(error if isfinite(error) else inf for error in errors)

    def _values(self, x: PreparedTensors, y: PreparedTensors, product: Arithmetic | None) -> Any:
        backend = self.backend
        how = backend.points(x.side)
        planes = []
        for p, plane in enumerate(backend.program.planes):
            v = backend.program.views.index(plane.view)
            X, Y = x.exact[v], y.exact[v]
            assert isinstance(plane, Quantity)
            if plane.kind not in ("dot", "sqdist"):
                planes.append(backend._coordinates(p, plane, x.views[v], y.views[v]).double())
                continue
            if product is not None and how[v].by_products:
                X, Y = (rounded(torch, Z.float(), product.bits).double() for Z in (X, Y))
            if plane.kind == "dot":
                planes.append(X @ Y.T + x.shift[v].double()[:, None] + y.shift[v].double()[None, :])
            else:
                planes.append(torch.cdist(X, Y, compute_mode="donot_use_mm_for_euclid_dist").square())
        left, right = x.values.double()[:, :, None], y.values.double()[:, None, :]
        K = backend.code["formula"](planes, left, right, backend.params.double())
        K = K.expand(x.side.n, y.side.n)
        return K - torch.diag(torch.diagonal(K)) if x is y else K


def _some(side: Side) -> Side:
    return side.take(np.unique(np.linspace(0, side.n - 1, _SAMPLE).astype(np.int64)))
