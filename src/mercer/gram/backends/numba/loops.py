r"""The compiled tile loop: every Gram on the CPU goes through ``sweep``.

For a range of rows and columns, tile by tile while it is in cache: fill the planes that the
formula reads (products by BLAS, squared distances with their repair), let the kernel's own
compiled ``tile`` turn them into values, then store the values, mirror them, multiply them into
a block of vectors, or add them up by sets of points. ``sweep`` is compiled once per precision; a
kernel only brings its ``tile``, called through its address.

**Squared distances.** ‖x-y‖² = ‖x‖² + ‖y‖² - 2⟨x,y⟩ on centred data costs one matrix product, but
cancels when x and y are close. For few columns the differences are taken directly. Either way, where
the result is below a fraction τ of ‖x‖² + ‖y‖² it is computed again from float64 differences; what
is kept has a relative error of at most about ε/τ. τ = 2⁻⁷ for float32 and 2⁻²⁰ for float64 products; τ³ for
float32 differences, which are exact but for the rounding of x and y; float64 differences need no repair.
"""

from __future__ import annotations

import numpy as np

from mercer.gram.backends.numba.pointers import add_product, call_tile, either, products, stream
from mercer.runtime.native import INNER, bits, njit, part, row

__all__ = [
    "DIRECT",
    "DOT",
    "EXTERNAL",
    "MIRROR",
    "MULTIPLY",
    "OWN",
    "SCATTER",
    "SHARED",
    "SQDIST",
    "STORE",
    "SUM",
    "SUMS",
    "sweep",
]

DOT, SQDIST, SUM, EXTERNAL = 0, 1, 2, 3  # kinds of planes
OWN, DIRECT, SHARED = 0, 1, 2  # a plane has its own product; differences; that of plane (how - SHARED)
STORE, MIRROR, MULTIPLY, SCATTER, SUMS = 0, 1, 2, 3, 4  # what to do with a finished tile
_TOGETHER = 32  # rows that are added up in the precision of K before float64 takes over
_CACHE = 2**25  # bytes from which a matrix is not expected to stay in cache


# Slice assignment would do for the next two, but Numba compiles its error message along, for seconds.


@njit(nogil=True, **INNER)
def _copy(source, target):  # type: ignore[no-untyped-def]
    for j in range(source.shape[0]):
        target[j] = source[j]


@njit(nogil=True, **INNER)
def _add(source, target):  # type: ignore[no-untyped-def]
    for j in range(source.shape[0]):
        target[j] += source[j]


@njit(nogil=True, **INNER)
def _transpose_rows(source, start, rows, width, target):  # type: ignore[no-untyped-def]
    """target[k·rows + j] = source[start + j·width + k], in blocks of 8."""
    for j in range(rows):
        point = part(source, start + j * width, width)
        for k in range(width):
            target[k * rows + j] = point[k]


@njit(nogil=True, **INNER)
def _direct_sqdist(x, xstart, yt, rows, cols, width, out):  # type: ignore[no-untyped-def]
    """Σₖ (xₖ - yₖ)² row by row, four coordinates a pass."""
    for i in range(rows):
        s = part(out, i * cols, cols)
        a = part(x, xstart + i * width, width)
        for j in range(cols):
            s[j] = 0
        k = 0
        while k + 4 <= width:
            y0, y1 = part(yt, k * cols, cols), part(yt, (k + 1) * cols, cols)
            y2, y3 = part(yt, (k + 2) * cols, cols), part(yt, (k + 3) * cols, cols)
            a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
            for j in range(cols):
                d0 = a0 - y0[j]
                d1 = a1 - y1[j]
                d2 = a2 - y2[j]
                d3 = a3 - y3[j]
                s[j] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
            k += 4
        while k < width:
            a0, y0 = a[k], part(yt, k * cols, cols)
            for j in range(cols):
                d0 = a0 - y0[j]
                s[j] += d0 * d0
            k += 1


@njit(nogil=True, **INNER)
def _complete_sqdist(product, nx, ny, tau, out, doubtful):  # type: ignore[no-untyped-def]
    """‖x‖² + ‖y‖² - 2⟨x, y⟩, and for each row whether any entry has lost too much."""
    cols = ny.shape[0]
    for i in range(nx.shape[0]):
        source, target = part(product, i * cols, cols), part(out, i * cols, cols)
        n = nx[i]
        signs = bits(n - n)
        for j in range(cols):
            scale = n + ny[j]
            s = scale - (source[j] + source[j])
            target[j] = s
            signs = either(signs, bits(s - tau * scale))  # the sign bit says s < τ (‖x‖² + ‖y‖²)
        doubtful[i] = signs < 0


@njit(nogil=True, **INNER)
def _doubt_sqdist(plane, nx, ny, tau, doubtful):  # type: ignore[no-untyped-def]
    """The same check for distances that came from differences."""
    cols = ny.shape[0]
    for i in range(nx.shape[0]):
        s = part(plane, i * cols, cols)
        n = nx[i]
        signs = bits(n - n)
        for j in range(cols):
            signs = either(signs, bits(s[j] - tau * (n + ny[j])))
        doubtful[i] = signs < 0


@njit(nogil=True, **INNER)
def _repair_sqdist(plane, nx, ny, tau, doubtful, xe, xstart, ye, ystart, width):  # type: ignore[no-untyped-def]
    """Where s < τ(‖x‖²+‖y‖²), the squared distance again, from float64 differences."""
    cols = ny.shape[0]
    for i in range(nx.shape[0]):
        if doubtful[i]:
            s = part(plane, i * cols, cols)
            left = part(xe, xstart + i * width, width)
            for j in range(cols):
                if s[j] < tau * (nx[i] + ny[j]):
                    right = part(ye, ystart + j * width, width)
                    total = 0.0
                    for k in range(width):
                        d = np.float64(left[k]) - np.float64(right[k])
                        total += d * d
                    s[j] = total


@njit(nogil=True, **INNER)
def _shift(plane, left, right):  # type: ignore[no-untyped-def]
    """⟨x, y⟩ from the product of centred points."""
    cols = right.shape[0]
    for i in range(left.shape[0]):
        s = part(plane, i * cols, cols)
        a = left[i]
        for j in range(cols):
            s[j] += a + right[j]


@njit(nogil=True, **INNER)
def _store_row(values, at, out, start, cols, origin, streams):  # type: ignore[no-untyped-def]
    """out[start : start + cols] = values[at : at + cols], past the caches where lines are whole.

    ``out`` is read as one vector.
    """
    lanes = 64 // out.itemsize
    lead = min(cols, -(origin + start) % lanes) if streams else cols
    full = lead + (cols - lead) // lanes * lanes
    for j in range(lead, full, lanes):
        stream(out, start + j, values, at + j, 1)
    _copy(part(values, at, lead), part(out, start, lead))
    _copy(part(values, at + full, cols - full), part(out, start + full, cols - full))


@njit(nogil=True, **INNER)
def _store_both(values, out, i0, j0, rows, cols):  # type: ignore[no-untyped-def]
    """A finished tile into out, and its transpose into the mirrored place; the lower triangle decides."""
    width = out.shape[1]
    lanes = 64 // out.itemsize
    # large matrices whose rows all start at the same place of a cache line are written past the caches
    streams = out.size * out.itemsize > _CACHE and width % lanes == 0
    origin = out.ctypes.data // out.itemsize
    for i in range(rows):
        _store_row(values, i * cols, out, (i0 + i) * width + j0, cols, origin, streams)
    if j0 + cols > i0 + 1:  # the tile meets the diagonal
        for i in range(rows):
            for j in range(min(cols, i0 + i - j0)):
                out[j0 + j, i0 + i] = values[i * cols + j]
        return
    lead = min(rows, -(origin + j0 * width + i0) % lanes) if streams else 0
    full = lead + (rows - lead) // lanes * lanes
    for j in range(cols):
        target = row(out, j0 + j, i0, rows)
        for i in range(lead):
            target[i] = values[i * cols + j]
        for i in range(full, rows):
            target[i] = values[i * cols + j]
    for jb in range(0, cols, 8):
        for ib in range(lead, full, lanes):
            for j in range(jb, min(jb + 8, cols)):
                start, at = (j0 + j) * width + i0 + ib, ib * cols + j
                if streams:
                    stream(out, start, values, at, cols)
                else:
                    line = part(out, start, lanes)
                    for i in range(lanes):  # whole cache lines on both sides
                        line[i] = values[at + i * cols]


@njit(nogil=True, **INNER)
def _clear(target):  # type: ignore[no-untyped-def]
    for j in range(target.shape[0]):
        target[j] = 0


@njit(nogil=True, **INNER)
def _run(sets, start, stop):  # type: ignore[no-untyped-def]
    """The end of the run of equal numbers that begins at ``start``."""
    end = start + 1
    while end < stop and sets[end] == sets[start]:
        end += 1
    return end


@njit(nogil=True, **INNER)
def _add_segments(total, column_sets, out):  # type: ignore[no-untyped-def]
    """out[B] += Σ total[b] over b in B; points of a set are neighbours."""
    c = 0
    while c < total.shape[0]:
        end = _run(column_sets, c, total.shape[0])
        part = 0.0
        for k in range(c, end):
            part += total[k]
        out[column_sets[c]] += part
        c = end


def sweep(  # type: ignore[no-untyped-def]
    address,
    planes,  # (P, 4): kind, view, how (see ``OWN``, ``DIRECT``), whether a product is shifted back
    views,  # (V, 4): offset in x, offset in y, width, whether y is needed transposed
    x, xe, xnorms, xshift, left,  # flat views; the same for repairs; (V, n) norms and shifts; (L, n)
    y, ye, ynorms, yshift, right,
    params,
    external,  # (E, rows, cols) of the whole range
    shape,  # rows and columns of a tile
    tau,
    i0, i1, j0, j1,
    out, oi, oj,  # where the range goes in a C-contiguous matrix
    V, mode,
    places,  # for SCATTER and SUMS: the row of out for each row i0:i1, or of sums
    column_places, sums,  # for SUMS: the column of sums for each column j0:j1; sums are of float64
):  # fmt: skip
    """Rows i0:i1 × columns j0:j1 of the Gram matrix, into out[oi:, oj:] or multiplied with V into it.

    The backend compiles it, once for each precision.

    For SUMS, the kernel's ``tile`` is one that adds all its rows to the first of out.
    """
    dtype_zero = params[:0]
    small_tau = tau * tau * tau  # differences lose ε‖x‖/‖x-y‖, the square root of what products lose
    P = planes.shape[0]
    height, breadth = min(shape[0], i1 - i0), min(shape[1], j1 - j0)
    q = np.empty((P + 1) * height * breadth, dtype_zero.dtype)  # one more: a product on its way
    doubtful = np.empty(height, np.bool_)
    values = np.empty(height * breadth if mode != STORE else 0, dtype_zero.dtype)
    total = np.empty(breadth if mode == SUMS else 0)
    transposed = 0
    for v in range(views.shape[0]):
        transposed += views[v, 3] * views[v, 2] * breadth
    yt = np.empty(transposed, dtype_zero.dtype)
    n_left, n_right = left.shape[0], right.shape[0]
    lefts = np.empty(n_left * height, dtype_zero.dtype)
    rights = np.empty(n_right * breadth, dtype_zero.dtype)
    # for the kernel's tile: rows, cols, then per view x offset, width, yt offset; last the row stride
    sizes = np.empty(2 + 3 * views.shape[0] + 1, np.int64)

    for jt in range(j0, j1, breadth):
        cols = min(breadth, j1 - jt)
        place = 0
        for v in range(views.shape[0]):
            sizes[2 + 3 * v + 2] = place
            if views[v, 3]:
                width = views[v, 2]
                _transpose_rows(y, views[v, 1] + jt * width, cols, width, part(yt, place, cols * width))
                place += cols * width
        for r in range(n_right):
            _copy(row(right, r, jt, cols), part(rights, r * cols, cols))

        for it in range(i0, i1, height):
            rows = min(height, i1 - it)
            if mode == MIRROR and jt > it + rows - 1:
                continue  # above the diagonal: mirrored from below
            area = rows * cols
            sizes[0], sizes[1] = rows, cols
            for r in range(n_left):
                _copy(row(left, r, it, rows), part(lefts, r * rows, rows))

            e = 0
            for turn in range(2 * P):  # products first: a squared distance may share one
                p = turn % P
                kind, v = planes[p, 0], planes[p, 1]
                if (kind == SQDIST) != (turn >= P):
                    continue
                plane = part(q, p * area, area)
                if kind == EXTERNAL:
                    for i in range(rows):
                        at = (e * external.shape[1] + it - i0 + i) * external.shape[2] + jt - j0
                        _copy(part(external, at, cols), part(plane, i * cols, cols))
                    e += 1
                    continue
                width = views[v, 2]
                xs, ys = views[v, 0] + it * width, views[v, 1] + jt * width
                sizes[2 + 3 * v], sizes[2 + 3 * v + 1] = xs, width
                if kind == SUM:
                    continue
                nx, ny = row(xnorms, v, it, rows), row(ynorms, v, jt, cols)
                how = planes[p, 2]
                if how == DIRECT:
                    yv = sizes[2 + 3 * v + 2]
                    _direct_sqdist(x, xs, part(yt, yv, cols * width), rows, cols, width, plane)
                    if x.itemsize < 8:
                        _doubt_sqdist(plane, nx, ny, small_tau, doubtful)
                        _repair_sqdist(plane, nx, ny, small_tau, doubtful, xe, xs, ye, ys, width)
                    continue
                product = plane
                if kind == SQDIST:
                    slot = P if how == OWN else how - SHARED
                    product = part(q, slot * area, area)
                if how == OWN:
                    products(x, xs, y, ys, rows, cols, width, product)
                if kind == SQDIST:
                    _complete_sqdist(product, nx, ny, tau, plane, doubtful)
                    _repair_sqdist(plane, nx, ny, tau, doubtful, xe, xs, ye, ys, width)
            for p in range(P):
                if planes[p, 3]:
                    v = planes[p, 1]
                    _shift(part(q, p * area, area), row(xshift, v, it, rows), row(yshift, v, jt, cols))

            if mode == STORE:
                sizes[-1] = out.shape[1]
                start = (oi + it - i0) * out.shape[1] + oj + jt - j0
                call_tile(address, q, lefts, rights, x, yt, params, part(out, start, area), sizes)
                continue
            if mode == SUMS:
                sizes[-1] = rows  # of the planes, of which a call sees some
                first = 0
                while first < rows:
                    last = _run(places, it - i0 + first, it - i0 + rows) - (it - i0)
                    row_of_sums = row(sums, places[it - i0 + first], 0, sums.shape[1])
                    _clear(part(total, 0, cols))
                    while first < last:
                        sizes[0] = min(_TOGETHER, last - first)
                        _clear(part(values, 0, cols))
                        here = part(q, first * cols, area), part(lefts, first, rows)
                        call_tile(address, here[0], here[1], rights, x, yt, params, values, sizes)
                        _add(part(values, 0, cols), part(total, 0, cols))
                        for v in range(views.shape[0]):
                            sizes[2 + 3 * v] += sizes[0] * views[v, 2]
                        first += sizes[0]
                    _add_segments(part(total, 0, cols), part(column_places, jt - j0, cols), row_of_sums)
                continue
            sizes[-1] = cols
            call_tile(address, q, lefts, rights, x, yt, params, values, sizes)
            if mode == MIRROR:
                _store_both(values, out, oi + it - i0, oj + jt - j0, rows, cols)
            elif mode == SCATTER:
                origin = out.ctypes.data // out.itemsize
                streams = out.size * out.itemsize > _CACHE
                for i in range(rows):
                    start = places[it - i0 + i] * out.shape[1] + oj + jt - j0
                    _store_row(values, i * cols, out, start, cols, origin, streams)
            else:
                add_product(values, rows, cols, V, jt, out, oi + it - i0)
