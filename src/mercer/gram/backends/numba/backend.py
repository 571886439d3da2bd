"""The CPU backend: BLAS products with the formula applied while a tile is in cache.

The loops are in ``loops``; here a side becomes the flat arrays they read. CSR views are made dense
a block of rows at a time when they are narrow (BLAS is then the fastest way); wide ones are
multiplied as sparse matrices, touching only what is non-zero in both.
"""

from __future__ import annotations

from collections.abc import Hashable
from ctypes import byref
from dataclasses import dataclass, field
from functools import cached_property
from threading import local
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  the BLAS that compiled code calls: loaded before it is limited

from mercer.gram.backends.base import REPAIR, Backend, Tile, cut
from mercer.gram.backends.numba import codegen, loops
from mercer.gram.backends.numba.distances import DIRECT, SHARED
from mercer.gram.backends.numba.job import Job, address, scratch
from mercer.gram.backends.numba.parts import tile_loop
from mercer.gram.backends.numba.planes import DOT, EXTERNAL, SQDIST, SUM
from mercer.gram.backends.numba.sparse_products import sparse_products
from mercer.gram.sides import Side, ViewData
from mercer.kernels.formula.pair import External, Quantity
from mercer.kernels.formula.program import Program
from mercer.kernels.formula.source import print_source

_KINDS = {
    "dot": DOT,
    "sqdist": SQDIST,
    "sum": SUM,
    "product": SUM,
    "external": EXTERNAL,
}
#: Columns of the data up to which squared distances are sums of differences, not products: a tenth faster in
#: float64 (Gaussian, 1500 × 1500), as fast in float32, and there is little to repair.
_DIRECT_WIDTH = 8
#: Columns up to which a CSR block may be made dense: 496 rows of so many take 16 MB.
_DENSE_WIDTH = 4096
#: Columns up to which a CSR block is always made dense: 496 rows of so many take a megabyte.
_ALWAYS_DENSE_WIDTH = 256
#: Bytes up to which narrow CSR views are made dense once and for all.
_KEPT_DENSE = 2**26
#: Rows and columns of a tile: three planes of float64 are in a megabyte of cache.
_TILE = (124, 248)
#: Rows and columns of a tile for some rows of a matrix: larger products are no faster.
_ROWS_TILE = (256, 512)
#: Columns of sparse rows and objects that are made ready together: whole tiles.
_HANDED_OVER = 8 * _TILE[1]
#: Bytes from which a matrix is not expected to stay in cache.
_CACHE = 2**25
#: Sums over sets are of float64.
_SUMS = np.dtype(np.float64)
#: Where the first view starts.
_ONE_OFFSET = np.zeros(1, np.int64)
#: Pairs of sparse rows whose differences are taken together.
_REPAIRED = 4096


class _Facts(NamedTuple):
    """What the layout of the work depends on, per view."""

    width: int  # 0 for objects
    is_wide: bool  # a CSR matrix that is not made dense
    is_shifted: bool


class _Layout(NamedTuple):
    """How each plane is filled, what is wanted of each view, and the planes that are computed here."""

    planes: np.ndarray  # (planes, 4), as ``job`` has it
    views: np.ndarray  # (views, 4), as ``job`` has it
    here: tuple[int, ...]
    transposed: int  # numbers of a point, in all views, that are needed transposed
    parts: tuple[str, ...]  # the parts of the tile loop that fill the planes
    planes_at: int  # addresses
    views_at: int


@dataclass(frozen=True, eq=False)
class _Code:
    """What is compiled for the programs of one layout, and how their planes are filled."""

    tile: Any
    layouts: dict[tuple[_Facts, ...], _Layout] = field(default_factory=dict)


#: the compiled code of every layout that was met
_codes: dict[Hashable, _Code] = {}


@dataclass(frozen=True)
class Prepared:
    """A side as flat arrays: dense views one after the other, row-major."""

    side: Side  # for sparse views and objects
    flat: np.ndarray  # in the wanted precision
    exact: np.ndarray  # what distances are repaired from: the same in float64, or as the points came
    offsets: np.ndarray  # (views,) where each view starts
    numbers: np.ndarray  # (2 views + values, n): norms and shifts of the views' points, and values of points
    facts: tuple[_Facts, ...]
    is_flat: bool  # every view is in the flat arrays

    @cached_property
    def addresses(self) -> tuple[int, int, int]:
        """The addresses of flat, exact and numbers, which hold while this object lives."""
        flat = address(self.flat, self.flat.dtype)
        exact = flat if self.exact is self.flat else address(self.exact, self.exact.dtype)
        return flat, exact, address(self.numbers, self.flat.dtype)


class NumbaBackend(Backend[Prepared]):
    """Tiles by BLAS and compiled code, on the CPU."""

    name = "numba"
    rows, columns = 4 * _TILE[0], 2 * _TILE[1]  # square: a mirrored block must not straddle another

    def __init__(self, program: Program, dtype: Any, device: str = "cpu") -> None:
        super().__init__(program, dtype, device)
        self._code = self._load_code()
        self.tile = self._code.tile
        self.params = np.ascontiguousarray(program.values, dtype=self.dtype)
        self.tau = REPAIR[self.dtype]

    def _load_code(self, **options: Any) -> _Code:
        key = self.program.layout, self.dtype, *options.items()
        code = _codes.get(key)
        if code is None:  # printing takes longer than a small matrix
            variants = (
                print_source(self.program, "numba", real=self.dtype.name, cache=kept, **options)
                for kept in (True, False)
            )
            code = _codes[key] = _Code(codegen.load(*variants).tile)
        return code

    @cached_property
    def _adding_tile(self) -> Any:
        """A tile that adds its rows to the first: values are not stored."""
        return self._load_code(adds_rows=True).tile

    @cached_property
    def _params_at(self) -> int:
        return address(self.params, self.dtype)

    @cached_property
    def _memory(self) -> local:
        """Arrays of each thread, that are used again."""
        return local()

    # --- sides ---------------------------------------------------------------------------------------

    def prepare(self, side: Side) -> Prepared:
        self.require_range(side)
        has_sparse = any(view.is_sparse for view in side.views)
        if has_sparse and _dense_size(side) <= _KEPT_DENSE:
            side = self._made_dense(side)
        return self._flatten(side)

    def take(self, prepared: Prepared, side: Side, index: np.ndarray, role: str) -> Prepared:
        if not (prepared.is_flat and len(prepared.facts) == 1):
            return super().take(prepared, side, index, role)
        width = prepared.facts[0].width
        flat = self._gather(prepared.flat, width, index, f"{role}, centred")
        same = prepared.exact is prepared.flat
        exact = flat if same else self._gather(prepared.exact, width, index, f"{role}, exact")
        return Prepared(
            side,
            flat,
            exact,
            prepared.offsets,
            prepared.numbers.take(index, axis=1),
            prepared.facts,
            True,
        )

    def _gather(self, whole: np.ndarray, width: int, index: np.ndarray, name: str) -> np.ndarray:
        """Rows of a flat array, in memory that is kept: new memory costs more than what is written to it."""
        kept = self._memory.__dict__
        size = len(index) * width
        if name not in kept or kept[name].size < size:
            kept[name] = np.empty(2 * size, whole.dtype)  # what is not written to costs nothing
        out = kept[name][:size]
        np.take(whole.reshape(-1, width), index, axis=0, out=out.reshape(len(index), width), mode="clip")
        return out

    def _flatten(self, side: Side) -> Prepared:
        n_views = len(side.views)
        numbers = np.zeros((2 * n_views + len(side.values), side.n), self.dtype)
        numbers[2 * n_views :] = side.values
        dense, sizes, facts = [], [], []
        for v, view in enumerate(side.views):
            is_numeric, is_sparse = view.norms.size > 0, view.is_sparse
            if is_numeric:
                numbers[v] = view.norms
            if view.shift.size:
                numbers[n_views + v] = view.shift
            if is_numeric and not is_sparse:
                dense.append(view)
            sizes.append(view.matrix.size if is_numeric and not is_sparse else 0)
            is_wide = is_sparse and not self._is_narrow(v, view)
            facts.append(_Facts(view.width if is_numeric else 0, is_wide, view.centre is not None))
        flat, exact = self._arrays(dense)
        tile_loop(self.dtype, exact.dtype)  # before threads need it
        offsets = np.cumsum([0, *sizes])[:-1] if n_views > 1 else _ONE_OFFSET
        return Prepared(side, flat, exact, offsets, numbers, tuple(facts), len(dense) == n_views)

    def _arrays(self, dense: list[ViewData]) -> tuple[np.ndarray, np.ndarray]:
        """Dense views one after the other, centred; and what repairs read."""
        flats = [view.centred(self.dtype).ravel() for view in dense]
        flat = flats[0] if len(flats) == 1 else np.concatenate([*flats, np.empty(0, self.dtype)])
        if self.dtype == np.float64:
            return flat, flat
        if len(dense) == 1:  # no copy: a difference is the same before centring
            return flat, dense[0].matrix.ravel()
        return flat, np.concatenate([*(view.matrix.ravel() for view in dense), np.empty(0)])

    def _local(self, prepared: Prepared, part: tuple[int, int]) -> Prepared:
        """The rows of a range with their narrow sparse views made dense."""
        return self._flatten(self._made_dense(prepared.side.take(slice(*part))))

    def _made_dense(self, side: Side) -> Side:
        """The side with narrow sparse views made dense."""
        views = tuple(
            view._replace(matrix=view.matrix.toarray())
            if view.is_sparse and self._is_narrow(v, view)
            else view
            for v, view in enumerate(side.views)
        )
        return side._replace(views=views)

    def _is_narrow(self, v: int, view: ViewData) -> bool:
        """Whether a CSR view is made dense block by block; sums over coordinates know no other way."""
        few = 0 if view.columns is None else min(_DENSE_WIDTH, view.columns.cost)
        return view.width <= max(few, _ALWAYS_DENSE_WIDTH) or not self.program.kinds[v].isdisjoint(
            {"sum", "product"}
        )

    # --- work ----------------------------------------------------------------------------------------

    def values(self, tile: Tile[Prepared]) -> np.ndarray:
        out = np.empty(tile.shape, self.dtype)
        self.write(tile, out)
        return out

    def write(self, tile: Tile[Prepared], out: np.ndarray) -> None:
        self._sweep(tile, loops.STORE, out, (0, 0))

    def takes_whole_rows(self, x: Prepared) -> bool:
        return x.is_flat and not self._layout(x.facts).here

    def fill(self, tile: Tile[Prepared], out: np.ndarray) -> None:
        at = tile.i[0], tile.j[0]
        if tile.x.is_flat or tile.i == tile.j:
            self._sweep(tile, loops.MIRROR if tile.mirror else loops.STORE, out, at)
            return
        self._sweep(tile, loops.STORE, out, at)
        if tile.mirror:
            out[tile.columns, tile.rows] = out[tile.rows, tile.columns].T

    def scatter(self, tile: Tile[Prepared], out: np.ndarray, places: np.ndarray) -> None:
        self._sweep(tile, loops.SCATTER, out, (0, tile.j[0]), targets=places)

    def multiply(self, tile: Tile[Prepared], V: np.ndarray, out: np.ndarray) -> None:
        for strip in self._strips(tile):
            self._sweep(strip, loops.MULTIPLY, out, (tile.i[0], 0), V[strip.columns])

    def sums(
        self, tile: Tile[Prepared], row_sets: np.ndarray, column_sets: np.ndarray, out: np.ndarray
    ) -> None:
        with self._guard:  # several threads may be the first
            self._adding_tile  # noqa: B018
        for strip in self._strips(tile):
            sets = row_sets, column_sets[strip.columns]
            self._sweep(strip, loops.SUMS, np.empty((0, 0), self.dtype), (0, 0), None, *sets, out)

    def _strips(self, tile: Tile[Prepared]) -> list[Tile[Prepared]]:
        """All columns at once where the loop reads the points itself, else as many as are handed over."""
        return [tile] if tile.x.is_flat else tile.strips(_HANDED_OVER)

    def _sweep(
        self,
        tile: Tile[Prepared],
        mode: int,
        out: np.ndarray,
        at: tuple[int, int],
        V: np.ndarray | None = None,
        targets: np.ndarray | None = None,
        column_targets: np.ndarray | None = None,
        sums: np.ndarray | None = None,
    ) -> None:
        x, y, i, j, _ = tile
        layout = self._layout(x.facts)
        planes, views = layout.planes, layout.views
        given = self._computed_here(layout.here, tile) if layout.here else None
        if not x.is_flat:  # sparse rows and objects: the range is handed over on its own, counted from 0
            x, y = self._local(x, i), self._local(y, j)
            i, j = (0, i[1] - i[0]), (0, j[1] - j[0])
        if len(views) > 1:  # a single view begins at 0 on both sides
            views = views.copy()
            views[:, 0], views[:, 1] = x.offsets, y.offsets
        loop, real, size = tile_loop(self.dtype, x.exact.dtype), self.dtype, self.dtype.itemsize
        height, breadth = _TILE if mode != loops.SCATTER else _ROWS_TILE
        height, breadth = min(height, i[1] - i[0]), min(breadth, j[1] - j[0])
        streams = out.nbytes > _CACHE
        is_direct = mode == loops.STORE or (mode == loops.MIRROR and not streams)
        n_views, n_planes, area = len(views), len(planes), height * breadth
        n_left, n = len(x.numbers) - 2 * n_views, x.numbers.shape[1]
        n_right, m = len(y.numbers) - 2 * n_views, y.numbers.shape[1]
        x_flat, x_exact, x_numbers = x.addresses
        y_flat, y_exact, y_numbers = y.addresses
        # Memory: integers, a row of sums, planes, values, transposed points, values of points.
        head = -(-8 * (3 + 3 * n_views + breadth) // 64) * 64  # whole cache lines
        transposed = layout.transposed * breadth
        floats = (n_planes + 2) * area + transposed + n_left * height + n_right * breadth
        sizes, kept = scratch(head + size * floats)
        q = sizes + head
        values = q + (n_planes + 1) * area * size
        yt = values + area * size
        lefts = yt + transposed * size
        job = Job(
            tile=(self._adding_tile if mode == loops.SUMS else self.tile).address,
            mode=mode, itemsize=size, planes=layout.planes_at, n_planes=n_planes, n_views=n_views,
            views=layout.views_at if views is layout.views else address(views),
            x=x_flat, x_exact=x_exact, x_norms=x_numbers, x_shift=x_numbers + n_views * n * size,
            y=y_flat, y_exact=y_exact, y_norms=y_numbers, y_shift=y_numbers + n_views * m * size,
            left=x_numbers + 2 * n_views * n * size, right=y_numbers + 2 * n_views * m * size,
            n_left=n_left, n_right=n_right, x_points=n, y_points=m,
            params=self._params_at, external=0 if given is None else address(given, real),
            i0=i[0], i1=i[1], j0=j[0], j1=j[1], height=height, breadth=breadth,
            is_direct=is_direct, streams=streams,
            out=address(out, real), out_width=out.shape[1], oi=at[0], oj=at[1],
            q=q, values=values, yt=yt, lefts=lefts, rights=lefts + n_left * height * size,
            sizes=sizes, total=sizes + 8 * (3 + 3 * n_views),
        )  # fmt: skip
        for part in layout.parts:
            setattr(job, part, loop.address(part))
        if n_left or n_right:
            job.copy_values = loop.address("copy_values")
        if mode != loops.STORE:
            for part in self._finishing(mode, is_direct, i == j and i[1] - i[0] == breadth):
                setattr(job, part, loop.address(part))
        if V is not None:
            job.vectors, job.n_vectors = address(V, real), V.shape[1]
        if targets is not None:
            job.places = address(targets)
        if sums is not None and column_targets is not None:
            job.column_places = address(column_targets)
            job.sums, job.n_sums = address(sums, _SUMS), sums.shape[1]
        loop.sweep(byref(job), self.tau, 0.0)
        del kept  # until here the loop needs the memory

    def _finishing(self, mode: int, is_direct: bool, on_diagonal: bool) -> list[str]:
        """The parts of the tile loop that see a tile once its values are there.

        ``on_diagonal``: whether all tiles meet it.
        """
        parts = ["add_by_sets"] if mode == loops.SUMS else []
        parts += ["multiply"] if mode == loops.MULTIPLY else []
        parts += ["scatter"] if mode in (loops.MIRROR, loops.SCATTER) and not is_direct else []
        parts += ["mirror_diagonal"] if mode == loops.MIRROR else []
        parts += ["mirror_below"] if mode == loops.MIRROR and not on_diagonal else []
        return parts

    def _layout(self, facts: tuple[_Facts, ...]) -> _Layout:
        layout = self._code.layouts.get(facts)
        if layout is None:
            layout = self._code.layouts[facts] = self._make_layout(facts)
        return layout

    def _make_layout(self, facts: tuple[_Facts, ...]) -> _Layout:
        planes = np.zeros((len(self.program.planes), 4), np.int64)
        views = np.array([(0, 0, fact.width, False) for fact in facts], np.int64).reshape(len(facts), 4)
        products: dict[int, int] = {}
        here = []
        for p, plane in enumerate(self.program.planes):
            v = self.program.views.index(plane.view)
            kind = _KINDS[plane.kind]
            if kind == EXTERNAL or facts[v].is_wide:
                kind = EXTERNAL
                here.append(p)
            elif kind == DOT:
                products[v] = p
                planes[p, 3] = facts[v].is_shifted
            elif kind == SUM:
                views[v, 3] = True
            planes[p, :2] = kind, v
        for p, (kind, v) in enumerate(planes[:, :2].tolist()):
            if kind == SQDIST and v in products:
                planes[p, 2] = SHARED + products[v]
            elif kind == SQDIST and facts[v].width <= _DIRECT_WIDTH:
                planes[p, 2] = DIRECT
                views[v, 3] = True
        ways = {how == DIRECT for kind, _, how in planes[:, :3].tolist() if kind == SQDIST}
        parts = ["fill_planes"]
        parts += ["distances_from_differences"] if True in ways else []
        parts += ["distances_from_products"] if False in ways else []
        parts += ["repair_distances"] if False in ways or (ways and self.dtype.itemsize < 8) else []
        parts += ["copy_external"] if here else []
        parts += ["shift_back"] if planes[:, 3].any() else []
        return _Layout(
            planes,
            views,
            tuple(here),
            int(views[:, 2] @ views[:, 3]),
            tuple(parts),
            address(planes),
            address(views),
        )

    def _computed_here(
        self, here: tuple[int, ...], tile: Tile[Prepared]
    ) -> np.ndarray:  # (planes, rows, columns)
        """Planes of Python objects and of wide sparse matrices."""
        sides = Tile(tile.x.side, tile.y.side, *tile[2:])
        objects = iter(self.external(sides))
        given = []
        for p in here:
            plane = self.program.planes[p]
            if isinstance(plane, External):
                given.append(next(objects))
            else:
                given.append(_sparse_plane(plane, self.program.views.index(plane.view), sides, self.tau))
        return np.ascontiguousarray(given, dtype=self.dtype)


def _dense_size(side: Side) -> int:
    """Bytes that the sparse views of a side would take if they were dense."""
    return sum(8 * side.n * view.width for view in side.views if view.is_sparse)


def _sparse_plane(plane: Quantity, v: int, tile: Tile[Side], tau: float) -> np.ndarray:
    """⟨x, y⟩ or ‖x-y‖² of CSR rows, in float64."""
    x, y = tile.x.views[v], tile.y.views[v]
    assert y.columns is not None
    product = sparse_products(x.matrix, y.matrix, tile.i, tile.j, y.columns)
    if plane.kind == "dot":
        return product
    scale = x.norms[tile.rows, None] + y.norms[None, tile.columns]
    s = scale - 2 * product
    doubtful = np.nonzero(s < tau * scale)
    for part in cut(len(doubtful[0]), _REPAIRED):
        a, b = (positions[slice(*part)] for positions in doubtful)
        difference = x.matrix[tile.i[0] + a] - y.matrix[tile.j[0] + b]
        s[a, b] = difference.multiply(difference).sum(axis=1)
    return s
