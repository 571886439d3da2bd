"""What a formula reads of a tile, compiled: products, squared distances, and what was computed elsewhere."""

from __future__ import annotations

from mercer.gram.backends.numba.distances import DIRECT, OWN, SHARED
from mercer.gram.backends.numba.pointers import address_of, call_part, copy, floats, integers, products
from mercer.runtime.native import at

DOT, SQDIST, SUM, EXTERNAL = 0, 1, 2, 3  # kinds of planes


def fill_planes(job, tau, unit):  # type: ignore[no-untyped-def]
    """All planes of the tile at hand, each rows × cols, one after the other."""
    rows, cols, P = job.rows, job.cols, job.n_planes
    area = rows * cols
    sizes, q = integers(job.sizes), floats(job.q, tau)
    for turn in range(2 * P):  # products first: a squared distance may share one
        p = turn % P
        plane = at(integers(job.planes), 4 * p)
        values = at(q, p * area)
        kind, v, how = plane[0], plane[1], plane[2]
        if kind == EXTERNAL or (kind == SQDIST) != (turn >= P):
            continue
        view = at(integers(job.views), 4 * v)
        width = view[2]
        xs = view[0] + job.it * width
        ys = view[1] + job.jt * width
        sizes[2 + 3 * v] = xs
        sizes[2 + 3 * v + 1] = width
        product = values
        if kind == SQDIST:
            product = at(q, (P if how == OWN else how - SHARED) * area)
        if kind != SUM and how == OWN:
            products(at(floats(job.x, tau), xs), at(floats(job.y, tau), ys), rows, cols, width, product)
        if kind == SQDIST:
            job.v = v
            job.width = width
            job.plane = address_of(values)
            job.product = address_of(product)
            job.x_here = address_of(at(floats(job.x, tau), xs))
            job.x_exact_here = address_of(at(floats(job.x_exact, unit), xs))
            job.y_exact_here = address_of(at(floats(job.y_exact, unit), ys))
            job.x_norms_here = address_of(at(floats(job.x_norms, tau), v * job.x_points + job.it))
            job.y_norms_here = address_of(at(floats(job.y_norms, tau), v * job.y_points + job.jt))
            part = job.distances_from_differences if how == DIRECT else job.distances_from_products
            call_part(part, job, tau, unit)
    if job.copy_external != 0:
        call_part(job.copy_external, job, tau, unit)
    if job.shift_back != 0:
        call_part(job.shift_back, job, tau, unit)


def copy_external(job, tau, unit):  # type: ignore[no-untyped-def]
    """The planes of the tile at hand that were computed elsewhere."""
    rows, cols, columns = job.rows, job.cols, job.j1 - job.j0
    source = at(floats(job.external, tau), (job.it - job.i0) * columns + job.jt - job.j0)
    for p in range(job.n_planes):
        if integers(job.planes)[4 * p] == EXTERNAL:
            values = at(floats(job.q, tau), p * rows * cols)
            for i in range(rows):
                copy(at(values, i * cols), at(source, i * columns), cols)
            source = at(source, (job.i1 - job.i0) * columns)


def shift_back(job, tau, unit):  # type: ignore[no-untyped-def]
    """⟨x, y⟩ from the product of centred points, in the planes that need it."""
    rows, cols = job.rows, job.cols
    for p in range(job.n_planes):
        plane = at(integers(job.planes), 4 * p)
        if plane[3]:
            left = at(floats(job.x_shift, tau), plane[1] * job.x_points + job.it)
            right = at(floats(job.y_shift, tau), plane[1] * job.y_points + job.jt)
            for i in range(rows):
                line = at(floats(job.q, tau), (p * rows + i) * cols)
                for j in range(cols):
                    line[j] += left[i] + right[j]


def copy_values(job, tau, unit):  # type: ignore[no-untyped-def]
    """The values of the points of the tile at hand, those of the rows and those of the columns."""
    rows, cols = job.rows, job.cols
    for r in range(job.n_left):
        source = at(floats(job.left, tau), r * job.x_points + job.it)
        copy(at(floats(job.lefts, tau), r * rows), source, rows)
    for r in range(job.n_right):
        source = at(floats(job.right, tau), r * job.y_points + job.jt)
        copy(at(floats(job.rights, tau), r * cols), source, cols)
