"""What is done with a tile besides storing it: parts of the tile loop, which calls them by address."""

from __future__ import annotations

from mercer.gram.backends.numba.pointers import add_product, call_tile, copy, floats, integers, stream
from mercer.runtime.native import INNER, at, njit

_TOGETHER = 32  # rows that are added up in the precision of K before float64 takes over
_LINE = 64  # bytes of a cache line


def multiply(job, tau, unit):  # type: ignore[no-untyped-def]
    """The product of a finished tile with its part of the vectors, added to its rows of out."""
    m = job.n_vectors
    vectors = at(floats(job.vectors, tau), (job.jt - job.j0) * m)
    out = at(floats(job.out, tau), (job.oi + job.it - job.i0) * m)
    add_product(floats(job.target, tau), job.rows, job.cols, vectors, m, out)


def scatter(job, tau, unit):  # type: ignore[no-untyped-def]
    """The rows of a finished tile into out, or into those of its rows that ``places`` names.

    Where ``streams`` is set, whole cache lines are written past the caches.
    """
    cols, lanes, values = job.cols, _LINE // job.itemsize, floats(job.target, tau)
    for i in range(job.rows):
        row = job.oi + job.it - job.i0 + i
        if job.places != 0:
            row = integers(job.places)[job.it - job.i0 + i]
        start = row * job.out_width + job.oj + job.jt - job.j0
        target, lead = at(floats(job.out, tau), start), cols
        if job.streams:
            to_line = -(job.out // job.itemsize + start) % lanes
            lead = to_line if to_line < cols else cols
        full = cols - (cols - lead) % lanes
        copy(target, values, lead)
        for j in range(lead, full, lanes):
            stream(at(target, j), at(values, j), 1)
        copy(at(target, full), at(values, full), cols - full)
        values = at(values, cols)


def mirror_diagonal(job, tau, unit):  # type: ignore[no-untyped-def]
    """What a tile that meets the diagonal has below it, into the mirrored place above it."""
    width, values, out = job.out_width, floats(job.target, tau), floats(job.out, tau)
    i0, j0 = job.oi + job.it - job.i0, job.oj + job.jt - job.j0
    for i in range(job.rows):
        for j in range(job.cols):
            if j0 + j < i0 + i:
                out[(j0 + j) * width + i0 + i] = values[i * job.stride + j]


def mirror_below(job, tau, unit):  # type: ignore[no-untyped-def]
    """The transpose of a tile below the diagonal into the mirrored place: whole cache lines on both sides."""
    rows, cols = job.rows, job.cols
    width, stride, lanes = job.out_width, job.stride, _LINE // job.itemsize
    start = (job.oj + job.jt - job.j0) * width + job.oi + job.it - job.i0
    values, out = floats(job.target, tau), at(floats(job.out, tau), start)
    streams = job.streams and width % lanes == 0  # All rows start at the same place of a cache line.
    lead = 0
    if streams:
        to_line = -(job.out // job.itemsize + start) % lanes
        lead = to_line if to_line < rows else rows
    full = rows - (rows - lead) % lanes
    for block in range(0, cols, 8):
        end = block + 8 if block + 8 < cols else cols
        for i in range(lead, full, lanes):
            for j in range(block, end):
                line, source = at(out, j * width + i), at(values, i * stride + j)
                if streams:
                    stream(line, source, stride)
                else:
                    for lane in range(lanes):
                        line[lane] = source[lane * stride]
    for j in range(cols):
        for i in range(lead):
            out[j * width + i] = values[i * stride + j]
        for i in range(full, rows):
            out[j * width + i] = values[i * stride + j]


@njit(nogil=True, **INNER)
def _run(sets, start, stop):  # type: ignore[no-untyped-def]
    """The end of the run of equal numbers that begins at ``start``."""
    end = start + 1
    while end < stop and sets[end] == sets[start]:
        end += 1
    return end


def add_by_sets(job, tau, unit):  # type: ignore[no-untyped-def]
    """The values of the tile added up by sets of points; points of a set are neighbours.

    The kernel's ``tile`` is one that adds all its rows to the first of its output.
    """
    rows, cols, n_views = job.rows, job.cols, job.n_views
    q, lefts, values = floats(job.q, tau), floats(job.lefts, tau), floats(job.values, tau)
    sizes, views, total = integers(job.sizes), integers(job.views), floats(job.total, 0.0)
    row_sets = at(integers(job.places), job.it - job.i0)
    column_sets = at(integers(job.column_places), job.jt - job.j0)
    sizes[2 + 3 * n_views] = rows  # the length of a plane, of which a call sees some rows
    first = 0
    while first < rows:
        last = _run(row_sets, first, rows)
        out = at(floats(job.sums, 0.0), row_sets[first] * job.n_sums)
        for j in range(cols):
            total[j] = 0.0
        while first < last:
            sizes[0] = last - first if last - first < _TOGETHER else _TOGETHER
            for j in range(cols):
                values[j] = 0
            planes, points = at(q, first * cols), at(lefts, first)
            call_tile(job.tile, planes, points, job.rights, job.x, job.yt, job.params, values, sizes)
            for j in range(cols):
                total[j] += values[j]
            for v in range(n_views):
                sizes[2 + 3 * v] += sizes[0] * views[4 * v + 2]
            first += sizes[0]
        c = 0
        while c < cols:
            end = _run(column_sets, c, cols)
            part = 0.0
            for k in range(c, end):
                part += total[k]
            out[column_sets[c]] += part
            c = end
